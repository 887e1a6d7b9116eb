/* SPDX-License-Identifier: MIT */
/* autograd/view.h: views as gradients see them.
 *
 * The record of a view is in the tensor itself: what it is at root a view of (view_base, strong),
 * the counter when its history was last right (view_version), and how it was made (the
 * TNI_VIEW_… flags). There is no replay function: no view operator changes the dtype, so that
 * sizes, strides and offset say how to make a view again from its root. */
#ifndef TNI_AUTOGRAD_VIEW_H
#define TNI_AUTOGRAD_VIEW_H

#include "core/tensor.h"

/* @p view is the raw result of a view operator on @p base: from now on they count writes together,
 * and @p view is recorded as a view of the root of @p base. A view of an inference tensor is left
 * alone: it counts none.
 * @retval TN_INTERNAL  the kernel returned its own argument */
TN_NODISCARD tn_status tni_view_made(const tn_tensor *base, tn_tensor *view);
/* The same for one of several views that one call returned: while gradients are recorded such views
 * cannot be written. */
TN_NODISCARD tn_status tni_multi_view_made(const tn_tensor *base, tn_tensor *view);
/* The same for a view that takes no part in gradients (detach): they count writes together, and
 * nothing else is recorded. */
TN_NODISCARD tn_status tni_alias_made(const tn_tensor *base, tn_tensor *view);

/* Before the history of view @p t is used: when its base was written since, the history is rebuilt
 * from the base's.
 * @retval TN_INVALID  the view was made in a way that forbids this, with the reference's text */
TN_NODISCARD tn_status tni_view_refresh(tn_tensor *t);

#endif
