/* SPDX-License-Identifier: MIT */
/* composite/quantile.c: quantiles, by sorting, looking up the two neighbours and going between. */
#include <string.h>
#include "core/tensor.h"
#include "gen/composites.h"
#include "tenon/ops.h"

static tn_status check(const tn_tensor *self, const tn_tensor *q, const char *interpolation)
{
    static const char *const known[] = {"linear", "lower", "higher", "midpoint", "nearest"};
    bool found = false;
    TN_CHECK(self->numel > 0, TN_INVALID, "quantile() input tensor must be non-empty");
    TN_CHECK(q->ndim <= 1, TN_INVALID, "quantile() q must be a scalar or 1D tensor");
    TN_CHECK(self->dtype == TN_DTYPE_F32 || self->dtype == TN_DTYPE_F64, TN_INVALID,
             "quantile() input tensor must be either float or double dtype");
    TN_CHECK(self->dtype == q->dtype, TN_INVALID,
             "quantile() q tensor must be same dtype as the input tensor");
    TN_CHECK(self->device.type == q->device.type && self->device.index == q->device.index,
             TN_INVALID, "quantile() q tensor must be on the same device as the input tensor");
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        found |= strcmp(interpolation, known[i]) == 0;
    TN_CHECK(found, TN_INVALID,
             "quantile() interpolation must be one of linear, lower, higher, midpoint or nearest, "
             "but got %s",
             interpolation);
    return TN_OK;
}

/* Only the CPU knows the numbers. */
static tn_status check_shares(tn_tensor *q)
{
    TN_AUTO(tn_tensor) dense = NULL;
    if (tni_is_meta(q) || q->device.type != TN_DEVICE_CPU)
        return TN_OK;
    TN_TRY(tn_to_dtype(q, TN_DTYPE_F64, false, true, TN_FORMAT_CONTIGUOUS, &dense));
    const double *x = tn_tensor_data(dense);
    for (int64_t i = 0; i < dense->numel; i++)
        TN_CHECK(x[i] >= 0 && x[i] <= 1, TN_INVALID,
                 "quantile() q values must be in the range [0, 1]");
    return TN_OK;
}

/* @p self with what is sorted last: everything, or dimension @p d, which leaves a 1 in its place
 * where @p keepdim says so. */
static tn_status lay_out(tn_tensor *self, bool whole, int d, bool keepdim, tn_tensor **out)
{
    TN_AUTO(tn_tensor) line = NULL;
    TN_AUTO(tn_tensor) more = NULL;
    TN_AUTO(tn_tensor) sorted = NULL;
    TN_AUTO(tn_tensor) places = NULL;
    if (whole) {
        TN_TRY(tn_reshape(self, (const int64_t[]){-1}, 1, &line));
        return tn_sort(line, -1, false, out, &places);
    }
    TN_TRY(tn_unsqueeze(self, -1, &more));
    TN_TRY(tn_transpose(more, d, -1, &line));
    TN_TRY(tn_sort(line, -1, false, &sorted, &places));
    if (!keepdim)
        return tn_squeeze_dim(sorted, d, out);
    *out = TN_MOVE(sorted);
    return TN_OK;
}

/* Where among the sorted numbers each share is: [..., shares]. A line with a NaN shows it always.
 */
static tn_status ranks_of(tn_tensor *sorted, tn_tensor *q, bool skip_nan, tn_tensor **out)
{
    int64_t last = sorted->sizes[sorted->ndim - 1] - 1;
    TN_AUTO(tn_tensor) nan = NULL;
    TN_AUTO(tn_tensor) any = NULL;
    TN_AUTO(tn_tensor) ranks = NULL;
    TN_AUTO(tn_tensor) line = NULL;
    TN_TRY(tn_isnan(sorted, &nan));
    if (skip_nan) { /* they stand behind the numbers */
        const int64_t along = -1;
        TN_AUTO(tn_tensor) number = NULL;
        TN_AUTO(tn_tensor) count = NULL;
        TN_TRY(tn_logical_not(nan, &number));
        TN_TRY(tn_sum_dim(number, &along, 1, true, TN_DTYPE_NONE, &count));
        TN_TRY(tn_sub_scalar_(count, tn_int(1), tn_int(1)));
        TN_TRY(tn_mul(count, q, &ranks));
        return tn_clamp_min(ranks, tn_int(0), out);
    }
    TN_TRY(tn_any_dim(nan, -1, true, &any));
    TN_TRY(tn_mul_scalar(q, tn_int(last), &ranks));
    if (q->ndim == 0)
        TN_TRY(tn_unsqueeze(ranks, 0, &line));
    return tn_masked_fill(line ? line : ranks, any, tn_int(last), out);
}

static tn_status look_up(tn_tensor *sorted, tn_tensor *ranks, tn_tensor **out)
{
    TN_AUTO(tn_tensor) places = NULL;
    TN_TRY(tn_to_dtype(ranks, TN_DTYPE_I64, false, false, TN_FORMAT_NONE, &places));
    return tn_gather(sorted, -1, places, false, out);
}

static tn_status between(tn_tensor *sorted, tn_tensor *ranks, const char *interpolation,
                         tn_tensor **out)
{
    TN_AUTO(tn_tensor) low = NULL;
    TN_AUTO(tn_tensor) high = NULL;
    TN_AUTO(tn_tensor) below = NULL;
    TN_AUTO(tn_tensor) above = NULL;
    TN_AUTO(tn_tensor) weight = NULL;
    if (strcmp(interpolation, "nearest") == 0)
        TN_TRY(tn_round(ranks, &low));
    else if (strcmp(interpolation, "higher") == 0)
        TN_TRY(tn_ceil(ranks, &low));
    else
        TN_TRY(tn_floor(ranks, &low));
    bool middle = strcmp(interpolation, "midpoint") == 0;
    if (!middle && strcmp(interpolation, "linear") != 0)
        return look_up(sorted, low, out);
    TN_TRY(look_up(sorted, low, &below));
    TN_TRY(tn_ceil(ranks, &high));
    TN_TRY(look_up(sorted, high, &above));
    if (middle)
        TN_TRY(tn_full_like(ranks, tn_float(0.5), NULL, TN_FORMAT_NONE, &weight));
    else
        TN_TRY(tn_sub(ranks, low, tn_int(1), &weight));
    return tn_lerp_tensor(below, above, weight, out);
}

static tn_status quantile(tn_tensor *self, tn_tensor *q, tn_opt_int dim, bool keepdim,
                          const char *interpolation, bool skip_nan, tn_tensor **out)
{
    int d = 0;
    TN_TRY(check(self, q, interpolation));
    if (dim.has)
        TN_TRY(tni_wrap_dim(dim.value, self->ndim, &d));
    TN_TRY(check_shares(q));
    TN_AUTO(tn_tensor) sorted = NULL;
    TN_AUTO(tn_tensor) ranks = NULL;
    TN_AUTO(tn_tensor) result = NULL;
    bool whole = !dim.has || self->ndim == 0;
    TN_TRY(lay_out(self, whole, d, keepdim, &sorted));
    TN_TRY(ranks_of(sorted, q, skip_nan, &ranks));
    TN_TRY(between(sorted, ranks, interpolation, &result));
    if (whole) {
        int64_t sizes[TN_MAX_DIMS];
        int n = 0;
        if (q->ndim)
            sizes[n++] = q->numel;
        for (int i = 0; keepdim && i < self->ndim; i++)
            sizes[n++] = 1;
        return tn_reshape(result, sizes, n, out);
    }
    if (q->ndim == 0)
        return tn_squeeze_dim(result, -1, out);
    /* [..., shares] to [shares, ...]. */
    TN_AUTO(tn_tensor) rows = NULL;
    TN_AUTO(tn_tensor) turned = NULL;
    TN_TRY(tn_unsqueeze(result, 0, &rows));
    TN_TRY(tn_transpose(rows, 0, -1, &turned));
    return tn_squeeze_dim(turned, -1, out);
}

tn_status tni_composite_quantile(tn_tensor *self, tn_tensor *q, tn_opt_int dim, bool keepdim,
                                 const char *interpolation, tn_tensor **out)
{
    return quantile(self, q, dim, keepdim, interpolation, false, out);
}

tn_status tni_composite_nanquantile(tn_tensor *self, tn_tensor *q, tn_opt_int dim, bool keepdim,
                                    const char *interpolation, tn_tensor **out)
{
    return quantile(self, q, dim, keepdim, interpolation, true, out);
}

static tn_status share_of(tn_tensor *self, double q, tn_tensor **out)
{
    TN_CHECK(q >= 0 && q <= 1, TN_INVALID, "quantile() q must be in the range [0, 1] but got %g",
             q);
    return tn_new_full(self, NULL, 0, tn_float(q), NULL, out);
}

tn_status tni_composite_quantile_scalar(tn_tensor *self, double q, tn_opt_int dim, bool keepdim,
                                        const char *interpolation, tn_tensor **out)
{
    TN_AUTO(tn_tensor) share = NULL;
    TN_TRY(share_of(self, q, &share));
    return tn_quantile(self, share, dim, keepdim, interpolation, out);
}

tn_status tni_composite_nanquantile_scalar(tn_tensor *self, double q, tn_opt_int dim, bool keepdim,
                                           const char *interpolation, tn_tensor **out)
{
    TN_AUTO(tn_tensor) share = NULL;
    TN_TRY(share_of(self, q, &share));
    return tn_nanquantile(self, share, dim, keepdim, interpolation, out);
}
