/* SPDX-License-Identifier: MIT */
/* cpu/reduce.h: reductions over any dimensions of a CPU tensor. */
#ifndef TNI_CPU_REDUCE_H
#define TNI_CPU_REDUCE_H

#include "core/tensor.h"

typedef enum tni_reduction {
    TNI_REDUCE_SUM,
    TNI_REDUCE_MEAN, /* the sum divided by the count, before it is rounded to the dtype of out */
    TNI_REDUCE_MAX,  /* of no elements: the caller has refused that */
    TNI_REDUCE_MIN,
} tni_reduction;

/* Reduce the dimensions in @p dims (bits) of @p x into @p out, which has the other dimensions, with
 * or without the reduced ones as size 1, in any strides. Sums are computed in the dtype of out; see
 * Note [Sums]. */
TN_NODISCARD tn_status tni_reduce(tni_reduction what, const tn_tensor *x, uint64_t dims,
                                  tn_tensor *out);

#endif
