/* SPDX-License-Identifier: MIT */
/* cpu/kern/special.h: the less common functions of a float32, computed in double by exp_f64,
 * log_f64 and a few polynomials, then rounded: nearly always the nearest float32, and without
 * branches, so that loops vectorise. Accuracy is tested in tests/cpu/test_special.c: within 2 units
 * in the last place. The approximation of erf is N. Juffa's; atan is a Chebyshev fit, within 3e-9
 * on 0 to 1. */
#ifndef TNI_CPU_KERN_SPECIAL_H
#define TNI_CPU_KERN_SPECIAL_H

#include "cpu/kern/maths.h"

/* Near 0 the direct formulas cancel; a term or two of the series is enough there. */
#define NEAR_ZERO 0x1p-12

static inline double log1p_near(double x)
{
    double y = log_f64(1.0 + x);
    return fabs(x) < NEAR_ZERO ? x * (1.0 - x * (0.5 - x * (1.0 / 3))) : y;
}
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

/* sin and cos of x, for |x| up to TRIG_FAR: x = q * pi/2 + r. pi/2 in two parts: the first has 33
 * bits, so that its product with q is exact. */
#define TRIG_FAR 0x1p+19f
static inline void sin_cos(double x, double *s, double *c)
{
    double shifted = x * 0.63661977236758134308 + 0x1.8p+52;
    double q = shifted - 0x1.8p+52;
    uint64_t quadrant = bits_f64(shifted);
    double r = (x - q * 1.57079632673412561417e+00) - q * 6.07710050650619224932e-11;
    double z = r * r;
    double p = -2.50521083854417187751e-8;
    p = p * z + 2.75573192239858906526e-6;
    p = p * z + -1.98412698412698412698e-4;
    p = p * z + 8.33333333333333333333e-3;
    p = p * z + -1.66666666666666666667e-1;
    double sine = r + r * z * p;
    p = 2.08767569878680989792e-9;
    p = p * z + -2.75573192239858906526e-7;
    p = p * z + 2.48015873015873015873e-5;
    p = p * z + -1.38888888888888888889e-3;
    p = p * z + 4.16666666666666666667e-2;
    p = p * z + -0.5;
    double cosine = 1.0 + z * p;
    double a = quadrant & 1 ? cosine : sine, b = quadrant & 1 ? sine : cosine;
    *s = quadrant & 2 ? -a : a;
    *c = (quadrant + 1) & 2 ? -b : b;
}
static inline float sin_near(float x)
{
    double s, c;
    sin_cos((double)x, &s, &c);
    return x == 0.0f ? x : (float)s;
}
static inline float cos_near(float x)
{
    double s, c;
    sin_cos((double)x, &s, &c);
    return (float)c;
}
static inline float tan_near(float x)
{
    double s, c;
    sin_cos((double)x, &s, &c);
    return x == 0.0f ? x : (float)(s / c);
}

static inline float erf_f32(float x)
{
    float t = fabsf(x), s = x * x;
    float r = -1.72853470e-5f * t + 3.83197126e-4f;
    float u = -3.88396438e-3f * t + 2.42546219e-2f;
    r = r * s + u;
    r = r * t + -1.06777877e-1f;
    r = r * t + -6.34846687e-1f;
    r = r * t + -1.28717512e-1f;
    r = r * t + -t;
    /* Beyond 4 the result is 1, and the polynomial turns round. */
    float far = 1.0f - exp_f32(t > 4.0f ? -104.0f : r);
    float q = -5.96761703e-4f;
    q = q * s + 4.99119423e-3f;
    q = q * s + -2.67681349e-2f;
    q = q * s + 1.12819925e-1f;
    q = q * s + -3.76125336e-1f;
    q = q * s + 1.28379166e-1f;
    return t > 0.927734375f ? copysignf(x == x ? far : x, x) : q * x + x;
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
