/* SPDX-License-Identifier: MIT */
/* core/tensor_info.c: what can be asked of a tensor, and its requires-grad flag. NULL is answered,
 * not followed. */
#include "core/state.h"
#include "core/tensor.h"

int tn_tensor_ndim(const tn_tensor *t)
{
    return t ? t->ndim : 0;
}

const int64_t *tn_tensor_sizes(const tn_tensor *t)
{
    return t ? t->sizes : NULL;
}

const int64_t *tn_tensor_strides(const tn_tensor *t)
{
    return t ? t->strides : NULL;
}

tn_status tn_tensor_size(const tn_tensor *t, int64_t dim, int64_t *out)
{
    TN_CHECK(t && out, TN_INVALID, "tn_tensor_size: %s is NULL", t ? "out" : "t");
    TN_CHECK(t->ndim > 0, TN_INDEX, "Dimension specified as %lld but tensor has no dimensions",
             (long long)dim);
    int d;
    TN_TRY(tni_wrap_dim(dim, t->ndim, &d));
    *out = t->sizes[d];
    return TN_OK;
}

int64_t tn_tensor_numel(const tn_tensor *t)
{
    return t ? t->numel : 0;
}

int64_t tn_tensor_storage_offset(const tn_tensor *t)
{
    return t ? t->offset : 0;
}

size_t tn_tensor_nbytes(const tn_tensor *t)
{
    return t ? (size_t)t->numel * tni_itemsize(t) : 0;
}

size_t tn_tensor_storage_nbytes(const tn_tensor *t)
{
    return t ? t->storage->nbytes : 0;
}

tn_dtype tn_tensor_dtype(const tn_tensor *t)
{
    return t ? (tn_dtype)t->dtype : TN_DTYPE_NONE;
}

tn_device tn_tensor_device(const tn_tensor *t)
{
    return t ? t->device : TN_NO_DEVICE;
}

tn_layout tn_tensor_layout(const tn_tensor *t)
{
    return t ? TN_LAYOUT_STRIDED : TN_LAYOUT_NONE;
}

/* The kernel at this depth looks into memory: autograd wants to know whose (autograd/fallback.c).
 */
static void note_depth(uint32_t *least, uint32_t depth)
{
    if (*least == 0 || *least > depth)
        *least = depth;
}

void tni_note_read(const tn_tensor *t)
{
    tni_state *s = &tni_tls;
    if (!s->no_grad && tn_tensor_requires_grad(t))
        note_depth(&s->read, s->depth);
}

void *tn_tensor_data(const tn_tensor *t)
{
    tni_state *s = &tni_tls;
    tni_note_read(t);
    if (t && t->grad_fn)
        note_depth(&s->touched, s->depth);
    return t ? t->data : NULL;
}

const void *tn_tensor_const_data(const tn_tensor *t)
{
    tni_note_read(t);
    return t ? t->data : NULL;
}

tn_keyset tn_tensor_keys(const tn_tensor *t)
{
    return t ? t->keys : 0;
}

bool tn_tensor_is_contiguous(const tn_tensor *t, tn_memory_format format)
{
    if (!t)
        return false;
    switch (format) {
    case TN_FORMAT_CHANNELS_LAST:
        return t->flags & TNI_CHANNELS_LAST;
    case TN_FORMAT_CHANNELS_LAST_3D:
        return t->flags & TNI_CHANNELS_LAST_3D;
    case TN_FORMAT_CONTIGUOUS:
    case TN_FORMAT_NONE:
    case TN_FORMAT_PRESERVE:
        break;
    }
    return t->flags & TNI_CONTIGUOUS;
}

bool tn_tensor_is_non_overlapping_and_dense(const tn_tensor *t)
{
    return t && (t->flags & TNI_DENSE);
}

bool tn_tensor_shares_storage(const tn_tensor *a, const tn_tensor *b)
{
    return a && b && a->storage == b->storage;
}

bool tn_tensor_is_inference(const tn_tensor *t)
{
    return t && tni_keys_are_inference(t->keys);
}

tn_status tn_tensor_version(const tn_tensor *t, uint32_t *out)
{
    TN_CHECK(t && out, TN_INVALID, "tn_tensor_version: %s is NULL", t ? "out" : "t");
    TN_CHECK(t->versions, TN_INVALID, "Inference tensors do not track version counter.");
    *out = atomic_load_explicit(t->versions, memory_order_relaxed);
    return TN_OK;
}

bool tn_tensor_requires_grad(const tn_tensor *t)
{
    return t && ((t->flags & TNI_REQUIRES_GRAD) ||
                 (t->view_base && (t->view_base->flags & TNI_REQUIRES_GRAD)));
}

tn_status tn_tensor_set_requires_grad(tn_tensor *t, bool on)
{
    TN_CHECK(t, TN_INVALID, "tn_tensor_set_requires_grad: t is NULL");
    if (t->flags & TNI_HAS_GRAD_FN) {
        TN_CHECK(on, TN_INVALID,
                 "you can only change requires_grad flags of leaf variables. If you want to use a "
                 "computed variable in a subgraph that doesn't require differentiation use "
                 "var_no_grad = var.detach().");
        return TN_OK;
    }
    if (!on) {
        t->flags &= ~(uint32_t)TNI_REQUIRES_GRAD;
        return TN_OK;
    }
    tn_dtype dtype = (tn_dtype)t->dtype;
    TN_CHECK(tni_dtype_is_inexact(dtype), TN_INVALID,
             "only Tensors of floating point dtype can require gradients");
    TN_CHECK(
        tni_tls.inference || !tni_keys_are_inference(t->keys), TN_INVALID,
        "Setting requires_grad=True on inference tensor outside InferenceMode is not allowed.");
    t->flags |= TNI_REQUIRES_GRAD;
    return TN_OK;
}
