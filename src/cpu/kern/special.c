/* SPDX-License-Identifier: MIT */
/* cpu/kern/special.c: loops over the less common functions. float32 is computed here, for each
 * instruction set, float64 in special64.c; complex numbers go through the C library (libm.c). */
#include "cpu/kern/special.h"
#include "cpu/kern/block.h"
#include "cpu/kern/libm.h"
#include "cpu/kern/loop.h"
#include "cpu/kern/rare.h"
#include "cpu/kern/special64.h"
#include "cpu/kern/vec32.h"

#define NEAR_LOOP(f) LOOP1(f##_loop_f32, float, (float)f##_near((double)x))
LOOP1(log1p_loop_f32, float, log1p_any_f32(x))
LOOP_OF_BLOCKS(expm1_loop_f32, block_is_small(block, EXP_INSIDE), expm1_inside_f32, expm1_any_f32)
NEAR_LOOP(sinh)
NEAR_LOOP(cosh)
NEAR_LOOP(asinh)
NEAR_LOOP(acosh)
NEAR_LOOP(atanh)
LOOP_OF_BLOCKS(log2_loop_f32, block_is_normal(block), log2_inside_f32, log2_f32)
LOOP_OF_BLOCKS(log10_loop_f32, block_is_normal(block), log10_inside_f32, log10_f32)
LOOP_OF_BLOCKS(exp2_loop_f32, block_is_small(block, EXP2_INSIDE), exp2_inside_f32, exp2_f32)
LOOP1(atan_loop_f32, float, atan_f32(x))
LOOP1(asin_loop_f32, float, asin_f32(x))
LOOP1(acos_loop_f32, float, acos_f32(x))
LOOP2(atan2_loop_f32, float, (float)atan2_near((double)x, (double)y))
LOOP1_32(erf_loop_f32, erf_32)
LOOP1_32(erfc_loop_f32, erfc_32)
LOOP1_32(erfinv_loop_f32, erfinv_32)

/* Negative numbers, 0, infinity and NaN are for the C library. */
static float lgamma_any_f32(float x)
{
    return (x > 0.0f) & (x < INFINITY) ? lgamma_inside_f32(x) : (float)tni_lgamma((double)x);
}
LOOP_OF_BLOCKS(lgamma_loop_f32, block_is_normal(block), lgamma_inside_f32, lgamma_any_f32)

/* Of positive normal numbers below 1 without the clamp: the quotient is one of them too. */
LOOP_OF_BLOCKS(logit_plain_f32, block_is_within(block, 0xffffffffu, 0x00800000u, 0x3effffffu),
               logit_inside_f32, logit_f32)
LOOP_HEAD(logit_loop_f32)
{
    float *o = out;
    const float *a = in[0], low = (float)*(const double *)ctx, high = 1.0f - low;
    if (low < 0.0f) {
        logit_plain_f32(out, in, n, NULL);
        return;
    }
    INDEPENDENT for (int64_t i = 0; i < n; i++)
    {
        float x = a[i];
        o[i] = logit_f32(x < low ? low : x > high ? high : x);
    }
}

static inline float xlogy_f32(float x, float y)
{
    float r = x * log_f32(y);
    r = x == 0.0f ? 0.0f : r;
    return y != y ? y : r;
}
LOOP2(xlogy_loop_f32, float, xlogy_f32(x, y))

LOOP2(pow_loop_f32, float, pow_f32(x, y))

/* Squares of floats neither overflow nor vanish in double. */
static inline float hypot_f32(float x, float y)
{
    double s = sqrt((double)x * (double)x + (double)y * (double)y);
    return (fabsf(x) == INFINITY) | (fabsf(y) == INFINITY) ? INFINITY : (float)s;
}
LOOP2(hypot_loop_f32, float, hypot_f32(x, y))

static inline float logaddexp_f32(float x, float y)
{
    float high = x > y ? x : y, r = high + log1p_f32(exp_f32(-fabsf(x - y)));
    r = (x == y) & (fabsf(x) == INFINITY) ? x : r;
    return (x != x) | (y != y) ? NAN : r;
}
LOOP2(logaddexp_loop_f32, float, logaddexp_f32(x, y))

/* Each element's result is the same whatever stands beside it. */
#define TRIG_LOOP(name)                                                                 \
    static inline float name##_vector(float x)                                          \
    {                                                                                   \
        return fabsf(x) <= TRIG_NEAR ? name##_near(x) : name##_far(x);                  \
    }                                                                                   \
    static float name##_any(float x)                                                    \
    {                                                                                   \
        return fabsf(x) <= TRIG_FAR ? name##_vector(x) : name##f(x);                    \
    }                                                                                   \
    LOOP_HEAD(name##_loop_f32)                                                          \
    {                                                                                   \
        float *o = out;                                                                 \
        const float *a = in[0];                                                         \
        (void)ctx;                                                                      \
        for (; n >= BLOCK; n -= BLOCK, a += BLOCK, o += BLOCK) {                        \
            if (block_is_small(a, TRIG_NEAR)) {                                         \
                INDEPENDENT for (int i = 0; i < BLOCK; i++) o[i] = name##_near(a[i]);   \
            } else if (block_is_small(a, TRIG_FAR)) {                                   \
                INDEPENDENT for (int i = 0; i < BLOCK; i++) o[i] = name##_vector(a[i]); \
            } else {                                                                    \
                for (int i = 0; i < BLOCK; i++)                                         \
                    o[i] = name##_any(a[i]);                                            \
            }                                                                           \
        }                                                                               \
        for (int64_t i = 0; i < n; i++)                                                 \
            o[i] = name##_any(a[i]);                                                    \
    }
TRIG_LOOP(sin)
TRIG_LOOP(cos)
TRIG_LOOP(tan)

#define SPECIAL_ROW(NAME, f)                          \
    ROW(NAME) = {[TN_DTYPE_F32] = f##_loop_f32,       \
                 [TN_DTYPE_F64] = LOOP_64(f),         \
                 [TN_DTYPE_C64] = tni_libm_##f##_c64, \
                 [TN_DTYPE_C128] = tni_libm_##f##_c128}
#define REAL_ROW(NAME, f) ROW(NAME) = {[TN_DTYPE_F32] = f##_loop_f32, [TN_DTYPE_F64] = LOOP_64(f)}

const tni_loop_table TNI_KERN_NAME(tni_special) = {
    SPECIAL_ROW(SIN, sin),     SPECIAL_ROW(COS, cos),     SPECIAL_ROW(TAN, tan),
    SPECIAL_ROW(ASIN, asin),   SPECIAL_ROW(ACOS, acos),   SPECIAL_ROW(ATAN, atan),
    SPECIAL_ROW(SINH, sinh),   SPECIAL_ROW(COSH, cosh),   SPECIAL_ROW(ASINH, asinh),
    SPECIAL_ROW(ACOSH, acosh), SPECIAL_ROW(ATANH, atanh), SPECIAL_ROW(LOG1P, log1p),
    SPECIAL_ROW(EXPM1, expm1), SPECIAL_ROW(LOG2, log2),   SPECIAL_ROW(LOG10, log10),
    SPECIAL_ROW(EXP2, exp2),
};

const tni_loop_table TNI_KERN_NAME(tni_special2) = {
    SPECIAL_ROW(POW, pow),
    REAL_ROW(ERF, erf),
    REAL_ROW(ERFINV, erfinv),
    ROW(LGAMMA) = {[TN_DTYPE_F32] = lgamma_loop_f32, [TN_DTYPE_F64] = tni_libm_lgamma_f64},
    REAL_ROW(ERFC, erfc),
    REAL_ROW(LOGIT, logit),
    REAL_ROW(XLOGY, xlogy),
    REAL_ROW(ATAN2, atan2),
    REAL_ROW(HYPOT, hypot),
    SPECIAL_ROW(LOGADDEXP, logaddexp),
};
