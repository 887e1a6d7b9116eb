/* SPDX-License-Identifier: MIT */
/* iter/reduce_shape.c: what reductions give: the sizes that are left, row-major, and the dtype. */
#include "gen/shapes.h"
#include "iter/iter.h"

#include <inttypes.h>

tn_status tni_reduced_dims(const int64_t *dim, int64_t dim_n, int ndim, uint64_t *out)
{
    uint64_t bits = 0;
    for (int64_t i = 0; dim && i < dim_n; i++) {
        int d;
        TN_TRY(tni_wrap_dim(dim[i], ndim, &d));
        TN_CHECK(!(bits & (UINT64_C(1) << d)), TN_INVALID,
                 "dim %d appears multiple times in the list of dims", d);
        bits |= UINT64_C(1) << d;
    }
    *out = dim && dim_n > 0 ? bits : ~UINT64_C(0);
    return TN_OK;
}

void tni_reduced_geometry(tni_geometry *g, const tn_tensor *self, uint64_t dims, bool keepdim)
{
    g->device = self->device;
    g->has_strides = false;
    g->offset = 0;
    g->ndim = 0;
    for (int d = 0; d < self->ndim; d++) {
        bool reduced = dims & (UINT64_C(1) << d);
        if (!reduced || keepdim)
            g->sizes[g->ndim++] = reduced ? 1 : self->sizes[d];
    }
}

/* ---- sum ---- */

/* Integers and bool add up to int64. */
static tn_dtype sum_dtype(const tn_tensor *self, tn_dtype dtype)
{
    if (dtype != TN_DTYPE_NONE)
        return dtype;
    return tn_dtype_is_integral((tn_dtype)self->dtype, true) ? TN_DTYPE_I64 : (tn_dtype)self->dtype;
}

tn_status tni_shape_sum(tni_geometry *g, tn_tensor *self, tn_dtype dtype)
{
    tni_reduced_geometry(g, self, ~UINT64_C(0), false);
    g->dtype = sum_dtype(self, dtype);
    return TN_OK;
}

tn_status tni_shape_sum_dim(tni_geometry *g, tn_tensor *self, const int64_t *dim, int64_t dim_n,
                            bool keepdim, tn_dtype dtype)
{
    uint64_t dims;
    TN_TRY(tni_reduced_dims(dim, dim_n, self->ndim, &dims));
    tni_reduced_geometry(g, self, dims, keepdim);
    g->dtype = sum_dtype(self, dtype);
    return TN_OK;
}

/* ---- mean ---- */

static tn_status mean_dtype(const tn_tensor *self, tn_dtype dtype, tn_dtype *out)
{
    tn_dtype found = dtype == TN_DTYPE_NONE ? (tn_dtype)self->dtype : dtype;
    TN_CHECK(
        !tn_dtype_is_integral(found, true), TN_INVALID,
        "mean(): could not infer output dtype. %s dtype must be either a floating point or complex "
        "dtype. Got: %s",
        dtype == TN_DTYPE_NONE ? "Input" : "Optional", tni_dtype_text(found));
    *out = found;
    return TN_OK;
}

tn_status tni_shape_mean(tni_geometry *g, tn_tensor *self, tn_dtype dtype)
{
    TN_TRY(mean_dtype(self, dtype, &g->dtype));
    tni_reduced_geometry(g, self, ~UINT64_C(0), false);
    return TN_OK;
}

tn_status tni_shape_mean_dim(tni_geometry *g, tn_tensor *self, const int64_t *dim, int64_t dim_n,
                             bool keepdim, tn_dtype dtype)
{
    uint64_t dims;
    TN_TRY(mean_dtype(self, dtype, &g->dtype));
    TN_TRY(tni_reduced_dims(dim, dim_n, self->ndim, &dims));
    tni_reduced_geometry(g, self, dims, keepdim);
    return TN_OK;
}

/* ---- amax, amin ---- */

static tn_status shape_extreme(const char *name, const char *loop, tni_geometry *g,
                               const tn_tensor *self, const int64_t *dim, int64_t dim_n,
                               bool keepdim)
{
    uint64_t dims;
    if (self->numel == 0) {
        TN_CHECK(dim && dim_n > 0, TN_INVALID,
                 "%s(): Expected reduction dim to be specified for input.numel() == 0. Specify the "
                 "reduction dim with the 'dim' argument.",
                 name);
        for (int64_t i = 0; i < dim_n; i++) {
            int d;
            TN_TRY(tni_wrap_dim(dim[i], self->ndim, &d));
            TN_CHECK(self->sizes[d] != 0, TN_INDEX,
                     "%s(): Expected reduction dim %" PRId64 " to have non-zero size.", name,
                     dim[i]);
        }
    }
    TN_TRY(tni_reduced_dims(dim, dim_n, self->ndim, &dims));
    TN_CHECK(!tn_dtype_is_complex((tn_dtype)self->dtype), TN_UNSUPPORTED,
             "\"%s\" not implemented for '%s'", loop, tni_dtype_text((tn_dtype)self->dtype));
    tni_reduced_geometry(g, self, dims, keepdim);
    g->dtype = (tn_dtype)self->dtype;
    return TN_OK;
}

tn_status tni_shape_amax(tni_geometry *g, tn_tensor *self, const int64_t *dim, int64_t dim_n,
                         bool keepdim)
{
    return shape_extreme("amax", "max_values_cpu", g, self, dim, dim_n, keepdim);
}

tn_status tni_shape_amin(tni_geometry *g, tn_tensor *self, const int64_t *dim, int64_t dim_n,
                         bool keepdim)
{
    return shape_extreme("amin", "min_values_cpu", g, self, dim, dim_n, keepdim);
}
