/* SPDX-License-Identifier: MIT */
/* cli/cmd_diagnose.c: `tenon diagnose`: reads a trace of a program that hangs and says where it
 * stands. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "json.h"
#include "term.h"
#include "trace_meaning.h"
#include "trace_read.h"
#include "trace_text.h"

static int run_diagnose(const command *self, int argc, char **argv);

const command command_diagnose = {
    .name = "diagnose",
    .usage = "FILE|- [--json]",
    .summary = "read a trace of a program that hangs, and say where it stands",
    .help = "FILE (- for standard input) has what a program printed: stage lines of\n"
            "TENON_DISPATCH_DEBUG, those of an instrumented PyTorch, lines of\n"
            "TENON_SHOW_DISPATCH_TRACE or TORCH_SHOW_DISPATCH_TRACE, with anything in between.\n\n"
            "For each thread that can be told apart you see the last line, the calls that had not\n"
            "returned, what that means, what the report of the hang would have said, and what to\n"
            "check next. Lines that cannot be read are counted.\n\n"
            "  --json    the same as JSON\n\n"
            "Exit status: 0, 1 when FILE cannot be read or has no such line, 2 for wrong usage.\n\n"
            "  TENON_DISPATCH_DEBUG=mm ./program 2>&1 | tee trace.txt    # then, when it hangs:\n"
            "  tenon diagnose trace.txt\n",
    .run = run_diagnose,
};

static const char *program_name(const trace *t)
{
    return t->program == PROGRAM_TENON     ? "Tenon"
           : t->program == PROGRAM_PYTORCH ? "an instrumented PyTorch"
                                           : "Tenon or PyTorch";
}

/* ---- text ---- */

/* @p text in lines of at most 90 columns, each after @p indent spaces; the first after @p head. */
static void print_wrapped(const char *head, const char *text)
{
    enum { WIDTH = 78, INDENT = 12 };
    printf("  %-*s", INDENT - 2, head);
    while (*text) {
        size_t n = strlen(text);
        if (n > WIDTH) {
            n = WIDTH;
            while (n > 0 && text[n] != ' ')
                n--;
            n = n ? n : WIDTH;
        }
        printf("%.*s\n", (int)n, text);
        text += n + strspn(text + n, " ");
        if (*text)
            printf("%*s", INDENT, "");
    }
}

static void print_open(const trace_thread *thread)
{
    int n = thread->depth < TRACE_OPEN ? thread->depth : TRACE_OPEN;
    int from = n > 12 ? n - 12 : 0;
    printf("  %-10s", thread->by_trace ? "last path" : "open");
    if (n == 0)
        printf("nothing that a line tells\n");
    if (from)
        printf("%d more, then\n", from + thread->depth - n);
    for (int i = from; i < n; i++) {
        const trace_call *c = &thread->open[i];
        printf("%*s%s%s%s%s%s%s\n", i == from && !from ? 2 * (i - from) : 12 + 2 * (i - from), "",
               c->op[0] ? c->op : "?", c->key[0] ? " [" : "", c->key, c->key[0] ? "]" : "",
               c->unboxed == 0 ? ", boxed only" : "", i + 1 < n ? " ->" : "");
    }
}

static void print_thread(const trace *t, const trace_thread *thread)
{
    styles st = term_styles(stdout);
    trace_meaning m = trace_means(t, thread);
    if (thread->id)
        printf("\n%sthread %ld%s\n", st.bold, thread->id, st.off);
    else
        printf("\n%sthe thread%s (the lines do not say which; several may be mixed)\n", st.bold,
               st.off);
    printf("  %-10sline %" PRIu64 ": %s\n", "last line", thread->line, thread->text);
    print_open(thread);
    printf("  %-10s%s%s%s\n", "stands", trace_at_rest(thread) ? st.good : st.bad, m.where, st.off);
    print_wrapped("means", m.reading);
    if (m.document)
        print_wrapped("report", m.document);
    for (int i = 0; i < 3 && m.check[i]; i++)
        print_wrapped(i ? "" : "check", m.check[i]);
}

static void print_text(const trace *t, const char *name)
{
    printf("%s: %" PRIu64 " lines: %" PRIu64 " of stages, %" PRIu64
           " of the dispatch trace, %" PRIu64 " others",
           name, t->lines, t->stage_lines, t->dispatch_lines, t->other_lines);
    if (t->garbled)
        printf(", %" PRIu64 " that could not be read in full", t->garbled);
    printf("%s\n", t->cut ? "; the last line is cut" : "");
    printf("written by %s", program_name(t));
    if (t->version[0])
        printf(" %s, process %ld", t->version, t->process);
    if (t->program == PROGRAM_UNKNOWN)
        printf(": the dispatch trace of both looks the same\n");
    else
        printf(" (told by %s)\n", t->why);
    for (int i = 0; i < t->n_threads; i++) {
        if (t->threads[i]->line)
            print_thread(t, t->threads[i]);
    }
    if (t->too_many)
        printf("\nMore than %d threads: the rest is mixed into the last.\n", TRACE_THREADS);
    if (t->no_memory)
        printf("there was no memory for some threads: their lines are among those of others\n");
}

/* ---- JSON ---- */

static void call_json(json *j, const trace_call *c)
{
    json_one_line(j);
    json_object(j);
    json_key(j, "operator");
    json_string(j, c->op);
    json_key(j, "key");
    json_string(j, c->key);
    json_key(j, "kind");
    json_string(j, c->kind);
    json_key(j, "boxed_only");
    if (c->unboxed < 0)
        json_null(j);
    else
        json_bool(j, c->unboxed == 0);
    json_object_end(j);
}

static void thread_json(json *j, const trace *t, const trace_thread *thread)
{
    trace_meaning m = trace_means(t, thread);
    json_object(j);
    json_key(j, "thread");
    if (thread->id)
        json_int(j, thread->id);
    else
        json_null(j);
    json_key(j, "line");
    json_uint(j, thread->line);
    json_key(j, "text");
    json_string(j, thread->text);
    json_key(j, "at_rest");
    json_bool(j, trace_at_rest(thread));
    json_key(j, "stands");
    json_string(j, m.where);
    json_key(j, "open");
    json_array(j);
    for (int i = 0; i < thread->depth && i < TRACE_OPEN; i++)
        call_json(j, &thread->open[i]);
    json_array_end(j);
    json_key(j, "means");
    json_string(j, m.reading);
    json_key(j, "report_says");
    if (m.document)
        json_string(j, m.document);
    else
        json_null(j);
    json_key(j, "check");
    json_array(j);
    for (int i = 0; i < 3 && m.check[i]; i++)
        json_string(j, m.check[i]);
    json_array_end(j);
    json_object_end(j);
}

static void print_json(const trace *t, const char *name)
{
    json j = JSON_TO(stdout);
    const struct {
        const char *key;
        uint64_t value;
    } counts[] = {{"lines", t->lines},
                  {"stage_lines", t->stage_lines},
                  {"dispatch_lines", t->dispatch_lines},
                  {"other_lines", t->other_lines},
                  {"garbled", t->garbled}};
    json_object(&j);
    json_key(&j, "file");
    json_string(&j, name);
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        json_key(&j, counts[i].key);
        json_uint(&j, counts[i].value);
    }
    json_key(&j, "cut");
    json_bool(&j, t->cut);
    json_key(&j, "program");
    json_string(&j, t->program == PROGRAM_TENON     ? "tenon"
                    : t->program == PROGRAM_PYTORCH ? "pytorch"
                                                    : "unknown");
    json_key(&j, "told_by");
    json_string(&j, t->why);
    json_key(&j, "version");
    json_string(&j, t->version);
    json_key(&j, "process");
    json_int(&j, t->process);
    json_key(&j, "threads");
    json_array(&j);
    for (int i = 0; i < t->n_threads; i++) {
        if (t->threads[i]->line)
            thread_json(&j, t, t->threads[i]);
    }
    json_array_end(&j);
    json_object_end(&j);
    json_finish(&j);
}

/* ---- the command ---- */

static int cannot_read(const command *self, const char *name, int why)
{
    fprintf(stderr, "tenon %s: cannot read %s: %s\n", self->name, name,
            why == EISDIR ? "it is a folder; which file in it?" : strerror(why));
    return EXIT_FAILED;
}

static void say_that_there_is_none(const command *self, const char *name, const trace *t,
                                   const char *looks_like)
{
    fprintf(stderr, "tenon %s: %s ", self->name, name);
    if (looks_like)
        fprintf(stderr, "is no trace: it is %s\n", looks_like);
    else
        fprintf(stderr,
                "has %" PRIu64
                " line%s, and none is a stage line or a line of the dispatch trace\n",
                t->lines, t->lines == 1 ? "" : "s");
}

static int run_diagnose(const command *self, int argc, char **argv)
{
    bool as_json = false;
    const option options[] = {{"--json", &as_json, NULL, false}};
    /* A lone dash is an operand. */
    int n = take_options(self, argc, argv, options, 1);
    if (n < 0)
        return EXIT_USAGE;
    if (n != 1)
        return usage_error(self, n ? "one file at a time" : "which file? - for standard input");
    bool standard = strcmp(argv[0], "-") == 0;
    FILE *file = standard ? stdin : fopen(argv[0], "rb");
    const char *name = standard ? "standard input" : argv[0], *looks_like = NULL;
    if (!file)
        return cannot_read(self, name, errno);
    trace *t = calloc(1, sizeof *t);
    bool whole = t && trace_read_file(file, t, &looks_like);
    int error = errno;
    if (!standard)
        fclose(file);
    if (!t)
        return cannot_read(self, name, ENOMEM);
    if (!whole)
        cannot_read(self, name, error);
    bool any = t->stage_lines + t->dispatch_lines > 0;
    if (as_json)
        print_json(t, name);
    else if (any)
        print_text(t, name);
    if (!any && whole)
        say_that_there_is_none(self, name, t, looks_like);
    trace_free(t);
    free(t);
    return any && whole ? EXIT_OK : EXIT_FAILED;
}
