/* SPDX-License-Identifier: MIT */
/* cpu/batch_norm.c: batch normalisation and its gradients. A channel is a line: its elements are
 * brought together, and statistics are those of one run of numbers. Where channels are the fastest
 * dimension they are columns, see batch_norm.h. */
#include <math.h>
#include <string.h>
#include "base/pool.h"
#include "cpu/batch_norm.h"
#include "cpu/lines.h"
#include "cpu/ready.h"
#include "cpu/rows.h"
#include "gen/kernels.h"
#include "shape/index.h"
#include "shape/norm.h"

#define PLANE_GRAIN 16384

/* All dimensions but the channels'. */
#define NOT_CHANNELS (~UINT64_C(2))

typedef struct channel_job {
    const tni_rows_loops *loops;
    bool is_double;
    bool training;
    int64_t n;
    double momentum, eps;
} channel_job;

static double load(const channel_job *j, const void *x)
{
    return j->is_double ? *(const double *)x : (double)*(const float *)x;
}

static void store(const channel_job *j, void *to, double value)
{
    if (!to)
        return;
    if (j->is_double)
        *(double *)to = value;
    else
        *(float *)to = (float)value;
}

static channel_job job_of(const tn_tensor *input, tn_dtype compute, bool training, double eps)
{
    return (channel_job){.loops = tni_rows_of(tni_cpu_kernels(), compute),
                         .is_double = compute == TN_DTYPE_F64,
                         .training = training,
                         .n = tni_line_length(input, NOT_CHANNELS),
                         .eps = eps};
}

static double rstd_of(const channel_job *j, double variance)
{
    return j->is_double ? 1.0 / sqrt(variance + j->eps)
                        : (double)(1.0f / sqrtf((float)variance + (float)j->eps));
}

enum { OUT, X, MEAN, RSTD, WEIGHT, BIAS, RUNNING_MEAN, RUNNING_VAR };

static void move_towards(const channel_job *j, void *running, double value)
{
    if (running)
        store(j, running, (1 - j->momentum) * load(j, running) + j->momentum * value);
}

static tn_status forward_channel(void *const *line, void *scratch, void *ctx)
{
    const channel_job *j = ctx;
    double mean, m2, rstd, n = (double)j->n;
    (void)scratch;
    if (j->training) {
        j->loops->moments(line[X], j->n, &mean, &m2);
        rstd = rstd_of(j, m2 / n);
        store(j, line[MEAN], mean);
        store(j, line[RSTD], rstd);
        move_towards(j, line[RUNNING_MEAN], mean);
        move_towards(j, line[RUNNING_VAR], m2 / (n - 1));
    } else {
        mean = load(j, line[RUNNING_MEAN]);
        rstd = rstd_of(j, load(j, line[RUNNING_VAR]));
    }
    double weight = line[WEIGHT] ? load(j, line[WEIGHT]) : 1.0;
    double bias = line[BIAS] ? load(j, line[BIAS]) : 0.0;
    j->loops->affine(line[OUT], line[X], j->n, mean, rstd * weight, bias);
    return TN_OK;
}

/* ---- with statistics that are given, planes ---- */

/* Nothing is summed up: a plane of one channel of one sample is computed where it lies. */
typedef struct plane_job {
    const channel_job *channel;
    char *out;
    const char *x;
    tn_tensor *mean, *var, *weight, *bias; /* of the dtype that is computed in, or NULL */
    int64_t channels, pixels, itemsize;
} plane_job;

static double of_channel(const plane_job *p, const tn_tensor *t, int64_t c, double otherwise)
{
    return t ? load(p->channel, (const char *)t->data + c * p->itemsize) : otherwise;
}

static tn_status forward_planes(int64_t begin, int64_t end, void *arg)
{
    const plane_job *p = arg;
    for (int64_t i = begin; i < end; i++) {
        int64_t c = i % p->channels, at = i * p->pixels * p->itemsize;
        double rstd = rstd_of(p->channel, of_channel(p, p->var, c, 1));
        p->channel->loops->affine(p->out + at, p->x + at, p->pixels, of_channel(p, p->mean, c, 0),
                                  rstd * of_channel(p, p->weight, c, 1),
                                  of_channel(p, p->bias, c, 0));
    }
    return TN_OK;
}

static bool has_planes(const tn_tensor *input, const tn_tensor *out)
{
    return (input->dtype == TN_DTYPE_F32 || input->dtype == TN_DTYPE_F64) &&
           (input->flags & TNI_CONTIGUOUS) && (out->flags & TNI_CONTIGUOUS) && input->ndim > 2;
}

static tn_status run_planes(tn_tensor *input, tn_tensor *const *params, double eps, tn_tensor *out)
{
    tn_dtype compute = (tn_dtype)input->dtype;
    const channel_job j = job_of(input, compute, false, eps);
    plane_job p = {.channel = &j,
                   .out = out->data,
                   .x = input->data,
                   .channels = input->sizes[1],
                   .pixels = input->numel / (input->sizes[0] * input->sizes[1]),
                   .itemsize = (int64_t)tni_dtype_size(compute)};
    TN_AUTO(tn_tensor) weight = NULL;
    TN_AUTO(tn_tensor) bias = NULL;
    TN_AUTO(tn_tensor) mean = NULL;
    TN_AUTO(tn_tensor) var = NULL;
    TN_TRY(tni_ready(params[0], compute, &weight));
    TN_TRY(tni_ready(params[1], compute, &bias));
    TN_TRY(tni_ready(params[2], compute, &mean));
    TN_TRY(tni_ready(params[3], compute, &var));
    p.weight = weight;
    p.bias = bias;
    p.mean = mean;
    p.var = var;
    return tni_pool_for(input->numel / p.pixels,
                        p.pixels < PLANE_GRAIN ? PLANE_GRAIN / p.pixels : 1, forward_planes, &p);
}

static tn_status forward(tn_tensor *input, tn_tensor *const *params, bool training, double momentum,
                         double eps, tn_tensor **out0, tn_tensor **out1, tn_tensor **out2)
{
    char text[TNI_SIZES_TEXT];
    tn_dtype statistics;
    TN_TRY(tni_check_batch_norm(input, params, training, &statistics));
    TN_CHECK(!training || input->numel > 0, TN_INVALID,
             "input tensor must have at least one element, but got input_sizes = %s",
             tni_format_sizes(input->ndim, input->sizes, text, sizeof text));
    for (int i = 2; i < 4 && training; i++) /* the running statistics, which are written */
        if (params[i])
            TN_TRY(tni_check_internal_overlap(params[i]));
    TN_AUTO(tn_tensor) out = NULL;
    TN_AUTO(tn_tensor) mean = NULL;
    TN_AUTO(tn_tensor) rstd = NULL;
    int64_t channels = training ? input->sizes[1] : 0;
    TN_TRY(tni_batch_norm_result(input, &out));
    TN_TRY(tni_tensor_new(1, &channels, NULL, statistics, input->device, &mean));
    TN_TRY(tni_tensor_new(1, &channels, NULL, statistics, input->device, &rstd));
    const tni_norm_columns columns = {.x = input,
                                      .training = training,
                                      .momentum = momentum,
                                      .eps = eps,
                                      .weight = params[0],
                                      .bias = params[1],
                                      .mean = params[2],
                                      .var = params[3],
                                      .save_mean = mean,
                                      .save_rstd = rstd,
                                      .out = out};
    if (!tni_is_meta(input) && input->numel && tni_norm_columns_fit(&columns)) {
        TN_TRY(tni_norm_columns_run(&columns));
    } else if (!tni_is_meta(input) && input->numel && !training && has_planes(input, out)) {
        TN_TRY(run_planes(input, params, eps, out));
    } else if (!tni_is_meta(input) && input->numel) {
        tn_dtype compute = tni_compute_dtype((tn_dtype)input->dtype);
        channel_job j = job_of(input, compute, training, eps);
        j.momentum = momentum;
        tni_line lines[] = {
            [OUT] = {out, compute, TNI_LINE_WRITE},
            [X] = {input, compute, TNI_LINE_READ},
            [MEAN] = {training ? mean : NULL, compute, TNI_LINE_WRITE},
            [RSTD] = {training ? rstd : NULL, compute, TNI_LINE_WRITE},
            [WEIGHT] = {params[0], compute, TNI_LINE_READ},
            [BIAS] = {params[1], compute, TNI_LINE_READ},
            [RUNNING_MEAN] = {params[2], compute, training ? TNI_LINE_UPDATE : TNI_LINE_READ},
            [RUNNING_VAR] = {params[3], compute, training ? TNI_LINE_UPDATE : TNI_LINE_READ},
        };
        TN_TRY(tni_lines(input, NOT_CHANNELS, lines, 8, 0, forward_channel, &j));
    }
    *out0 = TN_MOVE(out);
    *out1 = TN_MOVE(mean);
    *out2 = TN_MOVE(rstd);
    return TN_OK;
}

tn_status tni_kernel_native_batch_norm(tn_call *call, tn_tensor *input, tn_tensor *weight,
                                       tn_tensor *bias, tn_tensor *running_mean,
                                       tn_tensor *running_var, bool training, double momentum,
                                       double eps, tn_tensor **out0, tn_tensor **out1,
                                       tn_tensor **out2)
{
    tn_tensor *const params[] = {weight, bias, running_mean, running_var};
    (void)call;
    TN_CHECK(!running_mean == !running_var, TN_VALUE,
             "running_mean and running_var must either both be None or neither be None");
    return forward(input, params, training, momentum, eps, out0, out1, out2);
}

tn_status tni_kernel__native_batch_norm_legit(tn_call *call, tn_tensor *input, tn_tensor *weight,
                                              tn_tensor *bias, tn_tensor *running_mean,
                                              tn_tensor *running_var, bool training,
                                              double momentum, double eps, tn_tensor **out0,
                                              tn_tensor **out1, tn_tensor **out2)
{
    tn_tensor *const params[] = {weight, bias, running_mean, running_var};
    (void)call;
    return forward(input, params, training, momentum, eps, out0, out1, out2);
}

tn_status tni_kernel__native_batch_norm_legit_no_stats(tn_call *call, tn_tensor *input,
                                                       tn_tensor *weight, tn_tensor *bias,
                                                       bool training, double momentum, double eps,
                                                       tn_tensor **out0, tn_tensor **out1,
                                                       tn_tensor **out2)
{
    tn_tensor *const params[] = {weight, bias, NULL, NULL};
    (void)call;
    return forward(input, params, training, momentum, eps, out0, out1, out2);
}

tn_status tni_kernel__native_batch_norm_legit_no_training(tn_call *call, tn_tensor *input,
                                                          tn_tensor *weight, tn_tensor *bias,
                                                          tn_tensor *running_mean,
                                                          tn_tensor *running_var, double momentum,
                                                          double eps, tn_tensor **out0,
                                                          tn_tensor **out1, tn_tensor **out2)
{
    tn_tensor *const params[] = {weight, bias, running_mean, running_var};
    (void)call;
    return forward(input, params, false, momentum, eps, out0, out1, out2);
}

/* ---- backward ---- */

enum { DX, DY, B_X, B_MEAN, B_RSTD, B_WEIGHT, DWEIGHT, DBIAS };

static tn_status backward_channel(void *const *line, void *scratch, void *ctx)
{
    const channel_job *j = ctx;
    double sum, moment, mean = load(j, line[B_MEAN]), n = (double)j->n;
    double rstd = j->training ? load(j, line[B_RSTD]) : rstd_of(j, load(j, line[B_RSTD]));
    double scale = rstd * (line[B_WEIGHT] ? load(j, line[B_WEIGHT]) : 1.0);
    (void)scratch;
    j->loops->dots(line[DY], line[B_X], j->n, mean, &sum, &moment);
    if (line[DX]) {
        const double abc[] = {scale, scale * sum / n, scale * rstd * rstd * moment / n};
        if (j->training)
            j->loops->blend(line[DX], line[DY], line[B_X], j->n, mean, abc);
        else /* the input has no part in it, even one that is not finite */
            j->loops->affine(line[DX], line[DY], j->n, 0.0, scale, -0.0);
    }
    store(j, line[DWEIGHT], moment * rstd);
    store(j, line[DBIAS], sum);
    return TN_OK;
}

static bool same_sizes(const tn_tensor *a, const tn_tensor *b)
{
    return a->ndim == b->ndim && memcmp(a->sizes, b->sizes, (size_t)a->ndim * sizeof(int64_t)) == 0;
}

tn_status tni_kernel_native_batch_norm_backward(tn_call *call, tn_tensor *grad_out,
                                                tn_tensor *input, tn_tensor *weight,
                                                tn_tensor *running_mean, tn_tensor *running_var,
                                                tn_tensor *save_mean, tn_tensor *save_invstd,
                                                bool train, double eps, const bool *output_mask,
                                                int64_t output_mask_n, tn_tensor **out0,
                                                tn_tensor **out1, tn_tensor **out2)
{
    /* What the statistics are: of the batch, or running. */
    tn_tensor *mean = train ? save_mean : running_mean, *rstd = train ? save_invstd : running_var;
    tn_tensor *const params[] = {weight, NULL, mean, rstd};
    tn_dtype statistics;
    (void)call;
    TN_TRY(tni_check_mask_length(output_mask_n, 3));
    TN_CHECK(mean && rstd, TN_INVALID, "%s must be defined %s",
             train ? "save_mean" : "running_mean", train ? "in training" : "in evaluation mode");
    TN_TRY(tni_check_batch_norm(input, params, false, &statistics));
    TN_TRY(tni_same_device(input, grad_out));
    TN_CHECK(same_sizes(grad_out, input) && grad_out->dtype == input->dtype, TN_INVALID,
             "grad_out must have the sizes and the dtype of input");
    TN_AUTO(tn_tensor) dx = NULL;
    TN_AUTO(tn_tensor) dw = NULL;
    TN_AUTO(tn_tensor) db = NULL;
    if (output_mask[0])
        TN_TRY(tni_norm_result(input, (tn_dtype)input->dtype, &dx));
    if (output_mask[1])
        TN_TRY(tni_tensor_new(1, &input->sizes[1], NULL, statistics, input->device, &dw));
    if (output_mask[2])
        TN_TRY(tni_tensor_new(1, &input->sizes[1], NULL, statistics, input->device, &db));
    const tni_norm_columns columns = {.x = input,
                                      .training = train,
                                      .eps = eps,
                                      .weight = weight,
                                      .mean = mean,
                                      .var = rstd,
                                      .grad = grad_out,
                                      .out = dx,
                                      .dweight = dw,
                                      .dbias = db};
    if (!tni_is_meta(input) && input->numel && tni_norm_columns_fit(&columns)) {
        TN_TRY(tni_norm_columns_run(&columns));
    } else if (!tni_is_meta(input)) {
        tn_dtype compute = tni_compute_dtype((tn_dtype)input->dtype);
        channel_job j = job_of(input, compute, train, eps);
        tni_line lines[] = {
            [DX] = {dx, compute, TNI_LINE_WRITE},
            [DY] = {grad_out, compute, TNI_LINE_READ},
            [B_X] = {input, compute, TNI_LINE_READ},
            [B_MEAN] = {mean, compute, TNI_LINE_READ},
            [B_RSTD] = {rstd, compute, TNI_LINE_READ},
            [B_WEIGHT] = {weight, compute, TNI_LINE_READ},
            [DWEIGHT] = {dw, compute, TNI_LINE_WRITE},
            [DBIAS] = {db, compute, TNI_LINE_WRITE},
        };
        TN_TRY(tni_lines(input, NOT_CHANNELS, lines, 8, 0, backward_channel, &j));
    }
    *out0 = TN_MOVE(dx);
    *out1 = TN_MOVE(dw);
    *out2 = TN_MOVE(db);
    return TN_OK;
}
