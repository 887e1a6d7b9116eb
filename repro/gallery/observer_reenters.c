/* SPDX-License-Identifier: MIT */
/* An observer callback that re-enters the dispatcher. What it calls is not observed, so it does not
 * hear of itself; but it takes a lock again that it holds. */
#include "gallery.h"

static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;
static tn_tensor *x;

static void take_log_lock(void)
{
    if (pthread_mutex_trylock(&log_lock) != 0) {
        ready();
        tn_wait_begin(TN_WAIT_LOCK, &log_lock, "log");
        pthread_mutex_lock(&log_lock);
        tn_wait_end();
    }
    tn_hold_begin(TN_WAIT_LOCK, &log_lock, "log");
}

static void hears(void *ctx, const tn_event *event)
{
    (void)ctx;
    (void)event;
    tn_tensor *y;
    take_log_lock();
    must(tn_add(x, x, tn_int(1), &y)); /* fine */
    take_log_lock();                   /* not fine */
}

int main(void)
{
    limit_life();
    x = ones(4, TN_CPU);
    tn_tensor *y;
    must(tn_observe_thread(hears, NULL));
    return refused(tn_mul(x, x, &y));
}
