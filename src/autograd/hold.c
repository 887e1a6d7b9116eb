/* SPDX-License-Identifier: MIT */
/* autograd/hold.c: one thread at a time adds to a gradient, and none waits for foreign code.
 *
 * Note [Adding to a gradient]
 * A sum in place must not meet another, so who adds holds the gradient, and others wait: the time
 * of one operator of ours. Where foreign code can run within that operator (a mode, a tensor's
 * handler, an observer, a kernel from outside) nobody may wait, since that code may itself wait for
 * the one who comes: for its thread, or for a gradient that it holds. Then who comes leaves his
 * gradient, which the holder adds before it lets go: a pass may end while its gradient is on the
 * way, and no gradient is lost. Hooks that follow the sum run when it is there, on the holder's
 * thread.
 *
 * The word in the tensor's meta is 0, or says in which era it is held (Note [Locks over fork]) and
 * by the lowest bits, whether somebody waits and whether foreign code can run. A thread knows by
 * itself what it holds, so that it never waits for itself. */
#include "autograd/accumulate.h"
#include "base/futex.h"
#include "base/mark.h"
#include "dispatch/call.h"
#include "dispatch/library.h"
#include "dispatch/mode.h"
#include "tenon/autograd.h"

enum { WAITED_FOR = 1, CALLS_OUT = 2, ERA = 4, CHANNEL = 1 };
static const char HELD[] = "a gradient that is added to";

/* What this thread holds, the innermost first. */
typedef struct frame {
    tni_grad_meta *meta;
    struct frame *outer;
} frame;
static __attribute__((tls_model("initial-exec"))) _Thread_local frame *innermost;

static uint32_t this_era(void)
{
    return (uint32_t)ERA * tni_spin_era;
}

static bool is_mine(const tni_grad_meta *meta)
{
    for (const frame *f = innermost; f; f = f->outer)
        if (f->meta == meta)
            return true;
    return false;
}

/* ---- gradients that were left ---- */

struct tni_left_grad {
    struct tni_left_grad *next;
    tn_tensor *grad; /* strong */
    tni_add_fn add;
    uint8_t no_grad;
};

static void left_free(struct tni_left_grad *left)
{
    tn_tensor_unref(left->grad);
    tni_free(left);
}

void tni_left_grads_free(tni_grad_meta *meta)
{
    for (struct tni_left_grad *next, *left = TN_MOVE(meta->left); left; left = next) {
        next = left->next;
        left_free(left);
    }
}

/* *done stays false when the holder has let go since. */
static tn_status leave(tni_grad_meta *meta, tn_tensor *grad, tni_add_fn add, bool *done)
{
    struct tni_left_grad *left = tni_alloc(sizeof *left);
    TN_CHECK(left, TN_NOMEM, "cannot leave a gradient to the thread that adds to it");
    *left = (struct tni_left_grad){NULL, grad, add, tni_tls.no_grad};
    tni_spin_lock(&meta->lock);
    uint32_t holder = atomic_load_explicit(&meta->holder, memory_order_acquire);
    *done = (holder & ~(uint32_t)WAITED_FOR) == (this_era() | CALLS_OUT);
    if (*done) {
        tn_tensor_ref(grad);
        struct tni_left_grad **last = &meta->left;
        while (*last)
            last = &(*last)->next;
        *last = left;
    }
    tni_spin_unlock(&meta->lock);
    if (!*done)
        tni_free(left);
    return TN_OK;
}

/* ---- holding ---- */

/* False: held by who may run foreign code, and not waited for. */
static bool take(_Atomic uint32_t *holder)
{
    uint32_t seen = 0, era = this_era();
    bool waited = false, is_free = false;
    for (;;) {
        is_free = (seen & ~(uint32_t)(WAITED_FOR | CALLS_OUT)) != era;
        if (!is_free && (seen & CALLS_OUT))
            break;
        uint32_t next = is_free ? era | (seen & WAITED_FOR) : seen | WAITED_FOR;
        if (!atomic_compare_exchange_strong_explicit(holder, &seen, next, memory_order_acquire,
                                                     memory_order_relaxed))
            continue;
        if (is_free)
            break;
        if (!waited)
            tni_wait_begin(TNI_WAIT_LOCK, (uintptr_t)holder, HELD, true);
        waited = true;
        tni_futex_wait(holder, next, CHANNEL);
        seen = atomic_load_explicit(holder, memory_order_relaxed);
    }
    if (waited)
        tni_wait_end();
    if (is_free)
        tni_hold_begin(TNI_WAIT_LOCK, (uintptr_t)holder, HELD);
    return is_free;
}

/* From here on nobody waits for this thread. */
static TNI_COLD void begin_to_call_out(tni_grad_meta *meta)
{
    tni_hold_end(TNI_WAIT_LOCK, (uintptr_t)&meta->holder);
    uint32_t was =
        atomic_exchange_explicit(&meta->holder, this_era() | CALLS_OUT, memory_order_release);
    if (was & WAITED_FOR)
        tni_futex_wake(&meta->holder, INT_MAX, CHANNEL);
}

static void let(tni_grad_meta *meta)
{
    tni_hold_end(TNI_WAIT_LOCK, (uintptr_t)&meta->holder); /* none, if it was taken alone */
    if (TNI_ONE_THREAD) {
        atomic_store_explicit(&meta->holder, 0, memory_order_relaxed);
        return;
    }
    uint32_t was = atomic_exchange_explicit(&meta->holder, 0, memory_order_release);
    if (was & WAITED_FOR)
        tni_futex_wake(&meta->holder, INT_MAX, CHANNEL);
}

/* Lets go unless something was left: then that, and it is still held. */
static struct tni_left_grad *let_or_take(tni_grad_meta *meta)
{
    tni_spin_lock(&meta->lock);
    struct tni_left_grad *left = TN_MOVE(meta->left);
    if (!left)
        atomic_store_explicit(&meta->holder, 0, memory_order_release);
    tni_spin_unlock(&meta->lock);
    return left;
}

/* ---- adding ---- */

static bool is_plain(const tn_tensor *t)
{
    const tn_keyset plain = TNI_KS_AUTOGRAD | TNI_KS_ADINPLACE_OR_VIEW | TNI_KS_AUTOCAST |
                            TNI_FBIT(TN_KEY_DENSE) | TNI_BACKEND_MASK;
    return !t || ((t->keys & ~plain) == 0 &&
                  (t->device.type == TN_DEVICE_CPU || t->device.type == TN_DEVICE_META));
}

/* Can foreign code run when these are added? */
static bool calls_out(const tn_tensor *t, const tn_tensor *had, const tn_tensor *grad)
{
    return tni_observing || tni_tls.included_xor || tni_tls.fake_mode || tni_foreign_kernels() ||
           !is_plain(t) || !is_plain(had) || !is_plain(grad);
}

static tn_status add_one(tn_tensor *t, tni_grad_meta *meta, tn_tensor *grad, tni_add_fn add)
{
    TN_AUTO(tn_tensor) had = tn_tensor_grad_ref(t);
    tn_tensor *fresh = NULL;
    TN_TRY(add(t, had, grad, &fresh));
    if (fresh)
        tn_tensor_unref(tni_grad_swap(meta, fresh));
    return TN_OK;
}

/* Add what was left, however much comes meanwhile, and let go. The first failure counts. What is on
 * for this thread is not for what another computed: a mode that starts a pass with every sum that
 * it sees would find no end. */
static TNI_COLD tn_status add_left(tn_tensor *t, tni_grad_meta *meta, tn_status status,
                                   uint32_t *n_added)
{
    tni_error error = {.code = TN_OK};
    if (status != TN_OK)
        tni_error_take(&error);
    uint8_t no_grad = tni_tls.no_grad;
    tni_aside aside;
    tni_aside_begin(&aside);
    for (struct tni_left_grad *next, *left; (left = let_or_take(meta)) != NULL;) {
        for (; left; left = next) {
            next = left->next;
            tni_tls.no_grad = left->no_grad;
            if (add_one(t, meta, left->grad, left->add) == TN_OK)
                ++*n_added;
            else if (error.code == TN_OK)
                tni_error_take(&error);
            left_free(left);
        }
    }
    tni_aside_end(&aside);
    tni_tls.no_grad = no_grad;
    return tni_error_raise(&error);
}

tn_status tni_grad_add(tn_tensor *t, tn_tensor *grad, tni_add_fn add, uint32_t *n_added)
{
    tni_grad_meta *meta = NULL;
    TN_TRY(tni_meta_get(t, &meta));
    *n_added = 0;
    const bool again = is_mine(meta);
    if (TNI_LIKELY(!again && TNI_ONE_THREAD)) { /* what this thread does not hold nobody does */
        atomic_store_explicit(&meta->holder, this_era(), memory_order_relaxed);
    } else if (!again) {
        while (!take(&meta->holder)) {
            bool done = false;
            TN_TRY(leave(meta, grad, add, &done));
            if (done)
                return TN_OK;
        }
    }
    TN_AUTO(tn_tensor) had = tn_tensor_grad_ref(t); /* others may replace it meanwhile */
    /* What is there already was left to a thread that a fork() took away. */
    const bool out = !again && TNI_UNLIKELY(meta->left || calls_out(t, had, grad));
    if (TNI_UNLIKELY(out))
        begin_to_call_out(meta);
    frame here = {meta, innermost};
    innermost = &here;
    tn_tensor *fresh = NULL, *old = NULL;
    tn_status status = add(t, had, grad, &fresh);
    if (TNI_LIKELY(status == TN_OK)) {
        *n_added = 1;
        if (fresh)
            old = tni_grad_swap(meta, fresh);
    }
    if (TNI_UNLIKELY(out))
        status = add_left(t, meta, status, n_added);
    innermost = here.outer;
    if (TNI_LIKELY(!again && !out))
        let(meta);
    tn_tensor_unref(old);
    return status;
}
