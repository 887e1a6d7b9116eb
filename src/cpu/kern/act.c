/* SPDX-License-Identifier: MIT */
/* cpu/kern/act.c: the tables of activations, with the loops of float32, and those of float64 that
 * need neither exp nor log. */
#include <complex.h>
#include "cpu/kern/act.h"
#include "cpu/kern/special64.h"

/* exp(x) - 1 of what is at most 0; from -87 on it is -1. */
static inline float expm1_f32(float x)
{
    return expm1_inside_f32(x < -EXP_INSIDE ? -EXP_INSIDE : x);
}

ACTIVATIONS(float, f32, fabsf, NAN)

ACT_SIMPLE(double, f64)

/* Complex numbers have one activation, and go through the C library. */
LOOP1(silu_loop_c64, float complex, x / (1.0f + cexpf(-x)))
LOOP1(silu_loop_c128, double complex, x / (1.0 + cexp(-x)))

#define SILU_B_COMPLEX(T, S, EXP)         \
    static inline T silu_b_##S(T g, T x)  \
    {                                     \
        T s = 1 / (1 + EXP(-x));          \
        return g * s * (1 + x * (1 - s)); \
    }                                     \
    LOOP2(silu_b_loop_##S, T, silu_b_##S(x, y))
SILU_B_COMPLEX(float complex, c64, cexpf)
SILU_B_COMPLEX(double complex, c128, cexp)

#define ACT_LOOPS(f)     [TN_DTYPE_F32] = f##_loop_f32, [TN_DTYPE_F64] = LOOP_64(f)
#define COMPLEX_LOOPS(f) [TN_DTYPE_C64] = f##_loop_c64, [TN_DTYPE_C128] = f##_loop_c128
#define ACT_ROW(NAME, f) ROW(NAME) = {ACT_LOOPS(f)}
#define SIMPLE_ROW(NAME, f) \
    ROW(NAME) = {[TN_DTYPE_F32] = f##_loop_f32, [TN_DTYPE_F64] = f##_loop_f64}

const tni_loop_table TNI_KERN_NAME(tni_act) = {
    ACT_ROW(GELU, gelu),
    ACT_ROW(GELU_TANH, gelu_tanh),
    ACT_ROW(GELU_B, gelu_b),
    ACT_ROW(GELU_TANH_B, gelu_tanh_b),
    ROW(SILU) = {ACT_LOOPS(silu), COMPLEX_LOOPS(silu)},
    ROW(SILU_B) = {ACT_LOOPS(silu_b), COMPLEX_LOOPS(silu_b)},
    ACT_ROW(MISH, mish),
    ACT_ROW(MISH_B, mish_b),
    ACT_ROW(LOG_SIGMOID, log_sigmoid),
    SIMPLE_ROW(LOG_SIGMOID_B, log_sigmoid_b),
    ACT_ROW(GLU, glu),
    ACT_ROW(GLU_GATE_B, glu_gate_b),
    ACT_ROW(ELU, elu),
    ACT_ROW(ELU_B, elu_b),
    ACT_ROW(SOFTPLUS, softplus),
    ACT_ROW(SOFTPLUS_B, softplus_b),
};
const tni_loop_table TNI_KERN_NAME(tni_act2) = {
    ACT_ROW(EXP_MINUS_ABS, exp_minus_abs),
    SIMPLE_ROW(ELU_RESULT_B, elu_result_b),
    ACT_ROW(BCE, bce),
    SIMPLE_ROW(BCE_B, bce_b),
    SIMPLE_ROW(SOFTSHRINK, softshrink),
    SIMPLE_ROW(HARDSHRINK, hardshrink),
};
