/* SPDX-License-Identifier: MIT */
/* observe/verdict_stuck.c: the sentence about a thread by its own frames: nested in a cycle, not
 * moved though no mark says why, or at work. */
#include <string.h>

#include "observe/verdict.h"

void tni_judge_recursion(const tni_seen *seen, const tni_seen_thread *t, uint32_t period,
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

void tni_judge_nested_passes(const tni_seen *seen, const tni_seen_thread *t, tni_verdict *v)
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

/* How many functions there are before the outermost comes again; 0: it does not, or not always. */
static uint32_t code_period(const tni_seen_thread *t)
{
    const tni_mark *held = t->block.marks.held;
    for (uint32_t period = 1; period <= TNI_MARK_HELD / 2; period++) {
        uint32_t i = 0;
        while (i < TNI_MARK_HELD && held[i].kind == TNI_HELD_CODE &&
               (i < period || strcmp(held[i].text, held[i - period].text) == 0))
            i++;
        if (i == TNI_MARK_HELD)
            return period;
    }
    return 0;
}

bool tni_nests_code(const tni_seen_thread *t)
{
    return t->block.marks.n_held >= TNI_SEEN_CYCLE_DEPTH && code_period(t) != 0;
}

void tni_judge_nested_code(const tni_seen_thread *t, tni_verdict *v)
{
    uint32_t period = code_period(t);
    tni_add_thread(&v->text, t);
    tni_str_add(&v->text, " nests ");
    for (uint32_t i = 0; i < period; i++)
        tni_str_addf(&v->text, "%s%s", i ? " -> " : "", t->block.marks.held[i].text);
    tni_str_addf(&v->text, " %u deep", t->block.marks.n_held);
    tni_str_add(&v->next, "the function calls itself, by way of apply or of a hook: look for what "
                          "should end that");
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
    if (!tni_is_call(f)) {
        tni_str_addf(&v->text, "; %s to %s [",
                     v->kind == TNI_VERDICT_RECURSION ? "it redispatches again and again"
                                                      : "its last redispatch was",
                     tni_seen_name(seen, TNI_NAME_OP, f->op, room));
        tni_add_key(&v->text, seen, f->slot);
        tni_str_add(&v->text, "], which is refused: the key does not get lower");
        tni_str_add(&v->next, "a kernel must go on with a redispatch to a lower key: pass "
                              "tn_call_keys(call) & tn_keyset_full_after(own key)");
        return;
    }
    tni_str_addf(&v->text, "%s with %s", tni_seen_name(seen, TNI_NAME_OP, f->op, room),
                 tn_status_name((tn_status)f->status));
    tni_str_add(&v->next, "a call that fails is made again and again: look at the error that it "
                          "returns");
}

/* Tenon's own kernels come back: they are there for good, what a program registers is not. */
static bool is_own_kernel(const tni_seen *seen, const tni_seen_thread *t)
{
    const tni_flight_frame *f = tni_innermost(t);
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

void tni_judge_stuck(const tni_seen *seen, const tni_seen_thread *t, tni_verdict *v)
{
    const tni_flight_frame *f = tni_innermost(t);
    bool busy = tni_is_busy(t), computes = busy && is_own_kernel(seen, t);
    v->kind = t->block.marks.callout             ? TNI_VERDICT_CALLOUT
              : !f && !tni_inner_pass(t)         ? TNI_VERDICT_CALLOUT
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
    tni_add_for(&v->text, seen, ", ", tni_thread_since(t));
    if (t->cpu >= 0)
        tni_str_addf(&v->text, " (%.0f %% of a processor)", 100 * (t->cpu > 1 ? 1 : t->cpu));
    if (!busy && t->alive)
        tni_add_wakers(&v->text, seen, t);
    tni_add_kept(&v->text, seen, t);
    const tni_seen_child *child = busy ? NULL : tni_find_child(seen, t);
    if (child) {
        judge_child(seen, t, child, v);
        return;
    }
    if (!busy && tni_add_fork(v, seen, &t->sleep))
        return;
    const tni_flight_frame *last = tni_last_inside(t);
    if (last && last->status) {
        if (tni_is_call(last))
            tni_str_add(&v->text, "; what it calls from there fails, ");
        else
            v->kind = TNI_VERDICT_RECURSION;
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
        tni_str_addf(&v->next,
                     "look for a loop in that kernel; %s, shows the line; "
                     "if it is only slow, look again: the time above then begins anew",
                     is_of_python(tni_str_get(&v->text)) ? "py-spy dump, or --native"
                                                         : "--native, or gdb -p");
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
        tni_str_add(&v->next, t->alive && is_of_python(tni_str_get(&v->text))
                                  ? "py-spy dump, or --native, shows the line where it is"
                              : t->alive
                                  ? "--native shows where"
                                  : "look at that kernel, and at the frames around it below");
    }
}

/* All of its recent calls, and there are some. */
static bool all_failed(const tni_seen_thread *t)
{
    uint32_t n = 0;
    while (n < t->n_recent && t->frames[t->n_frames + n].status != TN_OK)
        n++;
    return n == t->n_recent && n >= 4;
}

void tni_judge_progress(const tni_seen *seen, const tni_seen_thread *t, tni_verdict *v)
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
        tni_str_add(&v->text, tni_is_call(last) ? "; the last call made there failed, " : "");
        add_failure(v, seen, last);
    } else {
        tni_str_add(&v->next, "nothing hangs; if it is slow, look again or profile");
    }
}

/* The finding about one thread. */
