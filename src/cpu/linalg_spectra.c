/* SPDX-License-Identifier: MIT */
/* cpu/linalg_spectra.c: QR, eigenvalues and singular values of batches of matrices: see linalg.h. A
 * library that finds no end of one of them gives the batch back to us. */
#include <math.h>
#include <string.h>
#include "base/pool.h"
#include "cpu/linalg.h"
#include "gen/cpu.h"

typedef tni_cd cd;
typedef tni_linalg_job job;

/* ---- QR ---- */

/* All by columns: those of R up to the diagonal, and those of Q over the reflectors. */
static tn_status qr_of_library(const job *j, int64_t b)
{
    int64_t k = j->m < j->n ? j->m : j->n, least = j->k < j->n ? j->k : j->n;
    size_t item = j->lib->item, column = (size_t)j->m * item;
    char *a = tni_linalg_matrix(j->in[0], b), *tau = tni_linalg_vector(j->in[1], b, k);
    TN_TRY(j->lib->reflect((int)j->m, (int)j->n, a, tau));
    if (j->out[1]) {
        int64_t height = tni_linalg_rows(j->out[1]);
        char *r = tni_linalg_matrix(j->out[1], b);
        for (int64_t c = 0; c < j->n; c++) {
            size_t kept = (size_t)(c < k ? c + 1 : k) * item, whole = (size_t)height * item;
            memcpy(r + (size_t)c * whole, a + (size_t)c * column, kept);
            memset(r + (size_t)c * whole + kept, 0, whole - kept);
        }
    }
    if (!j->out[0])
        return TN_OK;
    char *q = tni_linalg_matrix(j->out[0], b);
    memcpy(q, a, (size_t)least * column);
    return j->lib->product((int)j->m, (int)j->k, (int)k, q, tau);
}

static tn_status qr_one(const job *j, int64_t b)
{
    if (j->lib)
        return qr_of_library(j, b);
    int64_t k = j->m < j->n ? j->m : j->n, width = j->k; /* of Q */
    cd *a = tni_linalg_matrix(j->in[0], b), *tau = (cd *)j->in[1]->data + b * k;
    tni_factor_reflect(a, j->m, j->n, tau);
    if (j->out[0])
        tni_factor_product(a, j->m, j->n, tau, k, tni_linalg_matrix(j->out[0], b), width);
    cd *r = j->out[1] ? tni_linalg_matrix(j->out[1], b) : NULL;
    for (int64_t i = 0; r && i < tni_linalg_rows(j->out[1]); i++)
        for (int64_t c = 0; c < j->n; c++)
            r[i * j->n + c] = i <= c && i < k ? a[i * j->n + c] : 0.0;
    return TN_OK;
}

tn_status tni_cpu_linalg_qr(tn_tensor *A, const char *mode, tn_tensor *Q, tn_tensor *R)
{
    int64_t m = tni_linalg_rows(A), n = tni_linalg_columns(A), k = m < n ? m : n,
            all = tni_linalg_batches(A) * k;
    TN_AUTO(tn_tensor) a = NULL;
    TN_AUTO(tn_tensor) tau = NULL;
    TN_AUTO(tn_tensor) q = NULL;
    TN_AUTO(tn_tensor) r = NULL;
    bool wants_q = strcmp(mode, "r") != 0;
    const tni_lapack *lib;
    TN_TRY(tni_linalg_start((tni_linalg_form){.use = TNI_LAPACK_QR, .ours = TN_DTYPE_C128}, A, &lib,
                            &a));
    tn_dtype dtype = (tn_dtype)a->dtype;
    TN_TRY(tni_tensor_new(1, &all, NULL, dtype, TN_CPU, &tau));
    if (wants_q)
        TN_TRY(tni_linalg_room(Q, dtype, lib, &q));
    TN_TRY(tni_linalg_room(R, dtype, lib, &r));
    job j = {.one = qr_one,
             .lib = lib,
             .in = {a, tau},
             .out = {q, r},
             .m = m,
             .n = n,
             .k = wants_q ? tni_linalg_columns(Q) : 0};
    TN_TRY(tni_linalg_run(&j, tni_linalg_batches(A)));
    if (wants_q)
        TN_TRY(tni_linalg_take(Q, q));
    return tni_linalg_take(R, r);
}

tn_status tni_cpu_geqrf(tn_tensor *self, tn_tensor *out0, tn_tensor *out1)
{
    int64_t m = tni_linalg_rows(self), n = tni_linalg_columns(self);
    TN_AUTO(tn_tensor) a = NULL;
    TN_AUTO(tn_tensor) tau = NULL;
    const tni_lapack *lib;
    TN_TRY(tni_linalg_start((tni_linalg_form){.use = TNI_LAPACK_QR, .ours = TN_DTYPE_C128}, self,
                            &lib, &a));
    TN_TRY(tni_linalg_room(out1, (tn_dtype)a->dtype, false, &tau));
    job j = {.one = qr_one, .lib = lib, .in = {a, tau}, .m = m, .n = n};
    TN_TRY(tni_linalg_run(&j, tni_linalg_batches(self)));
    TN_TRY(tni_linalg_take(out0, a));
    return tni_linalg_take(out1, tau);
}

/* ---- eigenvalues ---- */

/* Computes by the library where there is one; *done: it found an end of all of them. */
static tn_status by_library(job *j, int64_t count, bool *done)
{
    TN_AUTO(tn_tensor) info = NULL;
    int64_t which;
    *done = false;
    if (!j->lib)
        return TN_OK;
    TN_TRY(tni_tensor_new(1, &count, NULL, TN_DTYPE_I32, TN_CPU, &info));
    j->info = info->data;
    TN_TRY(tni_linalg_run(j, count));
    *done = !tni_linalg_failed(j->info, count, &which);
    return TN_OK;
}

static tn_status eigh_of_library(const job *j, int64_t b)
{
    void *a = tni_linalg_matrix(j->in[0], b), *values = tni_linalg_vector(j->out[0], b, j->n);
    TN_TRY(j->lib->hermitian((int)j->n, a, j->flag, j->flag2, values, j->info + b));
    if (j->flag2)
        j->lib->settle((int)j->n, a);
    return TN_OK;
}

static tn_status eigh_one(const job *j, int64_t b)
{
    cd *a = tni_linalg_matrix(j->in[0], b);
    int64_t n = j->n;
    for (int64_t r = 0; r < n; r++) { /* from the triangle that counts */
        a[r * n + r] = creal(a[r * n + r]);
        for (int64_t c = 0; c < r; c++)
            if (j->flag)
                a[r * n + c] = conj(a[c * n + r]);
            else
                a[c * n + r] = conj(a[r * n + c]);
    }
    tni_factor_hermitian(a, n, tni_linalg_vector(j->out[1], b, n),
                         j->out[0] ? tni_linalg_matrix(j->out[0], b) : NULL);
    return TN_OK;
}

tn_status tni_cpu__linalg_eigh(tn_tensor *A, const char *UPLO, bool compute_v,
                               tn_tensor *eigenvalues, tn_tensor *eigenvectors)
{
    TN_AUTO(tn_tensor) a = NULL;
    TN_AUTO(tn_tensor) own = NULL;
    TN_AUTO(tn_tensor) v = NULL;
    TN_AUTO(tn_tensor) values = NULL;
    TN_AUTO(tn_tensor) wide = NULL;
    const bool upper = UPLO[0] == 'U' || UPLO[0] == 'u';
    bool done;
    job j = {.one = eigh_of_library, .n = tni_linalg_columns(A), .flag = upper, .flag2 = compute_v};
    TN_TRY(tni_linalg_start((tni_linalg_form){.use = TNI_LAPACK_SPECTRUM,
                                              .part = upper ? TNI_LINALG_UPPER : TNI_LINALG_LOWER,
                                              .ours = TN_DTYPE_C128},
                            A, &j.lib, &a));
    TN_TRY(tni_linalg_room(eigenvalues, (tn_dtype)eigenvalues->dtype, false, &values));
    j.in[0] = a;
    j.out[0] = values;
    TN_TRY(by_library(&j, tni_linalg_batches(A), &done));
    if (done) {
        TN_TRY(tni_linalg_take(eigenvalues, values));
        return compute_v ? tni_linalg_take(eigenvectors, a) : TN_OK;
    }
    if (j.lib)
        TN_TRY(tni_linalg_copy(A, TN_DTYPE_C128, false, &own));
    if (compute_v)
        TN_TRY(tni_linalg_room(A, TN_DTYPE_C128, false, &v));
    TN_TRY(tni_linalg_room(eigenvalues, TN_DTYPE_F64, false, &wide));
    j = (job){.one = eigh_one,
              .in = {own ? own : a},
              .out = {v, wide},
              .n = tni_linalg_columns(A),
              .flag = upper};
    TN_TRY(tni_linalg_run(&j, tni_linalg_batches(A)));
    TN_TRY(tni_linalg_take(eigenvalues, wide));
    return compute_v ? tni_linalg_take(eigenvectors, v) : TN_OK;
}

static tn_status eig_of_library(const job *j, int64_t b)
{
    return j->lib->general((int)j->n, tni_linalg_matrix(j->in[0], b),
                           tni_linalg_vector(j->out[1], b, j->n),
                           j->out[0] ? tni_linalg_matrix(j->out[0], b) : NULL, j->info + b);
}

static tn_status eig_one(const job *j, int64_t b)
{
    j->info[b] = (int32_t)tni_factor_general(
        tni_linalg_matrix(j->in[0], b), j->n, (cd *)j->out[1]->data + b * j->n,
        tni_linalg_matrix(j->out[0], b), tni_linalg_matrix(j->in[1], b));
    return TN_OK;
}

/* What neither has infinities nor NaNs, by our own algorithm. */
static tn_status own_eig(tn_tensor *a, tn_tensor *eigenvalues, tn_tensor *eigenvectors)
{
    TN_AUTO(tn_tensor) z = NULL;
    TN_AUTO(tn_tensor) v = NULL;
    TN_AUTO(tn_tensor) values = NULL;
    TN_AUTO(tn_tensor) info = NULL;
    int64_t n = tni_linalg_columns(a), count = tni_linalg_batches(a), which = 0;
    TN_TRY(tni_linalg_room(a, TN_DTYPE_C128, false, &z));
    TN_TRY(tni_linalg_room(a, TN_DTYPE_C128, false, &v));
    TN_TRY(tni_linalg_room(eigenvalues, TN_DTYPE_C128, false, &values));
    TN_TRY(tni_tensor_new(1, &count, NULL, TN_DTYPE_I32, TN_CPU, &info));
    const cd *x = a->data;
    for (int64_t i = 0; i < a->numel; i++)
        TN_CHECK(isfinite(creal(x[i])) && isfinite(cimag(x[i])), TN_INVALID,
                 "torch.linalg.eig: input tensor should not contain infs or NaNs.");
    job j = {.one = eig_one, .in = {a, z}, .out = {v, values}, .n = n, .info = info->data};
    TN_TRY(tni_linalg_run(&j, count));
    TN_CHECK(!tni_linalg_failed(j.info, count, &which), TN_LINALG,
             "linalg.eig: The algorithm failed to converge.");
    TN_TRY(tni_linalg_take(eigenvalues, values));
    return eigenvectors ? tni_linalg_take(eigenvectors, v) : TN_OK;
}

/* NULL for @p eigenvectors: values alone. */
static tn_status eig(tn_tensor *self, tn_tensor *eigenvalues, tn_tensor *eigenvectors)
{
    TN_AUTO(tn_tensor) a = NULL;
    TN_AUTO(tn_tensor) v = NULL;
    TN_AUTO(tn_tensor) values = NULL;
    tn_dtype dtype = (tn_dtype)eigenvalues->dtype;
    bool done;
    job j = {.one = eig_of_library, .n = tni_linalg_columns(self)};
    TN_TRY(tni_linalg_start((tni_linalg_form){.use = TNI_LAPACK_SPECTRUM, .ours = TN_DTYPE_C128},
                            self, &j.lib, &a));
    if (!j.lib)
        return own_eig(a, eigenvalues, eigenvectors);
    TN_TRY(tni_linalg_room(eigenvalues, dtype, false, &values));
    if (eigenvectors)
        TN_TRY(tni_linalg_room(self, dtype, true, &v));
    j.in[0] = a;
    j.out[0] = v;
    j.out[1] = values;
    TN_TRY(by_library(&j, tni_linalg_batches(self), &done));
    if (!done) {
        TN_AUTO(tn_tensor) own = NULL;
        TN_TRY(tni_linalg_copy(self, TN_DTYPE_C128, false, &own));
        return own_eig(own, eigenvalues, eigenvectors);
    }
    TN_TRY(tni_linalg_take(eigenvalues, values));
    return eigenvectors ? tni_linalg_take(eigenvectors, v) : TN_OK;
}

tn_status tni_cpu_linalg_eig(tn_tensor *self, tn_tensor *eigenvalues, tn_tensor *eigenvectors)
{
    return eig(self, eigenvalues, eigenvectors);
}

tn_status tni_cpu_eigenvalues(tn_tensor *self, tn_tensor *out)
{
    return eig(self, out, NULL);
}

/* ---- singular values ---- */

static tn_status svd_of_library(const job *j, int64_t b)
{
    char job_ = !j->out[0] ? 'N' : j->flag ? 'A' : 'S';
    int64_t k = j->m < j->n ? j->m : j->n;
    return j->lib->singular(job_, (int)j->m, (int)j->n, tni_linalg_matrix(j->in[0], b),
                            tni_linalg_vector(j->out[1], b, k),
                            j->out[0] ? tni_linalg_matrix(j->out[0], b) : NULL,
                            j->out[2] ? tni_linalg_matrix(j->out[2], b) : NULL, j->info + b);
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

/* By our own algorithm, of a copy. */
static tn_status own_svd(tn_tensor *a, bool full_matrices, bool compute_uv, tn_tensor *U,
                         tn_tensor *S, tn_tensor *Vh)
{
    if (S->numel == 0 && (!compute_uv || (U->numel == 0 && Vh->numel == 0)))
        return TN_OK; /* of matrices without elements there may be any number */
    svd_job j = {.m = tni_linalg_rows(a), .n = tni_linalg_columns(a), .values = !compute_uv};
    j.k = j.m < j.n ? j.m : j.n;
    j.wide_u = full_matrices ? j.m : j.k;
    j.wide_v = full_matrices ? j.n : j.k;
    int64_t most = j.m > j.n ? j.m : j.n, count = tni_linalg_batches(a);
    int64_t u_n = count * j.m * j.wide_u, v_n = count * j.n * j.wide_v,
            w_n = count * 3 * most * j.k;
    TN_AUTO(tn_tensor) u = NULL;
    TN_AUTO(tn_tensor) v = NULL;
    TN_AUTO(tn_tensor) s = NULL;
    TN_AUTO(tn_tensor) work = NULL;
    const cd *x = a->data;
    for (int64_t i = 0; i < a->numel; i++)
        TN_CHECK(isfinite(creal(x[i])) && isfinite(cimag(x[i])), TN_LINALG,
                 "linalg.svd: The algorithm failed to converge because the input matrix contained "
                 "non-finite values.");
    TN_TRY(tni_tensor_new(1, &u_n, NULL, TN_DTYPE_C128, TN_CPU, &u));
    TN_TRY(tni_tensor_new(1, &v_n, NULL, TN_DTYPE_C128, TN_CPU, &v));
    TN_TRY(tni_linalg_room(S, TN_DTYPE_F64, false, &s));
    TN_TRY(tni_tensor_new(1, &w_n, NULL, TN_DTYPE_C128, TN_CPU, &work));
    j.a = a;
    j.u = u;
    j.v = v;
    j.s = s;
    j.work = work;
    TN_TRY(tni_pool_for(count, 1, svd_run, &j));
    TN_TRY(tni_linalg_take(S, s));
    if (!compute_uv || (U->numel == 0 && Vh->numel == 0))
        return TN_OK;
    TN_AUTO(tn_tensor) shaped_u = NULL;
    TN_AUTO(tn_tensor) adjoint = NULL;
    TN_TRY(tni_linalg_room(U, TN_DTYPE_C128, false, &shaped_u));
    TN_TRY(tni_linalg_room(Vh, TN_DTYPE_C128, false, &adjoint));
    if (u_n)
        memcpy(shaped_u->data, u->data, (size_t)u_n * sizeof(cd));
    for (int64_t b = 0; b < count; b++)
        for (int64_t r = 0; r < j.n; r++)
            for (int64_t c = 0; c < j.wide_v; c++)
                ((cd *)tni_linalg_matrix(adjoint, b))[c * j.n + r] =
                    conj(((cd *)v->data)[(b * j.n + r) * j.wide_v + c]);
    TN_TRY(tni_linalg_take(U, shaped_u));
    return tni_linalg_take(Vh, adjoint);
}

tn_status tni_cpu__linalg_svd(tn_tensor *A, bool full_matrices, bool compute_uv, const char *driver,
                              tn_tensor *U, tn_tensor *S, tn_tensor *Vh)
{
    TN_AUTO(tn_tensor) a = NULL;
    TN_AUTO(tn_tensor) u = NULL;
    TN_AUTO(tn_tensor) s = NULL;
    TN_AUTO(tn_tensor) vh = NULL;
    (void)driver;
    bool done;
    job j = {.one = svd_of_library,
             .m = tni_linalg_rows(A),
             .n = tni_linalg_columns(A),
             .flag = full_matrices};
    TN_TRY(tni_linalg_start((tni_linalg_form){.use = TNI_LAPACK_SPECTRUM, .ours = TN_DTYPE_C128}, A,
                            &j.lib, &a));
    if (!j.lib)
        return own_svd(a, full_matrices, compute_uv, U, S, Vh);
    TN_TRY(tni_linalg_room(S, (tn_dtype)S->dtype, false, &s));
    if (compute_uv) {
        TN_TRY(tni_linalg_room(U, j.lib->dtype, true, &u));
        TN_TRY(tni_linalg_room(Vh, j.lib->dtype, true, &vh));
    }
    j.in[0] = a;
    j.out[0] = u;
    j.out[1] = s;
    j.out[2] = vh;
    TN_TRY(by_library(&j, tni_linalg_batches(A), &done));
    if (!done) {
        TN_AUTO(tn_tensor) own = NULL;
        TN_TRY(tni_linalg_copy(A, TN_DTYPE_C128, false, &own));
        return own_svd(own, full_matrices, compute_uv, U, S, Vh);
    }
    TN_TRY(tni_linalg_take(S, s));
    if (!compute_uv)
        return TN_OK;
    TN_TRY(tni_linalg_take(U, u));
    return tni_linalg_take(Vh, vh);
}

/* ---- least squares ---- */

static tn_status least_squares_of_library(const job *j, int64_t b, double rcond)
{
    int64_t lead = j->m > j->n ? j->m : j->n;
    size_t item = j->lib->item;
    const char *from = tni_linalg_matrix(j->in[1], b);
    char *to = tni_linalg_matrix(j->out[0], b);
    for (int64_t c = 0; c < j->k; c++) {
        memcpy(to + (size_t)(c * lead) * item, from + (size_t)(c * j->m) * item,
               (size_t)j->m * item);
        memset(to + (size_t)(c * lead + j->m) * item, 0, (size_t)(lead - j->m) * item);
    }
    return j->lib->least_squares((int)j->m, (int)j->n, (int)j->k, tni_linalg_matrix(j->in[0], b),
                                 to, rcond, j->info + b);
}

/* By the singular values: V S^-1 U^H b, of those that count. */
static int32_t by_singular_values(const cd *u, const double *s, const cd *vh, const job *j,
                                  double rcond, const cd *from, cd *to)
{
    int64_t least = j->m < j->n ? j->m : j->n, rank = 0;
    while (rank < least && s[rank] > rcond * s[0])
        rank++;
    for (int64_t p = 0; p < rank; p++)
        for (int64_t c = 0; c < j->k; c++) {
            cd dot = 0;
            for (int64_t i = 0; i < j->m; i++)
                dot += conj(u[i * least + p]) * from[i * j->k + c];
            dot /= s[p];
            for (int64_t i = 0; i < j->n; i++)
                to[i * j->k + c] += dot * conj(vh[p * j->n + i]);
        }
    return (int32_t)rank;
}

/* Of copies by rows, over @p x, which is 0. */
static tn_status own_least_squares(const job *j, int64_t count, double rcond)
{
    TN_AUTO(tn_tensor) u = NULL;
    TN_AUTO(tn_tensor) s = NULL;
    TN_AUTO(tn_tensor) vh = NULL;
    int64_t least = j->m < j->n ? j->m : j->n;
    TN_TRY(tni_tensor_new(3, (int64_t[]){count, j->m, least}, NULL, TN_DTYPE_C128, TN_CPU, &u));
    TN_TRY(tni_tensor_new(2, (int64_t[]){count, least}, NULL, TN_DTYPE_F64, TN_CPU, &s));
    TN_TRY(tni_tensor_new(3, (int64_t[]){count, least, j->n}, NULL, TN_DTYPE_C128, TN_CPU, &vh));
    TN_TRY(own_svd(j->in[0], false, true, u, s, vh));
    for (int64_t b = 0; b < count; b++)
        j->info[b] = by_singular_values(
            tni_linalg_matrix(u, b), tni_linalg_vector(s, b, least), tni_linalg_matrix(vh, b), j,
            rcond, tni_linalg_matrix(j->in[1], b), tni_linalg_matrix(j->out[0], b));
    return TN_OK;
}

tn_status tni_cpu_least_squares(tn_tensor *A, tn_tensor *B, double rcond, tn_tensor *solution,
                                tn_tensor *rank)
{
    TN_AUTO(tn_tensor) a = NULL;
    TN_AUTO(tn_tensor) b = NULL;
    TN_AUTO(tn_tensor) x = NULL;
    TN_AUTO(tn_tensor) ranks = NULL;
    int64_t count = tni_linalg_batches(A);
    job j = {.m = tni_linalg_rows(A), .n = tni_linalg_columns(A), .k = tni_linalg_columns(B)};
    TN_TRY(tni_linalg_start((tni_linalg_form){.use = TNI_LAPACK_QR, .ours = TN_DTYPE_C128}, A,
                            &j.lib, &a));
    tn_dtype dtype = (tn_dtype)a->dtype;
    TN_TRY(tni_linalg_copy(B, dtype, j.lib, &b));
    TN_TRY(tni_linalg_room(solution, dtype, j.lib, &x));
    TN_TRY(tni_linalg_room(rank, TN_DTYPE_I32, false, &ranks));
    j.in[0] = a;
    j.in[1] = b;
    j.out[0] = x;
    j.info = ranks->data;
    if (!j.lib && x->numel)
        memset(x->data, 0, (size_t)x->numel * sizeof(cd));
    if (!j.lib)
        TN_TRY(own_least_squares(&j, count, rcond));
    for (int64_t i = 0; j.lib && i < count; i++)
        TN_TRY(least_squares_of_library(&j, i, rcond));
    TN_TRY(tni_linalg_take(solution, x));
    return tni_linalg_take(rank, ranks);
}
