/* SPDX-License-Identifier: MIT */
/* composite/noop.c: the operator that does nothing, by which a dispatch is measured. */
#include "gen/composites.h"

tn_status tni_composite_noop(tn_tensor *self, tn_tensor *other)
{
    (void)self;
    (void)other;
    return TN_OK;
}
