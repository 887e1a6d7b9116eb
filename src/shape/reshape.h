/* SPDX-License-Identifier: MIT */
/* shape/reshape.h: the same elements under other sizes.
 *
 * Everything here is arithmetic on plain integers: no allocation, no dispatch. */
#ifndef TNI_SHAPE_RESHAPE_H
#define TNI_SHAPE_RESHAPE_H

#include "core/tensor.h"

/* Resolve a shape that may hold one -1 for @p numel elements. @p sizes has room for TN_MAX_DIMS.
 * @retval TN_INVALID  "shape '[7]' is invalid for input of size 6" and its relatives */
TN_NODISCARD tn_status tni_infer_sizes(int64_t numel, const int64_t *shape, int64_t n,
                                       int64_t *sizes);

/* The common case of tni_infer_sizes, for short paths: true when the shape holds no -1 and fits; it
 * is then in @p sizes. */
static inline bool tni_sizes_fit(int64_t numel, const int64_t *shape, int64_t n, int64_t *sizes)
{
    int64_t product = 1, signs = 0;
    bool overflows = false;
    if (TNI_UNLIKELY((uint64_t)n > TN_MAX_DIMS || !shape))
        return false;
    for (int64_t i = 0; i < n; i++) {
        int64_t size = shape[i];
        sizes[i] = size;
        signs |= size;
        overflows |= !tni_i64_mul(product, size, &product);
    }
    return product == numel && signs >= 0 && !overflows;
}

/* Strides under which the elements of a tensor can be seen as @p sizes without copying; false when
 * there are none. The element counts must agree. The result is the reference's, dimension by
 * dimension, also for sizes 0 and 1, where several answers would do. */
bool tni_view_strides(int old_ndim, const int64_t *old_sizes, const int64_t *old_strides,
                      int64_t numel, int ndim, const int64_t *sizes, int64_t *strides);

/* True when any view of @p t has plain contiguous strides: no need to look at each dimension.
 *
 * A size-1 dimension may carry any stride and the tensor still counts as contiguous; only the
 * stride of the last dimension can leak into a view. */
static inline bool tni_views_are_contiguous(const tn_tensor *t)
{
    return (t->flags & TNI_CONTIGUOUS) && t->numel > 0 &&
           (t->ndim == 0 || t->strides[t->ndim - 1] == 1);
}

#endif
