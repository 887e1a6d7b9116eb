/* SPDX-License-Identifier: MIT */
/* iter/limited.h: the kernel of dtypes that few operators take. */
#ifndef TNI_ITER_LIMITED_H
#define TNI_ITER_LIMITED_H

#include "tenon/dispatch.h"

/* For every operator without a kernel of its own for such tensors: refuse, or go on to the kernels
 * of the device. See Note [Limited dtypes]. */
TN_NODISCARD tn_status tni_limited_kernel(tn_call *call, const tn_value *args, tn_value *rets);

#endif
