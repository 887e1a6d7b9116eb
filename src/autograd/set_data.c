/* SPDX-License-Identifier: MIT */
/* autograd/set_data.c: a tensor's elements apart from its history. */
#include "autograd/meta.h"
#include "autograd/view.h"
#include "tenon/autograd.h"

tn_status tn_tensor_data_alias(tn_tensor *t, tn_tensor **out)
{
    TN_CHECK(t && out, TN_INVALID, "tn_tensor_data_alias: t or out is NULL");
    TN_AUTO(tn_tensor) made = NULL;
    TN_TRY(tni_tensor_alias(t, t->ndim, t->sizes, t->strides, t->offset, &made));
    TN_TRY(tni_meta_same_names(made, t));
    *out = TN_MOVE(made);
    return TN_OK;
}

/* Gradients of the old kind were what it added up. */
static void drop_accumulator(tn_tensor *t)
{
    tni_grad_meta *meta = tni_meta(t);
    if (!meta)
        return;
    tni_spin_lock(&meta->lock);
    tni_node *old = TN_MOVE(meta->accumulator);
    tni_spin_unlock(&meta->lock);
    if (old)
        tni_weak_unref(&old->object);
}

/* A view that shows other elements is none of its old base: a write of one must not be recorded as
 * a write of the other. How its elements came about, its node, stays. */
static void leave_base(tn_tensor *t)
{
    t->flags &= ~(uint32_t)(TNI_VIEW_CREATION | TNI_NO_TANGENT);
    tn_tensor_unref(TN_MOVE(t->view_base));
}

tn_status tn_tensor_set_data(tn_tensor *t, tn_tensor *source)
{
    TN_CHECK(t && source, TN_INVALID, "tn_tensor_set_data: t or source is NULL");
    const tn_keyset apart =
        TNI_KS_AUTOGRAD | TNI_KS_ADINPLACE_OR_VIEW | TNI_FBIT(TN_KEY_QUANTIZED) | TNI_KS_NAMED;
    TN_CHECK(tni_keyset_minus(t->keys, apart) == tni_keyset_minus(source->keys, apart), TN_INVALID,
             "Attempted to call `variable.set_data(tensor)`, but `variable` and `tensor` have "
             "incompatible tensor type.");
    TN_CHECK(!tni_requires_grad(t) || tn_dtype_is_floating((tn_dtype)source->dtype) ||
                 tn_dtype_is_complex((tn_dtype)source->dtype),
             TN_INVALID,
             "data set to a tensor that requires gradients must be floating point or complex "
             "dtype");
    if (t == source)
        return TN_OK;
    bool named = ((t->keys | source->keys) & TNI_KS_NAMED) != 0;
    tni_grad_meta *meta;
    if (TNI_UNLIKELY(named))
        TN_TRY(tni_meta_get(t, &meta));
    bool leaves = t->view_base && t->storage != source->storage;
    if (leaves)
        TN_TRY(tni_view_refresh(t));
    bool other = t->dtype != source->dtype || t->device.type != source->device.type;
    if (tni_meta(t) && !other)
        atomic_store_explicit(&tni_meta(t)->keeps_accumulator, true, memory_order_relaxed);
    TN_TRY(tni_tensor_set_data(t, source));
    if (TNI_UNLIKELY(named))
        tni_meta_set_names(t, source->keys & TNI_KS_NAMED ? source->autograd->names : NULL);
    if (leaves)
        leave_base(t);
    if (other)
        drop_accumulator(t);
    return TN_OK;
}
