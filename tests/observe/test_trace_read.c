/* SPDX-License-Identifier: MIT */
/* tests/observe/test_trace_read.c: the reader of `tenon diagnose` when there is no memory: each
 * allocation fails in turn, and what could be read is there. Traces of any bytes: tests/fuzz. */
#define _GNU_SOURCE /* what the reader asks for */
#include <stdlib.h>
#include <string.h>

#include "harness/test.h"

static int until_failure; /* allocations that still succeed; negative: all do */

static void *scarce_calloc(size_t n, size_t size)
{
    if (until_failure == 0)
        return NULL;
    until_failure -= until_failure > 0;
    return calloc(n, size);
}

#define calloc scarce_calloc
#include "../../cli/trace_line.c"
#include "../../cli/trace_read.c"
#undef calloc

static const char three_threads[] = "[DEBUG TENON] version 0.1.0, process 10, thread 10\n"
                                    "[DEBUG Dispatcher::call] op=aten::mm\n"
                                    "[DEBUG TENON] version 0.1.0, process 10, thread 11\n"
                                    "[DEBUG Dispatcher::call] op=aten::add\n"
                                    "[DEBUG TENON] version 0.1.0, process 10, thread 12\n"
                                    "[DEBUG Dispatcher::call] op=aten::mul\n"
                                    "[DEBUG Dispatcher::call] About to call lookup()\n";

TEST(a_thread_for_which_there_is_no_memory_is_said_to_be_missing)
{
    for (int n = 0; n <= 3; n++) {
        trace t;
        memset(&t, 0, sizeof t);
        until_failure = n < 3 ? n : -1;
        trace_feed(&t, three_threads, sizeof three_threads - 1);
        trace_finish(&t);
        test_note("%d allocations", n);
        EXPECT_EQ_INT(t.lines, 7);
        EXPECT_EQ_INT(t.n_threads, n);
        EXPECT(t.no_memory == (n < 3));
        for (int i = 0; i < t.n_threads; i++)
            EXPECT(t.threads[i]->line > 0);
        trace_free(&t);
    }
}
