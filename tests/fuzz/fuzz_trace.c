/* SPDX-License-Identifier: MIT */
/* tests/fuzz/fuzz_trace.c: any bytes as a trace for `tenon diagnose`, in pieces of any size.
 *
 * Whatever comes is read to its end; what is kept stays within its bounds, does not depend on where
 * the pieces were cut, and has a meaning. */
#include <stdlib.h>
#include <string.h>

#include "../../cli/trace_meaning.h"
#include "../../cli/trace_read.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MUST(condition)   \
    do {                  \
        if (!(condition)) \
            abort();      \
    } while (0)

static trace *read_in_pieces(const uint8_t *data, size_t size, size_t piece)
{
    trace *t = calloc(1, sizeof *t);
    MUST(t != NULL);
    for (size_t at = 0; at < size; at += piece)
        trace_feed(t, (const char *)data + at, size - at < piece ? size - at : piece);
    trace_finish(t);
    return t;
}

static bool ended(const char *text, size_t room)
{
    return memchr(text, '\0', room) != NULL;
}

static void check_thread(const trace *t, const trace_thread *thread)
{
    MUST(ended(thread->text, sizeof thread->text) && thread->line <= t->lines);
    MUST(thread->depth >= 0 && (unsigned)thread->stage < STAGES);
    for (int i = 0; i < thread->depth && i < TRACE_OPEN; i++) {
        const trace_call *c = &thread->open[i];
        MUST(ended(c->op, sizeof c->op) && ended(c->key, sizeof c->key));
        MUST(ended(c->kind, sizeof c->kind));
    }
    trace_meaning m = trace_means(t, thread);
    MUST(m.where && m.reading && m.check[0]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    trace *a = read_in_pieces(data, size, 65536), *b = read_in_pieces(data, size, 7);
    MUST(a->lines == b->lines && a->garbled == b->garbled && a->n_threads == b->n_threads);
    MUST(a->lines == a->stage_lines + a->dispatch_lines + a->other_lines);
    MUST(a->program == b->program && a->cut == b->cut);
    for (int i = 0; i < a->n_threads; i++) {
        check_thread(a, a->threads[i]);
        MUST(strcmp(a->threads[i]->text, b->threads[i]->text) == 0);
        MUST(a->threads[i]->depth == b->threads[i]->depth);
    }
    trace_free(a);
    trace_free(b);
    free(a);
    free(b);
    return 0;
}
