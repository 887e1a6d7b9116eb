/* SPDX-License-Identifier: MIT */
/* iter/vision_shape.c: what windows as columns and sampling by a grid give. */
#include "base/alloc.h"
#include "gen/shapes.h"
#include "iter/iter.h"
#include "shape/index.h"

static TNI_COLD tn_status no_kernel(const char *kernel, const tn_tensor *t)
{
    TN_FAIL(TN_UNSUPPORTED, "\"%s\" not implemented for '%s'", kernel,
            tni_dtype_text((tn_dtype)t->dtype));
}

/* ---- windows as columns ---- */

typedef struct lists {
    const int64_t *kernel, *dilation, *padding, *stride;
} lists;

static tn_status check_two(const char *name, int64_t n)
{
    TN_CHECK(n == 2, TN_INVALID, "It is expected %s equals to 2, but got size %lld", name,
             (long long)n);
    return TN_OK;
}

static tn_status check_lists(const lists *l, int64_t kernel_n, int64_t dilation_n,
                             int64_t padding_n, int64_t stride_n)
{
    TN_TRY(check_two("kernel_size", kernel_n));
    TN_TRY(check_two("dilation", dilation_n));
    TN_TRY(check_two("padding", padding_n));
    TN_TRY(check_two("stride", stride_n));
    static const char *const names[] = {"kernel size", "stride", "dilation"};
    static const char *const parts[] = {"kernel", "stride", "dilation"};
    const int64_t *of[] = {l->kernel, l->stride, l->dilation};
    for (int i = 0; i < 3; i++) {
        TN_CHECK(of[i][0] > 0 && of[i][1] > 0, TN_INVALID,
                 "%s should be greater than zero, but got %s_height: %lld %s_width: %lld", names[i],
                 parts[i], (long long)of[i][0], parts[i], (long long)of[i][1]);
        TN_CHECK(of[i][0] <= INT32_MAX && of[i][1] <= INT32_MAX, TN_INVALID,
                 "integer out of range");
    }
    TN_CHECK(l->padding[0] >= 0 && l->padding[1] >= 0, TN_INVALID,
             "padding should be non-negative, but got pad_height: %lld pad_width: %lld",
             (long long)l->padding[0], (long long)l->padding[1]);
    TN_CHECK(l->padding[0] <= INT32_MAX && l->padding[1] <= INT32_MAX, TN_INVALID,
             "integer out of range");
    return TN_OK;
}

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b != 0 && a < 0);
}

static int64_t windows(const lists *l, int i, int64_t size)
{
    return floor_div(size + 2 * l->padding[i] - (l->dilation[i] * (l->kernel[i] - 1) + 1),
                     l->stride[i]) +
           1;
}

static bool can_add(const tn_tensor *t)
{
    return !tn_dtype_is_integral((tn_dtype)t->dtype, false);
}

tn_status tni_shape_im2col(tni_geometry *g, tn_tensor *self, const int64_t *kernel_size,
                           int64_t kernel_size_n, const int64_t *dilation, int64_t dilation_n,
                           const int64_t *padding, int64_t padding_n, const int64_t *stride,
                           int64_t stride_n)
{
    char text[TNI_SIZES_TEXT];
    lists l = {kernel_size, dilation, padding, stride};
    TN_TRY(check_lists(&l, kernel_size_n, dilation_n, padding_n, stride_n));
    int n = self->ndim;
    bool valid = n == 3 || n == 4;
    for (int d = n - 3; valid && d < n; d++)
        valid = self->sizes[d] != 0;
    TN_CHECK(valid, TN_INVALID,
             "Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero "
             "dimensions for input, but got: %s",
             tni_format_sizes(n, self->sizes, text, sizeof text));
    int64_t h = windows(&l, 0, self->sizes[n - 2]), w = windows(&l, 1, self->sizes[n - 1]);
    TN_CHECK(h > 0 && w > 0, TN_INVALID,
             "Given input with spatial size (%lld, %lld), kernel_size=(%lld, %lld), "
             "dilation=(%lld, %lld), padding=(%lld, %lld), calculated shape of the array of "
             "sliding blocks as (%lld, %lld), but its components must be at least one.",
             (long long)self->sizes[n - 2], (long long)self->sizes[n - 1],
             (long long)kernel_size[0], (long long)kernel_size[1], (long long)dilation[0],
             (long long)dilation[1], (long long)padding[0], (long long)padding[1], (long long)h,
             (long long)w);
    if (!can_add(self))
        return no_kernel("im2col_out_cpu", self);
    tni_geometry_sizes_of(g, self);
    g->has_strides = false;
    g->ndim = n - 1;
    int64_t *rows = &g->sizes[n - 3], *columns = &g->sizes[n - 2];
    TN_CHECK(tni_i64_mul(self->sizes[n - 3], kernel_size[0], rows) &&
                 tni_i64_mul(*rows, kernel_size[1], rows) && tni_i64_mul(h, w, columns),
             TN_INVALID, "im2col(): a size of the result is too large");
    return TN_OK;
}

tn_status tni_shape_col2im(tni_geometry *g, tn_tensor *self, const int64_t *output_size,
                           int64_t output_size_n, const int64_t *kernel_size, int64_t kernel_size_n,
                           const int64_t *dilation, int64_t dilation_n, const int64_t *padding,
                           int64_t padding_n, const int64_t *stride, int64_t stride_n)
{
    char text[TNI_SIZES_TEXT];
    lists l = {kernel_size, dilation, padding, stride};
    TN_TRY(check_two("output_size", output_size_n));
    TN_TRY(check_lists(&l, kernel_size_n, dilation_n, padding_n, stride_n));
    int n = self->ndim;
    bool valid = n == 2 || n == 3;
    for (int d = n - 2; valid && d < n; d++)
        valid = self->sizes[d] != 0;
    TN_CHECK(valid, TN_INVALID,
             "Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and "
             "non-zero dimensions for input, but got: %s",
             tni_format_sizes(n, self->sizes, text, sizeof text));
    int64_t rows = self->sizes[n - 2], columns = self->sizes[n - 1];
    int64_t area = kernel_size[0] * kernel_size[1];
    TN_CHECK(rows % area == 0, TN_INVALID,
             "Expected size of input's dimension 1 to be divisible by the product of kernel_size, "
             "but got input.size(1)=%lld and kernel_size=(%lld, %lld).",
             (long long)rows, (long long)kernel_size[0], (long long)kernel_size[1]);
    for (int i = 0; i < 2; i++)
        TN_CHECK(output_size[i] <= INT32_MAX && output_size[i] >= INT32_MIN, TN_INVALID,
                 "integer out of range");
    int64_t h = windows(&l, 0, output_size[0]), w = windows(&l, 1, output_size[1]);
    int64_t places;
    TN_CHECK(tni_i64_mul(h, w, &places), TN_INVALID, "col2im(): more windows than 64 bits count");
    TN_CHECK(columns == places && h > 0 && w > 0, TN_INVALID,
             "Given output_size=(%lld, %lld), kernel_size=(%lld, %lld), dilation=(%lld, %lld), "
             "padding=(%lld, %lld), stride=(%lld, %lld), expected size of input's dimension 2 to "
             "match the calculated number of sliding blocks %lld * %lld = %lld, but got "
             "input.size(2)=%lld.",
             (long long)output_size[0], (long long)output_size[1], (long long)kernel_size[0],
             (long long)kernel_size[1], (long long)dilation[0], (long long)dilation[1],
             (long long)padding[0], (long long)padding[1], (long long)stride[0],
             (long long)stride[1], (long long)h, (long long)w, (long long)places,
             (long long)columns);
    if (!can_add(self))
        return no_kernel("col2im_out_cpu", self);
    tni_geometry_sizes_of(g, self);
    g->has_strides = false;
    g->ndim = n + 1;
    g->sizes[n - 2] = rows / area;
    g->sizes[n - 1] = output_size[0];
    g->sizes[n] = output_size[1];
    return TN_OK;
}

/* ---- sampling ---- */

static tn_status grid_sampler(tni_geometry *g, tn_tensor *input, tn_tensor *grid,
                              int64_t interpolation_mode, int64_t padding_mode, int n)
{
    char a[TNI_SIZES_TEXT], b[TNI_SIZES_TEXT];
    tni_format_sizes(input->ndim, input->sizes, a, sizeof a);
    tni_format_sizes(grid->ndim, grid->sizes, b, sizeof b);
    TN_TRY(tni_same_device(input, grid));
    TN_CHECK(input->ndim > 0 && grid->ndim > 0 && input->sizes[0] == grid->sizes[0], TN_INVALID,
             "grid_sampler(): expected grid and input to have same batch size, but got input with "
             "sizes %s and grid with sizes %s",
             a, b);
    TN_CHECK(grid->sizes[grid->ndim - 1] == input->ndim - 2, TN_INVALID,
             "grid_sampler(): expected grid to have size %d in last dimension, but got grid with "
             "sizes %s",
             input->ndim - 2, b);
    TN_CHECK(input->ndim == n && grid->ndim == n, TN_INVALID,
             "grid_sampler(): expected %dD input and grid with same number of dimensions, but got "
             "input with sizes %s and grid with sizes %s",
             n, a, b);
    for (int d = 2; d < n; d++)
        TN_CHECK(input->sizes[d] > 0, TN_INVALID,
                 "grid_sampler(): expected input to have non-empty spatial dimensions, but input "
                 "has sizes %s with dimension %d being empty",
                 a, d);
    TN_CHECK(n == 4 || interpolation_mode != 2, TN_INVALID,
             "grid_sampler(): bicubic interpolation only supports 4D input");
    TN_CHECK(interpolation_mode >= 0 && interpolation_mode <= 2 && padding_mode >= 0 &&
                 padding_mode <= 2,
             TN_INVALID, "grid_sampler(): modes are 0 to 2, but got %lld and %lld",
             (long long)interpolation_mode, (long long)padding_mode);
    TN_CHECK(input->dtype == grid->dtype, TN_INVALID, "expected scalar type %s but found %s",
             tni_dtype_text((tn_dtype)input->dtype), tni_dtype_text((tn_dtype)grid->dtype));
    if (!tn_dtype_is_floating((tn_dtype)input->dtype))
        return no_kernel(n == 4 ? "grid_sampler_2d_cpu_kernel_impl" : "grid_sampler3d_cpu", input);
    tni_geometry_sizes_of(g, input);
    g->has_strides = false;
    for (int d = 2; d < n; d++)
        g->sizes[d] = grid->sizes[d - 1];
    return TN_OK;
}

tn_status tni_shape_grid_sampler_2d(tni_geometry *g, tn_tensor *input, tn_tensor *grid,
                                    int64_t interpolation_mode, int64_t padding_mode,
                                    bool align_corners)
{
    (void)align_corners;
    return grid_sampler(g, input, grid, interpolation_mode, padding_mode, 4);
}

tn_status tni_shape_grid_sampler_3d(tni_geometry *g, tn_tensor *input, tn_tensor *grid,
                                    int64_t interpolation_mode, int64_t padding_mode,
                                    bool align_corners)
{
    (void)align_corners;
    return grid_sampler(g, input, grid, interpolation_mode, padding_mode, 5);
}
