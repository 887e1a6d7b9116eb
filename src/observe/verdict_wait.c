/* SPDX-License-Identifier: MIT */
/* observe/verdict_wait.c: the sentence about a thread that has said what it waits for: who holds
 * that, and whether those who wait go round in a circle. */
#include <string.h>
#include <unistd.h>

#include "observe/verdict.h"

static bool holds(const tni_seen_thread *t, const tni_mark *wanted)
{
    const tni_thread_marks *m = &t->block.marks;
    uint32_t n = m->n_held < TNI_MARK_HELD ? m->n_held : TNI_MARK_HELD;
    for (uint32_t i = 0; i < n; i++) {
        if (m->held[i].kind == wanted->kind && m->held[i].what == wanted->what)
            return true;
    }
    return false;
}

/* A worker in the loop of @p t that still runs its chunk. */
static int find_worker(const tni_seen *seen, const tni_seen_thread *t)
{
    int found = -1;
    for (uint32_t i = 0; i < seen->n_threads; i++) {
        const tni_thread_marks *m = &seen->threads[i].block.marks;
        if (!m->is_worker || m->works_for != t->block.tid || m->wait.kind == TNI_WAIT_IDLE)
            continue;
        if (found < 0 || m->works_since < seen->threads[found].block.marks.works_since)
            found = (int)i;
    }
    return found;
}

int tni_find_holder(const tni_seen *seen, const tni_seen_thread *waiting)
{
    const tni_mark *wait = &waiting->block.marks.wait;
    if (wait->kind == TNI_WAIT_POOL)
        return find_worker(seen, waiting);
    for (uint32_t i = 0; i < seen->n_threads; i++) {
        const tni_seen_thread *t = &seen->threads[i];
        if (wait->kind == TNI_WAIT_THREAD ? t->block.tid == wait->what : holds(t, wait))
            return (int)i;
    }
    return -1;
}

bool tni_waits_in_cycle(const tni_seen *seen, uint32_t start)
{
    int at = (int)start;
    for (uint32_t steps = 0; steps <= seen->n_threads; steps++) {
        if (!tni_waits(&seen->threads[at]))
            return false;
        at = tni_find_holder(seen, &seen->threads[at]);
        if (at < 0)
            return false;
        if (at == (int)start)
            return true;
    }
    return false;
}

void tni_judge_deadlock(const tni_seen *seen, uint32_t start, tni_verdict *v)
{
    const tni_seen_thread *first = &seen->threads[start];
    int at = tni_find_holder(seen, first);
    if (at == (int)start) {
        tni_str_add(&v->text, "deadlock with itself: ");
        tni_add_thread(&v->text, first);
        tni_str_add(&v->text, ", ");
        tni_add_place(&v->text, seen, first);
        tni_str_add(&v->text, ", waits for ");
        tni_add_mark(&v->text, &first->block.marks.wait);
        if (first->block.marks.wait.kind == TNI_WAIT_THREAD) {
            tni_str_add(&v->text, ", which is itself");
            tni_add_for(&v->text, seen, ", ", tni_thread_since(first));
            tni_str_add(&v->next, "what runs inside a call or a pass must not wait for its end");
            return;
        }
        tni_str_add(&v->text, ", which it holds itself");
        tni_add_for(&v->text, seen, ", ", tni_thread_since(first));
        tni_str_add(&v->next, "give back ");
        tni_add_mark(&v->next, &first->block.marks.wait);
        tni_str_add(&v->next, " before the outermost call, or do not take it again inside");
        return;
    }
    tni_str_add(&v->text, "deadlock: ");
    const tni_seen_thread *t = first;
    for (uint32_t steps = 0; steps <= seen->n_threads; steps++) {
        at = tni_find_holder(seen, t);
        tni_add_thread(&v->text, t);
        tni_str_add(&v->text, ", ");
        tni_add_place(&v->text, seen, t);
        tni_str_add(&v->text, ", waits for ");
        tni_add_mark(&v->text, &t->block.marks.wait);
        if (at < 0 || at == (int)start)
            break;
        t = &seen->threads[at];
        tni_str_addf(&v->text, ", which is held up by thread %u; ", t->block.tid);
    }
    tni_str_addf(&v->text, ", which is held up by thread %u again", first->block.tid);
    tni_str_add(&v->next,
                "take these in one order everywhere, or give one back before the call that "
                "waits for the other");
}

const char tni_starved_next[] = "look again; fewer threads, or TENON_NUM_THREADS, if it stays so";

/* Who may hold an interpreter's lock without having said so: the one thread that neither waits for
 * anything that is known nor sleeps as those do who wait for a lock. */
static const tni_seen_thread *find_suspect(const tni_seen *seen, const tni_seen_thread *waiting)
{
    const tni_seen_thread *found = NULL;
    if (waiting->block.marks.wait.kind != TNI_WAIT_INTERPRETER)
        return NULL;
    for (uint32_t i = 0; i < seen->n_threads; i++) {
        const tni_seen_thread *t = &seen->threads[i];
        bool sleeps = t->state != 'R' && (!t->wchan[0] || strstr(t->wchan, "futex"));
        if (t == waiting || !t->alive || t->block.marks.wait.kind || sleeps)
            continue;
        if (found)
            return NULL;
        found = t;
    }
    return found;
}

bool tni_only_looks_starved(const tni_seen_thread *t)
{
    return t->block.marks.wait.kind == TNI_WAIT_INTERPRETER ||
           t->sleep.kind == TNI_SLEEP_INTERPRETER;
}

/* Printing a line of the trace; in a futex it would be another thread that prints. */
static bool waits_for_stderr(const tni_seen_thread *t)
{
    const tni_mark *wait = &t->block.marks.wait;
    return wait->kind == TNI_WAIT_EVENT && wait->what == STDERR_FILENO &&
           strcmp(wait->text, "room in stderr") == 0 && t->sleep.kind == TNI_SLEEP_OTHER &&
           !strstr(t->wchan, "futex");
}

void tni_judge_wait(const tni_seen *seen, const tni_seen_thread *t, tni_verdict *v)
{
    const tni_mark *wait = &t->block.marks.wait;
    int at = tni_find_holder(seen, t);
    const tni_seen_thread *holder = at < 0 ? NULL : &seen->threads[at];
    v->kind =
        wait->kind == TNI_WAIT_POOL          ? TNI_VERDICT_POOL
        : wait->kind == TNI_WAIT_INTERPRETER ? TNI_VERDICT_INTERPRETER
        : wait->kind == TNI_WAIT_LOCK || wait->kind == TNI_WAIT_ONCE || wait->kind == TNI_WAIT_SPIN
            ? TNI_VERDICT_LOCK
        : t->block.marks.callout ? TNI_VERDICT_CALLOUT
                                 : TNI_VERDICT_WAIT;
    tni_add_thread(&v->text, t);
    tni_str_add(&v->text, ", ");
    tni_add_place(&v->text, seen, t);
    tni_str_add(&v->text, ", waits for ");
    tni_add_mark(&v->text, wait);
    tni_add_for(&v->text, seen, " ", tni_thread_since(t));
    if (!holder && t->sleep.kind == TNI_SLEEP_INTERPRETER) {
        tni_str_add(&v->text, ", which another thread holds: ");
        tni_add_interpreter(v, seen, &t->sleep);
        return;
    }
    const tni_seen_thread *suspect = holder ? NULL : find_suspect(seen, t);
    if (suspect) {
        tni_str_add(&v->text, "; ");
        tni_add_thread(&v->text, suspect);
        tni_str_addf(&v->text, " may hold it: it %s%s",
                     suspect->state == 'R' ? "runs" : "sleeps in ",
                     suspect->state == 'R' ? "" : suspect->wchan);
        tni_str_addf(&v->next,
                     "look at what thread %u does: it may have called something that keeps the "
                     "interpreter lock (ctypes.PyDLL, an extension); py-spy dump shows where",
                     suspect->block.tid);
        return;
    }
    if (!holder && t->sleep.kind == TNI_SLEEP_LOST && tni_add_fork(v, seen, &t->sleep))
        return;
    if (!holder && waits_for_stderr(t)) {
        tni_str_add(&v->text, "; its stderr is full, and is not being read");
        tni_str_add(&v->next, "let the program or terminal behind its stderr read, or send stderr "
                              "to a file: 2>FILE");
        return;
    }
    if (!holder) {
        tni_str_addf(&v->text, "; nobody that the record knows %s it%s",
                     wait->kind == TNI_WAIT_EVENT ? "brings" : "holds",
                     seen->nobody_wakes ? ", and no thread is left that could wake it" : "");
        tni_str_add(&v->next,
                    wait->kind == TNI_WAIT_INTERPRETER
                        ? "find who holds the interpreter lock: py-spy dump, or a thread that "
                          "calls Tenon without releasing it"
                    : v->kind == TNI_VERDICT_CALLOUT
                        ? "a hook or an observer must not wait for what comes after the call that "
                          "runs it"
                        : "find who should bring it; native stacks may help: --native");
        return;
    }
    tni_str_add(&v->text, wait->kind == TNI_WAIT_POOL ? ": " : "; it is held up by ");
    tni_add_thread(&v->text, holder);
    if (holder->starved) {
        v->kind = TNI_VERDICT_STARVED;
        tni_str_add(&v->text, ", which is ready to run, and others have the processors");
        tni_str_add(&v->next, tni_starved_next);
        return;
    }
    if (wait->kind == TNI_WAIT_POOL) {
        tni_str_add(&v->text, " has not finished its part");
        if (holder->cpu >= 0)
            tni_str_add(&v->text, tni_is_busy(holder) ? " and is busy" : " and sleeps");
        if (holder->cpu >= 0 && !tni_is_busy(holder) && holder->wchan[0])
            tni_str_addf(&v->text, " in %s", holder->wchan);
        tni_str_add(&v->next, "the worker is in the kernel's own code or in BLAS: --native shows "
                              "where; TENON_NUM_THREADS=1 runs the loop on the caller alone");
        return;
    }
    tni_str_add(&v->text, ", ");
    tni_add_place(&v->text, seen, holder);
    tni_str_addf(&v->next, "thread %u must go on first: look at its frames below",
                 holder->block.tid);
}
