/* SPDX-License-Identifier: MIT */
/* tests/autograd/test_interleaved.c: what another thread may do between any two instructions.
 *
 * A race that needs two things to happen within a nanosecond does not show itself when threads
 * merely run side by side. So a call is taken one instruction at a time, with the processor's trap
 * flag, and after its k-th instruction the other side does its part; then k + 1, to the end. */
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include "autograd/accumulate.h"
#include "kit.h"

static void let_go(void *ctx)
{
    atomic_fetch_add_explicit((_Atomic int *)ctx, 1, memory_order_relaxed);
}

static tn_status nothing(void *ctx, tn_node *node, tn_tensor *const *results, int64_t n,
                         tn_tensor *const *grads, int64_t n_grads, tn_tensor **out)
{
    (void)ctx;
    (void)node;
    (void)results;
    (void)n;
    (void)grads;
    (void)n_grads;
    (void)out;
    return TN_OK;
}

/* ---- one instruction at a time ---- */

#if defined(__x86_64__) && defined(__linux__)

/* The other side: it has a reference of its own, adds a hook, maybe removes it, and goes. */
static struct {
    tni_node *node;
    _Atomic int *released;
    volatile int steps, act_after;
    volatile bool acted, removes;
    tn_status status;
} other;

static void act(void)
{
    if (other.acted)
        return;
    other.acted = true;
    tn_hook *hook = NULL;
    other.status = tn_node_add_post_hook(other.node, nothing, other.released, let_go,
                                         other.removes ? &hook : NULL);
    tn_hook_remove(hook);
    tni_accumulator_unref(other.node);
}

static void on_step(int signal)
{
    (void)signal;
    if (other.steps++ == other.act_after)
        act();
}

/* Always called, so that the call begins and ends the steps at the same places in every build. */
__attribute__((noinline)) static void trap_flag(bool on)
{
    const unsigned long long flag = 0x100, flags = __builtin_ia32_readeflags_u64();
    __builtin_ia32_writeeflags_u64(on ? flags | flag : flags & ~flag);
}

static void *wait_for_end(void *end)
{
    while (sem_wait(end) != 0)
        ;
    return NULL;
}

/* False: the call has not as many instructions. */
static bool let_go_meanwhile(int k)
{
    int64_t before = tni_test_live;
    _Atomic int released = 0;
    tn_tensor *x = kit_leaf(2, 3);
    tni_node *node = NULL;
    ASSERT_OK(tni_accumulator(x, &node));
    other.node = tni_node_ref(node);
    other.released = &released;
    other.steps = 0;
    other.act_after = k;
    other.acted = false;
    trap_flag(true);
    tni_accumulator_unref(node);
    trap_flag(false);
    bool in_time = other.acted;
    act();
    EXPECT_OK(other.status);
    test_note("after instruction %d", k);
    EXPECT_EQ_INT(released, 1);
    EXPECT_EQ_INT(tn_tensor_use_count(x), 1);
    tn_tensor_unref(x);
    EXPECT_EQ_INT(tni_test_live, before);
    return in_time;
}

TEST(a_hook_added_while_an_accumulator_is_let_go_goes_with_it)
{
    if (test_thread_sanitized())
        SKIP("the thread sanitizer does not let a signal handler allocate");
    /* The library spares atomic instructions while there is one thread: let there be another. */
    sem_t end;
    pthread_t thread;
    sem_init(&end, 0, 0);
    ASSERT_EQ_INT(pthread_create(&thread, NULL, wait_for_end, &end), 0);
    struct sigaction step = {.sa_handler = on_step, .sa_flags = SA_NODEFER}, before;
    ASSERT_EQ_INT(sigaction(SIGTRAP, &step, &before), 0);
    kit_warm_up();
    for (int removes = 0; removes < 2; removes++) {
        int k = 0;
        other.removes = removes;
        while (let_go_meanwhile(k))
            k++;
        EXPECT(k > 5);
    }
    sigaction(SIGTRAP, &before, NULL);
    sem_post(&end);
    pthread_join(thread, NULL);
    sem_destroy(&end);
}

#endif

/* ---- side by side ---- */

typedef struct crowd {
    tn_tensor *x;
    _Atomic int added, released;
} crowd;

static void hook_or_use(int i, void *arg)
{
    crowd *c = arg;
    for (int round = 0; round < 400; round++) {
        if (i % 2) {
            tni_node *node = NULL;
            ASSERT_OK(tni_accumulator(c->x, &node));
            ASSERT_OK(tn_node_add_post_hook(node, nothing, &c->released, let_go, NULL));
            c->added++;
            tni_accumulator_unref(node);
        } else {
            tn_tensor *y = NULL;
            ASSERT_OK(tn_add(c->x, c->x, tn_int(1), &y));
            tn_tensor_unref(y);
        }
    }
}

TEST(hooks_of_accumulators_that_come_and_go_are_all_let_go)
{
    crowd c = {.x = kit_leaf(2, 3)};
    run_threads(8, hook_or_use, &c);
    EXPECT_EQ_INT(tn_tensor_use_count(c.x), 1);
    tn_tensor_unref(c.x);
    EXPECT_EQ_INT(c.added, 4 * 400);
    EXPECT_EQ_INT(c.released, c.added);
}
