/* SPDX-License-Identifier: MIT */
/* shape/pool.c: what pooling over two and three dimensions looks like, and what it refuses. */
#include "shape/pool.h"
#include <stdio.h>
#include "gen/shapes.h"

/* ---- windows ---- */

/* One value for each dimension; a single one is for all. */
static tn_status spread(const char *name, int spatial, const char *what, const char *choices,
                        const int64_t *list, int64_t n, int64_t *out)
{
    TN_CHECK(n == 1 || n == spatial, TN_INVALID, "%s_pool%dd: %s must %s, or a tuple of %s ints",
             name, spatial, what, choices, spatial == 2 ? "two" : "three");
    for (int i = 3 - spatial; i < 3; i++) {
        out[i] = list[n == 1 ? 0 : i - (3 - spatial)];
        TN_CHECK(out[i] >= INT32_MIN && out[i] <= INT32_MAX, TN_INVALID, "integer out of range");
    }
    return TN_OK;
}

static tn_status lists_of(int spatial, const tni_pool_lists *l, tni_pool *p)
{
    const char *name = l->dilation ? "max" : "avg";
    bool plain = !l->dilation && spatial == 3; /* its texts lack a word */
    const char *either = plain ? "be a single int" : "either be a single int";
    *p = (tni_pool){.kernel = {1}, .stride = {1}, .dilation = {1, 1, 1}};
    TN_TRY(spread(name, spatial, "kernel_size", either, l->kernel, l->kernel_n, p->kernel));
    for (int i = 3 - spatial; i < 3; i++)
        p->stride[i] = p->kernel[i];
    if (l->stride_n)
        TN_TRY(spread(name, spatial, "stride",
                      plain ? "be omitted, a single int" : "either be omitted, a single int",
                      l->stride, l->stride_n, p->stride));
    TN_TRY(spread(name, spatial, "padding", either, l->padding, l->padding_n, p->padding));
    if (l->dilation)
        TN_TRY(spread(name, spatial, "dilation", "be either a single int", l->dilation,
                      l->dilation_n, p->dilation));
    return TN_OK;
}

static tn_status out_size(tni_pool *p, int i, bool ceil_mode)
{
    int64_t k = p->kernel[i], s = p->stride[i], pad = p->padding[i], d = p->dilation[i];
    TN_CHECK(s != 0, TN_INVALID, "stride should not be zero");
    TN_CHECK(pad >= 0, TN_INVALID, "pad must be non-negative, but got pad: %lld", (long long)pad);
    TN_CHECK(pad <= ((k - 1) * d + 1) / 2, TN_INVALID,
             "pad should be at most half of effective kernel size, but got pad=%lld, "
             "kernel_size=%lld and dilation=%lld",
             (long long)pad, (long long)k, (long long)d);
    int64_t room;
    TN_CHECK(!__builtin_add_overflow(p->in[i], 2 * pad, &room), TN_INVALID,
             "pooling: a size of the input is too large");
    room -= d * (k - 1) + 1;
    if (ceil_mode)
        TN_CHECK(!__builtin_add_overflow(room, s - 1, &room), TN_INVALID,
                 "pooling: a size of the input is too large");
    int64_t n = room / s - (room % s && (room < 0) != (s < 0)) + 1;
    /* The last window begins in the input or in the padding on the left. */
    if (ceil_mode && (n - 1) * s >= p->in[i] + pad)
        n--;
    p->out[i] = n;
    return TN_OK;
}

/* All of the last @p spatial are at least 1. */
static bool positive(int spatial, const int64_t *x)
{
    return (spatial == 2 || x[0] > 0) && x[1] > 0 && x[2] > 0;
}

/* "kT: 1 kH: 2 kW: 3" */
static const char *named(int spatial, const char *lead, const int64_t *x, char text[128])
{
    int at = 0;
    for (int i = 3 - spatial; i < 3; i++)
        at += snprintf(text + at, 128 - (size_t)at, "%s%s%c: %lld", at ? " " : "", lead, "THW"[i],
                       (long long)x[i]);
    return text;
}

/* "3x4x5": channels and the last @p spatial. */
static const char *times(int spatial, int64_t channels, const int64_t *x, char text[128])
{
    int at = snprintf(text, 128, "%lld", (long long)channels);
    for (int i = 3 - spatial; i < 3; i++)
        at += snprintf(text + at, 128 - (size_t)at, "x%lld", (long long)x[i]);
    return text;
}

#define NO_IMAGE \
    "Expected 3D or 4D (batch mode) tensor with optional 0 dim batch size for input, but got:%s"

static tn_status check_elements(int spatial, const tn_tensor *self, bool max)
{
    char text[TNI_SIZES_TEXT];
    int n = self->ndim;
    for (int d = n == spatial + 2 ? 1 : 0; d < n; d++) {
        if (self->sizes[d] > 0)
            continue;
        TN_CHECK(spatial == 3, TN_INVALID, NO_IMAGE,
                 tni_format_sizes(n, self->sizes, text, sizeof text));
        TN_FAIL(TN_INVALID,
                "%s(): Expected input's non-batch dimensions to have positive length, but input "
                "has a shape of %s and non-batch dimension 0 has length zero!",
                max ? "max_pool3d_with_indices_out_cpu_template" : "avg_pool3d",
                tni_format_sizes(n, self->sizes, text, sizeof text));
    }
    return TN_OK;
}

tn_status tni_pool_check(int spatial, const tn_tensor *self, const tni_pool_lists *l, tni_pool *p)
{
    char a[128], b[128], text[TNI_SIZES_TEXT];
    int n = self->ndim;
    TN_TRY(lists_of(spatial, l, p));
    TN_CHECK(spatial == 3 || l->dilation || n <= 4, TN_INVALID, NO_IMAGE,
             tni_format_sizes(n, self->sizes, text, sizeof text));
    TN_CHECK(n == spatial + 1 || n == spatial + 2, TN_INVALID,
             "non-empty %dD or %dD (batch mode) tensor expected for input", spatial + 1,
             spatial + 2);
    int64_t channels = self->sizes[n - spatial - 1];
    p->planes = channels * (n == spatial + 2 ? self->sizes[0] : 1);
    p->in[0] = p->out[0] = 1;
    for (int i = 3 - spatial; i < 3; i++) {
        p->in[i] = self->sizes[n - 3 + i];
        TN_TRY(out_size(p, i, l->ceil_mode));
    }
    TN_CHECK(positive(spatial, p->kernel), TN_INVALID,
             "kernel size should be greater than zero, but got %s",
             named(spatial, "k", p->kernel, a));
    TN_CHECK(positive(spatial, p->stride), TN_INVALID,
             "stride should be greater than zero, but got %s", named(spatial, "d", p->stride, a));
    TN_CHECK(positive(spatial, p->dilation), TN_INVALID,
             "dilation should be greater than zero, but got %s",
             named(spatial, "dilation", p->dilation, a));
    TN_TRY(check_elements(spatial, self, l->dilation));
    const int64_t *k = p->kernel, *pad = p->padding;
    TN_CHECK(spatial != 2 || (pad[1] <= k[1] / 2 && pad[2] <= k[2] / 2), TN_INVALID,
             "pad should be smaller than or equal to half of kernel size, but got padW = %lld, "
             "padH = %lld, kW = %lld, kH = %lld",
             (long long)pad[2], (long long)pad[1], (long long)k[2], (long long)k[1]);
    TN_CHECK(spatial != 3 || (pad[0] <= k[0] / 2 && pad[1] <= k[1] / 2 && pad[2] <= k[2] / 2),
             TN_INVALID,
             "pad should be smaller than or equal to half of kernel size, but got kT: %lld kW: "
             "%lld kH: %lld padT: %lld padW: %lld padH: %lld",
             (long long)k[0], (long long)k[2], (long long)k[1], (long long)pad[0],
             (long long)pad[2], (long long)pad[1]);
    if (spatial == 3 && !l->dilation)
        TN_CHECK(p->in[0] >= p->kernel[0] && p->in[1] >= p->kernel[1] && p->in[2] >= p->kernel[2],
                 TN_INVALID, "input image (%s) smaller than kernel size (%s)",
                 named(3, "", p->in, a), named(3, "k", p->kernel, b));
    TN_CHECK(positive(spatial, p->out), TN_INVALID,
             "Given input size: (%s). Calculated output size: (%s). Output size is too small",
             times(spatial, channels, p->in, a), times(spatial, channels, p->out, b));
    return TN_OK;
}

/* ---- results ---- */

tn_status tni_pool_planes(tni_geometry *g, int spatial, const tn_tensor *self, tn_dtype dtype,
                          const int64_t *last, bool keeps)
{
    int n = self->ndim;
    tn_memory_format format = keeps ? tni_suggest_format(self) : TN_FORMAT_CONTIGUOUS;
    g->ndim = n;
    g->dtype = dtype;
    g->device = self->device;
    g->offset = 0;
    for (int d = 0; d < n - spatial; d++)
        g->sizes[d] = self->sizes[d];
    for (int d = n - spatial; d < n; d++)
        g->sizes[d] = last[d - n + 3];
    g->has_strides = n == spatial + 2 && format != TN_FORMAT_CONTIGUOUS;
    if (g->has_strides)
        TN_TRY(tni_format_strides(format, n, g->sizes, g->strides));
    return TN_OK;
}

tn_status tni_pool_refuse(const char *kernel, const tn_tensor *t, bool fits)
{
    TN_CHECK(fits, TN_UNSUPPORTED, "\"%s\" not implemented for '%s'", kernel,
             tni_dtype_text((tn_dtype)t->dtype));
    return TN_OK;
}

/* One image without a batch keeps its channels last only where it has them so without gaps. */
static void thin_planes(tni_geometry *g, const tn_tensor *like)
{
    int64_t strides[TN_MAX_DIMS], step = like->ndim ? like->sizes[0] : 0;
    if (like->ndim != 4 || tn_tensor_is_contiguous(like, TN_FORMAT_CONTIGUOUS))
        return;
    strides[0] = 1;
    for (int d = 3; d > 0; d--) {
        strides[d] = step;
        step *= like->sizes[d];
    }
    for (int d = 0; d < 4; d++)
        if (like->sizes[d] != 1 && like->strides[d] != strides[d])
            return;
    g->has_strides = true;
    g->strides[0] = 1;
    step = g->sizes[0];
    for (int d = 3; d > 0; d--) {
        g->strides[d] = step;
        step *= g->sizes[d];
    }
}

static bool is_float(const tn_tensor *t)
{
    return tn_dtype_is_floating((tn_dtype)t->dtype);
}

/* A gradient must look like what the forward gave. */
static tn_status check_grad(int spatial, const tn_tensor *grad, const tn_tensor *self,
                            const int64_t *out)
{
    /* Over three dimensions the reference does not look at the batch first. */
    int n = self->ndim, first = spatial == 3 && n == 5 ? 1 : 0;
    for (int k = 0; k < n; k++) {
        int d = (k + first) % n;
        int64_t want = d < n - spatial ? self->sizes[d] : out[d - n + 3];
        TN_CHECK(grad->ndim == n && grad->sizes[d] == want, TN_INVALID,
                 "Expected a tensor of dimension %d and tensor.size[%d] == %lld but got: dimension "
                 "%d and tensor.size[%d] = %lld",
                 n, d, (long long)want, grad->ndim, d,
                 (long long)(d < grad->ndim ? grad->sizes[d] : 0));
    }
    return TN_OK;
}

static tn_status check_grad_dtype(const tn_tensor *grad, const tn_tensor *self)
{
    TN_CHECK(grad->dtype == self->dtype, TN_INVALID,
             "expected dtype %s for `gradOutput` but got dtype %s",
             tni_dtype_cpp((tn_dtype)self->dtype), tni_dtype_cpp((tn_dtype)grad->dtype));
    TN_CHECK(grad->device.type == self->device.type && grad->device.index == self->device.index,
             TN_INVALID, "Expected all tensors to be on the same device");
    return TN_OK;
}

/* ---- operators ---- */

static tn_status max_forward(int spatial, tni_geometry *g, const tn_tensor *self,
                             const tni_pool_lists *l)
{
    tni_pool p;
    TN_TRY(tni_pool_check(spatial, self, l, &p));
    bool fits = self->dtype != TN_DTYPE_BOOL && !tn_dtype_is_complex((tn_dtype)self->dtype);
    TN_TRY(tni_pool_refuse(spatial == 2 ? "max_pool2d" : "max_pool3d", self, fits));
    for (int i = 0; i < 2; i++) {
        tn_dtype dtype = i ? TN_DTYPE_I64 : (tn_dtype)self->dtype;
        TN_TRY(tni_pool_planes(&g[i], spatial, self, dtype, p.out, true));
        if (spatial == 3)
            thin_planes(&g[i], self);
    }
    return TN_OK;
}

static tn_status max_backward(int spatial, tni_geometry *g, const tn_tensor *grad,
                              const tn_tensor *self, const tni_pool_lists *l,
                              const tn_tensor *indices)
{
    tni_pool p;
    TN_TRY(check_grad_dtype(grad, self));
    TN_TRY(tni_pool_check(spatial, self, l, &p));
    TN_TRY(check_grad(spatial, grad, self, p.out));
    TN_TRY(check_grad(spatial, indices, self, p.out));
    TN_CHECK(indices->dtype == TN_DTYPE_I64, TN_INVALID, "expected scalar type Long but found %s",
             tni_dtype_text((tn_dtype)indices->dtype));
    TN_TRY(tni_pool_refuse(spatial == 2 ? "max_pool2d_backward" : "max_pool3d_backward", self,
                           is_float(self)));
    TN_TRY(tni_pool_planes(g, spatial, self, (tn_dtype)self->dtype, p.in, true));
    if (spatial == 3)
        thin_planes(g, grad);
    return TN_OK;
}

static tn_status avg_check(int spatial, const tn_tensor *self, const tni_pool_lists *l,
                           tn_opt_int divisor, tni_pool *p)
{
    TN_CHECK(!divisor.has || divisor.value != 0, TN_INVALID, "divisor must be not zero");
    return tni_pool_check(spatial, self, l, p);
}

static tn_status avg_refuse(const char *kernel, const tn_tensor *self)
{
    return tni_pool_refuse(kernel, self, self->dtype == TN_DTYPE_I64 || is_float(self));
}

static tn_status avg_forward(int spatial, tni_geometry *g, const tn_tensor *self,
                             const tni_pool_lists *l, tn_opt_int divisor)
{
    tni_pool p;
    TN_TRY(avg_check(spatial, self, l, divisor, &p));
    TN_TRY(avg_refuse(spatial == 2 ? "avg_pool2d" : "avg_pool3d_out_frame", self));
    return tni_pool_planes(g, spatial, self, (tn_dtype)self->dtype, p.out, spatial == 2);
}

static tn_status avg_backward(int spatial, tni_geometry *g, const tn_tensor *grad,
                              const tn_tensor *self, const tni_pool_lists *l, tn_opt_int divisor)
{
    tni_pool p;
    TN_TRY(avg_check(spatial, self, l, divisor, &p));
    TN_TRY(check_grad(spatial, grad, self, p.out));
    TN_TRY(
        avg_refuse(spatial == 2 ? "avg_pool2d_backward" : "avg_pool3d_backward_out_frame", self));
    if (spatial == 3)
        TN_CHECK(grad->dtype == self->dtype, TN_INVALID, "expected scalar type %s but found %s",
                 tni_dtype_text((tn_dtype)self->dtype), tni_dtype_text((tn_dtype)grad->dtype));
    TN_TRY(check_grad_dtype(grad, self));
    return tni_pool_planes(g, spatial, self, (tn_dtype)self->dtype, p.in, spatial == 2);
}

#define POOL(n)                                                                                 \
    tn_status tni_shape_max_pool##n##d(                                                         \
        tni_geometry *g, tn_tensor *self, const int64_t *kernel_size, int64_t kernel_size_n,    \
        const int64_t *stride, int64_t stride_n, const int64_t *padding, int64_t padding_n,     \
        const int64_t *dilation, int64_t dilation_n, bool ceil_mode)                            \
    {                                                                                           \
        tni_pool_lists l = {kernel_size, stride,    padding,    dilation, kernel_size_n,        \
                            stride_n,    padding_n, dilation_n, ceil_mode};                     \
        return max_forward(n, g, self, &l);                                                     \
    }                                                                                           \
    tn_status tni_shape_max_pool##n##d_backward(                                                \
        tni_geometry *g, tn_tensor *grad_output, tn_tensor *self, const int64_t *kernel_size,   \
        int64_t kernel_size_n, const int64_t *stride, int64_t stride_n, const int64_t *padding, \
        int64_t padding_n, const int64_t *dilation, int64_t dilation_n, bool ceil_mode,         \
        tn_tensor *indices)                                                                     \
    {                                                                                           \
        tni_pool_lists l = {kernel_size, stride,    padding,    dilation, kernel_size_n,        \
                            stride_n,    padding_n, dilation_n, ceil_mode};                     \
        return max_backward(n, g, grad_output, self, &l, indices);                              \
    }                                                                                           \
    tn_status tni_shape_avg_pool##n##d(                                                         \
        tni_geometry *g, tn_tensor *self, const int64_t *kernel_size, int64_t kernel_size_n,    \
        const int64_t *stride, int64_t stride_n, const int64_t *padding, int64_t padding_n,     \
        bool ceil_mode, bool count_include_pad, tn_opt_int divisor_override)                    \
    {                                                                                           \
        tni_pool_lists l = {kernel_size, stride,    padding, NULL,     kernel_size_n,           \
                            stride_n,    padding_n, 0,       ceil_mode};                        \
        (void)count_include_pad;                                                                \
        return avg_forward(n, g, self, &l, divisor_override);                                   \
    }                                                                                           \
    tn_status tni_shape_avg_pool##n##d_backward(                                                \
        tni_geometry *g, tn_tensor *grad_output, tn_tensor *self, const int64_t *kernel_size,   \
        int64_t kernel_size_n, const int64_t *stride, int64_t stride_n, const int64_t *padding, \
        int64_t padding_n, bool ceil_mode, bool count_include_pad, tn_opt_int divisor_override) \
    {                                                                                           \
        tni_pool_lists l = {kernel_size, stride,    padding, NULL,     kernel_size_n,           \
                            stride_n,    padding_n, 0,       ceil_mode};                        \
        (void)count_include_pad;                                                                \
        return avg_backward(n, g, grad_output, self, &l, divisor_override);                     \
    }

POOL(2)
POOL(3)
