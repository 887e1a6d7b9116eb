/* SPDX-License-Identifier: MIT */
/* autograd/forward_edges.c: tangents of elementwise operators: the Jacobian is a diagonal, and so
 * its own transpose, which the node of the call knows. */
#include "autograd/forward_push.h"

#include <string.h>
#include "gen/gradients.h"

/* Note [Tangents from a node's formulas]
 * The gradient formula of an elementwise argument multiplies with the conjugate of its derivative:
 * of the conjugate of a tangent it gives the conjugate of what is wanted. It is in a node, which
 * keeps what it needs for the edges that are live. When recording the call gives such a node
 * anyway it is used; else the call is made with aliases of the arguments that have tangents, told
 * to require grad for its duration, and what it returns is taken out of that graph again. */

static bool holds(const tni_push *p, int i)
{
    return p->tangents[i] != NULL;
}

/* Whether the recorded call gave @p t a live edge. A view that was made without grad requires grad
 * when its base does, and has none. */
static bool has_edge(const tn_tensor *t)
{
    return (t->flags & TNI_REQUIRES_GRAD) != 0;
}

/* An alias of argument @p i in @p args, which may be told to require grad. */
static tn_status alias_argument(const tni_push *p, int i, tn_value *args)
{
    tn_tensor *alias = NULL, *t = p->args[i].u.tensor;
    TN_TRY(t->versions ? tni_detached(t, &alias) : tni_ordinary(t, &alias));
    if (holds(p, i))
        alias->flags |= TNI_REQUIRES_GRAD;
    args[i] = tn_value_take_tensor(alias);
    return TN_OK;
}

/* Call with aliases of all single tensors (@p all) or of those alone whose tangent would have no
 * live edge. */
static tn_status call_apart(const tni_push *p, bool all, tn_value *args, tn_value *rets)
{
    for (uint64_t bits = p->schema->tensor_args; bits; bits &= bits - 1) {
        int i = __builtin_ctzll(bits);
        if (args[i].tag != TN_TAG_TENSOR || !args[i].u.tensor)
            continue;
        if (all || (holds(p, i) && !has_edge(args[i].u.tensor)))
            TN_TRY(alias_argument(p, i, args));
    }
    uint8_t old = tni_tls.no_grad;
    tni_tls.no_grad = 0;
    tn_status status = tni_push_call(p, args, rets);
    tni_tls.no_grad = old;
    for (int i = 0; i < p->schema->nargs; i++)
        if (args[i].flags & TN_VALUE_OWNED)
            args[i].u.tensor->flags &= ~(uint32_t)TNI_REQUIRES_GRAD;
    return status;
}

/* A new reference to the node that made @p t. */
static tn_status node_of(tn_tensor *t, tni_node **out)
{
    tni_node *node = NULL;
    if (t)
        TN_TRY(tni_grad_fn(t, &node, NULL));
    *out = tni_node_ref(node);
    return TN_OK;
}

/* Make the call: results go to p->rets. *out: a node with a live edge for each tangent. */
static tn_status call_for_node(const tni_push *p, tni_node **out)
{
    bool recorded = tni_recording && tni_push_any(p->schema, p->args, tni_requires_grad),
         missing = false;
    tn_value args[TNI_PUSH_MOST], apart[TNI_PUSH_MOST] = {{0}};
    memcpy(args, p->args, (size_t)p->schema->nargs * sizeof *args);
    if (recorded) {
        TN_TRY(tni_push_call(p, p->args, p->rets)); /* also brings views up to date */
        for (int i = 0; i < p->schema->nargs; i++)
            missing = missing || (holds(p, i) && !has_edge(p->args[i].u.tensor));
        if (!missing)
            return node_of(tni_push_first(p), out);
    }
    tn_value *rets = recorded ? apart : p->rets;
    tn_status status = call_apart(p, !recorded, args, rets);
    bool one = status == TN_OK && rets[0].tag == TN_TAG_TENSOR;
    if (one)
        status = node_of(rets[0].u.tensor, out);
    if (one && !recorded)
        tni_clear_history(rets[0].u.tensor);
    for (int i = 0; i < p->schema->nargs; i++)
        if (args[i].flags & TN_VALUE_OWNED)
            tn_value_clear(&args[i]);
    tni_push_clear(apart, p->schema->nrets);
    return status;
}

/* @p tangent as a gradient of @p result: its sizes and dtype, conjugated. Belongs to the scope. */
static tn_tensor *as_gradient(const tn_tensor *result, tn_tensor *tangent)
{
    tn_tensor *t = tni_grad_conj(tangent);
    if (t &&
        tn_dtype_is_complex((tn_dtype)result->dtype) != tn_dtype_is_complex((tn_dtype)t->dtype))
        return tnx_expand(t, result->sizes, result->ndim, false);
    t = tnx_to_dtype(t, (tn_dtype)result->dtype, false, false, TN_FORMAT_NONE);
    return tnx_expand(t, result->sizes, result->ndim, false);
}

/* What the node's formula of edge @p edge gives. Belongs to the scope. */
static tn_tensor *run_edge(tni_node *node, uint32_t edge, tn_tensor *gradient)
{
    tn_tensor *results[TNI_PUSH_MOST] = {NULL}, *grads[TNI_PUSH_MOST] = {gradient};
    bool wanted[TNI_PUSH_MOST] = {false};
    if (tni_scope_failed() || node->n_edges > TNI_PUSH_MOST || node->n_inputs > TNI_PUSH_MOST)
        return NULL;
    wanted[edge] = true;
    tni_backward b = {node, grads, results, wanted};
    tn_status status = node->cls->apply(&b);
    if (status != TN_OK && tni_scope_settle() == TN_OK)
        return tni_scope_result(status, NULL);
    return results[edge];
}

static tn_tensor *sum_of_edges(const tni_push *p, const tn_tensor *result, tni_node *node)
{
    tn_tensor *sum = NULL;
    uint32_t edge = 0;
    for (uint64_t bits = p->rule->edges; bits; bits &= bits - 1, edge++) {
        int i = __builtin_ctzll(bits);
        if (!holds(p, i))
            continue;
        tn_tensor *t = run_edge(node, edge, as_gradient(result, p->tangents[i]));
        if (t)
            sum = tni_jvp_sum(sum, tni_grad_conj(t));
    }
    /* Of a real result a complex tangent has a real part that moves it; the other part is no loss.
     */
    if (sum && !tn_dtype_is_complex((tn_dtype)result->dtype) &&
        tn_dtype_is_complex((tn_dtype)sum->dtype))
        return tnx_real(sum);
    return sum;
}

static bool tangents_require_grad(const tni_push *p)
{
    for (int i = 0; i < p->schema->nargs; i++)
        if (tni_requires_grad(p->tangents[i]))
            return true;
    return false;
}

tn_status tni_push_element_wise(const tni_push *p)
{
    TN_AUTO(tni_node) node = NULL;
    TN_AUTO(tn_tensor) tangent = NULL;
    tn_scope *scope;
    tn_status status = call_for_node(p, &node);
    tn_tensor *result = status == TN_OK ? tni_push_first(p) : NULL;
    uint8_t old = tni_tls.no_grad;
    if (!tni_push_any(p->schema, p->args, tni_requires_grad) && !tangents_require_grad(p))
        tni_tls.no_grad = 1; /* what the node keeps looks as if it required grad */
    if (status == TN_OK && node && tni_push_differentiable(result)) {
        status = tn_scope_enter(&scope);
        if (status == TN_OK)
            status = tni_push_leave(scope, TN_OK, sum_of_edges(p, result, node), &tangent);
        if (status == TN_OK)
            status = tni_push_own(&tangent);
        if (status == TN_OK && tangent)
            status = tni_push_give(result, tangent);
    }
    tni_tls.no_grad = old;
    if (status != TN_OK)
        tni_push_clear(p->rets, p->schema->nrets);
    return status;
}
