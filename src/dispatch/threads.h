/* SPDX-License-Identifier: MIT */
/* dispatch/threads.h: a thread that has dispatched. */
#ifndef TNI_DISPATCH_THREADS_H
#define TNI_DISPATCH_THREADS_H

#include "dispatch/call.h"

typedef struct tni_thread {
    struct tni_thread *next;
    tni_state *state; /* the thread's own, in its TLS */
    tn_observer_fn observer;
    void *observer_ctx;
    bool in_observer; /* what the observer calls is not observed */
} tni_thread;

/* A thread that had an observer ended, or took it off. */
void tni_observer_gone(void);
/* So many threads have one: after fork(). Between tni_watch_lock and tni_watch_unlock. */
void tni_observers_are(int n);

#endif
