/* SPDX-License-Identifier: MIT */
/* dispatch/stages.c: the stage lines: what each step of a dispatch or of a registration says while
 * somebody watches it, TENON_DISPATCH_DEBUG.
 *
 * The lines are those with which PyTorch was instrumented for the report of a hang
 * (docs/user/diagnose.md). Each is printed by the stage that it names, when that stage happens: the
 * last line of a program that hangs is where it is. `tenon diagnose` reads them. */
#define _GNU_SOURCE /* gettid */
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "dispatch/debug.h"
#include "dispatch/stages.h"
#include "dispatch/threads.h"

static struct {
    pthread_mutex_t lock; /* guards the filter, and who may switch its bit */
    char filter[128];     /* see tni_stages_wanted; "" for off */
} stages = {.lock = PTHREAD_MUTEX_INITIALIZER};

void tni_stages_lock(void)
{
    tni_mutex_lock(&stages.lock, "the filter of stage lines");
}

void tni_stages_unlock(void)
{
    tni_mutex_unlock(&stages.lock);
}

bool tni_debug_on(const char *op_name)
{
    if (!(atomic_load_explicit(&tni_watching, memory_order_relaxed) & TNI_WATCH_DEBUG))
        return false;
    tni_mutex_lock(&stages.lock, "the filter of stage lines");
    bool on = tni_stages_wanted(stages.filter, op_name);
    tni_mutex_unlock(&stages.lock);
    return on;
}

tn_status tn_set_dispatch_debug(const char *filter)
{
    size_t n = filter ? strlen(filter) : 0;
    TN_CHECK(n < sizeof stages.filter, TN_VALUE,
             "the filter of stage lines must be shorter than %zu characters, not %zu",
             sizeof stages.filter, n);
    tni_mutex_lock(&stages.lock, "the filter of stage lines");
    memcpy(stages.filter, n ? filter : "", n + 1);
    tni_watch(TNI_WATCH_DEBUG, n > 0);
    tni_mutex_unlock(&stages.lock);
    tni_mark_forget();
    return TN_OK;
}

/* ---- lines ---- */

/* Note [Marks]
 * The formats of the lines are given, and have no room for a thread. So a line of our own says
 * whose the lines after it are: before the first stage line, and wherever the thread that prints
 * changes. It also tells our traces from those of an instrumented PyTorch. The lines of the
 * dispatch trace alone begin without one, as the reference's do. Guarded by stderr's own lock. */
static struct {
    pid_t thread;    /* who printed last; 0: nobody */
    bool introduced; /* there was a mark since watching began */
} mark;

/* Whoever should read stderr may not: then this is where the thread stands. */
static void begin_line(void)
{
    tni_wait_begin(TNI_WAIT_EVENT, STDERR_FILENO, "room in stderr", true);
    flockfile(stderr);
}

static void end_line(void)
{
    fflush(stderr);
    funlockfile(stderr);
    tni_wait_end();
}

void tni_mark_forget(void)
{
    flockfile(stderr);
    mark.thread = 0;
    mark.introduced = false;
    funlockfile(stderr);
}

/* stderr is locked. @p always: also when nobody else printed before. */
static void mark_thread(bool always)
{
    pid_t self = gettid();
    if (mark.thread == self ? !always || mark.introduced : !always && mark.thread == 0) {
        mark.thread = self;
        return;
    }
    fprintf(stderr, "[DEBUG TENON] version %s, process %d, thread %d\n", TN_VERSION_STRING,
            (int)getpid(), (int)self);
    mark.thread = self;
    mark.introduced = true;
}

void tni_debug_line(const char *label, const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    begin_line();
    mark_thread(true);
    fprintf(stderr, "[DEBUG %s] %s\n", label, text);
    end_line();
}

static const char *const trace_labels[] = {
    [TN_EVENT_CALL] = "[call]",
    [TN_EVENT_REDISPATCH] = "[redispatch]",
    [TN_EVENT_CALL_BOXED] = "[callBoxed]",
    [TN_EVENT_REDISPATCH_BOXED] = "[redispatchBoxed]",
};

void tni_trace_line(const tn_op *op, tn_event_kind kind, unsigned slot, int depth)
{
    begin_line();
    /* Stage lines will name the thread: not only behind this line. */
    mark_thread((tni_watch_bits() & TNI_WATCH_DEBUG) != 0);
    fprintf(stderr, "%*s%s op=[%s], key=[%s]\n", depth, "", trace_labels[kind], op->name,
            tn_key_name(tni_slot_key(slot)));
    end_line();
}

/* ---- a dispatch ---- */

static const char *const stage_labels[] = {
    [TN_EVENT_CALL] = "Dispatcher::call",
    [TN_EVENT_REDISPATCH] = "Dispatcher::redispatch",
    [TN_EVENT_CALL_BOXED] = "Dispatcher::callBoxed",
    [TN_EVENT_REDISPATCH_BOXED] = "Dispatcher::redispatchBoxed",
};
static const char lookup_label[] = "OperatorEntry::lookup";

static const char *invocation(const tn_call *c)
{
    bool boxed = c->kind == TN_EVENT_CALL_BOXED || c->kind == TN_EVENT_REDISPATCH_BOXED;
    return boxed ? "kernel.callBoxed()" : "kernel.call<>()";
}

/* The documents' fast path is the one without callbacks. */
static const char *path_name(const tn_call *c)
{
    return c->flags & TNI_FRAME_OBSERVED ? "slow path" : "fast path";
}

/* What a dispatch knows before it has a kernel. */
typedef struct hop {
    tn_call *call; /* NULL: it was not admitted, and has no frame */
    tn_op *op;
    tn_event_kind kind;
    tn_keyset keys, mask;
    unsigned slot;
    uint32_t depth;
} hop;

/* Note [Stages in the record]
 * The record and the trace must not contradict each other: a program that is held at a line, be it
 * because nobody reads stderr, is in the stage that the line names. So here, where time does not
 * matter, a frame is in the record before the first line, and every stage is written before the
 * line that tells of it. */
static void in_stage(const hop *h, unsigned stage)
{
    if (h->call)
        tni_stage(h->call, stage);
}

static void enter_frame(tni_state *s, hop *h, bool is_call, const tn_value *args, int nargs)
{
    tn_call *c = &s->frames[h->depth];
    c->keys = h->keys;
    c->slot = (uint16_t)h->slot;
    c->kind = (uint8_t)h->kind;
    c->flags = 0;
    c->stamp = 0;
    c->tensors = 0;
    if (is_call && (tni_watch_bits() & TNI_WATCH_RECORD))
        tni_describe_values(c, args, nargs);
    h->call = tni_frame_enter(s, h->depth, h->op);
}

static void tell_before_lookup(const hop *h)
{
    char set[1024];
    const char *label = stage_labels[h->kind];
    tn_keyset_format(h->keys, set, sizeof set);
    if (tni_watch_bits() & TNI_WATCH_TRACE) {
        tni_trace_line(h->op, h->kind, h->slot, (int)h->depth + 1);
        tni_debug_line("DISPATCHER", "op=[%s], full key set=%s", h->op->name, set);
    }
    bool redispatch = h->kind == TN_EVENT_REDISPATCH || h->kind == TN_EVENT_REDISPATCH_BOXED;
    tni_debug_line(label, "op=%s", h->op->name);
    tni_debug_line(label, "dispatchKeySet=%s", set);
    in_stage(h, TNI_STAGE_LOOKUP);
    tni_debug_line(label, redispatch ? "About to call entry.lookup()" : "About to call lookup()");
    tni_debug_line(lookup_label, "op=%s, keyset=%s", h->op->name, set);
    tni_debug_line(lookup_label, "highest priority key=%s", tn_key_name(tni_slot_key(h->slot)));
}

static void tell_after_lookup(tn_call *c)
{
    bool is_valid = c->kernel->boxed != NULL;
    tni_stage(c, is_valid ? TNI_STAGE_INVOKE : TNI_STAGE_MISSING);
    tni_debug_line(lookup_label, "kernel.isValid=%d, isValidUnboxed=%d", is_valid,
                   c->kernel->typed != NULL);
    if (!is_valid) {
        tni_debug_line(lookup_label, "No kernel, about to report it");
        return;
    }
    tni_debug_line(lookup_label, "Returning kernel, about to call it");
    tni_debug_line(stage_labels[c->kind], "lookup() returned");
}

/* The frame has its kernel; may it be called? */
static tn_status check_frame(tn_call *c, const tn_call *caller)
{
    tn_status st = TN_OK;
    if (caller && c->slot >= caller->slot) {
        c->stamp = tni_coarse_ns(); /* so that a reader can tell it from what was here before */
        st = tni_redispatch_refuse(caller, c->op, c->keys);
    } else if (tni_watch_bits() & TNI_WATCH_INTERRUPT) {
        st = tni_interrupted();
    }
    return st == TN_OK ? TN_OK : tni_call_end(c, st);
}

/* The steps of tni_begin, and a line for each. NULL and *status like that. */
static tn_call *begin(tni_state *s, hop *h, const tn_call *caller, tn_keyset ks,
                      const tn_value *args, int nargs, tn_status *status)
{
    h->depth = s->depth;
    *status = h->depth >= s->limit ? tni_call_admit(h->op) : TN_OK;
    bool opened = tni_epoch_open(s);
    const tni_table *table = tni_op_table(h->op);
    h->keys = caller ? ks : tni_effective_keys(s, ks);
    h->mask = caller ? TNI_KS_FULL : tni_table_mask(table, h->keys);
    h->keys &= h->mask;
    h->slot = (unsigned)tni_keyset_slot(h->keys);
    if (*status == TN_OK)
        enter_frame(s, h, !caller, args, nargs);
    tell_before_lookup(h);
    if (h->call) {
        tni_frame_push(s, h->call, h->depth, h->keys, table, h->kind,
                       opened ? TNI_FRAME_OPENED_EPOCH : 0);
        tni_stage(h->call, TNI_STAGE_CHECK);
    }
    tni_debug_line(lookup_label, "dispatch table index=%u", h->slot);
    if (h->call)
        *status = check_frame(h->call, caller);
    else if (opened)
        tni_epoch_close(s);
    return *status == TN_OK ? h->call : NULL;
}

tn_call *tni_begin_in_stages(tn_call *caller, tn_op *op, tn_keyset ks, tn_event_kind kind,
                             const tn_value *args, int nargs, tn_status *status)
{
    *status = tni_ready();
    if (*status != TN_OK)
        return NULL;
    hop h = {.op = op, .kind = kind};
    tn_call *c = begin(&tni_tls, &h, caller, ks, args, nargs, status);
    if (!c) {
        tni_debug_line(stage_labels[kind], "Refused: %s", tn_status_name(*status));
        return NULL;
    }
    tell_after_lookup(c);
    tni_announce(c, h.mask, args, nargs, true);
    c->flags |= TNI_FRAME_WATCHED | TNI_FRAME_STAGES;
    if (c->kernel->boxed)
        tni_debug_line(stage_labels[kind], "About to call %s [%s]", invocation(c), path_name(c));
    if (c->kernel->typed && kind < TN_EVENT_CALL_BOXED)
        tni_stage(c, TNI_STAGE_INSIDE);
    return c;
}

void tni_tell_return(const tn_call *c)
{
    if (c->kernel->boxed)
        tni_debug_line(stage_labels[c->kind], "%s RETURNED [%s]", invocation(c), path_name(c));
}

/* ---- a registration ---- */

void tni_tell_slot(const tn_op *op, unsigned slot)
{
    tni_debug_line("OperatorEntry::computeDispatchTableEntryWithDebug", "op=%s, dispatch_key=%s",
                   op->name, tn_key_name(tni_slot_key(slot)));
}

/* The numbers are those of the report. */
static const char *path_taken(const tni_kernel *k, tni_provenance why)
{
    switch (why) {
    case TNI_FROM_KERNEL:
        return "Path 1: Direct registration";
    case TNI_FROM_DEFAULT_BACKEND:
        return k->record->key == TN_KEY_COMPOSITE_EXPLICIT
                   ? "Path 2.2: CompositeExplicitAutograd"
                   : "Path 2.1: CompositeExplicitAutogradNonFunctional";
    case TNI_FROM_NESTED:
        return "Path 2.3: CompositeImplicitAutogradNestedTensor";
    case TNI_FROM_AMBIGUOUS:
        return "Path 2.3: CompositeImplicitAutograd, ambiguous with a backend's kernel";
    case TNI_FROM_MATH:
        return "Path 2.3: CompositeImplicitAutograd";
    case TNI_FROM_AUTOGRAD:
        return "Path 2.4: Autograd";
    case TNI_FROM_BATCHED:
        return "Path 2.5: FuncTorchBatchedDecomposition";
    case TNI_FROM_FALLBACK:
        return "Path 3: Backend fallback";
    default:
        return "Path 4: Missing kernel";
    }
}

void tni_tell_path(const tni_kernel *k, tni_provenance why)
{
    const tni_record *r = k->record;
    const char *path = path_taken(k, why);
    if (r && r->file && r->file[0])
        tni_debug_line("computeDispatchTableEntry", "%s: %s, registered at %s:%d", path,
                       r->name[0] ? r->name : "unnamed", r->file, r->line);
    else
        tni_debug_line("computeDispatchTableEntry", "%s", path);
}
