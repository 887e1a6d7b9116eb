/* SPDX-License-Identifier: MIT */
/* dispatch/call.h: the path of every call. Included by generated code.
 *
 * A call begins a frame, runs the kernel that the table names, and ends the frame. Between begin
 * and end nothing is allocated, locked or counted; see src/dispatch/README.md for the steps. */
#ifndef TNI_DISPATCH_CALL_H
#define TNI_DISPATCH_CALL_H

#include <string.h>

#include "core/state.h"
#include "core/tensor.h"
#include "dispatch/registry.h"
#include "observe/flight.h"

/* A dispatch frame: one hop of a call. Frames of a thread lie in one array, outermost first: a
 * cache line each, and two that describe the first tensor arguments of a call. Laid out as
 * tni_flight_frame: another process may be reading it, see Note [The record]. */
struct tn_call {
    tn_op *op;
    tn_keyset keys; /* the kernel's own key is the highest */
    const tni_kernel *kernel;
    uint32_t depth;           /* index of this frame */
    uint16_t slot;            /* of the kernel's key */
    uint8_t kind;             /* tn_event_kind */
    uint8_t flags;            /* TNI_FRAME_… */
    uint64_t start;           /* nanoseconds; watched frames only */
    const tni_schema *schema; /* that the arguments were checked against; boxed frames only */
    uint64_t stamp; /* when the call began, coarsely; 0: not asked. Of calls, not of redispatches */
    _Atomic uint16_t stage; /* TNI_STAGE_…; when it ended: 256 * status */
    uint8_t tensors;        /* bit i: tensor[i] is filled in; likewise */
    uint8_t reserved[5];
    tni_flight_tensor tensor[TNI_FLIGHT_TENSORS];
};
#define TNI_SAME_PLACE(ours, theirs)                                                     \
    _Static_assert(offsetof(struct tn_call, ours) == offsetof(tni_flight_frame, theirs), \
                   "the recorder's frame is laid out as a call")
TNI_SAME_PLACE(keys, keys);
TNI_SAME_PLACE(slot, slot);
TNI_SAME_PLACE(stamp, stamp);
TNI_SAME_PLACE(stage, stage);
TNI_SAME_PLACE(tensors, tensors);
TNI_SAME_PLACE(tensor, tensor);
_Static_assert(sizeof(struct tn_call) == sizeof(tni_flight_frame), "and as large");

enum {
    TNI_FRAME_WATCHED = 1,      /* somebody hears of the return: those of the last two */
    TNI_FRAME_OPENED_EPOCH = 2, /* the outermost: leaving it ends the thread's epoch */
    TNI_FRAME_STAGES = 4,       /* stage lines were printed */
    TNI_FRAME_OBSERVED = 8,     /* the observer was told */
    TNI_FRAME_PROFILED = 64,    /* an event of a profile was begun */
};

/* Built-in operators, indexed by the generated TNI_OP_… numbers. */
TNI_HIDDEN extern tn_op tni_builtin_ops[];

/* Bits while anybody watches: trace, stage lines, an observer, a profile; a thread is to be
 * interrupted. The one branch that watching costs when it is off. The recorder has a bit of its own
 * in the same word: it is on nearly always, and nobody need be told. */
enum {
    TNI_WATCH_TRACE = 1,
    TNI_WATCH_DEBUG = 2,
    TNI_WATCH_OBSERVER = 4,
    TNI_WATCH_PROFILE = 8,
    TNI_WATCH_INTERRUPT = 1 << 16
};
#define TNI_WATCH_RECORD (UINT32_C(1) << 31)
TNI_HIDDEN extern _Atomic uint32_t tni_watching;
static inline uint32_t tni_watch_bits(void)
{
    return atomic_load_explicit(&tni_watching, memory_order_relaxed);
}
#define tni_observing TNI_UNLIKELY(tni_watch_bits() & ~TNI_WATCH_RECORD)

#if defined(__SANITIZE_THREAD__)
/* The thread sanitizer knows no membarrier: order the epoch and the table by sequential
 * consistency. */
#    define TNI_EPOCH_ORDER memory_order_seq_cst
#else
#    define TNI_EPOCH_ORDER memory_order_relaxed
#endif

/* First dispatch of a thread, or one of many that nest: TN_OK when the call may go on. From
 * TNI_PLAIN_DEPTH on every call asks whether the stack has room for it, up to the thread's limit.
 */
enum { TNI_PLAIN_DEPTH = 32 };
TNI_COLD tn_status tni_call_admit(tn_op *op);
TNI_COLD tn_status tni_redispatch_refuse(const tn_call *caller, const tn_op *op, tn_keyset ks);

/* Enter an epoch unless the thread is in one; true: leave with tni_epoch_close. */
static inline bool tni_epoch_open(tni_state *s)
{
    /* Note [Freeing old tables]: publish that this thread is inside before reading any table. The
     * writer's membarrier stands in for the fence that would be needed here. */
    if (atomic_load_explicit(&s->epoch, memory_order_relaxed) != 0)
        return false;
    atomic_store_explicit(&s->epoch, atomic_load_explicit(&tni_epoch, memory_order_acquire),
                          TNI_EPOCH_ORDER);
    atomic_signal_fence(memory_order_seq_cst);
    return true;
}

static inline void tni_epoch_close(tni_state *s)
{
    atomic_store_explicit(&s->epoch, 0, memory_order_release);
}

static inline const tni_table *tni_op_table(const tn_op *op)
{
    return atomic_load_explicit(&((tn_op *)(uintptr_t)op)->table,
                                TNI_EPOCH_ORDER == memory_order_seq_cst ? memory_order_seq_cst
                                                                        : memory_order_acquire);
}

/* The operator's mask for a set to which include and exclude were applied. */
static inline tn_keyset tni_table_mask(const tni_table *t, tn_keyset ks)
{
    tni_table *table = (tni_table *)(uintptr_t)t;
    if (TNI_UNLIKELY(atomic_load_explicit(&table->per_backend, memory_order_relaxed)))
        return atomic_load_explicit(
            &table->backend_masks[tni_top_bit((ks & TNI_BACKEND_MASK) >> 1)], memory_order_relaxed);
    return atomic_load_explicit(&table->mask, memory_order_acquire);
}

/* Where the frame is now. Whoever reads it from outside sees all that was written before. */
static inline void tni_stage(tn_call *c, unsigned stage)
{
    atomic_store_explicit(&c->stage, (uint16_t)stage, memory_order_release);
}

static inline tn_call *tni_frame_enter(tni_state *s, uint32_t depth, tn_op *op)
{
    tn_call *c = &s->frames[depth];
    c->op = op;
    c->depth = depth; /* readers know a live frame by it, see find_depth in observe/reader.c */
    tni_stage(c, TNI_STAGE_ENTERING);
    return c;
}

/* Note [Frames that stay]
 * When an outermost call ends, the array of frames moves on by one place, going round within the
 * first TNI_FLIGHT_RING places: so the frames of the last outermost calls stay readable, and
 * nothing is copied. It moves at the end, when nothing waits for its address. */
static inline void tni_frames_move(tni_state *s)
{
    uint64_t n = ++s->record->calls;
    s->frames = s->ring + (n & (TNI_FLIGHT_RING - 1));
}

/* The head of a description, as a tensor has it. */
#define TNI_HEAD_OF(member) (offsetof(tn_tensor, member) - offsetof(tn_tensor, ndim))
_Static_assert(offsetof(tni_flight_tensor, dtype) == TNI_HEAD_OF(dtype), "one word");
_Static_assert(offsetof(tni_flight_tensor, device_type) == TNI_HEAD_OF(device.type), "one word");
_Static_assert(offsetof(tni_flight_tensor, device_index) == TNI_HEAD_OF(device.index), "one word");
_Static_assert(offsetof(tni_flight_tensor, reserved) == TNI_HEAD_OF(reserved), "one word");

static inline void tni_describe_tensor(tni_flight_tensor *to, const tn_tensor *t)
{
    memcpy(to, &t->ndim, offsetof(tni_flight_tensor, sizes));
#if TNI_INLINE_DIMS >= 4
    /* Four whatever the number: no branch, and there always are as many places. */
    memcpy(to->sizes, t->sizes, 4 * sizeof *to->sizes);
    if (TNI_LIKELY(t->ndim <= 4))
        return;
#endif
    for (int i = 0; i < t->ndim && i < TNI_FLIGHT_DIMS; i++)
        to->sizes[i] = t->sizes[i];
}

/* What the recorder keeps of a call: when it began, and its first tensors. A clock that is a few
 * milliseconds coarse costs a few loads; rdtsc, on a virtual machine, more than a whole dispatch.
 */
static inline void tni_frame_describe(tn_call *c, const tn_tensor *first, const tn_tensor *second)
{
    c->tensors = (uint8_t)((first ? 1 : 0) | (second ? 2 : 0));
    if (first)
        tni_describe_tensor(&c->tensor[0], first);
    if (second)
        tni_describe_tensor(&c->tensor[1], second);
    c->stamp = tni_coarse_ns();
}

/* Fills in the rest of the frame; the kernel that the table names. */
static inline const tni_kernel *tni_frame_push(tni_state *s, tn_call *c, uint32_t depth,
                                               tn_keyset ks, const tni_table *t, tn_event_kind kind,
                                               uint8_t flags)
{
    tni_table *table = (tni_table *)(uintptr_t)t;
    tni_hot_set *hot = &table->hot[tni_hot_index(ks)];
    const tni_kernel *kernel;
    uint64_t slot;
    c->keys = ks;
    c->kind = (uint8_t)kind;
    c->flags = flags;
    tni_stage(c, TNI_STAGE_LOOKUP);
    if (TNI_LIKELY(hot->keys == ks)) {
        slot = hot->slot;
        kernel = atomic_load_explicit(&hot->kernel, memory_order_acquire);
    } else {
        slot = tni_keyset_slot(ks);
        kernel = atomic_load_explicit(&table->slots[slot], memory_order_acquire);
    }
    c->kernel = kernel;
    c->slot = (uint16_t)slot;
    s->depth = depth + 1;
    return kernel;
}

/* A frame that was begun on the common path, and the entry to call: in two registers, so that the
 * call does not wait for the frame to be read back. */
typedef struct tni_begun {
    tn_call *call;     /* NULL: this path is not for it */
    tn_typed_fn typed; /* NULL: the kernel takes boxes alone; tni_run_boxed, then tni_call_end */
} tni_begun;

/* Begin a call on the common path: the thread is known, and nobody watches. NULL when that does not
 * hold: nothing has happened then, and tni_begin does it all. @p first and @p second, the first
 * tensor arguments or NULL, are for the recorder. */
TNI_HIDDEN tni_begun tni_call_begin(tn_op *op, tn_keyset arg_keys, const tn_tensor *first,
                                    const tn_tensor *second);

/* Take back a frame that was begun in vain: nothing ran in it. */
static inline void tni_redispatch_forget(tn_call *call)
{
    tni_stage(call, TNI_STAGE_ENDED);
    tni_tls.depth = call->depth;
}

/* The same for a redispatch from the kernel of @p caller, whose key must get lower. Inline: there
 * are one or two in nearly every call. */
static inline tni_begun tni_redispatch_begin(tn_call *caller, tn_op *op, tn_keyset ks)
{
    tni_state *s = &tni_tls;
    uint32_t depth = s->depth;
    if (TNI_UNLIKELY(depth >= s->limit) || tni_observing)
        return (tni_begun){NULL, NULL};
    tn_call *c = &s->frames[depth];
    c->op = op;
    c->depth = depth;
    tn_typed_fn typed =
        tni_frame_push(s, c, depth, ks, tni_op_table(op), TN_EVENT_REDISPATCH, 0)->typed;
    if (TNI_LIKELY(c->slot < caller->slot)) {
        tni_stage(c, TNI_LIKELY(typed != NULL) ? TNI_STAGE_INSIDE : TNI_STAGE_INVOKE);
        return (tni_begun){c, typed};
    }
    tni_redispatch_forget(c);
    return (tni_begun){NULL, NULL};
}

/* Begin a call (@p caller NULL; @p ks are the arguments' keys) or a redispatch with exactly @p ks:
 * registers the thread, refuses what would loop, tells who watches. @p args are the boxed
 * arguments. NULL: *status says why, and there is nothing to end. */
tn_call *tni_begin(tn_call *caller, tn_op *op, tn_keyset ks, tn_event_kind kind,
                   const tn_value *args, int nargs, tn_status *status);

/* The same without telling anybody. */
tn_call *tni_begin_unwatched(tn_call *caller, tn_op *op, tn_keyset ks, tn_event_kind kind,
                             const tn_value *args, int nargs, tn_status *status);
/* The recorder's description of a call by the tensors among its first two boxed arguments. */
TNI_HIDDEN tn_call *tni_describe_values(tn_call *call, const tn_value *args, int nargs);

/* TN_OK, or why this thread is to stop where it is: the watchdog wants it to. Once. */
TNI_COLD tn_status tni_interrupted(void);

/* Tell who watches that the kernel returned. */
TNI_COLD void tni_announce_return(const tn_call *call, tn_status status);

static inline tn_status tni_call_end(tn_call *call, tn_status status)
{
    tni_state *s = &tni_tls;
    if (TNI_UNLIKELY(call->flags & TNI_FRAME_WATCHED))
        tni_announce_return(call, status);
    if (call->flags & TNI_FRAME_OPENED_EPOCH)
        tni_epoch_close(s);
    atomic_store_explicit(&call->stage, (uint16_t)((unsigned)status << 8), memory_order_release);
    uint32_t depth = call->depth;
    s->depth = depth;
    if (depth == 0)
        tni_frames_move(s);
    return status;
}

/* tni_call_end of what tni_call_begin began: nobody watches such a frame. */
static inline tn_status tni_call_end_plain(tn_call *call, tn_status status)
{
    tni_state *s = &tni_tls;
    if (call->flags)
        tni_epoch_close(s);
    atomic_store_explicit(&call->stage, (uint16_t)((unsigned)status << 8), memory_order_release);
    uint32_t depth = call->depth;
    s->depth = depth;
    if (depth == 0)
        tni_frames_move(s);
    return status;
}

/* tni_call_end of what tni_redispatch_begin began: it opened no epoch and is not the outermost. */
static inline tn_status tni_redispatch_end(tn_call *call, tn_status status)
{
    atomic_store_explicit(&call->stage, (uint16_t)((unsigned)status << 8), memory_order_release);
    tni_tls.depth = call->depth;
    return status;
}

/* Run the frame's kernel with boxed arguments of @p schema. @p rets gets owned values that fit; on
 * failure they are all None. Reports a missing kernel. */
TN_NODISCARD tn_status tni_run_kernel(tn_call *call, const tni_schema *schema, const tn_value *args,
                                      tn_value *rets);
/* The same for a built-in operator, by generated code. */
TN_NODISCARD tn_status tni_run_boxed(tn_call *call, const tn_value *args, int nargs, tn_value *rets,
                                     int nrets);

static inline tn_keyset tni_keys_of_list(tn_tensor *const *list, int64_t n)
{
    tn_keyset ks = 0;
    for (int64_t i = 0; i < n; i++)
        ks |= list[i] ? tni_keys(list[i]) : 0;
    return ks;
}
static inline tn_keyset tni_generator_keys(const tn_generator *g)
{
    (void)g; /* no generator of this library selects a backend */
    return 0;
}

/* Keys of boxed arguments, as the schema says which are tensors. */
tn_keyset tni_keys_of_values(const tni_schema *schema, const tn_value *args);

#endif
