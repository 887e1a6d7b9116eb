/* SPDX-License-Identifier: MIT */
/* composite/histogram.c: histograms over edges in terms of other operators. */
#include <math.h>
#include "composite/leave.h"
#include "core/at_hand.h"
#include "core/tensor.h"
#include "gen/composites.h"
#include "tenon/ops.h"

/* Numbers with digits after the point: edges of bins of whole ones would fall together. */
static tn_status histogram_takes(const char *kernel, const tn_tensor *self)
{
    TN_CHECK(tn_dtype_is_floating((tn_dtype)self->dtype), TN_UNSUPPORTED,
             "\"%s\" not implemented for '%s'", kernel, tni_dtype_text((tn_dtype)self->dtype));
    return TN_OK;
}

static tn_status check_weight(const tn_tensor *self, const tn_tensor *weight)
{
    if (!weight)
        return TN_OK;
    TN_CHECK(
        self->dtype == weight->dtype, TN_INVALID,
        "torch.histogramdd: if weight tensor is provided, input tensor and weight tensor should "
        "have the same dtype, but got input(%s), and weight(%s)",
        tni_dtype_cpp((tn_dtype)self->dtype), tni_dtype_cpp((tn_dtype)weight->dtype));
    TN_CHECK(self->numel == weight->numel, TN_INVALID,
             "torch.histogramdd: if weight tensor is provided it should have the same shape as the "
             "input tensor excluding its innermost dimension, but got input with shape [%lld, 1] "
             "and weight with shape [%lld]",
             (long long)self->numel, (long long)weight->numel);
    return TN_OK;
}

tn_status tni_composite_histogram(tn_tensor *self, tn_tensor *bins, tn_tensor *weight, bool density,
                                  tn_tensor **hist, tn_tensor **bin_edges)
{
    tn_scope *scope;
    TN_CHECK(self->dtype == bins->dtype, TN_INVALID,
             "torch.histogramdd: input tensor and bins tensors should have the same dtype, but got "
             "input with dtype %s and bins for dimension 0 with dtype %s",
             tni_dtype_cpp((tn_dtype)self->dtype), tni_dtype_cpp((tn_dtype)bins->dtype));
    TN_CHECK(bins->ndim == 1, TN_INVALID,
             "torch.histogramdd: bins tensor should have one dimension, but got %d dimensions in "
             "the bins tensor for dimension 0",
             bins->ndim);
    TN_CHECK(bins->numel > 0, TN_INVALID,
             "torch.histogramdd: bins tensor should have at least 1 element, but got 0 elements in "
             "the bins tensor for dimension 0");
    TN_TRY(check_weight(self, weight));
    int64_t n = bins->numel - 1;
    TN_CHECK(n > 0, TN_INVALID, "torch.histogram(): bins must be > 0, but got 0 for dimension 0");
    TN_TRY(histogram_takes("histogram_cpu", self));
    TN_TRY(tn_scope_enter(&scope));
    const int64_t line = -1;
    tn_tensor *x = tnx_reshape(self, &line, 1);
    tn_tensor *last = tnx_select(bins, 0, n), *first_edge = tnx_select(bins, 0, 0);
    tn_tensor *inside = tnx_logical_and(tnx_ge(x, first_edge), tnx_le(x, last));
    /* The last bin has its upper edge too; what is outside counts nothing. */
    tn_tensor *at = tnx_sub_scalar(tnx_bucketize(x, bins, false, true), tn_int(1), tn_int(1));
    const tn_scalar low = tn_int(0), high = tn_int(n - 1);
    at = tnx_clamp(at, &low, &high);
    tn_tensor *w =
        weight ? tnx_reshape(weight, &line, 1) : tnx_ones_like(x, NULL, TN_FORMAT_CONTIGUOUS);
    w = tnx_where_scalarother(inside, w, tn_int(0));
    tn_tensor *count = tnx_scatter_add(tnx_new_zeros(self, &n, 1, NULL), 0, at, w);
    if (density) {
        tn_tensor *width =
            tnx_sub(tnx_slice(bins, 0, tn_some_int(1), tn_some_int(n + 1), 1),
                    tnx_slice(bins, 0, tn_some_int(0), tn_some_int(n), 1), tn_int(1));
        count = tnx_div(tnx_div(count, tnx_sum(count, TN_DTYPE_NONE)), width);
    }
    TN_AUTO(tn_tensor) counts = NULL;
    TN_TRY(tni_leave(scope, count, &counts));
    TN_TRY(tn_contiguous(bins, TN_FORMAT_CONTIGUOUS, bin_edges));
    *hist = TN_MOVE(counts);
    return TN_OK;
}

tn_status tni_composite_histogram_count(tn_tensor *self, int64_t bins, const double *range,
                                        int64_t range_n, tn_tensor *weight, bool density,
                                        tn_tensor **hist, tn_tensor **bin_edges)
{
    double low = 0, high = 1;
    TN_CHECK(bins > 0, TN_INVALID,
             "torch.histogram(): bins must be > 0, but got %lld for dimension 0", (long long)bins);
    if (!range)
        TN_TRY(histogram_takes("histogramdd", self));
    TN_CHECK(!range || range_n == 2, TN_INVALID,
             "torch.histogramdd: for a 1-dimensional histogram range should have 2 elements");
    if (range) {
        low = range[0];
        high = range[1];
    } else if (self->numel > 0 && !tni_is_hollow(self)) {
        TN_AUTO(tn_tensor) least = NULL;
        TN_AUTO(tn_tensor) most = NULL;
        tn_scalar a, b;
        TN_TRY(tn_min(self, &least));
        TN_TRY(tn_max(self, &most));
        TN_TRY(tn_item(least, &a));
        TN_TRY(tn_item(most, &b));
        low = tn_scalar_to_double(a);
        high = tn_scalar_to_double(b);
    }
    /* A NaN's sign is nobody's business. */
    TN_CHECK(isfinite(low) && isfinite(high), TN_INVALID,
             "torch.histogramdd: dimension 0's range [%g, %g] is not finite",
             isnan(low) ? fabs(low) : low, isnan(high) ? fabs(high) : high);
    TN_CHECK(low <= high, TN_INVALID,
             "torch.histogramdd: min should not exceed max, but got min %g max %g for dimension 0",
             low, high);
    if (low == high) {
        low -= 0.5;
        high += 0.5;
    }
    TN_AUTO(tn_tensor) edges = NULL;
    int64_t n;
    TN_CHECK(tni_i64_add(bins, 1, &n), TN_INVALID, "torch.histogramdd: too many bins: %lld",
             (long long)bins);
    TN_TRY(tn_new_empty(self, &n, 1, NULL, &edges));
    TN_TRY(tn_linspace_out(tn_float(low), tn_float(high), n, edges));
    return tn_histogram(self, edges, weight, density, hist, bin_edges);
}
