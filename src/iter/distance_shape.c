/* SPDX-License-Identifier: MIT */
/* iter/distance_shape.c: what distances between rows, bags of embeddings and Fourier transforms
 * give. */
#include <string.h>
#include "core/dtype.h"
#include "gen/shapes.h"
#include "iter/iter.h"
#include "shape/expand.h"
#include "shape/index.h"

/* ---- distances ---- */

static tn_status same_dtype(const tn_tensor *a, const tn_tensor *b)
{
    TN_CHECK(a->dtype == b->dtype, TN_INVALID, "expected scalar type %s but found %s",
             tni_dtype_text((tn_dtype)a->dtype), tni_dtype_text((tn_dtype)b->dtype));
    return TN_OK;
}

static tn_status check_p(const char *name, double p)
{
    TN_CHECK(p >= 0, TN_INVALID, "%s only supports non-negative p values", name);
    return TN_OK;
}

static tn_status check_rows(const char *name, const tn_tensor *t)
{
    TN_CHECK(tn_dtype_is_floating((tn_dtype)t->dtype), TN_INVALID,
             "cdist only supports floating-point dtypes, %s got: %s", name,
             tni_dtype_text((tn_dtype)t->dtype));
    TN_CHECK(t->ndim >= 2, TN_INVALID, "cdist only supports at least 2D tensors, %s got: %dD", name,
             t->ndim);
    return TN_OK;
}

tn_status tni_shape_cdist_forward(tni_geometry *g, tn_tensor *x1, tn_tensor *x2, double p,
                                  tn_opt_int compute_mode)
{
    TN_TRY(check_rows("X1", x1));
    TN_TRY(check_rows("X2", x2));
    int64_t a = x1->sizes[x1->ndim - 1], b = x2->sizes[x2->ndim - 1];
    TN_CHECK(a == b, TN_INVALID,
             "X1 and X2 must have the same number of columns. X1: %lld X2: %lld", (long long)a,
             (long long)b);
    TN_TRY(tni_same_device(x1, x2));
    TN_TRY(same_dtype(x1, x2));
    TN_TRY(check_p("cdist", p));
    TN_CHECK(!compute_mode.has || (compute_mode.value >= 0 && compute_mode.value <= 2), TN_INVALID,
             "possible modes: 0, 1, 2, but was: %lld", (long long)compute_mode.value);
    tni_geometry_sizes_of(g, x1);
    g->has_strides = false;
    TN_TRY(
        tni_broadcast_sizes(x1->ndim - 2, x1->sizes, x2->ndim - 2, x2->sizes, &g->ndim, g->sizes));
    TN_CHECK(g->ndim + 2 <= TN_MAX_DIMS, TN_INVALID, "cdist: too many dimensions");
    g->sizes[g->ndim++] = x1->sizes[x1->ndim - 2];
    g->sizes[g->ndim++] = x2->sizes[x2->ndim - 2];
    return TN_OK;
}

tn_status tni_shape_cdist_backward(tni_geometry *g, tn_tensor *grad, tn_tensor *x1, tn_tensor *x2,
                                   double p, tn_tensor *cdist)
{
    tni_geometry forward;
    TN_TRY(tni_shape_cdist_forward(&forward, x1, x2, p, (tn_opt_int){0}));
    const tn_tensor *both[] = {grad, cdist};
    for (int i = 0; i < 2; i++) {
        TN_TRY(same_dtype(x1, both[i]));
        bool same = both[i]->ndim == forward.ndim;
        for (int d = 0; same && d < forward.ndim; d++)
            same = both[i]->sizes[d] == forward.sizes[d];
        TN_CHECK(same, TN_INVALID, "_cdist_backward: %s must look like the distances",
                 i ? "cdist" : "grad");
        TN_TRY(tni_same_device(x1, both[i]));
    }
    *g = forward;
    g->sizes[g->ndim - 1] = x1->sizes[x1->ndim - 1];
    return TN_OK;
}

tn_status tni_shape_pdist_forward(tni_geometry *g, tn_tensor *self, double p)
{
    TN_CHECK(self->ndim == 2, TN_INVALID, "pdist only supports 2D tensors, got: %dD", self->ndim);
    TN_CHECK(tn_dtype_is_floating((tn_dtype)self->dtype), TN_INVALID,
             "pdist only supports floating-point dtypes");
    TN_TRY(check_p("pdist", p));
    int64_t n = self->sizes[0], pairs;
    TN_CHECK(n < 2 || !__builtin_mul_overflow(n, n - 1, &pairs), TN_INVALID,
             "pdist: too many rows");
    tni_geometry_sizes_of(g, self);
    g->has_strides = false;
    g->ndim = 1;
    g->sizes[0] = n < 2 ? 0 : n * (n - 1) / 2;
    return TN_OK;
}

tn_status tni_shape_pdist_backward(tni_geometry *g, tn_tensor *grad, tn_tensor *self, double p,
                                   tn_tensor *pdist)
{
    TN_TRY(tni_shape_pdist_forward(g, self, p));
    const tn_tensor *both[] = {grad, pdist};
    for (int i = 0; i < 2; i++) {
        TN_TRY(same_dtype(self, both[i]));
        TN_CHECK(both[i]->ndim == 1 && both[i]->sizes[0] == g->sizes[0], TN_INVALID,
                 "_pdist_backward: %s must look like the distances", i ? "pdist" : "grad");
        TN_TRY(tni_same_device(self, both[i]));
    }
    tni_geometry_sizes_of(g, self);
    g->has_strides = false;
    return TN_OK;
}

/* ---- bags ---- */

static tn_status check_whole(const tn_tensor *t)
{
    char text[TNI_TYPE_TEXT];
    TN_CHECK(t->dtype == TN_DTYPE_I64 || t->dtype == TN_DTYPE_I32, TN_INVALID,
             "Expected tensor for argument #1 'indices' to have one of the following scalar types: "
             "Long, Int; but got %s instead (while checking arguments for embedding_bag)",
             tni_type_text((tn_dtype)t->dtype, text));
    return TN_OK;
}

tn_status tni_shape_embedding_bag(tni_geometry *g, tn_tensor *weight, tn_tensor *indices,
                                  tn_tensor *offsets, bool scale_grad_by_freq, int64_t mode,
                                  bool sparse, tn_tensor *per_sample_weights,
                                  bool include_last_offset, int64_t padding_idx)
{
    (void)scale_grad_by_freq;
    (void)sparse;
    (void)padding_idx;
    TN_CHECK(weight->ndim == 2, TN_INVALID,
             "weight has to be a 2D Tensor, but got Tensor of dimension %d", weight->ndim);
    TN_TRY(check_whole(indices));
    TN_TRY(check_whole(offsets));
    TN_CHECK(indices->ndim == 1 && offsets->ndim == 1, TN_INVALID,
             "embedding_bag: indices and offsets must have one dimension, but have %d and %d",
             indices->ndim, offsets->ndim);
    tn_dtype dtype = (tn_dtype)weight->dtype;
    char text[TNI_TYPE_TEXT];
    TN_CHECK(tn_dtype_is_floating(dtype), TN_INVALID,
             "Expected tensor for argument #1 'weight' to have one of the following scalar types: "
             "Half, BFloat16, Float, Double; but got %s instead (while checking arguments for "
             "embedding_bag)",
             tni_type_text(dtype, text));
    TN_CHECK(mode >= 0 && mode <= 2, TN_INVALID, "embedding_bag: mode is 0 to 2, but got %lld",
             (long long)mode);
    TN_TRY(tni_same_device(weight, indices));
    TN_TRY(tni_same_device(weight, offsets));
    if (per_sample_weights) {
        TN_CHECK(mode == 0, TN_INVALID,
                 "embedding_bag: per_sample_weights only supported with mode='sum'");
        char other[TNI_TYPE_TEXT];
        TN_CHECK(per_sample_weights->dtype == weight->dtype, TN_INVALID,
                 "Expected tensor for argument #1 'weight' to have the same type as tensor for "
                 "argument #1 'per_sample_weights'; but type %s does not equal %s (while checking "
                 "arguments for embedding_bag)",
                 tni_type_text(dtype, text),
                 tni_type_text((tn_dtype)per_sample_weights->dtype, other));
        TN_CHECK(per_sample_weights->ndim == 1 && per_sample_weights->numel == indices->numel,
                 TN_INVALID, "embedding_bag: per_sample_weights must have the shape of indices");
        TN_TRY(tni_same_device(weight, per_sample_weights));
    }
    TN_CHECK(!include_last_offset || offsets->sizes[0] >= 1, TN_INVALID,
             "include_last_offset: number of offsets should be at least 1");
    int64_t bags = offsets->sizes[0] - include_last_offset;
    tn_dtype whole = tn_promote_types((tn_dtype)indices->dtype, (tn_dtype)offsets->dtype);
    for (int i = 0; i < 4; i++) {
        tni_geometry_sizes_of(&g[i], weight);
        g[i].has_strides = false;
        g[i].ndim = i == 0 || (i == 3 && mode == 2) ? 2 : 1;
        g[i].sizes[0] = i == 1 ? indices->sizes[0] : bags;
        g[i].dtype = i == 0 ? (tn_dtype)weight->dtype : whole;
    }
    return TN_OK;
}

/* ---- Fourier transforms ---- */

static tn_status fft_dims(const tn_tensor *self, const int64_t *dim, int64_t n, int *last)
{
    uint64_t seen = 0;
    TN_CHECK(n > 0, TN_INVALID, "a Fourier transform wants at least one dimension");
    for (int64_t i = 0; i < n; i++) {
        TN_TRY(tni_wrap_dim(dim[i], self->ndim, last));
        TN_CHECK(self->ndim > 0 && !(seen >> *last & 1), TN_INVALID,
                 "dim %d appears multiple times in the list of dims", *last);
        seen |= UINT64_C(1) << *last;
        TN_CHECK(self->sizes[*last] > 0, TN_INVALID,
                 "Invalid number of data points (%lld) specified", (long long)self->sizes[*last]);
    }
    return TN_OK;
}

/* Dimensions by their strides, the largest first; equal ones keep their order. */
static void by_stride(int *order, int n, const int64_t *strides)
{
    for (int i = 1; i < n; i++) {
        int d = order[i], at = i;
        for (; at > 0 && strides[order[at - 1]] < strides[d]; at--)
            order[at] = order[at - 1];
        order[at] = d;
    }
}

/* The strides of @p g: what is not transformed comes first, in the order in which it lies in memory
 * (@p strides), then what is, likewise, or, with @p pinned, with the last of @p dim innermost. It
 * is what the reference's transforms leave behind, and users see. */
static void fft_strides(tni_geometry *g, const int64_t *strides, const int64_t *dim, int64_t dim_n,
                        bool pinned)
{
    int order[TN_MAX_DIMS], n = 0;
    uint64_t transformed = 0;
    for (int64_t i = 0; i < dim_n; i++)
        transformed |= UINT64_C(1) << (dim[i] < 0 ? dim[i] + g->ndim : dim[i]);
    for (int d = 0; d < g->ndim; d++)
        if (!(transformed >> d & 1))
            order[n++] = d;
    by_stride(order, n, strides);
    for (int64_t i = 0; i < dim_n; i++)
        order[n + i] = (int)(dim[i] < 0 ? dim[i] + g->ndim : dim[i]);
    by_stride(order + n, (int)dim_n - pinned, strides);
    uint64_t step = 1; /* sizes that overflow it are refused by who makes the tensor */
    for (int i = g->ndim - 1; i >= 0; i--) {
        g->strides[order[i]] = (int64_t)step;
        step *= (uint64_t)(g->sizes[order[i]] > 1 ? g->sizes[order[i]] : 1);
    }
    g->has_strides = true;
}

static tn_status fft_shape(tni_geometry *g, const tn_tensor *self, tn_dtype dtype, int64_t scaling)
{
    TN_CHECK(scaling >= 0 && scaling <= 2, TN_INVALID,
             "a Fourier transform's normalization is 0 to 2, but got %lld", (long long)scaling);
    tni_geometry_sizes_of(g, self);
    g->has_strides = false;
    g->dtype = dtype;
    return TN_OK;
}

tn_status tni_shape_fft_r2c(tni_geometry *g, tn_tensor *self, const int64_t *dim, int64_t dim_n,
                            int64_t normalization, bool onesided)
{
    int last;
    TN_CHECK(tn_dtype_is_floating((tn_dtype)self->dtype), TN_INVALID,
             "Only supports floating-point dtypes, but found: %s",
             tni_dtype_text((tn_dtype)self->dtype));
    TN_CHECK(self->dtype == TN_DTYPE_F32 || self->dtype == TN_DTYPE_F64, TN_INVALID,
             "MKL FFT doesn't support tensors of type: %s", tni_dtype_text((tn_dtype)self->dtype));
    TN_TRY(fft_dims(self, dim, dim_n, &last));
    TN_TRY(fft_shape(g, self, tni_dtype_to_complex((tn_dtype)self->dtype), normalization));
    if (onesided)
        g->sizes[last] = self->sizes[last] / 2 + 1;
    fft_strides(g, self->strides, dim, dim_n, true);
    return TN_OK;
}

static tn_status check_complex(const tn_tensor *self)
{
    TN_CHECK(tn_dtype_is_complex((tn_dtype)self->dtype), TN_INVALID,
             "Only supports complex dtypes, but found: %s", tni_dtype_text((tn_dtype)self->dtype));
    return TN_OK;
}

tn_status tni_shape_fft_c2c(tni_geometry *g, tn_tensor *self, const int64_t *dim, int64_t dim_n,
                            int64_t normalization, bool forward)
{
    int last;
    (void)forward;
    TN_TRY(check_complex(self));
    if (dim_n > 0)
        TN_TRY(fft_dims(self, dim, dim_n, &last));
    TN_TRY(fft_shape(g, self, (tn_dtype)self->dtype, normalization));
    if (dim_n > 0)
        fft_strides(g, self->strides, dim, dim_n, false);
    return TN_OK;
}

tn_status tni_shape_fft_c2r(tni_geometry *g, tn_tensor *self, const int64_t *dim, int64_t dim_n,
                            int64_t normalization, int64_t last_dim_size)
{
    int last;
    TN_TRY(check_complex(self));
    TN_TRY(fft_dims(self, dim, dim_n, &last));
    TN_TRY(fft_shape(g, self, self->dtype == TN_DTYPE_C64 ? TN_DTYPE_F32 : TN_DTYPE_F64,
                     normalization));
    if (last_dim_size < 0) {
        char text[TNI_SIZES_TEXT];
        g->sizes[last] = last_dim_size;
        TN_FAIL(TN_INVALID, "Trying to create tensor with negative dimension %lld: %s",
                (long long)last_dim_size, tni_format_sizes(g->ndim, g->sizes, text, sizeof text));
    }
    TN_CHECK(last_dim_size > 0 && self->sizes[last] >= last_dim_size / 2 + 1, TN_INVALID,
             "_fft_c2r: %lld numbers do not make %lld", (long long)self->sizes[last],
             (long long)last_dim_size);
    /* All but the last one are transformed before, by a transform of their own. */
    if (dim_n > 1)
        fft_strides(g, self->strides, dim, dim_n - 1, false);
    int64_t strides[TN_MAX_DIMS];
    memcpy(strides, dim_n > 1 ? g->strides : self->strides, (size_t)g->ndim * sizeof *strides);
    g->sizes[last] = last_dim_size;
    fft_strides(g, strides, dim + dim_n - 1, 1, false);
    return TN_OK;
}
