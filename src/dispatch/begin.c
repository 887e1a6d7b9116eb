/* SPDX-License-Identifier: MIT */
/* dispatch/begin.c: beginning and ending a frame: the few instructions that every call pays, shared
 * by all operators so that they stay in the cache, and the way that handles everything else. */
#include "dispatch/debug.h"
#include "dispatch/stages.h"

tn_call *tni_call_begin(tn_op *op, tn_keyset arg_keys)
{
    tni_state *s = &tni_tls;
    uint32_t depth = s->depth;
    if (TNI_UNLIKELY(depth >= s->limit) || tni_observing)
        return NULL;
    uint8_t flags = tni_epoch_open(s) ? TNI_FRAME_OPENED_EPOCH : 0;
    const tni_table *t = tni_op_table(op);
    tn_keyset ks = tni_effective_keys(s, arg_keys);
    ks &= tni_table_mask(t, ks);
    tn_call *c = tni_frame_push(s, depth, op, ks, t, TN_EVENT_CALL, flags);
    if (TNI_LIKELY(c->kernel->typed != NULL))
        return c;
    tni_call_end(c, TN_OK);
    return NULL;
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
    uint8_t flags = tni_epoch_open(s) ? TNI_FRAME_OPENED_EPOCH : 0;
    const tni_table *t = tni_op_table(op);
    *mask = TNI_KS_FULL;
    if (!caller) {
        ks = tni_effective_keys(s, ks);
        *mask = tni_table_mask(t, ks);
        ks &= *mask;
    }
    tn_call *c = tni_frame_push(s, depth, op, ks, t, kind, flags);
    if (TNI_LIKELY(!caller || c->slot < caller->slot))
        return c;
    tni_call_end(c, TN_OK);
    *status = tni_redispatch_refuse(caller, op, ks);
    return NULL;
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
    if (c && tni_observing)
        tni_announce(c, mask, args, nargs, false);
    return c;
}

tn_call *tni_begin_unwatched(tn_call *caller, tn_op *op, tn_keyset ks, tn_event_kind kind,
                             tn_status *status)
{
    tn_keyset mask;
    return begin(caller, op, ks, kind, &mask, status);
}
