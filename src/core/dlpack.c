/* SPDX-License-Identifier: MIT */
/* core/dlpack.c: tensors to and from other libraries without copying. What comes in is not trusted:
 * every field is checked before memory is touched. */
#include "core/dlpack_abi.h"
#include "core/device.h"
#include "core/state.h"
#include "core/tensor.h"
#include "tenon/storage.h"

#include <inttypes.h>
#include <string.h>

/* ---- dtypes and devices ---- */

typedef struct dtype_pair {
    uint8_t code, bits;
    int8_t dtype;
} dtype_pair;

static const dtype_pair pairs[] = {
    {TNI_DL_UINT, 8, TN_DTYPE_U8},
    {TNI_DL_INT, 8, TN_DTYPE_I8},
    {TNI_DL_INT, 16, TN_DTYPE_I16},
    {TNI_DL_INT, 32, TN_DTYPE_I32},
    {TNI_DL_INT, 64, TN_DTYPE_I64},
    {TNI_DL_FLOAT, 16, TN_DTYPE_F16},
    {TNI_DL_FLOAT, 32, TN_DTYPE_F32},
    {TNI_DL_FLOAT, 64, TN_DTYPE_F64},
    {TNI_DL_COMPLEX, 64, TN_DTYPE_C64},
    {TNI_DL_COMPLEX, 128, TN_DTYPE_C128},
    {TNI_DL_BOOL, 8, TN_DTYPE_BOOL},
    {TNI_DL_BFLOAT, 16, TN_DTYPE_BF16},
    {TNI_DL_UINT, 16, TN_DTYPE_U16},
    {TNI_DL_UINT, 32, TN_DTYPE_U32},
    {TNI_DL_UINT, 64, TN_DTYPE_U64},
    {TNI_DL_FLOAT8_E4M3FN, 8, TN_DTYPE_F8E4M3},
    {TNI_DL_FLOAT8_E4M3FNUZ, 8, TN_DTYPE_F8E4M3UZ},
    {TNI_DL_FLOAT8_E5M2, 8, TN_DTYPE_F8E5M2},
    {TNI_DL_FLOAT8_E5M2FNUZ, 8, TN_DTYPE_F8E5M2UZ},
};

static tn_status dtype_in(DLDataType type, tn_dtype *out)
{
    TN_CHECK(type.lanes == 1, TN_UNSUPPORTED, "DLPack: dtype has %u lanes, expected 1", type.lanes);
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        if (pairs[i].code == type.code && pairs[i].bits == type.bits) {
            *out = (tn_dtype)pairs[i].dtype;
            return TN_OK;
        }
    TN_FAIL(TN_UNSUPPORTED, "DLPack: dtype with code %u and %u bits is not supported", type.code,
            type.bits);
}

static DLDataType dtype_out(tn_dtype dtype)
{
    size_t i = 0;
    while (pairs[i].dtype != (int8_t)dtype)
        i++;
    return (DLDataType){pairs[i].code, pairs[i].bits, 1};
}

static tn_status device_in(DLDevice device, tn_device *out)
{
    tn_device found = TN_NO_DEVICE;
    if (device.device_type == TNI_DL_CPU)
        found = TN_CPU;
    else if (device.device_type == TNI_DL_CUDA && device.device_id >= 0 &&
             device.device_id <= INT16_MAX)
        found = TN_DEVICE_INIT(TN_DEVICE_CUDA, device.device_id);
    TN_CHECK(tni_device_usable(found), TN_UNSUPPORTED,
             "DLPack: device type %" PRId32 " number %" PRId32 " is not supported",
             device.device_type, device.device_id);
    *out = found;
    return TN_OK;
}

static tn_status device_out(const tn_tensor *t, DLDevice *out)
{
    char name[32];
    if (t->storage->device.type == TN_DEVICE_CPU && t->device.type == TN_DEVICE_CPU)
        *out = (DLDevice){TNI_DL_CPU, 0};
    else if (t->storage->device.type == TN_DEVICE_CUDA)
        *out = (DLDevice){TNI_DL_CUDA, t->device.index < 0 ? 0 : t->device.index};
    else
        TN_FAIL(TN_UNSUPPORTED, "DLPack: cannot export a tensor on device %s",
                tn_device_format(t->device, name, sizeof name));
    return TN_OK;
}

/* ---- out ---- */

/* One block: the struct that others see, what we hold, and copies of sizes and strides, because
 * ours may change while the other library looks. */
typedef struct exported {
    DLManagedTensorVersioned managed;
    tn_storage *storage; /* not the tensor, which may get other memory */
    int64_t dims[];
} exported;

static void delete_exported(DLManagedTensorVersioned *self)
{
    if (!self)
        return;
    exported *e = self->manager_ctx;
    tn_storage_unref(e->storage);
    tni_free(e);
}

tn_status tn_to_dlpack(tn_tensor *t, DLManagedTensorVersioned **out)
{
    TN_CHECK(t && out, TN_INVALID, "tn_to_dlpack: %s is NULL", t ? "out" : "t");
    TN_CHECK(!tn_tensor_requires_grad(t), TN_UNSUPPORTED,
             "Can't export tensors that require gradient, use tensor.detach()");
    DLDevice device;
    TN_TRY(device_out(t, &device));
    size_t n = t->ndim;
    exported *e = tni_alloc(sizeof *e + 2 * n * sizeof(int64_t));
    TN_CHECK(e, TN_NOMEM, "cannot allocate a DLPack struct for %zu dimensions", n);
    memcpy(e->dims, t->sizes, n * sizeof(int64_t));
    for (size_t d = 0; d < n; d++)
        e->dims[n + d] = t->strides[d];
    e->storage = tn_storage_ref(t->storage);
    e->managed = (DLManagedTensorVersioned){
        .version = {TNI_DLPACK_MAJOR, TNI_DLPACK_MINOR},
        .manager_ctx = e,
        .deleter = delete_exported,
        .dl_tensor = {.data = t->data,
                      .device = device,
                      .ndim = t->ndim,
                      .dtype = dtype_out((tn_dtype)t->dtype),
                      .shape = e->dims,
                      .strides = e->dims + n},
    };
    *out = &e->managed;
    return TN_OK;
}

/* ---- in ---- */

/* Everything that can be wrong with what we were given. */
static tn_status check_incoming(const DLTensor *d, tni_geometry *g, size_t *nbytes)
{
    tn_dtype dtype = TN_DTYPE_NONE;
    tn_device device = TN_NO_DEVICE;
    TN_TRY(dtype_in(d->dtype, &dtype));
    TN_TRY(device_in(d->device, &device));
    TN_CHECK(d->ndim >= 0 && d->ndim <= TN_MAX_DIMS, TN_INVALID,
             "DLPack: ndim is %" PRId32 ", expected 0 to %d", d->ndim, TN_MAX_DIMS);
    TN_CHECK(d->shape || d->ndim == 0, TN_INVALID,
             "DLPack: shape is NULL, expected %" PRId32 " sizes", d->ndim);
    for (int i = 0; d->strides && i < d->ndim; i++)
        TN_CHECK(d->strides[i] >= 0, TN_UNSUPPORTED,
                 "DLPack: negative strides are not supported, got %" PRId64 " for dimension %d",
                 d->strides[i], i);
    TN_TRY(tni_geometry_check(d->ndim, d->shape, d->strides, dtype, g, nbytes));
    g->device = device;
    TN_CHECK(d->data || *nbytes == 0, TN_INVALID, "DLPack: data is NULL, expected %zu bytes",
             *nbytes);
    uintptr_t at = (uintptr_t)d->data, end;
    TN_CHECK(d->byte_offset <= PTRDIFF_MAX && !__builtin_add_overflow(at, d->byte_offset, &at) &&
                 !__builtin_add_overflow(at, *nbytes, &end),
             TN_INVALID, "DLPack: byte_offset %" PRIu64 " leads out of memory", d->byte_offset);
    TN_CHECK(*nbytes == 0 || at % tni_dtype_align(dtype) == 0, TN_INVALID,
             "DLPack: data at %p with byte_offset %" PRIu64 " is not aligned for %s", d->data,
             d->byte_offset, tn_dtype_name(dtype));
    return TN_OK;
}

/* Only when all is well does the storage get @p release: until then the caller keeps @p ctx. */
static tn_status import(const DLTensor *d, void (*release)(void *ctx), void *ctx, tn_tensor **out)
{
    tni_geometry g;
    size_t nbytes;
    TN_TRY(check_incoming(d, &g, &nbytes));
    void *data = nbytes ? (char *)d->data + d->byte_offset : NULL;
    TN_AUTO(tni_storage) storage = NULL;
    TN_TRY(tni_storage_foreign(data, nbytes, g.device, NULL, NULL, &storage));
    tn_keyset keys = tni_fresh_keys[tni_tls.inference != 0][g.device.type];
    TN_AUTO(tn_tensor) t = NULL;
    TN_TRY(tni_tensor_over(storage, g.ndim, g.sizes, g.strides, 0, g.dtype, keys, g.device, &t));
    tni_storage_set_release(storage, release, ctx);
    *out = TN_MOVE(t);
    return TN_OK;
}

static void release_versioned(void *ctx)
{
    DLManagedTensorVersioned *m = ctx;
    if (m->deleter)
        m->deleter(m);
}

static void release_legacy(void *ctx)
{
    DLManagedTensor *m = ctx;
    if (m->deleter)
        m->deleter(m);
}

tn_status tn_from_dlpack(DLManagedTensorVersioned *m, tn_tensor **out)
{
    TN_CHECK(m && out, TN_INVALID, "tn_from_dlpack: %s is NULL", m ? "out" : "m");
    /* Of another major version only the version itself can be relied on. */
    TN_CHECK(m->version.major == TNI_DLPACK_MAJOR, TN_UNSUPPORTED,
             "DLPack: version %" PRIu32 ".%" PRIu32 " is not supported, expected %d.x",
             m->version.major, m->version.minor, TNI_DLPACK_MAJOR);
    TN_CHECK(
        !(m->flags & TNI_DL_FLAG_READ_ONLY), TN_UNSUPPORTED,
        "DLPack: the memory is marked read-only, and a tensor can be written to; copy it first");
    return import(&m->dl_tensor, release_versioned, m, out);
}

tn_status tn_from_dlpack_legacy(DLManagedTensor *m, tn_tensor **out)
{
    TN_CHECK(m && out, TN_INVALID, "tn_from_dlpack_legacy: %s is NULL", m ? "out" : "m");
    return import(&m->dl_tensor, release_legacy, m, out);
}
