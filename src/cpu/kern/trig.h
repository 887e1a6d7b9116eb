/* SPDX-License-Identifier: MIT */
/* cpu/kern/trig.h: sin, cos and tan of a float32: angles up to TRIG_NEAR in float32 alone, up to
 * TRIG_FAR in double; larger ones are for the C library. Polynomials for the near ones are fitted
 * such that the largest error of the result is the smallest. Accuracy is tested in
 * tests/cpu/test_special.c and test_ulp.c. */
#ifndef TNI_CPU_KERN_TRIG_H
#define TNI_CPU_KERN_TRIG_H

#include "cpu/kern/fits32.h"
#include "cpu/kern/maths.h"

/* |x| up to TRIG_NEAR as q * pi/2 + high + low. pi/2 in three parts: q has 8 bits and the first two
 * parts 16, so that their products with q are exact; `low` is what the difference of the second
 * step rounds away, less the third part. The quadrant is in the lowest two bits. */
#define TRIG_NEAR 400.0f
static inline uint32_t trig_reduce(float x, float *high, float *low)
{
    float shifted = x * 6.36619772e-1f + 0x1.8p+23f;
    float q = shifted - 0x1.8p+23f;
    float first = x - q * 0x1.921ep+0f, second = q * 0x1.b544p-16f;
    *high = first - second;
    *low = ((first - *high) - second) - q * 6.07710051e-11f;
    return bits_f32(shifted);
}
static inline void sin_cos_near(float x, float *s, float *c)
{
    float high, low;
    uint32_t quadrant = trig_reduce(x, &high, &low);
    float r = high + low, z = r * r;
    float p = -1.95160115e-4f;
    p = p * z + 8.33216868e-3f;
    p = p * z + -1.66666552e-1f;
    float sine = high + (low + r * z * p);
    p = 2.44370058e-5f;
    p = p * z + -1.38873549e-3f;
    p = p * z + 4.16666456e-2f;
    float half = 0.5f * z, most = 1.0f - half;
    float cosine = most + (((1.0f - most) - half) + z * z * p);
    float a = quadrant & 1 ? cosine : sine, b = quadrant & 1 ? sine : cosine;
    *s = from_bits_f32(bits_f32(a) ^ ((quadrant & 2) << 30));
    *c = from_bits_f32(bits_f32(b) ^ (((quadrant + 1) & 2) << 30));
}
static inline float sin_near(float x)
{
    float s, c;
    sin_cos_near(x, &s, &c);
    return x == 0.0f ? x : s;
}
static inline float cos_near(float x)
{
    float s, c;
    sin_cos_near(x, &s, &c);
    return c;
}
/* tan(r) from its polynomial as a sum, of which -1 / tan(r) in odd quadrants is taken, so that what
 * the sum rounds away counts there too. */
static inline float tan_near(float x)
{
    float high, low;
    uint32_t quadrant = trig_reduce(x, &high, &low);
    float r = high + low, z = r * r;
    float p = fit32_tan[6];
    for (int i = 5; i >= 0; i--)
        p = p * z + fit32_tan[i];
    float more = low + r * z * p, t = high + more, rest = (high - t) + more;
    float inverse = -1.0f / t;
    inverse = inverse + inverse * (inverse * rest);
    return x == 0.0f ? x : quadrant & 1 ? inverse : t;
}

/* sin and cos in double, for |x| up to TRIG_FAR: x = q * pi/2 + r. pi/2 in two parts: the first has
 * 33 bits, so that its product with q is exact. */
#define TRIG_FAR 0x1p+19f
static inline void sin_cos_far(double x, double *s, double *c)
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
static inline float sin_far(float x)
{
    double s, c;
    sin_cos_far((double)x, &s, &c);
    return (float)s;
}
static inline float cos_far(float x)
{
    double s, c;
    sin_cos_far((double)x, &s, &c);
    return (float)c;
}
static inline float tan_far(float x)
{
    double s, c;
    sin_cos_far((double)x, &s, &c);
    return (float)(s / c);
}

#endif
