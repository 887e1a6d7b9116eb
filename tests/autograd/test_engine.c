/* SPDX-License-Identifier: MIT */
/* tests/autograd/test_engine.c: which nodes run, in which order, and what comes out. */
#include "kit.h"

#include "autograd/engine.h"
#include "core/state.h"

TEST(gradients_reach_the_leaves_and_add_up)
{
    kit_warm_up();
    int64_t before = tni_test_live;
    tn_tensor *x = kit_leaf(3, 2), *y = kit_leaf(3, 5), *z = NULL;
    ASSERT_OK(kit_mul(x, y, &z));
    tn_tensor *seed = kit_vector(3, 1);
    EXPECT_OK(tn_backward(&z, 1, &seed, NULL));
    EXPECT_NEAR(kit_grad(x, 2), 5, 0);
    EXPECT_NEAR(kit_grad(y, 0), 2, 0);
    tn_tensor_unref(z);
    tn_tensor *first = tn_tensor_grad(x);
    ASSERT_OK(kit_mul(x, x, &z));
    EXPECT_OK(tn_backward(&z, 1, &seed, NULL));
    EXPECT_NEAR(kit_grad(x, 1), 5 + 4, 0);
    EXPECT(tn_tensor_grad(x) == first); /* in place */
    tn_tensor_unref(z);
    tn_tensor_unref(seed);
    tn_tensor_unref(x);
    tn_tensor_unref(y);
    EXPECT_EQ_INT(tni_test_live, before);
}

/* z = (x+x) * ((x+x)+(x+x)): every node once, however many ways lead to it. */
TEST(a_node_runs_once_after_all_that_leads_to_it)
{
    tn_tensor *x = kit_leaf(1, 3), *a = NULL, *b = NULL, *z = NULL;
    ASSERT_OK(kit_add(x, x, &a));
    ASSERT_OK(kit_add(a, a, &b));
    ASSERT_OK(kit_mul(a, b, &z));
    int64_t turns = kit_turns;
    EXPECT_OK(tn_tensor_backward(z));
    EXPECT_EQ_INT(kit_turns - turns, 3);
    EXPECT_NEAR(kit_grad(x, 0), 48, 0); /* d(8 x^2) */
    tn_tensor_unref(x);
    tn_tensor_unref(a);
    tn_tensor_unref(b);
    tn_tensor_unref(z);
}

TEST(a_million_nodes_are_built_run_and_freed)
{
    int64_t n = test_sanitized() ? 100000 : 1000000;
    tn_tensor *x = kit_leaf(1, 1), *z = NULL;
    ASSERT_OK(kit_chain(tn_tensor_ref(x), n, &z));
    int64_t turns = kit_turns;
    EXPECT_OK(tn_tensor_backward(z));
    EXPECT_EQ_INT(kit_turns - turns, n);
    EXPECT_NEAR(kit_grad(x, 0), 1, 0);
    tn_tensor_unref(z);
    tn_tensor_unref(x);
}

TEST(later_nodes_run_first_and_accumulators_before_all)
{
    tn_tensor *x = kit_leaf(1, 1), *a = NULL;
    ASSERT_OK(kit_add(x, x, &a));
    tn_node *node = NULL;
    ASSERT_OK(tn_tensor_grad_fn(a, &node));
    uint64_t first = tn_node_sequence_nr(node);
    EXPECT_STR(tn_node_name(node), "KitAdd");
    EXPECT_EQ_INT(tn_node_topological_nr(node), 1);
    EXPECT_EQ_INT(tn_node_num_edges(node), 2);
    uint32_t input = 7;
    tn_node *next = tn_node_edge(node, 1, &input);
    EXPECT_EQ_INT(input, 0);
    EXPECT_STR(tn_node_name(next), "AccumulateGrad");
    EXPECT(tn_node_sequence_nr(next) == UINT64_MAX);
    EXPECT(tn_node_variable(next) == x && tn_node_variable(node) == NULL);
    EXPECT_EQ_INT(tn_node_topological_nr(next), 0);
    tn_node_input in = {.size = sizeof in};
    ASSERT_OK(tn_node_get_input(node, 0, &in));
    EXPECT(in.ndim == 1 && in.sizes[0] == 1 && in.dtype == TN_DTYPE_F32);
    EXPECT_FAIL(TN_INDEX, "input 1 of a node with 1", tn_node_get_input(node, 1, &in));
    tn_tensor *b = NULL;
    ASSERT_OK(kit_mul(a, a, &b));
    ASSERT_OK(tn_tensor_grad_fn(b, &node));
    EXPECT_EQ_INT(tn_node_sequence_nr(node), first + 1); /* accumulators take no number */
    EXPECT_EQ_INT(tn_node_num_saved(node), 2);
    EXPECT_EQ_INT(tn_node_topological_nr(node), 2);
    EXPECT_OK(tn_tensor_backward(b));
    EXPECT_EQ_INT(tn_node_num_saved(node), 0);
    tn_tensor_unref(x);
    tn_tensor_unref(a);
    tn_tensor_unref(b);
}

/* ---- what is asked for ---- */

TEST(grad_runs_only_what_leads_to_its_inputs)
{
    tn_tensor *x = kit_leaf(1, 3), *y = kit_leaf(1, 4), *a = NULL, *b = NULL, *z = NULL;
    ASSERT_OK(kit_scale(x, &a));
    ASSERT_OK(kit_chain(tn_tensor_ref(y), 10, &b));
    ASSERT_OK(kit_mul(a, b, &z));
    tn_tensor *out = NULL;
    tn_grad_opts opts = TN_GRAD_OPTS_INIT;
    opts.retain_graph = TN_BOOL_TRUE;
    int64_t turns = kit_turns;
    EXPECT_OK(tn_grad(&z, 1, &x, 1, NULL, &opts, &out));
    EXPECT_EQ_INT(kit_turns - turns, 2); /* mul and scale */
    EXPECT_NEAR(kit_at(out, 0), 8, 0);
    EXPECT(tn_tensor_grad(x) == NULL && tn_tensor_grad(y) == NULL);
    tn_tensor_unref(out);
    /* An inner value: nothing below it runs, not even its own node. */
    turns = kit_turns;
    EXPECT_OK(tn_grad(&z, 1, &a, 1, NULL, &opts, &out));
    EXPECT_EQ_INT(kit_turns - turns, 1);
    EXPECT_NEAR(kit_at(out, 0), 4, 0);
    tn_tensor_unref(out);
    /* The output itself: the gradient is the seed. */
    tn_tensor *seed = kit_vector(1, 7);
    EXPECT_OK(tn_grad(&z, 1, &z, 1, &seed, &opts, &out));
    EXPECT_NEAR(kit_at(out, 0), 7, 0);
    tn_tensor_unref(out);
    /* One of them twice, and both a value and what it came from. */
    tn_tensor *inputs[] = {a, x, a, b, y}, *outs[5];
    EXPECT_OK(tn_grad(&z, 1, inputs, 5, NULL, &opts, outs));
    float wanted[] = {4, 8, 4, 6, 6};
    for (int i = 0; i < 5; i++) {
        EXPECT_NEAR(kit_at(outs[i], 0), wanted[i], 0);
        tn_tensor_unref(outs[i]);
    }
    tn_tensor_unref(seed);
    tn_tensor_unref(x);
    tn_tensor_unref(y);
    tn_tensor_unref(a);
    tn_tensor_unref(b);
    tn_tensor_unref(z);
}

TEST(nodes_below_the_inputs_are_not_even_visited)
{
    tn_tensor *x = kit_leaf(1, 1), *mid = NULL, *z = NULL;
    ASSERT_OK(kit_chain(tn_tensor_ref(x), 100, &mid));
    ASSERT_OK(kit_chain(tn_tensor_ref(mid), 5, &z));
    /* Claim everything below for a pass that does not exist: whoever visits must use its map, and
     * leaves the claim alone. */
    tn_node *node = NULL;
    ASSERT_OK(tn_tensor_grad_fn(mid, &node));
    node = tn_node_edge(node, 0, NULL);
    tn_tensor *out = NULL;
    tn_grad_opts opts = TN_GRAD_OPTS_INIT;
    opts.retain_graph = TN_BOOL_TRUE;
    int64_t before = tni_test_live;
    uint64_t foreign = UINT64_C(0xffffffff) << 32;
    for (tni_node *n = node; n; n = tn_node_edge(n, 0, NULL))
        atomic_store(&n->claim, foreign);
    EXPECT_OK(tn_grad(&z, 1, &mid, 1, NULL, &opts, &out));
    tn_tensor_unref(out);
    /* A whole pass over claimed nodes works too, by way of its map. */
    EXPECT_OK(tn_grad(&z, 1, &x, 1, NULL, &opts, &out));
    EXPECT_NEAR(kit_at(out, 0), 1, 0);
    tn_tensor_unref(out);
    EXPECT_EQ_INT(tni_test_live, before);
    for (tni_node *n = node; n; n = tn_node_edge(n, 0, NULL)) {
        EXPECT(atomic_load(&n->claim) == foreign);
        atomic_store(&n->claim, 0);
    }
    tn_tensor_unref(x);
    tn_tensor_unref(mid);
    tn_tensor_unref(z);
}

TEST(unused_inputs_fail_or_give_nothing_or_zeros)
{
    tn_tensor *x = kit_leaf(1, 3), *unused = kit_leaf(2, 1), *z = NULL, *out = x;
    ASSERT_OK(kit_scale(x, &z));
    tn_grad_opts opts = TN_GRAD_OPTS_INIT;
    opts.retain_graph = TN_BOOL_TRUE;
    EXPECT_FAIL(TN_INVALID,
                "One of the differentiated Tensors appears to not have been used in the graph. Set "
                "allow_unused=True if this is the desired behavior.",
                tn_grad(&z, 1, &unused, 1, NULL, &opts, &out));
    EXPECT(out == x);
    opts.allow_unused = TN_BOOL_TRUE;
    EXPECT_OK(tn_grad(&z, 1, &unused, 1, NULL, &opts, &out));
    EXPECT(out == NULL);
    opts.allow_unused = TN_BOOL_NONE;
    opts.materialize_grads = TN_BOOL_TRUE;
    EXPECT_OK(tn_grad(&z, 1, &unused, 1, NULL, &opts, &out));
    EXPECT_EQ_INT(tn_tensor_numel(out), 2);
    EXPECT_NEAR(kit_at(out, 1), 0, 0);
    tn_tensor_unref(out);
    opts.allow_unused = TN_BOOL_FALSE;
    EXPECT_FAIL(TN_VALUE, "Expected allow_unused to be True or not passed",
                tn_grad(&z, 1, &unused, 1, NULL, &opts, &out));
    EXPECT_FAIL(TN_VALUE, "grad requires non-empty inputs.",
                tn_grad(&z, 1, NULL, 0, NULL, NULL, &out));
    tn_tensor *plain = kit_vector(1, 1);
    EXPECT_FAIL(TN_INVALID, "One of the differentiated Tensors does not require grad",
                tn_grad(&z, 1, &plain, 1, NULL, NULL, &out));
    tn_tensor_unref(plain);
    tn_tensor_unref(x);
    tn_tensor_unref(unused);
    tn_tensor_unref(z);
}

TEST(backward_with_inputs_adds_to_them_alone)
{
    tn_tensor *x = kit_leaf(1, 3), *y = kit_leaf(1, 4), *a = NULL, *z = NULL;
    ASSERT_OK(kit_scale(x, &a));
    ASSERT_OK(kit_mul(a, y, &z));
    tn_backward_opts opts = TN_BACKWARD_OPTS_INIT;
    opts.inputs = &a;
    EXPECT_FAIL(TN_INVALID, "`inputs` argument to `backward()` cannot be empty.",
                tn_backward(&z, 1, NULL, &opts));
    opts.n_inputs = 1;
    opts.retain_graph = TN_BOOL_TRUE;
    int64_t turns = kit_turns;
    EXPECT_OK(tn_backward(&z, 1, NULL, &opts));
    EXPECT_EQ_INT(kit_turns - turns, 2); /* the node of the input runs too */
    EXPECT_NEAR(kit_grad(a, 0), 4, 0);
    EXPECT(tn_tensor_grad(x) == NULL && tn_tensor_grad(y) == NULL);
    opts.inputs = &y;
    EXPECT_OK(tn_backward(&z, 1, NULL, &opts));
    EXPECT_NEAR(kit_grad(y, 0), 6, 0);
    EXPECT(tn_tensor_grad(x) == NULL);
    tn_tensor_unref(x);
    tn_tensor_unref(y);
    tn_tensor_unref(a);
    tn_tensor_unref(z);
}

/* ---- several results, several times ---- */

TEST(one_result_may_lead_to_another)
{
    tn_tensor *x = kit_leaf(1, 3), *a = NULL, *b = NULL;
    ASSERT_OK(kit_scale(x, &a));
    ASSERT_OK(kit_scale(a, &b));
    tn_tensor *both[] = {a, b, a};
    int64_t turns = kit_turns;
    EXPECT_OK(tn_backward(both, 3, NULL, NULL));
    EXPECT_EQ_INT(kit_turns - turns, 2);
    EXPECT_NEAR(kit_grad(x, 0), 2 + 4 + 2, 0);
    tn_tensor_unref(x);
    tn_tensor_unref(a);
    tn_tensor_unref(b);
}

TEST(saved_values_go_with_the_first_pass_unless_kept)
{
    tn_tensor *x = kit_leaf(1, 3), *z = NULL;
    ASSERT_OK(kit_mul(x, x, &z));
    tn_backward_opts opts = TN_BACKWARD_OPTS_INIT;
    opts.retain_graph = TN_BOOL_TRUE;
    EXPECT_OK(tn_backward(&z, 1, NULL, &opts));
    EXPECT_OK(tn_backward(&z, 1, NULL, NULL));
    EXPECT_NEAR(kit_grad(x, 0), 12, 0);
    EXPECT_FAIL(TN_INVALID, "Trying to backward through the graph a second time",
                tn_backward(&z, 1, NULL, NULL));
    EXPECT(tni_tls.scope == NULL);
    tn_tensor_unref(x);
    tn_tensor_unref(z);
}

TEST(a_recorded_pass_can_be_differentiated_again)
{
    tn_tensor *x = kit_leaf(1, 3), *y = kit_leaf(1, 5), *z = NULL, *first = NULL, *second = NULL;
    ASSERT_OK(kit_mul(x, y, &z));
    tn_grad_opts opts = TN_GRAD_OPTS_INIT;
    opts.create_graph = TN_BOOL_TRUE;
    EXPECT_OK(tn_grad(&z, 1, &x, 1, NULL, &opts, &first));
    EXPECT_NEAR(kit_at(first, 0), 5, 0);
    EXPECT(tn_tensor_requires_grad(first));
    EXPECT(tn_grad_enabled());
    EXPECT_OK(tn_grad(&first, 1, &y, 1, NULL, NULL, &second));
    EXPECT_NEAR(kit_at(second, 0), 1, 0);
    EXPECT(!tn_tensor_requires_grad(second));
    tn_tensor_unref(second);
    tn_tensor_unref(first);
    tn_tensor_unref(x);
    tn_tensor_unref(y);
    tn_tensor_unref(z);
}

/* ---- what is refused ---- */

static tn_status never_called(void *ctx)
{
    (void)ctx;
    return TN_OK;
}

TEST(what_cannot_start_a_pass_says_why)
{
    tn_tensor *x = kit_leaf(3, 1), *z = NULL, *plain = kit_vector(1, 1);
    ASSERT_OK(kit_scale(x, &z));
    EXPECT_FAIL(TN_INVALID, "grad can be implicitly created only for scalar outputs",
                tn_tensor_backward(z));
    EXPECT_FAIL(TN_INVALID,
                "element 0 of tensors does not require grad and does not have a grad_fn",
                tn_tensor_backward(plain));
    tn_tensor *seed = kit_vector(2, 1);
    EXPECT_FAIL(
        TN_INVALID,
        "Mismatch in shape: grad_output[0] has a shape of torch.Size([2]) and output[0] has "
        "a shape of torch.Size([3]).",
        tn_backward(&z, 1, &seed, NULL));
    EXPECT_FAIL(TN_INVALID, "Final callbacks can only be installed during backward pass.",
                tn_queue_callback(never_called, NULL, NULL));
    EXPECT(tn_tensor_grad(x) == NULL);
    tn_tensor_unref(x);
    tn_tensor_unref(z);
    tn_tensor_unref(plain);
    tn_tensor_unref(seed);
}
