/* SPDX-License-Identifier: MIT */
/* Functions as bindings of other languages use them: results that are counted after the call, the
 * state of a node from outside, tangents of one's own; and stopping a pass from outside. */
#include "kit.h"

#include <math.h>
#include "tenon/forward.h"
#include "tenon/function.h"

typedef struct cube_state {
    int *destroyed;
} cube_state;

static void cube_destroy(void *state)
{
    int *destroyed = ((cube_state *)state)->destroyed;
    if (destroyed)
        ++*destroyed;
}

/* x^3, something that is no tensor, and x itself when asked for. */
static tn_status cube_forward(tn_function_ctx *ctx, tn_tensor *const *in, int n_in, tn_tensor **out,
                              int n_out)
{
    EXPECT_EQ_INT(n_out, 0);
    EXPECT(out == NULL);
    ((cube_state *)tn_function_state(ctx))->destroyed = tn_function_args(ctx);
    tn_tensor *results[2] = {NULL, NULL};
    tn_status status = tn_pow_tensor_scalar(in[0], tn_int(3), &results[0]);
    if (status == TN_OK)
        status = tn_function_save(ctx, in, 1);
    if (status == TN_OK)
        status = tn_function_set_outputs(ctx, results, n_in > 1 ? 2 : 1);
    tn_tensor_unref(results[0]);
    return status;
}

static tn_status cube_backward(tn_function_ctx *ctx, tn_tensor *const *grads, int n_grads,
                               tn_tensor **out, int n_out)
{
    (void)n_grads, (void)n_out;
    tn_tensor *x = NULL;
    tn_status status = tn_function_saved(ctx, 0, &x);
    if (status != TN_OK)
        return status;
    tn_tensor *slope = tnx_mul_scalar(tnx_mul(x, x), tn_int(3));
    out[0] = tn_scope_keep(tnx_mul(grads[0], slope));
    tn_tensor_unref(x);
    return TN_OK;
}

static tn_status cube_jvp(tn_function_ctx *ctx, tn_tensor *const *tangents, int n, tn_tensor **out,
                          int n_out)
{
    EXPECT(n >= 1 && n_out >= 1 && tn_function_node(ctx) != NULL);
    out[0] = tn_scope_keep(tnx_mul_scalar(tangents[0], tn_int(12)));
    return TN_OK;
}

static tn_function cube_function(void)
{
    tn_function fn = TN_FUNCTION_INIT("Cube", cube_forward, cube_backward);
    fn.state_size = sizeof(cube_state);
    fn.state_destroy = cube_destroy;
    return fn;
}

TEST(results_may_be_counted_after_the_call)
{
    kit_warm_up();
    int destroyed = 0;
    tn_function fn = cube_function();
    tn_tensor *x = kit_leaf(2, 2), *in[] = {x, NULL}, **out = NULL;
    int n = 0;
    ASSERT_OK(tn_function_apply_any(&fn, &destroyed, in, 2, &out, &n));
    EXPECT_EQ_INT(n, 2);
    EXPECT(out[1] == NULL && kit_at(out[0], 1) == 8);
    tn_tensor *seed = kit_vector(2, 1);
    ASSERT_OK(tn_backward(out, 1, &seed, NULL));
    EXPECT(kit_grad(x, 0) == 12);
    tn_tensor_list_free(out, n);
    EXPECT_EQ_INT(destroyed, 1);
    tn_tensor_unref(seed);
    tn_tensor_unref(x);
}

static void other_destroy(void *state)
{
    (void)state;
}

TEST(the_node_of_a_call_shows_its_state_and_what_it_saved)
{
    tn_function fn = cube_function();
    tn_tensor *x = kit_leaf(2, 2), **out = NULL, *saved = NULL;
    int n = 0, destroyed = 0;
    ASSERT_OK(tn_function_apply_any(&fn, &destroyed, &x, 1, &out, &n));
    tn_node *node = NULL, *accumulator = NULL;
    uint32_t input = 7;
    ASSERT_OK(tn_tensor_gradient_edge(out[0], &node, &input));
    ASSERT_OK(tn_tensor_gradient_edge(x, &accumulator, NULL));
    EXPECT_EQ_INT(input, 0);
    EXPECT_STR(tn_node_name(node), "CubeBackward");
    EXPECT(tn_node_edge(node, 0, NULL) == accumulator);
    EXPECT(tn_node_try_ref(node) == node && tn_node_try_ref(NULL) == NULL);
    tn_node_unref(node);
    cube_state *state = tn_node_function_state(node, cube_destroy);
    EXPECT(state && state->destroyed == &destroyed);
    EXPECT(tn_node_function_state(node, other_destroy) == NULL);
    EXPECT(tn_node_function_state(accumulator, cube_destroy) == NULL);
    EXPECT_EQ_INT(tn_node_function_saved_count(node), 1);
    EXPECT_EQ_INT(tn_node_function_saved_count(accumulator), 0);
    ASSERT_OK(tn_node_function_saved(node, 0, &saved));
    EXPECT(saved == x);
    tn_tensor_unref(saved);
    EXPECT_FAIL(TN_INDEX, "there is no saved tensor 1: CubeBackward saved 1",
                tn_node_function_saved(node, 1, &saved));
    EXPECT_FAIL(TN_INVALID, "tn_node_function_saved: the node is of no function",
                tn_node_function_saved(accumulator, 0, &saved));
    tn_node_unref(accumulator);
    tn_node_unref(node);
    tn_tensor_list_free(out, n);
    tn_tensor_unref(x);
}

static tn_status mute_forward(tn_function_ctx *ctx, tn_tensor *const *in, int n_in, tn_tensor **out,
                              int n_out)
{
    (void)n_in, (void)n_out;
    EXPECT_FAIL(TN_INVALID,
                "the results of this call are not to be named: it was made with room for them",
                tn_function_set_outputs(ctx, in, 1));
    return tn_clone(in[0], TN_FORMAT_NONE, &out[0]);
}

TEST(results_are_named_only_where_there_is_no_room_for_them)
{
    tn_function fn = TN_FUNCTION_INIT("Mute", mute_forward, cube_backward);
    tn_tensor *x = kit_leaf(2, 2), *y = NULL;
    ASSERT_OK(tn_function_apply(&fn, NULL, &x, 1, &y, 1));
    tn_tensor_unref(y);
    tn_tensor_unref(x);
}

/* ---- tangents ---- */

static float slope(tn_tensor *t)
{
    tn_tensor *tangent = NULL;
    ASSERT_OK(tn_tensor_tangent(t, &tangent));
    float value = kit_at(tangent, 0);
    tn_tensor_unref(tangent);
    return value;
}

TEST(a_function_has_the_tangent_that_it_says)
{
    tn_function fn = cube_function();
    fn.jvp = cube_jvp;
    tn_tensor *x = kit_leaf(2, 2), *t = kit_vector(2, 0.5f), *d = NULL, **out = NULL;
    int n = 0;
    ASSERT_OK(tn_forward_enter());
    ASSERT_OK(tn_make_dual(x, t, &d));
    ASSERT_OK(tn_function_apply_any(&fn, NULL, &d, 1, &out, &n));
    EXPECT(slope(out[0]) == 6);
    tn_tensor *seed = kit_vector(2, 1); /* and its gradient */
    ASSERT_OK(tn_backward(out, 1, &seed, NULL));
    EXPECT(kit_grad(x, 0) == 12);
    tn_tensor_list_free(out, n);
    ASSERT_OK(tn_function_apply_any(&fn, NULL, &x, 1, &out, &n));
    EXPECT(isnan(slope(out[0])));
    tn_tensor_list_free(out, n);
    ASSERT_OK(tn_forward_leave());
    tn_tensor_unref(seed);
    tn_tensor_unref(d);
    tn_tensor_unref(t);
    tn_tensor_unref(x);
}

static tn_status wrong_jvp(tn_function_ctx *ctx, tn_tensor *const *tangents, int n, tn_tensor **out,
                           int n_out)
{
    (void)ctx, (void)n, (void)n_out;
    out[0] = tn_scope_keep(tnx_sum(tangents[0], TN_DTYPE_NONE));
    return TN_OK;
}

TEST(a_tangent_of_another_size_is_refused)
{
    tn_function fn = cube_function();
    fn.jvp = wrong_jvp;
    tn_tensor *x = kit_vector(2, 2), *t = kit_vector(2, 1), *d = NULL, **out = NULL;
    int n = 0;
    ASSERT_OK(tn_forward_enter());
    ASSERT_OK(tn_make_dual(x, t, &d));
    EXPECT_FAIL(TN_INVALID,
                "Tensor is of size [2] while the given forward gradient is of size []. (result 0 "
                "of the jvp of "
                "CubeBackward)",
                tn_function_apply_any(&fn, NULL, &d, 1, &out, &n));
    EXPECT(out == NULL);
    ASSERT_OK(tn_forward_leave());
    tn_tensor_unref(d);
    tn_tensor_unref(t);
    tn_tensor_unref(x);
}

/* ---- stopping ---- */

static int nodes_left;

static tn_status stop_soon(void)
{
    return nodes_left-- > 0 ? TN_OK : tn_fail(TN_INVALID, "enough");
}

TEST(a_pass_can_be_stopped_between_nodes)
{
    kit_warm_up();
    int64_t before = tni_test_live;
    tn_tensor *x = kit_leaf(1, 1), *y = NULL;
    ASSERT_OK(kit_chain(tn_tensor_ref(x), 100, &y));
    nodes_left = 10;
    int64_t turns = kit_turns;
    tn_interrupt_fn old = tn_set_interrupt_check(stop_soon);
    EXPECT(old == NULL);
    EXPECT_FAIL(TN_INVALID, "enough", tn_tensor_backward(y));
    EXPECT_EQ_INT(kit_turns - turns, 10);
    EXPECT(tn_tensor_grad(x) == NULL);
    EXPECT(tn_set_interrupt_check(NULL) == stop_soon);
    ASSERT_OK(tn_tensor_backward(y)); /* the graph is as it was: this class saves nothing */
    EXPECT(kit_grad(x, 0) == 1);
    tn_tensor *grad = tn_tensor_grad_ref(x);
    EXPECT(grad == tn_tensor_grad(x));
    EXPECT_EQ_INT(tn_tensor_use_count(grad), 2);
    tn_tensor_unref(grad);
    EXPECT(tn_tensor_grad_ref(y) == NULL && tn_tensor_grad_ref(NULL) == NULL);
    tn_tensor_unref(y);
    tn_tensor_unref(x);
    EXPECT_EQ_INT(tni_test_live, before);
}

/* ---- memory ---- */

TEST(tangents_leak_nothing_whichever_allocation_fails)
{
    kit_warm_up();
    tn_function fn = cube_function();
    fn.jvp = cube_jvp;
    tn_tensor *x = kit_leaf(2, 1), *t = kit_vector(2, 1), **out = NULL, *d = NULL;
    int n = 0;
    ASSERT_OK(tn_forward_enter());
    ASSERT_OK(tn_make_dual(x, t, &d));
    ASSERT_OK(tn_function_apply_any(&fn, NULL, &d, 1, &out, &n));
    tn_tensor_list_free(out, n);
    tn_status rc;
    int64_t before = tni_test_live;
    WITH_EACH_ALLOCATION_FAILING(rc)
    {
        out = NULL;
        rc = tn_function_apply_any(&fn, NULL, &d, 1, &out, &n);
        if (rc == TN_OK)
            tn_tensor_list_free(out, n);
        EXPECT(tni_test_live <= before + 1); /* one: the list of tensors that have tangents */
    }
    ASSERT_OK(tn_forward_leave());
    tn_tensor_unref(d);
    tn_tensor_unref(t);
    tn_tensor_unref(x);
}
