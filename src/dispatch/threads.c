/* SPDX-License-Identifier: MIT */
/* dispatch/threads.c: which threads dispatch, and when what was unregistered may be freed.
 *
 * Note [Freeing old tables]
 * A call reads its operator's table without a lock. Whoever replaces a table must not free the old
 * one while some call still reads it, or still runs a kernel that it named. So:
 *   - A thread entering its outermost dispatch writes the global epoch into its own word, and
 * writes 0 when it leaves.
 *   - Replacing publishes the new pointer, stamps the old object with the epoch, then adds one to
 * it.
 *   - An object stamped E is free to go once every thread's word is 0 or greater than E.
 * The thread's store of its word must be visible before its load of the table. That would take a
 * fence on every call; instead the replacing side runs membarrier(2), which makes every running
 * thread of the process pass a fence. Where the kernel has no membarrier nothing is freed until the
 * process ends. Nobody waits: what cannot go now goes with a later registration or when a thread
 * ends. */
#define _GNU_SOURCE
#include <linux/membarrier.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/once.h"
#include "base/spin.h"
#include "core/device.h"
#include "dispatch/builtin.h"
#include "dispatch/debug.h"
#include "dispatch/profile.h"
#include "dispatch/threads.h"
#include "observe/watchdog.h"

_Atomic uint64_t tni_epoch = 1;

static struct {
    tni_thread *first;    /* threads that have dispatched; guarded by the registry's lock */
    tni_retired *retired; /* waiting to be freed, the oldest first; likewise */
    tni_retired **retired_end;
    pthread_key_t key;
    bool can_fence;
    _Atomic int limit;
} threads = {.limit = 1024, .retired_end = &threads.retired};

static tni_once boot_once = TNI_ONCE_INIT;

/* _POSIX_THREAD_DESTRUCTOR_ITERATIONS is 4: the last must find nothing to do. */
enum { MOST_ENDS = 3 };

/* ---- the lock ---- */

void tni_lock(void)
{
    tni_mutex_lock(&tni_registry_.lock, "the registry's lock");
}

static bool fence_all_threads(void)
{
#if defined(__SANITIZE_THREAD__)
    return true; /* ordered by sequential consistency there */
#else
    return threads.can_fence &&
           syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0;
#endif
}

/* The oldest epoch that some thread is in. Locked. */
static uint64_t oldest_epoch(void)
{
    uint64_t oldest = UINT64_MAX;
    for (tni_thread *t = threads.first; t; t = t->next) {
        uint64_t epoch = atomic_load_explicit(&t->state->epoch, memory_order_seq_cst);
        if (epoch && epoch < oldest)
            oldest = epoch;
    }
    return oldest;
}

/* Take what no thread can use any more off the queue. Locked. Cheap when there is nothing to take:
 * a thread that is seen inside without the fence is inside. */
static tni_retired *collect(void)
{
    tni_retired *first = threads.retired;
    if (!first || first->epoch >= oldest_epoch() || !fence_all_threads())
        return NULL;
    uint64_t oldest = oldest_epoch();
    tni_retired **end = &threads.retired; /* they lie in the order of their epochs */
    while (*end && (*end)->epoch < oldest)
        end = &(*end)->next;
    if (end == &threads.retired)
        return NULL;
    threads.retired = *end;
    *end = NULL;
    if (!threads.retired)
        threads.retired_end = &threads.retired;
    return first;
}

/* The destructors that run here belong to somebody else than the caller: what fails in them must
 * not be taken for a failure of the caller. */
static void free_all(tni_retired *items)
{
    tni_error error;
    tni_error_take(&error);
    while (items) {
        tni_retired *next = items->next;
        items->free(items);
        items = next;
    }
    tn_clear_error();
    (void)!tni_error_raise(&error);
}

void tni_unlock(void)
{
    tni_retired *items = collect();
    tni_mutex_unlock(&tni_registry_.lock);
    if (items)
        free_all(items);
}

void tni_unlock_only(void)
{
    tni_mutex_unlock(&tni_registry_.lock);
}

void tni_retire(tni_retired *item, void (*free_fn)(tni_retired *item))
{
    item->free = free_fn;
    item->epoch = atomic_fetch_add_explicit(&tni_epoch, 1, memory_order_seq_cst);
    item->next = NULL;
    *threads.retired_end = item;
    threads.retired_end = &item->next;
}

bool tni_epoch_enter(void)
{
    return tni_epoch_open(&tni_tls);
}

void tni_epoch_leave(bool entered)
{
    if (entered)
        tni_epoch_close(&tni_tls);
}

/* ---- threads come and go ---- */

/* Destructors that run later, ours below or those of other keys, may dispatch again: from here on
 * the thread is new, and registers anew. It may have ended inside a kernel. */
static void thread_ends(void *arg)
{
    tni_thread *thread = arg;
    tni_state *s = thread->state;
    if (thread->observer)
        tni_observer_gone();
    tni_lock();
    for (tni_thread **link = &threads.first; *link; link = &(*link)->next) {
        if (*link == thread) {
            *link = thread->next;
            break;
        }
    }
    tni_epoch_close(s);
    s->depth = s->limit = 0;
    tni_flight_thread *record = s->record;
    s->frames = s->ring = NULL;
    s->record = NULL;
    s->thread = NULL;
    s->ended++;
    tni_unlock();
    tni_flight_leave(record);
    tni_free(thread);
}

static void before_fork(void)
{
    tni_watchdog_before_fork();
    tni_device_lock();
    tni_lock();
    tni_watch_lock();
    tni_flight_before_fork();
}

static void after_fork_in_parent(void)
{
    tni_flight_after_fork();
    tni_watch_unlock();
    tni_unlock_only();
    tni_device_unlock();
    tni_watchdog_after_fork();
}

/* Only the forking thread lives on: the others will never leave their dispatches. */
static void after_fork_in_child(void)
{
    tni_spin_forked();
    tni_recorder_forked();
    tni_thread *self = tni_tls.thread;
    for (tni_thread *t = threads.first; t;) {
        tni_thread *next = t->next;
        if (t != self)
            tni_free(t);
        t = next;
    }
    threads.first = self;
    if (self)
        self->next = NULL;
    tni_observers_are(self && self->observer ? 1 : 0);
    tni_watch(TNI_WATCH_PROFILE, false); /* the recording is the parent's */
    tni_watch_unlock();
    tni_unlock_only();
    tni_device_unlock();
}

/* For the error record: what was running. */
static const char *current_op(void)
{
    const tni_state *s = &tni_tls;
    return s->depth ? s->frames[s->depth - 1].op->name : "";
}

static tn_status boot(void)
{
    static bool prepared;
    if (!prepared) {
        TN_CHECK(pthread_key_create(&threads.key, thread_ends) == 0, TN_NOMEM,
                 "cannot make a thread-specific key");
        TN_CHECK(pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child) == 0,
                 TN_NOMEM, "cannot register what must happen at fork()");
        threads.can_fence =
            syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
        tni_set_current_op_fn(current_op);
        tni_recorder_boot();
        prepared = true;
    }
    TN_TRY(tni_debug_from_environment());
    TN_TRY(tni_boot());
    tni_watchdog_from_environment();
    return tni_profile_from_environment(); /* last: registering is not what it records */
}

static tn_status register_thread(void)
{
    tni_state *s = &tni_tls;
    /* The system calls our destructor a few times at most, and then frees the memory that the list
     * of threads would point to. */
    TN_CHECK(s->ended < MOST_ENDS, TN_INVALID,
             "this thread is ending: its destructors have called operators too often");
    int limit = atomic_load(&threads.limit);
    tni_thread *thread = tni_calloc(sizeof *thread);
    TN_CHECK(thread, TN_NOMEM, "cannot allocate the state of a thread");
    thread->state = s;
    void *frames = NULL;
    tni_flight_thread *record = tni_flight_join((uint32_t)limit, &frames);
    if (!record || pthread_setspecific(threads.key, thread) != 0) {
        if (record)
            tni_flight_leave(record);
        tni_free(thread);
        TN_FAIL(TN_NOMEM, "cannot allocate the dispatch frames of a thread");
    }
    s->frames = s->ring = frames;
    s->record = record;
    s->thread = thread;
    s->limit = (uint32_t)(limit < TNI_PLAIN_DEPTH ? limit : TNI_PLAIN_DEPTH);
    tni_lock();
    thread->next = threads.first;
    threads.first = thread;
    tni_unlock();
    return TN_OK;
}

tn_status tni_ready(void)
{
    if (TNI_LIKELY(tni_tls.limit != 0))
        return TN_OK;
    TN_TRY(tni_once_run(&boot_once, boot, "registering the built-in operators"));
    return tni_tls.limit ? TN_OK : register_thread();
}

/* ---- depth ---- */

int tn_dispatch_depth(void)
{
    return (int)tni_tls.depth;
}

tn_status tn_set_dispatch_depth_limit(int limit)
{
    TN_CHECK(limit >= 16 && limit <= 1 << 20, TN_VALUE,
             "the depth limit must be between 16 and 1048576, not %d", limit);
    atomic_store(&threads.limit, limit);
    return TN_OK;
}
