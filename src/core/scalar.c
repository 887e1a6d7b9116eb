/* SPDX-License-Identifier: MIT */
/* core/scalar.c: reading a bare number as another kind, and writing one as an element. */
#include "core/scalar.h"

#include "core/dtype.h"
#include "core/float8.h"
#include "core/half.h"

double tn_scalar_to_double(tn_scalar scalar)
{
    if (scalar.kind == TN_SCALAR_FLOAT || scalar.kind == TN_SCALAR_COMPLEX)
        return scalar.v.f;
    return scalar.beyond ? scalar.imag : (double)scalar.v.i;
}

uint64_t tni_scalar_to_unsigned(tn_scalar scalar)
{
    bool real = scalar.kind == TN_SCALAR_FLOAT || scalar.kind == TN_SCALAR_COMPLEX;
    if (real && scalar.v.f >= 0x1p63)
        return scalar.v.f < 0x1p64 ? (uint64_t)scalar.v.f : UINT64_MAX;
    return (uint64_t)tn_scalar_to_int(scalar);
}

/* C leaves the conversion of NaN and of values out of range open; here NaN gives 0 and the others
 * the nearest end. */
static int64_t saturate(double value)
{
    if (value != value)
        return 0;
    if (value >= 0x1p63)
        return INT64_MAX;
    if (value < -0x1p63)
        return INT64_MIN;
    return (int64_t)value;
}

int64_t tn_scalar_to_int(tn_scalar scalar)
{
    if (scalar.kind == TN_SCALAR_FLOAT || scalar.kind == TN_SCALAR_COMPLEX)
        return saturate(scalar.v.f);
    return scalar.v.i;
}

tn_dtype tni_scalar_dtype(tn_scalar scalar)
{
    switch (scalar.kind) {
    case TN_SCALAR_INT:
        return TN_DTYPE_I64;
    case TN_SCALAR_FLOAT:
        return tn_default_dtype();
    case TN_SCALAR_BOOL:
        return TN_DTYPE_BOOL;
    case TN_SCALAR_COMPLEX:
        return tni_dtype_to_complex(tn_default_dtype());
    default:
        return TN_DTYPE_NONE;
    }
}

bool tni_scalar_is_true(tn_scalar scalar)
{
    switch (scalar.kind) {
    case TN_SCALAR_FLOAT:
        return scalar.v.f != 0;
    case TN_SCALAR_COMPLEX:
        return scalar.v.f != 0 || scalar.imag != 0;
    default:
        return scalar.v.i != 0;
    }
}

/* Integers wrap, as a cast between integer types does. */
void tni_scalar_store(tn_scalar scalar, tn_dtype dtype, void *to)
{
    switch (dtype) {
    case TN_DTYPE_BOOL:
        *(uint8_t *)to = tni_scalar_is_true(scalar);
        break;
    case TN_DTYPE_U8:
    case TN_DTYPE_I8:
        *(uint8_t *)to = (uint8_t)tn_scalar_to_int(scalar);
        break;
    case TN_DTYPE_I16:
        *(int16_t *)to = (int16_t)tn_scalar_to_int(scalar);
        break;
    case TN_DTYPE_I32:
        *(int32_t *)to = (int32_t)tn_scalar_to_int(scalar);
        break;
    case TN_DTYPE_I64:
        *(int64_t *)to = tn_scalar_to_int(scalar);
        break;
    case TN_DTYPE_F16:
        *(tni_f16 *)to = tni_f16_from_float((float)tn_scalar_to_double(scalar));
        break;
    case TN_DTYPE_BF16:
        *(tni_bf16 *)to = tni_bf16_from_float((float)tn_scalar_to_double(scalar));
        break;
    case TN_DTYPE_F32:
        *(float *)to = (float)tn_scalar_to_double(scalar);
        break;
    case TN_DTYPE_F64:
        *(double *)to = tn_scalar_to_double(scalar);
        break;
    case TN_DTYPE_C64:
        ((float *)to)[0] = (float)tn_scalar_to_double(scalar);
        ((float *)to)[1] = scalar.kind == TN_SCALAR_COMPLEX ? (float)scalar.imag : 0.0f;
        break;
    case TN_DTYPE_C128:
        ((double *)to)[0] = tn_scalar_to_double(scalar);
        ((double *)to)[1] = scalar.kind == TN_SCALAR_COMPLEX ? scalar.imag : 0.0;
        break;
    case TN_DTYPE_U16:
        *(uint16_t *)to = (uint16_t)tn_scalar_to_int(scalar);
        break;
    case TN_DTYPE_U32:
        *(uint32_t *)to = (uint32_t)tn_scalar_to_int(scalar);
        break;
    case TN_DTYPE_U64:
        *(uint64_t *)to = tni_scalar_to_unsigned(scalar);
        break;
    case TN_DTYPE_F8E5M2:
    case TN_DTYPE_F8E4M3:
    case TN_DTYPE_F8E5M2UZ:
    case TN_DTYPE_F8E4M3UZ: {
        tni_float8 kind = tni_float8_of(dtype);
        *(uint8_t *)to = tni_float8_from_float(&kind, (float)tn_scalar_to_double(scalar));
        break;
    }
    case TN_DTYPE_NONE:
        break;
    }
}

tn_scalar tni_scalar_load(tn_dtype dtype, const void *from)
{
    switch (dtype) {
    case TN_DTYPE_BOOL:
        return tn_bool(*(const uint8_t *)from != 0);
    case TN_DTYPE_U8:
        return tn_int(*(const uint8_t *)from);
    case TN_DTYPE_I8:
        return tn_int(*(const int8_t *)from);
    case TN_DTYPE_I16:
        return tn_int(*(const int16_t *)from);
    case TN_DTYPE_I32:
        return tn_int(*(const int32_t *)from);
    case TN_DTYPE_I64:
        return tn_int(*(const int64_t *)from);
    case TN_DTYPE_F16:
        return tn_float((double)tni_f16_to_float(*(const tni_f16 *)from));
    case TN_DTYPE_BF16:
        return tn_float((double)tni_bf16_to_float(*(const tni_bf16 *)from));
    case TN_DTYPE_F32:
        return tn_float((double)*(const float *)from);
    case TN_DTYPE_F64:
        return tn_float(*(const double *)from);
    case TN_DTYPE_C64:
        return tn_complex((double)((const float *)from)[0], (double)((const float *)from)[1]);
    case TN_DTYPE_C128:
        return tn_complex(((const double *)from)[0], ((const double *)from)[1]);
    case TN_DTYPE_U16:
        return tn_int(*(const uint16_t *)from);
    case TN_DTYPE_U32:
        return tn_int(*(const uint32_t *)from);
    case TN_DTYPE_U64:
        return tn_uint(*(const uint64_t *)from);
    case TN_DTYPE_F8E5M2:
    case TN_DTYPE_F8E4M3:
    case TN_DTYPE_F8E5M2UZ:
    case TN_DTYPE_F8E4M3UZ: {
        tni_float8 kind = tni_float8_of(dtype);
        return tn_float((double)tni_float8_to_float(&kind, *(const uint8_t *)from));
    }
    case TN_DTYPE_NONE:
        break;
    }
    return tn_int(0);
}
