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

#endif
