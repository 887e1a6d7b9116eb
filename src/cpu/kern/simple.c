/* SPDX-License-Identifier: MIT */
/* cpu/kern/simple.c: rounding, clamping, piecewise linear activations and other loops of a few
 * instructions. In backward loops x is the gradient of the result. */
#include "cpu/kern/loop.h"
#include "cpu/kern/special64.h"

#define INTEGERS(X) \
    X(u8, uint8_t)  \
    X(i8, int8_t)   \
    X(i16, int16_t) \
    X(i32, int32_t) \
    X(i64, int64_t)
#define FLOATS(X) \
    X(f32, float) \
    X(f64, double)
#define INTEGER_ROW(f)                                                        \
    [TN_DTYPE_U8] = f##_u8, [TN_DTYPE_I8] = f##_i8, [TN_DTYPE_I16] = f##_i16, \
    [TN_DTYPE_I32] = f##_i32, [TN_DTYPE_I64] = f##_i64
#define FLOAT_ROW(f)   [TN_DTYPE_F32] = f##_f32, [TN_DTYPE_F64] = f##_f64
#define COMPLEX_ROW(f) [TN_DTYPE_C64] = f##_c64, [TN_DTYPE_C128] = f##_c128
#define REAL_ROW(f)    INTEGER_ROW(f), FLOAT_ROW(f)

/* ---- rounding ---- */

LOOP1(floor_f32, float, floorf(x))
LOOP1(floor_f64, double, floor(x))
LOOP1(ceil_f32, float, ceilf(x))
LOOP1(ceil_f64, double, ceil(x))
LOOP1(round_f32, float, rintf(x)) /* halves to even */
LOOP1(round_f64, double, rint(x))
LOOP1(trunc_f32, float, truncf(x))
LOOP1(trunc_f64, double, trunc(x))
LOOP1(frac_f32, float, x - truncf(x))
LOOP1(frac_f64, double, x - trunc(x))
/* p[0] is a power of ten; p[1] says whether to multiply by it first, or to divide. */
LOOP1_WITH(round_decimals_f32, float, p[1] != 0 ? rintf(x * p[0]) / p[0] : rintf(x / p[0]) * p[0])
LOOP1_WITH(round_decimals_f64, double, p[1] != 0 ? rint(x * p[0]) / p[0] : rint(x / p[0]) * p[0])

/* ---- activations ---- */

#define PIECES(S, T)                                                                      \
    static inline T six_##S(T x)                                                          \
    {                                                                                     \
        T y = x + (T)3;                                                                   \
        y = y < (T)0 ? (T)0 : y;                                                          \
        return y > (T)6 ? (T)6 : y;                                                       \
    }                                                                                     \
    LOOP1_WITH(leaky_##S, T, x > (T)0 ? x : x * p[0])                                     \
    LOOP2_WITH(leaky_b_##S, T, x > (T)0 ? y : y * p[0])                                   \
    LOOP1(hardswish_##S, T, x *six_##S(x) / (T)6)                                         \
    LOOP2(hardswish_b_##S, T, y <= (T)-3 ? (T)0 : y < (T)3 ? x * (y / (T)3 + (T)0.5) : x) \
    LOOP1(hardsigmoid_##S, T, six_##S(x) / (T)6)                                          \
    LOOP2(hardsigmoid_b_##S, T, (y > (T)-3) & (y < (T)3) ? x / (T)6 : (T)0)               \
    LOOP2_WITH(hardtanh_b_##S, T, (y <= p[0]) | (y >= p[1]) ? (T)0 : x)                   \
    LOOP2(prelu_##S, T, x > (T)0 ? x : x * y)                                             \
    LOOP3_WITH(prelu_b_##S, T, ((void)p, x > (T)0 ? z : z * y))                           \
    LOOP3_WITH(prelu_weight_b_##S, T, ((void)p, (void)y, x > (T)0 ? (T)0 : x * z))        \
    LOOP2(sigmoid_b_##S, T, x *((T)1 - y) * y)                                            \
    LOOP2(tanh_b_##S, T, x *((T)1 - y * y))
FLOATS(PIECES)

/* ---- of numbers that have an order ---- */

/* NaN of any input wins. */
#define CLAMP(S, T, P)                                                                      \
    static inline T clamp1_##S(T x, T low, T high)                                          \
    {                                                                                       \
        x = (x < low) | (low != low) ? low : x;                                             \
        return (x > high) | (high != high) ? high : x;                                      \
    }                                                                                       \
    LOOP_HEAD(clamp_##S)                                                                    \
    {                                                                                       \
        T *o = out;                                                                         \
        const T *a = in[0], *b = in[1], *c = in[2];                                         \
        (void)ctx;                                                                          \
        INDEPENDENT for (int64_t i = 0; i < n; i++)                                         \
        {                                                                                   \
            o[i] = clamp1_##S(a[i], b[i], c[i]);                                            \
        }                                                                                   \
    }                                                                                       \
    LOOP_HEAD(clamp_to_##S)                                                                 \
    {                                                                                       \
        T *o = out;                                                                         \
        const T *a = in[0], low = (T)((const P *)ctx)[0], high = (T)((const P *)ctx)[1];    \
        INDEPENDENT for (int64_t i = 0; i < n; i++)                                         \
        {                                                                                   \
            o[i] = clamp1_##S(a[i], low, high);                                             \
        }                                                                                   \
    }                                                                                       \
    LOOP_HEAD(threshold_##S)                                                                \
    {                                                                                       \
        T *o = out;                                                                         \
        const T *a = in[0], limit = (T)((const P *)ctx)[0], value = (T)((const P *)ctx)[1]; \
        INDEPENDENT for (int64_t i = 0; i < n; i++)                                         \
        {                                                                                   \
            o[i] = a[i] <= limit ? value : a[i];                                            \
        }                                                                                   \
    }                                                                                       \
    LOOP_HEAD(threshold_b_##S)                                                              \
    {                                                                                       \
        T *o = out;                                                                         \
        const T *a = in[0], *b = in[1], limit = (T)((const P *)ctx)[0];                     \
        INDEPENDENT for (int64_t i = 0; i < n; i++)                                         \
        {                                                                                   \
            T x = a[i], g = b[i];                                                           \
            o[i] = x <= limit ? (T)0 : g;                                                   \
        }                                                                                   \
    }
#define CLAMP_FLOAT(S, T)   CLAMP(S, T, double)
#define CLAMP_INTEGER(S, T) CLAMP(S, T, int64_t)
FLOATS(CLAMP_FLOAT)
INTEGERS(CLAMP_INTEGER)
#define SIGN(S, T) LOOP1(sign_##S, T, (T)((x > 0) - (x < 0)))
FLOATS(SIGN)
SIGN(i8, int8_t)
SIGN(i16, int16_t)
SIGN(i32, int32_t)
SIGN(i64, int64_t)
LOOP1(sign_u8, uint8_t, x != 0)
LOOP1(sign_bool, uint8_t, tni_truth(x))

/* NaN gives way. */
#define EXTREME(S, T)                              \
    LOOP2(fmax_##S, T, (x < y) | (x != x) ? y : x) \
    LOOP2(fmin_##S, T, (x > y) | (x != x) ? y : x)
FLOATS(EXTREME)

#define NAN_TO_NUM(S, T, C, INF)                                                          \
    LOOP1_WITH(nan_to_num_##S, T, x != x ? p[0] : x == INF ? p[1] : x == -INF ? p[2] : x) \
    LOOP_HEAD(nan_to_num_##C)                                                             \
    {                                                                                     \
        nan_to_num_##S(out, in, 2 * n, ctx);                                              \
    }
NAN_TO_NUM(f32, float, c64, INFINITY)
NAN_TO_NUM(f64, double, c128, (double)INFINITY)

/* The remainder has the divisor's sign, fmod the dividend's. Integers: the caller has seen to it
 * that y is not 0; the most negative number by -1 leaves 0. */
static inline float signed_as_f32(float r, float y)
{
    return (r != 0) & ((y < 0) != (r < 0)) ? r + y : r;
}
#define remainder_f64 LOOP_64(remainder)
#define fmod_f64      LOOP_64(fmod)

/* In double the product of y and a quotient below 2^29 is exact, and so is what is left of x. The
 * quotient may have been rounded up to the next integer; then the rest has the wrong sign. */
static inline int quotient_is_small(float x, float y)
{
    return (fabs((double)x / (double)y) < 0x1p+29) & (fabsf(y) < INFINITY);
}
static inline float fmod_small(float x, float y)
{
    double a = fabs((double)x), b = fabs((double)y), r = a - trunc(a / b) * b;
    return copysignf((float)(r < 0 ? r + b : r), x);
}
/* Other quotients, NaN among them, are for the C library; an element's result does not depend on
 * those beside it. */
#define FMOD_BLOCK 64
#define FMOD_LOOP(name, expression)                                                 \
    LOOP_HEAD(name)                                                                 \
    {                                                                               \
        float *o = out;                                                             \
        const float *a = in[0], *b = in[1];                                         \
        (void)ctx;                                                                  \
        for (int64_t begin = 0; begin < n; begin += FMOD_BLOCK) {                   \
            int64_t end = begin + FMOD_BLOCK < n ? begin + FMOD_BLOCK : n;          \
            int small = 1;                                                          \
            for (int64_t i = begin; i < end; i++)                                   \
                small &= quotient_is_small(a[i], b[i]);                             \
            if (small) {                                                            \
                INDEPENDENT for (int64_t i = begin; i < end; i++)                   \
                {                                                                   \
                    float y = b[i], r = fmod_small(a[i], y);                        \
                    o[i] = (expression);                                            \
                }                                                                   \
                continue;                                                           \
            }                                                                       \
            for (int64_t i = begin; i < end; i++) {                                 \
                float x = a[i], y = b[i];                                           \
                float r = quotient_is_small(x, y) ? fmod_small(x, y) : fmodf(x, y); \
                o[i] = (expression);                                                \
            }                                                                       \
        }                                                                           \
    }
FMOD_LOOP(remainder_f32, signed_as_f32(r, y))
FMOD_LOOP(fmod_f32, ((void)y, r))
#define SIGNED_REMAINDER(S, T)                                   \
    static inline T fmod1_##S(T x, T y)                          \
    {                                                            \
        return y == -1 ? (T)0 : (T)(x % y);                      \
    }                                                            \
    static inline T remainder1_##S(T x, T y)                     \
    {                                                            \
        T r = fmod1_##S(x, y);                                   \
        return (r != 0) & ((y < 0) != (r < 0)) ? (T)(r + y) : r; \
    }                                                            \
    LOOP2(remainder_##S, T, remainder1_##S(x, y))                \
    LOOP2(fmod_##S, T, fmod1_##S(x, y))
SIGNED_REMAINDER(i8, int8_t)
SIGNED_REMAINDER(i16, int16_t)
SIGNED_REMAINDER(i32, int32_t)
SIGNED_REMAINDER(i64, int64_t)
LOOP2(fmod_u8, uint8_t, x % y)
#define remainder_u8 fmod_u8

/* Powers of integers wrap. Of a negative exponent only 1 and -1 have one that is an integer. */
#define POWER(S, T)                                                                       \
    static inline T power_##S(T x, T y)                                                   \
    {                                                                                     \
        if (y < 0) {                                                                      \
            T odd = (T)(y & 1);                                                           \
            return x == 1 ? (T)1 : x == (T)-1 && (T)-1 < 0 ? (odd ? (T)-1 : (T)1) : (T)0; \
        }                                                                                 \
        uint64_t r = 1, b = (uint64_t)x;                                                  \
        for (uint64_t e = (uint64_t)y; e; e >>= 1) {                                      \
            r = e & 1 ? r * b : r;                                                        \
            b *= b;                                                                       \
        }                                                                                 \
        return (T)r;                                                                      \
    }                                                                                     \
    LOOP2(power_loop_##S, T, power_##S(x, y))
POWER(i8, int8_t)
POWER(i16, int16_t)
POWER(i32, int32_t)
POWER(i64, int64_t)
static inline uint8_t power_u8(uint8_t x, uint8_t y)
{
    uint8_t r = 1;
    for (unsigned e = y; e; e >>= 1) {
        r = e & 1 ? (uint8_t)(r * x) : r;
        x = (uint8_t)(x * x);
    }
    return r;
}
LOOP2(power_loop_u8, uint8_t, power_u8(x, y))

/* ---- interpolation, and a product or quotient added ---- */

#define SCALED3(name, T, expression)                                     \
    LOOP_HEAD(name)                                                      \
    {                                                                    \
        T *o = out;                                                      \
        const T *a = in[0], *b = in[1], *c = in[2], s = *(const T *)ctx; \
        INDEPENDENT for (int64_t i = 0; i < n; i++)                      \
        {                                                                \
            T x = a[i], y = b[i], z = c[i];                              \
            o[i] = (expression);                                         \
        }                                                                \
    }
#define LOOP3(name, T, expression)                  \
    LOOP_HEAD(name)                                 \
    {                                               \
        T *o = out;                                 \
        const T *a = in[0], *b = in[1], *c = in[2]; \
        (void)ctx;                                  \
        INDEPENDENT for (int64_t i = 0; i < n; i++) \
        {                                           \
            T x = a[i], y = b[i], z = c[i];         \
            o[i] = (expression);                    \
        }                                           \
    }
/* From the nearer end, so that a weight of 1 gives the end itself. */
#define MIX(S, T, FABS)                                                               \
    LOOP3(lerp_##S, T, FABS(z) < (T)0.5 ? x + z * (y - x) : y - (y - x) * ((T)1 - z)) \
    SCALED3(addcmul_##S, T, x + s * y * z)                                            \
    SCALED3(addcdiv_##S, T, x + s * y / z)
MIX(f32, float, fabsf)
MIX(f64, double, fabs)
#define MIX_INTEGER(S, T) \
    SCALED3(addcmul_##S, T, (T)((uint64_t)x + (uint64_t)s * (uint64_t)y * (uint64_t)z))
INTEGERS(MIX_INTEGER)

#define COMPLEX(S, T, R, FABS, HYPOT)                                                  \
    static inline T product_##S(T x, T y)                                              \
    {                                                                                  \
        return (T){x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re};              \
    }                                                                                  \
    static inline T sum_##S(T x, T y)                                                  \
    {                                                                                  \
        return (T){x.re + y.re, x.im + y.im};                                          \
    }                                                                                  \
    static inline T difference_##S(T x, T y)                                           \
    {                                                                                  \
        return (T){x.re - y.re, x.im - y.im};                                          \
    }                                                                                  \
    static inline T quotient_##S(T x, T y)                                             \
    {                                                                                  \
        if (FABS(y.re) >= FABS(y.im)) {                                                \
            R ratio = y.im / y.re, scale = 1 / (y.re + y.im * ratio);                  \
            return (T){(x.re + x.im * ratio) * scale, (x.im - x.re * ratio) * scale};  \
        }                                                                              \
        R ratio = y.re / y.im, scale = 1 / (y.re * ratio + y.im);                      \
        return (T){(x.re * ratio + x.im) * scale, (x.im * ratio - x.re) * scale};      \
    }                                                                                  \
    static inline T conj_##S(T x)                                                      \
    {                                                                                  \
        return (T){x.re, -x.im};                                                       \
    }                                                                                  \
    static inline T mixed_##S(T x, T y, T z)                                           \
    {                                                                                  \
        T d = difference_##S(y, x);                                                    \
        if (HYPOT(z.re, z.im) < (R)0.5)                                                \
            return sum_##S(x, product_##S(z, d));                                      \
        return difference_##S(y, product_##S(d, difference_##S((T){1, 0}, z)));        \
    }                                                                                  \
    static inline T direction_##S(T x)                                                 \
    {                                                                                  \
        R r = HYPOT(x.re, x.im);                                                       \
        return r == 0 ? (T){0, 0} : (T){x.re / r, x.im / r};                           \
    }                                                                                  \
    LOOP3(lerp_##S, T, mixed_##S(x, y, z))                                             \
    SCALED3(addcmul_##S, T, sum_##S(x, product_##S(product_##S(s, y), z)))             \
    SCALED3(addcdiv_##S, T, sum_##S(x, quotient_##S(product_##S(s, y), z)))            \
    LOOP_HEAD(sign_##S)                                                                \
    {                                                                                  \
        T *o = out;                                                                    \
        const T *a = in[0];                                                            \
        (void)ctx;                                                                     \
        for (int64_t i = 0; i < n; i++)                                                \
            o[i] = direction_##S(a[i]);                                                \
    }                                                                                  \
    static inline T sigmoid_b1_##S(T x, T y)                                           \
    {                                                                                  \
        return product_##S(x, conj_##S(product_##S(difference_##S((T){1, 0}, y), y))); \
    }                                                                                  \
    static inline T tanh_b1_##S(T x, T y)                                              \
    {                                                                                  \
        return product_##S(x, conj_##S(difference_##S((T){1, 0}, product_##S(y, y)))); \
    }                                                                                  \
    LOOP_HEAD(sigmoid_b_##S)                                                           \
    {                                                                                  \
        T *o = out;                                                                    \
        const T *a = in[0], *b = in[1];                                                \
        (void)ctx;                                                                     \
        for (int64_t i = 0; i < n; i++)                                                \
            o[i] = sigmoid_b1_##S(a[i], b[i]);                                         \
    }                                                                                  \
    LOOP_HEAD(tanh_b_##S)                                                              \
    {                                                                                  \
        T *o = out;                                                                    \
        const T *a = in[0], *b = in[1];                                                \
        (void)ctx;                                                                     \
        for (int64_t i = 0; i < n; i++)                                                \
            o[i] = tanh_b1_##S(a[i], b[i]);                                            \
    }
COMPLEX(c64, c64, float, fabsf, hypotf)
COMPLEX(c128, c128, double, fabs, hypot)

const tni_loop_table TNI_KERN_NAME(tni_simple) = {
    ROW(FLOOR) = {FLOAT_ROW(floor)},
    ROW(CEIL) = {FLOAT_ROW(ceil)},
    ROW(ROUND) = {FLOAT_ROW(round)},
    ROW(TRUNC) = {FLOAT_ROW(trunc)},
    ROW(FRAC) = {FLOAT_ROW(frac)},
    ROW(ROUND_DECIMALS) = {FLOAT_ROW(round_decimals)},
    ROW(LEAKY) = {FLOAT_ROW(leaky)},
    ROW(LEAKY_B) = {FLOAT_ROW(leaky_b)},
    ROW(HARDSWISH) = {FLOAT_ROW(hardswish)},
    ROW(HARDSWISH_B) = {FLOAT_ROW(hardswish_b)},
    ROW(HARDSIGMOID) = {FLOAT_ROW(hardsigmoid)},
    ROW(HARDSIGMOID_B) = {FLOAT_ROW(hardsigmoid_b)},
    ROW(HARDTANH_B) = {FLOAT_ROW(hardtanh_b)},
    ROW(PRELU) = {FLOAT_ROW(prelu)},
    ROW(PRELU_B) = {FLOAT_ROW(prelu_b)},
    ROW(PRELU_WEIGHT_B) = {FLOAT_ROW(prelu_weight_b)},
};

const tni_loop_table TNI_KERN_NAME(tni_simple2) = {
    ROW(SIGMOID_B) = {FLOAT_ROW(sigmoid_b), COMPLEX_ROW(sigmoid_b)},
    ROW(TANH_B) = {FLOAT_ROW(tanh_b), COMPLEX_ROW(tanh_b)},
    ROW(LERP) = {FLOAT_ROW(lerp), COMPLEX_ROW(lerp)},
    ROW(ADDCMUL) = {REAL_ROW(addcmul), COMPLEX_ROW(addcmul)},
    ROW(ADDCDIV) = {FLOAT_ROW(addcdiv), COMPLEX_ROW(addcdiv)},
    ROW(CLAMP) = {REAL_ROW(clamp)},
    ROW(CLAMP_TO) = {REAL_ROW(clamp_to)},
    ROW(THRESHOLD) = {REAL_ROW(threshold)},
    ROW(THRESHOLD_B) = {REAL_ROW(threshold_b)},
    ROW(SIGN) = {REAL_ROW(sign), COMPLEX_ROW(sign), [TN_DTYPE_BOOL] = sign_bool},
    ROW(FMAX) = {FLOAT_ROW(fmax)},
    ROW(FMIN) = {FLOAT_ROW(fmin)},
    ROW(NAN_TO_NUM) = {FLOAT_ROW(nan_to_num), COMPLEX_ROW(nan_to_num)},
    ROW(REMAINDER) = {REAL_ROW(remainder)},
    ROW(FMOD) = {REAL_ROW(fmod)},
    ROW(POW_WHOLE) = {INTEGER_ROW(power_loop)},
};
