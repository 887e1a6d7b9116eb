/* SPDX-License-Identifier: MIT */
/* tests/core/test_threads.c: any thread may hold, release and count a tensor. For the thread
 * sanitizer. */
#include "harness/test.h"

#include "core/tensor.h"

enum { THREADS = 32, ROUNDS = 300 };

static tn_tensor *make(void)
{
    tn_tensor *t = NULL;
    ASSERT_OK(tni_tensor_new(1, (int64_t[]){4}, NULL, TN_DTYPE_F32, TN_CPU, &t));
    return t;
}

static void ref_and_unref(int i, void *arg)
{
    (void)i;
    tn_tensor *t = arg;
    for (int k = 0; k < ROUNDS; k++) {
        tn_tensor *mine = tn_tensor_ref(t);
        EXPECT_EQ_INT(tn_tensor_numel(mine), 4);
        tn_tensor_unref(mine);
    }
    tn_tensor_unref(t); /* the reference this thread was given: one of them frees */
}

TEST(threads_that_release_at_once_free_once)
{
    for (int round = 0; round < 5; round++) {
        int64_t before = tni_test_live;
        tn_tensor *t = make();
        for (int i = 1; i < THREADS; i++)
            tn_tensor_ref(t);
        run_threads(THREADS, ref_and_unref, t);
        EXPECT_EQ_INT(tni_test_live, before);
    }
}

static void lock_weakly(int i, void *arg)
{
    tn_tensor *t = arg;
    if (i == 0) {
        tn_tensor_unref(t); /* the only strong reference, while the others try to get one */
        return;
    }
    for (int k = 0; k < ROUNDS; k++)
        if (tni_weak_lock(&t->object)) {
            EXPECT_EQ_INT(t->numel, 4);
            EXPECT(t->storage->nbytes == 16);
            tn_tensor_unref(t);
        }
    tni_weak_unref(&t->object);
}

TEST(a_weak_reference_gives_a_whole_tensor_or_none)
{
    for (int round = 0; round < 5; round++) {
        int64_t before = tni_test_live;
        tn_tensor *t = make();
        for (int i = 1; i < THREADS; i++)
            tni_weak_ref(&t->object);
        run_threads(THREADS, lock_weakly, t);
        EXPECT_EQ_INT(tni_test_live, before);
    }
}

static void view_and_bump(int i, void *arg)
{
    (void)i;
    tn_tensor *base = arg;
    for (int k = 0; k < ROUNDS; k++) {
        tn_tensor *view = NULL;
        ASSERT_OK(tni_tensor_alias(base, 1, (int64_t[]){2}, (int64_t[]){2}, 0, &view));
        tni_tensor_share_version(view, base);
        EXPECT_OK(tni_tensor_bump_version(view));
        tn_tensor_unref(view);
    }
    tn_tensor_unref(base);
}

TEST(every_write_through_a_view_is_counted)
{
    int64_t before = tni_test_live;
    tn_tensor *base = make(), *last = NULL;
    ASSERT_OK(tni_tensor_alias(base, 1, (int64_t[]){2}, (int64_t[]){2}, 0, &last));
    tni_tensor_share_version(last, base);
    for (int i = 1; i < THREADS; i++)
        tn_tensor_ref(base);
    run_threads(THREADS, view_and_bump, base); /* the base is gone when they are done */
    uint32_t version = 0;
    EXPECT_OK(tn_tensor_version(last, &version));
    EXPECT_EQ_INT(version, THREADS * ROUNDS);
    tn_tensor_unref(last);
    EXPECT_EQ_INT(tni_test_live, before);
}

typedef struct handed {
    tn_tensor *_Atomic slot[THREADS];
} handed;

/* Each thread makes tensors that its neighbour frees: blocks wander between the threads' lists. */
static void make_for_the_next(int i, void *arg)
{
    handed *h = arg;
    for (int k = 0; k < ROUNDS; k++) {
        tn_tensor *t = make();
        ((float *)t->data)[0] = (float)i;
        tn_tensor_unref(atomic_exchange(&h->slot[(i + 1) % THREADS], t));
    }
}

TEST(a_tensor_may_be_freed_by_another_thread)
{
    static handed h;
    run_threads(THREADS, make_for_the_next, &h);
    for (int i = 0; i < THREADS; i++)
        tn_tensor_unref(atomic_exchange(&h.slot[i], NULL));
}
