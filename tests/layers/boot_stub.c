/* SPDX-License-Identifier: MIT */
/* tests/layers/boot_stub.c: stands in for src/runtime when a layer below it is linked alone.
 *
 * dispatch calls tni_boot() the first time that anybody needs an operator, and runtime, above it,
 * defines it: the one call that points up (decision 0001). Nothing else may be added here. */
#include "dispatch/builtin.h"

tn_status tni_boot(void)
{
    return TN_OK;
}
