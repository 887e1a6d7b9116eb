/* SPDX-License-Identifier: MIT */
/* composite/place.c: writing slices and elements at places that an index says, in terms of other
 * operators. */
#include <stdio.h>
#include <string.h>
#include "composite/leave.h"
#include "core/at_hand.h"
#include "core/tensor.h"
#include "gen/composites.h"
#include "iter/iter.h"
#include "tenon/ops.h"

/* ---- slices at an index ---- */

/* The first of @p index that is not one of @p size places, where its values are at hand: others are
 * looked at where they are used. Negative ones count from the end if @p wraps. */
static tn_status find_outside(tn_tensor *index, int64_t size, bool wraps, bool *found, int64_t *bad)
{
    TN_AUTO(tn_tensor) whole = NULL;
    TN_AUTO(tn_tensor) line = NULL;
    *found = false;
    if (!tni_is_at_hand(index))
        return TN_OK;
    TN_TRY(tn_to_dtype(index, TN_DTYPE_I64, false, false, TN_FORMAT_NONE, &whole));
    TN_TRY(tn_contiguous(whole, TN_FORMAT_CONTIGUOUS, &line));
    if (!tni_is_at_hand(line))
        return TN_OK;
    const int64_t *value = line->data;
    for (int64_t i = 0; i < line->numel; i++)
        if (value[i] >= size || value[i] < (wraps ? -size : 0)) {
            *found = true;
            *bad = value[i];
            return TN_OK;
        }
    return TN_OK;
}

/* Each of @p index is a place along dimension @p d; @p op begins the message. */
static tn_status check_places(const char *op, const tn_tensor *self, int d, tn_tensor *index,
                              bool wraps)
{
    bool found;
    int64_t bad, size = self->ndim ? self->sizes[d] : 1;
    TN_TRY(find_outside(index, size, wraps, &found, &bad));
    TN_CHECK(!found, TN_INDEX, "%sindex %lld is out of bounds for dimension %d with size %lld", op,
             (long long)bad, d, (long long)size);
    return TN_OK;
}

/* With dimension @p d first, a 0-dim tensor as a vector. */
static tn_tensor *first(tn_tensor *t, int d)
{
    return t->ndim == 0 ? tnx_reshape(t, (const int64_t[]){1}, 1) : tnx_movedim_int(t, d, 0);
}

static tn_tensor *back(tn_tensor *t, const tn_tensor *like, int d)
{
    return like->ndim == 0 ? tnx_reshape(t, NULL, 0) : tnx_movedim_int(t, 0, d);
}

static tn_tensor *as_vector(tn_tensor *index)
{
    return index->ndim == 0 ? tnx_reshape(index, (const int64_t[]){1}, 1) : index;
}

static tn_tensor *put_slices(tn_tensor *self, int d, tn_tensor *index, tn_tensor *values)
{
    tn_tensor *at[1] = {as_vector(index)}, *to = first(self, d);
    return at[0] && to && values ? back(tnx_index_put(to, at, 1, values, false), self, d) : NULL;
}

/* The sizes of a slice at dimension @p d, as "3 5". */
static const char *slice_text(const tn_tensor *t, int d, char *buffer, size_t size)
{
    size_t n = 0;
    buffer[0] = 0;
    for (int i = 0; i < t->ndim && n < size; i++)
        if (i != d)
            n += (size_t)snprintf(buffer + n, size - n, n ? " %lld" : "%lld",
                                  (long long)t->sizes[i]);
    return buffer;
}

static bool same_slices(const tn_tensor *a, const tn_tensor *b, int d)
{
    bool same = (a->ndim ? a->ndim : 1) == (b->ndim ? b->ndim : 1);
    for (int i = 0; same && i < a->ndim; i++)
        same = i == d || a->sizes[i] == b->sizes[i];
    return same;
}

static tn_status check_index_copy(tn_tensor *self, int d, tn_tensor *index, tn_tensor *source)
{
    char to[TNI_SIZES_TEXT], from[TNI_SIZES_TEXT];
    TN_CHECK(index->ndim <= 1, TN_INDEX,
             "index_copy_(): Index should have dimension 1 or 0 (got %d)", index->ndim);
    TN_CHECK(source->ndim > 0 || index->numel == 1, TN_INDEX,
             "index_copy_(): When source is scalar, index should have one element (got %lld)",
             (long long)index->numel);
    TN_CHECK(
        source->ndim == self->ndim || source->ndim == 0 || self->ndim == 0, TN_INDEX,
        "index_copy_(): When source and destination are not scalars, their dimensionality must "
        "match. Source dimensionality (%d), destination dimensionality (%d)",
        source->ndim, self->ndim);
    TN_CHECK(index->dtype == TN_DTYPE_I64, TN_INVALID,
             "index_copy_(): Expected a long tensor for index, but got %s",
             tni_dtype_text((tn_dtype)index->dtype));
    TN_CHECK(
        self->dtype == source->dtype, TN_INVALID,
        "index_copy_(): self and source expected to have the same dtype, but got (self) %s and "
        "(source) %s",
        tni_dtype_text((tn_dtype)self->dtype), tni_dtype_text((tn_dtype)source->dtype));
    TN_CHECK(same_slices(self, source, d), TN_INVALID,
             "index_copy_(): Source/destination tensor must have same slice shapes. Destination "
             "slice shape: %s at dimension %d and source slice shape: %s at dimension 0.",
             slice_text(self, d, to, sizeof to), d, slice_text(source, d, from, sizeof from));
    int64_t given = source->ndim == 0 ? 1 : source->sizes[d];
    TN_CHECK(given == index->numel, TN_INDEX,
             "index_copy_(): Number of indices (%lld) should be equal to source.size(dim) (%lld)",
             (long long)index->numel, (long long)given);
    return check_places("index_copy_(): ", self, d, index, false);
}

tn_status tni_composite_index_copy(tn_tensor *self, int64_t dim, tn_tensor *index,
                                   tn_tensor *source, tn_tensor **out)
{
    int d;
    tn_scope *scope;
    TN_TRY(tni_wrap_dim(dim, self->ndim, &d));
    TN_TRY(check_index_copy(self, d, index, source));
    TN_TRY(tn_scope_enter(&scope));
    tn_tensor *values = source->ndim == 0 ? source : first(source, d);
    return tni_leave(scope,
                     tnx_contiguous(put_slices(self, d, index, values), TN_FORMAT_CONTIGUOUS), out);
}

static tn_status check_index_fill(tn_tensor *self, int64_t dim, tn_tensor *index, int *d)
{
    TN_TRY(tni_wrap_dim(dim, self->ndim, d));
    TN_CHECK(index->dtype == TN_DTYPE_I64, TN_INDEX,
             "index_fill_(): Expected dtype int64 for index.");
    TN_CHECK(index->ndim <= 1, TN_INVALID, "Index has to be a vector/scalar");
    return check_places("", self, *d, index, true);
}

tn_status tni_composite_index_fill_tensor(tn_tensor *self, int64_t dim, tn_tensor *index,
                                          tn_tensor *value, tn_tensor **out)
{
    int d;
    tn_scope *scope;
    TN_TRY(check_index_fill(self, dim, index, &d));
    TN_CHECK(value->ndim == 0, TN_INVALID,
             "index_fill_ only supports a 0-dimensional value tensor, but got tensor with %d "
             "dimension(s).",
             value->ndim);
    TN_CHECK(!tn_dtype_is_complex((tn_dtype)value->dtype) ||
                 tn_dtype_is_complex((tn_dtype)self->dtype),
             TN_INVALID,
             "index_fill_(): Converting complex Scalar to non-complex type is not supported");
    TN_TRY(tn_scope_enter(&scope));
    tn_tensor *v = tnx_to_dtype(value, (tn_dtype)self->dtype, false, false, TN_FORMAT_NONE);
    /* By a mask: a place that is named twice has the value, and its gradient, once. */
    int64_t n = self->ndim ? self->sizes[d] : 1, sizes[TN_MAX_DIMS];
    for (int i = 0; i < self->ndim; i++)
        sizes[i] = i == d ? n : 1;
    tn_tensor_opts truth = tn_opts(TN_DTYPE_BOOL, self->device);
    tn_tensor *mask = tnx_new_zeros(self, &n, 1, &truth);
    tn_tensor *yes = tnx_new_full(self, NULL, 0, tn_bool(true), &truth);
    mask = mask ? tnx_reshape(put_slices(mask, 0, index, yes), sizes, self->ndim) : NULL;
    return tni_leave(scope, tnx_masked_fill_tensor_(tnx_clone(self, TN_FORMAT_PRESERVE), mask, v),
                     out);
}

tn_status tni_composite_index_fill(tn_tensor *self, int64_t dim, tn_tensor *index, tn_scalar value,
                                   tn_tensor **out)
{
    int d;
    tn_scope *scope;
    TN_TRY(check_index_fill(self, dim, index, &d));
    TN_CHECK(value.kind != TN_SCALAR_COMPLEX || tn_dtype_is_complex((tn_dtype)self->dtype),
             TN_INVALID,
             "index_fill_(): Converting complex Scalar to non-complex type is not supported");
    TN_TRY(tn_scope_enter(&scope));
    tn_tensor *v = tnx_new_full(self, NULL, 0, value, NULL);
    /* Written as a copy would be, whose layout is that of dense tensors alone. */
    tn_tensor *to = self->flags & TNI_DENSE ? self : tnx_clone(self, TN_FORMAT_PRESERVE);
    return tni_leave(scope, to ? put_slices(to, d, index, v) : NULL, out);
}

tn_status tni_composite_index_reduce(tn_tensor *self, int64_t dim, tn_tensor *index,
                                     tn_tensor *source, const char *reduce, bool include_self,
                                     tn_tensor **out)
{
    int d;
    tn_scope *scope;
    TN_CHECK(strcmp(reduce, "prod") == 0 || strcmp(reduce, "mean") == 0 ||
                 strcmp(reduce, "amax") == 0 || strcmp(reduce, "amin") == 0,
             TN_INVALID,
             "index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got %s.",
             reduce);
    TN_TRY(tni_check_slices("index_reduce_", self, dim, index, source, &d));
    bool outside;
    int64_t bad;
    TN_TRY(find_outside(index, self->ndim ? self->sizes[d] : 1, false, &outside, &bad));
    TN_CHECK(!outside, TN_INDEX, "index out of range in self");
    TN_TRY(tn_scope_enter(&scope));
    int64_t sizes[TN_MAX_DIMS];
    for (int i = 0; i < source->ndim; i++)
        sizes[i] = i == d ? source->sizes[d] : 1;
    tn_tensor *at =
        tnx_expand(tnx_reshape(index, sizes, source->ndim), source->sizes, source->ndim, false);
    return tni_leave(scope, tnx_scatter_reduce(self, d, at, source, reduce, include_self), out);
}

/* ---- elements at places in memory order ---- */

tn_status tni_composite_put(tn_tensor *self, tn_tensor *index, tn_tensor *source, bool accumulate,
                            tn_tensor **out)
{
    tn_scope *scope;
    TN_CHECK(index->dtype == TN_DTYPE_I64, TN_INVALID,
             "put_(): Expected a long tensor for index, but got %s",
             tni_dtype_text((tn_dtype)index->dtype));
    TN_CHECK(self->dtype == source->dtype, TN_INVALID,
             "put_(): self and source expected to have the same dtype, but got self.dtype = %s and "
             "source.dtype = %s",
             tni_dtype_text((tn_dtype)self->dtype), tni_dtype_text((tn_dtype)source->dtype));
    TN_CHECK(index->numel == source->numel, TN_INDEX,
             "put_(): Expected source and index to have the same number of elements, but got "
             "source.numel() = %lld, index.numel() = %lld",
             (long long)source->numel, (long long)index->numel);
    TN_CHECK(self->numel > 0 || index->numel == 0, TN_INDEX,
             "put_(): Tried to put elements into an empty tensor");
    bool outside;
    int64_t bad;
    TN_TRY(find_outside(index, self->numel, true, &outside, &bad));
    TN_CHECK(!outside, TN_INDEX,
             "out of range: tried to access index %lld on a tensor of %lld elements.",
             (long long)bad, (long long)self->numel);
    TN_TRY(tn_scope_enter(&scope));
    const int64_t line = -1;
    tn_tensor *at[1] = {tnx_reshape(index, &line, 1)};
    tn_tensor *flat = tnx_reshape(self, &line, 1), *from = tnx_reshape(source, &line, 1);
    tn_tensor *made = at[0] ? tnx_index_put(flat, at, 1, from, accumulate) : NULL;
    made = tnx_view(made, self->sizes, self->ndim);
    if (!(self->flags & TNI_CONTIGUOUS)) /* as a copy of it lies */
        made = tnx_copy_(tnx_empty_like(self, NULL, TN_FORMAT_NONE), made, false);
    return tni_leave(scope, made, out);
}

/* The diagonals below the first one: the whole ones at once, and what is left of the last. */
static tn_status fill_again(tn_tensor *self, tn_scalar fill_value)
{
    TN_AUTO(tn_tensor) whole = NULL;
    TN_AUTO(tn_tensor) rest = NULL;
    int64_t columns = self->sizes[1], step = columns + 1, below = self->sizes[0] - step;
    if (below <= 0)
        return TN_OK;
    int64_t sizes[] = {(below + 1) / step, columns};
    int64_t strides[] = {step * self->strides[0], self->strides[0] + self->strides[1]};
    if (sizes[0] > 0) {
        TN_TRY(tn_as_strided(self, sizes, 2, strides, 2, tn_some_int(self->offset + strides[0]),
                             &whole));
        TN_TRY(tn_fill_(whole, fill_value));
    }
    int64_t row = step * (sizes[0] + 1), left = self->sizes[0] - row;
    if (left <= 0)
        return TN_OK;
    TN_TRY(tn_as_strided(self, &left, 1, strides + 1, 1,
                         tn_some_int(self->offset + row * self->strides[0]), &rest));
    return tn_fill_(rest, fill_value);
}

tn_status tni_composite_fill_diagonal_(tn_tensor *self, tn_scalar fill_value, bool wrap)
{
    TN_AUTO(tn_tensor) diagonal = NULL;
    TN_CHECK(self->ndim >= 2, TN_INVALID, "dimensions must larger than 1");
    int64_t least = self->sizes[0], stride = 0;
    for (int d = 0; d < self->ndim; d++) {
        TN_CHECK(self->ndim == 2 || self->sizes[d] == self->sizes[0], TN_INVALID,
                 "all dimensions of input must be of equal length");
        least = self->sizes[d] < least ? self->sizes[d] : least;
        stride += self->numel ? self->strides[d] : 0;
    }
    /* Below the square a row is left out and the diagonal begins again: on other elements, where
     * rows are not the same one again and again. */
    if (wrap && self->ndim == 2 && self->numel && self->strides[0] != 0)
        TN_TRY(fill_again(self, fill_value));
    TN_TRY(tn_as_strided(self, &least, 1, &stride, 1, tn_no_int(), &diagonal));
    return tn_fill_(diagonal, fill_value);
}
