/* SPDX-License-Identifier: MIT */
/* autograd/hold.c: one thread at a time adds to a gradient.
 *
 * The word in the tensor's meta is 0, or says in which era it is held (Note [Locks over fork]),
 * doubled, and whether somebody waits. A thread knows by itself what it holds, so that it never
 * waits for itself. */
#include "autograd/accumulate.h"
#include "base/futex.h"
#include "base/mark.h"

enum { WAITED_FOR = 1, CHANNEL = 1 };
static const char HELD[] = "a gradient that is added to";

/* What this thread holds, the innermost first. */
static __attribute__((tls_model("initial-exec"))) _Thread_local tni_grad_hold_frame *innermost;

static bool is_mine(const tni_grad_meta *meta)
{
    for (const tni_grad_hold_frame *f = innermost; f; f = f->outer)
        if (f->meta == meta)
            return true;
    return false;
}

static void take(_Atomic uint32_t *holder, uint32_t era)
{
    uint32_t seen = 0;
    bool waited = false;
    for (;;) {
        bool is_free = (seen & ~(uint32_t)WAITED_FOR) != era;
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
    tni_hold_begin(TNI_WAIT_LOCK, (uintptr_t)holder, HELD);
}

void tni_grad_hold(tni_grad_meta *meta, tni_grad_hold_frame *frame)
{
    *frame = (tni_grad_hold_frame){NULL, NULL};
    if (is_mine(meta))
        return;
    uint32_t era = 2u * tni_spin_era;
    if (TNI_ONE_THREAD) /* and what this thread does not hold nobody does */
        atomic_store_explicit(&meta->holder, era, memory_order_relaxed);
    else
        take(&meta->holder, era);
    *frame = (tni_grad_hold_frame){meta, innermost};
    innermost = frame;
}

void tni_grad_let(tni_grad_hold_frame *frame)
{
    tni_grad_meta *meta = frame->meta;
    if (!meta)
        return;
    innermost = frame->outer;
    tni_hold_end(TNI_WAIT_LOCK, (uintptr_t)&meta->holder); /* none, if it was taken alone */
    if (TNI_ONE_THREAD) {
        atomic_store_explicit(&meta->holder, 0, memory_order_relaxed);
        return;
    }
    uint32_t was = atomic_exchange_explicit(&meta->holder, 0, memory_order_release);
    if (was & WAITED_FOR)
        tni_futex_wake(&meta->holder, INT_MAX, CHANNEL);
}
