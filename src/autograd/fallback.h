/* SPDX-License-Identifier: MIT */
/* autograd/fallback.h: the kernel of the autograd keys for operators that have none. */
#ifndef TNI_AUTOGRAD_FALLBACK_H
#define TNI_AUTOGRAD_FALLBACK_H

#include "tenon/dispatch.h"

/* Whole-key fallback: records nothing and goes on below autograd. A floating result without a
 * history of a call that should have one is refused: its gradient would be lost; so is a kernel
 * that takes the memory of what operators recorded: its gradient would be wrong. Nothing is
 * excluded on the thread, so that operators which the backend's kernel calls still meet autograd.
 */
TN_NODISCARD tn_status tni_autograd_fallback(tn_call *call, const tn_value *args, tn_value *rets);

#endif
