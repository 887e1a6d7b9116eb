/* SPDX-License-Identifier: MIT */
/* autograd/call_node.c: a node's formula as a function, outside of a pass: no hook is called, and
 * what the node saved stays. */
#include "autograd/saved.h"
#include "autograd/validate.h"
#include "base/alloc.h"
#include "core/scope.h"
#include "tenon/autograd.h"

/* The gradients in the form that the node's inputs have, with references of their own: a formula
 * that holds the last one writes into it. */
static tn_status fit_grads(const tni_node *node, tn_tensor *const *grads, tn_tensor **fitting)
{
    for (uint32_t i = 0; i < node->n_inputs; i++) {
        if (!grads[i])
            continue;
        const tni_input *in = &node->inputs[i];
        TN_CHECK(in->dtype != TN_DTYPE_NONE, TN_INVALID, "%s: result %u has no gradient",
                 node->cls->name, i);
        if (tni_gradient_fits(grads[i], in))
            fitting[i] = tn_tensor_ref(grads[i]);
        else
            TN_TRY(tni_gradient_fit(NULL, i, in, grads[i], &fitting[i]));
    }
    return TN_OK;
}

static tn_status apply(tni_backward *b)
{
    bool any = (b->node->cls->flags & TNI_CLASS_RUN_UNDEFINED) != 0;
    for (uint32_t i = 0; i < b->node->n_inputs; i++)
        any = any || b->grads[i];
    if (any)
        return b->node->cls->apply(b);
    tni_unpack_all(b); /* what a formula would need must be there, as in a pass */
    return TN_OK;
}

/* What belongs to the scope, as the caller's own, in the form that the next nodes want. */
static tn_status take_results(const tni_node *node, tn_tensor *const *made, tn_tensor **out)
{
    for (uint32_t i = 0; i < node->n_edges; i++) {
        const tni_edge *edge = &node->edges[i];
        if (!made[i] || !edge->node)
            continue;
        const tni_input *in = &edge->node->inputs[edge->input];
        if (tni_gradient_fits(made[i], in))
            out[i] = tn_tensor_ref(made[i]);
        else
            TN_TRY(tni_gradient_fit(node, i, in, made[i], &out[i]));
    }
    return TN_OK;
}

static tn_status in_scope(tni_node *node, tn_tensor *const *grads, tn_tensor **made,
                          tn_tensor **out)
{
    tn_scope *scope;
    tni_backward b = {node, grads, made, NULL};
    TN_TRY(tni_scope_enter_fenced(&scope));
    tn_status status = apply(&b);
    if (status == TN_OK)
        status = tni_scope_settle();
    if (status == TN_OK)
        status = take_results(node, made, out);
    tn_status left = tn_scope_leave(scope);
    return status == TN_OK ? left : status;
}

tn_status tn_node_call(tn_node *node, tn_tensor *const *grads, int64_t n, tn_tensor **out)
{
    TN_CHECK(node && (grads || n == 0) && n >= 0, TN_INVALID, "tn_node_call: nothing to call");
    TN_CHECK(n == node->n_inputs, TN_INVALID, "expected %u arguments, got %lld instead",
             node->n_inputs, (long long)n);
    TN_CHECK(out || node->n_edges == 0, TN_INVALID, "tn_node_call: out is NULL");
    size_t inputs = node->n_inputs, edges = node->n_edges;
    tn_tensor **room = tni_calloc((inputs + 2 * edges + 1) * sizeof *room);
    TN_CHECK(room, TN_NOMEM, "cannot allocate gradients of a node");
    tn_tensor **fitting = room, **made = room + inputs, **results = made + edges;
    tn_status status = fit_grads(node, grads, fitting);
    if (status == TN_OK)
        status = in_scope(node, fitting, made, results);
    for (size_t i = 0; i < inputs; i++)
        tn_tensor_unref(fitting[i]);
    for (size_t i = 0; i < edges; i++)
        if (status == TN_OK)
            out[i] = results[i];
        else
            tn_tensor_unref(results[i]);
    tni_free(room);
    return status;
}
