/* SPDX-License-Identifier: MIT */
/* shape/views.c: views that only rearrange dimensions: view, transpose, squeeze and their kin.
 *
 * A rule tni_view_* says what the view looks like and touches nothing. Views that pick elements are
 * in views_pick.c. */
#include "gen/shapes.h"
#include "shape/expand.h"
#include "shape/geometry.h"
#include "shape/reshape.h"

tn_status tni_geometry_check_numel(const tni_geometry *g)
{
    int64_t numel;
    if (TNI_LIKELY(tni_numel(g->ndim, g->sizes, &numel)))
        return TN_OK;
    char text[TNI_SIZES_TEXT];
    TN_FAIL(TN_INVALID, "numel: integer multiplication overflow with sizes %s",
            tni_format_sizes(g->ndim, g->sizes, text, sizeof text));
}

/* A size to infer, strides to find, or something to refuse. */
static __attribute__((noinline)) tn_status view_any(tni_geometry *g, const tn_tensor *self,
                                                    const int64_t *size, int64_t size_n)
{
    TN_TRY(tni_infer_sizes(self->numel, size, size_n, g->sizes));
    tni_geometry_like(g, self, (int)size_n);
    if (tni_views_are_contiguous(self)) {
        g->has_strides = false;
        return TN_OK;
    }
    TN_CHECK(tni_view_strides(self->ndim, self->sizes, self->strides, self->numel, g->ndim,
                              g->sizes, g->strides),
             TN_INVALID,
             "view size is not compatible with input tensor's size and stride (at least one "
             "dimension spans across two contiguous subspaces). Use .reshape(...) instead.");
    return TN_OK;
}

tn_status tni_view_view(tni_geometry *g, tn_tensor *self, const int64_t *size, int64_t size_n)
{
    if (TNI_LIKELY(tni_views_are_contiguous(self) &&
                   tni_sizes_fit(self->numel, size, size_n, g->sizes))) {
        tni_geometry_like(g, self, (int)size_n);
        g->has_strides = false;
        return TN_OK;
    }
    return view_any(g, self, size, size_n);
}

tn_status tni_view_alias(tni_geometry *g, tn_tensor *self)
{
    tni_geometry_copy(g, self);
    return TN_OK;
}

tn_status tni_view_t(tni_geometry *g, tn_tensor *self)
{
    TN_CHECK(self->ndim <= 2, TN_INVALID,
             "t() expects a tensor with <= 2 dimensions, but self is %dD", self->ndim);
    tni_geometry_copy(g, self);
    if (self->ndim == 2)
        tni_geometry_swap(g, 0, 1);
    return TN_OK;
}

tn_status tni_view_transpose(tni_geometry *g, tn_tensor *self, int64_t dim0, int64_t dim1)
{
    int a, b;
    TN_TRY(tni_wrap_dim(dim0, self->ndim, &a));
    TN_TRY(tni_wrap_dim(dim1, self->ndim, &b));
    tni_geometry_copy(g, self);
    if (a != b)
        tni_geometry_swap(g, a, b);
    return TN_OK;
}

tn_status tni_view_permute(tni_geometry *g, tn_tensor *self, const int64_t *dims, int64_t dims_n)
{
    TN_CHECK(dims_n == self->ndim, TN_INVALID,
             "permute(sparse_coo): number of dimensions in the tensor input does not match the "
             "length of the desired ordering of dimensions i.e. input.dim() = %d is not equal to "
             "len(dims) = %lld",
             self->ndim, (long long)dims_n);
    tni_geometry_like(g, self, self->ndim);
    uint64_t seen = 0;
    for (int i = 0; i < self->ndim; i++) {
        int from;
        TN_TRY(tni_wrap_dim(dims[i], self->ndim, &from));
        TN_CHECK(!(seen >> from & 1), TN_INVALID, "permute(): duplicate dims are not allowed.");
        seen |= UINT64_C(1) << from;
        g->sizes[i] = self->sizes[from];
        g->strides[i] = self->strides[from];
    }
    return TN_OK;
}

tn_status tni_view_expand(tni_geometry *g, tn_tensor *self, const int64_t *size, int64_t size_n,
                          bool implicit)
{
    (void)implicit; /* a note of the tracer's, without effect */
    TN_TRY(tni_expand(self, size_n, size, g->sizes, g->strides));
    tni_geometry_like(g, self, (int)size_n);
    return tni_geometry_check_numel(g);
}

/* Drop the size-1 dimensions among @p which (a bit each). */
static void squeeze(tni_geometry *g, const tn_tensor *self, uint64_t which)
{
    int n = 0;
    for (int i = 0; i < self->ndim; i++) {
        if (self->sizes[i] == 1 && (which >> i & 1))
            continue;
        g->sizes[n] = self->sizes[i];
        g->strides[n] = self->strides[i];
        n++;
    }
    tni_geometry_like(g, self, n);
}

tn_status tni_view_squeeze(tni_geometry *g, tn_tensor *self)
{
    squeeze(g, self, ~UINT64_C(0));
    return TN_OK;
}

tn_status tni_view_squeeze_dim(tni_geometry *g, tn_tensor *self, int64_t dim)
{
    int at;
    TN_TRY(tni_wrap_dim(dim, self->ndim, &at));
    squeeze(g, self, UINT64_C(1) << at);
    return TN_OK;
}

tn_status tni_view_squeeze_dims(tni_geometry *g, tn_tensor *self, const int64_t *dim, int64_t dim_n)
{
    uint64_t which = 0;
    for (int64_t i = 0; i < dim_n; i++) {
        int at;
        TN_TRY(tni_wrap_dim(dim[i], self->ndim, &at));
        TN_CHECK(!(which >> at & 1), TN_INVALID,
                 "dim %d appears multiple times in the list of dims", at);
        which |= UINT64_C(1) << at;
    }
    squeeze(g, self, which);
    return TN_OK;
}

tn_status tni_view_unsqueeze(tni_geometry *g, tn_tensor *self, int64_t dim)
{
    TN_CHECK(self->ndim < TN_MAX_DIMS, TN_INVALID,
             "unsqueeze(): a tensor has at most %d dimensions, and self has that many",
             TN_MAX_DIMS);
    int at;
    TN_TRY(tni_wrap_dim(dim, self->ndim + 1, &at));
    tni_geometry_like(g, self, self->ndim + 1);
    for (int i = 0; i < at; i++) {
        g->sizes[i] = self->sizes[i];
        g->strides[i] = self->strides[i];
    }
    g->sizes[at] = 1;
    g->strides[at] = at < self->ndim ? self->sizes[at] * self->strides[at] : 1;
    for (int i = at; i < self->ndim; i++) {
        g->sizes[i + 1] = self->sizes[i];
        g->strides[i + 1] = self->strides[i];
    }
    return TN_OK;
}
