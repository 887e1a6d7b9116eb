/* SPDX-License-Identifier: MIT */
/* cli/trace_read.h: reads stage lines (TENON_DISPATCH_DEBUG, or an instrumented PyTorch's) and
 * lines of the dispatch trace, and keeps where each thread stood after the last of them.
 *
 * The bytes are foreign: any are taken, in pieces of any size, in bounded memory. What cannot be
 * read is counted. */
#ifndef CLI_TRACE_READ_H
#define CLI_TRACE_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where a call is, by the last line that it printed. */
typedef enum trace_stage {
    STAGE_NONE = 0,
    STAGE_BEFORE_MM,      /* _matmul_impl: about to call at::mm */
    STAGE_MM_RETURNED,    /* _matmul_impl: at::mm RETURNED! */
    STAGE_ENTERED,        /* Dispatcher::…: op=, dispatchKeySet= */
    STAGE_BEFORE_LOOKUP,  /* About to call lookup() */
    STAGE_IN_LOOKUP,      /* OperatorEntry::lookup: op=, highest priority key= */
    STAGE_INDEX,          /* dispatch table index=N */
    STAGE_CHECKED,        /* kernel.isValid=…; Returning kernel; lookup() returned */
    STAGE_NO_KERNEL,      /* about to report it */
    STAGE_REFUSED,        /* a redispatch that would loop */
    STAGE_BEFORE_KERNEL,  /* About to call kernel.call<>() */
    STAGE_BEFORE_BOXED,   /* about to call kernel.callBoxed() */
    STAGE_IN_BOXED,       /* BoxedKernel::callBoxed: About to invoke; the functor */
    STAGE_BOXED_RETURNED, /* …RETURNED of those */
    STAGE_META_ENTERED,   /* TORCH_META_FUNC(mm) */
    STAGE_PYTHON_META,    /* meta_mm: the Python kernel */
    STAGE_META_DONE,      /* Meta function complete */
    STAGE_CPU_ENTERED,    /* TORCH_IMPL_FUNC(mm_out_cpu) */
    STAGE_CPU_DONE,
    STAGE_RETURNED,    /* kernel… RETURNED */
    STAGE_REGISTERING, /* computeDispatchTableEntry… */
    STAGE_DISPATCHED,  /* a line of the dispatch trace, which knows no more */
    STAGES
} trace_stage;

enum { TRACE_OPEN = 96, TRACE_THREADS = 64, TRACE_TEXT = 240, TRACE_NAME = 96 };

/* A call that has begun and, as far as the lines say, not returned. */
typedef struct trace_call {
    char op[TRACE_NAME], key[64];
    char kind[24]; /* "call", "redispatchBoxed" … */
    trace_stage stage;
    int unboxed; /* isValidUnboxed: 0, 1; -1: not said */
} trace_call;

typedef struct trace_thread {
    long id; /* 0: the lines do not say whose they are */
    trace_call open[TRACE_OPEN];
    int depth;         /* of `open`; may be more than fit */
    bool failed;       /* the innermost ended in an error by the last line */
    int mm_depth;      /* `depth` before _matmul_impl called mm; -1: it does not wait */
    bool by_trace;     /* `open` is from the dispatch trace, which does not say what returned */
    int indent;        /* of its outermost lines */
    trace_stage stage; /* of the last line */
    uint64_t line;     /* its number, from 1; 0: none */
    char text[TRACE_TEXT];
} trace_thread;

typedef enum trace_program { PROGRAM_UNKNOWN = 0, PROGRAM_TENON, PROGRAM_PYTORCH } trace_program;

typedef struct trace {
    uint64_t lines, stage_lines, dispatch_lines, other_lines;
    uint64_t garbled; /* could not be read, or only from a later point on */
    bool labelled;    /* some line had its label: lines without one are notes */
    bool cut;         /* the last line has no end */
    bool too_many;    /* more threads than are kept apart */
    trace_program program;
    char why[TRACE_TEXT]; /* the mark by which it was told */
    char version[32];
    long process;
    trace_thread *threads[TRACE_THREADS]; /* in the order of their first line */
    int n_threads, current;
    bool no_memory;
    char pending[4096]; /* beginning of a line whose end has not come */
    size_t n_pending;
    bool overlong;
} trace;

void trace_feed(trace *t, const char *bytes, size_t n);
/* After the last piece. */
void trace_finish(trace *t);
void trace_free(trace *t);

/* No call of the thread is open: what it did last has returned. */
bool trace_at_rest(const trace_thread *thread);
/* The innermost call that is open, NULL when none is. */
const trace_call *trace_innermost(const trace_thread *thread);

#endif
