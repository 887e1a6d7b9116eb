/* SPDX-License-Identifier: MIT */
/* tests/cpu/test_ldl.c: factors of symmetric matrices solve systems with them, and pivots that lead
 * out of a matrix are refused. */
#include "core/tensor.h"
#include "harness/test.h"
#include "tenon/ops.h"

/* A random symmetric matrix, or Hermitian one; with zeros on the diagonal blocks of two are needed.
 */
static tn_tensor *symmetric(int64_t n, tn_dtype dtype, bool hermitian)
{
    tn_tensor *t = NULL, *u = NULL, *sum = NULL;
    tn_tensor_opts opts = tn_opts(dtype, TN_CPU);
    tn_manual_seed(5);
    ASSERT_OK(tn_randn((int64_t[]){n, n}, 2, &opts, &t));
    ASSERT_OK((hermitian ? tn_matrix_adjoint : tn_t)(t, &u));
    ASSERT_OK((hermitian ? tn_sub : tn_add)(t, u, tn_int(1), &sum));
    tn_tensor_unref(t);
    tn_tensor_unref(u);
    if (hermitian) { /* i times what is its own negative adjoint */
        ASSERT_OK(tn_mul_scalar(sum, (tn_scalar){.kind = TN_SCALAR_COMPLEX, .imag = 1}, &t));
        tn_tensor_unref(sum);
        return t;
    }
    ASSERT_OK(tn_fill_diagonal_(sum, tn_int(0), false));
    return sum;
}

static void check(int64_t n, tn_dtype dtype, bool hermitian)
{
    tn_tensor *a = symmetric(n, dtype, hermitian), *ld = NULL, *pivots = NULL, *b = NULL;
    tn_tensor *x = NULL, *back = NULL;
    tn_tensor_opts opts = tn_opts(dtype, TN_CPU);
    bool close = false;
    ASSERT_OK(tn_randn((int64_t[]){n, 3}, 2, &opts, &b));
    ASSERT_OK(tn_linalg_ldl_factor(a, hermitian, &ld, &pivots));
    ASSERT_OK(tn_linalg_ldl_solve(ld, pivots, b, hermitian, &x));
    ASSERT_OK(tn_mm(a, x, &back));
    ASSERT_OK(tn_allclose(back, b, 1e-8, 1e-8, false, &close));
    EXPECT(close);
    tn_tensor *const used[] = {a, ld, pivots, b, x, back};
    for (size_t i = 0; i < sizeof used / sizeof used[0]; i++)
        tn_tensor_unref(used[i]);
}

TEST(what_was_factored_solves_systems)
{
    for (int64_t n = 2; n < 40; n += 3) {
        check(n, TN_DTYPE_F64, false);
        check(n, TN_DTYPE_C128, false);
        check(n, TN_DTYPE_C128, true);
    }
}

TEST(a_block_that_is_zero_is_named)
{
    tn_tensor *zero = NULL, *ld = NULL, *pivots = NULL;
    ASSERT_OK(tn_zeros((int64_t[]){2, 2}, 2, NULL, &zero));
    EXPECT_FAIL(TN_INVALID, "torch.linalg.ldl_factor_ex: D[1,1] is zero",
                tn_linalg_ldl_factor(zero, false, &ld, &pivots));
    EXPECT(ld == NULL && pivots == NULL);
    tn_tensor_unref(zero);
}

TEST(pivots_that_lead_out_of_the_matrix_are_refused)
{
    static const struct {
        int32_t pivots[3];
        const char *text;
    } cases[] = {{{1, 2, 4}, "a pivot is out of range"},
                 {{1, 0, 3}, "a pivot is out of range"},
                 {{-4, -4, 3}, "a pivot is out of range"},
                 {{1, 2, -3}, "a block of two rows has one pivot"},
                 {{-2, 2, 3}, "a block of two rows has one pivot"}};
    tn_tensor *a = NULL, *b = NULL;
    ASSERT_OK(tn_ones((int64_t[]){3, 3}, 2, NULL, &a));
    ASSERT_OK(tn_ones((int64_t[]){3, 1}, 2, NULL, &b));
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tn_tensor *p = NULL, *x = NULL;
        ASSERT_OK(tn_tensor_from_data(cases[i].pivots, 1, (int64_t[]){3}, TN_DTYPE_I32, &p));
        EXPECT_FAIL(TN_INVALID, cases[i].text, tn_linalg_ldl_solve(a, p, b, false, &x));
        EXPECT(x == NULL);
        tn_tensor_unref(p);
    }
    tn_tensor_unref(a);
    tn_tensor_unref(b);
}
