/* SPDX-License-Identifier: MIT */
/* cpu/ldl.c: L D L^T of symmetric matrices and L D L^H of Hermitian ones, with blocks of one or two
 * rows chosen as J. Bunch and L. Kaufman do, step by step as LAPACK's sytf2 and hetf2 have it, so
 * that pivots are the same; and systems with them. In complex doubles, rounded once. */
#include <complex.h>
#include <math.h>
#include <string.h>
#include "base/pool.h"
#include "cpu/copy.h"
#include "cpu/ready.h"
#include "gen/cpu.h"
#include "tenon/ops.h"

typedef double complex cd;

/* One matrix, row by row in memory. */
typedef struct factor {
    cd *a;
    int64_t n;
    bool hermitian;
} factor;

#define A(i, j) (f->a[(i)*f->n + (j)])

/* The adjoint of a number: itself where the matrix is symmetric. */
static cd turned(const factor *f, cd x)
{
    return f->hermitian ? conj(x) : x;
}

static double size_of(cd x)
{
    return fabs(creal(x)) + fabs(cimag(x));
}

static double size_on_diagonal(const factor *f, int64_t i)
{
    return f->hermitian ? fabs(creal(A(i, i))) : size_of(A(i, i));
}

static void swap(cd *x, cd *y)
{
    cd t = *x;
    *x = *y;
    *y = t;
}

static void make_real(const factor *f, int64_t i)
{
    if (f->hermitian)
        A(i, i) = creal(A(i, i));
}

/* The largest below the diagonal of column k: its row. */
static int64_t largest_below(const factor *f, int64_t k)
{
    int64_t best = k + 1;
    for (int64_t i = k + 2; i < f->n; i++)
        if (size_of(A(i, k)) > size_of(A(best, k)))
            best = i;
    return best;
}

/* The largest beside the diagonal of row @p r, from column @p k on. */
static double largest_beside(const factor *f, int64_t r, int64_t k)
{
    double most = 0;
    for (int64_t j = k; j < r; j++)
        most = fmax(most, size_of(A(r, j)));
    for (int64_t i = r + 1; i < f->n; i++)
        most = fmax(most, size_of(A(i, r)));
    return most;
}

/* Row and column @p p change with @p q < p; of a block of two that begins at @p k, q is the second.
 */
static void interchange(const factor *f, int64_t k, int64_t q, int64_t p)
{
    for (int64_t i = p + 1; i < f->n; i++)
        swap(&A(i, q), &A(i, p));
    for (int64_t j = q + 1; j < p; j++) {
        cd t = turned(f, A(j, q));
        A(j, q) = turned(f, A(p, j));
        A(p, j) = t;
    }
    A(p, q) = turned(f, A(p, q));
    swap(&A(q, q), &A(p, p));
    make_real(f, q);
    make_real(f, p);
    if (q != k)
        swap(&A(k + 1, k), &A(p, k));
}

static void take_out_one(const factor *f, int64_t k)
{
    cd d = 1.0 / A(k, k);
    for (int64_t j = k + 1; j < f->n; j++) {
        cd x = d * turned(f, A(j, k));
        for (int64_t i = j; i < f->n; i++)
            A(i, j) -= A(i, k) * x;
        make_real(f, j);
    }
    for (int64_t i = k + 1; i < f->n; i++)
        A(i, k) *= d;
}

static void take_out_two(const factor *f, int64_t k)
{
    cd off = A(k + 1, k), scale = f->hermitian ? cabs(off) : off;
    cd low = A(k + 1, k + 1) / scale, high = A(k, k) / scale;
    cd phase = off / scale, t = 1.0 / (low * high - 1.0) / scale;
    for (int64_t j = k + 2; j < f->n; j++) {
        cd first = t * (low * A(j, k) - phase * A(j, k + 1));
        cd second = t * (high * A(j, k + 1) - turned(f, phase) * A(j, k));
        for (int64_t i = j; i < f->n; i++)
            A(i, j) -= A(i, k) * turned(f, first) + A(i, k + 1) * turned(f, second);
        A(j, k) = first;
        A(j, k + 1) = second;
        make_real(f, j);
    }
}

/* Over the lower triangle. Returns 0, or 1 + the first column that is 0. */
static int32_t factor_one(const factor *f, int32_t *pivots)
{
    const double alpha = (1.0 + sqrt(17.0)) / 8.0;
    int32_t info = 0;
    for (int64_t k = 0; k < f->n;) {
        int64_t r = k + 1 < f->n ? largest_below(f, k) : k, p = k, step = 1;
        double here = size_on_diagonal(f, k), below = k + 1 < f->n ? size_of(A(r, k)) : 0;
        if (!(fmax(here, below) > 0) || isnan(here)) {
            info = info ? info : (int32_t)k + 1;
            make_real(f, k);
        } else {
            if (here < alpha * below) {
                double beside = largest_beside(f, r, k);
                if (here >= alpha * below * (below / beside))
                    p = k;
                else if (size_on_diagonal(f, r) >= alpha * beside)
                    p = r;
                else {
                    p = r;
                    step = 2;
                }
            }
            if (p != k + step - 1) {
                interchange(f, k, k + step - 1, p);
            }
            make_real(f, k);
            if (step == 2)
                make_real(f, k + 1);
            if (step == 1)
                take_out_one(f, k);
            else
                take_out_two(f, k);
        }
        pivots[k] = (int32_t)(step == 1 ? p + 1 : -(p + 1));
        if (step == 2)
            pivots[k + 1] = pivots[k];
        k += step;
    }
    return info;
}

/* ---- factors ---- */

typedef struct job {
    cd *a, *b;
    int64_t n, k;
    int32_t *pivots, *info;
    bool hermitian;
} job;

static tn_status factor_some(int64_t begin, int64_t end, void *arg)
{
    const job *j = arg;
    for (int64_t i = begin; i < end; i++) {
        const factor one = {j->a + i * j->n * j->n, j->n, j->hermitian}, *f = &one;
        for (int64_t r = 0; r < j->n; r++)
            for (int64_t c = r + 1; c < j->n; c++)
                A(r, c) = 0;
        j->info[i] = factor_one(f, j->pivots + i * j->n);
    }
    return TN_OK;
}

static tn_status give(tn_tensor *to, tn_tensor *from)
{
    return to->numel ? tni_copy_cpu(to, from) : TN_OK;
}

tn_status tni_cpu_linalg_ldl_factor_ex(tn_tensor *self, bool hermitian, bool check_errors,
                                       tn_tensor *LD, tn_tensor *pivots, tn_tensor *info)
{
    TN_AUTO(tn_tensor) a = NULL;
    TN_AUTO(tn_tensor) p = NULL;
    TN_AUTO(tn_tensor) failures = NULL;
    TN_TRY(tni_tensor_new(self->ndim, self->sizes, NULL, TN_DTYPE_C128, TN_CPU, &a));
    TN_TRY(give(a, self));
    TN_TRY(tni_tensor_new(pivots->ndim, pivots->sizes, NULL, TN_DTYPE_I32, TN_CPU, &p));
    TN_TRY(tni_tensor_new(info->ndim, info->sizes, NULL, TN_DTYPE_I32, TN_CPU, &failures));
    const bool real = !tn_dtype_is_complex((tn_dtype)self->dtype);
    job j = {.a = a->data,
             .n = self->sizes[self->ndim - 1],
             .pivots = p->data,
             .info = failures->data,
             .hermitian = hermitian && !real};
    TN_TRY(tni_pool_for(info->numel, 1, factor_some, &j));
    for (int64_t i = 0; check_errors && i < info->numel; i++)
        TN_CHECK(!j.info[i], TN_INVALID,
                 "torch.linalg.ldl_factor_ex: D[%d,%d] is zero, and solving with it would divide "
                 "by zero",
                 (int)j.info[i], (int)j.info[i]);
    TN_TRY(give(LD, a));
    TN_TRY(give(pivots, p));
    return give(info, failures);
}

/* ---- systems ---- */

/* Rows of b: row i minus x times row j. */
static void subtract(const job *j, cd *b, int64_t to, int64_t from, cd x)
{
    for (int64_t c = 0; c < j->k; c++)
        b[to * j->k + c] -= x * b[from * j->k + c];
}

static void exchange(const job *j, cd *b, int64_t x, int64_t y)
{
    for (int64_t c = 0; x != y && c < j->k; c++)
        swap(&b[x * j->k + c], &b[y * j->k + c]);
}

/* The block of two of D that begins at k. */
static void divide_two(const job *j, const factor *f, cd *b, int64_t k)
{
    cd off = A(k + 1, k), back = turned(f, off);
    cd high = A(k, k) / back, low = A(k + 1, k + 1) / off, whole = high * low - 1.0;
    for (int64_t c = 0; c < j->k; c++) {
        cd x = b[k * j->k + c] / back, y = b[(k + 1) * j->k + c] / off;
        b[k * j->k + c] = (low * x - y) / whole;
        b[(k + 1) * j->k + c] = (high * y - x) / whole;
    }
}

static tn_status solve_some(int64_t begin, int64_t end, void *arg)
{
    const job *j = arg;
    for (int64_t i = begin; i < end; i++) {
        const factor one = {j->a + i * j->n * j->n, j->n, j->hermitian}, *f = &one;
        const int32_t *p = j->pivots + i * j->n;
        cd *b = j->b + i * j->n * j->k;
        for (int64_t k = 0; k < j->n;) {
            int64_t step = p[k] > 0 ? 1 : 2;
            exchange(j, b, k + step - 1, (p[k] > 0 ? p[k] : -p[k]) - 1);
            for (int64_t r = k + step; r < j->n; r++)
                for (int64_t s = 0; s < step; s++)
                    subtract(j, b, r, k + s, A(r, k + s));
            for (int64_t c = 0; step == 1 && c < j->k; c++)
                b[k * j->k + c] /= A(k, k);
            if (step == 2)
                divide_two(j, f, b, k);
            k += step;
        }
        for (int64_t k = j->n - 1; k >= 0;) {
            int64_t step = p[k] > 0 ? 1 : 2;
            for (int64_t s = 0; s < step; s++)
                for (int64_t r = k + 1; r < j->n; r++)
                    subtract(j, b, k - s, r, turned(f, A(r, k - s)));
            exchange(j, b, k, (p[k] > 0 ? p[k] : -p[k]) - 1);
            k -= step;
        }
    }
    return TN_OK;
}

/* Blocks of two have both their pivots below 0, and all lie in the matrix. */
static tn_status check_pivots(const int32_t *p, int64_t count, int64_t n)
{
    for (int64_t i = 0; i < count; i++)
        for (int64_t k = 0; k < n;) {
            int32_t x = p[i * n + k];
            int64_t step = x > 0 ? 1 : 2;
            TN_CHECK(x != 0 && x >= -n && x <= n, TN_INVALID,
                     "torch.linalg.ldl_solve: a pivot is out of range");
            TN_CHECK(step == 1 || (k + 1 < n && p[i * n + k + 1] < 0), TN_INVALID,
                     "torch.linalg.ldl_solve: a block of two rows has one pivot");
            k += step;
        }
    return TN_OK;
}

/* @p t with the batch of @p like and its own last @p own dimensions, contiguous. */
static tn_status batched(tn_tensor *t, const tn_tensor *like, int own, tn_dtype dtype,
                         tn_tensor **out)
{
    int64_t sizes[TN_MAX_DIMS];
    TN_AUTO(tn_tensor) wide = NULL;
    TN_AUTO(tn_tensor) made = NULL;
    int batch = like->ndim - 2;
    for (int d = 0; d < batch; d++)
        sizes[d] = like->sizes[d];
    for (int d = 0; d < own; d++)
        sizes[batch + d] = t->sizes[t->ndim - own + d];
    TN_TRY(tn_expand(t, sizes, batch + own, false, &wide));
    TN_TRY(tni_tensor_new(batch + own, sizes, NULL, dtype, TN_CPU, &made));
    TN_TRY(give(made, wide));
    *out = TN_MOVE(made);
    return TN_OK;
}

tn_status tni_cpu_linalg_ldl_solve(tn_tensor *LD, tn_tensor *pivots, tn_tensor *B, bool hermitian,
                                   tn_tensor *out)
{
    TN_AUTO(tn_tensor) a = NULL;
    TN_AUTO(tn_tensor) p = NULL;
    TN_AUTO(tn_tensor) b = NULL;
    if (out->numel == 0)
        return TN_OK;
    TN_TRY(batched(LD, out, 2, TN_DTYPE_C128, &a));
    TN_TRY(batched(pivots, out, 1, TN_DTYPE_I32, &p));
    TN_TRY(batched(B, out, 2, TN_DTYPE_C128, &b));
    const bool real = !tn_dtype_is_complex((tn_dtype)LD->dtype);
    job j = {.a = a->data,
             .b = b->data,
             .n = LD->sizes[LD->ndim - 1],
             .k = out->sizes[out->ndim - 1],
             .pivots = p->data,
             .hermitian = hermitian && !real};
    int64_t count = out->numel / (j.n * j.k);
    TN_TRY(check_pivots(j.pivots, count, j.n));
    TN_TRY(tni_pool_for(count, 1, solve_some, &j));
    return give(out, b);
}
