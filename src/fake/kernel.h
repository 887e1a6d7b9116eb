/* SPDX-License-Identifier: MIT */
/* fake/kernel.h: the kernel of the Fake key, for every operator. */
#ifndef TNI_FAKE_KERNEL_H
#define TNI_FAKE_KERNEL_H

#include "dispatch/call.h"
#include "dispatch/mode.h"
#include "fake/mode.h"

/* Whole-key fallback: checks modes and devices, computes with known values where all are known,
 * else runs the operator's Meta kernel so that it makes fake tensors.
 * @retval TN_INVALID      real tensors, other modes or devices among the arguments; values needed
 * @retval TN_UNSUPPORTED  the operator has no Meta kernel */
TN_NODISCARD tn_status tni_fake_kernel(tn_call *call, const tn_value *args, tn_value *rets);

/* ---- for gate.c ---- */

/* What a Meta kernel is run with. */
#define TNI_FAKE_META_KEYS (TNI_FBIT(TN_KEY_DENSE) | (UINT64_C(1) << TN_DEVICE_META))
/* And what a call has among its keys where limited dtypes stand before it: what refuses them on the
 * CPU does so here. See Note [Limited dtypes] in iter/limited.c. */
#define TNI_FAKE_LIMITED TNI_FBIT(TN_KEY_QUANTIZED)

/* Around a Meta kernel: set this thread so that every tensor that it makes is fake, of @p mode.
 * Back with tni_fake_return. */
static inline tni_fake_switch tni_fake_start(tni_state *s, tni_object *mode)
{
    tni_fake_switch before = tni_fake_remember(s);
    s->fake_mode = mode;
    s->faking = 1;
    tni_include(s, TNI_FAKE_META_KEYS);
    tni_exclude(s, TNI_BELOW_ADINPLACE_OR_VIEW | TNI_KS_FAKE | TNI_KS_PYTHON);
    return before;
}
/* Why a Meta kernel failed, in the words for fake tensors where it was for lack of values. */
tn_status tni_fake_explain_failure(const tn_op *op, tn_status status);
/* Put a result that is none of the arguments on @p device. A Meta kernel that asked for a meta
 * tensor meant one like its arguments; one that brought a tensor from elsewhere meant its geometry.
 * @retval TN_NOMEM */
TN_NODISCARD tn_status tni_fake_settle(tni_object *mode, tn_device device, tn_tensor **place);

#endif
