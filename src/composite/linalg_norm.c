/* SPDX-License-Identifier: MIT */
/* composite/linalg_norm.c: norms of matrices, by number and by name. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "composite/leave.h"
#include "core/tensor.h"
#include "gen/composites.h"
#include "gen/kernels.h"
#include "shape/expand.h"
#include "tenon/ops.h"

static tn_status check_norm(const tn_tensor *t, tn_dtype dtype)
{
    tn_dtype x = (tn_dtype)t->dtype;
    bool complex = tn_dtype_is_complex(x);
    TN_CHECK(!tn_dtype_is_integral((tn_dtype)t->dtype, true), TN_INVALID,
             "linalg.matrix_norm: Expected a floating point or complex tensor as input. Got %s",
             tni_dtype_text((tn_dtype)t->dtype));
    if (dtype == TN_DTYPE_NONE)
        return TN_OK;
    TN_CHECK(!tn_dtype_is_integral(dtype, true), TN_INVALID,
             "linalg.matrix_norm: dtype should be floating point or complex, but got %s",
             tni_dtype_text(dtype));
    TN_CHECK(complex == tn_dtype_is_complex(dtype), TN_INVALID,
             "linalg.matrix_norm: dtype should be %s for %s inputs, but got %s",
             complex ? "complex" : "real", complex ? "complex" : "real", tni_dtype_text(dtype));
    TN_CHECK(tn_promote_types(x, dtype) == dtype, TN_INVALID,
             "linalg.matrix_norm: the dtype of the input (%s) should be convertible without "
             "narrowing to the specified dtype (%s)",
             tni_dtype_text(x), tni_dtype_text(dtype));
    return TN_OK;
}

static tn_status two_dims(const char *op, const tn_tensor *t, const int64_t *dim, int64_t dim_n,
                          int *a, int *b)
{
    if (TNI_UNLIKELY(dim_n != 2)) {
        char got[256] = "";
        for (int64_t i = 0; i < dim_n && strlen(got) + 24 < sizeof got; i++)
            snprintf(got + strlen(got), sizeof got - strlen(got), i ? " %lld" : "%lld",
                     (long long)dim[i]);
        TN_FAIL(TN_INVALID, "%s: dim must be a 2-tuple. Got %s", op, got);
    }
    TN_TRY(tni_wrap_dim(dim[0], t->ndim, a));
    TN_TRY(tni_wrap_dim(dim[1], t->ndim, b));
    TN_CHECK(*a != *b, TN_INVALID, "%s: dims must be different. Got (%lld, %lld)", op,
             (long long)dim[0], (long long)dim[1]);
    return TN_OK;
}

/* Singular values of the matrices that dimensions @p a and @p b make, along a new last dimension.
 */
static tn_tensor *values_over(tn_tensor *t, int a, int b)
{
    const int64_t from[] = {a, b}, to[] = {-2, -1};
    return tnx_linalg_svdvals(tnx_movedim(t, from, 2, to, 2), NULL);
}

/* Singular values are not computed in half the precision of a float. */
static tn_status check_precision(const tn_tensor *self, tn_dtype dtype)
{
    dtype = dtype == TN_DTYPE_NONE ? (tn_dtype)self->dtype : dtype;
    TN_CHECK(dtype != TN_DTYPE_F16 && dtype != TN_DTYPE_BF16, TN_INVALID,
             "linalg.matrix_norm: Low precision dtypes not supported. Got %s",
             tni_dtype_text(dtype));
    return TN_OK;
}

static tn_tensor *kept(tn_tensor *t, int a, int b, bool keepdim)
{
    int low = a < b ? a : b, high = a < b ? b : a;
    return keepdim ? tnx_unsqueeze(tnx_unsqueeze(t, low), high) : t;
}

static tn_tensor *in_dtype(tn_tensor *t, tn_dtype dtype)
{
    return dtype == TN_DTYPE_NONE ? t : tnx_to_dtype(t, dtype, false, false, TN_FORMAT_NONE);
}

tn_status tni_composite_linalg_matrix_norm(tn_tensor *self, tn_scalar ord, const int64_t *dim,
                                           int64_t dim_n, bool keepdim, tn_dtype dtype,
                                           tn_tensor **out)
{
    int a, b;
    tn_scope *scope;
    double p = tn_scalar_to_double(ord), size = fabs(p);
    const int64_t last = -1;
    TN_CHECK(ord.kind != TN_SCALAR_COMPLEX, TN_INVALID,
             "linalg.matrix_norm: Expected a non-complex scalar as the order of norm.");
    TN_CHECK(size == 2.0 || size == 1.0 || isinf(size), TN_INVALID,
             "linalg.matrix_norm: Order %g not supported.", p);
    TN_CHECK(self->ndim >= 2, TN_INVALID,
             "linalg.matrix_norm: The input tensor A must have at least 2 dimensions.");
    TN_TRY(check_norm(self, dtype));
    TN_TRY(two_dims("linalg.matrix_norm", self, dim, dim_n, &a, &b));
    if (size == 2.0)
        TN_TRY(check_precision(self, dtype));
    TN_TRY(tn_scope_enter(&scope));
    tn_tensor *x = in_dtype(self, dtype), *made;
    if (size == 2.0) {
        tn_tensor *s = values_over(x, a, b);
        if (s && s->ndim && s->sizes[s->ndim - 1] == 0 && p > 0) /* the norm of nothing */
            return tni_leave(
                scope, kept(tnx_sum_dim(s, &last, 1, false, TN_DTYPE_NONE), a, b, keepdim), out);
        made = p > 0 ? tnx_amax(s, &last, 1, false) : tnx_amin(s, &last, 1, false);
        return tni_leave(scope, kept(made, a, b, keepdim), out);
    }
    int64_t inner = size == 1.0 ? a : b, outer = size == 1.0 ? b : a;
    tn_tensor *sums = tnx_linalg_vector_norm(x, tn_int(1), &inner, 1, true, TN_DTYPE_NONE);
    if (p > 0 && sums && sums->sizes[outer] == 0) /* the norm of nothing */
        made = tnx_sum_dim(sums, &outer, 1, true, TN_DTYPE_NONE);
    else
        made = p > 0 ? tnx_amax(sums, &outer, 1, true) : tnx_amin(sums, &outer, 1, true);
    if (!keepdim) {
        const int64_t both[] = {a, b};
        made = tnx_squeeze_dims(made, both, 2);
    }
    return tni_leave(scope, made, out);
}

tn_status tni_composite_linalg_matrix_norm_str(tn_tensor *self, const char *ord, const int64_t *dim,
                                               int64_t dim_n, bool keepdim, tn_dtype dtype,
                                               tn_tensor **out)
{
    int a, b;
    tn_scope *scope;
    const int64_t last = -1;
    TN_CHECK(strcmp(ord, "fro") == 0 || strcmp(ord, "nuc") == 0, TN_INVALID,
             "linalg.matrix_norm: Order %s not supported.", ord);
    TN_CHECK(self->ndim >= 2, TN_INVALID,
             "linalg.matrix_norm: The input tensor A must have at least 2 dimensions.");
    TN_TRY(check_norm(self, dtype));
    TN_TRY(two_dims("linalg.matrix_norm", self, dim, dim_n, &a, &b));
    if (ord[0] == 'f')
        return tn_linalg_vector_norm(self, tn_int(2), dim, dim_n, keepdim, dtype, out);
    TN_TRY(check_precision(self, dtype));
    TN_TRY(tn_scope_enter(&scope));
    tn_tensor *s = values_over(in_dtype(self, dtype), a, b);
    return tni_leave(scope, kept(tnx_sum_dim(s, &last, 1, false, TN_DTYPE_NONE), a, b, keepdim),
                     out);
}

/* The dimensions of a vector or a matrix, if any are given. */
static tn_status one_or_two(const int64_t *dim, int64_t dim_n)
{
    char text[TNI_SIZES_TEXT];
    int shown = dim_n < TN_MAX_DIMS ? (int)dim_n : TN_MAX_DIMS;
    TN_CHECK(!dim || dim_n == 1 || dim_n == 2, TN_INVALID,
             "linalg.norm: If dim is specified, it must be of length 1 or 2. Got %s",
             tni_format_sizes(shown, dim, text, sizeof text));
    return TN_OK;
}

tn_status tni_composite_linalg_norm(tn_tensor *self, const tn_scalar *ord, const int64_t *dim,
                                    int64_t dim_n, bool keepdim, tn_dtype dtype, tn_tensor **out)
{
    const int64_t all[] = {0, 1};
    TN_TRY(one_or_two(dim, dim_n));
    TN_CHECK(
        dim || !ord || self->ndim == 1 || self->ndim == 2, TN_INVALID,
        "linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got %dD.",
        self->ndim);
    if (ord && ((dim && dim_n == 2) || (!dim && self->ndim == 2)))
        return tn_linalg_matrix_norm(self, *ord, dim ? dim : all, 2, keepdim, dtype, out);
    return tn_linalg_vector_norm(self, ord ? *ord : tn_float(2), dim, dim_n, keepdim, dtype, out);
}

tn_status tni_composite_linalg_norm_str(tn_tensor *self, const char *ord, const int64_t *dim,
                                        int64_t dim_n, bool keepdim, tn_dtype dtype,
                                        tn_tensor **out)
{
    const int64_t all[] = {0, 1};
    TN_TRY(one_or_two(dim, dim_n));
    TN_CHECK(
        dim || self->ndim == 1 || self->ndim == 2, TN_INVALID,
        "linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got %dD.",
        self->ndim);
    return tn_linalg_matrix_norm_str_ord(self, ord, dim ? dim : all, dim ? dim_n : 2, keepdim,
                                         dtype, out);
}

tn_status tni_composite_nuclear_norm_dim(tn_tensor *self, const int64_t *dim, int64_t dim_n,
                                         bool keepdim, tn_tensor **out)
{
    return tn_linalg_matrix_norm_str_ord(self, "nuc", dim, dim_n, keepdim, TN_DTYPE_NONE, out);
}

tn_status tni_composite_nuclear_norm(tn_tensor *self, bool keepdim, tn_tensor **out)
{
    const int64_t last[] = {-2, -1};
    return tn_linalg_matrix_norm_str_ord(self, "nuc", last, 2, keepdim, TN_DTYPE_NONE, out);
}
