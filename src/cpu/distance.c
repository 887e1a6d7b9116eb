/* SPDX-License-Identifier: MIT */
/* cpu/distance.c: p-norms of the differences of rows, and their gradients, in float64; Euclidean
 * distances of many rows by a matrix product. */
#include <float.h>
#include <math.h>
#include <string.h>
#include "base/pool.h"
#include "cpu/gemm.h"
#include "cpu/ready.h"
#include "gen/cpu.h"
#include "tenon/ops.h"

/* Sums of differences, and of their squares: four side by side. */
static double sum_of_differences(const double *a, const double *b, int64_t n, bool squared)
{
    double sums[4] = {0};
    int64_t i = 0;
    if (squared) {
        for (; i + 4 <= n; i += 4)
            for (int l = 0; l < 4; l++)
                sums[l] += (a[i + l] - b[i + l]) * (a[i + l] - b[i + l]);
        for (int l = 0; i < n; i++, l++)
            sums[l] += (a[i] - b[i]) * (a[i] - b[i]);
    } else {
        for (; i + 4 <= n; i += 4)
            for (int l = 0; l < 4; l++)
                sums[l] += fabs(a[i + l] - b[i + l]);
        for (int l = 0; i < n; i++, l++)
            sums[l] += fabs(a[i] - b[i]);
    }
    return (sums[0] + sums[2]) + (sums[1] + sums[3]);
}

static double distance(const double *a, const double *b, int64_t n, double p)
{
    double sum = 0;
    if (p == 1 || p == 2) {
        sum = sum_of_differences(a, b, n, p == 2);
        return p == 2 ? sqrt(sum) : sum;
    }
    for (int64_t i = 0; i < n; i++) {
        double d = fabs(a[i] - b[i]);
        if (p == 0)
            sum += d != 0;
        else if (isinf(p))
            sum = d > sum || isnan(d) ? d : sum;
        else
            sum += pow(d, p);
    }
    return p == 0 || isinf(p) ? sum : pow(sum, 1 / p);
}

/* How much the distance grows with a coordinate's difference @p d. */
static double slope(double d, double dist, double p)
{
    double sign = (d > 0) - (d < 0);
    if (p == 0 || dist == 0 || d == 0)
        return 0;
    if (p == 1)
        return sign;
    if (p == 2)
        return d / dist;
    if (isinf(p))
        return fabs(d) == dist ? sign : 0;
    return sign * pow(fabs(d) / dist, p - 1);
}

/* As the distance was computed from it: where that was rounded to float32, the largest difference
 * must be too, or it is not found again. */
static double difference(double a, double b, bool single)
{
    return single ? (double)(float)(a - b) : a - b;
}

/* What a pair of rows adds to the gradient of the first, and takes from that of the other. */
static void add_slopes(double *to, double *less, const double *a, const double *b, int64_t n,
                       double g, double dist, double p, bool single)
{
    if (p == 1) {
        for (int64_t c = 0; c < n; c++) {
            double s = g * (double)((a[c] > b[c]) - (a[c] < b[c]));
            to[c] += s;
            less[c] -= s;
        }
    } else if (p == 2) {
        double f = dist == 0 ? 0 : g / dist;
        for (int64_t c = 0; c < n; c++) {
            double s = f * (a[c] - b[c]);
            to[c] += s;
            less[c] -= s;
        }
    } else {
        for (int64_t c = 0; c < n; c++) {
            double s = g * slope(difference(a[c], b[c], single), dist, p);
            to[c] += s;
            less[c] -= s;
        }
    }
}

/* ---- all rows of one with all rows of the other ---- */

typedef struct cdist_job {
    const double *x1, *x2, *grad, *dist; /* batches as they lie */
    double *out;
    int64_t rows, others, width;
    double p;
    bool single; /* distances are float32 numbers */
} cdist_job;

static tn_status cdist_rows(int64_t begin, int64_t end, void *arg)
{
    const cdist_job *j = arg;
    for (int64_t i = begin; i < end; i++) {
        const double *a = j->x1 + i * j->width, *b = j->x2 + i / j->rows * j->others * j->width;
        for (int64_t k = 0; k < j->others; k++)
            j->out[i * j->others + k] = distance(a, b + k * j->width, j->width, j->p);
    }
    return TN_OK;
}

static tn_status cdist_grads(int64_t begin, int64_t end, void *arg)
{
    const cdist_job *j = arg;
    for (int64_t i = begin; i < end; i++) {
        const double *a = j->x1 + i * j->width, *b = j->x2 + i / j->rows * j->others * j->width;
        for (int64_t k = 0; k < j->others; k++) {
            double g = j->grad[i * j->others + k], dist = j->dist[i * j->others + k];
            double *out = j->out + i * j->width;
            const double *row = b + k * j->width;
            for (int64_t c = 0; j->p == 1 && c < j->width; c++)
                out[c] += g * (double)((a[c] > row[c]) - (a[c] < row[c]));
            for (int64_t c = 0; j->p != 1 && c < j->width; c++)
                out[c] += g * slope(difference(a[c], row[c], j->single), dist, j->p);
        }
    }
    return TN_OK;
}

/* @p x with the batch of @p like, contiguous and of @p dtype. */
static tn_status batched(tn_tensor *x, const tn_tensor *like, tn_dtype dtype, tn_tensor **out)
{
    int64_t sizes[TN_MAX_DIMS];
    TN_AUTO(tn_tensor) wide = NULL;
    for (int d = 0; d < like->ndim - 2; d++)
        sizes[d] = like->sizes[d];
    sizes[like->ndim - 2] = x->sizes[x->ndim - 2];
    sizes[like->ndim - 1] = x->sizes[x->ndim - 1];
    TN_TRY(tn_expand(x, sizes, like->ndim, false, &wide));
    return tni_ready(wide, dtype, out);
}

static int64_t all_rows(const tn_tensor *t)
{
    int64_t rows = 1;
    for (int d = 0; d < t->ndim - 1; d++)
        rows *= t->sizes[d];
    return rows;
}

/* Gradients of Euclidean distances: with w = grad / dist that of a row a is the sum of w (a - b)
 * over the rows b, which is a times the sum of the w, less a product of matrices. @p g is used up.
 * All are float64; @p out gets what narrower numbers have no digits to see cancel. */
static tn_status euclid_grads(const tn_tensor *a, tn_tensor *b, tn_tensor *g, const tn_tensor *d,
                              tn_tensor *out)
{
    TN_AUTO(tn_tensor) product = NULL;
    double *w = g->data;
    const double *dist = d->data;
    for (int64_t i = 0; i < g->numel; i++)
        w[i] = dist[i] == 0 ? 0 : w[i] / dist[i];
    TN_TRY(tn_matmul(g, b, &product));
    int64_t rows = all_rows(a), others = b->sizes[b->ndim - 2], width = a->sizes[a->ndim - 1];
    double *p = product->data;
    const double *x = a->data;
    for (int64_t i = 0; i < rows; i++) {
        double sum = 0;
        for (int64_t k = 0; k < others; k++)
            sum += w[i * others + k];
        for (int64_t c = 0; c < width; c++)
            p[i * width + c] = x[i * width + c] * sum - p[i * width + c];
    }
    return tni_copy_cpu(out, product);
}

static tn_status cdist(tn_tensor *x1, tn_tensor *x2, double p, tn_tensor *grad, tn_tensor *dist,
                       tn_tensor *out)
{
    TN_AUTO(tn_tensor) a = NULL;
    TN_AUTO(tn_tensor) b = NULL;
    TN_AUTO(tn_tensor) g = NULL;
    TN_AUTO(tn_tensor) d = NULL;
    TN_AUTO(tn_tensor) work = NULL;
    if (out->numel == 0)
        return TN_OK;
    TN_TRY(batched(x1, out, TN_DTYPE_F64, &a));
    TN_TRY(batched(x2, out, TN_DTYPE_F64, &b));
    TN_TRY(tni_ready(grad, TN_DTYPE_F64, &g));
    TN_TRY(tni_ready(dist, TN_DTYPE_F64, &d));
    if (grad && p == 2 && out->dtype != TN_DTYPE_F64 && grad->dtype != TN_DTYPE_F64 && d->numel > 0)
        return euclid_grads(a, b, g, d, out);
    TN_TRY(tni_tensor_new(out->ndim, out->sizes, NULL, TN_DTYPE_F64, TN_CPU, &work));
    if (work->numel)
        memset(work->data, 0, (size_t)work->numel * sizeof(double));
    cdist_job j = {.x1 = a->data,
                   .x2 = b->data,
                   .grad = g ? g->data : NULL,
                   .dist = d ? d->data : NULL,
                   .out = work->data,
                   .rows = a->sizes[a->ndim - 2],
                   .others = b->sizes[b->ndim - 2],
                   .width = a->sizes[a->ndim - 1],
                   .p = p,
                   .single = dist && dist->dtype == TN_DTYPE_F32};
    int64_t rows = all_rows(a), cost = j.others * j.width;
    TN_TRY(tni_pool_for(rows, cost < 16384 ? 16384 / (cost + 1) : 1,
                        grad ? cdist_grads : cdist_rows, &j));
    return tni_copy_cpu(out, work);
}

/* ---- Euclidean distances of many rows ----
 *
 * Note [Distances by a product]: |a - b|^2 = |a|^2 + |b|^2 - 2 a.b, and the products of all rows
 * with all rows are one matrix product, many times faster than the differences. Where rows are near
 * to each other, for how far they are from 0, digits cancel; where squares overflow, or vanish,
 * there are none. Those distances are computed from the differences, so that all have nearly the
 * digits of their dtype, and a row has the distance 0 from itself. */

/* A square is good when it is at least this part of what was subtracted. */
#define CANCELLED (1.0 / 16)

typedef struct euclid_job {
    const void *x1, *x2, *norms; /* norms: |b|^2, rows of x2 */
    void *out;                   /* on entry: -2 a.b */
    int64_t rows, others, width;
} euclid_job;

#define EUCLID(T, I, NAME, SQRT, LEAST, MOST)                                                \
    static T square_##NAME(const T *x, int64_t n)                                            \
    {                                                                                        \
        T lanes[8] = {0};                                                                    \
        int64_t i = 0;                                                                       \
        for (; i + 8 <= n; i += 8)                                                           \
            for (int k = 0; k < 8; k++)                                                      \
                lanes[k] += x[i + k] * x[i + k];                                             \
        for (; i < n; i++)                                                                   \
            lanes[0] += x[i] * x[i];                                                         \
        return ((lanes[0] + lanes[4]) + (lanes[1] + lanes[5])) +                             \
               ((lanes[2] + lanes[6]) + (lanes[3] + lanes[7]));                              \
    }                                                                                        \
    static T difference_##NAME(const T *a, const T *b, int64_t n)                            \
    {                                                                                        \
        double sum = 0;                                                                      \
        for (int64_t i = 0; i < n; i++) {                                                    \
            double d = (double)a[i] - (double)b[i];                                          \
            sum += d * d;                                                                    \
        }                                                                                    \
        return (T)sqrt(sum);                                                                 \
    }                                                                                        \
    static tn_status norms_##NAME(int64_t begin, int64_t end, void *arg)                     \
    {                                                                                        \
        const euclid_job *j = arg;                                                           \
        for (int64_t i = begin; i < end; i++)                                                \
            ((T *)j->out)[i] = square_##NAME((const T *)j->x2 + i * j->width, j->width);     \
        return TN_OK;                                                                        \
    }                                                                                        \
    static tn_status euclid_##NAME(int64_t begin, int64_t end, void *arg)                    \
    {                                                                                        \
        const euclid_job *j = arg;                                                           \
        for (int64_t i = begin; i < end; i++) {                                              \
            int64_t n = j->others, first = i / j->rows * n;                                  \
            const T *a = (const T *)j->x1 + i * j->width;                                    \
            const T *b = (const T *)j->x2 + first * j->width;                                \
            const T *norms = (const T *)j->norms + first, norm = square_##NAME(a, j->width); \
            T *out = (T *)j->out + i * n;                                                    \
            I bad = 0;                                                                       \
            for (int64_t k = 0; k < n; k++) {                                                \
                T both = norm + norms[k], square = both + out[k];                            \
                T least = both * (T)CANCELLED;                                               \
                I good = (square >= least) & (square >= (LEAST)) & (square <= (MOST));       \
                T root = SQRT(good ? square : 0);                                            \
                out[k] = good ? root : -1;                                                   \
                bad |= 1 - good;                                                             \
            }                                                                                \
            for (int64_t k = 0; bad && k < n; k++)                                           \
                if (out[k] < 0)                                                              \
                    out[k] = difference_##NAME(a, b + k * j->width, j->width);               \
        }                                                                                    \
        return TN_OK;                                                                        \
    }
EUCLID(float, int32_t, f32, sqrtf, FLT_MIN / FLT_EPSILON, FLT_MAX)
EUCLID(double, int64_t, f64, sqrt, DBL_MIN / DBL_EPSILON, DBL_MAX)

static tn_status euclid(tn_tensor *x1, tn_tensor *x2, tn_tensor *out)
{
    TN_AUTO(tn_tensor) a = NULL;
    TN_AUTO(tn_tensor) b = NULL;
    TN_AUTO(tn_tensor) norms = NULL;
    TN_AUTO(tn_tensor) work = NULL;
    bool wide = out->dtype == TN_DTYPE_F64;
    tn_dtype dtype = wide ? TN_DTYPE_F64 : TN_DTYPE_F32;
    if (out->numel == 0)
        return TN_OK;
    TN_TRY(batched(x1, out, dtype, &a));
    TN_TRY(batched(x2, out, dtype, &b));
    TN_TRY(tni_tensor_new(b->ndim - 1, b->sizes, NULL, dtype, TN_CPU, &norms));
    TN_TRY(tni_work_of(out, dtype, &work));
    euclid_job j = {.x1 = a->data,
                    .x2 = b->data,
                    .norms = norms->data,
                    .out = norms->data,
                    .rows = a->sizes[a->ndim - 2],
                    .others = b->sizes[b->ndim - 2],
                    .width = a->sizes[a->ndim - 1]};
    int64_t rows = all_rows(a);
    TN_TRY(tni_pool_for(all_rows(b), 16384 / (j.width + 1) + 1, wide ? norms_f64 : norms_f32, &j));
    tni_gemm_args g = {.m = j.rows,
                       .n = j.others,
                       .k = j.width,
                       .batch = rows / j.rows,
                       .a = {j.x1, j.width, 1, j.rows * j.width},
                       .b = {j.x2, 1, j.width, j.others * j.width},
                       .c = {work->data, j.others, 1, j.rows * j.others}};
    g.d = g.c;
    TN_TRY(tni_gemm(dtype, &g, tn_int(-2), tn_int(0)));
    j.out = work->data;
    TN_TRY(tni_pool_for(rows, 16384 / j.others + 1, wide ? euclid_f64 : euclid_f32, &j));
    return tni_work_back(out, work);
}

/* Those that PyTorch computes so. */
static bool by_product(const tn_tensor *x1, const tn_tensor *x2, double p, tn_opt_int mode)
{
    bool many = x1->sizes[x1->ndim - 2] > 25 || x2->sizes[x2->ndim - 2] > 25;
    int64_t chosen = mode.has ? mode.value : 0;
    return p == 2 && (chosen == 1 || (chosen == 0 && many));
}

tn_status tni_cpu_cdist_forward(tn_tensor *x1, tn_tensor *x2, double p, tn_opt_int compute_mode,
                                tn_tensor *out)
{
    if (by_product(x1, x2, p, compute_mode))
        return euclid(x1, x2, out);
    return cdist(x1, x2, p, NULL, NULL, out);
}

tn_status tni_cpu_cdist_backward(tn_tensor *grad, tn_tensor *x1, tn_tensor *x2, double p,
                                 tn_tensor *cdist_, tn_tensor *out)
{
    return cdist(x1, x2, p, grad, cdist_, out);
}

/* ---- all pairs of rows ---- */

typedef struct pdist_job {
    const double *x;
    double *out;
    int64_t n, width;
    double p;
} pdist_job;

static tn_status pdist_rows(int64_t begin, int64_t end, void *arg)
{
    const pdist_job *j = arg;
    for (int64_t a = begin; a < end; a++) {
        double *o = j->out + a * (2 * j->n - a - 1) / 2;
        for (int64_t b = a + 1; b < j->n; b++)
            *o++ = distance(j->x + a * j->width, j->x + b * j->width, j->width, j->p);
    }
    return TN_OK;
}

static tn_status pdist(tn_tensor *self, double p, tn_tensor *grad, tn_tensor *dist, tn_tensor *out)
{
    TN_AUTO(tn_tensor) x = NULL;
    TN_AUTO(tn_tensor) g = NULL;
    TN_AUTO(tn_tensor) d = NULL;
    TN_AUTO(tn_tensor) work = NULL;
    int64_t n = self->sizes[0], width = self->sizes[1], pair = 0;
    if (out->numel == 0)
        return TN_OK;
    TN_TRY(tni_ready(self, TN_DTYPE_F64, &x));
    TN_TRY(tni_ready(grad, TN_DTYPE_F64, &g));
    TN_TRY(tni_ready(dist, TN_DTYPE_F64, &d));
    TN_TRY(tni_tensor_new(out->ndim, out->sizes, NULL, TN_DTYPE_F64, TN_CPU, &work));
    if (work->numel)
        memset(work->data, 0, (size_t)work->numel * sizeof(double));
    if (!grad) {
        pdist_job j = {.x = x->data, .out = work->data, .n = n, .width = width, .p = p};
        int64_t cost = n * width / 2 + 1;
        TN_TRY(tni_pool_for(n, cost < 16384 ? 16384 / cost : 1, pdist_rows, &j));
        return tni_copy_cpu(out, work);
    }
    const double *rows = x->data, *grads = g->data, *dists = d->data;
    double *o = work->data;
    bool single = dist->dtype == TN_DTYPE_F32;
    for (int64_t a = 0; a < n; a++)
        for (int64_t b = a + 1; b < n; b++, pair++)
            add_slopes(o + a * width, o + b * width, rows + a * width, rows + b * width, width,
                       grads[pair], dists[pair], p, single);
    return tni_copy_cpu(out, work);
}

tn_status tni_cpu_pdist_forward(tn_tensor *self, double p, tn_tensor *out)
{
    return pdist(self, p, NULL, NULL, out);
}

tn_status tni_cpu_pdist_backward(tn_tensor *grad, tn_tensor *self, double p, tn_tensor *pdist_,
                                 tn_tensor *out)
{
    return pdist(self, p, grad, pdist_, out);
}
