/* SPDX-License-Identifier: MIT */
/* autograd/view.h: what the ADInplaceOrView layer does to a fresh view. */
#ifndef TNI_AUTOGRAD_VIEW_H
#define TNI_AUTOGRAD_VIEW_H

#include "core/tensor.h"

/* @p view is the raw result of a view operator on @p base: from now on they count writes together.
 * A view of an inference tensor is left alone: it counts none.
 * @retval TN_INTERNAL  the kernel returned its own argument */
TN_NODISCARD tn_status tni_view_made(const tn_tensor *base, tn_tensor *view);

/* Before the history of view @p t is used: when its base was written since, the history is rebuilt
 * from the base's.
 * @retval TN_INVALID  the view was made in a way that forbids this, with the reference's text */
TN_NODISCARD tn_status tni_view_refresh(tn_tensor *t);

#endif
