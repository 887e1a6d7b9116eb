/* SPDX-License-Identifier: MIT */
/**
 * @file  tenon/profiler.h
 * @brief What ran, when, for how long, on what, and what it allocated: on every thread.
 *
 *     must(tn_profiler_start(NULL));
 *     …                                        // operators, backward passes, ranges of your own
 *     tn_profile *p;
 *     must(tn_profiler_stop(&p));
 *     must(tn_profile_write(p, "run.html"));
 *     tn_profile_free(p);
 *
 * In a program that you do not want to change: TENON_PROFILE=run.html,shapes,memory,stack, or
 * `tenon profile`. One recording runs at a time, for the whole process. Recording costs some tens
 * of nanoseconds an event; what is recorded is kept in memory up to a limit, and what comes after
 * that is counted and dropped. Threads: every function may be called from any thread, also while
 * others compute.
 */
#ifndef TN_PROFILER_H
#define TN_PROFILER_H

#include "tenon/base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- recording ---- */

typedef struct tn_profiler_options {
    uint32_t size; /**< sizeof(tn_profiler_options) */
    bool shapes;   /**< dtype and sizes of every tensor argument */
    bool integers; /**< with shapes: integers and lists of them among the arguments too, as
                      "int[2, 2]" behind the tensors; one alone is a list of one */
    bool memory;   /**< bytes of tensor data that each event allocated and freed */
    bool stack;    /**< each redispatch is an event of its own, with the kernel that it reached */
    bool this_thread_only; /**< leave out all threads but the one that starts */
    size_t max_bytes; /**< for what is recorded, 64 bytes an event and more with options; 0: 256
                         MiB */
} tn_profiler_options;

#define TN_PROFILER_OPTIONS_INIT                                                  \
    {                                                                             \
        sizeof(tn_profiler_options), false, false, false, false, false, (size_t)0 \
    }

/**
 * Begin to record.
 * @param options  NULL: none of them
 * @retval TN_INVALID  a recording runs already, or an option is malformed
 */
TN_API TN_NODISCARD tn_status tn_profiler_start(const tn_profiler_options *options);
TN_API bool tn_profiler_running(void);

typedef struct tn_profile tn_profile;

/** End the recording. @param out NULL: throw it away, which cannot run out of memory
 *  @retval TN_INVALID  none runs
 *  @retval TN_NOMEM    it goes on, and nothing of it is lost */
TN_API TN_NODISCARD tn_status tn_profiler_stop(TN_OWNED tn_profile **out);
/** What was recorded so far; the recording goes on. Calls that have not returned are in it, marked
 *  as unfinished. */
TN_API TN_NODISCARD tn_status tn_profiler_snapshot(TN_OWNED tn_profile **out);
TN_API void tn_profile_free(TN_STOLEN tn_profile *profile);

/** A range of your own on this thread, around whatever runs until its end. @p name is copied. They
 *  nest, with operators too: one that is left open ends with the operator that it began in. Does
 *  nothing while nothing is recorded. @retval TN_INVALID  @p name is NULL */
TN_API TN_NODISCARD tn_status tn_profiler_range_begin(const char *name);
/** End the innermost one. @retval TN_INVALID  a recording runs, and no range is innermost here */
TN_API TN_NODISCARD tn_status tn_profiler_range_end(void);

/* ---- what was recorded ---- */

typedef enum tn_profile_kind {
    TN_PROFILE_CALL = 0,   /**< a call of an operator */
    TN_PROFILE_REDISPATCH, /**< from one of its kernels to the next; option `stack` */
    TN_PROFILE_BACKWARD,   /**< a node of the gradient graph has its turn */
    TN_PROFILE_RANGE       /**< tn_profiler_range_begin */
} tn_profile_kind;

/** Texts belong to the profile. */
typedef struct tn_profile_event {
    uint32_t size; /**< sizeof(tn_profile_event) */
    tn_profile_kind kind;
    const char *name;     /**< "aten::mm", "MmBackward0", or a range's */
    const char *key;      /**< dispatch key; "" when there is none */
    const char *kernel;   /**< with option `stack`: which it ran, and who registered it; else "" */
    const char *shapes;   /**< "float32[8, 16], float32[16, 16]"; "" without the option */
    uint64_t start_ns;    /**< since the recording began */
    uint64_t duration_ns; /**< until the snapshot when it is unfinished */
    uint64_t self_ns;     /**< without the events inside it */
    uint32_t thread;      /**< for tn_profile_thread */
    int32_t depth;        /**< 0: outermost on its thread */
    int64_t parent;       /**< the event around it, -1: none */
    int64_t sequence;     /**< of the node that it made or, backward, that it is; -1: none */
    int64_t forward;      /**< backward: the event that made the node, -1: not recorded */
    int64_t allocated, freed; /**< bytes, events inside included */
    tn_status status;         /**< what a call returned */
    bool unfinished;
} tn_profile_event;

TN_API size_t tn_profile_num_events(const tn_profile *profile);
/** Events of a thread follow each other, in the order in which they began: a parent comes before
 *  what is inside it. @param out  set out->size first @retval TN_INDEX */
TN_API TN_NODISCARD tn_status tn_profile_get_event(const tn_profile *profile, size_t i,
                                                   tn_profile_event *out);

typedef struct tn_profile_thread {
    uint32_t size;
    int32_t id; /**< of the system */
    const char *name;
    size_t events;
    uint64_t dropped; /**< events that did not fit */
} tn_profile_thread;

TN_API size_t tn_profile_num_threads(const tn_profile *profile);
TN_API TN_NODISCARD tn_status tn_profile_get_thread(const tn_profile *profile, size_t i,
                                                    tn_profile_thread *out);
/** Events that did not fit, of all threads. */
TN_API uint64_t tn_profile_dropped(const tn_profile *profile);
/** From the start of the recording to its end. */
TN_API uint64_t tn_profile_duration_ns(const tn_profile *profile);

/** All events of one name. */
typedef struct tn_profile_average {
    uint32_t size;
    tn_profile_kind kind; /**< TN_PROFILE_CALL, _BACKWARD or _RANGE */
    const char *name;
    uint64_t calls;                   /**< redispatches do not count */
    uint64_t self_ns;                 /**< without what is inside */
    uint64_t total_ns;                /**< one inside another of the same name counts once */
    uint64_t min_ns, max_ns, mean_ns; /**< of one call */
    int64_t allocated, freed;         /**< bytes, without what is inside */
} tn_profile_average;

TN_API size_t tn_profile_num_averages(const tn_profile *profile);
/** The one with the most time of its own first. */
TN_API TN_NODISCARD tn_status tn_profile_get_average(const tn_profile *profile, size_t i,
                                                     tn_profile_average *out);

/* ---- showing it ---- */

/** A table of at most @p rows names, by time of their own; 0: all. Free with tn_string_free. */
TN_API TN_NODISCARD tn_status tn_profile_table(const tn_profile *profile, size_t rows,
                                               TN_OWNED char **out);
/** A Chrome trace in the words of PyTorch's, for tools that look for them: operators are "cpu_op"
 *  and go without their overloads, ranges are "user_annotation", shapes are also "Input Dims".
 *  @param more  members of JSON for its outermost object, such as "\"job\": 7"; put in as they
 *               are. NULL or "": none
 *  @param out   free with tn_string_free */
TN_API TN_NODISCARD tn_status tn_profile_trace(const tn_profile *profile, const char *more,
                                               TN_OWNED char **out);
/**
 * Write a file, by the ending of its name: `.json`, a Chrome trace, which Perfetto opens, with
 * arrows from the calls that made nodes to their turns in the backward pass; `.html`, a page that
 * needs nothing else: timeline, operators, dispatch tree (of the longest 200000 events when there
 * are more, and it says so); `.txt`, the table. An older file is replaced when all is written.
 * @retval TN_VALUE    another ending
 * @retval TN_INVALID  it cannot be written; the message says why
 */
TN_API TN_NODISCARD tn_status tn_profile_write(const tn_profile *profile, const char *path);

#ifdef __cplusplus
}
#endif
#endif
