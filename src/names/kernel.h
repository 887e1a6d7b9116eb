/* SPDX-License-Identifier: MIT */
/* names/kernel.h: the kernel of the Named key, for every operator. */
#ifndef TNI_NAMES_KERNEL_H
#define TNI_NAMES_KERNEL_H

#include "tenon/dispatch.h"

/* Whole-key fallback: checks names of dimensions, runs the operator without them, names its
 * results.
 * @retval TN_INVALID  names do not match, or results would have one twice; the operator has no
 * rule: "aten::X is not yet supported with named tensors. …" */
TN_NODISCARD tn_status tni_named_kernel(tn_call *call, const tn_value *args, tn_value *rets);

#endif
