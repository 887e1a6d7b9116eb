/* SPDX-License-Identifier: MIT */
/* dispatch/begin.c: beginning and ending a frame: the few instructions that every call pays, shared
 * by all operators so that they stay in the cache, and the way that handles everything else. */
#include "dispatch/debug.h"
#include "dispatch/stages.h"

/* Apart, and last of all: so that tni_call_begin itself saves no registers. */
static __attribute__((noinline)) tni_begun described(tn_call *c, tn_typed_fn typed,
                                                     const tn_tensor *first,
                                                     const tn_tensor *second)
{
    tni_frame_describe(c, first, second);
    tni_stage(c, TNI_LIKELY(typed != NULL) ? TNI_STAGE_INSIDE : TNI_STAGE_INVOKE);
    return (tni_begun){c, typed};
}

tni_begun tni_call_begin(tn_op *op, tn_keyset arg_keys, const tn_tensor *first,
                         const tn_tensor *second)
{
    tni_state *s = &tni_tls;
    uint32_t depth = s->depth, watching = tni_watch_bits();
    if (TNI_UNLIKELY(depth >= s->limit || (watching & ~TNI_WATCH_RECORD)))
        return (tni_begun){NULL, NULL};
    tn_call *c = tni_frame_enter(s, depth, op);
    uint8_t flags = tni_epoch_open(s) ? TNI_FRAME_OPENED_EPOCH : 0;
    const tni_table *t = tni_op_table(op);
    tn_keyset ks = tni_effective_keys(s, arg_keys);
    ks &= tni_table_mask(t, ks);
    tn_typed_fn typed = tni_frame_push(s, c, depth, ks, t, TN_EVENT_CALL, flags)->typed;
    if (TNI_LIKELY(watching))
        return described(c, typed, first, second);
    c->stamp = 0;
    c->tensors = 0;
    tni_stage(c, TNI_LIKELY(typed != NULL) ? TNI_STAGE_INSIDE : TNI_STAGE_INVOKE);
    return (tni_begun){c, typed};
}

/* Of a value that is a tensor or a list of tensors, the first; else NULL. */
static inline const tn_tensor *tensor_of(const tn_value *v)
{
    if (v->tag == TN_TAG_TENSOR)
        return v->u.tensor;
    return v->tag == TN_TAG_TENSOR_LIST && v->count ? v->u.tensors[0] : NULL;
}

__attribute__((noinline)) tn_call *tni_describe_values(tn_call *c, const tn_value *args, int nargs)
{
    const tn_tensor *first = nargs > 0 ? tensor_of(&args[0]) : NULL;
    const tn_tensor *second = nargs > 1 ? tensor_of(&args[1]) : NULL;
    tni_frame_describe(c, first, second);
    return c;
}

/* *mask becomes the operator's; all ones for a redispatch, which takes its set as given. */
static inline __attribute__((always_inline)) tn_call *begin(tn_call *caller, tn_op *op,
                                                            tn_keyset ks, tn_event_kind kind,
                                                            tn_keyset *mask, tn_status *status)
{
    tni_state *s = &tni_tls;
    uint32_t depth = s->depth;
    if (TNI_UNLIKELY(depth >= s->limit)) {
        *status = tni_call_admit(op);
        if (*status != TN_OK)
            return NULL;
    }
    tn_call *c = tni_frame_enter(s, depth, op);
    uint8_t flags = tni_epoch_open(s) ? TNI_FRAME_OPENED_EPOCH : 0;
    const tni_table *t = tni_op_table(op);
    *mask = TNI_KS_FULL;
    if (!caller) {
        ks = tni_effective_keys(s, ks);
        *mask = tni_table_mask(t, ks);
        ks &= *mask;
    }
    tni_frame_push(s, c, depth, ks, t, kind, flags);
    tni_stage(c, TNI_STAGE_CHECK);
    if (TNI_LIKELY(!caller || c->slot < caller->slot)) {
        c->stamp = 0;
        c->tensors = 0;
        tni_stage(c, c->kernel->typed && kind < TN_EVENT_CALL_BOXED ? TNI_STAGE_INSIDE
                                                                    : TNI_STAGE_INVOKE);
        return c;
    }
    c->stamp = tni_coarse_ns(); /* so that a reader can tell it from what was here before */
    tni_call_end(c, TN_RECURSION);
    *status = tni_redispatch_refuse(caller, op, ks);
    return NULL;
}

/* Somebody watches, besides the recorder. */
static TNI_COLD tn_call *announced(tn_call *c, const tn_call *caller, tn_keyset mask,
                                   const tn_value *args, int nargs, tn_status *status)
{
    uint32_t watching = tni_watch_bits();
    if (!caller && (watching & TNI_WATCH_RECORD))
        tni_describe_values(c, args, nargs);
    if (watching & TNI_WATCH_INTERRUPT) {
        *status = tni_interrupted();
        if (*status != TN_OK) {
            tni_call_end(c, *status);
            return NULL;
        }
    }
    if (watching & ~(TNI_WATCH_RECORD | (uint32_t)TNI_WATCH_INTERRUPT))
        tni_announce(c, mask, args, nargs, false);
    return c;
}

tn_call *tni_begin(tn_call *caller, tn_op *op, tn_keyset ks, tn_event_kind kind,
                   const tn_value *args, int nargs, tn_status *status)
{
    if (TNI_UNLIKELY(tni_tls.limit == 0)) { /* the environment may ask for stages: read it first */
        *status = tni_ready();
        if (*status != TN_OK)
            return NULL;
    }
    if (tni_observing && tni_debug_on(op->name))
        return tni_begin_in_stages(caller, op, ks, kind, args, nargs, status);
    tn_keyset mask;
    tn_call *c = begin(caller, op, ks, kind, &mask, status);
    uint32_t watching = tni_watch_bits();
    if (TNI_UNLIKELY(!c || (watching & ~TNI_WATCH_RECORD)))
        return c ? announced(c, caller, mask, args, nargs, status) : NULL;
    return !caller && TNI_LIKELY(watching) ? tni_describe_values(c, args, nargs) : c;
}

tn_call *tni_begin_unwatched(tn_call *caller, tn_op *op, tn_keyset ks, tn_event_kind kind,
                             const tn_value *args, int nargs, tn_status *status)
{
    tn_keyset mask;
    tn_call *c = begin(caller, op, ks, kind, &mask, status);
    bool recorded = c && !caller && (tni_watch_bits() & TNI_WATCH_RECORD);
    return recorded ? tni_describe_values(c, args, nargs) : c;
}
