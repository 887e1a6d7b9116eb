/* SPDX-License-Identifier: MIT */
/* core/storage_handle.c: storages as users hold them: tenon/storage.h. */
#include "core/storage.h"
#include "core/tensor.h"
#include "tenon/storage.h"

tn_status tn_storage_new(tn_device device, size_t nbytes, tn_storage **out)
{
    TN_CHECK(out, TN_INVALID, "tn_storage_new: out is NULL");
    TN_CHECK(device.type != TN_DEVICE_NONE, TN_INVALID, "tn_storage_new: no device was given");
    return tni_storage_new(device, nbytes, out);
}

tn_storage *tn_tensor_storage(const tn_tensor *t)
{
    tni_note_read(t);
    return t ? tn_storage_ref(t->storage) : NULL;
}

tn_storage *tn_storage_ref(tn_storage *s)
{
    if (s)
        tni_ref(&s->object);
    return s;
}

void tn_storage_unref(tn_storage *s)
{
    if (s)
        tni_storage_unref(s);
}

uint32_t tn_storage_use_count(const tn_storage *s)
{
    return s ? tni_strong_count(&s->object) : 0;
}

void *tn_storage_data(const tn_storage *s)
{
    return s ? s->data : NULL;
}

size_t tn_storage_nbytes(const tn_storage *s)
{
    return s ? s->nbytes : 0;
}

tn_device tn_storage_device(const tn_storage *s)
{
    return s ? s->device : TN_NO_DEVICE;
}

bool tn_storage_resizable(const tn_storage *s)
{
    return s && s->resizable;
}

tn_status tn_storage_resize(tn_storage *s, size_t nbytes)
{
    TN_CHECK(s, TN_INVALID, "tn_storage_resize: the storage is NULL");
    /* A handle that is alone with a tensor must not move its memory either. */
    return tni_storage_resize(s, nbytes);
}
