/* SPDX-License-Identifier: MIT */
/* cpu/mask.h: where a tensor is not zero. */
#ifndef TNI_CPU_MASK_H
#define TNI_CPU_MASK_H

#include "core/tensor.h"

/* The row-major numbers of the elements that are not 0, as a contiguous int64 vector. */
TN_NODISCARD tn_status tni_nonzero_flat(tn_tensor *self, TN_OWNED tn_tensor **out);

#endif
