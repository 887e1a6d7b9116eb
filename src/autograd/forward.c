/* SPDX-License-Identifier: MIT */
/* autograd/forward.c: the dual level, and the tangents of tensors. */
#include "autograd/forward.h"

#include <string.h>
#include "autograd/formula_view.h"
#include "base/alloc.h"
#include "core/names.h"
#include "tenon/ops.h"

/* ---- the level, and who has a tangent in it ---- */

_Atomic uint32_t tni_forward_level;

/* More lost tangents than this, and all are. */
enum { MOST_LOST = 16 };

/* Tensors that hold a tangent, so that leaving the level can take it from them; and memory of
 * tangents that were lost: see tni_tangent_lost. */
static struct {
    tni_spin lock;
    tn_tensor **tensors; /* weak */
    size_t n, capacity;
    tni_storage *lost[MOST_LOST]; /* strong, so that no other memory comes to lie there */
    _Atomic uint32_t n_lost;
} level;

/* Forget tensors that are gone. Frees headers, and nothing that tensors hold: it runs locked. */
static void prune(void)
{
    size_t kept = 0;
    for (size_t i = 0; i < level.n; i++) {
        tn_tensor *t = level.tensors[i];
        if (tni_strong_count(&t->object) > 0)
            level.tensors[kept++] = t;
        else
            tni_weak_unref(&t->object);
    }
    level.n = kept;
}

/* False when there is no room. A list that pruning leaves nearly full is to grow, lest every tensor
 * prunes it again. */
static bool enlist_now(tn_tensor *t)
{
    if (level.n == level.capacity) {
        prune();
        if (2 * level.n >= level.capacity)
            return false;
    }
    tni_weak_ref(&t->object);
    level.tensors[level.n++] = t;
    return true;
}

static tn_status enlist(tn_tensor *t)
{
    for (;;) {
        tni_spin_lock(&level.lock);
        bool done = enlist_now(t);
        size_t capacity = level.capacity ? 2 * level.capacity : 64;
        tni_spin_unlock(&level.lock);
        if (done)
            return TN_OK;
        /* Memory is taken without the lock; another thread may have been faster. */
        tn_tensor **more = tni_alloc(capacity * sizeof *more);
        TN_CHECK(more, TN_NOMEM, "cannot note %zu tensors that have tangents", capacity);
        tni_spin_lock(&level.lock);
        if (level.capacity < capacity) {
            if (level.n > 0)
                memcpy(more, level.tensors, level.n * sizeof *more);
            tn_tensor **old = level.tensors;
            level.tensors = more;
            level.capacity = capacity;
            more = old;
        }
        tni_spin_unlock(&level.lock);
        tni_free(more);
    }
}

void tni_tangent_drop(tn_tensor *t)
{
    tni_grad_meta *meta = tni_meta(t);
    if (!meta)
        return;
    tni_spin_lock(&meta->lock);
    tn_tensor *tangent = TN_MOVE(meta->tangent);
    t->flags &= ~(uint32_t)TNI_HAS_TANGENT;
    tni_spin_unlock(&meta->lock);
    tn_tensor_unref(tangent);
}

tn_status tn_forward_enter(void)
{
    uint32_t none = 0;
    TN_CHECK(atomic_compare_exchange_strong(&tni_forward_level, &none, 1), TN_INVALID,
             "Nested forward mode AD is not supported at the moment");
    return TN_OK;
}

tn_status tn_forward_leave(void)
{
    uint32_t one = 1;
    TN_CHECK(atomic_compare_exchange_strong(&tni_forward_level, &one, 0), TN_INVALID,
             "Trying to exit a forward AD level but no level was entered");
    tni_spin_lock(&level.lock);
    tn_tensor **tensors = TN_MOVE(level.tensors);
    size_t n = level.n;
    level.n = level.capacity = 0;
    tni_storage *lost[MOST_LOST];
    uint32_t n_lost = atomic_exchange_explicit(&level.n_lost, 0, memory_order_relaxed);
    memcpy(lost, level.lost, sizeof lost);
    tni_spin_unlock(&level.lock);
    for (uint32_t i = 0; i < n_lost && i < MOST_LOST; i++)
        tni_storage_unref(lost[i]);
    for (size_t i = 0; i < n; i++) {
        if (tni_weak_lock(&tensors[i]->object)) {
            tni_tangent_drop(tensors[i]);
            tn_tensor_unref(tensors[i]);
        }
        tni_weak_unref(&tensors[i]->object);
    }
    tni_free(tensors);
    return TN_OK;
}

bool tn_forward_entered(void)
{
    return tni_forward_on;
}

bool tn_set_forward_grad_enabled(bool on)
{
    bool old = !tni_tls.no_forward_grad;
    tni_tls.no_forward_grad = on ? 0 : TNI_FORWARD_OFF;
    return old;
}

/* ---- tangents ---- */

static tn_tensor *own_tangent(tn_tensor *t)
{
    tni_grad_meta *meta = t->flags & TNI_HAS_TANGENT ? tni_meta(t) : NULL;
    if (!meta)
        return NULL;
    tni_spin_lock(&meta->lock);
    tn_tensor *tangent = tn_tensor_ref(meta->tangent);
    tni_spin_unlock(&meta->lock);
    return tangent;
}

/* Everything that can fail when @p t, which has none, is to keep a tangent. Harmless when it then
 * does not. */
static tn_status make_room(tn_tensor *t, tni_grad_meta **out)
{
    TN_TRY(tni_meta_get(t, out));
    return enlist(t);
}

static void put(tn_tensor *t, tni_grad_meta *meta, tn_tensor *tangent)
{
    tni_spin_lock(&meta->lock);
    tn_tensor *old = meta->tangent;
    meta->tangent = tn_tensor_ref(tangent);
    t->flags |= TNI_HAS_TANGENT;
    tni_spin_unlock(&meta->lock);
    tn_tensor_unref(old);
}

static tn_status keep(tn_tensor *t, tn_tensor *tangent)
{
    tni_grad_meta *meta = tni_meta(t);
    if (!(t->flags & TNI_HAS_TANGENT))
        TN_TRY(make_room(t, &meta));
    put(t, meta, tangent);
    return TN_OK;
}

bool tni_same_strides(const tn_tensor *a, const tn_tensor *b)
{
    for (int d = 0; d < a->ndim && a->numel; d++)
        if (a->sizes[d] > 1 && a->strides[d] != b->strides[d])
            return false;
    return true;
}

static bool same_sizes(const tn_tensor *a, const tn_tensor *b)
{
    return a->ndim == b->ndim && !memcmp(a->sizes, b->sizes, a->ndim * sizeof *a->sizes);
}

/* @p tangent as one of @p t, in the same layout, so that views of the one are views of the other.
 * The layout of a tensor whose elements overlap is left alone. */
static tn_status fit(const tn_tensor *t, tn_tensor *tangent, tn_tensor **out)
{
    if (same_sizes(t, tangent) && t->dtype == tangent->dtype &&
        (tni_same_strides(t, tangent) || !(t->flags & TNI_DENSE))) {
        *out = tn_tensor_ref(tangent);
        return TN_OK;
    }
    TN_AUTO(tn_tensor) made = NULL;
    tn_tensor_opts opts = tni_opts_of(t);
    if (t->flags & TNI_DENSE)
        TN_TRY(tn_empty_strided(t->sizes, t->ndim, t->strides, t->ndim, &opts, &made));
    else
        TN_TRY(tn_empty(t->sizes, t->ndim, &opts, TN_FORMAT_CONTIGUOUS, &made));
    TN_TRY(tn_copy_(made, tangent, false));
    *out = TN_MOVE(made);
    return TN_OK;
}

/* Is there nothing in the storage of @p t but its elements? */
static bool fills_storage(const tn_tensor *t)
{
    return t->offset == 0 && (t->flags & TNI_DENSE) &&
           (size_t)t->numel * tni_itemsize(t) == t->storage->nbytes;
}

/* Note [Tangents lie as storages do]
 * as_strided goes by the storage: of a primal that has gaps, or lies inside a larger storage, it
 * shows what lies between and around its elements, which does not move. The tangent of such a
 * primal lies in as large a storage, at the same places, among zeros; then the same view of the
 * tangent is the tangent of the view. Elements that share a place have no such layout: their
 * tangent is left as it is, and its as_strided is refused. */
static tn_status lay_out(const tn_tensor *t, tn_tensor *tangent, tn_tensor **out)
{
    const bool alike = tni_same_strides(t, tangent) && t->offset == tangent->offset &&
                       t->storage->nbytes == tangent->storage->nbytes;
    if (alike || t->numel == 0 || fills_storage(t) ||
        tni_may_overlap(t->ndim, t->sizes, t->strides)) {
        *out = tn_tensor_ref(tangent);
        return TN_OK;
    }
    TN_AUTO(tn_tensor) all = NULL;
    TN_AUTO(tn_tensor) made = NULL;
    const int64_t n = (int64_t)(t->storage->nbytes / tni_itemsize(t));
    tn_tensor_opts opts = tni_opts_of(t);
    TN_TRY(tn_zeros(&n, 1, &opts, &all));
    TN_TRY(
        tn_as_strided(all, t->sizes, t->ndim, t->strides, t->ndim, tn_some_int(t->offset), &made));
    made->flags &= ~(uint32_t)TNI_VIEW_CREATION; /* nobody else has the whole: it may be written */
    TN_TRY(tn_copy_(made, tangent, false));
    *out = TN_MOVE(made);
    return TN_OK;
}

/* The view of the base's tangent that @p t is of its base. Where one of them shows complex numbers
 * as pairs of real ones, both are taken as pairs. */
static tn_status view_of(const tn_tensor *base, const tn_tensor *t, tn_tensor *base_tangent,
                         tn_tensor **out)
{
    const bool mixed = base->dtype != t->dtype;
    const bool base_pairs = mixed && tn_dtype_is_complex((tn_dtype)base->dtype);
    const bool pairs = mixed && tn_dtype_is_complex((tn_dtype)t->dtype);
    TN_CHECK(base->storage == t->storage && (!mixed || base_pairs != pairs) &&
                 same_sizes(base, base_tangent) && tni_same_strides(base, base_tangent),
             TN_INVALID,
             "the tangent of a view cannot be found: the tangent of its base has another layout");
    TN_AUTO(tn_tensor) from = NULL;
    TN_AUTO(tn_tensor) real = NULL;
    if (!base_pairs)
        from = tn_tensor_ref(base_tangent);
    else
        TN_TRY(tn_view_as_real(base_tangent, &from));
    int64_t dims[2][TN_MAX_DIMS + 1];
    for (int d = 0; d < t->ndim; d++) {
        dims[0][d] = t->sizes[d];
        dims[1][d] = pairs ? 2 * t->strides[d] : t->strides[d];
    }
    dims[0][t->ndim] = 2;
    dims[1][t->ndim] = 1;
    const int64_t offset =
        (pairs ? 2 * t->offset : t->offset) - (base_pairs ? 2 * base->offset : base->offset);
    TN_TRY(tn_as_strided(from, dims[0], t->ndim + pairs, dims[1], t->ndim + pairs,
                         tn_some_int(from->offset + offset), pairs ? &real : out));
    return pairs ? tn_view_as_complex(real, out) : TN_OK;
}

/* Computing with tangents: calls push none. */
static uint8_t push_none(void)
{
    uint8_t old = tni_tls.no_forward_grad;
    tni_tls.no_forward_grad = TNI_FORWARD_PAUSED;
    return old;
}

/* ---- tangents that were lost ---- */

static bool is_lost(const tni_storage *memory)
{
    tni_spin_lock(&level.lock);
    uint32_t n = atomic_load_explicit(&level.n_lost, memory_order_relaxed);
    bool found = n > MOST_LOST;
    for (uint32_t i = 0; i < n && !found; i++)
        found = level.lost[i] == memory;
    tni_spin_unlock(&level.lock);
    return found;
}

static void lose(tn_tensor *tangent)
{
    if (!tangent || is_lost(tangent->storage))
        return;
    tni_spin_lock(&level.lock);
    uint32_t n = atomic_load_explicit(&level.n_lost, memory_order_relaxed);
    if (n < MOST_LOST) {
        tni_ref(&tangent->storage->object);
        level.lost[n] = tangent->storage;
    }
    if (n <= MOST_LOST)
        atomic_store_explicit(&level.n_lost, n + 1, memory_order_relaxed);
    tni_spin_unlock(&level.lock);
}

void tni_tangent_lost(tn_tensor *t)
{
    TN_AUTO(tn_tensor) own = own_tangent(t);
    TN_AUTO(tn_tensor) base = t->view_base ? own_tangent(t->view_base) : NULL;
    lose(own);
    lose(base);
}

static TNI_COLD tn_status check_lost(tn_tensor **tangent)
{
    if (!is_lost((*tangent)->storage))
        return TN_OK;
    tn_tensor_unref(TN_MOVE(*tangent));
    TN_FAIL(TN_INVALID,
            "memory ran out when a tensor that has a tangent was written, or a view of it: the "
            "tangent of that write is not known");
}

/* ---- a tensor's tangent ---- */

static tn_status found_tangent(tn_tensor *t, tn_tensor **out)
{
    *out = own_tangent(t);
    if (*out || !tni_has_tangent(t))
        return TN_OK;
    TN_AUTO(tn_tensor) base = own_tangent(t->view_base);
    if (!base)
        return TN_OK;
    TN_AUTO(tn_tensor) view = NULL;
    uint8_t old = push_none();
    tn_status status = view_of(t->view_base, t, base, &view);
    tni_tls.no_forward_grad = old;
    TN_TRY(status);
    TN_TRY(keep(t, view));
    *out = TN_MOVE(view);
    return TN_OK;
}

tn_status tni_tangent_of_view(const tn_tensor *of, tn_tensor *view)
{
    TN_AUTO(tn_tensor) from = own_tangent((tn_tensor *)(uintptr_t)of);
    TN_AUTO(tn_tensor) tangent = NULL;
    if (!from)
        return TN_OK;
    /* As if it were found later, where it is asked for: recorded, and no inference tensor. */
    tn_inference_guard guard = tn_inference_enter(false);
    (void)push_none();
    tn_status status = view_of(of, view, from, &tangent);
    tn_inference_leave(guard);
    return status == TN_OK ? keep(view, tangent) : status;
}

tn_status tni_tangent(tn_tensor *t, tn_tensor **out)
{
    TN_TRY(found_tangent(t, out));
    if (TNI_UNLIKELY(*out && atomic_load_explicit(&level.n_lost, memory_order_relaxed)))
        return check_lost(out);
    return TN_OK;
}

void tni_tangent_moved(tn_tensor *t, tn_tensor *tangent)
{
    put(t, tni_meta(t), tangent);
}

tn_status tni_tangent_set(tn_tensor *t, tn_tensor *tangent)
{
    TN_AUTO(tn_tensor) fitting = NULL;
    uint8_t old = push_none();
    tn_status status = fit(t, tangent, &fitting);
    tni_tls.no_forward_grad = old;
    TN_TRY(status);
    return keep(t, fitting);
}

tn_status tni_tangent_copy(tn_tensor *from, tn_tensor *to)
{
    TN_AUTO(tn_tensor) tangent = NULL;
    TN_AUTO(tn_tensor) copy = NULL;
    TN_TRY(tni_tangent(from, &tangent));
    if (!tangent)
        return TN_OK;
    uint8_t old = push_none();
    tn_status status = tn_clone(tangent, TN_FORMAT_NONE, &copy);
    tni_tls.no_forward_grad = old;
    return status == TN_OK ? tni_tangent_set(to, copy) : status;
}

/* Zeros for the base, so that the tangent of its view can be written. */
static tn_status give_base(tn_tensor *base)
{
    TN_AUTO(tn_tensor) zeros = NULL;
    TN_TRY(tn_zeros_like(base, NULL, TN_FORMAT_PRESERVE, &zeros));
    return tni_tangent_set(base, zeros);
}

/* Is the tangent to be written into one that there is, or will be? */
static bool writes_own(const tn_tensor *t)
{
    return tni_has_tangent(t) || t->view_base;
}

static tn_status prepare(tn_tensor *t, tn_tensor **tangent)
{
    TN_AUTO(tn_tensor) room = NULL;
    if (writes_own(t)) {
        if (!tni_has_tangent(t))
            TN_TRY(give_base(t->view_base));
        TN_TRY(tni_tangent(t, &room));
        return *tangent ? tni_check_internal_overlap(room) : TN_OK; /* zeros may lie anywhere */
    }
    tni_grad_meta *meta;
    TN_TRY(fit(t, *tangent, &room));
    TN_TRY(make_room(t, &meta));
    tn_tensor_unref(*tangent);
    *tangent = TN_MOVE(room);
    return TN_OK;
}

void tni_tangent_unprepare(tn_tensor *t)
{
    tni_tangent_drop(t);
    if (t->view_base)
        tni_tangent_drop(t->view_base);
}

tn_status tni_tangent_prepare(tn_tensor *t, tn_tensor **tangent, bool *given)
{
    *given = *tangent && !tni_has_tangent(t) &&
             !(t->view_base && (t->view_base->flags & TNI_HAS_TANGENT));
    if (!*tangent && !tni_has_tangent(t))
        return TN_OK;
    uint8_t old = push_none();
    tn_status status = prepare(t, tangent);
    tni_tls.no_forward_grad = old;
    if (status != TN_OK && *given)
        tni_tangent_unprepare(t);
    return status;
}

tn_status tni_tangent_commit(tn_tensor *t, tn_tensor *tangent)
{
    if (!tangent && !tni_has_tangent(t))
        return TN_OK;
    if (!writes_own(t)) {
        put(t, tni_meta(t), tangent);
        return TN_OK;
    }
    TN_AUTO(tn_tensor) own = NULL;
    uint8_t old = push_none();
    tn_status status = tni_tangent(t, &own);
    if (status == TN_OK)
        status = tangent ? tn_copy_(own, tangent, false) : tn_zero_(own);
    tni_tls.no_forward_grad = old;
    return status;
}

tn_status tni_tangent_written(tn_tensor *t, tn_tensor *tangent)
{
    TN_AUTO(tn_tensor) fitting = tn_tensor_ref(tangent);
    bool given;
    TN_TRY(tni_tangent_prepare(t, &fitting, &given));
    return tni_tangent_commit(t, fitting);
}

/* ---- dual tensors ---- */

static tn_status check_dual(const tn_tensor *primal, const tn_tensor *tangent)
{
    TN_CHECK(primal && tangent, TN_INVALID, "tn_make_dual wants a primal and a tangent");
    TN_CHECK(tni_forward_on, TN_INVALID,
             "Trying to create a dual Tensor for forward AD but no level exists, make sure to "
             "enter_dual_level() first.");
    tn_dtype dtype = (tn_dtype)primal->dtype;
    TN_CHECK(tni_dtype_is_inexact(dtype), TN_INVALID,
             "Expected primal to be floating point or complex, but got: torch.%s",
             tn_dtype_name(dtype));
    TN_CHECK(!tni_has_tangent(primal), TN_INVALID,
             "Making a dual Tensor based on a Tensor that already has a forward gradient at the "
             "same level 0 is not supported.");
    TN_CHECK(!tni_has_tangent(tangent), TN_INVALID,
             "Setting a forward grad that itself has a forward gradient at the same level0 is not "
             "supported.");
    char a[256], b[256];
    TN_CHECK(same_sizes(primal, tangent), TN_INVALID,
             "Trying to set a forward gradient that has a different size than that of the original "
             "Tensor, this is not supported. Tensor is of size %s while the given forward gradient "
             "is of size %s.",
             tni_format_sizes(primal->ndim, primal->sizes, a, sizeof a),
             tni_format_sizes(tangent->ndim, tangent->sizes, b, sizeof b));
    TN_CHECK(primal->dtype == tangent->dtype && primal->device.type == tangent->device.type &&
                 primal->device.index == tangent->device.index,
             TN_INVALID,
             "Trying to set a forward gradient that has another dtype or device than the original "
             "Tensor, this is not supported. Tensor is %s on %s while the given forward gradient "
             "is %s on %s.",
             tn_dtype_name(dtype), tn_device_format(primal->device, a, sizeof a),
             tn_dtype_name((tn_dtype)tangent->dtype),
             tn_device_format(tangent->device, b, sizeof b));
    return TN_OK;
}

/* A view that is recorded for gradients and has no tangent. */
static tn_status without_tangent(tn_tensor *t, tn_tensor **out)
{
    uint8_t old = push_none();
    tn_status status = tn_alias(t, out);
    tni_tls.no_forward_grad = old;
    if (status == TN_OK)
        (*out)->flags |= TNI_NO_TANGENT;
    return status;
}

tn_status tn_make_dual(tn_tensor *primal, tn_tensor *tangent, tn_tensor **out)
{
    TN_CHECK(out, TN_INVALID, "tn_make_dual: out is NULL");
    TN_TRY(check_dual(primal, tangent));
    TN_CHECK(!tni_names_of(primal) && !tni_names_of(tangent), TN_INVALID,
             "aten::_has_same_storage_numel is not yet supported with named tensors. Please drop "
             "names via `tensor = tensor.rename(None)`, call the op with an unnamed tensor, and "
             "set names on the result of the operation.");
    TN_AUTO(tn_tensor) dual = NULL;
    TN_AUTO(tn_tensor) laid = NULL;
    TN_AUTO(tn_tensor) ordinary = NULL;
    if (!primal->versions &&
        !tni_tls.inference) { /* calls with it must reach what pushes tangents */
        TN_TRY(tni_ordinary(primal, &ordinary));
        primal = ordinary;
    }
    TN_TRY(without_tangent(primal, &dual));
    uint8_t old = push_none();
    tn_status status = lay_out(primal, tangent, &laid);
    tni_tls.no_forward_grad = old;
    TN_TRY(status);
    TN_TRY(tni_tangent_set(dual, laid));
    *out = TN_MOVE(dual);
    return TN_OK;
}

tn_status tn_tensor_tangent(tn_tensor *t, tn_tensor **out)
{
    TN_CHECK(t && out, TN_INVALID, "tn_tensor_tangent wants a tensor and room for its tangent");
    return tni_tangent(t, out);
}

tn_status tn_unpack_dual(tn_tensor *t, tn_tensor **out_primal, tn_tensor **out_tangent)
{
    TN_CHECK(t && out_primal && out_tangent, TN_INVALID,
             "tn_unpack_dual wants a tensor and room for two");
    TN_AUTO(tn_tensor) primal = NULL;
    TN_AUTO(tn_tensor) tangent = NULL;
    TN_TRY(tni_tangent(t, &tangent));
    TN_TRY(without_tangent(t, &primal));
    *out_primal = TN_MOVE(primal);
    *out_tangent = TN_MOVE(tangent);
    return TN_OK;
}
