/* SPDX-License-Identifier: MIT */
/* autograd/hold.c: gradients are added one after the other, and nobody waits for foreign code.
 *
 * Note [Adding to a gradient]
 * A sum in place must not meet another, so who adds holds the gradient, and others wait: the time
 * of one operator of ours. Where foreign code can run within that operator (a mode, a tensor's
 * handler, an observer, anomaly mode's tracer, a kernel from outside) nothing is held while it
 * runs, since it may itself wait for another who comes: for its thread, or for a gradient that it
 * holds. Then the sum is made aside, in a copy of the gradient or as a new tensor, and takes the
 * gradient's place when that is still what was added to. If another was faster, foreign code saw a
 * sum that nobody will see: it is made again of what is there now, without that code where this can
 * be, so that code which itself adds to the gradient comes to an end. Either way a pass that has
 * ended has added. A gradient whose own code writes it (of a subclass, or sparse) is written one
 * turn after the other, see turn.h.
 *
 * The word in the tensor's meta is 0, or says in which era it is held (Note [Locks over fork]),
 * doubled, and whether somebody waits. */
#include "autograd/accumulate.h"
#include "autograd/anomaly.h"
#include "autograd/turn.h"
#include "base/futex.h"
#include "base/mark.h"
#include "core/half.h"
#include "dispatch/call.h"
#include "dispatch/library.h"
#include "dispatch/mode.h"
#include "tenon/autograd.h"

#include <string.h>

enum { WAITED_FOR = 1, CHANNEL = 1, MOST_TRIES = 10000 };
static const char HELD[] = "a gradient that is added to";

/* ---- holding ---- */

static void take(_Atomic uint32_t *holder, uint32_t era)
{
    uint32_t seen = 0;
    bool waited = false;
    for (;;) {
        bool is_free = (seen & ~(uint32_t)WAITED_FOR) != era;
        uint32_t next = is_free ? era | (seen & WAITED_FOR) : seen | WAITED_FOR;
        if (!atomic_compare_exchange_strong_explicit(holder, &seen, next, memory_order_acquire,
                                                     memory_order_relaxed))
            continue;
        if (is_free)
            break;
        if (!waited)
            tni_wait_begin(TNI_WAIT_LOCK, (uintptr_t)holder, HELD, true);
        waited = true;
        tni_futex_wait(holder, next, CHANNEL);
        seen = atomic_load_explicit(holder, memory_order_relaxed);
    }
    if (waited)
        tni_wait_end();
    tni_hold_begin(TNI_WAIT_LOCK, (uintptr_t)holder, HELD);
}

static void hold(tni_grad_meta *meta)
{
    const uint32_t era = 2u * tni_spin_era;
    if (TNI_LIKELY(TNI_ONE_THREAD))
        atomic_store_explicit(&meta->holder, era, memory_order_relaxed);
    else
        take(&meta->holder, era);
}

static void let(tni_grad_meta *meta)
{
    tni_hold_end(TNI_WAIT_LOCK, (uintptr_t)&meta->holder); /* none, if it was taken alone */
    if (TNI_LIKELY(TNI_ONE_THREAD)) {
        atomic_store_explicit(&meta->holder, 0, memory_order_relaxed);
        return;
    }
    uint32_t was = atomic_exchange_explicit(&meta->holder, 0, memory_order_release);
    if (was & WAITED_FOR)
        tni_futex_wake(&meta->holder, INT_MAX, CHANNEL);
}

/* ---- where foreign code can run ---- */

static bool is_plain(const tn_tensor *t)
{
    const tn_keyset plain = TNI_KS_AUTOGRAD | TNI_KS_ADINPLACE_OR_VIEW | TNI_KS_AUTOCAST |
                            TNI_FBIT(TN_KEY_DENSE) | TNI_BACKEND_MASK;
    return !t || ((t->keys & ~plain) == 0 &&
                  (t->device.type == TN_DEVICE_CPU || t->device.type == TN_DEVICE_META));
}

/* Can it when these are added? */
static bool calls_out(const tn_tensor *t, const tn_tensor *had, const tn_tensor *grad)
{
    return tni_observing || tni_tls.included_xor || tni_tls.fake_mode || tni_foreign_kernels() ||
           tni_anomaly() || !is_plain(t) || !is_plain(had) || !is_plain(grad);
}

/* ---- the elements of a tensor, one after the other ---- */

/* Memory of ours in which every element has its own place. */
static bool has_places(const tn_tensor *t)
{
    if (!is_plain(t) || t->device.type != TN_DEVICE_CPU || !(t->data || t->numel == 0))
        return false;
    for (int d = 0; d < t->ndim; d++)
        if (t->strides[d] == 0 && t->sizes[d] > 1)
            return false;
    return true;
}

static size_t nbytes_of(const tn_tensor *t)
{
    return (size_t)t->numel * tn_dtype_size((tn_dtype)t->dtype);
}

/* Copy the elements to @p bytes, or from there: of a dense tensor as they lie, else in the order of
 * their indices. */
static void move(const tn_tensor *t, char *bytes, bool back)
{
    const size_t size = tn_dtype_size((tn_dtype)t->dtype);
    if (t->numel == 0)
        return;
    if (t->flags & TNI_DENSE) {
        memcpy(back ? t->data : bytes, back ? bytes : t->data, nbytes_of(t));
        return;
    }
    int64_t index[TN_MAX_DIMS] = {0};
    char *at = t->data;
    for (int64_t i = 0; i < t->numel; i++, bytes += size) {
        memcpy(back ? at : bytes, back ? bytes : at, size);
        for (int d = t->ndim - 1; d >= 0; d--) {
            at += t->strides[d] * (int64_t)size;
            if (++index[d] < t->sizes[d])
                break;
            at -= t->strides[d] * (int64_t)size * t->sizes[d];
            index[d] = 0;
        }
    }
}

/* Do they lie alike, so that their bytes can be added one by one? */
static bool are_alike(const tn_tensor *a, const tn_tensor *b)
{
    const uint64_t dtypes = 1u << TN_DTYPE_F16 | 1u << TN_DTYPE_BF16 | 1u << TN_DTYPE_F32 |
                            1u << TN_DTYPE_F64 | 1u << TN_DTYPE_C64 | 1u << TN_DTYPE_C128;
    if (!has_places(a) || !has_places(b) || a->dtype != b->dtype || !(dtypes >> a->dtype & 1) ||
        a->ndim != b->ndim || memcmp(a->sizes, b->sizes, (size_t)a->ndim * sizeof *a->sizes) != 0)
        return false;
    if (!(a->flags & TNI_DENSE))
        return !(b->flags & TNI_DENSE) || (b->flags & TNI_CONTIGUOUS);
    return (b->flags & TNI_DENSE) &&
           memcmp(a->strides, b->strides, (size_t)a->ndim * sizeof *a->strides) == 0;
}

/* By neither operator nor kernel, of which foreign code would know; rounded as they do. */
static void add_bytes(tn_dtype dtype, int64_t numel, char *to, const char *from)
{
    const int64_t n = numel * (tn_dtype_is_complex(dtype) ? 2 : 1);
#define SUM(type, of, value)        \
    for (int64_t i = 0; i < n; i++) \
    ((type *)(void *)to)[i] =       \
        of(value(((type *)(void *)to)[i]) + value(((const type *)(const void *)from)[i]))
    switch (dtype) {
    case TN_DTYPE_F16:
        SUM(tni_f16, tni_f16_from_float, tni_f16_to_float);
        break;
    case TN_DTYPE_BF16:
        SUM(tni_bf16, tni_bf16_from_float, tni_bf16_to_float);
        break;
    case TN_DTYPE_F32:
    case TN_DTYPE_C64:
        SUM(float, , );
        break;
    default:
        SUM(double, , );
    }
#undef SUM
}

static uint32_t writes_to(const tn_tensor *t)
{
    return t && t->versions ? atomic_load_explicit(t->versions, memory_order_acquire) : 0;
}

/* ---- adding where foreign code can run ---- */

/* One try. Of `had` there are two copies: `mine`, which foreign code adds to, and in `bytes` what
 * it was, with room for what it is then and for the gradient. */
typedef struct attempt {
    tn_tensor *had;  /* strong; what is added to, or NULL */
    tn_tensor *mine; /* strong; NULL: the sum is a new tensor */
    char *bytes;
    const void *data; /* of `had`, as is what follows, when it was copied */
    int64_t numel;
    uint32_t writes, n_sums; /* n_sums: of its tensor */
    int8_t dtype;
    bool is_done;
} attempt;

static void forget(attempt *a)
{
    tn_tensor_unref(a->had);
    tn_tensor_unref(a->mine);
    tni_free(a->bytes);
}

static tn_status make_copies(attempt *a)
{
    const tn_tensor *t = a->had;
    const size_t nbytes = nbytes_of(t);
    a->bytes = tni_alloc(3 * nbytes + 1);
    TN_CHECK(a->bytes, TN_NOMEM, "cannot copy a gradient of %zu bytes", nbytes);
    TN_TRY(tni_tensor_new(t->ndim, t->sizes, t->flags & TNI_DENSE ? t->strides : NULL,
                          (tn_dtype)t->dtype, t->device, &a->mine));
    move(t, a->bytes, false);
    if (nbytes)
        memcpy(a->mine->data, a->bytes, nbytes);
    return TN_OK;
}

/* See what there is, and copy it where the sum is written. */
static tn_status begin(attempt *a, tn_tensor *t, tni_grad_meta *meta, bool writes)
{
    tn_status status = TN_OK;
    hold(meta);
    a->had = tn_tensor_grad_ref(t); /* others may replace it meanwhile */
    if (writes && a->had && has_places(a->had))
        status = make_copies(a);
    if (a->had) {
        a->data = a->had->data;
        a->numel = a->had->numel;
        a->dtype = a->had->dtype;
    }
    a->writes = writes_to(a->had);
    a->n_sums = meta->n_sums;
    let(meta);
    return status;
}

/* What was made in the copy is written into the gradient. If that has changed meanwhile, and in the
 * copy is the plain sum, then the gradient @p grad is added to what it is now. Else nothing is
 * done.
 */
static tn_status write_back(attempt *a, const tn_tensor *grad)
{
    tn_tensor *had = a->had;
    if (had->data != a->data || had->numel != a->numel || had->dtype != a->dtype ||
        !has_places(had) || nbytes_of(had) != nbytes_of(a->mine))
        return TN_OK;
    const size_t nbytes = nbytes_of(had);
    char *now = a->bytes + nbytes, *added = now + nbytes, *mine = a->mine->data;
    move(had, now, false);
    if (nbytes && memcmp(now, a->bytes, nbytes) != 0) {
        if (!are_alike(had, grad))
            return TN_OK;
        move(grad, added, false);
        add_bytes((tn_dtype)had->dtype, had->numel, a->bytes, added);
        if (memcmp(a->bytes, mine, nbytes) != 0)
            return TN_OK;
        add_bytes((tn_dtype)had->dtype, had->numel, now, added);
        mine = now;
    }
    TN_TRY(tni_tensor_bump_version(had));
    move(had, mine, true);
    a->is_done = true;
    return TN_OK;
}

/* The sum, @p fresh or in the copy, takes its place if the gradient is still what it was. */
static tn_status end(attempt *a, tni_grad_meta *meta, const tn_tensor *grad,
                     TN_STOLEN tn_tensor *fresh)
{
    tn_status status = TN_OK;
    const bool in_copy = !fresh;
    hold(meta);
    tni_spin_lock(&meta->lock);
    a->is_done = meta->grad == a->had;
    if (!in_copy)
        a->is_done = a->is_done && meta->n_sums == a->n_sums && writes_to(a->had) == a->writes;
    if (a->is_done && !in_copy) {
        tn_tensor *old = meta->grad;
        meta->grad = fresh;
        fresh = old;
    }
    tni_spin_unlock(&meta->lock);
    if (a->is_done && in_copy) {
        a->is_done = false;
        status = write_back(a, grad);
    }
    meta->n_sums += a->is_done;
    let(meta);
    tn_tensor_unref(fresh); /* the old one, or one that nobody wants */
    return status;
}

/* Where there is no memory of ours to be kept right: what foreign code handles it writes itself,
 * in turns; and where elements share their places the write is refused. */
static bool may_write_itself(const tn_tensor *had)
{
    return had && !has_places(had);
}

/* As @p add, without what is on for this thread: it saw this sum already. */
static tn_status unseen(tni_add_fn add, tn_tensor *t, tn_tensor *had, tn_tensor *grad,
                        bool may_write, tn_tensor **fresh)
{
    tni_aside aside;
    tni_aside_begin(&aside);
    const bool was = tni_anomaly_hush(true);
    tn_status status = add(t, had, grad, may_write, fresh);
    tni_anomaly_hush(was);
    tni_aside_end(&aside);
    return status;
}

/* @p is_seen: by what is on for this thread. */
static tn_status add_once(attempt *a, tn_tensor *t, tni_grad_meta *meta, tn_tensor *grad,
                          tni_add_fn add, bool writes, bool is_seen)
{
    const bool may_write = writes && (a->mine || may_write_itself(a->had));
    tn_tensor *fresh = NULL, *to = a->mine ? a->mine : a->had;
    tn_status status =
        is_seen ? add(t, to, grad, may_write, &fresh) : unseen(add, t, to, grad, may_write, &fresh);
    a->is_done = true; /* by who was written to */
    return status == TN_OK && (fresh || a->mine) ? end(a, meta, grad, fresh) : status;
}

static bool is_still(tni_grad_meta *meta, const tn_tensor *had)
{
    tni_spin_lock(&meta->lock);
    const bool is = meta->grad == had;
    tni_spin_unlock(&meta->lock);
    return is;
}

/* To what foreign code writes. Nothing is done if another took its place while this thread waited.
 */
static tn_status add_in_turn(attempt *a, tn_tensor *t, tni_grad_meta *meta, tn_tensor *grad,
                             tni_add_fn add, bool writes, bool is_seen)
{
    tni_sum_turn turn;
    TN_TRY(tni_sum_turn_take(meta, &turn));
    tn_status status =
        is_still(meta, a->had) ? add_once(a, t, meta, grad, add, writes, is_seen) : TN_OK;
    tni_sum_turn_end(meta, &turn);
    return status;
}

static TNI_COLD tn_status add_outside(tn_tensor *t, tni_grad_meta *meta, tn_tensor *grad,
                                      tni_add_fn add, bool writes)
{
    for (int tries = 0; tries < MOST_TRIES; tries++) {
        attempt a = {NULL};
        tn_status status = begin(&a, t, meta, writes);
        if (status == TN_OK)
            status =
                (is_plain(a.had) ? add_once : add_in_turn)(&a, t, meta, grad, add, writes, !tries);
        forget(&a);
        if (status != TN_OK || a.is_done)
            return status;
    }
    TN_FAIL(TN_INVALID,
            "the gradient of a tensor changed %d times while a pass added to it: a kernel or a "
            "handler from outside adds to it whenever it is added to",
            MOST_TRIES);
}

tn_status tni_grad_add(tn_tensor *t, tn_tensor *grad, tni_add_fn add, bool writes)
{
    tni_grad_meta *meta = NULL;
    TN_TRY(tni_meta_get(t, &meta));
    tn_tensor *fresh = NULL, *old = NULL;
    hold(meta);
    TN_AUTO(tn_tensor) had = tn_tensor_grad_ref(t); /* others may replace it meanwhile */
    if (TNI_UNLIKELY(calls_out(t, had, grad))) {
        let(meta);
        return add_outside(t, meta, grad, add, writes);
    }
    tn_status status = add(t, had, grad, writes, &fresh);
    meta->n_sums++;
    if (fresh)
        old = tni_grad_swap(meta, fresh);
    let(meta);
    tn_tensor_unref(old);
    return status;
}
