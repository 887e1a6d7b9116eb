/* SPDX-License-Identifier: MIT */
/* autograd/accumulate.h: adding up gradients in `.grad`. */
#ifndef TNI_AUTOGRAD_ACCUMULATE_H
#define TNI_AUTOGRAD_ACCUMULATE_H

#include "autograd/meta.h"

/* The leaf that @p node adds gradients to; NULL when it is no accumulator. */
TN_BORROWED tn_tensor *tni_accumulator_variable(const tni_node *node);
/* The accumulator that @p t has already, a new reference; NULL for none: then no graph leads to it.
 */
TN_OWNED tni_node *tni_accumulator_if_any(tn_tensor *t);

/* tni_node_unref of an accumulator, which nearly always is the last reference: what is left of it
 * waits for the next graph. */
void tni_accumulator_unref(TN_STOLEN tni_node *node);

/* How a gradient is added to @p had, that of @p t, or NULL: by writing into it, if it may be
 * written to, or by giving what replaces it. */
typedef tn_status (*tni_add_fn)(tn_tensor *t, tn_tensor *had, tn_tensor *grad, bool may_write,
                                tn_tensor **fresh);
/* Add to `.grad` of @p t, one thread after the other; see Note [Adding to a gradient]. @p writes:
 * by writing into what is there, if there is something. Threads that a fork() left behind hold
 * nothing. (autograd/hold.c) */
TN_NODISCARD tn_status tni_grad_add(tn_tensor *t, tn_tensor *grad, tni_add_fn add, bool writes);
/* Make @p grad the gradient; the old one, a reference. */
TN_OWNED tn_tensor *tni_grad_swap(tni_grad_meta *meta, TN_STOLEN tn_tensor *grad);

/* Whether @p t has no memory of its own that could be added to; see Note [Gradients without
 * memory].
 */
TNI_COLD bool tni_is_shell(const tn_tensor *t);

/* The same as below of a tensor that shares its memory: with a tensor of as many elements, which
 * nobody but itself, a view of that, keeps? So come gradients of what was transposed. */
TNI_COLD bool tni_is_alone_with_base(const tn_tensor *t);
/* Is this the only reference to @p t, and is @p t alone on its memory? */
static inline bool tni_is_alone(const tn_tensor *t)
{
    if (tni_strong_count(&t->object) != 1 || t->storage->side == TNI_SIDE_FOREIGN)
        return false;
    return tni_strong_count(&t->storage->object) == 1 || tni_is_alone_with_base(t);
}
/* The same, and may it be written? What Python stands for may hold memory that others have too: a
 * slice of what a pass was given, say. */
static inline bool tni_is_ours(const tn_tensor *t)
{
    return tni_is_alone(t) && !(t->keys & TNI_FBIT(TN_KEY_PYTHON));
}

#endif
