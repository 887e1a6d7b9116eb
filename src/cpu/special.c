/* SPDX-License-Identifier: MIT */
/* cpu/special.c: functions of one or two numbers, rounding and powers on the CPU: which loop, with
 * which parameters. */
#include <math.h>
#include "core/scalar.h"
#include "cpu/run.h"
#include "gen/cpu.h"

#define PLAIN(name, LOOP)                             \
    tn_status tni_cpu_##name(tni_iter *it)            \
    {                                                 \
        return tni_run(it, TNI_LOOP_##LOOP, 0, NULL); \
    }
PLAIN(sin, SIN)
PLAIN(cos, COS)
PLAIN(tan, TAN)
PLAIN(asin, ASIN)
PLAIN(acos, ACOS)
PLAIN(atan, ATAN)
PLAIN(sinh, SINH)
PLAIN(cosh, COSH)
PLAIN(asinh, ASINH)
PLAIN(acosh, ACOSH)
PLAIN(atanh, ATANH)
PLAIN(log1p, LOG1P)
PLAIN(expm1, EXPM1)
PLAIN(log2, LOG2)
PLAIN(log10, LOG10)
PLAIN(exp2, EXP2)
PLAIN(erf, ERF)
PLAIN(erfc, ERFC)
PLAIN(atan2, ATAN2)
PLAIN(hypot, HYPOT)
PLAIN(logaddexp, LOGADDEXP)
PLAIN(frac, FRAC)
PLAIN(sign, SIGN)

/* ---- rounding ---- */

static tn_status unchanged(tni_iter *it)
{
    /* bits of an integer or with themselves are those of the integer */
    it->n = 2;
    it->in_data[1] = it->in_data[0];
    it->in_dtype[1] = it->in_dtype[0];
    it->numbers = (uint8_t)(it->numbers & 1u ? 3u : 0u);
    it->copy_first = (uint8_t)(it->copy_first & 1u ? 3u : 0u);
    if (!it->flat)
        for (int d = 0; d < it->ndim; d++)
            it->strides[2][d] = it->strides[1][d];
    return tni_run(it, TNI_LOOP_BIT_OR, 0, NULL);
}

static tn_status rounded(tni_iter *it, tni_loop loop)
{
    return tn_dtype_is_integral(it->dtype, true) ? unchanged(it) : tni_run(it, loop, 0, NULL);
}

tn_status tni_cpu_conj_physical(tni_iter *it)
{
    return rounded(it, TNI_LOOP_CONJ);
}

tn_status tni_cpu_floor(tni_iter *it)
{
    return rounded(it, TNI_LOOP_FLOOR);
}

tn_status tni_cpu_ceil(tni_iter *it)
{
    return rounded(it, TNI_LOOP_CEIL);
}

tn_status tni_cpu_round(tni_iter *it)
{
    return rounded(it, TNI_LOOP_ROUND);
}

tn_status tni_cpu_trunc(tni_iter *it)
{
    return rounded(it, TNI_LOOP_TRUNC);
}

tn_status tni_cpu_round_decimals(tni_iter *it, int64_t decimals)
{
    if (decimals == 0)
        return tni_run(it, TNI_LOOP_ROUND, 0, NULL);
    const double p[TNI_LOOP_PARAMETERS] = {pow(10.0, fabs((double)decimals)), decimals > 0};
    return tni_run(it, TNI_LOOP_ROUND_DECIMALS, 0, p);
}

tn_status tni_cpu_nan_to_num(tni_iter *it, tn_opt_float nan, tn_opt_float posinf,
                             tn_opt_float neginf)
{
    if (tn_dtype_is_integral(it->dtype, true))
        return unchanged(it);
    double most = tni_dtype_largest(it->dtype);
    const double p[TNI_LOOP_PARAMETERS] = {nan.has ? nan.value : 0.0,
                                           posinf.has ? posinf.value : most,
                                           neginf.has ? neginf.value : -most};
    return tni_run(it, TNI_LOOP_NAN_TO_NUM, 0, p);
}

/* ---- powers ---- */

tn_status tni_cpu_pow(tni_iter *it)
{
    bool whole = tn_dtype_is_integral(it->dtype, false);
    return tni_run(it, whole ? TNI_LOOP_POW_WHOLE : TNI_LOOP_POW, 0, NULL);
}

/* Forget the second input, a number. */
static tn_status with_first(tni_iter *it, tni_loop loop)
{
    it->n = 1;
    it->numbers &= 1u;
    it->copy_first &= 1u;
    if (it->flat == TNI_FLAT_NUMBERS)
        it->flat = TNI_FLAT_SAME;
    return tni_run(it, loop, 0, NULL);
}

/* The exponent as it was given: in the numbers of the operation it is always the second input. */
static double exponent_of(const tni_iter *it)
{
    tn_scalar s = tni_scalar_load((tn_dtype)it->in_dtype[1], it->in_data[1]);
    if (s.kind == TN_SCALAR_COMPLEX)
        return s.imag == 0 ? s.v.f : (double)NAN;
    return s.kind == TN_SCALAR_FLOAT ? s.v.f : (double)s.v.i;
}

tn_status tni_cpu_pow_scalar(tni_iter *it)
{
    double e = exponent_of(it);
    if (it->dtype == TN_DTYPE_BOOL) /* to the power True: itself; to False: true, as 0 is below */
        return e == 0 ? tni_run(it, TNI_LOOP_GE, TNI_RUN_BOOL_RESULT, NULL)
                      : with_first(it, TNI_LOOP_SIGN);
    bool whole = tn_dtype_is_integral(it->dtype, false);
    if (e == 2)
        return with_first(it, TNI_LOOP_SQUARE);
    if (e == 3)
        return with_first(it, TNI_LOOP_CUBE);
    if (whole)
        return tni_cpu_pow(it);
    if (e == 1 && !tn_dtype_is_complex(it->dtype)) /* as in the slope of a square */
        return tni_run(it, TNI_LOOP_MUL, TNI_RUN_EXACT_SECOND, NULL);
    if (e == 0.5)
        return with_first(it, TNI_LOOP_SQRT);
    if (e == -0.5)
        return with_first(it, TNI_LOOP_RSQRT);
    if (e == -1)
        return with_first(it, TNI_LOOP_RECIPROCAL);
    if (e == -2)
        return with_first(it, TNI_LOOP_INVERSE_SQUARE);
    return tni_cpu_pow(it);
}
