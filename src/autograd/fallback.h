/* SPDX-License-Identifier: MIT */
/* autograd/fallback.h: operators that have no autograd kernel: that no gradient gets lost. */
#ifndef TNI_AUTOGRAD_FALLBACK_H
#define TNI_AUTOGRAD_FALLBACK_H

#include "tenon/dispatch.h"

/* Whole-key fallback: records nothing and goes on below autograd. A floating result without a
 * history of a call that should have one is refused: its gradient would be lost; so is a kernel
 * that takes the memory of what operators recorded: its gradient would be wrong. Nothing is
 * excluded on the thread, so that operators which the backend's kernel calls still meet autograd.
 */
TN_NODISCARD tn_status tni_autograd_fallback(tn_call *call, const tn_value *args, tn_value *rets);

/* Run a kernel from outside that is registered as made of operators, whose gradients are its
 * gradient. One that looks at elements which have a gradient, in grad mode, and gives floating
 * results without a history computed them itself: refused likewise, and so is one that writes what
 * operators recorded. What it does with tensors that it detached, or without grad mode, it means.
 */
TN_NODISCARD tn_status tni_autograd_composite(tn_call *call, const tn_value *args, tn_value *rets);

#endif
