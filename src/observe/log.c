/* SPDX-License-Identifier: MIT */
/* observe/log.c: logs of threads: see Note [Who writes a log]. */
#define _GNU_SOURCE /* gettid, pthread_getname_np */
#include "observe/log.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#if defined(__x86_64__)
#    include <x86intrin.h>
#endif

#include "base/alloc.h"
#include "base/mark.h"
#include "base/once.h"

typedef struct tni_prof_arena {
    struct tni_prof_arena *next;
    size_t used;
    _Alignas(16) unsigned char bytes[16384 - 32];
} tni_prof_arena;

enum { MOST_EVENTS = sizeof((tni_prof_chunk *)0)->events / sizeof(tni_prof_event) };

_Atomic bool tni_profiling;

static struct {
    pthread_mutex_t lock; /* guards the list and starting and stopping; never held while foreign
                             code runs */
    tni_prof_log *logs;
    _Atomic uint64_t recording; /* number of the one that runs; 0: none */
    uint64_t last_recording;
    tn_profiler_options options; /* of the one that runs; guarded */
    _Atomic uint64_t lost;       /* events of threads that got no log */
    _Atomic int64_t room;        /* bytes left */
    int32_t starter;             /* thread */
    uint16_t last_number;
    uint64_t first_tick, first_ns;
    pthread_key_t key;
    bool counts_cycles; /* ticks are the processor's, which the system found fit for a clock */
} prof = {.lock = PTHREAD_MUTEX_INITIALIZER};

static tni_once prepared = TNI_ONCE_INIT;
static __attribute__((tls_model("initial-exec"))) _Thread_local tni_prof_log *mine;

/* ---- time ---- */

static uint64_t monotonic_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* Reading the cycle counter costs a third of asking the system. It is a clock only where it runs
 * evenly and alike on all processors: where the kernel uses it as its own. */
static bool cycles_are_a_clock(void)
{
#if defined(__x86_64__)
    char name[16] = "";
    FILE *file = fopen("/sys/devices/system/clocksource/clocksource0/current_clocksource", "re");
    if (!file)
        return false;
    bool tsc = fgets(name, sizeof name, file) && strcmp(name, "tsc\n") == 0;
    fclose(file);
    return tsc;
#else
    return false;
#endif
}

uint64_t tni_prof_ticks(void)
{
#if defined(__x86_64__)
    if (TNI_LIKELY(prof.counts_cycles))
        return __rdtsc();
#endif
    return monotonic_ns();
}

/* ---- memory of a log ---- */

static void *take_room(size_t nbytes)
{
    int64_t n = (int64_t)nbytes;
    if (atomic_fetch_sub_explicit(&prof.room, n, memory_order_relaxed) < n) {
        atomic_fetch_add_explicit(&prof.room, n, memory_order_relaxed);
        return NULL;
    }
    void *room = tni_alloc(nbytes);
    if (!room)
        atomic_fetch_add_explicit(&prof.room, n, memory_order_relaxed);
    return room;
}

/* By its thread, or when that is gone. */
static void log_empty(tni_prof_log *log)
{
    for (tni_prof_chunk *c = atomic_load(&log->first); c;) {
        tni_prof_chunk *next = atomic_load(&c->next);
        tni_free(c);
        c = next;
    }
    while (log->arena) {
        tni_prof_arena *next = log->arena->next;
        tni_free(log->arena);
        log->arena = next;
    }
    atomic_store(&log->first, NULL);
    log->last = NULL;
    log->count = log->depth = 0;
    memset(log->known, 0, sizeof log->known);
    memset(log->kernels, 0, sizeof log->kernels);
    atomic_store(&log->dropped, 0);
}

static void log_unlink(tni_prof_log *log)
{
    for (tni_prof_log **link = &prof.logs; *link; link = &(*link)->next) {
        if (*link == log) {
            *link = log->next;
            return;
        }
    }
}

static void thread_ends(void *arg)
{
    tni_prof_log *log = arg;
    mine = NULL;
    tni_mutex_lock_known(&prof.lock, "the profiler's threads");
    bool needed = log->recording && log->recording == atomic_load(&prof.recording);
    log->gone = true;
    if (!needed)
        log_unlink(log);
    tni_mutex_unlock(&prof.lock);
    if (!needed) {
        log_empty(log);
        tni_free(log);
    }
}

static tni_prof_chunk *more_chunk(tni_prof_log *log)
{
    tni_prof_chunk *chunk = take_room(sizeof *chunk);
    if (!chunk)
        return NULL;
    atomic_init(&chunk->next, NULL);
    atomic_init(&chunk->n, 0);
    if (log->last)
        atomic_store_explicit(&log->last->next, chunk, memory_order_release);
    else
        atomic_store_explicit(&log->first, chunk, memory_order_release);
    log->last = chunk;
    return chunk;
}

static void *arena_take(tni_prof_log *log, size_t nbytes)
{
    tni_prof_arena *a = log->arena;
    nbytes = (nbytes + 7u) & ~(size_t)7u;
    if (!a || a->used + nbytes > sizeof a->bytes) {
        size_t whole = nbytes > sizeof a->bytes ? sizeof *a - sizeof a->bytes + nbytes : sizeof *a;
        tni_prof_arena *fresh = take_room(whole);
        if (!fresh)
            return NULL;
        fresh->next = a;
        fresh->used = nbytes > sizeof a->bytes ? sizeof a->bytes : nbytes;
        log->arena = fresh;
        return fresh->bytes;
    }
    void *at = a->bytes + a->used;
    a->used += nbytes;
    return at;
}

static void forget_ranges(const tni_prof_log *log);

/* This thread's log for the recording that runs; NULL: none runs, or no memory. */
static TNI_COLD tni_prof_log *log_renew(void)
{
    tni_prof_log *log = mine;
    if (!log) {
        log = tni_calloc(sizeof *log);
        if (log && pthread_setspecific(prof.key, log) != 0) {
            tni_free(log);
            log = NULL;
        }
        if (!log) {
            atomic_fetch_add_explicit(&prof.lost, 1, memory_order_relaxed);
            return NULL;
        }
        log->thread = (int32_t)gettid();
        if (pthread_getname_np(pthread_self(), log->name, sizeof log->name) != 0)
            log->name[0] = '\0';
    }
    bool fresh = mine != log;
    tni_mutex_lock_known(&prof.lock, "the profiler's threads");
    uint64_t recording = atomic_load(&prof.recording);
    if (fresh) {
        log->number = ++prof.last_number ? prof.last_number : ++prof.last_number;
        log->next = prof.logs;
        prof.logs = log;
        mine = log;
    }
    bool other = recording && log->recording != recording;
    if (other) {
        log->recording = 0; /* nobody reads it while it is emptied */
        log->muted = prof.options.this_thread_only && prof.starter != log->thread;
        log->memory = prof.options.memory;
        log->stack = prof.options.stack;
        log->shapes = prof.options.shapes;
        log->integers = prof.options.integers;
    }
    tni_mutex_unlock(&prof.lock);
    if (!recording)
        return NULL;
    if (other) {
        forget_ranges(log);
        log_empty(log);
        tni_mutex_lock_known(&prof.lock, "the profiler's threads");
        log->recording = recording;
        tni_mutex_unlock(&prof.lock);
    }
    return log;
}

static inline tni_prof_log *log_of_thread(void)
{
    tni_prof_log *log = mine;
    uint64_t recording = atomic_load_explicit(&prof.recording, memory_order_acquire);
    if (TNI_UNLIKELY(!recording))
        return NULL;
    if (TNI_UNLIKELY(!log || log->recording != recording))
        log = log_renew();
    return log && !log->muted ? log : NULL;
}

/* ---- events ---- */

tni_prof_event *tni_prof_begin(tn_profile_kind kind, const char *name, uint32_t frame,
                               tni_prof_wants *wants)
{
    tni_prof_log *log = log_of_thread();
    if (!log || (kind == TN_PROFILE_REDISPATCH && !log->stack))
        return NULL;
    if (wants)
        *wants = (tni_prof_wants){log->stack, log->shapes, log->integers};
    tni_prof_chunk *chunk = log->last;
    uint32_t n = chunk ? atomic_load_explicit(&chunk->n, memory_order_relaxed) : MOST_EVENTS;
    if (TNI_UNLIKELY(n == MOST_EVENTS)) {
        chunk = more_chunk(log);
        n = 0;
    }
    if (TNI_UNLIKELY(!chunk || log->depth == TNI_PROF_MOST_OPEN)) {
        atomic_fetch_add_explicit(&log->dropped, 1, memory_order_relaxed);
        return NULL;
    }
    tni_prof_event *e = &chunk->events[n];
    uint32_t depth = log->depth;
    e->name = name;
    e->key = NULL;
    atomic_store_explicit(&e->kernel, NULL, memory_order_relaxed);
    e->more.shapes = NULL;
    if (log->memory && (e->more.memory = arena_take(log, sizeof *e->more.memory)))
        e->more.memory->shapes = NULL;
    atomic_store_explicit(&e->end, 0, memory_order_relaxed);
    e->sequence = TNI_NO_SEQUENCE;
    e->parent = depth ? log->open[depth - 1].number : UINT32_MAX;
    e->maker = 0;
    e->kind = (uint8_t)kind;
    e->status = TN_OK;
    log->open[depth].event = e;
    log->open[depth].number = log->count;
    log->open[depth].frame = frame;
    log->open[depth].unrecorded = 0;
    return e;
}

void tni_prof_put_shapes(tni_prof_event *e, const int64_t *shapes, size_t n)
{
    tni_prof_log *log = mine;
    uint64_t hash = n;
    for (size_t i = 0; i < n; i++)
        hash = (hash ^ (uint64_t)shapes[i]) * UINT64_C(0x9e3779b97f4a7c15);
    unsigned at = (unsigned)(hash >> 58);
    _Static_assert(TNI_PROF_SHAPES == 64, "six bits of the hash");
    const int64_t *kept = log->known[at].numbers;
    if (!kept || log->known[at].n != n || memcmp(kept, shapes, n * sizeof *shapes) != 0) {
        int64_t *copy = arena_take(log, n * sizeof *shapes);
        if (!copy)
            return;
        kept = memcpy(copy, shapes, n * sizeof *shapes);
        log->known[at].numbers = kept;
        log->known[at].n = n;
    }
    if (!log->memory)
        e->more.shapes = kept;
    else if (e->more.memory)
        e->more.memory->shapes = kept;
}

void tni_prof_go(tni_prof_event *e)
{
    tni_prof_log *log = mine;
    log->depth++;
    log->count++;
    if (log->memory && e->more.memory) {
        e->more.memory->allocated = tni_tally_mine.allocated;
        e->more.memory->freed = tni_tally_mine.freed;
    }
    tni_prof_chunk *chunk = log->last;
    uint32_t n = atomic_load_explicit(&chunk->n, memory_order_relaxed);
    e->start = tni_prof_ticks();
    atomic_store_explicit(&chunk->n, n + 1, memory_order_release);
}

/* End the innermost event. */
static inline void finish(tni_prof_log *log, tn_status status, uint64_t now)
{
    tni_prof_event *e = log->open[--log->depth].event;
    if (log->memory && e->more.memory) {
        tni_prof_memory *m = e->more.memory;
        m->allocated = tni_tally_mine.allocated - m->allocated;
        m->freed = tni_tally_mine.freed - m->freed;
        m->live = atomic_load_explicit(&tni_tally_live, memory_order_relaxed);
    }
    e->status = (uint8_t)status;
    atomic_store_explicit(&e->end, now, memory_order_release);
}

/* End events until @p depth of them are open; the last of them with @p status. */
static void finish_to(tni_prof_log *log, uint32_t depth, tn_status status, uint64_t now)
{
    while (log->depth > depth)
        finish(log, log->depth == depth + 1 ? status : TN_OK, now);
}

void tni_prof_end(tni_prof_event *e, tn_status status)
{
    uint64_t now = tni_prof_ticks();
    tni_prof_log *log = mine;
    /* Another recording may have begun since, and the event is gone with its own. */
    for (uint32_t depth = log ? log->depth : 0; depth > 0; depth--) {
        if (log->open[depth - 1].event == e) {
            finish_to(log, depth - 1, status, now);
            return;
        }
    }
}

/* How many events are open up to that of a dispatch frame, which is the innermost but for ranges
 * that were left open; 0: it belongs to a recording that is over. */
static uint32_t find_frame(const tni_prof_log *log, uint32_t frame)
{
    uint32_t depth = log ? log->depth : 0;
    while (depth > 0 && log->open[depth - 1].frame == TNI_NO_FRAME)
        depth--;
    return depth > 0 && log->open[depth - 1].frame == frame ? depth : 0;
}

void tni_prof_end_frame(uint32_t frame, tn_status status)
{
    uint64_t now = tni_prof_ticks();
    uint32_t depth = find_frame(mine, frame);
    if (depth > 0)
        finish_to(mine, depth - 1, status, now);
}

const char *tni_prof_text(const char *text)
{
    size_t n = strlen(text) + 1;
    char *copy = arena_take(mine, n);
    return copy ? memcpy(copy, text, n) : NULL;
}

const tni_prof_kernel *tni_prof_keep_kernel(const tni_prof_kernel *kernel)
{
    tni_prof_log *log = mine;
    const tni_prof_kernel **known =
        &log->kernels[((uintptr_t)kernel->name >> 4) % TNI_PROF_KERNELS];
    /* By what it says: another may lie at its address by now. */
    if (*known && strcmp((*known)->name, kernel->name) == 0 &&
        strcmp((*known)->file, kernel->file) == 0 && (*known)->line == kernel->line)
        return *known;
    tni_prof_kernel *copy = arena_take(log, sizeof *copy);
    if (!copy)
        return NULL;
    copy->name = tni_prof_text(kernel->name);
    copy->file = tni_prof_text(kernel->file);
    copy->line = kernel->line;
    if (!copy->name || !copy->file)
        return NULL;
    *known = copy;
    return copy;
}

void tni_prof_set_kernel(uint32_t frame, const tni_prof_kernel *kernel)
{
    uint32_t depth = find_frame(mine, frame);
    if (!depth || !mine->stack)
        return;
    const tni_prof_kernel *copy = tni_prof_keep_kernel(kernel);
    if (copy)
        atomic_store_explicit(&mine->open[depth - 1].event->kernel, copy, memory_order_release);
}

uint16_t tni_prof_made_node(uint64_t sequence)
{
    tni_prof_log *log = sequence == TNI_NO_SEQUENCE ? NULL : log_of_thread();
    if (!log || !log->depth)
        return 0;
    log->open[log->depth - 1].event->sequence = sequence;
    return log->number;
}

/* With a name that may go: a copy is taken, once the event has a log to keep it in. */
static tni_prof_event *begin_named(tn_profile_kind kind, const char *name)
{
    tni_prof_event *e = tni_prof_begin(kind, "", TNI_NO_FRAME, NULL);
    const char *copy = e ? tni_prof_text(name) : NULL;
    if (e && !copy) {
        atomic_fetch_add_explicit(&mine->dropped, 1, memory_order_relaxed);
        return NULL;
    }
    if (e)
        e->name = copy;
    return e;
}

tni_prof_event *tni_prof_begin_node(const char *name, uint64_t sequence, uint16_t maker)
{
    tni_prof_event *e = begin_named(TN_PROFILE_BACKWARD, name);
    if (!e)
        return NULL;
    e->sequence = sequence;
    e->maker = maker;
    tni_prof_go(e);
    return e;
}

/* ---- ranges ---- */

/* Note [Ranges that nobody recorded]
 * A range may begin before the recording, or not fit into it, and end after it: its end must then
 * not be taken for that of another. So those are counted: above the innermost event that is open,
 * or, when none is, for the thread. */
static __attribute__((tls_model("initial-exec"))) _Thread_local uint32_t unrecorded;

static uint32_t *unrecorded_here(tni_prof_log *log)
{
    return log && log->depth ? &log->open[log->depth - 1].unrecorded : &unrecorded;
}

/* The log is about to forget its open events. */
static void forget_ranges(const tni_prof_log *log)
{
    for (uint32_t i = 0; i < log->depth; i++)
        unrecorded += log->open[i].unrecorded + (log->open[i].event->kind == TN_PROFILE_RANGE);
}

tn_status tn_profiler_range_begin(const char *name)
{
    TN_CHECK(name, TN_INVALID, "tn_profiler_range_begin: name must not be NULL");
    tni_prof_event *e = tni_prof_on ? begin_named(TN_PROFILE_RANGE, name) : NULL;
    if (e)
        tni_prof_go(e);
    else
        ++*unrecorded_here(mine);
    return TN_OK;
}

tn_status tn_profiler_range_end(void)
{
    tni_prof_log *log = tni_prof_on ? log_of_thread() : NULL;
    log = log ? log : mine; /* of an earlier recording, maybe */
    const tni_prof_event *e = log && log->depth ? log->open[log->depth - 1].event : NULL;
    uint32_t *others = unrecorded_here(log);
    if (*others)
        --*others;
    else if (e && e->kind == TN_PROFILE_RANGE)
        finish(log, TN_OK, tni_prof_ticks());
    else if (tni_prof_on)
        TN_FAIL(TN_INVALID,
                "tn_profiler_range_end: the innermost event of this thread is %s, not a range",
                e ? e->name : "none at all");
    return TN_OK;
}

/* ---- the recording ---- */

static void before_fork(void)
{
    tni_mutex_lock_known(&prof.lock, "the profiler's threads");
}

static void after_fork(void)
{
    tni_mutex_unlock(&prof.lock);
}

/* The recording is the parent's. The logs of other threads may have been in any state: they are
 * left alone, for ever. */
static void after_fork_in_child(void)
{
    atomic_store(&prof.recording, 0);
    atomic_store(&tni_profiling, false);
    atomic_store(&tni_tallying, false);
    prof.logs = mine;
    if (mine) {
        mine->next = NULL;
        mine->thread = (int32_t)gettid();
    }
    tni_mutex_unlock(&prof.lock);
}

static tn_status prepare(void)
{
    static bool has_key;
    if (!has_key) {
        TN_CHECK(pthread_key_create(&prof.key, thread_ends) == 0, TN_NOMEM,
                 "cannot make a thread-specific key");
        has_key = true;
    }
    TN_CHECK(pthread_atfork(before_fork, after_fork, after_fork_in_child) == 0, TN_NOMEM,
             "cannot register what must happen at fork()");
    prof.counts_cycles = cycles_are_a_clock();
    return TN_OK;
}

tn_status tni_prof_start(const tn_profiler_options *options)
{
    TN_TRY(tni_once_run(&prepared, prepare, "preparing the profiler"));
    tn_profiler_options o = TN_PROFILER_OPTIONS_INIT;
    if (options) {
        TN_CHECK(options->size == sizeof o, TN_INVALID,
                 "tn_profiler_start: options->size must be %zu, not %u; start from "
                 "TN_PROFILER_OPTIONS_INIT",
                 sizeof o, options->size);
        o = *options;
    }
    tni_mutex_lock_known(&prof.lock, "the profiler's threads");
    if (atomic_load(&prof.recording)) {
        tni_mutex_unlock(&prof.lock);
        TN_FAIL(TN_INVALID, "tn_profiler_start: a recording runs already");
    }
    prof.options = o;
    atomic_store(&prof.lost, 0);
    atomic_store(&prof.room,
                 o.max_bytes ? (int64_t)(o.max_bytes > INT64_MAX / 2 ? INT64_MAX / 2 : o.max_bytes)
                             : INT64_C(256) << 20);
    prof.starter = (int32_t)gettid();
    atomic_store(&tni_tally_live, 0);
    atomic_store(&tni_tallying, o.memory);
    prof.first_ns = monotonic_ns();
    prof.first_tick = tni_prof_ticks();
    atomic_store(&prof.recording, ++prof.last_recording);
    atomic_store(&tni_profiling, true);
    tni_mutex_unlock(&prof.lock);
    return TN_OK;
}

bool tn_profiler_running(void)
{
    return atomic_load(&prof.recording) != 0;
}

tn_status tni_prof_visit(tn_status (*fn)(void *ctx, const tni_prof_log *log), void *ctx,
                         tni_prof_clock *clock)
{
    tni_mutex_lock_known(&prof.lock, "the profiler's threads");
    uint64_t recording = atomic_load(&prof.recording);
    *clock = (tni_prof_clock){prof.first_tick, prof.first_ns, tni_prof_ticks(), monotonic_ns(),
                              atomic_load_explicit(&prof.lost, memory_order_relaxed)};
    tn_status status = TN_OK;
    for (const tni_prof_log *log = prof.logs; recording && log && status == TN_OK;
         log = log->next) {
        if (log->recording == recording && !log->muted)
            status = fn(ctx, log);
    }
    tni_mutex_unlock(&prof.lock);
    TN_CHECK(recording, TN_INVALID, "no recording runs: call tn_profiler_start first");
    return status;
}

tn_status tni_prof_drop(void)
{
    tni_prof_log *gone = NULL;
    tni_mutex_lock_known(&prof.lock, "the profiler's threads");
    bool ran = atomic_exchange(&prof.recording, 0) != 0;
    atomic_store(&tni_profiling, false);
    atomic_store(&tni_tallying, false);
    for (tni_prof_log **link = &prof.logs; *link;) {
        tni_prof_log *log = *link;
        if (!log->gone) {
            link = &log->next;
            continue;
        }
        *link = log->next;
        log->next = gone;
        gone = log;
    }
    if (mine && !mine->depth)
        mine->recording = 0;
    tni_mutex_unlock(&prof.lock);
    if (mine && !mine->depth)
        log_empty(mine);
    while (gone) {
        tni_prof_log *next = gone->next;
        log_empty(gone);
        tni_free(gone);
        gone = next;
    }
    TN_CHECK(ran, TN_INVALID, "no recording runs: call tn_profiler_start first");
    return TN_OK;
}
