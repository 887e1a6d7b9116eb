/* SPDX-License-Identifier: MIT */
/* autograd/copy_slices.h: the history of a tensor that was written through a view of it. */
#ifndef TNI_AUTOGRAD_COPY_SLICES_H
#define TNI_AUTOGRAD_COPY_SLICES_H

#include "autograd/view.h"

/* @p fn records a call that wrote @p view; its edge @p at is the view's gradient. A node for the
 * root of the view: gradients of the root go through @p fn where the view lies, and pass elsewhere.
 * Takes its own reference to @p fn. */
TN_NODISCARD tn_status tni_copy_slices_new(const tn_tensor *view, tni_node *fn, uint32_t at,
                                           TN_OWNED tni_node **out);
/* The call's own node inside a node of this kind; NULL: it is of another. */
TN_BORROWED tni_node *tni_copy_slices_fn(const tni_node *node);

#endif
