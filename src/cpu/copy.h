/* SPDX-License-Identifier: MIT */
/* cpu/copy.h: copying between CPU tensors. */
#ifndef TNI_CPU_COPY_H
#define TNI_CPU_COPY_H

#include "core/tensor.h"

/* Copy @p src, converted, to @p dst. Both are on the CPU and have the same sizes, but for
 * dimensions of
 * @p src that are broadcast; their memory does not overlap. Cannot fail but for what the pool
 * reports. */
TN_NODISCARD tn_status tni_copy_cpu(tn_tensor *dst, const tn_tensor *src);

/* The same for bare memory: element (i, j, …) of @p dst is at i * dst_strides[0] + …, and so of @p
 * src. Strides are in bytes, those of @p dst not 0 where the size is more than 1. */
typedef struct tni_strided {
    int ndim;
    const int64_t *sizes, *dst_strides, *src_strides;
    void *dst;
    const void *src;
    tn_dtype to, from;
} tni_strided;
TN_NODISCARD tn_status tni_copy_strided(const tni_strided *c);

#endif
