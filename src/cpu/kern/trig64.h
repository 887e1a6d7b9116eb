/* SPDX-License-Identifier: MIT */
/* cpu/kern/trig64.h: sin, cos and tan of a float64 up to TRIG_REACH, and inverses. Larger angles
 * are for the C library. */
#ifndef TNI_CPU_KERN_TRIG64_H
#define TNI_CPU_KERN_TRIG64_H

#include "cpu/kern/vec64.h"

#define TRIG_REACH 65536.0
static inline vm trig_within(vd x)
{
    return V_MOST(v_abs(x), VD(TRIG_REACH));
}

/* x as q * pi/2 + high + low. q has 16 bits and the first two parts of pi/2 have 37: their products
 * are exact, and so are the differences but for `high`, of which `low` is the rest. The quadrant is
 * in the lowest two bits. */
static inline vu trig_split_64(vd x, vd *high, vd *low)
{
    vd shifted = x * fit_half_pi[0] + 0x1.8p+52;
    vd q = shifted - 0x1.8p+52;
    vd first = V_LESS_EXACT(x, q, VD(fit_half_pi[1]));
    *high = V_LESS_EXACT(first, q, VD(fit_half_pi[2]));
    *low = V_LESS_EXACT(first - *high, q, VD(fit_half_pi[2])) - q * fit_half_pi[3];
    return v_bits(shifted);
}
/* The sine in even quadrants and the cosine in odd ones: high + (low + r z p(z)), and 1 - z/2, in
 * two parts, + z z p(z), by polynomials whose coefficients are the one's or the other's. */
static inline vd trig_wave_64(vd x, vu turn)
{
    vd high, low;
    vu quadrant = trig_split_64(x, &high, &low) + turn;
    vm odd = V_ODD(quadrant);
    vd r = high + low, z = r * r, p = v_pick(odd, VD(fit_cos[6]), VD(fit_sin[5]));
#pragma GCC unroll 5
    for (int i = 4; i >= 0; i--)
        p = p * z + v_pick(odd, VD(fit_cos[i + 1]), VD(fit_sin[i]));
    vd half = 0.5 * z, most = 1.0 - half, more = (1.0 - most) - half;
    more = v_pick(odd, more - r * (low - (r - high)), low);
    vd y = v_pick(odd, most, high) + (more + z * p * v_pick(odd, z, r));
    return v_of(v_bits(y) ^ ((quadrant & 2) << 62));
}
static inline vd sin_64(vd x)
{
    return v_pick(V_SAME(x, VD(0.0)), x, trig_wave_64(x, (vu){0}));
}
static inline vd cos_64(vd x)
{
    return trig_wave_64(x, (vu){0} + 1);
}
/* The quotient of both, each with what its last sum rounds away. */
static inline vd tan_64(vd x)
{
    vd high, low, sine_low, cosine_low, rest;
    vu quadrant = trig_split_64(x, &high, &low);
    vd r = high + low, z = r * r, half = 0.5 * z, most = 1.0 - half;
    vd sine = v_sum_short(high, low + r * z * V_POLY(z, fit_sin), &sine_low);
    vd more = ((1.0 - most) - half) - r * (low - (r - high));
    vd cosine = v_sum_short(most, more + z * z * v_poly(z, fit_cos + 1, 6), &cosine_low);
    vm odd = V_ODD(quadrant);
    vd y = v_quotient(v_pick(odd, cosine, sine), v_pick(odd, cosine_low, sine_low),
                      v_pick(odd, sine, cosine), v_pick(odd, sine_low, cosine_low), &rest);
    y = v_of(v_bits(y + rest) ^ ((quadrant & 1) << 63));
    return v_pick(V_SAME(x, VD(0.0)), x, y);
}

#define HALF_PI_64     1.57079632679489655800e+00
#define HALF_PI_LOW_64 6.12323399573676603587e-17

/* From 1/2 on asin(a) is pi/2 - 2 asin(sqrt((1 - a) / 2)); above 1 the root is NaN. */
static inline vd asin_64(vd x)
{
    vd a = v_abs(x);
    vm far = V_LESS(VD(0.5), a);
    vd z = v_pick(far, 0.5 - 0.5 * a, a * a), t = v_pick(far, V_SQRT(z), a);
    vd more = t * z * V_POLY(z, fit_asin);
    vd cut, y = v_sum_short(VD(HALF_PI_64), -2.0 * t, &cut);
    y = y + (cut + (HALF_PI_LOW_64 - 2.0 * more));
    return v_signed(v_pick(far, v_abs(y), t + more), x);
}
static inline vd acos_64(vd x)
{
    vd a = v_abs(x);
    vm far = V_LESS(VD(0.5), a);
    vd z = v_pick(far, 0.5 - 0.5 * a, a * a), t = v_pick(far, V_SQRT(z), x);
    vd more = t * z * V_POLY(z, fit_asin);
    vd middle = HALF_PI_64 - (t - (HALF_PI_LOW_64 - more));
    return v_pick(v_not(far), middle, v_pick(V_LESS(x, VD(0.0)), 2.0 * middle, 2.0 * (t + more)));
}

/* atan(low / high) for 0 <= low <= high: above sqrt 2 - 1 it is pi/4 more than that of
 * (low - high) / (low + high). */
static inline vd atan_quotient_64(vd low, vd high, vd *rest)
{
    vm far = V_LESS(high * 0.41421356237309503, low);
    vd n_low, d_low, left, n = v_sum_short(high, 0.0 - low, &n_low),
                           d = v_sum_short(high, low, &d_low);
    n = v_pick(far, 0.0 - n, low);
    vd t = v_quotient_close(n, v_pick(far, 0.0 - n_low, VD(0.0)), v_pick(far, d, high),
                            v_pick(far, d_low, VD(0.0)), &left);
    left = v_pick(V_LESS(v_abs(t), VD(0x1p-100)), VD(0.0), left); /* of infinities too */
    vd z = t * t, more = t * z * V_POLY(z, fit_atan) + left;
    vd start = v_pick(far, VD(0.5 * HALF_PI_64), VD(0.0));
    more = more + v_pick(far, VD(0.5 * HALF_PI_LOW_64), VD(0.0));
    vd y = v_sum_short(start, t, rest); /* of 0 and t the order does not matter */
    *rest = *rest + more;
    return y;
}
static inline vd atan_64(vd x)
{
    vd a = v_abs(x), rest;
    vm far = V_LESS(VD(1.0), a);
    vd y = atan_quotient_64(v_pick(far, VD(1.0), a), v_pick(far, a, VD(1.0)), &rest);
    y = v_pick(far, HALF_PI_64 - (y - (HALF_PI_LOW_64 - rest)), y + rest);
    return v_signed(v_abs(y), x);
}
static inline vd atan2_64(vd y, vd x)
{
    vd ay = v_abs(y), ax = v_abs(x), rest;
    vm steep = V_LESS(ax, ay);
    vd low = v_pick(steep, ax, ay), high = v_pick(steep, ay, ax);
    /* Scaled where a sum would overflow, or what a product rounds away vanish; infinities are
     * directions like 1. */
    vm infinite = V_SAME(high, VD((double)INFINITY)), large = V_LESS(VD(0x1p+900), high);
    vd scale = v_pick(V_LESS(high, VD(0x1p-700)), VD(0x1p+600), VD(1.0));
    scale = v_pick(large, VD(0x1p-200), scale);
    low =
        v_pick(infinite, v_pick(V_SAME(low, VD((double)INFINITY)), VD(1.0), VD(0.0)), low * scale);
    high = v_pick(infinite, VD(1.0), high * scale);
    high = v_pick(V_SAME(high, VD(0.0)), VD(1.0), high); /* zeros have no direction */
    vd t = atan_quotient_64(low, high, &rest);
    /* pi/2 less it, or pi less that: one of 0, pi/2 and pi, and the angle or its opposite. The sign
     * bit, not x < 0: -0 points the other way. */
    vm back = V_LESS(v_signed(VD(1.0), x), VD(0.0));
    vd start = v_pick(back, VD(2.0 * HALF_PI_64), VD(0.0)),
       more = v_pick(back, VD(2.0 * HALF_PI_LOW_64), VD(0.0));
    start = v_pick(steep, VD(HALF_PI_64), start);
    more = v_pick(steep, VD(HALF_PI_LOW_64), more);
    vm minus = back ^ steep;
    vd angle = v_pick(minus, 0.0 - t, t), tail = v_pick(minus, 0.0 - rest, rest), cut;
    vd sum = v_sum_short(start, angle, &cut);
    vd r = v_signed(v_abs(sum + (cut + (more + tail))), y);
    return v_pick(V_NAN(x) | V_NAN(y), VD((double)NAN), r);
}

#endif
