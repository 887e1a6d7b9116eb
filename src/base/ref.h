/* SPDX-License-Identifier: MIT */
/* base/ref.h: the header of every counted object.
 *
 * Note [Counts]
 * One 64-bit word: strong in the low half, weak in the high half. All strong references together
 * own one weak reference, so the memory goes when the weak half reaches zero:
 *
 *  - last strong reference gone: type->release(object) lets go of everything the object holds;
 *  - last weak reference gone: type->destroy(object) frees the memory.
 *
 * Increments are relaxed: whoever increments already holds a reference. Decrements are
 * acquire-release, so that whoever frees sees all earlier writes. When the word says "one strong,
 * no other weak" the caller is alone, which saves the locked instruction on the common path. */
#ifndef TNI_BASE_REF_H
#define TNI_BASE_REF_H

#include <stdatomic.h>
#include <stdlib.h> /* says whether this is glibc */
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 32)
#    include <sys/single_threaded.h>
#endif
#include "base/status.h"

typedef struct tni_type {
    const char *name;
    void (*release)(void *object); /* may be NULL */
    void (*destroy)(void *object);
    /* Of objects that are let go of in a way of their own (graphs, which are deep): what gives a
     * strong reference back, instead of tni_unref. Else NULL. */
    void (*unref)(void *object);
} tni_type;

typedef struct tni_object {
    _Atomic uint64_t counts;
    const tni_type *type;
} tni_object;

#define TNI_STRONG_ONE   UINT64_C(1)
#define TNI_WEAK_ONE     (UINT64_C(1) << 32)
#define TNI_COUNTS_FRESH (TNI_STRONG_ONE | TNI_WEAK_ONE)

static inline void tni_object_init(tni_object *object, const tni_type *type)
{
    atomic_store_explicit(&object->counts, TNI_COUNTS_FRESH, memory_order_relaxed);
    object->type = type;
}

/* Note [One thread]
 * While the process has a single thread a locked instruction buys nothing and costs as much as a
 * dozen plain ones. The C library says when that is so; once it does not, it never does again
 * before the other threads are gone. */
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 32)
#    define TNI_ONE_THREAD (__libc_single_threaded != 0)
#else
#    define TNI_ONE_THREAD false
#endif

/* Add to a word that other threads may be counting in too; what it held before. */
static inline uint64_t tni_counts_add(_Atomic uint64_t *counts, uint64_t n, memory_order order)
{
    if (!TNI_ONE_THREAD)
        return atomic_fetch_add_explicit(counts, n, order);
    uint64_t before = atomic_load_explicit(counts, memory_order_relaxed);
    atomic_store_explicit(counts, before + n, memory_order_relaxed);
    return before;
}
static inline void tni_count_up(_Atomic uint32_t *counter)
{
    if (!TNI_ONE_THREAD)
        atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
    else
        atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + 1,
                              memory_order_relaxed);
}

static inline void tni_ref(tni_object *object)
{
    tni_counts_add(&object->counts, TNI_STRONG_ONE, memory_order_relaxed);
}

void tni_unref_slow(tni_object *object);
/* The strong half has just reached zero: let go of what the object holds. */
void tni_unref_last(tni_object *object);

static inline void tni_unref(tni_object *object)
{
    if (TNI_LIKELY(atomic_load_explicit(&object->counts, memory_order_acquire) ==
                   TNI_COUNTS_FRESH)) {
        if (object->type->release)
            object->type->release(object);
        /* release() may have handed out weak references no more: we are still alone. */
        object->type->destroy(object);
        return;
    }
    tni_unref_slow(object);
}

static inline void tni_weak_ref(tni_object *object)
{
    tni_counts_add(&object->counts, TNI_WEAK_ONE, memory_order_relaxed);
}
void tni_weak_unref(tni_object *object);
/* Strong reference from a weak one; false when the object is already released. */
bool tni_weak_lock(tni_object *object);

static inline uint32_t tni_strong_count(const tni_object *object)
{
    return (uint32_t)atomic_load_explicit(&((tni_object *)(uintptr_t)object)->counts,
                                          memory_order_relaxed);
}

#endif
