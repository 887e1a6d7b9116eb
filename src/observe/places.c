/* SPDX-License-Identifier: MIT */
/* observe/places.c: whether threads move, for the watchdog: see places.h. */
#include "observe/places.h"

#include "base/alloc.h"
#include "observe/verdict.h"

static uint64_t mix(uint64_t hash, const void *bytes, size_t n)
{
    const unsigned char *p = bytes;
    for (size_t i = 0; i < n; i++)
        hash = (hash ^ p[i]) * 0x100000001b3u;
    return hash;
}

static uint64_t passes_hash(const tni_seen_thread *t)
{
    uint64_t hash = mix(0xcbf29ce484222325u, &t->block.began, sizeof t->block.began);
    for (int i = 0; i < TNI_FLIGHT_PASSES; i++) {
        hash = mix(hash, &t->block.passes[i].id, sizeof(uint32_t));
        hash = mix(hash, &t->block.passes[i].n_done, sizeof(uint32_t));
    }
    return hash;
}

/* Which call it is in, and where that began. */
static uint64_t outer_hash(const tni_seen_thread *t)
{
    uint64_t hash = passes_hash(t);
    uint32_t n = t->n_frames < TNI_SEEN_CYCLE_DEPTH ? t->n_frames : TNI_SEEN_CYCLE_DEPTH;
    hash = mix(hash, &t->block.calls, sizeof t->block.calls);
    hash = mix(hash, t->frames, n * sizeof *t->frames);
    const tni_mark *code = tni_seen_code(t);
    if (code)
        hash = mix(mix(hash, &code->what, sizeof code->what), &code->since, sizeof code->since);
    return hash;
}

static uint64_t place_hash(const tni_seen_thread *t)
{
    uint64_t hash = outer_hash(t);
    hash = mix(hash, &t->depth, sizeof t->depth);
    hash = mix(hash, &t->block.n_passes, sizeof t->block.n_passes);
    hash = mix(hash, t->frames, t->n_frames * sizeof *t->frames);
    return mix(hash, &t->block.marks.wait, sizeof t->block.marks.wait);
}

/* What was called last from where it is. A failure is one thing however often it comes. */
static uint64_t inner_hash(const tni_seen_thread *t)
{
    const tni_flight_frame *last = tni_last_inside(t);
    uint64_t hash = 0xcbf29ce484222325u;
    if (last && last->status) {
        hash = mix(hash, &last->op, sizeof last->op);
        return mix(hash, &last->status, sizeof last->status);
    }
    return mix(hash, t->last, t->n_last * sizeof *t->last);
}

/* It goes deeper in a cycle, or has been at the limit of depth. */
static bool only_nests(const tni_place *p, const tni_seen_thread *t, uint64_t outer)
{
    if (t->block.n_passes >= TNI_SEEN_CYCLE_DEPTH && t->block.n_passes > p->most_passes &&
        p->passes == passes_hash(t))
        return true;
    return t->depth >= TNI_SEEN_CYCLE_DEPTH && outer == p->outer &&
           (t->depth > p->deepest || p->deepest >= t->block.limit - t->block.limit / 16) &&
           tni_seen_cycle(t) != 0;
}

tni_place *tni_places_find(const tni_places *places, uint32_t tid)
{
    for (uint32_t i = 0; i < places->n; i++) {
        if (places->list[i].tid == tid)
            return &places->list[i];
    }
    return NULL;
}

static tni_place *make(tni_places *places)
{
    tni_place *unused = tni_places_find(places, 0);
    if (unused)
        return unused;
    if (places->n == places->room) {
        uint32_t more = places->room ? 2 * places->room : 16;
        tni_place *grown =
            tni_realloc(places->list, places->room * sizeof *grown, more * sizeof *grown);
        if (!grown)
            return NULL;
        places->list = grown;
        places->room = more;
    }
    return &places->list[places->n++];
}

/* Time in which a thread was ready to run and others had the processors does not count; up to ten
 * times the limit, because one that spins among many may never get more. */
static void forgive(tni_place *p, const tni_seen_thread *t, uint64_t now, uint64_t passed,
                    uint64_t limit)
{
    bool starved = t->state == 'R' && t->cpu_ns - p->cpu_ns <= passed / 20;
    if (starved && now - p->began < 10 * limit)
        p->since = p->since + passed < now ? p->since + passed : now;
    p->cpu_ns = t->cpu_ns;
}

tni_place *tni_places_look(tni_places *places, const tni_seen_thread *t, uint64_t now,
                           uint64_t passed, uint64_t limit)
{
    uint64_t hash = place_hash(t), inner = inner_hash(t), outer = outer_hash(t);
    tni_place *p = tni_places_find(places, t->block.tid);
    bool moved = !p || ((p->hash != hash || p->inner != inner) && !only_nests(p, t, outer));
    p = p ? p : make(places);
    if (!p)
        return NULL;
    if (moved)
        *p = (tni_place){.tid = t->block.tid, .began = now, .since = now, .cpu_ns = t->cpu_ns};
    p->hash = hash;
    p->inner = inner;
    p->outer = outer;
    p->passes = passes_hash(t);
    p->most_passes = t->block.n_passes > p->most_passes ? t->block.n_passes : p->most_passes;
    p->deepest = t->depth > p->deepest ? t->depth : p->deepest;
    forgive(p, t, now, passed, limit);
    return p;
}

void tni_places_forget(tni_places *places, const tni_seen *seen)
{
    for (uint32_t i = 0; i < places->n; i++) {
        bool there = false;
        for (uint32_t k = 0; !there && k < seen->n_threads; k++)
            there = seen->threads[k].block.tid == places->list[i].tid;
        if (!there)
            places->list[i].tid = 0;
    }
}

void tni_places_clear(tni_places *places)
{
    tni_free(places->list);
    *places = (tni_places){NULL, 0, 0};
}
