/* SPDX-License-Identifier: MIT */
/* tests/autograd/test_recorded.c: the engine over nodes that operators record. */
#include "kit.h"

TEST(operators_record_and_run_backwards)
{
    tn_tensor *x = kit_leaf(3, 2), *a = NULL, *b = NULL, *z = NULL;
    ASSERT_OK(tn_mul(x, x, &a));
    ASSERT_OK(tn_add(a, x, tn_int(3), &b)); /* x^2 + 3x */
    ASSERT_OK(tn_sum(b, TN_DTYPE_NONE, &z));
    EXPECT_OK(tn_tensor_backward(z));
    EXPECT_NEAR(kit_grad(x, 1), 7, 0);
    EXPECT(!tn_tensor_requires_grad(tn_tensor_grad(x)));
    tn_tensor_unref(x);
    tn_tensor_unref(a);
    tn_tensor_unref(b);
    tn_tensor_unref(z);
}

/* x^4: 4x^3, 12x^2, 24x, 24. */
TEST(a_recorded_call_takes_a_tensor_its_memory_and_a_node)
{
    tn_tensor *x = kit_leaf(4, 1), *y = kit_leaf(4, 2), *z = NULL;
    ASSERT_OK(tn_add(x, y, tn_int(1), &z)); /* the accumulators are made once */
    tn_tensor_unref(TN_MOVE(z));
    tni_alloc_watch(-1, false);
    ASSERT_OK(tn_add(x, y, tn_int(1), &z));
    int64_t tried = tni_alloc_tried();
    tni_alloc_unwatch();
    EXPECT_EQ_INT(tried, 3);
    tn_tensor *all[] = {x, y, z};
    for (int i = 0; i < 3; i++)
        tn_tensor_unref(all[i]);
}

TEST(gradients_of_gradients_to_any_order)
{
    tn_tensor *x = kit_leaf(1, 2), *a = NULL, *y = NULL;
    ASSERT_OK(tn_mul(x, x, &a));
    ASSERT_OK(tn_mul(a, a, &y));
    tn_grad_opts opts = TN_GRAD_OPTS_INIT;
    opts.create_graph = TN_BOOL_TRUE;
    float wanted[] = {32, 48, 48, 24};
    for (int i = 0; i < 4; i++) {
        tn_tensor *next = NULL;
        ASSERT_OK(tn_grad(&y, 1, &x, 1, NULL, &opts, &next));
        EXPECT_NEAR(kit_at(next, 0), wanted[i], 0);
        tn_tensor_unref(y);
        y = next;
    }
    tn_tensor_unref(x);
    tn_tensor_unref(a);
    tn_tensor_unref(y);
}

/* The first gradient of a recorded pass carries history, so it is a copy and no alias. */
TEST(a_recorded_pass_gives_grad_a_history)
{
    tn_tensor *x = kit_leaf(1, 3), *z = NULL;
    ASSERT_OK(tn_mul(x, x, &z));
    tn_backward_opts opts = TN_BACKWARD_OPTS_INIT;
    opts.create_graph = TN_BOOL_TRUE;
    ASSERT_OK(tn_backward(&z, 1, NULL, &opts));
    tn_tensor *g = tn_tensor_ref(tn_tensor_grad(x));
    EXPECT_NEAR(kit_at(g, 0), 6, 0);
    EXPECT(tn_tensor_requires_grad(g) && !tn_tensor_is_leaf(g));
    ASSERT_OK(tn_tensor_set_grad(x, NULL)); /* else x and its gradient keep each other alive */
    EXPECT_OK(tn_tensor_backward(g));
    EXPECT_NEAR(kit_grad(x, 0), 2, 0);
    tn_tensor_unref(g);
    tn_tensor_unref(x);
    tn_tensor_unref(z);
}

/* The two leaves of (x.view(6) + y.view(6)) * 2 get one gradient, through fresh views of it. */
TEST(leaves_behind_views_do_not_share_memory)
{
    int64_t sizes[] = {2, 3}, six = 6;
    tn_tensor_opts opts = tn_opts(TN_DTYPE_F32, TN_CPU);
    tn_tensor *x = NULL, *y = NULL, *vx = NULL, *vy = NULL, *s = NULL, *z = NULL;
    ASSERT_OK(tn_ones(sizes, 2, &opts, &x));
    ASSERT_OK(tn_ones(sizes, 2, &opts, &y));
    ASSERT_OK(tn_tensor_set_requires_grad(x, true));
    ASSERT_OK(tn_tensor_set_requires_grad(y, true));
    ASSERT_OK(tn_view(x, &six, 1, &vx));
    ASSERT_OK(tn_view(y, &six, 1, &vy));
    ASSERT_OK(tn_add(vx, vy, tn_int(1), &s));
    ASSERT_OK(tn_mul_scalar(s, tn_int(2), &z));
    tn_tensor *seed = kit_vector(6, 1);
    EXPECT_OK(tn_backward(&z, 1, &seed, NULL));
    EXPECT(!tn_tensor_shares_storage(tn_tensor_grad(x), tn_tensor_grad(y)));
    EXPECT_NEAR(kit_grad(x, 5), 2, 0);
    EXPECT_NEAR(kit_grad(y, 5), 2, 0);
    tn_tensor *all[] = {x, y, vx, vy, s, z, seed};
    for (int i = 0; i < 7; i++)
        tn_tensor_unref(all[i]);
}

TEST(values_saved_of_a_list_go_with_the_pass)
{
    tn_tensor *x = kit_leaf(2, 1), *y = kit_leaf(2, 2), *a = NULL, *z = NULL, *product = NULL;
    ASSERT_OK(tn_mul(x, y, &a));
    tn_tensor *list[] = {a, y};
    ASSERT_OK(tn_cat(list, 2, 0, &product));
    ASSERT_OK(tn_sum(product, TN_DTYPE_NONE, &z));
    EXPECT_OK(tn_tensor_backward(z));
    EXPECT_NEAR(kit_grad(x, 0), 2, 0);
    EXPECT_NEAR(kit_grad(y, 1), 2, 0);
    EXPECT_FAIL(TN_INVALID, "a second time", tn_tensor_backward(z));
    tn_tensor *all[] = {x, y, a, z, product};
    for (int i = 0; i < 5; i++)
        tn_tensor_unref(all[i]);
}

/* The view has no part in the graph, though its base requires grad: it is not saved, so that
 * writing it does not fail the pass. */
TEST(what_gives_no_gradient_is_not_saved)
{
    tn_tensor *x = kit_leaf(3, 2), *view = NULL, *plain = NULL, *seed = kit_vector(3, 1);
    bool grad = tn_set_grad_enabled(false);
    ASSERT_OK(tn_alias(x, &view));
    ASSERT_OK(tn_detach(x, &plain));
    tn_set_grad_enabled(grad);
    ASSERT_OK(tn_addcmul_(plain, view, view, tn_int(1)));
    EXPECT(tn_tensor_requires_grad(plain));
    EXPECT_OK(tn_backward(&plain, 1, &seed, NULL));
    EXPECT(tn_tensor_grad(x) == NULL);
    tn_tensor_unref(x);
    tn_tensor_unref(view);
    tn_tensor_unref(plain);
    tn_tensor_unref(seed);
}

/* y *= y, and a view of y in place of the factor: no node keeps what it wrote, which would never be
 * freed, and the gradient is that of the square. */
TEST(a_factor_that_is_overwritten_is_saved_first)
{
    for (int view = 0; view < 2; view++) {
        tn_tensor *x = kit_leaf(3, 2), *y = NULL, *factor = NULL, *z = NULL;
        ASSERT_OK(tn_mul_scalar(x, tn_int(3), &y));
        if (view)
            ASSERT_OK(tn_alias(y, &factor));
        ASSERT_OK(tn_mul_(y, view ? factor : y));
        EXPECT_EQ_INT(tn_tensor_use_count(y), view ? 2 : 1);
        ASSERT_OK(tn_sum(y, TN_DTYPE_NONE, &z));
        EXPECT_OK(tn_tensor_backward(z));
        EXPECT_NEAR(kit_grad(x, 1), 36, 0);
        tn_tensor_unref(x);
        tn_tensor_unref(y);
        tn_tensor_unref(factor);
        tn_tensor_unref(z);
    }
}
