/* SPDX-License-Identifier: MIT */
/* composite/join.c: cat and stack for devices that have no kernel of their own, and for lists
 * without a tensor, which no device serves. */
#include "core/tensor.h"
#include "gen/kernels.h"
#include "gen/shapes.h"
#include "tenon/ops.h"

tn_status tni_kernel_cat_pieces(tn_call *call, tn_tensor *const *tensors, int64_t tensors_n,
                                int64_t dim, tn_tensor **out)
{
    (void)call;
    tni_geometry g;
    TN_AUTO(tn_tensor) joined = NULL;
    TN_TRY(tni_shape_cat(&g, tensors, tensors_n, dim));
    TN_TRY(tni_tensor_from_geometry(&g, &joined));
    int64_t start = 0;
    int at = 0;
    if (joined->numel > 0)
        TN_TRY(tni_wrap_dim(dim, joined->ndim, &at));
    for (int64_t i = 0; i < tensors_n; i++) {
        if (tensors[i]->numel == 0)
            continue;
        TN_AUTO(tn_tensor) piece = NULL;
        TN_TRY(tn_narrow(joined, at, start, tensors[i]->sizes[at], &piece));
        TN_TRY(tn_copy_(piece, tensors[i], false));
        start += tensors[i]->sizes[at];
    }
    *out = TN_MOVE(joined);
    return TN_OK;
}

tn_status tni_kernel_stack_pieces(tn_call *call, tn_tensor *const *tensors, int64_t tensors_n,
                                  int64_t dim, tn_tensor **out)
{
    (void)call;
    tni_geometry g;
    TN_AUTO(tn_tensor) joined = NULL;
    TN_TRY(tni_shape_stack(&g, tensors, tensors_n, dim));
    TN_TRY(tni_tensor_from_geometry(&g, &joined));
    for (int64_t i = 0; i < tensors_n; i++) {
        TN_AUTO(tn_tensor) piece = NULL;
        TN_TRY(tn_select(joined, dim, i, &piece));
        TN_TRY(tn_copy_(piece, tensors[i], false));
    }
    *out = TN_MOVE(joined);
    return TN_OK;
}
