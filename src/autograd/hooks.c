/* SPDX-License-Identifier: MIT */
/* autograd/hooks.c: adding and removing hooks, and who has which. Running them: run_hooks.c. */
#include "autograd/hooks.h"
#include "autograd/accumulate.h"
#include "autograd/engine.h"

#include <string.h>

/* ---- hooks and lists ---- */

static void hook_release(void *object)
{
    tn_hook *hook = object;
    if (hook->release)
        hook->release(hook->ctx);
    if (hook->kept)
        tni_weak_unref(&hook->kept->object);
    if (hook->owner)
        tni_weak_unref(hook->owner);
}

static void hook_destroy(void *object)
{
    tni_free(object);
}

static const tni_type hook_type = {"hook", hook_release, hook_destroy, NULL};

static void list_release(void *object)
{
    tni_hook_list *list = object;
    for (uint32_t i = 0; i < list->n; i++)
        tni_unref(&list->hooks[i]->object);
}

static const tni_type list_type = {"hooks", list_release, hook_destroy, NULL};

static tn_status hook_new(tni_hook_kind kind, tni_object *owner, bool on_node, uint32_t output,
                          tn_hook **out)
{
    tn_hook *hook = tni_calloc(sizeof *hook);
    TN_CHECK(hook, TN_NOMEM, "cannot allocate a hook");
    tni_object_init(&hook->object, &hook_type);
    hook->kind = (uint8_t)kind;
    hook->on_node = on_node;
    hook->output = output;
    hook->owner = owner;
    tni_weak_ref(owner);
    *out = hook;
    return TN_OK;
}

/* @p old without the removed hooks and without @p drop, and with @p add; *out NULL when nothing is
 * left. */
static tn_status list_copy(const tni_hook_list *old, const tn_hook *drop, tn_hook *add,
                           tni_hook_list **out)
{
    uint32_t n = old ? old->n : 0;
    tni_hook_list *list = tni_alloc(sizeof *list + ((size_t)n + 1) * sizeof *list->hooks);
    TN_CHECK(list, TN_NOMEM, "cannot allocate a list of %u hooks", n + 1);
    tni_object_init(&list->object, &list_type);
    list->n = 0;
    for (uint32_t i = 0; i < n; i++) {
        tn_hook *hook = old->hooks[i];
        if (hook != drop && !atomic_load_explicit(&hook->removed, memory_order_relaxed)) {
            tni_ref(&hook->object);
            list->hooks[list->n++] = hook;
        }
    }
    if (add) {
        tni_ref(&add->object);
        list->hooks[list->n++] = add;
    }
    if (list->n == 0) {
        tni_free(list);
        list = NULL;
    }
    *out = list;
    return TN_OK;
}

/* Where a list hangs, and the lock that guards it. */
typedef struct place {
    tni_hook_list **slot;
    tni_spin *lock;
} place;

static tni_hook_list *place_get(place at)
{
    tni_spin_lock(at.lock);
    tni_hook_list *list = *at.slot;
    if (list)
        tni_ref(&list->object);
    tni_spin_unlock(at.lock);
    return list;
}

/* Whether a list keeps this tensor's gradient already. */
static bool list_retains(const tni_hook_list *list, const tn_tensor *t)
{
    for (uint32_t i = 0; list && i < list->n; i++) {
        const tn_hook *hook = list->hooks[i];
        if (hook->kind == TNI_HOOK_RETAIN && hook->kept == t &&
            !atomic_load_explicit(&hook->removed, memory_order_relaxed))
            return true;
    }
    return false;
}

/* Others may change the list between looking and replacing: then again. A gradient is kept once. */
static tn_status place_change(place at, const tn_hook *drop, tn_hook *add)
{
    for (;;) {
        TN_AUTO(tni_hook_list) old = place_get(at);
        TN_AUTO(tni_hook_list) list = NULL;
        if (add && add->kind == TNI_HOOK_RETAIN && list_retains(old, add->kept))
            return TN_OK;
        TN_TRY(list_copy(old, drop, add, &list));
        tni_spin_lock(at.lock);
        bool same = *at.slot == old;
        if (same) {
            *at.slot = list;
            list = old; /* the slot's reference */
        }
        tni_spin_unlock(at.lock);
        if (same)
            return TN_OK;
    }
}

/* Take @p hook out of a list that nobody walks over, which needs no memory. false: somebody does,
 * or it is not there. Readers take their references under the lock, so none comes while it is held.
 */
static bool place_drop_unshared(place at, tn_hook *hook)
{
    tni_hook_list *emptied = NULL;
    bool found = false;
    tni_spin_lock(at.lock);
    tni_hook_list *list = *at.slot;
    if (list &&
        atomic_load_explicit(&list->object.counts, memory_order_acquire) == TNI_COUNTS_FRESH) {
        uint32_t kept = 0;
        for (uint32_t i = 0; i < list->n; i++)
            if (list->hooks[i] != hook)
                list->hooks[kept++] = list->hooks[i];
        found = kept < list->n;
        list->n = kept;
        if (kept == 0) {
            emptied = list;
            *at.slot = NULL;
        }
    }
    tni_spin_unlock(at.lock);
    tni_hook_list_unref(emptied);
    if (found)
        tni_unref(&hook->object); /* the list's reference */
    return found;
}

/* Without memory for another list, and with somebody walking over this one, the mark that the hook
 * was removed must do. */
static void place_drop(place at, tn_hook *hook)
{
    if (!place_drop_unshared(at, hook))
        (void)place_change(at, hook, NULL);
}

/* ---- nodes ---- */

tn_status tni_node_extra_get(tni_node *node, struct tni_node_extra **out)
{
    struct tni_node_extra *extra = atomic_load_explicit(&node->extra, memory_order_acquire);
    if (!extra) {
        struct tni_node_extra *fresh = tni_calloc(sizeof *fresh);
        TN_CHECK(fresh, TN_NOMEM, "cannot allocate the hooks of a node");
        if (atomic_compare_exchange_strong_explicit(&node->extra, &extra, fresh,
                                                    memory_order_acq_rel, memory_order_acquire))
            extra = fresh;
        else
            tni_free(fresh);
    }
    *out = extra;
    return TN_OK;
}

void tni_node_extra_free(tni_node *node)
{
    struct tni_node_extra *extra = atomic_load_explicit(&node->extra, memory_order_acquire);
    if (!extra)
        return;
    atomic_store_explicit(&node->extra, NULL, memory_order_relaxed);
    tni_hook_list_unref(extra->hooks);
    tni_free(extra->made);
    tni_node_unref(extra->parent);
    tni_free(extra);
}

tni_hook_list *tni_node_hooks(tni_node *node)
{
    struct tni_node_extra *extra = atomic_load_explicit(&node->extra, memory_order_acquire);
    return extra ? place_get((place){&extra->hooks, &node->lock}) : NULL;
}

static tn_status node_add(tni_node *node, tn_hook *hook)
{
    struct tni_node_extra *extra = NULL;
    TN_TRY(tni_node_extra_get(node, &extra));
    return place_change((place){&extra->hooks, &node->lock}, NULL, hook);
}

/* ---- tensors ---- */

static struct tni_meta_extra *meta_extra(tni_grad_meta *meta)
{
    return meta ? atomic_load_explicit(&meta->extra, memory_order_acquire) : NULL;
}

static tn_status meta_extra_get(tni_grad_meta *meta, struct tni_meta_extra **out)
{
    struct tni_meta_extra *extra = meta_extra(meta);
    if (!extra) {
        struct tni_meta_extra *fresh = tni_calloc(sizeof *fresh);
        TN_CHECK(fresh, TN_NOMEM, "cannot allocate the hooks of a tensor");
        if (atomic_compare_exchange_strong_explicit(&meta->extra, &extra, fresh,
                                                    memory_order_acq_rel, memory_order_acquire))
            extra = fresh;
        else
            tni_free(fresh);
    }
    *out = extra;
    return TN_OK;
}

void tni_meta_extra_free(tni_grad_meta *meta)
{
    struct tni_meta_extra *extra = meta_extra(meta);
    if (!extra)
        return;
    atomic_store_explicit(&meta->extra, NULL, memory_order_relaxed);
    tni_hook_list_unref(extra->hooks);
    tni_free(extra);
}

tni_hook_list *tni_tensor_hooks(const tn_tensor *t)
{
    tni_grad_meta *meta = tni_meta(t);
    struct tni_meta_extra *extra = meta_extra(meta);
    if (!extra)
        return NULL;
    tni_spin_lock(&meta->lock);
    tni_hook_list *list = extra->hooks;
    if (list)
        tni_ref(&list->object);
    tni_spin_unlock(&meta->lock);
    return list;
}

static tn_status tensor_add(tn_tensor *t, tn_hook *hook)
{
    tni_grad_meta *meta = NULL;
    struct tni_meta_extra *extra = NULL;
    TN_TRY(tni_meta_get(t, &meta));
    TN_TRY(meta_extra_get(meta, &extra));
    return place_change((place){&extra->hooks, &meta->lock}, NULL, hook);
}

/* ---- kept gradients ---- */

static tn_status retain_on(tn_tensor *t, tni_node *node, uint32_t output)
{
    tn_hook *hook = NULL;
    TN_TRY(hook_new(TNI_HOOK_RETAIN, &node->object, true, output, &hook));
    hook->kept = t;
    tni_weak_ref(&t->object);
    tn_status status = node_add(node, hook);
    tni_unref(&hook->object);
    return status;
}

static void retain_off(const tn_tensor *t, tni_node *node)
{
    TN_AUTO(tni_hook_list) list = node ? tni_node_hooks(node) : NULL;
    for (uint32_t i = 0; list && i < list->n; i++) {
        tn_hook *hook = list->hooks[i];
        if (hook->kind != TNI_HOOK_RETAIN || hook->kept != t)
            continue;
        tni_ref(&hook->object);
        tn_hook_remove(hook);
    }
}

tn_status tni_hooks_follow(tn_tensor *t, const tni_grad_meta *meta, tni_node *node, uint32_t output)
{
    return meta->retains_grad ? retain_on(t, node, output) : TN_OK;
}

/* The list, no longer the tensor's: the caller's reference. */
static tni_hook_list *take_list(tni_grad_meta *meta, struct tni_meta_extra *extra)
{
    tni_spin_lock(&meta->lock);
    tni_hook_list *list = extra->hooks;
    extra->hooks = NULL;
    tni_spin_unlock(&meta->lock);
    return list;
}

void tni_hooks_leave(const tn_tensor *t, tni_grad_meta *meta, tni_node *old)
{
    if (meta->retains_grad)
        retain_off(t, old);
    struct tni_meta_extra *extra = meta_extra(meta);
    if (extra)
        tni_hook_list_unref(take_list(meta, extra));
}

tn_status tn_tensor_retain_grad(tn_tensor *t)
{
    TN_CHECK(tni_requires_grad(t), TN_INVALID,
             "can't retain_grad on Tensor that has requires_grad=False");
    tni_node *node = NULL;
    uint32_t output = 0;
    TN_TRY(tni_grad_fn(t, &node, &output));
    if (!node)
        return TN_OK;
    tni_grad_meta *meta = NULL;
    TN_TRY(tni_meta_get(t, &meta));
    if (atomic_load_explicit(&meta->retains_grad, memory_order_acquire))
        return TN_OK;
    TN_TRY(retain_on(t, node, output));
    atomic_store_explicit(&meta->retains_grad, true, memory_order_release);
    return TN_OK;
}

bool tn_tensor_retains_grad(const tn_tensor *t)
{
    const tni_grad_meta *meta = t ? tni_meta(t) : NULL;
    return meta && atomic_load_explicit(&meta->retains_grad, memory_order_acquire);
}

/* ---- the public functions ---- */

/* Hand @p hook, which is complete, to its owner. @p release is set last: it must not be called when
 * adding fails. */
static tn_status finish(tn_hook *hook, tn_status status, void (*release)(void *ctx), tn_hook **out)
{
    if (status == TN_OK)
        hook->release = release;
    if (status == TN_OK && out)
        *out = hook;
    else
        tni_unref(&hook->object);
    return status;
}

tn_status tn_tensor_add_hook(tn_tensor *t, tn_tensor_hook_fn fn, void *ctx,
                             void (*release)(void *ctx), tn_hook **out)
{
    TN_CHECK(t && fn, TN_INVALID, "tn_tensor_add_hook: %s is NULL", t ? "fn" : "t");
    TN_CHECK(tni_requires_grad(t), TN_INVALID,
             "cannot register a hook on a tensor that doesn't require gradient");
    tni_node *node = NULL;
    uint32_t output = 0;
    TN_TRY(tni_grad_fn(t, &node, &output));
    tn_hook *hook = NULL;
    TN_TRY(
        hook_new(TNI_HOOK_TENSOR, node ? &node->object : &t->object, node != NULL, output, &hook));
    hook->fn.tensor = fn;
    hook->ctx = ctx;
    return finish(hook, node ? node_add(node, hook) : tensor_add(t, hook), release, out);
}

tn_status tn_tensor_add_accumulated_hook(tn_tensor *t, tn_accumulated_hook_fn fn, void *ctx,
                                         void (*release)(void *ctx), tn_hook **out)
{
    TN_CHECK(t && fn, TN_INVALID, "tn_tensor_add_accumulated_hook: %s is NULL", t ? "fn" : "t");
    TN_CHECK(tni_requires_grad(t), TN_INVALID,
             "cannot register a hook on a tensor that doesn't require gradient");
    tni_node *node = NULL;
    TN_TRY(tni_grad_fn(t, &node, NULL));
    TN_CHECK(!node, TN_INVALID,
             "post accumulate grad hooks cannot be registered on non-leaf tensors");
    tn_hook *hook = NULL;
    TN_TRY(hook_new(TNI_HOOK_ACCUMULATED, &t->object, false, 0, &hook));
    hook->fn.accumulated = fn;
    hook->ctx = ctx;
    return finish(hook, tensor_add(t, hook), release, out);
}

tn_status tn_node_add_pre_hook(tn_node *node, tn_node_pre_hook_fn fn, void *ctx,
                               void (*release)(void *ctx), tn_hook **out)
{
    TN_CHECK(node && fn, TN_INVALID, "tn_node_add_pre_hook: %s is NULL", node ? "fn" : "node");
    tn_hook *hook = NULL;
    TN_TRY(hook_new(TNI_HOOK_PRE, &node->object, true, 0, &hook));
    hook->fn.pre = fn;
    hook->ctx = ctx;
    return finish(hook, node_add(node, hook), release, out);
}

tn_status tn_node_add_post_hook(tn_node *node, tn_node_post_hook_fn fn, void *ctx,
                                void (*release)(void *ctx), tn_hook **out)
{
    TN_CHECK(node && fn, TN_INVALID, "tn_node_add_post_hook: %s is NULL", node ? "fn" : "node");
    tn_hook *hook = NULL;
    TN_TRY(hook_new(TNI_HOOK_POST, &node->object, true, 0, &hook));
    hook->fn.post = fn;
    hook->ctx = ctx;
    return finish(hook, node_add(node, hook), release, out);
}

bool tn_hook_in_pass(const tn_hook *hook)
{
    if (!hook || !tni_current_pass() || !tni_weak_lock(hook->owner))
        return false;
    tni_node *node = (tni_node *)hook->owner;
    if (!hook->on_node) {
        tn_tensor *t = (tn_tensor *)hook->owner;
        node = tni_accumulator_if_any(t);
        tn_tensor_unref(t);
    }
    bool runs = tn_pass_runs(node);
    tni_node_unref(node);
    return runs;
}

void tn_hook_unref(tn_hook *hook)
{
    if (hook)
        tni_unref(&hook->object);
}

void tn_hook_remove(tn_hook *hook)
{
    if (!hook)
        return;
    atomic_store_explicit(&hook->removed, true, memory_order_relaxed);
    if (tni_weak_lock(hook->owner)) {
        if (hook->on_node) {
            tni_node *node = (tni_node *)hook->owner;
            struct tni_node_extra *extra = atomic_load_explicit(&node->extra, memory_order_acquire);
            if (extra)
                place_drop((place){&extra->hooks, &node->lock}, hook);
            tni_node_unref(node);
        } else {
            tn_tensor *t = (tn_tensor *)hook->owner;
            tni_grad_meta *meta = tni_meta(t);
            struct tni_meta_extra *extra = meta_extra(meta);
            if (extra)
                place_drop((place){&extra->hooks, &meta->lock}, hook);
            tn_tensor_unref(t);
        }
    }
    tni_unref(&hook->object);
}

/* ---- collecting garbage ---- */

static int visit_list(const tni_hook_list *list, void (*release)(void *ctx),
                      int (*visit)(void *ctx, void *arg), void *arg)
{
    int rc = 0;
    for (uint32_t i = 0; list && i < list->n && rc == 0; i++)
        if (list->hooks[i]->release == release)
            rc = visit(list->hooks[i]->ctx, arg);
    return rc;
}

/* @p list, which was an owner's: its hooks are no more, also where handles hold them. */
static void end_list(TN_STOLEN tni_hook_list *list)
{
    for (uint32_t i = 0; list && i < list->n; i++)
        atomic_store_explicit(&list->hooks[i]->removed, true, memory_order_relaxed);
    tni_hook_list_unref(list);
}

int tn_tensor_visit_hooks(const tn_tensor *t, void (*release)(void *ctx),
                          int (*visit)(void *ctx, void *arg), void *arg)
{
    if (!t || tni_strong_count(&t->object) != 1)
        return 0;
    TN_AUTO(tni_hook_list) list = tni_tensor_hooks(t);
    return visit_list(list, release, visit, arg);
}

int tn_node_visit_hooks(tn_node *node, void (*release)(void *ctx),
                        int (*visit)(void *ctx, void *arg), void *arg)
{
    if (!node || tni_strong_count(&node->object) != 1)
        return 0;
    TN_AUTO(tni_hook_list) list = tni_node_hooks(node);
    return visit_list(list, release, visit, arg);
}

void tn_tensor_clear_hooks(tn_tensor *t)
{
    if (!t || tni_strong_count(&t->object) != 1)
        return;
    tni_grad_meta *meta = tni_meta(t);
    struct tni_meta_extra *extra = meta_extra(meta);
    if (!extra)
        return;
    end_list(take_list(meta, extra));
}

void tn_node_clear_hooks(tn_node *node)
{
    if (!node || tni_strong_count(&node->object) != 1)
        return;
    struct tni_node_extra *extra = atomic_load_explicit(&node->extra, memory_order_acquire);
    if (!extra)
        return;
    tni_spin_lock(&node->lock);
    tni_hook_list *list = extra->hooks;
    extra->hooks = NULL;
    tni_spin_unlock(&node->lock);
    end_list(list);
}
