/* SPDX-License-Identifier: MIT */
/* cpu/linalg.c: factorisations and solutions of batches of matrices, one after the other or shared
 * out over threads. Each is computed in complex doubles (factor.h) or, where that saves work for
 * real numbers, in doubles (factor_real.h), and rounded once. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "base/pool.h"
#include "cpu/copy.h"
#include "cpu/factor.h"
#include "cpu/factor_real.h"
#include "gen/cpu.h"

typedef tni_cd cd;

/* What one operator works on: contiguous tensors of complex doubles, or of doubles, matrices of m
 * by n. */
typedef struct job {
    tn_status (*one)(const struct job *j, int64_t b);
    tn_tensor *in[2], *out[3];
    int64_t m, n, k;
    int32_t *pivots, *info;
    double *real;
    bool flag, flag2;
} job;

static tn_status run(int64_t begin, int64_t end, void *arg)
{
    const job *j = arg;
    for (int64_t b = begin; b < end; b++)
        TN_TRY(j->one(j, b));
    return TN_OK;
}

static tn_status room(const tn_tensor *like, tn_dtype dtype, tn_tensor **out)
{
    return tni_tensor_new(like->ndim, like->sizes, NULL, dtype, TN_CPU, out);
}

static tn_status copy_as(tn_dtype dtype, tn_tensor *t, tn_tensor **out)
{
    TN_AUTO(tn_tensor) made = NULL;
    TN_TRY(room(t, dtype, &made));
    if (t->numel)
        TN_TRY(tni_copy_cpu(made, t));
    *out = TN_MOVE(made);
    return TN_OK;
}

static tn_status copy_of(tn_tensor *t, tn_tensor **out)
{
    return copy_as(TN_DTYPE_C128, t, out);
}

/* What numbers like those of @p t are computed in. */
static tn_dtype wide(const tn_tensor *t)
{
    return tn_dtype_is_complex((tn_dtype)t->dtype) ? TN_DTYPE_C128 : TN_DTYPE_F64;
}

static tn_status take(tn_tensor *to, tn_tensor *from)
{
    return to->numel ? tni_copy_cpu(to, from) : TN_OK;
}

static int64_t batches(const tn_tensor *t)
{
    int64_t n = 1;
    for (int d = 0; d < t->ndim - 2; d++)
        n *= t->sizes[d];
    return n;
}

static int64_t rows(const tn_tensor *t)
{
    return t->sizes[t->ndim - 2];
}

static int64_t columns(const tn_tensor *t)
{
    return t->sizes[t->ndim - 1];
}

static cd *matrix(const tn_tensor *t, int64_t b)
{
    return (cd *)t->data + b * rows(t) * columns(t);
}

static double *real_matrix(const tn_tensor *t, int64_t b)
{
    return (double *)t->data + b * rows(t) * columns(t);
}

/* The first batch that failed, 0 when none did. */
static int64_t failed(const int32_t *info, int64_t n, int64_t *which)
{
    for (int64_t b = 0; b < n; b++)
        if (info[b]) {
            *which = b;
            return info[b];
        }
    return 0;
}

#define BATCH_TEXT(text, size, t, which)                                      \
    snprintf(text, size, (t)->ndim > 2 ? "(Batch element %lld): " : "%.0lld", \
             (long long)((t)->ndim > 2 ? (which) : 0))

static tn_status rows_of_int32(const tn_tensor *like, tn_tensor **out)
{
    return room(like, TN_DTYPE_I32, out);
}

/* ---- Cholesky ---- */

/* From the upper triangle to the lower one, or back with zeros below. */
static void transpose_upper(double *a, int64_t n, bool to_upper)
{
    for (int64_t r = 0; r < n; r++)
        for (int64_t c = 0; c < r; c++)
            if (to_upper) {
                a[c * n + r] = a[r * n + c];
                a[r * n + c] = 0.0;
            } else {
                a[r * n + c] = a[c * n + r];
            }
}

static tn_status cholesky_one(const job *j, int64_t b)
{
    if (j->in[0]->dtype == TN_DTYPE_F64) {
        double *x = real_matrix(j->in[0], b);
        if (j->flag)
            transpose_upper(x, j->n, false);
        TN_TRY(tni_real_cholesky(x, j->n, j->info + b));
        if (j->flag)
            transpose_upper(x, j->n, true);
        return TN_OK;
    }
    cd *a = matrix(j->in[0], b);
    int64_t n = j->n;
    for (int64_t r = 0; j->flag && r < n; r++) /* the upper triangle, conjugate, is the lower one */
        for (int64_t c = 0; c < r; c++)
            a[r * n + c] = conj(a[c * n + r]);
    TN_TRY(tni_factor_cholesky(a, n, j->info + b));
    for (int64_t r = 0; j->flag && r < n; r++)
        for (int64_t c = 0; c < r; c++) {
            a[c * n + r] = conj(a[r * n + c]);
            a[r * n + c] = 0.0;
        }
    return TN_OK;
}

tn_status tni_cpu_linalg_cholesky_ex(tn_tensor *self, bool upper, bool check_errors, tn_tensor *L,
                                     tn_tensor *info)
{
    TN_AUTO(tn_tensor) a = NULL;
    TN_AUTO(tn_tensor) failures = NULL;
    char text[64];
    int64_t which = 0;
    TN_TRY(copy_as(wide(self), self, &a));
    TN_TRY(rows_of_int32(info, &failures));
    job j = {
        .one = cholesky_one, .in = {a}, .n = columns(self), .info = failures->data, .flag = upper};
    TN_TRY(tni_pool_for(batches(self), 1, run, &j));
    int64_t order = check_errors ? failed(j.info, batches(self), &which) : 0;
    BATCH_TEXT(text, sizeof text, self, which);
    TN_CHECK(
        !order, TN_LINALG,
        "linalg.cholesky_ex: %sThe factorization could not be completed because the input is not "
        "positive-definite (the leading minor of order %lld is not positive-definite).",
        text, (long long)order);
    TN_TRY(take(L, a));
    return take(info, failures);
}

/* ---- LU ---- */

static tn_status lu_one(const job *j, int64_t b)
{
    int32_t *pivots = j->pivots + b * j->k, *info = j->info + b;
    if (j->in[0]->dtype == TN_DTYPE_F64)
        return tni_real_lu(real_matrix(j->in[0], b), j->m, j->n, pivots, j->flag, info);
    return tni_factor_lu(matrix(j->in[0], b), j->m, j->n, pivots, j->flag, info);
}

/* LU of a copy of @p self, which is wide, with int32 pivots and info. */
static tn_status factored(tn_tensor *self, bool pivot, tn_tensor **lu, tn_tensor **pivots,
                          tn_tensor **info)
{
    int64_t m = rows(self), n = columns(self), k = m < n ? m : n, b = batches(self), all = b * k;
    TN_AUTO(tn_tensor) a = NULL;
    TN_AUTO(tn_tensor) p = NULL;
    TN_AUTO(tn_tensor) f = NULL;
    TN_TRY(copy_as(wide(self), self, &a));
    TN_TRY(tni_tensor_new(1, &all, NULL, TN_DTYPE_I32, TN_CPU, &p));
    TN_TRY(tni_tensor_new(1, &b, NULL, TN_DTYPE_I32, TN_CPU, &f));
    job j = {.one = lu_one,
             .in = {a},
             .m = m,
             .n = n,
             .k = k,
             .pivots = p->data,
             .info = f->data,
             .flag = pivot};
    TN_TRY(tni_pool_for(b, 1, run, &j));
    *lu = TN_MOVE(a);
    *pivots = TN_MOVE(p);
    *info = TN_MOVE(f);
    return TN_OK;
}

/* int32 numbers in order into a contiguous or strided int32 tensor of as many. */
static tn_status take_numbers(tn_tensor *to, tn_tensor *line)
{
    TN_AUTO(tn_tensor) shaped = NULL;
    if (!to->numel)
        return TN_OK;
    TN_TRY(room(to, TN_DTYPE_I32, &shaped));
    if (to->numel)
        memcpy(shaped->data, line->data, (size_t)to->numel * sizeof(int32_t));
    return tni_copy_cpu(to, shaped);
}

tn_status tni_cpu_linalg_lu_factor_ex(tn_tensor *A, bool pivot, bool check_errors, tn_tensor *LU,
                                      tn_tensor *pivots, tn_tensor *info)
{
    TN_AUTO(tn_tensor) a = NULL;
    TN_AUTO(tn_tensor) p = NULL;
    TN_AUTO(tn_tensor) f = NULL;
    char text[64];
    int64_t which = 0;
    TN_TRY(factored(A, pivot, &a, &p, &f));
    int64_t place = check_errors ? failed(f->data, batches(A), &which) : 0;
    BATCH_TEXT(text, sizeof text, A, which);
    TN_CHECK(!place, TN_INVALID,
             "torch.linalg.lu_factor_ex: %sU[%lld,%lld] is zero and using it on lu_solve would "
             "result in a "
             "division by zero. If you still want to perform the factorization, consider calling "
             "linalg.lu(A, pivot) or linalg.lu_factor_ex(A, pivot)",
             text, (long long)place, (long long)place);
    TN_TRY(take(LU, a));
    TN_TRY(take_numbers(pivots, p));
    return take_numbers(info, f);
}

/* Rows of @p x, of @p width doubles each, changed over as @p pivots say. */
static void change_rows(double *x, int64_t width, const int32_t *pivots, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        double *a = x + i * width, *b = x + (pivots[i] - 1) * width;
        for (int64_t c = 0; a != b && c < width; c++) {
            double t = a[c];
            a[c] = b[c];
            b[c] = t;
        }
    }
}

/* Solves in place: rows changed over, then both triangles. */
static tn_status solve_one(const job *j, int64_t b)
{
    const tn_tensor *lu = j->in[0], *x = j->out[0];
    const int32_t *pivots = j->pivots + b * j->n;
    if (lu->dtype == TN_DTYPE_F64) {
        const tni_real_view a = {real_matrix(lu, b), j->n, 1};
        double *to = real_matrix(x, b);
        change_rows(to, j->k, pivots, j->n);
        TN_TRY(tni_real_triangle(a, j->n, to, j->k, false, true));
        return tni_real_triangle(a, j->n, to, j->k, true, false);
    }
    cd *a = matrix(lu, b), *to = matrix(x, b);
    change_rows((double *)to, 2 * j->k, pivots, j->n);
    TN_TRY(tni_factor_triangle(a, j->n, to, j->k, false, true));
    return tni_factor_triangle(a, j->n, to, j->k, true, false);
}

/* @p x is as wide as A is. */
static tn_status solved(tn_tensor *A, tn_tensor *x, tn_tensor **info)
{
    TN_AUTO(tn_tensor) a = NULL;
    TN_AUTO(tn_tensor) p = NULL;
    TN_TRY(factored(A, true, &a, &p, info));
    job j = {.one = solve_one,
             .in = {a},
             .out = {x},
             .n = columns(A),
             .k = columns(x),
             .pivots = p->data};
    return tni_pool_for(batches(A), 1, run, &j);
}

tn_status tni_cpu_linalg_inv_ex(tn_tensor *A, bool check_errors, tn_tensor *inverse,
                                tn_tensor *info)
{
    TN_AUTO(tn_tensor) x = NULL;
    TN_AUTO(tn_tensor) f = NULL;
    char text[64];
    int64_t which = 0, n = columns(A), count = batches(A);
    TN_TRY(room(A, wide(A), &x));
    if (x->numel)
        memset(x->data, 0, (size_t)x->numel * tn_dtype_size((tn_dtype)x->dtype));
    for (int64_t b = 0; b < count; b++)
        for (int64_t i = 0; i < n; i++)
            if (x->dtype == TN_DTYPE_F64)
                real_matrix(x, b)[i * n + i] = 1.0;
            else
                matrix(x, b)[i * n + i] = 1.0;
    TN_TRY(solved(A, x, &f));
    int64_t place = check_errors ? failed(f->data, count, &which) : 0;
    BATCH_TEXT(text, sizeof text, A, which);
    TN_CHECK(
        !place, TN_LINALG,
        "linalg.inv_ex: %sThe diagonal element %lld is zero, the inversion could not be completed "
        "because the input matrix is singular.",
        text, (long long)place);
    TN_TRY(take(inverse, x));
    return take_numbers(info, f);
}

tn_status tni_cpu_solve_square(tn_tensor *A, tn_tensor *B, bool check_errors, tn_tensor *result,
                               tn_tensor *info)
{
    TN_AUTO(tn_tensor) x = NULL;
    TN_AUTO(tn_tensor) f = NULL;
    char text[64];
    int64_t which = 0;
    TN_TRY(copy_as(wide(A), B, &x));
    TN_TRY(solved(A, x, &f));
    bool bad = check_errors && failed(f->data, batches(A), &which);
    BATCH_TEXT(text, sizeof text, A, which);
    TN_CHECK(!bad, TN_LINALG,
             "torch.linalg.solve_ex: %sThe solver failed because the input matrix is singular.",
             text);
    TN_TRY(take(result, x));
    return take_numbers(info, f);
}

static tn_status triangle_one(const job *j, int64_t b)
{
    const tn_tensor *a = j->in[0], *x = j->out[0];
    if (a->dtype == TN_DTYPE_F64)
        return tni_real_triangle((tni_real_view){real_matrix(a, b), j->n, 1}, j->n,
                                 real_matrix(x, b), j->k, j->flag, j->flag2);
    return tni_factor_triangle(matrix(a, b), j->n, matrix(x, b), j->k, j->flag, j->flag2);
}

tn_status tni_cpu_solve_triangle(tn_tensor *A, tn_tensor *B, bool upper, bool unitriangular,
                                 tn_tensor *out)
{
    TN_AUTO(tn_tensor) a = NULL;
    TN_AUTO(tn_tensor) x = NULL;
    TN_TRY(copy_as(wide(A), A, &a));
    TN_TRY(copy_as(wide(A), B, &x));
    job j = {.one = triangle_one,
             .in = {a},
             .out = {x},
             .n = columns(A),
             .k = columns(B),
             .flag = upper,
             .flag2 = unitriangular};
    TN_TRY(tni_pool_for(batches(A), 1, run, &j));
    return take(out, x);
}

/* The permutations that @p LU_pivots of k numbers make of m rows, as matrices in the sizes of @p P.
 */
static tn_status permutations(const tn_tensor *P, tn_tensor *LU_pivots, int64_t m, int64_t k,
                              int64_t count, tn_tensor **out)
{
    TN_AUTO(tn_tensor) p = NULL;
    TN_AUTO(tn_tensor) pivots = NULL;
    TN_TRY(room(P, TN_DTYPE_C128, &p));
    TN_TRY(room(LU_pivots, TN_DTYPE_I32, &pivots));
    TN_TRY(take(pivots, LU_pivots));
    memset(p->data, 0, (size_t)p->numel * sizeof(cd));
    for (int64_t b = 0; b < count; b++) {
        cd *to = matrix(p, b);
        const int32_t *order = (const int32_t *)pivots->data + b * k;
        for (int64_t i = 0; i < m; i++)
            to[i * m + i] = 1.0;
        for (int64_t i = 0; i < k; i++) { /* columns: P is the inverse of the changes of rows */
            int64_t other = (int64_t)order[i] - 1;
            TN_CHECK(other >= 0 && other < m, TN_INVALID,
                     "pivots passed to lu_unpack must be between 1 and LU.size(-2) inclusive."
                     "Did you properly pass the result of lu_factor?");
            for (int64_t r = 0; other != i && r < m; r++) {
                cd t = to[r * m + i];
                to[r * m + i] = to[r * m + other];
                to[r * m + other] = t;
            }
        }
    }
    *out = TN_MOVE(p);
    return TN_OK;
}

/* The permutation as a matrix, the lower factor and the upper one. Nothing is written before the
 * pivots are known to be good. */
tn_status tni_cpu_lu_unpack(tn_tensor *LU_data, tn_tensor *LU_pivots, bool unpack_data,
                            bool unpack_pivots, tn_tensor *P, tn_tensor *L, tn_tensor *U)
{
    int64_t m = rows(LU_data), n = columns(LU_data), k = m < n ? m : n, count = batches(LU_data);
    TN_AUTO(tn_tensor) a = NULL;
    TN_AUTO(tn_tensor) p = NULL;
    TN_AUTO(tn_tensor) l = NULL;
    TN_AUTO(tn_tensor) u = NULL;
    if (unpack_pivots && P->numel)
        TN_TRY(permutations(P, LU_pivots, m, k, count, &p));
    if (unpack_data) {
        TN_TRY(copy_of(LU_data, &a));
        TN_TRY(room(L, TN_DTYPE_C128, &l));
        TN_TRY(room(U, TN_DTYPE_C128, &u));
        for (int64_t b = 0; b < count; b++) {
            for (int64_t i = 0; i < m; i++)
                for (int64_t j = 0; j < k; j++)
                    matrix(l, b)[i * k + j] = i == j ? 1.0 : i > j ? matrix(a, b)[i * n + j] : 0.0;
            for (int64_t i = 0; i < k; i++)
                for (int64_t j = 0; j < n; j++)
                    matrix(u, b)[i * n + j] = i <= j ? matrix(a, b)[i * n + j] : 0.0;
        }
        TN_TRY(take(L, l));
        TN_TRY(take(U, u));
    }
    return p ? take(P, p) : TN_OK;
}

/* ---- determinants ---- */

/* Sign or phase, and the logarithm of the size. */
static cd phase_of(const tn_tensor *lu, int64_t b, const int32_t *pivots, int64_t n,
                   double *log_size, cd *product)
{
    cd sign = 1.0;
    *log_size = 0.0;
    *product = 1.0;
    for (int64_t i = 0; i < n; i++) {
        cd d = lu->dtype == TN_DTYPE_F64 ? real_matrix(lu, b)[i * n + i] : matrix(lu, b)[i * n + i];
        double size = cabs(d);
        if (pivots[i] != i + 1) {
            sign = -sign;
            *product = -*product;
        }
        *product *= d;
        *log_size += log(size);
        sign *= size > 0.0 ? d / size : 0.0;
    }
    return sign;
}

static tn_status determinants(tn_tensor *A, tn_tensor *result, tn_tensor *sign, tn_tensor *size)
{
    TN_AUTO(tn_tensor) a = NULL;
    TN_AUTO(tn_tensor) p = NULL;
    TN_AUTO(tn_tensor) f = NULL;
    TN_AUTO(tn_tensor) values = NULL;
    TN_AUTO(tn_tensor) sizes = NULL;
    int64_t n = columns(A);
    TN_TRY(factored(A, true, &a, &p, &f));
    TN_TRY(room(result ? result : sign, TN_DTYPE_C128, &values));
    TN_TRY(room(result ? result : size, TN_DTYPE_F64, &sizes));
    for (int64_t b = 0; b < values->numel; b++) {
        cd product;
        cd s = phase_of(a, b, (const int32_t *)p->data + b * n, n, (double *)sizes->data + b,
                        &product);
        ((cd *)values->data)[b] = result ? product : s;
    }
    if (result)
        return take(result, values);
    TN_TRY(take(sign, values));
    return take(size, sizes);
}

tn_status tni_cpu_linalg_det(tn_tensor *A, tn_tensor *out)
{
    return determinants(A, out, NULL, NULL);
}

tn_status tni_cpu_linalg_slogdet(tn_tensor *A, tn_tensor *sign, tn_tensor *logabsdet)
{
    return determinants(A, NULL, sign, logabsdet);
}

/* ---- QR ---- */

static tn_status qr_one(const job *j, int64_t b)
{
    int64_t k = j->m < j->n ? j->m : j->n, width = j->k; /* of Q */
    cd *a = matrix(j->in[0], b), *tau = (cd *)j->in[1]->data + b * k;
    tni_factor_reflect(a, j->m, j->n, tau);
    if (j->out[0])
        tni_factor_product(a, j->m, j->n, tau, k, matrix(j->out[0], b), width);
    cd *r = j->out[1] ? matrix(j->out[1], b) : NULL;
    for (int64_t i = 0; r && i < rows(j->out[1]); i++)
        for (int64_t c = 0; c < j->n; c++)
            r[i * j->n + c] = i <= c && i < k ? a[i * j->n + c] : 0.0;
    return TN_OK;
}

tn_status tni_cpu_linalg_qr(tn_tensor *A, const char *mode, tn_tensor *Q, tn_tensor *R)
{
    int64_t m = rows(A), n = columns(A), k = m < n ? m : n, all = batches(A) * k;
    TN_AUTO(tn_tensor) a = NULL;
    TN_AUTO(tn_tensor) tau = NULL;
    TN_AUTO(tn_tensor) q = NULL;
    TN_AUTO(tn_tensor) r = NULL;
    bool wants_q = strcmp(mode, "r") != 0;
    TN_TRY(copy_of(A, &a));
    TN_TRY(tni_tensor_new(1, &all, NULL, TN_DTYPE_C128, TN_CPU, &tau));
    if (wants_q)
        TN_TRY(room(Q, TN_DTYPE_C128, &q));
    TN_TRY(room(R, TN_DTYPE_C128, &r));
    job j = {.one = qr_one,
             .in = {a, tau},
             .out = {q, r},
             .m = m,
             .n = n,
             .k = wants_q ? columns(Q) : 0};
    TN_TRY(tni_pool_for(batches(A), 1, run, &j));
    if (wants_q)
        TN_TRY(take(Q, q));
    return take(R, r);
}

tn_status tni_cpu_geqrf(tn_tensor *self, tn_tensor *out0, tn_tensor *out1)
{
    int64_t m = rows(self), n = columns(self);
    TN_AUTO(tn_tensor) a = NULL;
    TN_AUTO(tn_tensor) tau = NULL;
    TN_TRY(copy_of(self, &a));
    TN_TRY(room(out1, TN_DTYPE_C128, &tau));
    job j = {.one = qr_one, .in = {a, tau}, .m = m, .n = n};
    TN_TRY(tni_pool_for(batches(self), 1, run, &j));
    TN_TRY(take(out0, a));
    return take(out1, tau);
}

/* ---- eigenvalues and singular values ---- */

static tn_status eigh_one(const job *j, int64_t b)
{
    cd *a = matrix(j->in[0], b);
    int64_t n = j->n;
    for (int64_t r = 0; r < n; r++) { /* from the triangle that counts */
        a[r * n + r] = creal(a[r * n + r]);
        for (int64_t c = 0; c < r; c++)
            if (j->flag)
                a[r * n + c] = conj(a[c * n + r]);
            else
                a[c * n + r] = conj(a[r * n + c]);
    }
    tni_factor_hermitian(a, n, j->real + b * n, j->out[0] ? matrix(j->out[0], b) : NULL);
    return TN_OK;
}

tn_status tni_cpu__linalg_eigh(tn_tensor *A, const char *UPLO, bool compute_v,
                               tn_tensor *eigenvalues, tn_tensor *eigenvectors)
{
    TN_AUTO(tn_tensor) a = NULL;
    TN_AUTO(tn_tensor) v = NULL;
    TN_AUTO(tn_tensor) values = NULL;
    TN_TRY(copy_of(A, &a));
    if (compute_v)
        TN_TRY(room(A, TN_DTYPE_C128, &v));
    TN_TRY(room(eigenvalues, TN_DTYPE_F64, &values));
    job j = {.one = eigh_one,
             .in = {a},
             .out = {v},
             .n = columns(A),
             .real = values->data,
             .flag = UPLO[0] == 'U' || UPLO[0] == 'u'};
    TN_TRY(tni_pool_for(batches(A), 1, run, &j));
    TN_TRY(take(eigenvalues, values));
    return compute_v ? take(eigenvectors, v) : TN_OK;
}

static tn_status eig_one(const job *j, int64_t b)
{
    j->info[b] =
        (int32_t)tni_factor_general(matrix(j->in[0], b), j->n, (cd *)j->out[1]->data + b * j->n,
                                    matrix(j->out[0], b), matrix(j->in[1], b));
    return TN_OK;
}

tn_status tni_cpu_linalg_eig(tn_tensor *self, tn_tensor *eigenvalues, tn_tensor *eigenvectors)
{
    TN_AUTO(tn_tensor) a = NULL;
    TN_AUTO(tn_tensor) z = NULL;
    TN_AUTO(tn_tensor) v = NULL;
    TN_AUTO(tn_tensor) values = NULL;
    TN_AUTO(tn_tensor) info = NULL;
    int64_t n = columns(self), count = batches(self), which = 0;
    TN_TRY(copy_of(self, &a));
    TN_TRY(room(self, TN_DTYPE_C128, &z));
    TN_TRY(room(self, TN_DTYPE_C128, &v));
    TN_TRY(room(eigenvalues, TN_DTYPE_C128, &values));
    TN_TRY(tni_tensor_new(1, &count, NULL, TN_DTYPE_I32, TN_CPU, &info));
    const cd *x = a->data;
    for (int64_t i = 0; i < a->numel; i++)
        TN_CHECK(isfinite(creal(x[i])) && isfinite(cimag(x[i])), TN_INVALID,
                 "torch.linalg.eig: input tensor should not contain infs or NaNs.");
    job j = {.one = eig_one, .in = {a, z}, .out = {v, values}, .n = n, .info = info->data};
    TN_TRY(tni_pool_for(count, 1, run, &j));
    TN_CHECK(!failed(j.info, count, &which), TN_LINALG,
             "linalg.eig: The algorithm failed to converge.");
    TN_TRY(take(eigenvalues, values));
    return take(eigenvectors, v);
}

typedef struct svd_job {
    tn_tensor *a, *u, *v, *s, *work; /* u [m, wide_u], v [n, wide_v] by columns */
    int64_t m, n, k, wide_u, wide_v;
    bool values; /* and nothing else */
} svd_job;

/* @p narrow [rows, k] into the first columns of @p wide, the others orthogonal to them. */
static void widened(const cd *narrow, int64_t count, int64_t k, cd *wide, int64_t width)
{
    for (int64_t r = 0; r < count; r++)
        for (int64_t c = 0; c < k; c++)
            wide[r * width + c] = narrow[r * k + c];
    for (int64_t c = k; c < width; c++)
        tni_factor_complete(wide, count, width, c);
}

static tn_status svd_run(int64_t begin, int64_t end, void *arg)
{
    const svd_job *j = arg;
    int64_t most = j->m > j->n ? j->m : j->n;
    for (int64_t b = begin; b < end; b++) {
        cd *work = (cd *)j->work->data + b * (2 * most * j->k + most * j->k);
        cd *u = work + most * j->k, *v = u + most * j->k;
        double *s = (double *)j->s->data + b * j->k;
        cd *a = (cd *)j->a->data + b * j->m * j->n;
        tni_factor_singular(a, j->m, j->n, u, s, j->values ? NULL : v, work);
        if (j->values)
            continue;
        widened(u, j->m, j->k, (cd *)j->u->data + b * j->m * j->wide_u, j->wide_u);
        cd *to = (cd *)j->v->data + b * j->n * j->wide_v; /* V, then its adjoint over it */
        widened(v, j->n, j->k, to, j->wide_v);
    }
    return TN_OK;
}

tn_status tni_cpu__linalg_svd(tn_tensor *A, bool full_matrices, bool compute_uv, const char *driver,
                              tn_tensor *U, tn_tensor *S, tn_tensor *Vh)
{
    (void)driver;
    svd_job j = {.m = rows(A), .n = columns(A), .values = !compute_uv};
    j.k = j.m < j.n ? j.m : j.n;
    j.wide_u = full_matrices ? j.m : j.k;
    j.wide_v = full_matrices ? j.n : j.k;
    int64_t most = j.m > j.n ? j.m : j.n, count = batches(A);
    int64_t u_n = count * j.m * j.wide_u, v_n = count * j.n * j.wide_v,
            w_n = count * 3 * most * j.k;
    TN_AUTO(tn_tensor) a = NULL;
    TN_AUTO(tn_tensor) u = NULL;
    TN_AUTO(tn_tensor) v = NULL;
    TN_AUTO(tn_tensor) s = NULL;
    TN_AUTO(tn_tensor) work = NULL;
    TN_TRY(copy_of(A, &a));
    const cd *x = a->data;
    for (int64_t i = 0; i < a->numel; i++)
        TN_CHECK(isfinite(creal(x[i])) && isfinite(cimag(x[i])), TN_LINALG,
                 "linalg.svd: The algorithm failed to converge because the input matrix contained "
                 "non-finite values.");
    TN_TRY(tni_tensor_new(1, &u_n, NULL, TN_DTYPE_C128, TN_CPU, &u));
    TN_TRY(tni_tensor_new(1, &v_n, NULL, TN_DTYPE_C128, TN_CPU, &v));
    TN_TRY(room(S, TN_DTYPE_F64, &s));
    TN_TRY(tni_tensor_new(1, &w_n, NULL, TN_DTYPE_C128, TN_CPU, &work));
    j.a = a;
    j.u = u;
    j.v = v;
    j.s = s;
    j.work = work;
    TN_TRY(tni_pool_for(count, 1, svd_run, &j));
    TN_TRY(take(S, s));
    if (!compute_uv || (U->numel == 0 && Vh->numel == 0))
        return TN_OK;
    TN_AUTO(tn_tensor) shaped_u = NULL;
    TN_AUTO(tn_tensor) adjoint = NULL;
    TN_TRY(room(U, TN_DTYPE_C128, &shaped_u));
    TN_TRY(room(Vh, TN_DTYPE_C128, &adjoint));
    if (u_n)
        memcpy(shaped_u->data, u->data, (size_t)u_n * sizeof(cd));
    for (int64_t b = 0; b < count; b++)
        for (int64_t r = 0; r < j.n; r++)
            for (int64_t c = 0; c < j.wide_v; c++)
                matrix(adjoint, b)[c * j.n + r] =
                    conj(((cd *)v->data)[(b * j.n + r) * j.wide_v + c]);
    TN_TRY(take(U, shaped_u));
    return take(Vh, adjoint);
}
