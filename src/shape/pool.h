/* SPDX-License-Identifier: MIT */
/* shape/pool.h: the windows of pooling over two dimensions, checked. */
#ifndef TNI_SHAPE_POOL_H
#define TNI_SHAPE_POOL_H

#include "core/tensor.h"

/* [0] is the height, [1] the width. */
typedef struct tni_pool2d {
    int64_t planes; /* batch times channels */
    int64_t in[2], out[2];
    int64_t kernel[2], stride[2], padding[2], dilation[2];
} tni_pool2d;

typedef struct tni_pool2d_lists {
    const int64_t *kernel, *stride, *padding, *dilation; /* dilation NULL: 1 */
    int64_t kernel_n, stride_n, padding_n, dilation_n;
    bool ceil_mode;
} tni_pool2d_lists;

/* @retval TN_INVALID  with the texts of the reference; @p name is the operator's in them */
TN_NODISCARD tn_status tni_pool2d_check(const char *name, const tn_tensor *self,
                                        const tni_pool2d_lists *lists, tni_pool2d *out);

#endif
