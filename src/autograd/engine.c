/* SPDX-License-Identifier: MIT */
/* autograd/engine.c: the loop of a backward pass, and one node's turn. */
#include "autograd/engine.h"
#include "autograd/inplace.h"
#include "tenon/autograd.h"
#include "autograd/anomaly.h"
#include "autograd/extra.h"
#include "autograd/pass.h"
#include "autograd/saved.h"
#include "autograd/tell.h"
#include "autograd/validate.h"
#include "base/stack.h"
#include "core/scope.h"
#include "observe/log.h"

#include <string.h>

static __attribute__((tls_model("initial-exec"))) _Thread_local tni_pass *current;

/* ---- stopping from outside ---- */

static _Atomic(tn_interrupt_fn) interrupt_check;

tn_interrupt_fn tn_set_interrupt_check(tn_interrupt_fn fn)
{
    return atomic_exchange_explicit(&interrupt_check, fn, memory_order_acq_rel);
}

static inline tn_status may_go_on(void)
{
    tn_interrupt_fn check = atomic_load_explicit(&interrupt_check, memory_order_acquire);
    TN_CHECK(TNI_LIKELY(atomic_load_explicit(&tni_interrupts, memory_order_relaxed) == 0) ||
                 !tni_take_interrupt(),
             TN_TIMEOUT, "a backward pass was interrupted by the watchdog between two nodes");
    if (TNI_LIKELY(!check))
        return TN_OK;
    uint32_t callout = tni_callout_begin(TNI_CALLOUT_INTERRUPT);
    tn_status status = check();
    tni_callout_end(callout);
    return status;
}

/* ---- a turn ---- */

/* Every gradient that a result is, in the shape that its edge wants. Results are borrowed until
 * here and the engine's own from here on, also when this fails. */
static tn_status take_results(tni_pass *pass, const tni_node *node, tn_tensor **results)
{
    tn_status status = TN_OK;
    for (uint32_t i = 0; i < node->n_edges; i++) {
        tn_tensor *result = results[i];
        if (!result)
            continue;
        const tni_edge *edge = &node->edges[i];
        results[i] = NULL;
        if (!edge->node || status != TN_OK)
            continue;
        const tni_input *in = &edge->node->inputs[edge->input];
        if (TNI_LIKELY(tni_gradient_fits(result, in)))
            results[i] = tni_scope_take(pass->scope, result);
        else
            status = tni_gradient_fit(node, i, in, result, &results[i]);
    }
    return status;
}

static bool is_asked_for(const tni_pass *pass, uint32_t at)
{
    return !pass->partial || (pass->turns[at].flags & (TNI_TURN_NEEDED | TNI_TURN_TARGET)) != 0;
}

/* Pass the results on; all of them are gone afterwards. */
static tn_status deliver(tni_pass *pass, const tni_node *node, tn_tensor **results)
{
    tn_status status = TN_OK;
    for (uint32_t i = 0; i < node->n_edges; i++) {
        tn_tensor *result = results[i];
        tni_node *next = node->edges[i].node;
        uint32_t at = next ? tni_pass_find(pass, next) : TNI_NO_TURN;
        if (at == TNI_NO_TURN || status != TN_OK || !is_asked_for(pass, at)) {
            tn_tensor_unref(result);
            continue;
        }
        tni_turn *turn = &pass->turns[at];
        if (result)
            status = tni_gradient_add(&tni_turn_grads(turn)[node->edges[i].input], result);
        if (status == TN_OK && --turn->waits == 0)
            tni_pass_push(pass, at);
    }
    return status;
}

static void drop_results(const tni_node *node, tn_tensor **results)
{
    for (uint32_t i = 0; i < node->n_edges; i++)
        tn_tensor_unref(results[i]);
}

static void capture(tni_pass *pass, const tni_turn *turn, tn_tensor *const *grads)
{
    for (uint32_t i = turn->capture; i != 0; i = pass->captures[i - 1].next) {
        tni_capture *capture = &pass->captures[i - 1];
        capture->grad = tn_tensor_ref(grads[capture->input]);
    }
}

static const bool *wanted_edges(tni_pass *pass, const tni_node *node)
{
    if (!pass->partial)
        return NULL;
    for (uint32_t i = 0; i < node->n_edges; i++) {
        const tni_node *next = node->edges[i].node;
        uint32_t at = next ? tni_pass_find(pass, next) : TNI_NO_TURN;
        pass->wanted[i] = at != TNI_NO_TURN && is_asked_for(pass, at);
    }
    return pass->wanted;
}

static bool any_defined(const tni_node *node, tn_tensor *const *grads)
{
    for (uint32_t i = 0; i < node->n_inputs; i++)
        if (grads[i])
            return true;
    return false;
}

/* With an event of a profile around it. */
static TNI_COLD tn_status apply_recorded(tni_backward *b)
{
    const tni_node *node = b->node;
    tni_prof_event *event = tni_prof_begin_node(node->cls->name, node->sequence, node->maker);
    tn_status status = node->cls->apply(b);
    if (event)
        tni_prof_end(event, status);
    return status;
}

static tn_status apply(tni_pass *pass, tni_node *node, tn_tensor **grads, tn_tensor **results)
{
    memset(results, 0, node->n_edges * sizeof *results);
    tni_backward b = {node, grads, results, NULL};
    tni_tls.no_grad = !pass->create_graph;
    if (TNI_UNLIKELY(!any_defined(node, grads) && !(node->cls->flags & TNI_CLASS_RUN_UNDEFINED))) {
        /* No formula is needed, but what it would need must be there: a mistake does not hide
         * behind a gradient that did not come. */
        tni_unpack_all(&b);
        return tni_scope_settle();
    }
    b.wanted = wanted_edges(pass, node);
    tn_status status = tni_prof_on ? apply_recorded(&b) : node->cls->apply(&b);
    if (TNI_UNLIKELY(status != TN_OK))
        return status;
    if (TNI_UNLIKELY(!tni_scope_is_fine(pass->scope))) {
        TN_TRY(tni_scope_close_inner(pass->scope));
        return tn_scope_status(pass->scope);
    }
    return TN_OK;
}

static tn_status run_node(tni_pass *pass, tni_node *node, tn_tensor **grads, bool hooked)
{
    tn_tensor **results = pass->results;
    if (TNI_UNLIKELY(hooked))
        TN_TRY(tni_run_pre_hooks(node, grads));
    TN_TRY(apply(pass, node, grads, results));
    tn_status status = take_results(pass, node, results);
    /* Asked again: the node, or what unpacks its values, may have added one. */
    hooked = atomic_load_explicit(&node->extra, memory_order_acquire) != NULL;
    if (TNI_UNLIKELY(hooked) && status == TN_OK)
        status = tni_run_post_hooks(node, results, grads);
    if (TNI_UNLIKELY(tni_anomaly() & TN_ANOMALY_CHECK_NAN) && status == TN_OK)
        status = tni_anomaly_check_backward(node, results);
    if (TNI_UNLIKELY(status != TN_OK))
        drop_results(node, results);
    return status;
}

static tn_status take_turn(tni_pass *pass, tni_turn *turn)
{
    tni_node *node = turn->node;
    const tni_node_class *cls = node->cls;
    tn_tensor **grads = tni_turn_grads(turn);
    bool hooked = atomic_load_explicit(&node->extra, memory_order_acquire) != NULL;
    pass->running = node;
    tni_tell_turn(pass, turn);
    tni_tls.no_grad = !pass->create_graph;
    if (TNI_UNLIKELY(hooked || (cls->flags & TNI_CLASS_ACCUMULATES)))
        TN_TRY(tni_run_tensor_hooks(node, grads));
    if (TNI_UNLIKELY(pass->partial)) {
        capture(pass, turn, grads);
        if (!(turn->flags & TNI_TURN_NEEDED)) {
            tni_pass_finish(pass, turn);
            tni_scope_empty(pass->scope);
            return TN_OK;
        }
    }
    TN_TRY(run_node(pass, node, grads, hooked));
    if (!pass->keep_graph && (cls->n_saved || cls->n_lists || cls->release) &&
        !(cls->flags & TNI_CLASS_ACCUMULATES))
        tni_node_release(node);
    /* Before the results go on, so that who gets one alone can see that. */
    tni_pass_finish(pass, turn);
    tni_scope_empty(pass->scope);
    return deliver(pass, node, pass->results);
}

/* ---- a pass ---- */

static tn_status enter_seeds(tni_pass *pass, const tni_execute *what)
{
    for (uint32_t i = 0; i < what->n_roots; i++) {
        const tni_edge *root = &what->roots[i];
        uint32_t at = tni_pass_find(pass, root->node);
        tni_turn *turn = &pass->turns[at];
        const tni_input *in = &root->node->inputs[root->input];
        if (what->seeds[i] && !tni_gradient_fits(what->seeds[i], in)) {
            tn_tensor *seed = NULL;
            TN_TRY(tni_gradient_fit(NULL, i, in, what->seeds[i], &seed));
            tn_tensor_unref(what->seeds[i]);
            what->seeds[i] = seed;
        }
        if (what->seeds[i])
            TN_TRY(tni_gradient_add(&tni_turn_grads(turn)[root->input], TN_MOVE(what->seeds[i])));
        if (--turn->waits == 0)
            tni_pass_push(pass, at);
    }
    return TN_OK;
}

static uint32_t least_topo(const tni_execute *what)
{
    uint32_t least = what->n_targets ? UINT32_MAX : 0;
    for (uint32_t i = 0; i < what->n_targets; i++) {
        const tni_node *node = what->targets[i].node;
        if (node && node->topo < least)
            least = node->topo;
    }
    return least;
}

static tn_status run_callbacks(tni_pass *pass)
{
    /* One may queue more. */
    for (uint32_t i = 0; i < pass->n_callbacks; i++) {
        tni_callback callback = pass->callbacks[i];
        uint32_t callout = tni_callout_begin(TNI_CALLOUT_CALLBACK);
        tn_status status = callback.fn(callback.ctx);
        tni_callout_end(callout);
        TN_TRY(status);
        tni_scope_empty(pass->scope);
    }
    return TN_OK;
}

static tn_status run(tni_pass *pass, const tni_execute *what, bool caller_no_grad)
{
    TN_TRY(tni_pass_build(pass, what->roots, what->n_roots, least_topo(what)));
    if (what->n_targets)
        TN_TRY(tni_pass_mark(pass, what->roots, what->n_roots, what->targets, what->n_targets,
                             what->captured != NULL));
    tni_tls.no_grad = !pass->create_graph;
    tni_tell_pass(pass);
    TN_TRY(enter_seeds(pass, what));
    while (pass->n_ready) {
        TN_TRY(may_go_on());
        TN_TRY(take_turn(pass, &pass->turns[tni_pass_pop(pass)]));
        if (TNI_UNLIKELY(tni_hook_stack))
            TN_TRY(tni_hooks_mark_return(&pass->saved_hooks));
    }
    pass->running = NULL;
    tni_tell_no_turn(pass);
    tni_tls.no_grad = caller_no_grad;
    TN_TRY(tni_pass_check_all_ran(pass));
    TN_TRY(run_callbacks(pass));
    return tni_scope_close_inner(pass->scope);
}

/* The first failure is what the scope remembers, else what this thread's record says, unless that
 * is of an earlier failure: a hook may return a status alone. */
static TNI_COLD tn_status fail(tni_pass *pass, tn_status status)
{
    if (tni_scope_raise(pass->scope) == TN_OK && tn_last_status() != status)
        (void)tni_fail(status, TNI_WHERE, "%s failed with %s and left no message",
                       pass->running ? pass->running->cls->name : "a backward pass",
                       tn_status_name(status));
    if (pass->running && tni_anomaly())
        tni_anomaly_explain(pass->running, tn_last_status());
    tni_error error; /* cleaning up must not change it */
    tni_error_take(&error);
    tni_pass_clear(pass);
    tni_hooks_mark_leave(&pass->saved_hooks);
    tn_status ignored = tn_scope_leave(pass->scope);
    (void)ignored;
    return tni_error_raise(&error);
}

static tn_status execute(const tni_execute *what, uint32_t depth)
{
    tni_pass pass;
    tni_pass_init(&pass);
    pass.outer = current;
    pass.depth = depth;
    pass.keep_graph = what->keep_graph;
    pass.create_graph = what->create_graph;
    if (TNI_UNLIKELY(tni_hook_stack))
        TN_TRY(tni_hooks_mark_set(&pass.saved_hooks));
    tn_status entered = tni_scope_enter_fenced(&pass.scope);
    if (TNI_UNLIKELY(entered != TN_OK)) {
        tni_hooks_mark_leave(&pass.saved_hooks);
        return entered;
    }
    uint8_t no_grad = tni_tls.no_grad;
    uint64_t excluded = tni_exclude(&tni_tls, TNI_KS_NAMED); /* gradients have no names */
    uint32_t differentiating = tni_differentiating;          /* see Note [Captured tensors] */
    tni_differentiating = 0;
    current = &pass;
    tn_status status = run(&pass, what, no_grad);
    if (TNI_UNLIKELY(status != TN_OK)) {
        status = fail(&pass, status);
    } else {
        for (uint32_t i = 0; what->captured && i < what->n_targets; i++)
            what->captured[i] = TN_MOVE(pass.captures[i].grad);
        tni_pass_clear(&pass);
        tni_hooks_mark_leave(&pass.saved_hooks);
        status = tn_scope_leave(pass.scope);
    }
    tni_tell_end(&pass);
    current = pass.outer;
    tni_tls.no_grad = no_grad;
    tni_tls.excluded_xor = excluded;
    tni_differentiating = differentiating;
    return status;
}

/* ---- passes inside passes ---- */

/* Where a pass begins there is room for what nodes and hooks call until the next one begins. */
enum { ROOM = 2 * 1024 * 1024, LEAST_ROOM = 96 * 1024 };

static _Atomic(size_t) stack_limit = (size_t)256 << 20;

size_t tn_set_pass_stack_limit(size_t nbytes)
{
    return atomic_exchange_explicit(&stack_limit, nbytes, memory_order_relaxed);
}

typedef struct nested {
    const tni_execute *what;
    uint32_t depth;
    tn_status status;
} nested;

static void execute_nested(void *ctx)
{
    nested *n = ctx;
    n->status = execute(n->what, n->depth);
}

/* On a fresh stack: see Note [More stack]. */
static TNI_COLD tn_status execute_elsewhere(const tni_execute *what, uint32_t depth)
{
    nested n = {what, depth, TN_OK};
    if (tni_stack_call(atomic_load_explicit(&stack_limit, memory_order_relaxed), execute_nested,
                       &n))
        return n.status;
    TN_CHECK(tni_stack_left() >= LEAST_ROOM, TN_RECURSION,
             "a backward pass inside %u others: the stack of this thread is nearly used up, and so "
             "is what tn_set_pass_stack_limit allows, or the memory for more",
             depth);
    return execute(what, depth);
}

tn_status tni_execute_pass(const tni_execute *what)
{
    uint32_t depth = current ? current->depth + 1 : 0;
    if (TNI_UNLIKELY(depth > 0) && tni_stack_left() < ROOM)
        return execute_elsewhere(what, depth);
    return execute(what, depth);
}

/* ---- asking from inside ---- */

tn_node *tn_current_node(void)
{
    return current ? current->running : NULL;
}

uint32_t tn_current_pass(void)
{
    return tni_current_pass();
}

bool tn_pass_runs(const tn_node *node)
{
    uint32_t at = current && node ? tni_pass_find(current, node) : TNI_NO_TURN;
    return at != TNI_NO_TURN && is_asked_for(current, at);
}

uint32_t tni_current_pass(void)
{
    return current ? current->id : 0;
}

bool tn_passes_are_whole(void)
{
    return tni_passes_are_whole();
}

bool tni_passes_are_whole(void)
{
    for (const tni_pass *pass = current; pass; pass = pass->outer)
        if (pass->partial)
            return false;
    return true;
}

tn_status tn_queue_callback(tn_status (*fn)(void *ctx), void *ctx, void (*release)(void *ctx))
{
    TN_CHECK(fn, TN_INVALID, "tn_queue_callback: fn is NULL");
    tni_pass *pass = current;
    TN_CHECK(pass, TN_INVALID, "Final callbacks can only be installed during backward pass.");
    if (pass->n_callbacks == pass->callback_capacity) {
        uint32_t capacity = pass->callback_capacity ? 2 * pass->callback_capacity : 4;
        tni_callback *callbacks =
            tni_realloc(pass->callbacks, pass->callback_capacity * sizeof *callbacks,
                        capacity * sizeof *callbacks);
        TN_CHECK(callbacks, TN_NOMEM, "cannot queue a callback");
        pass->callbacks = callbacks;
        pass->callback_capacity = capacity;
    }
    pass->callbacks[pass->n_callbacks++] = (tni_callback){fn, release, ctx};
    return TN_OK;
}
