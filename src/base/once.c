/* SPDX-License-Identifier: MIT */
/* Initialise once: one word says whether it was done, and else who is at it. */
#include "base/once.h"

#include <pthread.h>
#include "base/futex.h"

enum { NOT_RUN = 0, DONE = 2, CHANNEL = 1 };

/* Threads are numbered as they come here. A number is never used again and stays the same over
 * fork(), both of which the system's thread id is not good for. */
static _Atomic uint32_t last_number;
static _Thread_local uint32_t my_number;

/* In a child made by fork(): of the threads numbered up to `parent_last` only `survivor` is there.
 */
static uint32_t parent_last;
static uint32_t survivor;
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;

static void in_child(void)
{
    parent_last = atomic_load_explicit(&last_number, memory_order_relaxed);
    survivor = my_number;
}

static void watch_forks(void)
{
    (void)pthread_atfork(NULL, NULL, in_child);
}

static uint32_t running_by_me(void)
{
    if (!my_number) {
        pthread_once(&fork_once, watch_forks);
        my_number = atomic_fetch_add_explicit(&last_number, 1, memory_order_relaxed) + 1;
    }
    return my_number << 2 | 1;
}

static bool owner_is_gone(uint32_t state)
{
    return state >> 2 <= parent_last && state >> 2 != survivor;
}

tn_status tni_once_run(tni_once *once, tn_status (*fn)(void), const char *what)
{
    uint32_t state = atomic_load_explicit(&once->state, memory_order_acquire);
    if (state == DONE)
        return TN_OK;
    uint32_t mine = running_by_me();
    for (;;) {
        if (state == DONE)
            return TN_OK;
        TN_CHECK(state != mine, TN_RECURSION,
                 "initialising %s needs %s itself: it was reached again on the thread that is "
                 "initialising it",
                 what, what);
        if (state == NOT_RUN || owner_is_gone(state)) {
            if (atomic_compare_exchange_weak_explicit(&once->state, &state, mine,
                                                      memory_order_acquire, memory_order_acquire))
                break;
        } else {
            tni_futex_wait(&once->state, state, CHANNEL);
            state = atomic_load_explicit(&once->state, memory_order_acquire);
        }
    }
    tn_status status = fn();
    atomic_store_explicit(&once->state, status == TN_OK ? DONE : NOT_RUN, memory_order_release);
    tni_futex_wake(&once->state, INT_MAX, CHANNEL);
    return status;
}
