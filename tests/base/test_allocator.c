/* SPDX-License-Identifier: MIT */
/* What tenon/base.h promises about tn_set_allocator. A program of its own, because the first
 * allocation settles the matter: the tests stand in the order in which they must run, and each does
 * what the ones before it need, so that one alone can be run as well. */
#include "harness/test.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/alloc.h"
#include "base/str.h"

typedef struct arena {
    int allocs, frees;
    size_t last_align;
    bool empty;
} arena;

static arena mine;

static void *take(void *ctx, size_t nbytes, size_t align)
{
    arena *a = ctx;
    if (a->empty)
        return NULL;
    __atomic_fetch_add(&a->allocs, 1, __ATOMIC_RELAXED);
    a->last_align = align;
    return aligned_alloc(align, (nbytes + align - 1) & ~(align - 1));
}

static void give(void *ctx, void *ptr)
{
    arena *a = ctx;
    __atomic_fetch_add(&a->frees, 1, __ATOMIC_RELAXED);
    free(ptr);
}

static const tn_allocator allocator = {
    .size = sizeof(tn_allocator), .alloc = take, .free = give, .ctx = &mine};

static void install(void)
{
    static bool done;
    if (!done)
        ASSERT_OK(tn_set_allocator(&allocator));
    done = true;
}

TEST(an_allocator_with_a_field_missing_is_refused)
{
    tn_allocator bad = allocator;
    bad.alloc = NULL;
    EXPECT_FAIL(TN_INVALID, "allocator->alloc is NULL", tn_set_allocator(&bad));
    bad = allocator;
    bad.free = NULL;
    EXPECT_FAIL(TN_INVALID, "allocator->free is NULL", tn_set_allocator(&bad));
    bad = allocator;
    bad.size = 8;
    EXPECT_FAIL(TN_INVALID, "allocator->size is 8", tn_set_allocator(&bad));
}

TEST(a_failure_does_not_settle_the_allocator)
{
    EXPECT_FAIL(TN_VALUE, "before", tn_fail(TN_VALUE, "before"));
    EXPECT_OK(tn_set_allocator(&allocator));
    EXPECT_OK(tn_set_allocator(NULL)); /* and back, while nothing was allocated */
    install();
}

TEST(every_block_comes_from_the_allocator_and_goes_back)
{
    install();
    int allocs = mine.allocs, frees = mine.frees;
    void *a = tni_alloc(3), *b = tni_calloc(3), *c = tni_block_alloc(100);
    EXPECT_EQ_INT(mine.last_align, 64);
    void *d = tni_strdup("x"), *e = tni_alloc_unwatched(4);
    EXPECT_EQ_INT(mine.last_align, 16);
    ASSERT(a && b && c && d && e);
    EXPECT_EQ_INT(mine.allocs, allocs + 5);
    EXPECT(((char *)b)[0] == 0 && ((char *)b)[2] == 0);
    EXPECT((uintptr_t)c % 64 == 0);
    tni_free(a);
    tni_free(b);
    tni_block_free(c, 100);
    tni_free(d);
    tni_free_unwatched(e);
    EXPECT_EQ_INT(mine.frees, frees + 5);
}

TEST(realloc_moves_within_the_allocator)
{
    install();
    int allocs = mine.allocs, frees = mine.frees;
    char *p = tni_strdup("text");
    ASSERT(p);
    p = tni_realloc(p, 5, 1000);
    ASSERT(p);
    EXPECT_STR(p, "text");
    mine.empty = true;
    EXPECT(tni_realloc(p, 1000, 2000) == NULL);
    mine.empty = false;
    EXPECT_STR(p, "text");
    tni_free(p);
    EXPECT_EQ_INT(mine.allocs - allocs, mine.frees - frees);
}

TEST(it_cannot_be_replaced_once_it_was_used)
{
    install();
    tni_free(tni_alloc(1));
    EXPECT_FAIL(TN_INVALID, "already allocated", tn_set_allocator(&allocator));
    EXPECT_FAIL(TN_INVALID, "already allocated", tn_set_allocator(NULL));
}

TEST(watching_works_with_it)
{
    install();
    tn_status rc = TN_OK;
    int64_t before = tni_test_live;
    WITH_EACH_ALLOCATION_FAILING(rc)
    {
        tni_str s = TNI_STR_INIT;
        for (int i = 0; i < 100; i++)
            tni_str_add(&s, "some text");
        rc = s.failed ? TN_NOMEM : TN_OK;
        tni_str_clear(&s);
        EXPECT_EQ_INT(tni_test_live, before);
    }
    tni_alloc_unwatch();
    EXPECT(mine.allocs > 0);
    EXPECT_EQ_INT(mine.allocs, mine.frees);
}

TEST(a_long_message_is_cut_when_there_is_no_memory)
{
    install();
    char text[4000];
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = '\0';
    mine.empty = true;
    EXPECT_EQ_INT(tn_fail(TN_NOMEM, "cannot allocate: %s", text), TN_NOMEM);
    mine.empty = false;
    size_t n = strlen(tn_last_error());
    EXPECT(strncmp(tn_last_error(), "cannot allocate: xxx", 20) == 0);
    EXPECT(n > 1000 && n < 2000);
    EXPECT_STR(tn_last_error() + n - 4, "x...");
    EXPECT_EQ_INT(mine.allocs, mine.frees);
}

/* More threads than there are records that need no memory: some find none. */
enum { THREADS = 24 };

static void fail_without_memory(int i, void *arg)
{
    int *lost = arg;
    tn_status status = i % 2 ? TN_VALUE : TN_NOMEM;
    EXPECT_EQ_INT(tn_fail(status, "thread %d", i), status);
    EXPECT_EQ_INT(tn_last_status(), status);
    if (strstr(tn_last_error(), "there was no room")) {
        __atomic_fetch_add(lost, 1, __ATOMIC_RELAXED);
        EXPECT_STR(tn_last_error_where(), "");
        tni_error error;
        tni_error_take(&error);
        EXPECT_EQ_INT(tn_last_status(), TN_OK);
        EXPECT_EQ_INT(error.code, status);
        EXPECT_EQ_INT(tni_error_raise(&error), status);
        EXPECT_EQ_INT(tn_last_status(), status);
    } else {
        EXPECT_CONTAINS(tn_last_error(), "thread ");
    }
    /* Nobody ends, and gives a record back, before everybody has failed. */
    static int failed;
    __atomic_fetch_add(&failed, 1, __ATOMIC_RELEASE);
    while (__atomic_load_n(&failed, __ATOMIC_ACQUIRE) < THREADS)
        usleep(100); /* under the thread sanitizer, readers without a pause let no writer through */
    tn_clear_error();
    EXPECT_EQ_INT(tn_last_status(), TN_OK);
    EXPECT_STR(tn_last_error(), "");
}

TEST(the_status_is_kept_when_there_is_no_memory_for_a_record)
{
    install();
    int lost = 0;
    mine.empty = true;
    run_threads(THREADS, fail_without_memory, &lost);
    mine.empty = false;
    EXPECT(lost > 0 && lost < THREADS);
}
