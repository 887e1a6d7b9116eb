/* SPDX-License-Identifier: MIT */
/* base/mark.h: what a thread waits for, holds and runs outside of operators, as marks that another
 * process may read.
 *
 * base knows where the marks are written, not what memory that is: observe gives each thread a
 * place in the flight recorder. A thread without a place writes nowhere. Marks are written by their
 * own thread alone, on paths that block or call out anyway; reading them is observe's business. */
#ifndef TNI_BASE_MARK_H
#define TNI_BASE_MARK_H

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include "base/clock.h"
#include "base/status.h"

/* What kind of thing a thread waits for or holds. The numbers are part of the record's format. */
typedef enum tni_wait_kind {
    TNI_WAIT_NONE = 0,
    TNI_WAIT_LOCK = 1,        /* a mutex of ours or of the embedder */
    TNI_WAIT_ONCE = 2,        /* another thread's initialisation */
    TNI_WAIT_POOL = 3,        /* the caller of a parallel loop: its workers */
    TNI_WAIT_IDLE = 4,        /* a pool worker: the next loop */
    TNI_WAIT_SPIN = 5,        /* a lock of one byte */
    TNI_WAIT_INTERPRETER = 6, /* the lock of an interpreter (Python's) */
    TNI_WAIT_THREAD = 7,      /* the end of another thread; `what` is its number */
    TNI_WAIT_EVENT = 8,       /* a condition, a message, a device */
    TNI_WAIT_LIMIT
} tni_wait_kind;

/* Foreign code that the library calls. Part of the record's format. */
typedef enum tni_callout {
    TNI_CALLOUT_NONE = 0,
    TNI_CALLOUT_OBSERVER = 1,
    TNI_CALLOUT_PACK_HOOK = 2,
    TNI_CALLOUT_UNPACK_HOOK = 3,
    TNI_CALLOUT_TENSOR_HOOK = 4,
    TNI_CALLOUT_NODE_HOOK = 5,
    TNI_CALLOUT_CALLBACK = 6, /* queued for the end of a backward pass */
    TNI_CALLOUT_LISTENER = 7,
    TNI_CALLOUT_INTERRUPT = 8, /* asked between two nodes of a backward pass */
    TNI_CALLOUT_LIMIT
} tni_callout;

enum { TNI_MARK_TEXT = 40, TNI_MARK_HELD = 8 };

typedef struct tni_mark {
    uint32_t kind; /* tni_wait_kind; NONE: nothing */
    uint32_t reserved;
    uint64_t what;  /* tells two things of one kind apart: an address, a thread's number */
    uint64_t since; /* of CLOCK_MONOTONIC_COARSE; 0: the clock was not asked */
    char text[TNI_MARK_TEXT];
} tni_mark;

typedef struct tni_thread_marks {
    tni_mark wait;
    uint32_t n_held; /* may be more than there are places */
    uint32_t callout;
    uint32_t is_worker;
    uint32_t works_for; /* a pool worker in a loop: the number of the thread whose loop it is */
    uint64_t works_since;
    _Atomic uint64_t interrupt; /* the watchdog wants this thread to stop, if it still is where it
                                   was: see tni_flight_request; 0: it does not. The one field that
                                   another thread of the process writes */
    tni_mark held[TNI_MARK_HELD];
} tni_thread_marks;

/* Where this thread's marks go; NULL until it has a place. */
TNI_HIDDEN extern
    __attribute__((tls_model("initial-exec"))) _Thread_local tni_thread_marks *tni_my_marks;

/* Who finds a place for a thread that has none; NULL when there is none to be had. */
typedef tni_thread_marks *(*tni_marks_fn)(void);
/* Whether this thread still is where it was when it was asked to stop. */
typedef bool (*tni_still_fn)(uint64_t request);
void tni_set_marks_fn(tni_marks_fn fn, tni_still_fn still);
/* This thread's marks, NULL when they go nowhere. */
tni_thread_marks *tni_marks_self(void);

/* @p text is copied, and cut when it is long. Without @p stamp the clock is not asked. */
void tni_wait_begin(tni_wait_kind kind, uint64_t what, const char *text, bool stamp);
void tni_wait_end(void);
void tni_hold_begin(tni_wait_kind kind, uint64_t what, const char *text);
/* The last of this kind and name that was begun. */
void tni_hold_end(tni_wait_kind kind, uint64_t what);

/* pthread_mutex_lock and unlock with marks. */
void tni_mutex_lock(pthread_mutex_t *mutex, const char *text);
void tni_mutex_unlock(pthread_mutex_t *mutex);
/* The same where marks come from: a thread that has no place for them yet goes without. */
void tni_mutex_lock_known(pthread_mutex_t *mutex, const char *text);

/* Whether waits of the library look for `interrupt` now and then. */
TNI_HIDDEN extern _Atomic bool tni_waits_can_end;
/* Requests that no thread has taken yet. */
TNI_HIDDEN extern _Atomic int tni_interrupts;
/* This thread was asked to stop; asking takes the request away. What has gone on by itself since
 * then is not stopped. */
bool tni_take_interrupt(void);

/* By which the watchdog asks a thread where it is; our own threads do not block it. Nothing happens
 * to who does not handle it. */
#define TNI_LOOK_SIGNAL SIGURG

/* Around a call of foreign code. */
static inline uint32_t tni_callout_begin(tni_callout kind)
{
    tni_thread_marks *m = tni_my_marks;
    if (!m)
        return TNI_CALLOUT_NONE;
    uint32_t old = m->callout;
    m->callout = kind;
    return old;
}
static inline void tni_callout_end(uint32_t old)
{
    if (tni_my_marks)
        tni_my_marks->callout = old;
}

#endif
