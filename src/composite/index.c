/* SPDX-License-Identifier: MIT */
/* composite/index.c: index_put in terms of the one kernel that writes; where as a list. */
#include "core/tensor.h"
#include "gen/composites.h"
#include "gen/kernels.h"
#include "tenon/ops.h"

tn_status tni_kernel_index_put(tn_call *call, tn_tensor *self, tn_tensor *const *indices,
                               int64_t indices_n, tn_tensor *values, bool accumulate,
                               tn_tensor **out)
{
    (void)call;
    TN_AUTO(tn_tensor) copy = NULL;
    TN_TRY(tn_clone(self, TN_FORMAT_PRESERVE, &copy));
    TN_TRY(tn_index_put_(copy, indices, indices_n, values, accumulate));
    *out = TN_MOVE(copy);
    return TN_OK;
}

tn_status tni_kernel_index_put_(tn_call *call, tn_tensor *self, tn_tensor *const *indices,
                                int64_t indices_n, tn_tensor *values, bool accumulate)
{
    (void)call;
    return tn__index_put_impl_(self, indices, indices_n, values, accumulate, false);
}

tn_status tni_composite_where_nonzero(tn_tensor *condition, tn_tensor ***out, int64_t *out_n)
{
    TN_AUTO(tn_tensor) whole = NULL;
    TN_AUTO(tn_tensor) places = NULL;
    /* A number counts as a vector of one. */
    if (condition->ndim == 0)
        TN_TRY(tn_unsqueeze(condition, 0, &whole));
    TN_TRY(tn_nonzero(whole ? whole : condition, &places));
    return tn_unbind(places, 1, out, out_n);
}
