/* SPDX-License-Identifier: MIT */
/* tests/autograd/test_anomaly.c: anomaly mode says where a node was made and who made the NaN. */
#include "kit.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static void off(void)
{
    (void)tn_set_anomaly_mode(0);
    tn_set_anomaly_tracer(NULL, NULL);
}

static void where(void *ctx, char *buffer, size_t n)
{
    snprintf(buffer, n, "  line %d\n", ++*(int *)ctx);
}

static tn_status make_nan(tni_backward *b)
{
    b->results[0] = tnx_mul_scalar(b->grads[0], tn_float((double)NAN));
    return TN_OK;
}
static const tni_node_class nan_class = {.name = "MakeNan", .apply = make_nan};

TEST(a_nan_in_a_gradient_names_node_and_place)
{
    test_at_end(off);
    int line = 6;
    tn_tensor *x = kit_leaf(1, 3), *z = kit_vector(1, 1);
    EXPECT_EQ_INT(tn_set_anomaly_mode(TN_ANOMALY_ON), 0);
    EXPECT_EQ_INT(tn_anomaly_mode(), TN_ANOMALY_ON);
    tn_set_anomaly_tracer(where, &line);
    ASSERT_OK(kit_record(&nan_class, &x, 1, z));
    tn_node *node = NULL;
    ASSERT_OK(tn_tensor_grad_fn(z, &node));
    EXPECT_CONTAINS(tn_node_made_at(node), "line 7");
    EXPECT_FAIL(TN_INVALID, "Function 'MakeNan' returned nan values in its 0th output.",
                tn_tensor_backward(z));
    EXPECT_CONTAINS(tn_last_error(),
                    "\n\nError detected in MakeNan. Traceback of forward call that caused the "
                    "error:\n  line 7\n");
    EXPECT(tn_tensor_grad(x) == NULL);
    EXPECT_EQ_INT(tn_set_anomaly_mode(0), TN_ANOMALY_ON);
    EXPECT_OK(tn_tensor_backward(z));
    EXPECT(isnan(kit_grad(x, 0)));
    tn_tensor_unref(x);
    tn_tensor_unref(z);
}

TEST(a_node_made_before_says_that_nothing_is_known)
{
    test_at_end(off);
    tn_tensor *x = kit_leaf(1, 3), *z = kit_vector(1, 1);
    ASSERT_OK(kit_record(&nan_class, &x, 1, z));
    tn_node *node = NULL;
    ASSERT_OK(tn_tensor_grad_fn(z, &node));
    EXPECT_STR(tn_node_made_at(node), "");
    (void)tn_set_anomaly_mode(TN_ANOMALY_ON);
    EXPECT_FAIL(TN_INVALID, "No forward pass information available.", tn_tensor_backward(z));
    tn_tensor_unref(x);
    tn_tensor_unref(z);
}

/* A node that was made in the turn of another: the message tells of both. */
TEST(nodes_that_a_pass_records_know_in_whose_turn)
{
    test_at_end(off);
    int line = 0;
    (void)tn_set_anomaly_mode(TN_ANOMALY_TRACE);
    tn_set_anomaly_tracer(where, &line);
    tn_tensor *x = kit_leaf(1, 3), *y = kit_leaf(1, 5), *z = NULL, *first = NULL, *second = NULL;
    ASSERT_OK(kit_mul(x, y, &z)); /* line 1 */
    tn_grad_opts opts = TN_GRAD_OPTS_INIT;
    opts.create_graph = TN_BOOL_TRUE;
    ASSERT_OK(tn_grad(&z, 1, &x, 1, NULL, &opts, &first)); /* line 2, in the turn of line 1 */
    EXPECT_OK(tn_grad(&first, 1, &y, 1, NULL, NULL, &second));
    tn_tensor_unref(second);
    EXPECT_FAIL(TN_INVALID, "a second time", tn_grad(&first, 1, &y, 1, NULL, NULL, &second));
    EXPECT_CONTAINS(tn_last_error(), "that caused the error:\n  line 2\n");
    EXPECT_CONTAINS(
        tn_last_error(),
        "\n\nPrevious calculation was induced by KitMul. Traceback of forward call that "
        "induced the previous calculation:\n  line 1\n");
    tn_tensor_unref(first);
    tn_tensor_unref(x);
    tn_tensor_unref(y);
    tn_tensor_unref(z);
}

TEST(the_first_nan_or_inf_of_a_forward_pass_is_named)
{
    test_at_end(off);
    tn_tensor *x = kit_leaf(1, 3), *bad = kit_vector(1, NAN), *big = kit_vector(1, INFINITY);
    tn_tensor *z = NULL;
    (void)tn_set_anomaly_mode(TN_ANOMALY_ON);
    EXPECT_FAIL(TN_INVALID, "made a NaN in its result 0, to be recorded as KitMul",
                kit_mul(x, bad, &z));
    EXPECT(z == NULL);
    EXPECT_OK(kit_mul(x, big, &z));
    tn_tensor_unref(z);
    (void)tn_set_anomaly_mode(TN_ANOMALY_ON | TN_ANOMALY_FORWARD_INF);
    EXPECT_FAIL(TN_INVALID, "made an Inf in its result 0", kit_mul(x, big, &z));
    EXPECT(tn_grad_enabled());
    tn_tensor_unref(x);
    tn_tensor_unref(bad);
    tn_tensor_unref(big);
}

TEST(anomaly_mode_survives_failing_allocations)
{
    test_at_end(off);
    kit_warm_up();
    (void)tn_set_anomaly_mode(TN_ANOMALY_ON);
    tn_tensor *x = kit_leaf(1, 3), *y = kit_leaf(1, 5), *z = NULL, *first = NULL;
    ASSERT_OK(kit_mul(x, y, &first)); /* keeps the accumulators */
    int64_t before = tni_test_live;
    tn_status rc = TN_OK;
    WITH_EACH_ALLOCATION_FAILING(rc)
    {
        z = NULL;
        rc = kit_mul(x, y, &z);
        if (rc != TN_OK)
            EXPECT(rc == TN_NOMEM && z == NULL && tni_test_live == before);
    }
    tn_tensor_unref(first);
    tn_tensor_unref(z);
    tn_tensor_unref(x);
    tn_tensor_unref(y);
}
