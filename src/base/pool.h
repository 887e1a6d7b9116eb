/* SPDX-License-Identifier: MIT */
/* base/pool.h: the fork-safe thread pool.
 *
 * Work is cut by (n, grain) alone into chunks [i*grain, (i+1)*grain), so results never depend on
 * the number of threads. The caller works too. A loop inside a loop runs serially. A failing chunk
 * stops further chunks; its error record moves to the caller. A child made by fork() starts its own
 * workers when it first needs them. No lock is held while a chunk runs. */
#ifndef TNI_BASE_POOL_H
#define TNI_BASE_POOL_H

#include "base/status.h"

typedef tn_status (*tni_pool_fn)(int64_t begin, int64_t end, void *arg);

/* Run fn over [0, n). Runs on the calling thread alone when n <= grain or one thread is configured.
 * @p grain at least 1. */
TN_NODISCARD tn_status tni_pool_for(int64_t n, int64_t grain, tni_pool_fn fn, void *arg);
/* Whether a loop that takes one thread about @p ns, a few microseconds, is worth sharing out:
 * workers look for one and came quickly the last times, or such loops come so fast one after the
 * other that waking them pays. What it says may change how a loop is cut, never what comes out. */
bool tni_pool_is_near(int64_t ns);
/* True while this thread runs a chunk of some loop. */
bool tni_pool_inside(void);
/* Index of this thread in the running loop, 0 for the caller; below tn_num_threads(). */
int tni_pool_thread_index(void);

#endif
