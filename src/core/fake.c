/* SPDX-License-Identifier: MIT */
/* core/fake.c: fake storages, and fake tensors whose values are known: Note [Fake tensors]. */
#include "core/fake.h"

#include "core/state.h"
#include "core/storage.h"

tn_status tni_storage_fake(tni_object *mode, size_t nbytes, tni_storage **out)
{
    const size_t block_nbytes = sizeof(tni_storage) + sizeof(tni_fake_side);
    tni_storage *s = tni_block_alloc(block_nbytes);
    TN_CHECK(s, TN_NOMEM, "cannot allocate a storage header of %zu bytes", block_nbytes);
    tni_storage_fill(s, TN_META, NULL, nbytes, block_nbytes);
    s->side = TNI_SIDE_FAKE;
    s->capacity = nbytes; /* it refuses to grow under others as real memory does */
    tni_fake_side *side = tni_fake_side_of(s);
    tni_ref(mode);
    side->mode = mode;
    side->constant = NULL;
    *out = s;
    return TN_OK;
}

void tni_fake_release(tni_storage *s)
{
    tni_fake_side *side = tni_fake_side_of(s);
    if (side->constant)
        tni_storage_unref(side->constant);
    side->constant = NULL;
    tni_unref(side->mode);
}

tn_status tni_fake_needs_values(const char *op)
{
    TN_FAIL(TN_INVALID, "%s: its result " TNI_DEPENDS_ON_VALUES, op);
}

tn_status tni_fake_needs_sizes(const char *op)
{
    TN_FAIL(TN_INVALID, "%s: the size of its result " TNI_DEPENDS_ON_VALUES, op);
}

tn_status tni_fake_constant(tni_object *mode, const tn_tensor *real, tn_tensor **out)
{
    TN_AUTO(tni_storage) storage = NULL;
    TN_TRY(tni_storage_fake(mode, real->storage->nbytes, &storage));
    TN_TRY(tni_tensor_over(storage, real->ndim, real->sizes, real->strides, real->offset,
                           (tn_dtype)real->dtype,
                           tni_fresh_keys[tni_tls.inference != 0][real->device.type] | TNI_KS_FAKE,
                           real->device, out));
    tn_tensor *t = *out;
    if (t->versions)
        t->versions = &storage->version; /* as that of a tensor made with its storage */
    t->flags |= real->flags & TNI_WRAPPED_NUMBER;
    if (real->numel <= 1 && real->storage->nbytes <= TNI_CONSTANT_NBYTES) {
        tni_ref(&real->storage->object);
        tni_fake_side_of(storage)->constant = real->storage;
    }
    return TN_OK;
}
