/* SPDX-License-Identifier: MIT */
/* autograd/extra.h: what few nodes and few tensors have: hooks, and where a node was made.
 *
 * Hooks of a result belong to the node that made it, under the number of the result; those of a
 * leaf belong to the tensor, because its accumulator comes and goes.
 *
 * A list of hooks never changes once others may see it: adding and removing replace it, under the
 * owner's lock. Who runs hooks takes a reference to the list and needs no lock. */
#ifndef TNI_AUTOGRAD_EXTRA_H
#define TNI_AUTOGRAD_EXTRA_H

#include "autograd/meta.h"

struct tni_hook_list;

struct tni_node_extra {
    struct tni_hook_list *hooks; /* guarded by node->lock */
    char *made;                  /* where the node was made, in words; NULL: not known */
    tni_node *parent;            /* strong; in whose turn it was made; NULL: in none */
};

struct tni_meta_extra {
    struct tni_hook_list *hooks; /* guarded by meta->lock */
};

/* node->extra, made when there is none. @retval TN_NOMEM */
TN_NODISCARD tn_status tni_node_extra_get(tni_node *node, struct tni_node_extra **out);
/* Release node->extra and everything in it; NULL is fine. */
void tni_node_extra_free(tni_node *node);
/* The same for a tensor's. */
void tni_meta_extra_free(tni_grad_meta *meta);

/* The history of @p t is to be result @p output of @p node, which nobody else knows yet: a
 * retains-grad mark is put on it too. @retval TN_NOMEM */
TN_NODISCARD tn_status tni_hooks_follow(tn_tensor *t, const tni_grad_meta *meta, tni_node *node,
                                        uint32_t output);
/* Now it is: the mark on @p old (NULL: it had none) goes, and so do hooks on the tensor, which
 * belong to its old history. */
void tni_hooks_leave(const tn_tensor *t, tni_grad_meta *meta, tni_node *old);

/* What the engine calls in a node's turn. @p grads and @p results are the engine's references,
 * replaced where a hook says so.
 *
 * Tensor hooks, then kept gradients. */
TN_NODISCARD tn_status tni_run_tensor_hooks(tni_node *node, tn_tensor **grads);
TN_NODISCARD tn_status tni_run_pre_hooks(tni_node *node, tn_tensor **grads);
TN_NODISCARD tn_status tni_run_post_hooks(tni_node *node, tn_tensor **results,
                                          tn_tensor *const *grads);
/* After a gradient was added to the leaf @p t. */
TN_NODISCARD tn_status tni_run_accumulated_hooks(tn_tensor *t);

#endif
