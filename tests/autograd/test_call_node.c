/* SPDX-License-Identifier: MIT */
/* A node's formula as a function, outside of a pass. */
#include "kit.h"

static int called;

static tn_status count(void *ctx, tn_node *node, tn_tensor *const *grads, int64_t n,
                       tn_tensor **out)
{
    (void)ctx, (void)node, (void)grads, (void)n, (void)out;
    called++;
    return TN_OK;
}

TEST(a_node_gives_the_gradients_of_its_inputs_again_and_again)
{
    tn_tensor *a = kit_leaf(2, 3), *b = kit_leaf(2, 5), *seed = kit_vector(2, 7), *y = NULL;
    tn_node *node = NULL;
    ASSERT_OK(tn_mul(a, b, &y));
    ASSERT_OK(tn_tensor_grad_fn(y, &node));
    ASSERT_OK(tn_node_add_pre_hook(node, count, NULL, NULL, NULL));
    for (int i = 0; i < 2; i++) {
        tn_tensor *out[2] = {NULL};
        ASSERT_OK(tn_node_call(node, &seed, 1, out));
        EXPECT(kit_at(out[0], 1) == 35 && kit_at(out[1], 0) == 21);
        EXPECT(tn_tensor_requires_grad(out[0])); /* of b */
        tn_tensor_unref(out[0]);
        tn_tensor_unref(out[1]);
    }
    EXPECT(kit_at(seed, 0) == 7 && kit_at(seed, 1) == 7);
    EXPECT(called == 0 && !tn_tensor_grad(a));
    tn_tensor_unref(y);
    tn_tensor_unref(seed);
    tn_tensor_unref(b);
    tn_tensor_unref(a);
}

TEST(results_have_the_shape_of_what_they_are_gradients_of)
{
    tn_tensor *a = kit_leaf(3, 2), *b = kit_leaf(1, 5), *seed = kit_vector(3, 1), *y = NULL;
    tn_tensor *out[2] = {NULL};
    tn_node *node = NULL;
    ASSERT_OK(tn_mul(a, b, &y));
    ASSERT_OK(tn_tensor_grad_fn(y, &node));
    ASSERT_OK(tn_node_call(node, &seed, 1, out));
    EXPECT(out[1]->ndim == 1 && out[1]->sizes[0] == 1 && kit_at(out[1], 0) == 6);
    tn_tensor_unref(out[0]);
    tn_tensor_unref(out[1]);
    tn_tensor_unref(y);
    tn_tensor_unref(seed);
    tn_tensor_unref(b);
    tn_tensor_unref(a);
}

TEST(nothing_comes_of_nothing_and_an_accumulator_adds)
{
    tn_tensor *x = kit_leaf(2, 3), *seed = kit_vector(2, 7), *y = NULL, *none = NULL, *out = seed;
    tn_node *node = NULL, *leaf = NULL;
    uint32_t at;
    ASSERT_OK(tn_exp(x, &y));
    ASSERT_OK(tn_tensor_grad_fn(y, &node));
    ASSERT_OK(tn_node_call(node, &none, 1, &out));
    EXPECT(!out);
    ASSERT_OK(tn_tensor_gradient_edge(x, &leaf, &at));
    ASSERT_OK(tn_node_call(leaf, &seed, 1, NULL));
    ASSERT_OK(tn_node_call(leaf, &seed, 1, NULL));
    EXPECT(kit_grad(x, 1) == 14);
    tn_node_unref(leaf);
    tn_tensor_unref(y);
    tn_tensor_unref(seed);
    tn_tensor_unref(x);
}

TEST(a_call_that_cannot_be_says_why_and_leaves_out_alone)
{
    tn_tensor *x = kit_leaf(2, 3), *seed = kit_vector(2, 1), *odd = kit_vector(3, 1), *y = NULL;
    tn_tensor *two[2] = {seed, seed}, *out = odd;
    tn_node *node = NULL;
    ASSERT_OK(tn_exp(x, &y));
    ASSERT_OK(tn_tensor_grad_fn(y, &node));
    EXPECT_FAIL(TN_INVALID, "nothing to call", tn_node_call(NULL, &seed, 1, &out));
    EXPECT_FAIL(TN_INVALID, "expected 1 arguments, got 2 instead",
                tn_node_call(node, two, 2, &out));
    EXPECT_FAIL(TN_INVALID, "invalid gradient at index 0", tn_node_call(node, &odd, 1, &out));
    EXPECT_FAIL(TN_INVALID, "out is NULL", tn_node_call(node, &seed, 1, NULL));
    ASSERT_OK(tn_backward(&y, 1, &seed, NULL));
    EXPECT_FAIL(TN_INVALID, kit_second_time, tn_node_call(node, &seed, 1, &out));
    EXPECT(out == odd);
    tn_tensor_unref(y);
    tn_tensor_unref(odd);
    tn_tensor_unref(seed);
    tn_tensor_unref(x);
}

TEST(a_call_gives_all_or_nothing_whichever_allocation_fails)
{
    kit_warm_up();
    tn_tensor *a = kit_leaf(3, 2), *b = kit_leaf(1, 5), *seed = kit_vector(3, 1), *y = NULL;
    tn_node *node = NULL;
    ASSERT_OK(tn_mul(a, b, &y));
    ASSERT_OK(tn_tensor_grad_fn(y, &node));
    int64_t before = tni_test_live;
    tn_status rc;
    WITH_EACH_ALLOCATION_FAILING(rc)
    {
        tn_tensor *out[2] = {NULL};
        rc = tn_node_call(node, &seed, 1, out);
        EXPECT((rc == TN_OK) == (out[0] != NULL) && (rc == TN_OK) == (out[1] != NULL));
        tn_tensor_unref(out[0]);
        tn_tensor_unref(out[1]);
    }
    EXPECT(rc == TN_OK && tni_test_live == before);
    tn_tensor_unref(y);
    tn_tensor_unref(seed);
    tn_tensor_unref(b);
    tn_tensor_unref(a);
}
