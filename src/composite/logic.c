/* SPDX-License-Identifier: MIT */
/* composite/logic.c: questions about numbers, and squares, in terms of other operators. */
#include "core/tensor.h"
#include "gen/composites.h"
#include "tenon/ops.h"

tn_status tni_composite_square(tn_tensor *self, tn_tensor **out)
{
    return tn_pow_tensor_scalar(self, tn_int(2), out);
}

tn_status tni_composite_square_(tn_tensor *self)
{
    return tn_pow_tensor_scalar_(self, tn_int(2));
}

tn_status tni_composite_square_out(tn_tensor *self, tn_tensor *out)
{
    return tn_pow_tensor_scalar_out(self, tn_int(2), out);
}

tn_status tni_composite_isfinite(tn_tensor *self, tn_tensor **out)
{
    TN_AUTO(tn_tensor) nan = NULL;
    TN_AUTO(tn_tensor) infinite = NULL;
    TN_TRY(tn_isnan(self, &nan));
    TN_TRY(tn_isinf(self, &infinite));
    TN_TRY(tn_logical_or_(nan, infinite));
    return tn_logical_not(nan, out);
}

/* Equal, or both finite and near enough. */
tn_status tni_composite_isclose(tn_tensor *self, tn_tensor *other, double rtol, double atol,
                                bool equal_nan, tn_tensor **out)
{
    TN_CHECK(self->dtype == other->dtype, TN_INVALID, "%s did not match %s",
             tni_dtype_text((tn_dtype)self->dtype), tni_dtype_text((tn_dtype)other->dtype));
    TN_CHECK(rtol >= 0, TN_INVALID, "rtol must be greater than or equal to zero, but got %g", rtol);
    TN_CHECK(atol >= 0, TN_INVALID, "atol must be greater than or equal to zero, but got %g", atol);
    TN_AUTO(tn_tensor) close = NULL;
    TN_TRY(tn_eq(self, other, &close));
    if (equal_nan && !tn_dtype_is_integral((tn_dtype)self->dtype, true)) {
        TN_AUTO(tn_tensor) a = NULL;
        TN_AUTO(tn_tensor) b = NULL;
        TN_TRY(tn_isnan(self, &a));
        TN_TRY(tn_isnan(other, &b));
        TN_TRY(tn_logical_and_(a, b));
        TN_TRY(tn_logical_or_(close, a));
    }
    if (rtol == 0 && atol == 0) {
        *out = TN_MOVE(close);
        return TN_OK;
    }
    TN_AUTO(tn_tensor) wide = NULL; /* integers would wrap */
    TN_AUTO(tn_tensor) scaled = NULL;
    TN_AUTO(tn_tensor) allowed = NULL;
    TN_AUTO(tn_tensor) gap = NULL;
    TN_AUTO(tn_tensor) difference = NULL;
    TN_AUTO(tn_tensor) near = NULL;
    TN_AUTO(tn_tensor) finite = NULL;
    if (tn_dtype_is_integral((tn_dtype)self->dtype, true)) {
        TN_TRY(tn_to_dtype(self, tn_default_dtype(), false, false, TN_FORMAT_NONE, &wide));
        self = wide;
    }
    TN_AUTO(tn_tensor) number = NULL; /* a bool has no difference */
    if (other->dtype == TN_DTYPE_BOOL) {
        TN_TRY(tn_to_dtype(other, TN_DTYPE_U8, false, false, TN_FORMAT_NONE, &number));
        other = number;
    }
    TN_TRY(tn_mul_scalar(other, tn_float(rtol), &scaled));
    TN_TRY(tn_abs(scaled, &allowed));
    TN_TRY(tn_add_scalar_(allowed, tn_float(atol), tn_int(1)));
    TN_TRY(tn_sub(self, other, tn_int(1), &gap));
    TN_TRY(tn_abs(gap, &difference));
    TN_TRY(tn_le(difference, allowed, &near));
    TN_TRY(tn_isfinite(difference, &finite));
    TN_TRY(tn_logical_and_(near, finite));
    TN_TRY(tn_logical_or_(close, near));
    *out = TN_MOVE(close);
    return TN_OK;
}
