/* SPDX-License-Identifier: MIT */
/* observe/compare.c: two looks at a program: what has moved, which waits are the same, who got a
 * processor. */
#include <string.h>

#include "observe/reader.h"
#include "tenon/dispatch.h"

const tni_mark *tni_seen_code(const tni_seen_thread *t)
{
    const tni_thread_marks *m = &t->block.marks;
    for (uint32_t i = m->n_held < TNI_MARK_HELD ? m->n_held : TNI_MARK_HELD; i-- > 0;) {
        if (m->held[i].kind == TNI_HELD_CODE)
            return &m->held[i];
    }
    return NULL;
}

/* Then it has a stamp, unless the recorder is off. */
bool tni_is_call(const tni_flight_frame *f)
{
    return f->kind == TN_EVENT_CALL || f->kind == TN_EVENT_CALL_BOXED;
}

const tni_flight_frame *tni_last_inside(const tni_seen_thread *t)
{
    const tni_flight_frame *f = &t->last[0];
    /* Of redispatches only those that were refused have a time. */
    if (!t->n_last || (!tni_is_call(f) && f->status != TN_RECURSION) ||
        f->stage != TNI_STAGE_ENDED || f->depth != t->depth)
        return NULL;
    /* What an earlier call left there is older. */
    for (uint32_t i = t->n_frames; i-- > 0;) {
        if (tni_is_call(&t->frames[i]))
            return t->frames[i].stamp && f->stamp > t->frames[i].stamp ? f : NULL;
    }
    return NULL;
}

/* See Note [What counts as movement]. */
static bool has_called(const tni_seen_thread *a, const tni_seen_thread *b)
{
    const tni_flight_frame *x = tni_last_inside(a), *y = tni_last_inside(b);
    if (x && y && y->status && x->status == y->status && x->op == y->op)
        return false;
    return a->n_last != b->n_last || memcmp(a->last, b->last, a->n_last * sizeof *a->last) != 0;
}

static bool has_moved(const tni_seen_thread *a, const tni_seen_thread *b)
{
    if (a->torn || b->torn || a->block.calls != b->block.calls || a->depth != b->depth ||
        a->n_frames != b->n_frames || a->block.n_passes != b->block.n_passes)
        return true;
    for (int i = 0; i < TNI_FLIGHT_PASSES; i++) {
        if (a->block.passes[i].id != b->block.passes[i].id ||
            a->block.passes[i].n_done != b->block.passes[i].n_done)
            return true;
    }
    return memcmp(a->frames, b->frames, a->n_frames * sizeof *a->frames) != 0 || has_called(a, b);
}

/* What somebody holds may be asked for again and again; any other wait is told by its beginning. */
static bool is_same_wait(const tni_mark *a, const tni_mark *b)
{
    bool is_held = b->kind == TNI_WAIT_LOCK || b->kind == TNI_WAIT_ONCE ||
                   b->kind == TNI_WAIT_SPIN || b->kind == TNI_WAIT_INTERPRETER;
    return a->kind == b->kind && a->what == b->what && (is_held || a->since == b->since);
}

void tni_seen_compare(const tni_seen *before, tni_seen *now, uint64_t ns_between)
{
    if (before->knows_sleepers && now->knows_sleepers)
        tni_compare_sleepers(before, now);
    if (now->head.ended_calls > before->head.ended_calls)
        now->ended_calls = now->head.ended_calls - before->head.ended_calls;
    for (uint32_t i = 0; i < now->n_threads; i++) {
        tni_seen_thread *t = &now->threads[i];
        t->moved = true;
        for (uint32_t k = 0; k < before->n_threads; k++) {
            const tni_seen_thread *b = &before->threads[k];
            if (b->block.tid != t->block.tid || b->block.began != t->block.began ||
                b->copy != t->copy)
                continue;
            t->moved = has_moved(b, t);
            t->wait_is_new = !is_same_wait(&b->block.marks.wait, &t->block.marks.wait);
            if (!b->alive || !t->alive || !ns_between)
                continue;
            t->cpu = (double)(t->cpu_ns - b->cpu_ns) / (double)ns_between;
            /* The system adds a wait when it has ended: one that lasts shows in the state alone. */
            t->starved = t->cpu <= 0.05 && t->state == 'R';
            t->crowded =
                (t->starved && b->state == 'R') || 10 * (t->queued_ns - b->queued_ns) > ns_between;
        }
    }
}
