/* SPDX-License-Identifier: MIT */
/* tests/autograd/test_engine_threads.c: passes on many threads at a time, and after fork(). */
#include "kit.h"
#include "tenon/saved_hooks.h"

enum { N_THREADS = 32, N_ROUNDS = 20, N_LEAVES = 200 };

typedef struct shared {
    tn_tensor *x, *y;   /* leaves */
    tn_tensor *z;       /* x * y, one node for all */
    _Atomic int hooked; /* how often the hook of x ran */
} shared;

static tn_status count(void *ctx, tn_tensor *t)
{
    EXPECT(tn_tensor_grad(t) != NULL);
    ((shared *)ctx)->hooked++;
    return TN_OK;
}

/* Each thread has a graph of its own over shared leaves. */
static void own_graph(int i, void *arg)
{
    shared *s = arg;
    (void)i;
    for (int round = 0; round < N_ROUNDS; round++) {
        tn_tensor *a = NULL, *b = NULL;
        ASSERT_OK(kit_mul(s->x, s->y, &a));
        ASSERT_OK(kit_add(a, s->x, &b));
        EXPECT_OK(tn_tensor_backward(b));
        tn_tensor_unref(a);
        tn_tensor_unref(b);
    }
}

TEST(gradients_of_shared_leaves_sum_exactly)
{
    shared s = {.x = kit_leaf(1, 3), .y = kit_leaf(1, 5)};
    ASSERT_OK(tn_tensor_add_accumulated_hook(s.x, count, &s, NULL, NULL));
    run_threads(N_THREADS, own_graph, &s);
    EXPECT_NEAR(kit_grad(s.x, 0), 6.0f * N_THREADS * N_ROUNDS, 0);
    EXPECT_NEAR(kit_grad(s.y, 0), 3.0f * N_THREADS * N_ROUNDS, 0);
    EXPECT_EQ_INT(s.hooked, N_THREADS * N_ROUNDS);
    tn_tensor_unref(s.x);
    tn_tensor_unref(s.y);
}

/* All threads run over the same nodes. */
static void same_graph(int i, void *arg)
{
    shared *s = arg;
    tn_backward_opts opts = TN_BACKWARD_OPTS_INIT;
    opts.retain_graph = TN_BOOL_TRUE;
    tn_grad_opts grad_opts = TN_GRAD_OPTS_INIT;
    grad_opts.retain_graph = TN_BOOL_TRUE;
    for (int round = 0; round < N_ROUNDS; round++) {
        EXPECT_OK(tn_backward(&s->z, 1, NULL, &opts));
        tn_tensor *g = NULL;
        EXPECT_OK(tn_grad(&s->z, 1, i % 2 ? &s->x : &s->y, 1, NULL, &grad_opts, &g));
        EXPECT_NEAR(kit_at(g, 0), i % 2 ? 5 : 3, 0);
        tn_tensor_unref(g);
    }
}

TEST(passes_over_the_same_nodes_do_not_disturb_each_other)
{
    shared s = {.x = kit_leaf(1, 3), .y = kit_leaf(1, 5)};
    ASSERT_OK(kit_mul(s.x, s.y, &s.z));
    EXPECT_WITHIN_SECONDS(20, { run_threads(N_THREADS, same_graph, &s); });
    EXPECT_NEAR(kit_grad(s.x, 0), 5.0f * N_THREADS * N_ROUNDS, 0);
    EXPECT_NEAR(kit_grad(s.y, 0), 3.0f * N_THREADS * N_ROUNDS, 0);
    tn_tensor_unref(s.x);
    tn_tensor_unref(s.y);
    tn_tensor_unref(s.z);
}

/* Values that a pass releases while others unpack them: each gets them whole or is told. */
static void race_to_release(int i, void *arg)
{
    shared *s = arg;
    (void)i;
    tn_status status = tn_tensor_backward(s->z);
    if (status != TN_OK)
        EXPECT_CONTAINS(tn_last_error(), "Trying to backward through the graph a second time");
}

TEST(only_whole_gradients_arrive_when_passes_race_to_release)
{
    for (int round = 0; round < 10; round++) {
        shared s = {.x = kit_leaf(1, 3), .y = kit_leaf(1, 5)};
        ASSERT_OK(kit_mul(s.x, s.y, &s.z));
        run_threads(8, race_to_release, &s);
        float x = kit_grad(s.x, 0) / 5, y = kit_grad(s.y, 0) / 3;
        EXPECT(x >= 1 && x <= 8 && (float)(int)x == x);
        EXPECT(y >= 1 && y <= 8 && (float)(int)y == y);
        tn_tensor_unref(s.x);
        tn_tensor_unref(s.y);
        tn_tensor_unref(s.z);
    }
}

static void hooks_come_and_go(int i, void *arg)
{
    shared *s = arg;
    for (int round = 0; round < N_ROUNDS; round++) {
        if (i % 2) {
            tn_hook *hook = NULL;
            ASSERT_OK(tn_tensor_add_accumulated_hook(s->x, count, s, NULL, &hook));
            tn_hook_remove(hook);
        } else {
            own_graph(i, s);
            round += N_ROUNDS;
        }
    }
}

TEST(hooks_are_added_and_removed_while_passes_run)
{
    shared s = {.x = kit_leaf(1, 3), .y = kit_leaf(1, 5)};
    run_threads(8, hooks_come_and_go, &s);
    EXPECT_NEAR(kit_grad(s.y, 0), 3.0f * 4 * N_ROUNDS, 0);
    tn_tensor_unref(s.x);
    tn_tensor_unref(s.y);
}

typedef struct first_hooks {
    tn_tensor *leaves[N_LEAVES];
    pthread_barrier_t meet;
    shared counted;
} first_hooks;

static void add_first_hook(int i, void *arg)
{
    first_hooks *f = arg;
    (void)i;
    for (int at = 0; at < N_LEAVES; at++) {
        tn_hook *hook = NULL;
        pthread_barrier_wait(&f->meet);
        EXPECT_OK(tn_tensor_add_accumulated_hook(f->leaves[at], count, &f->counted, NULL, &hook));
        tn_hook_remove(hook);
    }
}

TEST(threads_meet_over_the_first_hook_of_a_tensor)
{
    first_hooks f = {.counted.x = NULL};
    for (int at = 0; at < N_LEAVES; at++)
        f.leaves[at] = kit_leaf(1, 3);
    pthread_barrier_init(&f.meet, NULL, 4);
    run_threads(4, add_first_hook, &f);
    pthread_barrier_destroy(&f.meet);
    for (int at = 0; at < N_LEAVES; at++)
        tn_tensor_unref(f.leaves[at]);
}

/* Products that nobody has asked anything of yet, in a graph each. */
typedef struct products {
    tn_tensor *x[N_LEAVES], *y[N_LEAVES], *z[N_LEAVES];
    pthread_barrier_t meet;
    _Atomic int registered, dropped;
} products;

static void products_make(products *p)
{
    *p = (products){.registered = 0};
    for (int at = 0; at < N_LEAVES; at++) {
        p->x[at] = kit_leaf(1, 3);
        ASSERT_OK(kit_mul(p->x[at], p->x[at], &p->y[at]));
        ASSERT_OK(kit_mul(p->y[at], p->y[at], &p->z[at]));
    }
    pthread_barrier_init(&p->meet, NULL, 4);
}

static void products_end(products *p)
{
    pthread_barrier_destroy(&p->meet);
    for (int at = 0; at < N_LEAVES; at++) {
        tn_tensor_unref(p->x[at]);
        tn_tensor_unref(p->y[at]);
        tn_tensor_unref(p->z[at]);
    }
}

static void ask_for_gradients(int i, void *arg)
{
    products *p = arg;
    (void)i;
    for (int at = 0; at < N_LEAVES; at++) {
        pthread_barrier_wait(&p->meet);
        EXPECT_OK(tn_tensor_retain_grad(p->y[at]));
    }
}

TEST(a_gradient_is_kept_once_however_many_threads_ask_for_it)
{
    products p;
    products_make(&p);
    run_threads(4, ask_for_gradients, &p);
    for (int at = 0; at < N_LEAVES; at++) {
        ASSERT_OK(tn_tensor_backward(p.z[at]));
        EXPECT_NEAR(kit_grad(p.y[at], 0), 18, 0);
    }
    products_end(&p);
}

static tn_status keep(void *ctx, tn_tensor *t, void **out)
{
    (void)ctx;
    *out = tn_tensor_ref(t);
    return TN_OK;
}
static tn_status give(void *ctx, void *packed, tn_tensor **out)
{
    (void)ctx;
    *out = tn_tensor_ref(packed);
    return TN_OK;
}
static void drop(void *ctx, void *packed)
{
    ((products *)ctx)->dropped++;
    tn_tensor_unref(packed);
}

/* Two threads register hooks of one saved value, two run passes over it. */
static void register_or_run(int i, void *arg)
{
    products *p = arg;
    const tn_saved_hooks hooks = {
        .size = sizeof hooks, .pack = keep, .unpack = give, .drop = drop, .ctx = p};
    for (int at = 0; at < N_LEAVES; at++) {
        pthread_barrier_wait(&p->meet);
        if (i % 2) {
            tn_backward_opts opts = TN_BACKWARD_OPTS_INIT;
            opts.retain_graph = TN_BOOL_TRUE;
            EXPECT_OK(tn_backward(&p->z[at], 1, NULL, &opts));
            continue;
        }
        tn_node *node = NULL;
        EXPECT_OK(tn_tensor_grad_fn(p->z[at], &node));
        if (tn_node_saved_register_hooks(node, 0, &hooks) == TN_OK)
            p->registered++;
        else
            EXPECT_CONTAINS(tn_last_error(), "hooks have already been set");
    }
}

TEST(of_threads_that_register_hooks_of_a_saved_value_one_does)
{
    products p;
    products_make(&p);
    run_threads(4, register_or_run, &p);
    EXPECT(p.registered == N_LEAVES);
    for (int at = 0; at < N_LEAVES; at++)
        EXPECT_NEAR(kit_grad(p.x[at], 0), 2 * 4 * 27.0f, 0); /* of x^4 at 3, twice */
    products_end(&p);
    EXPECT(p.dropped >= N_LEAVES); /* and what others had packed in vain */
}

/* ---- fork ---- */

static _Atomic bool stop;
static shared forked;

static int in_child(void *arg)
{
    (void)arg;
    tn_tensor *b = NULL;
    ASSERT_OK(kit_mul(forked.x, forked.y, &b));
    EXPECT_OK(tn_tensor_backward(b));
    tn_backward_opts opts = TN_BACKWARD_OPTS_INIT;
    opts.retain_graph = TN_BOOL_TRUE;
    EXPECT_OK(tn_backward(&forked.z, 1, NULL, &opts));
    tn_tensor_unref(b);
    return 0;
}

static void busy_or_forking(int i, void *arg)
{
    (void)arg;
    tn_backward_opts opts = TN_BACKWARD_OPTS_INIT;
    opts.retain_graph = TN_BOOL_TRUE;
    if (i > 0) {
        while (!stop)
            EXPECT_OK(tn_backward(&forked.z, 1, NULL, &opts));
        return;
    }
    for (int round = 0; round < 10; round++)
        EXPECT_EQ_INT(run_in_child(in_child, NULL, 10), 0);
    stop = true;
}

TEST(a_child_can_run_passes_whatever_its_parent_was_doing)
{
    if (test_sanitized())
        SKIP("the sanitizers' own allocator does not get over a fork among busy threads");
    forked = (shared){.x = kit_leaf(1, 3), .y = kit_leaf(1, 5)};
    ASSERT_OK(kit_mul(forked.x, forked.y, &forked.z));
    run_threads(3, busy_or_forking, NULL);
    tn_tensor_unref(forked.x);
    tn_tensor_unref(forked.y);
    tn_tensor_unref(forked.z);
}
