/* SPDX-License-Identifier: MIT */
/* autograd/run_hooks.c: hooks in a node's turn, and what they may change. */
#include "autograd/accumulate.h"
#include "autograd/hooks.h"
#include "base/mark.h"

#include <string.h>
#include "tenon/ops.h"

static bool is_live(const tn_hook *hook, tni_hook_kind kind)
{
    return hook->kind == kind && !atomic_load_explicit(&hook->removed, memory_order_relaxed);
}

/* A hook changes values, never what kind of tensor a gradient is. */
static tn_status check_replacement(const char *what, const tn_tensor *was, const tn_tensor *now)
{
    TN_CHECK(was->dtype == now->dtype, TN_INVALID,
             "hook '%s' has changed the type of value (was %s got %s)", what,
             tn_dtype_name((tn_dtype)was->dtype), tn_dtype_name((tn_dtype)now->dtype));
    TN_CHECK(was->device.type == now->device.type, TN_INVALID,
             "hook '%s' has changed the type of value (its device)", what);
    TN_CHECK(was->ndim == now->ndim &&
                 memcmp(was->sizes, now->sizes, (size_t)was->ndim * sizeof *was->sizes) == 0,
             TN_INVALID, "hook '%s' has changed the size of value", what);
    return TN_OK;
}

static tn_status replace(const char *what, tn_tensor **slot, tn_tensor *now)
{
    if (*slot) {
        tn_status status = check_replacement(what, *slot, now);
        if (status != TN_OK) {
            tn_tensor_unref(now);
            return status;
        }
    }
    tn_tensor *old = *slot;
    *slot = now;
    tn_tensor_unref(old);
    return TN_OK;
}

/* Take over what a hook put into @p fresh; all of it is the engine's or gone afterwards. */
static tn_status replace_all(const char *what, tn_status status, tn_tensor **slots,
                             tn_tensor **fresh, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (!fresh[i])
            continue;
        if (fresh[i] == TN_NO_GRADIENT) {
            if (status == TN_OK)
                tn_tensor_unref(TN_MOVE(slots[i]));
        } else if (status == TN_OK)
            status = replace(what, &slots[i], fresh[i]);
        else
            tn_tensor_unref(fresh[i]);
    }
    return status;
}

/* `.grad` of a tensor that is no leaf: a copy, then sums, each a new tensor. */
static tn_status add_kept(tn_tensor *t, tn_tensor *had, tn_tensor *grad, bool may_write,
                          tn_tensor **fresh)
{
    (void)t;
    (void)may_write;
    return had ? tn_add(had, grad, tn_int(1), fresh) : tn_clone(grad, TN_FORMAT_CONTIGUOUS, fresh);
}

tn_status tni_run_tensor_hooks(tni_node *node, tn_tensor **grads)
{
    tn_tensor *variable = tni_accumulator_variable(node);
    TN_AUTO(tni_hook_list) list = variable ? tni_tensor_hooks(variable) : tni_node_hooks(node);
    bool keeps = false;
    for (uint32_t i = 0; list && i < list->n; i++) {
        const tn_hook *hook = list->hooks[i];
        keeps |= hook->kind == TNI_HOOK_RETAIN;
        if (!is_live(hook, TNI_HOOK_TENSOR) || !grads[hook->output])
            continue;
        tn_tensor *fresh = NULL;
        uint32_t callout = tni_callout_begin(TNI_CALLOUT_TENSOR_HOOK);
        tn_status status = hook->fn.tensor(hook->ctx, grads[hook->output], &fresh);
        tni_callout_end(callout);
        TN_TRY(replace_all("tensor hook", status, &grads[hook->output], &fresh, 1));
    }
    for (uint32_t i = 0; keeps && i < list->n; i++) {
        const tn_hook *hook = list->hooks[i];
        if (!is_live(hook, TNI_HOOK_RETAIN) || !grads[hook->output] ||
            !tni_weak_lock(&hook->kept->object))
            continue;
        tn_status status = tni_grad_add(hook->kept, grads[hook->output], add_kept, false);
        tn_tensor_unref(hook->kept);
        TN_TRY(status);
    }
    return TN_OK;
}

/* Room for what a hook returns: few nodes have more than a handful of edges. */
enum { FEW = 8 };

static tn_tensor **fresh_slots(tn_tensor **few, uint32_t n)
{
    if (n > FEW)
        return tni_calloc((size_t)n * sizeof *few);
    memset(few, 0, FEW * sizeof *few);
    return few;
}

tn_status tni_run_pre_hooks(tni_node *node, tn_tensor **grads)
{
    TN_AUTO(tni_hook_list) list = tni_node_hooks(node);
    for (uint32_t i = 0; list && i < list->n; i++) {
        const tn_hook *hook = list->hooks[i];
        if (!is_live(hook, TNI_HOOK_PRE))
            continue;
        tn_tensor *few[FEW];
        tn_tensor **fresh = fresh_slots(few, node->n_inputs);
        TN_CHECK(fresh, TN_NOMEM, "cannot run a hook of a node with %u inputs", node->n_inputs);
        uint32_t callout = tni_callout_begin(TNI_CALLOUT_NODE_HOOK);
        tn_status status = hook->fn.pre(hook->ctx, node, grads, (int64_t)node->n_inputs, fresh);
        tni_callout_end(callout);
        status = replace_all("node pre-hook", status, grads, fresh, node->n_inputs);
        if (fresh != few)
            tni_free(fresh);
        TN_TRY(status);
    }
    return TN_OK;
}

tn_status tni_run_post_hooks(tni_node *node, tn_tensor **results, tn_tensor *const *grads)
{
    TN_AUTO(tni_hook_list) list = tni_node_hooks(node);
    for (uint32_t i = 0; list && i < list->n; i++) {
        const tn_hook *hook = list->hooks[i];
        if (!is_live(hook, TNI_HOOK_POST))
            continue;
        tn_tensor *few[FEW];
        tn_tensor **fresh = fresh_slots(few, node->n_edges);
        TN_CHECK(fresh, TN_NOMEM, "cannot run a hook of a node with %u edges", node->n_edges);
        uint32_t callout = tni_callout_begin(TNI_CALLOUT_NODE_HOOK);
        tn_status status = hook->fn.post(hook->ctx, node, results, (int64_t)node->n_edges, grads,
                                         (int64_t)node->n_inputs, fresh);
        tni_callout_end(callout);
        status = replace_all("node post-hook", status, results, fresh, node->n_edges);
        if (fresh != few)
            tni_free(fresh);
        TN_TRY(status);
    }
    return TN_OK;
}

tn_status tni_run_accumulated_hooks(tn_tensor *t)
{
    TN_AUTO(tni_hook_list) list = tni_tensor_hooks(t);
    for (uint32_t i = 0; list && i < list->n; i++) {
        const tn_hook *hook = list->hooks[i];
        if (is_live(hook, TNI_HOOK_ACCUMULATED))
            TN_TRY(hook->fn.accumulated(hook->ctx, t));
    }
    return TN_OK;
}
