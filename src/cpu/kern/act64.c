/* SPDX-License-Identifier: MIT */
/* cpu/kern/act64.c: activations of float64 that need exp, log or erf, and their backward loops, in
 * which x is the gradient of the result. What they compute is said in act.h. */
#include "cpu/kern/special64.h"
#define LOOP_LINKAGE
#include "cpu/kern/erf64.h"
#include "cpu/kern/loop.h"

static inline vd minus(vd x)
{
    return v_of(v_bits(x) ^ 0x8000000000000000u);
}

static inline vd gelu_64(vd x)
{
    vd density;
    return x * normal_64(x, &density);
}
static inline vd gelu_b_64(vd g, vd x)
{
    vd density, y = normal_64(x, &density);
    return g * (y + v_pick(V_LESS(VD(40.0), v_abs(x)), VD(0.0), x * density)); /* infinities */
}
static inline vd gelu_inner_64(vd x)
{
    return 0.79788456080286535588 * (x + 0.044715 * (x * x * x));
}
static inline vd gelu_tanh_64(vd x)
{
    return 0.5 * x * (1.0 + tanh_64(gelu_inner_64(x)));
}
static inline vd gelu_tanh_b_64(vd g, vd x)
{
    vd t = tanh_64(gelu_inner_64(x));
    vd slope = 0.79788456080286535588 * (1.0 + (3 * 0.044715) * (x * x));
    return g * (0.5 * (1.0 + t) + 0.5 * x * (1.0 - t * t) * slope);
}
LOOP1_64(LOOP_64(gelu), gelu_64)
LOOP2_64(LOOP_64(gelu_b), gelu_b_64)
LOOP1_64(LOOP_64(gelu_tanh), gelu_tanh_64)
LOOP2_64(LOOP_64(gelu_tanh_b), gelu_tanh_b_64)

static inline vd silu_64(vd x)
{
    return x / (1.0 + exp_64(minus(x)));
}
static inline vd silu_b_64(vd g, vd x)
{
    vd s = sigmoid_64(x);
    return g * s * (1.0 + x * (1.0 - s));
}
static inline vd tanh_softplus_64(vd x)
{
    vd w = exp_64(x), n = w * (w + 2.0);
    return v_pick(V_LESS(VD(20.0), x), VD(1.0), n / (n + 2.0));
}
static inline vd mish_64(vd x)
{
    return x * tanh_softplus_64(x);
}
static inline vd mish_b_64(vd g, vd x)
{
    vd t = tanh_softplus_64(x);
    return g * (t + x * sigmoid_64(x) * (1.0 - t * t));
}
static inline vd exp_minus_abs_64(vd x)
{
    return exp_64(minus(v_abs(x)));
}
static inline vd log_sigmoid_64(vd x)
{
    vd e = exp_minus_abs_64(x), u = 1.0 + e, r = V_MIN(VD(0.0), x) - log_sum_64(u, e - (u - 1.0));
    return v_pick(V_NAN(x), x, r);
}
static inline vd glu_64(vd x, vd y)
{
    return x / (1.0 + exp_64(minus(y)));
}
static inline vd glu_gate_b_64(vd g, vd x, vd y, const double *p)
{
    vd s = sigmoid_64(y);
    return p[0] * ((1.0 - s) * s * g * x);
}
LOOP1_64(LOOP_64(silu), silu_64)
LOOP2_64(LOOP_64(silu_b), silu_b_64)
LOOP1_64(LOOP_64(mish), mish_64)
LOOP2_64(LOOP_64(mish_b), mish_b_64)
LOOP1_64(LOOP_64(exp_minus_abs), exp_minus_abs_64)
LOOP1_64(LOOP_64(log_sigmoid), log_sigmoid_64)
LOOP2_64(LOOP_64(glu), glu_64)
LOOP3_64_WITH(LOOP_64(glu_gate_b), glu_gate_b_64)

static inline vd elu_64(vd x, const double *p)
{
    return v_pick(V_LESS(x, VD(0.0)), expm1_64(x * p[2]) * p[0], x * p[1]);
}
static inline vd elu_b_64(vd g, vd x, const double *p)
{
    return v_pick(V_MOST(x, VD(0.0)), g * p[2] * p[0] * exp_64(x * p[2]), g * p[1]);
}
static inline vd softplus_64(vd x, const double *p)
{
    vd t = x * p[0];
    return v_pick(V_LESS(VD(p[1]), t), x, log1p_64(exp_64(t)) / p[0]);
}
static inline vd softplus_b_64(vd g, vd x, const double *p)
{
    vd t = x * p[0];
    return v_pick(V_LESS(VD(p[1]), t), g, g * sigmoid_64(t));
}
static inline vd bce_64(vd x, vd y)
{
    vd a = V_MAX(VD(-100.0), log1p_64(minus(x))), b = V_MAX(VD(-100.0), log_64(x));
    return (y - 1.0) * a - y * b;
}
LOOP1_64_WITH(LOOP_64(elu), elu_64)
LOOP2_64_WITH(LOOP_64(elu_b), elu_b_64)
LOOP1_64_WITH(LOOP_64(softplus), softplus_64)
LOOP2_64_WITH(LOOP_64(softplus_b), softplus_b_64)
LOOP2_64(LOOP_64(bce), bce_64)
