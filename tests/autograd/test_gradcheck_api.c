/* SPDX-License-Identifier: MIT */
/* tn_gradcheck and tn_gradgradcheck find what is wrong, say where, and leave nothing behind. */
#include <math.h>
#include <string.h>

#include "harness/test.h"
#include "core/tensor.h"
#include "tenon/autograd.h"
#include "tenon/gradcheck.h"
#include "tenon/ops.h"

static tn_tensor *leaf(int64_t n, tn_dtype dtype)
{
    static const double values[] = {0.5, -1.25, 2.0, 0.75, -0.3, 1.5, 0.1, -2.0};
    tn_tensor *wide = NULL, *t = NULL;
    tn_tensor_opts opts = tn_opts(dtype, TN_CPU);
    ASSERT_OK(tn_tensor_from_data(values, 1, &n, TN_DTYPE_F64, &wide));
    ASSERT_OK(tn__to_copy(wide, &opts, false, TN_FORMAT_NONE, &t));
    ASSERT_OK(tn_tensor_set_requires_grad(t, true));
    tn_tensor_unref(wide);
    return t;
}

/* ---- functions ---- */

static tn_status product(void *ctx, tn_tensor *const *in, int64_t n, tn_tensor **out,
                         int64_t *n_out)
{
    (void)ctx;
    TN_TRY(tn_mul(in[0], in[n - 1], &out[0]));
    *n_out = 1;
    return TN_OK;
}

/* x * detach(x): half of the gradient is lost. */
static tn_status half_lost(void *ctx, tn_tensor *const *in, int64_t n, tn_tensor **out,
                           int64_t *n_out)
{
    (void)ctx, (void)n;
    TN_AUTO(tn_tensor) cut = NULL;
    TN_TRY(tn_detach(in[0], &cut));
    TN_TRY(tn_mul(in[0], cut, &out[0]));
    *n_out = 1;
    return TN_OK;
}

static tn_status all_lost(void *ctx, tn_tensor *const *in, int64_t n, tn_tensor **out,
                          int64_t *n_out)
{
    (void)ctx, (void)n;
    TN_TRY(tn_detach(in[0], &out[0]));
    *n_out = 1;
    return TN_OK;
}

/* Two results, of which the first one is in the second. */
static tn_status two(void *ctx, tn_tensor *const *in, int64_t n, tn_tensor **out, int64_t *n_out)
{
    (void)ctx, (void)n;
    TN_AUTO(tn_tensor) square = NULL;
    TN_TRY(tn_mul(in[0], in[0], &square));
    TN_TRY(tn_sin(square, &out[1]));
    out[0] = TN_MOVE(square);
    *n_out = 2;
    return TN_OK;
}

/* ---- hooks that spoil a gradient ---- */

static tn_status add_a_little(void *ctx, tn_tensor *grad, tn_tensor **out)
{
    int *count = ctx;
    return tn_add_scalar(grad, tn_float(1e-9 * ++*count), tn_int(1), out);
}

static tn_status forget_history(void *ctx, tn_tensor *grad, tn_tensor **out)
{
    (void)ctx;
    return tn_detach(grad, out);
}

static tn_status add_one(void *ctx, tn_tensor *grad, tn_tensor **out)
{
    (void)ctx;
    return tn_add_scalar(grad, tn_float(1e-6), tn_int(1), out);
}

/* ---- the tests ---- */

TEST(right_gradients_pass_and_inputs_stay_as_they_were)
{
    tn_tensor *in[] = {leaf(3, TN_DTYPE_F64), leaf(3, TN_DTYPE_F64)};
    double before[3];
    memcpy(before, in[0]->data, sizeof before);
    EXPECT_OK(tn_gradcheck(product, NULL, in, 2, NULL));
    EXPECT_OK(tn_gradgradcheck(product, NULL, in, 2, NULL, NULL));
    EXPECT_OK(tn_gradcheck(two, NULL, in, 1, NULL));
    EXPECT_OK(tn_gradgradcheck(two, NULL, in, 1, NULL, NULL));
    EXPECT(memcmp(before, in[0]->data, sizeof before) == 0);
    EXPECT(tn_tensor_grad(in[0]) == NULL);
    tn_tensor_unref(in[0]);
    tn_tensor_unref(in[1]);
}

TEST(a_wrong_gradient_is_named_with_both_values)
{
    tn_tensor *x = leaf(3, TN_DTYPE_F64);
    EXPECT_FAIL(TN_INVALID, "Jacobian mismatch for output 0 with respect to input 0",
                tn_gradcheck(half_lost, NULL, &x, 1, NULL));
    EXPECT_CONTAINS(tn_last_error(), "at output element 0 and input element 0");
    EXPECT_CONTAINS(tn_last_error(), "analytical: 0.5");
    EXPECT_CONTAINS(tn_last_error(), "numerical: 1");
    tn_gradcheck_opts wide = TN_GRADCHECK_OPTS_INIT;
    wide.rtol = 0.6;
    EXPECT_OK(tn_gradcheck(half_lost, NULL, &x, 1, &wide));
    tn_tensor_unref(x);
}

TEST(a_function_that_records_nothing_must_be_constant)
{
    tn_tensor *x = leaf(2, TN_DTYPE_F64);
    EXPECT_FAIL(TN_INVALID, "Numerical gradient for function expected to be zero",
                tn_gradcheck(all_lost, NULL, &x, 1, NULL));
    tn_tensor_unref(x);
}

TEST(gradients_that_change_from_pass_to_pass_are_found)
{
    tn_tensor *x = leaf(2, TN_DTYPE_F64);
    int count = 0;
    EXPECT_OK(tn_tensor_add_hook(x, add_a_little, &count, NULL, NULL));
    EXPECT_FAIL(TN_INVALID, "Backward is not reentrant", tn_gradcheck(product, NULL, &x, 1, NULL));
    tn_gradcheck_opts loose = TN_GRADCHECK_OPTS_INIT;
    loose.nondeterminism = 1e-6;
    EXPECT_FAIL(TN_INVALID, "backward not multiplied by grad_output",
                tn_gradcheck(product, NULL, &x, 1, &loose));
    tn_tensor_unref(x);
}

TEST(a_zero_gradient_must_give_zero)
{
    tn_tensor *x = leaf(2, TN_DTYPE_F64);
    EXPECT_OK(tn_tensor_add_hook(x, add_one, NULL, NULL, NULL));
    EXPECT_FAIL(TN_INVALID, "backward not multiplied by grad_output",
                tn_gradcheck(product, NULL, &x, 1, NULL));
    tn_tensor_unref(x);
}

TEST(a_lost_second_derivative_is_found)
{
    tn_tensor *x = leaf(2, TN_DTYPE_F64);
    EXPECT_OK(tn_tensor_add_hook(x, forget_history, NULL, NULL, NULL));
    EXPECT_OK(tn_gradcheck(product, NULL, &x, 1, NULL));
    EXPECT_FAIL(TN_INVALID, "expected to be zero",
                tn_gradgradcheck(product, NULL, &x, 1, NULL, NULL));
    tn_tensor_unref(x);
}

TEST(inputs_that_cannot_be_checked_are_refused)
{
    tn_tensor *narrow = leaf(2, TN_DTYPE_F32), *x = leaf(2, TN_DTYPE_F64), *expanded = NULL;
    EXPECT_FAIL(TN_INVALID, "input 0 requires grad and is float32, wanted float64 or complex128",
                tn_gradcheck(product, NULL, &narrow, 1, NULL));
    EXPECT_OK(tn_tensor_set_requires_grad(narrow, false));
    EXPECT_FAIL(TN_INVALID, "expects at least one input tensor to require gradient",
                tn_gradcheck(product, NULL, &narrow, 1, NULL));
    EXPECT_OK(tn_expand(x, (const int64_t[]){3, 2}, 2, false, &expanded));
    EXPECT_FAIL(TN_INVALID, "has a dimension with stride 0",
                tn_gradcheck(product, NULL, &expanded, 1, NULL));
    bool on = tn_set_grad_enabled(false);
    EXPECT_FAIL(TN_INVALID, "recording is off", tn_gradcheck(product, NULL, &x, 1, NULL));
    tn_set_grad_enabled(on);
    EXPECT_FAIL(TN_INVALID, "function and inputs are wanted",
                tn_gradcheck(NULL, NULL, &x, 1, NULL));
    tn_tensor_unref(expanded);
    tn_tensor_unref(narrow);
    tn_tensor_unref(x);
}

/* ---- functions that are wrong ---- */

static int64_t claimed;
static tn_status claims(void *ctx, tn_tensor *const *in, int64_t n, tn_tensor **out, int64_t *n_out)
{
    (void)ctx;
    TN_TRY(tn_mul(in[0], in[n - 1], &out[0]));
    *n_out = claimed;
    return TN_OK;
}

static tn_status fails_with_a_count(void *ctx, tn_tensor *const *in, int64_t n, tn_tensor **out,
                                    int64_t *n_out)
{
    (void)ctx, (void)in, (void)n, (void)out;
    *n_out = 3;
    out[1] = (tn_tensor *)(void *)&claimed; /* not ours to release */
    return tn_fail(TN_VALUE, "the function says no");
}

static tn_status on_meta(void *ctx, tn_tensor *const *in, int64_t n, tn_tensor **out,
                         int64_t *n_out)
{
    (void)ctx, (void)in, (void)n;
    tn_tensor_opts opts = tn_opts(TN_DTYPE_F64, TN_META);
    *n_out = 1;
    return tn_ones(NULL, 0, &opts, &out[0]);
}

static tn_status makes_its_input_longer(void *ctx, tn_tensor *const *in, int64_t n, tn_tensor **out,
                                        int64_t *n_out)
{
    (void)ctx, (void)n;
    TN_TRY(tn_mul(in[0], in[0], &out[0]));
    *n_out = 1;
    tn_tensor *longer = NULL;
    int64_t more = 1 << 16;
    tn_tensor_opts opts = tn_opts(TN_DTYPE_F64, TN_CPU);
    TN_TRY(tn_ones(&more, 1, &opts, &longer));
    tn_status status = tn_tensor_set_data(in[0], longer);
    tn_tensor_unref(longer);
    return status;
}

TEST(a_function_may_lie_about_its_results)
{
    tn_tensor *x = leaf(2, TN_DTYPE_F64);
    ASSERT_OK(tn_gradcheck(product, NULL, &x, 1, NULL));
    int64_t before = tni_test_live;
    static const int64_t counts[] = {-1, INT64_MIN, TN_GRADCHECK_MAX_OUTPUTS + 1, 1000, INT64_MAX};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        claimed = counts[i];
        EXPECT_FAIL(TN_INVALID, "at most 64 fit", tn_gradcheck(claims, NULL, &x, 1, NULL));
        EXPECT_FAIL(TN_INVALID, "at most 64 fit",
                    tn_gradgradcheck(claims, NULL, &x, 1, NULL, NULL));
    }
    claimed = 2; /* and gives one */
    EXPECT_FAIL(TN_INVALID, "result 1 is not a dense tensor on the CPU",
                tn_gradcheck(claims, NULL, &x, 1, NULL));
    EXPECT_FAIL(TN_INVALID, "result 1 is not a dense tensor on the CPU",
                tn_gradgradcheck(claims, NULL, &x, 1, NULL, NULL));
    EXPECT_FAIL(TN_INVALID, "result 0 is not a dense tensor on the CPU",
                tn_gradgradcheck(on_meta, NULL, &x, 1, NULL, NULL));
    EXPECT_FAIL(TN_VALUE, "the function says no",
                tn_gradcheck(fails_with_a_count, NULL, &x, 1, NULL));
    EXPECT_FAIL(TN_VALUE, "the function says no",
                tn_gradgradcheck(fails_with_a_count, NULL, &x, 1, NULL, NULL));
    tn_clear_error();
    EXPECT_EQ_INT(tni_test_live, before);
    EXPECT_FAIL(TN_INVALID, "the function changes its input 0",
                tn_gradcheck(makes_its_input_longer, NULL, &x, 1, NULL));
    tn_tensor_unref(x);
}

TEST(options_that_mean_nothing_are_refused)
{
    tn_tensor *x = leaf(2, TN_DTYPE_F64);
    static const double steps[] = {0.0, -1e-6, (double)NAN, (double)INFINITY};
    tn_gradcheck_opts opts = TN_GRADCHECK_OPTS_INIT;
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        opts.eps = steps[i];
        EXPECT_FAIL(TN_INVALID, "wanted a number above 0",
                    tn_gradcheck(product, NULL, &x, 1, &opts));
        EXPECT_FAIL(TN_INVALID, "wanted a number above 0",
                    tn_gradgradcheck(product, NULL, &x, 1, NULL, &opts));
    }
    for (int i = 0; i < 6; i++) {
        opts = (tn_gradcheck_opts)TN_GRADCHECK_OPTS_INIT;
        double *which[] = {&opts.atol, &opts.rtol, &opts.nondeterminism};
        *which[i / 2] = i % 2 ? -1e-9 : (double)NAN;
        EXPECT_FAIL(TN_INVALID, "wanted none below 0", tn_gradcheck(product, NULL, &x, 1, &opts));
    }
    opts = (tn_gradcheck_opts)TN_GRADCHECK_OPTS_INIT;
    opts.size = 4;
    EXPECT_FAIL(TN_INVALID, "size is 4", tn_gradcheck(product, NULL, &x, 1, &opts));
    tn_tensor_unref(x);
}

TEST(each_allocation_failing_leaks_nothing)
{
    tn_tensor *x = leaf(2, TN_DTYPE_F64);
    tn_status rc = TN_INTERNAL;
    ASSERT_OK(tn_gradcheck(two, NULL, &x, 1, NULL)); /* what is made once is made now */
    ASSERT_OK(tn_gradgradcheck(two, NULL, &x, 1, NULL, NULL));
    int64_t before = tni_test_live;
    WITH_EACH_ALLOCATION_FAILING(rc)
    {
        rc = tn_gradcheck(two, NULL, &x, 1, NULL);
        if (rc != TN_OK)
            EXPECT(rc == TN_NOMEM && tni_test_live <= before);
    }
    rc = TN_INTERNAL;
    WITH_EACH_ALLOCATION_FAILING(rc)
    {
        rc = tn_gradgradcheck(two, NULL, &x, 1, NULL, NULL);
        if (rc != TN_OK)
            EXPECT(rc == TN_NOMEM && tni_test_live <= before);
    }
    EXPECT_EQ_INT(tni_test_live, before);
    tn_tensor_unref(x);
}
