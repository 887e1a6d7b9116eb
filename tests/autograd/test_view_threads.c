/* SPDX-License-Identifier: MIT */
/* tests/autograd/test_view_threads.c: threads that use views of one base at a time.
 *
 * Writing is one thread's business; but after it the histories of all views are out of date, and
 * whoever uses a view first puts it right while others read it. */
#include <pthread.h>
#include "kit.h"

enum { THREADS = 6, ROUNDS = 60, N = 6 };

typedef struct family {
    pthread_barrier_t barrier;
    tn_tensor *leaf, *one;
    tn_tensor *base;         /* what leaf times one is, written again and again */
    tn_tensor *whole, *half; /* views of it, the second through another view */
    tn_tensor *pairs;        /* its elements two by two */
} family;

/* Recorded, under one of several names. */
static void write_one(family *f, int round)
{
    tn_tensor *t[] = {f->base, f->whole, f->half, f->pairs};
    EXPECT_OK(tn_add_(t[round % 4], f->one, tn_int(1)));
}

/* As an argument, as what is saved, as the base of another view, of a new write. */
static void use_all(const family *f, int round)
{
    tn_tensor *t[] = {f->whole, f->half, f->pairs};
    tn_tensor *seen = NULL, *made = NULL, *sum = NULL;
    tn_tensor *view = t[round % 3];
    EXPECT_OK(tn_add(view, f->one, tn_int(1), &made));
    EXPECT(made && tni_requires_grad(made));
    tn_tensor_unref(TN_MOVE(made));
    EXPECT_OK(tn_mul(view, view, &made));
    tn_tensor_unref(TN_MOVE(made));
    EXPECT_OK(tn_unsqueeze(view, 0, &seen));
    EXPECT_OK(tn_clone(seen, TN_FORMAT_NONE, &made));
    EXPECT_OK(tn_add_(made, view, tn_int(1)));
    tn_tensor_unref(seen);
    EXPECT_OK(tn_sum(made, TN_DTYPE_NONE, &sum));
    tn_backward_opts opts = TN_BACKWARD_OPTS_INIT;
    opts.retain_graph = TN_BOOL_TRUE;
    EXPECT_OK(tn_backward(&sum, 1, NULL, &opts));
    tn_tensor_unref(made);
    tn_tensor_unref(sum);
}

static void write_and_use(int i, void *arg)
{
    family *f = arg;
    for (int round = 0; round < ROUNDS; round++) {
        if (i == round % THREADS)
            write_one(f, round);
        pthread_barrier_wait(&f->barrier);
        use_all(f, round);
        pthread_barrier_wait(&f->barrier);
    }
}

TEST(threads_may_use_views_at_a_time_after_their_base_was_written)
{
    family f = {.leaf = kit_leaf(N, 3), .one = kit_vector(1, 1)};
    tn_tensor *row = NULL;
    pthread_barrier_init(&f.barrier, NULL, THREADS);
    ASSERT_OK(tn_mul(f.leaf, f.one, &f.base));
    ASSERT_OK(tn_view(f.base, (const int64_t[]){N}, 1, &f.whole));
    ASSERT_OK(tn_view(f.base, (const int64_t[]){2, N / 2}, 2, &row));
    ASSERT_OK(tn_select(row, 0, 0, &f.half));
    ASSERT_OK(tn_view(f.base, (const int64_t[]){N / 2, 2}, 2, &f.pairs));
    ASSERT_OK(tn_tensor_retain_grad(f.whole)); /* moves along with each new history */
    run_threads(THREADS, write_and_use, &f);
    /* Twice by each thread in each round; the last half is in two of three views. */
    for (int i = 0; i < N; i++) {
        EXPECT_NEAR(kit_grad(f.leaf, i), THREADS * ROUNDS * (i < N / 2 ? 6 : 4) / 3, 0);
        EXPECT_NEAR(kit_grad(f.whole, i), THREADS * ROUNDS * 2 / 3, 0);
        EXPECT_NEAR(kit_at(f.base, i), 3 + ROUNDS * (i < N / 2 ? 4 : 3) / 4, 0);
    }
    pthread_barrier_destroy(&f.barrier);
    tn_tensor *all[] = {f.leaf, f.one, f.base, f.whole, row, f.half, f.pairs};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        tn_tensor_unref(all[i]);
}
