/* SPDX-License-Identifier: MIT */
/* cpu/kern/loss.c: losses by element. Forward x is the input and y the target; backward x is the
 * gradient, y the input, z the target, p[0] scales it, and p[1] is beta or delta. */
#include "cpu/kern/loop.h"

#define LOSSES(S, T, FABS)                                                                     \
    static inline T smooth_l1_1_##S(T d, T beta)                                               \
    {                                                                                          \
        return d < beta ? (T)0.5 * d * d / beta : d - (T)0.5 * beta;                           \
    }                                                                                          \
    static inline T huber_1_##S(T d, T delta)                                                  \
    {                                                                                          \
        return d <= delta ? (T)0.5 * d * d : delta * (d - (T)0.5 * delta);                     \
    }                                                                                          \
    static inline T smooth_l1_b_1_##S(T g, T d, T norm, T beta)                                \
    {                                                                                          \
        return d <= -beta ? -norm * g : d >= beta ? norm * g : norm * d * g / beta;            \
    }                                                                                          \
    static inline T huber_b_1_##S(T g, T d, T norm, T delta)                                   \
    {                                                                                          \
        return d <= -delta ? -norm * g * delta : d >= delta ? norm * g * delta : norm * d * g; \
    }                                                                                          \
    LOOP2(mse_##S, T, (x - y) * (x - y))                                                       \
    LOOP3_WITH(mse_b_##S, T, p[0] * (y - z) * x)                                               \
    LOOP2_WITH(smooth_l1_##S, T, smooth_l1_1_##S(FABS(x - y), p[1]))                           \
    LOOP3_WITH(smooth_l1_b_##S, T, smooth_l1_b_1_##S(x, y - z, p[0], p[1]))                    \
    LOOP2_WITH(huber_##S, T, huber_1_##S(FABS(x - y), p[1]))                                   \
    LOOP3_WITH(huber_b_##S, T, huber_b_1_##S(x, y - z, p[0], p[1]))
LOSSES(f32, float, fabsf)
LOSSES(f64, double, fabs)

#define LOSS_ROW(NAME, f) ROW(NAME) = {[TN_DTYPE_F32] = f##_f32, [TN_DTYPE_F64] = f##_f64}

const tni_loop_table TNI_KERN_NAME(tni_loss) = {
    LOSS_ROW(MSE, mse),
    LOSS_ROW(MSE_B, mse_b),
    LOSS_ROW(SMOOTH_L1, smooth_l1),
    LOSS_ROW(SMOOTH_L1_B, smooth_l1_b),
    LOSS_ROW(HUBER, huber),
    LOSS_ROW(HUBER_B, huber_b),
};
