/* SPDX-License-Identifier: MIT */
/* Forward mode together with backward passes: products with Hessians, tangents of gradients and
 * gradients of tangents, and what is left when memory runs out. */
#include <math.h>
#include <string.h>

#include "autograd/duals.h"

static const double point[] = {0.3, -0.7, 1.1, 0.9, 0.2, -0.4};
static const double direction[] = {1.0, 0.5, -2.0, -0.25, 1.5, 0.75};
static const double constant[] = {0.5, -1.0, 2.0, 0.25, -0.75, 1.5};

static tn_tensor *matrix(const double *values, int64_t rows, int64_t columns)
{
    tn_tensor_opts opts = tn_opts(TN_DTYPE_F64, TN_CPU);
    tn_tensor *t = NULL;
    ASSERT_OK(tn_zeros((int64_t[]){rows, columns}, 2, &opts, &t));
    memcpy(t->data, values, (size_t)t->numel * sizeof *values);
    return t;
}

static tn_tensor *sum(tn_tensor *t)
{
    return tnx_sum(t, TN_DTYPE_NONE);
}

static tn_tensor *product(tn_tensor *x)
{
    return sum(tnx_mul(tnx_mul(tnx_mul(tnx_sin(x), x), x), x));
}

static tn_tensor *matrices(tn_tensor *x)
{
    tn_tensor *y = tnx_mm(x, tn_scope_own(matrix(constant, 3, 2)));
    return sum(tnx_logsumexp(tnx_exp(y), (int64_t[]){1}, 1, false));
}

static tn_tensor *log_softmax(tn_tensor *x)
{
    return sum(tnx_mul(tnx_log_softmax(x, 1, TN_DTYPE_NONE), x));
}

/* One write keeps the old value of what it writes, the other its result. */
static tn_tensor *written(tn_tensor *x)
{
    return sum(tnx_exp_(tnx_mul_(tnx_mul_scalar(x, tn_int(2)), x)));
}

static tn_tensor *written_view(tn_tensor *x)
{
    tn_tensor *y = tnx_mul_scalar(x, tn_int(2));
    tnx_exp_(tnx_slice(y, 1, tn_some_int(1), tn_no_int(), 1));
    return sum(tnx_mul(y, y));
}

static tn_tensor *activations(tn_tensor *x)
{
    return tnx_mean(tnx_mul(tnx_sigmoid(x), tnx_tanh(x)), TN_DTYPE_NONE);
}

static const struct {
    tn_tensor *(*fn)(tn_tensor *x);
    const char *name;
    double hessian_product[6];
} functions[] = {
#include "forward_reference.inc"
};

static void expect_values(const char *name, const char *how, tn_tensor *t, const double *want)
{
    ASSERT(t != NULL && t->numel == 6);
    for (int i = 0; i < 6; i++) {
        double got = ((double *)t->data)[i];
        if (!(fabs(got - want[i]) <= 1e-12 * (1 + fabs(want[i]))))
            test_wrong(__FILE__, __LINE__, "%s, %s, element %d: %.17g, want %.17g", name, how, i,
                       got, want[i]);
    }
}

TEST(products_with_hessians_both_ways)
{
    for (size_t k = 0; k < sizeof functions / sizeof functions[0]; k++) {
        const char *name = functions[k].name;
        const double *want = functions[k].hessian_product;
        tn_tensor *x = matrix(point, 2, 3), *v = matrix(direction, 2, 3), *d = NULL;
        tn_tensor *grad = NULL, *back = NULL, *tangent = NULL, *slopes = NULL;
        ASSERT_OK(tn_tensor_set_requires_grad(x, true));
        ASSERT_OK(tn_forward_enter());
        ASSERT_OK(tn_make_dual(x, v, &d));
        tn_scope *scope;
        ASSERT_OK(tn_scope_enter(&scope));
        tn_tensor *y = functions[k].fn(d);
        ASSERT_OK(tn_scope_status(scope));
        tn_grad_opts opts = TN_GRAD_OPTS_INIT;
        opts.create_graph = TN_BOOL_TRUE;
        /* The tangent of the gradient. */
        ASSERT_OK(tn_grad(&y, 1, &d, 1, NULL, &opts, &grad));
        ASSERT_OK(tn_tensor_tangent(grad, &slopes));
        expect_values(name, "forward over reverse", slopes, want);
        /* The gradient of the tangent. */
        ASSERT_OK(tn_tensor_tangent(y, &tangent));
        ASSERT_OK(tn_grad(&tangent, 1, &x, 1, NULL, NULL, &back));
        expect_values(name, "reverse over forward", back, want);
        ASSERT_OK(tn_scope_leave(scope));
        ASSERT_OK(tn_forward_leave());
        drop2(x, v);
        drop2(d, grad);
        drop2(back, tangent);
        tn_tensor_unref(slopes);
    }
}

/* Mean and rstd move with the input: the gradient of the tangent is what two backward passes say.
 */
TEST(the_tangent_of_layer_norm_has_a_gradient)
{
    tn_tensor *x = matrix(point, 2, 3), *v = matrix(direction, 2, 3), *c = matrix(constant, 2, 3);
    tn_tensor *d = NULL, *grad = NULL, *want = NULL, *tangent = NULL, *back = NULL;
    ASSERT_OK(tn_tensor_set_requires_grad(x, true));
    ASSERT_OK(tn_forward_enter());
    ASSERT_OK(tn_make_dual(x, v, &d));
    tn_scope *scope;
    ASSERT_OK(tn_scope_enter(&scope));
    /* The weight moves too: its term is made of the normalized input. */
    for (int moves = 0; moves < 2; moves++) {
        tn_tensor *w = tnx_select(moves ? d : x, 0, 1);
        tn_tensor *twin = tnx_mul(
            tnx_layer_norm(x, (int64_t[]){3}, 1, tnx_select(x, 0, 1), NULL, 1e-5, false), c);
        if (!moves) /* only the input moves */
            twin =
                tnx_mul(tnx_layer_norm(x, (int64_t[]){3}, 1, tnx_detach(w), NULL, 1e-5, false), c);
        tn_tensor *one = sum(twin);
        tn_grad_opts opts = TN_GRAD_OPTS_INIT;
        opts.create_graph = TN_BOOL_TRUE;
        ASSERT_OK(tn_grad(&one, 1, &x, 1, NULL, &opts, &grad));
        tn_tensor *along = sum(tnx_mul(grad, v));
        ASSERT_OK(tn_grad(&along, 1, &x, 1, NULL, NULL, &want));
        tn_tensor *y = sum(tnx_mul(
            tnx_layer_norm(d, (int64_t[]){3}, 1, moves ? w : tnx_detach(w), NULL, 1e-5, false), c));
        ASSERT_OK(tn_scope_status(scope));
        ASSERT_OK(tn_tensor_tangent(y, &tangent));
        ASSERT_OK(tn_grad(&tangent, 1, &x, 1, NULL, NULL, &back));
        expect_values("layer_norm", moves ? "weight too" : "input", back, want->data);
        drop2(grad, want);
        drop2(tangent, back);
    }
    ASSERT_OK(tn_scope_leave(scope));
    ASSERT_OK(tn_forward_leave());
    drop2(x, v);
    drop2(c, d);
}

/* The tangents of both results of var_mean, and their gradients for the argument. */
TEST(tangents_by_gradients_of_gradients_reach_every_result_and_differentiate_again)
{
    tn_tensor *x = kit_leaf(3, 0), *parts[2] = {NULL}, *t = NULL, *sum = NULL, *grad = NULL;
    const float values[] = {1, 2, 4};
    bool on = tn_set_grad_enabled(false);
    for (int i = 0; i < 3; i++)
        ((float *)x->data)[i] = values[i];
    tn_set_grad_enabled(on);
    ASSERT_OK(tn_forward_enter());
    tn_tensor *d = dual(x, 0);
    tn_tensor *seed = NULL;
    ASSERT_OK(tn_tensor_tangent(d, &seed));
    for (int i = 0; i < 3; i++)
        ((float *)seed->data)[i] = i == 0 ? 1 : 0; /* the first element moves */
    ASSERT_OK(tn_var_mean(d, NULL, 0, NULL, false, &parts[0], &parts[1]));
    ASSERT_OK(tn_tensor_tangent(parts[1], &t));
    EXPECT_NEAR((double)*(const float *)t->data, 1.0 / 3, 1e-6);
    tn_tensor_unref(t);
    ASSERT_OK(tn_tensor_tangent(parts[0], &t));
    EXPECT_NEAR((double)*(const float *)t->data, 1 - 7.0 / 3, 1e-6); /* 2 / (n - 1) * (x0 - mean) */
    ASSERT_OK(tn_sum(t, TN_DTYPE_NONE, &sum));
    ASSERT_OK(tn_grad(&sum, 1, &x, 1, NULL, NULL, &grad));
    EXPECT_NEAR((double)((const float *)grad->data)[0], 1 - 1.0 / 3, 1e-6);
    EXPECT_NEAR((double)((const float *)grad->data)[1], -1.0 / 3, 1e-6);
    ASSERT_OK(tn_forward_leave());
    tn_tensor *all[] = {x, d, seed, parts[0], parts[1], t, sum, grad};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        tn_tensor_unref(all[i]);
}

/* How much more is alive after a level in which each allocation failed in turn. */
static int64_t left_by_failures(tn_tensor *x)
{
    int64_t before = tni_test_live;
    tn_status rc;
    WITH_EACH_ALLOCATION_FAILING(rc)
    {
        tn_tensor *parts[2] = {NULL}, *d = NULL;
        rc = tn_forward_enter();
        if (rc == TN_OK) {
            rc = tn_make_dual(x, x, &d);
            if (rc == TN_OK)
                rc = tn_var_mean(d, NULL, 0, NULL, false, &parts[0], &parts[1]);
            EXPECT(rc == TN_OK || (!parts[0] && !parts[1]));
            tn_tensor_unref(d);
            drop2(parts[0], parts[1]);
            EXPECT_OK(tn_forward_leave()); /* keeps tangents until then */
        }
    }
    return tni_test_live - before;
}

TEST(tangents_by_gradients_of_gradients_leak_nothing_when_an_allocation_fails)
{
    kit_warm_up();
    tn_tensor *x = kit_vector(3, 2);
    (void)left_by_failures(x); /* what stays after the first time are blocks for the next */
    EXPECT_EQ_INT(left_by_failures(x), 0);
    tn_tensor_unref(x);
}

static int64_t left_by_failing_views(tn_tensor *x)
{
    int64_t before = tni_test_live;
    tn_status rc;
    WITH_EACH_ALLOCATION_FAILING(rc)
    {
        tn_tensor *d = NULL, *v = NULL;
        rc = tn_forward_enter();
        if (rc == TN_OK) {
            rc = tn_make_dual(x, x, &d);
            tn_inference_guard guard = tn_inference_enter(true);
            if (rc == TN_OK)
                rc = tn_slice(d, 0, tn_some_int(0), tn_some_int(2), 1, &v);
            tn_inference_leave(guard);
            EXPECT(rc == TN_OK || !v);
            drop2(d, v);
            EXPECT_OK(tn_forward_leave());
        }
    }
    return tni_test_live - before;
}

TEST(a_view_that_is_given_its_tangent_leaks_nothing_when_an_allocation_fails)
{
    kit_warm_up();
    tn_tensor *x = kit_vector(3, 2);
    (void)left_by_failing_views(x);
    EXPECT_EQ_INT(left_by_failing_views(x), 0);
    tn_tensor_unref(x);
}
