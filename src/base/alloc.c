/* SPDX-License-Identifier: MIT */
/* Host memory: the allocator that the embedder may replace, the count of blocks that tests watch,
 * and the slow half of the free lists. */
#define _DEFAULT_SOURCE /* madvise */
#include "base/alloc.h"
#include "base/large.h"

#include <pthread.h>
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define HUGE_PAGE ((size_t)2 << 20)
#define HUGE_MIN  ((size_t)4 << 20)

/* --- the embedder's allocator -------------------------------------------------------------------
 */

/* Settled by the first allocation: from then on the allocator is fixed, because a block must go
 * back to where it came from. */
enum { OPEN = 0, SETTLED = 1, CHANGING = 2 };
static _Atomic int hook_state;
static tn_allocator hook; /* hook.alloc NULL: the C library. Written only in state CHANGING. */

_Atomic bool tni_alloc_slow;
static _Atomic bool watching;

static void refresh_slow(bool custom)
{
    atomic_store(&tni_alloc_slow, custom || atomic_load(&watching));
}

static void settle(void)
{
    int state = atomic_load_explicit(&hook_state, memory_order_acquire);
    while (state != SETTLED) {
        int open = OPEN;
        if (atomic_compare_exchange_weak_explicit(&hook_state, &open, SETTLED, memory_order_acq_rel,
                                                  memory_order_acquire))
            return;
        state = open;
    }
}

tn_status tn_set_allocator(const tn_allocator *allocator)
{
    if (allocator) {
        TN_CHECK(allocator->size >= sizeof *allocator, TN_INVALID,
                 "tn_set_allocator: allocator->size is %u, wanted sizeof(tn_allocator) = %zu",
                 (unsigned)allocator->size, sizeof *allocator);
        TN_CHECK(allocator->alloc && allocator->free, TN_INVALID,
                 "tn_set_allocator: allocator->%s is NULL, wanted a function",
                 allocator->alloc ? "free" : "alloc");
    }
    int open = OPEN;
    TN_CHECK(atomic_compare_exchange_strong_explicit(&hook_state, &open, CHANGING,
                                                     memory_order_acq_rel, memory_order_acquire),
             TN_INVALID,
             "tn_set_allocator: the library has already allocated memory, wanted a call before any "
             "other");
    hook = allocator ? *allocator : (tn_allocator){0};
    refresh_slow(hook.alloc != NULL);
    atomic_store_explicit(&hook_state, OPEN, memory_order_release);
    return TN_OK;
}

/* Allocators need not expect what can only be a mistake: no object is larger than this. */
static bool impossible(size_t nbytes)
{
    return TNI_UNLIKELY(nbytes > PTRDIFF_MAX - TNI_BLOCK_ALIGN);
}

/* Memory in pages of 2 MiB, where the system has them and asks to be asked: a sum over 16 MiB is
 * limited by how fast addresses are translated otherwise, and each of 512 times as many pages
 * would cost a fault when it is first touched. The part behind the last whole page is in small
 * ones: nothing is held beyond what was asked for. */
static void *huge_alloc(size_t nbytes)
{
    size_t rounded = (nbytes + 4095) & ~(size_t)4095;
    void *ptr; /* aligned_alloc may want a multiple of the alignment */
    if (posix_memalign(&ptr, HUGE_PAGE, rounded) != 0)
        return NULL;
    madvise(ptr, rounded & ~(HUGE_PAGE - 1), MADV_HUGEPAGE); /* refused: small pages */
    return ptr;
}

/* The three doors to the allocator. None counts. */
static void *raw_alloc(size_t nbytes, size_t align)
{
    if (impossible(nbytes))
        return NULL;
    settle();
    if (nbytes == 0)
        nbytes = 1;
    if (hook.alloc)
        return hook.alloc(hook.ctx, nbytes, align);
    if (align <= alignof(max_align_t))
        return malloc(nbytes);
    if (nbytes >= HUGE_MIN)
        return huge_alloc(nbytes);
    return aligned_alloc(align, (nbytes + align - 1) & ~(align - 1));
}

static void *raw_realloc(void *ptr, size_t old_nbytes, size_t new_nbytes)
{
    if (impossible(new_nbytes))
        return NULL;
    settle();
    if (!hook.alloc)
        return realloc(ptr, new_nbytes ? new_nbytes : 1);
    void *moved = raw_alloc(new_nbytes, alignof(max_align_t));
    if (moved && ptr) {
        memcpy(moved, ptr, old_nbytes < new_nbytes ? old_nbytes : new_nbytes);
        hook.free(hook.ctx, ptr);
    }
    return moved;
}

static void raw_free(void *ptr)
{
    if (hook.alloc)
        hook.free(hook.ctx, ptr);
    else
        free(ptr);
}

/* --- watching -----------------------------------------------------------------------------------
 */

static _Atomic int64_t live_blocks;
static _Atomic int64_t tries;
static _Atomic int64_t fail_number = -1;
static _Atomic bool fail_later;

void tni_alloc_watch(int64_t fail_at, bool keep_failing)
{
    atomic_store(&fail_number, fail_at);
    atomic_store(&fail_later, keep_failing);
    atomic_store(&tries, 0);
    atomic_store(&watching, true);
    atomic_store(&tni_alloc_slow, true);
}

void tni_alloc_unwatch(void)
{
    atomic_store(&watching, false);
    refresh_slow(hook.alloc != NULL);
}

bool tni_alloc_watching(void)
{
    return atomic_load(&watching);
}
int64_t tni_alloc_live(void)
{
    return atomic_load(&live_blocks);
}
int64_t tni_alloc_tried(void)
{
    return atomic_load(&tries);
}

static bool is_watching(void)
{
    return TNI_UNLIKELY(atomic_load_explicit(&watching, memory_order_relaxed));
}

/* Number this allocation; false when it is one that must fail. */
static bool watched_try(void)
{
    int64_t number = atomic_fetch_add(&tries, 1);
    int64_t at = atomic_load(&fail_number);
    return at < 0 || number < at || (number > at && !atomic_load(&fail_later));
}

static void *counted_alloc(size_t nbytes, size_t align)
{
    if (!is_watching())
        return raw_alloc(nbytes, align);
    void *ptr = watched_try() ? raw_alloc(nbytes, align) : NULL;
    if (ptr)
        atomic_fetch_add(&live_blocks, 1);
    return ptr;
}

static void counted_free(void *ptr)
{
    if (!ptr)
        return;
    if (is_watching())
        atomic_fetch_sub(&live_blocks, 1);
    raw_free(ptr);
}

/* --- memory of any size -------------------------------------------------------------------------
 */

void *tni_alloc(size_t nbytes)
{
    return counted_alloc(nbytes, alignof(max_align_t));
}

void *tni_calloc(size_t nbytes)
{
    if (!impossible(nbytes) && !atomic_load_explicit(&tni_alloc_slow, memory_order_relaxed)) {
        settle();
        if (!hook.alloc)
            return calloc(1, nbytes ? nbytes : 1); /* fresh pages are zero already */
    }
    void *ptr = tni_alloc(nbytes);
    if (ptr)
        memset(ptr, 0, nbytes);
    return ptr;
}

void *tni_realloc(void *ptr, size_t old_nbytes, size_t new_nbytes)
{
    if (!is_watching())
        return raw_realloc(ptr, old_nbytes, new_nbytes);
    void *moved = watched_try() ? raw_realloc(ptr, old_nbytes, new_nbytes) : NULL;
    if (moved && !ptr)
        atomic_fetch_add(&live_blocks, 1);
    return moved;
}

void tni_free(void *ptr)
{
    counted_free(ptr);
}

char *tni_strndup(const char *text, size_t n)
{
    n = strnlen(text, n);
    char *copy = tni_alloc(n + 1);
    if (copy) {
        memcpy(copy, text, n);
        copy[n] = '\0';
    }
    return copy;
}

char *tni_strdup(const char *text)
{
    return tni_strndup(text, strlen(text));
}

void *tni_alloc_unwatched(size_t nbytes)
{
    return raw_alloc(nbytes, alignof(max_align_t));
}

void tni_free_unwatched(void *ptr)
{
    if (ptr)
        raw_free(ptr);
}

/* --- free lists: see Note [Free lists] ----------------------------------------------------------
 */

/* How many blocks of a size a list keeps. A step of training makes and frees thousands of tensors
 * and nodes at a time, all of them small. */
static size_t list_room(size_t nbytes)
{
    enum { LIST_BYTES = 64 * 1024, MIDDLE_BYTES = 128 * 1024 };
    if (nbytes > TNI_BLOCK_MAX)
        return MIDDLE_BYTES / nbytes;
    return nbytes <= 256 ? 2048 : nbytes <= 512 ? 512 : LIST_BYTES / nbytes;
}

/* The class of a block between TNI_BLOCK_MAX and TNI_LARGE_MIN, and how large its blocks are. */
static inline size_t middle_class(size_t nbytes, size_t *rounded)
{
    _Static_assert(TNI_BLOCK_MIDDLE_MIN == 1u << 12 && TNI_LARGE_MIN == TNI_BLOCK_MIDDLE_MIN
                                                                            << TNI_BLOCK_MIDDLE / 4,
                   "four classes to a power of two");
    size_t power = 63 - (size_t)__builtin_clzll(nbytes - 1);
    size_t quarter = (nbytes - 1) >> (power - 2) & 3;
    *rounded = (quarter + 5) << (power - 2);
    return (power - 12) * 4 + quarter;
}

_Thread_local tni_block_cache *tni_blocks;

static pthread_once_t key_once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static bool key_made;
/* The lists of this thread are gone for good. A byte of its own, because the destructors of other
 * keys may still free blocks, and a list made for them would be nobody's to give back. */
static _Thread_local bool ended;

static void free_list(tni_block_list *list)
{
    while (list->head) {
        tni_free_block *block = list->head;
        list->head = block->next;
        raw_free(block);
    }
}

static void thread_ends(void *lists)
{
    tni_block_cache *cache = lists;
    tni_blocks = NULL;
    ended = true;
    for (size_t i = 0; i < TNI_BLOCK_CLASSES; i++)
        free_list(&cache->list[i]);
    for (size_t i = 0; i < TNI_BLOCK_MIDDLE; i++)
        free_list(&cache->middle[i]);
    raw_free(cache);
}

static void make_key(void)
{
    key_made = pthread_key_create(&key, thread_ends) == 0;
}

static bool make_lists(void)
{
    if (ended)
        return false;
    pthread_once(&key_once, make_key);
    if (!key_made)
        return false;
    tni_block_cache *cache = raw_alloc(sizeof *cache, TNI_BLOCK_ALIGN);
    if (!cache)
        return false;
    for (size_t i = 0; i < TNI_BLOCK_CLASSES; i++)
        cache->list[i] = (tni_block_list){NULL, list_room((i + 1) * TNI_BLOCK_ALIGN)};
    for (size_t i = 0; i < TNI_BLOCK_MIDDLE; i++)
        cache->middle[i] = (tni_block_list){NULL, list_room((i % 4 + 5) << (i / 4 + 10))};
    if (pthread_setspecific(key, cache) != 0) {
        raw_free(cache);
        return false;
    }
    tni_blocks = cache;
    return true;
}

/* Nobody watches, and the memory is the C library's. */
static inline bool lists_serve(void)
{
    return !atomic_load_explicit(&tni_alloc_slow, memory_order_relaxed);
}

static void free_all(void *const *victims, int n)
{
    for (int i = 0; i < n; i++)
        counted_free(victims[i]);
}

static bool is_middle(size_t nbytes)
{
    return nbytes > TNI_BLOCK_MAX && nbytes < TNI_LARGE_MIN;
}

static void *take_middle(size_t kind)
{
    tni_block_list *list = tni_blocks ? &tni_blocks->middle[kind] : NULL;
    if (!list || !list->head)
        return NULL;
    tni_free_block *block = list->head;
    list->head = block->next;
    list->room++;
    return block;
}

static bool keep_middle(void *ptr, size_t nbytes)
{
    if (!tni_blocks && !make_lists())
        return false;
    tni_block_list *list = &tni_blocks->middle[middle_class(nbytes, &nbytes)];
    if (!list->room)
        return false;
    tni_free_block *block = ptr;
    block->next = list->head;
    list->head = block;
    list->room--;
    return true;
}

static void *take_large(size_t rounded)
{
    void *victims[TNI_LARGE_SLOTS];
    int n;
    void *kept = tni_large_take(rounded, victims, &n);
    free_all(victims, n);
    return kept;
}

void tn_set_memory_cache(size_t nbytes)
{
    void *victims[TNI_LARGE_SLOTS + 1];
    tni_large_set_limit(nbytes);
    free_all(victims, tni_large_empty(victims));
}

void *tni_block_alloc_slow(size_t nbytes)
{
    /* A list holds blocks of the whole class, whatever size they were first asked for in. */
    size_t rounded;
    if (!tni_size_add(nbytes, TNI_BLOCK_ALIGN - 1, &rounded))
        return NULL;
    rounded &= ~(size_t)(TNI_BLOCK_ALIGN - 1);
#if TNI_BLOCK_LISTS
    if (is_middle(nbytes)) {
        size_t kind = middle_class(nbytes, &rounded);
        void *kept = lists_serve() ? take_middle(kind) : NULL;
        if (kept)
            return kept;
    }
    if (nbytes >= TNI_LARGE_MIN && nbytes <= PTRDIFF_MAX / 2) {
        rounded = tni_large_round(nbytes);
        void *kept = lists_serve() ? take_large(rounded) : NULL;
        if (kept)
            return kept;
    }
#endif
    return counted_alloc(rounded ? rounded : TNI_BLOCK_ALIGN, TNI_BLOCK_ALIGN);
}

void tni_block_free_slow(void *ptr, size_t nbytes)
{
#if TNI_BLOCK_LISTS
    if (ptr && nbytes && nbytes <= TNI_BLOCK_MAX && !tni_blocks && lists_serve() && make_lists()) {
        tni_block_free(ptr, nbytes);
        return;
    }
    if (ptr && is_middle(nbytes) && lists_serve() && keep_middle(ptr, nbytes))
        return;
    if (ptr && nbytes >= TNI_LARGE_MIN && lists_serve()) {
        void *victims[TNI_LARGE_SLOTS + 1];
        free_all(victims, tni_large_keep(ptr, tni_large_round(nbytes), victims));
        return;
    }
#else
    (void)nbytes;
    (void)is_middle;
    (void)take_middle;
    (void)keep_middle;
#endif
    counted_free(ptr);
}
