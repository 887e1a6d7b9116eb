/* SPDX-License-Identifier: MIT */
/* What derivatives of derivatives find kept: tangents of results that a function saved, inference
 * tensors beside dual ones and inside transforms, zeros for what was not used. */
#include "autograd/kit.h"
#include "tenon/forward.h"
#include "tenon/function.h"

static void drop(tn_tensor **list, int n)
{
    for (int i = 0; i < n; i++) {
        tn_tensor_unref(list[i]);
        list[i] = NULL;
    }
}

static tn_tensor *inference_vector(int64_t n, float value)
{
    tn_inference_guard guard = tn_inference_enter(true);
    tn_tensor *t = kit_vector(n, value);
    tn_inference_leave(guard);
    EXPECT(tn_tensor_is_inference(t));
    return t;
}

static tn_status exp_forward(tn_function_ctx *ctx, tn_tensor *const *in, int n_in, tn_tensor **out,
                             int n_out)
{
    (void)n_in;
    (void)n_out;
    tn_status status = tn_exp(in[0], &out[0]);
    return status == TN_OK ? tn_function_save(ctx, out, 1) : status;
}

static tn_status times_saved(tn_function_ctx *ctx, tn_tensor *const *by, int n_by, tn_tensor **out,
                             int n_out)
{
    (void)n_by;
    (void)n_out;
    tn_tensor *y = NULL;
    tn_status status = tn_function_saved(ctx, 0, &y);
    if (status == TN_OK)
        status = tn_mul(by[0], y, &out[0]);
    tn_tensor_unref(y);
    return status;
}

static tn_function exp_function(void)
{
    tn_function fn = TN_FUNCTION_INIT("Exp", exp_forward, times_saved);
    fn.jvp = times_saved;
    return fn;
}

/* The gradient of exp(x) at a dual x: *value and its tangent *slope. */
static tn_status gradient_of_dual(tn_tensor *x, tn_tensor *seed, float *value, float *slope)
{
    const tn_function fn = exp_function();
    tn_tensor *made[4] = {NULL};
    tn_status rc = tn_forward_enter();
    if (rc != TN_OK)
        return rc;
    rc = tn_make_dual(x, seed, &made[0]);
    if (rc == TN_OK)
        rc = tn_function_apply(&fn, NULL, &made[0], 1, &made[1], 1);
    if (rc == TN_OK)
        rc = tn_grad(&made[1], 1, &made[0], 1, &seed, NULL, &made[2]);
    if (rc == TN_OK)
        rc = tn_tensor_tangent(made[2], &made[3]);
    if (rc == TN_OK) {
        *value = kit_at(made[2], 0);
        *slope = kit_at(made[3], 0);
    }
    drop(made, 4);
    EXPECT_OK(tn_forward_leave());
    return rc;
}

TEST(the_gradient_of_a_dual_goes_through_the_result_that_a_function_kept)
{
    tn_tensor *x = kit_leaf(2, 0.5f), *seed = kit_vector(2, 1);
    float value = 0, slope = 0;
    ASSERT_OK(gradient_of_dual(x, seed, &value, &slope));
    EXPECT_NEAR(value, 1.6487212707, 1e-6);
    EXPECT_NEAR(slope, 1.6487212707, 1e-6);
    tn_tensor_unref(x);
    tn_tensor_unref(seed);
}

static int64_t left_by_gradients(tn_tensor *x, tn_tensor *seed)
{
    int64_t before = tni_test_live;
    tn_status rc;
    float value, slope;
    WITH_EACH_ALLOCATION_FAILING(rc)
    {
        rc = gradient_of_dual(x, seed, &value, &slope);
        EXPECT(rc == TN_OK || rc == TN_NOMEM);
    }
    return tni_test_live - before;
}

TEST(gradients_of_duals_leak_nothing_whichever_allocation_fails)
{
    kit_warm_up();
    tn_tensor *x = kit_leaf(2, 0.5f), *seed = kit_vector(2, 1);
    (void)left_by_gradients(x, seed); /* what stays after the first time are blocks for the next */
    EXPECT_EQ_INT(left_by_gradients(x, seed), 0);
    tn_tensor_unref(x);
    tn_tensor_unref(seed);
}

/* The tangent of (primal * beside) * primal, its first element. */
static tn_status push_square(tn_tensor *primal, tn_tensor *beside, tn_tensor *tangent, float *slope)
{
    tn_tensor *made[4] = {NULL};
    tn_status rc = tn_forward_enter();
    if (rc != TN_OK)
        return rc;
    rc = tn_make_dual(primal, tangent, &made[0]);
    if (rc == TN_OK)
        rc = tn_mul(made[0], beside, &made[1]);
    if (rc == TN_OK)
        rc = tn_mul(made[1], made[0], &made[2]);
    if (rc == TN_OK)
        rc = tn_tensor_tangent(made[2], &made[3]);
    if (rc == TN_OK)
        *slope = kit_at(made[3], 0);
    drop(made, 4);
    EXPECT_OK(tn_forward_leave());
    return rc;
}

TEST(inference_tensors_have_tangents_and_stand_beside_those_that_have)
{
    tn_tensor *x = kit_vector(2, 2), *w = inference_vector(2, 3), *one = kit_vector(2, 1);
    float slope = 0;
    ASSERT_OK(push_square(x, w, one, &slope));
    EXPECT_NEAR(slope, 12, 1e-6); /* 2 w x */
    ASSERT_OK(push_square(w, x, one, &slope));
    EXPECT_NEAR(slope, 12, 1e-6);
    ASSERT_OK(push_square(w, w, one, &slope));
    EXPECT_NEAR(slope, 18, 1e-6);
    EXPECT(tn_tensor_is_inference(w));
    tn_tensor *leaf = kit_leaf(2, 2);
    EXPECT_FAIL(TN_INVALID, "Inference tensors cannot be saved for backward.",
                push_square(leaf, w, one, &slope)); /* it is recorded as well */
    tn_tensor *all[] = {x, w, one, leaf};
    drop(all, 4);
}

static int64_t left_by_pushes(tn_tensor *w, tn_tensor *one)
{
    int64_t before = tni_test_live;
    tn_status rc;
    float slope;
    WITH_EACH_ALLOCATION_FAILING(rc)
    {
        rc = push_square(w, w, one, &slope);
        EXPECT(rc == TN_OK || rc == TN_NOMEM);
    }
    return tni_test_live - before;
}

TEST(tangents_of_inference_tensors_leak_nothing_whichever_allocation_fails)
{
    kit_warm_up();
    tn_tensor *w = inference_vector(2, 3), *one = kit_vector(2, 1);
    (void)left_by_pushes(w, one);
    EXPECT_EQ_INT(left_by_pushes(w, one), 0);
    tn_tensor_unref(w);
    tn_tensor_unref(one);
}

/* The gradient of sum(x * w) by x, inside a transform. */
static tn_status transformed(tn_tensor *x, tn_tensor *w, float *value)
{
    tn_tensor *made[3] = {NULL};
    tn_transform_guard guard = tn_transform_begin(true);
    tn_status rc = tn_mul(x, w, &made[0]);
    tn_transform_end(guard);
    if (rc == TN_OK)
        rc = tn_sum(made[0], TN_DTYPE_NONE, &made[1]);
    if (rc == TN_OK)
        rc = tn_grad(&made[1], 1, &x, 1, NULL, NULL, &made[2]);
    if (rc == TN_OK)
        *value = kit_at(made[2], 1);
    drop(made, 3);
    return rc;
}

TEST(a_function_that_is_differentiated_as_a_whole_may_use_inference_tensors)
{
    kit_warm_up();
    tn_tensor *x = kit_leaf(2, 2), *w = inference_vector(2, 3), *y = NULL;
    float value = 0;
    ASSERT_OK(transformed(x, w, &value));
    EXPECT_NEAR(value, 3, 0);
    EXPECT_FAIL(TN_INVALID, "Inference tensors cannot be saved for backward.", tn_mul(x, w, &y));
    int64_t before = tni_test_live;
    tn_status rc;
    WITH_EACH_ALLOCATION_FAILING(rc)
    {
        rc = transformed(x, w, &value);
        EXPECT(rc == TN_OK || rc == TN_NOMEM);
        EXPECT(tni_test_live <= before); /* less: what is left of the accumulator before it went */
    }
    tn_tensor_unref(x);
    tn_tensor_unref(w);
}

/* Gradients of x * x by x and by y, which is not used. */
static tn_status with_zeros(tn_tensor *x, tn_tensor *y, tn_opt_bool create_graph, tn_tensor **out)
{
    tn_tensor *made = NULL;
    tn_grad_opts opts = TN_GRAD_OPTS_INIT;
    opts.create_graph = create_graph;
    opts.materialize_grads = TN_BOOL_TRUE;
    tn_status rc = tn_mul(x, x, &made);
    if (rc == TN_OK)
        rc = tn_grad(&made, 1, (tn_tensor *[]){x, y}, 2, NULL, &opts, out);
    tn_tensor_unref(made);
    return rc;
}

TEST(zeros_of_a_pass_that_is_recorded_are_leaves_that_require_grad)
{
    kit_warm_up();
    tn_tensor *x = kit_leaf(1, 2), *y = kit_leaf(2, 3), *grads[2] = {NULL};
    for (int create = 0; create < 2; create++) {
        ASSERT_OK(with_zeros(x, y, create ? TN_BOOL_TRUE : TN_BOOL_FALSE, grads));
        EXPECT_NEAR(kit_at(grads[1], 1), 0, 0);
        EXPECT(tn_tensor_requires_grad(grads[0]) == (create == 1));
        EXPECT(tn_tensor_requires_grad(grads[1]) == (create == 1));
        EXPECT(tn_tensor_is_leaf(grads[1]));
        drop(grads, 2);
    }
    int64_t before = tni_test_live;
    tn_status rc;
    WITH_EACH_ALLOCATION_FAILING(rc)
    {
        rc = with_zeros(x, y, TN_BOOL_TRUE, grads);
        EXPECT(rc == TN_OK || (!grads[0] && !grads[1]));
        drop(grads, 2);
        EXPECT(tni_test_live <= before);
    }
    tn_tensor_unref(x);
    tn_tensor_unref(y);
}
