/* SPDX-License-Identifier: MIT */
/* core/storage.c: bytes on a device: taking them from the right allocator, giving them back to the
 * same one, and changing their number. */
#include "core/storage.h"

#include "core/device.h"
#include "core/fake.h"

#include <inttypes.h>
#include <string.h>

_Static_assert(sizeof(tni_storage) == TNI_BLOCK_ALIGN, "data behind the header must stay aligned");

/* ---- memory of a device ---- */

/* The words that programs look for, to try again with a smaller batch. */
#define NO_CPU_MEMORY                                                                             \
    "DefaultCPUAllocator: can't allocate memory: you tried to allocate %zu bytes. Error code 12 " \
    "(Cannot allocate memory)"

static tn_status data_alloc(tn_device device, size_t nbytes, void **out)
{
    if (nbytes == 0 || device.type == TN_DEVICE_META) {
        *out = NULL;
        return TN_OK;
    }
    void *data = NULL;
    if (device.type == TN_DEVICE_CPU) {
        data = tni_block_alloc(nbytes);
        TN_CHECK(data, TN_NOMEM, NO_CPU_MEMORY, nbytes);
    } else {
        char name[32];
        const tn_device_vtable *v = tni_device_vtable(device);
        TN_CHECK(v, TN_DEVICE, "cannot allocate on device %s: nothing provides this device",
                 tn_device_format(device, name, sizeof name));
        TN_TRY(v->alloc(v->ctx, device, nbytes, &data));
        TN_CHECK(data, TN_NOMEM, "device %s gave no memory for %zu bytes",
                 tn_device_format(device, name, sizeof name), nbytes);
    }
    tni_tally_alloc(nbytes);
    *out = data;
    return TN_OK;
}

static void data_free(tn_device device, void *data, size_t nbytes)
{
    if (!data)
        return;
    tni_tally_free(nbytes);
    if (device.type == TN_DEVICE_CPU) {
        tni_block_free(data, nbytes);
        return;
    }
    const tn_device_vtable *v = tni_device_vtable(device);
    v->free(v->ctx, device, data, nbytes);
}

/* Within a device other than the CPU there is no copy of its own: go through the host. */
static tn_status data_copy(tn_device device, void *to, const void *from, size_t nbytes)
{
    if (nbytes == 0 || !to)
        return TN_OK;
    if (device.type == TN_DEVICE_CPU) {
        memcpy(to, from, nbytes);
        return TN_OK;
    }
    const tn_device_vtable *v = tni_device_vtable(device);
    void *host = tni_block_alloc(nbytes);
    TN_CHECK(host, TN_NOMEM, NO_CPU_MEMORY, nbytes);
    tn_status status = v->to_host(v->ctx, device, host, from, nbytes);
    if (status == TN_OK)
        status = v->from_host(v->ctx, device, to, host, nbytes);
    tni_block_free(host, nbytes);
    return status;
}

/* ---- life ---- */

static void storage_release(void *object)
{
    tni_storage *s = object;
    if (s->side == TNI_SIDE_FOREIGN) {
        const tni_foreign *f = (const tni_foreign *)(s + 1);
        if (f->release)
            f->release(f->ctx);
    } else if (s->side == TNI_SIDE_FAKE) {
        tni_fake_release(s);
    } else if (s->capacity)
        data_free(s->device, s->data, s->capacity);
    s->data = NULL;
}

static void storage_destroy(void *object)
{
    tni_storage *s = object;
    tni_storage_tally_inline(s);
    tni_block_free(s, s->block_nbytes);
}

const tni_type tni_storage_type = {"storage", storage_release, storage_destroy, NULL};

tn_status tni_storage_new(tn_device device, size_t nbytes, tni_storage **out)
{
    if (tni_storage_is_small(device, nbytes)) {
        tni_storage *s = tni_storage_small(device, nbytes);
        TN_CHECK(s, TN_NOMEM, NO_CPU_MEMORY, nbytes);
        *out = s;
        return TN_OK;
    }
    void *data;
    TN_TRY(data_alloc(device, nbytes, &data));
    tni_storage *s = tni_block_alloc(sizeof *s);
    if (!s) {
        data_free(device, data, nbytes);
        TN_FAIL(TN_NOMEM, "cannot allocate a storage header of %zu bytes", sizeof *s);
    }
    tni_storage_fill(s, device, data, nbytes, sizeof *s);
    s->capacity = nbytes;
    *out = s;
    return TN_OK;
}

void tni_storage_set_release(tni_storage *s, void (*release)(void *ctx), void *ctx)
{
    tni_foreign *f = (tni_foreign *)(s + 1);
    f->release = release;
    f->ctx = ctx;
}

tn_status tni_storage_foreign(void *data, size_t nbytes, tn_device device,
                              void (*release)(void *ctx), void *ctx, tni_storage **out)
{
    size_t block_nbytes = sizeof(tni_storage) + sizeof(tni_foreign);
    tni_storage *s = tni_block_alloc(block_nbytes);
    TN_CHECK(s, TN_NOMEM, "cannot allocate a storage header of %zu bytes", block_nbytes);
    tni_storage_fill(s, device, data, nbytes, block_nbytes);
    s->resizable = 0;
    s->side = TNI_SIDE_FOREIGN;
    tni_storage_set_release(s, release, ctx);
    *out = s;
    return TN_OK;
}

size_t tni_storage_room(const tni_storage *s)
{
    if (s->device.type == TN_DEVICE_META && s->side != TNI_SIDE_FAKE)
        return SIZE_MAX;
    return s->inline_data ? s->block_nbytes - sizeof *s : s->capacity;
}

tn_status tni_storage_check_resize(const tni_storage *s, size_t nbytes, bool *stay)
{
    TN_CHECK(s->resizable, TN_INVALID, "Trying to resize storage that is not resizable");
    bool alone = tni_strong_count(&s->object) == 1;
    /* Memory of its own goes back when it shrinks; others may still look at shared memory. */
    *stay = nbytes <= tni_storage_room(s) && (s->capacity == 0 || !alone || nbytes == s->capacity);
    bool has_memory = s->side == TNI_SIDE_FAKE ? s->capacity != 0 : s->data != NULL;
    TN_CHECK(*stay || alone || !has_memory, TN_INVALID,
             "Trying to resize a storage of %zu bytes to %zu while %" PRIu32
             " tensors share it: it would move away from under the others",
             s->nbytes, nbytes, tni_strong_count(&s->object));
    return TN_OK;
}

tn_status tni_storage_resize(tni_storage *s, size_t nbytes)
{
    bool stay;
    TN_TRY(tni_storage_check_resize(s, nbytes, &stay));
    if (stay) {
        s->nbytes = nbytes;
        return TN_OK;
    }
    void *data;
    TN_TRY(data_alloc(s->device, nbytes, &data));
    tn_status status = data_copy(s->device, data, s->data, nbytes < s->nbytes ? nbytes : s->nbytes);
    if (status != TN_OK) {
        data_free(s->device, data, nbytes);
        return status;
    }
    if (s->capacity)
        data_free(s->device, s->data, s->capacity);
    tni_storage_tally_inline(s); /* no longer used, though the block stays until the header goes */
    s->data = data;
    s->nbytes = nbytes;
    s->capacity = nbytes;
    s->inline_data = 0;
    return TN_OK;
}
