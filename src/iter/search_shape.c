/* SPDX-License-Identifier: MIT */
/* iter/search_shape.c: what running extremes, searching in order and counting give. */
#include <math.h>
#include <string.h>
#include "gen/shapes.h"
#include "iter/iter.h"
#include "shape/index.h"

#define ALL (~UINT64_C(0))

static TNI_COLD tn_status no_kernel(const char *kernel, const tn_tensor *t)
{
    TN_FAIL(TN_UNSUPPORTED, "\"%s\" not implemented for '%s'", kernel,
            tni_dtype_text((tn_dtype)t->dtype));
}

static bool is_complex(const tn_tensor *t)
{
    return tn_dtype_is_complex((tn_dtype)t->dtype);
}

/* ---- running ---- */

static tn_status running_extreme(const char *kernel, tni_geometry *g, const tn_tensor *self,
                                 int64_t dim)
{
    int d;
    TN_CHECK(self->ndim || dim == 0 || dim == -1, TN_INDEX,
             "%.6s(): Expected reduction dim -1 or 0 for scalar but got %lld", kernel,
             (long long)dim);
    TN_TRY(tni_wrap_dim(dim, self->ndim, &d));
    if (is_complex(self))
        return no_kernel(kernel, self);
    for (int i = 0; i < 2; i++) {
        tni_reduced_geometry(&g[i], self, 0, true);
        g[i].dtype = i == 0 ? (tn_dtype)self->dtype : TN_DTYPE_I64;
    }
    return TN_OK;
}

tn_status tni_shape_cummax(tni_geometry *g, tn_tensor *self, int64_t dim)
{
    return running_extreme("cummax_cpu", g, self, dim);
}

tn_status tni_shape_cummin(tni_geometry *g, tn_tensor *self, int64_t dim)
{
    return running_extreme("cummin_cpu", g, self, dim);
}

tn_status tni_shape_logcumsumexp(tni_geometry *g, tn_tensor *self, int64_t dim)
{
    int d;
    TN_TRY(tni_wrap_dim(dim, self->ndim, &d));
    if (tn_dtype_is_integral((tn_dtype)self->dtype, true))
        return no_kernel("logcumsumexp_out_cpu", self);
    tni_reduced_geometry(g, self, 0, true);
    g->dtype = (tn_dtype)self->dtype;
    return TN_OK;
}

/* ---- extremes ---- */

tn_status tni_shape_aminmax(tni_geometry *g, tn_tensor *self, tn_opt_int dim, bool keepdim)
{
    uint64_t dims = ALL;
    if (dim.has) {
        int d;
        TN_TRY(tni_wrap_dim(dim.value, self->ndim, &d));
        TN_CHECK(self->ndim == 0 || self->sizes[d] != 0, TN_INDEX,
                 "aminmax: Expected reduction dim %d to have non-zero size.", d);
        dims = UINT64_C(1) << d;
    } else {
        TN_CHECK(self->numel > 0, TN_INVALID,
                 "aminmax(): cannot compute aminmax over an empty dimension as the operation has "
                 "no identity.");
    }
    if (is_complex(self))
        return no_kernel("aminmax_cpu", self);
    for (int i = 0; i < 2; i++) {
        tni_reduced_geometry(&g[i], self, dims, keepdim);
        g[i].dtype = (tn_dtype)self->dtype;
    }
    return TN_OK;
}

tn_status tni_shape_nanmedian_dim(tni_geometry *g, tn_tensor *self, int64_t dim, bool keepdim)
{
    return tni_shape_median_dim(g, self, dim, keepdim);
}

/* ---- searching ---- */

static tn_status check_side(bool right, const char *side)
{
    if (!side)
        return TN_OK;
    bool is_left = strcmp(side, "left") == 0;
    TN_CHECK(is_left || strcmp(side, "right") == 0, TN_INVALID,
             "torch.searchsorted(): side can only be 'left' or 'right' but got %s", side);
    TN_CHECK(!is_left || !right, TN_INVALID,
             "torch.searchsorted(): side and right can't be set to opposites, got side of left "
             "while right was True");
    return TN_OK;
}

static bool rows_match(const tn_tensor *sequence, const tn_tensor *values)
{
    if (sequence->ndim == 1)
        return true;
    bool match = sequence->ndim == values->ndim;
    for (int d = 0; match && d < sequence->ndim - 1; d++)
        match = sequence->sizes[d] == values->sizes[d];
    return match;
}

static tn_status check_sorter(const tn_tensor *sequence, const tn_tensor *sorter)
{
    char a[TNI_SIZES_TEXT], b[TNI_SIZES_TEXT];
    TN_TRY(tni_same_device(sequence, sorter));
    bool same = sequence->ndim == sorter->ndim;
    for (int d = 0; same && d < sequence->ndim; d++)
        same = sequence->sizes[d] == sorter->sizes[d];
    TN_CHECK(same, TN_INVALID,
             "torch.searchsorted(): boundary and sorter must have the same size, but got boundary "
             "tensor %sand got sorter tensor %s",
             tni_format_sizes(sequence->ndim, sequence->sizes, a, sizeof a),
             tni_format_sizes(sorter->ndim, sorter->sizes, b, sizeof b));
    TN_CHECK(sorter->dtype == TN_DTYPE_I64, TN_INVALID,
             "torch.searchsorted(): sorter must be a tensor of long dtype but got dtype %s",
             tni_dtype_text((tn_dtype)sorter->dtype));
    return TN_OK;
}

tn_status tni_shape_searchsorted(tni_geometry *g, tn_tensor *sorted_sequence, tn_tensor *self,
                                 bool out_int32, bool right, const char *side, tn_tensor *sorter)
{
    char a[TNI_SIZES_TEXT], b[TNI_SIZES_TEXT];
    TN_TRY(check_side(right, side));
    TN_TRY(tni_same_device(sorted_sequence, self));
    if (sorter)
        TN_TRY(check_sorter(sorted_sequence, sorter));
    TN_CHECK(self->ndim > 0 || self->numel != 1 || sorted_sequence->ndim == 1, TN_INVALID,
             "torch.searchsorted(): input value can be a scalar only when boundaries tensor "
             "dimension is 1, but we got boundaries tensor dim(%d) and input value's dim(%d) "
             "numel(%lld)",
             sorted_sequence->ndim, self->ndim, (long long)self->numel);
    TN_CHECK(sorted_sequence->ndim > 0, TN_INVALID,
             "torch.searchsorted(): boundaries tensor should have positive dimension, but got 0 "
             "dimension");
    TN_CHECK(rows_match(sorted_sequence, self), TN_INVALID,
             "torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 "
             "dimensions of boundaries tensor and input value tensor must match, but we got "
             "boundaries tensor %s and input value tensor %s",
             tni_format_sizes(sorted_sequence->ndim, sorted_sequence->sizes, a, sizeof a),
             tni_format_sizes(self->ndim, self->sizes, b, sizeof b));
    const tn_tensor *both[] = {sorted_sequence, self};
    bool truths = self->dtype == TN_DTYPE_BOOL && sorted_sequence->dtype == TN_DTYPE_BOOL;
    for (int i = 0; i < 2; i++)
        if (is_complex(both[i]) || truths)
            return no_kernel("searchsorted_out_cpu", both[i]);
    const tni_operand operands[] = {{.tensor = sorted_sequence}, {.tensor = self}};
    tn_dtype common = tni_result_type(operands, 2);
    if (TNI_UNLIKELY(common == TN_DTYPE_NONE))
        return tni_refuse_promotion(operands, 2);
    TN_TRY(tni_check_limited(common, 0, "searchsorted_out_cpu"));
    tni_reduced_geometry(g, self, 0, true);
    g->dtype = out_int32 ? TN_DTYPE_I32 : TN_DTYPE_I64;
    return TN_OK;
}

tn_status tni_shape_isin(tni_geometry *g, tn_tensor *elements, tn_tensor *test_elements,
                         bool assume_unique, bool invert)
{
    (void)assume_unique;
    (void)invert;
    const tn_tensor *both[] = {elements, test_elements};
    TN_TRY(tni_same_device(elements, test_elements));
    for (int i = 0; i < 2; i++)
        TN_CHECK(!is_complex(both[i]) && both[i]->dtype != TN_DTYPE_BOOL, TN_INVALID,
                 "Unsupported input type encountered for isin(): %s",
                 tni_dtype_text((tn_dtype)both[i]->dtype));
    tni_reduced_geometry(g, elements, 0, true);
    g->dtype = TN_DTYPE_BOOL;
    return TN_OK;
}

/* ---- counting ---- */

tn_status tni_shape_histc(tni_geometry *g, tn_tensor *self, int64_t bins, tn_scalar min,
                          tn_scalar max)
{
    double from = tn_scalar_to_double(min), to = tn_scalar_to_double(max);
    TN_CHECK(bins > 0, TN_INVALID,
             "torch.histogram(): bins must be > 0, but got %lld for dimension 0", (long long)bins);
    TN_CHECK(isfinite(from) && isfinite(to), TN_INVALID,
             "torch.histc: range of [%g, %g] is not finite", from, to);
    TN_CHECK(from <= to, TN_INVALID, "torch.histc: max must be larger than min");
    if (!tn_dtype_is_floating((tn_dtype)self->dtype)) {
        if (from < to) {
            TN_TRY(tni_check_number(min, (tn_dtype)self->dtype));
            TN_TRY(tni_check_number(max, (tn_dtype)self->dtype));
        }
        return no_kernel("histogram_cpu", self);
    }
    tni_reduced_geometry(g, self, ALL, false);
    g->dtype = (tn_dtype)self->dtype;
    g->ndim = 1;
    g->sizes[0] = bins;
    return TN_OK;
}

/* ---- places, a given number of them ---- */

tn_status tni_shape_nonzero_static(tni_geometry *g, tn_tensor *self, int64_t size,
                                   int64_t fill_value)
{
    (void)fill_value;
    TN_CHECK(size >= 0, TN_INVALID, "nonzero_static: 'size' must be an non-negative integer");
    tni_geometry_fresh(g, self, 2);
    g->sizes[0] = size;
    g->sizes[1] = self->ndim;
    g->dtype = TN_DTYPE_I64;
    return TN_OK;
}
