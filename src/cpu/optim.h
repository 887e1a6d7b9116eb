/* SPDX-License-Identifier: MIT */
/* cpu/optim.h: loops of optimisers' steps over runs of float32 (kern/optim.c, compiled for each
 * instruction set) and float64 (kern/optim_f64.c, compiled once). */
#ifndef TNI_CPU_OPTIM_H
#define TNI_CPU_OPTIM_H

#include "cpu/loops.h"

/* Parameters of a step; those of Adam that depend on how often were made for the tensor at hand. */
typedef struct tni_optim_step {
    double weight_decay;
    bool maximize;
    bool scaled; /* gradients are divided by grad_scale first, and written back */
    double grad_scale;
    /* SGD */
    bool has_momentum, first, nesterov;
    double rate, momentum, dampening;
    /* Adam */
    bool decoupled, amsgrad;
    double beta1, beta2, eps, step_size, root_correction;
} tni_optim_step;

/* n elements of the parameters, gradients and states: of SGD the momentum, of Adam the averages of
 * gradients and of their squares, and the largest of the latter. */
typedef void (*tni_optim_fn)(const tni_optim_step *s, void *const *at, int64_t n);

typedef struct tni_optim_table {
    tni_optim_fn sgd, adam;
} tni_optim_table;

#define X(isa) extern const tni_optim_table tni_optim_##isa;
TNI_KERN_LIST(X)
#undef X
extern const tni_optim_table tni_optim_f64;

#endif
