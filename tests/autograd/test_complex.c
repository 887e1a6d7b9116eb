/* SPDX-License-Identifier: MIT */
/* Complex numbers seen as pairs of real ones, and the other way round, while either is written: the
 * gradients are those of PyTorch 2.11. */
#include "kit.h"

#include <math.h>

/* 1 + 2i and 3 - i, or these numbers as two pairs. */
static tn_tensor *leaf(bool complex)
{
    static const float numbers[] = {1, 2, 3, -1};
    tn_tensor *t = NULL;
    ASSERT_OK(complex ? tn_tensor_from_data(numbers, 1, (int64_t[]){2}, TN_DTYPE_C64, &t)
                      : tn_tensor_from_data(numbers, 2, (int64_t[]){2, 2}, TN_DTYPE_F32, &t));
    ASSERT_OK(tn_tensor_set_requires_grad(t, true));
    return tn_scope_own(t);
}

/* Weighted with 10, 20, 30, … and summed. */
static tn_tensor *weighted(tn_tensor *t)
{
    tn_tensor *weights = NULL;
    int64_t n = tn_tensor_numel(t);
    tn_tensor_opts opts = tn_opts(TN_DTYPE_F32, TN_CPU);
    ASSERT_OK(tn_arange(tn_int(n), &opts, &weights));
    weights =
        tnx_mul_scalar(tnx_add_scalar(tn_scope_own(weights), tn_int(1), tn_int(1)), tn_int(10));
    return tnx_sum(tnx_mul(tnx_reshape(t, &n, 1), weights), TN_DTYPE_NONE);
}

static void expect_grad(tn_scope *scope, tn_tensor *x, tn_tensor *loss, const float *wanted)
{
    ASSERT_OK(tn_scope_status(scope));
    ASSERT_OK(tn_tensor_backward(loss));
    const float *have = tn_tensor_data(tn_tensor_grad(x));
    for (int i = 0; i < 4; i++)
        EXPECT_NEAR(have[i], wanted[i], 0);
    ASSERT_OK(tn_scope_leave(scope));
}

TEST(writing_the_real_parts_writes_the_history_of_the_whole)
{
    tn_scope *scope;
    ASSERT_OK(tn_scope_enter(&scope));
    tn_tensor *z = leaf(true), *y = tnx_clone(z, TN_FORMAT_NONE);
    (void)tnx_mul_scalar_(tnx_real(y), tn_int(2));
    expect_grad(scope, z, weighted(tnx_view_as_real(y)), (float[]){20, 20, 60, 40});
}

TEST(writing_the_whole_rebuilds_the_history_of_the_imaginary_parts)
{
    tn_scope *scope;
    ASSERT_OK(tn_scope_enter(&scope));
    tn_tensor *z = leaf(true), *y = tnx_clone(z, TN_FORMAT_NONE), *imag = tnx_imag(y);
    (void)tnx_mul_scalar_(y, tn_int(3));
    expect_grad(scope, z, weighted(imag), (float[]){0, 30, 0, 60});
}

TEST(writing_pairs_as_complex_numbers_writes_the_history_of_the_pairs)
{
    tn_scope *scope;
    ASSERT_OK(tn_scope_enter(&scope));
    tn_tensor *x = leaf(false), *y = tnx_clone(x, TN_FORMAT_NONE);
    (void)tnx_mul_scalar_(tnx_view_as_complex(y), tn_complex(0, 1)); /* (a, b) becomes (-b, a) */
    expect_grad(scope, x, weighted(y), (float[]){20, -10, 40, -30});
}

TEST(writing_pairs_rebuilds_the_history_of_the_complex_numbers)
{
    tn_scope *scope;
    ASSERT_OK(tn_scope_enter(&scope));
    tn_tensor *x = leaf(false), *y = tnx_clone(x, TN_FORMAT_NONE), *z = tnx_view_as_complex(y);
    (void)tnx_mul_scalar_(tnx_select(y, 0, 1), tn_int(3));
    expect_grad(scope, x, weighted(tnx_view_as_real(z)), (float[]){10, 20, 90, 120});
}

/* As for the pairs of real numbers that they are. */
TEST(a_part_that_is_no_number_takes_no_gradient_from_the_other_when_it_is_replaced)
{
    tn_scope *scope;
    ASSERT_OK(tn_scope_enter(&scope));
    tn_tensor *z = NULL;
    const float numbers[] = {1, NAN, INFINITY, -1};
    ASSERT_OK(tn_tensor_from_data(numbers, 1, (int64_t[]){2}, TN_DTYPE_C64, &z));
    ASSERT_OK(tn_tensor_set_requires_grad(tn_scope_own(z), true));
    tn_tensor *replaced = tnx_nan_to_num(z, tn_no_float(), tn_no_float(), tn_no_float());
    expect_grad(scope, z, weighted(tnx_view_as_real(replaced)), (float[]){10, 0, 0, 40});
}

TEST(the_square_of_the_absolute_value_has_twice_the_number_as_gradient)
{
    tn_scope *scope;
    ASSERT_OK(tn_scope_enter(&scope));
    tn_tensor *z = leaf(true), *loss = tnx_real(tnx_sum(tnx_mul(z, tnx_conj(z)), TN_DTYPE_NONE));
    expect_grad(scope, z, loss, (float[]){2, 4, 6, -2});
}
