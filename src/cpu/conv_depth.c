/* SPDX-License-Identifier: MIT */
/* cpu/conv_depth.c: convolutions in which each channel of the result comes from one channel of the
 * input, and the gradient of their weights. A product of matrices would have one row; here each
 * line of the result is the sum of some lines of the window (Note [Windows] in cpu/conv.h). Where
 * channels are last, some channels of a few places are computed at once. */
#include <string.h>
#include "base/alloc.h"
#include "base/pool.h"
#include "cpu/conv.h"
#include "cpu/move.h"
#include "cpu/ready.h"
#include "cpu/taps.h"

#define GRAIN 65536

typedef struct depth_job {
    tni_window w;
    const tni_taps_loops *loops;
    tn_dtype dtype;
    const char *weight, *bias, *grad;
    char *out;
    const tni_phase *phase; /* channels last: the one that is computed */
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

/* How many pieces are one thread's, where one is so much work. */
static int64_t grain_of(int64_t each)
{
    return each < GRAIN ? GRAIN / (each + 1) + 1 : 1;
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

static tn_status all_pieces(depth_job *j)
{
    const tni_window *w = &j->w;
    return tni_pool_for(w->c->batch * w->c->groups,
                        grain_of(w->out_places * w->kernel_places * w->out_each), run_pieces, j);
}

/* ---- channels last ---- */

#define FEWEST_CHANNELS 8

/* Each channel of the result comes from the channel beside it. */
static bool has_rows(const tni_conv *c)
{
    return c->channels_last && c->out_channels == c->groups && c->groups >= FEWEST_CHANNELS;
}

static tni_tap_rows tap_rows_of(const tni_window *w, const tni_phase *phase)
{
    const tni_conv *c = w->c;
    return (tni_tap_rows){.offset = w->offset + phase->first_tap,
                          .kernel = w->kernel + phase->first_tap,
                          .taps = phase->taps,
                          .channels = c->groups,
                          .places = phase->count[2],
                          .x_step = (c->transposed ? 1 : c->stride[2]) * c->groups,
                          .out_step = (c->transposed ? c->stride[2] : 1) * c->groups};
}

/* A piece is one line of a phase, of one image. */
static tn_status run_rows(int64_t begin, int64_t end, void *arg)
{
    const depth_job *j = arg;
    const tni_window *w = &j->w;
    int64_t lines = j->phase->count[0] * j->phase->count[1], row = w->c->groups * w->itemsize;
    tni_tap_rows r = tap_rows_of(w, j->phase);
    r.weight = j->weight;
    r.start = j->bias;
    for (int64_t i = begin; i < end; i++) {
        int64_t n = i / lines, line = i % lines;
        j->loops->rows(j->out + (n * w->out_places + line_out(w, j->phase, line)) * row,
                       w->copy + (n * w->places + line_start(w, j->phase, line)) * row, &r);
    }
    return TN_OK;
}

/* Where no phase is, there is the bias. */
static void fill_rows(const depth_job *j)
{
    size_t row = (size_t)(j->w.c->groups * j->w.itemsize);
    for (int64_t i = 0; i < j->w.c->batch * j->w.out_places; i++) {
        if (j->bias)
            memcpy(j->out + (size_t)i * row, j->bias, row);
        else
            memset(j->out + (size_t)i * row, 0, row);
    }
}

static tn_status all_rows(depth_job *j)
{
    const tni_conv *c = j->w.c;
    if (j->w.gaps)
        fill_rows(j);
    for (int64_t f = 0; f < j->w.phases; f++) {
        const tni_phase *phase = &j->w.phase[f];
        int64_t each = phase->count[2] * phase->taps * c->groups;
        j->phase = phase;
        TN_TRY(tni_pool_for(c->batch * phase->count[0] * phase->count[1], grain_of(each), run_rows,
                            j));
    }
    return TN_OK;
}

/* ---- both ---- */

/* The convolution as it is computed: with channels last only where that has loops of its own. */
static tni_conv computed(const tni_conv *c)
{
    tni_conv own = *c;
    own.channels_last = has_rows(c);
    return own;
}

/* A weight, which has one channel of input, as tni_conv_weight gives it, or, with channels last, as
 * [kernel..., channels]. */
static tn_status turn_weight(const tni_conv *c, tn_tensor *weight, tn_tensor **out)
{
    if (!c->channels_last)
        return tni_conv_weight(c, false, weight, out);
    TN_AUTO(tn_tensor) w = NULL;
    TN_TRY(tni_conv_weight(c, false, weight, &w));
    const int64_t *n = w->sizes, *s = w->strides;
    return tni_tensor_alias(w, 4, (const int64_t[]){n[3], n[4], n[5], n[0]},
                            (const int64_t[]){s[3], s[4], s[5], s[0]}, w->offset, out);
}

tn_status tni_depth_run(const tni_conv *given, tn_tensor *input, tn_tensor *weight, tn_tensor *bias,
                        tn_tensor *out)
{
    const tni_conv c = computed(given);
    depth_job j = {.dtype = tni_conv_dtype((tn_dtype)input->dtype)};
    j.loops = loops_of(j.dtype);
    TN_AUTO(tn_tensor) x = NULL;
    TN_AUTO(tn_tensor) w_turned = NULL;
    TN_AUTO(tn_tensor) w = NULL;
    TN_AUTO(tn_tensor) b = NULL;
    TN_AUTO(tn_tensor) to = NULL;
    TN_AUTO(tn_tensor) work = NULL;
    TN_TRY(tni_conv_ready(&c, input, j.dtype, &x));
    TN_TRY(turn_weight(&c, weight, &w_turned));
    TN_TRY(tni_ready(w_turned, j.dtype, &w));
    TN_TRY(tni_ready(bias, j.dtype, &b));
    TN_TRY(tni_conv_work(&c, out, j.dtype, &to, &work));
    TN_TRY(tni_window_open(&j.w, &c, j.dtype, x->data));
    j.weight = w->data;
    j.bias = b ? b->data : NULL;
    j.out = work->data;
    tn_status status = c.channels_last ? all_rows(&j) : all_pieces(&j);
    tni_window_close(&j.w);
    TN_TRY(status);
    return tni_work_back(to, work);
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

static tn_status all_weights(depth_job *j)
{
    const tni_window *w = &j->w;
    return tni_pool_for(w->c->out_channels,
                        grain_of(w->out_places * w->kernel_places * w->c->batch), weights_of, j);
}

/* ---- the same, channels last ---- */

#define ROWS_CHANNELS 32  /* that one thread takes */
#define ROWS_PLACES   256 /* that are added up before their sum is one of double */

static void add_rows(const depth_job *j, char *some, double *sums, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        sums[i] += j->dtype == TN_DTYPE_F64 ? ((const double *)(const void *)some)[i]
                                            : (double)((const float *)(const void *)some)[i];
    memset(some, 0, (size_t)(n * j->w.itemsize));
}

/* Channels [@p first, @p first + @p n). */
static void weight_rows_of(const depth_job *j, int64_t first, int64_t n, double *sums, char *some)
{
    const tni_window *w = &j->w;
    const tni_phase *phase = &w->phase[0];
    int64_t size = w->itemsize, row = w->c->groups * size, taps = w->kernel_places, added = 0;
    const tni_tap_rows r = tap_rows_of(w, phase);
    memset(sums, 0, (size_t)(taps * n) * sizeof *sums);
    memset(some, 0, (size_t)(taps * n * size));
    for (int64_t i = 0; i < w->c->batch; i++) {
        for (int64_t line = 0; line < phase->count[0] * phase->count[1]; line++) {
            j->loops->row_dots(
                some, j->grad + (i * w->out_places + line * phase->count[2]) * row + first * size,
                w->copy + (i * w->places + line_start(w, phase, line)) * row + first * size, &r, n);
            added += phase->count[2];
            if (added >= ROWS_PLACES) {
                add_rows(j, some, sums, taps * n);
                added = 0;
            }
        }
    }
    add_rows(j, some, sums, taps * n);
    for (int64_t t = 0; t < taps; t++) {
        char *to = j->out + (w->kernel[t] * w->c->groups + first) * size;
        for (int64_t c = 0; c < n; c++) {
            if (j->dtype == TN_DTYPE_F64)
                ((double *)(void *)to)[c] = sums[t * n + c];
            else
                ((float *)(void *)to)[c] = (float)sums[t * n + c];
        }
    }
}

static tn_status weight_rows(int64_t begin, int64_t end, void *arg)
{
    const depth_job *j = arg;
    size_t sums = (size_t)(j->w.kernel_places * ROWS_CHANNELS) * sizeof(double);
    size_t nbytes = 2 * sums;
    char *room = tni_block_alloc(nbytes);
    TN_CHECK(room, TN_NOMEM, "cannot allocate %zu bytes for a convolution", nbytes);
    for (int64_t i = begin; i < end; i++) {
        int64_t first = i * ROWS_CHANNELS, rest = j->w.c->groups - first;
        weight_rows_of(j, first, rest < ROWS_CHANNELS ? rest : ROWS_CHANNELS,
                       (double *)(void *)room, room + sums);
    }
    tni_block_free(room, nbytes);
    return TN_OK;
}

static tn_status all_weight_rows(depth_job *j)
{
    const tni_window *w = &j->w;
    int64_t each = w->out_places * w->kernel_places * w->c->batch * ROWS_CHANNELS;
    return tni_pool_for((w->c->groups + ROWS_CHANNELS - 1) / ROWS_CHANNELS, grain_of(each),
                        weight_rows, j);
}

/* ---- both ---- */

tn_status tni_depth_weight(const tni_conv *given, tn_tensor *input, tn_tensor *grad, tn_tensor *out)
{
    const tni_conv c = computed(given);
    depth_job j = {.dtype = tni_conv_dtype((tn_dtype)input->dtype)};
    j.loops = loops_of(j.dtype);
    TN_AUTO(tn_tensor) x = NULL;
    TN_AUTO(tn_tensor) g = NULL;
    TN_AUTO(tn_tensor) to = NULL;
    TN_AUTO(tn_tensor) sums = NULL;
    TN_TRY(tni_conv_ready(&c, input, j.dtype, &x));
    TN_TRY(tni_conv_ready(&c, grad, j.dtype, &g));
    TN_TRY(turn_weight(&c, out, &to));
    TN_TRY(tni_tensor_new(to->ndim, to->sizes, NULL, j.dtype, out->device, &sums));
    TN_TRY(tni_window_open(&j.w, &c, j.dtype, x->data));
    j.grad = g->data;
    j.out = sums->data;
    tn_status status = c.channels_last ? all_weight_rows(&j) : all_weights(&j);
    tni_window_close(&j.w);
    TN_TRY(status);
    return tni_copy_cpu(to, sums);
}
