/* SPDX-License-Identifier: MIT */
/* tests/autograd/test_accumulate.c: whose memory `.grad` is, how it lies, and what may be assigned.
 */
#include "kit.h"

/* A node that hands on the gradient that the test put here. */
static tn_tensor *next_grad;
static bool hand_over; /* its only reference, else one of two */
static tn_status give(tni_backward *b)
{
    b->results[0] = hand_over ? tn_scope_own(next_grad) : next_grad;
    return TN_OK;
}
static const tni_node_class give_class = {.name = "Give", .apply = give};

/* A backward pass that brings @p grad to @p x. */
static void bring(tn_tensor *x, tn_tensor *grad, bool alone)
{
    tn_tensor *z = kit_vector(1, 0);
    ASSERT_OK(kit_record(&give_class, &x, 1, z));
    next_grad = grad;
    hand_over = alone;
    EXPECT_OK(tn_tensor_backward(z));
    tn_tensor_unref(z);
}

TEST(the_first_gradient_is_taken_when_nobody_else_has_it)
{
    tn_tensor *x = kit_leaf(4, 1), *g = kit_vector(4, 2);
    const void *data = tn_tensor_data(g);
    bring(x, g, true);
    EXPECT(tn_tensor_grad(x) == g && tn_tensor_data(tn_tensor_grad(x)) == data);
    EXPECT_EQ_INT(tn_tensor_use_count(g), 1);
    tn_tensor_unref(x);
}

TEST(a_gradient_that_others_hold_is_copied)
{
    tn_tensor *x = kit_leaf(4, 1), *g = kit_vector(4, 2);
    bring(x, g, false);
    EXPECT(tn_tensor_grad(x) != g && !tn_tensor_shares_storage(tn_tensor_grad(x), g));
    EXPECT_NEAR(kit_grad(x, 3), 2, 0);
    tn_tensor_unref(g);
    tn_tensor_unref(x);
}

/* So the gradient of a weight comes that was transposed. */
TEST(a_gradient_that_is_a_view_is_taken_when_nobody_has_its_base)
{
    tn_tensor *x = kit_leaf(4, 1), *all = kit_vector(4, 2), *view = NULL;
    const void *data = tn_tensor_data(all);
    ASSERT_OK(tn_view(all, (const int64_t[]){4}, 1, &view));
    tn_tensor_unref(all);
    bring(x, view, true);
    EXPECT(tn_tensor_data(tn_tensor_grad(x)) == data && !tn_tensor_is_view(tn_tensor_grad(x)));
    tn_tensor_unref(x);
    /* A part would keep the rest. */
    x = kit_leaf(2, 1);
    all = kit_vector(4, 2);
    data = tn_tensor_data(all);
    ASSERT_OK(tn_slice(all, 0, tn_some_int(0), tn_some_int(2), 1, &view));
    tn_tensor_unref(all);
    bring(x, view, true);
    EXPECT(tn_tensor_data(tn_tensor_grad(x)) != data);
    tn_tensor_unref(x);
}

/* As in the reference: a copy was written into its place, what was taken was not. */
TEST(a_gradient_that_was_copied_counts_a_write)
{
    tn_tensor *x = kit_leaf(4, 1), *y = NULL;
    uint32_t count = 9;
    ASSERT_OK(tn_sum(x, TN_DTYPE_NONE, &y)); /* one element, repeated */
    EXPECT_OK(tn_tensor_backward(y));
    EXPECT_OK(tn_tensor_version(tn_tensor_grad(x), &count));
    EXPECT_EQ_INT(count, 1);
    tn_tensor_unref(y);
    ASSERT_OK(tn_tensor_set_grad(x, NULL));
    ASSERT_OK(tn_exp(x, &y));
    tn_tensor *total = NULL;
    ASSERT_OK(tn_sum(y, TN_DTYPE_NONE, &total));
    EXPECT_OK(tn_tensor_backward(total));
    EXPECT_OK(tn_tensor_version(tn_tensor_grad(x), &count));
    EXPECT_EQ_INT(count, 0);
    tn_tensor_unref(total);
    tn_tensor_unref(y);
    tn_tensor_unref(x);
}

/* `.data = other` while a graph leads to the leaf: the gradient is of the old sizes. */
TEST(a_leaf_that_was_given_other_sizes_gets_what_its_graph_gives)
{
    tn_tensor *x = kit_leaf(3, 1), *other = kit_vector(1, 1), *y = NULL, *total = NULL;
    tn_tensor *wide = NULL;
    ASSERT_OK(tn_exp(x, &y));
    ASSERT_OK(tn_sum(y, TN_DTYPE_NONE, &total));
    ASSERT_OK(tn_view(other, (const int64_t[]){1, 1, 1, 1, 1, 1, 1}, 7, &wide));
    ASSERT_OK(tn_tensor_set_data(x, wide));
    EXPECT_OK(tn_tensor_backward(total)); /* taken as it is */
    EXPECT_EQ_INT(tn_tensor_ndim(tn_tensor_grad(x)), 1);
    tn_tensor *all[] = {x, other, y, total, wide};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        tn_tensor_unref(all[i]);
}

TEST(a_gradient_whose_memory_others_hold_is_copied)
{
    int64_t four = 4;
    tn_tensor *x = kit_leaf(4, 1), *g = kit_vector(4, 2), *view = NULL;
    ASSERT_OK(tn_view(g, &four, 1, &view));
    bring(x, view, true);
    EXPECT(!tn_tensor_shares_storage(tn_tensor_grad(x), g));
    tn_tensor_unref(g);
    tn_tensor_unref(x);
    /* Memory that is not ours may be written by its owner at any time. */
    float mine[4] = {1, 2, 3, 4};
    x = kit_leaf(4, 1);
    ASSERT_OK(tn_tensor_from_blob(mine, 1, &four, NULL, TN_DTYPE_F32, NULL, NULL, &g));
    bring(x, g, true);
    EXPECT(tn_tensor_data(tn_tensor_grad(x)) != mine);
    tn_tensor_unref(x);
}

/* (x.view + y.view): one gradient goes to both leaves, each time through a fresh tensor. */
TEST(two_leaves_never_share_one_gradient)
{
    tn_tensor *x = kit_leaf(6, 1), *y = kit_leaf(6, 1), *z = NULL;
    ASSERT_OK(kit_add(x, y, &z));
    tn_tensor *seed = kit_vector(6, 3);
    EXPECT_OK(tn_backward(&z, 1, &seed, NULL));
    EXPECT(!tn_tensor_shares_storage(tn_tensor_grad(x), tn_tensor_grad(y)));
    EXPECT(!tn_tensor_shares_storage(tn_tensor_grad(x), seed));
    EXPECT(!tn_tensor_shares_storage(tn_tensor_grad(y), seed));
    tn_tensor_unref(seed);
    tn_tensor_unref(x);
    tn_tensor_unref(y);
    tn_tensor_unref(z);
}

TEST(gradients_lie_as_their_tensors_do)
{
    int64_t sizes[] = {2, 3};
    tn_tensor_opts opts = tn_opts(TN_DTYPE_F32, TN_CPU);
    int64_t strides[] = {1, 2};
    tn_tensor *x = NULL, *g = NULL, *expanded = NULL, *one = NULL;
    ASSERT_OK(tn_empty_strided(sizes, 2, strides, 2, &opts, &x));
    ASSERT_OK(tn_tensor_set_requires_grad(x, true));
    ASSERT_OK(tn_ones(sizes, 2, &opts, &g));
    bring(x, g, true);
    EXPECT_EQ_INT(tn_tensor_strides(tn_tensor_grad(x))[0], 1);
    EXPECT_EQ_INT(tn_tensor_strides(tn_tensor_grad(x))[1], 2);
    /* One that is there keeps its strides. */
    ASSERT_OK(tn_ones(sizes, 2, &opts, &g));
    ASSERT_OK(tn_tensor_set_grad(x, g));
    tn_tensor *kept = g;
    bring(x, kept, false);
    EXPECT(tn_tensor_grad(x) == kept);
    EXPECT_EQ_INT(tn_tensor_strides(kept)[0], 3);
    EXPECT_NEAR(kit_at(kept, 5), 2, 0);
    tn_tensor_unref(kept);
    tn_tensor_unref(x);
    /* A number that was expanded is made dense. */
    int64_t three = 3;
    x = kit_leaf(3, 1);
    ASSERT_OK(tn_ones(&three, 0, &opts, &one));
    ASSERT_OK(tn_expand(one, &three, 1, false, &expanded));
    tn_tensor_unref(one);
    bring(x, expanded, true);
    EXPECT_EQ_INT(tn_tensor_strides(tn_tensor_grad(x))[0], 1);
    tn_tensor_unref(x);
}

TEST(summing_reuses_the_first_buffer_when_it_is_free)
{
    tn_tensor *x = kit_leaf(2, 1), *a = NULL, *b = NULL, *c = NULL, *z = NULL;
    ASSERT_OK(kit_scale(x, &a));
    ASSERT_OK(kit_scale(x, &b));
    ASSERT_OK(kit_add(a, b, &c));
    ASSERT_OK(kit_mul(c, x, &z));
    tn_tensor *seed = kit_vector(2, 1);
    EXPECT_OK(tn_backward(&z, 1, &seed, NULL));
    EXPECT_NEAR(kit_grad(x, 0), 8, 0); /* d(4 x^2) */
    EXPECT_NEAR(kit_at(seed, 0), 1, 0);
    tn_tensor_unref(seed);
    tn_tensor_unref(x);
    tn_tensor_unref(a);
    tn_tensor_unref(b);
    tn_tensor_unref(c);
    tn_tensor_unref(z);
}

TEST(a_recorded_pass_leaves_the_old_gradient_alone)
{
    tn_tensor *x = kit_leaf(1, 3), *z = NULL, *old = kit_vector(1, 10);
    ASSERT_OK(tn_tensor_set_grad(x, old));
    ASSERT_OK(kit_scale(x, &z));
    tn_backward_opts opts = TN_BACKWARD_OPTS_INIT;
    opts.create_graph = TN_BOOL_TRUE;
    EXPECT_OK(tn_backward(&z, 1, NULL, &opts));
    EXPECT(tn_tensor_grad(x) != old);
    EXPECT_NEAR(kit_at(old, 0), 10, 0);
    EXPECT_NEAR(kit_grad(x, 0), 12, 0);
    tn_tensor_unref(old);
    tn_tensor_unref(x);
    tn_tensor_unref(z);
}

TEST(what_may_be_assigned_to_grad)
{
    tn_tensor *x = kit_leaf(3, 1), *g = kit_vector(2, 1);
    EXPECT_FAIL(TN_INVALID,
                "attempting to assign a gradient of size '[2]' to a tensor of size '[3]'. Please "
                "ensure that the gradient and the tensor are the same size",
                tn_tensor_set_grad(x, g));
    tn_tensor_unref(g);
    int64_t three = 3;
    tn_tensor_opts opts = tn_opts(TN_DTYPE_F64, TN_CPU);
    ASSERT_OK(tn_ones(&three, 1, &opts, &g));
    EXPECT_FAIL(TN_INVALID,
                "attempting to assign a gradient with dtype 'double' to a tensor with grad_dtype "
                "'Float'.",
                tn_tensor_set_grad(x, g));
    tn_tensor_unref(g);
    opts = tn_opts(TN_DTYPE_F32, TN_META);
    ASSERT_OK(tn_ones(&three, 1, &opts, &g));
    EXPECT_FAIL(TN_INVALID,
                "attempting to assign a gradient with device type 'meta' to a tensor with device "
                "type 'cpu'. Please ensure that the gradient and the tensor are on the same device",
                tn_tensor_set_grad(x, g));
    tn_tensor_unref(g);
    EXPECT_FAIL(TN_INVALID, "can't assign Variable as its own grad", tn_tensor_set_grad(x, x));
    EXPECT(tn_tensor_grad(x) == NULL);
    g = kit_vector(3, 1);
    EXPECT_OK(tn_tensor_set_grad(x, g));
    EXPECT(tn_tensor_grad(x) == g);
    EXPECT_OK(tn_tensor_set_grad(x, NULL));
    EXPECT(tn_tensor_grad(x) == NULL);
    EXPECT_EQ_INT(tn_tensor_use_count(g), 1);
    tn_tensor_unref(g);
    tn_tensor_unref(x);
}

/* ---- life of accumulators ---- */

TEST(an_accumulator_lives_while_a_graph_leads_to_it)
{
    tn_tensor *x = kit_leaf(1, 3);
    tni_node *first = NULL, *second = NULL;
    ASSERT_OK(tni_accumulator(x, &first));
    ASSERT_OK(tni_accumulator(x, &second));
    EXPECT(first == second);
    tni_node_unref(first);
    tni_node_unref(second);
    EXPECT_EQ_INT(tn_tensor_use_count(x), 1);
    ASSERT_OK(tni_accumulator(x, &first));
    tn_tensor_unref(x); /* the accumulator keeps it */
    EXPECT(tn_node_variable(first) == x);
    tni_node_unref(first);
}

static tn_status never(void *ctx, tn_node *node, tn_tensor *const *grads, int64_t n,
                       tn_tensor **out)
{
    (void)ctx;
    (void)node;
    (void)grads;
    (void)n;
    (void)out;
    return tn_fail(TN_INTERNAL, "the hook of an accumulator that is gone ran");
}

TEST(an_accumulator_that_comes_back_knows_what_its_leaf_is_now)
{
    kit_warm_up();
    int64_t before = tni_test_live;
    tn_tensor *x = kit_leaf(6, 3);
    int64_t sizes[] = {2, 3};
    for (int i = 0; i < 3; i++) {
        tni_node *node = NULL;
        tn_hook *hook = NULL;
        ASSERT_OK(tni_accumulator(x, &node));
        tn_node_input in = {.size = sizeof in};
        ASSERT_OK(tn_node_get_input(node, 0, &in));
        EXPECT_EQ_INT(in.ndim, i == 0 ? 1 : 2);
        EXPECT(tn_node_variable(node) == x);
        if (i == 1) /* its handle refers to the accumulator that goes: another one is made */
            ASSERT_OK(tn_node_add_pre_hook(node, never, NULL, NULL, &hook));
        tni_node_unref(node);
        ASSERT_OK(tni_tensor_resize(x, 2, sizes));
        if (i == 1) {
            ASSERT_OK(tni_accumulator(x, &node));
            tn_hook_remove(hook);
            tni_node_unref(node);
        }
    }
    tn_tensor_unref(x);
    tn_clear_error();
    EXPECT_EQ_INT(tni_test_live, before);
}

TEST(a_leaf_of_many_dimensions_is_used_again_and_again)
{
    const int64_t sizes[] = {1, 2, 1, 2, 1};
    tn_tensor *x = NULL, *y = NULL;
    tn_tensor_opts opts = tn_opts(TN_DTYPE_F32, TN_CPU);
    ASSERT_OK(tn_ones(sizes, 5, &opts, &x));
    ASSERT_OK(tn_tensor_set_requires_grad(x, true));
    for (int i = 0; i < 3; i++) {
        ASSERT_OK(tn_add(x, x, tn_int(1), &y));
        tn_tensor_unref(TN_MOVE(y));
    }
    ASSERT_OK(tn_sum(x, TN_DTYPE_NONE, &y));
    EXPECT_OK(tn_tensor_backward(y));
    EXPECT_NEAR(kit_grad(x, 3), 1, 0);
    tn_tensor_unref(y);
    tn_tensor_unref(x);
}

TEST(what_no_longer_requires_grad_gets_none)
{
    tn_tensor *x = kit_leaf(1, 3), *y = kit_leaf(1, 1), *z = NULL;
    ASSERT_OK(kit_add(x, y, &z));
    ASSERT_OK(tn_tensor_set_requires_grad(x, false));
    EXPECT_OK(tn_tensor_backward(z));
    EXPECT(tn_tensor_grad(x) == NULL);
    EXPECT_NEAR(kit_grad(y, 0), 1, 0);
    tn_tensor_unref(z);
    ASSERT_OK(kit_add(y, y, &z));
    tn_tensor *w = kit_leaf(1, 1);
    ASSERT_OK(kit_record(&kit_scale_class, &w, 1, y)); /* y is no leaf any more */
    EXPECT_FAIL(TN_INVALID, "leaf variable has been moved into the graph interior",
                tn_tensor_backward(z));
    tn_tensor_unref(x);
    tn_tensor_unref(y);
    tn_tensor_unref(w);
    tn_tensor_unref(z);
}
