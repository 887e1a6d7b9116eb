/* SPDX-License-Identifier: MIT */
/* observe/flight.h: the flight recorder: the memory that another process reads, and its writers.
 *
 * Note [The record]
 * One mapping of a memfd (or of the file that TENON_RECORD names) holds, for each thread, its
 * dispatch frames, its marks and its backward passes; and the names of what these point to. Another
 * process of the same user opens it as /proc/PID/fd/N and reads it: the program is not stopped, and
 * does not know. Nothing in it is a pointer that a reader follows: offsets are counted from the
 * beginning, and addresses are looked up in the table of names.
 *
 * A thread's block belongs to that thread alone and is written with plain stores, in an order that
 * never shows something half written (see TNI_STAGE_…). Readers copy a block until two copies
 * agree. What several threads write (the directory, the names) is written under one lock and
 * published by one store.
 *
 * The mapping is larger than the file behind it: the file grows as threads come. In a child made by
 * fork() the same addresses get a file of their own, see tni_flight_forked.
 *
 * Where there is no mapping to be had, blocks come from the heap: everything works, and nobody else
 * can read it. */
#ifndef TNI_OBSERVE_FLIGHT_H
#define TNI_OBSERVE_FLIGHT_H

#include "base/mark.h"

#define TNI_FLIGHT_MAGIC   "TENONREC"
#define TNI_FLIGHT_NAME    "tenon-record" /* of the memfd */
#define TNI_FLIGHT_VERSION 2

enum {
    TNI_FLIGHT_PAGE = 4096,
    TNI_FLIGHT_THREADS = 1024, /* places in the directory */
    TNI_FLIGHT_RING = 32,      /* outermost frames kept; a power of two */
    TNI_FLIGHT_NAMES = 16384,
    TNI_FLIGHT_TEXT = 4 << 20, /* bytes of names */
    TNI_FLIGHT_MOST = 256 << 20,
    TNI_FLIGHT_DIMS = 7,    /* sizes kept of a tensor */
    TNI_FLIGHT_TENSORS = 2, /* tensors described for a call */
    TNI_FLIGHT_PASSES = 4,  /* nested backward passes described */
    TNI_FLIGHT_NODES = 48,  /* nodes described for a pass */
    TNI_FLIGHT_EDGES = 6,   /* edges described for a node */
};

/* Where a frame is. ENDED is zero: memory that was never written holds no frame. Later stages have
 * all that earlier ones have. */
enum {
    TNI_STAGE_ENDED = 0,
    TNI_STAGE_ENTERING = 1, /* the operator is known: keys are being collected */
    TNI_STAGE_LOOKUP = 2,   /* the key set is known */
    TNI_STAGE_CHECK = 3,    /* slot and kernel are known: is it valid, may it be called so? */
    TNI_STAGE_INVOKE = 4,   /* the kernel is about to be called */
    TNI_STAGE_BOXED = 5,    /* in the boxed entry of a typed kernel: arguments are being unboxed */
    TNI_STAGE_INSIDE = 6,   /* in the kernel */
    TNI_STAGE_MISSING = 7,  /* no kernel: the report is being written */
    TNI_STAGE_LIMIT
};

/* What a tensor argument looked like when the call began. */
typedef struct tni_flight_tensor {
    uint8_t ndim;
    int8_t dtype;
    int16_t device_type;
    int16_t device_index;
    uint16_t reserved;
    int64_t sizes[TNI_FLIGHT_DIMS];
} tni_flight_tensor;

/* A dispatch frame as a reader sees it; struct tn_call is laid out alike, see dispatch/call.h. */
typedef struct tni_flight_frame {
    uint64_t op;
    uint64_t keys;
    uint64_t kernel;
    uint32_t depth;
    uint16_t slot;
    uint8_t kind; /* tn_event_kind */
    uint8_t flags;
    uint64_t start;
    uint64_t schema;
    uint64_t stamp;  /* of CLOCK_MONOTONIC_COARSE; 0: not asked: a redispatch */
    uint8_t stage;   /* TNI_STAGE_… */
    uint8_t status;  /* tn_status of an ended frame */
    uint8_t tensors; /* bit i: tensor[i] is filled in */
    uint8_t reserved[5];
    tni_flight_tensor tensor[TNI_FLIGHT_TENSORS];
} tni_flight_frame;

/* A node of a backward pass. What it waits for: those nodes that have an edge to it and have not
 * run. */
typedef struct tni_flight_node {
    uint64_t name; /* address of its class's name, in the table of names */
    uint8_t done;
    uint8_t n_edges; /* may be more than are described */
    uint16_t edges[TNI_FLIGHT_EDGES];
    uint16_t reserved;
} tni_flight_node;

typedef struct tni_flight_pass {
    uint32_t id; /* 0: none runs here */
    uint32_t n_nodes;
    uint32_t n_done;
    uint32_t n_ready;
    uint64_t began;
    uint64_t running_name; /* class of the node whose turn it is; 0: between two turns */
    uint32_t running;      /* its index */
    uint32_t reserved;
    tni_flight_node nodes[TNI_FLIGHT_NODES];
} tni_flight_pass;

/* A thread. The frames lie at slots_at: `limit` of them above the ring's. Frame 0 of the current or
 * next outermost call is slot calls % TNI_FLIGHT_RING; the slots before it hold earlier ones.
 */
typedef struct tni_flight_thread {
    uint32_t live; /* 0: free for the next thread */
    uint32_t tid;
    uint64_t began;
    uint64_t calls; /* outermost calls that have ended */
    uint64_t slots_at;
    uint64_t slots_nbytes;
    uint32_t limit;
    uint32_t n_passes; /* nested backward passes; may be more than are described */
    char name[16];
    tni_thread_marks marks;
    uint64_t known_names[32]; /* see tni_flight_know */
    tni_flight_pass passes[TNI_FLIGHT_PASSES];
} tni_flight_thread;

enum { TNI_NAME_OP = 1, TNI_NAME_KERNEL = 2, TNI_NAME_NODE = 3 };

typedef struct tni_flight_name {
    uint64_t address; /* 0: not in use */
    uint32_t text;    /* offset from text_at; NUL-terminated */
    uint32_t file;    /* likewise; 0: none */
    uint32_t line;
    uint16_t kind;
    uint16_t room; /* bytes at `text`, for the next name; 0: never used again */
    uint64_t serial;
} tni_flight_name;

typedef struct tni_flight_header {
    char magic[8];
    uint32_t version;
    uint32_t header_nbytes;
    uint64_t nbytes; /* of the file */
    uint32_t pid;
    uint32_t on;        /* frames are stamped and described */
    uint32_t ended;     /* 1: the program came to its end; 2: the watchdog ended it */
    uint32_t n_threads; /* places of the directory that were ever used */
    uint64_t began;     /* CLOCK_MONOTONIC_COARSE */
    uint64_t began_real;
    uint64_t ended_at;
    uint32_t frame_nbytes, thread_nbytes, ring, pass_nbytes;
    uint64_t threads_at; /* directory: uint64_t offsets, 0: none */
    uint64_t names_at;
    uint64_t text_at;
    uint32_t n_names;
    uint32_t text_nbytes; /* used */
    uint32_t pool_threads;
    uint32_t n_unplaced; /* threads that dispatch and found no room here */
    char program[64];
    char library[16];
    char backends[16][16]; /* what claimed devices are called; "" for the usual name */
    uint64_t alive_at;     /* when the watchdog last looked; 0: none runs */
    uint64_t saved_at;     /* when this copy was made; 0: it is none */
    uint64_t ended_calls;  /* outermost calls of threads that have ended */
    uint32_t forked;       /* 1: the program is a child made by fork() */
    uint32_t forked_by;    /* the thread of the parent that called it */
    uint32_t forked_from;  /* how many other threads the parent had; none of them is here */
    uint32_t reserved;
} tni_flight_header;

/* ---- writing ---- */

/* Make the record unless TENON_RECORDER=0 says not to; once. Never fails: see Note [The record]. */
void tni_flight_start(void);
/* Around fork(); the last in the child, before it dispatches: it gets a record of its own, with
 * this thread alone. */
void tni_flight_before_fork(void);
void tni_flight_after_fork(void);
void tni_flight_forked(void);
/* A child's record in a file (TENON_RECORD) has no name until it first dispatches: see Note [Names
 * of records]. */
void tni_flight_publish(void);
/* The file behind the record, -1 when there is none. */
int tni_flight_fd(void);
tni_flight_header *tni_flight_head(void); /* NULL when there is none */
/* Frames are stamped and described from now on, or not. */
void tni_flight_set_on(bool on);

/* This thread's block with room for @p limit frames above the ring's; NULL: no memory. The frames
 * are at *slots. Until tni_flight_leave. */
tni_flight_thread *tni_flight_join(uint32_t limit, void **slots);
void tni_flight_leave(tni_flight_thread *thread);
/* This thread's block, NULL when it has none. */
tni_flight_thread *tni_flight_self(void);

/* Names: the reader's way from an address to a text. What is returned takes a name away again that
 * is not there for good; 0: there was no room, and it stays unknown. */
uint32_t tni_flight_name_add(int kind, const void *address, const char *text, const char *file,
                             int line, bool for_good);
void tni_flight_name_drop(uint32_t name);
/* Many of one kind are coming: for_good, and cheaply. */
void tni_flight_names_lock(void);
void tni_flight_names_unlock(void);
/* In a child made by fork(), where a lost thread may hold the lock. */
void tni_flight_names_forked(void);
uint32_t tni_flight_name_add_locked(int kind, const void *address, const char *text,
                                    const char *file, int line, bool for_good);
/* Make sure that the name of a class of nodes is known; cheap once it is. */
void tni_flight_know_slow(tni_flight_thread *thread, const char *name);
static inline void tni_flight_know(tni_flight_thread *thread, const char *name)
{
    if (TNI_UNLIKELY(thread->known_names[(uintptr_t)name >> 3 & 31] != (uintptr_t)name))
        tni_flight_know_slow(thread, name);
}
void tni_flight_backend(int backend, const char *name);

/* Where a thread stands, as a number that is not 0: the innermost of its @p depth frames, of which
 * @p frames has the innermost @p n; or its innermost pass, or what it waits for. A thread that has
 * left that place is not stopped any more, see tni_take_interrupt. */
uint64_t tni_flight_request(const tni_flight_thread *t, const tni_flight_frame *frames, uint32_t n,
                            uint32_t depth);
/* Ask thread @p tid of this process to stop; false when it is not known. */
bool tni_flight_interrupt(uint32_t tid, uint64_t request);
/* It was, and has not come to where it hears of it. */
bool tni_flight_is_asked(uint32_t tid);

/* Copy the record to a file of that name. @retval TN_INVALID, TN_UNSUPPORTED */
TN_NODISCARD tn_status tni_flight_save(const char *path);

/* The program is there: for whoever reads the file of one that was killed later. */
void tni_flight_alive(void);
/* The program ends: say so, for whoever reads the file later. */
void tni_flight_ended(uint32_t how);

#endif
