/* SPDX-License-Identifier: MIT */
/* composite/set.c: set_: a tensor becomes another name for elements that lie elsewhere. */
#include "base/alloc.h"
#include "core/dtype.h"
#include "core/tensor.h"
#include "gen/kernels.h"
#include "tenon/ops.h"
#include "tenon/storage.h"

#include <string.h>

/* May @p self change its elements at all? Whether gradients allow it was asked before. */
static tn_status check_self(const tn_tensor *self)
{
    TN_CHECK(!self->view_base, TN_INVALID,
             "set_: a view cannot be given other elements: it would still be written through its "
             "base");
    return TN_OK;
}

static tn_status check_storage(const tn_tensor *self, const tni_storage *storage)
{
    char here[32], there[32];
    TN_CHECK(storage->device.type == self->storage->device.type &&
                 (storage->side == TNI_SIDE_FAKE) == (self->storage->side == TNI_SIDE_FAKE),
             TN_INVALID,
             "Attempted to set the storage of a tensor on device \"%s\" to a storage on different "
             "device \"%s\".  This is no longer allowed; the devices must match.",
             tn_device_format(self->storage->device, here, sizeof here),
             tn_device_format(storage->device, there, sizeof there));
    return TN_OK;
}

/* @p stride_n 0: contiguous. */
static tn_status set_part(tn_tensor *self, tni_storage *storage, int64_t offset,
                          const int64_t *size, int64_t size_n, const int64_t *stride,
                          int64_t stride_n)
{
    TN_TRY(check_self(self));
    TN_TRY(check_storage(self, storage));
    TN_CHECK(stride_n == 0 || stride_n == size_n, TN_INVALID,
             "unequal size length (%lld) and stride length (%lld)", (long long)size_n,
             (long long)stride_n);
    TN_CHECK(offset >= 0, TN_INVALID, "Tensor: invalid storage offset %lld", (long long)offset);
    TN_CHECK(size_n <= TN_MAX_DIMS, TN_INVALID, "set_(): size has 0 to %d entries, but got %lld",
             TN_MAX_DIMS, (long long)size_n);
    tni_geometry g;
    size_t nbytes, itemsize = tni_itemsize(self);
    TN_TRY(tni_geometry_check((int)size_n, size, stride_n == 0 ? NULL : stride,
                              (tn_dtype)self->dtype, &g, &nbytes));
    char text[TNI_SIZES_TEXT], steps[TNI_SIZES_TEXT];
    bool fits = tni_required_bytes(g.ndim, g.sizes, g.strides, offset, itemsize, &nbytes);
    TN_CHECK(fits && nbytes <= storage->nbytes, TN_INVALID,
             "setStorage: sizes %s, strides %s, storage offset %lld, and itemsize %zu requiring a "
             "storage size of %zu are out of bounds for storage of size %zu",
             tni_format_sizes(g.ndim, g.sizes, text, sizeof text),
             tni_format_sizes(g.ndim, g.strides, steps, sizeof steps), (long long)offset, itemsize,
             fits ? nbytes : SIZE_MAX, storage->nbytes);
    TN_AUTO(tn_tensor) made = NULL;
    TN_TRY(tni_tensor_over(storage, g.ndim, g.sizes, g.strides, offset, (tn_dtype)self->dtype,
                           self->keys, self->device, &made));
    return tni_tensor_set_data(self, made);
}

tn_status tni_kernel_set_storage_(tn_call *call, tn_tensor *self, tn_storage *source)
{
    (void)call;
    int64_t n = (int64_t)(source->nbytes / tni_itemsize(self));
    return set_part(self, source, 0, &n, 1, NULL, 0);
}

tn_status tni_kernel_set_storage_part_(tn_call *call, tn_tensor *self, tn_storage *source,
                                       int64_t storage_offset, const int64_t *size, int64_t size_n,
                                       const int64_t *stride, int64_t stride_n)
{
    (void)call;
    return set_part(self, source, storage_offset, size, size_n, stride, stride_n);
}

static tn_status check_dtype(const tn_tensor *self, const tn_tensor *source)
{
    TN_CHECK(self->dtype == source->dtype, TN_INVALID,
             "Could not set tensor of type %s to a tensor of type %s",
             tni_dtype_cpp((tn_dtype)source->dtype), tni_dtype_cpp((tn_dtype)self->dtype));
    return TN_OK;
}

tn_status tni_kernel_set_tensor_(tn_call *call, tn_tensor *self, tn_tensor *source)
{
    (void)call;
    TN_TRY(check_dtype(self, source));
    return set_part(self, source->storage, source->offset, source->sizes, source->ndim,
                    source->strides, source->ndim);
}

tn_status tni_kernel_set_tensor_part_(tn_call *call, tn_tensor *self, tn_tensor *source,
                                      int64_t storage_offset, const int64_t *size, int64_t size_n,
                                      const int64_t *stride, int64_t stride_n)
{
    (void)call;
    TN_TRY(check_dtype(self, source));
    TN_CHECK(source->flags & TNI_CONTIGUOUS, TN_INVALID,
             "passed in tensor to be used as storage must be contiguous");
    int64_t offset;
    TN_CHECK(tni_i64_add(source->offset, storage_offset, &offset), TN_INVALID,
             "Tensor: invalid storage offset %lld", (long long)storage_offset);
    return set_part(self, source->storage, offset, size, size_n, stride, stride_n);
}

tn_status tni_kernel_set_empty_(tn_call *call, tn_tensor *self)
{
    (void)call;
    TN_TRY(check_self(self));
    int64_t none = 0;
    TN_AUTO(tn_tensor) made = NULL;
    TN_TRY(tn_new_empty(self, &none, 1, NULL, &made));
    return tni_tensor_set_data(self, made);
}
