/* SPDX-License-Identifier: MIT */
/**
 * @file  tenon/recorder.h
 * @brief Where every call is: the flight recorder, the doctor, the watchdog.
 *
 * Each thread keeps its dispatch frames in memory that another process of the same user can read
 * while the program runs (`tenon doctor PID`), and a file can outlive the program (TENON_RECORD).
 * On by default; TENON_RECORDER=0 leaves it away.
 */
#ifndef TN_RECORDER_H
#define TN_RECORDER_H

#include "tenon/base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- the recorder ---- */

/** True while calls are stamped and described. */
TN_API bool tn_recorder_on(void);
/** Stop describing calls, or go on. Frames and stages are always there; without stamps and shapes.
 *  @retval TN_UNSUPPORTED  there is no record: TENON_RECORDER=0, or the system gave no memory */
TN_API TN_NODISCARD tn_status tn_recorder_set(bool on);
/** Write the record as it is now to @p path, for `tenon doctor FILE`. A file of that name is
 *  replaced when all is written.
 *  @retval TN_INVALID  @p path is the program's own live record, or cannot be written
 *  @retval TN_UNSUPPORTED  there is no record */
TN_API TN_NODISCARD tn_status tn_recorder_save(const char *path);

/* ---- marks: what a thread waits for and holds ---- */

/** What a thread waits for or holds. */
typedef enum tn_wait_kind {
    TN_WAIT_LOCK = 1,        /**< a mutex; `what` is its address */
    TN_WAIT_INTERPRETER = 6, /**< an interpreter's lock; `what` is NULL or the interpreter */
    TN_WAIT_THREAD = 7,      /**< the end of another thread; `what` is its number (gettid) */
    TN_WAIT_EVENT = 8        /**< a condition, a message, a device */
} tn_wait_kind;

/** This thread is about to wait. @p name (at most 39 characters are kept) is for people; @p what
 *  tells who holds it: the doctor finds the thread that has a hold of the same kind and `what`.
 * Cheap: some stores, and for TN_WAIT_INTERPRETER no look at the clock. Ends with the next
 * tn_wait_end. */
TN_API void tn_wait_begin(tn_wait_kind kind, const void *what, const char *name);
TN_API void tn_wait_end(void);
/** This thread has got it, and gives it back. Holds nest; eight are named. */
TN_API void tn_hold_begin(tn_wait_kind kind, const void *what, const char *name);
TN_API void tn_hold_end(tn_wait_kind kind, const void *what);

/** This thread is in a function of the program's that the library calls outside of operators, such
 * as one of a binding's users: the doctor says that it is there, and the watchdog watches it. @p
 * text
 *  ("step (train.py:12)", at most 39 characters are kept) is for people. They nest; the end names
 * the same text, by its address. */
TN_API void tn_code_begin(const char *text);
TN_API void tn_code_end(const char *text);

/* ---- the doctor ---- */

/** How a report is written. */
typedef struct tn_doctor_opts {
    uint32_t size; /**< sizeof(tn_doctor_opts) */
    bool json;
    bool verdict_only;    /**< one line and what to try */
    uint32_t interval_ms; /**< between two looks at a live process; 0: 150. What seems to hang is
                           looked at for up to six of them */
} tn_doctor_opts;
/* clang-format off */
#define TN_DOCTOR_OPTS_INIT {sizeof(tn_doctor_opts), false, false, 0}
/* clang-format on */

/**
 * Look at another process (or at this one) and say where its threads are and what is wrong.
 *
 * @retval TN_INVALID      there is no such process, it ended while it was read, or it is none that
 *                         uses Tenon; the message says which
 * @retval TN_UNSUPPORTED  it belongs to another user, or may not be read
 */
TN_API TN_NODISCARD tn_status tn_doctor_process(int pid, const tn_doctor_opts *opts,
                                                TN_OWNED char **out);
/** The same for a record in a file: TENON_RECORD, tn_recorder_save. What can be read of a cut or
 *  damaged file is reported. */
TN_API TN_NODISCARD tn_status tn_doctor_file(const char *path, const tn_doctor_opts *opts,
                                             TN_OWNED char **out);

/* ---- the watchdog ---- */

typedef enum tn_hang_action {
    TN_HANG_REPORT = 0, /**< write the report, carry on */
    TN_HANG_RAISE = 1,  /**< and let the stuck call fail with TN_TIMEOUT where that is possible: in
                             waits of the library, between the nodes of a backward pass, at the
                             next dispatch inside of it. A call that comes back by itself is not
                             stopped, nor is any later one */
    TN_HANG_END = 2     /**< and end the process (exit status 124, also when the program exits by
                             itself meanwhile), saving the record if there is a path for it */
} tn_hang_action;

typedef struct tn_watchdog_opts {
    uint32_t size; /**< sizeof(tn_watchdog_opts) */
    tn_hang_action action;
    double seconds; /**< a frame that has not moved for so long is reported, once */
    /** Gets the report instead of stderr; called on the watchdog's thread. May be NULL. With
     *  TN_HANG_RAISE and TN_HANG_END the native stacks come as a second text. */
    void (*report)(void *ctx, const char *text);
    void *ctx;
    const char *save_path; /**< where TN_HANG_END leaves the record; NULL: nowhere. %p in it becomes
                                the number of the process */
    /** TN_HANG_REPORT: also native stacks. The threads get a signal (SIGURG) for that, and a system
     *  call that they sleep in may fail with EINTR; the other actions always do it. */
    bool native;
} tn_watchdog_opts;
/* clang-format off */
#define TN_WATCHDOG_OPTS_INIT {sizeof(tn_watchdog_opts), TN_HANG_REPORT, 5.0, NULL, NULL, NULL, false}
/* clang-format on */

/** Start watching, as TENON_HANG_TIMEOUT=SECONDS, TENON_HANG_ACTION=report|raise|end and
 *  TENON_HANG_NATIVE=1 do. It is a
 *  thread of its own; callers pay nothing. Replaces a watchdog that runs. A child made by fork()
 *  starts its own when it first dispatches.
 *  @retval TN_VALUE, TN_UNSUPPORTED, TN_NOMEM */
TN_API TN_NODISCARD tn_status tn_watchdog_start(const tn_watchdog_opts *opts);
/** Stop it and wait until it has. */
TN_API void tn_watchdog_stop(void);

#ifdef __cplusplus
}
#endif
#endif
