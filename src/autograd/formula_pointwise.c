/* SPDX-License-Identifier: MIT */
/* autograd/formula_pointwise.c: gradients of elementwise arithmetic, written by hand. See
 * formula.c.
 */
#include "gen/gradients.h"

#include <math.h>
#include "tenon/ops.h"

/* ---- division that rounds: its slope is 0 wherever it has one ---- */

tn_tensor *tni_grad_div_mode_self(tn_tensor *grad, tn_tensor *other, const char *rounding_mode)
{
    return rounding_mode ? tnx_zeros_like(grad, NULL, TN_FORMAT_NONE)
                         : tnx_div(grad, tni_grad_conj(other));
}

tn_tensor *tni_grad_div_mode_other(tn_tensor *grad, tn_tensor *self, tn_tensor *other,
                                   const char *rounding_mode)
{
    return rounding_mode ? tnx_zeros_like(grad, NULL, TN_FORMAT_NONE)
                         : tni_grad_div_other(grad, self, other);
}

tn_tensor *tni_grad_div_number_mode(tn_tensor *grad, tn_scalar other, const char *rounding_mode)
{
    return rounding_mode ? tnx_zeros_like(grad, NULL, TN_FORMAT_NONE)
                         : tni_grad_div_conj_number(grad, other);
}

/* ---- signs ---- */

/* Of a complex tensor that holds real numbers. */
tn_tensor *tni_grad_real_part(tn_tensor *grad)
{
    if (!grad || !tn_dtype_is_complex((tn_dtype)grad->dtype))
        return grad;
    return tnx_mul_scalar(tnx_add(grad, tni_grad_conj(grad), tn_int(1)), tn_float(0.5));
}

/* Real: 0. Complex, z / |z|: (g - s^2 conj(g)) / (2 |z|), where |z| = z conj(s); 0 at 0. */
tn_tensor *tni_grad_sgn_gradient(tn_tensor *grad, tn_tensor *self, tn_tensor *result)
{
    if (!grad || !tn_dtype_is_complex((tn_dtype)grad->dtype))
        return tnx_zeros_like(grad, NULL, TN_FORMAT_NONE);
    tn_tensor *turned = tnx_mul(tnx_mul(result, result), tni_grad_conj(grad));
    tn_tensor *size = tnx_mul(self, tni_grad_conj(result));
    tn_tensor *slope = tnx_div(tnx_sub(grad, turned, tn_int(1)), tnx_mul_scalar(size, tn_int(2)));
    return tnx_masked_fill(slope, tnx_eq_scalar(result, tn_int(0)), tn_int(0));
}

/* Zero where the parts of SELF are NaN or infinite: each part of a complex number stands for
 * itself there. */
tn_tensor *tni_grad_where_numbers(tn_tensor *grad, tn_tensor *self)
{
    if (!tn_dtype_is_complex((tn_dtype)self->dtype))
        return tnx_mul(grad, tnx_isfinite(self));
    tn_tensor *kept = tnx_isfinite(tnx_view_as_real(self));
    return tnx_view_as_complex(tnx_mul(tnx_view_as_real(grad), kept));
}

/* The roots of z - 1 and z + 1 have the branch of acosh; that of their product has another where
 * the real part of z is negative. */
tn_tensor *tni_grad_acosh_gradient(tn_tensor *grad, tn_tensor *self)
{
    if (!tn_dtype_is_complex((tn_dtype)self->dtype)) {
        tn_tensor *square = tnx_pow_tensor_scalar(self, tn_int(2));
        return tnx_mul(grad, tnx_rsqrt(tnx_sub_scalar(square, tn_int(1), tn_int(1))));
    }
    tn_tensor *below = tnx_rsqrt(tnx_sub_scalar(self, tn_int(1), tn_int(1)));
    /* Minus -1: plus 1 would make a zero positive, and that is the other side of the cut. */
    tn_tensor *above = tnx_rsqrt(tnx_sub_scalar(self, tn_int(-1), tn_int(1)));
    return tnx_mul(grad, tni_grad_conj(tnx_mul(below, above)));
}

/* ---- powers ---- */

static bool equals_zero(tn_scalar s)
{
    if (s.kind == TN_SCALAR_COMPLEX)
        return s.v.f == 0 && s.imag == 0;
    return tn_scalar_to_double(s) == 0;
}

/* A power of 0 is 1 wherever it is taken, NaN included, so that its slope is 0. */
tn_tensor *tni_grad_pow_number(tn_tensor *grad, tn_tensor *self, tn_scalar exponent)
{
    if (equals_zero(exponent))
        return tnx_zeros_like(self, NULL, TN_FORMAT_NONE);
    tn_tensor *power = tnx_pow_tensor_scalar(self, tni_scalar_sub(exponent, tn_int(1)));
    return tnx_mul(grad, tni_grad_conj(tnx_mul_scalar(power, exponent)));
}

tn_tensor *tni_grad_pow_self(tn_tensor *grad, tn_tensor *self, tn_tensor *exponent)
{
    tn_tensor *power = tnx_pow(self, tnx_sub_scalar(exponent, tn_int(1), tn_int(1)));
    tn_tensor *flat = tnx_eq_scalar(exponent, tn_int(0));
    tn_tensor *slope = tni_grad_conj(tnx_mul(exponent, power));
    slope = tnx_where_scalarself(flat, tn_int(0), slope); /* 0 * inf, which a tangent would meet */
    return tnx_where_scalarself(flat, tn_int(0), tnx_mul(grad, slope));
}

/* Where 0 to the power of @p t is a number, and stays that nearby: from 0 up, and where the real
 * part is above it. */
static tn_tensor *not_negative(tn_tensor *t)
{
    if (t && tn_dtype_is_complex((tn_dtype)t->dtype))
        return tnx_logical_or(tnx_gt_scalar(tnx_real(t), tn_int(0)), tnx_eq_scalar(t, tn_int(0)));
    return tnx_ge_scalar(t, tn_int(0));
}

/* 0 to the power of anything from 0 up stays 0 nearby: there the slope is 0 and not 0 * -inf. */
tn_tensor *tni_grad_pow_exponent(tn_tensor *grad, tn_tensor *self, tn_tensor *exponent,
                                 tn_tensor *result)
{
    tn_tensor *flat = tnx_logical_and(tnx_eq_scalar(self, tn_int(0)), not_negative(exponent));
    if (result && self->dtype != result->dtype) /* a whole one has a logarithm of fewer digits */
        self = tnx_to_dtype(self, (tn_dtype)result->dtype, false, false, TN_FORMAT_NONE);
    tn_tensor *slope = tni_grad_conj(tnx_mul(result, tnx_log(self)));
    return tnx_mul(grad, tnx_where_scalarself(flat, tn_int(0), slope));
}

tn_tensor *tni_grad_pow_of_number(tn_tensor *grad, tn_scalar base, tn_tensor *exponent,
                                  tn_tensor *result)
{
    bool complex = result && tn_dtype_is_complex((tn_dtype)result->dtype);
    if (complex && base.kind != TN_SCALAR_COMPLEX && tn_scalar_to_double(base) < 0)
        base = tn_complex(tn_scalar_to_double(base), 0); /* whose logarithm is no real number */
    if (base.kind == TN_SCALAR_COMPLEX) {
        double argument = atan2(base.imag, base.v.f);
        tn_scalar number = tn_complex(log(hypot(base.v.f, base.imag)), argument);
        return tnx_mul(grad, tni_grad_conj(tnx_mul_scalar(result, number)));
    }
    tn_tensor *slope = tnx_mul_scalar(result, tn_float(log(tn_scalar_to_double(base))));
    if (equals_zero(base))
        slope = tnx_where_scalarself(not_negative(exponent), tn_int(0), slope);
    return tnx_mul(grad, tni_grad_conj(slope));
}

/* ---- atan2: 0 where both are 0 ---- */

tn_tensor *tni_grad_reciprocal_or_zero(tn_tensor *t)
{
    return tnx_masked_fill(tnx_reciprocal(t), tnx_eq_scalar(t, tn_int(0)), tn_int(0));
}

/* ---- bounds ---- */

/* Bounds belong to the inside. A NaN is nowhere. */
tn_tensor *tni_grad_clamp_gradient(tn_tensor *grad, tn_tensor *self, const tn_scalar *min,
                                   const tn_scalar *max)
{
    tn_tensor *above = min ? tnx_ge_scalar(self, *min) : NULL;
    tn_tensor *below = max ? tnx_le_scalar(self, *max) : NULL;
    tn_tensor *inside = min && max ? tnx_logical_and(above, below) : min ? above : below;
    return tnx_where_scalarother(inside, grad, tn_int(0));
}

tn_tensor *tni_grad_clamp_tensor_gradient(tn_tensor *grad, tn_tensor *self, tn_tensor *min,
                                          tn_tensor *max)
{
    tn_tensor *above = min ? tnx_ge(self, min) : NULL;
    tn_tensor *below = max ? tnx_le(self, max) : NULL;
    tn_tensor *inside = min && max ? tnx_logical_and(above, below) : min ? above : below;
    return tnx_where_scalarother(inside, grad, tn_int(0));
}

/* The gradient of a bound: it has a say where it clips. Where the lower bound is above the upper
 * one, the upper one decides. @p other is the other bound, or NULL. */
tn_tensor *tni_grad_clamp_bound(tn_tensor *grad, tn_tensor *self, tn_tensor *bound,
                                tn_tensor *other, bool upper)
{
    tn_tensor *clips = upper ? tnx_gt(self, bound) : tnx_lt(self, bound);
    if (other)
        clips = upper ? tnx_logical_or(clips, tnx_lt(bound, other))
                      : tnx_logical_and(clips, tnx_lt(bound, other));
    return tnx_where_scalarother(clips, grad, tn_int(0));
}

/* ---- copies ---- */

/* As the argument was: another dtype or device is left again. */
tn_tensor *tni_grad_to_like(tn_tensor *grad, const tn_tensor_opts *opts)
{
    if (!grad || ((tn_dtype)grad->dtype == opts->dtype && grad->device.type == opts->device.type &&
                  grad->device.index == opts->device.index))
        return grad;
    if (tn_dtype_is_complex((tn_dtype)grad->dtype) && !tn_dtype_is_complex(opts->dtype))
        grad =
            tnx_real(grad); /* the slope of real numbers: nothing is lost that a user would miss */
    return tnx__to_copy(grad, opts, false, TN_FORMAT_NONE);
}
