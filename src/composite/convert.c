/* SPDX-License-Identifier: MIT */
/* composite/convert.c: copies: another memory, dtype, device or layout. */
#include "core/device.h"
#include "core/scalar.h"
#include "core/state.h"
#include "core/tensor.h"
#include "gen/composites.h"
#include "gen/kernels.h"
#include "tenon/ops.h"

/* Copy into a fresh tensor: nobody has seen it yet, so nothing is counted or recorded. */
static tn_status copy_fresh(TN_STOLEN tn_tensor *fresh, tn_tensor *src, bool non_blocking,
                            tn_tensor **out)
{
    TN_AUTO(tn_tensor) t = fresh;
    uint64_t saved = tni_exclude(&tni_tls, TNI_BELOW_ADINPLACE_OR_VIEW);
    tn_status status = tn_copy_(t, src, non_blocking);
    tni_tls.excluded_xor = saved;
    TN_TRY(status);
    *out = TN_MOVE(t);
    return TN_OK;
}

/* Room for a copy of @p self. */
static tn_status room_for(tn_tensor *self, tn_dtype dtype, tn_device device,
                          tn_memory_format format, tn_tensor **out)
{
    int64_t strides[TN_MAX_DIMS];
    if (format == TN_FORMAT_CONTIGUOUS)
        return tni_tensor_new(self->ndim, self->sizes, NULL, dtype, device, out);
    if (format == TN_FORMAT_NONE || format == TN_FORMAT_PRESERVE)
        tni_preserve_strides(self, strides);
    else
        TN_TRY(tni_format_strides(format, self->ndim, self->sizes, strides));
    return tni_tensor_new(self->ndim, self->sizes, strides, dtype, device, out);
}

tn_status tni_kernel_clone(tn_call *call, tn_tensor *self, tn_memory_format memory_format,
                           tn_tensor **out)
{
    (void)call;
    tn_tensor *t = NULL;
    TN_TRY(room_for(self, (tn_dtype)self->dtype, self->device, memory_format, &t));
    return copy_fresh(t, self, false, out);
}

tn_status tni_kernel__to_copy(tn_call *call, tn_tensor *self, const tn_tensor_opts *opts,
                              bool non_blocking, tn_memory_format memory_format, tn_tensor **out)
{
    (void)call;
    tn_tensor *t = NULL;
    tn_dtype dtype = (tn_dtype)self->dtype;
    tn_device device = self->device;
    if (opts && opts->dtype != TN_DTYPE_NONE)
        dtype = (tn_dtype)opts->dtype;
    if (opts && opts->device.type != TN_DEVICE_NONE)
        device = opts->device;
    TN_CHECK(!tni_is_meta(self) || device.type == TN_DEVICE_META || tni_is_fake(self),
             TN_UNSUPPORTED, "Cannot copy out of meta tensor; no data!");
    TN_TRY(room_for(self, dtype, device, memory_format, &t));
    return copy_fresh(t, self, non_blocking, out);
}

/* ---- to: a copy only where something changes ---- */

static tn_status to(tn_tensor *self, const tn_tensor_opts *opts, bool non_blocking, bool copy,
                    tn_memory_format format, tn_tensor **out)
{
    bool same = !copy;
    if (opts && opts->dtype != TN_DTYPE_NONE)
        same &= opts->dtype == self->dtype;
    if (opts && opts->device.type != TN_DEVICE_NONE)
        same &= tni_device_equal(tni_device_normal(opts->device), self->device);
    if (format != TN_FORMAT_NONE && format != TN_FORMAT_PRESERVE)
        same &= tni_suggest_format(self) == format;
    if (same) {
        *out = tn_tensor_ref(self);
        return TN_OK;
    }
    TN_AUTO(tn_tensor) plain = NULL;
    if (opts && opts->dtype != TN_DTYPE_NONE && !tni_dtype_is_inexact(opts->dtype) &&
        tn_tensor_requires_grad(self)) {
        TN_TRY(tn_detach(self, &plain)); /* whole numbers have no history: none is asked for */
        self = plain;
    }
    return tn__to_copy(self, opts, non_blocking, format, out);
}

tn_status tni_composite_to_dtype_layout(tn_tensor *self, const tn_tensor_opts *opts,
                                        bool non_blocking, bool copy,
                                        tn_memory_format memory_format, tn_tensor **out)
{
    return to(self, opts, non_blocking, copy, memory_format, out);
}

tn_status tni_composite_to_dtype(tn_tensor *self, tn_dtype dtype, bool non_blocking, bool copy,
                                 tn_memory_format memory_format, tn_tensor **out)
{
    tn_tensor_opts opts = tn_opts(dtype, TN_NO_DEVICE);
    return to(self, &opts, non_blocking, copy, memory_format, out);
}

tn_status tni_composite_to_device(tn_tensor *self, tn_device device, tn_dtype dtype,
                                  bool non_blocking, bool copy, tn_memory_format memory_format,
                                  tn_tensor **out)
{
    tn_tensor_opts opts = tn_opts(dtype, device);
    return to(self, &opts, non_blocking, copy, memory_format, out);
}

tn_status tni_composite_to_other(tn_tensor *self, tn_tensor *other, bool non_blocking, bool copy,
                                 tn_memory_format memory_format, tn_tensor **out)
{
    tn_tensor_opts opts = tn_opts((tn_dtype)other->dtype, other->device);
    return to(self, &opts, non_blocking, copy, memory_format, out);
}

tn_status tni_composite_contiguous(tn_tensor *self, tn_memory_format memory_format, tn_tensor **out)
{
    if (tn_tensor_is_contiguous(self, memory_format)) {
        *out = tn_tensor_ref(self);
        return TN_OK;
    }
    TN_CHECK(memory_format != TN_FORMAT_PRESERVE, TN_INVALID,
             "preserve memory format is unsupported by the contiguous operator");
    return tn_clone(self, memory_format, out);
}

/* ---- one element as a number ---- */

tn_status tni_kernel__local_scalar_dense(tn_call *call, tn_tensor *self, tn_scalar *out)
{
    (void)call;
    _Alignas(16) char element[16];
    TN_CHECK(!tni_is_meta(self), TN_INVALID, "Tensor.item() cannot be called on meta tensors");
    TN_CHECK(self->numel > 0, TN_INVALID, "a Tensor with 0 elements cannot be converted to Scalar");
    const void *from = self->data;
    const tn_device_vtable *v = tni_device_vtable(self->storage->device);
    if (v) {
        TN_TRY(v->to_host(v->ctx, self->storage->device, element, self->data, tni_itemsize(self)));
        from = element;
    }
    *out = tni_scalar_load((tn_dtype)self->dtype, from);
    return TN_OK;
}

tn_status tni_composite_item(tn_tensor *self, tn_scalar *out)
{
    TN_CHECK(self->numel == 1, TN_INVALID,
             "a Tensor with %lld elements cannot be converted to Scalar", (long long)self->numel);
    return tn__local_scalar_dense(self, out);
}

/* ---- what an operator that writes would leave behind ---- */

tn_status tni_kernel_copy(tn_call *call, tn_tensor *self, tn_tensor *src, bool non_blocking,
                          tn_tensor **out)
{
    (void)call;
    tn_tensor *t = NULL;
    TN_TRY(room_for(self, (tn_dtype)self->dtype, self->device, TN_FORMAT_PRESERVE, &t));
    return copy_fresh(t, src, non_blocking, out);
}

tn_status tni_kernel_fill(tn_call *call, tn_tensor *self, tn_scalar value, tn_tensor **out)
{
    (void)call;
    return tn_full_like(self, value, NULL, TN_FORMAT_PRESERVE, out);
}

tn_status tni_kernel_fill_tensor(tn_call *call, tn_tensor *self, tn_tensor *value, tn_tensor **out)
{
    (void)call;
    TN_AUTO(tn_tensor) t = NULL;
    TN_TRY(room_for(self, (tn_dtype)self->dtype, self->device, TN_FORMAT_PRESERVE, &t));
    uint64_t saved = tni_exclude(&tni_tls, TNI_BELOW_ADINPLACE_OR_VIEW);
    tn_status status = tn_fill_tensor_(t, value);
    tni_tls.excluded_xor = saved;
    TN_TRY(status);
    *out = TN_MOVE(t);
    return TN_OK;
}
