/* SPDX-License-Identifier: MIT */
/* cpu/conv.c: convolutions on the CPU, as products of matrices.
 *
 * The result at one place is the weights times the input that the kernel sees there, a column. The
 * products of float and double take columns straight from the window (Note [Windows] in
 * cpu/conv.h); for other dtypes some columns at a time are written down. With channels last a
 * column is ordered (tap, channel), otherwise (channel, tap). */
#include <string.h>
#include "base/alloc.h"
#include "base/pool.h"
#include "cpu/conv.h"
#include "cpu/move.h"
#include "cpu/ready.h"
#include "gen/cpu.h"

#define COLUMN_BYTES (INT64_C(1) << 20) /* of the columns that are written down at a time */

typedef struct conv_job {
    const tni_conv *c;
    tn_dtype dtype; /* which is computed in */
    int64_t itemsize;
    int64_t in_each, out_each;         /* channels of a group */
    int64_t in_places, out_places;     /* of one channel */
    int64_t length;                    /* of a column, with the whole kernel */
    const char *input, *weight, *bias; /* contiguous */
    char *out;
} conv_job;

/* Where the channels of @p group of a tensor with so many begin. */
static int64_t corner(const conv_job *j, int64_t group, int64_t each, int64_t places)
{
    return group * each * (j->c->channels_last ? 1 : places) * j->itemsize;
}

/* ---- the bias ---- */

/* All of the result becomes the bias, or 0. */
static tn_status fill_bias(int64_t begin, int64_t end, void *arg)
{
    const conv_job *j = arg;
    const tni_conv *c = j->c;
    int64_t channels = c->out_channels, size = j->itemsize;
    int64_t run = c->channels_last ? channels : j->out_places;
    for (int64_t i = begin; i < end; i++) {
        char *to = j->out + i * run * size;
        if (!j->bias)
            memset(to, 0, (size_t)(run * size));
        else if (c->channels_last)
            memcpy(to, j->bias, (size_t)(run * size));
        else
            tni_splat(to, j->bias + i % channels * size, run, (size_t)size);
    }
    return TN_OK;
}

static tn_status start_from_bias(conv_job *j)
{
    const tni_conv *c = j->c;
    int64_t run = c->channels_last ? c->out_channels : j->out_places;
    int64_t grain = run < 32768 ? 32768 / run : 1;
    return tni_pool_for(c->batch * c->out_channels * j->out_places / run, grain, fill_bias, j);
}

/* ---- products ---- */

void tni_window_write(char *to, int64_t size, const char *data, const tni_gathered *x,
                      int64_t first, int64_t rows, int64_t begin, int64_t n)
{
    for (int64_t i = first; i < first + rows; i++) {
        for (int64_t q = begin; q < begin + n;) {
            int64_t in = q % x->width, run = x->width - in;
            if (run > begin + n - q)
                run = begin + n - q;
            memcpy(to, data + (x->at[i] + x->line[q / x->width] + in) * size, (size_t)(run * size));
            to += run * size;
            q += run;
        }
    }
}

/* A product with one operand from the window, written down. */
static tn_status written_down(const conv_job *j, const tni_gemm_args *given, tn_scalar beta)
{
    bool last = j->c->channels_last;
    const tni_gathered *x = last ? given->gather_a : given->gather_b;
    int64_t all = last ? given->m : given->n, each = COLUMN_BYTES / (given->k * j->itemsize);
    each = each < 16 ? 16 : each;
    each = each < all ? each : all;
    size_t nbytes = (size_t)(each * given->k * j->itemsize);
    char *columns = tni_alloc(nbytes);
    TN_CHECK(columns, TN_NOMEM, "cannot allocate %zu bytes for a convolution", nbytes);
    tn_status status = TN_OK;
    for (int64_t entry = 0; entry < given->batch; entry++) {
        for (int64_t at = 0; at < all && status == TN_OK; at += each) {
            int64_t n = all - at < each ? all - at : each;
            tni_gemm_args g = *given;
            g.batch = 1;
            g.gather_a = g.gather_b = NULL;
            int64_t skip = entry * g.c.batch + at * (last ? g.c.row : 1);
            g.c.data = (const char *)g.c.data + skip * j->itemsize;
            g.d = g.c;
            if (last) {
                tni_window_write(columns, j->itemsize, given->a.data, x, at, n, 0, g.k);
                g.m = n;
                g.a = (tni_matrix){columns, g.k, 1, 0};
            } else {
                const char *data = (const char *)given->b.data + entry * g.b.batch * j->itemsize;
                tni_window_write(columns, j->itemsize, data, x, 0, g.k, at, n);
                g.n = n;
                g.b = (tni_matrix){columns, n, 1, 0};
            }
            status = tni_gemm(j->dtype, &g, tn_int(1), beta);
        }
    }
    tni_free(columns);
    return status;
}

/* A phase of one group, for all images. @p out is its first place, rows are @p row apart and images
 * @p image; with @p keeps the product is added to what is there. */
static tn_status multiply(const conv_job *j, const tni_window *w, const tni_phase *phase,
                          const tni_gathered *tables, int64_t group, const char *weight, char *out,
                          int64_t row, int64_t image, bool keeps)
{
    const tni_conv *c = j->c;
    tni_gemm_args g = {.k = j->in_each * phase->taps, .batch = 1};
    tni_matrix x = {.data = tni_window_at(w, 0, group)};
    if (c->channels_last) {
        g.m = c->batch * phase->places;
        g.n = j->out_each;
        g.a = x;
        g.a.col = 1;
        g.b = (tni_matrix){weight, 1, g.k, 0};
        g.gather_a = tables;
    } else {
        g.m = j->out_each;
        g.n = phase->places;
        g.batch = c->batch;
        x.batch = c->in_channels * w->places;
        g.a = (tni_matrix){weight, g.k, 1, 0};
        g.b = x;
        g.gather_b = tables;
    }
    g.c = g.d = (tni_matrix){out, row, 1, image};
    tn_scalar beta = tn_int(keeps ? 1 : 0);
    if (j->dtype != TN_DTYPE_F32 && j->dtype != TN_DTYPE_F64)
        return written_down(j, &g, beta);
    return tni_gemm(j->dtype, &g, tn_int(1), beta);
}

/* ---- phases ---- */

/* The weights of one phase of a group, in the order of its columns. */
static void pick_weights(const conv_job *j, const tni_window *w, const tni_phase *phase,
                         const char *weight, char *to)
{
    int64_t size = j->itemsize, all = w->kernel_places;
    const int64_t *kernel = w->kernel + phase->first_tap;
    if (j->c->channels_last) {
        for (int64_t o = 0; o < j->out_each; o++) {
            for (int64_t t = 0; t < phase->taps; t++, to += j->in_each * size)
                memcpy(to, weight + (o * all + kernel[t]) * j->in_each * size,
                       (size_t)(j->in_each * size));
        }
        return;
    }
    for (int64_t i = 0; i < j->out_each * j->in_each; i++, weight += all * size) {
        for (int64_t t = 0; t < phase->taps; t++, to += size)
            memcpy(to, weight + kernel[t] * size, (size_t)size);
    }
}

/* A phase's results, computed side by side, to their places. */
static void spread(const conv_job *j, const tni_phase *phase, const char *from, char *out)
{
    const tni_conv *c = j->c;
    int64_t size = j->itemsize, place = c->channels_last ? c->out_channels : 1;
    int64_t channels = c->channels_last ? 1 : j->out_each;
    for (int64_t i = 0; i < c->batch * channels; i++) {
        char *plane = out + (i / channels * c->out_channels + i % channels) * j->out_places * size;
        for (int64_t q = 0; q < phase->places; q += phase->count[2]) {
            int64_t line = q / phase->count[2];
            int64_t o0 = phase->first[0] + line / phase->count[1] * c->stride[0];
            int64_t o1 = phase->first[1] + line % phase->count[1] * c->stride[1];
            int64_t o = (o0 * c->out[1] + o1) * c->out[2] + phase->first[2];
            char *to = plane + o * place * size;
            if (!c->channels_last) {
                tni_scatter(to, from, phase->count[2], c->stride[2] * size, (size_t)size);
                from += phase->count[2] * size;
                continue;
            }
            for (int64_t p = 0; p < phase->count[2]; p++, from += j->out_each * size)
                memcpy(to + p * c->stride[2] * place * size, from, (size_t)(j->out_each * size));
        }
    }
}

/* One of several phases, or one that has not all of the kernel: its weights are picked, its results
 * are spread. */
static tn_status some_phase(const conv_job *j, const tni_window *w, const tni_phase *phase,
                            const tni_gathered *tables, int64_t group)
{
    const tni_conv *c = j->c;
    int64_t size = j->itemsize, results = c->batch * j->out_each * phase->places;
    const char *weight = j->weight + group * j->out_each * j->length * size;
    size_t picked = (size_t)(j->out_each * j->in_each * phase->taps * size);
    if (phase->taps == w->kernel_places)
        picked = 0; /* all of them, in their order */
    picked = (picked + 63) / 64 * 64;
    size_t nbytes = picked + (size_t)(results * size);
    char *room = tni_block_alloc(nbytes), *side = room + picked;
    TN_CHECK(room, TN_NOMEM, "cannot allocate %zu bytes for a convolution", nbytes);
    if (picked) {
        pick_weights(j, w, phase, weight, room);
        weight = room;
    }
    int64_t row = c->channels_last ? j->out_each : phase->places;
    bool keeps = j->bias;
    for (int64_t i = 0; keeps && i < results / row; i++) {
        const char *bias = j->bias + group * j->out_each * size;
        if (c->channels_last)
            memcpy(side + i * row * size, bias, (size_t)(row * size));
        else
            tni_splat(side + i * row * size, bias + i % j->out_each * size, row, (size_t)size);
    }
    tn_status status =
        multiply(j, w, phase, tables, group, weight, side, row, j->out_each * phase->places, keeps);
    if (status == TN_OK)
        spread(j, phase, side, j->out + corner(j, group, j->out_each, j->out_places));
    tni_block_free(room, nbytes);
    return status;
}

/* Channels first, and images whose places do not fill vectors: those of all images side by side do.
 */
static bool worth_merging(const conv_job *j, const tni_phase *phase)
{
    return !j->c->channels_last && j->c->batch > 1 && phase->places < 1024 &&
           phase->places % 32 != 0 && (j->dtype == TN_DTYPE_F32 || j->dtype == TN_DTYPE_F64);
}

/* Results of a group that lie image after image in each channel, to their places. */
typedef struct parting {
    const conv_job *j;
    const char *side;
    char *out;
    size_t run; /* bytes of a channel of an image */
} parting;

static tn_status part_images(int64_t begin, int64_t end, void *arg)
{
    const parting *p = arg;
    const int64_t batch = p->j->c->batch, channels = p->j->c->out_channels;
    for (int64_t i = begin; i < end; i++) {
        int64_t n = i / p->j->out_each, o = i % p->j->out_each;
        memcpy(p->out + (size_t)(n * channels + o) * p->run,
               p->side + (size_t)(o * batch + n) * p->run, p->run);
    }
    return TN_OK;
}

static tn_status merged(const conv_job *j, const tni_window *w, const tni_phase *phase,
                        const tni_gathered *tables, int64_t group, const char *weight, char *out)
{
    const tni_conv *c = j->c;
    int64_t size = j->itemsize, columns = c->batch * phase->places;
    size_t nbytes = (size_t)(j->out_each * columns * size);
    char *side = tni_block_alloc(nbytes);
    TN_CHECK(side, TN_NOMEM, "cannot allocate %zu bytes for a convolution", nbytes);
    for (int64_t o = 0; j->bias && o < j->out_each; o++)
        tni_splat(side + o * columns * size, j->bias + (group * j->out_each + o) * size, columns,
                  (size_t)size);
    int64_t length = j->in_each * phase->taps;
    tni_gemm_args g = {.m = j->out_each,
                       .n = columns,
                       .k = length,
                       .batch = 1,
                       .a = {weight, length, 1, 0},
                       .b = {.data = tni_window_at(w, 0, group)},
                       .gather_b = tables,
                       .c = {side, columns, 1, 0}};
    g.d = g.c;
    tn_status status = tni_gemm(j->dtype, &g, tn_int(1), tn_int(j->bias ? 1 : 0));
    parting p = {j, side, out, (size_t)(phase->places * size)};
    if (status == TN_OK)
        status =
            tni_pool_for(c->batch * j->out_each, (int64_t)(131072 / p.run + 1), part_images, &p);
    tni_block_free(side, nbytes);
    return status;
}

static tn_status some_groups(const conv_job *j, const tni_window *w, const tni_phase *phase,
                             const tni_gathered *tables)
{
    const tni_conv *c = j->c;
    for (int64_t group = 0; group < c->groups; group++) {
        if (w->phases > 1 || w->gaps || phase->taps != w->kernel_places) {
            TN_TRY(some_phase(j, w, phase, tables, group));
            continue;
        }
        char *out = j->out + corner(j, group, j->out_each, j->out_places);
        const char *weight = j->weight + group * j->out_each * j->length * j->itemsize;
        if (worth_merging(j, phase)) {
            TN_TRY(merged(j, w, phase, tables, group, weight, out));
            continue;
        }
        TN_TRY(multiply(j, w, phase, tables, group, weight, out,
                        c->channels_last ? c->out_channels : j->out_places,
                        c->out_channels * j->out_places, j->bias));
    }
    return TN_OK;
}

static tn_status by_windows(conv_job *j)
{
    tni_window w;
    TN_TRY(tni_window_open(&w, j->c, j->dtype, j->input));
    tn_status status = TN_OK;
    if (w.gaps || (j->bias && w.phases == 1))
        status = start_from_bias(j);
    for (int64_t f = 0; f < w.phases && status == TN_OK; f++) {
        tni_gathered tables = {0};
        status = tni_window_tables(&w, &w.phase[f], &tables);
        if (status == TN_OK)
            status = some_groups(j, &w, &w.phase[f], &tables);
        tni_free((void *)(uintptr_t)tables.at);
    }
    tni_window_close(&w);
    return status;
}

/* ---- kernels of one element ---- */

bool tni_conv_pointwise(const tni_conv *c)
{
    for (int i = 0; i < 3; i++) {
        if (c->kernel[i] != 1 || c->stride[i] != 1 || c->padding[i] != 0 || c->in[i] != c->out[i])
            return false;
    }
    return true;
}

static tn_status pointwise(const conv_job *j)
{
    const tni_conv *c = j->c;
    for (int64_t group = 0; group < c->groups; group++) {
        const char *x = j->input + corner(j, group, j->in_each, j->in_places);
        const char *weight = j->weight + group * j->out_each * j->length * j->itemsize;
        char *out = j->out + corner(j, group, j->out_each, j->out_places);
        tni_gemm_args g = {.k = j->length};
        if (c->channels_last) { /* all images are one long one */
            g.m = c->batch * j->out_places;
            g.n = j->out_each;
            g.batch = 1;
            g.a = (tni_matrix){x, c->in_channels, 1, 0};
            g.b = (tni_matrix){weight, 1, j->length, 0};
            g.c = (tni_matrix){out, c->out_channels, 1, 0};
        } else {
            g.m = j->out_each;
            g.n = j->out_places;
            g.batch = c->batch;
            g.a = (tni_matrix){weight, j->length, 1, 0};
            g.b = (tni_matrix){x, j->in_places, 1, c->in_channels * j->in_places};
            g.c = (tni_matrix){out, j->out_places, 1, c->out_channels * j->out_places};
        }
        g.d = g.c;
        TN_TRY(tni_gemm(j->dtype, &g, tn_int(1), tn_int(j->bias ? 1 : 0)));
    }
    return TN_OK;
}

/* ---- the operator ---- */

tn_status tni_conv_weight(const tni_conv *c, bool last, const tn_tensor *weight, tn_tensor **out)
{
    int64_t in_each = c->in_channels / c->groups, out_each = c->out_channels / c->groups;
    int64_t sizes[6] = {c->groups, out_each}, strides[6];
    int64_t s0 = weight->strides[0], s1 = weight->strides[1];
    int in = last ? 5 : 2, kernel = last ? 2 : 3;
    strides[0] = (c->transposed ? in_each : out_each) * s0;
    strides[1] = c->transposed ? s1 : s0;
    sizes[in] = in_each;
    strides[in] = c->transposed ? s0 : s1;
    for (int i = 0; i < 3; i++) {
        int d = i - (3 - c->spatial);
        sizes[kernel + i] = c->kernel[i];
        strides[kernel + i] = d < 0 ? 0 : weight->strides[2 + d];
    }
    return tni_tensor_alias(weight, 6, sizes, strides, weight->offset, out);
}

/* A weight as tni_conv_weight gives it, channels first, contiguous and of @p dtype. A transposed
 * convolution exchanges channels: runs of some elements each, which a general copy is slow with. */
static tn_status ready_weight(const tni_conv *c, tn_tensor *weight, tn_dtype dtype, tn_tensor **out)
{
    const int64_t *s = weight->strides, *n = weight->sizes;
    int64_t run = n[3] * n[4] * n[5];
    bool runs = weight->dtype == TN_DTYPE_F32 && dtype == TN_DTYPE_F32 && s[5] == 1 &&
                s[4] == n[5] && (n[3] == 1 || s[3] == n[4] * n[5]) && run > 1 && run <= 64;
    if (c->channels_last || (weight->flags & TNI_CONTIGUOUS) || !runs)
        return tni_ready(weight, dtype, out);
    TN_AUTO(tn_tensor) made = NULL;
    TN_TRY(tni_tensor_new(6, n, NULL, dtype, weight->device, &made));
    float *to = made->data;
    for (int64_t g = 0; g < n[0]; g++) {
        for (int64_t o = 0; o < n[1]; o++) {
            const float *from = (const float *)weight->data + g * s[0] + o * s[1];
            for (int64_t i = 0; i < n[2]; i++, from += s[2]) {
                for (int64_t k = 0; k < run; k++)
                    *to++ = from[k];
            }
        }
    }
    *out = TN_MOVE(made);
    return TN_OK;
}

tn_status tni_conv_turn(const tni_conv *c, tn_tensor *t, tn_tensor **out)
{
    if (!c->channels_last) {
        *out = tn_tensor_ref(t);
        return TN_OK;
    }
    int64_t sizes[5], strides[5];
    int n = t->ndim;
    for (int d = 0; d < n; d++) {
        int from = d == 0 ? 0 : d == n - 1 ? 1 : d + 1;
        sizes[d] = t->sizes[from];
        strides[d] = t->strides[from];
    }
    return tni_tensor_alias(t, n, sizes, strides, t->offset, out);
}

tn_status tni_conv_ready(const tni_conv *c, tn_tensor *t, tn_dtype dtype, tn_tensor **out)
{
    TN_AUTO(tn_tensor) turned = NULL;
    TN_TRY(tni_conv_turn(c, t, &turned));
    return tni_ready(turned, dtype, out);
}

tn_status tni_conv_work(const tni_conv *c, tn_tensor *out, tn_dtype dtype, tn_tensor **turned,
                        tn_tensor **work)
{
    TN_TRY(tni_conv_turn(c, out, turned));
    return tni_work_of(*turned, dtype, work);
}

bool tni_conv_thin(const tni_conv *c)
{
    bool strided = false;
    for (int i = 0; i < 3; i++) {
        if (c->kernel[i] != 1 || c->padding[i] != 0)
            return false;
        strided = strided || c->stride[i] != 1;
    }
    return strided && !c->transposed;
}

tn_status tni_conv_thin_input(tni_conv *c, const tn_tensor *input, tn_tensor **out)
{
    int64_t sizes[5], strides[5];
    for (int d = 0; d < input->ndim; d++) {
        int i = d - 2 + 3 - c->spatial;
        sizes[d] = d < 2 ? input->sizes[d] : c->out[i];
        /* Of one element there is no next one, and the stride may be any number. */
        strides[d] = input->strides[d] * (d < 2 || sizes[d] < 2 ? 1 : c->stride[i]);
    }
    for (int i = 0; i < 3; i++) {
        c->in[i] = c->out[i];
        c->stride[i] = 1;
    }
    return tni_tensor_alias(input, input->ndim, sizes, strides, input->offset, out);
}

tn_status tni_conv_run(const tni_conv *c, tn_tensor *input, tn_tensor *weight, tn_tensor *bias,
                       tn_tensor *out)
{
    tn_dtype dtype = tni_conv_dtype((tn_dtype)input->dtype);
    if (tni_conv_thin(c)) {
        tni_conv dense = *c;
        TN_AUTO(tn_tensor) some = NULL;
        TN_TRY(tni_conv_thin_input(&dense, input, &some));
        return tni_conv_run(&dense, some, weight, bias, out);
    }
    if (tni_conv_whole(c))
        return tni_whole_run(c, input, weight, bias, out);
    if (tni_conv_depthwise(c, dtype))
        return tni_depth_run(c, input, weight, bias, out);
    if (tni_conv_winograd(c, dtype)) {
        bool done = false;
        TN_TRY(tni_winograd_run(c, input, weight, bias, out, &done));
        if (done)
            return TN_OK;
    }
    conv_job j = {.c = c,
                  .dtype = dtype,
                  .itemsize = (int64_t)tn_dtype_size(dtype),
                  .in_each = c->in_channels / c->groups,
                  .out_each = c->out_channels / c->groups,
                  .in_places = c->in[0] * c->in[1] * c->in[2],
                  .out_places = c->out[0] * c->out[1] * c->out[2]};
    j.length = j.in_each * c->kernel[0] * c->kernel[1] * c->kernel[2];
    TN_AUTO(tn_tensor) x = NULL;
    TN_AUTO(tn_tensor) w_turned = NULL;
    TN_AUTO(tn_tensor) w = NULL;
    TN_AUTO(tn_tensor) b = NULL;
    TN_AUTO(tn_tensor) to = NULL;
    TN_AUTO(tn_tensor) work = NULL;
    TN_TRY(tni_conv_ready(c, input, dtype, &x));
    TN_TRY(tni_conv_weight(c, c->channels_last, weight, &w_turned));
    TN_TRY(ready_weight(c, w_turned, dtype, &w));
    TN_TRY(tni_ready(bias, dtype, &b));
    TN_TRY(tni_conv_work(c, out, dtype, &to, &work));
    j.input = x->data;
    j.weight = w->data;
    j.bias = b ? b->data : NULL;
    j.out = work->data;
    if (tni_conv_pointwise(c)) {
        if (b)
            TN_TRY(start_from_bias(&j));
        TN_TRY(pointwise(&j));
    } else {
        TN_TRY(by_windows(&j));
    }
    return tni_work_back(to, work);
}

tn_status tni_cpu_convolution(tn_tensor *input, tn_tensor *weight, tn_tensor *bias,
                              const int64_t *stride, int64_t stride_n, const int64_t *padding,
                              int64_t padding_n, const int64_t *dilation, int64_t dilation_n,
                              bool transposed, const int64_t *output_padding,
                              int64_t output_padding_n, int64_t groups, tn_tensor *out)
{
    tni_conv c;
    tni_conv_lists lists = {stride,    padding,    dilation,         output_padding, stride_n,
                            padding_n, dilation_n, output_padding_n, transposed,     groups};
    TN_TRY(tni_conv_check(input, weight, bias, &lists, &c));
    return out->numel ? tni_conv_run(&c, input, weight, bias, out) : TN_OK;
}
