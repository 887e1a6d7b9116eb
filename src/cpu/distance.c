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

static double distance(const double *a, const double *b, int64_t n, double p)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        double d = fabs(a[i] - b[i]);
        if (p == 0)
            sum += d != 0;
        else if (p == 1)
            sum += d;
        else if (p == 2)
            sum += d * d;
        else if (isinf(p))
            sum = d > sum || isnan(d) ? d : sum;
        else
            sum += pow(d, p);
    }
    return p == 2 ? sqrt(sum) : p == 0 || p == 1 || isinf(p) ? sum : pow(sum, 1 / p);
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
            for (int64_t c = 0; c < j->width; c++)
                j->out[i * j->width + c] +=
                    g * slope(difference(a[c], b[k * j->width + c], j->single), dist, j->p);
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
    if (out->dtype == dtype && (out->flags & TNI_CONTIGUOUS))
        work = tn_tensor_ref(out);
    else
        TN_TRY(tni_tensor_new(out->ndim, out->sizes, NULL, dtype, TN_CPU, &work));
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
    return work == out ? TN_OK : tni_copy_cpu(out, work);
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
    const double *rows = x->data, *grads = g ? g->data : NULL, *dists = d ? d->data : NULL;
    double *o = work->data;
    bool single = dist && dist->dtype == TN_DTYPE_F32;
    for (int64_t a = 0; a < n; a++)
        for (int64_t b = a + 1; b < n; b++, pair++) {
            const double *u = rows + a * width, *v = rows + b * width;
            if (!grad) {
                o[pair] = distance(u, v, width, p);
                continue;
            }
            for (int64_t c = 0; c < width; c++) {
                double s = grads[pair] * slope(difference(u[c], v[c], single), dists[pair], p);
                o[a * width + c] += s;
                o[b * width + c] -= s;
            }
        }
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
