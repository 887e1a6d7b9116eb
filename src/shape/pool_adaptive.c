/* SPDX-License-Identifier: MIT */
/* shape/pool_adaptive.c: what adaptive pooling over two and three dimensions looks like, and what
 * it refuses. */
#include "gen/shapes.h"
#include "shape/pool.h"

#define SIZES_OF(t, text) tni_format_sizes((t)->ndim, (t)->sizes, text, sizeof text)

static bool is_float(const tn_tensor *t)
{
    return tn_dtype_is_floating((tn_dtype)t->dtype);
}

tni_pool tni_pool_adaptive(int spatial, const tn_tensor *whole, const tn_tensor *pooled)
{
    int n = whole->ndim;
    tni_pool p = {.planes = whole->sizes[n - spatial - 1], .in = {1}, .out = {1}};
    if (n == spatial + 2)
        p.planes *= whole->sizes[0];
    for (int i = 3 - spatial; i < 3; i++) {
        p.in[i] = whole->sizes[n - 3 + i];
        p.out[i] = pooled->sizes[n - 3 + i];
    }
    return p;
}

/* Dimensions but the batch have elements. @p op and @p what name the operator and the tensor. */
static tn_status check_some(const char *op, const char *what, const tn_tensor *t, int first)
{
    char text[TNI_SIZES_TEXT];
    for (int d = first; d < t->ndim; d++)
        TN_CHECK(t->sizes[d] != 0, TN_INVALID,
                 "%s(): Expected %s to have non-zero size for non-batch dimensions, but %s has "
                 "sizes %s with dimension %d being empty",
                 op, what, what, SIZES_OF(t, text), d);
    return TN_OK;
}

/* Products of places and sizes are computed. */
static tn_status check_range(int spatial, const tn_tensor *self, const int64_t *output_size)
{
    for (int i = 0; i < spatial; i++)
        TN_CHECK(output_size[i] <= INT32_MAX && self->sizes[self->ndim - spatial + i] <= INT32_MAX,
                 TN_INVALID, "integer out of range");
    return TN_OK;
}

/* @p output_size with two or three elements, as the last of three. */
static const int64_t *last_of(int spatial, const int64_t *output_size, int64_t room[3])
{
    for (int i = 3 - spatial; i < 3; i++)
        room[i] = output_size[i - (3 - spatial)];
    return room;
}

/* ---- means ---- */

tn_status tni_shape_adaptive_avg_pool2d(tni_geometry *g, tn_tensor *self,
                                        const int64_t *output_size, int64_t output_size_n)
{
    char text[TNI_SIZES_TEXT];
    int64_t last[3];
    TN_CHECK(output_size_n == 2, TN_INVALID, "adaptive_avg_pool2d: output_size must be 2");
    TN_CHECK(self->ndim == 3 || self->ndim == 4, TN_INVALID,
             "adaptive_avg_pool2d(): Expected 3D or 4D tensor, but got %s", SIZES_OF(self, text));
    TN_TRY(check_some("adaptive_avg_pool2d", "input", self, self->ndim - 2));
    TN_CHECK(output_size[0] >= 0 && output_size[1] >= 0, TN_INVALID,
             "adaptive_avg_pool2d: elements of output_size must be greater than or equal to 0 but "
             "received {%lld, %lld}",
             (long long)output_size[0], (long long)output_size[1]);
    TN_TRY(check_range(2, self, output_size));
    TN_TRY(tni_pool_refuse("adaptive_avg_pool2d", self, is_float(self)));
    return tni_pool_planes(g, 2, self, (tn_dtype)self->dtype, last_of(2, output_size, last), true);
}

tn_status tni_shape_adaptive_avg_pool3d(tni_geometry *g, tn_tensor *self,
                                        const int64_t *output_size, int64_t output_size_n)
{
    char text[TNI_SIZES_TEXT];
    int64_t last[3];
    TN_CHECK(output_size_n == 3, TN_INVALID, "adaptive_avg_pool3d: output_size must be 3");
    TN_CHECK(output_size[0] >= 0 && output_size[1] >= 0 && output_size[2] >= 0, TN_INVALID,
             "adaptive_avg_pool3d: elements of output_size must be greater than or equal to 0 but "
             "received {%lld, %lld,%lld}",
             (long long)output_size[0], (long long)output_size[1], (long long)output_size[2]);
    TN_TRY(check_some("adaptive_avg_pool3d", "input", self, 1));
    TN_CHECK(self->ndim == 4 || self->ndim == 5, TN_INVALID,
             "adaptive_avg_pool3d(): Expected 4D or 5D tensor, but got %s", SIZES_OF(self, text));
    TN_TRY(check_range(3, self, output_size));
    TN_TRY(tni_pool_refuse("adaptive_avg_pool3d_cpu", self, is_float(self)));
    return tni_pool_planes(g, 3, self, (tn_dtype)self->dtype, last_of(3, output_size, last), false);
}

/* @p grad goes with @p self: planes of any size. */
static tn_status check_grad(int spatial, const tn_tensor *grad, const tn_tensor *self)
{
    char a[TNI_SIZES_TEXT], b[TNI_SIZES_TEXT];
    for (int d = 0; d < self->ndim - spatial; d++)
        TN_CHECK(grad->sizes[d] == self->sizes[d], TN_INVALID,
                 "grad_output of size %s does not go with input of size %s", SIZES_OF(grad, a),
                 SIZES_OF(self, b));
    TN_CHECK(grad->device.type == self->device.type && grad->device.index == self->device.index,
             TN_INVALID, "Expected all tensors to be on the same device");
    return TN_OK;
}

tn_status tni_shape_adaptive_avg_pool2d_backward(tni_geometry *g, tn_tensor *grad_output,
                                                 tn_tensor *self)
{
    int n = self->ndim;
    char text[TNI_SIZES_TEXT];
    TN_CHECK(n == 3 || n == 4, TN_INVALID,
             "adaptive_avg_pool2d_backward(): Expected 3D or 4D tensor, but got %s",
             SIZES_OF(self, text));
    TN_CHECK(grad_output->ndim == n, TN_INVALID,
             "adaptive_avg_pool2d_backward_out_cpu_template: Expected dimensions %d for "
             "`grad_output` but got dimensions %d",
             n, grad_output->ndim);
    TN_TRY(check_some("adaptive_avg_pool2d_backward", "grad_output", grad_output, 1));
    TN_CHECK(grad_output->dtype == self->dtype, TN_INVALID,
             "adaptive_avg_pool2d_backward_out_cpu_template: Expected dtype %s for `grad_output` "
             "but got dtype %s",
             tni_dtype_cpp((tn_dtype)self->dtype), tni_dtype_cpp((tn_dtype)grad_output->dtype));
    TN_TRY(check_grad(2, grad_output, self));
    TN_TRY(tni_pool_refuse("adaptive_avg_pool2d_backward", self, is_float(self)));
    return tni_pool_planes(g, 2, self, (tn_dtype)self->dtype, self->sizes + n - 3, true);
}

tn_status tni_shape_adaptive_avg_pool3d_backward(tni_geometry *g, tn_tensor *grad_output,
                                                 tn_tensor *self)
{
    int n = self->ndim;
    char text[TNI_SIZES_TEXT];
    TN_CHECK(n == 4 || n == 5, TN_INVALID,
             "adaptive_avg_pool3d_backward(): Expected 4D or 5D tensor, but got %s",
             SIZES_OF(self, text));
    TN_CHECK(grad_output->ndim == n, TN_INVALID,
             "adaptive_avg_pool3d_backward_out_cpu_template: Expected dimensions %d for "
             "`gradOutput_` but got dimensions %d",
             n, grad_output->ndim);
    TN_TRY(check_some("adaptive_avg_pool3d_backward", "grad_output", grad_output, 1));
    TN_CHECK(grad_output->dtype == self->dtype, TN_INVALID, "expected scalar type %s but found %s",
             tni_dtype_text((tn_dtype)self->dtype), tni_dtype_text((tn_dtype)grad_output->dtype));
    TN_TRY(check_grad(3, grad_output, self));
    TN_TRY(tni_pool_refuse("adaptive_avg_pool3d_backward_cpu", self, is_float(self)));
    return tni_pool_planes(g, 3, self, (tn_dtype)self->dtype, self->sizes + n - 3, false);
}

/* ---- maxima ---- */

static tn_status max_forward(int spatial, tni_geometry *g, const tn_tensor *self,
                             const int64_t *output_size, int64_t output_size_n)
{
    const char *op = spatial == 2 ? "adaptive_max_pool2d" : "adaptive_max_pool3d";
    char text[TNI_SIZES_TEXT];
    int64_t last[3];
    int n = self->ndim;
    TN_CHECK(n == spatial + 1 || n == spatial + 2, TN_INVALID,
             "%s(): Expected %dD or %dD tensor, but got: %s", op, spatial + 1, spatial + 2,
             SIZES_OF(self, text));
    TN_TRY(check_some(op, "input", self, 1));
    TN_CHECK(output_size_n == spatial, TN_INVALID,
             "%s(): internal error: output_size.size() must be %d", op, spatial);
    TN_TRY(check_range(spatial, self, output_size));
    last_of(spatial, output_size, last);
    for (int i = 0; i < 2; i++)
        TN_TRY(tni_pool_planes(&g[i], spatial, self, i ? TN_DTYPE_I64 : (tn_dtype)self->dtype, last,
                               spatial == 2));
    for (int i = 3 - spatial; i < 3; i++)
        TN_CHECK(last[i] >= 0, TN_INVALID,
                 "Trying to create tensor with negative dimension %lld: %s", (long long)last[i],
                 tni_format_sizes(n, g[0].sizes, text, sizeof text));
    return tni_pool_refuse(spatial == 2 ? "adaptive_max_pool2d" : "adaptive_max_pool3d_cpu", self,
                           is_float(self));
}

static tn_status max_backward(int spatial, tni_geometry *g, const tn_tensor *grad,
                              const tn_tensor *self, const tn_tensor *indices)
{
    const char *op = spatial == 2 ? "adaptive_max_pool2d_backward" : "adaptive_max_pool3d_backward";
    const char *what = spatial == 2 ? "grad_output" : "gradOutput";
    char a[TNI_SIZES_TEXT], b[TNI_SIZES_TEXT];
    int n = self->ndim;
    TN_CHECK(n == spatial + 1 || n == spatial + 2, TN_INVALID,
             "%s(): Expected %dD or %dD tensor, but got: %s", op, spatial + 1, spatial + 2,
             SIZES_OF(self, a));
    TN_TRY(check_some(op, "grad_output", grad, 1));
    TN_CHECK(grad->dtype == self->dtype, TN_INVALID, "expected dtype %s for `%s` but got dtype %s",
             tni_dtype_cpp((tn_dtype)self->dtype), what, tni_dtype_cpp((tn_dtype)grad->dtype));
    bool same = grad->ndim == indices->ndim;
    for (int d = 0; same && d < grad->ndim; d++)
        same = grad->sizes[d] == indices->sizes[d];
    TN_CHECK(same, TN_INVALID, "expected sizes %s for `%s` but got sizes %s", SIZES_OF(indices, a),
             what, SIZES_OF(grad, b));
    TN_CHECK(grad->ndim == n, TN_INVALID,
             "expected dimensions %d for `indices` but got dimensions %d", n, grad->ndim);
    TN_TRY(check_grad(spatial, grad, self));
    TN_CHECK(indices->dtype == TN_DTYPE_I64, TN_INVALID, "expected scalar type Long but found %s",
             tni_dtype_text((tn_dtype)indices->dtype));
    TN_TRY(tni_pool_refuse(op, self, is_float(self)));
    return tni_pool_planes(g, spatial, self, (tn_dtype)self->dtype, self->sizes + n - 3,
                           spatial == 2);
}

tn_status tni_shape_adaptive_max_pool2d(tni_geometry *g, tn_tensor *self,
                                        const int64_t *output_size, int64_t output_size_n)
{
    return max_forward(2, g, self, output_size, output_size_n);
}

tn_status tni_shape_adaptive_max_pool3d(tni_geometry *g, tn_tensor *self,
                                        const int64_t *output_size, int64_t output_size_n)
{
    return max_forward(3, g, self, output_size, output_size_n);
}

tn_status tni_shape_adaptive_max_pool2d_backward(tni_geometry *g, tn_tensor *grad_output,
                                                 tn_tensor *self, tn_tensor *indices)
{
    return max_backward(2, g, grad_output, self, indices);
}

tn_status tni_shape_adaptive_max_pool3d_backward(tni_geometry *g, tn_tensor *grad_output,
                                                 tn_tensor *self, tn_tensor *indices)
{
    return max_backward(3, g, grad_output, self, indices);
}
