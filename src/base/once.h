/* SPDX-License-Identifier: MIT */
/* base/once.h: initialise once, and know when the initialiser calls itself.
 *
 * pthread_once deadlocks when its routine reaches the same once on the same thread. This one
 * returns TN_RECURSION instead. A failed initialiser may be tried again. In a child made by fork()
 * while another thread was initialising, the initialiser runs again: that thread is not there to
 * finish. */
#ifndef TNI_BASE_ONCE_H
#define TNI_BASE_ONCE_H

#include <stdatomic.h>
#include "base/status.h"

typedef struct tni_once {
    /* 0 not run, 2 done, else 4 * id of the thread that runs it + 1. Also the futex word. */
    _Atomic uint32_t state;
} tni_once;

/* clang-format off */
#define TNI_ONCE_INIT {.state = 0}
/* clang-format on */

/* Run @p fn unless it already succeeded. Other threads wait. @retval TN_RECURSION  @p fn reached
 * its own once on this thread; @p what names it in the message. */
TN_NODISCARD tn_status tni_once_run(tni_once *once, tn_status (*fn)(void), const char *what);
static inline bool tni_once_done(tni_once *once)
{
    return atomic_load_explicit(&once->state, memory_order_acquire) == 2;
}

#endif
