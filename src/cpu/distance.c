/* SPDX-License-Identifier: MIT */
/* cpu/distance.c: p-norms of the differences of rows, and their gradients, in float64. */
#include <math.h>
#include <string.h>
#include "base/pool.h"
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

/* ---- all rows of one with all rows of the other ---- */

typedef struct cdist_job {
    const double *x1, *x2, *grad, *dist; /* batches as they lie */
    double *out;
    int64_t rows, others, width;
    double p;
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
                j->out[i * j->width + c] += g * slope(a[c] - b[k * j->width + c], dist, j->p);
        }
    }
    return TN_OK;
}

/* @p x with the batch of @p like, as contiguous float64. */
static tn_status batched(tn_tensor *x, const tn_tensor *like, tn_tensor **out)
{
    int64_t sizes[TN_MAX_DIMS];
    TN_AUTO(tn_tensor) wide = NULL;
    for (int d = 0; d < like->ndim - 2; d++)
        sizes[d] = like->sizes[d];
    sizes[like->ndim - 2] = x->sizes[x->ndim - 2];
    sizes[like->ndim - 1] = x->sizes[x->ndim - 1];
    TN_TRY(tn_expand(x, sizes, like->ndim, false, &wide));
    return tni_ready(wide, TN_DTYPE_F64, out);
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
    TN_TRY(batched(x1, out, &a));
    TN_TRY(batched(x2, out, &b));
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
                   .p = p};
    int64_t rows = j.rows;
    for (int k = 0; k < a->ndim - 2; k++)
        rows *= a->sizes[k];
    int64_t cost = j.others * j.width;
    TN_TRY(tni_pool_for(rows, cost < 16384 ? 16384 / (cost + 1) : 1,
                        grad ? cdist_grads : cdist_rows, &j));
    return tni_copy_cpu(out, work);
}

tn_status tni_cpu_cdist_forward(tn_tensor *x1, tn_tensor *x2, double p, tn_opt_int compute_mode,
                                tn_tensor *out)
{
    (void)compute_mode;
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
    for (int64_t a = 0; a < n; a++)
        for (int64_t b = a + 1; b < n; b++, pair++) {
            const double *u = rows + a * width, *v = rows + b * width;
            if (!grad) {
                o[pair] = distance(u, v, width, p);
                continue;
            }
            for (int64_t c = 0; c < width; c++) {
                double s = grads[pair] * slope(u[c] - v[c], dists[pair], p);
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
