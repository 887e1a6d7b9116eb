/* SPDX-License-Identifier: MIT */
/* cpu/kern/pow64.h: functions of two float64: powers, hypot, remainders and sums of exponentials.
 */
#ifndef TNI_CPU_KERN_POW64_H
#define TNI_CPU_KERN_POW64_H

#include "cpu/kern/exp64.h"
#include "cpu/kern/log64.h"

/* log of a positive normal number as a sum of two, within 2^-64 of it: r as a sum of two, of which
 * the square is taken exactly. `down` is subtracted from the exponent. */
static inline vd log_twice_64(vd x, vd down, vd *low)
{
    vu up = v_bits(x) - LOG_FIRST, piece = up >> 48;
    vd k = v_exponent(up) - down, c = v_look(fit_log_centre, piece);
    vd inverse = v_look(fit_log_inverse, piece);
    vd d = v_of((up & 0x000fffffffffffffu) + LOG_FIRST) - c, r = d * inverse;
    vd upper = v_upper(r); /* c has few bits: products with the parts are exact */
    vd rest = ((d - upper * c) - (r - upper) * c) * inverse;
    vd square, square_low, cut1, cut2;
    square = v_product(r, r, &square_low);
    vd high = V_MORE_EXACT(v_look(fit_log_high, piece), k, VD(fit_log_of_2[0]));
    vd more = V_POLY(r, fit_log_cube) * (square * r) - r * rest;
    high = v_sum_short(high, r, &cut1); /* 0, or larger than r */
    vd sum = v_sum_short(high, -0.5 * square, &cut2);
    vd tail = (k * fit_log_of_2[1] + v_look(fit_log_low, piece)) + (rest - 0.5 * square_low);
    tail = tail + (cut1 + cut2) + more;
    return v_sum_short(sum, tail, low);
}

/* x^y as exp(y log |x|), the exponent as a sum of two. */
static inline vd pow_64(vd x, vd y)
{
    const double inf = (double)INFINITY;
    vd a = v_abs(x), low, rest;
    vm tiny = V_LESS(a, VD(0x1p-1022));
    vd l = log_twice_64(v_pick(tiny, a * 0x1p+54, a), v_pick(tiny, VD(54.0), VD(0.0)), &low);
    /* An exponent of 2^66 is as good as a larger one. */
    vd b = V_MAX(VD(-0x1p+66), V_MIN(VD(0x1p+66), y)), t = v_product(b, l, &rest);
    rest = v_pick(V_LESS(v_abs(t), VD(800.0)), rest + b * low, VD(0.0));
    exp_parts e = exp_split_sum_64(V_MAX(VD(-746.0), V_MIN(VD(710.0), t)), rest);
    vd root = v_look(fit_roots, v_bits(e.shifted));
    vd r = v_scale(root + (root * e.p + v_look(fit_roots_low, v_bits(e.shifted))), e.k, e.shifted);
    /* 0 and infinities, to which 0 and infinity are the powers. */
    vm zero = V_SAME(a, VD(0.0)), infinite = V_SAME(a, VD(inf)),
       endless = V_SAME(v_abs(y), VD(inf));
    vm grows = v_not(V_LESS(VD(1.0), a) ^ V_LESS(VD(0.0), y));
    r = v_pick(zero | infinite | endless, v_pick(grows, VD(inf), VD(0.0)), r);
    r = v_pick(endless & V_SAME(a, VD(1.0)), VD(1.0), r);
    /* Of negative numbers there are whole powers alone. */
    vd half = 0.5 * y;
    vm whole = V_SAME(V_FLOOR(y), y), odd = whole & v_not(V_SAME(V_FLOOR(half), half));
    vm minus = V_LESS(v_signed(VD(1.0), x), VD(0.0)) & odd;
    r = v_of(v_bits(r) ^ (v_bits(v_pick(minus, VD(-0.0), VD(0.0)))));
    r = v_pick(V_LESS(x, VD(0.0)) & v_not(infinite) & v_not(whole), VD((double)NAN), r);
    r = v_pick(V_NAN(x) | V_NAN(y), VD((double)NAN), r);
    return v_pick(V_SAME(y, VD(0.0)) | V_SAME(x, VD(1.0)), VD(1.0), r);
}

/* Scaled where squares would overflow or vanish. */
static inline vd hypot_64(vd x, vd y)
{
    const double inf = (double)INFINITY;
    vd a = v_abs(x), b = v_abs(y);
    vm less = V_LESS(a, b);
    vd high = v_pick(less, b, a), low = v_pick(less, a, b);
    vm large = V_LESS(VD(0x1p+500), high), small = V_LESS(high, VD(0x1p-450));
    vd scale = v_pick(large, VD(0x1p-600), v_pick(small, VD(0x1p+600), VD(1.0)));
    vd back = v_pick(large, VD(0x1p+600), v_pick(small, VD(0x1p-600), VD(1.0)));
    high = high * scale;
    low = low * scale;
    vd r = V_SQRT(high * high + low * low) * back;
    r = v_pick(V_NAN(x) | V_NAN(y), VD((double)NAN), r);
    return v_pick(V_SAME(a, VD(inf)) | V_SAME(b, VD(inf)), VD(inf), r);
}

/* What is left of x after a whole number of y, below 2^52 of them: their product is exact as a sum
 * of two, and so is the difference. The quotient may have been rounded up to the next integer; then
 * the rest has the wrong sign. */
static inline vm fmod_within(vd x, vd y)
{
    vd b = v_abs(y);
    return V_LESS(v_abs(x / y), VD(0x1p+52)) & V_LESS(b, VD(0x1p+1000)) & V_LESS(VD(0x1p-900), b);
}
static inline vd fmod_64(vd x, vd y)
{
    vd a = v_abs(x), b = v_abs(y), low, p = v_product(V_TRUNC(a / b), b, &low);
    vd r = (a - p) - low;
    return v_signed(v_abs(v_pick(V_LESS(r, VD(0.0)), r + b, r)), x);
}
/* With the sign of the divisor. */
static inline vd remainder_64(vd x, vd y)
{
    vd r = fmod_64(x, y);
    vm wrong = V_LESS(y, VD(0.0)) ^ V_LESS(r, VD(0.0));
    return v_pick(v_not(V_SAME(r, VD(0.0))) & wrong, r + y, r);
}

static inline vd xlogy_64(vd x, vd y)
{
    vd r = v_pick(V_SAME(x, VD(0.0)), VD(0.0), x * log_64(y));
    return v_pick(V_NAN(y), y, r);
}
static inline vd logaddexp_64(vd x, vd y)
{
    vd high = v_pick(V_LESS(y, x), x, y), d = v_abs(x - y), e = exp_64(0.0 - d), u = 1.0 + e;
    vd r = high + log_sum_64(u, e - (u - 1.0));
    r = v_pick(V_SAME(x, y) & V_SAME(v_abs(x), VD((double)INFINITY)), x, r);
    return v_pick(V_NAN(x) | V_NAN(y), VD((double)NAN), r);
}

#endif
