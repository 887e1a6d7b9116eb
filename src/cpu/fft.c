/* SPDX-License-Identifier: MIT */
/* cpu/fft.c: Fourier transforms along dimensions, in the dtype of the numbers. Lengths are split
 * into small factors; one with a great prime becomes a convolution of a length that is a power of 2
 * (Bluestein). kern/fourier.c does some lines at a time; here are plans, and how lines are dealt
 * out. What becomes of a line does not depend on the lines beside it. */
#include <complex.h>
#include <math.h>
#include <string.h>
#include "base/alloc.h"
#include "base/pool.h"
#include "cpu/fourier.h"
#include "cpu/ready.h"
#include "gen/cpu.h"

/* ---- plans ---- */

/* Numbers of a transform as they are stored: parts of a complex number one after the other. */
typedef struct table {
    void *data;
    bool wide; /* float64 */
} table;

static void put(table t, int64_t k, double re, double im)
{
    if (t.wide) {
        ((double *)t.data)[2 * k] = re;
        ((double *)t.data)[2 * k + 1] = im;
    } else {
        ((float *)t.data)[2 * k] = (float)re;
        ((float *)t.data)[2 * k + 1] = (float)im;
    }
}

static table after(table t, int64_t k)
{
    t.data = (char *)t.data + (size_t)k * (t.wide ? 16 : 8);
    return t;
}

/* exp(-2 pi i k / n), from an angle of at most an eighth of a turn: k and its mirrors agree to the
 * last bit, and quarters are exact. */
static void turn(int64_t k, int64_t n, double *re, double *im)
{
    k %= n;
    int64_t eighths = 8 * k / n, from = eighths * n; /* in units of 1 / (8 n) of a turn */
    int64_t rest = eighths % 2 ? from + n - 8 * k : 8 * k - from;
    double angle = 0.78539816339744830962 * (double)rest / (double)n;
    double c = cos(angle), s = sin(angle);
    /* The octants: which of the two is the cosine, and the signs. */
    bool across = eighths == 1 || eighths == 2 || eighths == 5 || eighths == 6;
    double x = across ? s : c, y = across ? c : s;
    *re = eighths >= 2 && eighths <= 5 ? -x : x;
    *im = eighths >= 4 ? y : -y;
}

/* Roots 0 to @p count - 1 of @p n. The first eighth is computed, the rest are its mirrors. */
static void roots(table t, int64_t count, int64_t n)
{
    double re, im;
    for (int64_t k = 0; k < count; k++) {
        if (n % 8 == 0 && k > n / 8) {
            int64_t octant = 8 * k / n, start = octant * (n / 8), rest = k - start;
            int64_t from = octant % 2 ? n / 8 - rest : rest;
            const double c =
                t.wide ? ((double *)t.data)[2 * from] : (double)((float *)t.data)[2 * from];
            const double s = t.wide ? -((double *)t.data)[2 * from + 1]
                                    : -(double)((float *)t.data)[2 * from + 1];
            bool across = octant == 1 || octant == 2 || octant == 5 || octant == 6;
            double x = across ? s : c, y = across ? c : s;
            put(t, k, octant >= 2 && octant <= 5 ? -x : x, octant >= 4 ? y : -y);
            continue;
        }
        turn(k, n, &re, &im);
        put(t, k, re, im);
    }
}

/* Fours first, then small primes. False: a prime is too great. */
static bool factorise(int64_t n, tni_fft_plan *p)
{
    static const int small[] = {4, 2, 3, 5, 7, 11, 13, 17, 19, 23, 29, TNI_FFT_PRIME};
    p->n_factors = 0;
    for (size_t i = 0; i < sizeof small / sizeof small[0]; i++)
        for (; n % small[i] == 0; n /= small[i])
            p->factors[p->n_factors++] = small[i];
    return n == 1;
}

/* The tables of a plan lie in one tensor, in complex numbers of the dtype. */
static tn_status make_plan(tni_fft_plan *p, bool wide, tn_tensor **tables)
{
    bool real = p->kind != TNI_FFT_COMPLEX, halved = real && p->n % 2 == 0;
    p->length = halved ? p->n / 2 : p->n;
    p->padded = 0;
    int64_t whole = p->length, turns = halved ? p->length / 2 + 1 : 0;
    if (!factorise(p->length, p)) {
        TN_CHECK(p->length < INT64_C(1) << 29, TN_INVALID,
                 "a Fourier transform of %lld numbers is too long", (long long)p->n);
        for (p->padded = 1; p->padded < 2 * p->length;)
            p->padded *= 2;
        whole = p->padded;
        factorise(p->padded, p);
    }
    int64_t room = p->padded ? p->length + p->padded + 2 * (p->padded + 1) : 0;
    int64_t count = whole + turns + room;
    TN_TRY(tni_tensor_new(1, &count, NULL, wide ? TN_DTYPE_C128 : TN_DTYPE_C64, TN_CPU, tables));
    table t = {(*tables)->data, wide};
    roots(t, whole, whole);
    p->roots = t.data;
    t = after(t, whole);
    roots(t, turns, p->n);
    p->turns = t.data;
    if (!p->padded)
        return TN_OK;
    t = after(t, turns);
    p->chirp = t.data;
    for (int64_t k = 0; k < p->length; k++) {
        double re, im;
        turn(k * k % (2 * p->length), 2 * p->length, &re, &im);
        put(t, k, re, im);
    }
    table kernel = after(t, p->length);
    const tni_fft_table *loops = tni_cpu_kernels()->fft;
    (wide ? loops->kernel_f64 : loops->kernel_f32)(p, kernel.data, after(kernel, p->padded).data);
    p->kernel = kernel.data;
    return TN_OK;
}

/* ---- lines ---- */

typedef struct fft_job {
    const tni_fft_plan *plan;
    const tn_tensor *in, *out;
    int dim, lanes;
    int64_t lines;
    bool wide;
    bool whole; /* spectra of real lines: the second half too */
} fft_job;

/* Where line @p i begins: its place in the dimensions but one. */
static int64_t line_at(const tn_tensor *t, const tn_tensor *sizes, int dim, int64_t i)
{
    int64_t at = 0;
    for (int d = t->ndim - 1; d >= 0; d--)
        if (d != dim) {
            at += i % sizes->sizes[d] * t->strides[d];
            i /= sizes->sizes[d];
        }
    return at;
}

/* The second half of the spectrum of a real line of @p n: the first, conjugate, from its end. */
#define MIRROR(name, type, conjugate)                         \
    static void name(type *line, int64_t step, int64_t n)     \
    {                                                         \
        for (int64_t k = 1; k < n - k; k++)                   \
            line[(n - k) * step] = conjugate(line[k * step]); \
    }
MIRROR(mirror_f32, float complex, conjf)
MIRROR(mirror_f64, double complex, conj)
#undef MIRROR

static void mirror(const fft_job *j, const tni_fft_lines *l)
{
    int64_t n = j->out->sizes[j->dim];
    for (int i = 0; i < l->lanes; i++)
        if (j->wide)
            mirror_f64((double complex *)l->out + l->out_at[i], l->out_step, n);
        else
            mirror_f32((float complex *)l->out + l->out_at[i], l->out_step, n);
}

enum { ALIGN = 64 };

static tn_status some_lines(int64_t begin, int64_t end, void *arg)
{
    const fft_job *j = arg;
    size_t bytes = (size_t)tni_fft_room(j->plan, j->lanes) * (j->wide ? 8 : 4);
    char *block = tni_alloc(bytes + ALIGN);
    TN_CHECK(block, TN_NOMEM, "cannot allocate %zu bytes for a Fourier transform", bytes);
    void *room = block + (ALIGN - (uintptr_t)block % ALIGN) % ALIGN;
    const tni_fft_table *loops = tni_cpu_kernels()->fft;
    tni_fft_lines l = {.in = j->in->data,
                       .out = j->out->data,
                       .in_step = j->in->strides[j->dim],
                       .out_step = j->out->strides[j->dim]};
    for (int64_t group = begin; group < end; group++) {
        int64_t first = group * j->lanes, rest = j->lines - first;
        l.lanes = rest < j->lanes ? (int)rest : j->lanes;
        for (int i = 0; i < l.lanes; i++) {
            l.in_at[i] = line_at(j->in, j->out, j->dim, first + i);
            l.out_at[i] = line_at(j->out, j->out, j->dim, first + i);
        }
        (j->wide ? loops->f64 : loops->f32)(j->plan, &l, room);
        if (j->whole)
            mirror(j, &l);
    }
    tni_free(block);
    return TN_OK;
}

/* Transform lines of @p in along @p dim into @p out, which may be @p in. A real line's spectrum is
 * as long as the dimension: half of it and one more, or all. */
static tn_status along(const tn_tensor *in, tn_tensor *out, int dim, tni_fft_plan *p)
{
    enum { ROOM = 4 << 20, WORK = 1 << 15 }; /* bytes of a group of lines; numbers of a chunk */
    TN_AUTO(tn_tensor) tables = NULL;
    tn_dtype dtype = (tn_dtype)out->dtype;
    bool wide = dtype == TN_DTYPE_C128 || dtype == TN_DTYPE_F64;
    TN_TRY(make_plan(p, wide, &tables));
    fft_job j = {.plan = p, .in = in, .out = out, .dim = dim, .wide = wide};
    j.whole = p->kind == TNI_FFT_TO_HALF && out->sizes[dim] == p->n && p->n > 1;
    j.lines = out->numel / out->sizes[dim];
    /* As many as fill vectors: fewer leave the inner loops of the first passes short. */
    int64_t fit = TNI_FFT_LANES;
    while (fit > 4 && fit * tni_fft_room(p, 1) * (wide ? 8 : 4) > ROOM)
        fit /= 2;
    j.lanes = (int)(fit < j.lines ? fit : j.lines);
    int64_t groups = (j.lines + j.lanes - 1) / j.lanes, work = p->length * j.lanes;
    return tni_pool_for(groups, work < WORK ? WORK / work : 1, some_lines, &j);
}

/* ---- operators ---- */

static double factor_of(int64_t normalization, double count)
{
    return normalization == 0 ? 1 : normalization == 1 ? 1 / sqrt(count) : 1 / count;
}

/* Complex transforms along @p dim, the last one first; the last that is done has the factor. */
static tn_status along_all(const tn_tensor *in, tn_tensor *out, const int64_t *dim, int64_t n,
                           bool inverse, double factor)
{
    int d;
    for (int64_t i = n - 1; i >= 0; i--) {
        TN_TRY(tni_wrap_dim(dim[i], out->ndim, &d));
        tni_fft_plan p = {.kind = TNI_FFT_COMPLEX,
                          .inverse = inverse,
                          .n = out->sizes[d],
                          .factor = i == 0 ? factor : 1};
        TN_TRY(along(i == n - 1 ? in : out, out, d, &p));
    }
    return TN_OK;
}

static tn_status count_of(const tn_tensor *t, const int64_t *dim, int64_t n, int *last,
                          double *count)
{
    *count = 1;
    for (int64_t i = 0; i < n; i++) {
        TN_TRY(tni_wrap_dim(dim[i], t->ndim, last));
        *count *= (double)t->sizes[*last];
    }
    return TN_OK;
}

tn_status tni_cpu_fft_c2c(tn_tensor *self, const int64_t *dim, int64_t dim_n, int64_t normalization,
                          bool forward, tn_tensor *out)
{
    int last = 0;
    double count;
    if (out->numel == 0)
        return TN_OK;
    if (dim_n == 0)
        return tni_copy_cpu(out, self);
    TN_TRY(count_of(out, dim, dim_n, &last, &count));
    return along_all(self, out, dim, dim_n, !forward, factor_of(normalization, count));
}

tn_status tni_cpu_fft_r2c(tn_tensor *self, const int64_t *dim, int64_t dim_n, int64_t normalization,
                          bool onesided, tn_tensor *out)
{
    int last = 0;
    double count;
    if (out->numel == 0)
        return TN_OK;
    TN_TRY(count_of(self, dim, dim_n, &last, &count));
    double factor = factor_of(normalization, count);
    (void)onesided; /* `out` is as long as is asked for */
    tni_fft_plan p = {
        .kind = TNI_FFT_TO_HALF, .n = self->sizes[last], .factor = dim_n == 1 ? factor : 1};
    TN_TRY(along(self, out, last, &p));
    return along_all(out, out, dim, dim_n - 1, false, factor);
}

tn_status tni_cpu_fft_c2r(tn_tensor *self, const int64_t *dim, int64_t dim_n, int64_t normalization,
                          int64_t last_dim_size, tn_tensor *out)
{
    TN_AUTO(tn_tensor) given = NULL;
    int last = 0;
    double count;
    if (out->numel == 0)
        return TN_OK;
    TN_TRY(count_of(out, dim, dim_n, &last, &count));
    if (dim_n > 1) {
        TN_TRY(
            tni_tensor_new(self->ndim, self->sizes, NULL, (tn_dtype)self->dtype, TN_CPU, &given));
        TN_TRY(along_all(self, given, dim, dim_n - 1, true, 1));
    }
    tni_fft_plan p = {.kind = TNI_FFT_TO_REAL,
                      .inverse = true,
                      .n = last_dim_size,
                      .factor = factor_of(normalization, count)};
    return along(given ? given : self, out, last, &p);
}
