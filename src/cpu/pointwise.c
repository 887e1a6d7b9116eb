/* SPDX-License-Identifier: MIT */
/* cpu/pointwise.c: elementwise operators on the CPU: which loop, with which parameters. */
#include "core/scalar.h"
#include "cpu/run.h"
#include "gen/cpu.h"

/* ---- arithmetic ---- */

static tn_status add_scaled(tni_iter *it, tn_scalar alpha)
{
    _Alignas(16) char value[16];
    tni_scalar_store(alpha, tni_run_dtype(it), value);
    return tni_run(it, TNI_LOOP_ADD_SCALED, 0, value);
}

static inline bool is_one(tn_scalar s)
{
    return s.kind == TN_SCALAR_INT && s.v.i == 1;
}

tn_status tni_cpu_add(tni_iter *it, tn_scalar alpha)
{
    if (TNI_LIKELY(is_one(alpha)))
        return tni_run(it, TNI_LOOP_ADD, 0, NULL);
    return add_scaled(it, alpha);
}

tn_status tni_cpu_sub(tni_iter *it, tn_scalar alpha)
{
    if (TNI_LIKELY(is_one(alpha)))
        return tni_run(it, TNI_LOOP_SUB, 0, NULL);
    if (alpha.beyond)
        alpha = tn_float(tn_scalar_to_double(alpha));
    if (alpha.kind == TN_SCALAR_INT)
        alpha.v.i = (int64_t)(0 - (uint64_t)alpha.v.i);
    else
        alpha.v.f = -alpha.v.f;
    alpha.imag = -alpha.imag;
    return add_scaled(it, alpha);
}

tn_status tni_cpu_mul(tni_iter *it)
{
    return tni_run(it, TNI_LOOP_MUL, TNI_RUN_EXACT_SECOND, NULL);
}

tn_status tni_cpu_div(tni_iter *it)
{
    return tni_run(it, TNI_LOOP_DIV, TNI_RUN_EXACT_SECOND, NULL);
}

tn_status tni_cpu_maximum(tni_iter *it)
{
    return tni_run(it, TNI_LOOP_MAXIMUM, 0, NULL);
}

tn_status tni_cpu_minimum(tni_iter *it)
{
    return tni_run(it, TNI_LOOP_MINIMUM, 0, NULL);
}

tn_status tni_cpu_neg(tni_iter *it)
{
    return tni_run(it, TNI_LOOP_NEG, 0, NULL);
}

tn_status tni_cpu_abs(tni_iter *it)
{
    return tni_run(it, TNI_LOOP_ABS, tn_dtype_is_complex(it->dtype) ? TNI_RUN_REAL_RESULT : 0,
                   NULL);
}

tn_status tni_cpu_relu(tni_iter *it)
{
    return tni_run(it, TNI_LOOP_RELU, 0, NULL);
}

tn_status tni_cpu_reciprocal(tni_iter *it)
{
    return tni_run(it, TNI_LOOP_RECIPROCAL, 0, NULL);
}

/* ---- maths ---- */

tn_status tni_cpu_sqrt(tni_iter *it)
{
    return tni_run(it, TNI_LOOP_SQRT, 0, NULL);
}

tn_status tni_cpu_rsqrt(tni_iter *it)
{
    return tni_run(it, TNI_LOOP_RSQRT, 0, NULL);
}

tn_status tni_cpu_exp(tni_iter *it)
{
    return tni_run(it, TNI_LOOP_EXP, 0, NULL);
}

tn_status tni_cpu_log(tni_iter *it)
{
    return tni_run(it, TNI_LOOP_LOG, 0, NULL);
}

tn_status tni_cpu_sigmoid(tni_iter *it)
{
    return tni_run(it, TNI_LOOP_SIGMOID, 0, NULL);
}

tn_status tni_cpu_tanh(tni_iter *it)
{
    return tni_run(it, TNI_LOOP_TANH, 0, NULL);
}

/* ---- choosing and comparing ---- */

tn_status tni_cpu_where(tni_iter *it)
{
    return tni_run(it, TNI_LOOP_WHERE, TNI_RUN_CONDITION | TNI_RUN_RAW, NULL);
}

tn_status tni_cpu_eq(tni_iter *it)
{
    return tni_run(it, TNI_LOOP_EQ, TNI_RUN_BOOL_RESULT, NULL);
}

tn_status tni_cpu_ne(tni_iter *it)
{
    return tni_run(it, TNI_LOOP_NE, TNI_RUN_BOOL_RESULT, NULL);
}

tn_status tni_cpu_lt(tni_iter *it)
{
    return tni_run(it, TNI_LOOP_LT, TNI_RUN_BOOL_RESULT, NULL);
}

tn_status tni_cpu_le(tni_iter *it)
{
    return tni_run(it, TNI_LOOP_LE, TNI_RUN_BOOL_RESULT, NULL);
}

tn_status tni_cpu_gt(tni_iter *it)
{
    return tni_run(it, TNI_LOOP_GT, TNI_RUN_BOOL_RESULT, NULL);
}

tn_status tni_cpu_ge(tni_iter *it)
{
    return tni_run(it, TNI_LOOP_GE, TNI_RUN_BOOL_RESULT, NULL);
}

tn_status tni_cpu_logical_not(tni_iter *it)
{
    return tni_run(it, TNI_LOOP_LOGICAL_NOT, TNI_RUN_BOOL_RESULT, NULL);
}
