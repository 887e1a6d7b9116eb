/* SPDX-License-Identifier: MIT */
/* cpu/group_norm.c: group normalisation and its gradients, on row-major copies of what is not. */
#include <math.h>
#include <string.h>
#include "base/pool.h"
#include "cpu/lines.h"
#include "cpu/ready.h"
#include "cpu/rows.h"
#include "gen/kernels.h"
#include "shape/index.h"
#include "shape/norm.h"

#define GRAIN 16384

typedef struct group_job {
    const tni_rows_loops *loops;
    bool is_double;
    char *out, *mean, *rstd; /* backward: out is dx */
    const char *x, *dy, *weight, *bias;
    double *dots; /* for each sample and channel the sums of dy and of dy * (x - mean) */
    int64_t samples, channels, groups, pixels;
    int64_t itemsize;
    double eps;
} group_job;

static double at(const group_job *j, const char *x, int64_t i)
{
    return j->is_double ? ((const double *)(const void *)x)[i]
                        : (double)((const float *)(const void *)x)[i];
}

static void put(const group_job *j, char *x, int64_t i, double value)
{
    if (j->is_double)
        ((double *)(void *)x)[i] = value;
    else
        ((float *)(void *)x)[i] = (float)value;
}

static tn_status forward_groups(int64_t begin, int64_t end, void *arg)
{
    const group_job *j = arg;
    int64_t each = j->channels / j->groups, n = each * j->pixels;
    for (int64_t i = begin; i < end; i++) {
        double mean, m2, rstd;
        j->loops->moments(j->x + i * n * j->itemsize, n, &mean, &m2);
        double variance = m2 / (double)n;
        rstd = j->is_double ? 1.0 / sqrt(variance + j->eps)
                            : (double)(1.0f / sqrtf((float)variance + (float)j->eps));
        put(j, j->mean, i, mean);
        put(j, j->rstd, i, rstd);
        for (int64_t c = 0; c < each; c++) {
            int64_t channel = i % j->groups * each + c;
            int64_t offset = (i * n + c * j->pixels) * j->itemsize;
            j->loops->affine(j->out + offset, j->x + offset, j->pixels, mean,
                             rstd * (j->weight ? at(j, j->weight, channel) : 1.0),
                             j->bias ? at(j, j->bias, channel) : 0.0);
        }
    }
    return TN_OK;
}

static tn_status backward_groups(int64_t begin, int64_t end, void *arg)
{
    const group_job *j = arg;
    int64_t each = j->channels / j->groups, n = each * j->pixels;
    for (int64_t i = begin; i < end; i++) {
        double mean = at(j, j->mean, i), rstd = at(j, j->rstd, i), sum = 0, moment = 0;
        for (int64_t c = 0; c < each; c++) {
            int64_t channel = i % j->groups * each + c;
            int64_t offset = (i * n + c * j->pixels) * j->itemsize;
            double *dots = j->dots + 2 * (i * each + c);
            double w = j->weight ? at(j, j->weight, channel) : 1.0;
            j->loops->dots(j->dy + offset, j->x + offset, j->pixels, mean, &dots[0], &dots[1]);
            sum += w * dots[0];
            moment += w * dots[1];
        }
        for (int64_t c = 0; j->out && c < each; c++) {
            int64_t channel = i % j->groups * each + c;
            int64_t offset = (i * n + c * j->pixels) * j->itemsize;
            double w = j->weight ? at(j, j->weight, channel) : 1.0;
            const double abc[] = {rstd * w, rstd * sum / (double)n,
                                  rstd * rstd * rstd * moment / (double)n};
            j->loops->blend(j->out + offset, j->dy + offset, j->x + offset, j->pixels, mean, abc);
        }
    }
    return TN_OK;
}

static tn_status each_group(group_job *j, tni_pool_fn fn)
{
    int64_t n = j->channels / j->groups * j->pixels;
    return tni_pool_for(j->samples * j->groups, n < GRAIN ? GRAIN / (n + 1) + 1 : 1, fn, j);
}

static tn_status check_sizes(const tn_tensor *input, int64_t n, int64_t c, int64_t pixels)
{
    int64_t found = 1;
    TN_CHECK(input->ndim >= 2, TN_INVALID,
             "Expected at least 2 dimensions for input tensor but received %d", input->ndim);
    for (int d = 2; d < input->ndim; d++)
        found *= input->sizes[d];
    TN_CHECK(input->sizes[0] == n && input->sizes[1] == c && found == pixels, TN_INVALID,
             "Expected X.numel() == N * C * HxW to be true, but got false.");
    return TN_OK;
}

static tn_status compute_forward(tn_tensor *input, tn_tensor *weight, tn_tensor *bias, group_job *j,
                                 tn_tensor *out, tn_tensor *mean, tn_tensor *rstd)
{
    tn_dtype compute = tni_compute_dtype((tn_dtype)input->dtype);
    TN_AUTO(tn_tensor) x = NULL;
    TN_AUTO(tn_tensor) w = NULL;
    TN_AUTO(tn_tensor) b = NULL;
    TN_AUTO(tn_tensor) work = NULL;
    TN_AUTO(tn_tensor) means = NULL;
    TN_AUTO(tn_tensor) rstds = NULL;
    TN_TRY(tni_ready(input, compute, &x));
    TN_TRY(tni_ready(weight, compute, &w));
    TN_TRY(tni_ready(bias, compute, &b));
    TN_TRY(tni_work_of(out, compute, &work));
    TN_TRY(tni_work_of(mean, compute, &means));
    TN_TRY(tni_work_of(rstd, compute, &rstds));
    j->loops = tni_rows_of(tni_cpu_kernels(), compute);
    j->is_double = compute == TN_DTYPE_F64;
    j->itemsize = (int64_t)tni_dtype_size(compute);
    j->x = x->data;
    j->weight = w ? w->data : NULL;
    j->bias = b ? b->data : NULL;
    j->out = work->data;
    j->mean = means->data;
    j->rstd = rstds->data;
    TN_TRY(each_group(j, forward_groups));
    TN_TRY(tni_work_back(out, work));
    TN_TRY(tni_work_back(mean, means));
    return tni_work_back(rstd, rstds);
}

tn_status tni_kernel_native_group_norm(tn_call *call, tn_tensor *input, tn_tensor *weight,
                                       tn_tensor *bias, int64_t N, int64_t C, int64_t HxW,
                                       int64_t group, double eps, tn_tensor **out0,
                                       tn_tensor **out1, tn_tensor **out2)
{
    tn_dtype statistics;
    (void)call;
    TN_TRY(tni_check_groups(input, group, weight, bias));
    TN_TRY(tni_check_norm_dtypes("GroupNormKernelImpl", input, weight, bias, &statistics));
    TN_TRY(check_sizes(input, N, C, HxW));
    const int64_t sizes[] = {N, group};
    TN_AUTO(tn_tensor) out = NULL;
    TN_AUTO(tn_tensor) mean = NULL;
    TN_AUTO(tn_tensor) rstd = NULL;
    TN_TRY(tni_norm_result(input, (tn_dtype)input->dtype, &out));
    TN_TRY(tni_tensor_new(2, sizes, NULL, statistics, input->device, &mean));
    TN_TRY(tni_tensor_new(2, sizes, NULL, statistics, input->device, &rstd));
    if (!tni_is_meta(input) && mean->numel) {
        group_job j = {.samples = N, .channels = C, .groups = group, .pixels = HxW, .eps = eps};
        TN_TRY(compute_forward(input, weight, bias, &j, out, mean, rstd));
    }
    *out0 = TN_MOVE(out);
    *out1 = TN_MOVE(mean);
    *out2 = TN_MOVE(rstd);
    return TN_OK;
}

/* ---- backward ---- */

/* The gradients of weight and bias from the sums of samples. */
static tn_status param_gradients(const group_job *j, tn_tensor *dw, tn_tensor *db)
{
    int64_t each = j->channels / j->groups;
    tn_tensor *outs[] = {dw, db};
    for (int k = 0; k < 2; k++) {
        if (!outs[k])
            continue;
        TN_AUTO(tn_tensor) sums = NULL;
        TN_TRY(tni_tensor_new(1, &j->channels, NULL, TN_DTYPE_F64, TN_CPU, &sums));
        for (int64_t c = 0; c < j->channels; c++) {
            double sum = 0;
            for (int64_t s = 0; s < j->samples; s++) {
                const double *dots = j->dots + 2 * (s * j->channels + c);
                sum += k == 0 ? dots[1] * at(j, j->rstd, s * j->groups + c / each) : dots[0];
            }
            ((double *)sums->data)[c] = sum;
        }
        if (j->channels)
            TN_TRY(tni_copy_cpu(outs[k], sums));
    }
    return TN_OK;
}

static tn_status compute_backward(tn_tensor *grad_out, tn_tensor *input, tn_tensor *mean,
                                  tn_tensor *rstd, tn_tensor *weight, group_job *j, tn_tensor *dx,
                                  tn_tensor *dw, tn_tensor *db)
{
    tn_dtype compute = tni_compute_dtype((tn_dtype)input->dtype);
    const int64_t sizes[] = {j->samples, j->channels, 2};
    TN_AUTO(tn_tensor) dy = NULL;
    TN_AUTO(tn_tensor) x = NULL;
    TN_AUTO(tn_tensor) w = NULL;
    TN_AUTO(tn_tensor) m = NULL;
    TN_AUTO(tn_tensor) s = NULL;
    TN_AUTO(tn_tensor) work = NULL;
    TN_AUTO(tn_tensor) dots = NULL;
    TN_TRY(tni_ready(grad_out, compute, &dy));
    TN_TRY(tni_ready(input, compute, &x));
    TN_TRY(tni_ready(weight, compute, &w));
    TN_TRY(tni_ready(mean, compute, &m));
    TN_TRY(tni_ready(rstd, compute, &s));
    TN_TRY(tni_tensor_new(3, sizes, NULL, TN_DTYPE_F64, TN_CPU, &dots));
    if (dx)
        TN_TRY(tni_work_of(dx, compute, &work));
    j->loops = tni_rows_of(tni_cpu_kernels(), compute);
    j->is_double = compute == TN_DTYPE_F64;
    j->itemsize = (int64_t)tni_dtype_size(compute);
    j->dy = dy->data;
    j->x = x->data;
    j->weight = w ? w->data : NULL;
    j->mean = m->data;
    j->rstd = s->data;
    j->dots = dots->data;
    j->out = work ? work->data : NULL;
    TN_TRY(each_group(j, backward_groups));
    if (dx)
        TN_TRY(tni_work_back(dx, work));
    return param_gradients(j, dw, db);
}

tn_status tni_kernel_native_group_norm_backward(tn_call *call, tn_tensor *grad_out,
                                                tn_tensor *input, tn_tensor *mean, tn_tensor *rstd,
                                                tn_tensor *weight, int64_t N, int64_t C,
                                                int64_t HxW, int64_t group, const bool *output_mask,
                                                int64_t output_mask_n, tn_tensor **out0,
                                                tn_tensor **out1, tn_tensor **out2)
{
    tn_dtype statistics;
    (void)call;
    TN_TRY(tni_check_mask_length(output_mask_n, 3));
    TN_TRY(tni_check_groups(input, group, weight, NULL));
    TN_TRY(tni_check_norm_dtypes("GroupNormBackwardKernelImpl", input, weight, NULL, &statistics));
    TN_TRY(check_sizes(input, N, C, HxW));
    TN_TRY(check_sizes(grad_out, N, C, HxW));
    TN_TRY(tni_same_device(input, grad_out));
    TN_TRY(tni_same_device(input, mean));
    TN_TRY(tni_same_device(input, rstd));
    TN_CHECK(grad_out->dtype == input->dtype, TN_INVALID, "expected scalar type %s but found %s",
             tni_dtype_text((tn_dtype)input->dtype), tni_dtype_text((tn_dtype)grad_out->dtype));
    TN_CHECK(mean->numel == N * group && rstd->numel == N * group, TN_INVALID,
             "mean and rstd must have one element for each of %lld groups of %lld samples",
             (long long)group, (long long)N);
    TN_AUTO(tn_tensor) dx = NULL;
    TN_AUTO(tn_tensor) dw = NULL;
    TN_AUTO(tn_tensor) db = NULL;
    tn_dtype w_dtype = weight ? (tn_dtype)weight->dtype : (tn_dtype)input->dtype;
    if (output_mask[0])
        TN_TRY(tni_norm_result(input, (tn_dtype)input->dtype, &dx));
    if (output_mask[1])
        TN_TRY(tni_tensor_new(1, &C, NULL, w_dtype, input->device, &dw));
    if (output_mask[2])
        TN_TRY(tni_tensor_new(1, &C, NULL, w_dtype, input->device, &db));
    if (!tni_is_meta(input)) {
        group_job j = {.samples = N, .channels = C, .groups = group, .pixels = HxW};
        TN_TRY(compute_backward(grad_out, input, mean, rstd, weight, &j, dx, dw, db));
    }
    *out0 = TN_MOVE(dx);
    *out1 = TN_MOVE(dw);
    *out2 = TN_MOVE(db);
    return TN_OK;
}
