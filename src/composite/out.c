/* SPDX-License-Identifier: MIT */
/* composite/out.c: see out.h. */
#include "composite/out.h"
#include "core/tensor.h"
#include "shape/geometry.h"
#include "shape/structured.h"
#include "tenon/ops.h"

tn_status tni_out_take(const char *op, tn_tensor *made, tn_tensor *out)
{
    tni_geometry g;
    TN_AUTO(tn_tensor) target = NULL;
    tni_geometry_copy(&g, made);
    g.offset = 0;
    g.has_strides = false;
    TN_TRY(tni_out_prepare(op, &g, out, NULL, 0, &target));
    return tn_copy_(out, made, false);
}
