/* SPDX-License-Identifier: MIT */
/* cpu/copy_kernel.c: copy_, between any two devices. Devices only know how to move runs of bytes to
 * and from the host; whatever else has to change, changes on the way in a tensor of the CPU. */
#include <string.h>
#include "base/warn.h"
#include "core/device.h"
#include "cpu/copy.h"
#include "gen/kernels.h"
#include "iter/iter.h"
#include "shape/expand.h"
#include "tenon/ops.h"

static bool on_cpu(const tn_tensor *t)
{
    return t->storage->device.type == TN_DEVICE_CPU;
}

static tn_status vtable_of(const tn_tensor *t, const tn_device_vtable **out)
{
    char name[32];
    *out = tni_device_vtable(t->storage->device);
    TN_CHECK(*out, TN_DEVICE, "device %s has no functions to move memory",
             tn_device_format(t->device, name, sizeof name));
    return TN_OK;
}

/* ---- checks ---- */

static tn_status check_sizes(const tn_tensor *self, const tn_tensor *src)
{
    char a[TNI_SIZES_TEXT], b[TNI_SIZES_TEXT];
    int ndim;
    int64_t sizes[TN_MAX_DIMS];
    TN_TRY(tni_broadcast_sizes(self->ndim, self->sizes, src->ndim, src->sizes, &ndim, sizes));
    bool same = ndim == self->ndim;
    for (int d = 0; same && d < ndim; d++)
        same = sizes[d] == self->sizes[d];
    TN_CHECK(same, TN_INVALID, "output with shape %s doesn't match the broadcast shape %s",
             tni_format_sizes(self->ndim, self->sizes, a, sizeof a),
             tni_format_sizes(ndim, sizes, b, sizeof b));
    return TN_OK;
}

static bool loses_imaginary(const tn_tensor *self, const tn_tensor *src)
{
    return src->dtype != self->dtype && tn_dtype_is_complex((tn_dtype)src->dtype) &&
           !tn_dtype_is_complex((tn_dtype)self->dtype);
}

static bool plain_pair(const tn_tensor *self, const tn_tensor *src)
{
    if (self->ndim != src->ndim || !(self->flags & src->flags & TNI_CONTIGUOUS) ||
        self->storage == src->storage || loses_imaginary(self, src))
        return false;
    for (int d = 0; d < self->ndim; d++)
        if (self->sizes[d] != src->sizes[d])
            return false;
    return true;
}

/* ---- the CPU ---- */

static tn_status copy_on_cpu(tn_tensor *self, tn_tensor *src, bool copy_first)
{
    if (!copy_first)
        return tni_copy_cpu(self, src);
    TN_AUTO(tn_tensor) read = NULL;
    TN_TRY(tni_tensor_new(src->ndim, src->sizes, NULL, (tn_dtype)src->dtype, TN_CPU, &read));
    TN_TRY(tni_copy_cpu(read, src));
    return tni_copy_cpu(self, read);
}

/* ---- other devices ---- */

/* The bytes of a storage that @p t reaches, as a CPU tensor of the same geometry. */
static tn_status fetch(const tn_tensor *t, TN_OWNED tn_tensor **out)
{
    const tn_device_vtable *v;
    size_t nbytes, first = (size_t)t->offset * tni_itemsize(t);
    TN_TRY(vtable_of(t, &v));
    TN_CHECK(tni_required_bytes(t->ndim, t->sizes, t->strides, 0, tni_itemsize(t), &nbytes),
             TN_INVALID, "the tensor reaches further than bytes can be counted");
    TN_AUTO(tn_tensor) host = NULL;
    TN_TRY(tni_tensor_new(t->ndim, t->sizes, t->strides, (tn_dtype)t->dtype, TN_CPU, &host));
    TNI_REQUIRE(host->storage->nbytes >= nbytes);
    if (nbytes > 0)
        TN_TRY(v->to_host(v->ctx, t->storage->device, host->data,
                          (const char *)t->storage->data + first, nbytes));
    *out = TN_MOVE(host);
    return TN_OK;
}

/* @p host has the geometry of @p t. What lies between the elements of @p t is written back as it
 * was. */
static tn_status store(tn_tensor *t, const tn_tensor *host)
{
    const tn_device_vtable *v;
    TN_TRY(vtable_of(t, &v));
    if (t->numel == 0)
        return TN_OK;
    return v->from_host(v->ctx, t->storage->device,
                        (char *)t->storage->data + (size_t)t->offset * tni_itemsize(t), host->data,
                        host->storage->nbytes);
}

static tn_status copy_between(tn_tensor *self, tn_tensor *src)
{
    TN_AUTO(tn_tensor) from = NULL;
    TN_AUTO(tn_tensor) to = NULL;
    if (on_cpu(src))
        from = tn_tensor_ref(src);
    else
        TN_TRY(fetch(src, &from));
    if (on_cpu(self))
        return tni_copy_cpu(self, from);
    /* A dense destination is overwritten whole: nothing of it needs to come over first. */
    if (self->flags & TNI_DENSE)
        TN_TRY(tni_tensor_new(self->ndim, self->sizes, self->strides, (tn_dtype)self->dtype, TN_CPU,
                              &to));
    else
        TN_TRY(fetch(self, &to));
    TN_TRY(tni_copy_cpu(to, from));
    return store(self, to);
}

tn_status tni_kernel_copy_(tn_call *call, tn_tensor *self, tn_tensor *src, bool non_blocking)
{
    (void)call;
    (void)non_blocking;
    if (TNI_LIKELY(on_cpu(self) && on_cpu(src) && plain_pair(self, src)))
        return tni_copy_cpu(self, src);
    bool copy_first = false;
    if (self == src)
        return TN_OK;
    TN_TRY(tni_check_internal_overlap(self));
    TN_TRY(check_sizes(self, src));
    TN_CHECK(!tni_is_meta(src) || tni_is_meta(self), TN_UNSUPPORTED,
             "Cannot copy out of meta tensor; no data!");
    TN_TRY(tni_check_overlap(self, src, &copy_first));
    if (tni_is_meta(self))
        return TN_OK;
    if (TNI_UNLIKELY(loses_imaginary(self, src)))
        TNI_WARN_ONCE("Casting complex values to real discards the imaginary part");
    return on_cpu(self) && on_cpu(src) ? copy_on_cpu(self, src, copy_first)
                                       : copy_between(self, src);
}
