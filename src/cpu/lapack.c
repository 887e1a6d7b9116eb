/* SPDX-License-Identifier: MIT */
/* cpu/lapack.c: matrices to LAPACK and back: see lapack.h.
 *
 * LAPACK wants columns one after the other where ours has rows, and real numbers for real matrices,
 * which take a quarter of the time and have eigenvalues in exact pairs. */
#include "cpu/lapack.h"
#include "base/alloc.h"
#include "base/once.h"
#include "cpu/blas.h"

#include <dlfcn.h>
#include <math.h>
#include <string.h>

typedef tni_cd cd;

/* Below this size our own algorithms are level: see docs/decisions/0009-dependencies.md. */
enum { LEAST = 16, MOST = 16000 }; /* of which the squares are counted in ints */

/* Arguments by address, and behind them the length of each text, as gfortran has them. */
static struct {
    bool there;
    void (*dsyevd)(const char *, const char *, const int *, double *, const int *, double *,
                   double *, const int *, int *, const int *, int *, size_t, size_t);
    void (*zheevd)(const char *, const char *, const int *, cd *, const int *, double *, cd *,
                   const int *, double *, const int *, int *, const int *, int *, size_t, size_t);
    void (*dgesdd)(const char *, const int *, const int *, double *, const int *, double *,
                   double *, const int *, double *, const int *, double *, const int *, int *,
                   int *, size_t);
    void (*zgesdd)(const char *, const int *, const int *, cd *, const int *, double *, cd *,
                   const int *, cd *, const int *, cd *, const int *, double *, int *, int *,
                   size_t);
    void (*dgeev)(const char *, const char *, const int *, double *, const int *, double *,
                  double *, double *, const int *, double *, const int *, double *, const int *,
                  int *, size_t, size_t);
    void (*zgeev)(const char *, const char *, const int *, cd *, const int *, cd *, cd *,
                  const int *, cd *, const int *, cd *, const int *, double *, int *, size_t,
                  size_t);
} lapack;

static tn_status load(void)
{
    void *library = tni_blas_library();
    if (!library)
        return TN_OK;
    *(void **)&lapack.dsyevd = dlsym(library, "dsyevd_");
    *(void **)&lapack.zheevd = dlsym(library, "zheevd_");
    *(void **)&lapack.dgesdd = dlsym(library, "dgesdd_");
    *(void **)&lapack.zgesdd = dlsym(library, "zgesdd_");
    *(void **)&lapack.dgeev = dlsym(library, "dgeev_");
    *(void **)&lapack.zgeev = dlsym(library, "zgeev_");
    lapack.there = lapack.dsyevd && lapack.zheevd && lapack.dgesdd && lapack.zgesdd &&
                   lapack.dgeev && lapack.zgeev;
    return TN_OK;
}

static bool ready(void)
{
    static tni_once once = TNI_ONCE_INIT;
    return (tni_once_done(&once) || tni_once_run(&once, load, "loading LAPACK") == TN_OK) &&
           lapack.there;
}

/* Whether the library should have it; *out_real: no imaginary part anywhere. */
static bool wants(const cd *a, int64_t m, int64_t n, bool *out_real)
{
    int64_t k = m < n ? m : n;
    if (k < LEAST || m > MOST || n > MOST || !ready())
        return false;
    double sum = 0, imaginary = 0;
    for (int64_t i = 0; i < m * n; i++) {
        sum += creal(a[i]) * 0.0 + cimag(a[i]) * 0.0; /* NaN when one is not finite */
        imaginary = fmax(imaginary, fabs(cimag(a[i])));
    }
    *out_real = imaginary == 0;
    return sum == 0;
}

/* ---- memory ---- */

static void free_block(void *block)
{
    tni_free(*(void **)block);
}
#define ROOM __attribute__((cleanup(free_block)))

static void *room(int64_t count, size_t size)
{
    return tni_alloc((size_t)count * size);
}

/* ---- Hermitian matrices and singular values ---- */

#define T          double
#define NAME(x)    real_##x
#define PART(x)    creal(x)
#define NEEDS_REAL 0
#define CALL_HEEVD(job, n, w, values, work, lwork, rwork, lrwork, iwork, liwork, info) \
    ((void)(lrwork),                                                                   \
     lapack.dsyevd(job, "L", n, w, n, values, work, lwork, iwork, liwork, info, 1, 1))
#define CALL_GESDD(job, m, n, w, s, left, right, k, work, lwork, rwork, iwork, info) \
    lapack.dgesdd(job, m, n, w, m, s, left, m, right, k, work, lwork, iwork, info, 1)
#include "cpu/lapack.inc"

#define T          cd
#define NAME(x)    complex_##x
#define PART(x)    (x)
#define NEEDS_REAL 1
#define CALL_HEEVD(job, n, w, values, work, lwork, rwork, lrwork, iwork, liwork, info) \
    lapack.zheevd(job, "L", n, w, n, values, work, lwork, rwork, lrwork, iwork, liwork, info, 1, 1)
#define CALL_GESDD(job, m, n, w, s, left, right, k, work, lwork, rwork, iwork, info) \
    lapack.zgesdd(job, m, n, w, m, s, left, m, right, k, work, lwork, rwork, iwork, info, 1)
#include "cpu/lapack.inc"

bool tni_lapack_hermitian(const cd *a, int64_t n, double *values, cd *v)
{
    bool real;
    if (!wants(a, n, n, &real))
        return false;
    return real ? real_hermitian(a, (int)n, values, v) : complex_hermitian(a, (int)n, values, v);
}

bool tni_lapack_singular(const cd *a, int64_t m, int64_t n, cd *u, double *s, cd *v)
{
    bool real;
    if (!wants(a, m, n, &real))
        return false;
    return real ? real_singular(a, (int)m, (int)n, u, s, v)
                : complex_singular(a, (int)m, (int)n, u, s, v);
}

/* ---- any matrix ---- */

/* A pair of conjugate values has its vector in two columns: the real parts, the imaginary parts. */
static void open_pairs(int64_t n, const double *im, const double *columns, cd *v)
{
    for (int64_t j = 0; j < n; j++) {
        bool pair = im[j] != 0 && j + 1 < n;
        for (int64_t i = 0; i < n; i++) {
            double x = columns[j * n + i], y = pair ? columns[(j + 1) * n + i] : 0;
            v[i * n + j] = CMPLX(x, y);
            if (pair)
                v[i * n + j + 1] = CMPLX(x, -y);
        }
        j += pair;
    }
}

static bool general_real(const cd *a, int n, cd *values, cd *v)
{
    const int one = 1;
    int info = -1, lwork = -1;
    double best = 0;
    ROOM double *w = real_columns(a, n, n);
    ROOM double *columns = room((int64_t)n * n, sizeof *columns);
    ROOM double *parts = room(2 * (int64_t)n, sizeof *parts);
    if (!w || !columns || !parts)
        return false;
    double *re = parts, *im = parts + n;
    lapack.dgeev("N", "V", &n, w, &n, re, im, NULL, &one, columns, &n, &best, &lwork, &info, 1, 1);
    lwork = (int)best;
    ROOM double *work = info == 0 ? room(lwork, sizeof *work) : NULL;
    if (!work)
        return false;
    lapack.dgeev("N", "V", &n, w, &n, re, im, NULL, &one, columns, &n, work, &lwork, &info, 1, 1);
    if (info != 0)
        return false;
    for (int64_t i = 0; i < n; i++)
        values[i] = CMPLX(re[i], im[i]);
    open_pairs(n, im, columns, v);
    return true;
}

static bool general_complex(const cd *a, int n, cd *values, cd *v)
{
    const int one = 1;
    int info = -1, lwork = -1;
    cd best = 0;
    ROOM cd *w = complex_columns(a, n, n);
    ROOM cd *columns = room((int64_t)n * n, sizeof *columns);
    ROOM double *rwork = room(2 * (int64_t)n, sizeof *rwork);
    if (!w || !columns || !rwork)
        return false;
    lapack.zgeev("N", "V", &n, w, &n, values, NULL, &one, columns, &n, &best, &lwork, rwork, &info,
                 1, 1);
    lwork = (int)creal(best);
    ROOM cd *work = info == 0 ? room(lwork, sizeof *work) : NULL;
    if (!work)
        return false;
    lapack.zgeev("N", "V", &n, w, &n, values, NULL, &one, columns, &n, work, &lwork, rwork, &info,
                 1, 1);
    if (info == 0)
        complex_rows(columns, n, n, v);
    return info == 0;
}

bool tni_lapack_general(const cd *a, int64_t n, cd *values, cd *v)
{
    bool real;
    if (!wants(a, n, n, &real))
        return false;
    return real ? general_real(a, (int)n, values, v) : general_complex(a, (int)n, values, v);
}
