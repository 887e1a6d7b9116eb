/* SPDX-License-Identifier: MIT */
/* dispatch/debug.c: the dispatch trace, stage lines and observers: what happens when somebody
 * watches.
 *
 * Formats: the trace is the reference's (spec 3.9); the stage lines are those of the documents that
 * this project was asked to implement, each printed by the stage that it names. */
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/env.h"
#include "dispatch/debug.h"
#include "dispatch/threads.h"

_Atomic uint32_t tni_watching;

static struct {
    pthread_mutex_t lock; /* guards what follows, and who may switch its bit */
    char filter[128];     /* substring of operator names; "" for off */
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
    pthread_mutex_lock(&watch.lock);
}

void tni_watch_unlock(void)
{
    pthread_mutex_unlock(&watch.lock);
}

/* ---- lines ---- */

bool tni_debug_on(const char *op_name)
{
    if (!(atomic_load_explicit(&tni_watching, memory_order_relaxed) & TNI_WATCH_DEBUG))
        return false;
    pthread_mutex_lock(&watch.lock);
    bool on =
        watch.filter[0] && (strcmp(watch.filter, "1") == 0 || strcmp(watch.filter, "*") == 0 ||
                            strstr(op_name, watch.filter) != NULL);
    pthread_mutex_unlock(&watch.lock);
    return on;
}

void tni_debug_line(const char *label, const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    fprintf(stderr, "[DEBUG %s] %s\n", label, text);
    fflush(stderr);
}

static const char *const trace_labels[] = {
    [TN_EVENT_CALL] = "[call]",
    [TN_EVENT_REDISPATCH] = "[redispatch]",
    [TN_EVENT_CALL_BOXED] = "[callBoxed]",
    [TN_EVENT_REDISPATCH_BOXED] = "[redispatchBoxed]",
};
static const char *const stage_labels[] = {
    [TN_EVENT_CALL] = "Dispatcher::call",
    [TN_EVENT_REDISPATCH] = "Dispatcher::redispatch",
    [TN_EVENT_CALL_BOXED] = "Dispatcher::callBoxed",
    [TN_EVENT_REDISPATCH_BOXED] = "Dispatcher::redispatchBoxed",
};

void tni_trace_line(const tn_call *call, int depth)
{
    fprintf(stderr, "%*s%s op=[%s], key=[%s]\n", depth, "", trace_labels[call->kind],
            call->op->name, tn_key_name(tni_slot_key(call->slot)));
    fflush(stderr);
}

static bool is_boxed(const tn_call *c)
{
    return c->kind == TN_EVENT_CALL_BOXED || c->kind == TN_EVENT_REDISPATCH_BOXED;
}

static void print_stages_before(const tn_call *c)
{
    const char *label = stage_labels[c->kind];
    const char *set_text;
    char buffer[1024];
    set_text = tn_keyset_format(c->keys, buffer, sizeof buffer);
    tni_debug_line(label, "op=%s", c->op->name);
    tni_debug_line(label, "dispatchKeySet=%s", set_text);
    bool redispatch = c->kind == TN_EVENT_REDISPATCH || c->kind == TN_EVENT_REDISPATCH_BOXED;
    tni_debug_line(label, redispatch ? "About to call entry.lookup()" : "About to call lookup()");

    const char *lookup = "OperatorEntry::lookup";
    tni_debug_line(lookup, "op=%s, keyset=%s", c->op->name, set_text);
    tni_debug_line(lookup, "highest priority key=%s", tn_key_name(tni_slot_key(c->slot)));
    tni_debug_line(lookup, "dispatch table index=%u", c->slot);
    tni_debug_line(lookup, "kernel.isValid=%d, isValidUnboxed=%d", c->kernel->boxed != NULL,
                   c->kernel->typed != NULL);
    if (!c->kernel->boxed) {
        tni_debug_line(lookup, "No kernel, about to report it");
        return;
    }
    tni_debug_line(lookup, "Returning kernel, about to call it");
    tni_debug_line(label, "lookup() returned");
    tni_debug_line(label, "About to call %s [fast path]",
                   is_boxed(c) ? "kernel.callBoxed()" : "kernel.call<>()");
}

static void print_stages_after(const tn_call *c)
{
    tni_debug_line(stage_labels[c->kind], "%s RETURNED [fast path]",
                   is_boxed(c) ? "kernel.callBoxed()" : "kernel.call<>()");
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
    thread->observer(thread->observer_ctx, event);
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

void tni_announce(tn_call *c, tn_keyset mask, const tn_value *args, int nargs)
{
    tni_state *s = &tni_tls;
    uint32_t bits = atomic_load_explicit(&tni_watching, memory_order_relaxed);
    int depth = (int)c->depth + 1;
    if (bits & TNI_WATCH_TRACE)
        tni_trace_line(c, depth);
    if ((bits & TNI_WATCH_DEBUG) && tni_debug_on(c->op->name)) {
        if (bits & TNI_WATCH_TRACE) {
            char set[1024];
            tni_debug_line("DISPATCHER", "op=[%s], full key set=%s", c->op->name,
                           tn_keyset_format(c->keys, set, sizeof set));
        }
        print_stages_before(c);
        c->flags |= TNI_FRAME_WATCHED | TNI_FRAME_STAGES;
    }
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
}

void tni_announce_return(const tn_call *call, tn_status status)
{
    tni_state *s = &tni_tls;
    if ((call->flags & TNI_FRAME_OBSERVED) && s->thread->observer && !s->thread->in_observer) {
        tn_event event = make_event(call, TN_EVENT_RETURN);
        event.status = status;
        event.nanoseconds = now_ns() - call->start;
        tell_observer(s->thread, &event);
    }
    if ((call->flags & TNI_FRAME_STAGES) && call->kernel->boxed)
        print_stages_after(call);
}

/* Locked. */
static void observers_are(int n)
{
    watch.observers = n;
    tni_watch(TNI_WATCH_OBSERVER, n > 0);
}

static void observers_change(int by)
{
    pthread_mutex_lock(&watch.lock);
    observers_are(watch.observers + by);
    pthread_mutex_unlock(&watch.lock);
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
}

tn_status tn_set_dispatch_debug(const char *filter)
{
    size_t n = filter ? strlen(filter) : 0;
    TN_CHECK(n < sizeof watch.filter, TN_VALUE,
             "the filter of stage lines must be shorter than %zu characters, not %zu",
             sizeof watch.filter, n);
    pthread_mutex_lock(&watch.lock);
    memcpy(watch.filter, n ? filter : "", n + 1);
    tni_watch(TNI_WATCH_DEBUG, n > 0);
    pthread_mutex_unlock(&watch.lock);
    return TN_OK;
}

tn_status tni_debug_from_environment(void)
{
    const char *trace = tni_env("TENON_SHOW_DISPATCH_TRACE");
    if (!trace)
        trace = tni_env("TORCH_SHOW_DISPATCH_TRACE");
    if (trace && strcmp(trace, "1") == 0)
        tn_set_dispatch_trace(true);
    const char *filter = tni_env("TENON_DISPATCH_DEBUG");
    if (filter && strcmp(filter, "0") != 0) {
        char cut[sizeof watch.filter];
        snprintf(cut, sizeof cut, "%s", filter);
        return tn_set_dispatch_debug(cut);
    }
    return TN_OK;
}
