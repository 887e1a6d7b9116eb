/* SPDX-License-Identifier: MIT */
/* iter/stat_shape.c: what any, all, prod, logsumexp, variances and norms give and refuse. */
#include <math.h>
#include "gen/shapes.h"
#include "iter/iter.h"

#define ALL (~UINT64_C(0))

static tn_status one_dim(const tn_tensor *self, int64_t dim, uint64_t *dims)
{
    int d;
    TN_TRY(tni_wrap_dim(dim, self->ndim, &d));
    *dims = UINT64_C(1) << d;
    return TN_OK;
}

/* ---- any, all ---- */

static void truth(tni_geometry *g, const tn_tensor *self, uint64_t dims, bool keepdim)
{
    tni_reduced_geometry(g, self, dims, keepdim);
    g->dtype = self->dtype == TN_DTYPE_U8 ? TN_DTYPE_U8 : TN_DTYPE_BOOL;
}

tn_status tni_shape_any(tni_geometry *g, tn_tensor *self)
{
    truth(g, self, ALL, false);
    return TN_OK;
}

tn_status tni_shape_any_dim(tni_geometry *g, tn_tensor *self, int64_t dim, bool keepdim)
{
    uint64_t dims;
    TN_TRY(one_dim(self, dim, &dims));
    truth(g, self, dims, keepdim);
    return TN_OK;
}

tn_status tni_shape_any_dims(tni_geometry *g, tn_tensor *self, const int64_t *dim, int64_t dim_n,
                             bool keepdim)
{
    uint64_t dims = 0;
    if (!dim || dim_n > 0)
        TN_TRY(tni_reduced_dims(dim, dim_n, self->ndim, &dims));
    truth(g, self, dims, keepdim);
    return TN_OK;
}

/* ---- prod ---- */

static tn_dtype prod_dtype(const tn_tensor *self, tn_dtype dtype)
{
    if (dtype != TN_DTYPE_NONE)
        return dtype;
    return tn_dtype_is_integral((tn_dtype)self->dtype, true) ? TN_DTYPE_I64 : (tn_dtype)self->dtype;
}

tn_status tni_shape_prod(tni_geometry *g, tn_tensor *self, tn_dtype dtype)
{
    tni_reduced_geometry(g, self, ALL, false);
    g->dtype = prod_dtype(self, dtype);
    return TN_OK;
}

tn_status tni_shape_prod_dim(tni_geometry *g, tn_tensor *self, int64_t dim, bool keepdim,
                             tn_dtype dtype)
{
    uint64_t dims;
    TN_TRY(one_dim(self, dim, &dims));
    tni_reduced_geometry(g, self, dims, keepdim);
    g->dtype = prod_dtype(self, dtype);
    return TN_OK;
}

/* ---- logsumexp ---- */

tn_status tni_shape_logsumexp(tni_geometry *g, tn_tensor *self, const int64_t *dim, int64_t dim_n,
                              bool keepdim)
{
    uint64_t dims;
    tn_dtype dtype = (tn_dtype)self->dtype;
    TN_TRY(tni_reduced_dims(dim, dim_n, self->ndim, &dims));
    tni_reduced_geometry(g, self, dims, keepdim);
    g->dtype = tn_dtype_is_integral(dtype, true) ? tn_default_dtype() : dtype;
    return TN_OK;
}

/* ---- variances ---- */

static tn_dtype real_dtype(tn_dtype dtype)
{
    return dtype == TN_DTYPE_C64 ? TN_DTYPE_F32 : dtype == TN_DTYPE_C128 ? TN_DTYPE_F64 : dtype;
}

static tn_status variance(const char *name, tni_geometry *g, int results, const tn_tensor *self,
                          const int64_t *dim, int64_t dim_n, bool keepdim)
{
    uint64_t dims;
    tn_dtype dtype = (tn_dtype)self->dtype;
    TN_CHECK(!tn_dtype_is_integral(dtype, true), TN_INVALID,
             "%s only support floating point and complex dtypes", name);
    TN_TRY(tni_reduced_dims(dim, dim_n, self->ndim, &dims));
    for (int i = 0; i < results; i++)
        tni_reduced_geometry(&g[i], self, dims, keepdim);
    g[0].dtype = real_dtype(dtype);
    if (results > 1)
        g[1].dtype = dtype;
    return TN_OK;
}

tn_status tni_shape_var(tni_geometry *g, tn_tensor *self, const int64_t *dim, int64_t dim_n,
                        const tn_scalar *correction, bool keepdim)
{
    (void)correction;
    return variance("std and var", g, 1, self, dim, dim_n, keepdim);
}

tn_status tni_shape_var_mean(tni_geometry *g, tn_tensor *self, const int64_t *dim, int64_t dim_n,
                             const tn_scalar *correction, bool keepdim)
{
    (void)correction;
    return variance("var_mean", g, 2, self, dim, dim_n, keepdim);
}

tn_status tni_shape_std_mean(tni_geometry *g, tn_tensor *self, const int64_t *dim, int64_t dim_n,
                             const tn_scalar *correction, bool keepdim)
{
    (void)correction;
    return variance("std_mean", g, 2, self, dim, dim_n, keepdim);
}

/* ---- norms ---- */

static tn_status check_norm_dtype(tn_dtype x, tn_dtype dtype)
{
    TN_CHECK(tn_dtype_is_floating(dtype) || tn_dtype_is_complex(dtype), TN_INVALID,
             "linalg.vector_norm: dtype should be floating point or complex, but got %s",
             tni_dtype_text(dtype));
    TN_CHECK(tn_dtype_is_complex(x) == tn_dtype_is_complex(dtype), TN_INVALID,
             "linalg.vector_norm: dtype should be %s for %s inputs, but got %s",
             tn_dtype_is_complex(x) ? "complex" : "real",
             tn_dtype_is_complex(x) ? "complex" : "real", tni_dtype_text(dtype));
    TN_CHECK(tn_promote_types(x, dtype) == dtype, TN_INVALID,
             "linalg.vector_norm: the dtype of the input (%s) should be convertible without "
             "narrowing to the specified dtype (%s)",
             tni_dtype_text(x), tni_dtype_text(dtype));
    return TN_OK;
}

/* Norms of no elements without an identity. */
static tn_status check_identity(const tn_tensor *self, double ord, const int64_t *dim,
                                int64_t dim_n)
{
    if (self->numel != 0 || (ord >= 0.0 && !isinf(ord)))
        return TN_OK;
    TN_CHECK(dim && dim_n > 0, TN_INVALID,
             "linalg.vector_norm cannot compute the %g norm on an empty tensor because the "
             "operation does not have an identity",
             ord);
    for (int64_t i = 0; i < dim_n; i++) {
        int d;
        TN_TRY(tni_wrap_dim(dim[i], self->ndim, &d));
        TN_CHECK(self->ndim == 0 || self->sizes[d] != 0, TN_INVALID,
                 "linalg.vector_norm cannot compute the %g norm on the dimension %lldbecause this "
                 "dimension is empty and the operation does not have an identity",
                 ord, (long long)dim[i]);
    }
    return TN_OK;
}

tn_status tni_shape_linalg_vector_norm(tni_geometry *g, tn_tensor *self, tn_scalar ord,
                                       const int64_t *dim, int64_t dim_n, bool keepdim,
                                       tn_dtype dtype)
{
    uint64_t dims;
    tn_dtype x = (tn_dtype)self->dtype;
    TN_CHECK(tn_dtype_is_floating(x) || tn_dtype_is_complex(x), TN_INVALID,
             "linalg.vector_norm: Expected a floating point or complex tensor as input. Got %s",
             tni_dtype_text(x));
    TN_CHECK(ord.kind != TN_SCALAR_COMPLEX, TN_INVALID,
             "linalg.vector_norm: Expected a non-complex scalar as the order of norm.");
    TN_TRY(check_identity(self, tn_scalar_to_double(ord), dim, dim_n));
    if (dtype != TN_DTYPE_NONE)
        TN_TRY(check_norm_dtype(x, dtype));
    TN_TRY(tni_reduced_dims(dim, dim_n, self->ndim, &dims));
    tni_reduced_geometry(g, self, dims, keepdim);
    g->dtype = real_dtype(dtype == TN_DTYPE_NONE ? x : dtype);
    return TN_OK;
}

/* ---- sums of what counts ---- */

tn_status tni_shape_nansum(tni_geometry *g, tn_tensor *self, const int64_t *dim, int64_t dim_n,
                           bool keepdim, tn_dtype dtype)
{
    uint64_t dims;
    tn_dtype x = (tn_dtype)self->dtype;
    TN_CHECK(!tn_dtype_is_complex(x), TN_INVALID, "nansum on CPU does not support complex inputs");
    TN_TRY(tni_reduced_dims(dim, dim_n, self->ndim, &dims));
    bool real = dtype == TN_DTYPE_NONE || tn_dtype_is_floating(dtype);
    TN_CHECK(real || tn_dtype_is_integral(x, true), TN_UNSUPPORTED,
             "\"nansum_cpu\" not implemented for '%s'", tni_dtype_text(dtype));
    tni_reduced_geometry(g, self, dims, keepdim);
    g->dtype = prod_dtype(self, dtype);
    return TN_OK;
}

tn_status tni_shape_count_nonzero(tni_geometry *g, tn_tensor *self, tn_opt_int dim)
{
    uint64_t dims = ALL;
    if (dim.has)
        TN_TRY(one_dim(self, dim.value, &dims));
    tni_reduced_geometry(g, self, dims, false);
    g->dtype = TN_DTYPE_I64;
    return TN_OK;
}

tn_status tni_shape_count_nonzero_dims(tni_geometry *g, tn_tensor *self, const int64_t *dim,
                                       int64_t dim_n)
{
    uint64_t dims;
    TN_TRY(tni_reduced_dims(dim, dim_n, self->ndim, &dims));
    tni_reduced_geometry(g, self, dims, false);
    g->dtype = TN_DTYPE_I64;
    return TN_OK;
}
