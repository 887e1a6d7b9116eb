/* SPDX-License-Identifier: MIT */
/* core/storage.h: the short way to make and drop a small storage, for core/tensor.c: the pair of
 * calls that every small operator pays for. Everyone else uses tni_storage_new of core/tensor.h. */
#ifndef TNI_CORE_STORAGE_H
#define TNI_CORE_STORAGE_H

#include "base/tally.h"
#include "core/state.h"
#include "core/tensor.h"

extern const tni_type tni_storage_type;

static inline void tni_storage_fill(tni_storage *s, tn_device device, void *data, size_t nbytes,
                                    size_t block_nbytes)
{
    tni_object_init(&s->object, &tni_storage_type);
    s->data = data;
    s->nbytes = nbytes;
    s->capacity = 0;
    s->device = device;
    s->resizable = 1;
    s->inline_data = 0;
    s->block_nbytes = (uint16_t)block_nbytes;
    atomic_store_explicit(&s->version, 0, memory_order_relaxed);
    s->side = TNI_SIDE_NONE;
    s->made_in = tni_tls.transform;
}

/* Header and bytes in one block: nothing but the block to give back. */
static inline bool tni_storage_is_small(tn_device device, size_t nbytes)
{
    return device.type == TN_DEVICE_META ||
           (device.type == TN_DEVICE_CPU && nbytes <= TNI_BLOCK_MAX - sizeof(tni_storage));
}

/* NULL when there is no memory. */
static inline tni_storage *tni_storage_small(tn_device device, size_t nbytes)
{
    bool has_data = nbytes != 0 && device.type != TN_DEVICE_META;
    size_t block_nbytes = sizeof(tni_storage) + (has_data ? nbytes : 0);
    tni_storage *s = (tni_storage *)tni_block_alloc(block_nbytes);
    if (TNI_LIKELY(s != NULL)) {
        tni_storage_fill(s, device, has_data ? s + 1 : NULL, nbytes, block_nbytes);
        s->inline_data = has_data;
        if (has_data)
            tni_tally_alloc(nbytes);
    }
    return s;
}

/* Bytes behind the header, which go with it. */
static inline void tni_storage_tally_inline(const tni_storage *s)
{
    if (s->inline_data)
        tni_tally_free(s->block_nbytes - sizeof *s);
}

/* tni_storage_unref without the indirect calls when the storage is small and ours alone. */
static inline void tni_storage_drop(tni_storage *s)
{
    if (atomic_load_explicit(&s->object.counts, memory_order_acquire) != TNI_COUNTS_FRESH) {
        uint64_t before =
            tni_counts_add(&s->object.counts, (uint64_t)0 - TNI_STRONG_ONE, memory_order_acq_rel);
        if ((uint32_t)before == 1)
            tni_unref_last(&s->object);
    } else if (TNI_LIKELY(s->capacity == 0 && s->side == TNI_SIDE_NONE)) {
        tni_storage_tally_inline(s);
        tni_block_free(s, s->block_nbytes);
    } else
        tni_storage_unref(s);
}

#endif
