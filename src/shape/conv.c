/* SPDX-License-Identifier: MIT */
/* shape/conv.c: what a convolution looks like, and what it refuses. Checks and texts are those of
 * the reference's CPU kernels, in their order; Meta refuses what the CPU refuses. */
#include "shape/conv.h"
#include <stdio.h>
#include <string.h>
#include "gen/shapes.h"

#define SIZES_OF(t, text) tni_format_sizes((t)->ndim, (t)->sizes, text, sizeof text)

/* ---- parameter lists ---- */

/* One value for each dimension; a single one is for all. Of more than three dimensions, which are
 * refused, the first three. */
static tn_status spread(const char *name, const int64_t *list, int64_t n, int spatial,
                        int64_t missing, int64_t *out)
{
    char text[TNI_SIZES_TEXT];
    int show = n < TN_MAX_DIMS ? (int)n : TN_MAX_DIMS;
    TN_CHECK(n == 1 || n == spatial, TN_INVALID,
             "expected %s to be a single integer value or a list of %d values to match the "
             "convolution dimensions, but got %s=%s",
             name, spatial, name, tni_format_sizes(show, list, text, sizeof text));
    spatial = spatial < 3 ? spatial : 3;
    for (int i = 0; i < 3; i++) {
        int d = i - (3 - spatial);
        out[i] = d < 0 ? missing : list[n == 1 ? 0 : d];
    }
    return TN_OK;
}

static bool all_least(const int64_t *x, int64_t least)
{
    return x[0] >= least && x[1] >= least && x[2] >= least;
}

/* "(3 x 4)" of the last @p n of three numbers. */
static const char *times(const int64_t *x, int n, char text[96])
{
    int at = 0;
    for (int i = 3 - n; i < 3; i++)
        at += snprintf(text + at, 96 - (size_t)at, at ? " x %lld" : "%lld", (long long)x[i]);
    return text;
}

/* ---- checks ---- */

static tn_status check_groups(const tni_conv *c, const tn_tensor *input, const tn_tensor *weight)
{
    char w[TNI_SIZES_TEXT], x[TNI_SIZES_TEXT];
    TN_CHECK(weight->ndim == input->ndim, TN_INVALID,
             "Expected %d-dimensional input for %d-dimensional weight %s, but got %d-dimensional "
             "input of size %s instead",
             weight->ndim, weight->ndim, SIZES_OF(weight, w), input->ndim, SIZES_OF(input, x));
    TN_CHECK(weight->sizes[0] >= c->groups, TN_INVALID,
             "Given groups=%lld, expected weight to be at least %lld at dimension 0, but got "
             "weight of size %s instead",
             (long long)c->groups, (long long)c->groups, SIZES_OF(weight, w));
    TN_CHECK(weight->sizes[0] % c->groups == 0, TN_INVALID,
             "Given groups=%lld, expected weight to be divisible by %lld at dimension 0, but got "
             "weight of size [%s] instead",
             (long long)c->groups, (long long)c->groups, SIZES_OF(weight, w));
    return TN_OK;
}

static tn_status check_channels(const tni_conv *c, const tn_tensor *input, const tn_tensor *weight)
{
    char w[TNI_SIZES_TEXT], x[TNI_SIZES_TEXT];
    if (c->transposed) {
        TN_CHECK(input->sizes[1] == weight->sizes[0], TN_INVALID,
                 "Given transposed=1, weight of size %s, expected input%s to have %lld channels, "
                 "but got %lld channels instead",
                 SIZES_OF(weight, w), SIZES_OF(input, x), (long long)weight->sizes[0],
                 (long long)input->sizes[1]);
        return TN_OK;
    }
    int64_t want;
    bool counts = !__builtin_mul_overflow(weight->sizes[1], c->groups, &want);
    TN_CHECK(counts && input->sizes[1] == want, TN_INVALID,
             "Given groups=%lld, weight of size %s, expected input%s to have %lld channels, but "
             "got %lld channels instead",
             (long long)c->groups, SIZES_OF(weight, w), SIZES_OF(input, x), (long long)want,
             (long long)input->sizes[1]);
    return TN_OK;
}

static tn_status check_bias(const tni_conv *c, const tn_tensor *weight, const tn_tensor *bias)
{
    char w[TNI_SIZES_TEXT], b[TNI_SIZES_TEXT];
    TN_CHECK(!bias || (bias->ndim == 1 && bias->sizes[0] == c->out_channels), TN_INVALID,
             "Given %sweight of size %s, expected bias to be 1-dimensional with %lld elements, but "
             "got bias of size %s instead",
             c->transposed ? "transposed=1, " : "", SIZES_OF(weight, w), (long long)c->out_channels,
             SIZES_OF(bias, b));
    return TN_OK;
}

/* As the reference calls a tensor of a dtype: torch.FloatTensor, or CPUBFloat16Type where there is
 * no such class. */
static const char *class_name(tn_dtype dtype, char *room, size_t n)
{
    bool named = !tn_dtype_is_complex(dtype) && dtype != TN_DTYPE_BF16 && dtype != TN_DTYPE_BOOL;
    snprintf(room, n, named ? "torch.%sTensor" : "CPU%sType", tni_dtype_text(dtype));
    return room;
}

/* @p t, which may be NULL, goes with @p input. */
static tn_status check_dtype(const tn_tensor *input, const tn_tensor *t, const char *name)
{
    if (!t)
        return TN_OK;
    TN_CHECK(t->device.type == input->device.type && t->device.index == input->device.index,
             TN_INVALID,
             "Expected all tensors to be on the same device, but got %s on another device than "
             "input",
             name);
    if (t->dtype == input->dtype)
        return TN_OK;
    tn_dtype want = (tn_dtype)input->dtype, have = (tn_dtype)t->dtype;
    char a[48], b[48];
    /* The reference's words are those of the library that it would hand the call to. */
    bool handed = want == TN_DTYPE_F16 || want == TN_DTYPE_BF16 ||
                  (want == TN_DTYPE_F32 && input->ndim > 0 && input->sizes[0] > 1);
    bool weight = strcmp(name, "weight") == 0;
    TN_CHECK(!handed || strcmp(name, "grad_output") == 0, TN_INVALID,
             "Input type (%s) and %s type (%s) should be the same or input should be a MKLDNN "
             "tensor and %s is a dense tensor",
             class_name(want, a, sizeof a), name, class_name(have, b, sizeof b), name);
    TN_CHECK(!weight || !tn_dtype_is_complex(want), TN_INVALID,
             "Input type (%s) and weight type (%s) should be the same",
             class_name(want, a, sizeof a), class_name(have, b, sizeof b));
    TN_FAIL(TN_INVALID, "expected scalar type %s but found %s", tni_dtype_text(want),
            tni_dtype_text(have));
}

/* ---- sizes ---- */

static TNI_COLD tn_status too_large(void)
{
    TN_FAIL(TN_INVALID, "convolution: a size of the result is too large");
}

static bool fits(__int128 x)
{
    return x >= INT64_MIN / 4 && x <= INT64_MAX / 4;
}

static tn_status plain_sizes(tni_conv *c)
{
    int64_t padded[3], reach[3];
    char a[96], b[96];
    for (int i = 0; i < 3; i++) {
        __int128 p = c->in[i] + 2 * (__int128)c->padding[i];
        __int128 k = (__int128)c->dilation[i] * (c->kernel[i] - 1) + 1;
        TN_CHECK(c->padding[i] <= INT64_MAX / 2, TN_INVALID,
                 "Given padding=%lld at dimension %d , expected padding to be at most %lld",
                 (long long)c->padding[i], i - 3 + c->spatial, (long long)(INT64_MAX / 2));
        if (!fits(p) || !fits(k))
            return too_large();
        padded[i] = (int64_t)p;
        reach[i] = (int64_t)k;
        c->out[i] = (padded[i] - reach[i]) / c->stride[i] + 1;
    }
    TN_CHECK(padded[0] >= reach[0] && padded[1] >= reach[1] && padded[2] >= reach[2], TN_INVALID,
             "Calculated padded input size per channel: (%s). Kernel size: (%s). Kernel size can't "
             "be greater than actual input size",
             times(padded, c->spatial, a), times(reach, c->spatial, b));
    return TN_OK;
}

/* The reference computes one dimension as two. */
static TNI_COLD tn_status refuse_output_padding(const tni_conv *c, const int64_t *more)
{
    const int64_t *of[] = {more, c->stride, c->dilation};
    static const char *const names[] = {"output_padding", "stride", "dilation"};
    static const char *const axes[] = {"depth", "height", "width"};
    char text[512];
    int at = 0;
    for (int k = 0; k < 3; k++) {
        for (int i = c->spatial == 3 ? 0 : 1; i < 3; i++)
            at += snprintf(text + at, sizeof text - (size_t)at, " %s_%s: %lld", names[k], axes[i],
                           (long long)of[k][i]);
    }
    TN_FAIL(TN_INVALID, "output padding must be smaller than either stride or dilation, but got%s",
            text);
}

static tn_status transposed_sizes(tni_conv *c, const int64_t *more)
{
    char a[96], b[96];
    for (int i = 0; i < 3; i++) {
        if (more[i] >= c->stride[i] && more[i] >= c->dilation[i])
            return refuse_output_padding(c, more);
        __int128 n = (__int128)(c->in[i] - 1) * c->stride[i] - 2 * (__int128)c->padding[i] +
                     (__int128)c->dilation[i] * (c->kernel[i] - 1) + more[i] + 1;
        if (!fits(n))
            return too_large();
        c->out[i] = (int64_t)n;
    }
    TN_CHECK(all_least(c->out, 1), TN_INVALID,
             "Given input size per channel: (%s). Calculated output size per channel: (%s). Output "
             "size is too small",
             times(c->in, c->spatial, a), times(c->out, c->spatial, b));
    return TN_OK;
}

static bool last(const tn_tensor *t)
{
    return tni_suggest_format(t) != TN_FORMAT_CONTIGUOUS;
}

/* An input with one spatial dimension counts as row-major, whatever its strides, but for one of a
 * single channel that lies as if the channel came last: that is row-major, too, and nobody moves
 * it. */
static bool single_last(const tn_tensor *input)
{
    if (input->ndim != 3 || input->sizes[1] != 1 || !(input->flags & TNI_CONTIGUOUS))
        return false;
    /* The last stride is 1, or its size is. */
    const int64_t *strides = input->strides, plane = input->sizes[2] * strides[2];
    return strides[1] > 0 && strides[2] >= strides[1] && strides[0] >= plane && plane != strides[1];
}

/* Whether a weight with one spatial dimension lies channels last. */
static bool last_of_lines(const tn_tensor *weight)
{
    return weight->ndim == 3 && weight->sizes[1] > 1 && weight->strides[1] == 1 &&
           weight->strides[2] >= weight->sizes[1] &&
           weight->strides[0] >= weight->sizes[2] * weight->strides[2];
}

/* A kernel without elements, in the words of the reference for so many dimensions. */
static tn_status check_kernel(const tni_conv *c, const tn_tensor *weight)
{
    char text[TNI_SIZES_TEXT];
    bool good = all_least(c->kernel, 1);
    TN_CHECK(good || c->spatial == 3, TN_INVALID,
             "kernel size should be greater than zero, but got kernel_height: %lld kernel_width: "
             "%lld",
             (long long)c->kernel[1], (long long)c->kernel[2]);
    TN_CHECK(good || !c->transposed, TN_INVALID,
             "non-empty 5D (n_output_plane x n_input_plane x kernel_depth x kernel_height x "
             "kernel_width) tensor expected for weight, but got: %s",
             SIZES_OF(weight, text));
    TN_CHECK(good, TN_INVALID,
             "kernel size should be greater than zero, but got: %lld x %lld x %lld (TxHxW)",
             (long long)c->kernel[0], (long long)c->kernel[1], (long long)c->kernel[2]);
    return TN_OK;
}

static tn_status check_nothing(const tni_conv *c, const tn_tensor *input)
{
    char text[TNI_SIZES_TEXT];
    TN_CHECK(input->numel || c->batch == 0 || c->in_channels == 0, TN_INVALID,
             "Only zero batch or zero channel inputs are supported, but got input shape: %s",
             SIZES_OF(input, text));
    return TN_OK;
}

tn_status tni_conv_check(const tn_tensor *input, const tn_tensor *weight, const tn_tensor *bias,
                         const tni_conv_lists *l, tni_conv *c)
{
    int64_t more[3];
    char text[TNI_SIZES_TEXT];
    TN_CHECK(weight->ndim > 2, TN_INVALID, "weight should have at least three dimensions");
    TN_CHECK(l->groups > 0, TN_INVALID, "non-positive groups is not supported");
    c->spatial = weight->ndim - 2;
    c->transposed = l->transposed;
    c->groups = l->groups;
    TN_TRY(spread("stride", l->stride, l->stride_n, c->spatial, 1, c->stride));
    TN_TRY(spread("padding", l->padding, l->padding_n, c->spatial, 0, c->padding));
    TN_TRY(spread("dilation", l->dilation, l->dilation_n, c->spatial, 1, c->dilation));
    TN_TRY(spread("output_padding", l->output_padding, l->output_padding_n, c->spatial, 0, more));
    TN_CHECK(all_least(c->padding, 0), TN_INVALID, "negative padding is not supported");
    TN_CHECK(all_least(more, 0), TN_INVALID, "negative output_padding is not supported");
    TN_CHECK(all_least(c->stride, 1), TN_INVALID, "non-positive stride is not supported");
    TN_CHECK(all_least(c->dilation, 0), TN_INVALID, "dilation should be greater than zero");
    int shown = c->spatial < 3 ? c->spatial : 3;
    TN_CHECK(all_least(c->dilation, 1), TN_INVALID,
             "dilation should be greater than zero, but got %s",
             tni_format_sizes(shown, c->dilation + 3 - shown, text, sizeof text));
    TN_TRY(check_groups(c, input, weight));
    TN_TRY(check_channels(c, input, weight));
    c->batch = input->sizes[0];
    c->in_channels = input->sizes[1];
    if (!c->transposed)
        c->out_channels = weight->sizes[0];
    else if (__builtin_mul_overflow(weight->sizes[1], c->groups, &c->out_channels))
        return too_large();
    TN_TRY(check_bias(c, weight, bias));
    TN_CHECK(c->spatial < 4, TN_INVALID,
             "a convolution has at most three spatial dimensions, but weight has size %s",
             SIZES_OF(weight, text));
    for (int i = 0; i < 3; i++) {
        int d = i - (3 - c->spatial);
        c->in[i] = d < 0 ? 1 : input->sizes[2 + d];
        c->kernel[i] = d < 0 ? 1 : weight->sizes[2 + d];
    }
    if (!c->transposed)
        TN_TRY(plain_sizes(c));
    TN_TRY(check_nothing(c, input));
    TN_TRY(check_kernel(c, weight));
    if (c->transposed)
        TN_TRY(transposed_sizes(c, more));
    TN_TRY(check_dtype(input, weight, "weight"));
    TN_TRY(check_dtype(input, bias, "bias"));
    TN_CHECK(input->dtype != TN_DTYPE_BOOL, TN_UNSUPPORTED,
             "\"slow_conv%dd_cpu\" not implemented for 'Bool'", weight->ndim == 5 ? 3 : 2);
    if (c->in_channels == 0)
        c->out_channels = 0;
    c->channels_last = input->numel &&
                       (last(input) || single_last(input) || last(weight) || last_of_lines(weight));
    return TN_OK;
}

/* Strides for the sizes in @p g: row-major, or channels last. */
static void conv_strides(const tni_conv *c, tni_geometry *g)
{
    g->has_strides = c->channels_last;
    if (!c->channels_last)
        return;
    /* Wrapping is found by whoever allocates: the sizes are the same. */
    uint64_t step = (uint64_t)(g->sizes[1] ? g->sizes[1] : 1);
    g->strides[1] = 1;
    for (int d = g->ndim - 1; d >= 2; d--) {
        g->strides[d] = (int64_t)step;
        step *= (uint64_t)(g->sizes[d] ? g->sizes[d] : 1);
    }
    g->strides[0] = (int64_t)step;
}

static void conv_geometry(const tni_conv *c, const tn_tensor *input, tni_geometry *g)
{
    g->ndim = c->spatial + 2;
    g->dtype = (tn_dtype)input->dtype;
    g->device = input->device;
    g->offset = 0;
    g->sizes[0] = c->batch;
    g->sizes[1] = c->out_channels;
    for (int d = 0; d < c->spatial; d++)
        g->sizes[2 + d] = c->out[3 - c->spatial + d];
    conv_strides(c, g);
}

tn_status tni_shape_convolution(tni_geometry *g, tn_tensor *input, tn_tensor *weight,
                                tn_tensor *bias, const int64_t *stride, int64_t stride_n,
                                const int64_t *padding, int64_t padding_n, const int64_t *dilation,
                                int64_t dilation_n, bool transposed, const int64_t *output_padding,
                                int64_t output_padding_n, int64_t groups)
{
    tni_conv c;
    tni_conv_lists lists = {stride,    padding,    dilation,         output_padding, stride_n,
                            padding_n, dilation_n, output_padding_n, transposed,     groups};
    TN_TRY(tni_conv_check(input, weight, bias, &lists, &c));
    conv_geometry(&c, input, g);
    int64_t elements;
    if (!tni_numel(g->ndim, g->sizes, &elements))
        return too_large();
    return TN_OK;
}

/* ---- the gradient ---- */

tni_conv tni_conv_adjoint(const tni_conv *c)
{
    tni_conv a = *c;
    a.transposed = !c->transposed;
    a.in_channels = c->out_channels;
    a.out_channels = c->in_channels;
    for (int i = 0; i < 3; i++) {
        a.in[i] = c->out[i];
        a.out[i] = c->in[i];
    }
    return a;
}

void tni_conv_geometry_like(const tni_conv *c, const tn_tensor *like, tni_geometry *g)
{
    g->ndim = like->ndim;
    g->dtype = (tn_dtype)like->dtype;
    g->device = like->device;
    g->offset = 0;
    for (int d = 0; d < like->ndim; d++)
        g->sizes[d] = like->sizes[d];
    conv_strides(c, g);
}

/* The message has a number for each dimension, as the reference's. */
static tn_status check_no_output_padding(const tni_conv *c, int spatial,
                                         const tni_conv_lists *lists)
{
    char text[TNI_SIZES_TEXT] = "";
    size_t at = 0;
    bool some = false;
    for (int64_t i = 0; i < lists->output_padding_n; i++)
        some |= lists->output_padding[i] != 0;
    if (c->transposed || !some)
        return TN_OK;
    for (int d = 0; d < spatial && at < sizeof text; d++) {
        int64_t i = lists->output_padding_n == 1 ? 0 : d;
        at += (size_t)snprintf(text + at, sizeof text - at, " %lld",
                               (long long)lists->output_padding[i]);
    }
    TN_FAIL(TN_INVALID, "output_padding is not supported for non-transposed convolutions; got:%s",
            text);
}

tn_status tni_conv_check_backward(const tn_tensor *grad, const tn_tensor *input,
                                  const tn_tensor *weight, const tni_conv_lists *lists, tni_conv *c)
{
    TN_CHECK(lists->groups > 0 || weight->ndim < 3, TN_INVALID,
             "expected groups to be greater than 0, but got groups=%lld", (long long)lists->groups);
    TN_CHECK(input->dtype != TN_DTYPE_F32 || weight->dtype == TN_DTYPE_F32, TN_INVALID,
             "expected scalar type Float but found %s", tni_dtype_text((tn_dtype)weight->dtype));
    TN_TRY(tni_conv_check(input, weight, NULL, lists, c));
    TN_CHECK(grad->ndim == input->ndim, TN_INVALID,
             "Expected input and grad_output to have the same number of dimensions, but got: %d "
             "and %d",
             input->ndim, grad->ndim);
    TN_TRY(check_no_output_padding(c, input->ndim - 2, lists));
    tni_geometry g;
    conv_geometry(c, input, &g);
    for (int d = 0; d < g.ndim; d++)
        TN_CHECK(grad->sizes[d] == g.sizes[d], TN_INVALID,
                 "Expected a tensor of dimension %d and tensor.size[%d] == %lld but got: dimension "
                 "%d and tensor.size[%d] = %lld",
                 g.ndim, d, (long long)g.sizes[d], grad->ndim, d, (long long)grad->sizes[d]);
    TN_TRY(check_dtype(input, grad, "grad_output"));
    TN_CHECK(tn_dtype_is_floating(g.dtype) || tn_dtype_is_complex(g.dtype), TN_UNSUPPORTED,
             "\"slow_conv%dd_cpu_grad_input\" not implemented for '%s'", g.ndim == 5 ? 3 : 2,
             tni_dtype_text(g.dtype));
    return TN_OK;
}
