/* SPDX-License-Identifier: MIT */
/* autograd/formula_distance.c: gradients of distances between rows, written by hand. See formula.c.
 *
 * Where the gradient is to be differentiated again it is made of operators on all differences;
 * else one operator does it without writing them down. */
#include <math.h>
#include "autograd/meta.h"
#include "core/scope.h"
#include "core/state.h"
#include "gen/gradients.h"

#include "tenon/ops.h"

static bool again(const tn_tensor *a, const tn_tensor *b, const tn_tensor *c)
{
    return tni_recording && (tni_requires_grad(a) || tni_requires_grad(b) || tni_requires_grad(c));
}

/* sign(d) |d|^(p-1) / distance^(p-1), for which 0 stands where d or the distance is 0: the slope of
 * a distance along each coordinate. @p distance has a last dimension of 1. */
static tn_tensor *slopes(tn_tensor *d, tn_tensor *distance, double p)
{
    tn_tensor *sign = tnx_sign(d);
    if (p == 1)
        return sign;
    tn_tensor *size = tnx_abs(d);
    if (isinf(p))
        return tnx_where_scalarother(tnx_eq(size, distance), sign, tn_int(0));
    tn_tensor *apart = tnx_gt_scalar(distance, tn_int(0));
    distance = tnx_where_scalarother(apart, distance, tn_int(1));
    if (p == 2)
        return tnx_where_scalarother(apart, tnx_div(d, distance), tn_int(0));
    tn_tensor *differs = tnx_gt_scalar(size, tn_int(0));
    size = tnx_where_scalarother(differs, size, tn_int(1));
    tn_tensor *ratio = tnx_mul(sign, tnx_pow_tensor_scalar(size, tn_float(p - 1)));
    ratio = tnx_div(ratio, tnx_pow_tensor_scalar(distance, tn_float(p - 1)));
    return tnx_where_scalarother(tnx_logical_and(apart, differs), ratio, tn_int(0));
}

/* For the rows of @p x1. */
tn_tensor *tni_grad_cdist_gradient(tn_tensor *grad, tn_tensor *x1, tn_tensor *x2, double p,
                                   tn_tensor *result)
{
    if (tni_scope_failed() || !again(grad, x1, x2))
        return tnx__cdist_backward(grad, x1, x2, p, result);
    if (p == 0)
        return tnx_zeros_like(x1, NULL, TN_FORMAT_NONE);
    const int64_t others = -2;
    tn_tensor *d = tnx_sub(tnx_unsqueeze(x1, -2), tnx_unsqueeze(x2, -3), tn_int(1));
    tn_tensor *each = tnx_mul(slopes(d, tnx_unsqueeze(result, -1), p), tnx_unsqueeze(grad, -1));
    return tnx_sum_dim(each, &others, 1, false, TN_DTYPE_NONE);
}

tn_tensor *tni_grad_pdist_gradient(tn_tensor *grad, tn_tensor *self, double p, tn_tensor *result)
{
    if (tni_scope_failed() || !again(grad, self, NULL))
        return tnx__pdist_backward(grad, self, p, result);
    tn_tensor *zeros = tnx_zeros_like(self, NULL, TN_FORMAT_NONE);
    if (p == 0 || self->numel == 0)
        return zeros;
    int64_t n = self->sizes[0];
    const tn_tensor_opts ints = tn_opts(TN_DTYPE_I64, self->device);
    tn_tensor *pairs = tnx_triu_indices(n, n, 1, &ints);
    tn_tensor *one = tnx_select(pairs, 0, 0), *other = tnx_select(pairs, 0, 1);
    tn_tensor *d =
        tnx_sub(tnx_index_select(self, 0, one), tnx_index_select(self, 0, other), tn_int(1));
    tn_tensor *each = tnx_mul(slopes(d, tnx_unsqueeze(result, -1), p), tnx_unsqueeze(grad, -1));
    return tnx_index_add(tnx_index_add(zeros, 0, one, each, tn_int(1)), 0, other, each, tn_int(-1));
}
