/* SPDX-License-Identifier: MIT */
/* fake/memo.c: a map between counted objects with weak references on both sides. A weak reference
 * keeps the memory of a header, so that no other object can take its address while it is a key. */
#include "fake/memo.h"

#include <stdint.h>

#include "base/alloc.h"
#include "base/hash.h"

typedef struct tni_memo_entry {
    tni_object *key;   /* weak; NULL: free */
    tni_object *value; /* weak */
} tni_memo_entry;

/* Where the key is, or would be put. The capacity is not 0, and there is a free entry. */
static tni_memo_entry *find(tni_memo_entry *entries, size_t capacity, const tni_object *key)
{
    uintptr_t address = (uintptr_t)key;
    size_t at = (size_t)tni_hash_bytes(&address, sizeof address) & (capacity - 1);
    while (entries[at].key && entries[at].key != key)
        at = (at + 1) & (capacity - 1);
    return &entries[at];
}

tni_object *tni_memo_get(const tni_memo *memo, const tni_object *key)
{
    if (memo->capacity == 0)
        return NULL;
    const tni_memo_entry *e = find(memo->entries, memo->capacity, key);
    return e->key && tni_weak_lock(e->value) ? e->value : NULL;
}

static void drop(tni_memo_entry *e)
{
    tni_weak_unref(e->key);
    tni_weak_unref(e->value);
    e->key = NULL;
}

/* Room for one more: throw out the dead, and grow when the living take more than half. */
static tn_status make_room(tni_memo *memo)
{
    if (memo->n < memo->capacity / 2)
        return TN_OK;
    size_t alive = 0;
    for (size_t i = 0; i < memo->capacity; i++)
        alive += memo->entries[i].key && tni_strong_count(memo->entries[i].value) > 0;
    size_t capacity = 16;
    while (capacity < 4 * (alive + 1))
        capacity *= 2;
    tni_memo_entry *entries = tni_calloc(capacity * sizeof *entries);
    TN_CHECK(entries, TN_NOMEM, "cannot allocate a memo of %zu entries", capacity);
    size_t n = 0;
    for (size_t i = 0; i < memo->capacity; i++) {
        tni_memo_entry *e = &memo->entries[i];
        if (!e->key)
            continue;
        if (n < capacity / 2 - 1 && tni_strong_count(e->value) > 0) {
            *find(entries, capacity, e->key) = *e;
            n++;
        } else {
            drop(e);
        }
    }
    tni_free(memo->entries);
    *memo = (tni_memo){entries, capacity, n};
    return TN_OK;
}

tn_status tni_memo_put(tni_memo *memo, tni_object *key, tni_object *value)
{
    TN_TRY(make_room(memo));
    tni_memo_entry *e = find(memo->entries, memo->capacity, key);
    tni_weak_ref(value);
    if (e->key) {
        tni_weak_unref(e->value);
    } else {
        tni_weak_ref(key);
        e->key = key;
        memo->n++;
    }
    e->value = value;
    return TN_OK;
}

void tni_memo_clear(tni_memo *memo)
{
    for (size_t i = 0; i < memo->capacity; i++)
        if (memo->entries[i].key)
            drop(&memo->entries[i]);
    tni_free(memo->entries);
    *memo = (tni_memo){NULL, 0, 0};
}
