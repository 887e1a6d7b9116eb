/* SPDX-License-Identifier: MIT */
/* autograd/formula_rare.c: slopes of special functions, written by hand. See formula.c. */
#include "gen/gradients.h"

#include <math.h>
#include "core/scope.h"
#include "tenon/ops.h"

/* ---- Bessel functions ---- */

/* i1(x) / x, and 1/2 at 0. */
static tn_tensor *over_self(tn_tensor *self, tn_tensor *result)
{
    return tnx_where_scalarself(tnx_eq_scalar(self, tn_int(0)), tn_float(0.5),
                                tnx_div(result, self));
}

tn_tensor *tni_grad_i1_slope(tn_tensor *self, tn_tensor *result)
{
    return tnx_sub(tnx_i0(self), over_self(self, result), tn_int(1));
}

tn_tensor *tni_grad_i1e_slope(tn_tensor *self, tn_tensor *result)
{
    tn_tensor *fall = tnx_add(tnx_mul(tnx_sgn(self), result), over_self(self, result), tn_int(1));
    return tnx_sub(tnx_special_i0e(self), fall, tn_int(1));
}

/* ---- quotients with a hole at 0 ---- */

/* (cos(pi x) - sinc(x)) / x */
tn_tensor *tni_grad_sinc_slope(tn_tensor *self)
{
    tn_tensor *turn = tnx_mul_scalar(self, tn_float(3.14159265358979323846));
    tn_tensor *slope = tnx_div(tnx_sub(tnx_cos(turn), tnx_sinc(self), tn_int(1)), self);
    return tnx_masked_fill(slope, tnx_eq_scalar(self, tn_int(0)), tn_int(0));
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

/* Without @p eps there is nothing beyond 0 and 1; with it, all is flat beyond the bounds. */
tn_tensor *tni_grad_logit_gradient(tn_tensor *grad, tn_tensor *self, tn_opt_float eps)
{
    double low = eps.has ? eps.value : 0.0;
    tn_tensor *inside = tnx_logical_and(tnx_ge_scalar(self, tn_float(low)),
                                        tnx_le_scalar(self, tn_float(1.0 - low)));
    tn_tensor *rest = tnx_rsub_scalar(self, tn_int(1), tn_int(1));
    /* Also what is divided by is chosen: of what is left out, 0 / 0 would be the derivative by the
     * gradient, which is the tangent. */
    tn_tensor *below =
        tnx_where_scalarother(inside, tnx_mul(self, rest), tn_float(eps.has ? 1.0 : (double)NAN));
    tn_tensor *slope = tnx_div(grad, below);
    return eps.has ? tnx_where_scalarother(inside, slope, tn_float(0.0)) : slope;
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
