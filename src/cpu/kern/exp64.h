/* SPDX-License-Identifier: MIT */
/* cpu/kern/exp64.h: exp of a float64 and its relatives. x is k log 2 / 16 + r, and exp(x) 2^(k/16)
 * times exp(r); the roots of 2 are a table, and exp(r) needs six terms. */
#ifndef TNI_CPU_KERN_EXP64_H
#define TNI_CPU_KERN_EXP64_H

#include "cpu/kern/vec64.h"

/* exp(r) - 1, k, and k + 1.5 * 2^52 with it in the low bits. */
typedef struct exp_parts {
    vd p, k, shifted;
} exp_parts;

/* r in two parts, the first of which is exact. */
static inline vd exp_rest_64(vd x, exp_parts *e, vd *low)
{
    e->shifted = x * fit_step[0] + 0x1.8p+52;
    e->k = e->shifted - 0x1.8p+52;
    *low = e->k * fit_step[2];
    return V_LESS_EXACT(x, e->k, VD(fit_step[1]));
}
static inline exp_parts exp_split_64(vd x)
{
    exp_parts e;
    vd low, high = exp_rest_64(x, &e, &low), r = high - low;
    e.p = V_POLY(r, fit_exp) * (r * r) + r;
    return e;
}
/* The same of x + more, for a number that x rounds away or not much more. */
static inline exp_parts exp_split_sum_64(vd x, vd more)
{
    exp_parts e;
    vd low, high = exp_rest_64(x, &e, &low), r = high + (more - low);
    e.p = V_POLY(r, fit_exp) * (r * r) + r;
    return e;
}
static inline vd exp_join_64(exp_parts e)
{
    vd root = v_look(fit_roots, v_bits(e.shifted));
    return v_scale(root * e.p + root, e.k, e.shifted);
}
/* With what the table's root lacks: within 0.6 units in the last place, not 1.1. */
static inline vd exp_join_close_64(exp_parts e)
{
    vd root = v_look(fit_roots, v_bits(e.shifted)), low = v_look(fit_roots_low, v_bits(e.shifted));
    return v_scale(root + (root * e.p + low), e.k, e.shifted);
}
/* Beyond the limits results are infinite or 0. */
static inline vd exp_64(vd x)
{
    return exp_join_64(exp_split_64(V_MAX(VD(-746.0), V_MIN(VD(710.0), x))));
}
static inline vd exp_close_64(vd x)
{
    return exp_join_close_64(exp_split_64(V_MAX(VD(-746.0), V_MIN(VD(710.0), x))));
}
static inline vd exp2_64(vd x)
{
    x = V_MAX(VD(-1080.0), V_MIN(VD(1025.0), x));
    exp_parts e;
    e.shifted = x * 16.0 + 0x1.8p+52;
    e.k = e.shifted - 0x1.8p+52;
    vd r = V_LESS_EXACT(x, e.k, VD(0.0625)) * 6.93147180559945309417e-1;
    e.p = V_POLY(r, fit_exp) * (r * r) + r;
    return exp_join_64(e);
}

/* exp(x) - 1 up to 2^1023: with c = 2^(k/16) - 1 it is c + p + c p for p = exp(r) - 1, of which c
 * and the first part of r are added exactly, and what the table's root lacks. `any`: x may be
 * negative or above 36, where not all of a root less 1 fits into c. */
static inline __attribute__((always_inline)) vd expm1_parts_64(vd x, exp_parts *e, vd *tail,
                                                               const int any)
{
    vd low, high = exp_rest_64(x, e, &low), r = high - low;
    vd more = V_POLY(r, fit_expm1) * (r * r) - low, rest;
    e->p = high + more;
    vd power = v_scale(v_look(fit_roots, v_bits(e->shifted)), e->k, e->shifted), lost, c;
    vd lack = v_scale(v_look(fit_roots_low, v_bits(e->shifted)), e->k, e->shifted);
    c = any ? v_sum(power, VD(-1.0), &lost) : power - 1.0;
    lack = any ? lack + lost : lack;
    vd sum = v_sum_short(c, high, &rest); /* c is 0 or larger */
    return v_sum_short(sum, rest + (more + ((c + lack) * e->p + lack)), tail);
}
static inline vd expm1_inside_64(vd x, exp_parts *e)
{
    vd tail;
    return expm1_parts_64(x, e, &tail, 1);
}
static inline vd expm1_64(vd x)
{
    exp_parts e;
    vd y = expm1_inside_64(V_MAX(VD(-746.0), V_MIN(VD(710.0), x)), &e);
    y = v_pick(V_LESS(VD(700.0), x), exp_join_64(e), y);
    return v_pick(V_SAME(x, VD(0.0)), x, y); /* -0 */
}

static inline vd sigmoid_64(vd x)
{
    vd minus = v_of(v_bits(x) ^ 0x8000000000000000u);
    return 1.0 / (1.0 + exp_close_64(minus));
}
/* e / (e + 2) for e = exp(2a) - 1, with what the last sum of e and that of the divisor round away;
 * from 20 on, and long before, it is 1. */
static inline vd tanh_64(vd x)
{
    exp_parts parts;
    vd a = V_MIN(VD(20.0), v_abs(x)), tail, rest, e = expm1_parts_64(a + a, &parts, &tail, 0);
    vd d = e + 2.0, q = v_quotient(e, tail, d, (e - (d - 2.0)) + tail, &rest);
    return v_signed(v_abs(q + rest), x);
}
/* Half of exp(a), which overflows later than exp(a). */
static inline vd half_exp_64(exp_parts e)
{
    vd root = v_look(fit_roots, v_bits(e.shifted)), low = v_look(fit_roots_low, v_bits(e.shifted));
    return v_scale(root + (root * e.p + low), e.k - 16.0, e.shifted - 16.0);
}
/* (e + e / (e + 1)) / 2 for e = exp(a) - 1, as in tanh; from 40 on half of exp(a). */
static inline vd sinh_64(vd x)
{
    exp_parts parts;
    vd a = v_abs(x), tail, rest, e = expm1_parts_64(V_MIN(VD(712.0), a), &parts, &tail, 0);
    vd d = e + 1.0, q = v_quotient(e, tail, d, (e - (d - 1.0)) + tail, &rest);
    vd y = 0.5 * (e + (q + (tail + rest)));
    return v_signed(v_abs(v_pick(V_LESS(VD(40.0), a), half_exp_64(parts), y)), x);
}
static inline vd cosh_64(vd x)
{
    vd half = half_exp_64(exp_split_64(V_MIN(VD(712.0), v_abs(x))));
    return half + 0.25 / half;
}

#endif
