/* SPDX-License-Identifier: MIT */
/* autograd/record.c: from a call to a node. */
#include "autograd/record.h"
#include "autograd/anomaly.h"
#include "autograd/forward.h"
#include "autograd/view.h"
#include "op/def.h"

#include <stdio.h>
#include <string.h>
#include "tenon/ops.h"

/* ---- recording ---- */

/* Where the gradient of a leaf goes, or of a view whose base was written; see tni_gradient_edge. */
static __attribute__((noinline)) tn_status other_edge(tn_tensor *t, tni_edge *out)
{
    if (t->view_base)
        return tni_gradient_edge(t, out);
    out->input = 0;
    return tni_accumulator(t, &out->node);
}

__attribute__((always_inline)) static inline tn_status attach(tni_node *node, uint32_t i,
                                                              tn_tensor *t, uint32_t *live)
{
    if (!tni_requires_grad(t))
        return TN_OK;
    /* The node of a view is read once it is known to be current: another thread that finds out that
     * it is not puts a new one in its place, and lets go of the old one. */
    tni_edge edge = {NULL, 0};
    if (!t->view_base || TNI_LIKELY(tni_view_was_current(t)))
        edge = (tni_edge){t->grad_fn, t->output};
    if (TNI_LIKELY(edge.node != NULL)) {
        tni_ref(&edge.node->object);
    } else {
        TN_TRY(other_edge(t, &edge));
        if (TNI_UNLIKELY(!edge.node)) /* a view that was made apart from its base's history */
            return TN_OK;
    }
    tni_node_take_edge(node, i, edge);
    *live |= i < 32 ? 1u << i : 0;
    return TN_OK;
}

static __attribute__((noinline)) tn_status attach_list(tni_node *node, uint32_t first,
                                                       tn_tensor *const *list, int64_t n,
                                                       uint32_t *live)
{
    for (int64_t i = 0; i < n; i++)
        TN_TRY(attach(node, first + (uint32_t)i, list[i], live));
    return TN_OK;
}

/* What the call will overwrite is saved as a copy that has the history of the old value. */
static tn_status save_argument(tni_saved *saved, tn_tensor *t, bool rewritten)
{
    if (TNI_LIKELY(!rewritten))
        return tni_saved_fill(saved, t, false, false);
    TN_AUTO(tn_tensor) copy = NULL;
    TN_TRY(tn_clone(t, TN_FORMAT_NONE, &copy));
    if (TNI_UNLIKELY(tni_has_tangent(t)))
        TN_TRY(tni_tangent_copy(t, copy));
    return tni_saved_fill(saved, copy, false, false);
}

/* Does the call write input @p i, under this name or another? A node that kept it would keep
 * itself: the history of what is written ends in it. */
static inline bool is_rewritten(tn_tensor *const *inputs, unsigned i, uint32_t rewritten)
{
    if (TNI_LIKELY(!rewritten))
        return false;
    if (rewritten >> i & 1)
        return true;
    for (uint32_t bits = rewritten; bits && inputs[i]; bits &= bits - 1) {
        const tn_tensor *written = inputs[__builtin_ctz(bits)];
        if (written && written->versions && written->versions == inputs[i]->versions)
            return true;
    }
    return false;
}

tn_status tni_record_begin(const tni_node_class *cls, tn_tensor *const *inputs,
                           tn_tensor *const *list, int64_t list_n, uint32_t n_results,
                           uint32_t rewritten, tni_node **out)
{
    TN_AUTO(tni_node) node = NULL;
    uint32_t singles = cls->n_edges, live = 0;
    TN_TRY(tni_node_new(cls, singles + (uint32_t)list_n, n_results, &node));
    for (uint32_t i = 0; i < singles; i++)
        TN_TRY(attach(node, i, inputs[i], &live));
    if (list_n)
        TN_TRY(attach_list(node, singles, list, list_n, &live));
    /* The only argument is a view apart from its base's history: what is saved does not depend on
     * that, as in the reference, so that a checkpoint that runs again saves as much. */
    if (TNI_UNLIKELY(!live) && singles + list_n == 1)
        live = 1;
    tni_saved *saved = node->data;
    for (uint32_t i = 0; i < cls->n_saved; i++) {
        unsigned from = cls->saved_from[i];
        if (from != TNI_SAVED_RESULT && (!cls->saved_for[i] || (cls->saved_for[i] & live)))
            TN_TRY(save_argument(&saved[i], inputs[from], is_rewritten(inputs, from, rewritten)));
    }
    *out = TN_MOVE(node);
    return TN_OK;
}

TNI_COLD tn_status tni_check_made_slow(const tn_call *call, tn_tensor *const *inputs, int n,
                                       const tn_tensor *t)
{
    for (int i = 0; i < n; i++)
        TN_CHECK(!t || inputs[i] != t, TN_INVALID,
                 "%s returned its argument %d: a kernel below autograd returns tensors of its own, "
                 "for example a clone",
                 tn_op_name(tn_call_op(call)), i);
    return TN_OK;
}

static inline bool has_gradient(const tn_tensor *t)
{
    return t && tni_dtype_is_inexact((tn_dtype)t->dtype);
}

tn_status tni_record_result(tni_node *node, uint32_t i, tn_tensor *t)
{
    if (!has_gradient(t))
        return TN_OK;
    TN_TRY(tni_node_set_input(node, i, t));
    return tni_set_grad_fn(t, node, i);
}

tn_status tni_record_only_result(tni_node **node, tn_tensor *t)
{
    if (!has_gradient(t))
        return TN_OK;
    TN_TRY(tni_node_set_input(*node, 0, t));
    if (TNI_UNLIKELY(t->grad_fn || t->autograd || tni_anomaly()))
        return tni_set_grad_fn(t, *node, 0);
    /* A fresh tensor: there is nothing to move along, and the caller's reference becomes its. */
    t->grad_fn = TN_MOVE(*node);
    t->flags |= TNI_REQUIRES_GRAD | TNI_HAS_GRAD_FN;
    tni_view_is_current(t);
    return TN_OK;
}

tn_status tni_record_list(tni_node *node, tn_tensor **list, int64_t n)
{
    int64_t end = n;
    while (end > 0 && !has_gradient(list[end - 1]))
        end--;
    tn_status status = tni_node_expect_inputs(node, (uint32_t)end);
    for (int64_t i = 0; i < end && status == TN_OK; i++)
        status = tni_record_result(node, (uint32_t)i, list[i]);
    if (status != TN_OK)
        tn_tensor_list_free(list, n);
    return status;
}

/* Returns @p status, why @p t, which was written, could not be recorded. */
static TNI_COLD tn_status not_recorded(tni_node *node, tn_tensor *t, tn_status status)
{
    tni_node_break(node);
    tni_history_lost(t, node);
    return status;
}

tn_status tni_record_written(tni_node *node, tn_tensor *t)
{
    if (!has_gradient(t))
        return TN_OK;
    tn_status status = tni_node_set_input(node, 0, t);
    if (TNI_LIKELY(status == TN_OK))
        status = tni_rebase_history(t, node);
    return TNI_LIKELY(status == TN_OK) ? TN_OK : not_recorded(node, t, status);
}

tn_status tni_record_moved(tni_node **node, tn_tensor *t)
{
    tn_status status = tni_record_only_result(node, t);
    if (TNI_LIKELY(status == TN_OK))
        return TN_OK;
    tni_node_break(*node);
    tni_node *old = t->grad_fn;
    t->grad_fn = TN_MOVE(*node);
    t->output = 0;
    t->flags |= TNI_REQUIRES_GRAD | TNI_HAS_GRAD_FN;
    if (t->view_base)
        tni_view_is_current(t);
    tni_node_unref(old);
    return status;
}

tn_status tni_record_save(tni_node *node, uint32_t slot, tn_tensor *t)
{
    const uint32_t needed = node->cls->saved_for[slot];
    bool live = !needed || node->n_edges == 1;
    for (uint32_t i = 0; i < node->n_edges && i < 32; i++)
        live = live || (node->edges[i].node && (needed >> i & 1));
    if (!live)
        return TN_OK;
    tni_saved *saved = node->data;
    return tni_saved_fill(&saved[slot], t, true, t && t->view_base);
}

tn_status tni_record_save_written(tni_node *node, uint32_t slot, tn_tensor *t)
{
    tn_status status = tni_record_save(node, slot, t);
    return TNI_LIKELY(status == TN_OK) ? TN_OK : not_recorded(node, t, status);
}

/* ---- what cannot be recorded ---- */

enum { NAME_LENGTH = 128 };

/* "aten::add" of "aten::add.Tensor"; without the namespace when @p bare. */
static const char *plain_name(const tn_op *op, bool bare, char *buffer)
{
    const char *name = tn_op_name(op), *colon = strstr(name, "::");
    snprintf(buffer, NAME_LENGTH, "%s", bare && colon ? colon + 2 : name);
    buffer[strcspn(buffer, ".")] = 0;
    return buffer;
}

tn_status tni_refuse_out(const tn_call *call)
{
    char name[NAME_LENGTH];
    TN_FAIL(TN_INVALID,
            "%s(): functions with out=... arguments don't support automatic differentiation, but "
            "one of the arguments requires grad.",
            plain_name(call->op, true, name));
}

/* Under the name by which the reference knows the formula: nextafter of nextafter_, zeta of
 * special_zeta. */
static TNI_COLD tn_status not_implemented(const tn_call *call)
{
    static const char home[] = "special_";
    char buffer[NAME_LENGTH];
    const char *name = plain_name(call->op, true, buffer);
    size_t n = strlen(name);
    if (strncmp(name, home, sizeof home - 1) == 0)
        name += sizeof home - 1, n -= sizeof home - 1;
    n -= n > 1 && name[n - 1] == '_';
    TN_FAIL(TN_UNSUPPORTED, "the derivative for '%.*s' is not implemented.", (int)n, name);
}

tn_status tni_refuse_derivative(const tn_call *call, const tn_tensor *t)
{
    return tni_requires_grad(t) ? not_implemented(call) : TN_OK;
}

tn_status tni_refuse_operator(const tn_call *call)
{
    const tni_op_def *def = call->op->builtin;
    if (def && (def->flags & TNI_OP_NOT_IMPLEMENTED))
        return not_implemented(call);
    char name[NAME_LENGTH];
    TN_FAIL(TN_UNSUPPORTED, "derivative for %s is not implemented",
            plain_name(call->op, false, name));
}

tn_status tni_refuse_results(const tn_call *call, tn_status status, tn_tensor **const *results,
                             int n)
{
    if (status != TN_OK)
        return status;
    bool any = false;
    for (int i = 0; i < n; i++)
        any = any || has_gradient(*results[i]);
    if (!any)
        return TN_OK;
    for (int i = 0; i < n; i++) {
        tn_tensor_unref(*results[i]);
        *results[i] = NULL;
    }
    return tni_refuse_operator(call);
}

tn_status tni_refuse_list(const tn_call *call, tn_status status, tn_tensor ***list, int64_t *n)
{
    if (status != TN_OK)
        return status;
    bool any = false;
    for (int64_t i = 0; i < *n; i++)
        any = any || has_gradient((*list)[i]);
    if (!any)
        return TN_OK;
    tn_tensor_list_free(*list, *n);
    *list = NULL;
    *n = 0;
    return tni_refuse_operator(call);
}

tn_status tni_refuse_gradient(const tn_call *call, const char *name, const tn_tensor *t)
{
    if (!tni_requires_grad(t))
        return TN_OK;
    char fn[NAME_LENGTH];
    TN_FAIL(TN_INVALID,
            "The function '%s' is not differentiable with respect to argument '%s'. This input "
            "cannot have requires_grad True.",
            plain_name(call->op, true, fn), name);
}

tn_status tni_refuse_lists(const tn_call *call, const char *name, tn_tensor *const *list, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        TN_TRY(tni_refuse_gradient(call, name, list[i]));
    return TN_OK;
}
