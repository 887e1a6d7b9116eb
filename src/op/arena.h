/* SPDX-License-Identifier: MIT */
/* op/arena.h: memory that goes all at once. What a parser makes lives in one arena, so that giving
 * a schema back, or leaving a parse that failed, is one pass over a few blocks. */
#ifndef TNI_OP_ARENA_H
#define TNI_OP_ARENA_H

#include "base/alloc.h"

typedef struct tni_arena {
    struct tni_arena_block *blocks; /* newest first */
    size_t next_nbytes;             /* of the next block at least */
} tni_arena;

/* @p first_nbytes: what the first block should hold. Allocates nothing yet. */
static inline tni_arena tni_arena_make(size_t first_nbytes)
{
    return (tni_arena){NULL, first_nbytes};
}
/* Aligned for any C type; NULL when there is no memory. */
void *tni_arena_alloc(tni_arena *arena, size_t nbytes) __attribute__((warn_unused_result));
/* A NUL-terminated copy of @p n characters. */
char *tni_arena_text(tni_arena *arena, const char *text, size_t n)
    __attribute__((warn_unused_result));
/* Free everything; the arena is empty and usable. It may itself lie in one of its blocks. */
void tni_arena_clear(tni_arena *arena);

#endif
