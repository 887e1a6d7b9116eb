/* SPDX-License-Identifier: MIT */
/* base/clock.h: the coarse clock that the flight recorder stamps calls with. */
#ifndef TNI_BASE_CLOCK_H
#define TNI_BASE_CLOCK_H

#include <stdatomic.h>
#include <time.h>
#include "base/status.h"

/* Note [The coarse clock]
 * Every call of an operator reads it, so what stands between the call and the kernel's shared page
 * counts: the C library's clock_gettime adds two calls and its checks to the function that lies in
 * that page, 5.8 ns instead of 3.8 where this was measured. So that function is asked directly once
 * tni_clock_find has found it; until then, and where there is none, the C library's. */
typedef int (*tni_clock_fn)(clockid_t clock, struct timespec *out);
TNI_HIDDEN extern _Atomic(tni_clock_fn) tni_clock;

/* Look for the kernel's function. Any number of times, from any thread. */
void tni_clock_find(void);

/* Nanoseconds of CLOCK_MONOTONIC_COARSE: a few milliseconds coarse, and a few loads. */
static inline uint64_t tni_coarse_ns(void)
{
    struct timespec ts;
    atomic_load_explicit(&tni_clock, memory_order_relaxed)(CLOCK_MONOTONIC_COARSE, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

#endif
