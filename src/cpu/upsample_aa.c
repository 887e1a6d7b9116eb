/* SPDX-License-Identifier: MIT */
/* cpu/upsample_aa.c: resampling without aliasing and its gradients. Where the result has fewer
 * places than the input, the filter is as wide as the places that one of the result stands for.
 * First the width, then the height, in float64; bytes are rounded after each, and their weights to
 * as many bits as 16 hold. */
#include <math.h>
#include <string.h>
#include "base/alloc.h"
#include "base/pool.h"
#include "cpu/ready.h"
#include "gen/cpu.h"
#include "shape/upsample.h"

/* Of one dimension: place o of the result is the sum over k < count[o] of weight[o * most + k]
 * times place first[o] + k of the input. */
typedef struct table {
    int64_t in, out, most, *first, *count;
    double *weight;
} table;

typedef struct job {
    table rows, columns;
    const double *x;
    double *middle, *out;
    bool whole; /* bytes */
} job;

/* ---- tables ---- */

static double filter(tni_upsample_mode mode, double x)
{
    const double a = -0.5;
    x = fabs(x);
    if (mode == TNI_UPSAMPLE_SMOOTH_LINEAR)
        return x < 1 ? 1 - x : 0;
    if (x < 1)
        return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? ((x - 5) * x + 8) * x * a - 4 * a : 0;
}

static void fill_table(table *t, tni_upsample_mode mode, double step, double support)
{
    double inverse = step >= 1 ? 1 / step : 1;
    for (int64_t o = 0; o < t->out; o++) {
        double center = step * ((double)o + 0.5), sum = 0, *w = t->weight + o * t->most;
        double low = floor(center - support + 0.5), high = floor(center + support + 0.5);
        int64_t first = low > 0 ? (int64_t)low : 0;
        int64_t end = high < (double)t->in ? (int64_t)high : t->in;
        first = first < t->in ? first : t->in - 1; /* scales may lead beyond the input */
        int64_t n = end > first ? end - first : 1;
        for (int64_t k = 0; k < n; k++) {
            w[k] = filter(mode, ((double)(first + k) - center + 0.5) * inverse);
            sum += w[k];
        }
        for (int64_t k = 0; sum != 0 && k < n; k++)
            w[k] /= sum;
        t->first[o] = first;
        t->count[o] = n;
    }
}

/* Weights of bytes are whole numbers over a power of two, as large as 16 bits hold: sums of float64
 * are exact then. */
static void round_weights(const table *t)
{
    double most = 0;
    int bits = 0;
    for (int64_t o = 0; o < t->out; o++)
        for (int64_t k = 0; k < t->count[o]; k++)
            most = fmax(most, t->weight[o * t->most + k]);
    while (bits < 22 && (int)(0.5 + most * (double)(1 << (bits + 1))) < 1 << 15)
        bits++;
    for (int64_t o = 0; o < t->out; o++)
        for (int64_t k = 0; k < t->count[o]; k++)
            t->weight[o * t->most + k] =
                round(t->weight[o * t->most + k] * (double)(1 << bits)) / (double)(1 << bits);
}

/* @p i: 1 for rows, 2 for columns. The room is the caller's to free, also after a failure. */
static tn_status make_table(const tni_upsample *u, int i, table *t, void **room)
{
    double in = (double)u->in[i], out = (double)u->out[i], step;
    if (u->align)
        step = out > 1 ? (in - 1) / (out - 1) : 0;
    else
        step = u->scale[i] > 0 ? 1 / u->scale[i] : in / out;
    double support = (u->mode == TNI_UPSAMPLE_SMOOTH_CUBIC ? 2 : 1) * (step > 1 ? step : 1);
    double widest = 2 * ceil(support) + 1;
    *t = (table){.in = u->in[i], .out = u->out[i]};
    t->most = widest < in ? (int64_t)widest : u->in[i];
    size_t each = 2 * sizeof(int64_t), weights, bytes;
    TN_CHECK(tni_size_mul((size_t)t->most, sizeof(double), &weights) &&
                 tni_size_mul((size_t)t->out, weights + each, &bytes),
             TN_NOMEM, "cannot allocate memory for the places of upsampling");
    *room = tni_alloc(bytes);
    TN_CHECK(*room, TN_NOMEM, "cannot allocate memory for the places of upsampling");
    t->first = *room;
    t->count = t->first + t->out;
    t->weight = (double *)(void *)(t->count + t->out);
    fill_table(t, u->mode, step, support);
    return TN_OK;
}

/* ---- planes ---- */

static double rounded(double x)
{
    x = floor(x + 0.5);
    return x < 0 ? 0 : x > 255 ? 255 : x;
}

static tn_status forward(int64_t begin, int64_t end, void *arg)
{
    const job *j = arg;
    const table *c = &j->columns, *r = &j->rows;
    for (int64_t p = begin; p < end; p++) {
        double *middle = j->middle + p * r->in * c->out, *out = j->out + p * r->out * c->out;
        for (int64_t y = 0; y < r->in; y++)
            for (int64_t o = 0; o < c->out; o++) {
                const double *x = j->x + (p * r->in + y) * c->in + c->first[o];
                double sum = 0;
                for (int64_t k = 0; k < c->count[o]; k++)
                    sum += x[k] * c->weight[o * c->most + k];
                middle[y * c->out + o] = j->whole ? rounded(sum) : sum;
            }
        for (int64_t o = 0; o < r->out; o++) {
            double *to = out + o * c->out;
            memset(to, 0, (size_t)c->out * sizeof *to);
            for (int64_t k = 0; k < r->count[o]; k++) {
                const double *from = middle + (r->first[o] + k) * c->out;
                double weight = r->weight[o * r->most + k];
                for (int64_t x = 0; x < c->out; x++)
                    to[x] += from[x] * weight;
            }
            for (int64_t x = 0; j->whole && x < c->out; x++)
                to[x] = rounded(to[x]);
        }
    }
    return TN_OK;
}

static tn_status backward(int64_t begin, int64_t end, void *arg)
{
    const job *j = arg;
    const table *c = &j->columns, *r = &j->rows;
    for (int64_t p = begin; p < end; p++) {
        double *middle = j->middle + p * r->in * c->out, *out = j->out + p * r->in * c->in;
        const double *grad = j->x + p * r->out * c->out;
        memset(middle, 0, (size_t)(r->in * c->out) * sizeof *middle);
        memset(out, 0, (size_t)(r->in * c->in) * sizeof *out);
        for (int64_t o = 0; o < r->out; o++)
            for (int64_t k = 0; k < r->count[o]; k++)
                for (int64_t x = 0; x < c->out; x++)
                    middle[(r->first[o] + k) * c->out + x] +=
                        grad[o * c->out + x] * r->weight[o * r->most + k];
        for (int64_t y = 0; y < r->in; y++)
            for (int64_t o = 0; o < c->out; o++)
                for (int64_t k = 0; k < c->count[o]; k++)
                    out[y * c->in + c->first[o] + k] +=
                        middle[y * c->out + o] * c->weight[o * c->most + k];
    }
    return TN_OK;
}

/* ---- operators ---- */

static tn_status with_tables(job *j, const tni_upsample *u, tn_tensor *from, tni_pool_fn run,
                             tn_tensor *out)
{
    TN_AUTO(tn_tensor) x = NULL;
    TN_AUTO(tn_tensor) middle = NULL;
    TN_AUTO(tn_tensor) made = NULL;
    int64_t planes = u->batch * u->channels, half[] = {planes, u->in[1], u->out[2]};
    TN_TRY(tni_ready(from, TN_DTYPE_F64, &x));
    TN_TRY(tni_tensor_new(3, half, NULL, TN_DTYPE_F64, TN_CPU, &middle));
    TN_TRY(tni_tensor_new(4, out->sizes, NULL, TN_DTYPE_F64, TN_CPU, &made));
    j->x = x->data;
    j->middle = middle->data;
    j->out = made->data;
    j->whole = out->dtype == TN_DTYPE_U8;
    if (j->whole) {
        round_weights(&j->rows);
        round_weights(&j->columns);
    }
    TN_TRY(tni_pool_for(planes, 1, run, j));
    return tni_copy_cpu(out, made);
}

/* @p sizes: of the input of the forward operator. */
static tn_status resample(const tni_upsample_args *a, tn_tensor *from, const int64_t *sizes,
                          tni_pool_fn run, tn_tensor *out)
{
    tni_upsample u;
    job j = {.whole = false};
    void *first = NULL, *second = NULL;
    if (out->numel == 0)
        return TN_OK;
    TN_TRY(tni_upsample_check(a, sizes, 4, &u));
    tn_status status = make_table(&u, 1, &j.rows, &first);
    if (status == TN_OK)
        status = make_table(&u, 2, &j.columns, &second);
    if (status == TN_OK)
        status = with_tables(&j, &u, from, run, out);
    tni_free(first);
    tni_free(second);
    return status;
}

#define RESAMPLE(name_, MODE)                                                                   \
    tn_status tni_cpu_upsample_##name_(                                                         \
        tn_tensor *self, const int64_t *output_size, int64_t output_size_n, bool align_corners, \
        tn_opt_float scales_h, tn_opt_float scales_w, tn_tensor *out)                           \
    {                                                                                           \
        tni_upsample_args a = {.mode = MODE,                                                    \
                               .spatial = 2,                                                    \
                               .align = align_corners,                                          \
                               .output_size = output_size,                                      \
                               .output_size_n = output_size_n,                                  \
                               .scale = {scales_h, scales_w}};                                  \
        return resample(&a, self, self->sizes, forward, out);                                   \
    }                                                                                           \
    tn_status tni_cpu_upsample_##name_##_backward(                                              \
        tn_tensor *grad_output, const int64_t *output_size, int64_t output_size_n,              \
        const int64_t *input_size, int64_t input_size_n, bool align_corners,                    \
        tn_opt_float scales_h, tn_opt_float scales_w, tn_tensor *out)                           \
    {                                                                                           \
        (void)input_size_n;                                                                     \
        tni_upsample_args a = {.mode = MODE,                                                    \
                               .spatial = 2,                                                    \
                               .align = align_corners,                                          \
                               .output_size = output_size,                                      \
                               .output_size_n = output_size_n,                                  \
                               .scale = {scales_h, scales_w}};                                  \
        return resample(&a, grad_output, input_size, backward, out);                            \
    }

RESAMPLE(bilinear2d_aa, TNI_UPSAMPLE_SMOOTH_LINEAR)
RESAMPLE(bicubic2d_aa, TNI_UPSAMPLE_SMOOTH_CUBIC)
