/* SPDX-License-Identifier: MIT */
/* observe/verdict_sleep.c: the sentence about a thread that sleeps for another one and has not
 * marked it: what the system and the memory at its futex tell, see Note [What lies at a futex]. */
#include <string.h>

#include "observe/verdict.h"

static const tni_seen_thread *find_thread(const tni_seen *seen, uint32_t tid)
{
    for (uint32_t i = 0; i < seen->n_threads; i++) {
        if (seen->threads[i].block.tid == tid)
            return &seen->threads[i];
    }
    return NULL;
}

static uint32_t n_described(const tni_seen *seen)
{
    return seen->n_others < TNI_SEEN_OTHERS ? seen->n_others : TNI_SEEN_OTHERS;
}

static const tni_seen_other *find_other(const tni_seen *seen, uint32_t tid)
{
    for (uint32_t i = 0; i < n_described(seen); i++) {
        if (seen->others[i].tid == tid)
            return &seen->others[i];
    }
    return NULL;
}

static bool is_for_thread(const tni_sleep *sleep)
{
    return sleep->kind == TNI_SLEEP_LOCK || sleep->kind == TNI_SLEEP_JOIN ||
           sleep->kind == TNI_SLEEP_INTERPRETER;
}

/* Whom thread @p tid sleeps for; 0: it does not, or that is not known. */
static uint32_t next_of(const tni_seen *seen, uint32_t tid)
{
    const tni_seen_thread *t = find_thread(seen, tid);
    const tni_seen_other *other = t ? NULL : find_other(seen, tid);
    const tni_sleep *sleep = t ? &t->sleep : other ? &other->sleep : NULL;
    if (sleep && is_for_thread(sleep))
        return sleep->of;
    int holder = t && t->block.marks.wait.kind ? tni_find_holder(seen, t) : -1;
    return holder >= 0 ? seen->threads[holder].block.tid : 0;
}

bool tni_sleeps_in_cycle(const tni_seen *seen, const tni_seen_thread *t)
{
    uint32_t start = t->block.tid, at = is_for_thread(&t->sleep) ? start : 0;
    for (uint32_t steps = 0; steps <= seen->n_threads + n_described(seen) && at; steps++) {
        at = next_of(seen, at);
        if (at == start)
            return true;
    }
    return false;
}

/* "thread 4242 (train), inside the kernel of my::op" */
static void add_who(tni_str *s, const tni_seen *seen, uint32_t tid)
{
    const tni_seen_thread *t = find_thread(seen, tid);
    const tni_seen_other *other = t ? NULL : find_other(seen, tid);
    if (t) {
        tni_add_thread(s, t);
        tni_str_add(s, ", ");
        tni_add_place(s, seen, t);
        return;
    }
    tni_str_addf(s, "thread %u", tid);
    if (other)
        tni_str_addf(s, "%s%s%s, without Tenon", other->comm[0] ? " (" : "", other->comm,
                     other->comm[0] ? ")" : "");
}

/* "a lock that thread 4243 has" */
static void add_what(tni_str *s, const tni_seen *seen, uint32_t tid)
{
    const tni_seen_thread *t = find_thread(seen, tid);
    const tni_seen_other *other = t ? NULL : find_other(seen, tid);
    const tni_sleep *sleep = t ? &t->sleep : &other->sleep;
    if (sleep->kind == TNI_SLEEP_LOCK)
        tni_str_addf(s, "a lock that thread %u holds", sleep->of);
    else if (sleep->kind == TNI_SLEEP_JOIN)
        tni_str_addf(s, "the end of thread %u", sleep->of);
    else if (sleep->kind == TNI_SLEEP_INTERPRETER)
        tni_str_addf(s, "the interpreter lock, which thread %u holds", sleep->of);
    else
        tni_add_mark(s, &t->block.marks.wait);
}

static void judge_cycle(const tni_seen *seen, const tni_seen_thread *t, tni_verdict *v)
{
    uint32_t start = t->block.tid, at = start;
    v->kind = TNI_VERDICT_DEADLOCK;
    if (t->sleep.of == start) {
        tni_str_add(&v->text, "deadlock with itself: ");
        add_who(&v->text, seen, start);
        tni_str_add(&v->text, ", waits for a lock that it holds itself (a caller took it)");
        tni_add_for(&v->text, seen, ", ", tni_thread_since(t));
        tni_str_add(&v->next, "give the lock back before the outermost call, or do not take it "
                              "again inside");
        return;
    }
    tni_str_add(&v->text, "deadlock: ");
    do {
        tni_str_add(&v->text, at == start ? "" : "; ");
        add_who(&v->text, seen, at);
        tni_str_add(&v->text, ", waits for ");
        add_what(&v->text, seen, at);
        at = next_of(seen, at);
    } while (at != start);
    tni_str_add(&v->next, "take locks in one order everywhere, and give back what another thread "
                          "needs before waiting for it");
}

/* "; it sleeps in hrtimer_nanosleep" */
static void add_state(tni_str *s, const tni_seen *seen, uint32_t tid)
{
    const tni_seen_thread *t = find_thread(seen, tid);
    const tni_seen_other *other = t ? NULL : find_other(seen, tid);
    if (!t && !other)
        return;
    char state = t ? t->state : other->state;
    const char *wchan = t ? t->wchan : other->wchan;
    if (next_of(seen, tid)) {
        tni_str_add(s, ", which waits for ");
        add_what(s, seen, tid);
    } else if (state == 'R') {
        tni_str_add(s, ", which runs");
    } else {
        tni_str_addf(s, ", which sleeps%s%s", wchan[0] ? " in " : "", wchan);
    }
}

bool tni_add_fork(tni_verdict *v, const tni_seen *seen, const tni_sleep *sleep)
{
    const tni_flight_header *h = &seen->head;
    bool lost = sleep->kind == TNI_SLEEP_LOST;
    if (!h->forked || (sleep->kind != TNI_SLEEP_FUTEX && !lost) || (!h->forked_from && !lost))
        return false;
    tni_str_add(&v->text, "; this is a child of fork()");
    if (lost && sleep->of == h->forked_by) {
        tni_str_add(&v->text, ", and the thread that called it held the lock then");
        tni_str_add(&v->next, "give the lock back before fork(), or make it anew in the child");
        return true;
    }
    if (h->forked_from)
        tni_str_addf(&v->text, "; its parent had %u other thread%s", h->forked_from,
                     h->forked_from == 1 ? "" : "s");
    tni_str_add(&v->text, "; a lock that one of them held then is never given back");
    tni_str_add(&v->next, "fork before threads begin, start processes with exec (spawn), or make "
                          "the locks anew in the child (pthread_atfork, os.register_at_fork)");
    return true;
}

/* Where there are more threads, another of them may be the one that wakes it. */
bool tni_add_lonely_fork(tni_verdict *v, const tni_seen *seen)
{
    const tni_sleep *sleep = NULL;
    uint32_t n = seen->n_others;
    for (uint32_t i = 0; i < seen->n_threads; i++) {
        n += seen->threads[i].alive;
        sleep = seen->threads[i].alive ? &seen->threads[i].sleep : sleep;
    }
    sleep = seen->n_others ? &seen->others[0].sleep : sleep;
    return n == 1 && tni_add_fork(v, seen, sleep);
}

/* Where it sleeps, in the words of who wrote the program. */
static void add_object(tni_str *s, const tni_seen *seen, const tni_sleep *sleep)
{
    if (sleep->is_semaphore && seen->is_python)
        tni_str_add(s, " at a semaphore, as Python's locks, conditions, events, queues and joins "
                       "are");
    else if (sleep->is_semaphore)
        tni_str_add(s, " at a semaphore");
    else if (sleep->kind == TNI_SLEEP_FUTEX)
        tni_str_add(s, " at a lock or a condition");
}

void tni_add_wakers(tni_str *s, const tni_seen *seen, const tni_seen_thread *t)
{
    uint32_t n = seen->n_others, one = n_described(seen) ? seen->others[0].tid : 0;
    if (t->sleep.is_semaphore) {
        tni_str_add(s, "; it sleeps");
        add_object(s, seen, &t->sleep);
    }
    if (!t->sleep.for_good || t->sleep.kind != TNI_SLEEP_FUTEX)
        return;
    for (uint32_t i = 0; i < seen->n_threads; i++) {
        const tni_seen_thread *other = &seen->threads[i];
        if (other == t || !other->alive || other->block.tid == t->block.tid)
            continue;
        n++;
        one = other->block.tid;
    }
    if (n > 1)
        tni_str_addf(s, "; one of its %u other threads must wake it", n);
    if (n != 1)
        return;
    tni_str_add(s, "; nobody can wake it but ");
    add_who(s, seen, one);
    add_state(s, seen, one);
}

static const char only_a_signal[] = "no thread is left that could wake it, only a signal could";

/* Everybody sleeps for good. */
static void judge_forsaken(const tni_seen *seen, const tni_seen_thread *t, tni_verdict *v)
{
    uint32_t n = seen->n_others, told = 0;
    v->kind = TNI_VERDICT_DEADLOCK;
    for (uint32_t i = 0; i < seen->n_threads; i++)
        n += seen->threads[i].alive && seen->threads[i].block.marks.wait.kind != TNI_WAIT_IDLE;
    tni_str_add(&v->text, n == 1 ? "deadlock with itself: " : "deadlock: ");
    add_who(&v->text, seen, t->block.tid);
    tni_str_add(&v->text, ", sleeps");
    add_object(&v->text, seen, &t->sleep);
    tni_add_for(&v->text, seen, ", ", tni_thread_since(t));
    tni_str_addf(&v->text, "; %s", only_a_signal);
    for (uint32_t i = 0; i < seen->n_threads && told < 3; i++) {
        const tni_seen_thread *other = &seen->threads[i];
        if (other == t || !other->alive || other->block.marks.is_worker ||
            (!other->depth && !tni_inner_pass(other) && !tni_seen_code(other)))
            continue;
        tni_str_add(&v->text, told++ ? ", and " : "; so sleeps ");
        add_who(&v->text, seen, other->block.tid);
    }
    if (n > 1 && !told)
        tni_str_addf(&v->text, ": all its %u threads sleep", n);
    if (tni_add_fork(v, seen, &t->sleep))
        return;
    tni_str_add(&v->next, "give back what is held before the call that waits for it, or let "
                          "another thread post it; ");
    tni_str_add(&v->next, seen->is_python
                              ? "py-spy dump, or --native, shows the line where it is"
                              : "--native shows where; mark locks with tn_wait_begin and "
                                "tn_hold_begin to see whose");
}

void tni_add_interpreter(tni_verdict *v, const tni_seen *seen, const tni_sleep *sleep)
{
    add_who(&v->text, seen, sleep->of);
    add_state(&v->text, seen, sleep->of);
    tni_str_addf(&v->next,
                 "thread %u must give the interpreter lock back: it has called something that "
                 "keeps it (ctypes.PyDLL, an extension); py-spy dump, or --native, shows where",
                 sleep->of);
}

bool tni_keeps_interpreter(const tni_seen *seen, const tni_seen_thread *t)
{
    const tni_seen_thread *holder = find_thread(seen, t->sleep.of);
    const tni_seen_other *other = holder ? NULL : find_other(seen, t->sleep.of);
    return t->sleep.kind == TNI_SLEEP_INTERPRETER &&
           (holder ? !tni_is_busy(holder) && holder->state != 'R' : other && other->state != 'R');
}

void tni_add_kept(tni_str *s, const tni_seen *seen, const tni_seen_thread *t)
{
    uint32_t n = 0, tid = t->block.tid;
    for (uint32_t i = 0; i < seen->n_threads; i++)
        n += seen->threads[i].sleep.kind == TNI_SLEEP_INTERPRETER &&
             seen->threads[i].sleep.of == tid;
    for (uint32_t i = 0; i < n_described(seen); i++)
        n += seen->others[i].sleep.kind == TNI_SLEEP_INTERPRETER && seen->others[i].sleep.of == tid;
    if (n)
        tni_str_addf(s, "; it holds the interpreter lock, for which %u thread%s", n,
                     n == 1 ? " waits" : "s wait");
}

/* Those who wait for each other, from @p t on: the last of them, and what they all do. */
static bool add_chain(const tni_seen *seen, const tni_seen_thread *t, tni_verdict *v)
{
    uint32_t n = 1, last = t->block.tid, most = seen->n_threads + n_described(seen);
    const tni_flight_frame *first = tni_innermost(t);
    bool repeats = first != NULL;
    for (uint32_t next; n <= most && (next = next_of(seen, last)); n++) {
        const tni_seen_thread *waits = find_thread(seen, last);
        const tni_flight_frame *f = waits ? tni_innermost(waits) : NULL;
        repeats = repeats && f && f->op == first->op && f->slot == first->slot;
        last = next;
    }
    if (n < 3 || n > most) /* the one that is named waits for nobody; or they go round elsewhere */
        return false;
    tni_str_addf(&v->text, "; the last of these %u is ", n);
    add_who(&v->text, seen, last);
    add_state(&v->text, seen, last);
    if (!repeats || n < 4)
        return false;
    char room[24];
    const char *op = tni_seen_name(seen, TNI_NAME_OP, first->op, room);
    tni_str_addf(&v->text,
                 "; %s is called again and again, each time in a new thread that the "
                 "call before waits for",
                 op);
    tni_str_addf(&v->next, "%s must not be called by what it waits for, or only so often", op);
    return true;
}

bool tni_judge_sleep(const tni_seen *seen, const tni_seen_thread *t, tni_verdict *v)
{
    if (tni_sleeps_in_cycle(seen, t)) {
        judge_cycle(seen, t, v);
        return true;
    }
    if (seen->nobody_wakes && t->sleep.kind == TNI_SLEEP_FUTEX) {
        judge_forsaken(seen, t, v);
        return true;
    }
    if (!is_for_thread(&t->sleep) && t->sleep.kind != TNI_SLEEP_LOST &&
        t->sleep.kind != TNI_SLEEP_ELSEWHERE)
        return false;
    add_who(&v->text, seen, t->block.tid);
    if (t->sleep.kind == TNI_SLEEP_ELSEWHERE) {
        v->kind = TNI_VERDICT_LOCK;
        tni_str_addf(&v->text, ", waits for a lock that thread %u of another process holds",
                     t->sleep.of);
        tni_add_for(&v->text, seen, ", ", tni_thread_since(t));
        tni_str_addf(&v->next,
                     "that process must give the lock back first; if it uses Tenon, too: tenon "
                     "doctor %u",
                     t->sleep.of);
        return true;
    }
    if (t->sleep.kind == TNI_SLEEP_LOST) {
        v->kind = TNI_VERDICT_LOCK;
        tni_str_addf(&v->text, ", waits for a lock that thread %u took, which is not there",
                     t->sleep.of);
        tni_add_for(&v->text, seen, ", ", tni_thread_since(t));
        if (!tni_add_fork(v, seen, &t->sleep))
            tni_str_add(&v->next, "a thread must give back its locks before it ends");
        return true;
    }
    bool joins = t->sleep.kind == TNI_SLEEP_JOIN,
         interpreter = t->sleep.kind == TNI_SLEEP_INTERPRETER;
    v->kind = seen->nobody_wakes       ? TNI_VERDICT_DEADLOCK
              : interpreter            ? TNI_VERDICT_INTERPRETER
              : !joins                 ? TNI_VERDICT_LOCK
              : t->block.marks.callout ? TNI_VERDICT_CALLOUT
                                       : TNI_VERDICT_WAIT;
    tni_str_add(&v->text, joins         ? ", waits for the end of another thread"
                          : interpreter ? ", waits for the interpreter lock, which another thread "
                                          "holds"
                                        : ", waits for a lock that another thread holds");
    tni_add_for(&v->text, seen, ", ", tni_thread_since(t));
    tni_str_add(&v->text, ": ");
    if (interpreter) {
        tni_add_interpreter(v, seen, &t->sleep);
        return true;
    }
    add_who(&v->text, seen, t->sleep.of);
    add_state(&v->text, seen, t->sleep.of);
    bool repeats = add_chain(seen, t, v);
    if (seen->nobody_wakes)
        tni_str_addf(&v->text, "; %s", only_a_signal);
    if (repeats)
        return true;
    tni_str_addf(&v->next, "thread %u must %s first: --native shows where it is", t->sleep.of,
                 joins ? "end" : "give the lock back");
    return true;
}

void tni_add_sleep(tni_str *s, const tni_seen *seen, const tni_seen_thread *t)
{
    if (is_for_thread(&t->sleep))
        add_what(s, seen, t->block.tid);
    else if (t->sleep.kind == TNI_SLEEP_LOST)
        tni_str_addf(s, "a lock that thread %u took, which is not there", t->sleep.of);
    else if (t->sleep.kind == TNI_SLEEP_ELSEWHERE)
        tni_str_addf(s, "a lock that thread %u of another process holds", t->sleep.of);
    else if (t->sleep.is_semaphore)
        tni_str_add(s, "a semaphore");
}

void tni_add_others(tni_str *s, const tni_seen *seen, const char *before)
{
    if (!seen->n_others)
        return;
    uint32_t n = n_described(seen), running = 0, futex = 0;
    for (uint32_t i = 0; i < n; i++) {
        running += seen->others[i].state == 'R';
        futex += seen->others[i].state != 'R' && strstr(seen->others[i].wchan, "futex") != NULL;
    }
    tni_str_addf(s, "%s%u thread%s without Tenon", before, seen->n_others,
                 seen->n_others == 1 ? "" : "s");
    if (seen->n_others == 1 && !running)
        tni_str_addf(s, ", sleeping%s%s", seen->others[0].wchan[0] ? " in " : "",
                     seen->others[0].wchan);
    else if (futex == seen->n_others)
        tni_str_add(s, ", all sleeping in a futex");
    else if (n == seen->n_others)
        tni_str_addf(s, ", %u running, %u sleeping in a futex", running, futex);
}
