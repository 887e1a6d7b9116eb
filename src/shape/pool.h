/* SPDX-License-Identifier: MIT */
/* shape/pool.h: the windows of pooling over two or three dimensions, checked. */
#ifndef TNI_SHAPE_POOL_H
#define TNI_SHAPE_POOL_H

#include "core/tensor.h"

/* [0] is the depth, [1] the height, [2] the width; over two dimensions the depth is one. */
typedef struct tni_pool {
    int64_t planes; /* batch times channels */
    int64_t in[3], out[3];
    int64_t kernel[3], stride[3], padding[3], dilation[3];
} tni_pool;

typedef struct tni_pool_lists {
    const int64_t *kernel, *stride, *padding, *dilation; /* dilation NULL: 1, an average's */
    int64_t kernel_n, stride_n, padding_n, dilation_n;
    bool ceil_mode;
} tni_pool_lists;

/* @p spatial: 2 or 3.
 * @retval TN_INVALID  with the texts of the reference */
TN_NODISCARD tn_status tni_pool_check(int spatial, const tn_tensor *self,
                                      const tni_pool_lists *lists, tni_pool *out);
/* Adaptive pooling of @p whole to @p pooled, of sizes that were checked: planes, in and out alone.
 */
tni_pool tni_pool_adaptive(int spatial, const tn_tensor *whole, const tn_tensor *pooled);

/* For shape functions. The last dimensions are @p last[3 - spatial...2]. With @p keeps the order in
 * memory is that of @p self where its channels are last. */
TN_NODISCARD tn_status tni_pool_planes(tni_geometry *g, int spatial, const tn_tensor *self,
                                       tn_dtype dtype, const int64_t *last, bool keeps);
TN_NODISCARD tn_status tni_pool_refuse(const char *kernel, const tn_tensor *t, bool fits);

#endif
