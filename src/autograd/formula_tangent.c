/* SPDX-License-Identifier: MIT */
/* autograd/formula_tangent.c: parts of `jvp` formulas written by hand. See formula.c. */
#include "autograd/forward.h"
#include "core/state.h"
#include "gen/gradients.h"

#include "tenon/ops.h"

/* The Jacobian of softmax is symmetric: (t - sum(t * y)) * y. */
tn_tensor *tni_grad_softmax_tangent(tn_tensor *t, tn_tensor *result, int64_t dim)
{
    tn_tensor *sum = tnx_sum_dim(tnx_mul(t, result), &dim, 1, true, TN_DTYPE_NONE);
    return tnx_mul(tnx_sub(t, sum, tn_int(1)), result);
}

/* What a loss does last: nothing for `none`, else the terms (divided already) are added. */
tn_tensor *tni_grad_loss_tangent(tn_tensor *t, int64_t reduction)
{
    return reduction == 0 ? t : tnx_sum(t, TN_DTYPE_NONE);
}

/* The terms of the slope along @p t; an undefined gradient is zero. */
tn_tensor *tni_grad_along(tn_tensor *gradient, tn_tensor *t)
{
    return gradient ? tnx_mul(tni_grad_conj(gradient), t)
                    : tnx_zeros_like(t, NULL, TN_FORMAT_PRESERVE);
}

/* Mean and rstd are results without a gradient: where the tangent is recorded they are computed
 * again, so that its own gradient goes through them. */
static int64_t layer_norm_statistics(tn_tensor *input, int64_t shape_n, double eps, int64_t *dims,
                                     tn_tensor **mean, tn_tensor **rstd)
{
    for (int64_t i = 0; i < shape_n; i++)
        dims[i] = i - shape_n;
    if (!tni_recording || !tni_requires_grad(input))
        return shape_n;
    *mean = tnx_mean_dim(input, dims, shape_n, true, (tn_dtype)(*mean)->dtype);
    tn_tensor *apart = tnx_sub(input, *mean, tn_int(1));
    tn_tensor *variance = tnx_mean_dim(tnx_mul(apart, apart), dims, shape_n, true, TN_DTYPE_NONE);
    *rstd = tnx_rsqrt(tnx_add_scalar(variance, tn_float(eps), tn_int(1)));
    return shape_n;
}

/* The normalized input. */
tn_tensor *tni_grad_layer_norm_plain(tn_tensor *input, tn_tensor *mean, tn_tensor *rstd,
                                     const int64_t *shape, int64_t shape_n, double eps)
{
    int64_t dims[TN_MAX_DIMS];
    (void)shape;
    (void)layer_norm_statistics(input, shape_n, eps, dims, &mean, &rstd);
    return tnx_mul(tnx_sub(input, mean, tn_int(1)), rstd);
}

/* rstd * (t - mean(t) - x * mean(t * x)) * weight, where x is the normalized input. */
tn_tensor *tni_grad_layer_norm_tangent(tn_tensor *t, tn_tensor *input, tn_tensor *mean,
                                       tn_tensor *rstd, tn_tensor *weight, const int64_t *shape,
                                       int64_t shape_n, double eps)
{
    int64_t dims[TN_MAX_DIMS];
    (void)shape;
    int64_t n = layer_norm_statistics(input, shape_n, eps, dims, &mean, &rstd);
    tn_tensor *x = tnx_mul(tnx_sub(input, mean, tn_int(1)), rstd);
    tn_tensor *shift = tnx_mean_dim(t, dims, n, true, TN_DTYPE_NONE);
    tn_tensor *turn = tnx_mul(x, tnx_mean_dim(tnx_mul(t, x), dims, n, true, TN_DTYPE_NONE));
    tn_tensor *moved = tnx_sub(tnx_sub(t, shift, tn_int(1)), turn, tn_int(1));
    moved = tnx_mul(moved, rstd);
    return weight ? tnx_mul(moved, weight) : moved;
}

/* One number for each channel, the second of @p ndim dimensions, made to broadcast. */
tn_tensor *tni_grad_channels_tangent(tn_tensor *t, int64_t ndim)
{
    int64_t sizes[TN_MAX_DIMS] = {-1};
    for (int64_t d = 1; d < ndim - 1 && d < TN_MAX_DIMS; d++)
        sizes[d] = 1;
    return tnx_reshape(t, sizes, ndim - 1);
}

/* The elements that were chosen along @p dim. */
tn_tensor *tni_grad_pick_tangent(tn_tensor *t, int64_t dim, tn_tensor *indices, bool keepdim)
{
    if (!t || t->ndim == 0 || keepdim)
        return tnx_gather(t, dim, indices, false);
    return tnx_squeeze_dim(tnx_gather(t, dim, tnx_unsqueeze(indices, dim), false), dim);
}

static TNI_COLD tn_status refuse_as_strided(void)
{
    TN_FAIL(TN_UNSUPPORTED,
            "as_strided of a dual tensor some of whose elements share a place in memory has no "
            "tangent: clone() the tensor before it is made dual");
}

/* The same view of the tangent, which may begin elsewhere in its storage. See Note [Tangents lie as
 * storages do]. */
tn_tensor *tni_grad_as_strided_tangent(tn_tensor *t, tn_tensor *self, const int64_t *size,
                                       int64_t size_n, const int64_t *stride, int64_t stride_n,
                                       tn_opt_int offset)
{
    if (!t)
        return NULL;
    if (!tni_same_strides(self, t))
        return tni_scope_result(refuse_as_strided(), NULL);
    int64_t at = offset.has ? offset.value - self->offset : 0;
    return tnx_as_strided(t, size, size_n, stride, stride_n, tn_some_int(t->offset + at));
}
