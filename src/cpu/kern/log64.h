/* SPDX-License-Identifier: MIT */
/* cpu/kern/log64.h: logarithms of a float64 and their relatives. x is 2^k c (1 + r), c in the
 * middle of one of 16 pieces in which the mantissas from 0.671875 on are cut; log c, in two parts,
 * and 1 / c are tables. 1 has a piece with c = 1, so that nothing is lost near it. */
#ifndef TNI_CPU_KERN_LOG64_H
#define TNI_CPU_KERN_LOG64_H

#include "cpu/kern/vec64.h"

#define LOG_FIRST 0x3fe5800000000000u /* the bits of 0.671875 */

/* k, the piece, 1 / c, and r as it comes from the mantissa. */
typedef struct log_parts {
    vd k, inverse, r;
    vu piece;
} log_parts;

/* Of a positive normal number. */
static inline log_parts log_split_64(vd x)
{
    log_parts l;
    vu up = v_bits(x) - LOG_FIRST;
    l.piece = up >> 48;
    l.k = v_exponent(up);
    l.inverse = v_look(fit_log_inverse, l.piece);
    l.r = (v_of((up & 0x000fffffffffffffu) + LOG_FIRST) - v_look(fit_log_centre, l.piece)) *
          l.inverse;
    return l;
}
static inline vd log_join_64(log_parts l)
{
    vd high = V_MORE_EXACT(v_look(fit_log_high, l.piece), l.k, VD(fit_log_of_2[0]));
    vd low = l.k * fit_log_of_2[1] + v_look(fit_log_low, l.piece);
    return high + (l.r + (V_POLY(l.r, fit_log) * (l.r * l.r) + low));
}
/* The same with what the last sum rounds away. */
static inline vd log_sums_64(log_parts l, vd *lost)
{
    vd high = V_MORE_EXACT(v_look(fit_log_high, l.piece), l.k, VD(fit_log_of_2[0]));
    vd low = l.k * fit_log_of_2[1] + v_look(fit_log_low, l.piece);
    return v_sum_short(high, l.r + (V_POLY(l.r, fit_log) * (l.r * l.r) + low), lost);
}
static inline vd log2_join_64(log_parts l)
{
    vd y = V_POLY(l.r, fit_log) * (l.r * l.r), low = v_look(fit_log2_low, l.piece);
    /* What the factor has beyond 1.4375, which has few bits, is multiplied apart. */
    vd most = v_upper(l.r),
       more = (l.r - most) * 1.4375 + (l.r * 5.19504088896340736e-3 + y * fit_log2_of_2[2]);
    return (l.k + v_look(fit_log2_high, l.piece)) + (most * 1.4375 + (more + low));
}
static inline vd log10_join_64(log_parts l)
{
    vd y = V_POLY(l.r, fit_log) * (l.r * l.r);
    vd high = V_MORE_EXACT(v_look(fit_log10_high, l.piece), l.k, VD(fit_log10_of_2[0]));
    vd low = l.k * fit_log10_of_2[1] + v_look(fit_log10_low, l.piece);
    vd most = v_upper(l.r),
       more = (l.r - most) * 0.4375 + (l.r * -3.20551809674817235e-3 + y * fit_log10_of_2[2]);
    return high + (most * 0.4375 + (more + low));
}

static inline vm log_usual(vd x)
{
    return V_MOST(VD(0x1p-1022), x) & V_LESS(x, VD((double)INFINITY));
}
static inline vd log_corners(vd x, vd y)
{
    y = v_pick(V_SAME(x, VD((double)INFINITY)), x, y);
    y = v_pick(V_SAME(x, VD(0.0)), VD(-(double)INFINITY), y);
    return v_pick(V_MOST(VD(0.0), x), y, VD((double)NAN));
}
/* Below the normal numbers x is scaled first. */
#define LOG_64(name)                                              \
    static inline vd name##_usual_64(vd x)                        \
    {                                                             \
        return name##_join_64(log_split_64(x));                   \
    }                                                             \
    static inline vd name##_64(vd x)                              \
    {                                                             \
        vm tiny = V_LESS(x, VD(0x1p-1022));                       \
        log_parts l = log_split_64(v_pick(tiny, x * 0x1p+54, x)); \
        l.k = l.k - v_pick(tiny, VD(54.0), VD(0.0));              \
        return log_corners(x, name##_join_64(l));                 \
    }
LOG_64(log)
LOG_64(log2)
LOG_64(log10)

/* log(u + rest) for a rest that u rounds away; u is a positive normal number. From 2^60 on there is
 * nothing to put back, and 2^-k may be out of range. */
static inline vd log_sum_64(vd u, vd rest)
{
    log_parts l = log_split_64(u);
    /* 2^-k by the bits that log_split takes from the exponent. */
    vu power = 0x3ff0000000000000u - ((v_bits(u) - LOG_FIRST) & 0xfff0000000000000u);
    l.r = l.r + v_pick(V_LESS(u, VD(0x1p+60)), rest * v_of(power), VD(0.0)) * l.inverse;
    return log_join_64(l);
}
static inline vd log1p_64(vd x)
{
    vd u = 1.0 + x;
    vd y = log_sum_64(u, v_pick(V_LESS(VD(1.0), x), 1.0 - (u - x), x - (u - 1.0)));
    y = v_pick(V_SAME(x, VD((double)INFINITY)), x, y);
    y = v_pick(V_SAME(x, VD(-1.0)), VD(-(double)INFINITY), y);
    y = v_pick(V_SAME(x, VD(0.0)), x, y); /* -0 */
    return v_pick(V_MOST(VD(-1.0), x), y, VD((double)NAN));
}
/* Half of log1p(q) for q = 2a / (1 - a), of which nothing is rounded away. */
static inline vd atanh_64(vd x)
{
    vd a = v_abs(x), b = V_MIN(VD(1.0 - 0x1p-53), a), d = 1.0 - b, more, rest;
    vd q = v_quotient_close(b + b, VD(0.0), d, (1.0 - d) - b, &more), u = v_sum(VD(1.0), q, &rest);
    vd y = v_pick(V_SAME(a, VD(1.0)), VD((double)INFINITY), 0.5 * log_sum_64(u, rest + more));
    y = v_pick(V_MOST(a, VD(1.0)), y, VD((double)NAN));
    return v_signed(v_pick(V_LESS(a, VD(0x1p-28)), a, y), x);
}
/* log1p(a + a^2 / (1 + sqrt(1 + a^2))); where the square would overflow, log(2a). */
static inline vd asinh_64(vd x)
{
    vd a = v_abs(x), b = V_MIN(VD(0x1p+500), a), z = b * b;
    vd y = log1p_64(b + z / (1.0 + V_SQRT(1.0 + z)));
    y = v_pick(V_LESS(VD(0x1p+30), a), log_64(a) + 6.93147180559945309417e-1, y);
    return v_signed(v_pick(V_LESS(a, VD(0x1p-28)), a, y), x);
}
static inline vd acosh_64(vd x)
{
    vd t = V_MIN(VD(0x1p+500), x) - 1.0, y = log1p_64(t + V_SQRT(t * (t + 2.0)));
    y = v_pick(V_LESS(VD(0x1p+30), x), log_64(x) + 6.93147180559945309417e-1, y);
    return v_pick(V_MOST(VD(1.0), x), y, VD((double)NAN));
}

#endif
