/* SPDX-License-Identifier: MIT */
/* composite/index.c: index_put in terms of the one kernel that writes. */
#include "core/tensor.h"
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
