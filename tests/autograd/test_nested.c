/* SPDX-License-Identifier: MIT */
/* tests/autograd/test_nested.c: passes inside passes, failures, and no memory. */
#include "kit.h"

#include "core/state.h"

/* ---- a pass inside a pass ---- */

static int deepest, fail_at;
static tn_status nest(void *ctx, tn_tensor *grad, tn_tensor **out)
{
    int *left = ctx;
    (void)grad;
    (void)out;
    deepest++;
    if (fail_at && *left == fail_at)
        return tn_fail(TN_VALUE, "refused at %d", fail_at);
    if (--*left <= 0)
        return TN_OK;
    tn_tensor *x = kit_leaf(1, 1), *z = NULL;
    tn_status status = kit_scale(x, &z);
    if (status == TN_OK)
        status = tn_tensor_add_hook(z, nest, left, NULL, NULL);
    if (status == TN_OK)
        status = tn_tensor_backward(z);
    if (status == TN_OK)
        EXPECT_NEAR(kit_grad(x, 0), 2, 0);
    tn_tensor_unref(x);
    tn_tensor_unref(z);
    return status;
}

TEST(a_hundred_passes_inside_each_other)
{
    int left = 100;
    deepest = 0;
    EXPECT_WITHIN_SECONDS(5, { EXPECT_OK(nest(&left, NULL, NULL)); });
    EXPECT_EQ_INT(deepest, 100);
    EXPECT(tn_grad_enabled() && tni_tls.scope == NULL && tn_current_node() == NULL);
}

static void nest_deeply(int i, void *arg)
{
    int left = *(int *)arg, wanted = left;
    (void)i;
    deepest = 0;
    EXPECT_OK(nest(&left, NULL, NULL));
    EXPECT_EQ_INT(deepest, wanted);
    EXPECT(tn_grad_enabled() && tni_tls.scope == NULL && tn_current_node() == NULL);
}

/* More than eight megabytes hold. */
TEST(twenty_thousand_passes_inside_each_other)
{
    int left = 20000;
    run_threads(1, nest_deeply, &left);
}

/* Without an end: an error in time, not a crash; with the thread's own stack and with more. */
static void nest_for_ever(int i, void *arg)
{
    (void)i;
    size_t limit = *(size_t *)arg, was = tn_set_pass_stack_limit(limit);
    int left = INT32_MAX;
    deepest = 0;
    EXPECT_FAIL(TN_RECURSION, "the stack of this thread is nearly used up",
                nest(&left, NULL, NULL));
    EXPECT(deepest > 100);
    EXPECT(tn_grad_enabled() && tni_tls.scope == NULL && tn_current_node() == NULL);
    EXPECT_EQ_INT((int64_t)tn_set_pass_stack_limit(was), (int64_t)limit);
}

TEST(passes_nest_until_the_stack_ends)
{
    size_t none = 0, some = (size_t)32 << 20;
    run_threads(1, nest_for_ever, &none);
    int own = deepest;
    run_threads(1, nest_for_ever, &some);
    EXPECT(deepest > own);
}

static void fail_deeply(int i, void *arg)
{
    (void)i;
    (void)arg;
    int left = 12000;
    deepest = 0;
    fail_at = 1;
    EXPECT_FAIL(TN_VALUE, "refused at 1", nest(&left, NULL, NULL));
    fail_at = 0;
    EXPECT_EQ_INT(deepest, 12000);
    EXPECT(tn_grad_enabled() && tni_tls.scope == NULL && tn_current_node() == NULL);
}

TEST(a_failure_comes_out_of_every_pass_around_it)
{
    run_threads(1, fail_deeply, NULL);
}

/* The inner pass goes over the very nodes that the outer one is at. */
static tn_tensor *outer_result;
static tn_status same_graph(void *ctx, tn_tensor *grad, tn_tensor **out)
{
    (void)grad;
    (void)out;
    if (++*(int *)ctx > 1)
        return TN_OK;
    tn_tensor *x = NULL;
    tn_node *at = tn_current_node();
    while (tn_node_num_edges(at))
        at = tn_node_edge(at, 0, NULL);
    x = tn_node_variable(at);
    tn_backward_opts opts = TN_BACKWARD_OPTS_INIT;
    opts.retain_graph = TN_BOOL_TRUE;
    tn_status status = tn_backward(&outer_result, 1, NULL, &opts);
    EXPECT_NEAR(kit_grad(x, 0), 108, 0);
    return status;
}

TEST(an_inner_pass_may_run_over_the_outer_ones_nodes)
{
    tn_tensor *x = kit_leaf(1, 3), *a = NULL, *b = NULL;
    ASSERT_OK(kit_mul(x, x, &a));
    ASSERT_OK(kit_mul(a, a, &b)); /* x^4 */
    int calls = 0;
    ASSERT_OK(tn_tensor_add_hook(a, same_graph, &calls, NULL, NULL));
    outer_result = b;
    tn_backward_opts opts = TN_BACKWARD_OPTS_INIT;
    opts.retain_graph = TN_BOOL_TRUE;
    EXPECT_OK(tn_backward(&b, 1, NULL, &opts));
    EXPECT_EQ_INT(calls, 2);
    EXPECT_NEAR(kit_grad(x, 0), 216, 0);
    tn_tensor_unref(x);
    tn_tensor_unref(a);
    tn_tensor_unref(b);
}

/* ---- failures ---- */

static tn_status refuse(tni_backward *b)
{
    kit_turns++;
    (void)tn_set_grad_enabled(true); /* and leaves the thread in disorder */
    tn_scope *forgotten = NULL;
    TN_TRY(tn_scope_enter(&forgotten));
    b->results[0] = tnx_mul_scalar(b->grads[0], tn_int(2));
    return tn_fail(TN_VALUE, "node %s refuses", tn_node_name(b->node));
}
static const tni_node_class refuse_class = {.name = "Refuse", .apply = refuse};

static tn_status bad_call(tni_backward *b)
{
    tn_tensor *two = tn_scope_own(kit_vector(2, 1)), *three = tn_scope_own(kit_vector(3, 1));
    b->results[0] = tnx_add(two, three, tn_int(1));
    return TN_OK;
}
static const tni_node_class bad_call_class = {.name = "BadCall", .apply = bad_call};

static tn_status silent(tni_backward *b)
{
    (void)b;
    return TN_DEVICE;
}
static const tni_node_class silent_class = {.name = "Silent", .apply = silent};

/* x -> scale -> cls -> scale: the failure is in the middle. */
static void fails_with(const tni_node_class *cls, tn_status wanted, const char *text)
{
    kit_warm_up();
    int64_t before = tni_test_live;
    tn_tensor *x = kit_leaf(1, 3), *a = NULL, *b = kit_vector(1, 0), *z = NULL;
    ASSERT_OK(kit_scale(x, &a));
    ASSERT_OK(kit_record(cls, &a, 1, b));
    ASSERT_OK(kit_scale(b, &z));
    int64_t turns = kit_turns;
    for (int i = 0; i < 2; i++) { /* again: claims were given back */
        EXPECT_FAIL(wanted, text, tn_tensor_backward(z));
        EXPECT(tni_tls.scope == NULL && tn_grad_enabled() && tn_current_node() == NULL);
    }
    EXPECT_EQ_INT(tn_tensor_backward(NULL), TN_INVALID);
    EXPECT_EQ_INT(tn_tensor_backward(z), wanted); /* not what failed before */
    EXPECT(kit_turns - turns <= 6);               /* what comes after does not run */
    EXPECT(tn_tensor_grad(x) == NULL);
    EXPECT_OK(tn_tensor_backward(a));
    EXPECT_NEAR(kit_grad(x, 0), 2, 0);
    tn_tensor_unref(x);
    tn_tensor_unref(a);
    tn_tensor_unref(b);
    tn_tensor_unref(z);
    tn_clear_error();
    EXPECT_EQ_INT(tni_test_live, before);
}

TEST(a_node_that_fails_ends_the_pass_and_nothing_else)
{
    fails_with(&refuse_class, TN_VALUE, "node Refuse refuses");
    fails_with(&bad_call_class, TN_INVALID, "must match the size of tensor b");
    fails_with(&silent_class, TN_DEVICE, "Silent failed with DEVICE and left no message");
}

static tn_status wrong_shape(tni_backward *b)
{
    b->results[0] = tn_scope_own(kit_vector(2, 1));
    return TN_OK;
}
static const tni_node_class wrong_shape_class = {.name = "WrongShape", .apply = wrong_shape};

TEST(a_gradient_of_another_shape_is_refused)
{
    tn_tensor *x = kit_leaf(3, 1), *z = kit_vector(1, 1);
    ASSERT_OK(kit_record(&wrong_shape_class, &x, 1, z));
    EXPECT_FAIL(
        TN_INVALID,
        "Function WrongShape returned an invalid gradient at index 0 - got [2] but expected "
        "shape compatible with [3]",
        tn_tensor_backward(z));
    tn_tensor_unref(x);
    tn_tensor_unref(z);
}

/* A node that gives what it is told to. */
static tn_tensor *told;
static tn_status tell(tni_backward *b)
{
    b->results[0] = told;
    return TN_OK;
}
static const tni_node_class tell_class = {.name = "Tell", .apply = tell};
static const tni_node_class tell_real_class = {
    .name = "TellReal", .apply = tell, .flags = TNI_CLASS_REAL_PARTS};

TEST(gradients_are_summed_and_cast_to_what_they_belong_to)
{
    tn_tensor_opts opts = tn_opts(TN_DTYPE_F32, TN_CPU);
    int64_t sizes[] = {2, 3, 4}, small[] = {3, 1};
    tn_tensor *x = NULL, *z = kit_vector(1, 1);
    ASSERT_OK(tn_ones(small, 2, &opts, &x));
    ASSERT_OK(tn_tensor_set_requires_grad(x, true));
    ASSERT_OK(kit_record(&tell_class, &x, 1, z));
    opts.dtype = TN_DTYPE_F64;
    ASSERT_OK(tn_ones(sizes, 3, &opts, &told));
    EXPECT_OK(tn_tensor_backward(z));
    EXPECT_EQ_INT(tn_tensor_dtype(tn_tensor_grad(x)), TN_DTYPE_F32);
    EXPECT_EQ_INT(tn_tensor_ndim(tn_tensor_grad(x)), 2);
    EXPECT_NEAR(kit_grad(x, 2), 8, 0);
    tn_tensor_unref(told);
    /* A complex gradient of a real tensor: refused, unless the node means its real part. */
    opts.dtype = TN_DTYPE_C64;
    ASSERT_OK(tn_ones(small, 2, &opts, &told));
    EXPECT_FAIL(TN_INVALID, "(input_is_complex == grad_is_complex) to be true, but got false",
                tn_tensor_backward(z));
    tn_tensor_unref(z);
    z = kit_vector(1, 1);
    ASSERT_OK(kit_record(&tell_real_class, &x, 1, z));
    EXPECT_OK(tn_tensor_backward(z));
    EXPECT_NEAR(kit_grad(x, 0), 9, 0);
    tn_tensor_unref(told);
    tn_tensor_unref(x);
    tn_tensor_unref(z);
}

TEST(nodes_that_never_become_ready_are_named)
{
    tn_tensor *x = kit_leaf(1, 3), *a = NULL, *b = NULL;
    ASSERT_OK(kit_add(x, x, &a));
    ASSERT_OK(kit_scale(a, &b));
    tn_node *first = NULL, *second = NULL;
    ASSERT_OK(tn_tensor_grad_fn(a, &first));
    ASSERT_OK(tn_tensor_grad_fn(b, &second));
    /* Bend an edge of the first node back to the second: a cycle. */
    tni_edge was = first->edges[1];
    first->edges[1] = (tni_edge){second, 0};
    EXPECT_FAIL(TN_INTERNAL, "could not compute gradients for some functions: 3 of 3 nodes",
                tn_tensor_backward(b));
    EXPECT_CONTAINS(tn_last_error(), "KitScale, sequence number");
    EXPECT_CONTAINS(tn_last_error(), "waits for 1 more: KitAdd (sequence number");
    first->edges[1] = was;
    EXPECT_OK(tn_tensor_backward(b));
    EXPECT_NEAR(kit_grad(x, 0), 4, 0);
    tn_tensor_unref(x);
    tn_tensor_unref(a);
    tn_tensor_unref(b);
}

/* ---- no memory ---- */

static tn_status small_step(tn_tensor *x, tn_tensor *y)
{
    TN_AUTO(tn_tensor) a = NULL;
    TN_AUTO(tn_tensor) b = NULL;
    TN_AUTO(tn_tensor) c = NULL;
    TN_TRY(kit_mul(x, y, &a));
    TN_TRY(kit_scale(a, &b));
    TN_TRY(tn_tensor_retain_grad(a));
    TN_TRY(kit_add(b, x, &c));
    return tn_tensor_backward(c);
}

TEST(each_allocation_of_a_pass_may_fail)
{
    tn_tensor *x = kit_leaf(1, 3), *y = kit_leaf(1, 5);
    ASSERT_OK(small_step(x, y));
    int64_t before = tni_test_live;
    tn_status rc = TN_OK;
    WITH_EACH_ALLOCATION_FAILING(rc)
    {
        ASSERT_OK(tn_tensor_set_grad(x, NULL));
        ASSERT_OK(tn_tensor_set_grad(y, NULL));
        rc = small_step(x, y);
        if (rc != TN_OK)
            EXPECT_EQ_INT(rc, TN_NOMEM);
        EXPECT(tni_tls.scope == NULL && tn_grad_enabled());
        ASSERT_OK(tn_tensor_set_grad(x, NULL));
        ASSERT_OK(tn_tensor_set_grad(y, NULL));
    }
    ASSERT_OK(small_step(x, y));
    EXPECT_NEAR(kit_grad(x, 0), 11, 0);
    EXPECT_NEAR(kit_grad(y, 0), 6, 0);
    EXPECT_EQ_INT(tni_test_live, before);
    tn_tensor_unref(x);
    tn_tensor_unref(y);
}

TEST(each_allocation_of_grad_may_fail)
{
    tn_tensor *x = kit_leaf(1, 3), *y = kit_leaf(1, 5), *z = NULL, *out = NULL;
    ASSERT_OK(kit_mul(x, y, &z));
    tn_grad_opts opts = TN_GRAD_OPTS_INIT;
    opts.retain_graph = TN_BOOL_TRUE;
    ASSERT_OK(tn_grad(&z, 1, &x, 1, NULL, &opts, &out));
    tn_tensor_unref(out);
    int64_t before = tni_test_live;
    tn_status rc = TN_OK;
    WITH_EACH_ALLOCATION_FAILING(rc)
    {
        out = NULL;
        rc = tn_grad(&z, 1, &x, 1, NULL, &opts, &out);
        if (rc != TN_OK)
            EXPECT(rc == TN_NOMEM && out == NULL && tni_test_live == before);
    }
    EXPECT_NEAR(kit_at(out, 0), 5, 0);
    tn_tensor_unref(out);
    tn_tensor_unref(x);
    tn_tensor_unref(y);
    tn_tensor_unref(z);
}
