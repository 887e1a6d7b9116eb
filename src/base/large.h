/* SPDX-License-Identifier: MIT */
/* base/large.h: large blocks that were given back and are kept for a while.
 *
 * Note [Large blocks]
 * A step of training asks for the same sizes over and over. The C library gives memory back to the
 * system in between, and each page of it then costs a fault and a clearing when it is touched
 * again: more than the arithmetic of a small network. So blocks of at least TNI_LARGE_MIN bytes
 * are kept, up to a limit (tn_set_memory_cache), and given out again for exactly the same number of
 * pages. The oldest go first, and those that nobody has asked for in thousands of turns: what a
 * program held for a while does not stay with it for good. */
#ifndef TNI_BASE_LARGE_H
#define TNI_BASE_LARGE_H

#include "base/status.h"

#define TNI_LARGE_MIN ((size_t)64 << 10)

/* What a large block is allocated with: whole pages. */
static inline size_t tni_large_round(size_t nbytes)
{
    return (nbytes + 4095) & ~(size_t)4095;
}

/* A kept block of exactly @p rounded bytes, or NULL: then as much of what was not used for a while
 * goes as the caller will allocate anew, so that what is kept adds little to the most that a
 * program ever holds. @p victims: as in tni_large_keep. */
void *tni_large_take(size_t rounded, void **victims, int *n_victims);
/* Keep @p ptr. What must go for it, @p ptr itself when it is too large, is written to @p victims,
 * of which there is room for TNI_LARGE_SLOTS + 1: the caller frees them. Returns how many. */
int tni_large_keep(void *ptr, size_t rounded, void **victims);
/* Forget all: as tni_large_keep. */
int tni_large_empty(void **victims);
void tni_large_set_limit(size_t nbytes);
#define TNI_LARGE_SLOTS 512

#endif
