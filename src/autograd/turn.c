/* SPDX-License-Identifier: MIT */
/* autograd/turn.c: see turn.h. */
#include "autograd/turn.h"

#include <pthread.h>
#include <time.h>
#include "base/clock.h"

enum { PATIENCE_S = 10 }; /* for one turn of another */
static const char TURN[] = "the turn to add to a gradient";

/* Its address is a thread's name; that of the thread which called fork(), in the child. */
static _Thread_local char me;
static const void *survivor;

static void forked(void)
{
    survivor = &me;
}

static void watch_forks(void)
{
    /* Without memory for it, turns of the thread that forks end in the child, as those of others.
     */
    (void)!pthread_atfork(NULL, NULL, forked);
}

/* Take the turn if it is free, or this thread's. Else *seen is the number of the one that lasts. */
static bool try_turn(tni_grad_meta *meta, tni_sum_turn *turn, uint64_t *seen)
{
    tni_spin_lock(&meta->lock);
    /* One that began before a fork() lasts if the thread is still there. */
    const bool lasts = meta->turn_era == tni_spin_era || meta->turn_thread == survivor;
    const tni_sum_turn *other = meta->turn && lasts ? meta->turn : NULL;
    turn->thread = &me;
    turn->is_inner = other && other->thread == &me;
    if (!other) {
        meta->turn = turn;
        meta->turn_era = tni_spin_era;
        meta->turn_thread = &me;
    } else {
        *seen = other->number;
    }
    tni_spin_unlock(&meta->lock);
    return !other || turn->is_inner;
}

/* Of the time between two looks no more counts than this: the process may have been stopped, and
 * whose turn it is with it. */
static const uint64_t most_between = 100 * 1000 * 1000;

static bool wait_for_turn(tni_grad_meta *meta, tni_sum_turn *turn)
{
    uint64_t last = 0, seen = 0, waited = 0, looked = tni_coarse_ns();
    while (!try_turn(meta, turn, &seen)) {
        const uint64_t now = tni_coarse_ns(), passed = now - looked;
        waited = seen == last ? waited + (passed < most_between ? passed : most_between) : 0;
        last = seen;
        looked = now;
        if (waited > PATIENCE_S * UINT64_C(1000000000))
            return false;
        nanosleep(&(const struct timespec){0, 100 * 1000}, NULL);
    }
    return true;
}

tn_status tni_sum_turn_take(tni_grad_meta *meta, tni_sum_turn *turn)
{
    static _Atomic uint64_t n_turns;
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    uint64_t unused = 0;
    pthread_once(&once, watch_forks);
    turn->number = atomic_fetch_add_explicit(&n_turns, 1, memory_order_relaxed) + 1;
    if (TNI_LIKELY(try_turn(meta, turn, &unused)))
        return TN_OK;
    tni_wait_begin(TNI_WAIT_LOCK, (uintptr_t)&meta->turn, TURN, true);
    const bool has_turn = wait_for_turn(meta, turn);
    tni_wait_end();
    TN_CHECK(
        has_turn, TN_INVALID,
        "another thread has been adding to the gradient of this tensor for %d seconds: the code "
        "that handles that gradient (of a subclass, or sparse) may be waiting for this pass. "
        "What this pass computed for the tensor was not added.",
        PATIENCE_S);
    return TN_OK;
}

void tni_sum_turn_end(tni_grad_meta *meta, const tni_sum_turn *turn)
{
    if (turn->is_inner)
        return;
    tni_spin_lock(&meta->lock);
    if (meta->turn == turn) /* in a child made by fork() meanwhile it may be another's */
        meta->turn = NULL;
    tni_spin_unlock(&meta->lock);
}
