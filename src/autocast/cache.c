/* SPDX-License-Identifier: MIT */
/* autocast/cache.c: casts of parameters that this thread keeps: a table by address, open
 * addressing, emptied as a whole when the outermost region is left. */
#include "autocast/cache.h"

#include "base/alloc.h"

typedef struct entry {
    tn_tensor *source, *cast; /* strong; source NULL: free */
    uint32_t version;         /* of the source, when it was cast */
} entry;

static _Thread_local struct {
    entry *entries;
    size_t capacity, n; /* capacity: 0 or a power of two, at most half full */
} cache;

static size_t slot_of(const entry *entries, size_t capacity, const tn_tensor *t)
{
    size_t i = (size_t)(((uintptr_t)t >> 4) * UINT64_C(0x9E3779B97F4A7C15) >> 32);
    for (i &= capacity - 1; entries[i].source && entries[i].source != t;
         i = (i + 1) & (capacity - 1))
        ;
    return i;
}

static uint32_t version_of(const tn_tensor *t)
{
    uint32_t version = 0;
    tn_status ignored = tn_tensor_version(t, &version);
    (void)ignored; /* an inference tensor counts none, and is no parameter */
    return version;
}

tn_tensor *tni_cast_cache_get(const tn_tensor *t, tn_dtype dtype)
{
    if (!cache.capacity)
        return NULL;
    const entry *e = &cache.entries[slot_of(cache.entries, cache.capacity, t)];
    bool usable = e->source && e->cast->dtype == dtype && e->version == version_of(t);
    return usable ? tn_tensor_ref(e->cast) : NULL;
}

static bool grow(void)
{
    size_t capacity = cache.capacity ? 2 * cache.capacity : 64;
    entry *entries = tni_calloc(capacity * sizeof *entries);
    if (!entries)
        return false;
    for (size_t i = 0; i < cache.capacity; i++)
        if (cache.entries[i].source)
            entries[slot_of(entries, capacity, cache.entries[i].source)] = cache.entries[i];
    tni_free(cache.entries);
    cache.entries = entries;
    cache.capacity = capacity;
    return true;
}

void tni_cast_cache_put(tn_tensor *t, tn_tensor *cast)
{
    if (2 * cache.n >= cache.capacity && !grow())
        return;
    entry *e = &cache.entries[slot_of(cache.entries, cache.capacity, t)];
    entry old = *e;
    *e = (entry){tn_tensor_ref(t), tn_tensor_ref(cast), version_of(t)};
    cache.n += old.source == NULL;
    tn_tensor_unref(old.source);
    tn_tensor_unref(old.cast);
}

void tni_cast_cache_clear(void)
{
    /* Out of the way first: a release function may come back here. */
    entry *entries = cache.entries;
    size_t capacity = cache.capacity;
    cache.entries = NULL;
    cache.capacity = cache.n = 0;
    for (size_t i = 0; i < capacity; i++) {
        tn_tensor_unref(entries[i].source);
        tn_tensor_unref(entries[i].cast);
    }
    tni_free(entries);
}
