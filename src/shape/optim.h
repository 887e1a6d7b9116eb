/* SPDX-License-Identifier: MIT */
/* shape/optim.h: the lists of an optimiser's step, checked the same way on every backend. */
#ifndef TNI_SHAPE_OPTIM_H
#define TNI_SHAPE_OPTIM_H

#include "core/tensor.h"

/* Parameters first, then what is written beside them: each like its parameter. */
#define TNI_OPTIM_LISTS 5
typedef struct tni_optim_lists {
    const char *name; /* of the kernel, in messages */
    int n;            /* lists that are used */
    tn_tensor *const *at[TNI_OPTIM_LISTS];
    int64_t count[TNI_OPTIM_LISTS];
    const char *label[TNI_OPTIM_LISTS];
    /* One number each, or NULL; of any dtype. */
    tn_tensor *const *steps;
    int64_t steps_n;
    /* One number, or NULL. */
    const tn_tensor *rate, *grad_scale, *found_inf;
} tni_optim_lists;

/* @retval TN_INVALID, TN_UNSUPPORTED */
TN_NODISCARD tn_status tni_optim_check(const tni_optim_lists *l);
/* The lists of the operators. @p rate may be NULL; @p buffers are not used without momentum. */
tni_optim_lists tni_sgd_lists(tn_tensor *const *self, int64_t self_n, tn_tensor *const *grads,
                              int64_t grads_n, tn_tensor *const *buffers, int64_t buffers_n,
                              double momentum, const tn_tensor *rate, const tn_tensor *grad_scale,
                              const tn_tensor *found_inf);
tni_optim_lists tni_adam_lists(const char *name, tn_tensor *const *const lists[TNI_OPTIM_LISTS],
                               const int64_t counts[TNI_OPTIM_LISTS], bool amsgrad,
                               tn_tensor *const *steps, int64_t steps_n, const tn_tensor *rate,
                               const tn_tensor *grad_scale, const tn_tensor *found_inf);

#endif
