/* SPDX-License-Identifier: MIT */
/* composite/slopes.c: differences, slopes and integrals along dimensions in terms of other
 * operators. */
#include "composite/leave.h"
#include "core/at_hand.h"
#include "core/tensor.h"
#include "gen/composites.h"
#include "tenon/ops.h"

static tn_tensor *part(tn_tensor *t, int64_t dim, int64_t from, int64_t to)
{
    return tnx_slice(t, dim, tn_some_int(from), tn_some_int(to), 1);
}

/* Whole numbers in 64 bits: sums and differences of short ones need more bits than those have. */
static tn_tensor *wide(tn_tensor *t)
{
    if (!tn_dtype_is_integral((tn_dtype)t->dtype, false) || t->dtype == TN_DTYPE_I64)
        return t;
    return tnx_to_dtype(t, TN_DTYPE_I64, false, false, TN_FORMAT_NONE);
}

/* ---- differences ---- */

static tn_status check_joined(const tn_tensor *self, const tn_tensor *t, int dim)
{
    TN_CHECK(!t || t->ndim == self->ndim, TN_INVALID,
             "diff expects prepend or append to be the same dimension as input");
    for (int d = 0; t && d < t->ndim; d++)
        TN_CHECK(d == dim || t->sizes[d] == self->sizes[d], TN_INVALID,
                 "diff expects the shape of tensor to prepend or append to match that of input "
                 "except along the differencing dimension; input.size(%d) = %lld, but got "
                 "tensor.size(%d) = %lld",
                 d, (long long)self->sizes[d], d, (long long)t->sizes[d]);
    return TN_OK;
}

tn_status tni_composite_diff(tn_tensor *self, int64_t n, int64_t dim, tn_tensor *prepend,
                             tn_tensor *append, tn_tensor **out)
{
    int d;
    tn_scope *scope;
    TN_CHECK(self->ndim > 0, TN_INVALID, "diff expects input to be at least one-dimensional");
    TN_TRY(tni_wrap_dim(dim, self->ndim, &d));
    TN_CHECK(n >= 0, TN_INVALID, "order must be non-negative but got %lld", (long long)n);
    TN_TRY(check_joined(self, prepend, d));
    TN_TRY(check_joined(self, append, d));
    tn_tensor *pieces[3];
    int64_t count = 0;
    if (prepend)
        pieces[count++] = prepend;
    pieces[count++] = self;
    if (append)
        pieces[count++] = append;
    if (n == 0) /* nothing is joined either */
        return tn_clone(self, TN_FORMAT_NONE, out);
    TN_TRY(tn_scope_enter(&scope));
    tn_tensor *x = count > 1 ? tnx_cat(pieces, count, d) : self;
    int64_t size = x ? x->sizes[d] : 0;
    if (x && n > 1 && size > 0 && (x->numel == 0 || tni_is_hollow(x))) {
        /* Any number of steps at once: there are no numbers to take differences of. */
        int64_t skipped = (n < size ? n : size) - 1;
        x = part(x, d, 0, size - skipped);
        n -= skipped;
        size -= skipped;
    }
    for (int64_t i = 0; x && i < n && size > 0; i++, size--) {
        tn_tensor *after = part(x, d, 1, size), *before = part(x, d, 0, size - 1);
        x = self->dtype == TN_DTYPE_BOOL ? tnx_logical_xor(after, before)
                                         : tnx_sub(after, before, tn_int(1));
    }
    if (size == 0 && x == self)
        x = tnx_clone(x, TN_FORMAT_NONE);
    return tni_leave(scope, x, out);
}

/* ---- integrals ---- */

/* The sum over @p d of neighbours' sums, times @p width if there is one. */
static tn_tensor *trapezoids(tn_tensor *y, int d, tn_tensor *width)
{
    int64_t n = y->sizes[d], dim = d;
    y = wide(y);
    tn_tensor *sides = tnx_add(part(y, d, 0, n - 1), part(y, d, 1, n), tn_int(1));
    return tnx_sum_dim(width ? tnx_mul(sides, width) : sides, &dim, 1, false, TN_DTYPE_NONE);
}

/* Nothing to integrate. */
static tn_tensor *no_area(tn_tensor *y, int d)
{
    int64_t sizes[TN_MAX_DIMS];
    int n = 0;
    for (int i = 0; i < y->ndim; i++)
        if (i != d)
            sizes[n++] = y->sizes[i];
    tn_tensor_opts opts = tn_opts((tn_dtype)y->dtype, y->device);
    return tnx_zeros(sizes, n, &opts);
}

tn_status tni_composite_trapezoid_dx(tn_tensor *y, tn_scalar dx, int64_t dim, tn_tensor **out)
{
    int d;
    tn_scope *scope;
    TN_TRY(tni_wrap_dim(dim, y->ndim, &d));
    TN_CHECK(y->ndim > 0, TN_INDEX, "Dimension specified as %lld but tensor has no dimensions",
             (long long)dim);
    TN_CHECK(y->dtype != TN_DTYPE_BOOL, TN_INVALID,
             "trapezoid: received a bool input for `y`, but bool is not supported");
    TN_CHECK(dx.kind != TN_SCALAR_COMPLEX && dx.kind != TN_SCALAR_BOOL, TN_INVALID,
             "trapezoid: Currently, we only support dx as a real number.");
    TN_TRY(tn_scope_enter(&scope));
    tn_tensor *area = y->sizes[d] == 0 ? no_area(y, d)
                                       : tnx_mul_scalar(trapezoids(y, d, NULL),
                                                        tn_float(tn_scalar_to_double(dx) / 2));
    return tni_leave(scope, area, out);
}

tn_status tni_composite_trapz_dx(tn_tensor *y, double dx, int64_t dim, tn_tensor **out)
{
    return tni_composite_trapezoid_dx(y, tn_float(dx), dim, out);
}

tn_status tni_composite_trapezoid_x(tn_tensor *y, tn_tensor *x, int64_t dim, tn_tensor **out)
{
    int d;
    tn_scope *scope;
    TN_TRY(tni_wrap_dim(dim, y->ndim, &d));
    TN_CHECK(y->ndim > 0, TN_INDEX, "Dimension specified as 0 but tensor has no dimensions");
    TN_CHECK(x->ndim > 0 && x->ndim <= y->ndim, TN_INVALID,
             "trapezoid: x must have as many dimensions as y, or one");
    TN_CHECK(y->dtype != TN_DTYPE_BOOL && x->dtype != TN_DTYPE_BOOL, TN_INVALID,
             "trapezoid: received a bool input for `x` or `y`, but bool is not supported");
    int own = x->ndim == 1 ? 0 : d - (y->ndim - x->ndim);
    TN_CHECK(y->sizes[d] == 0 || (own >= 0 && x->sizes[own] == y->sizes[d]), TN_INVALID,
             "trapezoid: There must be one `x` value for each sample point");
    TN_TRY(tn_scope_enter(&scope));
    if (y->sizes[d] == 0)
        return tni_leave(scope, no_area(y, d), out);
    int64_t n = x->sizes[own], sizes[TN_MAX_DIMS];
    x = wide(x);
    tn_tensor *width = tnx_sub(part(x, own, 1, n), part(x, own, 0, n - 1), tn_int(1));
    if (x->ndim == 1) {
        for (int i = 0; i < y->ndim; i++)
            sizes[i] = i == d ? n - 1 : 1;
        width = tnx_view(width, sizes, y->ndim);
    }
    return tni_leave(scope, tnx_div_scalar(trapezoids(y, d, width), tn_float(2)), out);
}

/* ---- running integrals ---- */

static tn_tensor *neighbours(tn_tensor *y, int d, int64_t n, bool difference)
{
    n = n ? n : 1; /* nothing has no neighbours either */
    y = wide(y);
    tn_tensor *before = tnx_slice(y, d, tn_some_int(0), tn_some_int(n - 1), 1);
    tn_tensor *after = tnx_slice(y, d, tn_some_int(1), tn_some_int(n), 1);
    return difference ? tnx_sub(after, before, tn_int(1)) : tnx_add(after, before, tn_int(1));
}

tn_status tni_composite_cumulative_trapezoid_x(tn_tensor *y, tn_tensor *x, int64_t dim,
                                               tn_tensor **out)
{
    int d;
    tn_scope *scope;
    TN_TRY(tni_wrap_dim(dim, y->ndim, &d));
    TN_CHECK(y->ndim > 0, x->ndim == 1 ? TN_INDEX : TN_INVALID, "%s",
             x->ndim == 1 ? "Dimension specified as 0 but tensor has no dimensions"
                          : "slice() cannot be applied to a 0-dim tensor.");
    TN_CHECK(x->ndim > 0 && x->ndim <= y->ndim, TN_INVALID,
             "cumulative_trapezoid: x must have as many dimensions as y, or one");
    TN_CHECK(
        y->dtype != TN_DTYPE_BOOL && x->dtype != TN_DTYPE_BOOL, TN_INVALID,
        "cumulative_trapezoid: received a bool input for `x` or `y`, but bool is not supported");
    int own = x->ndim == 1 ? 0 : d - (y->ndim - x->ndim);
    TN_CHECK(own >= 0 && x->sizes[own] == y->sizes[d], TN_INVALID,
             "cumulative_trapezoid: There must be one `x` value for each sample point");
    TN_TRY(tn_scope_enter(&scope));
    int64_t n = y->sizes[d], sizes[TN_MAX_DIMS];
    tn_tensor *width = neighbours(x, own, n, true);
    for (int i = 0; i < y->ndim; i++)
        sizes[i] = i == d && n > 0 ? n - 1 : i == d ? 0 : 1;
    if (x->ndim == 1)
        width = tnx_view(width, sizes, y->ndim);
    tn_tensor *parts = tnx_mul(neighbours(y, d, n, false), width);
    return tni_leave(scope, tnx_div_scalar(tnx_cumsum(parts, d, TN_DTYPE_NONE), tn_float(2)), out);
}

tn_status tni_composite_cumulative_trapezoid_dx(tn_tensor *y, tn_scalar dx, int64_t dim,
                                                tn_tensor **out)
{
    int d;
    tn_scope *scope;
    TN_TRY(tni_wrap_dim(dim, y->ndim, &d));
    TN_CHECK(y->dtype != TN_DTYPE_BOOL, TN_INVALID,
             "cumulative_trapezoid: received a bool input for `y`, but bool is not supported");
    TN_CHECK(y->ndim > 0, TN_INDEX, "slice() cannot be applied to a 0-dim tensor.");
    TN_CHECK(dx.kind != TN_SCALAR_COMPLEX && dx.kind != TN_SCALAR_BOOL, TN_INVALID,
             "cumulative_trapezoid: Currently, we only support dx as a real number.");
    TN_TRY(tn_scope_enter(&scope));
    tn_tensor *sums = tnx_cumsum(neighbours(y, d, y->sizes[d], false), d, TN_DTYPE_NONE);
    return tni_leave(scope, tnx_mul_scalar(sums, tn_float(tn_scalar_to_double(dx) / 2)), out);
}

/* ---- slopes ---- */

/* How far apart the points are: a number, or their places. */
typedef struct distance {
    tn_scalar step; /* a real or complex number */
    tn_tensor *places;
} distance;

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
    places = wide(places);
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
    TN_CHECK(!s.places || (s.places->ndim == 1 && s.places->numel == n), TN_INVALID,
             "torch.gradient expected coordinates to have as many elements as the dimension, %lld",
             (long long)n);
    TN_TRY(tn_scope_enter(&scope));
    tn_tensor *f = wide(self);
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
    for (int d = 0; d < self->ndim; d++)
        TN_CHECK(!(all || seen >> d & 1) || self->sizes[d] >= edge + 1, TN_INVALID,
                 "torch.gradient expected each dimension size to be at least edge_order+1");
    TN_CHECK(
        self->dtype != TN_DTYPE_BOOL, TN_INVALID,
        "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or "
        "`logical_xor()` operator instead.");
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
