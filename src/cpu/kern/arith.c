/* SPDX-License-Identifier: MIT */
/* cpu/kern/arith.c: arithmetic. Integers wrap: they are computed without a sign wherever that gives
 * the same bits, so that the signed and the unsigned type share a loop. */
#if defined(__x86_64__)
#    include <immintrin.h>
#endif

#include "cpu/kern/special64.h"
#include "cpu/kern/types.h"

#define LOOP1(name, T, expression)                                                 \
    static void name(void *out, const void *const *in, int64_t n, const void *ctx) \
    {                                                                              \
        T *o = out;                                                                \
        const T *a = in[0];                                                        \
        (void)ctx;                                                                 \
        INDEPENDENT for (int64_t i = 0; i < n; i++)                                \
        {                                                                          \
            T x = a[i];                                                            \
            o[i] = (expression);                                                   \
        }                                                                          \
    }
#define LOOP2(name, T, expression)                                                 \
    static void name(void *out, const void *const *in, int64_t n, const void *ctx) \
    {                                                                              \
        T *o = out;                                                                \
        const T *a = in[0], *b = in[1];                                            \
        (void)ctx;                                                                 \
        INDEPENDENT for (int64_t i = 0; i < n; i++)                                \
        {                                                                          \
            T x = a[i], y = b[i];                                                  \
            o[i] = (expression);                                                   \
        }                                                                          \
    }
#define LOOP2_SCALED(name, T, expression)                                          \
    static void name(void *out, const void *const *in, int64_t n, const void *ctx) \
    {                                                                              \
        T *o = out;                                                                \
        const T *a = in[0], *b = in[1], s = *(const T *)ctx;                       \
        INDEPENDENT for (int64_t i = 0; i < n; i++)                                \
        {                                                                          \
            T x = a[i], y = b[i];                                                  \
            o[i] = (expression);                                                   \
        }                                                                          \
    }

/* ---- bool, see Note [Bool bytes] ---- */

LOOP2(add_bool, uint8_t, tni_truth(x | y))
LOOP2_SCALED(add_scaled_bool, uint8_t, (uint8_t)(tni_truth(x) | (s & tni_truth(y))))
LOOP2(mul_bool, uint8_t, tni_truth(x) & tni_truth(y))

/* ---- integers, by width ---- */

#define WRAPPING(S, T)                                                            \
    LOOP2(add_##S, T, (T)(x + y))                                                 \
    LOOP2_SCALED(add_scaled_##S, T, (T)((uint64_t)x + (uint64_t)s * (uint64_t)y)) \
    LOOP2(sub_##S, T, (T)(x - y))                                                 \
    LOOP2(mul_##S, T, (T)((uint64_t)x * (uint64_t)y))                             \
    LOOP1(neg_##S, T, (T)(0u - x))
WRAPPING(w8, uint8_t)
WRAPPING(w16, uint16_t)
WRAPPING(w32, uint32_t)
WRAPPING(w64, uint64_t)

/* Division: the caller has seen to it that y is not 0. The most negative number by -1 wraps to
 * itself.
 */
#define SIGNED(S, T, U)                                                                 \
    LOOP2(div_trunc_##S, T, y == -1 ? (T)(0 - (U)x) : (T)(x / y))                       \
    LOOP2(div_floor_##S, T,                                                             \
          y == -1 ? (T)(0 - (U)x) : (T)(x / y - ((x % y != 0) & ((x < 0) != (y < 0))))) \
    LOOP2(maximum_##S, T, x > y ? x : y)                                                \
    LOOP2(minimum_##S, T, x < y ? x : y)                                                \
    LOOP1(abs_##S, T, x < 0 ? (T)(0 - (U)x) : x)                                        \
    LOOP1(relu_##S, T, x < 0 ? (T)0 : x)
SIGNED(i8, int8_t, uint8_t)
SIGNED(i16, int16_t, uint16_t)
SIGNED(i32, int32_t, uint32_t)
SIGNED(i64, int64_t, uint64_t)

LOOP2(div_u8, uint8_t, (uint8_t)(x / y))
LOOP2(maximum_u8, uint8_t, x > y ? x : y)
LOOP2(minimum_u8, uint8_t, x < y ? x : y)
LOOP1(same_u8, uint8_t, x)

/* ---- floating point ---- */

/* By fmod, not by floor(x / y): the quotient of 1.0 and 0.1 is 9. */
#define FLOOR_DIVIDE(S, T, FMOD, FLOOR, COPYSIGN)                \
    static inline T floor_divide_##S(T x, T y)                   \
    {                                                            \
        if (y == 0)                                              \
            return x / y;                                        \
        T rest = FMOD(x, y), quotient = (x - rest) / y;          \
        if (rest != 0 && (y < 0) != (rest < 0))                  \
            quotient -= (T)1;                                    \
        if (quotient == 0)                                       \
            return COPYSIGN((T)0, x / y);                        \
        T whole = FLOOR(quotient);                               \
        return quotient - whole > (T)0.5 ? whole + (T)1 : whole; \
    }
FLOOR_DIVIDE(f32, float, fmodf, floorf, copysignf)

/* The same bits without a branch, where the quotient is below 2^29 and the divisor finite: in
 * double the product of the divisor and a whole quotient is exact then, and so is the rest. The
 * quotient may have been rounded up to the next integer, which leaves a rest of the wrong sign. */
static inline int divides_small(float x, float y)
{
    return (fabs((double)x / (double)y) < 0x1p+29) & (fabsf(y) < INFINITY);
}
static inline float floor_divide_small(float x, float y)
{
    double a = fabs((double)x), b = fabs((double)y), r = a - trunc(a / b) * b;
    float rest = copysignf((float)(r < 0 ? r + b : r), x), quotient = (x - rest) / y;
    quotient -= (rest != 0) & ((y < 0) != (rest < 0)) ? 1.0f : 0.0f;
    float whole = floorf(quotient);
    whole += quotient - whole > 0.5f ? 1.0f : 0.0f;
    return quotient == 0 ? copysignf(0.0f, x / y) : whole;
}
#define DIVIDE_BLOCK 64
static void div_floor_f32(void *out, const void *const *in, int64_t n, const void *ctx)
{
    const float *a = in[0], *b = in[1];
    float *o = out;
    (void)ctx;
    for (int64_t begin = 0; begin < n; begin += DIVIDE_BLOCK) {
        int64_t end = begin + DIVIDE_BLOCK < n ? begin + DIVIDE_BLOCK : n;
        int small = 1;
        for (int64_t i = begin; i < end; i++)
            small &= divides_small(a[i], b[i]);
        if (small) {
            INDEPENDENT for (int64_t i = begin; i < end; i++) o[i] = floor_divide_small(a[i], b[i]);
        } else {
            for (int64_t i = begin; i < end; i++)
                o[i] = divides_small(a[i], b[i]) ? floor_divide_small(a[i], b[i])
                                                 : floor_divide_f32(a[i], b[i]);
        }
    }
}
FLOOR_DIVIDE(f64, double, fmod, floor, copysign)

/* NaN wins: it compares false, so the second operand is taken when it is one, and the first is
 * asked. */
#define FLOATING(S, T, TRUNC, FABS)                     \
    LOOP2(add_##S, T, x + y)                            \
    LOOP2_SCALED(add_scaled_##S, T, x + s * y)          \
    LOOP2(sub_##S, T, x - y)                            \
    LOOP2(mul_##S, T, x *y)                             \
    LOOP2(div_##S, T, x / y)                            \
    LOOP2(div_trunc_##S, T, TRUNC(x / y))               \
    LOOP2(maximum_##S, T, ((x < y) | (y != y)) ? y : x) \
    LOOP2(minimum_##S, T, ((x > y) | (y != y)) ? y : x) \
    LOOP1(neg_##S, T, -x)                               \
    LOOP1(abs_##S, T, FABS(x))                          \
    LOOP1(relu_##S, T, x < 0 ? (T)0 : x)                \
    LOOP1(reciprocal_##S, T, 1 / x)
FLOATING(f32, float, truncf, fabsf)
FLOATING(f64, double, trunc, fabs)

/* Past the caches, straight from the registers: over a buffer `add` of 4M numbers takes half as
 * long again (docs/decisions/0021). Stores of 32 bytes, since a line of four takes a third longer.
 */
#if defined(__AVX__)
#    define PAST2(name, S, T, V, load, store, op)                                                 \
        static void name##_past_##S(void *out, const void *const *in, int64_t n, const void *ctx) \
        {                                                                                         \
            enum { LINE = 64 / (int)sizeof(T), AHEAD = 4096 / (int)sizeof(T) };                   \
            T *o = out;                                                                           \
            const T *a = in[0], *b = in[1];                                                       \
            int64_t i = (int64_t)(-(uintptr_t)o % 64 / sizeof *o);                                \
            i = i < n ? i : n;                                                                    \
            name##_##S(o, in, i, ctx);                                                            \
            for (; i + LINE <= n; i += LINE) {                                                    \
                __builtin_prefetch(a + i + AHEAD);                                                \
                __builtin_prefetch(b + i + AHEAD);                                                \
                V first = load(a + i) op load(b + i);                                             \
                V second = load(a + i + LINE / 2) op load(b + i + LINE / 2);                      \
                store(o + i, first);                                                              \
                store(o + i + LINE / 2, second);                                                  \
            }                                                                                     \
            name##_##S(o + i, (const void *const[]){a + i, b + i}, n - i, ctx);                   \
            _mm_sfence();                                                                         \
        }
#    define PAST_REAL(name, op)                                                \
        PAST2(name, f32, float, __m256, _mm256_loadu_ps, _mm256_stream_ps, op) \
        PAST2(name, f64, double, __m256d, _mm256_loadu_pd, _mm256_stream_pd, op)
PAST_REAL(add, +)
PAST_REAL(sub, -)
PAST_REAL(mul, *)
#endif
LOOP2(div_floor_f64, double, floor_divide_f64(x, y))

/* ---- complex numbers: plain formulas, as the reference has them, not those of C's Annex G ---- */

/* gcc makes one instruction that rounds once of a product and what is added to it in every second
 * element, whatever -ffp-contract says, where it vectorises: the last bits would depend on the
 * instruction set and on where in a row a number is. */
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 12
#    define ROUNDED(x) __builtin_assoc_barrier(x)
#else
#    define ROUNDED(x) (x)
#endif

#define COMPLEX(S, T, R, FABS)                                                            \
    static inline T product_##S(T x, T y)                                                 \
    {                                                                                     \
        return (T){ROUNDED(x.re * y.re) - ROUNDED(x.im * y.im),                           \
                   ROUNDED(x.re * y.im) + ROUNDED(x.im * y.re)};                          \
    }                                                                                     \
    /* Scaled by the larger part of the divisor, so that its square does not overflow. */ \
    static inline T quotient_##S(T x, T y)                                                \
    {                                                                                     \
        R c = FABS(y.re), d = FABS(y.im);                                                 \
        if (c == 0 && d == 0)                                                             \
            return (T){x.re / c, x.im / d};                                               \
        if (c >= d) {                                                                     \
            R ratio = y.im / y.re, scale = 1 / (y.re + y.im * ratio);                     \
            return (T){(x.re + ROUNDED(x.im * ratio)) * scale,                            \
                       (x.im - ROUNDED(x.re * ratio)) * scale};                           \
        }                                                                                 \
        R ratio = y.re / y.im, scale = 1 / (y.re * ratio + y.im);                         \
        return (T){(ROUNDED(x.re * ratio) + x.im) * scale,                                \
                   (ROUNDED(x.im * ratio) - x.re) * scale};                               \
    }                                                                                     \
    static inline T sum_##S(T x, T y)                                                     \
    {                                                                                     \
        return (T){x.re + y.re, x.im + y.im};                                             \
    }                                                                                     \
    LOOP2(add_##S, T, sum_##S(x, y))                                                      \
    LOOP2_SCALED(add_scaled_##S, T, sum_##S(x, product_##S(s, y)))                        \
    LOOP2(sub_##S, T, ((T){x.re - y.re, x.im - y.im}))                                    \
    LOOP2(mul_##S, T, product_##S(x, y))                                                  \
    LOOP2(div_##S, T, quotient_##S(x, y))                                                 \
    LOOP1(neg_##S, T, ((T){-x.re, -x.im}))                                                \
    LOOP1(reciprocal_##S, T, quotient_##S(((T){1, 0}), x))
COMPLEX(c64, c64, float, fabsf)
COMPLEX(c128, c128, double, fabs)

#define ROW(NAME) [TNI_LOOP_##NAME % TNI_FAMILY_LOOPS]
#define WRAPPING_ROW(f)                                                       \
    [TN_DTYPE_U8] = f##_w8, [TN_DTYPE_I8] = f##_w8, [TN_DTYPE_I16] = f##_w16, \
    [TN_DTYPE_I32] = f##_w32, [TN_DTYPE_I64] = f##_w64
#define SIGNED_ROW(f)                                                           \
    [TN_DTYPE_I8] = f##_i8, [TN_DTYPE_I16] = f##_i16, [TN_DTYPE_I32] = f##_i32, \
    [TN_DTYPE_I64] = f##_i64
#define REAL_ROW(f)    [TN_DTYPE_F32] = f##_f32, [TN_DTYPE_F64] = f##_f64
#define COMPLEX_ROW(f) [TN_DTYPE_C64] = f##_c64, [TN_DTYPE_C128] = f##_c128

/* Complex numbers in, real ones out. Squares of floats neither overflow nor vanish in double. */
static void abs_c64(void *out, const void *const *in, int64_t n, const void *ctx)
{
    float *o = out;
    const c64 *a = in[0];
    (void)ctx;
    INDEPENDENT for (int64_t i = 0; i < n; i++)
    {
        double re = (double)a[i].re, im = (double)a[i].im;
        float size = (float)sqrt(re * re + im * im);
        o[i] = (fabsf(a[i].re) == INFINITY) | (fabsf(a[i].im) == INFINITY) ? INFINITY : size;
    }
}
static void abs_c128(void *out, const void *const *in, int64_t n, const void *ctx)
{
    enum { SOME = 64 };
    double *o = out, re[SOME], im[SOME];
    const c128 *a = in[0];
    (void)ctx;
    for (int64_t begin = 0; begin < n; begin += SOME) {
        int64_t m = n - begin < SOME ? n - begin : SOME;
        for (int64_t i = 0; i < m; i++) {
            re[i] = a[begin + i].re;
            im[i] = a[begin + i].im;
        }
        LOOP_64(hypot)(o + begin, (const void *const[]){re, im}, m, NULL);
    }
}

const tni_loop_table TNI_KERN_NAME(tni_arith) = {
    ROW(ADD) = {WRAPPING_ROW(add), REAL_ROW(add), COMPLEX_ROW(add), [TN_DTYPE_BOOL] = add_bool},
    ROW(ADD_SCALED) = {WRAPPING_ROW(add_scaled), REAL_ROW(add_scaled),
                       COMPLEX_ROW(add_scaled), [TN_DTYPE_BOOL] = add_scaled_bool},
    ROW(SUB) = {WRAPPING_ROW(sub), REAL_ROW(sub), COMPLEX_ROW(sub)},
    ROW(MUL) = {WRAPPING_ROW(mul), REAL_ROW(mul), COMPLEX_ROW(mul), [TN_DTYPE_BOOL] = mul_bool},
    ROW(DIV) = {REAL_ROW(div), COMPLEX_ROW(div)},
#if defined(__AVX__)
    ROW(ADD_PAST) = {REAL_ROW(add_past)},
    ROW(SUB_PAST) = {REAL_ROW(sub_past)},
    ROW(MUL_PAST) = {REAL_ROW(mul_past)},
#endif
    ROW(DIV_TRUNC) = {SIGNED_ROW(div_trunc), REAL_ROW(div_trunc), [TN_DTYPE_U8] = div_u8},
    ROW(DIV_FLOOR) = {SIGNED_ROW(div_floor), REAL_ROW(div_floor), [TN_DTYPE_U8] = div_u8},
    ROW(MAXIMUM) = {SIGNED_ROW(maximum),
                    REAL_ROW(maximum), [TN_DTYPE_U8] = maximum_u8, [TN_DTYPE_BOOL] = add_bool},
    ROW(MINIMUM) = {SIGNED_ROW(minimum),
                    REAL_ROW(minimum), [TN_DTYPE_U8] = minimum_u8, [TN_DTYPE_BOOL] = mul_bool},
    ROW(NEG) = {WRAPPING_ROW(neg), REAL_ROW(neg), COMPLEX_ROW(neg)},
    ROW(ABS) = {SIGNED_ROW(abs), REAL_ROW(abs), [TN_DTYPE_U8] = same_u8, [TN_DTYPE_BOOL] = same_u8,
                [TN_DTYPE_C64] = abs_c64, [TN_DTYPE_C128] = abs_c128},
    ROW(RELU) = {SIGNED_ROW(relu), REAL_ROW(relu), [TN_DTYPE_U8] = same_u8},
    ROW(RECIPROCAL) = {REAL_ROW(reciprocal), COMPLEX_ROW(reciprocal)},
};
