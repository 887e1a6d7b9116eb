/* SPDX-License-Identifier: MIT */
/* base/alloc.h: the one door to host memory.
 *
 * Small fixed-size blocks (tensors, storages, small data) come from per-thread free lists, because
 * a malloc pair is as dear as the rest of a small operator. While allocations are being watched
 * (tests) and under the sanitizers the lists are bypassed, so that every block is seen. */
#ifndef TNI_BASE_ALLOC_H
#define TNI_BASE_ALLOC_H

#include <stdatomic.h>
#include "base/status.h"

/* NULL when there is no memory; the caller reports it. Size 0 gives a valid pointer. Not zeroed. */
void *tni_alloc(size_t nbytes) __attribute__((malloc, warn_unused_result));
void *tni_calloc(size_t nbytes) __attribute__((malloc, warn_unused_result));
/* Grow or shrink; on failure NULL and @p ptr is untouched. Copies min(old, new) bytes. */
void *tni_realloc(void *ptr, size_t old_nbytes, size_t new_nbytes)
    __attribute__((warn_unused_result));
/* For tni_alloc, tni_calloc, tni_realloc, tni_strdup. NULL does nothing. */
void tni_free(void *ptr);
char *tni_strdup(const char *text) __attribute__((warn_unused_result));
char *tni_strndup(const char *text, size_t n) __attribute__((warn_unused_result));

/* Like tni_alloc and tni_free, but never counted and never failed by a watch: for what outlives the
 * call that allocates it by design and is not the caller's to give back (the text of an error). */
void *tni_alloc_unwatched(size_t nbytes) __attribute__((malloc, warn_unused_result));
void tni_free_unwatched(void *ptr);

/* Note [Free lists]
 * Blocks of a known size, 64-byte aligned. From the free lists when at most TNI_BLOCK_MAX bytes; up
 * to TNI_LARGE_MIN from lists of four sizes to a power of two, by a call, because the C library
 * puts neighbours together and apart again for each of them, which takes longer than to fill one.
 * The same @p nbytes must be given back, on any thread: a block goes to the list of the thread that
 * frees it. A list takes a bounded number of blocks, further ones go to the allocator, and all go
 * there when the thread ends. A block from the allocator and one from a list are the same thing, so
 * that watching may begin and end at any moment. Size 0 gives a valid pointer; NULL may be freed.
 *
 * The state of a thread is one pointer in thread-local storage: a library that is loaded at run
 * time shares about a kilobyte of fast thread-local storage with everyone else in the process. */
#define TNI_BLOCK_ALIGN      64u
#define TNI_BLOCK_MIDDLE_MIN 4096u
/* As much, and a header before it: 32 x 32 floats of a tensor are one block. */
#define TNI_BLOCK_MAX     (TNI_BLOCK_MIDDLE_MIN + TNI_BLOCK_ALIGN)
#define TNI_BLOCK_CLASSES (TNI_BLOCK_MAX / TNI_BLOCK_ALIGN)
#define TNI_BLOCK_MIDDLE  16u /* classes from TNI_BLOCK_MIDDLE_MIN to TNI_LARGE_MIN */

/* The sanitizers can only see what goes through malloc. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#    define TNI_BLOCK_LISTS 0
#elif defined(__has_feature)
#    if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
        __has_feature(memory_sanitizer) || __has_feature(leak_sanitizer)
#        define TNI_BLOCK_LISTS 0
#    endif
#endif
#ifndef TNI_BLOCK_LISTS
#    define TNI_BLOCK_LISTS 1
#endif

typedef struct tni_free_block {
    struct tni_free_block *next;
} tni_free_block;

typedef struct tni_block_list {
    tni_free_block *head;
    size_t room; /* how many more blocks the list takes */
} tni_block_list;

typedef struct tni_block_cache {
    tni_block_list list[TNI_BLOCK_CLASSES];
    tni_block_list middle[TNI_BLOCK_MIDDLE];
} tni_block_cache;

/* Hidden, so that every access is one load and no call. */
TNI_HIDDEN extern _Thread_local tni_block_cache *tni_blocks
    __attribute__((tls_model("initial-exec")));
/* Set while watching and once a custom allocator is in: the lists are bypassed. */
TNI_HIDDEN extern _Atomic bool tni_alloc_slow;

void *tni_block_alloc_slow(size_t nbytes) __attribute__((malloc, warn_unused_result));
void tni_block_free_slow(void *ptr, size_t nbytes);

__attribute__((warn_unused_result)) static inline void *tni_block_alloc(size_t nbytes)
{
#if TNI_BLOCK_LISTS
    /* Size 0 wraps around to a class that does not exist and takes the slow way. */
    size_t kind = (nbytes - 1) / TNI_BLOCK_ALIGN;
    tni_block_cache *cache = tni_blocks;
    if (TNI_LIKELY(kind < TNI_BLOCK_CLASSES && cache &&
                   !atomic_load_explicit(&tni_alloc_slow, memory_order_relaxed))) {
        tni_free_block *block = cache->list[kind].head;
        if (TNI_LIKELY(block != NULL)) {
            cache->list[kind].head = block->next;
            cache->list[kind].room++;
            return block;
        }
    }
#endif
    return tni_block_alloc_slow(nbytes);
}

static inline void tni_block_free(void *ptr, size_t nbytes)
{
#if TNI_BLOCK_LISTS
    size_t kind = (nbytes - 1) / TNI_BLOCK_ALIGN;
    tni_block_cache *cache = tni_blocks;
    if (TNI_LIKELY(kind < TNI_BLOCK_CLASSES && cache && ptr && cache->list[kind].room &&
                   !atomic_load_explicit(&tni_alloc_slow, memory_order_relaxed))) {
        tni_free_block *block = (tni_free_block *)ptr;
        block->next = cache->list[kind].head;
        cache->list[kind].head = block;
        cache->list[kind].room--;
        return;
    }
#endif
    tni_block_free_slow(ptr, nbytes);
}

/* Checked sizes: false on overflow. */
static inline bool tni_size_mul(size_t a, size_t b, size_t *out)
{
    return !__builtin_mul_overflow(a, b, out);
}
static inline bool tni_size_add(size_t a, size_t b, size_t *out)
{
    return !__builtin_add_overflow(a, b, out);
}
static inline bool tni_i64_mul(int64_t a, int64_t b, int64_t *out)
{
    return !__builtin_mul_overflow(a, b, out);
}
static inline bool tni_i64_add(int64_t a, int64_t b, int64_t *out)
{
    return !__builtin_add_overflow(a, b, out);
}

/* Watching, for tests. While on, every allocation is counted; the one numbered @p fail_at (from 0,
 * counted over all threads since the call) fails, and so do all later ones when @p keep_failing.
 * fail_at < 0: none fails. Calling it again while watching starts a new count of tries and leaves
 * the count of live blocks as it is. */
void tni_alloc_watch(int64_t fail_at, bool keep_failing);
void tni_alloc_unwatch(void);
bool tni_alloc_watching(void);
/* Blocks allocated minus blocks freed while watched.
 *
 * Every allocation and every free counts, wherever the block came from: a block that is older than
 * the watch lowers the count when it goes. So the difference of two readings under one unbroken
 * watch is exactly how many blocks more the library holds, and one reading alone means nothing (it
 * may be negative). A test reads it once everything that is made only once has been made. */
int64_t tni_alloc_live(void);
/* Allocations tried since tni_alloc_watch. */
int64_t tni_alloc_tried(void);

#endif
