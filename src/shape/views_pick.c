/* SPDX-License-Identifier: MIT */
/* shape/views_pick.c: views that pick elements: select, slice, diagonal, unfold, as_strided. */
#include "gen/shapes.h"
#include "shape/geometry.h"

tn_status tni_view_select(tni_geometry *g, tn_tensor *self, int64_t dim, int64_t index)
{
    TN_CHECK(self->ndim > 0, TN_INDEX, "select() cannot be applied to a 0-dim tensor.");
    int at;
    TN_TRY(tni_wrap_dim(dim, self->ndim, &at));
    int64_t size = self->sizes[at];
    if (TNI_UNLIKELY(index >= size || index < -size)) {
        char text[TNI_SIZES_TEXT];
        TN_FAIL(TN_INDEX, "select(): index %lld out of range for tensor of size %s at dimension %d",
                (long long)index, tni_format_sizes(self->ndim, self->sizes, text, sizeof text), at);
    }
    tni_geometry_copy(g, self);
    g->offset += (index < 0 ? index + size : index) * g->strides[at];
    tni_geometry_drop(g, at);
    return TN_OK;
}

static int64_t clamp(int64_t x, int64_t low, int64_t high)
{
    return x < low ? low : x > high ? high : x;
}

tn_status tni_view_slice(tni_geometry *g, tn_tensor *self, int64_t dim, tn_opt_int start,
                         tn_opt_int end, int64_t step)
{
    TN_CHECK(self->ndim > 0, TN_INDEX, "slice() cannot be applied to a 0-dim tensor.");
    int at;
    TN_TRY(tni_wrap_dim(dim, self->ndim, &at));
    TN_CHECK(step > 0, TN_INVALID, "slice step must be positive");
    int64_t size = self->sizes[at];
    int64_t from = start.has ? start.value : 0, to = end.has ? end.value : INT64_MAX;
    from = clamp(from < 0 ? from + size : from, 0, size);
    to = clamp(to < 0 ? to + size : to, from, size);
    tni_geometry_copy(g, self);
    int64_t length = to - from;
    tni_geometry_narrow(g, at, from, length / step + (length % step != 0));
    /* A step too large to multiply, also by an element's size, leaves at most one element: its
     * stride is never used. */
    int64_t stride;
    if (tni_i64_mul(g->strides[at], step, &stride) && stride <= INT64_MAX / 64)
        g->strides[at] = stride;
    return TN_OK;
}

tn_status tni_view_diagonal(tni_geometry *g, tn_tensor *self, int64_t offset, int64_t dim1,
                            int64_t dim2)
{
    int a, b;
    TN_TRY(tni_wrap_dim(dim1, self->ndim, &a));
    TN_TRY(tni_wrap_dim(dim2, self->ndim, &b));
    TN_CHECK(a != b, TN_INVALID, "diagonal dimensions cannot be identical %lld, %lld",
             (long long)dim1, (long long)dim2);
    /* Clamp first: an offset beyond either size gives an empty diagonal, and cannot overflow. */
    int64_t rows = self->sizes[a], columns = self->sizes[b];
    offset = clamp(offset, -rows, columns);
    int64_t left = offset >= 0 ? rows : rows + offset;
    int64_t right = offset >= 0 ? columns - offset : columns;
    int64_t length = left < right ? left : right;
    int64_t stride;
    if (!tni_i64_add(self->strides[a], self->strides[b], &stride))
        stride = self->strides[a]; /* the other size is 0 or 1: it is never used */
    tni_geometry_copy(g, self);
    if (length > 0)
        g->offset += offset >= 0 ? offset * g->strides[b] : -offset * g->strides[a];
    tni_geometry_drop(g, a > b ? a : b);
    tni_geometry_drop(g, a > b ? b : a);
    g->sizes[g->ndim] = length;
    g->strides[g->ndim] = stride;
    g->ndim++;
    return TN_OK;
}

tn_status tni_view_unfold(tni_geometry *g, tn_tensor *self, int64_t dimension, int64_t size,
                          int64_t step)
{
    int at;
    TN_TRY(tni_wrap_dim(dimension, self->ndim, &at));
    int64_t have = self->ndim ? self->sizes[at] : 1;
    TN_CHECK(size >= 0, TN_INVALID, "size is %lld but must be >= 0", (long long)size);
    TN_CHECK(size <= have, TN_INVALID,
             "maximum size for tensor at dimension %d is %lld but size is %lld", at,
             (long long)have, (long long)size);
    TN_CHECK(step > 0, TN_INVALID, "step is %lld but must be > 0", (long long)step);
    TN_CHECK(self->ndim < TN_MAX_DIMS, TN_INVALID,
             "unfold(): a tensor has at most %d dimensions, and self has that many", TN_MAX_DIMS);
    tni_geometry_copy(g, self);
    int64_t inner = self->ndim ? self->strides[at] : 1;
    if (self->ndim) {
        int64_t stride;
        g->sizes[at] = (have - size) / step + 1;
        /* As in slice: a step that overflows leaves one window. */
        if (tni_i64_mul(inner, step, &stride) && stride <= INT64_MAX / 64)
            g->strides[at] = stride;
    }
    g->sizes[g->ndim] = size;
    g->strides[g->ndim] = inner;
    g->ndim++;
    return tni_geometry_check_numel(g);
}

/* Any geometry inside the storage. The text names the operator of the reference that checks it. */
static tn_status strided(tni_geometry *g, const tn_tensor *self, const int64_t *size,
                         int64_t size_n, const int64_t *stride, int64_t stride_n, int64_t offset)
{
    TN_CHECK(size_n >= 0 && size_n <= TN_MAX_DIMS && (size || size_n == 0) &&
                 (stride || stride_n == 0),
             TN_INVALID, "as_strided: size has 0 to %d entries, but got %lld", TN_MAX_DIMS,
             (long long)size_n);
    TN_CHECK(size_n == stride_n, TN_INVALID, "mismatch in length of strides and shape");
    int ndim = (int)size_n;
    char sizes_text[TNI_SIZES_TEXT], strides_text[TNI_SIZES_TEXT];
    tni_geometry_like(g, self, ndim);
    g->offset = offset;
    for (int i = 0; i < ndim; i++) {
        TN_CHECK(stride[i] >= 0, TN_INVALID,
                 "as_strided: Negative strides are not supported at the moment, got strides: %s",
                 tni_format_sizes(ndim, stride, strides_text, sizeof strides_text));
        TN_CHECK(size[i] >= 0, TN_INVALID,
                 "Trying to create tensor with negative dimension %lld: %s", (long long)size[i],
                 tni_format_sizes(ndim, size, sizes_text, sizeof sizes_text));
        g->sizes[i] = size[i];
        g->strides[i] = stride[i];
    }
    TN_CHECK(offset >= 0, TN_INVALID, "Tensor: invalid storage offset %lld", (long long)offset);
    TN_TRY(tni_geometry_check_numel(g));
    size_t needed;
    TN_CHECK(tni_required_bytes(ndim, size, stride, offset, tni_itemsize(self), &needed),
             TN_INVALID, "Storage size calculation overflowed with sizes=%s and strides=%s",
             tni_format_sizes(ndim, size, sizes_text, sizeof sizes_text),
             tni_format_sizes(ndim, stride, strides_text, sizeof strides_text));
    TN_CHECK(needed <= self->storage->nbytes, TN_INVALID,
             "setStorage: sizes %s, strides %s, storage offset %lld, and itemsize %zu requiring a "
             "storage size of %zu are out of bounds for storage of size %zu",
             tni_format_sizes(ndim, size, sizes_text, sizeof sizes_text),
             tni_format_sizes(ndim, stride, strides_text, sizeof strides_text), (long long)offset,
             tni_itemsize(self), needed, self->storage->nbytes);
    return TN_OK;
}

tn_status tni_view_as_strided(tni_geometry *g, tn_tensor *self, const int64_t *size, int64_t size_n,
                              const int64_t *stride, int64_t stride_n, tn_opt_int storage_offset)
{
    return strided(g, self, size, size_n, stride, stride_n,
                   storage_offset.has ? storage_offset.value : self->offset);
}

tn_status tni_view_reshape_alias(tni_geometry *g, tn_tensor *self, const int64_t *size,
                                 int64_t size_n, const int64_t *stride, int64_t stride_n)
{
    TN_CHECK(size_n == stride_n, TN_INVALID,
             "dimensionality of sizes (%lld) must match dimensionality of strides (%lld)",
             (long long)size_n, (long long)stride_n);
    return strided(g, self, size, size_n, stride, stride_n, self->offset);
}
