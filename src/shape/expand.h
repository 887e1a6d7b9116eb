/* SPDX-License-Identifier: MIT */
/* shape/expand.h: reading a size-1 dimension many times over. */
#ifndef TNI_SHAPE_EXPAND_H
#define TNI_SHAPE_EXPAND_H

#include "core/tensor.h"

/* Sizes and strides of @p t seen as @p target, which may hold -1 for "as it is". Both results have
 * room for @p n values. @retval TN_INVALID  "The expanded size of the tensor (4) must match …" */
TN_NODISCARD tn_status tni_expand(const tn_tensor *t, int64_t n, const int64_t *target,
                                  int64_t *sizes, int64_t *strides);
/* Broadcast two lists of sizes, aligned at their ends; @p out has room for TN_MAX_DIMS.
 * @retval TN_INVALID  "The size of tensor a (2) must match the size of tensor b (3) at …" */
TN_NODISCARD tn_status tni_broadcast_sizes(int a_ndim, const int64_t *a, int b_ndim,
                                           const int64_t *b, int *out_ndim, int64_t *out);

#endif
