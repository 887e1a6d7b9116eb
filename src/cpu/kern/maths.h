/* SPDX-License-Identifier: MIT */
/* cpu/kern/maths.h: exp, log and relatives, one element at a time, without branches, so that loops
 * over them vectorise. No fused multiply-add: every instruction set gives the same bits. Accuracy
 * is tested in tests/cpu/test_maths.c: within 2 units in the last place. Range reductions and
 * polynomials are those of Cephes (S. Moshier) and, for log of a double, of fdlibm (Sun
 * Microsystems). */
#ifndef TNI_CPU_KERN_MATHS_H
#define TNI_CPU_KERN_MATHS_H

#include <math.h>
#include <stdint.h>
#include <string.h>

static inline uint32_t bits_f32(float x)
{
    uint32_t b;
    memcpy(&b, &x, sizeof b);
    return b;
}
static inline float from_bits_f32(uint32_t b)
{
    float x;
    memcpy(&x, &b, sizeof x);
    return x;
}
static inline uint64_t bits_f64(double x)
{
    uint64_t b;
    memcpy(&b, &x, sizeof b);
    return b;
}
static inline double from_bits_f64(uint64_t b)
{
    double x;
    memcpy(&x, &b, sizeof x);
    return x;
}

/* exp of at most half of log 2: the polynomial whose relative error, 4e-9, is the smallest. */
static inline float exp_near_zero_f32(float r)
{
    float p = 1.3814568520e-3f;
    p = p * r + 8.3687314764e-3f;
    p = p * r + 4.1668388993e-2f;
    p = p * r + 1.6666521132e-1f;
    p = p * r + 4.9999994040e-1f;
    return (p * (r * r) + r) + 1.0f;
}

/* Adding 1.5 * 2^23 leaves the nearest integer in the low bits. Comparisons let NaN through. The
 * power of two is applied in two steps, so that results down to the smallest subnormal are right;
 * it is halved without a sign, because of NaN, and because vectors of 64-bit integers have no other
 * shift.
 */
static inline float exp_f32(float x)
{
    x = x > 89.0f ? 89.0f : x;
    x = x < -104.0f ? -104.0f : x;
    float shifted = x * 1.44269504088896341f + 0x1.8p+23f;
    float k = shifted - 0x1.8p+23f;
    uint32_t e = bits_f32(shifted) - bits_f32(0x1.8p+23f);
    float r = x - k * 0.693359375f;
    r = r - k * -2.12194440e-4f;
    uint32_t half = ((e + 512) >> 1) - 256;
    return exp_near_zero_f32(r) * from_bits_f32((half + 127) << 23) *
           from_bits_f32((e - half + 127) << 23);
}

/* The same bits in fewer steps, where the result is a normal number: up to this magnitude. */
#define EXP_INSIDE 87.0f
static inline float exp_inside_f32(float x)
{
    /* The constant leaves the exponent of the result, biased, in the low bits. */
    float shifted = x * 1.44269504088896341f + (0x1.8p+23f + 127.0f);
    float k = shifted - (0x1.8p+23f + 127.0f);
    float r = x - k * 0.693359375f;
    r = r - k * -2.12194440e-4f;
    return exp_near_zero_f32(r) * from_bits_f32(bits_f32(shifted) << 23);
}

/* exp of what is at most 0: results below 2^-126 are 0. */
static inline float exp_down_f32(float x)
{
    return exp_inside_f32(x < -88.0f ? -88.0f : x);
}

static inline double exp_f64(double x)
{
    x = x > 710.0 ? 710.0 : x;
    x = x < -746.0 ? -746.0 : x;
    double shifted = x * 1.4426950408889634073599 + 0x1.8p+52;
    double k = shifted - 0x1.8p+52;
    uint64_t e = bits_f64(shifted) - bits_f64(0x1.8p+52);
    double r = x - k * 6.93145751953125e-1;
    r = r - k * 1.42860682030941723212e-6;
    double s = r * r;
    double p = 1.26177193074810590878e-4;
    p = p * s + 3.02994407707441961300e-2;
    p = p * s + 9.99999999999999999910e-1;
    p = p * r;
    double q = 3.00198505138664455042e-6;
    q = q * s + 2.52448340349684104192e-3;
    q = q * s + 2.27265548208155028766e-1;
    q = q * s + 2.0;
    p = 1.0 + 2.0 * (p / (q - p));
    uint64_t half = ((e + 4096) >> 1) - 2048;
    return p * from_bits_f64((half + 1023) << 52) * from_bits_f64((e - half + 1023) << 52);
}

/* log((1 + m) * 2^k) for 1 + m from sqrt(1/2) to sqrt(2), and k as a float. */
static inline float log_of_parts_f32(float m, float k)
{
    float z = m * m;
    float p = 7.0376836292e-2f;
    p = p * m + -1.1514610310e-1f;
    p = p * m + 1.1676998740e-1f;
    p = p * m + -1.2420140846e-1f;
    p = p * m + 1.4249322787e-1f;
    p = p * m + -1.6668057665e-1f;
    p = p * m + 2.0000714765e-1f;
    p = p * m + -2.4999993993e-1f;
    p = p * m + 3.3333331174e-1f;
    p = p * m + -0.5f;
    return (m + (p * z + k * -2.12194440e-4f)) + k * 0.693359375f;
}

#define ROOT_HALF_BITS 0x3f3504f3u

static inline float log_f32(float x)
{
    int tiny = x < 0x1p-126f;
    uint32_t up = bits_f32(tiny ? x * 0x1p+23f : x) - ROOT_HALF_BITS;
    int32_t k = ((int32_t)up >> 23) - (tiny ? 23 : 0);
    float m = from_bits_f32((up & 0x007fffffu) + ROOT_HALF_BITS) - 1.0f;
    float y = log_of_parts_f32(m, (float)k);
    y = x == INFINITY ? INFINITY : y;
    y = x == 0.0f ? -INFINITY : y;
    return x >= 0.0f ? y : NAN;
}

/* The same bits in fewer steps, of positive normal numbers. */
static inline float log_inside_f32(float x)
{
    uint32_t up = bits_f32(x) - ROOT_HALF_BITS;
    float m = from_bits_f32((up & 0x007fffffu) + ROOT_HALF_BITS) - 1.0f;
    return log_of_parts_f32(m, (float)((int32_t)up >> 23));
}

static inline double log_f64(double x)
{
    int tiny = x < 0x1p-1022;
    uint64_t b = bits_f64(tiny ? x * 0x1p+54 : x);
    uint64_t up = b - 0x3fe6a09e667f3bcdu; /* sqrt(1/2) */
    /* The exponent without a 64-bit arithmetic shift or conversion, which vectors lack: as a small
     * positive number in the low bits of a double. */
    uint64_t biased = (up + 0x7fe0000000000000u) >> 52;
    double k =
        from_bits_f64(biased | 0x4330000000000000u) - (0x1p+52 + 2046.0) - (tiny ? 54.0 : 0.0);
    double f = from_bits_f64((up & 0x000fffffffffffffu) + 0x3fe6a09e667f3bcdu) - 1.0;
    double s = f / (2.0 + f);
    double z = s * s, w = z * z;
    double even = w * (3.999999999940941908e-01 +
                       w * (2.222219843214978396e-01 + w * 1.531383769920937332e-01));
    double odd = z * (6.666666666666735130e-01 +
                      w * (2.857142874366239149e-01 +
                           w * (1.818357216161805012e-01 + w * 1.479819860511658591e-01)));
    double half_square = 0.5 * f * f;
    double y =
        k * 6.93147180369123816490e-01 -
        ((half_square - (s * (half_square + (even + odd)) + k * 1.90821492927058770002e-10)) - f);
    y = x == (double)INFINITY ? (double)INFINITY : y;
    y = x == 0.0 ? (double)-INFINITY : y;
    return x >= 0.0 ? y : (double)NAN;
}

static inline float sigmoid_f32(float x)
{
    return 1.0f / (1.0f + exp_f32(-x));
}
static inline double sigmoid_f64(double x)
{
    return 1.0 / (1.0 + exp_f64(-x));
}

static inline float tanh_f32(float x)
{
    float a = fabsf(x), z = x * x;
    float p = -5.70498872745e-3f;
    p = p * z + 2.06390887954e-2f;
    p = p * z + -5.37397155531e-2f;
    p = p * z + 1.33314422036e-1f;
    p = p * z + -3.33332819422e-1f;
    float near_zero = p * z * a + a;
    /* From 10 on, and long before, the quotient is too small to be seen. */
    float b = a > 10.0f ? 10.0f : a;
    float far = 1.0f - 2.0f / (exp_inside_f32(b + b) + 1.0f);
    return copysignf(a < 0.625f ? near_zero : far, x); /* of -0 too */
}

static inline double tanh_f64(double x)
{
    double a = fabs(x), z = x * x;
    double p = -9.64399179425052238628e-1;
    p = p * z + -9.92877231001918586564e1;
    p = p * z + -1.61468768441708447952e3;
    double q = z + 1.12811678491632931402e2;
    q = q * z + 2.23548839060100448583e3;
    q = q * z + 4.84406305325125486048e3;
    double near_zero = a * (z * (p / q)) + a;
    double far = 1.0 - 2.0 / (exp_f64(a + a) + 1.0);
    return copysign(a < 0.625 ? near_zero : far, x);
}

#endif
