/* SPDX-License-Identifier: MIT */
/* cpu/kern/optim.c: steps of optimisers in float32, for one instruction set. */
#include "cpu/optim.h"
#include "cpu/kern/types.h"

#define T    float
#define SQRT sqrtf
#include "cpu/kern/optim.inc"

const tni_optim_table TNI_KERN_NAME(tni_optim) = {sgd, adam};
