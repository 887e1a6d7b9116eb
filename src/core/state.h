/* SPDX-License-Identifier: MIT */
/* core/state.h: what belongs to a thread: key sets, modes, the dispatch frames it is in.
 *
 * All zero is the default state, so a new thread needs no set-up: the key words are stored XOR-ed
 * with their defaults, modes are stored as "off" bits, and a frame limit of 0 sends the first
 * dispatch of a thread to the slow path, which registers it. Small on purpose: it lives in static
 * TLS. */
#ifndef TNI_CORE_STATE_H
#define TNI_CORE_STATE_H

#include <stdatomic.h>
#include "core/keys.h"

struct tn_call;
struct tni_thread;
struct tni_object;

/* Why calls push no tangents: their rules are at work, or the user said so. Views that are made in
 * the first case have tangents by the rule, in the second by what they are views of. */
enum { TNI_FORWARD_PAUSED = 1, TNI_FORWARD_OFF = 2 };

typedef struct tni_state {
    uint64_t included_xor;
    uint64_t excluded_xor;
    _Atomic uint64_t epoch; /* 0 outside any dispatch; else see Note [Freeing old tables] */
    uint32_t depth;         /* dispatch frames in use */
    uint32_t limit; /* frames allowed without a look at the stack, see tni_call_admit; 0: this
                       thread is not registered yet */
    struct tn_call *frames; /* array of `record->limit` frames; moves on with each outermost call */
    struct tn_call *ring;   /* where it begins, see Note [Frames that stay] */
    struct tni_flight_thread *record; /* this thread in the flight recorder, or in the heap */
    struct tni_thread *thread;
    struct tn_scope *scope; /* innermost scope of the second face */
    uint8_t no_grad;
    uint8_t no_forward_grad; /* TNI_FORWARD_…; 0: calls push tangents */
    uint8_t inference;
    uint8_t serial_backward; /* inference mode: a backward pass keeps to its thread */
    uint8_t ended;           /* how often the dispatcher has let go of this thread as it ended */
    uint8_t faking;          /* inside a kernel run for fake tensors: what is made is fake too */
    uint8_t reserved[2];
    struct tni_object *fake_mode; /* the fake mode that is on, else NULL; strong; see core/fake.h */
    uint32_t touched; /* least depth at which tn_tensor_data gave out what a recorded call made, 0:
                         none; see autograd/fallback.c */
    uint32_t read;    /* the same of elements that have a gradient, read or written in grad mode */
    uint32_t transform; /* the innermost transform of a function that this thread is in, 0: none;
                           see Note [Captured tensors] */
} tni_state;

TNI_HIDDEN extern __attribute__((tls_model("initial-exec"))) _Thread_local tni_state tni_tls;

static inline tn_keyset tni_included(const tni_state *s)
{
    return s->included_xor ^ TNI_DEFAULT_INCLUDED;
}
static inline tn_keyset tni_excluded(const tni_state *s)
{
    return s->excluded_xor ^ TNI_DEFAULT_EXCLUDED;
}
/* Keys of a call, before the operator's mask: exclusion beats inclusion. */
static inline tn_keyset tni_effective_keys(const tni_state *s, tn_keyset args)
{
    return tni_keyset_minus(args | tni_included(s), tni_excluded(s));
}

/* Guards: add what is missing, return the old word, put it back when leaving. */
static inline uint64_t tni_exclude(tni_state *s, tn_keyset ks)
{
    uint64_t old = s->excluded_xor;
    s->excluded_xor = (tni_excluded(s) | ks) ^ TNI_DEFAULT_EXCLUDED;
    return old;
}
static inline uint64_t tni_include(tni_state *s, tn_keyset ks)
{
    uint64_t old = s->included_xor;
    s->included_xor = (tni_included(s) | ks) ^ TNI_DEFAULT_INCLUDED;
    return old;
}

#define TNI_BELOW_AUTOGRAD          TNI_KS_AUTOGRAD
#define TNI_BELOW_ADINPLACE_OR_VIEW (TNI_KS_AUTOGRAD | TNI_KS_ADINPLACE_OR_VIEW)

#endif
