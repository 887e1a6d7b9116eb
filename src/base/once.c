/* SPDX-License-Identifier: MIT */
/* Initialise once: one word says whether it was done, and else which thread is at it. A thread
 * knows by itself what it is initialising, so that it recognises its own also in a child made by
 * fork(), where its number is another. */
#define _GNU_SOURCE /* gettid, tgkill */
#include "base/once.h"

#include <errno.h>
#include <signal.h>
#include <unistd.h>
#include "base/futex.h"
#include "base/mark.h"

enum { NOT_RUN = 0, DONE = 2, CHANNEL = 1 };

/* What this thread is initialising, the innermost first. */
typedef struct running {
    const tni_once *once;
    struct running *outer;
} running;

static _Thread_local running *innermost;

static bool is_mine(const tni_once *once)
{
    for (const running *r = innermost; r; r = r->outer) {
        if (r->once == once)
            return true;
    }
    return false;
}

/* An initialising thread always comes to an end of it, except that a child made by fork() meanwhile
 * has the word but not the thread. */
static bool owner_is_gone(uint32_t state)
{
    return tgkill(getpid(), (pid_t)(state >> 2), 0) != 0 && errno == ESRCH;
}

/* Another thread is at it. The watchdog may end the wait, not the initialisation. */
static tn_status wait_for(tni_once *once, uint32_t state, const char *what)
{
    bool can_end = atomic_load_explicit(&tni_waits_can_end, memory_order_relaxed);
    tni_futex_wait_ms(&once->state, state, CHANNEL, can_end ? 50 : 1000);
    if (!can_end || !tni_take_interrupt())
        return TN_OK;
    tni_wait_end();
    TN_FAIL(TN_TIMEOUT,
            "interrupted by the watchdog while waiting for thread %u, which is initialising %s",
            state >> 2, what);
}

tn_status tni_once_run(tni_once *once, tn_status (*fn)(void), const char *what)
{
    uint32_t state = atomic_load_explicit(&once->state, memory_order_acquire);
    uint32_t mine = 0;
    bool waited = false;
    for (;;) {
        if (state == DONE) {
            if (waited)
                tni_wait_end();
            return TN_OK;
        }
        TN_CHECK(!is_mine(once), TN_RECURSION,
                 "initialising %s needs %s itself: it was reached again on the thread that is "
                 "initialising it",
                 what, what);
        if (state == NOT_RUN || owner_is_gone(state)) {
            mine = mine ? mine : (uint32_t)gettid() << 2 | 1;
            if (atomic_compare_exchange_weak_explicit(&once->state, &state, mine,
                                                      memory_order_acquire, memory_order_acquire))
                break;
        } else {
            if (!waited)
                tni_wait_begin(TNI_WAIT_ONCE, (uintptr_t)once, what, true);
            waited = true;
            TN_TRY(wait_for(once, state, what));
            state = atomic_load_explicit(&once->state, memory_order_acquire);
        }
    }
    if (waited)
        tni_wait_end();
    running here = {once, innermost};
    innermost = &here;
    tni_hold_begin(TNI_WAIT_ONCE, (uintptr_t)once, what);
    tn_status status = fn();
    /* The initialisation may have given this thread its place for marks only now. */
    tni_hold_end(TNI_WAIT_ONCE, (uintptr_t)once);
    innermost = here.outer;
    atomic_store_explicit(&once->state, status == TN_OK ? DONE : NOT_RUN, memory_order_release);
    tni_futex_wake(&once->state, INT_MAX, CHANNEL);
    return status;
}
