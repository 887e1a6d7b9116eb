/* SPDX-License-Identifier: MIT */
/* cli/trace_meaning.h: what it means when a stage's line is the last one, and what to check. */
#ifndef CLI_TRACE_MEANING_H
#define CLI_TRACE_MEANING_H

#include "trace_read.h"

typedef struct trace_meaning {
    const char *where;    /* "in lookup" */
    const char *document; /* what the report's own table says of such a last line; NULL: nothing */
    const char *reading;  /* how to read it, for the program that wrote the trace */
    const char *check[3]; /* what to try next; NULL where there is no more */
} trace_meaning;

/* For a thread that is not at rest, and for one that is. */
trace_meaning trace_means(const trace *t, const trace_thread *thread);

#endif
