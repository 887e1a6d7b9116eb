/* SPDX-License-Identifier: MIT */
/* base/tally.h: how many bytes of tensor data come and go, counted while somebody asks.
 *
 * Each thread counts what it takes and what it gives back, so that a difference of two readings is
 * what happened in between on that thread. One branch when nobody asks. */
#ifndef TNI_BASE_TALLY_H
#define TNI_BASE_TALLY_H

#include <stdatomic.h>
#include "base/status.h"

typedef struct tni_tally {
    int64_t allocated, freed;
} tni_tally;

TNI_HIDDEN extern _Atomic bool tni_tallying;
TNI_HIDDEN extern __attribute__((tls_model("initial-exec"))) _Thread_local tni_tally tni_tally_mine;
/* Taken and not yet given back, of all threads, since counting began; what is older counts below
 * zero when it goes. */
TNI_HIDDEN extern _Atomic int64_t tni_tally_live;

TNI_COLD void tni_tally_note(int64_t nbytes); /* below zero: given back */

static inline void tni_tally_alloc(size_t nbytes)
{
    if (TNI_UNLIKELY(atomic_load_explicit(&tni_tallying, memory_order_relaxed)))
        tni_tally_note((int64_t)nbytes);
}

static inline void tni_tally_free(size_t nbytes)
{
    if (TNI_UNLIKELY(atomic_load_explicit(&tni_tallying, memory_order_relaxed)))
        tni_tally_note(-(int64_t)nbytes);
}

#endif
