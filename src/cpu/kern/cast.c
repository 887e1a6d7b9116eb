/* SPDX-License-Identifier: MIT */
/* cpu/kern/cast.c: conversions between dtypes, over runs. Integers wrap. A float that no integer
 * can hold becomes the most negative int32 or int64, as x86 does it, and narrower integers take its
 * low bits. */
#ifdef __F16C__
#    include <immintrin.h>
#endif
#include "core/half.h"
#include "cpu/kern/types.h"

static inline int32_t whole_32(double v)
{
    return v > -2147483649.0 && v < 2147483648.0 ? (int32_t)v : INT32_MIN;
}
static inline int32_t whole_32f(float v)
{
    return v >= -2147483648.0f && v < 2147483648.0f ? (int32_t)v : INT32_MIN;
}
static inline int64_t whole_64(double v)
{
    return v >= -9223372036854775808.0 && v < 9223372036854775808.0 ? (int64_t)v : INT64_MIN;
}
static inline int64_t whole_64f(float v)
{
    return whole_64((double)v);
}

#define CAST(S, F, D, T, expression)                              \
    static void S##_to_##D(void *to, const void *from, int64_t n) \
    {                                                             \
        T *o = to;                                                \
        const F *a = from;                                        \
        INDEPENDENT for (int64_t i = 0; i < n; i++)               \
        {                                                         \
            F v = a[i];                                           \
            o[i] = (expression);                                  \
        }                                                         \
    }
#define FROM_INTEGER(S, F)                         \
    CAST(S, F, u8, uint8_t, (uint8_t)v)            \
    CAST(S, F, i8, int8_t, (int8_t)v)              \
    CAST(S, F, i16, int16_t, (int16_t)v)           \
    CAST(S, F, i32, int32_t, (int32_t)v)           \
    CAST(S, F, i64, int64_t, (int64_t)v)           \
    CAST(S, F, f32, float, (float)v)               \
    CAST(S, F, f64, double, (double)v)             \
    CAST(S, F, c64, c64, ((c64){(float)v, 0}))     \
    CAST(S, F, c128, c128, ((c128){(double)v, 0})) \
    CAST(S, F, bool, uint8_t, v != 0)
/* REAL and TRUE: the real part, and whether the number is not zero. */
#define FROM_FLOATING(S, F, WHOLE_32, WHOLE_64, REAL, IMAG, TRUE) \
    CAST(S, F, u8, uint8_t, (uint8_t)WHOLE_32(REAL))              \
    CAST(S, F, i8, int8_t, (int8_t)WHOLE_32(REAL))                \
    CAST(S, F, i16, int16_t, (int16_t)WHOLE_32(REAL))             \
    CAST(S, F, i32, int32_t, WHOLE_32(REAL))                      \
    CAST(S, F, i64, int64_t, WHOLE_64(REAL))                      \
    CAST(S, F, f32, float, (float)REAL)                           \
    CAST(S, F, f64, double, (double)REAL)                         \
    CAST(S, F, c64, c64, ((c64){(float)REAL, (float)IMAG}))       \
    CAST(S, F, c128, c128, ((c128){(double)REAL, (double)IMAG}))  \
    CAST(S, F, bool, uint8_t, TRUE)

FROM_INTEGER(u8, uint8_t)
FROM_INTEGER(i8, int8_t)
FROM_INTEGER(i16, int16_t)
FROM_INTEGER(i32, int32_t)
FROM_INTEGER(i64, int64_t)
FROM_FLOATING(f32, float, whole_32f, whole_64f, v, 0, v != 0)
FROM_FLOATING(f64, double, whole_32, whole_64, v, 0, v != 0)
FROM_FLOATING(c64, c64, whole_32f, whole_64f, v.re, v.im, (v.re != 0) | (v.im != 0))
FROM_FLOATING(c128, c128, whole_32, whole_64, v.re, v.im, (v.re != 0) | (v.im != 0))

/* ---- halves, to and from float32 ---- */

static void f16_to_f32(void *to, const void *from, int64_t n)
{
    float *o = to;
    const tni_f16 *a = from;
    int64_t i = 0;
#ifdef __F16C__
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(o + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i_u *)(a + i))));
#endif
    for (; i < n; i++)
        o[i] = tni_f16_to_float(a[i]);
}

static void f32_to_f16(void *to, const void *from, int64_t n)
{
    tni_f16 *o = to;
    const float *a = from;
    int64_t i = 0;
#ifdef __F16C__
    for (; i + 8 <= n; i += 8)
        _mm_storeu_si128((__m128i_u *)(o + i),
                         _mm256_cvtps_ph(_mm256_loadu_ps(a + i), _MM_FROUND_TO_NEAREST_INT));
#endif
    for (; i < n; i++)
        o[i] = tni_f16_from_float(a[i]);
}

CAST(bf16, tni_bf16, f32, float, tni_bf16_to_float(v))
CAST(f32, float, bf16, tni_bf16, tni_bf16_from_float(v))

/* Bool is a byte of 0 or 1. */
#define ROW(S)                                                                               \
    [TN_DTYPE_U8] = S##_to_u8, [TN_DTYPE_I8] = S##_to_i8, [TN_DTYPE_I16] = S##_to_i16,       \
    [TN_DTYPE_I32] = S##_to_i32, [TN_DTYPE_I64] = S##_to_i64, [TN_DTYPE_F32] = S##_to_f32,   \
    [TN_DTYPE_F64] = S##_to_f64, [TN_DTYPE_C64] = S##_to_c64, [TN_DTYPE_C128] = S##_to_c128, \
    [TN_DTYPE_BOOL] = S##_to_bool

const tni_cast_table TNI_KERN_NAME(tni_cast) = {
    [TN_DTYPE_U8] = {ROW(u8)},
    [TN_DTYPE_I8] = {ROW(i8)},
    [TN_DTYPE_I16] = {ROW(i16)},
    [TN_DTYPE_I32] = {ROW(i32)},
    [TN_DTYPE_I64] = {ROW(i64)},
    [TN_DTYPE_F32] = {ROW(f32), [TN_DTYPE_F16] = f32_to_f16, [TN_DTYPE_BF16] = f32_to_bf16},
    [TN_DTYPE_F64] = {ROW(f64)},
    [TN_DTYPE_C64] = {ROW(c64)},
    [TN_DTYPE_C128] = {ROW(c128)},
    [TN_DTYPE_BOOL] = {ROW(u8)},
    [TN_DTYPE_F16] = {[TN_DTYPE_F32] = f16_to_f32},
    [TN_DTYPE_BF16] = {[TN_DTYPE_F32] = bf16_to_f32},
};
