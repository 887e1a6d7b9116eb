/* SPDX-License-Identifier: MIT */
/* cpu/kern/special.h: the less common functions of a float32, without branches, so that loops
 * vectorise. Those that are used most are computed in float32; the others in double by exp_f64,
 * log_f64 and a few polynomials, then rounded: nearly always the nearest float32. Accuracy is
 * tested in tests/cpu/test_special.c: within 2 units in the last place. atan is a
 * Chebyshev fit, within 3e-9 on 0 to 1. erf is in vec32.h. */
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

/* x as a mantissa 1 + m from sqrt(1/2) to sqrt(2) and a power of two, of which k is the exponent;
 * x is a positive normal number. */
static inline float mantissa_f32(float x, float *k)
{
    uint32_t up = bits_f32(x) - ROOT_HALF_BITS;
    *k = (float)((int32_t)up >> 23);
    return from_bits_f32((up & 0x007fffffu) + ROOT_HALF_BITS) - 1.0f;
}
/* log(1 + m) - m for such a mantissa: a fit whose error is 1e-8 of m at most. */
static inline float log_curve_f32(float m)
{
    float p = -0.0777803915f;
    p = p * m + 0.127773348f;
    p = p * m + -0.131140373f;
    p = p * m + 0.141961457f;
    p = p * m + -0.166270934f;
    p = p * m + 0.200016363f;
    p = p * m + -0.250007787f;
    p = p * m + 0.333333254f;
    p = p * m + -0.499999976f;
    return p * (m * m);
}

/* log2 and log10. The upper half of m times a factor of a few bits is exact, and by far the largest
 * term; powers of two have the exponent itself as log2. */
static inline float upper_f32(float x)
{
    return from_bits_f32(bits_f32(x) & 0xfffff000u);
}
static inline float log2_inside_f32(float x)
{
    float k, m = mantissa_f32(x, &k), most = upper_f32(m);
    float low = (m - most) * 1.4375f + (m * 5.19504088e-3f + log_curve_f32(m) * 1.44269504f);
    return k + (most * 1.4375f + low);
}
static inline float log10_inside_f32(float x)
{
    float k, m = mantissa_f32(x, &k), most = upper_f32(m);
    float low = log_curve_f32(m) * 0.434294482f + (k * 4.60503898e-6f + m * -3.20551810e-3f);
    return k * 0.301025390625f + (most * 0.4375f + ((m - most) * 0.4375f + low));
}
/* Numbers below the normal ones are scaled first; 0, infinity, NaN and negative numbers. */
#define LOG_ANY(name, scale_log)                                                          \
    static inline float name##_f32(float x)                                               \
    {                                                                                     \
        int tiny = x < 0x1p-126f;                                                         \
        float y = name##_inside_f32(tiny ? x * 0x1p+24f : x) - (tiny ? scale_log : 0.0f); \
        y = x == INFINITY ? INFINITY : y;                                                 \
        y = x == 0.0f ? -INFINITY : y;                                                    \
        return x >= 0.0f ? y : NAN;                                                       \
    }
LOG_ANY(log2, 24.0f)
LOG_ANY(log10, 7.22471990f)

/* log(x / (1 - x)), which is 2 atanh(2x - 1): near 1/2 by that, because the quotient is near 1 and
 * what it rounds away would be seen. */
static inline float logit_middle_f32(float x)
{
    float z = 2.0f * x - 1.0f, u = z * z;
    float p = 0.315865214f;
    p = p * u + 0.129355454f;
    p = p * u + 0.22950886f;
    p = p * u + 0.285269789f;
    p = p * u + 0.400009767f;
    p = p * u + 0.666666632f;
    return p * u * z + 2.0f * z;
}
static inline float logit_inside_f32(float x)
{
    float far = log_inside_f32(x / (1.0f - x)), near = logit_middle_f32(x);
    return (x > 0.25f) & (x < 0.75f) ? near : far;
}
static inline float logit_f32(float x)
{
    float far = log_f32(x / (1.0f - x)), near = logit_middle_f32(x);
    return (x > 0.25f) & (x < 0.75f) ? near : far;
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

/* Near 0 the direct formulas cancel; a term or two of the series is enough there. */
#define NEAR_ZERO 0x1p-12

/* exp(x) - 1, in double. */
static inline double expm1_near(double x)
{
    double y = exp_f64(x) - 1.0;
    return fabs(x) < NEAR_ZERO ? x * (1.0 + x * (0.5 + x * (1.0 / 6))) : y;
}
/* The same in float32, of magnitudes up to EXP_INSIDE: 2^k exp(r) - 1 as 2^k (exp(r) - 1) and what
 * is left of 2^k, so that nothing cancels. It has the sign of x, of -0 too. */
static inline float expm1_inside_f32(float x)
{
    float shifted = x * 1.44269504088896341f + (0x1.8p+23f + 127.0f);
    float k = shifted - (0x1.8p+23f + 127.0f);
    float r = x - k * 0.693359375f;
    r = r - k * -2.12194440e-4f;
    float p = 1.9891180158e-4f;
    p = p * r + 1.3933820490e-3f;
    p = p * r + 8.3333107546e-3f;
    p = p * r + 4.1666463386e-2f;
    p = p * r + 1.6666666682e-1f;
    p = p * r + 0.5f;
    p = p * (r * r) + r;
    float power = from_bits_f32(bits_f32(shifted) << 23);
    return copysignf(p * power + (power - 1.0f), x);
}
static inline float expm1_any_f32(float x)
{
    return fabsf(x) <= EXP_INSIDE ? expm1_inside_f32(x) : (float)expm1_near((double)x);
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

/* The same in float32 of one number: of 1/x where x is larger than 1, and what pi/2 has beyond a
 * float32 is taken along. */
#define HALF_PI_HIGH 1.57079637f
#define HALF_PI_LOW  -4.37113883e-8f
static inline float atan_f32(float x)
{
    float a = fabsf(x), t = a > 1.0f ? 1.0f / a : a, z = t * t;
    float p = 2.92069187e-3f;
    p = p * z + -1.63679265e-2f;
    p = p * z + 4.32118582e-2f;
    p = p * z + -7.55221405e-2f;
    p = p * z + 1.0666004e-1f;
    p = p * z + -1.42110553e-1f;
    p = p * z + 1.99937728e-1f;
    p = p * z + -3.33331527e-1f;
    float more = p * z * t;
    float far = HALF_PI_HIGH - (t - (HALF_PI_LOW - more));
    return copysignf(a > 1.0f ? far : t + more, x);
}

/* asin(t) - t for t up to 1/2, whose square is z. */
static inline float asin_more_f32(float t, float z)
{
    float p = 4.21663083e-2f;
    p = p * z + 2.41795148e-2f;
    p = p * z + 4.54703759e-2f;
    p = p * z + 7.49529764e-2f;
    p = p * z + 1.66667525e-1f;
    return p * z * t;
}
/* From 1/2 on asin(a) is pi/2 - 2 asin(sqrt((1 - a) / 2)); above 1 the root is NaN. */
static inline float asin_f32(float x)
{
    float a = fabsf(x), z = a > 0.5f ? 0.5f - 0.5f * a : a * a, t = a > 0.5f ? sqrtf(z) : a;
    float more = asin_more_f32(t, z);
    float start = HALF_PI_HIGH - 2.0f * t, lost = (HALF_PI_HIGH - start) - 2.0f * t;
    float far = start + (lost + (HALF_PI_LOW - 2.0f * more));
    return copysignf(a > 0.5f ? far : t + more, x);
}
static inline float acos_f32(float x)
{
    float a = fabsf(x), z = a > 0.5f ? 0.5f - 0.5f * a : a * a, t = a > 0.5f ? sqrtf(z) : x;
    float more = asin_more_f32(t, z);
    float middle = HALF_PI_HIGH - (t - (HALF_PI_LOW - more)), near_one = 2.0f * (t + more);
    float far = 2.0f * (HALF_PI_HIGH - (t - (HALF_PI_LOW - more)));
    return a <= 0.5f ? middle : x > 0.0f ? near_one : far;
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

/* log of a positive normal double and exp of at most 700, within 2e-11 and 2e-9: as close as a
 * float32 that is made of them needs it. */
static inline double log_short_f64(double x)
{
    uint64_t up = bits_f64(x) - 0x3fe6a09e667f3bcdu; /* as in log_f64 */
    uint64_t biased = (up + 0x7fe0000000000000u) >> 52;
    double k = from_bits_f64(biased | 0x4330000000000000u) - (0x1p+52 + 2046.0);
    double f = from_bits_f64((up & 0x000fffffffffffffu) + 0x3fe6a09e667f3bcdu) - 1.0;
    double s = f / (2.0 + f), z = s * s;
    double p = 0.23330496385645222;
    p = p * z + 0.285508197439718855;
    p = p * z + 0.400001218492552643;
    p = p * z + 0.666666665544855379;
    p = p * z + 2.0;
    return p * s + k * 6.93147180559945309417e-1;
}
static inline double exp_short_f64(double x)
{
    double shifted = x * 1.4426950408889634073599 + (0x1.8p+52 + 1023.0);
    double k = shifted - (0x1.8p+52 + 1023.0);
    double r = x - k * 6.93147180559945309417e-1;
    double p = 0.00139412131000063344;
    p = p * r + 0.0083752102008700164;
    p = p * r + 0.0416663516384445757;
    p = p * r + 0.166664145071695612;
    p = p * r + 0.500000004740139344;
    p = p * r + 1.00000003794329924;
    p = p * r + 1.0;
    return p * from_bits_f64(bits_f64(shifted) << 52);
}

/* In double the logarithm has digits enough for any exponent. Beyond 200 the power is infinite or 0
 * as a float32. */
static inline float pow_f32(float base, float exponent)
{
    double x = (double)base, y = (double)exponent, a = fabs(x);
    double l = log_short_f64(a);
    l = a == 0.0 ? -(double)INFINITY : l;
    l = a < (double)INFINITY ? l : a; /* NaN too */
    double t = y * l;
    t = t > 200.0 ? 200.0 : t;
    t = t < -200.0 ? -200.0 : t;
    double r = exp_short_f64(t);
    double half = 0.5 * y;
    int whole = floor(y) == y, odd = whole & (floor(half) != half);
    r = a == 1.0 ? 1.0 : r; /* whatever infinity the exponent is */
    r = (copysign(1.0, x) < 0.0) & odd ? -r : r;
    r = (x < 0.0) & (a != (double)INFINITY) & !whole ? (double)NAN : r;
    r = y != y ? y : r;
    return (float)((y == 0.0) | (x == 1.0) ? 1.0 : r);
}

/* The logarithm of the gamma function of a positive number: from 1 to 3 by a polynomial that has
 * its zeros, 1 and 2, as factors; below 1 and from 3 to 4 one step further away; above by
 * Stirling's series. */
static inline float lgamma_inside_f32(float of)
{
    double x = (double)of;
    int low = x < 1.0, high = x >= 3.0;
    double l = log_f64(high & (x < 4.0) ? x - 1.0 : x);
    double u = x - (low ? 1.0 : high ? 3.0 : 2.0);
    double p = -9.05981298473925905e-6;
    p = p * u + 1.92308236844363234e-5;
    p = p * u + -9.27991281603373854e-6;
    p = p * u + 2.04818949716597878e-5;
    p = p * u + -8.92520087521526130e-5;
    p = p * u + 1.95539606207749560e-4;
    p = p * u + -4.03461197988734749e-4;
    p = p * u + 9.10639960413309435e-4;
    p = p * u + -2.10851418862599568e-3;
    p = p * u + 4.99944951171847124e-3;
    p = p * u + -1.23841679463097492e-2;
    p = p * u + 3.29649494966774857e-2;
    p = p * u + -1.00317301922346732e-1;
    p = p * u + 4.22784335621349012e-1;
    double near = p * u * (u + 1.0) + (low ? -l : high ? l : 0.0);
    double inverse = 1.0 / x, z = inverse * inverse;
    double s = 1.0 / 1188;
    s = 1.0 / 1680 - s * z;
    s = 1.0 / 1260 - s * z;
    s = 1.0 / 360 - s * z;
    s = 1.0 / 12 - s * z;
    double far = (x - 0.5) * l - x + (0.91893853320467274178 + s * inverse);
    return (float)(x < 4.0 ? near : far);
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
