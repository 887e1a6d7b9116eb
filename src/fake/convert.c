/* SPDX-License-Identifier: MIT */
/* fake/convert.c: the fake tensor that stands for a real one.
 *
 * A mode remembers, weakly, what stands for what: by tensor, so that asking twice gives one tensor;
 * by storage, so that what shares memory shares a fake storage; and by version counter, so that
 * what counts writes together goes on doing so. See Note [Version counters] in core/tensor.h. */
#include "fake/convert.h"

#include "autograd/meta.h"
#include "base/alloc.h"
#include "base/mark.h"
#include "fake/history.h"
#include "tenon/autograd.h"

static uint32_t version_of(const tn_tensor *t)
{
    return atomic_load_explicit(t->versions, memory_order_relaxed);
}

/* ---- memos ---- */

static tni_object *recall(tn_fake_mode *mode, const tni_memo *memo, const tni_object *key)
{
    tni_mutex_lock(&mode->lock, "a fake mode's memory");
    tni_object *found = tni_memo_get(memo, key);
    tni_mutex_unlock(&mode->lock);
    return found;
}

/* What stands for @p key: what another thread put there meanwhile, else @p value from now on. Gives
 * a reference. */
static tn_status remember(tn_fake_mode *mode, tni_memo *memo, tni_object *key, tni_object *value,
                          tni_object **out)
{
    tn_status status = TN_OK;
    tni_mutex_lock(&mode->lock, "a fake mode's memory");
    tni_object *found = tni_memo_get(memo, key);
    if (!found)
        status = tni_memo_put(memo, key, value);
    tni_mutex_unlock(&mode->lock);
    if (status != TN_OK)
        return status;
    if (!found)
        tni_ref(value);
    *out = found ? found : value;
    return TN_OK;
}

/* ---- storages ---- */

static tn_status fake_storage(tn_fake_mode *mode, tni_storage *real, tni_storage **out)
{
    tni_object *found = recall(mode, &mode->storages, &real->object);
    if (!found) {
        TN_AUTO(tni_storage) made = NULL;
        TN_TRY(tni_storage_fake(&mode->object, real->nbytes, &made));
        made->resizable = real->resizable;
        made->capacity = tni_storage_room(real);
        atomic_store_explicit(&made->version,
                              atomic_load_explicit(&real->version, memory_order_relaxed),
                              memory_order_relaxed);
        TN_TRY(remember(mode, &mode->storages, &real->object, &made->object, &found));
    }
    *out = (tni_storage *)found;
    return TN_OK;
}

/* ---- tensors ---- */

static tn_status convert(tn_fake_mode *mode, tn_tensor *real, tn_tensor **out);

/* The counter of @p real is in a header: its own, or that of another tensor, which may be gone. Let
 * @p fake count with the fake of that, else with one that counts in its place already, else alone
 * from now on. */
static tn_status share_counter(tn_fake_mode *mode, tn_tensor *real, tn_tensor *fake)
{
    tn_tensor *owner = real->version_owner ? real->version_owner : real;
    tni_object *counting = NULL;
    if (owner != real)
        counting = recall(mode, &mode->tensors, &owner->object);
    if (!counting)
        counting = recall(mode, &mode->counters, &owner->object);
    if (!counting && owner != real && tni_weak_lock(&owner->object)) {
        tn_tensor *converted = NULL;
        tn_status status = convert(mode, owner, &converted);
        tn_tensor_unref(owner);
        TN_TRY(status);
        counting = &converted->object;
    }
    if (counting) {
        tni_tensor_share_version(fake, (tn_tensor *)counting);
        tn_tensor_unref((tn_tensor *)counting);
    }
    tni_mutex_lock(&mode->lock, "a fake mode's memory");
    tn_status status = tni_memo_put(&mode->counters, &owner->object, &fake->object);
    tni_mutex_unlock(&mode->lock);
    return status;
}

static tn_status set_counter(tn_fake_mode *mode, tn_tensor *real, tn_tensor *fake)
{
    if (!fake->versions || !real->versions)
        return TN_OK;
    if (real->versions == &real->storage->version) {
        fake->versions = &fake->storage->version;
        return TN_OK;
    }
    atomic_store_explicit(&fake->version, version_of(real), memory_order_relaxed);
    return share_counter(mode, real, fake);
}

static tn_status build_plain(tn_fake_mode *mode, tn_tensor *real, tn_tensor **out)
{
    TN_AUTO(tni_storage) storage = NULL;
    TN_AUTO(tn_tensor) fake = NULL;
    TN_TRY(fake_storage(mode, real->storage, &storage));
    TN_TRY(tni_tensor_over(storage, real->ndim, real->sizes, real->strides, real->offset,
                           (tn_dtype)real->dtype, real->keys | TNI_KS_FAKE, real->device, &fake));
    fake->flags |= real->flags & TNI_WRAPPED_NUMBER;
    TN_TRY(set_counter(mode, real, fake));
    TN_TRY(tni_meta_same_names(fake, real));
    if (real->flags & TNI_HAS_GRAD_FN)
        TN_TRY(tni_fake_give_history(fake));
    else
        fake->flags |= real->flags & TNI_REQUIRES_GRAD;
    *out = TN_MOVE(fake);
    return TN_OK;
}

/* Whether a node made @p view, be it one that is still to be rebuilt from its base's. */
static bool has_history(const tn_tensor *view)
{
    bool stale = view->view_version != version_of(view);
    return (view->flags & TNI_HAS_GRAD_FN) ||
           (stale && (view->view_base->flags & TNI_HAS_GRAD_FN) != 0);
}

static tn_status build_view(tn_fake_mode *mode, tn_tensor *real, tn_tensor **out)
{
    TN_AUTO(tn_tensor) base = NULL;
    TN_AUTO(tn_tensor) between = NULL;
    TN_AUTO(tn_tensor) fake = NULL;
    bool recorded = has_history(real);
    TN_TRY(convert(mode, real->view_base, &base));
    if (recorded && !tn_tensor_requires_grad(base)) {
        /* It is a view of a view that was made a leaf. */
        TN_TRY(tni_fake_view(base, real, false, &between));
        between->flags |= TNI_REQUIRES_GRAD;
    }
    TN_TRY(tni_fake_view(between ? between : base, real, recorded, &fake));
    fake->flags = (fake->flags & ~(uint32_t)TNI_VIEW_CREATION) | (real->flags & TNI_VIEW_CREATION);
    if (!recorded) {
        fake->flags |= real->flags & TNI_REQUIRES_GRAD;
        /* A base that is a leaf may have been written since, and made to require grad: then the
         * history is rebuilt when somebody asks, here as there. */
        fake->view_version = real->view_version;
    }
    *out = TN_MOVE(fake);
    return TN_OK;
}

static tn_status build(tn_fake_mode *mode, tn_tensor *real, tn_tensor **out)
{
    TN_AUTO(tn_tensor) fake = NULL;
    TN_TRY(real->view_base ? build_view(mode, real, &fake) : build_plain(mode, real, &fake));
    tn_tensor *grad = tn_tensor_grad(real);
    if (grad) {
        TN_AUTO(tn_tensor) fake_grad = NULL;
        TN_TRY(convert(mode, grad, &fake_grad));
        TN_TRY(tn_tensor_set_grad(fake, fake_grad));
    }
    *out = TN_MOVE(fake);
    return TN_OK;
}

static tn_status convert(tn_fake_mode *mode, tn_tensor *real, tn_tensor **out)
{
    tni_object *found = recall(mode, &mode->tensors, &real->object);
    if (!found) {
        TN_AUTO(tn_tensor) fake = NULL;
        TN_TRY(build(mode, real, &fake));
        TN_TRY(remember(mode, &mode->tensors, &real->object, &fake->object, &found));
    }
    *out = (tn_tensor *)found;
    return TN_OK;
}

tn_status tn_fake_from_real(tn_fake_mode *mode, tn_tensor *real, tn_tensor **out)
{
    TN_CHECK(mode && real && out, TN_INVALID, "tn_fake_from_real: %s is NULL",
             !mode   ? "mode"
             : !real ? "real"
                     : "out");
    if (tni_is_fake(real) && tni_fake_mode_of(real) == mode) {
        *out = tn_tensor_ref(real);
        return TN_OK;
    }
    return convert(mode, real, out);
}

/* ---- arguments ---- */

static tn_status convert_argument(tn_fake_mode *mode, tn_tensor *t, tn_tensor **out)
{
    if (!t || tni_is_fake(t) || (t->flags & TNI_WRAPPED_NUMBER)) {
        *out = tn_tensor_ref(t);
        return TN_OK;
    }
    return convert(mode, t, out);
}

static tn_status convert_list(tn_fake_mode *mode, const tn_value *v, tn_value *out)
{
    tn_tensor **list = tni_calloc((v->count ? v->count : 1) * sizeof *list);
    TN_CHECK(list, TN_NOMEM, "cannot allocate a list of %u tensors", v->count);
    for (uint32_t i = 0; i < v->count; i++) {
        tn_status status = convert_argument(mode, v->u.tensors[i], &list[i]);
        if (status != TN_OK) {
            tn_tensor_list_free(list, i);
            return status;
        }
    }
    *out = tn_value_take_tensors(list, v->count);
    return TN_OK;
}

tn_status tni_fake_convert_arguments(tn_fake_mode *mode, const tni_schema *schema,
                                     const tn_value *args, tn_value *out)
{
    for (int i = 0; i < schema->nargs; i++) {
        tn_status status = TN_OK;
        tn_tensor *t = NULL;
        out[i] = args[i]; /* borrowed, unless it is about tensors */
        out[i].flags &= (uint8_t)~TN_VALUE_OWNED;
        if (args[i].tag == TN_TAG_TENSOR_LIST) {
            status = convert_list(mode, &args[i], &out[i]);
        } else if (args[i].tag == TN_TAG_TENSOR) {
            status = convert_argument(mode, args[i].u.tensor, &t);
            if (status == TN_OK)
                out[i] = tn_value_take_tensor(t);
        }
        if (status == TN_OK)
            continue;
        while (i-- > 0)
            tn_value_clear(&out[i]);
        return status;
    }
    return TN_OK;
}
