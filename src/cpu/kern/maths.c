/* SPDX-License-Identifier: MIT */
/* cpu/kern/maths.c: loops over exp, log and relatives. Complex numbers go through the C library. */
#include <complex.h>
#include "cpu/kern/block.h"
#include "cpu/kern/exp.h"
#include "cpu/kern/loop.h"
#include "cpu/kern/special64.h"

LOOP1(loop_sqrt_f32, float, sqrtf(x))
LOOP1(loop_sqrt_f64, double, sqrt(x))
LOOP1(loop_sqrt_c64, float complex, csqrtf(x))
LOOP1(loop_sqrt_c128, double complex, csqrt(x))
LOOP1(loop_rsqrt_f32, float, 1.0f / sqrtf(x))
LOOP1(loop_rsqrt_f64, double, 1.0 / sqrt(x))
LOOP1(loop_rsqrt_c64, float complex, 1.0f / csqrtf(x))
LOOP1(loop_rsqrt_c128, double complex, 1.0 / csqrt(x))

LOOP1(loop_exp_c64, float complex, cexpf(x))
LOOP1(loop_exp_c128, double complex, cexp(x))
LOOP_OF_BLOCKS(loop_log_f32, block_is_normal(block), log_inside_f32, log_f32)
LOOP1(loop_log_c64, float complex, clogf(x))
LOOP1(loop_log_c128, double complex, clog(x))
LOOP1(loop_sigmoid_f32, float, sigmoid_f32(x))
LOOP1(loop_sigmoid_c64, float complex, 1.0f / (1.0f + cexpf(-x)))
LOOP1(loop_sigmoid_c128, double complex, 1.0 / (1.0 + cexp(-x)))
LOOP1(loop_tanh_f32, float, tanh_f32(x))
LOOP1(loop_tanh_c64, float complex, ctanhf(x))
LOOP1(loop_tanh_c128, double complex, ctanh(x))

#define MATHS_ROW(NAME, f, f64)                                              \
    [TNI_LOOP_##NAME % TNI_FAMILY_LOOPS] = {[TN_DTYPE_F32] = loop_##f##_f32, \
                                            [TN_DTYPE_F64] = f64,            \
                                            [TN_DTYPE_C64] = loop_##f##_c64, \
                                            [TN_DTYPE_C128] = loop_##f##_c128}

const tni_loop_table TNI_KERN_NAME(tni_maths) = {
    MATHS_ROW(SQRT, sqrt, loop_sqrt_f64),
    MATHS_ROW(RSQRT, rsqrt, loop_rsqrt_f64),
    MATHS_ROW(EXP, exp, LOOP_64(exp)),
    MATHS_ROW(LOG, log, LOOP_64(log)),
    MATHS_ROW(SIGMOID, sigmoid, LOOP_64(sigmoid)),
    MATHS_ROW(TANH, tanh, LOOP_64(tanh)),
    [TNI_LOOP_EXP_PAST % TNI_FAMILY_LOOPS] = {[TN_DTYPE_F32] = loop_exp_past_f32},
};
