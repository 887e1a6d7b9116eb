/* SPDX-License-Identifier: MIT */
/* Passes that start and end at edges of the graph, whose tensors are gone. */
#include "kit.h"

TEST(a_pass_goes_between_edges_whose_tensors_are_gone)
{
    tn_tensor *x = kit_leaf(2, 3), *seed = kit_vector(2, 1), *y = NULL, *z = NULL;
    ASSERT_OK(kit_scale(x, &y));
    ASSERT_OK(kit_mul(y, y, &z));
    tn_node *nodes[2] = {NULL};
    uint32_t at[2];
    ASSERT_OK(tn_tensor_gradient_edge(y, &nodes[0], &at[0]));
    ASSERT_OK(tn_tensor_gradient_edge(z, &nodes[1], &at[1]));
    tn_tensor_unref(y);
    tn_tensor_unref(z);
    ASSERT_OK(tn_tensor_at_edge(nodes[0], at[0], &y));
    ASSERT_OK(tn_tensor_at_edge(nodes[1], at[1], &z));
    EXPECT(z->ndim == 1 && z->sizes[0] == 2 && tn_tensor_requires_grad(z));
    tn_tensor *grad = NULL;
    ASSERT_OK(tn_grad(&z, 1, &y, 1, &seed, NULL, &grad));
    EXPECT(kit_at(grad, 1) == 12); /* 2 y, y = 6 */
    tn_tensor_unref(grad);
    tn_tensor_unref(y);
    tn_tensor_unref(z);
    tn_node_unref(nodes[0]);
    tn_node_unref(nodes[1]);
    tn_tensor_unref(seed);
    tn_tensor_unref(x);
}

TEST(the_tensor_at_the_edge_of_a_leaf_is_the_leaf)
{
    tn_tensor *x = kit_leaf(2, 3), *again = NULL;
    tn_node *node = NULL;
    uint32_t at;
    ASSERT_OK(tn_tensor_gradient_edge(x, &node, &at));
    ASSERT_OK(tn_tensor_at_edge(node, at, &again));
    EXPECT(again == x);
    EXPECT_FAIL(TN_INVALID, "out is NULL", tn_tensor_at_edge(node, at, NULL));
    tn_tensor_unref(again);
    tn_node_unref(node);
    tn_tensor_unref(x);
}

TEST(an_edge_becomes_a_tensor_or_nothing_whichever_allocation_fails)
{
    kit_warm_up();
    tn_tensor *x = kit_leaf(2, 3), *y = NULL, *ghost = NULL;
    ASSERT_OK(kit_scale(x, &y));
    tn_node *node = NULL;
    uint32_t at;
    ASSERT_OK(tn_tensor_gradient_edge(y, &node, &at));
    EXPECT_FAIL(TN_INDEX, "", tn_tensor_at_edge(node, 7, &ghost));
    int64_t before = tni_test_live;
    tn_status rc;
    WITH_EACH_ALLOCATION_FAILING(rc)
    {
        ghost = NULL;
        rc = tn_tensor_at_edge(node, at, &ghost);
        EXPECT((rc == TN_OK) == (ghost != NULL));
        tn_tensor_unref(ghost);
        EXPECT(tni_test_live == before);
    }
    tn_node_unref(node);
    tn_tensor_unref(y);
    tn_tensor_unref(x);
}
