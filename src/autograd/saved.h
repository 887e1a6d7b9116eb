/* SPDX-License-Identifier: MIT */
/* autograd/saved.h: values kept for the backward pass, checked to be unchanged when they are used.
 *
 * A saved argument is the tensor itself. A saved result of the node that saves it is a detached
 * alias, so that node and result do not keep each other alive; unpacking ties it to its node again.
 * With saved-tensor hooks on the thread, what the pack hook returned is kept instead. */
#ifndef TNI_AUTOGRAD_SAVED_H
#define TNI_AUTOGRAD_SAVED_H

#include "autograd/node.h"

typedef struct tni_saved {
    tn_tensor *tensor;               /* strong; NULL: nothing, or hooked */
    struct tni_saved_hooked *hooked; /* what hooks made of it; NULL for nearly all */
    tni_node *view_fn; /* weak; a result written in place through a view: its node then */
    uint32_t version;
    uint32_t output; /* a result: which */
    uint8_t flags;   /* TNI_SAVED_… */
} tni_saved;

enum {
    TNI_SAVED_DEFINED = 1,   /* a tensor was saved here */
    TNI_SAVED_IS_RESULT = 2, /* `tensor` is a detached alias of a result of the owner */
    TNI_SAVED_IS_LEAF = 4,
};

/* Fill @p saved, which is zeroed. @p t NULL: undefined. @p is_result: t is a result of the node
 * that saves it, whose history was set before. @p on_view: and was written in place through a view.
 * @retval TN_INVALID  "Inference tensors cannot be saved for backward. ..." */
TN_NODISCARD tn_status tni_saved_fill(tni_saved *saved, tn_tensor *t, bool is_result, bool on_view);
/* The value, a new reference; NULL for undefined. @p owner: the node that saved it.
 * @retval TN_INVALID  changed since, or freed: the reference's texts. That it was detached since is
 * told to formulas alone. */
TN_NODISCARD tn_status tni_saved_unpack(tni_node *owner, tni_saved *saved,
                                        TN_OWNED tn_tensor **out);
void tni_saved_clear(tni_saved *saved);
/* The lists of saved values of a node, as many as its class says; the layout: node.h. */
static inline tni_saved_list *tni_saved_lists(const tni_node *node)
{
    tni_ints *ints = (tni_ints *)((tni_saved *)node->data + node->cls->n_saved);
    return (tni_saved_list *)(ints + node->cls->n_ints);
}
/* A tensor that shares memory and counter with @p t, and nothing else: what the operator detach
 * gives, without a call. */
TN_NODISCARD tn_status tni_detached(const tn_tensor *t, TN_OWNED tn_tensor **out);
/* The elements of the inference tensor @p t as a tensor that is recorded like others and counts
 * writes for itself. */
TN_NODISCARD tn_status tni_ordinary(const tn_tensor *t, TN_OWNED tn_tensor **out);
/* "Trying to backward through the graph a second time ..." */
TNI_COLD tn_status tni_freed_error(void);
/* "one of the variables needed for gradient computation has been modified by an inplace operation
 * ...": @p t, result @p output of @p fn (NULL: nobody knows), counts @p now writes, not @p then. */
TNI_COLD tn_status tni_written_error(const tn_tensor *t, const tni_node *fn, uint32_t output,
                                     uint32_t now, uint32_t then);

/* For backward functions: saved value @p i of the node, owned by the scope. A failure sticks to the
 * scope, and NULL is returned. */
TN_BORROWED tn_tensor *tni_unpack(const tni_backward *b, uint32_t i);
/* The same for a list of at most TN_MAX_DIMS values; returns how many. */
int64_t tni_unpack_list(const tni_backward *b, const tni_saved_list *list,
                        TN_BORROWED tn_tensor **out);
/* Every saved value of the node, for nothing but whether it can be had. A failure sticks to the
 * scope. */
void tni_unpack_all(const tni_backward *b);

#endif
