/* SPDX-License-Identifier: MIT */
/* autograd/meta.c: tensors in the gradient graph. */
#include "autograd/meta.h"
#include "autograd/accumulate.h"
#include "autograd/anomaly.h"
#include "autograd/extra.h"
#include "autograd/view.h"

#include <string.h>

static void meta_destroy(tni_autograd_meta *base)
{
    tni_grad_meta *meta = (tni_grad_meta *)base;
    if (meta->accumulator)
        tni_weak_unref(&meta->accumulator->object);
    if (meta->grad)
        tn_tensor_unref(meta->grad);
    if (TNI_UNLIKELY(meta->tangent != NULL))
        tn_tensor_unref(meta->tangent);
    if (TNI_UNLIKELY(atomic_load_explicit(&meta->extra, memory_order_relaxed) != NULL))
        tni_meta_extra_free(meta);
    if (TNI_UNLIKELY(meta->base.names != NULL))
        tni_names_unref(meta->base.names);
    tni_block_free(meta, sizeof *meta);
}

tn_status tni_meta_get(tn_tensor *t, tni_grad_meta **out)
{
    tni_grad_meta *meta = tni_meta(t);
    if (!meta) {
        meta = tni_block_alloc(sizeof *meta);
        TN_CHECK(meta, TN_NOMEM, "cannot allocate %zu bytes for a tensor's gradient", sizeof *meta);
        memset(meta, 0, sizeof *meta);
        meta->base.destroy = meta_destroy;
        tni_autograd_meta *first = NULL;
        if (TNI_ONE_THREAD)
            t->autograd = &meta->base;
        else if (!__atomic_compare_exchange_n(&t->autograd, &first, &meta->base, false,
                                              __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
            tni_block_free(meta, sizeof *meta);
            meta = (tni_grad_meta *)first;
        }
    }
    *out = meta;
    return TN_OK;
}

void tni_meta_set_names(tn_tensor *t, tni_names *names)
{
    tni_names *old = t->autograd->names;
    t->autograd->names = names ? tni_names_ref(names) : NULL;
    t->keys = names ? t->keys | TNI_KS_NAMED : t->keys & ~TNI_KS_NAMED;
    tni_names_unref(old);
}

tn_status tni_meta_same_names(tn_tensor *t, const tn_tensor *like)
{
    tni_grad_meta *meta;
    if (!((t->keys | like->keys) & TNI_KS_NAMED))
        return TN_OK;
    TN_TRY(tni_meta_get(t, &meta));
    tni_meta_set_names(t, like->keys & TNI_KS_NAMED ? like->autograd->names : NULL);
    return TN_OK;
}

tn_status tni_grad_fn(tn_tensor *t, tni_node **out, uint32_t *out_output)
{
    if (TNI_UNLIKELY(t->view_base != NULL))
        TN_TRY(tni_view_refresh(t));
    *out = t->grad_fn;
    if (out_output)
        *out_output = t->output;
    return TN_OK;
}

tn_status tni_gradient_edge(tn_tensor *t, tni_edge *out)
{
    *out = (tni_edge){0};
    if (!tni_requires_grad(t))
        return TN_OK;
    tni_node *node = NULL;
    uint32_t output = 0;
    TN_TRY(tni_grad_fn(t, &node, &output));
    if (node) {
        *out = (tni_edge){tni_node_ref(node), output};
        return TN_OK;
    }
    if (!(t->flags & TNI_REQUIRES_GRAD))
        return TN_OK; /* a view that was made apart from its base's history */
    return tni_accumulator(t, &out->node);
}

tn_status tni_set_grad_fn(tn_tensor *t, tni_node *node, uint32_t output)
{
    if (TNI_UNLIKELY(tni_anomaly()))
        TN_TRY(tni_anomaly_check_forward(node, output, t));
    tni_grad_meta *meta = tni_meta(t);
    const bool watched =
        meta &&
        (atomic_load_explicit(&meta->extra, memory_order_relaxed) != NULL || meta->retains_grad);
    if (TNI_UNLIKELY(watched))
        TN_TRY(tni_hooks_follow(t, meta, node, output));
    tni_node *old = t->grad_fn;
    t->grad_fn = tni_node_ref(node);
    t->output = output;
    t->flags |= TNI_REQUIRES_GRAD | TNI_HAS_GRAD_FN;
    tni_view_is_current(t);
    if (TNI_UNLIKELY(watched))
        tni_hooks_leave(t, meta, old);
    if (TNI_UNLIKELY(old != NULL))
        tni_node_unref(old);
    return TN_OK;
}

void tni_clear_history(tn_tensor *t)
{
    t->flags &= ~(uint32_t)(TNI_REQUIRES_GRAD | TNI_HAS_GRAD_FN);
    t->output = 0;
    tni_node_unref(TN_MOVE(t->grad_fn));
}
