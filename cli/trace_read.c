/* SPDX-License-Identifier: MIT */
/* cli/trace_read.c: from lines to the state of each thread. */
#define _GNU_SOURCE /* strcasestr */
#include "trace_read.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "trace_line.h"

/* ---- pieces of a line ---- */

static const char *find(const char *text, const char *part)
{
    return strcasestr(text, part);
}

/* What follows @p part up to one of @p ends. False: it is not there. */
static bool field(const char *text, const char *part, const char *ends, char *out, size_t room)
{
    const char *at = strstr(text, part);
    if (!at)
        return false;
    at += strlen(part);
    size_t n = strcspn(at, ends);
    snprintf(out, room, "%.*s", (int)(n < room ? n : room - 1), at);
    return true;
}

/* ---- threads ---- */

static trace_thread *thread_of(trace *t, long id)
{
    for (int i = 0; i < t->n_threads; i++) {
        if (t->threads[i]->id == id) {
            t->current = i;
            return t->threads[i];
        }
    }
    if (t->n_threads == TRACE_THREADS) {
        t->too_many = true;
        return t->threads[t->current];
    }
    trace_thread *thread = calloc(1, sizeof *thread);
    if (!thread) {
        t->no_memory = true;
        return t->n_threads ? t->threads[t->current] : NULL;
    }
    thread->id = id;
    thread->mm_depth = -1;
    t->current = t->n_threads;
    t->threads[t->n_threads++] = thread;
    return thread;
}

static trace_thread *current(trace *t)
{
    return t->n_threads ? t->threads[t->current] : thread_of(t, 0);
}

static trace_call *innermost(trace_thread *thread)
{
    int n = thread->depth;
    return n > 0 && n <= TRACE_OPEN ? &thread->open[n - 1] : NULL;
}

const trace_call *trace_innermost(const trace_thread *thread)
{
    int n = thread->depth < TRACE_OPEN ? thread->depth : TRACE_OPEN;
    return n > 0 ? &thread->open[n - 1] : NULL;
}

bool trace_at_rest(const trace_thread *thread)
{
    /* A trace may begin in the middle: then no line says what is open, and the last one must. */
    bool is_over = thread->stage == STAGE_RETURNED || thread->stage == STAGE_MM_RETURNED;
    return thread->depth == 0 && thread->mm_depth < 0 && is_over;
}

static void pop(trace_thread *thread)
{
    if (thread->depth > 0)
        thread->depth--;
}

static trace_call *push(trace_thread *thread)
{
    if (thread->by_trace) { /* stage lines know more than the trace */
        thread->by_trace = false;
        thread->depth = 0;
    }
    thread->depth++;
    trace_call *call = innermost(thread);
    if (call)
        *call = (trace_call){.unboxed = -1};
    return call;
}

/* A call without a kernel, or one that was refused, prints no return: it is over with whatever line
 * comes next, be that of the kernel around it. */
static void drop_failed(trace_thread *thread)
{
    if (thread->failed)
        pop(thread);
    thread->failed = false;
}

static void take_text(trace *t, trace_thread *thread, trace_stage stage, const char *line)
{
    thread->stage = stage;
    thread->line = t->lines;
    snprintf(thread->text, sizeof thread->text, "%.*s", TRACE_TEXT - 1, line);
}

static void say(trace *t, trace_thread *thread, trace_stage stage, const char *line)
{
    trace_call *call = innermost(thread);
    take_text(t, thread, stage, line);
    if (call && stage != STAGE_REGISTERING)
        call->stage = stage;
    thread->failed = stage == STAGE_NO_KERNEL || stage == STAGE_REFUSED;
}

/* ---- which program ---- */

static void tell_program(trace *t, trace_program program, const char *why)
{
    /* The mark with Tenon's name beats everything. */
    if (t->program == PROGRAM_TENON || (t->program == program && t->why[0]))
        return;
    t->program = program;
    snprintf(t->why, sizeof t->why, "%s", why);
}

static bool take_mark(trace *t, const char *text)
{
    long process = 0, id = 0;
    char version[32] = "";
    if (sscanf(text, "version %31[^,], process %ld, thread %ld", version, &process, &id) != 3 ||
        id <= 0)
        return false;
    tell_program(t, PROGRAM_TENON, "its mark, [DEBUG TENON]");
    snprintf(t->version, sizeof t->version, "%s", version);
    t->process = process;
    (void)thread_of(t, id);
    return true;
}

static void look_for_marks(trace *t, const char *label, const char *text)
{
    static const struct {
        const char *label, *text;
        trace_program program;
    } marks[] = {
        {"Dispatcher::redispatch", "", PROGRAM_TENON},
        {"OperatorEntry::lookup", "No kernel, about to report it", PROGRAM_TENON},
        {"computeDispatchTableEntry", "Path 2.4", PROGRAM_TENON},
        {"", "Calling functor operator()", PROGRAM_PYTORCH},
        {"meta_mm", "", PROGRAM_PYTORCH},
    };
    char why[TRACE_TEXT];
    for (size_t i = 0; i < sizeof marks / sizeof marks[0]; i++) {
        if ((marks[i].label[0] && strcmp(label, marks[i].label) != 0) ||
            !strstr(text, marks[i].text))
            continue;
        snprintf(why, sizeof why, "a line that only %s prints: [%.60s] %.100s",
                 marks[i].program == PROGRAM_TENON ? "Tenon" : "it", label, marks[i].text);
        tell_program(t, marks[i].program, why);
    }
}

/* ---- stage lines ---- */

static void matmul_line(trace *t, trace_thread *thread, const char *text, const char *line)
{
    if (find(text, "RETURNED")) {
        if (thread->mm_depth >= 0 && thread->mm_depth < thread->depth)
            thread->depth = thread->mm_depth; /* what it called is over, whoever printed that */
        thread->mm_depth = -1;
        say(t, thread, STAGE_MM_RETURNED, line);
        return;
    }
    if (find(text, "about to call at::mm") || find(text, "calling at::mm")) {
        if (thread->mm_depth < 0)
            thread->mm_depth = thread->by_trace ? 0 : thread->depth;
    }
    /* What it prints about its operands is before the call, too. */
    take_text(t, thread, STAGE_BEFORE_MM, line);
}

static void dispatcher_line(trace *t, trace_thread *thread, const char *kind, const char *text,
                            const char *line)
{
    trace_call *call = innermost(thread);
    const char *kernel = find(text, "kernel.call");
    bool is_ahead = find(text, "about to") || find(text, "before") || find(text, "calling");
    if (kernel && find(kernel, "return")) { /* not: lookup() returned, about to call … */
        say(t, thread, STAGE_RETURNED, line);
        pop(thread);
    } else if (strncmp(text, "op=", 3) == 0) {
        call = push(thread);
        if (call) {
            snprintf(call->op, sizeof call->op, "%.*s", (int)strcspn(text + 3, " ,\r"), text + 3);
            snprintf(call->kind, sizeof call->kind, "%.*s", 23, kind);
        }
        say(t, thread, STAGE_ENTERED, line);
    } else if (kernel) {
        bool boxed = strncasecmp(kernel, "kernel.callBoxed", 16) == 0;
        say(t, thread,
            !boxed     ? STAGE_BEFORE_KERNEL
            : is_ahead ? STAGE_BEFORE_BOXED
                       : STAGE_IN_BOXED,
            line);
    } else if (find(text, "lookup")) {
        say(t, thread, is_ahead ? STAGE_BEFORE_LOOKUP : STAGE_CHECKED, line);
    } else if (find(text, "Refused")) {
        say(t, thread, STAGE_REFUSED, line);
    } else {
        say(t, thread, STAGE_ENTERED, line);
    }
}

static bool is_past_lookup(trace_stage stage)
{
    return stage == STAGE_BEFORE_KERNEL || stage == STAGE_BEFORE_BOXED || stage == STAGE_IN_BOXED ||
           stage == STAGE_PYTHON_META || stage == STAGE_META_ENTERED || stage == STAGE_META_DONE ||
           stage == STAGE_CPU_ENTERED;
}

static void lookup_line(trace *t, trace_thread *thread, const char *text, const char *line)
{
    trace_call *call = innermost(thread); /* none also when more are open than are kept */
    trace_stage before = call ? call->stage : thread->stage;
    if (strncmp(text, "op=", 3) == 0 && (thread->depth == 0 || is_past_lookup(before))) {
        /* A hop without a line of the dispatcher: the trace begins here, or it is PyTorch's
         * redispatch without boxes. */
        call = push(thread);
        if (call) {
            snprintf(call->op, sizeof call->op, "%.*s", (int)strcspn(text + 3, " ,\r"), text + 3);
            snprintf(call->kind, sizeof call->kind, "lookup");
        }
    }
    const char *unboxed = strstr(text, "isValidUnboxed=");
    if (unboxed && call)
        call->unboxed = unboxed[15] == '1';
    if (call)
        (void)field(text, "highest priority key=", " ,\r", call->key, sizeof call->key);
    if (strstr(text, "dispatch table index="))
        say(t, thread, STAGE_INDEX, line);
    else if (strstr(text, "isValid=") || find(text, "Returning kernel"))
        say(t, thread, STAGE_CHECKED, line);
    else if (find(text, "No kernel"))
        say(t, thread, STAGE_NO_KERNEL, line);
    else
        say(t, thread, STAGE_IN_LOOKUP, line);
}

static bool stage_line(trace *t, const char *label, const char *text, const char *line)
{
    if (strcmp(label, "TENON") == 0)
        return take_mark(t, text);
    look_for_marks(t, label, text);
    trace_thread *thread = current(t);
    if (!thread)
        return true;
    drop_failed(thread);
    static const char dispatcher[] = "Dispatcher::";
    if (strncmp(label, "_matmul_impl", 12) == 0)
        matmul_line(t, thread, text, line);
    else if (strncmp(label, dispatcher, sizeof dispatcher - 1) == 0)
        dispatcher_line(t, thread, label + sizeof dispatcher - 1, text, line);
    else if (strcmp(label, "OperatorEntry::lookup") == 0)
        lookup_line(t, thread, text, line);
    else if (strstr(label, "computeDispatchTableEntry"))
        say(t, thread, STAGE_REGISTERING, line);
    else if (strstr(label, "KernelFunction")) /* it has not called yet */
        say(t, thread, find(text, "RETURNED") ? STAGE_BOXED_RETURNED : STAGE_BEFORE_BOXED, line);
    else if (strstr(label, "BoxedKernel"))
        say(t, thread, find(text, "RETURNED") ? STAGE_BOXED_RETURNED : STAGE_IN_BOXED, line);
    else if (strstr(label, "meta_mm"))
        say(t, thread, STAGE_PYTHON_META, line);
    else if (strstr(label, "TORCH_META_FUNC"))
        say(t, thread, find(text, "complete") ? STAGE_META_DONE : STAGE_META_ENTERED, line);
    else if (strstr(label, "TORCH_IMPL_FUNC"))
        say(t, thread,
            find(text, "complete") || find(text, "failed") ? STAGE_CPU_DONE : STAGE_CPU_ENTERED,
            line);
    else if (strcmp(label, "DISPATCHER") == 0) /* in the trace, before the dispatcher's own lines */
        take_text(t, thread, STAGE_DISPATCHED, line);
    else if (strcmp(label, "drawing of the autograd layer") == 0)
        say(t, thread, STAGE_BEFORE_KERNEL, line);
    else if (strcmp(label, "drawing of the meta dispatch") == 0)
        say(t, thread, STAGE_BEFORE_BOXED, line);
    else
        return false;
    return true;
}

/* ---- the dispatch trace ---- */

/* " [call] op=[aten::mm], key=[AutogradMeta]": indented by its depth. */
static bool dispatch_line(trace *t, const char *line)
{
    const char *at = trace_dispatch_begin(line);
    trace_call call = {.stage = STAGE_DISPATCHED, .unboxed = -1};
    if (!at || !field(at, "[", "]", call.kind, sizeof call.kind) ||
        !field(at, "op=[", "]", call.op, sizeof call.op) ||
        !field(at, "key=[", "]", call.key, sizeof call.key))
        return false;
    size_t depth = 0;
    while (at - depth > line && at[-1 - (ptrdiff_t)depth] == ' ')
        depth++;
    trace_thread *thread = current(t);
    if (!thread)
        return true;
    if (thread->by_trace || thread->stage == STAGE_NONE) { /* else stage lines know more */
        int indent = depth < TRACE_OPEN ? (int)depth : TRACE_OPEN - 1;
        if (!thread->by_trace || indent < thread->indent)
            thread->indent = indent; /* of the outermost: 0 or 1 */
        int place = indent - thread->indent;
        place = place < thread->depth ? place : thread->depth; /* lines may be missing */
        thread->by_trace = true;
        thread->open[place] = call;
        thread->depth = place + 1;
    }
    take_text(t, thread, STAGE_DISPATCHED, at);
    return true;
}

/* ---- lines ---- */

/* "[DEBUG LABEL] text" at @p at. */
static void labelled_line(trace *t, const char *at, bool torn)
{
    char label[96];
    t->garbled += torn;
    if (strncmp(at, "[BoxedKernel", 12) == 0) {
        look_for_marks(t, "", at);
        trace_thread *thread = current(t);
        if (thread)
            say(t, thread, STAGE_IN_BOXED, at);
        return;
    }
    const char *end = strchr(at, ']');
    if (!end) {
        t->garbled++;
        return;
    }
    snprintf(label, sizeof label, "%.*s", (int)(end - at - 7 < 95 ? end - at - 7 : 95), at + 7);
    const char *text = end + 1 + strspn(end + 1, " ");
    if (!stage_line(t, label, text, at))
        t->garbled++;
}

/* A trace has labels or, as people copy the report's tables and drawings, it has none: with the
 * first label, what looked like a line before was a note about one. */
static void forget_bare_lines(trace *t)
{
    for (int i = 0; i < t->n_threads; i++)
        *t->threads[i] = (trace_thread){.id = t->threads[i]->id, .mm_depth = -1};
    t->other_lines += t->stage_lines;
    t->stage_lines = 0;
}

static void take_line(trace *t, char *line, size_t n)
{
    bool damaged, torn = false;
    t->lines++;
    (void)trace_clean(line, n, &damaged);
    t->garbled += damaged;
    const char *at = trace_stage_begin(line, &torn), *label;
    if (at || (trace_dispatch_begin(line) && !t->labelled)) {
        if (!t->labelled)
            forget_bare_lines(t);
        t->labelled = true;
    }
    if (at) {
        labelled_line(t, at, torn);
        t->stage_lines++;
    } else if (dispatch_line(t, line)) {
        t->dispatch_lines++;
    } else if (!t->labelled && (label = trace_bare_label(line))) {
        (void)stage_line(t, label, line + strspn(line, " \t"), line);
        t->stage_lines++;
    } else {
        t->other_lines++;
    }
}

void trace_feed(trace *t, const char *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (bytes[i] == '\n') {
            t->pending[t->n_pending] = '\0';
            take_line(t, t->pending, t->n_pending);
            t->garbled += t->overlong;
            t->n_pending = 0;
            t->overlong = false;
        } else if (t->n_pending < sizeof t->pending - 1) {
            t->pending[t->n_pending++] = bytes[i];
        } else {
            t->overlong = true;
        }
    }
}

void trace_finish(trace *t)
{
    if (t->n_pending) {
        t->cut = true;
        trace_feed(t, "\n", 1);
    }
    if (t->program == PROGRAM_UNKNOWN && t->stage_lines)
        tell_program(t, PROGRAM_PYTORCH, "stage lines without Tenon's mark");
}

void trace_free(trace *t)
{
    for (int i = 0; i < t->n_threads; i++)
        free(t->threads[i]);
    t->n_threads = 0;
}
