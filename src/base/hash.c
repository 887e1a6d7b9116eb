/* SPDX-License-Identifier: MIT */
/* Map from text to pointer: linear probing in a table that is at most three quarters full. A
 * removed entry leaves a tombstone, so that entries placed behind it are still found; growing drops
 * them. */
#include "base/hash.h"

#include <string.h>
#include "base/alloc.h"

struct tni_map_slot {
    const char *key; /* NULL: never used */
    uint64_t hash;
    void *value;
};

enum { FIRST_CAPACITY = 8 };

static const char tombstone[] = "";

static uint64_t mix(uint64_t h)
{
    h ^= h >> 32;
    h *= UINT64_C(0x9fb21c651e98df25);
    return h ^ (h >> 29);
}

uint64_t tni_hash_bytes(const void *data, size_t n)
{
    const unsigned char *bytes = data;
    uint64_t h = mix(UINT64_C(0x9e3779b97f4a7c15) ^ n);
    for (; n >= 8; n -= 8, bytes += 8) {
        uint64_t word;
        memcpy(&word, bytes, 8);
        h = mix(h ^ word);
    }
    if (n) {
        uint64_t word = 0;
        memcpy(&word, bytes, n);
        h = mix(h ^ word);
    }
    return mix(h);
}

static bool live(const struct tni_map_slot *slot)
{
    return slot->key && slot->key != tombstone;
}

/* The slot that holds @p key, or NULL. */
static struct tni_map_slot *find(const tni_map *map, const char *key, uint64_t hash)
{
    if (!map->n)
        return NULL;
    for (size_t i = (size_t)hash;; i++) {
        struct tni_map_slot *slot = &map->slots[i & (map->capacity - 1)];
        if (!slot->key)
            return NULL;
        if (slot->hash == hash && slot->key != tombstone && strcmp(slot->key, key) == 0)
            return slot;
    }
}

/* The first slot on the way of @p hash that can take an entry. There always is one. */
static struct tni_map_slot *vacancy(struct tni_map_slot *slots, size_t capacity, uint64_t hash)
{
    size_t i = (size_t)hash;
    while (live(&slots[i & (capacity - 1)]))
        i++;
    return &slots[i & (capacity - 1)];
}

static tn_status grow(tni_map *map)
{
    /* At most half full afterwards; a table of tombstones is rebuilt at its size. */
    size_t capacity = FIRST_CAPACITY;
    size_t nbytes;
    while (capacity / 2 < map->n + 1)
        capacity *= 2;
    struct tni_map_slot *slots = NULL;
    if (tni_size_mul(capacity, sizeof *slots, &nbytes))
        slots = tni_calloc(nbytes);
    TN_CHECK(slots, TN_NOMEM, "cannot allocate a table of %zu entries", capacity);
    for (size_t i = 0; i < map->capacity; i++) {
        if (live(&map->slots[i]))
            *vacancy(slots, capacity, map->slots[i].hash) = map->slots[i];
    }
    tni_free(map->slots);
    map->slots = slots;
    map->capacity = capacity;
    map->used = map->n;
    return TN_OK;
}

void *tni_map_get(const tni_map *map, const char *key)
{
    if (!map->n)
        return NULL;
    const struct tni_map_slot *slot = find(map, key, tni_hash_bytes(key, strlen(key)));
    return slot ? slot->value : NULL;
}

tn_status tni_map_put(tni_map *map, const char *key, void *value)
{
    uint64_t hash = tni_hash_bytes(key, strlen(key));
    struct tni_map_slot *slot = find(map, key, hash);
    if (!slot) {
        if (map->used + 1 > map->capacity / 4 * 3)
            TN_TRY(grow(map));
        slot = vacancy(map->slots, map->capacity, hash);
        if (!slot->key)
            map->used++;
        map->n++;
    }
    *slot = (struct tni_map_slot){key, hash, value};
    return TN_OK;
}

void *tni_map_remove(tni_map *map, const char *key)
{
    struct tni_map_slot *slot = find(map, key, tni_hash_bytes(key, strlen(key)));
    if (!slot)
        return NULL;
    void *value = slot->value;
    *slot = (struct tni_map_slot){tombstone, 0, NULL};
    map->n--;
    return value;
}

bool tni_map_next(const tni_map *map, size_t *cursor, const char **key, void **value)
{
    while (*cursor < map->capacity) {
        const struct tni_map_slot *slot = &map->slots[(*cursor)++];
        if (live(slot)) {
            *key = slot->key;
            *value = slot->value;
            return true;
        }
    }
    return false;
}

void tni_map_clear(tni_map *map)
{
    tni_free(map->slots);
    *map = (tni_map){0};
}
