/* SPDX-License-Identifier: MIT */
/* cpu/fft.c: Fourier transforms along dimensions, in complex float64. Lengths that are products of
 * 2, 3 and 5 are split; others become a convolution of a length that is a power of 2 (Bluestein).
 */
#include <complex.h>
#include <math.h>
#include <string.h>
#include "cpu/lines.h"
#include "cpu/ready.h"
#include "gen/cpu.h"
#include "tenon/ops.h"

typedef double complex cd;

/* exp(sign * 2 pi i k / n), with k brought near 0 first. */
static cd turn(int64_t k, int64_t n, int sign)
{
    double angle = 6.28318530717958647693 * (double)(k % n) / (double)n;
    return CMPLX(cos(angle), sign * sin(angle));
}

/* a * b without the checks for infinities that the C language asks for. */
static cd times(cd a, cd b)
{
    double ar = creal(a), ai = cimag(a), br = creal(b), bi = cimag(b);
    return CMPLX(ar * br - ai * bi, ar * bi + ai * br);
}

static int64_t smallest_factor(int64_t n)
{
    return n % 2 == 0 ? 2 : n % 3 == 0 ? 3 : n % 5 == 0 ? 5 : n;
}

/* out[k] = sum x[i * step] w[i * k * whole / n]; w: powers of the whole length's root. @p n is a
 * product of 2, 3 and 5. */
static void split(const cd *x, int64_t step, cd *out, int64_t n, const cd *w, int64_t whole)
{
    if (n == 1) {
        out[0] = x[0];
        return;
    }
    int64_t p = smallest_factor(n), m = n / p, stride = whole / n;
    for (int64_t r = 0; r < p; r++)
        split(x + r * step, step * p, out + r * m, m, w, whole);
    for (int64_t k = 0; k < m; k++) {
        cd part[5], sum;
        for (int64_t r = 0; r < p; r++)
            part[r] = times(out[r * m + k], w[r * k * stride]);
        for (int64_t q = 0; q < p; q++) {
            sum = part[0];
            for (int64_t r = 1; r < p; r++)
                sum += times(part[r], w[r * q % p * m * stride]);
            out[q * m + k] = sum;
        }
    }
}

static bool splits(int64_t n)
{
    while (n > 1 && smallest_factor(n) <= 5)
        n /= smallest_factor(n);
    return n == 1;
}

/* ---- one line ---- */

typedef struct plan {
    int64_t n, padded; /* padded: the length of the convolution; 0 when n splits */
    int sign;
    double factor;
    const cd *roots;          /* of n, or of padded */
    const cd *chirp, *kernel; /* exp(sign pi i k k / n); its transform, conjugate and padded */
} plan;

static void transform(const plan *p, const cd *x, cd *out, cd *scratch)
{
    if (!p->padded) {
        split(x, 1, out, p->n, p->roots, p->n);
    } else {
        cd *a = scratch, *b = scratch + p->padded;
        for (int64_t i = 0; i < p->padded; i++)
            a[i] = i < p->n ? times(x[i], p->chirp[i]) : 0;
        split(a, 1, b, p->padded, p->roots, p->padded);
        /* The inverse is the transform of the conjugate. */
        for (int64_t i = 0; i < p->padded; i++)
            b[i] = conj(times(b[i], p->kernel[i]));
        split(b, 1, a, p->padded, p->roots, p->padded);
        for (int64_t i = 0; i < p->n; i++)
            out[i] = times(conj(a[i]), p->chirp[i]) / (double)p->padded;
    }
    for (int64_t i = 0; i < p->n; i++)
        out[i] *= p->factor;
}

static tn_status complex_line(int64_t n, tn_tensor **out)
{
    return tni_tensor_new(1, &n, NULL, TN_DTYPE_C128, TN_CPU, out);
}

/* Tables of a length: roots, chirp and kernel one after the other. */
static tn_status make_plan(int64_t n, bool forward, double factor, plan *p, tn_tensor **tables)
{
    *p = (plan){.n = n, .sign = forward ? -1 : 1, .factor = factor};
    if (splits(n)) {
        TN_TRY(complex_line(n, tables));
        cd *roots = (*tables)->data;
        for (int64_t k = 0; k < n; k++)
            roots[k] = turn(k, n, p->sign);
        p->roots = roots;
        return TN_OK;
    }
    TN_CHECK(n < INT64_C(1) << 30, TN_INVALID, "a Fourier transform of %lld numbers is too long",
             (long long)n);
    p->padded = 1;
    while (p->padded < 2 * n)
        p->padded *= 2;
    TN_TRY(complex_line(3 * p->padded + n, tables));
    cd *roots = (*tables)->data, *kernel = roots + p->padded, *room = kernel + p->padded;
    cd *chirp = room + p->padded;
    for (int64_t k = 0; k < p->padded; k++)
        roots[k] = turn(k, p->padded, -1);
    for (int64_t k = 0; k < n; k++)
        chirp[k] = turn(k * k % (2 * n), 2 * n, p->sign);
    memset(room, 0, (size_t)p->padded * sizeof *room);
    for (int64_t k = 0; k < n; k++)
        room[k] = room[k ? p->padded - k : 0] = conj(chirp[k]);
    split(room, 1, kernel, p->padded, roots, p->padded);
    p->roots = roots;
    p->chirp = chirp;
    p->kernel = kernel;
    return TN_OK;
}

static tn_status line(void *const *lines, void *scratch, void *ctx)
{
    const plan *p = ctx;
    cd *x = scratch;
    memcpy(x, lines[0], (size_t)p->n * sizeof *x);
    transform(p, x, lines[0], x + p->n);
    return TN_OK;
}

/* Transform @p t, complex float64, along one dimension, in place. */
static tn_status along(tn_tensor *t, int d, bool forward, double factor)
{
    plan p;
    TN_AUTO(tn_tensor) tables = NULL;
    TN_TRY(make_plan(t->sizes[d], forward, factor, &p, &tables));
    tni_line lines[] = {{t, TN_DTYPE_C128, TNI_LINE_UPDATE}};
    size_t scratch = (size_t)(p.n + 2 * p.padded) * sizeof(cd);
    return tni_lines(t, UINT64_C(1) << d, lines, 1, scratch, line, &p);
}

static double factor_of(int64_t normalization, double count)
{
    return normalization == 0 ? 1 : normalization == 1 ? 1 / sqrt(count) : 1 / count;
}

/* Along all of @p dim, the last one first. */
static tn_status along_all(tn_tensor *t, const int64_t *dim, int64_t n, int64_t normalization,
                           bool forward)
{
    double count = 1;
    int d;
    for (int64_t i = 0; i < n; i++) {
        TN_TRY(tni_wrap_dim(dim[i], t->ndim, &d));
        count *= (double)t->sizes[d];
    }
    for (int64_t i = n - 1; i >= 0; i--) {
        TN_TRY(tni_wrap_dim(dim[i], t->ndim, &d));
        TN_TRY(along(t, d, forward, i == 0 ? factor_of(normalization, count) : 1));
    }
    return TN_OK;
}

static tn_status fresh(tn_tensor *self, tn_tensor **out)
{
    TN_TRY(tni_tensor_new(self->ndim, self->sizes, NULL, TN_DTYPE_C128, TN_CPU, out));
    return tni_copy_cpu(*out, self);
}

/* ---- operators ---- */

tn_status tni_cpu_fft_c2c(tn_tensor *self, const int64_t *dim, int64_t dim_n, int64_t normalization,
                          bool forward, tn_tensor *out)
{
    TN_AUTO(tn_tensor) work = NULL;
    if (out->numel == 0)
        return TN_OK;
    TN_TRY(fresh(self, &work));
    TN_TRY(along_all(work, dim, dim_n, normalization, forward));
    return tni_copy_cpu(out, work);
}

tn_status tni_cpu_fft_r2c(tn_tensor *self, const int64_t *dim, int64_t dim_n, int64_t normalization,
                          bool onesided, tn_tensor *out)
{
    TN_AUTO(tn_tensor) work = NULL;
    TN_AUTO(tn_tensor) half = NULL;
    (void)onesided;
    if (out->numel == 0)
        return TN_OK;
    TN_TRY(fresh(self, &work));
    TN_TRY(along_all(work, dim, dim_n, normalization, true));
    TN_TRY(tni_tensor_alias(work, out->ndim, out->sizes, work->strides, 0, &half));
    return tni_copy_cpu(out, half);
}

/* The half that is not there is the conjugate of the half that is, mirrored in every transformed
 * dimension. */
tn_status tni_cpu_fft_c2r(tn_tensor *self, const int64_t *dim, int64_t dim_n, int64_t normalization,
                          int64_t last_dim_size, tn_tensor *out)
{
    TN_AUTO(tn_tensor) given = NULL;
    TN_AUTO(tn_tensor) work = NULL;
    int last = 0, d;
    if (out->numel == 0)
        return TN_OK;
    double count = 1;
    for (int64_t i = 0; i < dim_n; i++) {
        TN_TRY(tni_wrap_dim(dim[i], self->ndim, &last));
        count *= (double)out->sizes[last];
    }
    TN_TRY(fresh(self, &given));
    for (int64_t i = 0; i + 1 < dim_n; i++) {
        TN_TRY(tni_wrap_dim(dim[i], self->ndim, &d));
        TN_TRY(along(given, d, false, 1));
    }
    /* What is left to do is one dimension, where the mirror is the line's own. */
    TN_TRY(tni_tensor_new(out->ndim, out->sizes, NULL, TN_DTYPE_C128, TN_CPU, &work));
    int64_t inner = work->strides[last], n = last_dim_size, m = given->sizes[last];
    const cd *x = given->data;
    cd *o = work->data;
    for (int64_t i = 0; i < work->numel; i++) {
        int64_t k = i / inner % n, base = i / (inner * n) * inner * m + i % inner;
        cd v = k <= n / 2 ? x[base + k * inner] : conj(x[base + (n - k) * inner]);
        bool own = k == 0 || 2 * k == n; /* its own mirror: real */
        o[i] = own ? CMPLX(creal(v), 0) : v;
    }
    TN_TRY(along(work, last, false, factor_of(normalization, count)));
    int64_t strides[TN_MAX_DIMS];
    TN_AUTO(tn_tensor) real = NULL;
    for (int k = 0; k < work->ndim; k++)
        strides[k] = 2 * work->strides[k];
    TN_TRY(tni_tensor_over(work->storage, work->ndim, work->sizes, strides, 0, TN_DTYPE_F64,
                           work->keys, TN_CPU, &real));
    return tni_copy_cpu(out, real);
}
