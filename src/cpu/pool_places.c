/* SPDX-License-Identifier: MIT */
/* cpu/pool_places.c: elements to given places of planes, and the largest ones of windows at random
 * places. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "base/pool.h"
#include "cpu/ready.h"
#include "gen/cpu.h"

typedef struct job {
    const char *x;
    const double *wide, *samples;
    const int64_t *places;
    char *out;
    double *sums;
    int64_t *found;
    int64_t planes, in[3], to[3], kernel[3], channels;
    size_t itemsize;
    int spatial;
    bool single; /* windows are placed in float */
} job;

static int64_t volume(const int64_t *n)
{
    return n[0] * n[1] * n[2];
}

/* The last @p spatial sizes of @p t, with 1 before them. */
static void last_sizes(const tn_tensor *t, int spatial, int64_t *n)
{
    for (int i = 0; i < 3; i++)
        n[i] = i < 3 - spatial ? 1 : t->sizes[t->ndim - 3 + i];
}

/* Every place is one of a plane of @p n. */
static tn_status check_places(const int64_t *places, int64_t count, const int64_t *n, int spatial)
{
    char text[96];
    if (spatial == 2)
        snprintf(text, sizeof text, "%lldx%lld", (long long)n[1], (long long)n[2]);
    else
        snprintf(text, sizeof text, "%lldx%lldx%lld", (long long)n[0], (long long)n[1],
                 (long long)n[2]);
    int64_t most = volume(n);
    for (int64_t i = 0; i < count; i++)
        TN_CHECK(places[i] >= 0 && places[i] < most, TN_INVALID,
                 "Found an invalid max index: %lld (output volumes are of size %s)",
                 (long long)places[i], text);
    return TN_OK;
}

/* ---- unpooling ---- */

static tn_status unpool_planes(int64_t begin, int64_t end, void *arg)
{
    const job *j = arg;
    int64_t from = volume(j->in), to = volume(j->to);
    for (int64_t p = begin; p < end; p++) {
        char *out = j->out + (size_t)(p * to) * j->itemsize;
        memset(out, 0, (size_t)to * j->itemsize);
        for (int64_t i = p * from; i < (p + 1) * from; i++)
            memcpy(out + (size_t)j->places[i] * j->itemsize, j->x + (size_t)i * j->itemsize,
                   j->itemsize);
    }
    return TN_OK;
}

static tn_status unpool(tn_tensor *self, tn_tensor *indices, int spatial, tn_tensor *out)
{
    TN_AUTO(tn_tensor) x = NULL;
    TN_AUTO(tn_tensor) places = NULL;
    TN_AUTO(tn_tensor) made = NULL;
    if (out->numel == 0 && self->numel == 0)
        return TN_OK;
    TN_TRY(tni_ready(self, (tn_dtype)self->dtype, &x));
    TN_TRY(tni_ready(indices, TN_DTYPE_I64, &places));
    job j = {.x = x->data,
             .places = places->data,
             .itemsize = tni_dtype_size((tn_dtype)self->dtype),
             .spatial = spatial};
    last_sizes(self, spatial, j.in);
    last_sizes(out, spatial, j.to);
    j.planes = self->numel / volume(j.in);
    TN_TRY(check_places(j.places, self->numel, j.to, spatial));
    TN_TRY(tni_work_of(out, (tn_dtype)out->dtype, &made));
    j.out = made->data;
    TN_TRY(tni_pool_for(j.planes, 16, unpool_planes, &j));
    return tni_work_back(out, made);
}

tn_status tni_cpu_max_unpool2d(tn_tensor *self, tn_tensor *indices, const int64_t *output_size,
                               int64_t output_size_n, tn_tensor *out)
{
    (void)output_size;
    (void)output_size_n;
    return unpool(self, indices, 2, out);
}

tn_status tni_cpu_max_unpool3d(tn_tensor *self, tn_tensor *indices, const int64_t *output_size,
                               int64_t output_size_n, const int64_t *stride, int64_t stride_n,
                               const int64_t *padding, int64_t padding_n, tn_tensor *out)
{
    (void)output_size;
    (void)output_size_n;
    (void)stride;
    (void)stride_n;
    (void)padding;
    (void)padding_n;
    return unpool(self, indices, 3, out);
}

/* ---- windows at random places ---- */

/* Where window number @p i of dimension @p d begins: Graham's pseudorandom sequence, the last
 * window at the end. */
static int64_t start_of(const job *j, int d, double sample, int64_t i)
{
    int64_t room = j->in[d] - j->kernel[d], n = j->to[d];
    if (i == n - 1)
        return room;
    if (j->single) {
        float step = (float)room / (float)(n - 1), s = (float)sample;
        return (int64_t)(((float)i + s) * step) - (int64_t)(s * step);
    }
    double step = (double)room / (double)(n - 1);
    return (int64_t)(((double)i + sample) * step) - (int64_t)(sample * step);
}

static int64_t largest(const job *j, const double *x, const int64_t *start)
{
    int64_t best = (start[0] * j->in[1] + start[1]) * j->in[2] + start[2];
    double most = -(double)INFINITY;
    for (int64_t a = start[0]; a < start[0] + j->kernel[0]; a++)
        for (int64_t b = start[1]; b < start[1] + j->kernel[1]; b++)
            for (int64_t c = start[2]; c < start[2] + j->kernel[2]; c++) {
                int64_t at = (a * j->in[1] + b) * j->in[2] + c;
                if (x[at] > most || isnan(x[at])) {
                    most = x[at];
                    best = at;
                }
            }
    return best;
}

static tn_status fractional_planes(int64_t begin, int64_t end, void *arg)
{
    const job *j = arg;
    int first = 3 - j->spatial;
    for (int64_t p = begin; p < end; p++) {
        const double *x = j->wide + p * volume(j->in), *s = j->samples + p * j->spatial;
        int64_t *to = j->found + p * volume(j->to), at[3], start[3];
        double sample[3] = {0};
        for (int d = first; d < 3; d++) /* width first, when there are two */
            sample[d] = j->spatial == 2 ? s[2 - d] : s[d];
        for (at[0] = 0; at[0] < j->to[0]; at[0]++)
            for (at[1] = 0; at[1] < j->to[1]; at[1]++)
                for (at[2] = 0; at[2] < j->to[2]; at[2]++) {
                    for (int d = 0; d < 3; d++)
                        start[d] = d < first ? 0 : start_of(j, d, sample[d], at[d]);
                    int64_t best = largest(j, x, start);
                    j->sums[to - j->found] = x[best];
                    *to++ = best;
                }
    }
    return TN_OK;
}

static tn_status fractional(tn_tensor *self, const int64_t *kernel, tn_tensor *samples, int spatial,
                            tn_tensor *out0, tn_tensor *out1)
{
    TN_AUTO(tn_tensor) x = NULL;
    TN_AUTO(tn_tensor) s = NULL;
    TN_AUTO(tn_tensor) most = NULL;
    TN_AUTO(tn_tensor) found = NULL;
    if (out0->numel == 0)
        return TN_OK;
    TN_TRY(tni_ready(self, TN_DTYPE_F64, &x));
    TN_TRY(tni_ready(samples, TN_DTYPE_F64, &s));
    TN_TRY(tni_tensor_new(out0->ndim, out0->sizes, NULL, TN_DTYPE_F64, TN_CPU, &most));
    TN_TRY(tni_tensor_new(out1->ndim, out1->sizes, NULL, TN_DTYPE_I64, TN_CPU, &found));
    job j = {.wide = x->data,
             .samples = s->data,
             .sums = most->data,
             .found = found->data,
             .kernel = {1, 1, 1},
             .spatial = spatial,
             .single = self->dtype != TN_DTYPE_F64};
    last_sizes(self, spatial, j.in);
    last_sizes(out0, spatial, j.to);
    for (int i = 0; i < spatial; i++)
        j.kernel[3 - spatial + i] = kernel[i];
    TN_TRY(tni_pool_for(self->numel / volume(j.in), 16, fractional_planes, &j));
    TN_TRY(tni_copy_cpu(out0, most));
    return tni_copy_cpu(out1, found);
}

tn_status tni_cpu_fractional_max_pool2d(tn_tensor *self, const int64_t *kernel_size,
                                        int64_t kernel_size_n, const int64_t *output_size,
                                        int64_t output_size_n, tn_tensor *random_samples,
                                        tn_tensor *out0, tn_tensor *out1)
{
    (void)kernel_size_n;
    (void)output_size;
    (void)output_size_n;
    return fractional(self, kernel_size, random_samples, 2, out0, out1);
}

tn_status tni_cpu_fractional_max_pool3d(tn_tensor *self, const int64_t *kernel_size,
                                        int64_t kernel_size_n, const int64_t *output_size,
                                        int64_t output_size_n, tn_tensor *random_samples,
                                        tn_tensor *out0, tn_tensor *out1)
{
    (void)kernel_size_n;
    (void)output_size;
    (void)output_size_n;
    return fractional(self, kernel_size, random_samples, 3, out0, out1);
}

static tn_status add_planes(int64_t begin, int64_t end, void *arg)
{
    const job *j = arg;
    int64_t from = volume(j->in), to = volume(j->to);
    for (int64_t p = begin; p < end; p++)
        for (int64_t i = p * from; i < (p + 1) * from; i++)
            j->sums[p * to + j->places[i]] += j->wide[i];
    return TN_OK;
}

/* The gradient added up at the places of the windows' largest elements. */
static tn_status back(tn_tensor *grad, tn_tensor *indices, int spatial, tn_tensor *out)
{
    TN_AUTO(tn_tensor) g = NULL;
    TN_AUTO(tn_tensor) places = NULL;
    TN_AUTO(tn_tensor) made = NULL;
    if (out->numel == 0)
        return TN_OK;
    TN_TRY(tni_ready(grad, TN_DTYPE_F64, &g));
    TN_TRY(tni_ready(indices, TN_DTYPE_I64, &places));
    TN_TRY(tni_tensor_new(out->ndim, out->sizes, NULL, TN_DTYPE_F64, TN_CPU, &made));
    memset(made->data, 0, (size_t)out->numel * sizeof(double));
    job j = {.wide = g->data, .places = places->data, .sums = made->data, .spatial = spatial};
    last_sizes(grad, spatial, j.in);
    last_sizes(out, spatial, j.to);
    TN_TRY(check_places(j.places, grad->numel, j.to, spatial));
    TN_TRY(tni_pool_for(grad->numel / volume(j.in), 16, add_planes, &j));
    return tni_copy_cpu(out, made);
}

tn_status tni_cpu_fractional_max_pool2d_backward(tn_tensor *grad_output, tn_tensor *self,
                                                 const int64_t *kernel_size, int64_t kernel_size_n,
                                                 const int64_t *output_size, int64_t output_size_n,
                                                 tn_tensor *indices, tn_tensor *out)
{
    (void)self;
    (void)kernel_size;
    (void)kernel_size_n;
    (void)output_size;
    (void)output_size_n;
    return back(grad_output, indices, 2, out);
}

tn_status tni_cpu_fractional_max_pool3d_backward(tn_tensor *grad_output, tn_tensor *self,
                                                 const int64_t *kernel_size, int64_t kernel_size_n,
                                                 const int64_t *output_size, int64_t output_size_n,
                                                 tn_tensor *indices, tn_tensor *out)
{
    (void)self;
    (void)kernel_size;
    (void)kernel_size_n;
    (void)output_size;
    (void)output_size_n;
    return back(grad_output, indices, 3, out);
}
