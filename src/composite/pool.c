/* SPDX-License-Identifier: MIT */
/* composite/pool.c: pooling in terms of max_pool2d_with_indices, avg_pool2d and
 * _adaptive_avg_pool2d. */
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

tn_status tni_composite_adaptive_avg_pool2d(tn_tensor *self, const int64_t *output_size,
                                            int64_t output_size_n, tn_tensor **out)
{
    return tn__adaptive_avg_pool2d(self, output_size, output_size_n, out);
}

/* ---- one dimension ---- */

static tn_status one(const char *name, const int64_t *list, int64_t n, int64_t *out)
{
    TN_CHECK(n == 1, TN_INVALID,
             "max_pool1d() %s must be an int, list of ints or tuple of ints of size 1 but got size "
             "%lld",
             name, (long long)n);
    *out = list[0];
    return TN_OK;
}

static tn_status check_max_pool1d(const tn_tensor *self, int64_t k, int64_t s, int64_t p, int64_t d)
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

tn_status tni_composite_max_pool1d(tn_tensor *self, const int64_t *kernel_size,
                                   int64_t kernel_size_n, const int64_t *stride, int64_t stride_n,
                                   const int64_t *padding, int64_t padding_n,
                                   const int64_t *dilation, int64_t dilation_n, bool ceil_mode,
                                   tn_tensor **out)
{
    int64_t k[2] = {1, 0}, s[2] = {1, 0}, p[2] = {0, 0}, d[2] = {1, 0};
    TN_TRY(one("kernel_size", kernel_size, kernel_size_n, &k[1]));
    s[1] = k[1];
    if (stride_n)
        TN_TRY(one("stride", stride, stride_n, &s[1]));
    TN_TRY(one("padding", padding, padding_n, &p[1]));
    TN_TRY(one("dilation", dilation, dilation_n, &d[1]));
    TN_TRY(check_max_pool1d(self, k[1], s[1], p[1], d[1]));
    TN_AUTO(tn_tensor) flat = NULL;
    TN_AUTO(tn_tensor) result = NULL;
    TN_TRY(tn_unsqueeze(self, -2, &flat));
    TN_TRY(tn_max_pool2d(flat, k, 2, s, 2, p, 2, d, 2, ceil_mode, &result));
    return tn_squeeze_dim(result, -2, out);
}

static tn_status one_int(const char *name, int64_t n)
{
    TN_CHECK(n == 1, TN_INVALID, "avg_pool1d() argument '%s' should contain one int (got %lld)",
             name, (long long)n);
    return TN_OK;
}

tn_status tni_composite_avg_pool1d(tn_tensor *self, const int64_t *kernel_size,
                                   int64_t kernel_size_n, const int64_t *stride, int64_t stride_n,
                                   const int64_t *padding, int64_t padding_n, bool ceil_mode,
                                   bool count_include_pad, tn_tensor **out)
{
    TN_CHECK(self->ndim == 2 || self->ndim == 3, TN_INVALID,
             "Expected 2 to 3 dimensions, but got %d-dimensional tensor for argument #1 'self' "
             "(while checking arguments for avg_pool1d)",
             self->ndim);
    TN_TRY(one_int("kernel_size", kernel_size_n));
    if (stride_n)
        TN_TRY(one_int("stride", stride_n));
    TN_TRY(one_int("padding", padding_n));
    int64_t k[2] = {1, kernel_size[0]}, s[2] = {1, stride_n ? stride[0] : kernel_size[0]};
    int64_t p[2] = {0, padding[0]};
    TN_AUTO(tn_tensor) flat = NULL;
    TN_AUTO(tn_tensor) result = NULL;
    TN_TRY(tn_unsqueeze(self, -2, &flat));
    TN_TRY(tn_avg_pool2d(flat, k, 2, s, 2, p, 2, ceil_mode, count_include_pad, (tn_opt_int){0},
                         &result));
    return tn_squeeze_dim(result, -2, out);
}
