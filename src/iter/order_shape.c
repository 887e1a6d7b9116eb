/* SPDX-License-Identifier: MIT */
/* iter/order_shape.c: what extremes with places, sorting, selecting and running sums give. */
#include <inttypes.h>
#include "gen/shapes.h"
#include "iter/iter.h"

#define ALL (~UINT64_C(0))

static bool complex_input(const tn_tensor *t)
{
    return tn_dtype_is_complex((tn_dtype)t->dtype);
}

static TNI_COLD tn_status no_kernel(const char *kernel, const tn_tensor *t)
{
    TN_FAIL(TN_UNSUPPORTED, "\"%s\" not implemented for '%s'", kernel,
            tni_dtype_text((tn_dtype)t->dtype));
}

/* ---- max, min ---- */

static tn_status extreme(const char *name, tni_geometry *g, const tn_tensor *self)
{
    TN_CHECK(self->numel > 0, TN_INVALID,
             "%s(): Expected reduction dim to be specified for input.numel() == 0. Specify the "
             "reduction dim with the 'dim' argument.",
             name);
    if (complex_input(self))
        return no_kernel(name[1] == 'a' ? "max_all" : "min_all", self);
    tni_reduced_geometry(g, self, ALL, false);
    g->dtype = (tn_dtype)self->dtype;
    return TN_OK;
}

tn_status tni_shape_max(tni_geometry *g, tn_tensor *self)
{
    return extreme("max", g, self);
}

tn_status tni_shape_min(tni_geometry *g, tn_tensor *self)
{
    return extreme("min", g, self);
}

/* Values and places along one dimension, which must have elements. */
static tn_status values_and_places(const char *name, tni_geometry *g, const tn_tensor *self,
                                   int64_t dim, bool keepdim)
{
    int d;
    TN_TRY(tni_wrap_dim(dim, self->ndim, &d));
    TN_CHECK(self->ndim == 0 || self->sizes[d] != 0, TN_INDEX,
             "%s(): Expected reduction dim %d to have non-zero size.", name, d);
    for (int i = 0; i < 2; i++) {
        tni_reduced_geometry(&g[i], self, UINT64_C(1) << d, keepdim);
        g[i].dtype = i == 0 ? (tn_dtype)self->dtype : TN_DTYPE_I64;
    }
    return TN_OK;
}

static tn_status extreme_dim(const char *name, tni_geometry *g, const tn_tensor *self, int64_t dim,
                             bool keepdim)
{
    TN_TRY(values_and_places(name, g, self, dim, keepdim));
    TN_CHECK(!complex_input(self), TN_INVALID, "%s(): does not support complex input", name);
    return TN_OK;
}

tn_status tni_shape_max_dim(tni_geometry *g, tn_tensor *self, int64_t dim, bool keepdim)
{
    return extreme_dim("max", g, self, dim, keepdim);
}

tn_status tni_shape_min_dim(tni_geometry *g, tn_tensor *self, int64_t dim, bool keepdim)
{
    return extreme_dim("min", g, self, dim, keepdim);
}

static tn_status place(const char *name, tni_geometry *g, const tn_tensor *self, tn_opt_int dim,
                       bool keepdim)
{
    uint64_t dims = ALL;
    TN_CHECK(!complex_input(self), TN_INVALID, "%s(): does not support complex input", name);
    TN_CHECK(self->dtype != TN_DTYPE_BOOL, TN_INVALID, "%s(): does not support bool input", name);
    if (dim.has) {
        int d;
        TN_TRY(tni_wrap_dim(dim.value, self->ndim, &d));
        TN_CHECK(self->ndim == 0 || self->sizes[d] != 0, TN_INDEX,
                 "%s(): Expected reduction dim %d to have non-zero size.", name, d);
        dims = UINT64_C(1) << d;
    } else {
        TN_CHECK(self->numel != 0, TN_INDEX,
                 "%s(): Expected reduction dim to be specified for input.numel() == 0.", name);
    }
    tni_reduced_geometry(g, self, dims, keepdim);
    g->dtype = TN_DTYPE_I64;
    return TN_OK;
}

tn_status tni_shape_argmax(tni_geometry *g, tn_tensor *self, tn_opt_int dim, bool keepdim)
{
    return place("argmax", g, self, dim, keepdim);
}

tn_status tni_shape_argmin(tni_geometry *g, tn_tensor *self, tn_opt_int dim, bool keepdim)
{
    return place("argmin", g, self, dim, keepdim);
}

/* ---- running sums ---- */

static tn_status running(const char *kernel, tni_geometry *g, const tn_tensor *self, int64_t dim,
                         tn_dtype dtype)
{
    int d;
    TN_TRY(tni_wrap_dim(dim, self->ndim, &d));
    /* One number is only copied, as is none. */
    TN_CHECK(dtype != TN_DTYPE_BOOL || self->ndim == 0 || self->numel == 0, TN_UNSUPPORTED,
             "\"%s\" not implemented for 'Bool'", kernel);
    tni_reduced_geometry(g, self, 0, true);
    if (dtype == TN_DTYPE_NONE)
        dtype = tn_dtype_is_integral((tn_dtype)self->dtype, true) ? TN_DTYPE_I64
                                                                  : (tn_dtype)self->dtype;
    g->dtype = dtype;
    return TN_OK;
}

tn_status tni_shape_cumsum(tni_geometry *g, tn_tensor *self, int64_t dim, tn_dtype dtype)
{
    return running("cumsum_out_cpu", g, self, dim, dtype);
}

tn_status tni_shape_cumprod(tni_geometry *g, tn_tensor *self, int64_t dim, tn_dtype dtype)
{
    return running("cumprod_out_cpu", g, self, dim, dtype);
}

/* ---- sorting: the layout of the input stays ---- */

static tn_status sorted(tni_geometry *g, const tn_tensor *self, int64_t dim)
{
    int d;
    TN_TRY(tni_wrap_dim(dim, self->ndim, &d));
    TN_CHECK(!complex_input(self), TN_INVALID, " Sort does not support complex dtypes on CPU");
    for (int i = 0; i < 2; i++) {
        tni_reduced_geometry(&g[i], self, 0, true);
        tni_preserve_strides(self, g[i].strides);
        g[i].has_strides = true;
        g[i].dtype = i == 0 ? (tn_dtype)self->dtype : TN_DTYPE_I64;
    }
    return TN_OK;
}

tn_status tni_shape_sort(tni_geometry *g, tn_tensor *self, int64_t dim, bool descending)
{
    (void)descending;
    return sorted(g, self, dim);
}

tn_status tni_shape_sort_stable(tni_geometry *g, tn_tensor *self, tn_opt_bool stable, int64_t dim,
                                bool descending)
{
    (void)stable;
    (void)descending;
    return sorted(g, self, dim);
}

tn_status tni_shape_topk(tni_geometry *g, tn_tensor *self, int64_t k, int64_t dim, bool largest,
                         bool sorted_)
{
    int d;
    (void)largest;
    (void)sorted_;
    TN_TRY(tni_wrap_dim(dim, self->ndim, &d));
    TN_CHECK(k >= 0 && k <= (self->ndim ? self->sizes[d] : 1), TN_INVALID,
             "selected index k out of range");
    TN_CHECK(!complex_input(self), TN_INVALID, " topk does not support complex dtypes on CPU");
    TN_CHECK(self->dtype != TN_DTYPE_BOOL, TN_INVALID, "topk does not support bool dtypes on CPU");
    for (int i = 0; i < 2; i++) {
        tni_reduced_geometry(&g[i], self, 0, true);
        if (self->ndim)
            g[i].sizes[d] = k;
        g[i].dtype = i == 0 ? (tn_dtype)self->dtype : TN_DTYPE_I64;
    }
    return TN_OK;
}

/* ---- the middle, the k-th, the most frequent ---- */

tn_status tni_shape_median_dim(tni_geometry *g, tn_tensor *self, int64_t dim, bool keepdim)
{
    TN_TRY(values_and_places("median", g, self, dim, keepdim));
    if (complex_input(self) || self->dtype == TN_DTYPE_BOOL)
        return no_kernel("median_out", self);
    return TN_OK;
}

tn_status tni_shape_kthvalue(tni_geometry *g, tn_tensor *self, int64_t k, int64_t dim, bool keepdim)
{
    int d;
    TN_TRY(tni_wrap_dim(dim, self->ndim, &d));
    TN_TRY(values_and_places("kthvalue", g, self, dim, keepdim));
    TN_CHECK(k >= 1 && k <= (self->ndim ? self->sizes[d] : 1), TN_INVALID,
             "kthvalue(): selected number k out of range for dimension %d", d);
    if (complex_input(self) || self->dtype == TN_DTYPE_BOOL)
        return no_kernel("kthvalue_cpu", self);
    return TN_OK;
}

tn_status tni_shape_mode(tni_geometry *g, tn_tensor *self, int64_t dim, bool keepdim)
{
    TN_TRY(values_and_places("mode", g, self, dim, keepdim));
    if (complex_input(self))
        return no_kernel("mode_cpu", self);
    return TN_OK;
}
