/* SPDX-License-Identifier: MIT */
/* composite/softmax.c: softmax with a dtype to convert to first, and the one that gives zeros where
 * nothing is left. */
#include "core/tensor.h"
#include "gen/composites.h"
#include "gen/kernels.h"
#include "tenon/ops.h"

typedef tn_status (*softmax_fn)(tn_tensor *self, int64_t dim, bool half_to_float, tn_tensor **out);

/* @p fn of @p self in @p dtype. */
static tn_status of_converted(softmax_fn fn, tn_tensor *self, int64_t dim, tn_dtype dtype,
                              tn_tensor **out)
{
    TN_AUTO(tn_tensor) x = NULL;
    TN_TRY(tn_to_dtype(self, dtype, false, false, TN_FORMAT_NONE, &x));
    return fn(x, dim, false, out);
}

tn_status tni_composite_softmax(tn_tensor *self, int64_t dim, tn_dtype dtype, tn_tensor **out)
{
    if (TNI_LIKELY(dtype == TN_DTYPE_NONE))
        return tn__softmax(self, dim, false, out);
    return of_converted(tn__softmax, self, dim, dtype, out);
}

tn_status tni_composite_log_softmax(tn_tensor *self, int64_t dim, tn_dtype dtype, tn_tensor **out)
{
    if (TNI_LIKELY(dtype == TN_DTYPE_NONE))
        return tn__log_softmax(self, dim, false, out);
    return of_converted(tn__log_softmax, self, dim, dtype, out);
}

tn_status tni_kernel__safe_softmax(tn_call *call, tn_tensor *self, int64_t dim, tn_dtype dtype,
                                   tn_tensor **out)
{
    (void)call;
    TN_AUTO(tn_tensor) y = NULL;
    TN_AUTO(tn_tensor) masked = NULL;
    TN_AUTO(tn_tensor) rows = NULL;
    TN_AUTO(tn_tensor) zero = NULL;
    TN_TRY(tn_softmax(self, dim, dtype, &y));
    TN_CHECK(!tn_dtype_is_complex((tn_dtype)self->dtype), TN_INVALID,
             "isneginf does not support complex inputs.");
    if (self->numel == 0) {
        *out = TN_MOVE(y);
        return TN_OK;
    }
    TN_TRY(tn_eq_scalar(self, tn_float(-__builtin_inf()), &masked));
    TN_TRY(tn_amin(masked, &dim, 1, true, &rows));
    tn_tensor_opts opts = tn_opts((tn_dtype)y->dtype, y->device);
    TN_TRY(tn_zeros(NULL, 0, &opts, &zero));
    return tn_where(rows, zero, y, out);
}
