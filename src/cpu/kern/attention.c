/* SPDX-License-Identifier: MIT */
/* cpu/kern/attention.c: loops over blocks of attention scores, for one instruction set. */
#include "cpu/attention.h"
#include <string.h>
#include "cpu/kern/gemm_vec.h"
#include "cpu/kern/maths.h"
#include "cpu/kern/types.h"

/* A weight is at most 1 but for rounding. From a sum that is not that of the scores, which only a
 * caller of the gradient can pass, it may be anything; it ends at exp(87). */
static inline float exp_weight_f32(float x)
{
    return exp_down_f32(x > EXP_INSIDE ? EXP_INSIDE : x);
}

#define T          float
#define S          f32
#define EXP_DOWN   exp_down_f32
#define EXP_WEIGHT exp_weight_f32
#include "cpu/kern/attention.inc"

#define T          double
#define S          f64
#define EXP_DOWN   exp_f64
#define EXP_WEIGHT exp_f64
#include "cpu/kern/attention.inc"

const tni_attention_table TNI_KERN_NAME(tni_attention) = {LOOPS(f32), LOOPS(f64)};
