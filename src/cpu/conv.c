/* SPDX-License-Identifier: MIT */
/* cpu/conv.c: convolutions on the CPU, as products of matrices.
 *
 * Note [Columns]
 * The result at one place is the weights times the input that the kernel sees there, written down
 * as a column; the columns of a run of places are a matrix, made in a buffer that stays in cache.
 * A transposed convolution is the same with other places: the result at o takes from the input at
 * (o + padding - k * dilation) / stride where that is whole, and 0 elsewhere. With channels last a
 * column is ordered (kernel place, channel) and lies contiguous in memory, otherwise (channel,
 * kernel place), and the columns lie across. A kernel of one element needs no columns. */
#include <string.h>
#include "base/pool.h"
#include "cpu/gemm.h"
#include "cpu/ready.h"
#include "gen/cpu.h"
#include "shape/conv.h"

#define COLUMN_BYTES (INT64_C(1) << 20) /* of a buffer, as long as there are LEAST_PLACES */
#define LEAST_PLACES 64

typedef struct conv_job {
    const tni_conv *c;
    tn_dtype dtype;
    int64_t itemsize;
    int64_t in_each, out_each;         /* channels of a group */
    int64_t in_places, out_places;     /* of one channel */
    int64_t kernel_places, length;     /* of a kernel; of a column */
    int64_t tile, tiles;               /* places of a buffer, and how many buffers make a channel */
    const char *input, *weight, *bias; /* contiguous but for the bias */
    int64_t bias_stride;
    char *out;
} conv_job;

/* Where dimension @p i of the input is read for place @p o and kernel element @p k; outside of the
 * input: -1. */
static inline int64_t place(const tni_conv *c, int i, int64_t o, int64_t k)
{
    int64_t p;
    if (c->transposed) {
        p = o + c->padding[i] - k * c->dilation[i];
        if (p < 0 || p % c->stride[i])
            return -1;
        p /= c->stride[i];
    } else {
        p = o * c->stride[i] - c->padding[i] + k * c->dilation[i];
    }
    return p >= 0 && p < c->in[i] ? p : -1;
}

/* ---- columns, channels first ---- */

#define COPY_PLACES(bits)                                                \
    for (int64_t o = begin; o < end; o++) {                              \
        int64_t p = place(c, 2, o, k);                                   \
        ((uint##bits##_t *)(void *)to)[o - begin] =                      \
            p < 0 ? 0 : ((const uint##bits##_t *)(const void *)from)[p]; \
    }

/* Places [begin, end) of the last dimension from a line of the input. */
static void copy_line(const conv_job *j, char *to, const char *from, int64_t k, int64_t begin,
                      int64_t end)
{
    const tni_conv *c = j->c;
    int64_t size = j->itemsize;
    if (c->stride[2] == 1) {
        int64_t shift =
            c->transposed ? c->padding[2] - k * c->dilation[2] : k * c->dilation[2] - c->padding[2];
        int64_t first = -shift > begin ? -shift : begin;
        int64_t last = c->in[2] - shift < end ? c->in[2] - shift : end;
        if (first >= last) {
            memset(to, 0, (size_t)((end - begin) * size));
            return;
        }
        memset(to, 0, (size_t)((first - begin) * size));
        memcpy(to + (first - begin) * size, from + (first + shift) * size,
               (size_t)((last - first) * size));
        memset(to + (last - begin) * size, 0, (size_t)((end - last) * size));
        return;
    }
    switch (size) {
    case 1:
        COPY_PLACES(8)
        break;
    case 2:
        COPY_PLACES(16)
        break;
    case 4:
        COPY_PLACES(32)
        break;
    case 8:
        COPY_PLACES(64)
        break;
    default:
        for (int64_t o = begin; o < end; o++) {
            int64_t p = place(c, 2, o, k);
            if (p < 0)
                memset(to + (o - begin) * size, 0, (size_t)size);
            else
                memcpy(to + (o - begin) * size, from + p * size, (size_t)size);
        }
    }
}

/* Row (channel, k0, k1, k2) of the columns of places [begin, end). */
static void row_of_columns(const conv_job *j, char *row, const char *channel, const int64_t *k,
                           int64_t begin, int64_t end)
{
    const tni_conv *c = j->c;
    for (int64_t at = begin; at < end;) {
        int64_t line = at / c->out[2], o2 = at % c->out[2];
        int64_t n = c->out[2] - o2 < end - at ? c->out[2] - o2 : end - at;
        int64_t p0 = place(c, 0, line / c->out[1], k[0]), p1 = place(c, 1, line % c->out[1], k[1]);
        char *to = row + (at - begin) * j->itemsize;
        if (p0 < 0 || p1 < 0)
            memset(to, 0, (size_t)(n * j->itemsize));
        else
            copy_line(j, to, channel + (p0 * c->in[1] + p1) * c->in[2] * j->itemsize, k[2], o2,
                      o2 + n);
        at += n;
    }
}

static void columns_first(const conv_job *j, char *columns, const char *input, int64_t begin,
                          int64_t end)
{
    const tni_conv *c = j->c;
    int64_t row_bytes = (end - begin) * j->itemsize, k[3];
    for (int64_t i = 0; i < j->in_each; i++) {
        const char *channel = input + i * j->in_places * j->itemsize;
        for (k[0] = 0; k[0] < c->kernel[0]; k[0]++) {
            for (k[1] = 0; k[1] < c->kernel[1]; k[1]++) {
                for (k[2] = 0; k[2] < c->kernel[2]; k[2]++) {
                    row_of_columns(j, columns, channel, k, begin, end);
                    columns += row_bytes;
                }
            }
        }
    }
}

/* ---- columns, channels last ---- */

static void columns_last(const conv_job *j, char *columns, const char *input, int64_t begin,
                         int64_t end)
{
    const tni_conv *c = j->c;
    int64_t bytes = j->in_each * j->itemsize;
    for (int64_t at = begin; at < end; at++) {
        int64_t o2 = at % c->out[2], line = at / c->out[2];
        int64_t o1 = line % c->out[1], o0 = line / c->out[1];
        for (int64_t k0 = 0; k0 < c->kernel[0]; k0++) {
            int64_t p0 = place(c, 0, o0, k0);
            for (int64_t k1 = 0; k1 < c->kernel[1]; k1++) {
                int64_t p1 = place(c, 1, o1, k1);
                for (int64_t k2 = 0; k2 < c->kernel[2]; k2++, columns += bytes) {
                    int64_t p2 = place(c, 2, o2, k2);
                    if (p0 < 0 || p1 < 0 || p2 < 0) {
                        memset(columns, 0, (size_t)bytes);
                        continue;
                    }
                    int64_t p = (p0 * c->in[1] + p1) * c->in[2] + p2;
                    memcpy(columns, input + p * c->in_channels * j->itemsize, (size_t)bytes);
                }
            }
        }
    }
}

/* ---- products ---- */

/* The product for @p places columns at @p x, of one group, for @p batch images. Strides of x: from
 * one element of a column to the next, and from one column to the next. */
static tn_status multiply(const conv_job *j, int64_t group, const void *x, int64_t x_element,
                          int64_t x_place, int64_t x_batch, char *out, int64_t places,
                          int64_t batch)
{
    const tni_conv *c = j->c;
    const char *weight = j->weight + group * j->out_each * j->length * j->itemsize;
    tni_gemm_args g = {.k = j->length, .batch = batch};
    tni_matrix bias = {0};
    if (j->bias)
        bias.data = j->bias + group * j->out_each * j->bias_stride * j->itemsize;
    int64_t image = c->out_channels * j->out_places;
    if (c->channels_last) {
        g.m = places;
        g.n = j->out_each;
        g.a = (tni_matrix){x, x_place, x_element, x_batch};
        g.b = (tni_matrix){weight, 1, j->length, 0};
        g.c = (tni_matrix){out, c->out_channels, 1, image};
        bias.col = j->bias_stride;
    } else {
        g.m = j->out_each;
        g.n = places;
        g.a = (tni_matrix){weight, j->length, 1, 0};
        g.b = (tni_matrix){x, x_element, x_place, x_batch};
        g.c = (tni_matrix){out, j->out_places, 1, image};
        bias.row = j->bias_stride;
    }
    g.d = j->bias ? bias : g.c;
    return tni_gemm(j->dtype, &g, tn_int(1), tn_int(j->bias ? 1 : 0));
}

/* Where image @p n, channels of @p group begin. */
static int64_t corner(const conv_job *j, int64_t n, int64_t group, int64_t channels, int64_t each,
                      int64_t places)
{
    return (n * channels * places + group * each * (j->c->channels_last ? 1 : places)) *
           j->itemsize;
}

/* An item is one tile of places, of one group, of one image. */
static tn_status some_items(int64_t begin, int64_t end, void *arg)
{
    const conv_job *j = arg;
    const tni_conv *c = j->c;
    size_t nbytes = (size_t)(j->tile * j->length * j->itemsize);
    char *columns = tni_alloc(nbytes);
    TN_CHECK(columns, TN_NOMEM, "cannot allocate %zu bytes for a convolution", nbytes);
    tn_status status = TN_OK;
    for (int64_t item = begin; item < end && status == TN_OK; item++) {
        int64_t t = item % j->tiles, group = item / j->tiles % c->groups;
        int64_t n = item / j->tiles / c->groups, at = t * j->tile;
        int64_t places = j->out_places - at < j->tile ? j->out_places - at : j->tile;
        const char *x = j->input + corner(j, n, group, c->in_channels, j->in_each, j->in_places);
        char *out = j->out + corner(j, n, group, c->out_channels, j->out_each, j->out_places);
        if (c->channels_last) {
            columns_last(j, columns, x, at, at + places);
            out += at * c->out_channels * j->itemsize;
            status = multiply(j, group, columns, 1, j->length, 0, out, places, 1);
        } else {
            columns_first(j, columns, x, at, at + places);
            out += at * j->itemsize;
            status = multiply(j, group, columns, places, 1, 0, out, places, 1);
        }
    }
    tni_free(columns);
    return status;
}

/* See Note [Columns]: the input is its own columns. */
static bool needs_no_columns(const tni_conv *c)
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
    int64_t image = c->in_channels * j->in_places;
    for (int64_t group = 0; group < c->groups; group++) {
        const char *x = j->input + corner(j, 0, group, c->in_channels, j->in_each, j->in_places);
        char *out = j->out + corner(j, 0, group, c->out_channels, j->out_each, j->out_places);
        /* With channels last all images are one long one. */
        TN_TRY(c->channels_last
                   ? multiply(j, group, x, 1, c->in_channels, 0, out, c->batch * j->out_places, 1)
                   : multiply(j, group, x, j->in_places, 1, image, out, j->out_places, c->batch));
    }
    return TN_OK;
}

static tn_status convolve(conv_job *j)
{
    const tni_conv *c = j->c;
    if (needs_no_columns(c))
        return pointwise(j);
    j->tile = COLUMN_BYTES / (j->length * j->itemsize);
    if (j->tile < LEAST_PLACES)
        j->tile = LEAST_PLACES;
    if (j->tile > j->out_places)
        j->tile = j->out_places;
    j->tiles = (j->out_places + j->tile - 1) / j->tile;
    int64_t items = c->batch * c->groups * j->tiles;
    /* Products do not depend on how they are shared out, so this may depend on the threads: with
     * few items it is their products that are. */
    if (items < tn_num_threads())
        return some_items(0, items, j);
    int64_t work = j->tile * j->length * j->out_each, grain = work < 65536 ? 65536 / work : 1;
    return tni_pool_for(items, grain, some_items, j);
}

/* ---- the operator ---- */

/* @p weight as [groups, out, in, kernel], or [groups, out, kernel, in] with channels last. */
static tn_status ready_weight(const conv_job *j, const tn_tensor *weight, tn_tensor **out)
{
    const tni_conv *c = j->c;
    int64_t sizes[6] = {c->groups, j->out_each}, strides[6];
    int64_t s0 = weight->strides[0], s1 = weight->strides[1];
    int in = c->channels_last ? 5 : 2, kernel = c->channels_last ? 2 : 3;
    strides[0] = (c->transposed ? j->in_each : j->out_each) * s0;
    strides[1] = c->transposed ? s1 : s0;
    sizes[in] = j->in_each;
    strides[in] = c->transposed ? s0 : s1;
    for (int i = 0; i < 3; i++) {
        int d = i - (3 - c->spatial);
        sizes[kernel + i] = c->kernel[i];
        strides[kernel + i] = d < 0 ? 0 : weight->strides[2 + d];
    }
    TN_AUTO(tn_tensor) alias = NULL;
    TN_TRY(tni_tensor_alias(weight, 6, sizes, strides, weight->offset, &alias));
    return tni_ready(alias, j->dtype, out);
}

/* @p t with its channels where the computation wants them. */
static tn_status turned(const tni_conv *c, const tn_tensor *t, tn_tensor **out)
{
    int64_t sizes[5], strides[5];
    int n = t->ndim;
    for (int d = 0; d < n; d++) {
        int from = !c->channels_last || d == 0 ? d : d == n - 1 ? 1 : d + 1;
        sizes[d] = t->sizes[from];
        strides[d] = t->strides[from];
    }
    return tni_tensor_alias(t, n, sizes, strides, t->offset, out);
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
    if (out->numel == 0)
        return TN_OK;
    conv_job j = {.c = &c,
                  .dtype = (tn_dtype)input->dtype,
                  .itemsize = (int64_t)tni_itemsize(input),
                  .in_each = c.in_channels / c.groups,
                  .out_each = c.out_channels / c.groups,
                  .in_places = c.in[0] * c.in[1] * c.in[2],
                  .out_places = c.out[0] * c.out[1] * c.out[2],
                  .kernel_places = c.kernel[0] * c.kernel[1] * c.kernel[2]};
    j.length = j.in_each * j.kernel_places;
    TN_AUTO(tn_tensor) x_turned = NULL;
    TN_AUTO(tn_tensor) x = NULL;
    TN_AUTO(tn_tensor) w = NULL;
    TN_AUTO(tn_tensor) out_turned = NULL;
    TN_AUTO(tn_tensor) fresh = NULL;
    TN_TRY(turned(&c, input, &x_turned));
    TN_TRY(tni_ready(x_turned, j.dtype, &x));
    TN_TRY(ready_weight(&j, weight, &w));
    TN_TRY(turned(&c, out, &out_turned));
    if (!(out_turned->flags & TNI_CONTIGUOUS))
        TN_TRY(tni_tensor_new(out_turned->ndim, out_turned->sizes, NULL, j.dtype, out->device,
                              &fresh));
    j.input = x->data;
    j.weight = w->data;
    j.out = fresh ? fresh->data : out->data;
    if (bias) {
        j.bias = bias->data;
        j.bias_stride = bias->strides[0];
    }
    TN_TRY(convolve(&j));
    return fresh ? tni_copy_cpu(out_turned, fresh) : TN_OK;
}
