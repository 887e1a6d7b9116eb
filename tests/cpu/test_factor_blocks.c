/* SPDX-License-Identifier: MIT */
/* tests/cpu/test_factor_blocks.c: matrices that are solved and factored in blocks, of sizes around
 * the edges of blocks, against the definition; the same bits on any number of threads. */
#include <math.h>
#include <stdio.h>
#include "core/tensor.h"
#include "harness/test.h"
#include "tenon/ops.h"

static const int64_t sizes[] = {1, 31, 32, 33, 63, 64, 65, 129, 256};
enum { SIZES = sizeof sizes / sizeof sizes[0] };

static void release(tn_tensor *const *used, size_t n)
{
    for (size_t i = 0; i < n; i++)
        tn_tensor_unref(used[i]);
}
#define RELEASE(...)                           \
    release((tn_tensor *const[]){__VA_ARGS__}, \
            sizeof((tn_tensor *[]){__VA_ARGS__}) / sizeof(void *))

static void add(tn_tensor *t, int64_t place, double x)
{
    if (t->dtype == TN_DTYPE_F64)
        ((double *)t->data)[place] += x;
    else
        ((float *)t->data)[place] += (float)x;
}

/* Random numbers with @p more on the diagonal. */
static tn_tensor *dominant(int64_t m, int64_t n, double more, tn_dtype dtype)
{
    tn_tensor *t = NULL;
    tn_tensor_opts opts = tn_opts(dtype, TN_CPU);
    ASSERT_OK(tn_randn((int64_t[]){m, n}, 2, &opts, &t));
    for (int64_t i = 0; i < m && i < n; i++)
        add(t, i * n + i, more);
    return t;
}

static double at(const tn_tensor *t, int64_t i, int64_t j)
{
    int64_t place = i * t->strides[0] + j * t->strides[1];
    return t->dtype == TN_DTYPE_F64 ? ((const double *)t->data)[place]
                                    : (double)((const float *)t->data)[place];
}

static void close_to(double got, double want, double bound, const char *what, int64_t n)
{
    if (!(fabs(got - want) <= bound)) {
        printf("%s of %d: %.17g, not %.17g\n", what, (int)n, got, want);
        ASSERT(false);
    }
}

static void check_triangle(int64_t n, int64_t k, tn_dtype dtype, bool upper, bool unit)
{
    /* The other triangle, and the diagonal of ones, are not to be read. */
    tn_tensor *a = dominant(n, n, unit ? (double)NAN : 20.0, dtype),
              *b = dominant(n, k, 0.0, dtype);
    tn_tensor *scaled = NULL, *x = NULL;
    ASSERT_OK(tn_mul_scalar(a, tn_float(unit ? 0.05 : 1.0), &scaled));
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = upper ? 0 : i + 1; j < (upper ? i : n); j++)
            add(scaled, i * n + j, (double)NAN);
    ASSERT_OK(tn_linalg_solve_triangular(scaled, b, upper, true, unit, &x));
    double bound = dtype == TN_DTYPE_F64 ? 1e-11 : 1e-4;
    for (int64_t i = 0; i < n; i++)
        for (int64_t c = 0; c < k; c++) {
            double sum = unit ? at(x, i, c) : 0.0, most = 1.0;
            for (int64_t j = upper ? i + unit : 0; j < (upper ? n : i + !unit); j++) {
                sum += at(scaled, i, j) * at(x, j, c);
                most += fabs(at(scaled, i, j) * at(x, j, c));
            }
            close_to(sum, at(b, i, c), bound * most, upper ? "upper" : "lower", n);
        }
    RELEASE(a, b, scaled, x);
}

TEST(triangles_are_solved)
{
    tn_manual_seed(3);
    for (int s = 0; s < SIZES; s++)
        for (int way = 0; way < 8; way++)
            for (int64_t k = 1; k < 40; k += 37)
                check_triangle(sizes[s], k, way & 4 ? TN_DTYPE_F32 : TN_DTYPE_F64, way & 1,
                               way & 2);
}

/* A symmetric matrix whose eigenvalues are at least 1. */
static tn_tensor *positive(int64_t n, tn_dtype dtype)
{
    tn_tensor *t = dominant(n, n, 0.0, dtype), *other = NULL, *product = NULL;
    ASSERT_OK(tn_t(t, &other));
    ASSERT_OK(tn_mm(t, other, &product));
    for (int64_t i = 0; i < n; i++)
        add(product, i * n + i, 1.0);
    RELEASE(t, other);
    return product;
}

static void check_cholesky(int64_t n, tn_dtype dtype, bool upper)
{
    tn_tensor *a = positive(n, dtype), *half = NULL, *factor = NULL, *info = NULL;
    ASSERT_OK((upper ? tn_triu : tn_tril)(a, 0, &half)); /* the other triangle is not read */
    ASSERT_OK(tn_linalg_cholesky_ex(half, upper, false, &factor, &info));
    EXPECT(*(const int32_t *)info->data == 0);
    double bound = (dtype == TN_DTYPE_F64 ? 1e-14 : 1e-6) * (double)(n + 10);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++) {
            double sum = 0.0;
            for (int64_t k = 0; k < n; k++)
                sum += upper ? at(factor, k, i) * at(factor, k, j)
                             : at(factor, i, k) * at(factor, j, k);
            close_to(sum, at(a, i, j), bound * 10.0, "Cholesky", n);
            if (upper ? i > j : i < j)
                close_to(at(factor, i, j), 0.0, 0.0, "Cholesky's other triangle", n);
        }
    RELEASE(a, half, factor, info);
}

TEST(cholesky_factors_multiply_to_the_matrix)
{
    tn_manual_seed(5);
    for (int s = 0; s < SIZES; s++)
        for (int way = 0; way < 4; way++)
            check_cholesky(sizes[s], way & 2 ? TN_DTYPE_F32 : TN_DTYPE_F64, way & 1);
}

/* PyTorch 2.11 says the same of torch.linalg.cholesky_ex(a): a = r @ r.T + torch.eye(n) with
 * a[at, at] = -1 gives info at + 1, and so does NaN there. */
TEST(cholesky_says_which_minor_is_not_positive)
{
    static const int64_t places[] = {0, 1, 30, 31, 32, 33, 63, 64, 65, 127, 128};
    tn_manual_seed(6);
    for (size_t p = 0; p < 2 * sizeof places / sizeof places[0]; p++) {
        int64_t n = 129, place = places[p / 2];
        tn_tensor *a = positive(n, TN_DTYPE_F64), *factor = NULL, *info = NULL;
        ((double *)a->data)[place * n + place] = p % 2 ? (double)NAN : -1.0;
        ASSERT_OK(tn_linalg_cholesky_ex(a, false, false, &factor, &info));
        EXPECT(*(const int32_t *)info->data == place + 1);
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = i + 1; j < n; j++)
                close_to(at(factor, i, j), 0.0, 0.0, "above a factor that stopped", place);
        RELEASE(a, factor, info);
    }
}

static void check_lu(int64_t m, int64_t n, tn_dtype dtype)
{
    tn_tensor *a = dominant(m, n, 0.0, dtype), *p = NULL, *l = NULL, *u = NULL;
    tn_tensor *lu = NULL, *pivots = NULL, *info = NULL;
    ASSERT_OK(tn_linalg_lu(a, true, &p, &l, &u));
    ASSERT_OK(tn_linalg_lu_factor_ex(a, true, false, &lu, &pivots, &info));
    EXPECT(*(const int32_t *)info->data == 0);
    double bound = (dtype == TN_DTYPE_F64 ? 1e-13 : 1e-5) * (double)(n + 10);
    int64_t k = m < n ? m : n;
    for (int64_t i = 0; i < m; i++) {
        int64_t row = 0; /* of L U, which becomes row i */
        while (at(p, i, row) != 1.0)
            ASSERT(++row < m);
        for (int64_t j = 0; j < n; j++) {
            double sum = 0.0;
            for (int64_t t = 0; t < k; t++)
                sum += at(l, row, t) * at(u, t, j);
            close_to(sum, at(a, i, j), bound, "LU", n);
            close_to(at(lu, i, j), i > j ? at(l, i, j) : at(u, i, j), 0.0, "packed LU", n);
        }
        for (int64_t j = 0; j < i && j < k; j++) /* the largest was chosen */
            close_to(at(l, i, j), 0.0, 1.0, "L", n);
    }
    RELEASE(a, p, l, u, lu, pivots, info);
}

TEST(lu_factors_multiply_to_the_matrix)
{
    tn_manual_seed(7);
    for (int s = 0; s < SIZES; s++)
        for (int f = 0; f < 2; f++) {
            tn_dtype dtype = f ? TN_DTYPE_F32 : TN_DTYPE_F64;
            check_lu(sizes[s], sizes[s], dtype);
            check_lu(sizes[s], sizes[s] + 40, dtype);
            check_lu(sizes[s] + 40, sizes[s], dtype);
        }
}

/* PyTorch 2.11 says the same of torch.linalg.lu_factor_ex(a): a matrix of random numbers whose
 * column at is 0 gives info at + 1; of two such columns the first counts. */
TEST(lu_says_where_the_diagonal_is_zero)
{
    static const int64_t places[] = {0, 1, 30, 31, 32, 33, 63, 64, 65, 127, 128};
    tn_manual_seed(8);
    for (size_t p = 0; p < sizeof places / sizeof places[0]; p++) {
        int64_t n = 129;
        tn_tensor *a = dominant(n, n, 0.0, TN_DTYPE_F64), *lu = NULL, *pivots = NULL, *info = NULL;
        for (int64_t i = 0; i < n; i++)
            ((double *)a->data)[i * n + places[p]] = ((double *)a->data)[i * n + 128] = 0.0;
        ASSERT_OK(tn_linalg_lu_factor_ex(a, true, false, &lu, &pivots, &info));
        EXPECT(*(const int32_t *)info->data == places[p] + 1);
        RELEASE(a, lu, pivots, info);
    }
}

static void check_qr(int64_t m, int64_t n, tn_dtype dtype)
{
    tn_tensor *a = dominant(m, n, 0.0, dtype), *q = NULL, *r = NULL;
    ASSERT_OK(tn_linalg_qr(a, "reduced", &q, &r));
    double bound = (dtype == TN_DTYPE_F64 ? 1e-14 : 1e-6) * (double)(m + n + 10);
    int64_t k = m < n ? m : n;
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            double sum = 0.0;
            for (int64_t t = 0; t < k; t++)
                sum += at(q, i, t) * at(r, t, j);
            close_to(sum, at(a, i, j), bound, "QR", n);
            if (i > j && i < k)
                close_to(at(r, i, j), 0.0, 0.0, "below R", n);
        }
    for (int64_t i = 0; i < k; i++)
        for (int64_t j = 0; j < k; j++) {
            double sum = 0.0;
            for (int64_t t = 0; t < m; t++)
                sum += at(q, t, i) * at(q, t, j);
            close_to(sum, i == j ? 1.0 : 0.0, bound, "Q", n);
        }
    RELEASE(a, q, r);
}

TEST(qr_factors_multiply_to_the_matrix)
{
    tn_manual_seed(10);
    for (int s = 0; s < SIZES; s++)
        for (int f = 0; f < 2; f++) {
            tn_dtype dtype = f ? TN_DTYPE_F32 : TN_DTYPE_F64;
            check_qr(sizes[s], sizes[s], dtype);
            check_qr(sizes[s], sizes[s] + 40, dtype);
            check_qr(sizes[s] + 40, sizes[s], dtype);
        }
}

/* PyTorch 2.11 gives Q NaN in the last column alone. */
TEST(qr_of_nan_leaves_the_columns_before)
{
    for (int f = 0; f < 2; f++) {
        tn_tensor *a = dominant(40, 36, 0.0, TN_DTYPE_F64), *wide = NULL, *q = NULL, *r = NULL;
        tn_tensor *sizes_of = NULL;
        ((double *)a->data)[38 * 36 + 35] = (double)NAN;
        ASSERT_OK(tn_mul_scalar(
            a, f ? (tn_scalar){.kind = TN_SCALAR_COMPLEX, .imag = 1} : tn_float(1), &wide));
        ASSERT_OK(tn_linalg_qr(wide, "reduced", &q, &r));
        ASSERT_OK(tn_abs(q, &sizes_of));
        for (int64_t i = 0; i < 40; i++)
            for (int64_t j = 0; j < 36; j++)
                EXPECT(isnan(at(sizes_of, i, j)) == (j == 35));
        RELEASE(a, wide, q, r, sizes_of);
    }
}

static void check_solve(int64_t n, int64_t k, tn_dtype dtype)
{
    tn_tensor *a = dominant(n, n, 2.0 * (double)n, dtype), *b = dominant(n, k, 0.0, dtype);
    tn_tensor *x = NULL, *inverse = NULL;
    ASSERT_OK(tn_linalg_solve(a, b, true, &x));
    ASSERT_OK(tn_linalg_inv(a, &inverse));
    double bound = dtype == TN_DTYPE_F64 ? 1e-12 : 1e-4;
    for (int64_t i = 0; i < n; i++) {
        for (int64_t c = 0; c < k; c++) {
            double sum = 0.0;
            for (int64_t j = 0; j < n; j++)
                sum += at(a, i, j) * at(x, j, c);
            close_to(sum, at(b, i, c), bound, "solution", n);
        }
        for (int64_t c = 0; c < n; c++) {
            double sum = 0.0;
            for (int64_t j = 0; j < n; j++)
                sum += at(a, i, j) * at(inverse, j, c);
            close_to(sum, i == c ? 1.0 : 0.0, bound, "inverse", n);
        }
    }
    RELEASE(a, b, x, inverse);
}

TEST(systems_are_solved)
{
    tn_manual_seed(9);
    for (int s = 0; s < SIZES; s++)
        for (int f = 0; f < 2; f++)
            for (int64_t k = 1; k < 40; k += 37)
                check_solve(sizes[s], k, f ? TN_DTYPE_F32 : TN_DTYPE_F64);
}

/* Every result of @p make on one thread and on three. */
static void same_on_threads(void (*make)(tn_tensor *a, tn_tensor *b, tn_tensor **out))
{
    int threads = tn_num_threads();
    tn_tensor *a = dominant(256, 256, 40.0, TN_DTYPE_F64),
              *b = dominant(256, 300, 0.0, TN_DTYPE_F64), *one = NULL, *three = NULL;
    bool same = false;
    ASSERT_OK(tn_set_num_threads(1));
    make(a, b, &one);
    ASSERT_OK(tn_set_num_threads(3));
    make(a, b, &three);
    ASSERT_OK(tn_set_num_threads(threads));
    ASSERT_OK(tn_equal(one, three, &same));
    EXPECT(same);
    RELEASE(a, b, one, three);
}

static void make_triangle(tn_tensor *a, tn_tensor *b, tn_tensor **out)
{
    ASSERT_OK(tn_linalg_solve_triangular(a, b, false, true, false, out));
}

static void make_cholesky(tn_tensor *a, tn_tensor *b, tn_tensor **out)
{
    tn_tensor *other = NULL, *product = NULL;
    (void)b;
    ASSERT_OK(tn_t(a, &other));
    ASSERT_OK(tn_mm(a, other, &product));
    ASSERT_OK(tn_linalg_cholesky(product, false, out));
    RELEASE(other, product);
}

static void make_solution(tn_tensor *a, tn_tensor *b, tn_tensor **out)
{
    ASSERT_OK(tn_linalg_solve(a, b, true, out));
}

TEST(threads_change_no_bits)
{
    same_on_threads(make_solution);
    same_on_threads(make_cholesky);
    same_on_threads(make_triangle);
}

TEST(memory_that_is_not_there)
{
    tn_manual_seed(4);
    tn_tensor *a = dominant(129, 129, 40.0, TN_DTYPE_F64),
              *b = dominant(129, 129, 0.0, TN_DTYPE_F64);
    tn_tensor *x = NULL;
    tn_status rc = TN_OK;
    int64_t before = tni_test_live;
    WITH_EACH_ALLOCATION_FAILING(rc)
    {
        rc = tn_linalg_solve_triangular(a, b, true, true, false, &x);
        if (rc != TN_OK)
            EXPECT(rc == TN_NOMEM && x == NULL && tni_test_live == before);
    }
    tn_tensor *product = positive(129, TN_DTYPE_F64), *factor = NULL;
    before = tni_test_live;
    WITH_EACH_ALLOCATION_FAILING(rc)
    {
        rc = tn_linalg_cholesky(product, true, &factor);
        if (rc != TN_OK)
            EXPECT(rc == TN_NOMEM && factor == NULL && tni_test_live == before);
    }
    tn_tensor *solution = NULL;
    before = tni_test_live;
    WITH_EACH_ALLOCATION_FAILING(rc)
    {
        rc = tn_linalg_solve(a, b, true, &solution);
        if (rc != TN_OK)
            EXPECT(rc == TN_NOMEM && solution == NULL && tni_test_live == before);
    }
    RELEASE(a, b, x, product, factor, solution);
}
