/* SPDX-License-Identifier: MIT */
/* observe/profile.c: a profile is taken from the logs of all threads: times in nanoseconds,
 * parents, times without what is inside, and which backward turn belongs to which call. */
#include "observe/profile.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "observe/log.h"

/* ---- texts ---- */

static tn_status no_memory(void)
{
    TN_FAIL(TN_NOMEM, "cannot allocate a profile");
}

static tn_status text_number(tni_prof_texts *t, const char *text, uint32_t *out)
{
    void *found = tni_map_get(&t->map, text);
    if (found) {
        *out = (uint32_t)((uintptr_t)found - 1);
        return TN_OK;
    }
    if (t->n == t->capacity) {
        uint32_t capacity = t->capacity ? 2 * t->capacity : 64;
        char **items =
            tni_realloc(t->items, t->capacity * sizeof *items, (size_t)capacity * sizeof *items);
        if (!items)
            return no_memory();
        t->items = items;
        t->capacity = capacity;
    }
    char *copy = tni_strdup(text);
    if (!copy)
        return no_memory();
    tn_status status = tni_map_put(&t->map, copy, (void *)(uintptr_t)(t->n + 1));
    if (status != TN_OK) {
        tni_free(copy);
        return status;
    }
    t->items[t->n] = copy;
    *out = t->n++;
    return TN_OK;
}

void tn_profile_free(tn_profile *p)
{
    if (!p)
        return;
    for (uint32_t i = 0; i < p->texts.n; i++)
        tni_free(p->texts.items[i]);
    tni_free(p->texts.items);
    tni_map_clear(&p->texts.map);
    tni_free(p->items);
    tni_free(p->threads);
    tni_free(p->averages);
    tni_free(p);
}

/* ---- from a log ---- */

/* Names, kernels and shapes are the same pointers again and again. */
typedef struct known_text {
    const void *text;
    uint32_t number;
} known_text;
enum { KNOWN = 1024 };

typedef struct taking {
    tn_profile *profile;
    known_text names[KNOWN], kernels[KNOWN], shapes[KNOWN];
    tni_str line; /* for texts that are put together */
    bool memory;
} taking;

static tn_status number_of(taking *t, const char *text, uint32_t *out)
{
    if (!text)
        text = "";
    known_text *k = &t->names[((uintptr_t)text >> 3) % KNOWN];
    if (k->text != text) {
        k->text = NULL;
        TN_TRY(text_number(&t->profile->texts, text, &k->number));
        k->text = text;
    }
    *out = k->number;
    return TN_OK;
}

static tn_status made_text(taking *t, uint32_t *out)
{
    if (t->line.failed)
        return no_memory();
    const char *text = t->line.n ? tni_str_get(&t->line) : "";
    tn_status status = text_number(&t->profile->texts, text, out);
    t->line.n = 0;
    return status;
}

static tn_status take_shapes(taking *t, const int64_t *at, uint32_t *out)
{
    known_text *k = &t->shapes[((uintptr_t)at >> 3) % KNOWN];
    if (k->text == (const void *)at) {
        *out = k->number;
        return TN_OK;
    }
    k->text = NULL;
    const int64_t *whole = at;
    for (bool first = true; *at; first = false) {
        const char *dtype = (const char *)(intptr_t)*at++;
        int64_t ndim = *at++;
        tni_str_addf(&t->line, "%s%s[", first ? "" : ", ", dtype);
        for (int64_t d = 0; d < ndim; d++)
            tni_str_addf(&t->line, "%s%" PRId64, d ? ", " : "", *at++);
        tni_str_add(&t->line, "]");
    }
    TN_TRY(made_text(t, &k->number));
    k->text = whole;
    *out = k->number;
    return TN_OK;
}

static tn_status take_kernel(taking *t, const tni_prof_kernel *kernel, uint32_t *out)
{
    known_text *k = &t->kernels[((uintptr_t)kernel >> 4) % KNOWN];
    if (k->text != kernel) {
        tni_str_add(&t->line, kernel->name);
        if (kernel->file[0])
            tni_str_addf(&t->line, " (%s:%d)", kernel->file, kernel->line);
        k->text = NULL;
        TN_TRY(made_text(t, &k->number));
        k->text = kernel;
    }
    *out = k->number;
    return TN_OK;
}

static tn_status grow_items(tn_profile *p, size_t n)
{
    if (p->n + n <= p->capacity)
        return TN_OK;
    size_t capacity = p->n + n + p->capacity / 2;
    tni_prof_item *items =
        tni_realloc(p->items, p->capacity * sizeof *items, capacity * sizeof *items);
    if (!items)
        return no_memory();
    p->items = items;
    p->capacity = capacity;
    return TN_OK;
}

static tn_status take_event(taking *t, const tni_prof_event *e, const tni_prof_thread *thread,
                            uint32_t index)
{
    tn_profile *p = t->profile;
    uint64_t end =
        atomic_load_explicit(&((tni_prof_event *)(uintptr_t)e)->end, memory_order_acquire);
    tni_prof_item *item = &p->items[p->n];
    bool inside = e->parent != UINT32_MAX;
    const tni_prof_item *parent = inside ? &p->items[thread->first + e->parent] : NULL;
    *item = (tni_prof_item){.start = e->start,
                            .duration = end,
                            .parent = inside ? (int64_t)(thread->first + e->parent) : -1,
                            .forward = -1,
                            .sequence = -1,
                            .thread = index,
                            .depth = inside ? (uint16_t)(parent->depth + 1) : 0,
                            .maker = e->maker,
                            .kind = e->kind,
                            .unfinished = end == 0};
    const tni_prof_memory *memory = t->memory ? e->more.memory : NULL;
    if (end != 0) {
        item->sequence = e->sequence == TNI_NO_SEQUENCE ? -1 : (int64_t)e->sequence;
        item->status = e->status;
    }
    if (end != 0 && memory) {
        item->allocated = memory->allocated;
        item->freed = memory->freed;
        item->live = memory->live;
        p->has_memory = p->has_memory || item->allocated || item->freed;
    }
    TN_TRY(number_of(t, e->name, &item->name));
    TN_TRY(number_of(t, e->key, &item->key));
    const tni_prof_kernel *kernel = atomic_load_explicit(&e->kernel, memory_order_acquire);
    if (kernel)
        TN_TRY(take_kernel(t, kernel, &item->kernel));
    const int64_t *shapes = !t->memory ? e->more.shapes : memory ? memory->shapes : NULL;
    if (shapes)
        TN_TRY(take_shapes(t, shapes, &item->shapes));
    p->n++;
    return TN_OK;
}

static tn_status take_log(void *ctx, const tni_prof_log *log)
{
    taking *t = ctx;
    tn_profile *p = t->profile;
    if (p->n_threads == p->thread_capacity) {
        size_t capacity = 2 * p->thread_capacity + 4;
        tni_prof_thread *threads = tni_realloc(p->threads, p->thread_capacity * sizeof *threads,
                                               capacity * sizeof *threads);
        if (!threads)
            return no_memory();
        p->threads = threads;
        p->thread_capacity = capacity;
    }
    /* A text of the log may lie where one of an earlier log lay. */
    memset(t->names, 0, sizeof t->names);
    memset(t->kernels, 0, sizeof t->kernels);
    memset(t->shapes, 0, sizeof t->shapes);
    t->memory = log->memory;
    tni_prof_log *l = (tni_prof_log *)(uintptr_t)log;
    tni_prof_thread *thread = &p->threads[p->n_threads];
    *thread = (tni_prof_thread){.id = log->thread,
                                .number = log->number,
                                .first = p->n,
                                .dropped = atomic_load_explicit(&l->dropped, memory_order_relaxed)};
    TN_TRY(text_number(&p->texts, log->name, &thread->name));
    for (tni_prof_chunk *c = atomic_load_explicit(&l->first, memory_order_acquire); c;
         c = atomic_load_explicit(&c->next, memory_order_acquire)) {
        uint32_t n = atomic_load_explicit(&c->n, memory_order_acquire);
        TN_TRY(grow_items(p, n));
        for (uint32_t i = 0; i < n; i++)
            TN_TRY(take_event(t, &c->events[i], thread, (uint32_t)p->n_threads));
        /* The thread goes on meanwhile: what follows a gap would lie at the wrong place. */
        if (n < sizeof c->events / sizeof c->events[0])
            break;
    }
    thread->n = p->n - thread->first;
    p->dropped += thread->dropped;
    p->n_threads++;
    return TN_OK;
}

/* ---- what follows from all of it ---- */

/* Ticks to nanoseconds since the start. What is inside stays inside, whatever the clocks of two
 * processors say. */
static void convert_times(tn_profile *p, const tni_prof_clock *clock)
{
    uint64_t ticks = clock->last_tick - clock->first_tick, ns = clock->last_ns - clock->first_ns;
    double scale = ticks ? (double)ns / (double)ticks : 1.0;
    p->duration = ns;
    for (size_t i = 0; i < p->n; i++) {
        tni_prof_item *item = &p->items[i];
        uint64_t low = 0, high = UINT64_MAX;
        if (item->parent >= 0) {
            const tni_prof_item *parent = &p->items[item->parent];
            low = parent->start;
            high = parent->start + parent->duration;
        }
        int64_t from = (int64_t)(item->start - clock->first_tick);
        int64_t to = (int64_t)(item->duration - clock->first_tick);
        uint64_t start = from > 0 ? (uint64_t)((double)from * scale) : 0;
        uint64_t end = to > 0 ? (uint64_t)((double)to * scale) : 0;
        end = item->unfinished ? ns : end; /* so far: without what rounding would take */
        start = start < low ? low : start > high ? high : start;
        end = end < start ? start : end > high ? high : end;
        item->start = start;
        item->duration = item->self = end - start;
        if (end > p->duration)
            p->duration = end;
    }
    for (size_t i = 0; i < p->n; i++) {
        const tni_prof_item *item = &p->items[i];
        if (item->parent < 0)
            continue;
        tni_prof_item *parent = &p->items[item->parent];
        parent->self -= item->duration < parent->self ? item->duration : parent->self;
    }
}

typedef struct link_slot {
    uint64_t key; /* log and sequence number, plus 1; 0: free */
    size_t item;
} link_slot;

static uint64_t link_key(uint16_t log, int64_t sequence)
{
    return ((uint64_t)log << 47 ^ (uint64_t)sequence) + 1;
}

static link_slot *link_find(link_slot *slots, size_t mask, uint64_t key)
{
    size_t at = (size_t)(key * UINT64_C(0x9e3779b97f4a7c15) >> 20) & mask;
    while (slots[at].key && slots[at].key != key)
        at = (at + 1) & mask;
    return &slots[at];
}

static tn_status link_backward(tn_profile *p)
{
    size_t makers = 0, capacity = 16;
    for (size_t i = 0; i < p->n; i++)
        makers += p->items[i].sequence >= 0 && p->items[i].kind != TN_PROFILE_BACKWARD;
    if (makers == 0)
        return TN_OK;
    while (capacity < 2 * makers)
        capacity *= 2;
    link_slot *slots = tni_calloc(capacity * sizeof *slots);
    if (!slots)
        return no_memory();
    for (size_t i = 0; i < p->n; i++) {
        const tni_prof_item *item = &p->items[i];
        if (item->sequence < 0 || item->kind == TN_PROFILE_BACKWARD)
            continue;
        uint64_t key = link_key(p->threads[item->thread].number, item->sequence);
        *link_find(slots, capacity - 1, key) = (link_slot){key, i};
    }
    for (size_t i = 0; i < p->n; i++) {
        tni_prof_item *item = &p->items[i];
        if (item->sequence < 0 || item->kind != TN_PROFILE_BACKWARD || !item->maker)
            continue;
        const link_slot *slot =
            link_find(slots, capacity - 1, link_key(item->maker, item->sequence));
        if (slot->key)
            item->forward = (int64_t)slot->item;
    }
    tni_free(slots);
    return TN_OK;
}

static tn_status take(taking *t, tn_profile *p)
{
    uint32_t empty;
    tni_prof_clock clock;
    t->profile = p;
    TN_TRY(text_number(&p->texts, "", &empty));
    TN_TRY(tni_prof_visit(take_log, t, &clock));
    p->dropped += clock.lost;
    convert_times(p, &clock);
    TN_TRY(link_backward(p));
    return tni_prof_average_all(p);
}

tn_status tn_profiler_snapshot(tn_profile **out)
{
    TN_CHECK(out, TN_INVALID, "tn_profiler_snapshot: out must not be NULL");
    tn_profile *p = tni_calloc(sizeof *p);
    taking *t = tni_calloc(sizeof *t);
    tn_status status = p && t ? take(t, p) : no_memory();
    if (t)
        tni_str_clear(&t->line);
    tni_free(t);
    if (status != TN_OK) {
        tn_profile_free(p);
        return status;
    }
    *out = p;
    return TN_OK;
}

/* ---- asking ---- */

#define CHECK_OUT(what)                                                                    \
    TN_CHECK(profile &&out, TN_INVALID, what ": '%s' must not be NULL",                    \
             profile ? "out" : "profile");                                                 \
    TN_CHECK(out->size == sizeof *out, TN_INVALID, what ": out->size must be %zu, not %u", \
             sizeof *out, out->size)

size_t tn_profile_num_events(const tn_profile *profile)
{
    return profile ? profile->n : 0;
}

tn_status tn_profile_get_event(const tn_profile *profile, size_t i, tn_profile_event *out)
{
    CHECK_OUT("tn_profile_get_event");
    TN_CHECK(i < profile->n, TN_INDEX, "tn_profile_get_event: there are %zu events, none is %zu",
             profile->n, i);
    const tni_prof_item *item = &profile->items[i];
    *out = (tn_profile_event){.size = sizeof *out,
                              .kind = (tn_profile_kind)item->kind,
                              .name = tni_prof_get_text(profile, item->name),
                              .key = tni_prof_get_text(profile, item->key),
                              .kernel = tni_prof_get_text(profile, item->kernel),
                              .shapes = tni_prof_get_text(profile, item->shapes),
                              .start_ns = item->start,
                              .duration_ns = item->duration,
                              .self_ns = item->self,
                              .thread = item->thread,
                              .depth = item->depth,
                              .parent = item->parent,
                              .sequence = item->sequence,
                              .forward = item->forward,
                              .allocated = item->allocated,
                              .freed = item->freed,
                              .status = (tn_status)item->status,
                              .unfinished = item->unfinished};
    return TN_OK;
}

size_t tn_profile_num_threads(const tn_profile *profile)
{
    return profile ? profile->n_threads : 0;
}

tn_status tn_profile_get_thread(const tn_profile *profile, size_t i, tn_profile_thread *out)
{
    CHECK_OUT("tn_profile_get_thread");
    TN_CHECK(i < profile->n_threads, TN_INDEX,
             "tn_profile_get_thread: there are %zu threads, none is %zu", profile->n_threads, i);
    const tni_prof_thread *t = &profile->threads[i];
    *out = (tn_profile_thread){.size = sizeof *out,
                               .id = t->id,
                               .name = tni_prof_get_text(profile, t->name),
                               .events = t->n,
                               .dropped = t->dropped};
    return TN_OK;
}

uint64_t tn_profile_dropped(const tn_profile *profile)
{
    return profile ? profile->dropped : 0;
}

uint64_t tn_profile_duration_ns(const tn_profile *profile)
{
    return profile ? profile->duration : 0;
}

size_t tn_profile_num_averages(const tn_profile *profile)
{
    return profile ? profile->n_averages : 0;
}

tn_status tn_profile_get_average(const tn_profile *profile, size_t i, tn_profile_average *out)
{
    CHECK_OUT("tn_profile_get_average");
    TN_CHECK(i < profile->n_averages, TN_INDEX,
             "tn_profile_get_average: there are %zu names, none is %zu", profile->n_averages, i);
    const tni_prof_average *a = &profile->averages[i];
    *out = (tn_profile_average){.size = sizeof *out,
                                .kind = (tn_profile_kind)a->kind,
                                .name = tni_prof_get_text(profile, a->name),
                                .calls = a->calls,
                                .self_ns = a->self,
                                .total_ns = a->total,
                                .min_ns = a->calls ? a->min : 0,
                                .max_ns = a->max,
                                .mean_ns = a->calls ? a->sum / a->calls : 0,
                                .allocated = a->allocated,
                                .freed = a->freed};
    return TN_OK;
}
