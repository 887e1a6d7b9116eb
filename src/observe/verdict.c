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

/* ---- who waits for whom ---- */

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

static bool waits(const tni_seen_thread *t)
{
    unsigned kind = t->block.marks.wait.kind;
    return kind != TNI_WAIT_NONE && kind != TNI_WAIT_IDLE && !t->wait_is_new;
}

/* ---- describing a thread in a sentence ---- */

static const tni_flight_frame *innermost(const tni_seen_thread *t)
{
    return t->n_frames ? &t->frames[t->n_frames - 1] : NULL;
}

static const tni_flight_pass *inner_pass(const tni_seen_thread *t)
{
    uint32_t n = t->block.n_passes;
    if (n == 0)
        return NULL;
    n = n < TNI_FLIGHT_PASSES ? n : TNI_FLIGHT_PASSES;
    return t->block.passes[n - 1].id ? &t->block.passes[n - 1] : NULL;
}

void tni_add_thread(tni_str *s, const tni_seen_thread *t)
{
    tni_str_addf(s, "thread %u", t->block.tid);
    const char *name = t->comm[0] ? t->comm : t->block.name;
    if (name[0])
        tni_str_addf(s, " (%s)", name);
}

void tni_add_place(tni_str *s, const tni_seen *seen, const tni_seen_thread *t)
{
    const tni_flight_frame *f = innermost(t);
    const tni_flight_pass *pass = inner_pass(t);
    const tni_mark *code = tni_seen_code(t);
    const char *callout = tni_callout_name(t->block.marks.callout);
    char room[24];
    if (callout[0])
        tni_str_addf(s, "in %s%s", callout, f ? ", " : pass ? " of a backward pass" : "");
    if (f) {
        tni_str_addf(s, "%s of %s [", tni_frame_stage(f),
                     tni_seen_name(seen, TNI_NAME_OP, f->op, room));
        if (f->stage >= TNI_STAGE_CHECK)
            tni_add_key(s, seen, f->slot);
        tni_str_add(s, "]");
        if (f->stage >= TNI_STAGE_INVOKE) {
            tni_str_add(s, ", ");
            tni_add_kernel(s, seen, f);
        }
    } else if (pass && pass->running_name && !callout[0]) {
        tni_str_addf(s, "in node %s of a backward pass",
                     tni_seen_name(seen, TNI_NAME_NODE, pass->running_name, room));
    } else if (!callout[0]) {
        tni_str_add(s, code ? "outside of operators, in " : "outside of operators");
        tni_str_add(s, code ? code->text : "");
        return;
    }
    if (code && (!f || (f->stamp && code->since >= f->stamp)))
        tni_str_addf(s, ", in %s", code->text);
}

uint64_t tni_thread_since(const tni_seen_thread *t)
{
    if (waits(t) && t->block.marks.wait.since)
        return t->block.marks.wait.since;
    if (t->n_frames)
        return tni_frame_since(t, t->n_frames - 1);
    const tni_flight_pass *pass = inner_pass(t);
    const tni_mark *code = tni_seen_code(t);
    return code ? code->since : pass ? pass->began : 0;
}

/* @p before: what stands between it and the words before, when it is known. */
static void add_for(tni_str *s, const tni_seen *seen, const tni_seen_thread *t, const char *before)
{
    tni_add_for(s, seen, before[0] ? ", " : " ", tni_thread_since(t));
}

/* ---- judging ---- */

/* Note [Who sleeps beside those that cannot run]
 * Where more threads want to run than there are processors, one of them is often put aside while it
 * has a lock that has no mark: an allocator's, the system's own of the address space. Those who
 * want the lock sleep until it gets a processor again, which on a crowded machine is a second and
 * more. They look like threads in a deadlock. So a thread that sleeps and has not said for what is
 * not said to hang while another thread of the program could run and may not, unless it has slept
 * for so long that every thread must have had its turn. */

/* Follow who waits for whom from @p start; true when it comes back to it. */
static bool in_cycle(const tni_seen *seen, uint32_t start)
{
    int at = (int)start;
    for (uint32_t steps = 0; steps <= seen->n_threads; steps++) {
        if (!waits(&seen->threads[at]))
            return false;
        at = tni_find_holder(seen, &seen->threads[at]);
        if (at < 0)
            return false;
        if (at == (int)start)
            return true;
    }
    return false;
}

static void judge_deadlock(const tni_seen *seen, uint32_t start, tni_verdict *v)
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
            add_for(&v->text, seen, first, ",");
            tni_str_add(&v->next, "what runs inside a call or a pass must not wait for its end");
            return;
        }
        tni_str_add(&v->text, ", which it holds itself");
        add_for(&v->text, seen, first, ",");
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

static void judge_recursion(const tni_seen *seen, const tni_seen_thread *t, uint32_t period,
                            tni_verdict *v)
{
    char room[24];
    tni_add_thread(&v->text, t);
    tni_str_addf(&v->text, " nests dispatches %u deep in a cycle: ", t->depth);
    for (uint32_t i = 0; i <= period; i++) {
        const tni_flight_frame *f = &t->frames[t->n_frames - 1 - period + i];
        tni_str_addf(&v->text, "%s%s [", i ? " -> " : "",
                     tni_seen_name(seen, TNI_NAME_OP, f->op, room));
        tni_add_key(&v->text, seen, f->slot);
        tni_str_add(&v->text, "]");
    }
    tni_str_addf(&v->next,
                 "a kernel must go on with a redispatch to a lower key, not by calling its own "
                 "operator; the thread fails with RECURSION at depth %u",
                 t->block.limit);
}

static void judge_nested_passes(const tni_seen *seen, const tni_seen_thread *t, tni_verdict *v)
{
    char room[24];
    const tni_flight_pass *pass = &t->block.passes[TNI_FLIGHT_PASSES - 1];
    const tni_mark *code = tni_seen_code(t);
    tni_add_thread(&v->text, t);
    tni_str_addf(&v->text, " nests backward passes %u deep", t->block.n_passes);
    if (pass->id && pass->running_name)
        tni_str_addf(&v->text, ", in node %s",
                     tni_seen_name(seen, TNI_NAME_NODE, pass->running_name, room));
    if (code)
        tni_str_addf(&v->text, ", in %s", code->text);
    tni_str_add(&v->next, "a hook or a node of each pass starts the next: let it not begin a pass "
                          "through itself; at the end of the memory for stacks it fails with "
                          "RECURSION");
}

/* Others may want the processors too. */
static bool is_busy(const tni_seen_thread *t)
{
    return t->cpu > 0.5 || (t->state == 'R' && (t->cpu < 0 || t->cpu > 0.05));
}

static const char starved_next[] =
    "look again; fewer threads, or TENON_NUM_THREADS, if it stays so";

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

/* It looks for the lock every few milliseconds, and is often about to run when somebody asks. */
static bool only_looks_starved(const tni_seen_thread *t)
{
    return t->block.marks.wait.kind == TNI_WAIT_INTERPRETER;
}

static void judge_wait(const tni_seen *seen, const tni_seen_thread *t, tni_verdict *v)
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
    add_for(&v->text, seen, t, "");
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
    if (!holder) {
        tni_str_addf(&v->text, "; nobody that the record knows %s it",
                     wait->kind == TNI_WAIT_EVENT ? "brings" : "holds");
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
        tni_str_add(&v->next, starved_next);
        return;
    }
    if (wait->kind == TNI_WAIT_POOL) {
        tni_str_add(&v->text, " has not finished its part");
        if (holder->cpu >= 0)
            tni_str_add(&v->text, is_busy(holder) ? " and is busy" : " and sleeps");
        if (holder->cpu >= 0 && !is_busy(holder) && holder->wchan[0])
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

/* See Note [Who sleeps beside those that cannot run]. -1: @p t does not sleep because of that. */
static int find_crowded(const tni_seen *seen, const tni_seen_thread *t)
{
    const uint64_t long_ago = 10000000000u;
    uint64_t since = tni_thread_since(t);
    if (!t->alive || t->cpu < 0 || is_busy(t) || (since && seen->now > since + long_ago))
        return -1;
    for (uint32_t i = 0; i < seen->n_threads; i++) {
        if (&seen->threads[i] != t && seen->threads[i].crowded)
            return (int)i;
    }
    return -1;
}

const tni_seen_child *tni_find_child(const tni_seen *seen, const tni_seen_thread *t)
{
    uint32_t n = seen->n_children < TNI_SEEN_CHILDREN ? seen->n_children : TNI_SEEN_CHILDREN;
    if (!t->waits_for_child)
        return NULL;
    for (uint32_t i = 0; i < n; i++) {
        if (seen->children[i].pid == t->child)
            return &seen->children[i];
    }
    return n ? &seen->children[0] : NULL;
}

/* "the end of its child 4243 (worker)" */
static void judge_child(const tni_seen *seen, const tni_seen_thread *t, const tni_seen_child *child,
                        tni_verdict *v)
{
    bool certain = child->pid == t->child || seen->n_children == 1;
    tni_str_addf(&v->text, "; it waits for the end of %s %u (%s)",
                 certain ? "its child" : "a child, perhaps", child->pid, child->name);
    if (child->has_record)
        tni_str_addf(&v->next, "the child uses Tenon, too: tenon doctor %u", child->pid);
    else
        tni_str_addf(&v->next, "find out why %u does not end", child->pid);
}

/* "my::op with RECURSION" */
static void add_failure(tni_verdict *v, const tni_seen *seen, const tni_flight_frame *f)
{
    char room[24];
    tni_str_addf(&v->text, "%s with %s", tni_seen_name(seen, TNI_NAME_OP, f->op, room),
                 tn_status_name((tn_status)f->status));
    tni_str_add(&v->next, "a call that fails is made again and again: look at the error that it "
                          "returns");
}

/* Tenon's own kernels come back: they are there for good, what a program registers is not. */
static bool is_own_kernel(const tni_seen *seen, const tni_seen_thread *t)
{
    const tni_flight_frame *f = innermost(t);
    const tni_mark *code = tni_seen_code(t);
    if (!f || f->stage != TNI_STAGE_INSIDE || t->block.marks.callout ||
        (code && code->since >= tni_thread_since(t)))
        return false;
    const tni_flight_name *e = tni_seen_entry(seen, TNI_NAME_KERNEL, f->kernel);
    return e && !e->room;
}

/* ", on float32[3, 4], float32[4, 5]", of the innermost call that has them */
static void add_shapes(tni_str *s, const tni_seen *seen, const tni_seen_thread *t)
{
    uint32_t i = t->n_frames;
    while (i > 0 && !t->frames[i - 1].tensors)
        i--;
    bool first = true;
    for (int k = 0; i > 0 && k < TNI_FLIGHT_TENSORS; k++) {
        if (!(t->frames[i - 1].tensors & 1u << k))
            continue;
        tni_str_add(s, first ? ", on " : ", ");
        tni_add_tensor(s, seen, &t->frames[i - 1].tensor[k]);
        first = false;
    }
}

static const char computing_next[] = "nothing hangs so far: this kernel is Tenon's own; if it "
                                     "takes longer than these sizes explain, "
                                     "look again, or --native shows where";

/* By the place of the code that a text names: a file of Python's, or "<string>". */
static bool is_of_python(const char *text)
{
    return strstr(text, ".py:") || strstr(text, "(<");
}

/* Not moved, no mark says why: what the system knows decides. */
static void judge_stuck(const tni_seen *seen, const tni_seen_thread *t, tni_verdict *v)
{
    const tni_flight_frame *f = innermost(t);
    bool busy = is_busy(t), computes = busy && is_own_kernel(seen, t);
    v->kind = t->block.marks.callout             ? TNI_VERDICT_CALLOUT
              : !f && !inner_pass(t)             ? TNI_VERDICT_CALLOUT
              : f && f->stage < TNI_STAGE_INVOKE ? TNI_VERDICT_DISPATCHER
              : f && computes                    ? TNI_VERDICT_COMPUTING
              : f && busy                        ? TNI_VERDICT_SPINNING
              : f && t->alive                    ? TNI_VERDICT_BLOCKED
              : f                                ? TNI_VERDICT_KERNEL
                                                 : TNI_VERDICT_PASS;
    tni_add_thread(&v->text, t);
    tni_str_addf(&v->text, " %s", !t->alive ? "was at work" : busy ? "is busy" : "sleeps");
    if (t->alive && !busy && t->wchan[0])
        tni_str_addf(&v->text, " in %s", t->wchan);
    tni_str_add(&v->text, ", ");
    tni_add_place(&v->text, seen, t);
    if (computes)
        add_shapes(&v->text, seen, t);
    add_for(&v->text, seen, t, ",");
    if (t->cpu >= 0)
        tni_str_addf(&v->text, " (%.0f %% of a processor)", 100 * (t->cpu > 1 ? 1 : t->cpu));
    const tni_seen_child *child = busy ? NULL : tni_find_child(seen, t);
    if (child) {
        judge_child(seen, t, child, v);
        return;
    }
    if (!busy && tni_add_fork(v, seen, &t->sleep))
        return;
    const tni_flight_frame *last = tni_last_inside(t);
    if (last && last->status) {
        tni_str_add(&v->text, "; what it calls from there fails, ");
        add_failure(v, seen, last);
        return;
    }
    switch (v->kind) {
    case TNI_VERDICT_CALLOUT:
        if (!f && !t->block.marks.callout) {
            tni_str_add(&v->next, "look at that function: what it waits for is its own; py-spy "
                                  "dump, or --native, shows where");
            break;
        }
        tni_str_add(&v->next, "a hook or an observer must not wait for what comes after the call "
                              "that runs it; ");
        tni_str_add(&v->next, tni_seen_code(t)
                                  ? "py-spy dump, or --native, shows the line where it is"
                                  : "mark its waits with tn_wait_begin to see for what");
        break;
    case TNI_VERDICT_COMPUTING:
        tni_str_add(&v->next, computing_next);
        break;
    case TNI_VERDICT_SPINNING:
        tni_str_add(&v->next,
                    "look for a loop in that kernel; --native, or gdb -p, shows the line; "
                    "if it is only slow, look again: the time above then begins anew");
        break;
    case TNI_VERDICT_BLOCKED:
        tni_str_add(&v->next, "what the kernel waits for is not known: ");
        tni_str_add(&v->next, is_of_python(tni_str_get(&v->text))
                                  ? "py-spy dump, python -X faulthandler, or --native, shows the "
                                    "line where it is"
                                  : "--native shows where; mark its locks with tn_wait_begin and "
                                    "tn_hold_begin to see whose");
        break;
    default:
        tni_str_add(&v->next, t->alive ? "--native shows where"
                                       : "look at that kernel, and at the frames around it below");
    }
}

static bool is_stuck(const tni_seen_thread *t, bool two_looks)
{
    return (t->depth || inner_pass(t) || tni_seen_code(t)) && !(two_looks && t->moved);
}

bool tni_must_look_again(const tni_seen *seen, uint64_t ns)
{
    if (seen->process_state == 'X' || seen->process_state == 'Z')
        return false;
    for (uint32_t i = 0; i < seen->n_threads; i++) {
        const tni_seen_thread *t = &seen->threads[i];
        uint64_t since = tni_thread_since(t);
        bool starved = t->starved && !only_looks_starved(t);
        if ((is_stuck(t, true) || (waits(t) && !t->moved)) && !starved && t->alive &&
            (!since || seen->now < since + ns))
            return true;
    }
    return false;
}

/* All of its recent calls, and there are some. */
static bool all_failed(const tni_seen_thread *t)
{
    uint32_t n = 0;
    while (n < t->n_recent && t->frames[t->n_frames + n].status != TN_OK)
        n++;
    return n == t->n_recent && n >= 4;
}

/* It has moved. In an operator that is still the same one, only what it calls comes and goes. */
static void judge_progress(const tni_seen *seen, const tni_seen_thread *t, tni_verdict *v)
{
    const tni_flight_frame *last = tni_last_inside(t);
    char room[24];
    v->kind = TNI_VERDICT_PROGRESS;
    tni_add_thread(&v->text, t);
    tni_str_addf(&v->text, " makes progress: %llu outermost calls so far",
                 (unsigned long long)t->block.calls);
    if (all_failed(t)) {
        tni_str_addf(&v->text, ", and the last %u failed, ", t->n_recent);
        add_failure(v, seen, &t->frames[t->n_frames]);
        return;
    }
    if (t->depth && t->frames[0].stage >= TNI_STAGE_INVOKE && t->frames[0].stamp) {
        tni_str_addf(&v->text, "; in %s, ",
                     tni_seen_name(seen, TNI_NAME_OP, t->frames[0].op, room));
        tni_add_kernel(&v->text, seen, &t->frames[0]);
        tni_add_for(&v->text, seen, ", ", t->frames[0].stamp);
    }
    if (last && last->status) {
        tni_str_add(&v->text, "; the last call made there failed, ");
        add_failure(v, seen, last);
    } else {
        tni_str_add(&v->next, "nothing hangs; if it is slow, look again or profile");
    }
}

/* The finding about one thread. */
static tni_verdict_kind judge_thread(const tni_seen *seen, uint32_t i, bool two_looks,
                                     tni_verdict *v)
{
    const tni_seen_thread *t = &seen->threads[i];
    uint32_t period = t->depth >= TNI_SEEN_CYCLE_DEPTH ? tni_seen_cycle(t) : 0;
    v->tid = t->block.tid;
    bool stands = !(two_looks && t->moved);
    bool sleeps = is_stuck(t, two_looks) && !t->block.marks.is_worker && !is_busy(t);
    int other;
    if (waits(t) && stands && in_cycle(seen, i)) {
        v->kind = TNI_VERDICT_DEADLOCK;
        judge_deadlock(seen, i, v);
    } else if (period) {
        v->kind = TNI_VERDICT_RECURSION;
        judge_recursion(seen, t, period, v);
    } else if (t->block.n_passes >= TNI_SEEN_CYCLE_DEPTH) {
        v->kind = TNI_VERDICT_RECURSION;
        judge_nested_passes(seen, t, v);
    } else if (waits(t) && stands && (!t->starved || only_looks_starved(t))) {
        judge_wait(seen, t, v);
    } else if ((is_stuck(t, two_looks) || (waits(t) && stands)) && t->starved) {
        v->kind = TNI_VERDICT_STARVED;
        tni_add_thread(&v->text, t);
        tni_str_add(&v->text, " is ready to run, and others have the processors: ");
        tni_add_place(&v->text, seen, t);
        tni_str_add(&v->next, starved_next);
    } else if (sleeps && tni_sleeps_in_cycle(seen, t)) {
        (void)tni_judge_sleep(seen, t, v);
    } else if (is_stuck(t, two_looks) && (other = find_crowded(seen, t)) >= 0) {
        v->kind = TNI_VERDICT_STARVED;
        tni_add_thread(&v->text, t);
        tni_str_addf(&v->text, " sleeps%s%s, ", t->wchan[0] ? " in " : "", t->wchan);
        tni_add_place(&v->text, seen, t);
        add_for(&v->text, seen, t, ",");
        tni_str_add(&v->text, "; it may wait for ");
        tni_add_thread(&v->text, &seen->threads[other]);
        tni_str_add(&v->text, ", which is ready to run, and others have the processors");
        tni_str_add(&v->next, starved_next);
    } else if (sleeps && tni_judge_sleep(seen, t, v)) {
        v->tid = t->block.tid;
    } else if (is_stuck(t, two_looks) && !t->block.marks.is_worker) {
        judge_stuck(seen, t, v);
    } else if (two_looks && t->moved && (t->depth || t->block.calls)) {
        judge_progress(seen, t, v);
    } else if (t->alive && t->cpu >= 0 && is_busy(t)) {
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
    tni_str_add(&v->text, "idle: no thread is in an operator");
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
        return;
    }
    if (!seen->pid && seen->head.ended) {
        out->kind = TNI_VERDICT_ENDED;
        tni_str_add(&out->text, "the program came to its end, no call was open");
        tni_str_add(&out->next, "nothing: the recent calls of each thread are below");
    } else {
        judge_idle(seen, out);
    }
}
