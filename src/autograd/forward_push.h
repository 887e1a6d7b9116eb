/* SPDX-License-Identifier: MIT */
/* autograd/forward_push.h: a call that pushes tangents forward, and what every way to do so needs.
 * The ways are in forward_call.c, forward_edges.c and forward_twice.c. */
#ifndef TNI_AUTOGRAD_FORWARD_PUSH_H
#define TNI_AUTOGRAD_FORWARD_PUSH_H

#include "autograd/forward.h"
#include "tenon/ops.h"

enum { TNI_PUSH_MOST = TNI_SCHEMA_MAX_ARGS };

typedef struct tni_push {
    tn_op *op;
    const tni_schema *schema;
    const tni_forward_rule *rule;
    const tn_value *args;
    tn_value *rets;
    /* Owned; of the arguments that are single tensors and have one. */
    tn_tensor *tangents[TNI_PUSH_MOST];
} tni_push;

/* Elements of a boxed argument that are tensors; NULLs among them. */
static inline int64_t tni_value_tensors(const tn_value *v, tn_tensor *const **out)
{
    if (v->tag == TN_TAG_TENSOR) {
        *out = &v->u.tensor;
        return 1;
    }
    *out = v->tag == TN_TAG_TENSOR_LIST ? v->u.tensors : NULL;
    return v->tag == TN_TAG_TENSOR_LIST ? v->count : 0;
}

/* Whether one of the tensors among the arguments @p is. */
static inline bool tni_push_any(const tni_schema *schema, const tn_value *args,
                                bool (*is)(const tn_tensor *t))
{
    for (uint64_t bits = schema->tensor_args; bits; bits &= bits - 1) {
        tn_tensor *const *list;
        int64_t n = tni_value_tensors(&args[__builtin_ctzll(bits)], &list);
        for (int64_t i = 0; i < n; i++)
            if (is(list[i]))
                return true;
    }
    return false;
}

static inline bool tni_push_differentiable(const tn_tensor *t)
{
    return t && tni_dtype_is_inexact((tn_dtype)t->dtype);
}

static inline tn_status tni_push_call(const tni_push *p, const tn_value *args, tn_value *rets)
{
    return tn_op_call(p->op, args, p->schema->nargs, rets);
}

static inline void tni_push_clear(tn_value *values, int n)
{
    for (int i = 0; i < n; i++)
        tn_value_clear(&values[i]);
}

/* The first result, which the formula is about. */
static inline tn_tensor *tni_push_first(const tni_push *p)
{
    return p->rets[0].tag == TN_TAG_TENSOR ? p->rets[0].u.tensor : NULL;
}

static inline tn_status tni_push_zeros(const tn_tensor *t, tn_tensor **out)
{
    return tn_zeros_like((tn_tensor *)(uintptr_t)t, NULL, TN_FORMAT_PRESERVE, out);
}

/* Give a tangent to a new result, and to what its node kept of it. */
TN_NODISCARD tn_status tni_push_give(tn_tensor *t, tn_tensor *tangent);
/* The same of what was written, whose tangent is prepared; the node of the call is its own, or
 * inside its root's. When memory runs out here the write is there, but neither its tangent nor the
 * tangent of its gradient: who asks for them is told. */
TN_NODISCARD tn_status tni_push_give_written(tn_tensor *t, tn_tensor *tangent);
/* A formula may give the tangent of an argument itself, and writing the result later would write
 * that one: *tangent (may be NULL) becomes a copy unless it is ours alone. */
TN_NODISCARD tn_status tni_push_own(tn_tensor **tangent);
/* Give each result of the call the tangent that stands at its place. */
TN_NODISCARD tn_status tni_push_attach(const tni_push *p, const tn_value *tangents);
/* @p t moved out of the scope, which ends. */
TN_NODISCARD tn_status tni_push_leave(tn_scope *scope, tn_status status, tn_tensor *t,
                                      tn_tensor **out);

/* The tangents by the gradient formulas of the call's node: see Note [Tangents from a node's
 * formulas]. */
TN_NODISCARD tn_status tni_push_element_wise(const tni_push *p);

#endif
