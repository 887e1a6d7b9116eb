/* SPDX-License-Identifier: MIT */
/* autograd/saved_hooks.c: the thread's stack of saved-tensor hooks, and what they pack. */
#include "autograd/saved_hooks.h"

#include "autograd/meta.h"
#include "base/mark.h"
#include "core/state.h"

#include <string.h>

_Thread_local struct tni_hook_stack *tni_hook_stack;

/* ---- pairs ---- */

struct tni_hook_pair {
    tni_object object;
    tn_saved_hooks hooks;
    tni_hook_pair *below; /* while on a stack; see Note [Hooks of a turn] */
    uint32_t held; /* by the stack, marks, and pairs above; together they have one reference */
};

static void pair_release(void *object)
{
    tni_hook_pair *pair = object;
    if (pair->hooks.destroy)
        pair->hooks.destroy(pair->hooks.ctx);
}

static void pair_destroy(void *object)
{
    tni_free(object);
}

static const tni_type pair_type = {"saved-tensor hooks", pair_release, pair_destroy, NULL};

void tni_hook_pair_unref(tni_hook_pair *pair)
{
    tni_unref(&pair->object);
}

static tn_status pair_new(const tn_saved_hooks *hooks, tni_hook_pair **out)
{
    TN_CHECK(hooks && hooks->size == sizeof *hooks && hooks->pack && hooks->unpack, TN_INVALID,
             "saved-tensor hooks need `size`, `pack` and `unpack`");
    tni_hook_pair *pair = tni_alloc(sizeof *pair);
    TN_CHECK(pair, TN_NOMEM, "cannot allocate a pair of saved-tensor hooks");
    tni_object_init(&pair->object, &pair_type);
    pair->hooks = *hooks;
    pair->below = NULL;
    pair->held = 0;
    *out = pair;
    return TN_OK;
}

/* ---- the stack ---- */

static tn_status stack_need(void)
{
    if (!tni_hook_stack)
        tni_hook_stack = tni_calloc(sizeof *tni_hook_stack);
    TN_CHECK(tni_hook_stack, TN_NOMEM, "cannot allocate a stack of saved-tensor hooks");
    return TN_OK;
}

/* A thread without hooks has no stack. */
static void stack_settle(void)
{
    if (!tni_hook_stack->top && !tni_hook_stack->disabled && !tni_hook_stack->marks)
        tni_free(TN_MOVE(tni_hook_stack));
}

/* Its thread's alone, as the stack is. */
static tni_hook_pair *hold(tni_hook_pair *pair)
{
    if (pair)
        pair->held++;
    return pair;
}

static void let_go(tni_hook_pair *pair)
{
    while (pair && --pair->held == 0) {
        tni_hook_pair *below = pair->below;
        pair->below = NULL;
        tni_hook_pair_unref(pair);
        pair = below;
    }
}

tn_status tn_saved_hooks_push(const tn_saved_hooks *hooks)
{
    if (tni_hook_stack && tni_hook_stack->disabled)
        TN_FAIL(TN_INVALID, "%s", tni_hook_stack->disabled);
    tni_hook_pair *pair;
    TN_TRY(pair_new(hooks, &pair));
    tn_status status = stack_need();
    if (status != TN_OK) {
        tni_free(pair);
        return status;
    }
    pair->below = tni_hook_stack->top;
    tni_hook_stack->top = hold(pair);
    return TN_OK;
}

tn_status tn_saved_hooks_pop(void)
{
    TN_CHECK(tni_hook_stack && tni_hook_stack->top, TN_INVALID,
             "there are no saved-tensor hooks on this thread");
    tni_hook_pair *pair = tni_hook_stack->top;
    tni_hook_stack->top = hold(pair->below);
    stack_settle();
    let_go(pair);
    return TN_OK;
}

bool tn_saved_hooks_on(void)
{
    return tni_hook_stack && tni_hook_stack->top;
}

tn_status tn_saved_hooks_disable(const char *message, char **out_old)
{
    TN_CHECK(!message || !tni_hook_stack || !tni_hook_stack->top, TN_INVALID, "%s", message);
    char *copy = NULL, *old = NULL;
    if (message) {
        copy = tni_strdup(message);
        TN_CHECK(copy, TN_NOMEM, "cannot keep a message of saved-tensor hooks");
        tn_status status = stack_need();
        if (status != TN_OK) {
            tni_free(copy);
            return status;
        }
    }
    if (tni_hook_stack) {
        old = tni_hook_stack->disabled;
        tni_hook_stack->disabled = copy;
        stack_settle();
    }
    if (out_old)
        *out_old = old;
    else
        tni_free(old);
    return TN_OK;
}

/* ---- marks ---- */

tn_status tni_hooks_mark_set(tni_hooks_mark *mark)
{
    const char *disabled = tni_hook_stack->disabled;
    char *copy = disabled ? tni_strdup(disabled) : NULL;
    TN_CHECK(!disabled || copy, TN_NOMEM, "cannot keep a message of saved-tensor hooks");
    tni_hook_stack->marks++;
    *mark = (tni_hooks_mark){hold(tni_hook_stack->top), copy, true};
    return TN_OK;
}

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

static void return_pairs(tni_hook_pair *top)
{
    tni_hook_pair *old = tni_hook_stack->top;
    if (old == top)
        return;
    tni_hook_stack->top = hold(top);
    let_go(old);
}

tn_status tni_hooks_mark_return(const tni_hooks_mark *mark)
{
    struct tni_hook_stack *stack = tni_hook_stack;
    if (!stack)
        return TN_OK; /* as it was: a mark keeps the stack */
    if (!same_text(stack->disabled, mark->disabled)) {
        char *copy = mark->disabled ? tni_strdup(mark->disabled) : NULL;
        TN_CHECK(!mark->disabled || copy, TN_NOMEM, "cannot keep a message of saved-tensor hooks");
        tni_free(stack->disabled);
        stack->disabled = copy;
    }
    stack->marks++; /* releasing a pair may push and pop */
    return_pairs(mark->top);
    stack->marks--;
    stack_settle();
    return TN_OK;
}

void tni_hooks_mark_leave(tni_hooks_mark *mark)
{
    struct tni_hook_stack *stack = tni_hook_stack;
    if (!stack)
        return;
    if (!same_text(stack->disabled, mark->disabled)) {
        tni_free(stack->disabled);
        stack->disabled = TN_MOVE(mark->disabled);
    }
    tni_free(TN_MOVE(mark->disabled));
    stack->marks += !mark->set;
    return_pairs(mark->top);
    let_go(TN_MOVE(mark->top));
    stack->marks--;
    stack_settle();
}

/* ---- packing ---- */

static void hooked_release(void *object)
{
    tni_saved_hooked *hooked = object;
    const tn_saved_hooks *hooks = &hooked->pair->hooks;
    if (hooks->drop)
        hooks->drop(hooks->ctx, hooked->packed);
    tni_hook_pair_unref(hooked->pair);
    tni_node_unref(hooked->towards);
}

static void hooked_destroy(void *object)
{
    tni_free(object);
}

static const tni_type hooked_type = {"packed tensor", hooked_release, hooked_destroy, NULL};

/* Where the gradient of a saved argument goes, so that what is unpacked can be tied to it again. */
static tn_status note_history(const tni_saved *saved, tn_tensor *t, tni_saved_hooked *hooked)
{
    if (saved->flags & TNI_SAVED_IS_RESULT)
        return TN_OK;
    tni_edge edge;
    hooked->requires_grad = tni_requires_grad(t);
    TN_TRY(tni_gradient_edge(t, &edge));
    if (!edge.node)
        return TN_OK;
    hooked->towards = edge.node;
    hooked->output = edge.input;
    return TN_OK;
}

static tn_status call_pack(const tn_saved_hooks *hooks, tn_tensor *t, void **out)
{
    uint32_t before = atomic_load_explicit(t->versions, memory_order_relaxed);
    bool grad = tn_set_grad_enabled(false);
    uint32_t callout = tni_callout_begin(TNI_CALLOUT_PACK_HOOK);
    tn_status status = hooks->pack(hooks->ctx, t, out);
    tni_callout_end(callout);
    tn_set_grad_enabled(grad);
    TN_TRY(status);
    if (before == atomic_load_explicit(t->versions, memory_order_relaxed))
        return TN_OK;
    if (hooks->drop)
        hooks->drop(hooks->ctx, *out);
    TN_FAIL(TN_INVALID,
            "A saved tensor pack hook is modifying its input in place. Tensors provided as input "
            "to pack hook can not be modified by in-place operations as this can lead to "
            "unexpected side-effects. Please open an issue if you need to perform in-place "
            "operations on the input to a pack hook.");
}

static tn_status pack(tni_saved *saved, tni_hook_pair *pair, tn_tensor *t, tn_tensor *shown)
{
    tni_saved_hooked *hooked = tni_calloc(sizeof *hooked);
    TN_CHECK(hooked, TN_NOMEM, "cannot allocate a packed tensor");
    tni_object_init(&hooked->object, &hooked_type);
    tni_ref(&pair->object); /* now: it may be popped while it packs */
    hooked->pair = pair;
    tn_status status = note_history(saved, t, hooked);
    if (status == TN_OK)
        status = call_pack(&pair->hooks, shown, &hooked->packed);
    if (status != TN_OK) {
        tni_hook_pair_unref(pair);
        tni_node_unref(hooked->towards);
        tni_free(hooked);
        return status;
    }
    saved->hooked = hooked;
    tn_tensor_unref(TN_MOVE(saved->tensor));
    return TN_OK;
}

tn_status tni_saved_pack(tni_saved *saved, tn_tensor *t)
{
    return pack(saved, tni_hook_stack->top, t, saved->tensor ? saved->tensor : t);
}

/* ---- unpacking ---- */

static tn_status call_unpack(const tni_saved_hooked *hooked, tn_tensor **out)
{
    const tn_saved_hooks *hooks = &hooked->pair->hooks;
    TN_AUTO(tn_tensor) t = NULL;
    uint32_t callout = tni_callout_begin(TNI_CALLOUT_UNPACK_HOOK);
    tn_status unpacked = hooks->unpack(hooks->ctx, hooked->packed, &t);
    tni_callout_end(callout);
    TN_TRY(unpacked);
    TN_CHECK(t, TN_TYPE,
             "Output of saved tensor unpack_hook expected to be a Tensor but got result of type "
             "NoneType");
    *out = TN_MOVE(t);
    return TN_OK;
}

/* A leaf again: its gradient goes where that of the saved one went. */
static tn_status as_leaf(tn_tensor *t, tni_node *accumulator)
{
    tni_grad_meta *meta;
    TN_TRY(tni_meta_get(t, &meta));
    tni_weak_ref(&accumulator->object);
    meta->accumulator = accumulator;
    t->flags |= TNI_REQUIRES_GRAD;
    return TN_OK;
}

tn_status tni_saved_unpack_hooked(tni_node *owner, const tni_saved *saved, tni_saved_hooked *hooked,
                                  tn_tensor **out)
{
    TN_AUTO(tn_tensor) given = NULL;
    TN_AUTO(tn_tensor) t = NULL;
    TN_TRY(call_unpack(hooked, &given));
    TN_TRY(tni_detached(given, &t));
    if (saved->flags & TNI_SAVED_IS_RESULT)
        TN_TRY(tni_set_grad_fn(t, owner, saved->output));
    else if (hooked->towards && (hooked->towards->cls->flags & TNI_CLASS_ACCUMULATES))
        TN_TRY(as_leaf(t, hooked->towards));
    else if (hooked->towards)
        TN_TRY(tni_set_grad_fn(t, hooked->towards, hooked->output));
    else if (hooked->requires_grad) /* a view apart from its base's history: leads nowhere */
        t->flags |= TNI_REQUIRES_GRAD;
    *out = TN_MOVE(t);
    return TN_OK;
}

/* ---- one saved value alone ---- */

static tn_status saved_of(tni_node *node, uint32_t i, tni_saved **out)
{
    TN_CHECK(node, TN_INVALID, "node is NULL");
    TN_CHECK(i < node->cls->n_saved, TN_INDEX, "there is no saved value %u: %s has %u", i,
             node->cls->name, node->cls->n_saved);
    *out = (tni_saved *)node->data + i;
    return TN_OK;
}

tn_status tn_node_saved(tn_node *node, uint32_t i, tn_tensor **out)
{
    TN_CHECK(out, TN_INVALID, "tn_node_saved: out is NULL");
    tni_saved *saved = NULL;
    TN_TRY(saved_of(node, i, &saved));
    return tni_saved_unpack(node, saved, out);
}

const char *tn_node_saved_name(const tn_node *node, uint32_t i)
{
    if (!node || !node->cls->saved_names || i >= node->cls->n_saved)
        return NULL;
    return node->cls->saved_names[i];
}

/* What the hooks were given goes back to them; they themselves stay the caller's. */
static void forget(tni_saved_hooked *hooked)
{
    const tn_saved_hooks *hooks = &hooked->pair->hooks;
    if (hooks->drop)
        hooks->drop(hooks->ctx, hooked->packed);
    tni_node_unref(hooked->towards);
    tni_free(hooked->pair);
    tni_free(hooked);
}

/* *done stays false when another thread was faster: it registered hooks, or released the value. */
static tn_status register_once(tni_node *owner, tni_saved *saved, const tn_saved_hooks *hooks,
                               bool *done)
{
    tni_spin_lock(&owner->lock);
    TN_AUTO(tn_tensor) t = tn_tensor_ref(saved->tensor);
    bool hooked = saved->hooked != NULL;
    tni_spin_unlock(&owner->lock);
    TN_CHECK(!hooked, TN_INVALID,
             "Calling register_hooks on a saved tensor whose hooks have already been set. Hint: "
             "only one pair of hooks is allowed at a time.");
    TN_CHECK(t, TN_INVALID,
             "Calling register_hooks on a saved tensor after it has been freed. Saved intermediate "
             "values of the graph are freed when you call .backward() or autograd.grad(). Specify "
             "retain_graph=True if you need to backward through the graph a second time or if you "
             "need to access saved variables after calling backward.");
    TN_AUTO(tn_tensor) shown = NULL;
    TN_TRY(tni_detached(t, &shown));
    tni_hook_pair *pair = NULL;
    TN_TRY(pair_new(hooks, &pair));
    tni_saved made = {.flags = saved->flags};
    tn_status status = pack(&made, pair, t, shown);
    if (status != TN_OK) {
        tni_free(pair); /* on failure the hooks are still the caller's */
        return status;
    }
    tni_spin_lock(&owner->lock);
    *done = saved->tensor == t && !saved->hooked;
    if (*done) {
        saved->tensor = NULL;
        saved->hooked = made.hooked;
    }
    tni_spin_unlock(&owner->lock);
    if (*done) {
        tni_hook_pair_unref(pair); /* the packed value has its own reference */
        tn_tensor_unref(t);        /* the slot's */
    } else {
        forget(made.hooked);
    }
    return TN_OK;
}

tn_status tni_saved_register(tni_node *owner, tni_saved *saved, const tn_saved_hooks *hooks)
{
    TN_CHECK(hooks, TN_INVALID, "saved-tensor hooks are NULL");
    TN_CHECK(saved->flags & TNI_SAVED_DEFINED, TN_INVALID,
             "Calling register_hooks on a saved tensor with value None is forbidden");
    for (bool done = false; !done;)
        TN_TRY(register_once(owner, saved, hooks, &done));
    return TN_OK;
}

tn_status tn_node_saved_register_hooks(tn_node *node, uint32_t i, const tn_saved_hooks *hooks)
{
    tni_saved *saved = NULL;
    TN_TRY(saved_of(node, i, &saved));
    return tni_saved_register(node, saved, hooks);
}
