/* SPDX-License-Identifier: MIT */
/* autograd/formula_rare.c: slopes of special functions, written by hand. See formula.c. */
#include "gen/gradients.h"

#include <math.h>
#include "core/scope.h"
#include "tenon/ops.h"

/* ---- quotients with a hole at 0 ----
 * Near 0, where a quotient loses its digits and its derivatives all of them, the slope is a
 * polynomial: derivatives of any order are then those of the function, at 0 too. The divisor is 1
 * there, and the polynomial's argument 0 elsewhere, so that nothing infinite meets the gradient of
 * what is not chosen. */

/* c[0] + c[1] x + c[2] x^2 + … */
static tn_tensor *polynomial(tn_tensor *x, const double *c, int n)
{
    tn_tensor *sum = tnx_mul_scalar(x, tn_float(c[n - 1]));
    for (int i = n - 2; i > 0; i--)
        sum = tnx_mul(tnx_add_scalar(sum, tn_float(c[i]), tn_int(1)), x);
    return tnx_add_scalar(sum, tn_float(c[0]), tn_int(1));
}

static tn_tensor *near_zero(tn_tensor *self, double limit)
{
    return tnx_lt_scalar(tnx_abs(self), tn_float(limit));
}

static tn_tensor *if_near(tn_tensor *self, tn_tensor *near)
{
    return tnx_masked_fill(self, tnx_logical_not(near), tn_int(0));
}

/* @p series where @p self is near 0, else @p above divided by it. */
static tn_tensor *quotient(tn_tensor *above, tn_tensor *self, tn_tensor *near, tn_tensor *series)
{
    return tnx_where(near, series, tnx_div(above, tnx_masked_fill(self, near, tn_int(1))));
}

/* i1(x) / x near 0, in powers of x^2. */
static tn_tensor *i1_series(tn_tensor *x)
{
    static const double c[] = {
        1.0 / 2,       1.0 / 16,        1.0 / 384,           1.0 / 18432,
        1.0 / 1474560, 1.0 / 176947200, 1.0 / 29727129600.0, 1.0 / 6658877030400.0};
    return polynomial(tnx_mul(x, x), c, 8);
}

tn_tensor *tni_grad_i1_slope(tn_tensor *self, tn_tensor *result)
{
    tn_tensor *near = near_zero(self, 0.25), *x = if_near(self, near);
    return tnx_sub(tnx_i0(self), quotient(result, self, near, i1_series(x)), tn_int(1));
}

tn_tensor *tni_grad_i1e_slope(tn_tensor *self, tn_tensor *result)
{
    tn_tensor *near = near_zero(self, 0.25), *x = if_near(self, near);
    tn_tensor *series = tnx_mul(i1_series(x), tnx_exp(tnx_neg(tnx_abs(x))));
    tn_tensor *over_self = quotient(result, self, near, series);
    tn_tensor *fall = tnx_add(tnx_mul(tnx_sgn(self), result), over_self, tn_int(1));
    return tnx_sub(tnx_special_i0e(self), fall, tn_int(1));
}

/* (cos(pi x) - sinc(x)) / x */
tn_tensor *tni_grad_sinc_slope(tn_tensor *self)
{
    static const double c[] = {-1.0 / 3,       1.0 / 30,        -1.0 / 840,          1.0 / 45360,
                               -1.0 / 3991680, 1.0 / 518918400, -1.0 / 93405312000.0};
    const double pi = 3.14159265358979323846;
    tn_tensor *near = near_zero(self, 0.125);
    tn_tensor *x = tnx_mul_scalar(if_near(self, near), tn_float(pi));
    tn_tensor *series = tnx_mul(tnx_mul_scalar(x, tn_float(pi)), polynomial(tnx_mul(x, x), c, 7));
    tn_tensor *above =
        tnx_sub(tnx_cos(tnx_mul_scalar(self, tn_float(pi))), tnx_sinc(self), tn_int(1));
    return quotient(above, self, near, series);
}

tn_tensor *tni_grad_copysign_gradient(tn_tensor *grad, tn_tensor *self, tn_tensor *result)
{
    tn_tensor *ratio = tnx_div(result, self);
    return tnx_mul(grad, tnx_masked_fill(ratio, tnx_eq_scalar(self, tn_int(0)), tn_int(0)));
}

/* ---- logarithms ---- */

/* 0 * log(0) is flat. */
static tn_tensor *flat_at_zero(tn_tensor *slope, tn_tensor *self, tn_tensor *below)
{
    return tnx_masked_fill(slope, tnx_logical_and(tnx_eq_scalar(self, tn_int(0)), below),
                           tn_int(0));
}

/* A gradient of 0 stays 0 where the logarithm is infinite. */
tn_tensor *tni_grad_xlogy_gradient(tn_tensor *grad, tn_tensor *self, tn_tensor *other)
{
    return flat_at_zero(tnx_xlogy(grad, other), self, tnx_le_scalar(other, tn_int(0)));
}

tn_tensor *tni_grad_xlog1py_gradient(tn_tensor *grad, tn_tensor *self, tn_tensor *other)
{
    return flat_at_zero(tnx_special_xlog1py(grad, other), self, tnx_le_scalar(other, tn_int(-1)));
}

static tn_tensor *slope_of_number(tn_tensor *self, double y, bool below)
{
    tn_tensor *slope = tnx_full_like(self, tn_float(y), NULL, TN_FORMAT_NONE);
    return below ? tnx_masked_fill(slope, tnx_eq_scalar(self, tn_int(0)), tn_int(0)) : slope;
}

tn_tensor *tni_grad_xlogy_slope_number(tn_tensor *self, tn_scalar other)
{
    double y = tn_scalar_to_double(other);
    return slope_of_number(self, log(y), y <= 0);
}

tn_tensor *tni_grad_xlog1py_slope_number(tn_tensor *self, tn_scalar other)
{
    double y = tn_scalar_to_double(other);
    return slope_of_number(self, log1p(y), y <= -1);
}

/* Without @p eps, or below 0, there is nothing beyond 0 and 1; with it, all is flat beyond the
 * bounds, of which a NaN is none. */
tn_tensor *tni_grad_logit_gradient(tn_tensor *grad, tn_tensor *self, tn_opt_float eps)
{
    eps.has = eps.has && !(eps.value < 0);
    double low = eps.has ? eps.value : 0.0;
    tn_tensor *inside = tnx_logical_not(tnx_logical_or(tnx_lt_scalar(self, tn_float(low)),
                                                       tnx_gt_scalar(self, tn_float(1.0 - low))));
    tn_tensor *rest = tnx_rsub_scalar(self, tn_int(1), tn_int(1));
    /* Also what is divided by is chosen: of what is left out, 0 / 0 would be the derivative by the
     * gradient, which is the tangent. */
    tn_tensor *below =
        tnx_where_scalarother(inside, tnx_mul(self, rest), tn_float(eps.has ? 1.0 : (double)NAN));
    tn_tensor *slope = tnx_div(grad, below);
    return eps.has ? tnx_where_scalarother(inside, slope, tn_float(0.0)) : slope;
}

/* The density over the distribution: each half by what cannot overflow there, with 0 in place of
 * the other half's numbers. */
tn_tensor *tni_grad_log_ndtr_slope(tn_tensor *self, tn_tensor *result)
{
    tn_tensor *upper = tnx_gt_scalar(self, tn_int(0)), *lower = tnx_logical_not(upper);
    tn_tensor *x = tnx_masked_fill(self, lower, tn_int(0));
    tn_tensor *log_density = tnx_mul_scalar(tnx_mul(x, x), tn_float(-0.5));
    tn_tensor *ratio =
        tnx_exp(tnx_sub(log_density, tnx_masked_fill(result, lower, tn_int(0)), tn_int(1)));
    tn_tensor *below = tnx_special_erfcx(
        tnx_mul_scalar(tnx_masked_fill(self, upper, tn_int(0)), tn_float(-0.70710678118654757)));
    return tnx_where(upper, tnx_mul_scalar(ratio, tn_float(0.39894228040143268)),
                     tnx_mul_scalar(tnx_reciprocal(below), tn_float(0.79788456080286541)));
}

/* ---- gamma functions ---- */

tn_tensor *tni_grad_zeta_of_number_slope(tn_scalar self, tn_tensor *other)
{
    double s = tn_scalar_to_double(self);
    tn_tensor *power = tnx_special_zeta_self_scalar(tn_float(s + 1.0), other);
    return tnx_mul_scalar(power, tn_float(-s));
}

/* The density of the gamma distribution: exp((a - 1) log(x) - x - lgamma(a)). */
tn_tensor *tni_grad_igamma_slope(tn_tensor *self, tn_tensor *other)
{
    tn_tensor *power = tnx_mul(tnx_sub_scalar(self, tn_int(1), tn_int(1)), tnx_log(other));
    tn_tensor *rest = tnx_add(other, tnx_lgamma(self), tn_int(1));
    return tnx_exp(tnx_sub(power, rest, tn_int(1)));
}

/* Minus the derivative by the first argument: how far samples move, times the density. */
tn_tensor *tni_grad_igamma_parameter_slope(tn_tensor *self, tn_tensor *other)
{
    if (tni_scope_failed())
        return NULL;
    tn_dtype dtype = TN_DTYPE_NONE;
    (void)tni_scope_result(tn_result_type(self, other, &dtype), NULL);
    tn_tensor *a = tnx_to_dtype(self, dtype, false, false, TN_FORMAT_NONE);
    tn_tensor *inside = tnx_gt_scalar(other, tn_int(0));
    tn_tensor *x = tnx_to_dtype(other, dtype, false, false, TN_FORMAT_NONE);
    x = tnx_where_scalarother(inside, x, tn_int(1));
    tn_tensor *slope = tnx_mul(tnx__standard_gamma_grad(a, x), tni_grad_igamma_slope(a, x));
    return tnx_where_scalarother(inside, slope, tn_int(0));
}
