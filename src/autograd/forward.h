/* SPDX-License-Identifier: MIT */
/* autograd/forward.h: tangents, and how calls push them forward.
 *
 * A tensor's tangent is in its meta, with TNI_HAS_TANGENT in its flags. A view that has none of its
 * own has the same view of its base's. While tangents are computed the thread pushes none
 * (no_forward_grad), so that formulas use dual tensors as plain ones. */
#ifndef TNI_AUTOGRAD_FORWARD_H
#define TNI_AUTOGRAD_FORWARD_H

#include "autograd/record.h"
#include "tenon/forward.h"

/* Nonzero while the dual level is entered: there are no tangents else. */
TNI_HIDDEN extern _Atomic uint32_t tni_forward_level;
#define tni_forward_on (atomic_load_explicit(&tni_forward_level, memory_order_relaxed) != 0)

/* ---- what kernels ask ---- */

/* Whether a call may have to be recorded or to push tangents, as far as the thread is asked … */
#define tni_watching_tensors (tni_recording || tni_forward_on)
/* … and as far as a tensor is. NULL: no. */
static inline bool tni_watched(const tn_tensor *t)
{
    const uint32_t either = TNI_REQUIRES_GRAD | TNI_HAS_TANGENT;
    return t && ((t->flags & either) || (t->view_base && (t->view_base->flags & either)));
}
static inline bool tni_any_watched(tn_tensor *const *list, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (tni_watched(list[i]))
            return true;
    return false;
}
static inline bool tni_has_tangent(const tn_tensor *t)
{
    return t && ((t->flags & TNI_HAS_TANGENT) || (t->view_base && !(t->flags & TNI_NO_TANGENT) &&
                                                  (t->view_base->flags & TNI_HAS_TANGENT)));
}

/* Whether a call of this thread with @p t would push its tangent forward. NULL: no. */
static inline bool tni_pushes_tangent(const tn_tensor *t)
{
    return tni_forward_on && !tni_tls.no_forward_grad && tni_has_tangent(t);
}

/* What a kernel does first while the level is entered. True: the call is made, *status says how it
 * went, and on TN_OK @p rets has owned values; its results have tangents if arguments had. False:
 * no tangents came in and the call is to be recorded, as without forward mode.
 * @retval TN_UNSUPPORTED  (*status) the operator has no rule, with the reference's text */
bool tni_forward_call(tn_call *call, const tn_value *args, tn_value *rets, tn_status *status);

/* ---- tangents ---- */

/* A new reference to the tangent of @p t; NULL: none. */
TN_NODISCARD tn_status tni_tangent(tn_tensor *t, TN_OWNED tn_tensor **out);
/* @p view, a fresh view of @p of, has the same view of its tangent; nothing when that has none of
 * its own. For views that are made while the user has calls push no tangents: of a dual tensor,
 * whose root is the primal, the tangent would not be found later. */
TN_NODISCARD tn_status tni_tangent_of_view(const tn_tensor *of, tn_tensor *view);
/* Do two tensors of the same sizes have the same strides? Those of dimensions that have no second
 * element say nothing. */
bool tni_same_strides(const tn_tensor *a, const tn_tensor *b);
/* Give @p t this tangent, brought to its sizes, dtype and layout. */
TN_NODISCARD tn_status tni_tangent_set(tn_tensor *t, tn_tensor *tangent);
/* @p t, which is no view, has no tangent of its own any more. */
void tni_tangent_drop(tn_tensor *t);
/* Give @p to, a copy of @p from, a copy of its tangent. */
TN_NODISCARD tn_status tni_tangent_copy(tn_tensor *from, tn_tensor *to);
/* @p t was written: its tangent is now @p tangent, NULL for zero. Written into the one it has;
 * else, of a view, into a new one of its base. */
TN_NODISCARD tn_status tni_tangent_written(tn_tensor *t, tn_tensor *tangent);
/* The same in two steps, so that a write and its tangent are both made or neither is. Before the
 * write: take the memory that it needs, and bring *tangent (owned; may be NULL) to the layout of
 * @p t. A view whose base had no tangent has one from here on, of zeros, as the base has: when the
 * write is refused, and @p given says that there was none before, tni_tangent_unprepare takes them
 * away. */
TN_NODISCARD tn_status tni_tangent_prepare(tn_tensor *t, tn_tensor **tangent, bool *given);
void tni_tangent_unprepare(tn_tensor *t);
/* After it. Takes no memory unless the tangents are themselves recorded. */
TN_NODISCARD tn_status tni_tangent_commit(tn_tensor *t, tn_tensor *tangent);
/* @p t was written, and its tangent, prepared before, could not be: from here on, until the level
 * is left, the tangents that lie in the same memory are refused. Takes no memory, and leaves the
 * thread's error alone. */
TNI_COLD void tni_tangent_lost(tn_tensor *t);
/* @p t, whose tangent tni_tangent has given, lies otherwise from now on: so does its tangent.
 * Cannot fail. */
void tni_tangent_moved(tn_tensor *t, tn_tensor *tangent);

/* ---- rules, from `jvp` lines ---- */

enum {
    TNI_JVP_NONE,
    TNI_JVP_LINEAR,       /* the operator, of the tangents */
    TNI_JVP_ELEMENT_WISE, /* the node's formula of each argument, of its tangent */
    TNI_JVP_FORMULA,
    TNI_JVP_WRITTEN, /* what the twin gives that does not write */
    TNI_JVP_FOLLOW,  /* the operator, of the tangent of what it writes */
    TNI_JVP_MOVED,   /* the twin, a view, of the tangent: the operator changes sizes alone */
    TNI_JVP_TWICE,   /* the gradient of the gradient formulas */
};

/* What a formula computes with; arguments and tangents by their place in the schema. */
typedef struct tni_forward {
    const tn_value *args, *results;
    tn_tensor *const *tangents; /* NULL: zero */
} tni_forward;

typedef struct tni_forward_rule {
    uint16_t op, twin; /* TNI_OP_… */
    uint8_t kind;
    uint64_t edges;   /* bit i: argument i has a gradient */
    uint64_t without; /* it has none, and must have no tangent */
    /* The tangent of the first result; belongs to the scope, where failures stick. */
    tn_tensor *(*formula)(const tni_forward *f);
} tni_forward_rule;

extern const tni_forward_rule tni_forward_rules[];
extern const int tni_forward_n_rules;

/* Call @p op and give its results to @p rets, owned, and their tangents to @p made, owned, NULL for
 * zero; @p tangents are those of the arguments. On failure both may be filled in part. */
TN_NODISCARD tn_status tni_forward_twice(tn_op *op, const tn_value *args,
                                         tn_tensor *const *tangents, tn_value *rets,
                                         tn_tensor **made);

/* The tangent of an argument, zeros when it has none; belongs to the scope. */
TN_BORROWED tn_tensor *tni_jvp_tangent(const tni_forward *f, int argument);
/* The sum of two terms; @p a is NULL before the first. */
TN_BORROWED tn_tensor *tni_jvp_sum(tn_tensor *a, tn_tensor *b);
tn_scalar tni_jvp_scalar(const tn_value *v);
tn_dtype tni_jvp_dtype(const tn_value *v);
tn_opt_int tni_jvp_opt_int(const tn_value *v);
tn_opt_bool tni_jvp_opt_bool(const tn_value *v);
/* NULL or @p room. */
const tn_scalar *tni_jvp_opt_scalar(const tn_value *v, tn_scalar *room);

#endif
