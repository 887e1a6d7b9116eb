/* SPDX-License-Identifier: MIT */
/* cpu/kern/erf64.h: the error function of a float64, what it lacks to 1, its inverse, and the
 * normal distribution by it; by polynomials of the pieces in which arguments are cut. */
#ifndef TNI_CPU_KERN_ERF64_H
#define TNI_CPU_KERN_ERF64_H

#include "cpu/kern/exp64.h"
#include "cpu/kern/log64.h"

/* Beyond the limit it is 1. */
static inline vd erf_64(vd x)
{
    vd a = V_MIN(VD(6.0), v_abs(x)), shifted = a * 2.56 + 0x1.8p+52;
    vd y = V_PIECE(V_LESS_EXACT(a, shifted - 0x1.8p+52, VD(0.390625)), v_bits(shifted), fit_erf);
    return v_signed(v_abs(v_pick(V_LESS(VD(5.9215), a), VD(1.0), y)), x);
}

/* exp(-square - low) times the scaled function of `a`, up to 27.5: erfc(a) where the square is a's.
 * The power of two is applied last, so that results below the normal numbers are rounded once. */
static inline vd erfc_scaled_64(vd a, vd square, vd low, exp_parts *e)
{
    vd q = 1.0 / (a + 4.0), shifted = 17.75 * a * q + 0x1.8p+52, j = shifted - 0x1.8p+52;
    /* 17.75 a / (a + 4) - j, of which a quotient of its own would lose digits. */
    vd u = ((17.75 - j) * a - 4.0 * j) * q;
    vd f = V_PIECE(u, v_bits(shifted), fit_erfc);
    *e = exp_split_sum_64(0.0 - square, 0.0 - low);
    vd root = v_look(fit_roots, v_bits(e->shifted)),
       more = v_look(fit_roots_low, v_bits(e->shifted));
    return v_scale((root + (root * e->p + more)) * (f * q), e->k, e->shifted);
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

/* By sqrt(-log(1 - x^2)). */
static inline vd erfinv_64(vd x)
{
    vd a = v_abs(x), w = log_usual_64((1.0 - a) * (1.0 + a)), s = V_SQRT(v_abs(w));
    vd shifted = s * 2.56 + 0x1.8p+52;
    vd y = x *
           V_PIECE(V_LESS_EXACT(s, shifted - 0x1.8p+52, VD(0.390625)), v_bits(shifted), fit_erfinv);
    y = v_pick(V_SAME(a, VD(1.0)), v_signed(VD((double)INFINITY), x), y);
    return v_pick(V_MOST(a, VD(1.0)), y, VD((double)NAN));
}

#endif
