/* SPDX-License-Identifier: MIT */
/* cpu/reduce_ops.c: sum, mean, amax and amin on the CPU. */
#include "cpu/move.h"
#include "cpu/reduce.h"
#include "gen/cpu.h"
#include "gen/kernels.h"
#include "gen/shapes.h"
#include "iter/iter.h"
#include "shape/structured.h"
#include "tenon/ops.h"

#define ALL (~UINT64_C(0))

/* A sum in bool asks whether any element is true: elements become bool first. */
static tn_status sum(tni_reduction what, tn_tensor *self, uint64_t dims, tn_tensor *out)
{
    if (TNI_UNLIKELY(out->dtype == TN_DTYPE_BOOL && self->dtype != TN_DTYPE_BOOL)) {
        TN_AUTO(tn_tensor) truth = NULL;
        TN_TRY(tn_ne_scalar(self, tn_int(0), &truth));
        return tni_reduce(what, truth, dims, out);
    }
    return tni_reduce(what, self, dims, out);
}

tn_status tni_cpu_sum(tn_tensor *self, tn_dtype dtype, tn_tensor *out)
{
    (void)dtype;
    if (TNI_LIKELY((self->flags & TNI_CONTIGUOUS) && self->dtype == TN_DTYPE_F32 &&
                   out->dtype == TN_DTYPE_F32 && self->numel <= TNI_SUM_BLOCK)) {
        tni_cpu_kernels()->reduce->sum_block[TN_DTYPE_F32](out->data, self->data, self->numel);
        return TN_OK;
    }
    return sum(TNI_REDUCE_SUM, self, ALL, out);
}

tn_status tni_cpu_sum_dim(tn_tensor *self, const int64_t *dim, int64_t dim_n, bool keepdim,
                          tn_dtype dtype, tn_tensor *out)
{
    uint64_t dims;
    (void)keepdim;
    (void)dtype;
    TN_TRY(tni_reduced_dims(dim, dim_n, self->ndim, &dims));
    return sum(TNI_REDUCE_SUM, self, dims, out);
}

tn_status tni_cpu_mean(tn_tensor *self, tn_dtype dtype, tn_tensor *out)
{
    (void)dtype;
    return sum(TNI_REDUCE_MEAN, self, ALL, out);
}

tn_status tni_cpu_mean_dim(tn_tensor *self, const int64_t *dim, int64_t dim_n, bool keepdim,
                           tn_dtype dtype, tn_tensor *out)
{
    uint64_t dims;
    (void)keepdim;
    (void)dtype;
    TN_TRY(tni_reduced_dims(dim, dim_n, self->ndim, &dims));
    return sum(TNI_REDUCE_MEAN, self, dims, out);
}

static tn_status extreme(tni_reduction what, tn_tensor *self, const int64_t *dim, int64_t dim_n,
                         tn_tensor *out)
{
    uint64_t dims;
    TN_TRY(tni_reduced_dims(dim, dim_n, self->ndim, &dims));
    return tni_reduce(what, self, dims, out);
}

tn_status tni_cpu_amax(tn_tensor *self, const int64_t *dim, int64_t dim_n, bool keepdim,
                       tn_tensor *out)
{
    (void)keepdim;
    return extreme(TNI_REDUCE_MAX, self, dim, dim_n, out);
}

tn_status tni_cpu_amin(tn_tensor *self, const int64_t *dim, int64_t dim_n, bool keepdim,
                       tn_tensor *out)
{
    (void)keepdim;
    return extreme(TNI_REDUCE_MIN, self, dim, dim_n, out);
}

/* ---- out variants whose dtype is that of out; they serve the CPU and Meta ---- */

static tn_status reduce_out(tni_reduction what, tn_tensor *self, const int64_t *dim, int64_t dim_n,
                            const tni_geometry *g, tn_tensor *out)
{
    TN_AUTO(tn_tensor) beside = NULL;
    tn_tensor *const inputs[] = {self};
    TN_TRY(tni_check_limited(g->dtype, TNI_PW_UNSIGNED, "sum_cpu"));
    TN_TRY(tni_out_prepare(what == TNI_REDUCE_SUM ? "sum" : "mean", g, out, inputs, 1, &beside));
    if (tni_is_meta(out))
        return TN_OK;
    uint64_t dims;
    TN_TRY(tni_reduced_dims(dim, dim_n, self->ndim, &dims));
    TN_TRY(sum(what, self, dims, tni_out_target(out, beside)));
    return tni_out_finish(out, beside);
}

tn_status tni_kernel_sum_dim_out(tn_call *call, tn_tensor *self, const int64_t *dim, int64_t dim_n,
                                 bool keepdim, tn_dtype dtype, tn_tensor *out)
{
    (void)call;
    tni_geometry g;
    if (dtype == TN_DTYPE_NONE)
        dtype = (tn_dtype)out->dtype;
    TN_TRY(tni_shape_sum_dim(&g, self, dim, dim_n, keepdim, dtype));
    return reduce_out(TNI_REDUCE_SUM, self, dim, dim_n, &g, out);
}

tn_status tni_kernel_mean_dim_out(tn_call *call, tn_tensor *self, const int64_t *dim, int64_t dim_n,
                                  bool keepdim, tn_dtype dtype, tn_tensor *out)
{
    (void)call;
    tni_geometry g;
    TN_TRY(tni_shape_mean_dim(&g, self, dim, dim_n, keepdim, dtype));
    if (dtype == TN_DTYPE_NONE) {
        TN_TRY(tni_check_cast(g.dtype, (tn_dtype)out->dtype));
        g.dtype = (tn_dtype)out->dtype;
    }
    return reduce_out(TNI_REDUCE_MEAN, self, dim, dim_n, &g, out);
}

tn_status tni_kernel_mean_all_out(tn_call *call, tn_tensor *self, tn_dtype dtype, tn_tensor *out)
{
    if (tni_check_cast((tn_dtype)self->dtype, (tn_dtype)out->dtype) != TN_OK)
        TN_FAIL(TN_INVALID,
                "mean.dtype_out(): input types can't be cast to the desired output type %s",
                tni_dtype_text((tn_dtype)out->dtype));
    return tni_kernel_mean_dim_out(call, self, NULL, 0, false, dtype, out);
}
