/* SPDX-License-Identifier: MIT */
/* observe/reader.h: reading a record, of this process or another, or of a program that ended.
 *
 * Everything comes through pread(2) into memory of the reader's own, every offset is checked
 * against the size of the file, every count against what there is room for: the bytes may be
 * hostile, and the program may be writing or dying. */
#ifndef TNI_OBSERVE_READER_H
#define TNI_OBSERVE_READER_H

#include "observe/flight.h"

enum {
    TNI_SEEN_OUTER = 32,  /* frames kept of a thread: the outermost … */
    TNI_SEEN_INNER = 224, /* … and the innermost */
    TNI_SEEN_RECENT = 8,  /* ended outermost calls, the newest first */
    TNI_SEEN_LAST = 4,    /* frames beyond the innermost */
    TNI_SEEN_CHILDREN = 8,
    TNI_SEEN_OTHERS = 16,      /* threads without a place in the record that are described */
    TNI_SEEN_CYCLE_DEPTH = 24, /* frames that repeat are a cycle from here on */
};

/* Among what a thread holds: a function that it is in, see tn_code_begin. */
enum { TNI_HELD_CODE = 16 };

/* A process that the one that is looked at has started. */
typedef struct tni_seen_child {
    uint32_t pid;
    bool has_record;  /* it uses Tenon, too */
    bool in_operator; /* and a thread of it is in an operator or a backward pass now */
    char name[32];
} tni_seen_child;

/* Whom a thread sleeps for, see Note [What lies at a futex] in sleepers.c. */
enum {
    TNI_SLEEP_OTHER = 0,   /* it does not sleep in a futex, or nobody may ask */
    TNI_SLEEP_FUTEX,       /* who would wake it is not known */
    TNI_SLEEP_LOST,        /* for a mutex of thread `of`, which is not there any more */
    TNI_SLEEP_ELSEWHERE,   /* for a mutex that thread `of` of another process has */
    TNI_SLEEP_LOCK,        /* for a mutex that thread `of` has */
    TNI_SLEEP_JOIN,        /* for the end of thread `of` */
    TNI_SLEEP_INTERPRETER, /* for a Python interpreter's lock, which thread `of` has */
};
typedef struct tni_sleep {
    uint32_t kind;
    uint32_t of;
    uint64_t at;
    uint64_t turn;     /* how often an interpreter's lock has changed hands */
    uint64_t runs;     /* how often the thread has been given a processor */
    bool for_good;     /* without a limit, where no other process can wake it */
    bool is_semaphore; /* as Python's locks, events, queues and joins are */
} tni_sleep;

/* A thread of the process that has no place in the record: it never called Tenon. */
typedef struct tni_seen_other {
    uint32_t tid;
    char state;
    char comm[16];
    char wchan[32];
    tni_sleep sleep;
} tni_seen_other;

typedef struct tni_seen_thread {
    tni_flight_thread block;
    uint32_t depth;    /* live frames */
    uint32_t n_frames; /* that are here: all, or the outermost and the innermost */
    uint32_t n_recent;
    tni_flight_frame *frames; /* owned; n_frames, then n_recent */
    /* Beyond the innermost frame: what was called there, has ended, and was called last. */
    tni_flight_frame last[TNI_SEEN_LAST];
    uint32_t n_last;
    uint32_t copy; /* of the library, from 0 */
    bool cut;      /* its calls, or the inner ones, are in a part of the file that is missing */
    bool torn;     /* it never stood still while it was copied */
    /* What the system says; of a live process alone. */
    bool alive;
    char state; /* R S D T t Z, 0: not known */
    char comm[16];
    char wchan[32];
    int64_t syscall;      /* -1: not known */
    bool waits_for_child; /* in waitpid or the like */
    uint32_t child;       /* for which; 0: any, or not known */
    tni_sleep sleep;
    uint64_t cpu_ns;
    uint64_t queued_ns; /* ready to run, and somebody else ran */
    /* Between two looks. */
    bool moved;
    bool wait_is_new; /* what it waits for is not what it waited for before */
    double cpu;       /* share of a processor; negative: not known */
    bool starved;     /* it is ready to run, and got next to no processor */
    bool crowded;     /* for a good part of the time it was ready, and others ran */
} tni_seen_thread;

typedef struct tni_seen {
    tni_flight_header head;
    tni_flight_name *names; /* owned */
    uint32_t n_names;
    char *text; /* owned; NUL-terminated at the end */
    uint32_t text_nbytes;
    tni_seen_thread *threads; /* owned */
    uint32_t n_threads;
    uint32_t n_copies; /* of the library that are told of */
    uint32_t n_unread; /* that are not */
    uint32_t n_lost;   /* threads that could not be read */
    uint32_t n_cut;    /* threads that are here without their calls, or the inner ones */
    bool lost_names;   /* some names are missing */
    uint64_t nbytes;   /* of the file; the header says how many there were */
    bool damaged;      /* something did not fit: what could be read is here */
    uint64_t now;      /* of the writer's clock; 0: not known */
    bool in_use;       /* a file that its program still writes */
    bool now_is_least; /* it is the last sign of life: when the program ended nobody knows */
    int pid;           /* 0: a file */
    char process_state;
    char process_wchan[32];                     /* of its first thread */
    bool is_python;                             /* the interpreter's library or command is mapped */
    uint32_t n_children;                        /* may be more than are described */
    tni_seen_child children[TNI_SEEN_CHILDREN]; /* those that have a record first */
    char process_name[32];
    bool knows_sleepers;  /* the system was asked for what follows, and for each thread's sleep */
    bool others_asleep;   /* for good, all of them, also those that are not described */
    uint64_t others_runs; /* how often they have been given a processor */
    /* Each thread sleeps for good and has not run between two looks: there was a moment when none
     * was left that could wake another. Only a signal can. */
    bool nobody_wakes;
    uint32_t n_others; /* may be more than are described */
    tni_seen_other others[TNI_SEEN_OTHERS];
    uint64_t ended_calls; /* since the look before, by threads that have ended */
} tni_seen;

/* Copy the record behind @p fd, or the threads alone, without names. @retval TN_INVALID  it is no
 * record; @retval TN_NOMEM */
TN_NODISCARD tn_status tni_seen_read(int fd, bool with_names, tni_seen *out);
void tni_seen_clear(tni_seen *seen);

/* Without what a terminal would obey: names may be anything. */
void tni_plain_text(char *text, size_t n);
/* The name of an address, or "0x…" written into @p room. Borrowed from @p seen. */
const char *tni_seen_name(const tni_seen *seen, int kind, uint64_t address, char room[24]);
/* Its entry, NULL when it has none; the texts of an entry are looked up with tni_seen_text. */
const tni_flight_name *tni_seen_entry(const tni_seen *seen, int kind, uint64_t address);
const char *tni_seen_text(const tni_seen *seen, uint32_t at);

/* The records of a process: one for each copy of the library in it. */
enum { TNI_PROCESS_RECORDS = 4 };
typedef struct tni_process_records {
    int n;
    int fd[TNI_PROCESS_RECORDS];
} tni_process_records;
/* Open them; at least one when it succeeds. @retval see tn_doctor_process */
TN_NODISCARD tn_status tni_process_open(int pid, tni_process_records *out);
void tni_process_close(tni_process_records *records);
/* Read all of them as one. @retval as tni_seen_read */
TN_NODISCARD tn_status tni_seen_read_all(const tni_process_records *records, tni_seen *out);
/* Ask the system about the threads of @p pid. */
void tni_process_look(int pid, tni_seen *seen);
/* The innermost function of the program's that the thread has said it is in; NULL: none. */
const tni_mark *tni_seen_code(const tni_seen_thread *t);
/* A call, not a redispatch. */
bool tni_is_call(const tni_flight_frame *f);
/* The call that the innermost frame made last and that has ended; NULL when it is not known to have
 * made one. A redispatch that was refused counts as one. */
const tni_flight_frame *tni_last_inside(const tni_seen_thread *t);
/* What is the same about sleepers since @p before: a sleep that has just begun tells nothing. */
void tni_compare_sleepers(const tni_seen *before, tni_seen *now);
/* What changed since @p before: fills in moved and cpu, and compares sleepers. */
void tni_seen_compare(const tni_seen *before, tni_seen *now, uint64_t ns_between);

#endif
