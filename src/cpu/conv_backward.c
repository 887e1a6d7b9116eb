/* SPDX-License-Identifier: MIT */
/* cpu/conv_backward.c: the gradients of convolutions.
 *
 * That of the input is another convolution of the gradient, the adjoint. That of the weight is, for
 * each pair of (channel, tap) and channel of the result, the sum over all places of what the tap
 * saw there times the gradient: a product of the columns, which come straight from the window, with
 * the gradient. A transposed convolution is the same with the two exchanged. Of complex numbers the
 * factor that is not the gradient is conjugate. */
#include <string.h>
#include "base/alloc.h"
#include "cpu/conv.h"
#include "cpu/ready.h"
#include "gen/cpu.h"
#include "gen/kernels.h"
#include "shape/index.h"

/* ---- the weight ---- */

#define LARGE_IMAGE 256 /* places: sums along them are worth a product of their own */

#define WRITTEN_BYTES (1 << 18)

/* The product of complex numbers: what comes from the window is written down, some places at a
 * time. */
static tn_status product_written(const tni_window *w, const tni_gemm_args *given, tn_dtype dtype)
{
    const tni_gathered *x = given->gather_a ? given->gather_a : given->gather_b;
    int64_t size = w->itemsize, length = given->gather_a ? given->m : given->n;
    int64_t each = WRITTEN_BYTES / (length * size);
    each = each < 16 ? 16 : each;
    each = each < given->k ? each : given->k;
    size_t nbytes = (size_t)(each * length * size);
    char *columns = tni_alloc(nbytes);
    TN_CHECK(columns, TN_NOMEM, "cannot allocate %zu bytes for a convolution", nbytes);
    tn_status status = TN_OK;
    for (int64_t at = 0; at < given->k && status == TN_OK; at += each) {
        tni_gemm_args g = *given;
        g.k = given->k - at < each ? given->k - at : each;
        g.gather_a = g.gather_b = NULL;
        if (given->gather_a) {
            tni_window_write(columns, size, given->a.data, x, 0, length, at, g.k);
            g.a = (tni_matrix){columns, g.k, 1, 0};
            g.b.data = (const char *)given->b.data + at * given->b.row * size;
        } else {
            tni_window_write(columns, size, given->b.data, x, at, g.k, 0, length);
            g.a.data = (const char *)given->a.data + at * given->a.col * size;
            g.b = (tni_matrix){columns, length, 1, 0};
        }
        status = tni_gemm(dtype, &g, tn_int(1), tn_int(at > 0));
    }
    tni_free(columns);
    return status;
}

/* One group, of a convolution with a window. @p sums: [out, columns] with channels last, else
 * [columns, out]. @p grad: [places of all images, channels]. */
static tn_status group_weight(const tni_window *w, const tni_gathered *tables, int64_t group,
                              tn_dtype dtype, const char *grad, char *sums)
{
    const tni_conv *c = w->c;
    int64_t length = w->in_each * w->kernel_places, channels = c->out_channels;
    tni_gemm_args g = {.k = c->batch * w->out_places, .batch = 1};
    tni_matrix x = {.data = tni_window_at(w, 0, group)};
    const char *y = grad + group * w->out_each * w->itemsize;
    if (c->channels_last) {
        g.m = w->out_each;
        g.n = length;
        g.a = (tni_matrix){y, 1, channels, 0};
        g.b = x;
        g.gather_b = tables;
        g.c = (tni_matrix){sums, length, 1, 0};
    } else {
        g.m = length;
        g.n = w->out_each;
        g.a = x;
        g.b = (tni_matrix){y, channels, 1, 0};
        g.gather_a = tables;
        g.c = (tni_matrix){sums, w->out_each, 1, 0};
    }
    g.d = g.c;
    if (tn_dtype_is_complex(dtype))
        return product_written(w, &g, dtype);
    return tni_gemm(dtype, &g, tn_int(1), tn_int(0));
}

/* The same for a kernel of one element: @p input is [places of all images, channels] too. */
static tn_status group_weight_pointwise(const tni_conv *c, int64_t group, tn_dtype dtype,
                                        const char *input, const char *grad, char *sums)
{
    int64_t in_each = c->in_channels / c->groups, out_each = c->out_channels / c->groups;
    int64_t size = (int64_t)tn_dtype_size(dtype);
    tni_gemm_args g = {.m = out_each,
                       .n = in_each,
                       .k = c->batch * c->out[0] * c->out[1] * c->out[2],
                       .batch = 1,
                       .a = {grad + group * out_each * size, 1, c->out_channels, 0},
                       .b = {input + group * in_each * size, c->in_channels, 1, 0},
                       .c = {sums, in_each, 1, 0}};
    g.d = g.c;
    return tni_gemm(dtype, &g, tn_int(1), tn_int(0));
}

/* The same of [channels, places] an image, added up image by image: nothing is turned. */
static tn_status group_weight_images(const tni_conv *c, int64_t group, tn_dtype dtype,
                                     const char *input, const char *grad, char *sums)
{
    int64_t in_each = c->in_channels / c->groups, out_each = c->out_channels / c->groups;
    int64_t places = c->out[0] * c->out[1] * c->out[2];
    int64_t size = (int64_t)tn_dtype_size(dtype);
    tni_gemm_args g = {.m = out_each,
                       .n = in_each,
                       .k = places,
                       .batch = 1,
                       .a = {grad + group * out_each * places * size, places, 1, 0},
                       .b = {input + group * in_each * places * size, 1, places, 0},
                       .c = {sums, in_each, 1, 0}};
    g.d = g.c;
    for (int64_t n = 0; n < c->batch; n++) {
        TN_TRY(tni_gemm(dtype, &g, tn_int(1), tn_int(n > 0)));
        g.a.data = (const char *)g.a.data + c->out_channels * places * size;
        g.b.data = (const char *)g.b.data + c->in_channels * places * size;
    }
    return TN_OK;
}

/* All groups, one after the other; @p sums follow each other too. */
static tn_status all_weights(const tni_conv *c, tn_dtype dtype, const tn_tensor *input,
                             const tn_tensor *grad, bool by_image, tn_tensor *sums)
{
    int64_t step = sums->numel / c->groups * (int64_t)tn_dtype_size(dtype);
    tn_status status = TN_OK;
    if (tni_conv_pointwise(c)) {
        for (int64_t i = 0; i < c->groups && status == TN_OK; i++)
            status = (by_image ? group_weight_images : group_weight_pointwise)(
                c, i, dtype, input->data, grad->data, (char *)sums->data + i * step);
        return status;
    }
    tni_window w;
    tni_gathered tables = {0};
    TN_TRY(tni_window_open(&w, c, dtype, input->data));
    status = tni_window_tables(&w, &w.phase[0], &tables);
    for (int64_t i = 0; i < c->groups && status == TN_OK; i++)
        status = group_weight(&w, &tables, i, dtype, grad->data, (char *)sums->data + i * step);
    tni_free((void *)(uintptr_t)tables.at);
    tni_window_close(&w);
    return status;
}

/* Of a convolution that is not transposed. */
static tn_status weight_gradient(const tni_conv *c, tn_tensor *input, tn_tensor *grad,
                                 tn_tensor *out)
{
    tn_dtype dtype = tni_conv_dtype((tn_dtype)input->dtype);
    if (tni_conv_thin(c)) {
        tni_conv dense = *c;
        TN_AUTO(tn_tensor) some = NULL;
        TN_TRY(tni_conv_thin_input(&dense, input, &some));
        return weight_gradient(&dense, some, grad, out);
    }
    if (tni_conv_whole(c))
        return tni_whole_weight(c, input, grad, out);
    if (tni_conv_depthwise(c, dtype))
        return tni_depth_weight(c, input, grad, out);
    /* The gradient has its channels last in any case, and so has an input that needs no window; but
     * where images are large both are used as they are. */
    tni_conv last = *c;
    bool pointwise = tni_conv_pointwise(c);
    bool by_image =
        pointwise && !c->channels_last && c->out[0] * c->out[1] * c->out[2] >= LARGE_IMAGE;
    last.channels_last = !by_image;
    bool turned = c->channels_last || pointwise;
    TN_AUTO(tn_tensor) x = NULL;
    TN_AUTO(tn_tensor) y = NULL;
    TN_AUTO(tn_tensor) to = NULL;
    TN_AUTO(tn_tensor) to_sums = NULL;
    TN_AUTO(tn_tensor) sums = NULL;
    TN_TRY(tni_conv_ready(turned ? &last : c, input, dtype, &x));
    TN_TRY(tni_conv_ready(&last, grad, dtype, &y));
    TN_TRY(tni_conv_weight(c, turned, out, &to));
    if (!turned) { /* sums are [groups, in, kernel..., out] */
        const int64_t *n = to->sizes, *s = to->strides;
        TN_TRY(tni_tensor_alias(to, 6, (int64_t[]){n[0], n[2], n[3], n[4], n[5], n[1]},
                                (int64_t[]){s[0], s[2], s[3], s[4], s[5], s[1]}, to->offset,
                                &to_sums));
    } else {
        to_sums = TN_MOVE(to);
    }
    TN_TRY(tni_work_of(to_sums, dtype, &sums));
    TN_TRY(all_weights(c, dtype, x, y, by_image, sums));
    return tni_work_back(to_sums, sums);
}

/* ---- the operator ---- */

/* The complex conjugate of @p t, in memory of its own with the same order; of real numbers @p t
 * itself, referenced once more. */
static tn_status conjugate(tn_tensor *t, tn_tensor **out)
{
    tn_dtype dtype = (tn_dtype)t->dtype;
    if (!tn_dtype_is_complex(dtype)) {
        *out = tn_tensor_ref(t);
        return TN_OK;
    }
    int64_t strides[TN_MAX_DIMS];
    TN_AUTO(tn_tensor) made = NULL;
    tni_preserve_strides(t, strides);
    TN_TRY(tni_tensor_new(t->ndim, t->sizes, strides, dtype, t->device, &made));
    TN_TRY(tni_copy_cpu(made, t));
    for (int64_t i = 0; i < made->numel; i++) {
        if (dtype == TN_DTYPE_C128)
            ((double *)made->data)[2 * i + 1] *= -1;
        else
            ((float *)made->data)[2 * i + 1] *= -1;
    }
    *out = TN_MOVE(made);
    return TN_OK;
}

static tn_status compute(const tni_conv *c, tn_tensor *grad, tn_tensor *input, tn_tensor *weight,
                         tn_tensor *dx, tn_tensor *dw, tn_tensor *db)
{
    tni_conv adjoint = tni_conv_adjoint(c);
    TN_AUTO(tn_tensor) of_weight = NULL;
    TN_AUTO(tn_tensor) of_input = NULL;
    if (dx) {
        TN_TRY(conjugate(weight, &of_weight));
        TN_TRY(tni_conv_run(&adjoint, grad, of_weight, NULL, dx));
    }
    if (dw) {
        TN_TRY(conjugate(input, &of_input));
        TN_TRY(c->transposed ? weight_gradient(&adjoint, grad, of_input, dw)
                             : weight_gradient(c, of_input, grad, dw));
    }
    static const int64_t but_channels[] = {0, 2, 3, 4};
    if (db)
        TN_TRY(tni_cpu_sum_dim(grad, but_channels, c->spatial + 1, false, TN_DTYPE_NONE, db));
    return TN_OK;
}

static tn_status new_like(const tni_conv *c, const tn_tensor *like, tn_tensor **out)
{
    tni_geometry g;
    tni_conv_geometry_like(c, like, &g);
    if (like->numel && c->batch == 0) { /* then the reference makes zeros_like */
        g.has_strides = true;
        tni_preserve_strides(like, g.strides);
    }
    return tni_tensor_from_geometry(&g, out);
}

tn_status tni_kernel_convolution_backward(
    tn_call *call, tn_tensor *grad_output, tn_tensor *input, tn_tensor *weight,
    const int64_t *bias_sizes, int64_t bias_sizes_n, const int64_t *stride, int64_t stride_n,
    const int64_t *padding, int64_t padding_n, const int64_t *dilation, int64_t dilation_n,
    bool transposed, const int64_t *output_padding, int64_t output_padding_n, int64_t groups,
    const bool *output_mask, int64_t output_mask_n, tn_tensor **out0, tn_tensor **out1,
    tn_tensor **out2)
{
    tni_conv c;
    tni_conv_lists lists = {stride,    padding,    dilation,         output_padding, stride_n,
                            padding_n, dilation_n, output_padding_n, transposed,     groups};
    (void)call;
    TN_TRY(tni_check_mask_length(output_mask_n, 3));
    TN_TRY(tni_conv_check_backward(grad_output, input, weight, &lists, &c));
    TN_AUTO(tn_tensor) dx = NULL;
    TN_AUTO(tn_tensor) dw = NULL;
    TN_AUTO(tn_tensor) db = NULL;
    bool empty = grad_output->numel == 0;
    if (output_mask[0])
        TN_TRY(new_like(&c, input, &dx));
    if (output_mask[1])
        TN_TRY(new_like(&c, weight, &dw));
    if (output_mask[2]) {
        /* Where there is nothing to add up the reference believes what it is told. */
        bool told = empty && bias_sizes;
        TN_CHECK(!told || bias_sizes_n <= TN_MAX_DIMS, TN_INVALID,
                 "bias_sizes has %lld elements, more than a tensor has dimensions",
                 (long long)bias_sizes_n);
        TN_TRY(tni_tensor_new(told ? (int)bias_sizes_n : 1, told ? bias_sizes : &c.out_channels,
                              NULL, (tn_dtype)input->dtype, input->device, &db));
    }
    tn_tensor *const made[] = {dx, dw, db};
    for (int i = 0; i < 3 && empty && !tni_is_meta(input); i++) {
        if (made[i] && made[i]->numel)
            memset(made[i]->data, 0, (size_t)made[i]->numel * tni_itemsize(made[i]));
    }
    if (!empty && !tni_is_meta(input))
        TN_TRY(compute(&c, grad_output, input, weight, dx, dw, db));
    *out0 = TN_MOVE(dx);
    *out1 = TN_MOVE(dw);
    *out2 = TN_MOVE(db);
    return TN_OK;
}
