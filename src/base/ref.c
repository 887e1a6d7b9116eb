/* SPDX-License-Identifier: MIT */
/* The slow half of reference counting: other references exist, or did a moment ago. */
#include "base/ref.h"

static uint32_t strong_of(uint64_t counts)
{
    return (uint32_t)counts;
}
static uint32_t weak_of(uint64_t counts)
{
    return (uint32_t)(counts >> 32);
}

void tni_unref_slow(tni_object *object)
{
    uint64_t before =
        tni_counts_add(&object->counts, (uint64_t)0 - TNI_STRONG_ONE, memory_order_acq_rel);
    TNI_ASSERT(strong_of(before) != 0);
    if (strong_of(before) == 1)
        tni_unref_last(object);
}

void tni_unref_last(tni_object *object)
{
    if (object->type->release)
        object->type->release(object);
    tni_weak_unref(object); /* the one that the strong references owned together */
}

void tni_weak_unref(tni_object *object)
{
    /* Alone: nobody else can reach the word any more, so the locked instruction is not needed. */
    if (atomic_load_explicit(&object->counts, memory_order_acquire) == TNI_WEAK_ONE) {
        object->type->destroy(object);
        return;
    }
    uint64_t before =
        tni_counts_add(&object->counts, (uint64_t)0 - TNI_WEAK_ONE, memory_order_acq_rel);
    TNI_ASSERT(weak_of(before) != 0);
    if (weak_of(before) == 1)
        object->type->destroy(object);
}

bool tni_weak_lock(tni_object *object)
{
    uint64_t counts = atomic_load_explicit(&object->counts, memory_order_relaxed);
    if (TNI_ONE_THREAD && strong_of(counts) != 0) {
        atomic_store_explicit(&object->counts, counts + TNI_STRONG_ONE, memory_order_relaxed);
        return true;
    }
    while (strong_of(counts) != 0) {
        if (atomic_compare_exchange_weak_explicit(&object->counts, &counts, counts + TNI_STRONG_ONE,
                                                  memory_order_acq_rel, memory_order_relaxed))
            return true;
    }
    return false;
}
