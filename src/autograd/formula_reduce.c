/* SPDX-License-Identifier: MIT */
/* autograd/formula_reduce.c: gradients of extremes, products, variances and norms. See formula.c.
 */
#include "autograd/formula.h"
#include "gen/gradients.h"

#include <math.h>
#include "tenon/ops.h"

static tn_tensor *zero_where(tn_tensor *t, tn_tensor *mask)
{
    return tnx_masked_fill(t, mask, tn_int(0));
}

/* ---- extremes ---- */

/* Split evenly among all that equal the result. */
tn_tensor *tni_grad_amax_gradient(tn_tensor *grad, tn_tensor *self, tn_tensor *result,
                                  const int64_t *dim, int64_t dim_n, bool keepdim)
{
    if (tni_scope_failed())
        return NULL;
    grad = tni_restore_dims(grad, self->ndim, dim, dim_n, keepdim);
    result = tni_restore_dims(result, self->ndim, dim, dim_n, keepdim);
    tn_tensor *mask = tnx_eq(result, self);
    return tnx_div(tnx_mul(grad, mask), tnx_sum_dim(mask, dim, dim_n, true, TN_DTYPE_NONE));
}

/* The same for a result of all elements, where a NaN equals a NaN. */
tn_tensor *tni_grad_spread_gradient(tn_tensor *grad, tn_tensor *self, tn_tensor *result)
{
    tn_tensor *both_nan = tnx_logical_and(tnx_isnan(self), tnx_isnan(result));
    tn_tensor *mask = tnx_logical_or(tnx_eq(self, result), both_nan);
    return tnx_where_scalarother(mask, tnx_div(grad, tnx_sum(mask, TN_DTYPE_NONE)), tn_int(0));
}

/* ---- products ---- */

/* Is any element 0? Where they cannot be looked at: yes. */
static bool any_zero(tn_tensor *t)
{
    tn_tensor *any = tnx_any(tnx_eq_scalar(t, tn_int(0)));
    tn_scalar found = tn_int(1);
    if (any && tni_can_look(any))
        (void)tni_scope_result(tn_item(any, &found), NULL);
    return found.v.i != 0;
}

/* Products of all elements but one, without division: those before it times those after it. */
static tn_tensor *products_of_others(tn_tensor *t, int64_t dim)
{
    int64_t n = t->sizes[dim], ones_sizes[TN_MAX_DIMS];
    for (int d = 0; d < t->ndim; d++)
        ones_sizes[d] = d == dim ? 1 : t->sizes[d];
    tn_tensor_opts opts = tni_opts_of(t);
    tn_tensor *ones = tnx_ones(ones_sizes, t->ndim, &opts);
    tn_tensor *before[] = {ones, tnx_narrow(t, dim, 0, n - 1)};
    tn_tensor *after[] = {ones, tnx_flip(tnx_narrow(t, dim, 1, n - 1), &dim, 1)};
    if (tni_scope_failed())
        return NULL;
    tn_tensor *up = tnx_cumprod(tnx_cat(before, 2, dim), dim, TN_DTYPE_NONE);
    tn_tensor *down = tnx_cumprod(tnx_cat(after, 2, dim), dim, TN_DTYPE_NONE);
    return tnx_mul(up, tnx_flip(down, &dim, 1));
}

tn_tensor *tni_grad_prod_gradient(tn_tensor *grad, tn_tensor *self, tn_tensor *result)
{
    if (tni_scope_failed())
        return NULL;
    self = tnx_to_dtype(self, (tn_dtype)grad->dtype, false, false, TN_FORMAT_NONE);
    if (!any_zero(self))
        return tnx_mul(grad, tni_grad_conj(tnx_div(result, self)));
    if (tni_scope_failed() || self->numel == 0)
        return tnx_zeros_like(self, NULL, TN_FORMAT_NONE);
    if (self->numel == 1)
        return tnx_expand_as(grad, self);
    tn_tensor *row = tnx_reshape(self, (int64_t[]){-1}, 1);
    tn_tensor *others = row ? products_of_others(row, 0) : NULL;
    return tnx_view_as(tnx_mul(grad, tni_grad_conj(others)), self);
}

tn_tensor *tni_grad_prod_dim_gradient(tn_tensor *grad, tn_tensor *self, tn_tensor *result,
                                      int64_t dim, bool keepdim)
{
    if (tni_scope_failed())
        return NULL;
    if (self->ndim == 0)
        return grad;
    dim = tni_wrapped(dim, self->ndim);
    self = tnx_to_dtype(self, (tn_dtype)grad->dtype, false, false, TN_FORMAT_NONE);
    grad = keepdim ? grad : tnx_unsqueeze(grad, dim);
    result = keepdim ? result : tnx_unsqueeze(result, dim);
    if (tni_scope_failed())
        return NULL;
    if (self->sizes[dim] == 1)
        return grad;
    if (self->numel == 0) /* nothing, but something that can be differentiated again */
        return tnx_mul(grad, self);
    if (!any_zero(self))
        return tnx_mul(grad, tni_grad_conj(tnx_div(result, self)));
    return tnx_mul(grad, tni_grad_conj(products_of_others(self, dim)));
}

/* ---- sums of exponentials, sums without NaN ---- */

tn_tensor *tni_grad_logsumexp_gradient(tn_tensor *grad, tn_tensor *self, tn_tensor *result,
                                       const int64_t *dim, int64_t dim_n, bool keepdim)
{
    if (tni_scope_failed())
        return NULL;
    grad = tni_restore_dims(grad, self->ndim, dim, dim_n, keepdim);
    result = tni_restore_dims(result, self->ndim, dim, dim_n, keepdim);
    return tnx_mul(grad, tni_grad_conj(tnx_exp(tnx_sub(self, result, tn_int(1)))));
}

tn_tensor *tni_grad_nansum_gradient(tn_tensor *grad, tn_tensor *self, const int64_t *dim,
                                    int64_t dim_n, bool keepdim)
{
    if (tni_scope_failed())
        return NULL;
    grad = tni_grad_sum_backward(grad, self->sizes, self->ndim, dim, dim_n, keepdim);
    return tnx_mul(grad, tnx_logical_not(tnx_isnan(self)));
}

/* ---- variances ---- */

static double number(const tn_scalar *s, double otherwise)
{
    if (!s)
        return otherwise;
    return s->kind == TN_SCALAR_INT || s->kind == TN_SCALAR_BOOL ? (double)s->v.i : s->v.f;
}

tn_tensor *tni_grad_var_gradient(tn_tensor *grad, tn_tensor *self, const int64_t *dim,
                                 int64_t dim_n, const tn_scalar *correction, bool keepdim)
{
    if (tni_scope_failed())
        return NULL;
    double freedom =
        (double)tni_count_reduced(self->sizes, self->ndim, dim, dim_n) - number(correction, 1);
    tn_tensor *mean = tnx_mean_dim(self, dim, dim_n, true, TN_DTYPE_NONE);
    grad = tni_restore_dims(grad, self->ndim, dim, dim_n, keepdim);
    if (freedom <= 0 && dim_n == 0) {
        tn_tensor *slope = tnx_full_like(self, tn_float(INFINITY), NULL, TN_FORMAT_NONE);
        slope = tnx_masked_fill(slope, tnx_eq(self, mean), tn_float(NAN));
        return tnx_mul(grad, slope);
    }
    return tnx_mul(tnx_mul_scalar(grad, tn_float(2 / freedom)), tnx_sub(self, mean, tn_int(1)));
}

tn_tensor *tni_grad_std_gradient(tn_tensor *grad, tn_tensor *self, tn_tensor *result,
                                 const int64_t *dim, int64_t dim_n, const tn_scalar *correction,
                                 bool keepdim)
{
    grad = tnx_div(grad, tnx_mul_scalar(result, tn_int(2)));
    grad = zero_where(grad, tnx_eq_scalar(result, tn_int(0)));
    return tni_grad_var_gradient(grad, self, dim, dim_n, correction, keepdim);
}

/* Add the gradient of the mean, where there is one. */
static tn_tensor *with_mean(tn_tensor *sum, tn_tensor *grad, const tn_tensor *self,
                            const int64_t *dim, int64_t dim_n, bool keepdim)
{
    if (!grad || tni_scope_failed())
        return sum;
    tn_tensor *of_mean = tni_grad_mean_backward(grad, self->sizes, self->ndim, dim, dim_n, keepdim);
    return sum ? tnx_add(sum, of_mean, tn_int(1)) : of_mean;
}

tn_tensor *tni_grad_var_mean_gradient(tn_tensor *grad_var, tn_tensor *grad_mean, tn_tensor *self,
                                      const int64_t *dim, int64_t dim_n,
                                      const tn_scalar *correction, bool keepdim)
{
    tn_tensor *sum = NULL;
    if (grad_var)
        sum = tni_grad_var_gradient(grad_var, self, dim, dim_n, correction, keepdim);
    return with_mean(sum, grad_mean, self, dim, dim_n, keepdim);
}

tn_tensor *tni_grad_std_mean_gradient(tn_tensor *grad_std, tn_tensor *grad_mean, tn_tensor *self,
                                      tn_tensor *std, const int64_t *dim, int64_t dim_n,
                                      const tn_scalar *correction, bool keepdim)
{
    tn_tensor *sum = NULL;
    if (grad_std)
        sum = tni_grad_std_gradient(grad_std, self, std, dim, dim_n, correction, keepdim);
    return with_mean(sum, grad_mean, self, dim, dim_n, keepdim);
}

/* ---- norms ---- */

/* 0 where the norm is. For the norm of inf and -inf split evenly among those that reach it. */
static tn_tensor *norm_backward(tn_tensor *grad, tn_tensor *self, double p, tn_tensor *norm,
                                const int64_t *dim, int64_t dim_n, bool keepdim)
{
    if (tni_scope_failed() || p == 0)
        return NULL;
    grad = tni_restore_dims(grad, self->ndim, dim, dim_n, keepdim);
    norm = tni_restore_dims(norm, self->ndim, dim, dim_n, keepdim);
    tn_tensor *none = tnx_eq_scalar(norm, tn_int(0));
    if (p == 1)
        return tnx_mul(tnx_sgn(self), grad);
    if (p == 2)
        return tnx_mul(grad, zero_where(tnx_div(self, norm), none));
    tn_tensor *size = tnx_abs(self);
    if (isinf(p)) {
        tn_tensor *mask = tnx_logical_or(tnx_eq(size, norm), tnx_isnan(size));
        tn_tensor *count = tnx_sum_dim(mask, dim, dim_n, true, TN_DTYPE_NONE);
        return tnx_mul(tnx_sgn(self), tnx_mul(tnx_div(grad, count), mask));
    }
    if (p < 1) {
        tn_tensor *power = tnx_pow_tensor_scalar(size, tn_float(p - 1));
        power = zero_where(power, tnx_eq_scalar(self, tn_int(0)));
        tn_tensor *slope = tnx_mul(tnx_mul(tnx_sgn(self), power), grad);
        return tnx_mul(slope, tnx_pow_tensor_scalar(norm, tn_float(1 - p)));
    }
    tn_tensor *power = tnx_pow_tensor_scalar(size, tn_float(p < 2 ? p - 1 : p - 2));
    tn_tensor *scale = tnx_div(grad, tnx_pow_tensor_scalar(norm, tn_float(p - 1)));
    return tnx_mul(tnx_mul(p < 2 ? tnx_sgn(self) : self, power), zero_where(scale, none));
}

tn_tensor *tni_grad_vector_norm_gradient(tn_tensor *grad, tn_tensor *self, tn_scalar p,
                                         tn_tensor *norm, const int64_t *dim, int64_t dim_n,
                                         bool keepdim)
{
    return norm_backward(grad, self, number(&p, 2), norm, dim, dim_n, keepdim);
}

tn_tensor *tni_grad_norm_gradient(tn_tensor *grad, tn_tensor *self, tn_scalar p, tn_tensor *norm)
{
    return norm_backward(grad, self, number(&p, 2), norm, NULL, 0, true);
}

tn_tensor *tni_grad_norm_dim_gradient(tn_tensor *grad, tn_tensor *self, const tn_scalar *p,
                                      tn_tensor *norm, const int64_t *dim, int64_t dim_n,
                                      bool keepdim)
{
    return norm_backward(grad, self, number(p, 2), norm, dim, dim_n, keepdim);
}
