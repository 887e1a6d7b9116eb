/* SPDX-License-Identifier: MIT */
/* Blocks of growing size, filled from the front. */
#include "op/arena.h"

#include <string.h>

enum { ALIGN = 16, MIN_BLOCK = 128, MAX_BLOCK = 1 << 16 };

typedef struct tni_arena_block {
    struct tni_arena_block *next;
    size_t used;
    size_t capacity;
    size_t reserved;
    char bytes[];
} tni_arena_block;

_Static_assert(offsetof(tni_arena_block, bytes) % ALIGN == 0, "bytes start aligned");

void *tni_arena_alloc(tni_arena *arena, size_t nbytes)
{
    size_t rounded;
    if (!tni_size_add(nbytes, ALIGN - 1, &rounded))
        return NULL;
    rounded -= rounded % ALIGN;
    tni_arena_block *block = arena->blocks;
    if (!block || block->capacity - block->used < rounded) {
        size_t capacity = arena->next_nbytes < MIN_BLOCK ? MIN_BLOCK : arena->next_nbytes;
#if defined(TN_STRESS) && TN_STRESS
        capacity = rounded; /* a block for each, so that each can fail and each overrun is seen */
#endif
        if (capacity < rounded)
            capacity = rounded;
        size_t total;
        if (!tni_size_add(sizeof *block, capacity, &total))
            return NULL;
        block = tni_alloc(total);
        if (!block)
            return NULL;
        *block = (tni_arena_block){.next = arena->blocks, .capacity = capacity};
        arena->blocks = block;
        arena->next_nbytes = capacity < MAX_BLOCK / 2 ? 2 * capacity : MAX_BLOCK;
    }
    void *ptr = block->bytes + block->used;
    block->used += rounded;
    return ptr;
}

char *tni_arena_text(tni_arena *arena, const char *text, size_t n)
{
    size_t nbytes;
    char *copy = tni_size_add(n, 1, &nbytes) ? tni_arena_alloc(arena, nbytes) : NULL;
    if (!copy)
        return NULL;
    if (n)
        memcpy(copy, text, n);
    copy[n] = '\0';
    return copy;
}

void tni_arena_clear(tni_arena *arena)
{
    tni_arena_block *block = arena->blocks;
    *arena = tni_arena_make(0);
    while (block) {
        tni_arena_block *next = block->next;
        tni_free(block);
        block = next;
    }
}
