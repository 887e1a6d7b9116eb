/* SPDX-License-Identifier: MIT */
/* autograd/formula_sample.c: how samples of the gamma and of the Dirichlet distribution move, and
 * how that moves again, written by hand. See formula.c.
 *
 * A sample x keeps its place F(x; a) in the distribution when a parameter moves: it moves by
 * g = -F_a / p, where p = F_x is the density. So g_x = -(log p)_a - g (log p)_x, in closed form,
 * and g_a = -F_aa / p - g (log p)_a. F is a sum of terms t_n, all positive, whose logarithms have
 * simple derivatives: F_aa is the sum of t_n ((log t_n)_a^2 + (log t_n)_aa). The ratios r_n = t_n /
 * p are what is summed here, in float64, as many of them as count. All of this is made of
 * operators, so that it differentiates again. */
#include "gen/gradients.h"

#include <math.h>
#include "autograd/formula.h"
#include "base/status.h"
#include "core/scope.h"
#include "tenon/ops.h"

static tn_tensor *plus(tn_tensor *a, tn_tensor *b)
{
    return tnx_add(a, b, tn_int(1));
}

static tn_tensor *minus(tn_tensor *a, tn_tensor *b)
{
    return tnx_sub(a, b, tn_int(1));
}

static tn_tensor *one_minus(tn_tensor *t)
{
    return tnx_rsub_scalar(t, tn_int(1), tn_int(1));
}

static tn_tensor *wide(tn_tensor *t)
{
    return tnx_to_dtype(t, TN_DTYPE_F64, false, false, TN_FORMAT_NONE);
}

/* @p t, 0 where it is of a point that is none; in the dtype of @p like. */
static tn_tensor *settled(tn_tensor *t, tn_tensor *inside, const tn_tensor *like)
{
    t = tnx_where_scalarother(inside, t, tn_int(0));
    return tnx_to_dtype(t, (tn_dtype)like->dtype, false, false, TN_FORMAT_NONE);
}

/* ---- sums ---- */

/* 0, 1, …, for as many terms as the largest number of @p reach says. */
static tn_tensor *terms(tn_tensor *reach)
{
    tn_scalar most = tn_float(0);
    if (tni_scope_failed())
        return NULL;
    tn_tensor *largest = tnx_max(
        tnx_nan_to_num(tnx_detach(reach), tn_no_float(), tn_some_float(0), tn_some_float(0)));
    if (largest && tni_can_look(largest))
        (void)tni_scope_result(tn_item(largest, &most), NULL);
    tn_tensor_opts opts = tn_opts(TN_DTYPE_F64, reach->device);
    return tnx_arange(tn_float(ceil(tn_scalar_to_double(most)) + 1), &opts);
}

static tn_tensor *each_term(tn_tensor *t)
{
    return tnx_unsqueeze(t, -1);
}

static tn_tensor *total_of(tn_tensor *ratios, tn_tensor *factor)
{
    const int64_t last = -1;
    return tnx_sum_dim(tnx_mul(ratios, factor), &last, 1, false, TN_DTYPE_NONE);
}

/* Beyond @p peak terms, with @p width, and those that are always there. */
static tn_tensor *reach_of(tn_tensor *peak, tn_tensor *scale, double width, double always)
{
    tn_tensor *wings = tnx_mul_scalar(tnx_sqrt(scale), tn_float(width));
    return tnx_add_scalar(plus(tnx_clamp_min(peak, tn_int(0)), wings), tn_float(always), tn_int(1));
}

/* ---- gamma: log t_n = (a + n) log x - x - lgamma(a + n + 1) ---- */

tn_tensor *tni_grad_gamma_slope_by_output(tn_tensor *self, tn_tensor *output, tn_tensor *result)
{
    tn_tensor *inside = tnx_gt_scalar(output, tn_int(0));
    tn_tensor *x = tnx_where_scalarother(inside, output, tn_int(1));
    tn_tensor *bend = tnx_div(minus(tnx_sub_scalar(self, tn_int(1), tn_int(1)), x), x);
    tn_tensor *slope = minus(minus(tnx_digamma(self), tnx_log(x)), tnx_mul(result, bend));
    return tnx_where_scalarother(inside, slope, tn_int(0));
}

tn_tensor *tni_grad_gamma_slope_by_parameter(tn_tensor *self, tn_tensor *output, tn_tensor *result)
{
    if (tni_scope_failed() || result->numel == 0)
        return result;
    tn_tensor *inside = tnx_gt_scalar(output, tn_int(0)), *a = wide(self);
    tn_tensor *x = tnx_where_scalarother(inside, wide(output), tn_int(1)), *log_x = tnx_log(x);
    tn_tensor *n = terms(reach_of(minus(x, a), tnx_maximum(x, a), 9, 60));
    tn_tensor *next = tnx_add_scalar(n, tn_int(1), tn_int(1)), *top = plus(each_term(a), next);
    tn_tensor *log_ratio = tnx_mul(next, each_term(log_x));
    log_ratio = plus(log_ratio, minus(each_term(tnx_lgamma(a)), tnx_lgamma(top)));
    tn_tensor *slope = minus(each_term(log_x), tnx_digamma(top));
    tn_tensor *bend = minus(tnx_polygamma(1, top), tnx_mul(slope, slope));
    tn_tensor *sum = total_of(tnx_exp(log_ratio), bend);
    tn_tensor *rest = tnx_mul(wide(result), minus(log_x, tnx_digamma(a)));
    return settled(minus(sum, rest), inside, result);
}

/* ---- beta, of a and b: log t_n = (a + n) log x + b log(1 - x) - lgamma(b) + lgamma(a + b + n)
 * - lgamma(a + n + 1). The operator's result is g / (1 - x), its arguments are a and a + b. ---- */

typedef struct beta {
    tn_tensor *x, *a, *b, *total, *inside;
    tn_tensor *up;   /* (log p)_a */
    tn_tensor *down; /* (log p)_b */
} beta;

static beta describe(tn_tensor *x, tn_tensor *alpha, tn_tensor *total)
{
    beta d = {.a = wide(alpha), .total = wide(total)};
    d.inside = tnx_logical_and(tnx_gt_scalar(x, tn_int(0)), tnx_lt_scalar(x, tn_int(1)));
    d.x = tnx_where_scalarother(d.inside, wide(x), tn_float(0.5));
    d.b = minus(d.total, d.a);
    tn_tensor *all = tnx_digamma(d.total);
    d.up = minus(plus(tnx_log(d.x), all), tnx_digamma(d.a));
    d.down = minus(plus(tnx_log(one_minus(d.x)), all), tnx_digamma(d.b));
    return d;
}

typedef struct bends {
    tn_tensor *own, *other, *mixed; /* F_aa, F_bb and F_ab, each over p */
} bends;

/* For x of at most a half. */
static bends bends_of(tn_tensor *x, tn_tensor *a, tn_tensor *b, tn_tensor *total)
{
    tn_tensor *peak = tnx_mul_scalar(minus(tnx_mul(x, total), a), tn_int(2));
    tn_tensor *n = terms(reach_of(peak, total, 12, 80));
    tn_tensor *next = tnx_add_scalar(n, tn_int(1), tn_int(1)), *top = plus(each_term(a), next);
    tn_tensor *sum = plus(each_term(total), n);
    tn_tensor *log_x = each_term(tnx_log(x)), *log_rest = each_term(tnx_log(one_minus(x)));
    tn_tensor *fixed = each_term(minus(tnx_lgamma(a), tnx_lgamma(total)));
    tn_tensor *log_ratio = plus(plus(tnx_mul(next, log_x), log_rest), fixed);
    tn_tensor *ratio = tnx_exp(plus(log_ratio, minus(tnx_lgamma(sum), tnx_lgamma(top))));
    tn_tensor *one = tnx_digamma(sum), *two = tnx_polygamma(1, sum);
    tn_tensor *own = minus(plus(log_x, one), tnx_digamma(top));
    tn_tensor *other = minus(plus(log_rest, one), each_term(tnx_digamma(b)));
    tn_tensor *own_bend = minus(plus(tnx_mul(own, own), two), tnx_polygamma(1, top));
    tn_tensor *other_bend = minus(plus(tnx_mul(other, other), two), each_term(tnx_polygamma(1, b)));
    return (bends){total_of(ratio, own_bend), total_of(ratio, other_bend),
                   total_of(ratio, plus(tnx_mul(own, other), two))};
}

/* How F_a / p moves with a and with b. Above a half F is 1 less that of 1 - x, b and a. */
static void moves(const beta *d, tn_tensor *result, tn_tensor **with_a, tn_tensor **with_b)
{
    tn_tensor *low = tnx_le_scalar(d->x, tn_float(0.5)), *rest = one_minus(d->x);
    bends left = bends_of(tnx_where_scalarother(low, d->x, tn_float(0.5)), d->a, d->b, d->total);
    bends right = bends_of(tnx_where_scalarself(low, tn_float(0.5), rest), d->b, d->a, d->total);
    tn_tensor *own = tnx_where(low, left.own, tnx_neg(right.other));
    tn_tensor *mixed = tnx_where(low, left.mixed, tnx_neg(right.mixed));
    tn_tensor *g = tnx_mul(wide(result), rest); /* -F_a / p */
    *with_a = plus(own, tnx_mul(g, d->up));
    *with_b = plus(mixed, tnx_mul(g, d->down));
}

tn_tensor *tni_grad_dirichlet_slope_by_x(tn_tensor *x, tn_tensor *alpha, tn_tensor *total,
                                         tn_tensor *result)
{
    if (tni_scope_failed() || result->numel == 0)
        return result;
    beta d = describe(x, alpha, total);
    tn_tensor *rest = one_minus(d.x), *value = wide(result);
    tn_tensor *density =
        minus(tnx_div(tnx_sub_scalar(d.a, tn_int(1), tn_int(1)), d.x), tnx_div(d.b, rest));
    tn_tensor *slope = plus(tnx_div(d.up, rest), tnx_mul(value, density));
    return settled(tnx_neg(slope), d.inside, result);
}

/* By alpha while the total stays, so that b falls as a grows, or by the total alone. */
static tn_tensor *dirichlet_slope(tn_tensor *x, tn_tensor *alpha, tn_tensor *total,
                                  tn_tensor *result, bool by_alpha)
{
    if (tni_scope_failed() || result->numel == 0)
        return result;
    beta d = describe(x, alpha, total);
    tn_tensor *with_a, *with_b;
    moves(&d, result, &with_a, &with_b);
    tn_tensor *slope = by_alpha ? minus(with_b, with_a) : tnx_neg(with_b);
    return settled(tnx_div(slope, one_minus(d.x)), d.inside, result);
}

tn_tensor *tni_grad_dirichlet_slope_by_alpha(tn_tensor *x, tn_tensor *alpha, tn_tensor *total,
                                             tn_tensor *result)
{
    return dirichlet_slope(x, alpha, total, result, true);
}

tn_tensor *tni_grad_dirichlet_slope_by_total(tn_tensor *x, tn_tensor *alpha, tn_tensor *total,
                                             tn_tensor *result)
{
    return dirichlet_slope(x, alpha, total, result, false);
}

/* ---- samples ---- */

/* How a point of the simplex moves with the concentrations, by implicit reparametrisation. */
tn_tensor *tni_grad_dirichlet_gradient(tn_tensor *grad, tn_tensor *self, tn_tensor *result)
{
    const int64_t last = -1;
    if (!grad)
        return NULL;
    if (self->ndim == 0)
        return tnx_zeros_like(grad, NULL, TN_FORMAT_NONE);
    tn_tensor *total = tnx_expand_as(tnx_sum_dim(self, &last, 1, true, TN_DTYPE_NONE), self);
    tn_tensor *mean = tnx_sum_dim(tnx_mul(grad, result), &last, 1, true, TN_DTYPE_NONE);
    return tnx_mul(tnx__dirichlet_grad(result, self, total), tnx_sub(grad, mean, tn_int(1)));
}

/* The transpose of the map above. */
tn_tensor *tni_grad_dirichlet_tangent(tn_tensor *t, tn_tensor *self, tn_tensor *result)
{
    const int64_t last = -1;
    if (tni_scope_failed() || self->ndim == 0)
        return t ? tnx_zeros_like(t, NULL, TN_FORMAT_NONE) : NULL;
    tn_tensor *total = tnx_expand_as(tnx_sum_dim(self, &last, 1, true, TN_DTYPE_NONE), self);
    tn_tensor *move = tnx_mul(tnx__dirichlet_grad(result, self, total), t);
    tn_tensor *sum = tnx_sum_dim(move, &last, 1, true, TN_DTYPE_NONE);
    return tnx_sub(move, tnx_mul(result, sum), tn_int(1));
}
