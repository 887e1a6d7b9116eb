/* SPDX-License-Identifier: MIT */
/* dispatch/call.h: the path of every call. Included by generated code.
 *
 * A call begins a frame, runs the kernel that the table names, and ends the frame. Between begin
 * and end nothing is allocated, locked or counted; see docs/dev/dispatch.md for the steps. */
#ifndef TNI_DISPATCH_CALL_H
#define TNI_DISPATCH_CALL_H

#include "core/state.h"
#include "core/tensor.h"
#include "dispatch/registry.h"

/* A dispatch frame: one hop of a call. Frames of a thread lie in one array, outermost first. */
struct tn_call {
    tn_op *op;
    tn_keyset keys; /* the kernel's own key is the highest */
    const tni_kernel *kernel;
    uint16_t slot;    /* of that key */
    uint8_t kind;     /* tn_event_kind */
    uint8_t observed; /* somebody hears of the return */
    uint32_t reserved;
    uint64_t start; /* nanoseconds; observed frames only */
};

/* Built-in operators, indexed by the generated TNI_OP_… numbers. */
extern tn_op tni_builtin_ops[];

/* Nonzero while anybody watches: trace, stage lines or an observer. The one branch that watching
 * costs when it is off. */
enum { TNI_WATCH_TRACE = 1, TNI_WATCH_DEBUG = 2, TNI_WATCH_OBSERVER = 4 };
extern _Atomic uint32_t tni_watching;
#define tni_observing TNI_UNLIKELY(atomic_load_explicit(&tni_watching, memory_order_relaxed))

#if defined(__SANITIZE_THREAD__)
/* The thread sanitizer knows no membarrier: order the epoch and the table by sequential
 * consistency. */
#    define TNI_EPOCH_ORDER memory_order_seq_cst
#else
#    define TNI_EPOCH_ORDER memory_order_relaxed
#endif

/* First dispatch of a thread, or the depth limit: TN_OK when the call may go on. */
TNI_COLD tn_status tni_call_admit(tn_op *op);
TNI_COLD tn_status tni_redispatch_refuse(const tn_call *caller, const tn_op *op, tn_keyset ks);

static inline void tni_epoch_open(tni_state *s)
{
    /* Note [Freeing old tables]: publish that this thread is inside before reading any table. The
     * writer's membarrier stands in for the fence that would be needed here. */
    atomic_store_explicit(&s->epoch, atomic_load_explicit(&tni_epoch, memory_order_acquire),
                          TNI_EPOCH_ORDER);
    atomic_signal_fence(memory_order_seq_cst);
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
    if (TNI_UNLIKELY(t->per_backend))
        return t->backend_masks[tni_top_bit((ks & TNI_BACKEND_MASK) >> 1)];
    return atomic_load_explicit(&((tni_table *)(uintptr_t)t)->mask, memory_order_acquire);
}

static inline tn_call *tni_frame_push(tni_state *s, uint32_t depth, tn_op *op, tn_keyset ks,
                                      const tni_table *t, tn_event_kind kind)
{
    unsigned slot = tni_keyset_slot(ks);
    tn_call *c = &s->frames[depth];
    c->op = op;
    c->keys = ks;
    c->kernel =
        atomic_load_explicit(&((tni_table *)(uintptr_t)t)->slots[slot], memory_order_acquire);
    c->slot = (uint16_t)slot;
    c->kind = (uint8_t)kind;
    c->observed = 0;
    s->depth = depth + 1;
    return c;
}

/* Begin a call. NULL: it failed, *status says why and there is nothing to end. */
static inline const tni_kernel *tni_call_begin(tn_op *op, tn_keyset arg_keys, tn_call **call,
                                               tn_status *status)
{
    tni_state *s = &tni_tls;
    uint32_t depth = s->depth;
    if (TNI_UNLIKELY(depth >= s->limit)) {
        *status = tni_call_admit(op);
        if (*status != TN_OK)
            return NULL;
    }
    if (depth == 0)
        tni_epoch_open(s);
    const tni_table *t = tni_op_table(op);
    tn_keyset ks = tni_effective_keys(s, arg_keys);
    ks &= tni_table_mask(t, ks);
    tn_call *c = tni_frame_push(s, depth, op, ks, t, TN_EVENT_CALL);
    *call = c;
    return c->kernel;
}

/* Begin a redispatch from the kernel of @p caller: the set is taken as given, and its highest key
 * must be strictly lower than the caller's. */
static inline const tni_kernel *tni_redispatch_begin(tn_call *caller, tn_op *op, tn_keyset ks,
                                                     tn_call **call, tn_status *status)
{
    tni_state *s = &tni_tls;
    uint32_t depth = s->depth;
    if (TNI_UNLIKELY(depth >= s->limit)) {
        *status = tni_call_admit(op);
        if (*status != TN_OK)
            return NULL;
    }
    tn_call *c = tni_frame_push(s, depth, op, ks, tni_op_table(op), TN_EVENT_REDISPATCH);
    if (TNI_UNLIKELY(c->slot >= caller->slot)) {
        s->depth = depth;
        *status = tni_redispatch_refuse(caller, op, ks);
        return NULL;
    }
    *call = c;
    return c->kernel;
}

/* The same, while somebody watches: these print and report. @p args are the boxed arguments. */
const tni_kernel *tni_call_begin_observed(tn_op *op, tn_keyset arg_keys, const tn_value *args,
                                          int nargs, tn_call **call, tn_status *status);
const tni_kernel *tni_redispatch_begin_observed(tn_call *caller, tn_op *op, tn_keyset ks,
                                                const tn_value *args, int nargs, tn_call **call,
                                                tn_status *status);
TNI_COLD void tni_call_end_observed(tn_call *call, tn_status status);

static inline tn_status tni_call_end(tn_call *call, tn_status status)
{
    tni_state *s = &tni_tls;
    if (TNI_UNLIKELY(call->observed))
        tni_call_end_observed(call, status);
    uint32_t depth = (uint32_t)(call - s->frames);
    s->depth = depth;
    if (depth == 0)
        atomic_store_explicit(&s->epoch, 0, memory_order_release);
    return status;
}

/* Run the frame's kernel with boxed arguments. @p rets gets @p nrets owned values; on failure they
 * are all None. Reports a missing kernel. */
TN_NODISCARD tn_status tni_run_boxed(tn_call *call, const tn_value *args, int nargs, tn_value *rets,
                                     int nrets);

/* Fails: "aten::mm: argument 'self' must be a tensor, not NULL". */
TNI_COLD tn_status tni_null_argument(const tn_op *op, const char *argument);

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
