/* SPDX-License-Identifier: MIT */
/* cpu/batch_norm_columns.c: batch normalisation of rows with a column for each channel, and its
 * gradients. Rows are cut into chunks by their number alone; a column's sum is that of its chunks'
 * sums, in order, in double precision. */
#include "cpu/batch_norm.h"

#include <math.h>
#include <string.h>
#include "base/pool.h"
#include "cpu/lines.h"
#include "cpu/move.h"
#include "cpu/rows.h"

#define FEWEST      8     /* channels */
#define GRAIN       16384 /* elements that a chunk has at least */
#define MOST_CHUNKS 32
#define BUFFER      4096 /* halves that are converted at a time, whole rows */

typedef struct columns_job {
    const tni_kernels *kernels;
    const tni_column_loops *loops;
    tn_dtype have, compute;
    size_t have_size, size;
    int64_t rows, width, chunk, chunks, step; /* rows that are converted at a time */
    const char *x, *grad;
    char *out;
    double *sums;                   /* chunks of them, `width` each */
    char *mean, *scale, *b, *shift; /* of the compute dtype; shift is what (x - mean) is scaled
                                       with, backward */
    int what;
} columns_job;

enum { SUMS, SQUARES, GRAD_SUMS, MOMENTS };

static bool same_strides(const tn_tensor *a, const tn_tensor *b)
{
    for (int d = 0; d < a->ndim; d++)
        if (a->sizes[d] != 1 && a->strides[d] != b->strides[d])
            return false;
    return true;
}

bool tni_norm_columns_fit(const tni_norm_columns *c)
{
    const tn_tensor *x = c->x, *others[] = {c->grad, c->out};
    if (x->ndim < 2 || x->sizes[1] < FEWEST || x->strides[1] != 1 || !(x->flags & TNI_DENSE) ||
        x->numel / x->sizes[1] < 2)
        return false;
    for (int i = 0; i < 2; i++)
        if (others[i] && !((others[i]->flags & TNI_DENSE) && same_strides(x, others[i])))
            return false;
    return x->sizes[1] <= BUFFER || tni_compute_dtype((tn_dtype)x->dtype) == (tn_dtype)x->dtype;
}

/* ---- what is known of channels ---- */

static void read_channels(const columns_job *j, const tn_tensor *t, double otherwise, double *to)
{
    for (int64_t c = 0; c < j->width; c++) {
        const char *at =
            t ? (const char *)t->data + c * t->strides[0] * (int64_t)tni_itemsize(t) : NULL;
        to[c] = otherwise;
        if (t)
            tni_convert(j->kernels, TN_DTYPE_F64, &to[c], (tn_dtype)t->dtype, at, 1);
    }
}

static void write_channels(const columns_job *j, tn_tensor *t, const double *from)
{
    for (int64_t c = 0; t && c < j->width; c++) {
        char *at = (char *)t->data + c * t->strides[0] * (int64_t)tni_itemsize(t);
        tni_convert(j->kernels, (tn_dtype)t->dtype, at, TN_DTYPE_F64, &from[c], 1);
    }
}

/* As the loops want them. */
static void put(const columns_job *j, char *to, const double *from)
{
    tni_convert(j->kernels, j->compute, to, TN_DTYPE_F64, from, j->width);
}

static double rstd_of(const columns_job *j, double variance, double eps)
{
    return j->compute == TN_DTYPE_F64 ? 1.0 / sqrt(variance + eps)
                                      : (double)(1.0f / sqrtf((float)variance + (float)eps));
}

/* ---- over rows ---- */

static const char *as_computed(const columns_job *j, const char *from, int64_t first, int64_t n,
                               float *buffer)
{
    from += (size_t)(first * j->width) * j->have_size;
    if (j->have == j->compute)
        return from;
    tni_convert(j->kernels, j->compute, buffer, j->have, from, n * j->width);
    return (const char *)buffer;
}

static tn_status sum_chunks(int64_t begin, int64_t end, void *arg)
{
    const columns_job *j = arg;
    float first[BUFFER], second[BUFFER];
    for (int64_t i = begin; i < end; i++) {
        double *sum = j->sums + i * j->width;
        int64_t last = (i + 1) * j->chunk < j->rows ? (i + 1) * j->chunk : j->rows;
        memset(sum, 0, (size_t)j->width * sizeof *sum);
        for (int64_t r = i * j->chunk; r < last; r += j->step) {
            int64_t n = last - r < j->step ? last - r : j->step;
            const char *x = as_computed(j, j->what == GRAD_SUMS ? j->grad : j->x, r, n, first);
            if (j->what == SUMS || j->what == GRAD_SUMS)
                j->loops->sums(sum, x, n, j->width, j->width);
            else if (j->what == SQUARES)
                j->loops->squares(sum, x, j->mean, n, j->width);
            else
                j->loops->moments(sum, as_computed(j, j->grad, r, n, second), x, j->mean, n,
                                  j->width);
        }
    }
    return TN_OK;
}

/* The sums of all columns. */
static tn_status sum_columns(columns_job *j, int what, double *to)
{
    j->what = what;
    TN_TRY(tni_pool_for(j->chunks, 1, sum_chunks, j));
    memset(to, 0, (size_t)j->width * sizeof *to);
    for (int64_t i = 0; i < j->chunks; i++)
        for (int64_t c = 0; c < j->width; c++)
            to[c] += j->sums[i * j->width + c];
    return TN_OK;
}

static tn_status write_rows(int64_t begin, int64_t end, void *arg)
{
    const columns_job *j = arg;
    float first[BUFFER], second[BUFFER];
    for (int64_t r = begin, n; r < end; r += n) {
        n = end - r < j->step ? end - r : j->step;
        char *out = j->out + (size_t)(r * j->width) * j->have_size;
        char *to = j->have == j->compute ? out : (char *)first;
        const char *x = as_computed(j, j->x, r, n, first);
        if (j->grad)
            j->loops->blend(to, as_computed(j, j->grad, r, n, second), x, j->mean, j->scale, j->b,
                            j->shift, n, j->width);
        else
            j->loops->affine(to, x, j->mean, j->scale, j->shift, n, j->width);
        if (to != out)
            tni_convert(j->kernels, j->have, out, j->compute, to, n * j->width);
    }
    return TN_OK;
}

static tn_status write_all(columns_job *j)
{
    int64_t grain = GRAIN / j->width + 1;
    return j->rows <= grain ? write_rows(0, j->rows, j)
                            : tni_pool_for(j->rows, grain, write_rows, j);
}

/* ---- both ways ---- */

enum { MEANS, RSTDS, FIRST, SECOND, THIRD, KNOWN };

/* @p known: KNOWN arrays of doubles, a number for each channel. To be freed. */
static tn_status prepare(columns_job *j, const tni_norm_columns *c, double **known)
{
    const tn_tensor *x = c->x;
    j->kernels = tni_cpu_kernels();
    j->have = (tn_dtype)x->dtype;
    j->compute = tni_compute_dtype(j->have);
    j->loops = &tni_rows_of(j->kernels, j->compute)->columns;
    j->have_size = tni_dtype_size(j->have);
    j->size = tni_dtype_size(j->compute);
    j->width = x->sizes[1];
    j->rows = x->numel / j->width;
    j->chunk = GRAIN / j->width + 1;
    if (j->chunk * MOST_CHUNKS < j->rows)
        j->chunk = (j->rows + MOST_CHUNKS - 1) / MOST_CHUNKS;
    j->chunks = (j->rows + j->chunk - 1) / j->chunk;
    j->step = j->have == j->compute ? j->rows : BUFFER / j->width;
    j->x = x->data;
    j->grad = c->grad ? c->grad->data : NULL;
    j->out = c->out ? c->out->data : NULL;
    size_t doubles = (size_t)(KNOWN + 4 + j->chunks), nbytes;
    TN_CHECK(tni_size_mul(doubles * sizeof(double), (size_t)j->width, &nbytes) &&
                 (*known = tni_alloc(nbytes)),
             TN_NOMEM, "cannot allocate what is known of %lld channels", (long long)j->width);
    double *more = *known + KNOWN * j->width;
    j->mean = (char *)more;
    j->scale = (char *)(more + j->width);
    j->b = (char *)(more + 2 * j->width);
    j->shift = (char *)(more + 3 * j->width);
    j->sums = more + 4 * j->width;
    return TN_OK;
}

static tn_status forward(columns_job *j, const tni_norm_columns *c, double *known)
{
    int64_t width = j->width;
    double *mean = known + MEANS * width, *rstd = known + RSTDS * width, n = (double)j->rows;
    double *var = known + FIRST * width, *running = known + SECOND * width;
    if (c->training) {
        TN_TRY(sum_columns(j, SUMS, mean));
        for (int64_t i = 0; i < width; i++)
            mean[i] /= n;
        put(j, j->mean, mean);
        TN_TRY(sum_columns(j, SQUARES, var));
    } else {
        read_channels(j, c->mean, 0, mean);
        read_channels(j, c->var, 1, var);
        put(j, j->mean, mean);
    }
    for (int64_t i = 0; i < width; i++)
        rstd[i] = rstd_of(j, c->training ? var[i] / n : var[i], c->eps);
    double *scale = known + THIRD * width;
    read_channels(j, c->weight, 1, scale);
    for (int64_t i = 0; i < width; i++)
        scale[i] *= rstd[i];
    put(j, j->scale, scale);
    read_channels(j, c->bias, 0, scale);
    put(j, j->shift, scale);
    TN_TRY(write_all(j));
    if (!c->training)
        return TN_OK;
    write_channels(j, c->save_mean, mean);
    write_channels(j, c->save_rstd, rstd);
    read_channels(j, c->mean, 0, running);
    for (int64_t i = 0; i < width; i++)
        running[i] = (1 - c->momentum) * running[i] + c->momentum * mean[i];
    write_channels(j, c->mean, running);
    read_channels(j, c->var, 0, running);
    for (int64_t i = 0; i < width; i++)
        running[i] = (1 - c->momentum) * running[i] + c->momentum * (var[i] / (n - 1));
    write_channels(j, c->var, running);
    return TN_OK;
}

static tn_status backward(columns_job *j, const tni_norm_columns *c, double *known)
{
    int64_t width = j->width;
    double *scale = known + MEANS * width, *rstd = known + RSTDS * width, n = (double)j->rows;
    double *sum = known + FIRST * width, *moment = known + SECOND * width;
    double *part = known + THIRD * width;
    read_channels(j, c->mean, 0, scale);
    put(j, j->mean, scale);
    read_channels(j, c->var, 1, rstd);
    for (int64_t i = 0; !c->training && i < width; i++)
        rstd[i] = rstd_of(j, rstd[i], c->eps);
    TN_TRY(sum_columns(j, GRAD_SUMS, sum));
    TN_TRY(sum_columns(j, MOMENTS, moment));
    if (c->out) {
        read_channels(j, c->weight, 1, scale);
        for (int64_t i = 0; i < width; i++)
            scale[i] *= rstd[i];
        put(j, j->scale, scale);
        for (int64_t i = 0; i < width; i++)
            part[i] = c->training ? scale[i] * sum[i] / n : 0.0;
        put(j, c->training ? j->b : j->mean, part);
        for (int64_t i = 0; i < width; i++)
            part[i] = c->training ? scale[i] * rstd[i] * rstd[i] * moment[i] / n : -0.0;
        put(j, j->shift, part);
        if (!c->training) { /* scaled alone: the input has no part in it, even one not finite */
            j->x = j->grad;
            j->grad = NULL;
        }
        TN_TRY(write_all(j));
    }
    for (int64_t i = 0; i < width; i++)
        moment[i] *= rstd[i];
    write_channels(j, c->dweight, moment);
    write_channels(j, c->dbias, sum);
    return TN_OK;
}

tn_status tni_norm_columns_run(const tni_norm_columns *c)
{
    columns_job j = {0};
    double *known = NULL;
    TN_TRY(prepare(&j, c, &known));
    tn_status status = c->grad ? backward(&j, c, known) : forward(&j, c, known);
    tni_free(known);
    return status;
}
