/* SPDX-License-Identifier: MIT */
/* cpu/reduce.h: reductions over any dimensions of a CPU tensor. */
#ifndef TNI_CPU_REDUCE_H
#define TNI_CPU_REDUCE_H

#include "core/tensor.h"

typedef enum tni_reduction {
    TNI_REDUCE_SUM,
    TNI_REDUCE_MEAN, /* the sum divided by the count, before it is rounded to the dtype of out */
    /* Of floats that are not complex: */
    TNI_REDUCE_KNOWN,   /* the sum of what is not NaN */
    TNI_REDUCE_SIZES,   /* the sum of absolute values */
    TNI_REDUCE_SQUARES, /* the root of the sum of squares, which are of the dtype of the sum */
    /* Of floats that are not complex, in double precision, and of integers: */
    TNI_REDUCE_PRODUCT,
    TNI_REDUCE_MAX, /* of no elements: the caller has refused that */
    TNI_REDUCE_MIN,
} tni_reduction;

/* Reduce the dimensions in @p dims (bits) of @p x into @p out, which has the other dimensions, with
 * or without the reduced ones as size 1, in any strides. Sums are computed in the dtype of out; see
 * Note [Sums]. */
TN_NODISCARD tn_status tni_reduce(tni_reduction what, const tn_tensor *x, uint64_t dims,
                                  tn_tensor *out);

/* What is added or multiplied up in @p dtype is rounded to it before. Loops that read @p read do
 * that themselves, or cannot be told from it: then @p made is @p x. Else it is a rounded copy. */
TN_NODISCARD tn_status tni_in_dtype(const tn_tensor *x, tn_dtype dtype, tn_dtype read,
                                    tn_tensor **made);

#endif
