/* SPDX-License-Identifier: MIT */
/* cpu/kern/special64.h: loops over functions of float64, one set for each instruction set. */
#ifndef TNI_CPU_KERN_SPECIAL64_H
#define TNI_CPU_KERN_SPECIAL64_H

#include "cpu/loops.h"

#define TNI_SPECIAL64(X) \
    X(exp)               \
    X(exp2)              \
    X(expm1)             \
    X(log)               \
    X(log2)              \
    X(log10)             \
    X(log1p)             \
    X(sin)               \
    X(cos)               \
    X(tan)               \
    X(asin)              \
    X(acos)              \
    X(atan)              \
    X(sinh)              \
    X(cosh)              \
    X(tanh)              \
    X(asinh)             \
    X(acosh)             \
    X(atanh)             \
    X(erf)               \
    X(erfc)              \
    X(erfinv)            \
    X(sigmoid)           \
    X(logit)             \
    X(pow)               \
    X(atan2)             \
    X(hypot)             \
    X(fmod)              \
    X(remainder)         \
    X(logaddexp)         \
    X(xlogy)             \
    X(gelu)              \
    X(gelu_tanh)         \
    X(gelu_b)            \
    X(gelu_tanh_b)       \
    X(silu)              \
    X(silu_b)            \
    X(mish)              \
    X(mish_b)            \
    X(log_sigmoid)       \
    X(exp_minus_abs)     \
    X(glu)               \
    X(glu_gate_b)        \
    X(elu)               \
    X(elu_b)             \
    X(softplus)          \
    X(softplus_b)        \
    X(bce)
#define LOOP_64(f) TNI_KERN_PASTE(tni_##f##_f64, TNI_KERN)

#define X(f) void LOOP_64(f)(void *out, const void *const *in, int64_t n, const void *ctx);
TNI_SPECIAL64(X)
#undef X

#endif
