/* SPDX-License-Identifier: MIT */
/* observe/verdict.c: from what was seen to a sentence: see verdict.h. Threads are judged one by
 * one; the gravest finding is the verdict. */
#include "observe/verdict.h"

#include <string.h>
#include "tenon/dispatch.h"

static const char *const names[] = {
#define X(name, text) text,
    TNI_VERDICT_LIST(X)
#undef X
};

const char *tni_verdict_name(tni_verdict_kind kind)
{
    return (unsigned)kind < sizeof names / sizeof *names ? names[kind] : "unknown";
}

void tni_verdict_clear(tni_verdict *verdict)
{
    tni_str_clear(&verdict->text);
    tni_str_clear(&verdict->next);
}

/* Note [Who sleeps beside those that cannot run]
 * Where more threads want to run than there are processors, one of them is often put aside while it
 * has a lock that has no mark: an allocator's, the system's own of the address space. Those who
 * want the lock sleep until it gets a processor again, which on a crowded machine is a second and
 * more. They look like threads in a deadlock. So a thread that sleeps and has not said for what is
 * not said to hang while another thread of the program could run and may not, unless it has slept
 * for so long that every thread must have had its turn. */

/* See Note [Who sleeps beside those that cannot run]. -1: @p t does not sleep because of that. */
static int find_crowded(const tni_seen *seen, const tni_seen_thread *t)
{
    const uint64_t long_ago = 10000000000u;
    uint64_t since = tni_thread_since(t);
    if (!t->alive || t->cpu < 0 || tni_is_busy(t) || (since && seen->now > since + long_ago))
        return -1;
    for (uint32_t i = 0; i < seen->n_threads; i++) {
        if (&seen->threads[i] != t && seen->threads[i].crowded)
            return (int)i;
    }
    return -1;
}

static bool is_stuck(const tni_seen_thread *t, bool two_looks)
{
    return (t->depth || tni_inner_pass(t) || tni_seen_code(t) || t->block.marks.callout) &&
           !(two_looks && t->moved);
}

bool tni_must_look_again(const tni_seen *seen, uint64_t ns)
{
    if (seen->process_state == 'X' || seen->process_state == 'Z')
        return false;
    for (uint32_t i = 0; i < seen->n_threads; i++) {
        const tni_seen_thread *t = &seen->threads[i];
        uint64_t since = tni_thread_since(t);
        bool starved = t->starved && !tni_only_looks_starved(t);
        if ((is_stuck(t, true) || (tni_waits(t) && !t->moved)) && !starved && t->alive &&
            (!since || seen->now < since + ns))
            return true;
    }
    return false;
}

static tni_verdict_kind judge_thread(const tni_seen *seen, uint32_t i, bool two_looks,
                                     tni_verdict *v)
{
    const tni_seen_thread *t = &seen->threads[i];
    uint32_t period = t->depth >= TNI_SEEN_CYCLE_DEPTH ? tni_seen_cycle(t) : 0;
    v->tid = t->block.tid;
    bool stands = !(two_looks && t->moved);
    bool sleeps = is_stuck(t, two_looks) && !t->block.marks.is_worker && !tni_is_busy(t);
    int other;
    if (tni_waits(t) && stands && tni_waits_in_cycle(seen, i)) {
        v->kind = TNI_VERDICT_DEADLOCK;
        tni_judge_deadlock(seen, i, v);
    } else if (period) {
        v->kind = TNI_VERDICT_RECURSION;
        tni_judge_recursion(seen, t, period, v);
    } else if (t->block.n_passes >= TNI_SEEN_CYCLE_DEPTH) {
        v->kind = TNI_VERDICT_RECURSION;
        tni_judge_nested_passes(seen, t, v);
    } else if (tni_nests_code(t)) {
        v->kind = TNI_VERDICT_RECURSION;
        tni_judge_nested_code(t, v);
    } else if (sleeps && tni_sleeps_in_cycle(seen, t)) {
        (void)tni_judge_sleep(seen, t, v);
    } else if (tni_waits(t) && stands && (!t->starved || tni_only_looks_starved(t))) {
        tni_judge_wait(seen, t, v);
    } else if ((is_stuck(t, two_looks) || (tni_waits(t) && stands)) && t->starved &&
               !tni_only_looks_starved(t)) {
        v->kind = TNI_VERDICT_STARVED;
        tni_add_thread(&v->text, t);
        tni_str_add(&v->text, " is ready to run, and others have the processors: ");
        tni_add_place(&v->text, seen, t);
        tni_str_add(&v->next, tni_starved_next);
    } else if (is_stuck(t, two_looks) && (other = find_crowded(seen, t)) >= 0) {
        v->kind = TNI_VERDICT_STARVED;
        tni_add_thread(&v->text, t);
        tni_str_addf(&v->text, " sleeps%s%s, ", t->wchan[0] ? " in " : "", t->wchan);
        tni_add_place(&v->text, seen, t);
        tni_add_for(&v->text, seen, ", ", tni_thread_since(t));
        tni_str_add(&v->text, "; it may wait for ");
        tni_add_thread(&v->text, &seen->threads[other]);
        tni_str_add(&v->text, ", which is ready to run, and others have the processors");
        tni_str_add(&v->next, tni_starved_next);
    } else if ((sleeps || (stands && tni_keeps_interpreter(seen, t))) &&
               tni_judge_sleep(seen, t, v)) {
        v->tid = t->block.tid;
    } else if (is_stuck(t, two_looks) && !t->block.marks.is_worker) {
        tni_judge_stuck(seen, t, v);
    } else if (two_looks && t->moved && (t->depth || t->block.calls)) {
        tni_judge_progress(seen, t, v);
    } else if (t->alive && t->cpu >= 0 && tni_is_busy(t)) {
        v->kind = TNI_VERDICT_BETWEEN;
        tni_add_thread(&v->text, t);
        tni_str_add(&v->text, " is busy between two calls, outside of Tenon");
        tni_str_add(&v->next, "the program's own code runs: --native, or its own profiler");
    } else {
        v->kind = TNI_VERDICT_IDLE;
    }
    return v->kind;
}

/* The program as a whole; false: look at its threads. */
static bool judge_program(const tni_seen *seen, tni_verdict *v)
{
    char state = seen->process_state;
    if (seen->pid && (state == 'X' || state == 'Z')) {
        v->kind = TNI_VERDICT_ENDED;
        tni_str_addf(&v->text, "process %d has ended%s", seen->pid,
                     state == 'Z' ? " and its parent has not waited for it" : "");
        tni_str_add(&v->next, "TENON_RECORD=FILE keeps a record that can be read afterwards");
        return true;
    }
    if (seen->pid && (state == 'T' || state == 't')) {
        v->kind = TNI_VERDICT_STOPPED;
        tni_str_addf(&v->text, "process %d is stopped by %s", seen->pid,
                     state == 't' ? "a debugger" : "a signal");
        tni_str_addf(&v->next, state == 't' ? "let the debugger go on" : "kill -CONT %d",
                     seen->pid);
        return true;
    }
    return false;
}

/* The newest outermost call of any thread; NULL: there was none. */
static const tni_flight_frame *last_call(const tni_seen *seen)
{
    const tni_flight_frame *last = NULL;
    for (uint32_t i = 0; i < seen->n_threads; i++) {
        const tni_seen_thread *t = &seen->threads[i];
        const tni_flight_frame *f = t->n_recent ? &t->frames[t->n_frames] : NULL;
        if (f && f->stamp && (!last || f->stamp > last->stamp))
            last = f;
    }
    return last;
}

/* No thread is in an operator: if the program hangs it is elsewhere, and what is known about that
 * is the main thread's state, the last call, and children that may be the ones who are stuck. */
static void judge_idle(const tni_seen *seen, tni_verdict *v)
{
    char room[24];
    const tni_flight_frame *last = last_call(seen);
    if (seen->nobody_wakes) {
        v->kind = TNI_VERDICT_DEADLOCK;
        tni_str_add(&v->text, "deadlock: all threads sleep, none is left that could wake another, "
                              "only a signal could");
    }
    tni_str_add(&v->text, seen->nobody_wakes ? "; no thread is in an operator"
                                             : "idle: no thread is in an operator");
    if (seen->head.n_unplaced)
        tni_str_addf(&v->text, " of the %u that have a place in the record (%u more have none)",
                     seen->n_threads, seen->head.n_unplaced);
    if (seen->pid && seen->process_state == 'S' && seen->process_wchan[0])
        tni_str_addf(&v->text, "; the main thread sleeps in %s", seen->process_wchan);
    if (last && seen->now) {
        tni_str_addf(&v->text, "; the last call, %s, began ",
                     tni_seen_name(seen, TNI_NAME_OP, last->op, room));
        tni_add_age(&v->text, seen->now, last->stamp);
        tni_str_add(&v->text, " ago");
    }
    const tni_seen_child *child = seen->n_children ? &seen->children[0] : NULL;
    tni_add_others(&v->text, seen, "; there are also ");
    if (tni_add_lonely_fork(v, seen))
        return;
    if (child && child->has_record)
        tni_str_addf(&v->next,
                     "its child %u uses Tenon, too, and may be what it waits for: "
                     "tenon doctor %u%s",
                     child->pid, child->pid,
                     child->in_operator ? " (a thread of it is in an operator)" : "");
    else
        tni_str_add(&v->next, !seen->pid ? "nothing: the recent calls of each thread are below"
                              : seen->is_python
                                  ? "what it waits for is in Python, outside of Tenon: "
                                    "py-spy dump, python -X faulthandler, or --native"
                                  : "whatever it waits for is outside of Tenon: --native");
}

/* One thread is at work, and another waits for a child: which of them hangs, if any, is not known.
 */
static void add_waiting_parent(const tni_seen *seen, tni_verdict *v)
{
    for (uint32_t i = 0; i < seen->n_threads; i++) {
        const tni_seen_thread *t = &seen->threads[i];
        const tni_seen_child *child = tni_find_child(seen, t);
        if (!child || t->block.tid == v->tid)
            continue;
        tni_str_addf(&v->text, "; thread %u waits for the end of ", t->block.tid);
        tni_str_addf(&v->text, "%s %u (%s)",
                     child->pid == t->child || seen->n_children == 1 ? "its child"
                                                                     : "a child, perhaps",
                     child->pid, child->name);
        if (child->has_record)
            tni_str_addf(&v->next, "; the child uses Tenon, too: tenon doctor %u", child->pid);
        return;
    }
}

void tni_judge(const tni_seen *seen, bool two_looks, tni_verdict *out)
{
    memset(out, 0, sizeof *out);
    out->kind = TNI_VERDICT_IDLE;
    if (judge_program(seen, out))
        return;
    for (uint32_t i = 0; i < seen->n_threads; i++) {
        tni_verdict v;
        memset(&v, 0, sizeof v);
        if (judge_thread(seen, i, two_looks, &v) < out->kind) {
            tni_verdict_clear(out);
            *out = v;
        } else {
            tni_verdict_clear(&v);
        }
    }
    if (out->kind > TNI_VERDICT_PROGRESS && seen->ended_calls) {
        tni_verdict_clear(out);
        out->kind = TNI_VERDICT_PROGRESS;
        tni_str_addf(&out->text,
                     "threads come and go and make progress: %llu outermost calls between the "
                     "looks, by threads that have ended",
                     (unsigned long long)seen->ended_calls);
        tni_str_add(&out->next, "nothing hangs; if it is slow, look again or profile");
    }
    if (out->kind >= TNI_VERDICT_COMPUTING && out->kind != TNI_VERDICT_IDLE)
        add_waiting_parent(seen, out);
    if (out->kind != TNI_VERDICT_IDLE) {
        if (!seen->pid && !seen->in_use && seen->head.ended != 1 && out->text.n)
            tni_str_add(&out->text, seen->head.ended == 2 ? "; the watchdog ended the program there"
                                                          : "; that is where the record stops");
    } else if (!seen->pid && (seen->n_lost || seen->n_cut)) {
        out->kind = TNI_VERDICT_CUT; /* nobody knows what they did */
        tni_add_missing(&out->text, seen);
        tni_str_add(&out->next, "take a whole copy: tn_recorder_save writes one, and the file of "
                                "TENON_RECORD can be read where it is");
        return;
    } else if (!seen->pid && seen->head.ended) {
        out->kind = TNI_VERDICT_ENDED;
        tni_str_add(&out->text, "the program came to its end, no call was open");
        tni_str_add(&out->next, "nothing: the recent calls of each thread are below");
    } else {
        judge_idle(seen, out);
    }
    if (!seen->pid && seen->damaged && out->text.n) {
        tni_str_add(&out->text, "; ");
        tni_add_missing(&out->text, seen);
    }
}
