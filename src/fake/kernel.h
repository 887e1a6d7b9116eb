/* SPDX-License-Identifier: MIT */
/* fake/kernel.h: the kernel of the Fake key, for every operator. */
#ifndef TNI_FAKE_KERNEL_H
#define TNI_FAKE_KERNEL_H

#include "tenon/dispatch.h"

/* Whole-key fallback: checks modes and devices, computes with known values where all are known,
 * else runs the operator's Meta kernel so that it makes fake tensors.
 * @retval TN_INVALID      real tensors, other modes or devices among the arguments; values needed
 * @retval TN_UNSUPPORTED  the operator has no Meta kernel */
TN_NODISCARD tn_status tni_fake_kernel(tn_call *call, const tn_value *args, tn_value *rets);

#endif
