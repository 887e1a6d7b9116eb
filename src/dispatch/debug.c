/* SPDX-License-Identifier: MIT */
/* dispatch/debug.c: who watches: the dispatch trace and observers, and the switches of the
 * environment. The trace has the reference's format. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/env.h"
#include "dispatch/debug.h"
#include "dispatch/profile.h"
#include "dispatch/stages.h"
#include "dispatch/threads.h"

_Atomic uint32_t tni_watching;

static struct {
    pthread_mutex_t lock; /* guards what follows, and who may switch its bit */
    int observers;        /* threads that have one */
} watch = {.lock = PTHREAD_MUTEX_INITIALIZER};

void tni_watch(uint32_t bit, bool on)
{
    if (on)
        atomic_fetch_or(&tni_watching, bit);
    else
        atomic_fetch_and(&tni_watching, ~bit);
}

void tni_watch_lock(void)
{
    tni_mutex_lock(&watch.lock, "the list of observers");
    tni_stages_lock();
}

void tni_watch_unlock(void)
{
    tni_stages_unlock();
    tni_mutex_unlock(&watch.lock);
}

/* ---- observers ---- */

static uint64_t now_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static int tensor_keys(const tn_value *args, int nargs, tn_keyset *keys, int room)
{
    int n = 0;
    for (int i = 0; i < nargs; i++) {
        if (args[i].tag == TN_TAG_TENSOR && args[i].u.tensor && n < room)
            keys[n++] = tni_keys(args[i].u.tensor);
        if (args[i].tag != TN_TAG_TENSOR_LIST)
            continue;
        for (uint32_t k = 0; k < args[i].count && n < room; k++) {
            if (args[i].u.tensors[k])
                keys[n++] = tni_keys(args[i].u.tensors[k]);
        }
    }
    return n;
}

/* What fails in an observer is not a failure of the call that it hears of. */
static void tell_observer(tni_thread *thread, const tn_event *event)
{
    tni_error error;
    tni_error_take(&error);
    thread->in_observer = true;
    uint32_t callout = tni_callout_begin(TNI_CALLOUT_OBSERVER);
    thread->observer(thread->observer_ctx, event);
    tni_callout_end(callout);
    thread->in_observer = false;
    tn_clear_error();
    (void)!tni_error_raise(&error);
}

static tn_event make_event(const tn_call *c, tn_event_kind kind)
{
    const tni_state *s = &tni_tls;
    return (tn_event){.size = sizeof(tn_event),
                      .kind = kind,
                      .depth = (int)c->depth + 1,
                      .op = c->op,
                      .included = tni_included(s),
                      .excluded = tni_excluded(s),
                      .mask = TNI_KS_FULL,
                      .keys = c->keys,
                      .key = tni_slot_key(c->slot),
                      .slot = c->slot};
}

void tni_announce(tn_call *c, tn_keyset mask, const tn_value *args, int nargs, bool in_stages)
{
    tni_state *s = &tni_tls;
    uint32_t bits = atomic_load_explicit(&tni_watching, memory_order_relaxed);
    if ((bits & TNI_WATCH_TRACE) && !in_stages)
        tni_trace_line(c->op, (tn_event_kind)c->kind, c->slot, (int)c->depth + 1);
    if (s->thread->observer && !s->thread->in_observer) {
        tn_keyset keys[64];
        tn_event event = make_event(c, (tn_event_kind)c->kind);
        event.mask = mask;
        event.n_args = tensor_keys(args, nargs, keys, 64);
        event.arg_keys = keys;
        tell_observer(s->thread, &event);
        c->flags |= TNI_FRAME_WATCHED | TNI_FRAME_OBSERVED;
        c->start = now_ns(); /* the observer's own time does not count */
    }
    if (bits & TNI_WATCH_PROFILE)
        tni_profile_begin(c, args, nargs);
}

void tni_announce_return(const tn_call *call, tn_status status)
{
    tni_state *s = &tni_tls;
    if (call->flags & TNI_FRAME_PROFILED)
        tni_profile_end(call, status);
    if ((call->flags & TNI_FRAME_OBSERVED) && s->thread->observer && !s->thread->in_observer) {
        tn_event event = make_event(call, TN_EVENT_RETURN);
        event.status = status;
        event.nanoseconds = now_ns() - call->start;
        tell_observer(s->thread, &event);
    }
    if (call->flags & TNI_FRAME_STAGES)
        tni_tell_return(call);
}

/* Locked. */
static void observers_are(int n)
{
    watch.observers = n;
    tni_watch(TNI_WATCH_OBSERVER, n > 0);
}

static void observers_change(int by)
{
    tni_mutex_lock(&watch.lock, "the list of observers");
    observers_are(watch.observers + by);
    tni_mutex_unlock(&watch.lock);
}

void tni_observer_gone(void)
{
    observers_change(-1);
}

void tni_observers_are(int n)
{
    observers_are(n);
}

tn_status tn_observe_thread(tn_observer_fn fn, void *ctx)
{
    TN_TRY(tni_ready());
    tni_thread *thread = tni_tls.thread;
    bool had = thread->observer != NULL;
    thread->observer = fn;
    thread->observer_ctx = ctx;
    if ((fn != NULL) != had)
        observers_change(fn ? 1 : -1);
    return TN_OK;
}

/* ---- switches ---- */

void tn_set_dispatch_trace(bool on)
{
    tni_watch(TNI_WATCH_TRACE, on);
    tni_mark_forget();
}

tn_status tni_debug_from_environment(void)
{
    bool ours = tni_env("TENON_SHOW_DISPATCH_TRACE") != NULL;
    if (tni_env_flag(ours ? "TENON_SHOW_DISPATCH_TRACE" : "TORCH_SHOW_DISPATCH_TRACE", false))
        tn_set_dispatch_trace(true);
    const char *filter = tni_env("TENON_DISPATCH_DEBUG");
    if (filter && strcmp(filter, "0") != 0) {
        char cut[128]; /* what tn_set_dispatch_debug takes */
        if (snprintf(cut, sizeof cut, "%s", filter) >= (int)sizeof cut)
            tni_env_complain("TENON_DISPATCH_DEBUG",
                             "1, or names of operators, up to 127 characters",
                             "its first 127 are used");
        return tn_set_dispatch_debug(cut);
    }
    return TN_OK;
}
