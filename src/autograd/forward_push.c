/* SPDX-License-Identifier: MIT */
/* autograd/forward_push.c: how results get their tangents, also those that nodes keep. See
 * forward_push.h. */
#include "autograd/forward_push.h"

#include "autograd/accumulate.h"
#include "autograd/copy_slices.h"

/* A node keeps results apart from their history: what it kept of result @p output gets its
 * tangent. */
static tn_status give_saved(tni_node *node, uint32_t output, tn_tensor *tangent)
{
    tni_saved *saved = node ? node->data : NULL;
    for (uint32_t i = 0; node && i < node->cls->n_saved; i++)
        if ((saved[i].flags & TNI_SAVED_IS_RESULT) && saved[i].output == output && saved[i].tensor)
            TN_TRY(tni_tangent_set(saved[i].tensor, tangent));
    return TN_OK;
}

tn_status tni_push_give(tn_tensor *t, tn_tensor *tangent)
{
    TN_TRY(tni_tangent_set(t, tangent));
    return give_saved(t->grad_fn, t->output, tangent);
}

tn_status tni_push_give_written(tn_tensor *t, tn_tensor *tangent)
{
    tni_node *node = t->view_base ? t->view_base->grad_fn : t->grad_fn;
    if (node && t->view_base)
        node = tni_copy_slices_fn(node);
    tn_status status = tni_tangent_commit(t, tangent);
    if (TNI_UNLIKELY(status != TN_OK))
        tni_tangent_lost(t);
    if (status == TN_OK && tangent && node)
        status = give_saved(node, t->view_base ? 0 : t->output, tangent);
    if (TNI_UNLIKELY(status != TN_OK) && node)
        tni_node_break(node);
    return status;
}

tn_status tni_push_own(tn_tensor **tangent)
{
    if (!*tangent || tni_is_ours(*tangent))
        return TN_OK;
    tn_tensor *copy = NULL;
    TN_TRY(tn_clone(*tangent, TN_FORMAT_NONE, &copy));
    tn_tensor_unref(*tangent);
    *tangent = copy;
    return TN_OK;
}

tn_status tni_push_attach(const tni_push *p, const tn_value *tangents)
{
    for (int i = 0; i < p->schema->nrets; i++) {
        tn_tensor *const *results, *const *list;
        int64_t n = tni_value_tensors(&p->rets[i], &results);
        if (tni_value_tensors(&tangents[i], &list) != n)
            continue;
        for (int64_t k = 0; k < n; k++)
            if (tni_push_differentiable(results[k]) && list[k])
                TN_TRY(tni_push_give(results[k], list[k]));
    }
    return TN_OK;
}

tn_status tni_push_leave(tn_scope *scope, tn_status status, tn_tensor *t, tn_tensor **out)
{
    tn_tensor *kept = status == TN_OK && tni_scope_is_fine(scope) ? tn_tensor_ref(t) : NULL;
    tn_status left = tn_scope_leave(scope);
    status = status == TN_OK ? left : status;
    if (status == TN_OK)
        *out = kept;
    else
        tn_tensor_unref(kept);
    return status;
}
