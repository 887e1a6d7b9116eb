/* SPDX-License-Identifier: MIT */
/* cpu/kern/act.h: activations that need exp, log or erf, and their backward loops, in which x is
 * the gradient of the result; of float32, and of float64 those that need none of them. act64.c has
 * the others of float64. */
#ifndef TNI_CPU_KERN_ACT_H
#define TNI_CPU_KERN_ACT_H

#include "cpu/kern/loop.h"
#include "cpu/kern/special.h"

#define ACTIVATIONS(T, S, FABS, NOT) \
    GELU(T, S)                       \
    SIGMOIDAL(T, S, FABS, NOT)       \
    PARTWISE(T, S)                   \
    BCE(T, S)                        \
    ACT_SIMPLE(T, S)

#define GELU(T, S)                                                                  \
    static inline T gelu_##S(T x)                                                   \
    {                                                                               \
        return x * normal_cdf_##S(x);                                               \
    }                                                                               \
    /* The argument of tanh in the approximation. */                                \
    static inline T gelu_inner_##S(T x)                                             \
    {                                                                               \
        return (T)0.79788456080286535588 * (x + (T)0.044715 * (x * x * x));         \
    }                                                                               \
    static inline T gelu_tanh_##S(T x)                                              \
    {                                                                               \
        return (T)0.5 * x * ((T)1 + tanh_##S(gelu_inner_##S(x)));                   \
    }                                                                               \
    static inline T gelu_b_##S(T g, T x)                                            \
    {                                                                               \
        return g * gelu_slope_##S(x);                                               \
    }                                                                               \
    static inline T gelu_tanh_b_##S(T g, T x)                                       \
    {                                                                               \
        T t = tanh_##S(gelu_inner_##S(x));                                          \
        T slope = (T)0.79788456080286535588 * ((T)1 + (T)(3 * 0.044715) * (x * x)); \
        return g * ((T)0.5 * ((T)1 + t) + (T)0.5 * x * ((T)1 - t * t) * slope);     \
    }                                                                               \
    LOOP1_AHEAD(gelu_loop_##S, T, gelu_##S)                                         \
    LOOP1(gelu_tanh_loop_##S, T, gelu_tanh_##S(x))                                  \
    LOOP2_AHEAD(gelu_b_loop_##S, T, gelu_b_##S)                                     \
    LOOP2(gelu_tanh_b_loop_##S, T, gelu_tanh_b_##S(x, y))

/* tanh(log(1 + w)) is w(w + 2) / (w(w + 2) + 2) for w = exp(x), and 1 from 20 on. */
#define SIGMOIDAL(T, S, FABS, NOT)                                      \
    static inline T tanh_softplus_##S(T x)                              \
    {                                                                   \
        T w = exp_##S(x), n = w * (w + (T)2);                           \
        return x > (T)20 ? (T)1 : n / (n + (T)2);                       \
    }                                                                   \
    static inline T mish_b_##S(T g, T x)                                \
    {                                                                   \
        T t = tanh_softplus_##S(x);                                     \
        return g * (t + x * sigmoid_##S(x) * ((T)1 - t * t));           \
    }                                                                   \
    static inline T silu_b_##S(T g, T x)                                \
    {                                                                   \
        T s = sigmoid_##S(x);                                           \
        return g * s * ((T)1 + x * ((T)1 - s));                         \
    }                                                                   \
    static inline T log_sigmoid_##S(T x)                                \
    {                                                                   \
        T low = x < (T)0 ? x : (T)0;                                    \
        T r = low - log1p_##S(exp_##S(-FABS(x)));                       \
        return x != x ? NOT : r;                                        \
    }                                                                   \
    LOOP1(silu_loop_##S, T, x / ((T)1 + exp_##S(-x)))                   \
    LOOP2(silu_b_loop_##S, T, silu_b_##S(x, y))                         \
    LOOP1(mish_loop_##S, T, x *tanh_softplus_##S(x))                    \
    LOOP2(mish_b_loop_##S, T, mish_b_##S(x, y))                         \
    LOOP1(log_sigmoid_loop_##S, T, log_sigmoid_##S(x))                  \
    LOOP1(exp_minus_abs_loop_##S, T, exp_##S(-FABS(x)))                 \
    LOOP2(glu_loop_##S, T, x / ((T)1 + exp_##S(-y)))                    \
    /* Of the gate, from the gradient x, the value y and the gate z. */ \
    static inline T glu_gate_b_##S(T g, T x, T y)                       \
    {                                                                   \
        T s = sigmoid_##S(y);                                           \
        return ((T)1 - s) * s * g * x;                                  \
    }                                                                   \
    LOOP3_WITH(glu_gate_b_loop_##S, T, p[0] * glu_gate_b_##S(x, y, z))

/* Parameters of elu: the factor of the negative part, of the positive part, of the input. Of
 * softplus: beta and the threshold. Of softshrink and hardshrink: lambda; what the former
 * takes to 0 keeps its sign. */
#define PARTWISE(T, S)                                                                         \
    LOOP1_WITH(elu_loop_##S, T, x < (T)0 ? expm1_##S(x * p[2]) * p[0] : x * p[1])              \
    LOOP2_WITH(elu_b_loop_##S, T, y <= (T)0 ? x * p[2] * p[0] * exp_##S(y * p[2]) : x * p[1])  \
    LOOP1_WITH(softplus_loop_##S, T, x *p[0] > p[1] ? x : log1p_##S(exp_##S(x * p[0])) / p[0]) \
    LOOP2_WITH(softplus_b_loop_##S, T, y *p[0] > p[1] ? x : x * sigmoid_##S(y * p[0]))

/* Logarithms are cut off at -100, and the divisor of the gradient at 1e-12. x is the probability, y
 * the target; backward x is the gradient, y the probability, z the target, and p[0] scales. */
#define BCE(T, S)                                         \
    static inline T bce_##S(T x, T y)                     \
    {                                                     \
        T a = log_##S((T)1 - x), b = log_##S(x);          \
        a = x < (T)0.25 ? -log1p_##S(x / ((T)1 - x)) : a; \
        a = a < (T)-100 ? (T)-100 : a;                    \
        b = b < (T)-100 ? (T)-100 : b;                    \
        return (y - (T)1) * a - y * b;                    \
    }                                                     \
    LOOP2(bce_loop_##S, T, bce_##S(x, y))

/* Without any of them. */
#define ACT_SIMPLE(T, S)                                                                      \
    /* From the gradient, the input, and exp(-abs(input)). */                                 \
    static inline T log_sigmoid_b_##S(T g, T x, T b)                                          \
    {                                                                                         \
        T part = b / ((T)1 + b);                                                              \
        return g * (x < (T)0 ? (T)1 - part : part);                                           \
    }                                                                                         \
    static inline T bce_b_##S(T x, T y, T g)                                                  \
    {                                                                                         \
        T d = ((T)1 - x) * x;                                                                 \
        return g * (x - y) / (d < (T)1e-12 ? (T)1e-12 : d);                                   \
    }                                                                                         \
    LOOP3_WITH(log_sigmoid_b_loop_##S, T, p[0] * log_sigmoid_b_##S(x, y, z))                  \
    LOOP2_WITH(elu_result_b_loop_##S, T, y <= (T)0 ? x * p[2] * (y + p[0]) : x * p[1])        \
    LOOP1_WITH(softshrink_loop_##S, T, x > p[0] ? x - p[0] : x < -p[0] ? x + p[0] : x * (T)0) \
    LOOP1_WITH(hardshrink_loop_##S, T, x >= -p[0] && x <= p[0] ? (T)0 : x)                    \
    LOOP3_WITH(bce_b_loop_##S, T, p[0] * bce_b_##S(x, y, z))

#endif
