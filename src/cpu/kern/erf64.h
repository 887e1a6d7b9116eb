/* SPDX-License-Identifier: MIT */
/* cpu/kern/erf64.h: the error function of a float64, what it lacks to 1, its inverse, and the
 * normal distribution by it; by polynomials of the pieces in which arguments are cut. */
#ifndef TNI_CPU_KERN_ERF64_H
#define TNI_CPU_KERN_ERF64_H

#include "cpu/kern/exp64.h"
#include "cpu/kern/log64.h"

/* Up to 3/8 what erf has beyond x is a polynomial; from there on it is cut in pieces, in which the
 * first term is known in two parts. At the limit it is 1. */
static inline vd erf_64(vd x)
{
    vd a = V_MIN(VD(5.9375), v_abs(x)), from = a - 0.375,
       shifted = from * (64.0 / 23.0) + 0x1.8p+52;
    vu i = v_bits(shifted);
    vd u = V_LESS_EXACT(from, shifted - 0x1.8p+52, VD(0.359375));
    vd far = V_MIN(VD(1.0), V_PIECE(u, i, fit_erf) + v_look(fit_erf[0], i));
    return v_signed(v_pick(V_LESS(a, VD(0.375)), a + a * V_POLY(a * a, fit_erf_near), far), x);
}

/* The piece of t of a table that has four for each power of two, and how far t is from its middle.
 */
static inline vu piece_64(vd t, vd *middle)
{
    *middle = v_of((v_bits(t) & 0xfffc000000000000u) | 0x0002000000000000u);
    return v_bits(t) >> 50;
}
/* exp(-square - low) times the scaled function of `a`, up to 27.5: erfc(a) where the square is a's.
 * Of both factors the largest part has 26 bits, so that their product is exact. The power of two is
 * applied last, so that results below the normal numbers are rounded once. */
static inline vd erfc_scaled_64(vd a, vd square, vd low, exp_parts *e)
{
    vd middle;
    vu i = piece_64(a + 2.0, &middle);
    vd first = v_look(fit_erfc[0], i), rest = V_PIECE(a - (middle - 2.0), i, fit_erfc);
    *e = exp_split_sum_64(0.0 - square, 0.0 - low);
    vd root = v_look(fit_roots_upper, v_bits(e->shifted)),
       more = v_look(fit_roots_lower, v_bits(e->shifted));
    vd y = root * rest + ((root + more) * e->p + more) * (first + rest);
    return v_scale(V_MORE_EXACT(y, root, first), e->k, e->shifted);
}
/* The square in two parts, the first of them exact: what it would round away would be seen in an
 * exponent. */
static inline vd erfc_64(vd x)
{
    vd a = V_MIN(VD(27.5), v_abs(x)), upper = v_upper(a);
    exp_parts e;
    vd y = erfc_scaled_64(a, upper * upper, (a - upper) * (a + upper), &e);
    return v_pick(V_LESS(x, VD(0.0)), 2.0 - y, y);
}

/* The probability that a normally distributed number is at most x: half of erfc(-x / sqrt 2). The
 * exponent is taken from x, not from the quotient. `density` is exp(-x^2 / 2) / sqrt(2 pi). */
static inline vd normal_64(vd x, vd *density)
{
    vd a = V_MIN(VD(38.8), v_abs(x)), upper = v_upper(a);
    exp_parts e;
    vd y = 0.5 * erfc_scaled_64(a * 7.07106781186547524401e-1, 0.5 * upper * upper,
                                0.5 * (a - upper) * (a + upper), &e);
    *density = exp_join_64(e) * 3.98942280401432677940e-1;
    return v_pick(V_LESS(VD(0.0), x), 1.0 - y, y);
}

/* x times a function of w = -log(1 - x^2), cut in pieces. What the logarithm's last sum rounds away
 * is taken along, as far from 0 it would be seen; the product is taken in two parts, of which the
 * larger is exact. */
static inline vd erfinv_64(vd x)
{
    vd a = v_abs(x), lost, middle;
    log_parts l = log_split_64((1.0 - a) * (1.0 + a));
    vd w = 0.0 - log_sums_64(l, &lost);
    vu i = piece_64(w + 2.5, &middle);
    vd first = v_look(fit_erfinv[0], i);
    vd rest = V_PIECE((w - (middle - 2.5)) - lost, i, fit_erfinv), upper = v_upper(x);
    vd y = V_MORE_EXACT((x - upper) * first + x * rest, upper, first);
    y = v_signed(v_pick(V_SAME(a, VD(1.0)), VD((double)INFINITY), v_abs(y)), x);
    return v_pick(V_MOST(a, VD(1.0)), y, VD((double)NAN));
}

#endif
