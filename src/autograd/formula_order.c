/* SPDX-License-Identifier: MIT */
/* autograd/formula_order.c: gradients of what picks elements by order, and of running sums and
 * products. See formula.c. */
#include "autograd/formula.h"
#include "autograd/meta.h"
#include "core/state.h"
#include "gen/gradients.h"

#include <float.h>
#include "tenon/ops.h"

/* Zeros but for the places that were picked. */
tn_tensor *tni_grad_pick_gradient(tn_tensor *grad, int64_t dim, tn_tensor *indices,
                                  const int64_t *sizes, int64_t ndim, bool keepdim)
{
    if (!keepdim && ndim > 0) {
        grad = tnx_unsqueeze(grad, tni_wrapped(dim, ndim));
        indices = tnx_unsqueeze(indices, tni_wrapped(dim, ndim));
    }
    return tnx_scatter_(tnx_new_zeros(grad, sizes, ndim, NULL), dim, indices, grad);
}

static tn_tensor *cumsum_from_end(tn_tensor *t, int64_t dim)
{
    return tnx_flip(tnx_cumsum(tnx_flip(t, &dim, 1), dim, TN_DTYPE_NONE), &dim, 1);
}

tn_tensor *tni_grad_cumsum_gradient(tn_tensor *grad, int64_t dim)
{
    if (!grad || grad->numel <= 1 || grad->sizes[tni_wrapped(dim, grad->ndim)] == 1)
        return grad;
    return cumsum_from_end(grad, dim);
}

/* Stands for the logarithm of 0: infinity would give NaN when this is differentiated again. */
static double lowest(const tn_tensor *t)
{
    if (!t || t->dtype == TN_DTYPE_F64 || t->dtype == TN_DTYPE_C128)
        return -DBL_MAX;
    return t->dtype == TN_DTYPE_F16    ? -65504.0
           : t->dtype == TN_DTYPE_BF16 ? -3.38e38
                                       : -(double)FLT_MAX;
}

/* The logarithm where @p counts, and a number for that of 0 elsewhere. No slope at 0 is infinite,
 * however often this is differentiated. */
static tn_tensor *log_where(tn_tensor *counts, tn_tensor *t)
{
    tn_tensor *some = tnx_where_scalarother(counts, t, tn_int(1));
    return tnx_where_scalarother(counts, tnx_log(some), tn_float(lowest(t)));
}

/* Sums of grad_j * exp(x_i - y_j) over j >= i, in logarithms. */
static tn_tensor *log_sums(tn_tensor *logs, tn_tensor *self, int64_t dim, tn_tensor *result)
{
    logs = tnx_flip(tnx_sub(logs, result, tn_int(1)), &dim, 1);
    logs = tnx_flip(tnx_logcumsumexp(logs, dim), &dim, 1);
    return tnx_exp(tnx_add(logs, self, tn_int(1)));
}

/* Sums of t_k * exp(x_k - y_j) over k <= j. */
static tn_tensor *log_sums_ahead(tn_tensor *logs, tn_tensor *self, int64_t dim, tn_tensor *result)
{
    logs = tnx_logcumsumexp(tnx_add(logs, self, tn_int(1)), dim);
    return tnx_exp(tnx_sub(logs, result, tn_int(1)));
}

typedef tn_tensor *(*sums_fn)(tn_tensor *logs, tn_tensor *self, int64_t dim, tn_tensor *result);

/* Sums weighted by @p t: of real numbers the positive and the negative ones apart. */
static tn_tensor *weighted(sums_fn sums, tn_tensor *t, tn_tensor *self, int64_t dim,
                           tn_tensor *result)
{
    if (tn_dtype_is_complex((tn_dtype)t->dtype))
        return sums(log_where(tnx_ne_scalar(t, tn_int(0)), t), self, dim, result);
    tn_tensor *opposite = tnx_neg(t);
    tn_tensor *more = sums(log_where(tnx_gt_scalar(t, tn_int(0)), t), self, dim, result);
    tn_tensor *less =
        sums(log_where(tnx_gt_scalar(opposite, tn_int(0)), opposite), self, dim, result);
    return tnx_sub(more, less, tn_int(1));
}

/* ---- the same, to be differentiated again ----
 * Sums in logarithms are not differentiable where a weight is 0. What is recorded is linear in the
 * weights, as it should be: exp(x_i - y_j), which is at most 1, for all j >= i; of long lines in
 * two factors. */

enum { LONG_LINE = 1024 };

static bool again(const tn_tensor *a, const tn_tensor *b)
{
    return tni_recording && (tni_requires_grad(a) || tni_requires_grad(b));
}

/* 0 where j < i. Dimensions @p dim and dim + 1 are i and j. */
static tn_tensor *all_ratios(tn_tensor *self, int64_t dim, tn_tensor *result)
{
    int64_t n = self->sizes[dim], sizes[TN_MAX_DIMS], trailing = self->ndim - 1 - dim;
    for (int64_t d = 0; d < trailing + 2; d++)
        sizes[d] = d < 2 ? n : 1;
    const tn_tensor_opts opts = tn_opts(TN_DTYPE_BOOL, self->device);
    tn_tensor *later = tnx_triu(tnx_ones((const int64_t[]){n, n}, 2, &opts), 0);
    later = tnx_reshape(later, sizes, trailing + 2);
    tn_tensor *logs = tnx_sub(tnx_unsqueeze(self, dim + 1), tnx_unsqueeze(result, dim), tn_int(1));
    tn_tensor *ratios = tnx_exp(tnx_where_scalarother(later, logs, tn_int(0)));
    return tnx_where_scalarother(later, ratios, tn_int(0));
}

static tn_tensor *shared_maximum(tn_tensor *self, int64_t dim)
{
    tn_tensor *t = tnx_detach(self);
    if (t && tn_dtype_is_complex((tn_dtype)t->dtype))
        t = tnx_real(t);
    return tnx_amax(t, &dim, 1, true);
}

static tn_tensor *linear_gradient(tn_tensor *grad, tn_tensor *self, int64_t dim, tn_tensor *result)
{
    const int64_t j = dim + 1;
    if (self->sizes[dim] <= LONG_LINE)
        return tnx_sum_dim(tnx_mul(tnx_unsqueeze(grad, dim), all_ratios(self, dim, result)), &j, 1,
                           false, TN_DTYPE_NONE);
    tn_tensor *most = shared_maximum(self, dim);
    tn_tensor *parts = tnx_mul(grad, tnx_exp(tnx_sub(most, result, tn_int(1))));
    return tnx_mul(cumsum_from_end(parts, dim), tnx_exp(tnx_sub(self, most, tn_int(1))));
}

static tn_tensor *linear_tangent(tn_tensor *t, tn_tensor *self, int64_t dim, tn_tensor *result)
{
    if (self->sizes[dim] <= LONG_LINE)
        return tnx_sum_dim(tnx_mul(tnx_unsqueeze(t, dim + 1), all_ratios(self, dim, result)), &dim,
                           1, false, TN_DTYPE_NONE);
    tn_tensor *most = shared_maximum(self, dim);
    tn_tensor *parts = tnx_mul(t, tnx_exp(tnx_sub(self, most, tn_int(1))));
    tn_tensor *sums = tnx_cumsum(parts, dim, TN_DTYPE_NONE);
    return tnx_mul(sums, tnx_exp(tnx_sub(most, result, tn_int(1))));
}

tn_tensor *tni_grad_logcumsumexp_gradient(tn_tensor *grad, tn_tensor *self, tn_tensor *result,
                                          int64_t dim)
{
    if (tni_scope_failed() || !grad || grad->ndim == 0 || grad->numel == 0)
        return grad;
    if (again(grad, self))
        return linear_gradient(grad, tni_grad_conj(self), tni_wrapped(dim, self->ndim),
                               tni_grad_conj(result));
    return weighted(log_sums, grad, tni_grad_conj(self), dim, tni_grad_conj(result));
}

tn_tensor *tni_grad_logcumsumexp_tangent(tn_tensor *t, tn_tensor *self, tn_tensor *result,
                                         int64_t dim)
{
    if (tni_scope_failed() || !t || t->ndim == 0 || t->numel == 0)
        return t;
    if (again(t, self))
        return linear_tangent(t, self, tni_wrapped(dim, self->ndim), result);
    return weighted(log_sums_ahead, t, self, dim, result);
}

/* ---- running products ---- */

/* Where nothing is 0: y_j / x_k is the derivative of y_j for k <= j. */
static tn_tensor *by_division(tn_tensor *grad, tn_tensor *self, int64_t dim, tn_tensor *result)
{
    return tnx_div(cumsum_from_end(tnx_mul(result, grad), dim), self);
}

/* With zeros. Before the first of a line division does; at the first, the product before it times
 * the sum of what follows up to the second; behind it the derivative is 0. */
static tn_tensor *around_zeros(tn_tensor *grad, tn_tensor *self, tn_tensor *is_zero, int64_t dim,
                               tn_tensor *result)
{
    tn_tensor *zeros_so_far = tnx_cumsum(is_zero, dim, TN_DTYPE_NONE);
    tn_tensor *before = tnx_eq_scalar(zeros_so_far, tn_int(0));
    tn_tensor *between = tnx_eq_scalar(zeros_so_far, tn_int(1)); /* and the first zero itself */
    tn_tensor *first = tnx_logical_and(between, is_zero);
    tn_tensor *masked = tnx_where_scalarother(before, tnx_mul(result, grad), tn_int(0));
    tn_tensor *early = tnx_div(cumsum_from_end(masked, dim), self);

    tn_tensor *behind = tnx_logical_and(between, tnx_logical_not(first));
    tn_tensor *factors = tnx_where_scalarother(behind, self, tn_int(1));
    tn_tensor *later = tnx_mul(tnx_cumprod(factors, dim, TN_DTYPE_NONE),
                               tnx_where_scalarother(between, grad, tn_int(0)));
    later = tnx_sum_dim(later, &dim, 1, true, TN_DTYPE_NONE);
    /* The product of all before the first zero, of the whole line when there is none. */
    tn_tensor *ahead = tnx_where_scalarother(before, self, tn_int(1));
    later = tnx_mul(later, tnx_prod_dim_int(ahead, dim, true, TN_DTYPE_NONE));
    return tnx_where(before, early, tnx_where_scalarother(first, later, tn_int(0)));
}

/* For a gradient that is differentiated again: nothing but products, one column at a time. */
static tn_tensor *by_products(tn_tensor *grad, tn_tensor *self, int64_t dim)
{
    int64_t n = self->sizes[dim];
    tn_tensor **columns = tni_alloc((size_t)n * sizeof *columns);
    if (!columns)
        return tni_scope_result(tni_fail(TN_NOMEM, TNI_WHERE,
                                         "cannot join the gradients of %lld columns", (long long)n),
                                NULL);
    for (int64_t k = 0; k < n; k++) {
        tn_tensor *before = tnx_prod_dim_int(tnx_narrow(self, dim, 0, k), dim, true, TN_DTYPE_NONE);
        tn_tensor *from = tnx_cumprod(tnx_narrow(self, dim, k + 1, n - k - 1), dim, TN_DTYPE_NONE);
        tn_tensor *parts[] = {tnx_ones_like(before, NULL, TN_FORMAT_NONE), from};
        tn_tensor *others = tni_scope_failed() ? NULL : tnx_mul(before, tnx_cat(parts, 2, dim));
        tn_tensor *terms = tnx_mul(tnx_narrow(grad, dim, k, n - k), tni_grad_conj(others));
        columns[k] = tnx_sum_dim(terms, &dim, 1, false, TN_DTYPE_NONE);
    }
    tn_tensor *joined = tni_scope_failed() ? NULL : tnx_stack_tensors(columns, n, dim);
    tni_free(columns);
    return joined;
}

tn_tensor *tni_grad_cumprod_gradient(tn_tensor *grad, tn_tensor *self, int64_t dim,
                                     tn_tensor *result)
{
    if (tni_scope_failed() || self->numel <= 1)
        return grad;
    dim = tni_wrapped(dim, self->ndim);
    if (self->sizes[dim] == 1)
        return grad;
    self = tnx_to_dtype(self, (tn_dtype)grad->dtype, false, false, TN_FORMAT_NONE);
    tn_tensor *is_zero = tnx_eq_scalar(self, tn_int(0)), *any = tnx_any(is_zero);
    /* Where Python stands for the elements: what holds in both cases. Of no elements, sizes alone.
     */
    tn_scalar found = tn_int(any && tni_stands_for_others(any));
    if (any && tni_can_look(any))
        (void)tni_scope_result(tn_item(any, &found), NULL);
    if (tni_scope_failed())
        return NULL;
    tn_tensor *conj = tni_grad_conj(self);
    if (found.v.i == 0)
        return by_division(grad, conj, dim, tni_grad_conj(result));
    if (tni_recording)
        return by_products(grad, self, dim);
    return around_zeros(grad, conj, is_zero, dim, tni_grad_conj(result));
}
