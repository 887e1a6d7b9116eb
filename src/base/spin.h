/* SPDX-License-Identifier: MIT */
/* base/spin.h: a lock of one byte, for a few instructions that almost never meet another thread.
 *
 * Nothing that calls out (an operator, a hook, a release function) may run while one is held.
 *
 * Note [Locks over fork]
 * A child made by fork() has the locks that other threads held, but not the threads. So a lock says
 * in which era of the process it was taken, and a child begins a new one: what was taken in another
 * era is free. */
#ifndef TNI_BASE_SPIN_H
#define TNI_BASE_SPIN_H

#include <sched.h>
#include "base/mark.h"
#include "base/ref.h"

typedef _Atomic uint8_t tni_spin; /* 0: free; else the era in which it was taken */

/* Never 0. Changes in a child made by fork() alone, while it has one thread. */
TNI_HIDDEN extern uint8_t tni_spin_era;
/* In a child made by fork(), before it does anything else. */
void tni_spin_forked(void);

static inline void tni_spin_lock(tni_spin *lock)
{
    /* Note [One thread]: without another thread there is nobody to keep out, and what this thread
     * holds it never asks for again. */
    if (TNI_ONE_THREAD) {
        atomic_store_explicit(lock, tni_spin_era, memory_order_relaxed);
        return;
    }
    uint8_t seen = 0;
    bool waited = false;
    for (int tries = 0; !atomic_compare_exchange_strong_explicit(
             lock, &seen, tni_spin_era, memory_order_acquire, memory_order_relaxed);
         tries++) {
        if (seen == tni_spin_era)
            seen = 0; /* held: wait until it is free. Else it was left behind: take it */
        if (tries > 64) {
            if (tries == 65)
                tni_wait_begin(TNI_WAIT_SPIN, (uintptr_t)lock, "", true);
            else
                sched_yield();
            waited = true;
        }
    }
    if (TNI_UNLIKELY(waited))
        tni_wait_end();
}

static inline void tni_spin_unlock(tni_spin *lock)
{
    atomic_store_explicit(lock, 0, memory_order_release);
}

#endif
