/* SPDX-License-Identifier: MIT */
/* autograd/inplace.h: writing into tensors that have a history. */
#ifndef TNI_AUTOGRAD_INPLACE_H
#define TNI_AUTOGRAD_INPLACE_H

#include "autograd/meta.h"
#include "core/state.h"

/* May @p t be written by a call that is recorded? Called before the kernel.
 * @retval TN_INVALID  a leaf, a view of a leaf, or a view that forbids it: the reference's texts */
TN_NODISCARD tn_status tni_check_inplace(tn_tensor *t);
/* What was made before this transform, the innermost of this thread that differentiates, must not
 * be written. 0: none, or in a backward pass. See Note [Captured tensors]. */
TNI_HIDDEN extern
    __attribute__((tls_model("initial-exec"))) _Thread_local uint32_t tni_differentiating;
/* Called before the kernel of an in-place operator.
 * @retval TN_INVALID  @p t was made before the transform that the thread is in */
TNI_COLD TN_NODISCARD tn_status tni_refuse_captured(const tn_call *call, const tn_tensor *t);
static inline tn_status tni_check_captured(const tn_call *call, const tn_tensor *t)
{
    return TNI_LIKELY(!tni_tls.transform) ? TN_OK : tni_refuse_captured(call, t);
}
/* @p t was written by the call that @p node records (one input, described already): its history is
 * now @p node; of a view, the base's history is a CopySlices node and the view's is rebuilt.
 * Called after the version was counted up. */
TN_NODISCARD tn_status tni_rebase_history(tn_tensor *t, tni_node *node);
/* The same for a view, when edge @p at of @p node, not the first, is the view's gradient. */
TN_NODISCARD tn_status tni_rebase_view(tn_tensor *t, tni_node *node, uint32_t at);
/* @p t was written, and recording that failed. Whoever goes on with it must not get gradients as if
 * nothing had been written: @p node, whose turn is an error from now on, becomes the history of
 * what was written, unless it is part of it already. Views find out when they are used, for the
 * write was counted. Takes no memory, and leaves the thread's error alone. */
TNI_COLD void tni_history_lost(tn_tensor *t, tni_node *node);

#endif
