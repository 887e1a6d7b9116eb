/* SPDX-License-Identifier: MIT */
/* base/hash.h: map from text to pointer, open addressing. Keys are borrowed, never copied: they
 * must live as long as the entry. Not thread-safe; the owner locks. */
#ifndef TNI_BASE_HASH_H
#define TNI_BASE_HASH_H

#include "base/status.h"

typedef struct tni_map {
    struct tni_map_slot *slots;
    size_t capacity; /* 0 or a power of two */
    size_t n;        /* live entries */
    size_t used;     /* live entries and tombstones */
} tni_map;

uint64_t tni_hash_bytes(const void *data, size_t n);
void *tni_map_get(const tni_map *map, const char *key); /* NULL when absent */
/* Insert or replace; the entry keeps this @p key and lets go of an older one.
 * @retval TN_NOMEM, map unchanged */
TN_NODISCARD tn_status tni_map_put(tni_map *map, const char *key, void *value);
void *tni_map_remove(tni_map *map, const char *key); /* the value, NULL when absent */
/* Visit every entry in unspecified order; *cursor starts at 0. False at the end. */
bool tni_map_next(const tni_map *map, size_t *cursor, const char **key, void **value);
/* Free the table; the map is empty and usable. Keys and values are the owner's business. */
void tni_map_clear(tni_map *map);

#endif
