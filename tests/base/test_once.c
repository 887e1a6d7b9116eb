/* SPDX-License-Identifier: MIT */
/* What base/once.h promises. */
#include "harness/test.h"

#include <pthread.h>
#include <unistd.h>
#include "base/once.h"

static _Atomic int runs;

static tn_status count_up(void)
{
    usleep(1000); /* so that others come while it runs */
    atomic_fetch_add(&runs, 1);
    return TN_OK;
}

TEST(it_runs_once)
{
    tni_once once = TNI_ONCE_INIT;
    atomic_store(&runs, 0);
    EXPECT(!tni_once_done(&once));
    ASSERT_OK(tni_once_run(&once, count_up, "the count"));
    EXPECT(tni_once_done(&once));
    ASSERT_OK(tni_once_run(&once, count_up, "the count"));
    EXPECT_EQ_INT(runs, 1);
}

static int plain_result; /* not atomic: the once must order it */

static tn_status compute(void)
{
    usleep(2000);
    plain_result = 42;
    atomic_fetch_add(&runs, 1);
    return TN_OK;
}

static void need_it(int i, void *arg)
{
    (void)i;
    EXPECT_OK(tni_once_run(arg, compute, "the result"));
    EXPECT_EQ_INT(plain_result, 42);
}

TEST(other_threads_wait_for_the_result)
{
    for (int round = 0; round < 20; round++) {
        tni_once once = TNI_ONCE_INIT;
        atomic_store(&runs, 0);
        plain_result = 0;
        run_threads(8, need_it, &once);
        EXPECT_EQ_INT(runs, 1);
    }
}

static tn_status fail_twice(void)
{
    int n = atomic_fetch_add(&runs, 1);
    TN_CHECK(n >= 2, TN_DEVICE, "attempt %d failed", n);
    return TN_OK;
}

TEST(a_failed_initialiser_may_be_tried_again)
{
    tni_once once = TNI_ONCE_INIT;
    atomic_store(&runs, 0);
    EXPECT_FAIL(TN_DEVICE, "attempt 0", tni_once_run(&once, fail_twice, "it"));
    EXPECT(!tni_once_done(&once));
    EXPECT_FAIL(TN_DEVICE, "attempt 1", tni_once_run(&once, fail_twice, "it"));
    EXPECT_OK(tni_once_run(&once, fail_twice, "it"));
    EXPECT_OK(tni_once_run(&once, fail_twice, "it"));
    EXPECT_EQ_INT(runs, 3);
}

static void try_it(int i, void *arg)
{
    (void)i;
    (void)!tni_once_run(arg, fail_twice, "it");
}

TEST(waiters_try_again_when_the_initialiser_failed)
{
    for (int round = 0; round < 20; round++) {
        tni_once once = TNI_ONCE_INIT;
        atomic_store(&runs, 0);
        run_threads(8, try_it, &once);
        EXPECT(tni_once_done(&once));
        EXPECT_EQ_INT(runs, 3);
    }
}

static tni_once outer = TNI_ONCE_INIT;
static tn_status outer_init(void);

static tn_status inner_init(void)
{
    return tni_once_run(&outer, outer_init, "the registry");
}

static tn_status outer_init(void)
{
    static tni_once inner = TNI_ONCE_INIT;
    atomic_fetch_add(&runs, 1);
    return tni_once_run(&inner, inner_init, "the device table");
}

TEST(an_initialiser_that_needs_itself_is_told_so)
{
    atomic_store(&runs, 0);
    EXPECT_WITHIN_SECONDS(5, EXPECT_FAIL(TN_RECURSION, "the registry",
                                         tni_once_run(&outer, outer_init, "the registry")));
    EXPECT_EQ_INT(runs, 1);
    EXPECT(!tni_once_done(&outer));
    /* And it is not left running. */
    EXPECT_FAIL(TN_RECURSION, "the registry", tni_once_run(&outer, outer_init, "the registry"));
}

static tni_once forked = TNI_ONCE_INIT;
static pthread_barrier_t running;
static _Atomic bool let_go;

static tn_status wait_inside(void)
{
    atomic_fetch_add(&runs, 1);
    pthread_barrier_wait(&running);
    while (!atomic_load(&let_go))
        usleep(100);
    return TN_OK;
}

static tn_status quick(void)
{
    atomic_fetch_add(&runs, 1);
    return TN_OK;
}

static int run_it_in_the_child(void *arg)
{
    (void)arg;
    ASSERT_OK(tni_once_run(&forked, quick, "it"));
    EXPECT(tni_once_done(&forked));
    EXPECT_EQ_INT(runs, 2);
    return 0;
}

static void one_initialises_one_forks(int i, void *arg)
{
    (void)arg;
    if (i == 0) {
        EXPECT_OK(tni_once_run(&forked, wait_inside, "it"));
        return;
    }
    pthread_barrier_wait(&running);
    EXPECT_EQ_INT(run_in_child(run_it_in_the_child, NULL, 10), 0);
    atomic_store(&let_go, true);
}

TEST(a_child_does_not_wait_for_a_thread_that_it_does_not_have)
{
    atomic_store(&runs, 0);
    pthread_barrier_init(&running, NULL, 2);
    run_threads(2, one_initialises_one_forks, NULL);
    pthread_barrier_destroy(&running);
    EXPECT_EQ_INT(runs, 1);
    EXPECT(tni_once_done(&forked));
}

static tni_once self_forked = TNI_ONCE_INIT;
static tn_status fork_inside(void);

static int finish_in_the_child(void *arg)
{
    (void)arg;
    /* The initialiser goes on in the child, on the same thread: still its own. */
    EXPECT_FAIL(TN_RECURSION, "it", tni_once_run(&self_forked, fork_inside, "it"));
    return 0;
}

static tn_status fork_inside(void)
{
    EXPECT_EQ_INT(run_in_child(finish_in_the_child, NULL, 10), 0);
    return TN_OK;
}

TEST(an_initialiser_that_forks_is_still_recognised_in_the_child)
{
    EXPECT_OK(tni_once_run(&self_forked, fork_inside, "it"));
}
