/* SPDX-License-Identifier: MIT */
/* cpu/linalg.c: Cholesky and LU of batches of matrices, and what is solved by them. Those that have
 * other factors are in linalg_spectra.c; see linalg.h. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "core/scalar.h"
#include "cpu/copy.h"
#include "cpu/factor_real.h"
#include "cpu/linalg.h"
#include "gen/cpu.h"

typedef tni_cd cd;
typedef tni_linalg_job job;

#define BATCH_TEXT(text, size, t, which)                                      \
    snprintf(text, size, (t)->ndim > 2 ? "(Batch element %lld): " : "%.0lld", \
             (long long)((t)->ndim > 2 ? (which) : 0))

/* What we compute in: doubles, but large matrices of floats as they are. */
static tn_dtype ours(const tn_tensor *t)
{
    enum { LARGE = 64 };
    bool small = tni_linalg_rows(t) < LARGE || tni_linalg_columns(t) < LARGE;
    return tn_dtype_is_complex((tn_dtype)t->dtype) ? TN_DTYPE_C128
           : t->dtype == TN_DTYPE_F32 && !small    ? TN_DTYPE_F32
                                                   : TN_DTYPE_F64;
}

/* ---- Cholesky ---- */

/* The lower factor. Where an upper one is wanted the matrix lies the other way: its transposed has
 * the transposed of that as its lower factor. */
static tn_status cholesky_one(const job *j, int64_t b)
{
    char *a = tni_linalg_matrix(j->in[0], b);
    const tni_real_blocks *real = tni_real_blocks_of((tn_dtype)j->in[0]->dtype);
    if (real)
        return real->cholesky(a, j->n, j->info + b);
    if (!j->lib)
        return tni_factor_cholesky((cd *)a, j->n, j->info + b);
    size_t item = j->lib->item, column = (size_t)j->n * item;
    j->lib->cholesky((int)j->n, a, j->info + b);
    for (int64_t c = 1; c < j->n; c++)
        memset(a + (size_t)c * column, 0, (size_t)c * item);
    return TN_OK;
}

tn_status tni_cpu_linalg_cholesky_ex(tn_tensor *self, bool upper, bool check_errors, tn_tensor *L,
                                     tn_tensor *info)
{
    TN_AUTO(tn_tensor) a = NULL;
    TN_AUTO(tn_tensor) failures = NULL;
    char text[64];
    int64_t which = 0;
    const tni_lapack *lib;
    TN_TRY(tni_linalg_start((tni_linalg_form){.use = TNI_LAPACK_FACTOR,
                                              .part = TNI_LINALG_LOWER,
                                              .turned = upper,
                                              .ours = ours(self)},
                            self, &lib, &a));
    TN_TRY(tni_linalg_room(info, TN_DTYPE_I32, false, &failures));
    job j = {.one = cholesky_one,
             .lib = lib,
             .in = {a},
             .n = tni_linalg_columns(self),
             .info = failures->data};
    TN_TRY(tni_linalg_run(&j, tni_linalg_batches(self)));
    int64_t order = check_errors ? tni_linalg_failed(j.info, tni_linalg_batches(self), &which) : 0;
    BATCH_TEXT(text, sizeof text, self, which);
    TN_CHECK(
        !order, TN_LINALG,
        "linalg.cholesky_ex: %sThe factorization could not be completed because the input is not "
        "positive-definite (the leading minor of order %lld is not positive-definite).",
        text, (long long)order);
    TN_TRY(tni_linalg_take(L, a));
    return tni_linalg_take(info, failures);
}

/* ---- LU ---- */

static tn_status lu_one(const job *j, int64_t b)
{
    int32_t *pivots = j->pivots + b * j->k, *info = j->info + b;
    if (j->lib)
        return tni_lapack_lu(j->lib, j->m, j->n, tni_linalg_matrix(j->in[0], b), pivots, info);
    const tni_real_blocks *real = tni_real_blocks_of((tn_dtype)j->in[0]->dtype);
    if (real)
        return real->lu(tni_linalg_matrix(j->in[0], b), j->m, j->n, pivots, j->flag, info);
    return tni_factor_lu(tni_linalg_matrix(j->in[0], b), j->m, j->n, pivots, j->flag, info);
}

/* LU of a copy of @p self, by columns where @p lib made it, with int32 pivots and info. */
static tn_status factored(tn_tensor *self, bool pivot, const tni_lapack **lib, tn_tensor **lu,
                          tn_tensor **pivots, tn_tensor **info)
{
    int64_t m = tni_linalg_rows(self), n = tni_linalg_columns(self), k = m < n ? m : n,
            b = tni_linalg_batches(self), all = b * k;
    TN_AUTO(tn_tensor) a = NULL;
    TN_AUTO(tn_tensor) p = NULL;
    TN_AUTO(tn_tensor) f = NULL;
    *lib = NULL;
    if (pivot)
        TN_TRY(tni_linalg_start((tni_linalg_form){.use = TNI_LAPACK_FACTOR, .ours = ours(self)},
                                self, lib, &a));
    else
        TN_TRY(tni_linalg_copy(self, ours(self), false, &a));
    TN_TRY(tni_tensor_new(1, &all, NULL, TN_DTYPE_I32, TN_CPU, &p));
    TN_TRY(tni_tensor_new(1, &b, NULL, TN_DTYPE_I32, TN_CPU, &f));
    job j = {.one = lu_one,
             .lib = *lib,
             .in = {a},
             .m = m,
             .n = n,
             .k = k,
             .pivots = p->data,
             .info = f->data,
             .flag = pivot};
    TN_TRY(tni_linalg_run(&j, b));
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
    TN_TRY(tni_linalg_room(to, TN_DTYPE_I32, false, &shaped));
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
    const tni_lapack *lib;
    TN_TRY(factored(A, pivot, &lib, &a, &p, &f));
    int64_t place = check_errors ? tni_linalg_failed(f->data, tni_linalg_batches(A), &which) : 0;
    BATCH_TEXT(text, sizeof text, A, which);
    TN_CHECK(!place, TN_INVALID,
             "torch.linalg.lu_factor_ex: %sU[%lld,%lld] is zero and using it on lu_solve would "
             "result in a "
             "division by zero. If you still want to perform the factorization, consider calling "
             "linalg.lu(A, pivot) or linalg.lu_factor_ex(A, pivot)",
             text, (long long)place, (long long)place);
    TN_TRY(tni_linalg_take(LU, a));
    TN_TRY(take_numbers(pivots, p));
    return take_numbers(info, f);
}

/* Rows of @p x, of @p bytes each, changed over as @p pivots say. */
static void change_rows(char *x, size_t bytes, const int32_t *pivots, int64_t n)
{
    char held[256];
    for (int64_t i = 0; i < n; i++) {
        char *a = x + (size_t)i * bytes, *b = x + (size_t)(pivots[i] - 1) * bytes;
        for (size_t done = 0; a != b && done < bytes; done += sizeof held) {
            size_t part = bytes - done < sizeof held ? bytes - done : sizeof held;
            memcpy(held, a + done, part);
            memcpy(a + done, b + done, part);
            memcpy(b + done, held, part);
        }
    }
}

/* Over @p b, by our own algorithm for the dtype of @p like. */
static tn_status own_triangle(const tn_tensor *like, const void *a, int64_t n, void *b, int64_t k,
                              bool upper, bool unit)
{
    const tni_real_blocks *real = tni_real_blocks_of((tn_dtype)like->dtype);
    return real ? real->triangle((tni_real_view){a, n, 1}, n, b, k, upper, unit)
                : tni_factor_triangle(a, n, b, k, upper, unit);
}

/* Solves in place: rows changed over, then both triangles. */
static tn_status solve_one(const job *j, int64_t b)
{
    const tn_tensor *lu = j->in[0];
    const int32_t *pivots = j->pivots + b * j->n;
    void *a = tni_linalg_matrix(lu, b), *x = tni_linalg_matrix(j->out[0], b);
    if (j->lib)
        return tni_lapack_solve(j->lib, j->n, a, pivots, x, j->k);
    change_rows(x, (size_t)j->k * tn_dtype_size((tn_dtype)lu->dtype), pivots, j->n);
    TN_TRY(own_triangle(lu, a, j->n, x, j->k, false, true));
    return own_triangle(lu, a, j->n, x, j->k, true, false);
}

/* Identities in the sizes of @p like. */
static tn_status identities(const tn_tensor *like, tn_dtype dtype, bool by_columns, tn_tensor **out)
{
    TN_AUTO(tn_tensor) x = NULL;
    int64_t n = tni_linalg_columns(like), count = tni_linalg_batches(like);
    size_t item = tn_dtype_size(dtype);
    TN_TRY(tni_linalg_room(like, dtype, by_columns, &x));
    if (x->numel)
        memset(x->data, 0, (size_t)x->numel * item);
    for (int64_t b = 0; b < count && n > 0; b++)
        for (int64_t i = 0; i < n; i++)
            tni_scalar_store(tn_int(1), dtype,
                             (char *)tni_linalg_matrix(x, b) + (size_t)(i * n + i) * item);
    *out = TN_MOVE(x);
    return TN_OK;
}

/* X of A X = B, by rows or by columns; NULL for B: the identity. */
static tn_status solved(tn_tensor *A, tn_tensor *B, tn_tensor **out, tn_tensor **info)
{
    TN_AUTO(tn_tensor) a = NULL;
    TN_AUTO(tn_tensor) p = NULL;
    TN_AUTO(tn_tensor) x = NULL;
    const tni_lapack *lib;
    TN_TRY(factored(A, true, &lib, &a, &p, info));
    tn_dtype dtype = (tn_dtype)a->dtype;
    TN_TRY(B ? tni_linalg_copy(B, dtype, lib, &x) : identities(A, dtype, lib, &x));
    job j = {.one = solve_one,
             .lib = lib,
             .in = {a},
             .out = {x},
             .n = tni_linalg_columns(A),
             .k = tni_linalg_columns(x),
             .pivots = p->data};
    TN_TRY(tni_linalg_run(&j, tni_linalg_batches(A)));
    *out = TN_MOVE(x);
    return TN_OK;
}

tn_status tni_cpu_linalg_inv_ex(tn_tensor *A, bool check_errors, tn_tensor *inverse,
                                tn_tensor *info)
{
    TN_AUTO(tn_tensor) x = NULL;
    TN_AUTO(tn_tensor) f = NULL;
    char text[64];
    int64_t which = 0, count = tni_linalg_batches(A);
    TN_TRY(solved(A, NULL, &x, &f));
    int64_t place = check_errors ? tni_linalg_failed(f->data, count, &which) : 0;
    BATCH_TEXT(text, sizeof text, A, which);
    TN_CHECK(
        !place, TN_LINALG,
        "linalg.inv_ex: %sThe diagonal element %lld is zero, the inversion could not be completed "
        "because the input matrix is singular.",
        text, (long long)place);
    TN_TRY(tni_linalg_take(inverse, x));
    return take_numbers(info, f);
}

tn_status tni_cpu_solve_square(tn_tensor *A, tn_tensor *B, bool check_errors, tn_tensor *result,
                               tn_tensor *info)
{
    TN_AUTO(tn_tensor) x = NULL;
    TN_AUTO(tn_tensor) f = NULL;
    char text[64];
    int64_t which = 0;
    TN_TRY(solved(A, B, &x, &f));
    bool bad = check_errors && tni_linalg_failed(f->data, tni_linalg_batches(A), &which);
    BATCH_TEXT(text, sizeof text, A, which);
    TN_CHECK(!bad, TN_LINALG,
             "torch.linalg.solve_ex: %sThe solver failed because the input matrix is singular.",
             text);
    TN_TRY(tni_linalg_take(result, x));
    return take_numbers(info, f);
}

static tn_status triangle_one(const job *j, int64_t b)
{
    const tn_tensor *a = j->in[0], *x = j->out[0];
    if (j->lib)
        return tni_lapack_triangle(j->lib, j->n, tni_linalg_matrix(a, b), j->by_rows, j->flag,
                                   j->flag2, tni_linalg_matrix(x, b), j->k);
    return own_triangle(a, tni_linalg_matrix(a, b), j->n, tni_linalg_matrix(x, b), j->k, j->flag,
                        j->flag2);
}

tn_status tni_cpu_solve_triangle(tn_tensor *A, tn_tensor *B, bool upper, bool unitriangular,
                                 tn_tensor *out)
{
    TN_AUTO(tn_tensor) a = NULL;
    TN_AUTO(tn_tensor) x = NULL;
    const tni_lapack *lib = tni_lapack_for(TNI_LAPACK_FACTOR, (tn_dtype)A->dtype,
                                           tni_linalg_rows(A), tni_linalg_columns(A));
    const bool by_rows = A->flags & TNI_CONTIGUOUS;
    tn_dtype dtype = lib ? lib->dtype : ours(A);
    if (lib && (by_rows || tni_linalg_by_columns(A)))
        a = tn_tensor_ref(A);
    else
        TN_TRY(tni_linalg_copy(A, dtype, lib, &a));
    TN_TRY(tni_linalg_copy(B, dtype, lib, &x));
    job j = {.one = triangle_one,
             .lib = lib,
             .by_rows = by_rows,
             .in = {a},
             .out = {x},
             .n = tni_linalg_columns(A),
             .k = tni_linalg_columns(B),
             .flag = upper,
             .flag2 = unitriangular};
    TN_TRY(tni_linalg_run(&j, tni_linalg_batches(A)));
    return tni_linalg_take(out, x);
}

/* The permutations that @p LU_pivots of k numbers make of m rows, as matrices in the sizes of @p P.
 */
static tn_status permutations(const tn_tensor *P, tn_tensor *LU_pivots, int64_t m, int64_t k,
                              int64_t count, tn_tensor **out)
{
    TN_AUTO(tn_tensor) p = NULL;
    TN_AUTO(tn_tensor) pivots = NULL;
    TN_AUTO(tn_tensor) places = NULL;
    tn_dtype dtype = (tn_dtype)P->dtype;
    size_t item = tn_dtype_size(dtype);
    TN_TRY(tni_linalg_room(P, dtype, false, &p));
    TN_TRY(tni_linalg_copy(LU_pivots, TN_DTYPE_I32, false, &pivots));
    TN_TRY(tni_tensor_new(1, &m, NULL, TN_DTYPE_I64, TN_CPU, &places));
    memset(p->data, 0, (size_t)p->numel * item);
    for (int64_t b = 0; b < count && m > 0; b++) {
        int64_t *row = places->data; /* where column i has its 1 */
        const int32_t *order = (const int32_t *)pivots->data + b * k;
        for (int64_t i = 0; i < m; i++)
            row[i] = i;
        for (int64_t i = 0; i < k; i++) { /* columns: P is the inverse of the changes of rows */
            int64_t other = (int64_t)order[i] - 1;
            TN_CHECK(other >= 0 && other < m, TN_INVALID,
                     "pivots passed to lu_unpack must be between 1 and LU.size(-2) inclusive."
                     "Did you properly pass the result of lu_factor?");
            int64_t t = row[i];
            row[i] = row[other];
            row[other] = t;
        }
        for (int64_t i = 0; i < m; i++)
            tni_scalar_store(tn_int(1), dtype,
                             (char *)tni_linalg_matrix(p, b) + (size_t)(row[i] * m + i) * item);
    }
    *out = TN_MOVE(p);
    return TN_OK;
}

/* The lower triangle of @p a, with ones on its diagonal, and the upper one; all by columns. */
static void unpack_one(const job *j, int64_t b)
{
    size_t item = tn_dtype_size((tn_dtype)j->in[0]->dtype);
    const char *a = tni_linalg_matrix(j->in[0], b);
    char *l = tni_linalg_matrix(j->out[0], b), *u = tni_linalg_matrix(j->out[1], b);
    for (int64_t c = 0; c < j->k; c++) {
        char *to = l + (size_t)(c * j->m) * item;
        memset(to, 0, (size_t)c * item);
        tni_scalar_store(tn_int(1), (tn_dtype)j->in[0]->dtype, to + (size_t)c * item);
        memcpy(to + (size_t)(c + 1) * item, a + (size_t)(c * j->m + c + 1) * item,
               (size_t)(j->m - c - 1) * item);
    }
    for (int64_t c = 0; c < j->n; c++) {
        int64_t kept = c < j->k ? c + 1 : j->k;
        char *to = u + (size_t)(c * j->k) * item;
        memcpy(to, a + (size_t)(c * j->m) * item, (size_t)kept * item);
        memset(to + (size_t)kept * item, 0, (size_t)(j->k - kept) * item);
    }
}

/* The permutation as a matrix, the lower factor and the upper one. Nothing is written before the
 * pivots are known to be good. */
tn_status tni_cpu_lu_unpack(tn_tensor *LU_data, tn_tensor *LU_pivots, bool unpack_data,
                            bool unpack_pivots, tn_tensor *P, tn_tensor *L, tn_tensor *U)
{
    int64_t m = tni_linalg_rows(LU_data), n = tni_linalg_columns(LU_data), k = m < n ? m : n,
            count = tni_linalg_batches(LU_data);
    tn_dtype dtype = (tn_dtype)LU_data->dtype;
    TN_AUTO(tn_tensor) a = NULL;
    TN_AUTO(tn_tensor) p = NULL;
    TN_AUTO(tn_tensor) l = NULL;
    TN_AUTO(tn_tensor) u = NULL;
    if (unpack_pivots && P->numel)
        TN_TRY(permutations(P, LU_pivots, m, k, count, &p));
    if (unpack_data) {
        TN_TRY(tni_linalg_copy(LU_data, dtype, true, &a));
        TN_TRY(tni_linalg_room(L, dtype, true, &l));
        TN_TRY(tni_linalg_room(U, dtype, true, &u));
        const job j = {.in = {a}, .out = {l, u}, .m = m, .n = n, .k = k};
        for (int64_t b = 0; b < count && k > 0; b++) /* without rows or columns all are empty */
            unpack_one(&j, b);
        TN_TRY(tni_linalg_take(L, l));
        TN_TRY(tni_linalg_take(U, u));
    }
    return p ? tni_linalg_take(P, p) : TN_OK;
}

/* ---- determinants ---- */

static cd element(const tn_tensor *t, int64_t i)
{
    switch ((tn_dtype)t->dtype) {
    case TN_DTYPE_F32:
        return ((const float *)t->data)[i];
    case TN_DTYPE_F64:
        return ((const double *)t->data)[i];
    case TN_DTYPE_C64:
        return ((const float complex *)t->data)[i];
    default:
        return ((const cd *)t->data)[i];
    }
}

/* Sign or phase, and the logarithm of the size. */
static cd phase_of(const tn_tensor *lu, int64_t b, const int32_t *pivots, int64_t n,
                   double *log_size, cd *product)
{
    cd sign = 1.0;
    *log_size = 0.0;
    *product = 1.0;
    for (int64_t i = 0; i < n; i++) {
        cd d = element(lu, (b * n + i) * n + i);
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
    int64_t n = tni_linalg_columns(A);
    const tni_lapack *lib;
    TN_TRY(factored(A, true, &lib, &a, &p, &f));
    TN_TRY(tni_linalg_room(result ? result : sign, TN_DTYPE_C128, false, &values));
    TN_TRY(tni_linalg_room(result ? result : size, TN_DTYPE_F64, false, &sizes));
    for (int64_t b = 0; b < values->numel; b++) {
        cd product;
        cd s = phase_of(a, b, (const int32_t *)p->data + b * n, n, (double *)sizes->data + b,
                        &product);
        ((cd *)values->data)[b] = result ? product : s;
    }
    if (result)
        return tni_linalg_take(result, values);
    TN_TRY(tni_linalg_take(sign, values));
    return tni_linalg_take(size, sizes);
}

tn_status tni_cpu_linalg_det(tn_tensor *A, tn_tensor *out)
{
    return determinants(A, out, NULL, NULL);
}

tn_status tni_cpu_linalg_slogdet(tn_tensor *A, tn_tensor *sign, tn_tensor *logabsdet)
{
    return determinants(A, NULL, sign, logabsdet);
}
