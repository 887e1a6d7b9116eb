/* SPDX-License-Identifier: MIT */
/* cpu/kern/cast.c: conversions between dtypes, over runs. Integers wrap. A float that no integer
 * can hold becomes the most negative int32 or int64, as x86 does it, and narrower integers take its
 * low bits. */
#ifdef __F16C__
#    include <immintrin.h>
#endif
#include <string.h>
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

/* Not every pair: those that are missing go by way of another dtype, see tni_convert. Signed and
 * unsigned bytes share what only looks at the bits. */
CAST(u8, uint8_t, i32, int32_t, (int32_t)v)
CAST(u8, uint8_t, i64, int64_t, (int64_t)v)
CAST(u8, uint8_t, f32, float, (float)v)
CAST(u8, uint8_t, f64, double, (double)v)
CAST(u8, uint8_t, bool, uint8_t, v != 0)
CAST(bool, uint8_t, i32, int32_t, tni_truth(v))
CAST(bool, uint8_t, i64, int64_t, tni_truth(v))
CAST(bool, uint8_t, f32, float, tni_truth(v) ? 1.0f : 0.0f)
CAST(bool, uint8_t, f64, double, tni_truth(v) ? 1.0 : 0.0)
CAST(i8, int8_t, i32, int32_t, (int32_t)v)
CAST(i8, int8_t, i64, int64_t, (int64_t)v)
CAST(i8, int8_t, f32, float, (float)v)
CAST(i8, int8_t, f64, double, (double)v)
CAST(i16, int16_t, i32, int32_t, (int32_t)v)
CAST(i16, int16_t, i64, int64_t, (int64_t)v)
CAST(i16, int16_t, f32, float, (float)v)
CAST(i16, int16_t, f64, double, (double)v)
CAST(i32, int32_t, u8, uint8_t, (uint8_t)v)
CAST(i32, int32_t, i16, int16_t, (int16_t)v)
CAST(i32, int32_t, i64, int64_t, (int64_t)v)
CAST(i32, int32_t, f32, float, (float)v)
CAST(i32, int32_t, f64, double, (double)v)
CAST(i32, int32_t, bool, uint8_t, v != 0)
CAST(i64, int64_t, u8, uint8_t, (uint8_t)v)
CAST(i64, int64_t, i16, int16_t, (int16_t)v)
CAST(i64, int64_t, i32, int32_t, (int32_t)v)
CAST(i64, int64_t, f32, float, (float)v)
CAST(i64, int64_t, f64, double, (double)v)
CAST(i64, int64_t, bool, uint8_t, v != 0)
CAST(f32, float, i32, int32_t, whole_32f(v))
CAST(f32, float, i64, int64_t, whole_64f(v))
CAST(f32, float, f64, double, (double)v)
CAST(f32, float, bool, uint8_t, v != 0)
CAST(f32, float, c64, c64, ((c64){v, 0}))
CAST(f64, double, i32, int32_t, whole_32(v))
CAST(f64, double, i64, int64_t, whole_64(v))
CAST(f64, double, f32, float, (float)v)
CAST(f64, double, bool, uint8_t, v != 0)
CAST(f64, double, c128, c128, ((c128){v, 0}))
CAST(c64, c64, f32, float, v.re)
CAST(c64, c64, bool, uint8_t, (v.re != 0) | (v.im != 0))
CAST(c64, c64, c128, c128, ((c128){(double)v.re, (double)v.im}))
CAST(c128, c128, f64, double, v.re)
CAST(c128, c128, bool, uint8_t, (v.re != 0) | (v.im != 0))
CAST(c128, c128, c64, c64, ((c64){(float)v.re, (float)v.im}))

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

void TNI_KERN_NAME(tni_copy)(void *to, const void *from, size_t nbytes)
{
    enum { LINE = 64 };
    typedef char line __attribute__((vector_size(LINE), aligned(1), may_alias));
    char *out = to;
    const char *in = from;
    for (; nbytes >= LINE; nbytes -= LINE, out += LINE, in += LINE) {
        *(line *)(void *)out = *(const line *)(const void *)in;
        __asm__("" : "+r"(out)); /* else compilers call the C library */
    }
    memcpy(out, in, nbytes);
}

const tni_cast_table TNI_KERN_NAME(tni_cast) = {
    [TN_DTYPE_BOOL] = {[TN_DTYPE_I32] = bool_to_i32,
                       [TN_DTYPE_I64] = bool_to_i64,
                       [TN_DTYPE_F32] = bool_to_f32,
                       [TN_DTYPE_F64] = bool_to_f64},
    [TN_DTYPE_U8] = {[TN_DTYPE_I32] = u8_to_i32,
                     [TN_DTYPE_I64] = u8_to_i64,
                     [TN_DTYPE_F32] = u8_to_f32,
                     [TN_DTYPE_F64] = u8_to_f64,
                     [TN_DTYPE_BOOL] = u8_to_bool},
    [TN_DTYPE_I8] = {[TN_DTYPE_I32] = i8_to_i32,
                     [TN_DTYPE_I64] = i8_to_i64,
                     [TN_DTYPE_F32] = i8_to_f32,
                     [TN_DTYPE_F64] = i8_to_f64,
                     [TN_DTYPE_BOOL] = u8_to_bool},
    [TN_DTYPE_I16] = {[TN_DTYPE_I32] = i16_to_i32,
                      [TN_DTYPE_I64] = i16_to_i64,
                      [TN_DTYPE_F32] = i16_to_f32,
                      [TN_DTYPE_F64] = i16_to_f64},
    [TN_DTYPE_I32] = {[TN_DTYPE_U8] = i32_to_u8,
                      [TN_DTYPE_I8] = i32_to_u8,
                      [TN_DTYPE_I16] = i32_to_i16,
                      [TN_DTYPE_I64] = i32_to_i64,
                      [TN_DTYPE_F32] = i32_to_f32,
                      [TN_DTYPE_F64] = i32_to_f64,
                      [TN_DTYPE_BOOL] = i32_to_bool},
    [TN_DTYPE_I64] = {[TN_DTYPE_U8] = i64_to_u8,
                      [TN_DTYPE_I8] = i64_to_u8,
                      [TN_DTYPE_I16] = i64_to_i16,
                      [TN_DTYPE_I32] = i64_to_i32,
                      [TN_DTYPE_F32] = i64_to_f32,
                      [TN_DTYPE_F64] = i64_to_f64,
                      [TN_DTYPE_BOOL] = i64_to_bool},
    [TN_DTYPE_F32] = {[TN_DTYPE_I32] = f32_to_i32,
                      [TN_DTYPE_I64] = f32_to_i64,
                      [TN_DTYPE_F64] = f32_to_f64,
                      [TN_DTYPE_BOOL] = f32_to_bool,
                      [TN_DTYPE_C64] = f32_to_c64,
                      [TN_DTYPE_F16] = f32_to_f16,
                      [TN_DTYPE_BF16] = f32_to_bf16},
    [TN_DTYPE_F64] = {[TN_DTYPE_I32] = f64_to_i32,
                      [TN_DTYPE_I64] = f64_to_i64,
                      [TN_DTYPE_F32] = f64_to_f32,
                      [TN_DTYPE_BOOL] = f64_to_bool,
                      [TN_DTYPE_C128] = f64_to_c128},
    [TN_DTYPE_C64] =
        {[TN_DTYPE_F32] = c64_to_f32, [TN_DTYPE_BOOL] = c64_to_bool, [TN_DTYPE_C128] = c64_to_c128},
    [TN_DTYPE_C128] = {[TN_DTYPE_F64] = c128_to_f64,
                       [TN_DTYPE_BOOL] = c128_to_bool,
                       [TN_DTYPE_C64] = c128_to_c64},
    [TN_DTYPE_F16] = {[TN_DTYPE_F32] = f16_to_f32},
    [TN_DTYPE_BF16] = {[TN_DTYPE_F32] = bf16_to_f32},
};
