/* SPDX-License-Identifier: MIT */
/* cpu/kern/special.h: the less common functions of a float32, without branches, so that loops
 * vectorise. Those that are used most are computed in float32; the others in double by exp_f64,
 * log_f64 and a few polynomials, then rounded: nearly always the nearest float32. Accuracy is
 * tested in tests/cpu/test_special.c: within 2 units in the last place. The approximation of erf is
 * N. Juffa's; atan is a Chebyshev fit, within 3e-9 on 0 to 1. */
#ifndef TNI_CPU_KERN_SPECIAL_H
#define TNI_CPU_KERN_SPECIAL_H

#include "cpu/kern/maths.h"
#include "cpu/kern/trig.h"

/* 2^x: the whole part of x is the exponent. Of magnitudes up to EXP2_INSIDE results are normal. */
#define EXP2_INSIDE 125.0f
static inline float exp2_inside_f32(float x)
{
    float shifted = x + (0x1.8p+23f + 127.0f);
    float r = (x - (shifted - (0x1.8p+23f + 127.0f))) * 6.93147181e-1f;
    return exp_near_zero_f32(r) * from_bits_f32(bits_f32(shifted) << 23);
}
static inline float exp2_f32(float x)
{
    x = x > 129.0f ? 129.0f : x;
    x = x < -152.0f ? -152.0f : x;
    float shifted = x + 0x1.8p+23f;
    float r = (x - (shifted - 0x1.8p+23f)) * 6.93147181e-1f;
    uint32_t e = bits_f32(shifted) - bits_f32(0x1.8p+23f), half = ((e + 512) >> 1) - 256;
    return exp_near_zero_f32(r) * from_bits_f32((half + 127) << 23) *
           from_bits_f32((e - half + 127) << 23);
}

/* log(1 + x): what 1 + x rounds away is put back beside the mantissa. From 2^25 on there is nothing
 * to put back, and the power of two may be out of range. */
static inline float log1p_any_f32(float x)
{
    float u = 1.0f + x;
    uint32_t up = bits_f32(u) - ROOT_HALF_BITS;
    float m = from_bits_f32((up & 0x007fffffu) + ROOT_HALF_BITS) - 1.0f;
    float rest = (x - (u - 1.0f)) * from_bits_f32(0x3f800000u - (up & 0xff800000u));
    float y = log_of_parts_f32(x < 0x1p+25f ? m + rest : m, (float)((int32_t)up >> 23));
    y = x == INFINITY ? x : y;
    y = x == -1.0f ? -INFINITY : y;
    y = x == 0.0f ? x : y; /* -0 */
    return x >= -1.0f ? y : NAN;
}

/* The inverse of erf: x times a polynomial of w = -log(1 - x^2), or of its root where x is near 1.
 * Fitted such that the largest relative error is the smallest: 2e-8 and 3e-8. */
#define ERFINV_INSIDE 0.9979f
static inline float erfinv_inside_f32(float x)
{
    float w = -log_inside_f32((1.0f - x) * (1.0f + x));
    float p = -7.38284234e-09f;
    p = p * w + 1.90109986e-07f;
    p = p * w + -1.69500152e-06f;
    p = p * w + 2.6099342e-06f;
    p = p * w + 4.84423908e-05f;
    p = p * w + -0.000133855763f;
    p = p * w + -0.00232847268f;
    p = p * w + 0.0115460241f;
    p = p * w + 0.232014269f;
    p = p * w + 0.886226892f;
    return p * x;
}
static inline float erfinv_f32(float x)
{
    float a = fabsf(x);
    float w = sqrtf(-log_inside_f32((1.0f - x) * (1.0f + x))) - 3.25f;
    float p = -0.000138988369f;
    p = p * w + -0.000269558455f;
    p = p * w + 0.00109780673f;
    p = p * w + -0.00172084186f;
    p = p * w + 0.00244488823f;
    p = p * w + -0.00374674564f;
    p = p * w + 0.00537590962f;
    p = p * w + 1.0052588f;
    p = p * w + 3.08388543f;
    float y = a > ERFINV_INSIDE ? p * x : erfinv_inside_f32(x);
    y = a == 1.0f ? copysignf(INFINITY, x) : y;
    return a <= 1.0f ? y : NAN;
}

/* Near 0 the direct formulas cancel; a term or two of the series is enough there. */
#define NEAR_ZERO 0x1p-12

static inline double expm1_near(double x)
{
    double y = exp_f64(x) - 1.0;
    return fabs(x) < NEAR_ZERO ? x * (1.0 + x * (0.5 + x * (1.0 / 6))) : y;
}
static inline double sinh_near(double x)
{
    double e = exp_f64(x), y = 0.5 * (e - 1.0 / e);
    return fabs(x) < NEAR_ZERO ? x * (1.0 + x * x * (1.0 / 6)) : y;
}
static inline double cosh_near(double x)
{
    double e = exp_f64(x);
    return 0.5 * (e + 1.0 / e);
}
static inline double asinh_near(double x)
{
    double a = fabs(x), y = copysign(log_f64(a + sqrt(a * a + 1.0)), x);
    return a < NEAR_ZERO ? x * (1.0 - x * x * (1.0 / 6)) : y;
}
static inline double acosh_near(double x)
{
    double y = log_f64(x + sqrt((x - 1.0) * (x + 1.0)));
    return x >= 1.0 ? y : (double)NAN;
}
static inline double atanh_near(double x)
{
    double y = 0.5 * log_f64((1.0 + x) / (1.0 - x));
    return fabs(x) < NEAR_ZERO ? x * (1.0 + x * x * (1.0 / 3)) : y;
}

/* Both for 0 <= t <= 1. */
static inline double atan_unit(double t)
{
    double z = t * t, p = -0.0017437011383732673;
    p = p * z + 0.010680719422539797;
    p = p * z + -0.03071750886183574;
    p = p * z + 0.05746355780720025;
    p = p * z + -0.08372063945718174;
    p = p * z + 0.10940198964371046;
    p = p * z + -0.14261573680139647;
    p = p * z + 0.19998230640360679;
    p = p * z + -0.3333328229551088;
    p = p * z + 0.99999999754602;
    return p * t;
}
#define HALF_PI 1.57079632679489661923
static inline double atan2_near(double y, double x)
{
    double ay = fabs(y), ax = fabs(x);
    double low = ay < ax ? ay : ax, high = ay < ax ? ax : ay;
    double t = low / high;
    t = low == high ? 1.0 : t; /* infinities, and zeros, which … */
    double r = atan_unit(t);
    r = ay > ax ? HALF_PI - r : r;
    r = high == 0.0 ? 0.0 : r; /* … have no direction */
    /* The sign bit, not x < 0: -0.0 points the other way. */
    r = copysign(1.0, x) < 0.0 ? 2 * HALF_PI - r : r;
    r = copysign(r, y);
    return (x != x) | (y != y) ? (double)NAN : r;
}

static inline float erf_f32(float x)
{
    /* From 4 on the result is 1, and further on the polynomial turns round. */
    float a = fabsf(x), t = a > 4.0f ? 4.0f : a, s = t * t;
    float r = -1.72853470e-5f * t + 3.83197126e-4f;
    float u = -3.88396438e-3f * t + 2.42546219e-2f;
    r = r * s + u;
    r = r * t + -1.06777877e-1f;
    r = r * t + -6.34846687e-1f;
    r = r * t + -1.28717512e-1f;
    r = r * t + -t;
    float far = 1.0f - exp_inside_f32(r);
    float q = -5.96761703e-4f;
    q = q * s + 4.99119423e-3f;
    q = q * s + -2.67681349e-2f;
    q = q * s + 1.12819925e-1f;
    q = q * s + -3.76125336e-1f;
    q = q * s + 1.28379166e-1f;
    return a > 0.927734375f ? copysignf(far, x) : q * x + x;
}

/* The probability that a normally distributed number is at most x, off by 2e-7 at most: half of 1 +
 * erf(x / sqrt 2), the erf as a quotient of polynomials, fitted by least squares such that the
 * error times x is small. Where so little is missing to 0 or 1 that this is no closer, it is 0
 * or 1. */
static inline float normal_cdf_f32(float x)
{
    float z = x * x, p = 2.35136248e-8f, q = 1.22566041e-6f;
    p = p * z + 6.43340491e-6f;
    p = p * z + 1.67518869e-4f;
    p = p * z + 4.67092171e-3f;
    p = p * z + 3.3633206e-2f;
    p = p * z + 3.98942173e-1f;
    q = q * z + 7.3694835e-5f;
    q = q * z + 1.87681441e-3f;
    q = q * z + 2.85387281e-2f;
    q = q * z + 2.50971437e-1f;
    q = q * z + 1.0f;
    return 0.5f + (fabsf(x) > 5.16f ? copysignf(0.5f, x) : x * p / q);
}

/* The slope of x times that probability, which is the probability plus x times the density, off by
 * 3e-7 at most: fitted in the same way, without the exponential. */
static inline float gelu_slope_f32(float x)
{
    float z = x * x, p = -2.09897576e-11f, q = 4.67229041e-6f;
    p = p * z + 3.7354981e-9f;
    p = p * z + -1.90176037e-7f;
    p = p * z + 3.25778854e-5f;
    p = p * z + -2.03178993e-4f;
    p = p * z + 1.46549023e-2f;
    p = p * z + -4.48709971e-2f;
    p = p * z + 7.97884684e-1f;
    q = q * z + 1.37673506e-4f;
    q = q * z + 2.78172074e-3f;
    q = q * z + 3.57294637e-2f;
    q = q * z + 2.77097246e-1f;
    q = q * z + 1.0f;
    return 0.5f + (fabsf(x) > 5.7f ? copysignf(0.5f, x) : x * p / q);
}

/* In double the logarithm has digits enough for any exponent. */
static inline float pow_f32(float base, float exponent)
{
    double x = (double)base, y = (double)exponent, a = fabs(x);
    double r = exp_f64(y * log_f64(a));
    double half = 0.5 * y;
    int whole = floor(y) == y, odd = whole & (floor(half) != half);
    r = a == 1.0 ? 1.0 : r; /* whatever infinity the exponent is */
    r = (copysign(1.0, x) < 0.0) & odd ? -r : r;
    r = (x < 0.0) & (a != (double)INFINITY) & !whole ? (double)NAN : r;
    r = y != y ? y : r;
    return (float)((y == 0.0) | (x == 1.0) ? 1.0 : r);
}

/* log(1 + x) for x >= 0, in float32: what 1 + x rounds away is put back. */
static inline float log1p_f32(float x)
{
    float u = 1.0f + x;
    return u == INFINITY ? u : log_f32(u) + (x - (u - 1.0f)) / u;
}
static inline double log1p_f64(double x)
{
    double u = 1.0 + x;
    return u == (double)INFINITY ? u : log_f64(u) + (x - (u - 1.0)) / u;
}

#endif
