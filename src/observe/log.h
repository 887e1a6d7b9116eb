/* SPDX-License-Identifier: MIT */
/* observe/log.h: recording of a profile: each thread writes what happens to it into a log of its
 * own, without a lock.
 *
 * Note [Who writes a log]
 * A log is written by its thread alone, and read by whoever takes a snapshot, at any moment. An
 * event is filled in, then published by the count of its chunk; what is known only at its end
 * (bytes, sequence number, status) is written before `end`, which is 0 until then. So a reader
 * takes the count, then `end`, and looks at the late fields only where `end` is set. Chunks are
 * freed by their thread, or when it is gone: a thread may be inside an event whenever somebody
 * stops the recording. A log belongs to one recording; its thread starts it anew when it meets
 * another. */
#ifndef TNI_OBSERVE_LOG_H
#define TNI_OBSERVE_LOG_H

#include <stdatomic.h>
#include "base/tally.h"
#include "tenon/profiler.h"

#define TNI_NO_SEQUENCE UINT64_MAX

/* Which kernel an event ran. */
typedef struct tni_prof_kernel {
    const char *name, *file;
    int line;
} tni_prof_kernel;

/* With the option memory. */
typedef struct tni_prof_memory {
    const int64_t *shapes;    /* of the event, for which there is no other place then */
    int64_t allocated, freed; /* the thread's counts at the start; late: what was added */
    int64_t live;             /* late: of all threads */
} tni_prof_memory;

/* A cache line: the dearest part of recording is new memory. Texts are valid as long as the log. */
typedef struct tni_prof_event {
    const char *name;
    const char *key;                       /* NULL: none */
    const tni_prof_kernel *_Atomic kernel; /* NULL: not asked for */
    union {
        const int64_t *shapes;   /* see tni_prof_put_shapes; NULL: not asked for */
        tni_prof_memory *memory; /* with the option memory; NULL: no room */
    } more;
    uint64_t start;       /* ticks */
    _Atomic uint64_t end; /* ticks; 0: it has not ended */
    uint64_t sequence;    /* late; TNI_NO_SEQUENCE: none */
    uint32_t parent;      /* number of the event around it, UINT32_MAX: none */
    uint16_t maker;       /* backward: log that made the node */
    uint8_t kind;         /* tn_profile_kind */
    uint8_t status;       /* late */
} tni_prof_event;
_Static_assert(sizeof(tni_prof_event) == 64, "an event is a cache line");

/* Somebody records: the branch that the layers above have for it. */
TNI_HIDDEN extern _Atomic bool tni_profiling;
#define tni_prof_on TNI_UNLIKELY(atomic_load_explicit(&tni_profiling, memory_order_relaxed))

/* What the running recording asks of this thread. */
typedef struct tni_prof_wants {
    bool stack, shapes, integers;
} tni_prof_wants;

#define TNI_NO_FRAME UINT32_MAX

/* Begin an event on this thread: fill in what tni_prof_begin leaves (key, kernel, shapes), then
 * tni_prof_go starts its clock. NULL: nothing is recorded, or there is no room. @p name must
 * outlive the log. @p frame: index of its dispatch frame, or TNI_NO_FRAME. A redispatch is begun
 * only when it is asked for. *wants, which may be NULL, says what else is. */
tni_prof_event *tni_prof_begin(tn_profile_kind kind, const char *name, uint32_t frame,
                               tni_prof_wants *wants);
void tni_prof_go(tni_prof_event *event);
/* The event of dispatch frame @p frame is answered by @p kernel, which may go before the log does.
 */
void tni_prof_set_kernel(uint32_t frame, const tni_prof_kernel *kernel);
/* End the innermost event of this kind of thing, and ranges that were left open inside it: the
 * event of dispatch frame @p frame. */
void tni_prof_end_frame(uint32_t frame, tn_status status);
/* End @p event and what was left open inside it. */
void tni_prof_end(tni_prof_event *event, tn_status status);

/* Between tni_prof_begin and tni_prof_go: a copy that lives as long as the log of the event; NULL:
 * no room. */
const char *tni_prof_text(const char *text);
/* The same of a kernel that may go before the log does. */
const tni_prof_kernel *tni_prof_keep_kernel(const tni_prof_kernel *kernel);
/* Shapes of an event that was begun: @p n numbers, which are for each tensor the address of its
 * dtype's name, its ndim and its sizes; then 0. */
void tni_prof_put_shapes(tni_prof_event *event, const int64_t *shapes, size_t n);

/* The innermost call of this thread made a node. Returns which log that is; 0: none. */
uint16_t tni_prof_made_node(uint64_t sequence);
/* A node has its turn; end it with tni_prof_end. The name is copied; @p maker is what
 * tni_prof_made_node returned. */
tni_prof_event *tni_prof_begin_node(const char *name, uint64_t sequence, uint16_t maker);

/* ---- the recording ---- */

typedef struct tni_prof_chunk {
    struct tni_prof_chunk *_Atomic next;
    _Atomic uint32_t n; /* published events */
    tni_prof_event events[255];
} tni_prof_chunk;

enum { TNI_PROF_MOST_OPEN = 2048, TNI_PROF_SHAPES = 64, TNI_PROF_KERNELS = 16 };

typedef struct tni_prof_log {
    struct tni_prof_log *next; /* in the list of logs; guarded by its lock */
    uint64_t recording;        /* that the events belong to; guarded, written by its thread */
    tni_prof_chunk *_Atomic first;
    tni_prof_chunk *last;
    struct tni_prof_arena *arena;
    uint32_t count; /* events */
    uint32_t depth; /* of `open` */
    _Atomic uint64_t dropped;
    int32_t thread; /* the system's number */
    uint16_t number;
    bool memory, stack, shapes, integers; /* what this recording asks for */
    bool muted;                           /* this recording leaves the thread out */
    bool gone;                            /* the thread has ended; guarded */
    char name[16];
    struct {
        const int64_t *numbers;
        size_t n;
    } known[TNI_PROF_SHAPES]; /* the same shapes come again and again: kept once */
    const tni_prof_kernel *kernels[TNI_PROF_KERNELS]; /* likewise */
    struct {
        tni_prof_event *event;
        uint32_t number, frame, unrecorded;
    } open[TNI_PROF_MOST_OPEN]; /* events that have not ended, outermost first */
} tni_prof_log;

/* When the recording began and what one tick is, for whoever reads. */
typedef struct tni_prof_clock {
    uint64_t first_tick, first_ns, last_tick, last_ns;
    uint64_t lost; /* events of threads that got no log */
} tni_prof_clock;

/* @retval TN_INVALID  one runs already */
TN_NODISCARD tn_status tni_prof_start(const tn_profiler_options *options);
/* Call fn(ctx, log) for each log of the recording, locked, then say what time it is. */
TN_NODISCARD tn_status tni_prof_visit(tn_status (*fn)(void *ctx, const tni_prof_log *log),
                                      void *ctx, tni_prof_clock *clock);
/* Forget the recording. @retval TN_INVALID  none runs */
TN_NODISCARD tn_status tni_prof_drop(void);

uint64_t tni_prof_ticks(void);

#endif
