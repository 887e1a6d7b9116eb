/* SPDX-License-Identifier: MIT */
/* cpu/conv_depth.c: convolutions in which each channel of the result comes from one channel of the
 * input, and the gradient of their weights. A product of matrices would have one row; here each
 * line of the result is the sum of some lines of the window (Note [Windows] in cpu/conv.h). */
#include <string.h>
#include "base/alloc.h"
#include "base/pool.h"
#include "cpu/conv.h"
#include "cpu/move.h"
#include "cpu/ready.h"
#include "cpu/taps.h"

typedef struct depth_job {
    tni_window w;
    const tni_taps_loops *loops;
    tn_dtype dtype;
    const char *weight, *bias, *grad;
    char *out;
} depth_job;

bool tni_conv_depthwise(const tni_conv *c, tn_dtype dtype)
{
    return c->groups == c->in_channels && c->groups > 1 &&
           (dtype == TN_DTYPE_F32 || dtype == TN_DTYPE_F64);
}

static const tni_taps_loops *loops_of(tn_dtype dtype)
{
    const tni_taps_table *table = tni_cpu_kernels()->taps;
    return dtype == TN_DTYPE_F64 ? &table->f64 : &table->f32;
}

/* Work of one channel of one image, to cut by. */
static int64_t grain_of(const tni_window *w)
{
    int64_t each = w->out_places * w->kernel_places * w->out_each;
    return each < 65536 ? 65536 / (each + 1) + 1 : 1;
}

/* Where line @p line of a phase begins: in the window, and in the result. */
static int64_t line_start(const tni_window *w, const tni_phase *phase, int64_t line)
{
    const tni_conv *c = w->c;
    int64_t s0 = c->transposed ? 1 : c->stride[0], s1 = c->transposed ? 1 : c->stride[1];
    return (line / phase->count[1] * s0 * w->size[1] + line % phase->count[1] * s1) * w->split *
           w->run;
}

static int64_t line_out(const tni_window *w, const tni_phase *phase, int64_t line)
{
    const tni_conv *c = w->c;
    int64_t s0 = c->transposed ? c->stride[0] : 1, s1 = c->transposed ? c->stride[1] : 1;
    int64_t o0 = phase->first[0] + line / phase->count[1] * s0;
    int64_t o1 = phase->first[1] + line % phase->count[1] * s1;
    return (o0 * c->out[1] + o1) * c->out[2] + phase->first[2];
}

/* One phase of one channel of the result. @p taps and @p side are room for its weights and a line.
 */
static void run_phase(const depth_job *j, const tni_phase *phase, const char *x, const char *weight,
                      const char *start, char *out, char *taps, char *side)
{
    const tni_window *w = &j->w;
    const tni_conv *c = w->c;
    int64_t size = w->itemsize;
    for (int64_t t = 0; t < phase->taps; t++)
        memcpy(taps + t * size, weight + w->kernel[phase->first_tap + t] * size, (size_t)size);
    bool apart = c->transposed && c->stride[2] > 1;
    for (int64_t line = 0; line < phase->count[0] * phase->count[1]; line++) {
        char *to = out + line_out(w, phase, line) * size;
        j->loops->sum(apart ? side : to, x + line_start(w, phase, line) * size,
                      w->offset + phase->first_tap, taps, phase->taps, phase->count[2], start);
        if (apart)
            tni_scatter(to, side, phase->count[2], c->stride[2] * size, (size_t)size);
    }
}

/* A piece is one channel of the input of one image. */
static tn_status run_pieces(int64_t begin, int64_t end, void *arg)
{
    const depth_job *j = arg;
    const tni_window *w = &j->w;
    int64_t size = w->itemsize;
    double zero = 0; /* all bits 0: a float as well */
    size_t nbytes = (size_t)((w->kernel_places + w->c->out[2]) * size);
    char *taps = tni_block_alloc(nbytes), *side = taps + w->kernel_places * size;
    TN_CHECK(taps, TN_NOMEM, "cannot allocate %zu bytes for a convolution", nbytes);
    for (int64_t i = begin; i < end; i++) {
        const char *x = w->copy + i * w->places * size;
        for (int64_t o = i % w->c->groups * w->out_each, n = 0; n < w->out_each; n++, o++) {
            char *out = j->out + (i * w->out_each + n) * w->out_places * size;
            const char *start = j->bias ? j->bias + o * size : (const char *)&zero;
            if (w->gaps)
                tni_splat(out, start, w->out_places, (size_t)size);
            for (int64_t f = 0; f < w->phases; f++)
                run_phase(j, &w->phase[f], x, j->weight + o * w->kernel_places * size, start, out,
                          taps, side);
        }
    }
    tni_block_free(taps, nbytes);
    return TN_OK;
}

tn_status tni_depth_run(const tni_conv *given, tn_tensor *input, tn_tensor *weight, tn_tensor *bias,
                        tn_tensor *out)
{
    tni_conv c = *given;
    c.channels_last = false;
    depth_job j = {.dtype = tni_conv_dtype((tn_dtype)input->dtype)};
    j.loops = loops_of(j.dtype);
    TN_AUTO(tn_tensor) x = NULL;
    TN_AUTO(tn_tensor) w_turned = NULL;
    TN_AUTO(tn_tensor) w = NULL;
    TN_AUTO(tn_tensor) b = NULL;
    TN_AUTO(tn_tensor) fresh = NULL;
    TN_TRY(tni_ready(input, j.dtype, &x));
    TN_TRY(tni_conv_weight(&c, false, weight, &w_turned));
    TN_TRY(tni_ready(w_turned, j.dtype, &w));
    TN_TRY(tni_ready(bias, j.dtype, &b));
    if (!(out->flags & TNI_CONTIGUOUS) || out->dtype != j.dtype)
        TN_TRY(tni_tensor_new(out->ndim, out->sizes, NULL, j.dtype, out->device, &fresh));
    TN_TRY(tni_window_open(&j.w, &c, j.dtype, x->data));
    j.weight = w->data;
    j.bias = b ? b->data : NULL;
    j.out = fresh ? fresh->data : out->data;
    tn_status status = tni_pool_for(c.batch * c.groups, grain_of(&j.w), run_pieces, &j);
    tni_window_close(&j.w);
    TN_TRY(status);
    return fresh ? tni_copy_cpu(out, fresh) : TN_OK;
}

/* ---- the gradient of the weight ---- */

/* Sums of one image, in lanes, are added up in double. */
static void add_lanes(const depth_job *j, const char *lanes, double *sums, int64_t n)
{
    for (int64_t t = 0; t < n; t++) {
        for (int64_t l = t * TNI_TAP_LANES; l < (t + 1) * TNI_TAP_LANES; l++)
            sums[t] += j->dtype == TN_DTYPE_F64 ? ((const double *)(const void *)lanes)[l]
                                                : (double)((const float *)(const void *)lanes)[l];
    }
}

/* Channel @p o of the result; its input is channel o / out_each. */
static void weight_of(const depth_job *j, int64_t o, double *sums, char *lanes)
{
    const tni_window *w = &j->w;
    const tni_phase *phase = &w->phase[0];
    int64_t size = w->itemsize, taps = w->kernel_places;
    memset(sums, 0, (size_t)taps * sizeof *sums);
    for (int64_t n = 0; n < w->c->batch; n++) {
        const char *x = tni_window_at(w, n, o / w->out_each);
        const char *grad = j->grad + (n * w->c->out_channels + o) * w->out_places * size;
        memset(lanes, 0, (size_t)(taps * TNI_TAP_LANES * size));
        for (int64_t line = 0; line < phase->count[0] * phase->count[1]; line++)
            j->loops->dots(lanes, grad + line * phase->count[2] * size,
                           x + line_start(w, phase, line) * size, w->offset, taps, phase->count[2]);
        add_lanes(j, lanes, sums, taps);
    }
    for (int64_t t = 0; t < taps; t++) {
        char *to = j->out + (o * taps + w->kernel[t]) * size;
        if (j->dtype == TN_DTYPE_F64)
            memcpy(to, &sums[t], sizeof(double));
        else
            *(float *)(void *)to = (float)sums[t];
    }
}

static tn_status weights_of(int64_t begin, int64_t end, void *arg)
{
    const depth_job *j = arg;
    size_t sums = (size_t)j->w.kernel_places * sizeof(double);
    size_t nbytes = sums + sums * TNI_TAP_LANES;
    char *room = tni_block_alloc(nbytes);
    TN_CHECK(room, TN_NOMEM, "cannot allocate %zu bytes for a convolution", nbytes);
    for (int64_t o = begin; o < end; o++)
        weight_of(j, o, (double *)(void *)room, room + sums);
    tni_block_free(room, nbytes);
    return TN_OK;
}

tn_status tni_depth_weight(const tni_conv *given, tn_tensor *input, tn_tensor *grad, tn_tensor *out)
{
    tni_conv c = *given;
    c.channels_last = false;
    depth_job j = {.dtype = tni_conv_dtype((tn_dtype)input->dtype)};
    j.loops = loops_of(j.dtype);
    TN_AUTO(tn_tensor) x = NULL;
    TN_AUTO(tn_tensor) g = NULL;
    TN_AUTO(tn_tensor) to = NULL;
    TN_AUTO(tn_tensor) sums = NULL;
    TN_TRY(tni_ready(input, j.dtype, &x));
    TN_TRY(tni_ready(grad, j.dtype, &g));
    TN_TRY(tni_conv_weight(&c, false, out, &to));
    TN_TRY(tni_tensor_new(to->ndim, to->sizes, NULL, j.dtype, out->device, &sums));
    TN_TRY(tni_window_open(&j.w, &c, j.dtype, x->data));
    j.grad = g->data;
    j.out = sums->data;
    int64_t each = j.w.out_places * j.w.kernel_places * c.batch;
    tn_status status =
        tni_pool_for(c.out_channels, each < 65536 ? 65536 / (each + 1) + 1 : 1, weights_of, &j);
    tni_window_close(&j.w);
    TN_TRY(status);
    return tni_copy_cpu(to, sums);
}
