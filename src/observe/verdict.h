/* SPDX-License-Identifier: MIT */
/* observe/verdict.h: what is wrong, in a sentence, and what to try next. */
#ifndef TNI_OBSERVE_VERDICT_H
#define TNI_OBSERVE_VERDICT_H

#include "base/str.h"
#include "observe/reader.h"

/* From the gravest to the most harmless. The names are part of the JSON. */
#define TNI_VERDICT_LIST(X)                                                                   \
    X(ENDED, "ended")             /* the program is not there any more */                     \
    X(STOPPED, "stopped")         /* by a signal or a debugger */                             \
    X(DEADLOCK, "deadlock")       /* threads wait for each other, or one for itself */        \
    X(RECURSION, "recursion")     /* dispatches nest in a cycle */                            \
    X(INTERPRETER, "interpreter") /* waits for an interpreter's lock */                       \
    X(LOCK, "lock")               /* waits for a lock that another thread holds */            \
    X(POOL, "pool")               /* a parallel loop waits for a worker that does not come */ \
    X(CALLOUT, "callout")         /* blocked or busy in a hook or an observer */              \
    X(WAIT, "wait")               /* waits for something that it has named */                 \
    X(SPINNING, "spinning")       /* busy in one kernel, which does not come back */          \
    X(BLOCKED, "blocked")         /* asleep in one kernel */                                  \
    X(KERNEL, "kernel")           /* in a kernel when the record stopped */                   \
    X(DISPATCHER, "dispatcher")   /* in a stage of the dispatcher */                          \
    X(PASS, "pass")               /* in a node of a backward pass, outside of operators */    \
    X(COMPUTING, "computing")     /* busy in a kernel of Tenon's own: nothing hangs so far */ \
    X(PROGRESS, "progress")       /* calls come and go */                                     \
    X(STARVED, "starved")         /* could go on, and gets no processor */                    \
    X(BETWEEN, "between")         /* busy, but not in an operator */                          \
    X(IDLE, "idle")                                                                           \
    X(CUT, "cut") /* what a thread did is in a part of the record that is missing */

typedef enum tni_verdict_kind {
#define X(name, text) TNI_VERDICT_##name,
    TNI_VERDICT_LIST(X)
#undef X
} tni_verdict_kind;
const char *tni_verdict_name(tni_verdict_kind kind);

typedef struct tni_verdict {
    tni_verdict_kind kind;
    uint32_t tid; /* of the thread that it is about; 0: none */
    tni_str text; /* one sentence */
    tni_str next; /* what to try */
} tni_verdict;

/* @p two_looks: moved and cpu are filled in. */
void tni_judge(const tni_seen *seen, bool two_looks, tni_verdict *out);
void tni_verdict_clear(tni_verdict *verdict);
/* What is missing of a record that is cut or damaged: "the record is cut (…): …". */
void tni_add_missing(tni_str *s, const tni_seen *seen);
/* After two looks: a thread seems to hang, and what it is in began less than @p ns ago, or nobody
 * knows when. Only another look tells it from one that is slow. */
bool tni_must_look_again(const tni_seen *seen, uint64_t ns);

/* ---- words that the report uses too ---- */

const char *tni_stage_name(unsigned stage);
/* The same for a frame: a boxed call of a meta kernel is told as such. */
const char *tni_frame_stage(const tni_flight_frame *frame);
const char *tni_wait_name(unsigned kind);
const char *tni_callout_name(unsigned kind);
/* "lock 'model'" */
void tni_add_mark(tni_str *s, const tni_mark *mark);
/* "3.2 s" between then and now; "" when either is not known. */
void tni_add_age(tni_str *s, uint64_t now, uint64_t then);
/* @p before, then "for 3.2 s" since then; nothing when that is not known. */
void tni_add_for(tni_str *s, const tni_seen *seen, const char *before, uint64_t then);
/* "float32[2, 3] on cpu" */
void tni_add_tensor(tni_str *s, const tni_seen *seen, const tni_flight_tensor *t);
void tni_add_keys(tni_str *s, const tni_seen *seen, uint64_t keys);
void tni_add_key(tni_str *s, const tni_seen *seen, unsigned slot);
/* "kernel NAME (FILE:LINE)" */
void tni_add_kernel(tni_str *s, const tni_seen *seen, const tni_flight_frame *frame);
/* "thread 4242 (train)" */
void tni_add_thread(tni_str *s, const tni_seen_thread *t);
/* "inside the kernel of my::op (kernel slow, slow.c:3)" */
void tni_add_place(tni_str *s, const tni_seen *seen, const tni_seen_thread *t);
/* When what the thread is in or waits for began; 0: not known. */
uint64_t tni_thread_since(const tni_seen_thread *t);
/* When frame @p i of the thread began: its own stamp, or that of the nearest call around it. */
uint64_t tni_frame_since(const tni_seen_thread *t, uint32_t i);
/* Length of the cycle that the innermost frames run through, 0 when they do not repeat. */
uint32_t tni_seen_cycle(const tni_seen_thread *t);
/* The innermost call, and the innermost backward pass; NULL: it is in none. */
const tni_flight_frame *tni_innermost(const tni_seen_thread *t);
const tni_flight_pass *tni_inner_pass(const tni_seen_thread *t);
/* It has said that it waits, for the same thing as at the look before, and is no idle worker. */
bool tni_waits(const tni_seen_thread *t);
/* It runs. Others may want the processors too. */
bool tni_is_busy(const tni_seen_thread *t);

/* ---- verdict_wait.c: what threads have said that they wait for ---- */

/* The threads that keep @p waiting from going on: index into seen->threads, or -1. */
int tni_find_holder(const tni_seen *seen, const tni_seen_thread *waiting);
/* Follow who waits for whom from thread @p start; true when it comes back to it. */
bool tni_waits_in_cycle(const tni_seen *seen, uint32_t start);
void tni_judge_deadlock(const tni_seen *seen, uint32_t start, tni_verdict *v);
void tni_judge_wait(const tni_seen *seen, const tni_seen_thread *t, tni_verdict *v);
/* It looks for its lock every few milliseconds, and is often about to run when somebody asks. */
bool tni_only_looks_starved(const tni_seen_thread *t);
/* What to try where others have the processors. */
extern const char tni_starved_next[];

/* ---- verdict_stuck.c: what a thread is in ---- */

/* @p period: of the cycle that its frames run through */
void tni_judge_recursion(const tni_seen *seen, const tni_seen_thread *t, uint32_t period,
                         tni_verdict *v);
void tni_judge_nested_passes(const tni_seen *seen, const tni_seen_thread *t, tni_verdict *v);
/* Functions of the program's, such as forward of an autograd.Function, call themselves. */
bool tni_nests_code(const tni_seen_thread *t);
void tni_judge_nested_code(const tni_seen_thread *t, tni_verdict *v);
/* Not moved, no mark says why: what the system knows decides. */
void tni_judge_stuck(const tni_seen *seen, const tni_seen_thread *t, tni_verdict *v);
/* It has moved. In an operator that is still the same one, only what it calls comes and goes. */
void tni_judge_progress(const tni_seen *seen, const tni_seen_thread *t, tni_verdict *v);
/* The child that a thread sleeps for; NULL: it does not, or none is known. */
const tni_seen_child *tni_find_child(const tni_seen *seen, const tni_seen_thread *t);

/* ---- verdict_sleep.c: what is known by the sleep of a thread, without marks ---- */

/* A thread that does not move sleeps for a lock that another thread has, or for the end of one, or
 * nobody is left to wake it. False: nothing is known, and nothing was said. */
bool tni_judge_sleep(const tni_seen *seen, const tni_seen_thread *t, tni_verdict *v);
/* Whether those that @p t sleeps for sleep for @p t in the end. */
bool tni_sleeps_in_cycle(const tni_seen *seen, const tni_seen_thread *t);
/* Who has an interpreter's lock, what it does, and what to try. */
void tni_add_interpreter(tni_verdict *v, const tni_seen *seen, const tni_sleep *sleep);
/* @p t waits for an interpreter's lock, and who has it sleeps. */
bool tni_keeps_interpreter(const tni_seen *seen, const tni_seen_thread *t);
/* "; it holds the interpreter lock, for which 2 threads wait"; nothing where nobody does. */
void tni_add_kept(tni_str *s, const tni_seen *seen, const tni_seen_thread *t);
/* "; it sleeps at a semaphore; nobody can wake it but thread 4243 …": what is known of a sleep
 * without a holder and without a limit; nothing where nothing is. */
void tni_add_wakers(tni_str *s, const tni_seen *seen, const tni_seen_thread *t);
/* "a lock that thread 4243 holds"; nothing where it is not known. */
void tni_add_sleep(tni_str *s, const tni_seen *seen, const tni_seen_thread *t);
/* "; this is a child of fork() …", where a lock of a thread that is not here may be what @p sleep
 * is for; false when it cannot. */
bool tni_add_fork(tni_verdict *v, const tni_seen *seen, const tni_sleep *sleep);
/* The same of a process whose one thread sleeps outside of operators. */
bool tni_add_lonely_fork(tni_verdict *v, const tni_seen *seen);
/* "and 2 threads without Tenon, sleeping in futex_do_wait"; nothing where there are none. */
void tni_add_others(tni_str *s, const tni_seen *seen, const char *before);

#endif
