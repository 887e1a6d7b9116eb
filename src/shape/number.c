/* SPDX-License-Identifier: MIT */
/* shape/number.c: whether a bare number fits a dtype. */
#include "shape/number.h"

#include <math.h>
#include "core/dtype.h"
#include "core/tensor.h"

/* How the reference names the type it cannot convert to. */
static const char *type_name(tn_dtype dtype)
{
    switch (dtype) {
    case TN_DTYPE_U8:
        return "uint8_t";
    case TN_DTYPE_I8:
        return "int8_t";
    case TN_DTYPE_I16:
        return "int16_t";
    case TN_DTYPE_I32:
        return "int";
    case TN_DTYPE_I64:
        return "int64_t";
    case TN_DTYPE_U16:
        return "uint16_t";
    case TN_DTYPE_U32:
        return "uint32_t";
    case TN_DTYPE_U64:
        return "uint64_t";
    default:
        return tni_dtype_cpp(dtype);
    }
}

/* Bits of the number's magnitude; the sign of a signed type is extra. */
static int value_bits(tn_dtype dtype)
{
    switch (dtype) {
    case TN_DTYPE_U8:
        return 8;
    case TN_DTYPE_I8:
        return 7;
    case TN_DTYPE_I16:
        return 15;
    case TN_DTYPE_U16:
        return 16;
    case TN_DTYPE_U32:
        return 32;
    case TN_DTYPE_U64:
        return 64;
    case TN_DTYPE_I32:
        return 31;
    default:
        return 63;
    }
}

static bool is_unsigned(tn_dtype dtype)
{
    return dtype == TN_DTYPE_U8 || (dtype >= TN_DTYPE_U16 && dtype <= TN_DTYPE_U64);
}

static bool int_fits(int64_t value, tn_dtype dtype)
{
    int bits = value_bits(dtype);
    if (bits >= 63)
        return true;
    int64_t high = (INT64_C(1) << bits) - 1;
    /* An unsigned type takes negative numbers as their two's complement. */
    return value <= high && value >= (is_unsigned(dtype) ? -high : -high - 1);
}

static bool float_fits(double value, tn_dtype dtype)
{
    if (tn_dtype_is_integral(dtype, false)) {
        double limit = ldexp(1.0, value_bits(dtype));
        if (dtype == TN_DTYPE_U64)
            return value >= 0 && value <= limit;
        if (dtype == TN_DTYPE_I64) /* the largest int64 rounds up to 2^63 as a double */
            return value >= -limit && value <= limit;
        return value >= (is_unsigned(dtype) ? 0.0 : -limit) && value <= limit - 1;
    }
    return isnan(value) || isinf(value) || fabs(value) <= tni_dtype_largest(dtype);
}

tn_status tni_check_number(tn_scalar value, tn_dtype dtype)
{
    bool fits = true;
    if (dtype == TN_DTYPE_BOOL)
        return TN_OK;
    if (value.kind == TN_SCALAR_INT || value.kind == TN_SCALAR_BOOL) {
        fits = !tn_dtype_is_integral(dtype, false) ? float_fits(tn_scalar_to_double(value), dtype)
               : value.beyond                      ? dtype == TN_DTYPE_U64
                                                   : int_fits(value.v.i, dtype);
    } else {
        fits = float_fits(value.v.f, dtype);
        if (value.kind == TN_SCALAR_COMPLEX)
            fits &= tn_dtype_is_complex(dtype) ? float_fits(value.imag, dtype) : value.imag == 0;
    }
    TN_CHECK(fits, TN_INVALID, "value cannot be converted to type %s without overflow",
             type_name(dtype));
    return TN_OK;
}

tn_status tn_scalar_check(tn_scalar scalar, tn_dtype dtype)
{
    TN_CHECK(tn_dtype_size(dtype) > 0, TN_INVALID, "there is no dtype %d", (int)dtype);
    return tni_check_number(scalar, dtype);
}

tn_status tni_check_factor(tn_scalar value, tn_dtype dtype)
{
    return tni_check_number(value,
                            dtype == TN_DTYPE_F16 || dtype == TN_DTYPE_BF16 ? TN_DTYPE_F32 : dtype);
}
