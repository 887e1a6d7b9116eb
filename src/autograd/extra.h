/* SPDX-License-Identifier: MIT */
/* autograd/extra.h: what few nodes and few tensors have: hooks, where a node was made, names. */
#ifndef TNI_AUTOGRAD_EXTRA_H
#define TNI_AUTOGRAD_EXTRA_H

#include "autograd/meta.h"

/* Release node->extra and everything in it; NULL is fine. */
void tni_node_extra_free(tni_node *node);
/* The same for a tensor's. */
void tni_meta_extra_free(tni_grad_meta *meta);

/* The history of @p t becomes result @p output of @p node: hooks on the tensor belong to the old
 * one and are dropped, a retains-grad mark moves to the new one. */
TN_NODISCARD tn_status tni_hooks_move(tn_tensor *t, tni_grad_meta *meta, tni_node *node,
                                      uint32_t output);

#endif
