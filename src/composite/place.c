/* SPDX-License-Identifier: MIT */
/* composite/place.c: writing slices and elements at places that an index says, slopes along
 * dimensions, and histograms, in terms of other operators. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "composite/leave.h"
#include "composite/out.h"
#include "core/fake.h"
#include "core/tensor.h"
#include "gen/composites.h"
#include "iter/iter.h"
#include "tenon/ops.h"

/* ---- slices at an index ---- */

/* The first of @p index that is not one of @p size places, where its values are at hand: indices of
 * other devices are looked at there. Negative ones count from the end if @p wraps. */
static tn_status find_outside(tn_tensor *index, int64_t size, bool wraps, bool *found, int64_t *bad)
{
    TN_AUTO(tn_tensor) whole = NULL;
    TN_AUTO(tn_tensor) line = NULL;
    *found = false;
    if (index->device.type != TN_DEVICE_CPU || tni_is_fake(index))
        return TN_OK;
    TN_TRY(tn_to_dtype(index, TN_DTYPE_I64, false, false, TN_FORMAT_NONE, &whole));
    TN_TRY(tn_contiguous(whole, TN_FORMAT_CONTIGUOUS, &line));
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
    return tni_leave(scope, put_slices(self, d, index, v), out);
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

tn_status tni_composite_fill_diagonal_(tn_tensor *self, tn_scalar fill_value, bool wrap)
{
    TN_AUTO(tn_tensor) diagonal = NULL;
    TN_CHECK(self->ndim >= 2, TN_INVALID, "dimensions must larger than 1");
    int64_t least = self->sizes[0], stride = 0;
    for (int d = 0; d < self->ndim; d++) {
        TN_CHECK(self->ndim == 2 || self->sizes[d] == self->sizes[0], TN_INVALID,
                 "all dimensions of input must be of equal length");
        least = self->sizes[d] < least ? self->sizes[d] : least;
        stride += self->strides[d];
    }
    /* Below the square a row is left out and the diagonal begins again. */
    int64_t step = self->ndim == 2 ? self->sizes[1] + 1 : 0;
    for (int64_t row = step; wrap && step && row < self->sizes[0]; row += step) {
        TN_AUTO(tn_tensor) rest = NULL;
        TN_AUTO(tn_tensor) again = NULL;
        TN_TRY(tn_narrow(self, 0, row, self->sizes[0] - row, &rest));
        TN_TRY(tn_diagonal(rest, 0, 0, 1, &again));
        TN_TRY(tn_fill_(again, fill_value));
    }
    TN_TRY(tn_as_strided(self, &least, 1, &stride, 1, tn_no_int(), &diagonal));
    return tn_fill_(diagonal, fill_value);
}

/* ---- slopes ---- */

/* How far apart the points are: a number, or their places. */
typedef struct distance {
    tn_scalar step; /* a real or complex number */
    tn_tensor *places;
} distance;

static tn_tensor *part(tn_tensor *t, int d, int64_t from, int64_t to)
{
    return tnx_slice(t, d, tn_some_int(from), tn_some_int(to), 1);
}

static tn_tensor *minus(tn_tensor *a, tn_tensor *b)
{
    return tnx_sub(a, b, tn_int(1));
}

/* (a f0 + b f1 + c f2) / h */
static tn_tensor *weighted(tn_tensor *f0, double a, tn_tensor *f1, double b, tn_tensor *f2,
                           double c, tn_scalar h)
{
    tn_tensor *sum =
        tnx_add(tnx_mul_scalar(f0, tn_float(a)), tnx_mul_scalar(f1, tn_float(b)), tn_int(1));
    return tnx_div_scalar(tnx_add(sum, tnx_mul_scalar(f2, tn_float(c)), tn_int(1)), h);
}

static tn_tensor *even_slope(tn_tensor *f, int d, int64_t n, tn_scalar h, int64_t edge)
{
    tn_scalar twice = h;
    twice.v.f *= 2.0;
    twice.imag *= 2.0;
    tn_tensor *inner = tnx_div_scalar(minus(part(f, d, 2, n), part(f, d, 0, n - 2)), twice);
    tn_tensor *low, *high;
    if (edge == 1) {
        low = tnx_div_scalar(minus(part(f, d, 1, 2), part(f, d, 0, 1)), h);
        high = tnx_div_scalar(minus(part(f, d, n - 1, n), part(f, d, n - 2, n - 1)), h);
    } else {
        low = weighted(part(f, d, 0, 1), -1.5, part(f, d, 1, 2), 2.0, part(f, d, 2, 3), -0.5, h);
        high = weighted(part(f, d, n - 3, n - 2), 0.5, part(f, d, n - 2, n - 1), -2.0,
                        part(f, d, n - 1, n), 1.5, h);
    }
    tn_tensor *all[] = {low, inner, high};
    return low && inner && high ? tnx_cat(all, 3, d) : NULL;
}

/* The slope of the parabola through three points, at the middle one. @p x: widths [n - 1]. */
static tn_tensor *uneven_slope(tn_tensor *f, int d, int ndim, int64_t n, tn_tensor *places,
                               int64_t edge)
{
    int64_t sizes[TN_MAX_DIMS];
    for (int i = 0; i < ndim; i++)
        sizes[i] = i == d ? -1 : 1;
    tn_tensor *w =
        tnx_reshape(minus(part(places, 0, 1, n), part(places, 0, 0, n - 1)), sizes, ndim);
    tn_tensor *w1 = part(w, d, 0, n - 2), *w2 = part(w, d, 1, n - 1);
    tn_tensor *both = tnx_add(w1, w2, tn_int(1));
    tn_tensor *a = tnx_neg(tnx_div(w2, tnx_mul(w1, both)));
    tn_tensor *b = tnx_div(minus(w2, w1), tnx_mul(w1, w2));
    tn_tensor *c = tnx_div(w1, tnx_mul(w2, both));
    tn_tensor *f0 = part(f, d, 0, n - 2), *f1 = part(f, d, 1, n - 1), *f2 = part(f, d, 2, n);
    tn_tensor *inner =
        tnx_add(tnx_add(tnx_mul(f0, a), tnx_mul(f1, b), tn_int(1)), tnx_mul(f2, c), tn_int(1));
    tn_tensor *low = tnx_div(minus(part(f, d, 1, 2), part(f, d, 0, 1)), part(w, d, 0, 1));
    tn_tensor *high =
        tnx_div(minus(part(f, d, n - 1, n), part(f, d, n - 2, n - 1)), part(w, d, n - 2, n - 1));
    if (edge == 2) { /* the same parabolas, at their ends */
        tn_tensor *s1 = part(w, d, 0, 1), *s2 = part(w, d, 1, 2), *s = tnx_add(s1, s2, tn_int(1));
        tn_tensor *e1 = tnx_div(minus(part(f, d, 1, 2), part(f, d, 0, 1)), s1);
        tn_tensor *e2 = tnx_div(minus(part(f, d, 2, 3), part(f, d, 1, 2)), s2);
        low = minus(e1, tnx_div(tnx_mul(minus(e2, e1), s1), s));
        s1 = part(w, d, n - 3, n - 2);
        s2 = part(w, d, n - 2, n - 1);
        s = tnx_add(s1, s2, tn_int(1));
        e1 = tnx_div(minus(part(f, d, n - 2, n - 1), part(f, d, n - 3, n - 2)), s1);
        e2 = tnx_div(minus(part(f, d, n - 1, n), part(f, d, n - 2, n - 1)), s2);
        high = tnx_add(e2, tnx_div(tnx_mul(minus(e2, e1), s2), s), tn_int(1));
    }
    tn_tensor *all[] = {low, inner, high};
    return low && inner && high ? tnx_cat(all, 3, d) : NULL;
}

static tn_status slope(tn_tensor *self, int d, distance s, int64_t edge, tn_tensor **out)
{
    tn_scope *scope;
    int64_t n = self->sizes[d];
    TN_CHECK(n >= edge + 1, TN_INVALID,
             "torch.gradient expected each dimension size to be at least edge_order+1");
    TN_CHECK(!s.places || (s.places->ndim == 1 && s.places->numel == n), TN_INVALID,
             "torch.gradient expected coordinates to have as many elements as the dimension, %lld",
             (long long)n);
    TN_TRY(tn_scope_enter(&scope));
    tn_tensor *f = tn_dtype_is_integral((tn_dtype)self->dtype, true)
                       ? tnx_to_dtype(self, tn_default_dtype(), false, false, TN_FORMAT_NONE)
                       : self;
    return tni_leave(scope,
                     s.places ? uneven_slope(f, d, self->ndim, n, s.places, edge)
                              : even_slope(f, d, n, s.step, edge),
                     out);
}

/* Along each of the dimensions, or all; one spacing for all or, where they are @p listed, one
 * each. */
static tn_status slopes(tn_tensor *self, const distance *s, int64_t s_n, bool listed,
                        const int64_t *dim, int64_t dim_n, bool all, int64_t edge, tn_tensor ***out,
                        int64_t *out_n)
{
    uint64_t seen = 0;
    int64_t n = all ? self->ndim : dim_n;
    bool fits = !listed || s_n == n;
    TN_CHECK(edge == 1 || edge == 2, TN_INVALID,
             "torch.gradient only supports edge_order=1 and edge_order=2.");
    TN_CHECK(self->dtype != TN_DTYPE_U8, TN_INVALID,
             "torch.gradient does not support uint8 input.");
    TN_CHECK(
        self->dtype != TN_DTYPE_BOOL, TN_INVALID,
        "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or "
        "`logical_xor()` operator instead.");
    TN_CHECK(fits || all, TN_INVALID,
             "torch.gradient expected spacing to be unspecified, a scalar or it's spacing and dim "
             "arguments to have the same length, but got a spacing argument of length %lld and a "
             "dim argument of length %lld.",
             (long long)s_n, (long long)dim_n);
    TN_CHECK(fits, TN_INVALID,
             "torch.gradient expected spacing to be unspecified, a scalar, or a list of length "
             "equal to 'self.dim() = %d', since dim argument was not given, but got a list of "
             "length %lld",
             self->ndim, (long long)s_n);
    for (int64_t i = 0; !all && i < n; i++) {
        int d;
        TN_TRY(tni_wrap_dim(dim[i], self->ndim, &d));
        TN_CHECK(!(seen >> d & 1), TN_INVALID, "dim %d appears multiple times in the list of dims",
                 d);
        seen |= UINT64_C(1) << d;
    }
    TN_CHECK(all || n == 0 || self->ndim > 0, TN_INDEX,
             "Dimension specified as %lld but tensor has no dimensions", (long long)*dim);
    tn_tensor **list = tni_alloc((size_t)(n ? n : 1) * sizeof *list);
    TN_CHECK(list, TN_NOMEM, "cannot allocate a list of %lld tensors", (long long)n);
    for (int64_t i = 0; i < n; i++) {
        int d = (int)i;
        tn_status status = all ? TN_OK : tni_wrap_dim(dim[i], self->ndim, &d);
        if (status == TN_OK)
            status = slope(self, d, s[listed ? i : 0], edge, &list[i]);
        if (status != TN_OK) {
            tn_tensor_list_free(list, i);
            return status;
        }
    }
    *out = list;
    *out_n = n;
    return TN_OK;
}

#define LIST tn_tensor ***out, int64_t *out_n

static tn_status number_slopes(tn_tensor *self, const tn_scalar *spacings, int64_t s_n, bool listed,
                               const int64_t *dim, int64_t dim_n, bool all, int64_t edge, LIST)
{
    distance s[TN_MAX_DIMS] = {{.step = tn_float(1.0)}};
    TN_CHECK(s_n <= TN_MAX_DIMS, TN_INVALID, "torch.gradient: too many spacings");
    for (int64_t i = 0; i < s_n; i++)
        s[i].step = spacings[i].kind == TN_SCALAR_COMPLEX
                        ? spacings[i]
                        : tn_float(tn_scalar_to_double(spacings[i]));
    return slopes(self, s, s_n, listed, dim, dim_n, all, edge, out, out_n);
}

static tn_status place_slopes(tn_tensor *self, tn_tensor *const *places, int64_t s_n,
                              const int64_t *dim, int64_t dim_n, bool all, int64_t edge, LIST)
{
    distance s[TN_MAX_DIMS] = {{.step = tn_float(1.0)}};
    TN_CHECK(s_n > 0 && s_n <= TN_MAX_DIMS, TN_INVALID,
             "torch.gradient expected a list of coordinates");
    for (int64_t i = 0; i < s_n; i++)
        s[i].places = places[i];
    return slopes(self, s, s_n, true, dim, dim_n, all, edge, out, out_n);
}

tn_status tni_composite_gradient_scalarint(tn_tensor *self, const tn_scalar *spacing,
                                           tn_opt_int dim, int64_t edge_order, LIST)
{
    return number_slopes(self, spacing, spacing ? 1 : 0, false, &dim.value, 1, !dim.has, edge_order,
                         out, out_n);
}

tn_status tni_composite_gradient_scalararray(tn_tensor *self, tn_scalar spacing, const int64_t *dim,
                                             int64_t dim_n, int64_t edge_order, LIST)
{
    return number_slopes(self, &spacing, 1, false, dim, dim_n, false, edge_order, out, out_n);
}

tn_status tni_composite_gradient_array(tn_tensor *self, const int64_t *dim, int64_t dim_n,
                                       int64_t edge_order, LIST)
{
    return number_slopes(self, NULL, 0, false, dim, dim_n, false, edge_order, out, out_n);
}

tn_status tni_composite_gradient_scalarrayint(tn_tensor *self, const tn_scalar *spacing,
                                              int64_t spacing_n, tn_opt_int dim, int64_t edge_order,
                                              LIST)
{
    return number_slopes(self, spacing, spacing_n, true, &dim.value, 1, !dim.has, edge_order, out,
                         out_n);
}

tn_status tni_composite_gradient_scalarrayarray(tn_tensor *self, const tn_scalar *spacing,
                                                int64_t spacing_n, const int64_t *dim,
                                                int64_t dim_n, int64_t edge_order, LIST)
{
    return number_slopes(self, spacing, spacing_n, true, dim, dim_n, false, edge_order, out, out_n);
}

tn_status tni_composite_gradient_tensorarrayint(tn_tensor *self, tn_tensor *const *spacing,
                                                int64_t spacing_n, tn_opt_int dim,
                                                int64_t edge_order, LIST)
{
    return place_slopes(self, spacing, spacing_n, &dim.value, 1, !dim.has, edge_order, out, out_n);
}

tn_status tni_composite_gradient_tensorarray(tn_tensor *self, tn_tensor *const *spacing,
                                             int64_t spacing_n, const int64_t *dim, int64_t dim_n,
                                             int64_t edge_order, LIST)
{
    return place_slopes(self, spacing, spacing_n, dim, dim_n, false, edge_order, out, out_n);
}

/* ---- histograms ---- */

/* Numbers with digits after the point: edges of bins of whole ones would fall together. */
static tn_status histogram_takes(const char *kernel, const tn_tensor *self)
{
    TN_CHECK(tn_dtype_is_floating((tn_dtype)self->dtype), TN_UNSUPPORTED,
             "\"%s\" not implemented for '%s'", kernel, tni_dtype_text((tn_dtype)self->dtype));
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
    TN_TRY(histogram_takes("histogram_cpu", self));
    TN_CHECK(bins->ndim == 1 && bins->numel > 0, TN_INVALID,
             "torch.histogram(): expected a vector of bin edges with elements");
    TN_CHECK(!weight || weight->numel == self->numel, TN_INVALID,
             "torch.histogramdd: if weight tensor is provided it should have the same shape as the "
             "input tensor");
    int64_t n = bins->numel - 1;
    TN_TRY(tn_scope_enter(&scope));
    const int64_t line = -1;
    tn_tensor *x = tnx_reshape(self, &line, 1);
    tn_tensor *last = tnx_select(bins, 0, n), *first_edge = tnx_select(bins, 0, 0);
    tn_tensor *inside = tnx_logical_and(tnx_ge(x, first_edge), tnx_le(x, last));
    /* The last bin has its upper edge too; what is outside counts nothing. */
    tn_tensor *at = tnx_sub_scalar(tnx_bucketize(x, bins, false, true), tn_int(1), tn_int(1));
    const tn_scalar low = tn_int(0), high = tn_int(n > 0 ? n - 1 : 0);
    at = tnx_clamp(at, &low, &high);
    tn_tensor *w =
        weight ? tnx_reshape(weight, &line, 1) : tnx_ones_like(x, NULL, TN_FORMAT_CONTIGUOUS);
    w = tnx_where_scalarother(inside, w, tn_int(0));
    tn_tensor *count = tnx_scatter_add(tnx_new_zeros(self, &n, 1, NULL), 0, at, w);
    if (density) {
        tn_tensor *width = minus(part(bins, 0, 1, n + 1), part(bins, 0, 0, n));
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
    } else if (self->numel > 0 && !tni_is_meta(self)) {
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
    int64_t n = bins + 1;
    TN_TRY(tn_new_empty(self, &n, 1, NULL, &edges));
    TN_TRY(tn_linspace_out(tn_float(low), tn_float(high), n, edges));
    return tn_histogram(self, edges, weight, density, hist, bin_edges);
}
