/* SPDX-License-Identifier: MIT */
/* meta/optim.c: the step of an optimiser on meta tensors: the CPU's checks, nothing written. */
#include "gen/kernels.h"
#include "shape/optim.h"

#define SGD(name, RATE, rate)                                                                    \
    tn_status tni_kernel_##name(                                                                 \
        tn_call *call, tn_tensor *const *self, int64_t self_n, tn_tensor *const *grads,          \
        int64_t grads_n, tn_tensor *const *momentum_buffer_list, int64_t momentum_buffer_list_n, \
        double weight_decay, double momentum, RATE lr, double dampening, bool nesterov,          \
        bool maximize, bool is_first_step, tn_tensor *grad_scale, tn_tensor *found_inf)          \
    {                                                                                            \
        (void)call, (void)lr, (void)weight_decay, (void)dampening, (void)nesterov;               \
        (void)maximize, (void)is_first_step;                                                     \
        tni_optim_lists l =                                                                      \
            tni_sgd_lists(self, self_n, grads, grads_n, momentum_buffer_list,                    \
                          momentum_buffer_list_n, momentum, rate, grad_scale, found_inf);        \
        return tni_optim_check(&l);                                                              \
    }
SGD(fused_sgd_meta, double, NULL)
SGD(fused_sgd_tensor_meta, tn_tensor *, lr)

#define ADAM(name, label, RATE, rate)                                                             \
    tn_status tni_kernel_##name(                                                                  \
        tn_call *call, tn_tensor *const *self, int64_t self_n, tn_tensor *const *grads,           \
        int64_t grads_n, tn_tensor *const *exp_avgs, int64_t exp_avgs_n,                          \
        tn_tensor *const *exp_avg_sqs, int64_t exp_avg_sqs_n, tn_tensor *const *max_exp_avg_sqs,  \
        int64_t max_exp_avg_sqs_n, tn_tensor *const *state_steps, int64_t state_steps_n, RATE lr, \
        double beta1, double beta2, double weight_decay, double eps, bool amsgrad, bool maximize, \
        tn_tensor *grad_scale, tn_tensor *found_inf)                                              \
    {                                                                                             \
        (void)call, (void)lr, (void)beta1, (void)beta2, (void)weight_decay, (void)eps;            \
        (void)maximize;                                                                           \
        tn_tensor *const *const lists[] = {self, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs};  \
        const int64_t counts[] = {self_n, grads_n, exp_avgs_n, exp_avg_sqs_n, max_exp_avg_sqs_n}; \
        tni_optim_lists l = tni_adam_lists(label, lists, counts, amsgrad, state_steps,            \
                                           state_steps_n, rate, grad_scale, found_inf);           \
        return tni_optim_check(&l);                                                               \
    }
ADAM(fused_adam_meta, "adam", double, NULL)
ADAM(fused_adam_tensor_meta, "adam", tn_tensor *, lr)
ADAM(fused_adamw_meta, "adamw", double, NULL)
ADAM(fused_adamw_tensor_meta, "adamw", tn_tensor *, lr)
