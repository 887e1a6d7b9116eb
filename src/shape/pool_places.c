/* SPDX-License-Identifier: MIT */
/* shape/pool_places.c: what unpooling and pooling over windows at random places give and refuse. */
#include "gen/shapes.h"
#include "shape/index.h"

static const char *format(const tn_tensor *t, char *text)
{
    return tni_format_sizes(t->ndim, t->sizes, text, TNI_SIZES_TEXT);
}

static bool same_sizes(const tn_tensor *a, const tn_tensor *b)
{
    bool same = a->ndim == b->ndim;
    for (int d = 0; same && d < a->ndim; d++)
        same = a->sizes[d] == b->sizes[d];
    return same;
}

static TNI_COLD tn_status no_kernel(const char *kernel, const tn_tensor *t)
{
    TN_FAIL(TN_UNSUPPORTED, "\"%s\" not implemented for '%s'", kernel,
            tni_dtype_text((tn_dtype)t->dtype));
}

/* ---- unpooling ---- */

static tn_status unpool(tni_geometry *g, const tn_tensor *self, const tn_tensor *indices,
                        const int64_t *size, int spatial)
{
    char a[TNI_SIZES_TEXT], b[TNI_SIZES_TEXT];
    int n = self->ndim;
    TN_CHECK(n == spatial + 1 || n == spatial + 2, TN_INVALID,
             "Input to max_unpooling%dd should be a %dd or %dd Tensor, but got a tensor with %d "
             "dimensions.",
             spatial, spatial + 1, spatial + 2, n);
    TN_CHECK(same_sizes(self, indices), TN_INVALID,
             "Expected shape of indices to be same as that of the input tensor (%s) but got "
             "indices tensor with shape: %s",
             format(self, a), format(indices, b));
    for (int d = 1; d < n; d++)
        TN_CHECK(self->sizes[d] > 0, TN_INVALID,
                 "max_unpooling%dd_forward_out_cpu(): Expected input to have non-zero size for "
                 "non-batch dimensions, but got %s with dimension %d being empty.",
                 spatial, format(self, a), d);
    TN_TRY(tni_same_device(self, indices));
    if (!tn_dtype_is_floating((tn_dtype)self->dtype))
        return no_kernel(spatial == 2 ? "max_unpool2d" : "max_unpool3d", self);
    tni_geometry_sizes_of(g, self);
    for (int i = 0; i < spatial; i++) {
        TN_CHECK(size[i] >= 0, TN_INVALID,
                 "Trying to create tensor with negative dimension %lld: %s", (long long)size[i],
                 tni_format_sizes(spatial, size, a, sizeof a));
        g->sizes[n - spatial + i] = size[i];
    }
    tn_memory_format format = tni_suggest_format(self);
    g->has_strides = spatial == 2 && n == 4 && format != TN_FORMAT_CONTIGUOUS;
    if (g->has_strides)
        TN_TRY(tni_format_strides(format, n, g->sizes, g->strides));
    int64_t elements;
    TN_CHECK(tni_numel(n, g->sizes, &elements), TN_INVALID,
             "unpooling: a size of the result is too large");
    return TN_OK;
}

tn_status tni_shape_max_unpool2d(tni_geometry *g, tn_tensor *self, tn_tensor *indices,
                                 const int64_t *output_size, int64_t output_size_n)
{
    TN_CHECK(indices->dtype == TN_DTYPE_I64, TN_INVALID,
             "elements in indices should be type int64 but got: %s",
             tni_dtype_text((tn_dtype)indices->dtype));
    TN_CHECK(output_size_n == 2, TN_INVALID,
             "There should be exactly two elements (height, width) in output_size, but got %lld "
             "elements.",
             (long long)output_size_n);
    return unpool(g, self, indices, output_size, 2);
}

tn_status tni_shape_max_unpool3d(tni_geometry *g, tn_tensor *self, tn_tensor *indices,
                                 const int64_t *output_size, int64_t output_size_n,
                                 const int64_t *stride, int64_t stride_n, const int64_t *padding,
                                 int64_t padding_n)
{
    char text[TNI_SIZES_TEXT];
    (void)padding;
    TN_CHECK(indices->dtype == TN_DTYPE_I64, TN_INVALID,
             "elements in indices should be type int64");
    TN_CHECK(output_size_n == 3, TN_INVALID,
             "There should be exactly three elements (depth, height, width) in output_size, but "
             "got %lld elements.",
             (long long)output_size_n);
    TN_CHECK(stride_n == 3, TN_INVALID,
             "There should be exactly three elements (depth, height, width) in stride, but got: "
             "%lld elements.",
             (long long)stride_n);
    TN_CHECK(padding_n == 3, TN_INVALID,
             "There should be exactly three elements (depth, height, width) in padding, but got: "
             "%lld elements.",
             (long long)padding_n);
    TN_CHECK(stride[0] > 0 && stride[1] > 0 && stride[2] > 0, TN_INVALID,
             "strides should be greater than zero, but got stride: %s",
             tni_format_sizes(3, stride, text, sizeof text));
    return unpool(g, self, indices, output_size, 3);
}

/* ---- windows at random places ---- */

/* The reference's texts name the three-dimensional function in another way. */
static const char *caller(int spatial, bool backward)
{
    return spatial == 2
               ? (backward ? "fractional_max_pool2d_backward" : "fractional_max_pool2d")
               : (backward ? "fractional_max_pool3d_backward_out" : "fractional_max_pool3d_out");
}

static tn_status check_windows(const tn_tensor *self, const int64_t *kernel, int64_t kernel_n,
                               const int64_t *out, int64_t out_n, int spatial, bool backward)
{
    static const char *const axes[] = {"time", "height", "width"};
    const char *tuple = spatial == 2 ? "Ints" : "three Ints";
    char text[TNI_SIZES_TEXT];
    int n = self->ndim;
    TN_CHECK(kernel_n == spatial, TN_INVALID,
             "fractional_max_pool%dd: kernel_size must either be a single Int or tuple of %s",
             spatial, tuple);
    TN_CHECK(out_n == spatial, TN_INVALID,
             "fractional_max_pool%dd: output_size must either be a single Int or tuple of %s",
             spatial, tuple);
    TN_CHECK(n == spatial + 1 || n == spatial + 2, TN_INVALID,
             "%s(): Expected %dD or %dD tensor, but got: %s", caller(spatial, backward),
             spatial + 1, spatial + 2, format(self, text));
    for (int d = 1; d < n; d++) /* channels may be none where there is no batch */
        TN_CHECK(self->sizes[d] > 0, TN_INVALID,
                 "%s(): Expected input to have non-zero size for non-batch dimensions, but got%s "
                 "with dimension %d being empty.",
                 caller(spatial, backward), format(self, text), d);
    for (int i = 0; i < spatial; i++) {
        int64_t in = self->sizes[n - spatial + i];
        TN_CHECK(kernel[i] > 0 && out[i] > 0, TN_INVALID,
                 "fractional_max_pool%dd: kernel_size and output_size must be greater than zero",
                 spatial);
        bool fits = kernel[i] <= in && out[i] <= in &&
                    (spatial == 2 ? out[i] + kernel[i] - 1 <= in : out[i] + kernel[i] - 1 < in);
        TN_CHECK(fits, TN_INVALID, "%s(): pool %s %lld too large relative to input %s %lld",
                 caller(spatial, backward), axes[3 - spatial + i], (long long)kernel[i],
                 axes[3 - spatial + i], (long long)in);
    }
    return TN_OK;
}

static tn_status check_samples(const tn_tensor *self, const tn_tensor *samples, int spatial)
{
    int n = self->ndim;
    TN_CHECK(samples->dtype == self->dtype, TN_INVALID,
             "Expect _random_samples to have the same dtype as input");
    TN_CHECK(samples->ndim == 3, TN_INVALID, "Expect _random_samples to have 3 dimensions, got %d",
             samples->ndim);
    int64_t batch = n == spatial + 2 ? self->sizes[0] : 1;
    TN_CHECK(samples->sizes[0] >= batch, TN_INVALID,
             "Expect _random_samples.size(0) no less then input batch size.");
    TN_CHECK(samples->sizes[1] == self->sizes[n - spatial - 1], TN_INVALID,
             "Expect _random_samples.size(1) equals to input channel size.");
    TN_CHECK(samples->sizes[2] == spatial, TN_INVALID,
             "Expect _random_samples.size(2) equals to %d; got %lld.", spatial,
             (long long)samples->sizes[2]);
    return tni_same_device(self, samples);
}

static tn_status fractional(tni_geometry *g, const tn_tensor *self, const int64_t *kernel,
                            int64_t kernel_n, const int64_t *out, int64_t out_n,
                            const tn_tensor *samples, int spatial)
{
    TN_TRY(check_windows(self, kernel, kernel_n, out, out_n, spatial, false));
    TN_TRY(check_samples(self, samples, spatial));
    if (!tn_dtype_is_floating((tn_dtype)self->dtype))
        return no_kernel(spatial == 2 ? "fractional_max_pool2d_out_frame"
                                      : "fractional_max_pool3d_out_frame",
                         self);
    for (int k = 0; k < 2; k++) {
        tni_geometry_sizes_of(&g[k], self);
        for (int i = 0; i < spatial; i++)
            g[k].sizes[self->ndim - spatial + i] = out[i];
    }
    g[1].dtype = TN_DTYPE_I64;
    return TN_OK;
}

tn_status tni_shape_fractional_max_pool2d(tni_geometry *g, tn_tensor *self,
                                          const int64_t *kernel_size, int64_t kernel_size_n,
                                          const int64_t *output_size, int64_t output_size_n,
                                          tn_tensor *random_samples)
{
    return fractional(g, self, kernel_size, kernel_size_n, output_size, output_size_n,
                      random_samples, 2);
}

tn_status tni_shape_fractional_max_pool3d(tni_geometry *g, tn_tensor *self,
                                          const int64_t *kernel_size, int64_t kernel_size_n,
                                          const int64_t *output_size, int64_t output_size_n,
                                          tn_tensor *random_samples)
{
    return fractional(g, self, kernel_size, kernel_size_n, output_size, output_size_n,
                      random_samples, 3);
}

static tn_status fractional_back(tni_geometry *g, const tn_tensor *grad, const tn_tensor *self,
                                 const int64_t *kernel, int64_t kernel_n, const int64_t *out,
                                 int64_t out_n, const tn_tensor *indices, int spatial)
{
    TN_TRY(check_windows(self, kernel, kernel_n, out, out_n, spatial, true));
    bool same = grad->ndim == self->ndim;
    for (int d = 0; same && d < self->ndim; d++) {
        int i = d - (self->ndim - spatial);
        same = grad->sizes[d] == (i < 0 ? self->sizes[d] : out[i]);
    }
    TN_CHECK(same, TN_INVALID, "%s(): gradOutput sizes unexpected", caller(spatial, true));
    TN_CHECK(same_sizes(grad, indices), TN_INVALID, "%s(): indices sizes unexpected",
             caller(spatial, true));
    TN_CHECK(indices->dtype == TN_DTYPE_I64, TN_INVALID, "expected scalar type Long but found %s",
             tni_dtype_text((tn_dtype)indices->dtype));
    TN_CHECK(grad->dtype == self->dtype, TN_INVALID, "expected scalar type %s but found %s",
             tni_dtype_text((tn_dtype)self->dtype), tni_dtype_text((tn_dtype)grad->dtype));
    TN_TRY(tni_same_device(self, grad));
    TN_TRY(tni_same_device(self, indices));
    if (!tn_dtype_is_floating((tn_dtype)self->dtype))
        return no_kernel(spatial == 2 ? "fractional_max_pool2d_backward_out_frame"
                                      : "fractional_max_pool3d_backward_out_frame",
                         self);
    tni_geometry_sizes_of(g, self);
    return TN_OK;
}

tn_status tni_shape_fractional_max_pool2d_backward(tni_geometry *g, tn_tensor *grad_output,
                                                   tn_tensor *self, const int64_t *kernel_size,
                                                   int64_t kernel_size_n,
                                                   const int64_t *output_size,
                                                   int64_t output_size_n, tn_tensor *indices)
{
    return fractional_back(g, grad_output, self, kernel_size, kernel_size_n, output_size,
                           output_size_n, indices, 2);
}

tn_status tni_shape_fractional_max_pool3d_backward(tni_geometry *g, tn_tensor *grad_output,
                                                   tn_tensor *self, const int64_t *kernel_size,
                                                   int64_t kernel_size_n,
                                                   const int64_t *output_size,
                                                   int64_t output_size_n, tn_tensor *indices)
{
    return fractional_back(g, grad_output, self, kernel_size, kernel_size_n, output_size,
                           output_size_n, indices, 3);
}
