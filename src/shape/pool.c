/* SPDX-License-Identifier: MIT */
/* shape/pool.c: what pooling over two dimensions looks like, and what it refuses. */
#include "shape/pool.h"
#include "gen/shapes.h"

/* ---- windows ---- */

static tn_status pair(const char *name, const char *what, const char *choices, const int64_t *list,
                      int64_t n, int64_t *out)
{
    TN_CHECK(n == 1 || n == 2, TN_INVALID, "%s: %s must %s", name, what, choices);
    for (int i = 0; i < 2; i++) {
        out[i] = list[n == 1 ? 0 : i];
        TN_CHECK(out[i] >= INT32_MIN && out[i] <= INT32_MAX, TN_INVALID, "integer out of range");
    }
    return TN_OK;
}

static tn_status lists_of(const char *name, const tni_pool2d_lists *l, tni_pool2d *p)
{
    static const char either[] = "either be a single int, or a tuple of two ints";
    TN_TRY(pair(name, "kernel_size", either, l->kernel, l->kernel_n, p->kernel));
    if (l->stride_n)
        TN_TRY(pair(name, "stride", "either be omitted, a single int, or a tuple of two ints",
                    l->stride, l->stride_n, p->stride));
    else
        p->stride[0] = p->kernel[0], p->stride[1] = p->kernel[1];
    TN_TRY(pair(name, "padding", either, l->padding, l->padding_n, p->padding));
    p->dilation[0] = p->dilation[1] = 1;
    if (l->dilation)
        TN_TRY(pair(name, "dilation", "be either a single int, or a tuple of two ints", l->dilation,
                    l->dilation_n, p->dilation));
    return TN_OK;
}

static tn_status out_size(tni_pool2d *p, int i, bool ceil_mode)
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

static bool has_elements(const tn_tensor *t)
{
    for (int d = t->ndim == 4 ? 1 : 0; d < t->ndim; d++) {
        if (t->sizes[d] == 0)
            return false;
    }
    return true;
}

tn_status tni_pool2d_check(const char *name, const tn_tensor *self, const tni_pool2d_lists *l,
                           tni_pool2d *p)
{
    char text[TNI_SIZES_TEXT];
    int n = self->ndim;
    TN_TRY(lists_of(name, l, p));
    TN_CHECK(n == 3 || n == 4, TN_INVALID,
             "non-empty 3D or 4D (batch mode) tensor expected for input");
    p->planes = self->sizes[n - 3] * (n == 4 ? self->sizes[0] : 1);
    p->in[0] = self->sizes[n - 2];
    p->in[1] = self->sizes[n - 1];
    TN_TRY(out_size(p, 0, l->ceil_mode));
    TN_TRY(out_size(p, 1, l->ceil_mode));
    TN_CHECK(p->kernel[0] > 0 && p->kernel[1] > 0, TN_INVALID,
             "kernel size should be greater than zero, but got kH: %lld kW: %lld",
             (long long)p->kernel[0], (long long)p->kernel[1]);
    TN_CHECK(p->stride[0] > 0 && p->stride[1] > 0, TN_INVALID,
             "stride should be greater than zero, but got dH: %lld dW: %lld",
             (long long)p->stride[0], (long long)p->stride[1]);
    TN_CHECK(p->dilation[0] > 0 && p->dilation[1] > 0, TN_INVALID,
             "dilation should be greater than zero, but got dilationH: %lld dilationW: %lld",
             (long long)p->dilation[0], (long long)p->dilation[1]);
    TN_CHECK(has_elements(self), TN_INVALID,
             "Expected 3D or 4D (batch mode) tensor with optional 0 dim batch size for input, but "
             "got:%s",
             tni_format_sizes(n, self->sizes, text, sizeof text));
    TN_CHECK(p->out[0] > 0 && p->out[1] > 0, TN_INVALID,
             "Given input size: (%lldx%lldx%lld). Calculated output size: (%lldx%lldx%lld). Output "
             "size is too small",
             (long long)self->sizes[n - 3], (long long)p->in[0], (long long)p->in[1],
             (long long)self->sizes[n - 3], (long long)p->out[0], (long long)p->out[1]);
    return TN_OK;
}

/* ---- results ---- */

/* Planes of @p h x @p w elements in the order in memory that @p self has. */
static tn_status planes(tni_geometry *g, const tn_tensor *self, tn_dtype dtype, int64_t h,
                        int64_t w)
{
    int n = self->ndim;
    g->ndim = n;
    g->dtype = dtype;
    g->device = self->device;
    g->offset = 0;
    for (int d = 0; d < n - 2; d++)
        g->sizes[d] = self->sizes[d];
    g->sizes[n - 2] = h;
    g->sizes[n - 1] = w;
    g->has_strides = tni_suggest_format(self) == TN_FORMAT_CHANNELS_LAST;
    if (g->has_strides)
        TN_TRY(tni_format_strides(TN_FORMAT_CHANNELS_LAST, n, g->sizes, g->strides));
    return TN_OK;
}

static tn_status refuse_dtype(const char *kernel, const tn_tensor *t, bool fits)
{
    TN_CHECK(fits, TN_UNSUPPORTED, "\"%s\" not implemented for '%s'", kernel,
             tni_dtype_text((tn_dtype)t->dtype));
    return TN_OK;
}

static bool is_float(const tn_tensor *t)
{
    return tn_dtype_is_floating((tn_dtype)t->dtype);
}

/* A gradient must look like what the forward gave. */
static tn_status check_grad(const tn_tensor *grad, const tn_tensor *self, const int64_t *out)
{
    for (int d = 0; d < self->ndim; d++) {
        int i = d - (self->ndim - 2);
        int64_t want = i < 0 ? self->sizes[d] : out[i];
        TN_CHECK(grad->ndim == self->ndim && grad->sizes[d] == want, TN_INVALID,
                 "Expected a tensor of dimension %d and tensor.size[%d] == %lld but got: dimension "
                 "%d and tensor.size[%d] = %lld",
                 self->ndim, d, (long long)want, grad->ndim, d,
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

tn_status tni_shape_max_pool2d(tni_geometry *g, tn_tensor *self, const int64_t *kernel_size,
                               int64_t kernel_size_n, const int64_t *stride, int64_t stride_n,
                               const int64_t *padding, int64_t padding_n, const int64_t *dilation,
                               int64_t dilation_n, bool ceil_mode)
{
    tni_pool2d p;
    tni_pool2d_lists l = {kernel_size, stride,    padding,    dilation, kernel_size_n,
                          stride_n,    padding_n, dilation_n, ceil_mode};
    TN_TRY(tni_pool2d_check("max_pool2d", self, &l, &p));
    bool fits = self->dtype != TN_DTYPE_BOOL && !tn_dtype_is_complex((tn_dtype)self->dtype);
    TN_TRY(refuse_dtype("max_pool2d", self, fits));
    TN_TRY(planes(&g[0], self, (tn_dtype)self->dtype, p.out[0], p.out[1]));
    return planes(&g[1], self, TN_DTYPE_I64, p.out[0], p.out[1]);
}

tn_status tni_shape_max_pool2d_backward(tni_geometry *g, tn_tensor *grad_output, tn_tensor *self,
                                        const int64_t *kernel_size, int64_t kernel_size_n,
                                        const int64_t *stride, int64_t stride_n,
                                        const int64_t *padding, int64_t padding_n,
                                        const int64_t *dilation, int64_t dilation_n, bool ceil_mode,
                                        tn_tensor *indices)
{
    tni_pool2d p;
    tni_pool2d_lists l = {kernel_size, stride,    padding,    dilation, kernel_size_n,
                          stride_n,    padding_n, dilation_n, ceil_mode};
    TN_TRY(check_grad_dtype(grad_output, self));
    TN_TRY(tni_pool2d_check("max_pool2d", self, &l, &p));
    TN_TRY(check_grad(grad_output, self, p.out));
    TN_TRY(check_grad(indices, self, p.out));
    TN_CHECK(indices->dtype == TN_DTYPE_I64, TN_INVALID, "expected scalar type Long but found %s",
             tni_dtype_text((tn_dtype)indices->dtype));
    TN_TRY(refuse_dtype("max_pool2d_backward", self, is_float(self)));
    return planes(g, self, (tn_dtype)self->dtype, p.in[0], p.in[1]);
}

static tn_status avg_check(const tn_tensor *self, const tni_pool2d_lists *l, tn_opt_int divisor,
                           const char *kernel, tni_pool2d *p)
{
    TN_CHECK(!divisor.has || divisor.value != 0, TN_INVALID, "divisor must be not zero");
    TN_TRY(tni_pool2d_check("avg_pool2d", self, l, p));
    return refuse_dtype(kernel, self, self->dtype == TN_DTYPE_I64 || is_float(self));
}

tn_status tni_shape_avg_pool2d(tni_geometry *g, tn_tensor *self, const int64_t *kernel_size,
                               int64_t kernel_size_n, const int64_t *stride, int64_t stride_n,
                               const int64_t *padding, int64_t padding_n, bool ceil_mode,
                               bool count_include_pad, tn_opt_int divisor_override)
{
    tni_pool2d p;
    tni_pool2d_lists l = {kernel_size, stride,    padding, NULL,     kernel_size_n,
                          stride_n,    padding_n, 0,       ceil_mode};
    (void)count_include_pad;
    TN_TRY(avg_check(self, &l, divisor_override, "avg_pool2d", &p));
    return planes(g, self, (tn_dtype)self->dtype, p.out[0], p.out[1]);
}

tn_status tni_shape_avg_pool2d_backward(tni_geometry *g, tn_tensor *grad_output, tn_tensor *self,
                                        const int64_t *kernel_size, int64_t kernel_size_n,
                                        const int64_t *stride, int64_t stride_n,
                                        const int64_t *padding, int64_t padding_n, bool ceil_mode,
                                        bool count_include_pad, tn_opt_int divisor_override)
{
    tni_pool2d p;
    tni_pool2d_lists l = {kernel_size, stride,    padding, NULL,     kernel_size_n,
                          stride_n,    padding_n, 0,       ceil_mode};
    (void)count_include_pad;
    TN_TRY(avg_check(self, &l, divisor_override, "avg_pool2d_backward", &p));
    TN_TRY(check_grad(grad_output, self, p.out));
    TN_TRY(check_grad_dtype(grad_output, self));
    return planes(g, self, (tn_dtype)self->dtype, p.in[0], p.in[1]);
}

tn_status tni_shape_adaptive_avg_pool2d(tni_geometry *g, tn_tensor *self,
                                        const int64_t *output_size, int64_t output_size_n)
{
    char text[TNI_SIZES_TEXT];
    TN_CHECK(output_size_n == 2, TN_INVALID, "adaptive_avg_pool2d: output_size must be 2");
    TN_CHECK(self->ndim == 3 || self->ndim == 4, TN_INVALID,
             "adaptive_avg_pool2d(): Expected 3D or 4D tensor, but got %s",
             tni_format_sizes(self->ndim, self->sizes, text, sizeof text));
    for (int d = self->ndim - 2; d < self->ndim; d++)
        TN_CHECK(self->sizes[d] != 0, TN_INVALID,
                 "adaptive_avg_pool2d(): Expected input to have non-zero size for non-batch "
                 "dimensions, but input has sizes %s with dimension %d being empty",
                 tni_format_sizes(self->ndim, self->sizes, text, sizeof text), d);
    TN_CHECK(output_size[0] >= 0 && output_size[1] >= 0, TN_INVALID,
             "adaptive_avg_pool2d: elements of output_size must be greater than or equal to 0 but "
             "received {%lld, %lld}",
             (long long)output_size[0], (long long)output_size[1]);
    /* Products of places and sizes are computed. */
    for (int i = 0; i < 2; i++)
        TN_CHECK(output_size[i] <= INT32_MAX && self->sizes[self->ndim - 2 + i] <= INT32_MAX,
                 TN_INVALID, "integer out of range");
    TN_TRY(refuse_dtype("adaptive_avg_pool2d", self, is_float(self)));
    return planes(g, self, (tn_dtype)self->dtype, output_size[0], output_size[1]);
}

tn_status tni_shape_adaptive_avg_pool2d_backward(tni_geometry *g, tn_tensor *grad_output,
                                                 tn_tensor *self)
{
    int n = self->ndim;
    char text[TNI_SIZES_TEXT];
    TN_CHECK(n == 3 || n == 4, TN_INVALID,
             "adaptive_avg_pool2d_backward(): Expected 3D or 4D tensor, but got %s",
             tni_format_sizes(n, self->sizes, text, sizeof text));
    TN_CHECK(grad_output->ndim == n, TN_INVALID,
             "adaptive_avg_pool2d_backward_out_cpu_template: Expected dimensions %d for "
             "`grad_output` but got dimensions %d",
             n, grad_output->ndim);
    for (int d = 1; d < n; d++)
        TN_CHECK(grad_output->sizes[d] != 0, TN_INVALID,
                 "adaptive_avg_pool2d_backward(): Expected grad_output to have non-zero size for "
                 "non-batch dimensions, but grad_output has sizes %s with dimension %d being empty",
                 tni_format_sizes(n, grad_output->sizes, text, sizeof text), d);
    TN_CHECK(grad_output->dtype == self->dtype, TN_INVALID,
             "adaptive_avg_pool2d_backward_out_cpu_template: Expected dtype %s for `grad_output` "
             "but got dtype %s",
             tni_dtype_cpp((tn_dtype)self->dtype), tni_dtype_cpp((tn_dtype)grad_output->dtype));
    TN_TRY(check_grad_dtype(grad_output, self));
    TN_TRY(check_grad(grad_output, self, grad_output->sizes + n - 2));
    TN_TRY(refuse_dtype("adaptive_avg_pool2d_backward", self, is_float(self)));
    return planes(g, self, (tn_dtype)self->dtype, self->sizes[n - 2], self->sizes[n - 1]);
}
