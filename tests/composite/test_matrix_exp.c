/* SPDX-License-Identifier: MIT */
/* tests/composite/test_matrix_exp.c: exponentials of matrices that are known in numbers. */
#include <float.h>
#include <math.h>
#include "core/tensor.h"
#include "harness/test.h"
#include "tenon/ops.h"

static void expect_exp(const double *of, const double *want, int64_t n, double bound)
{
    tn_tensor *a = NULL, *e = NULL;
    ASSERT_OK(tn_tensor_from_data(of, 2, (int64_t[]){n, n}, TN_DTYPE_F64, &a));
    ASSERT_OK(tn_linalg_matrix_exp(a, &e));
    for (int64_t i = 0; i < n * n; i++)
        EXPECT(fabs(((const double *)e->data)[i] - want[i]) <= bound);
    tn_tensor_unref(a);
    tn_tensor_unref(e);
}

/* A turn by an angle; angles around those where the matrix is halved once more. */
TEST(a_turn)
{
    static const double angles[] = {0.0, 1e-9, 0.125, 0.25, 0.4999, 0.5, 0.5001, 1.0, 3.0, 10.0};
    for (size_t i = 0; i < sizeof angles / sizeof angles[0]; i++) {
        double t = angles[i];
        expect_exp((double[]){0, -t, t, 0}, (double[]){cos(t), -sin(t), sin(t), cos(t)}, 2,
                   t <= 0.5 ? 4e-16 : 2e-14);
    }
}

/* With N one above the diagonal, exp(t N) has t^k / k! on the diagonal k: each term by itself, of
 * which both sides are made by up to 16 steps that round. */
TEST(every_term_of_the_series)
{
    enum { N = 17 };
    double of[N * N] = {0}, want[N * N] = {0};
    const double t = 0.5;
    for (int i = 0; i < N; i++) {
        double term = 1.0;
        for (int j = i; j < N; j++) {
            want[i * N + j] = term;
            term *= t / (j - i + 1);
        }
        if (i + 1 < N)
            of[i * N + i + 1] = t;
    }
    tn_tensor *a = NULL, *e = NULL;
    ASSERT_OK(tn_tensor_from_data(of, 2, (int64_t[]){N, N}, TN_DTYPE_F64, &a));
    ASSERT_OK(tn_linalg_matrix_exp(a, &e));
    for (int i = 0; i < N * N; i++)
        EXPECT(fabs(((const double *)e->data)[i] - want[i]) <= 32 * DBL_EPSILON / 2 * want[i]);
    tn_tensor_unref(a);
    tn_tensor_unref(e);
}
