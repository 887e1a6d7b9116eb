/* SPDX-License-Identifier: MIT */
/* autograd/meta.h: what autograd knows about a tensor, and how a tensor enters a graph.
 *
 * Most of it is in the tensor itself (flags, grad_fn, view_base, …: core/tensor.h); the rest is
 * allocated when first needed: for leaves, and for results that somebody watches. A tensor's meta
 * is changed by the thread that uses the tensor; the accumulator, `.grad` and a view's rebuilt
 * history may be touched by several backward passes at a time and are guarded by `lock`. */
#ifndef TNI_AUTOGRAD_META_H
#define TNI_AUTOGRAD_META_H

#include "autograd/node.h"
#include "core/names.h"

typedef struct tni_grad_meta {
    tni_autograd_meta base; /* destroy */
    tni_node *accumulator;  /* weak: who points at it keeps it, and it keeps the tensor */
    tn_tensor *grad;        /* strong */
    tn_tensor *tangent;     /* strong; forward mode */
    struct tni_meta_extra *_Atomic extra; /* hooks and the like; NULL for nearly all */
    _Atomic bool retains_grad;
    _Atomic bool keeps_accumulator; /* `.data` was set to other sizes: see leave_accumulator */
    tni_spin lock;
    uint8_t turn_era;        /* in which `turn` began, see Note [Locks over fork] */
    _Atomic uint32_t holder; /* who adds to `grad` now, see autograd/hold.c */
    uint32_t n_sums;         /* how often was added to it; who holds it counts */
    /* Of the thread whose foreign code adds to it in place; guarded by lock. */
    struct tni_sum_turn *turn;
    const void *turn_thread; /* which one: after a fork() `turn` may lie on a stack that is gone */
} tni_grad_meta;

static inline tni_grad_meta *tni_meta(const tn_tensor *t)
{
    /* Two threads may be the first to use a leaf. */
    return (tni_grad_meta *)__atomic_load_n(&t->autograd, __ATOMIC_ACQUIRE);
}
/* The meta, made when there is none. @retval TN_NOMEM */
TN_NODISCARD tn_status tni_meta_get(tn_tensor *t, TN_BORROWED tni_grad_meta **out);
/* Name the dimensions of @p t, which has a meta: as @p names say (a reference is taken), or NULL:
 * not at all. */
void tni_meta_set_names(tn_tensor *t, tni_names *names);
/* The same names as @p like, if it has any, whatever the thread looks at. @retval TN_NOMEM */
TN_NODISCARD tn_status tni_meta_same_names(tn_tensor *t, const tn_tensor *like);

/* True for a leaf that was told so, for a result of recorded calls, and for a view of either. NULL:
 * false. */
static inline bool tni_requires_grad(const tn_tensor *t)
{
    return t && ((t->flags & TNI_REQUIRES_GRAD) ||
                 (t->view_base && (t->view_base->flags & TNI_REQUIRES_GRAD)));
}

/* The node that made @p t, NULL for a leaf; *out_output (may be NULL): which of its results. Of a
 * view whose base was written since, the history is rebuilt first (autograd/view.c).
 * @retval TN_INVALID  the view forbids that, with the reference's text */
TN_NODISCARD tn_status tni_grad_fn(tn_tensor *t, TN_BORROWED tni_node **out, uint32_t *out_output);
/* Where the gradient of @p t goes: its grad_fn, else its accumulator (made when needed), else
 * nowhere. The edge's node is a new reference; NULL @p t: nowhere. */
TN_NODISCARD tn_status tni_gradient_edge(tn_tensor *t, tni_edge *out);
/* The accumulator of a leaf that requires grad, made when there is none; a new reference.
 * (autograd/accumulate.c) */
TN_NODISCARD tn_status tni_accumulator(tn_tensor *t, TN_OWNED tni_node **out);

/* @p t is result @p output of @p node from now on (a reference is taken). Drops what belonged to
 * the old history (tensor hooks); a retains-grad mark moves along. Does not touch views. */
TN_NODISCARD tn_status tni_set_grad_fn(tn_tensor *t, tni_node *node, uint32_t output);
/* Take @p t out of its graph: a leaf that does not require grad. */
void tni_clear_history(tn_tensor *t);

#endif
