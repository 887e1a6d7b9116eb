/* SPDX-License-Identifier: MIT */
/* cpu/kern/optim_f64.c: steps of optimisers in float64, compiled once. */
#include "cpu/optim.h"
#include "cpu/kern/types.h"

#define T    double
#define SQRT sqrt
#include "cpu/kern/optim.inc"

const tni_optim_table tni_optim_f64 = {sgd, adam};
