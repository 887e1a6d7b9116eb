/* SPDX-License-Identifier: MIT */
/* composite/pool.c: pooling in terms of pooling over two dimensions, or of what does the work. */
#include "core/tensor.h"
#include "gen/composites.h"
#include "tenon/ops.h"

tn_status tni_composite_max_pool2d(tn_tensor *self, const int64_t *kernel_size,
                                   int64_t kernel_size_n, const int64_t *stride, int64_t stride_n,
                                   const int64_t *padding, int64_t padding_n,
                                   const int64_t *dilation, int64_t dilation_n, bool ceil_mode,
                                   tn_tensor **out)
{
    TN_AUTO(tn_tensor) indices = NULL;
    return tn_max_pool2d_with_indices(self, kernel_size, kernel_size_n, stride, stride_n, padding,
                                      padding_n, dilation, dilation_n, ceil_mode, out, &indices);
}

/* Whether the last @p n sizes are those of planes that have elements. */
static bool has_planes(const tn_tensor *self, int n)
{
    bool some = self->ndim == n + 1 || self->ndim == n + 2;
    for (int d = self->ndim - n; some && d < self->ndim; d++)
        some = self->sizes[d] > 0;
    return some;
}

/* All of each plane is a mean, which complex numbers have, too; planes whose elements lie apart
 * keep their layout, which a mean would not. */
tn_status tni_composite_adaptive_avg_pool2d(tn_tensor *self, const int64_t *output_size,
                                            int64_t output_size_n, tn_tensor **out)
{
    static const int64_t dims[] = {-1, -2};
    bool all =
        output_size_n == 2 && output_size[0] == 1 && output_size[1] == 1 && has_planes(self, 2);
    tn_dtype dtype = (tn_dtype)self->dtype;
    bool mean = tn_dtype_is_floating(dtype) && tni_suggest_format(self) == TN_FORMAT_CONTIGUOUS;
    if (all && (mean || tn_dtype_is_complex(dtype)))
        return tn_mean_dim(self, dims, 2, true, TN_DTYPE_NONE, out);
    return tn__adaptive_avg_pool2d(self, output_size, output_size_n, out);
}

tn_status tni_composite_max_pool3d(tn_tensor *self, const int64_t *kernel_size,
                                   int64_t kernel_size_n, const int64_t *stride, int64_t stride_n,
                                   const int64_t *padding, int64_t padding_n,
                                   const int64_t *dilation, int64_t dilation_n, bool ceil_mode,
                                   tn_tensor **out)
{
    TN_AUTO(tn_tensor) indices = NULL;
    return tn_max_pool3d_with_indices(self, kernel_size, kernel_size_n, stride, stride_n, padding,
                                      padding_n, dilation, dilation_n, ceil_mode, out, &indices);
}

/* All of each plane: a mean. */
tn_status tni_composite_adaptive_avg_pool3d(tn_tensor *self, const int64_t *output_size,
                                            int64_t output_size_n, tn_tensor **out)
{
    static const int64_t dims[] = {-1, -2, -3};
    bool all = output_size_n == 3 && output_size[0] == 1 && output_size[1] == 1 &&
               output_size[2] == 1 && has_planes(self, 3);
    tn_dtype dtype = (tn_dtype)self->dtype;
    if (!all || !(tn_dtype_is_floating(dtype) || tn_dtype_is_complex(dtype)))
        return tn__adaptive_avg_pool3d(self, output_size, output_size_n, out);
    return tn_mean_dim(self, dims, 3, true, TN_DTYPE_NONE, out);
}

/* ---- one dimension ---- */

/* @p kinds: what it may be, in the reference's words, which are not the same for all. */
static tn_status one(const char *name, const char *kinds, const int64_t *list, int64_t n,
                     int64_t *out)
{
    TN_CHECK(n == 1, TN_INVALID,
             "max_pool1d() %s must be %s tuple of ints of size 1 but got size %lld", name, kinds,
             (long long)n);
    *out = list[0];
    return TN_OK;
}

static tn_status check_max_lines(const tn_tensor *self)
{
    char text[TNI_SIZES_TEXT];
    bool empty = false;
    for (int i = self->ndim == 3 ? 1 : 0; i < self->ndim; i++)
        empty |= self->sizes[i] == 0;
    TN_CHECK(!empty && (self->ndim == 2 || self->ndim == 3), TN_INVALID,
             "max_pool1d: Expected 2D or 3D (batch mode) tensor with optional 0 dim batch size for "
             "input, but got:%s",
             tni_format_sizes(self->ndim, self->sizes, text, sizeof text));
    return TN_OK;
}

/* How many windows there are, below 1 where not even one fits. */
static tn_status count_windows(int64_t size, const int64_t *k, const int64_t *s, const int64_t *p,
                               const int64_t *d, bool ceil_mode)
{
    __int128 room = (__int128)size + 2 * (__int128)*p - (__int128)*d * (*k - 1) - 1;
    room += ceil_mode ? *s - 1 : 0;
    __int128 n = room / *s - (room % *s < 0) + 1;
    if (ceil_mode && (n - 1) * *s >= (__int128)size + *p)
        n--; /* the last window begins in the input or in the padding on the left */
    TN_CHECK(n > 0, TN_INVALID, "max_pool1d() Invalid computed output size: %lld", (long long)n);
    return TN_OK;
}

static tn_status check_max_pool1d(int64_t k, int64_t s, int64_t p, int64_t d)
{
    TN_CHECK(k > 0, TN_INVALID, "max_pool1d() kernel_size must be greater than zero, but got %lld",
             (long long)k);
    TN_CHECK(s > 0, TN_INVALID, "max_pool1d() stride must be greater than zero, but got %lld",
             (long long)s);
    TN_CHECK(p >= 0, TN_INVALID, "max_pool1d() padding must be non-negative, but got %lld",
             (long long)p);
    TN_CHECK(p <= k / 2, TN_INVALID,
             "max_pool1d() padding should be at most half of kernel size, but got padding=%lld and "
             "kernel_size=%lld",
             (long long)p, (long long)k);
    TN_CHECK(d > 0, TN_INVALID, "max_pool1d() dilation must be greater than zero, but got %lld",
             (long long)d);
    return TN_OK;
}

tn_status tni_composite_max_pool1d(tn_tensor *self, const int64_t *kernel_size,
                                   int64_t kernel_size_n, const int64_t *stride, int64_t stride_n,
                                   const int64_t *padding, int64_t padding_n,
                                   const int64_t *dilation, int64_t dilation_n, bool ceil_mode,
                                   tn_tensor **out)
{
    int64_t k[2] = {1, 0}, s[2] = {1, 0}, p[2] = {0, 0}, d[2] = {1, 0};
    TN_TRY(check_max_lines(self));
    TN_TRY(one("kernel_size", "an int, list of ints or", kernel_size, kernel_size_n, &k[1]));
    s[1] = k[1];
    if (stride_n)
        TN_TRY(one("stride", "None, an int, list of ints, or", stride, stride_n, &s[1]));
    TN_TRY(one("padding", "an int, list of ints, or", padding, padding_n, &p[1]));
    TN_TRY(one("dilation", "an int, list of ints or", dilation, dilation_n, &d[1]));
    TN_TRY(check_max_pool1d(k[1], s[1], p[1], d[1]));
    TN_TRY(count_windows(self->sizes[self->ndim - 1], k + 1, s + 1, p + 1, d + 1, ceil_mode));
    TN_AUTO(tn_tensor) rows = NULL;
    TN_AUTO(tn_tensor) flat = NULL;
    TN_AUTO(tn_tensor) result = NULL;
    bool learns = tn_grad_enabled() && tn_tensor_requires_grad(self);
    if (!learns) /* rows, whatever the layout: else as that of planes */
        TN_TRY(tn_contiguous(self, TN_FORMAT_CONTIGUOUS, &rows));
    TN_TRY(tn_unsqueeze(learns ? self : rows, -2, &flat));
    TN_TRY(tn_max_pool2d(flat, k, 2, s, 2, p, 2, d, 2, ceil_mode, &result));
    return tn_squeeze_dim(result, -2, out);
}

/* A batch of channels of lines, or one. @p op is what messages call it. */
static tn_status check_lines(const tn_tensor *self, const char *op)
{
    TN_CHECK(self->ndim == 2 || self->ndim == 3, TN_INVALID,
             "Expected 2 to 3 dimensions, but got %d-dimensional tensor for argument #1 'self' "
             "(while checking arguments for %s)",
             self->ndim, op);
    return TN_OK;
}

static tn_status check_one(const char *op, const char *name, int64_t n)
{
    TN_CHECK(n == 1, TN_INVALID, "%s() argument '%s' should contain one int (got %lld)", op, name,
             (long long)n);
    return TN_OK;
}

/* Drop the height of a result and of its places. */
static tn_status without_height(tn_tensor *a, tn_tensor *b, tn_tensor **out0, tn_tensor **out1)
{
    TN_AUTO(tn_tensor) first = NULL;
    TN_TRY(tn_squeeze_dim(a, -2, &first));
    TN_TRY(tn_squeeze_dim(b, -2, out1));
    *out0 = TN_MOVE(first);
    return TN_OK;
}

tn_status tni_composite_avg_pool1d(tn_tensor *self, const int64_t *kernel_size,
                                   int64_t kernel_size_n, const int64_t *stride, int64_t stride_n,
                                   const int64_t *padding, int64_t padding_n, bool ceil_mode,
                                   bool count_include_pad, tn_tensor **out)
{
    TN_TRY(check_lines(self, "avg_pool1d"));
    TN_TRY(check_one("avg_pool1d", "kernel_size", kernel_size_n));
    if (stride_n)
        TN_TRY(check_one("avg_pool1d", "stride", stride_n));
    TN_TRY(check_one("avg_pool1d", "padding", padding_n));
    int64_t k[2] = {1, kernel_size[0]}, s[2] = {1, stride_n ? stride[0] : kernel_size[0]};
    int64_t p[2] = {0, padding[0]};
    TN_AUTO(tn_tensor) flat = NULL;
    TN_AUTO(tn_tensor) result = NULL;
    TN_TRY(tn_unsqueeze(self, -2, &flat));
    TN_TRY(tn_avg_pool2d(flat, k, 2, s, 2, p, 2, ceil_mode, count_include_pad, (tn_opt_int){0},
                         &result));
    return tn_squeeze_dim(result, -2, out);
}

tn_status tni_composite_max_pool1d_with_indices(tn_tensor *self, const int64_t *kernel_size,
                                                int64_t kernel_size_n, const int64_t *stride,
                                                int64_t stride_n, const int64_t *padding,
                                                int64_t padding_n, const int64_t *dilation,
                                                int64_t dilation_n, bool ceil_mode,
                                                tn_tensor **out0, tn_tensor **out1)
{
    TN_TRY(check_lines(self, "max_pool1d"));
    TN_TRY(check_one("max_pool1d", "kernel_size", kernel_size_n));
    if (stride_n)
        TN_TRY(check_one("max_pool1d", "stride", stride_n));
    TN_TRY(check_one("max_pool1d", "padding", padding_n));
    TN_TRY(check_one("max_pool1d", "dilation", dilation_n));
    int64_t k[2] = {1, kernel_size[0]}, s[2] = {1, stride_n ? stride[0] : kernel_size[0]};
    int64_t p[2] = {0, padding[0]}, d[2] = {1, dilation[0]};
    TN_AUTO(tn_tensor) flat = NULL;
    TN_AUTO(tn_tensor) result = NULL;
    TN_AUTO(tn_tensor) places = NULL;
    TN_TRY(tn_unsqueeze(self, -2, &flat));
    TN_TRY(tn_max_pool2d_with_indices(flat, k, 2, s, 2, p, 2, d, 2, ceil_mode, &result, &places));
    return without_height(result, places, out0, out1);
}

tn_status tni_composite_adaptive_max_pool1d(tn_tensor *self, const int64_t *output_size,
                                            int64_t output_size_n, tn_tensor **out0,
                                            tn_tensor **out1)
{
    char text[TNI_SIZES_TEXT];
    TN_TRY(check_lines(self, "adaptive_max_pool1d"));
    TN_TRY(check_one("adaptive_max_pool1d", "output_size", output_size_n));
    for (int d = 1; d < self->ndim; d++)
        TN_CHECK(self->sizes[d] != 0, TN_INVALID,
                 "adaptive_max_pool1d(): Expected input to have non-zero size for non-batch "
                 "dimensions, but input has sizes %s with dimension %d being empty",
                 tni_format_sizes(self->ndim, self->sizes, text, sizeof text), d);
    int64_t size[2] = {1, output_size[0]};
    TN_AUTO(tn_tensor) flat = NULL;
    TN_AUTO(tn_tensor) result = NULL;
    TN_AUTO(tn_tensor) places = NULL;
    TN_TRY(tn_unsqueeze(self, -2, &flat));
    TN_TRY(tn_adaptive_max_pool2d(flat, size, 2, &result, &places));
    return without_height(result, places, out0, out1);
}

tn_status tni_composite_adaptive_avg_pool1d(tn_tensor *self, const int64_t *output_size,
                                            int64_t output_size_n, tn_tensor **out)
{
    TN_TRY(check_lines(self, "adaptive_avg_pool1d"));
    TN_TRY(check_one("adaptive_avg_pool1d", "output_size", output_size_n));
    int64_t size[2] = {1, output_size[0]};
    TN_AUTO(tn_tensor) flat = NULL;
    TN_AUTO(tn_tensor) result = NULL;
    TN_TRY(tn_unsqueeze(self, -2, &flat));
    TN_TRY(tn_adaptive_avg_pool2d(flat, size, 2, &result));
    return tn_squeeze_dim(result, -2, out);
}
