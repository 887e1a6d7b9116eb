/* SPDX-License-Identifier: MIT */
/* tests/autograd/test_no_waiting.c: code of others that runs inside a pass and itself waits for a
 * pass, of another thread, over the same leaf, graph or values: everybody comes to an end, and no
 * gradient is lost. */
#include "autograd/turn.h"
#include "base/clock.h"
#include "kit.h"
#include "tenon/kernels.h"
#include "tenon/mode.h"
#include "tenon/saved_hooks.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <time.h>

enum { LIMIT = 60 }; /* a hang, not a slow machine */

/* A pass that another thread runs, and that is waited for. */
typedef struct other {
    tn_tensor *root; /* NULL: 3 * leaf */
    tn_tensor *leaf; /* `.grad` is cleared instead when `clears` */
    bool clears, create_graph;
    _Atomic int runs; /* how often it ran */
    int at_most;      /* how often it may */
    tn_status status;
    const char *during; /* the call in which it runs; NULL: in the first */
    tn_status result;   /* what the one who waited says then */
    pthread_t creator;
} other;

static void pass(other *o)
{
    tn_backward_opts opts = TN_BACKWARD_OPTS_INIT;
    opts.retain_graph = TN_BOOL_TRUE;
    opts.create_graph = o->create_graph;
    if (o->clears) {
        o->status = tn_tensor_set_grad(o->leaf, NULL);
        return;
    }
    TN_AUTO(tn_tensor) mine = NULL;
    tn_tensor *root = o->root;
    if (!root) {
        TN_AUTO(tn_tensor) twice = NULL;
        EXPECT_OK(kit_scale(o->leaf, &twice));
        EXPECT_OK(kit_add(twice, o->leaf, &mine));
        root = mine;
    }
    o->status = tn_backward(&root, 1, NULL, &opts);
}

static void *on_a_thread(void *arg)
{
    pass(arg);
    return NULL;
}

static void wait_for(other *o)
{
    if (!pthread_equal(pthread_self(), o->creator) || o->runs >= o->at_most)
        return;
    o->runs++;
    pthread_t thread;
    ASSERT(pthread_create(&thread, NULL, on_a_thread, o) == 0);
    pthread_join(thread, NULL);
}

static other new_other(tn_tensor *leaf)
{
    return (other){.leaf = leaf, .at_most = 1, .creator = pthread_self()};
}

/* ---- the ways in which code of others runs ---- */

static bool is_the_call(const other *o, const tn_op *op)
{
    return !o->during || strcmp(tn_op_name(op), o->during) == 0;
}

static tn_status mode(void *ctx, tn_call *call, const tn_value *args, tn_value *rets)
{
    other *o = ctx;
    bool now = is_the_call(o, tn_call_op(call));
    if (now)
        wait_for(o);
    if (now && o->result != TN_OK)
        return tn_fail(o->result, "the mode does not want this");
    return tn_call_mode_go_on(call, args, rets);
}

static tn_status under_mode(other *o, tn_tensor *root, bool create_graph)
{
    tn_backward_opts opts = TN_BACKWARD_OPTS_INIT;
    opts.create_graph = create_graph;
    opts.retain_graph = TN_BOOL_TRUE;
    tn_call_mode *m = NULL;
    TN_TRY(tn_call_mode_new(mode, o, NULL, &m));
    tn_status status = tn_call_mode_push(m);
    if (status == TN_OK) {
        status = tn_backward(&root, 1, NULL, &opts);
        tn_call_mode_unref(tn_call_mode_pop());
    }
    tn_call_mode_unref(m);
    return status;
}

/* A leaf whose `.grad` is 1, and twice the leaf. */
static tn_tensor *begun_leaf(tn_tensor **twice)
{
    tn_tensor *x = kit_leaf(1, 3), *one = kit_vector(1, 1);
    ASSERT_OK(tn_tensor_set_grad(x, one));
    tn_tensor_unref(one);
    ASSERT_OK(kit_scale(x, twice));
    return x;
}

static void ends(tn_tensor *x, tn_tensor *twice)
{
    tn_tensor_unref(twice);
    tn_tensor_unref(x);
}

TEST(a_mode_may_wait_for_a_pass_to_the_leaf_that_is_added_to)
{
    tn_tensor *twice = NULL, *x = begun_leaf(&twice);
    other o = new_other(x);
    o.during = "aten::add_.Tensor";
    o.at_most = 100;
    tn_tensor *had = tn_tensor_grad(x);
    EXPECT_WITHIN_SECONDS(LIMIT, { EXPECT_OK(under_mode(&o, twice, false)); });
    EXPECT_EQ_INT(o.runs, 1); /* it sees the sum once, though it is made again */
    EXPECT_OK(o.status);
    EXPECT(tn_tensor_grad(x) == had);
    EXPECT_NEAR(kit_grad(x, 0), 1 + 2 + 3, 0);
    ends(x, twice);
}

TEST(a_mode_may_wait_for_a_pass_while_sums_are_recorded)
{
    tn_tensor *twice = NULL, *x = begun_leaf(&twice);
    other o = new_other(x);
    o.during = "aten::add.Tensor";
    o.create_graph = true;
    EXPECT_WITHIN_SECONDS(LIMIT, { EXPECT_OK(under_mode(&o, twice, true)); });
    EXPECT_EQ_INT(o.runs, 1);
    EXPECT_NEAR(kit_grad(x, 0), 1 + 2 + 3, 0);
    EXPECT_OK(tn_tensor_set_grad(x, NULL));
    ends(x, twice);
}

TEST(a_gradient_that_comes_during_a_call_that_fails_arrives)
{
    tn_tensor *twice = NULL, *x = begun_leaf(&twice);
    other o = new_other(x);
    o.during = "aten::add_.Tensor";
    o.result = TN_VALUE;
    EXPECT_WITHIN_SECONDS(LIMIT, {
        EXPECT_FAIL(TN_VALUE, "the mode does not want this", under_mode(&o, twice, false));
    });
    EXPECT_OK(o.status);
    EXPECT_NEAR(kit_grad(x, 0), 1 + 3, 0);
    ends(x, twice);
}

static tn_status count(void *ctx, tn_tensor *t)
{
    EXPECT(tn_tensor_grad(t) != NULL);
    ++*(_Atomic int *)ctx;
    return TN_OK;
}

TEST(each_sum_is_told_to_the_hooks_whoever_adds)
{
    tn_tensor *twice = NULL, *x = begun_leaf(&twice);
    _Atomic int told = 0;
    ASSERT_OK(tn_tensor_add_accumulated_hook(x, count, &told, NULL, NULL));
    other o = new_other(x);
    o.during = "aten::add_.Tensor";
    EXPECT_WITHIN_SECONDS(LIMIT, { EXPECT_OK(under_mode(&o, twice, false)); });
    EXPECT_EQ_INT(told, 2);
    ends(x, twice);
}

TEST(the_first_gradient_may_come_while_a_mode_waits)
{
    tn_tensor *x = kit_leaf(1, 3), *y = NULL, *sum = NULL;
    ASSERT_OK(kit_add(x, x, &y));
    ASSERT_OK(tn_sum(y, TN_DTYPE_NONE, &sum)); /* its gradient is expanded: it must be copied */
    other o = new_other(x);
    EXPECT_WITHIN_SECONDS(LIMIT, { EXPECT_OK(under_mode(&o, sum, false)); });
    EXPECT_EQ_INT(o.runs, 1);
    EXPECT_NEAR(kit_grad(x, 0), 2 + 3, 0);
    tn_tensor_unref(sum);
    ends(x, y);
}

TEST(a_mode_may_wait_for_another_thread_that_clears_the_gradient)
{
    tn_tensor *twice = NULL, *x = begun_leaf(&twice);
    other o = new_other(x);
    o.during = "aten::add_.Tensor";
    o.clears = true;
    EXPECT_WITHIN_SECONDS(LIMIT, { EXPECT_OK(under_mode(&o, twice, false)); });
    EXPECT_NEAR(kit_grad(x, 0), 2, 0); /* it was cleared before, as far as anybody can tell */
    ends(x, twice);
}

TEST(a_mode_may_wait_for_a_pass_that_keeps_the_same_gradient)
{
    tn_tensor *x = kit_leaf(1, 3), *y = NULL, *z = NULL;
    ASSERT_OK(kit_scale(x, &y));
    ASSERT_OK(tn_tensor_retain_grad(y));
    ASSERT_OK(kit_scale(y, &z));
    for (int round = 0; round < 2; round++) { /* the copy, then a sum */
        other o = new_other(x);
        o.root = z;
        o.during = round ? "aten::add.Tensor" : "aten::clone";
        EXPECT_WITHIN_SECONDS(LIMIT, { EXPECT_OK(under_mode(&o, z, false)); });
        EXPECT_EQ_INT(o.runs, 1);
        EXPECT_NEAR(kit_grad(y, 0), 4 * (round + 1), 0);
    }
    tn_tensor_unref(z);
    ends(x, y);
}

static void observe(void *ctx, const tn_event *event)
{
    other *o = ctx;
    if (event->op && is_the_call(o, event->op))
        wait_for(o);
}

TEST(an_observer_may_wait_for_a_pass_to_the_leaf_that_is_added_to)
{
    tn_tensor *twice = NULL, *x = begun_leaf(&twice);
    other o = new_other(x);
    o.during = "aten::add_.Tensor";
    o.at_most = 100;
    ASSERT_OK(tn_observe_thread(observe, &o));
    EXPECT_WITHIN_SECONDS(LIMIT, { EXPECT_OK(tn_tensor_backward(twice)); });
    ASSERT_OK(tn_observe_thread(NULL, NULL));
    EXPECT(o.runs >= 1);
    EXPECT_NEAR(kit_grad(x, 0), 1 + 2 + 3 * o.runs, 0);
    ends(x, twice);
}

/* A kernel from outside. */
static other *of_kernel;
static tn_status slow_add(tn_call *call, tn_tensor *self, tn_tensor *with, tn_scalar alpha)
{
    (void)call, (void)alpha;
    wait_for(of_kernel);
    float *to = tn_tensor_data(self);
    to[0] += kit_at(with, 0);
    return TN_OK;
}

TEST(a_kernel_from_outside_may_wait_for_a_pass_to_the_leaf_that_it_adds_to)
{
    tn_tensor *twice = NULL, *x = begun_leaf(&twice);
    other o = new_other(x);
    of_kernel = &o;
    tn_library *library = NULL;
    ASSERT_OK(tn_library_open(TN_LIBRARY_IMPL, "aten", TN_KEY_CPU, __FILE__, __LINE__, &library));
    tn_kernel kernel = tn_kernel_add_(slow_add, __FILE__, __LINE__);
    ASSERT_OK(tn_library_impl(library, "add_.Tensor", TN_KEY_CPU, &kernel, NULL));
    EXPECT_WITHIN_SECONDS(LIMIT, { EXPECT_OK(tn_tensor_backward(twice)); });
    tn_library_close(library);
    EXPECT_EQ_INT(o.runs, 1);
    EXPECT_NEAR(kit_grad(x, 0), 1 + 2 + 3, 0);
    ends(x, twice);
}

/* ---- two leaves, in either order ---- */

typedef struct crossing {
    tn_tensor *x[2];
    pthread_barrier_t meet;
} crossing;

typedef struct crosser {
    crossing *c;
    int i;
    bool met;
} crosser;

static tn_status cross(void *ctx, tn_call *call, const tn_value *args, tn_value *rets)
{
    crosser *me = ctx;
    if (!me->met && strcmp(tn_op_name(tn_call_op(call)), "aten::add_.Tensor") == 0) {
        me->met = true;
        pthread_barrier_wait(&me->c->meet); /* each is in its sum */
        other o = new_other(me->c->x[1 - me->i]);
        pass(&o);
        EXPECT_OK(o.status);
        pthread_barrier_wait(&me->c->meet); /* and has been at the other's */
    }
    return tn_call_mode_go_on(call, args, rets);
}

static void crosses(int i, void *arg)
{
    crossing *c = arg;
    crosser me = {c, i, false};
    TN_AUTO(tn_tensor) twice = NULL;
    ASSERT_OK(kit_scale(c->x[i], &twice));
    tn_call_mode *m = NULL;
    ASSERT_OK(tn_call_mode_new(cross, &me, NULL, &m));
    ASSERT_OK(tn_call_mode_push(m));
    EXPECT_OK(tn_tensor_backward(twice));
    tn_call_mode_unref(tn_call_mode_pop());
    tn_call_mode_unref(m);
}

TEST(two_threads_that_add_to_each_others_leaf_do_not_wait_for_each_other)
{
    tn_tensor *unused[2];
    crossing c = {.x = {begun_leaf(&unused[0]), begun_leaf(&unused[1])}};
    pthread_barrier_init(&c.meet, NULL, 2);
    EXPECT_WITHIN_SECONDS(LIMIT, { run_threads(2, crosses, &c); });
    pthread_barrier_destroy(&c.meet);
    for (int i = 0; i < 2; i++) {
        EXPECT_NEAR(kit_grad(c.x[i], 0), 1 + 2 + 3, 0);
        ends(c.x[i], unused[i]);
    }
}

enum { N_THREADS = 16, N_ROUNDS = 50 };

static void with_a_mode(int i, void *arg)
{
    tn_tensor *x = arg;
    other o = new_other(x);
    o.at_most = 0;
    for (int round = 0; round < N_ROUNDS; round++) {
        TN_AUTO(tn_tensor) twice = NULL;
        ASSERT_OK(kit_scale(x, &twice));
        EXPECT_OK(i % 2 ? under_mode(&o, twice, false) : tn_tensor_backward(twice));
    }
}

TEST(sums_are_exact_when_some_threads_have_modes)
{
    tn_tensor *x = kit_leaf(1, 3);
    run_threads(N_THREADS, with_a_mode, x);
    EXPECT_NEAR(kit_grad(x, 0), 2.0f * N_THREADS * N_ROUNDS, 0);
    tn_tensor_unref(x);
}

/* ---- hooks, over one graph ---- */

/* ---- what holds whoever runs meanwhile ---- */

static other *traced;

static void trace(void *ctx, char *buffer, size_t size)
{
    (void)ctx, (void)size;
    buffer[0] = '\0';
    wait_for(traced);
}

TEST(a_tracer_of_anomaly_mode_may_wait_for_a_pass_to_the_leaf_that_is_added_to)
{
    tn_tensor *twice = NULL, *x = begun_leaf(&twice);
    other o = new_other(x);
    o.at_most = 100;
    traced = &o;
    tn_backward_opts opts = TN_BACKWARD_OPTS_INIT;
    opts.create_graph = TN_BOOL_TRUE;
    tn_tensor *square = NULL; /* its gradient is recorded, and so is the sum */
    ASSERT_OK(tn_mul(x, x, &square));
    tn_set_anomaly_tracer(trace, NULL);
    tn_set_anomaly_mode(TN_ANOMALY_TRACE);
    EXPECT_WITHIN_SECONDS(LIMIT, { EXPECT_OK(tn_backward(&square, 1, NULL, &opts)); });
    tn_set_anomaly_mode(0);
    tn_set_anomaly_tracer(NULL, NULL);
    EXPECT(o.runs > 0);
    EXPECT_NEAR(kit_grad(x, 0), 1 + 2 * 3 + 3 * o.runs, 0);
    EXPECT_OK(tn_tensor_set_grad(x, NULL)); /* it leads to itself */
    tn_tensor_unref(square);
    ends(x, twice);
}

/* A pass of the mode's own thread, within the sum. */
static tn_status nested(void *ctx, tn_call *call, const tn_value *args, tn_value *rets)
{
    other *o = ctx;
    if (o->runs < o->at_most && is_the_call(o, tn_call_op(call))) {
        o->runs++;
        pass(o);
    }
    return tn_call_mode_go_on(call, args, rets);
}

TEST(a_pass_within_the_sum_of_another_loses_nothing)
{
    static const char *const during[] = {"aten::add_.Tensor", "aten::add.Tensor", "aten::clone"};
    for (int i = 0; i < 3; i++) {
        tn_tensor *twice = NULL, *thrice = NULL, *x = begun_leaf(&twice);
        EXPECT_OK(kit_add(twice, x, &thrice));
        other o = new_other(x);
        o.during = during[i];
        o.root = thrice;
        o.create_graph = i == 1;
        if (i == 2)
            EXPECT_OK(tn_tensor_set_grad(x, NULL));
        tn_backward_opts opts = TN_BACKWARD_OPTS_INIT;
        opts.create_graph = i == 1;
        opts.retain_graph = TN_BOOL_TRUE;
        tn_tensor *seed =
            kit_vector(1, 1); /* somebody else's, so that a first gradient is a copy */
        tn_call_mode *m = NULL;
        ASSERT_OK(tn_call_mode_new(nested, &o, NULL, &m));
        ASSERT_OK(tn_call_mode_push(m));
        EXPECT_OK(tn_backward(i == 2 ? &x : &twice, 1, i == 2 ? &seed : NULL, &opts));
        tn_call_mode_unref(tn_call_mode_pop());
        tn_call_mode_unref(m);
        EXPECT_EQ_INT(o.runs, 1);
        EXPECT_NEAR(kit_grad(x, 0), i == 2 ? 1 + 3 : 1 + 2 + 3, 0);
        EXPECT_OK(tn_tensor_set_grad(x, NULL));
        tn_tensor_unref(seed);
        tn_tensor_unref(thrice);
        ends(x, twice);
    }
}

static void ignore(void *ctx, const tn_event *event)
{
    (void)ctx, (void)event;
}

/* Its gradient is in the sum when its pass ends, and it may use the gradient's memory again. */
static void reuses_its_gradient(int i, void *arg)
{
    (void)i;
    tn_tensor *shared = arg;
    ASSERT_OK(tn_observe_thread(ignore, NULL));
    for (int round = 0; round < N_ROUNDS; round++) {
        TN_AUTO(tn_tensor) twice = NULL;
        tn_tensor *seed = kit_vector(1, 1);
        ASSERT_OK(tn_view_as(shared, shared, &twice)); /* what comes in goes on as it is */
        EXPECT_OK(tn_backward(&twice, 1, &seed, NULL));
        *(float *)tn_tensor_data(seed) = 1000;
        tn_tensor_unref(seed);
    }
    ASSERT_OK(tn_observe_thread(NULL, NULL));
}

TEST(a_pass_that_has_ended_has_added_also_while_calls_are_observed)
{
    tn_tensor *shared = kit_leaf(1, 3);
    run_threads(8, reuses_its_gradient, shared);
    EXPECT_NEAR(kit_grad(shared, 0), 8.0f * N_ROUNDS, 0);
    tn_tensor_unref(shared);
}

static tn_status tensor_hook(void *ctx, tn_tensor *grad, tn_tensor **out)
{
    (void)grad, (void)out;
    wait_for(ctx);
    return TN_OK;
}

static tn_status accumulated_hook(void *ctx, tn_tensor *t)
{
    (void)t;
    wait_for(ctx);
    return TN_OK;
}

static tn_status pre_hook(void *ctx, tn_node *node, tn_tensor *const *grads, int64_t n,
                          tn_tensor **out)
{
    (void)node, (void)grads, (void)n, (void)out;
    wait_for(ctx);
    return TN_OK;
}

static tn_status keep(void *ctx, tn_tensor *t, void **out)
{
    (void)ctx;
    *out = tn_tensor_ref(t);
    return TN_OK;
}

static tn_status give(void *ctx, void *packed, tn_tensor **out)
{
    wait_for(ctx);
    *out = tn_tensor_ref(packed);
    return TN_OK;
}

static void drop(void *ctx, void *packed)
{
    (void)ctx;
    tn_tensor_unref(packed);
}

TEST(hooks_of_every_kind_may_wait_for_a_pass_over_the_same_graph)
{
    for (int kind = 0; kind < 4; kind++) {
        test_note("kind %d", kind);
        tn_tensor *x = kit_leaf(1, 3), *y = NULL, *z = NULL;
        other o = new_other(x);
        const tn_saved_hooks saved = {
            .size = sizeof saved, .pack = keep, .unpack = give, .drop = drop, .ctx = &o};
        if (kind == 3)
            ASSERT_OK(tn_saved_hooks_push(&saved));
        ASSERT_OK(kit_mul(x, x, &y));
        ASSERT_OK(kit_mul(y, y, &z));
        if (kind == 3)
            ASSERT_OK(tn_saved_hooks_pop());
        o.root = z;
        tn_node *node = NULL;
        ASSERT_OK(tn_tensor_grad_fn(y, &node));
        if (kind == 0)
            ASSERT_OK(tn_tensor_add_hook(y, tensor_hook, &o, NULL, NULL));
        else if (kind == 1)
            ASSERT_OK(tn_tensor_add_accumulated_hook(x, accumulated_hook, &o, NULL, NULL));
        else if (kind == 2)
            ASSERT_OK(tn_node_add_pre_hook(node, pre_hook, &o, NULL, NULL));
        tn_backward_opts opts = TN_BACKWARD_OPTS_INIT;
        opts.retain_graph = TN_BOOL_TRUE;
        EXPECT_WITHIN_SECONDS(LIMIT, { EXPECT_OK(tn_backward(&z, 1, NULL, &opts)); });
        EXPECT_OK(o.status);
        EXPECT_EQ_INT(o.runs, 1);
        EXPECT_NEAR(kit_grad(x, 0), 2 * 4 * 27.0f, 0); /* of x^4 at 3, twice */
        tn_tensor_unref(z);
        ends(x, y);
    }
}

/* ---- fork, in the middle of a sum ---- */

static tn_tensor *in_fork;

static int add_in_child(void *arg)
{
    (void)arg;
    other o = new_other(in_fork);
    pass(&o);
    EXPECT_OK(o.status);
    EXPECT_NEAR(kit_grad(in_fork, 0), 1 + 3, 0); /* the parent's sum was not made yet */
    return 0;
}

static void *fork_on_a_thread(void *arg)
{
    (void)arg;
    EXPECT_EQ_INT(run_in_child(add_in_child, NULL, LIMIT), 0);
    return NULL;
}

static tn_status forking_mode(void *ctx, tn_call *call, const tn_value *args, tn_value *rets)
{
    bool *forked = ctx;
    if (!*forked && strcmp(tn_op_name(tn_call_op(call)), "aten::add_.Tensor") == 0) {
        *forked = true;
        pthread_t thread;
        ASSERT(pthread_create(&thread, NULL, fork_on_a_thread, NULL) == 0);
        pthread_join(thread, NULL);
    }
    return tn_call_mode_go_on(call, args, rets);
}

TEST(a_child_made_in_the_middle_of_a_sum_can_add_to_the_same_leaf)
{
    if (test_thread_sanitized())
        SKIP("the thread sanitizer does not start threads after a fork among threads");
    tn_tensor *twice = NULL, *x = begun_leaf(&twice);
    in_fork = x;
    bool forked = false;
    tn_call_mode *m = NULL;
    ASSERT_OK(tn_call_mode_new(forking_mode, &forked, NULL, &m));
    ASSERT_OK(tn_call_mode_push(m));
    EXPECT_OK(tn_tensor_backward(twice));
    tn_call_mode_unref(tn_call_mode_pop());
    tn_call_mode_unref(m);
    EXPECT(forked);
    EXPECT_NEAR(kit_grad(x, 0), 1 + 2, 0);
    ends(x, twice);
}

typedef struct turn_of_another {
    tni_grad_meta *meta;
    _Atomic bool begins, has;
} turn_of_another;

static void *take_a_turn(void *arg)
{
    turn_of_another *t = arg;
    tni_sum_turn turn;
    atomic_store(&t->begins, true);
    EXPECT_OK(tni_sum_turn_take(t->meta, &turn));
    atomic_store(&t->has, true);
    tni_sum_turn_end(t->meta, &turn);
    return NULL;
}

typedef struct forking_turn {
    tni_grad_meta *meta;
    tni_sum_turn turn;
} forking_turn;

static int go_on_in_child(void *arg)
{
    forking_turn *mine = arg;
    turn_of_another t = {mine->meta, false, false};
    pthread_t thread;
    ASSERT(pthread_create(&thread, NULL, take_a_turn, &t) == 0);
    while (!atomic_load(&t.begins))
        sched_yield();
    nanosleep(&(const struct timespec){0, 20 * 1000 * 1000}, NULL); /* for it to be wrong in */
    EXPECT(!atomic_load(&t.has));
    tni_sum_turn inner; /* the thread itself may go on */
    EXPECT_OK(tni_sum_turn_take(mine->meta, &inner));
    tni_sum_turn_end(mine->meta, &inner);
    EXPECT(!atomic_load(&t.has));
    tni_sum_turn_end(mine->meta, &mine->turn);
    pthread_join(thread, NULL);
    EXPECT(atomic_load(&t.has));
    return 0;
}

TEST(a_turn_in_which_its_thread_forks_lasts_in_the_child)
{
    if (test_thread_sanitized())
        SKIP("the thread sanitizer does not start threads after a fork among threads");
    tn_tensor *x = kit_leaf(2, 1);
    forking_turn mine = {NULL, {0}};
    ASSERT_OK(tni_meta_get(x, &mine.meta));
    ASSERT_OK(tni_sum_turn_take(mine.meta, &mine.turn));
    EXPECT_EQ_INT(run_in_child(go_on_in_child, &mine, LIMIT), 0);
    tni_sum_turn_end(mine.meta, &mine.turn);
    EXPECT_OK(tni_sum_turn_take(mine.meta, &mine.turn)); /* the parent's are its own */
    tni_sum_turn_end(mine.meta, &mine.turn);
    tn_tensor_unref(x);
}

static _Atomic int looks;

enum { STOPS = 10 };

/* Between two of the first looks at it an hour passes, as in a process that was stopped. */
static int clock_of_stopped(clockid_t which, struct timespec *out)
{
    int failed = clock_gettime(which, out), stops = atomic_fetch_add(&looks, 1);
    out->tv_sec += 3600 * (stops < STOPS ? stops : STOPS);
    return failed;
}

TEST(time_in_which_the_process_is_stopped_does_not_end_the_wait_for_a_turn)
{
    tn_tensor *x = kit_leaf(2, 1);
    tni_grad_meta *meta = NULL;
    tni_sum_turn mine;
    ASSERT_OK(tni_meta_get(x, &meta));
    ASSERT_OK(tni_sum_turn_take(meta, &mine));
    turn_of_another t = {meta, false, false};
    pthread_t thread;
    tni_clock_fn before = atomic_exchange(&tni_clock, clock_of_stopped);
    ASSERT(pthread_create(&thread, NULL, take_a_turn, &t) == 0);
    while (atomic_load(&looks) <= STOPS && !atomic_load(&t.has))
        sched_yield();
    EXPECT(!atomic_load(&t.has));
    tni_sum_turn_end(meta, &mine);
    pthread_join(thread, NULL);
    atomic_store(&tni_clock, before);
    EXPECT(atomic_load(&t.has));
    tn_tensor_unref(x);
}

/* ---- memory ---- */

TEST(allocations)
{
    kit_warm_up();
    tn_tensor *twice = NULL, *x = begun_leaf(&twice);
    tn_tensor *thrice = NULL;
    ASSERT_OK(kit_add(twice, x, &thrice));
    other first = new_other(x); /* what is made only once */
    first.during = "aten::add_.Tensor";
    first.root = thrice;
    ASSERT_OK(under_mode(&first, twice, false));
    int64_t before = tni_test_live;
    tn_status rc = TN_OK;
    WITH_EACH_ALLOCATION_FAILING(rc)
    {
        float was = kit_grad(x, 0);
        other o = new_other(x);
        o.during = "aten::add_.Tensor";
        o.root = thrice;
        rc = under_mode(&o, twice, false);
        float added = kit_grad(x, 0) - was;
        float wanted = (rc == TN_OK ? 2.0f : 0) + (o.runs && o.status == TN_OK ? 3.0f : 0);
        EXPECT_NEAR(added, wanted, 0); /* whole gradients, or none and a failure */
        if (o.runs && o.status != TN_OK) {
            EXPECT(o.status == TN_NOMEM);
            rc = o.status;
        }
        if (rc != TN_OK)
            EXPECT(rc == TN_NOMEM && tni_test_live == before);
    }
    tn_tensor_unref(thrice);
    ends(x, twice);
}
