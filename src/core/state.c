/* SPDX-License-Identifier: MIT */
/* core/state.c: the thread's key sets, grad mode and inference mode. Frames and scopes, which also
 * live in tni_state, belong to the dispatcher and to core/scope.c. */
#include "core/state.h"

__attribute__((tls_model("initial-exec"))) _Thread_local tni_state tni_tls;

/* Note [Key guards]
 * An include or exclude guard remembers what it added and takes exactly that away again, so a
 * switch made by hand inside the region survives it; a force guard remembers both sets. Bit 63 is
 * never part of a key set, so it tells the two apart: set in both words, they are what was added.
 */
#define DELTA (UINT64_C(1) << 63)

static void set_included(tni_state *s, tn_keyset ks)
{
    s->included_xor = ks ^ TNI_DEFAULT_INCLUDED;
}

static void set_excluded(tni_state *s, tn_keyset ks)
{
    s->excluded_xor = ks ^ TNI_DEFAULT_EXCLUDED;
}

tn_keyset tn_included_keys(void)
{
    return tni_included(&tni_tls);
}

tn_keyset tn_excluded_keys(void)
{
    return tni_excluded(&tni_tls);
}

tn_key_guard tn_include_keys(tn_keyset ks)
{
    tni_state *s = &tni_tls;
    tn_keyset added = ks & TNI_KS_FULL & ~tni_included(s);
    set_included(s, tni_included(s) | added);
    return (tn_key_guard){added | DELTA, DELTA};
}

tn_key_guard tn_exclude_keys(tn_keyset ks)
{
    tni_state *s = &tni_tls;
    tn_keyset added = ks & TNI_KS_FULL & ~tni_excluded(s);
    set_excluded(s, tni_excluded(s) | added);
    return (tn_key_guard){DELTA, added | DELTA};
}

tn_key_guard tn_force_keys(tn_keyset included, tn_keyset excluded)
{
    tni_state *s = &tni_tls;
    tn_key_guard old = {tni_included(s), tni_excluded(s)};
    set_included(s, included & TNI_KS_FULL);
    set_excluded(s, excluded & TNI_KS_FULL);
    return old;
}

void tn_keys_restore(tn_key_guard guard)
{
    tni_state *s = &tni_tls;
    if (guard.included & DELTA) {
        set_included(s, tni_included(s) & ~guard.included);
        set_excluded(s, tni_excluded(s) & ~guard.excluded);
    } else {
        set_included(s, guard.included);
        set_excluded(s, guard.excluded);
    }
}

/* Switching a key off clears its functionality, and its backend bit once no per-backend
 * functionality is left that it could belong to: a stray Meta bit would send every later call to
 * Meta. */
static tn_keyset switch_key(tn_keyset ks, tn_key key, bool on)
{
    if (on)
        return ks | tni_key_set(key);
    ks = tni_keyset_minus(ks, tni_key_set(key));
    const tn_keyset per_backend = TNI_FBIT(TN_KEY_DENSE) | TNI_FBIT(TN_KEY_QUANTIZED) |
                                  TNI_FBIT(TN_KEY_SPARSE) | TNI_FBIT(TN_KEY_SPARSE_CSR) |
                                  TNI_FBIT(TN_KEY_NESTED_TENSOR) |
                                  TNI_FBIT(TN_KEY_AUTOGRAD_FUNCTIONALITY);
    if (!(ks & per_backend))
        ks &= ~(tni_key_set(key) & TNI_BACKEND_MASK);
    return ks;
}

void tn_set_key_included(tn_key key, bool on)
{
    set_included(&tni_tls, switch_key(tni_included(&tni_tls), key, on));
}

void tn_set_key_excluded(tn_key key, bool on)
{
    set_excluded(&tni_tls, switch_key(tni_excluded(&tni_tls), key, on));
}

/* ---- grad mode and inference mode ---- */

enum { NO_GRAD = 1, NO_FORWARD_GRAD = 2, INFERENCE = 4, SERIAL_BACKWARD = 8, FORWARD_PAUSED = 16 };

bool tn_grad_enabled(void)
{
    return !tni_tls.no_grad;
}

bool tn_set_grad_enabled(bool on)
{
    bool old = !tni_tls.no_grad;
    tni_tls.no_grad = !on;
    return old;
}

bool tn_inference_mode_enabled(void)
{
    return tni_tls.inference;
}

static uint32_t mode_flags(const tni_state *s)
{
    return (s->no_grad ? NO_GRAD : 0u) |
           (s->no_forward_grad == TNI_FORWARD_OFF ? NO_FORWARD_GRAD : 0u) |
           (s->no_forward_grad == TNI_FORWARD_PAUSED ? FORWARD_PAUSED : 0u) |
           (s->inference ? INFERENCE : 0u) | (s->serial_backward ? SERIAL_BACKWARD : 0u);
}

static void set_mode_flags(tni_state *s, uint32_t flags)
{
    s->no_grad = (flags & NO_GRAD) != 0;
    s->no_forward_grad = flags & NO_FORWARD_GRAD  ? TNI_FORWARD_OFF
                         : flags & FORWARD_PAUSED ? TNI_FORWARD_PAUSED
                                                  : 0;
    s->inference = (flags & INFERENCE) != 0;
    s->serial_backward = (flags & SERIAL_BACKWARD) != 0;
}

/* Inference mode skips autograd by excluding its keys, and ADInplaceOrView by not including it: a
 * normal tensor carries that key itself and still counts its writes. Switching the mode off inside
 * turns grad mode on, whatever it was outside. */
tn_inference_guard tn_inference_enter(bool on)
{
    tni_state *s = &tni_tls;
    tn_inference_guard old = {tni_included(s), tni_excluded(s), mode_flags(s), 0};
    set_mode_flags(s, on ? NO_GRAD | NO_FORWARD_GRAD | INFERENCE | SERIAL_BACKWARD : 0);
    if (on) {
        set_included(s, tni_included(s) & ~TNI_KS_ADINPLACE_OR_VIEW);
        set_excluded(s, tni_excluded(s) | TNI_KS_AUTOGRAD);
    } else {
        set_included(s, tni_included(s) | TNI_KS_ADINPLACE_OR_VIEW);
        set_excluded(s, tni_excluded(s) & ~TNI_KS_AUTOGRAD);
    }
    return old;
}

void tn_inference_leave(tn_inference_guard guard)
{
    tni_state *s = &tni_tls;
    set_included(s, guard.included);
    set_excluded(s, guard.excluded);
    set_mode_flags(s, guard.flags);
}
