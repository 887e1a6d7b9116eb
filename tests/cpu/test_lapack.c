/* SPDX-License-Identifier: MIT */
/* tests/cpu/test_lapack.c: factors of matrices of each dtype are what they are by definition, below
 * and above the sizes from which a library computes them (cpu/lapack.h), where there is one; so are
 * errors, and the same bits come out on any number of threads. */
#include <math.h>
#include "core/tensor.h"
#include "harness/test.h"
#include "tenon/ops.h"

static const tn_dtype dtypes[] = {TN_DTYPE_F32, TN_DTYPE_F64, TN_DTYPE_C64, TN_DTYPE_C128};
static const int64_t sizes[] = {15, 16, 17, 40, 65, 130};
#define COUNT(x) (int)(sizeof(x) / sizeof(x)[0])

static tn_tensor *keep(tn_tensor *t)
{
    ASSERT(t != NULL);
    return t;
}

/* Random numbers in a batch of two. */
static tn_tensor *some(int64_t m, int64_t n, tn_dtype dtype)
{
    tn_tensor_opts opts = tn_opts(dtype, TN_CPU);
    return keep(tnx_randn((int64_t[]){2, m, n}, 3, &opts));
}

static tn_tensor *adjoint(tn_tensor *t)
{
    return keep(tnx_conj(tnx_transpose(t, -2, -1)));
}

static tn_tensor *identity(tn_tensor *like, int64_t n)
{
    return keep(tnx_diag_embed(tnx_new_full(like, &n, 1, tn_int(1), NULL), 0, -2, -1));
}

/* The largest difference, in units of rounding. */
static void near(tn_tensor *got, tn_tensor *want, double units, const char *what)
{
    tn_scalar most;
    tn_dtype dtype = (tn_dtype)got->dtype;
    double eps = dtype == TN_DTYPE_F32 || dtype == TN_DTYPE_C64 ? 6e-8 : 1.2e-16;
    ASSERT_OK(
        tn_item(keep(tnx_amax(tnx_abs(tnx_sub(got, want, tn_int(1))), NULL, 0, false)), &most));
    test_note("%s: %g units of %g", what, tn_scalar_to_double(most) / eps, units);
    EXPECT(tn_scalar_to_double(most) <= units * eps);
}

static void orthonormal(tn_tensor *q, double units, const char *what)
{
    near(keep(tnx_matmul(adjoint(q), q)), identity(q, q->sizes[q->ndim - 1]), units, what);
}

/* Each dtype and size, in a scope of its own. */
static void each(void (*check)(int64_t n, tn_dtype dtype))
{
    tn_manual_seed(11);
    for (int d = 0; d < COUNT(dtypes); d++)
        for (int s = 0; s < COUNT(sizes); s++) {
            tn_scope *scope;
            ASSERT_OK(tn_scope_enter(&scope));
            check(sizes[s], dtypes[d]);
            ASSERT_OK(tn_scope_leave(scope));
        }
}

static void check_qr(int64_t n, tn_dtype dtype)
{
    const int64_t shapes[][2] = {{n, n}, {n + 30, n}, {n, n + 9}};
    for (int z = 0; z < 6; z++) {
        tn_tensor *a = some(shapes[z / 2][0], shapes[z / 2][1], dtype), *q = NULL, *r = NULL;
        ASSERT_OK(tn_linalg_qr(a, z % 2 ? "complete" : "reduced", &q, &r));
        near(keep(tnx_matmul(q, r)), a, 40.0 * (double)(n + 30), "QR");
        orthonormal(q, 20.0 * (double)(n + 30), "Q");
        near(keep(tnx_triu(r, 0)), r, 0, "below R");
        tn_tensor *none = NULL, *alone = NULL, *packed = NULL, *tau = NULL;
        ASSERT_OK(tn_linalg_qr(a, "r", &none, &alone));
        ASSERT_OK(tn_geqrf(a, &packed, &tau));
        int64_t k = alone->sizes[1];
        near(alone, keep(tnx_narrow(r, 1, 0, k)), 0, "R alone");
        near(keep(tnx_narrow(tnx_triu(packed, 0), 1, 0, k)), alone, 0, "R of geqrf");
        tn_tensor *all[] = {q, r, none, alone, packed, tau};
        for (int i = 0; i < COUNT(all); i++)
            tn_tensor_unref(all[i]);
    }
}

TEST(qr_gives_the_matrix_again)
{
    each(check_qr);
}

/* A V = V diag(values). */
static void eigen(tn_tensor *a, tn_tensor *values, tn_tensor *v, double units)
{
    tn_tensor *row = keep(tnx_unsqueeze(values, -2));
    near(keep(tnx_matmul(a, v)), keep(tnx_mul(v, row)), units, "eigenvectors");
}

static void check_eigh(int64_t n, tn_dtype dtype)
{
    tn_tensor *x = some(n, n, dtype), *a = keep(tnx_add(x, adjoint(x), tn_int(1)));
    tn_tensor *nan = keep(tnx_full_like(a, tn_float((double)NAN), NULL, TN_FORMAT_PRESERVE));
    for (int upper = 0; upper < 2; upper++) { /* of which the other triangle is not read */
        tn_tensor *mask = upper ? tnx_tril(tnx_ones_like(tnx_real(a), NULL, TN_FORMAT_PRESERVE), -1)
                                : tnx_triu(tnx_ones_like(tnx_real(a), NULL, TN_FORMAT_PRESERVE), 1);
        tn_tensor *half = keep(tnx_where(tnx_gt_scalar(mask, tn_int(0)), nan, a));
        tn_tensor *values = NULL, *v = NULL, *alone = NULL;
        ASSERT_OK(tn_linalg_eigh(half, upper ? "U" : "L", &values, &v));
        ASSERT_OK(tn_linalg_eigvalsh(half, upper ? "U" : "L", &alone));
        eigen(a, values, v, 100.0 * (double)n);
        orthonormal(v, 40.0 * (double)n, "eigenvectors");
        near(alone, values, 100.0 * (double)n, "eigenvalues alone");
        tn_scalar least;
        ASSERT_OK(
            tn_item(keep(tnx_amin(tnx_diff(values, 1, -1, NULL, NULL), NULL, 0, false)), &least));
        EXPECT(tn_scalar_to_double(least) >= 0);
        tn_tensor_unref(values), tn_tensor_unref(v), tn_tensor_unref(alone);
    }
}

TEST(hermitian_matrices_have_orthonormal_eigenvectors_and_values_in_order)
{
    each(check_eigh);
}

static void check_svd(int64_t n, tn_dtype dtype)
{
    const int64_t shapes[][2] = {{n, n}, {n + 30, n}, {n, n + 9}};
    for (int z = 0; z < 6; z++) {
        int64_t k = n;
        tn_tensor *a = some(shapes[z / 2][0], shapes[z / 2][1], dtype);
        tn_tensor *u = NULL, *s = NULL, *vh = NULL, *alone = NULL;
        ASSERT_OK(tn_linalg_svd(a, z % 2, NULL, &u, &s, &vh));
        ASSERT_OK(tn_linalg_svdvals(a, NULL, &alone));
        tn_tensor *left = keep(tnx_mul(tnx_narrow(u, -1, 0, k), tnx_unsqueeze(s, -2)));
        near(keep(tnx_matmul(left, tnx_narrow(vh, -2, 0, k))), a, 100.0 * (double)(n + 30),
             "U S V");
        orthonormal(u, 40.0 * (double)(n + 30), "U");
        orthonormal(adjoint(vh), 40.0 * (double)(n + 30), "V");
        near(alone, s, 100.0 * (double)n, "singular values alone");
        tn_tensor_unref(u), tn_tensor_unref(s), tn_tensor_unref(vh), tn_tensor_unref(alone);
    }
}

TEST(singular_values_and_vectors_give_the_matrix_again)
{
    each(check_svd);
}

static void check_eig(int64_t n, tn_dtype dtype)
{
    tn_tensor *a = some(n, n, dtype), *values = NULL, *v = NULL, *alone = NULL;
    const int64_t rows = -2;
    ASSERT_OK(tn_linalg_eig(a, &values, &v));
    ASSERT_OK(tn_linalg_eigvals(a, &alone));
    tn_tensor *wide = keep(tnx_add(a, tnx_zeros_like(v, NULL, TN_FORMAT_PRESERVE), tn_int(1)));
    eigen(wide, values, v, 200.0 * (double)n);
    tn_tensor *lengths =
        keep(tnx_sum_dim(tnx_mul(tnx_abs(v), tnx_abs(v)), &rows, 1, false, TN_DTYPE_NONE));
    near(lengths, keep(tnx_ones_like(lengths, NULL, TN_FORMAT_PRESERVE)), 100, "lengths");
    /* The trace is the sum of the values, of those alone too. */
    tn_tensor *trace = keep(tnx_sum(tnx_diagonal(wide, 0, -2, -1), TN_DTYPE_NONE));
    near(keep(tnx_sum(values, TN_DTYPE_NONE)), trace, 400.0 * (double)n, "trace");
    near(keep(tnx_sum(alone, TN_DTYPE_NONE)), trace, 400.0 * (double)n, "trace of values alone");
    tn_tensor_unref(values), tn_tensor_unref(v), tn_tensor_unref(alone);
}

TEST(general_matrices_have_eigenvectors_of_length_1)
{
    each(check_eig);
}

static void check_factors(int64_t n, tn_dtype dtype)
{
    tn_tensor *x = some(n, n, dtype), *b = some(n, 5, dtype), *one = identity(x, n);
    tn_tensor *a = keep(tnx_add(x, one, tn_float(2.0 * sqrt((double)n))));
    tn_tensor *good = keep(tnx_add(tnx_matmul(x, adjoint(x)), one, tn_int(1)));
    double units = 100.0 * (double)n;
    near(keep(tnx_matmul(a, tnx_linalg_solve(a, b, true))), b, units, "solution");
    near(keep(tnx_matmul(a, tnx_linalg_inv(a))), one, units, "inverse");
    tn_tensor *l = keep(tnx_linalg_cholesky(good, false)),
              *u = keep(tnx_linalg_cholesky(good, true));
    near(keep(tnx_matmul(l, adjoint(l))), good, 4 * units, "Cholesky");
    near(u, adjoint(l), 4 * units, "upper Cholesky");
    near(keep(tnx_tril(l, 0)), l, 0, "above Cholesky");
    tn_tensor *p = NULL, *lower = NULL, *upper = NULL;
    ASSERT_OK(tn_linalg_lu(x, true, &p, &lower, &upper));
    near(keep(tnx_matmul(p, tnx_matmul(lower, upper))), x, units, "LU");
    for (int way = 0; way < 8; way++) { /* as it lies by rows and by columns */
        bool high = way & 1, unit = way & 2;
        tn_tensor *t = keep(tnx_mul_scalar(x, tn_float(0.5 / (double)n)));
        t = keep(unit ? t : tnx_add(t, one, tn_int(1)));
        if (way & 4)
            t = keep(tnx_transpose(tnx_contiguous(tnx_transpose(t, -2, -1), TN_FORMAT_CONTIGUOUS),
                                   -2, -1));
        tn_tensor *whole = high ? tnx_triu(t, unit) : tnx_tril(t, unit ? -1 : 0);
        whole = keep(unit ? tnx_add(whole, one, tn_int(1)) : whole);
        near(keep(tnx_matmul(whole, tnx_linalg_solve_triangular(t, b, high, true, unit))), b, units,
             "triangle");
    }
    tn_tensor_unref(p), tn_tensor_unref(lower), tn_tensor_unref(upper);
}

TEST(systems_are_solved)
{
    each(check_factors);
}

/* The error is orthogonal to the columns; a column that is there twice does not count twice, and X
 * is of the least length: its two rows are alike. The rank is that of the matrix where PyTorch 2.11
 * says less (docs/differences.md). */
static void check_least_squares(int64_t n, tn_dtype dtype)
{
    const int64_t shapes[][2] = {{n, n}, {n + 30, n}, {n, n + 9}};
    for (int z = 0; z < 6; z++) {
        int64_t m = shapes[z / 2][0], wide = shapes[z / 2][1], rank = m < wide ? m : wide;
        tn_tensor *a = some(m, wide, dtype), *b = some(m, 3, dtype);
        if (z % 2) {
            ASSERT(tnx_copy_(tnx_select(a, -1, wide - 1), tnx_select(a, -1, 0), false));
            rank = wide - 1 < m ? wide - 1 : m;
        }
        tn_tensor *x = NULL, *left = NULL, *ranks = NULL, *values = NULL;
        ASSERT_OK(tn_linalg_lstsq(a, b, (tn_opt_float){0}, NULL, &x, &left, &ranks, &values));
        EXPECT(((const int64_t *)ranks->data)[0] == rank &&
               ((const int64_t *)ranks->data)[1] == rank);
        tn_tensor *error = keep(tnx_sub(tnx_matmul(a, x), b, tn_int(1)));
        tn_tensor *normal = keep(tnx_matmul(adjoint(a), error));
        double units = 2e4 * (double)(n + 30);
        near(normal, keep(tnx_zeros_like(normal, NULL, TN_FORMAT_PRESERVE)), units, "error");
        if (z % 2)
            near(keep(tnx_select(x, -2, 0)), keep(tnx_select(x, -2, wide - 1)), units, "rows of X");
        tn_tensor_unref(x), tn_tensor_unref(left), tn_tensor_unref(ranks), tn_tensor_unref(values);
    }
}

TEST(least_squares_leave_an_error_orthogonal_to_the_columns)
{
    each(check_least_squares);
}

/* LU of complex numbers in blocks, of which one has a column of zeros: PyTorch 2.11 says 301. */
TEST(large_complex_matrices_are_factored_in_blocks)
{
    enum { N = 600 };
    tn_scope *scope;
    tn_manual_seed(3);
    ASSERT_OK(tn_scope_enter(&scope));
    tn_tensor *x = some(N, N, TN_DTYPE_C128), *p = NULL, *l = NULL, *u = NULL;
    ASSERT_OK(tn_linalg_lu(x, true, &p, &l, &u));
    near(keep(tnx_matmul(p, tnx_matmul(l, u))), x, 50.0 * N, "LU");
    tn_tensor *lu = NULL, *pivots = NULL, *info = NULL;
    ASSERT(tnx_fill_(tnx_select(x, -1, 300), tn_int(0)) != NULL);
    ASSERT_OK(tn_linalg_lu_factor_ex(x, true, false, &lu, &pivots, &info));
    EXPECT(((const int32_t *)info->data)[0] == 301 && ((const int32_t *)info->data)[1] == 301);
    tn_tensor *all[] = {p, l, u, lu, pivots, info};
    for (int i = 0; i < COUNT(all); i++)
        tn_tensor_unref(all[i]);
    ASSERT_OK(tn_scope_leave(scope));
}

TEST(what_is_not_finite_is_an_error)
{
    tn_scope *scope;
    ASSERT_OK(tn_scope_enter(&scope));
    for (int d = 0; d < COUNT(dtypes); d++) {
        tn_tensor *a = some(40, 40, dtypes[d]), *x = NULL, *y = NULL, *z = NULL;
        ASSERT(tnx_fill_(tnx_select(tnx_select(a, -1, 3), -1, 5), tn_float(INFINITY)));
        EXPECT(tn_linalg_svd(a, false, NULL, &x, &y, &z) == TN_LINALG);
        EXPECT(tn_linalg_eig(a, &x, &y) == TN_INVALID);
        EXPECT(tn_linalg_eigvals(a, &x) == TN_INVALID);
        EXPECT(!x && !y && !z);
    }
    ASSERT_OK(tn_scope_leave(scope));
}

/* One of the operators, of @p a. */
static tn_status call(int which, tn_tensor *a, tn_tensor **out)
{
    switch (which) {
    case 0:
        return tn_linalg_qr(a, "reduced", &out[0], &out[1]);
    case 1:
        return tn_linalg_eigh(a, "L", &out[0], &out[1]);
    case 2:
        return tn_linalg_svd(a, true, NULL, &out[0], &out[1], &out[2]);
    case 3:
        return tn_linalg_eig(a, &out[0], &out[1]);
    case 4:
        return tn_linalg_eigvals(a, &out[0]);
    case 5:
        return tn_linalg_lu(a, true, &out[0], &out[1], &out[2]);
    case 6:
        return tn_linalg_inv(a, &out[0]);
    default:
        return tn_least_squares(a, a, 1e-6, &out[0], &out[1]);
    }
}
enum { CALLS = 8 };

static void release(tn_tensor **out)
{
    for (int i = 0; i < 3; i++) {
        tn_tensor_unref(out[i]);
        out[i] = NULL;
    }
}

TEST(threads_change_no_bits)
{
    if (test_thread_sanitized())
        SKIP(
            "the library's own code is not built for the thread sanitizer, under which it crashed");
    int threads = tn_num_threads();
    for (int i = 0; i < CALLS * COUNT(dtypes); i++) {
        tn_tensor *one[3] = {0}, *three[3] = {0};
        tn_scope *scope;
        ASSERT_OK(tn_scope_enter(&scope));
        tn_tensor *a = some(150, 150, dtypes[i / CALLS]);
        ASSERT_OK(tn_set_num_threads(1));
        ASSERT_OK(call(i % CALLS, a, one));
        ASSERT_OK(tn_set_num_threads(3));
        ASSERT_OK(call(i % CALLS, a, three));
        ASSERT_OK(tn_set_num_threads(threads));
        for (int o = 0; o < 3 && one[o]; o++) {
            bool same = false;
            ASSERT_OK(tn_equal(one[o], three[o], &same));
            EXPECT(same);
        }
        release(one), release(three);
        ASSERT_OK(tn_scope_leave(scope));
    }
}

TEST(memory_that_is_not_there)
{
    for (int i = 0; i < CALLS * COUNT(dtypes); i++) {
        tn_tensor *out[3] = {0}, *a = NULL;
        tn_tensor_opts opts = tn_opts(dtypes[i / CALLS], TN_CPU);
        tn_status rc = TN_OK;
        ASSERT_OK(tn_randn((int64_t[]){2, 20, 20}, 3, &opts, &a));
        ASSERT_OK(call(i % CALLS, a, out)); /* the library is loaded */
        release(out);
        int64_t before = tni_test_live;
        WITH_EACH_ALLOCATION_FAILING(rc)
        {
            rc = call(i % CALLS, a, out);
            if (rc != TN_OK)
                EXPECT(rc == TN_NOMEM && !out[0] && !out[1] && tni_test_live == before);
        }
        release(out);
        tn_tensor_unref(a);
    }
}
