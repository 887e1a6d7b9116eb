/* SPDX-License-Identifier: MIT */
/* base/spin.h: a lock of one byte, for a few instructions that almost never meet another thread.
 *
 * Nothing that calls out (an operator, a hook, a release function) may run while one is held. */
#ifndef TNI_BASE_SPIN_H
#define TNI_BASE_SPIN_H

#include <sched.h>
#include "base/ref.h"

typedef _Atomic uint8_t tni_spin;

static inline void tni_spin_lock(tni_spin *lock)
{
    /* Note [One thread]: without another thread there is nobody to keep out, and what this thread
     * holds it never asks for again. */
    if (TNI_ONE_THREAD) {
        atomic_store_explicit(lock, 1, memory_order_relaxed);
        return;
    }
    for (int tries = 0; atomic_exchange_explicit(lock, 1, memory_order_acquire); tries++)
        if (tries > 64)
            sched_yield();
}

static inline void tni_spin_unlock(tni_spin *lock)
{
    atomic_store_explicit(lock, 0, memory_order_release);
}

#endif
