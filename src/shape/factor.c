/* SPDX-License-Identifier: MIT */
/* shape/factor.c: what factorisations and solutions of batches of matrices look like, and what they
 * refuse. */
#include <string.h>
#include "gen/shapes.h"
#include "shape/geometry.h"

/* Who refuses a dtype: the operator, in its own name, or the kernel that lacks it (NULL: none). */
typedef struct refusals {
    const char *op, *whole, *half; /* kernels that lack whole numbers, and halves */
} refusals;

static bool is_half(tn_dtype dtype)
{
    return dtype == TN_DTYPE_F16 || dtype == TN_DTYPE_BF16;
}

static tn_status check_matrices(refusals r, const tn_tensor *t)
{
    tn_dtype dtype = (tn_dtype)t->dtype;
    bool whole = tn_dtype_is_integral(dtype, true);
    TN_CHECK(t->ndim >= 2, TN_INVALID, "%s: The input tensor A must have at least 2 dimensions.",
             r.op);
    TN_CHECK(!whole || r.whole, TN_INVALID,
             "%s: Expected a floating point or complex tensor as input. Got %s", r.op,
             tni_dtype_text(dtype));
    TN_CHECK(!is_half(dtype) || r.half, TN_INVALID,
             "%s: Low precision dtypes not supported. Got %s", r.op, tni_dtype_text(dtype));
    return TN_OK;
}

static tn_status check_kernel(refusals r, const tn_tensor *t)
{
    tn_dtype dtype = (tn_dtype)t->dtype;
    TN_CHECK(!tn_dtype_is_integral(dtype, true) && !is_half(dtype), TN_UNSUPPORTED,
             "\"%s\" not implemented for '%s'", is_half(dtype) ? r.half : r.whole,
             tni_dtype_text(dtype));
    return TN_OK;
}

static tn_status check_square(refusals r, const tn_tensor *t)
{
    TN_TRY(check_matrices(r, t));
    TN_CHECK(t->sizes[t->ndim - 2] == t->sizes[t->ndim - 1], TN_INVALID,
             "%s: A must be batches of square matrices, but they are %lld by %lld matrices", r.op,
             (long long)t->sizes[t->ndim - 2], (long long)t->sizes[t->ndim - 1]);
    return check_kernel(r, t);
}

/* The batch dimensions of @p t, and @p more of them to come. */
static void batch_of(tni_geometry *g, const tn_tensor *t, tn_dtype dtype, int more)
{
    tni_geometry_like(g, t, t->ndim - 2 + more);
    for (int d = 0; d < t->ndim - 2; d++)
        g->sizes[d] = t->sizes[d];
    g->has_strides = false;
    g->offset = 0;
    g->dtype = dtype;
}

static void matrices(tni_geometry *g, const tn_tensor *t, int64_t m, int64_t n)
{
    batch_of(g, t, (tn_dtype)t->dtype, 2);
    g->sizes[t->ndim - 2] = m;
    g->sizes[t->ndim - 1] = n;
}

/* The same, column by column: the layout that the reference's library writes, and users see. */
static void by_columns(tni_geometry *g, const tn_tensor *t, int64_t m, int64_t n)
{
    matrices(g, t, m, n);
    g->has_strides = true;
    g->strides[g->ndim - 2] = 1;
    g->strides[g->ndim - 1] = m > 1 ? m : 1;
    /* What cannot be multiplied has no elements, or is refused for its sizes. */
    int64_t step = m > 1 ? m : 1;
    for (int d = g->ndim - 3; d >= 0; d--) {
        int64_t size = d == g->ndim - 3 ? n : g->sizes[d + 1];
        if (!tni_i64_mul(step, size > 1 ? size : 1, &step))
            step = INT64_MAX;
        g->strides[d] = step;
    }
}

static void vectors(tni_geometry *g, const tn_tensor *t, tn_dtype dtype, int64_t n)
{
    batch_of(g, t, dtype, 1);
    g->sizes[t->ndim - 2] = n;
}

static void nothing(tni_geometry *g, const tn_tensor *t, tn_dtype dtype)
{
    tni_geometry_like(g, t, 1);
    g->sizes[0] = 0;
    g->has_strides = false;
    g->offset = 0;
    g->dtype = dtype;
}

static int64_t rows(const tn_tensor *t)
{
    return t->sizes[t->ndim - 2];
}

static int64_t columns(const tn_tensor *t)
{
    return t->sizes[t->ndim - 1];
}

static int64_t least(const tn_tensor *t)
{
    return rows(t) < columns(t) ? rows(t) : columns(t);
}

static tn_dtype real_of(const tn_tensor *t)
{
    return t->dtype == TN_DTYPE_C64    ? TN_DTYPE_F32
           : t->dtype == TN_DTYPE_C128 ? TN_DTYPE_F64
                                       : (tn_dtype)t->dtype;
}

tn_status tni_shape_linalg_cholesky_ex(tni_geometry *g, tn_tensor *self, bool upper,
                                       bool check_errors)
{
    (void)upper;
    (void)check_errors;
    TN_TRY(check_square((refusals){"linalg.cholesky", NULL, "cholesky_cpu"}, self));
    by_columns(&g[0], self, rows(self), columns(self));
    batch_of(&g[1], self, TN_DTYPE_I32, 0);
    return TN_OK;
}

tn_status tni_shape_linalg_lu_factor_ex(tni_geometry *g, tn_tensor *A, bool pivot,
                                        bool check_errors)
{
    (void)pivot;
    (void)check_errors;
    char text[TNI_SIZES_TEXT];
    const refusals r = {"linalg.lu_factor", "lu_cpu", "lu_cpu"};
    TN_CHECK(A->ndim >= 2, TN_INVALID,
             "torch.lu_factor: Expected tensor with 2 or more dimensions. Got size: %s instead",
             tni_format_sizes(A->ndim, A->sizes, text, sizeof text));
    TN_TRY(check_kernel(r, A));
    by_columns(&g[0], A, rows(A), columns(A));
    vectors(&g[1], A, TN_DTYPE_I32, least(A));
    batch_of(&g[2], A, TN_DTYPE_I32, 0);
    return TN_OK;
}

tn_status tni_shape_linalg_inv_ex(tni_geometry *g, tn_tensor *A, bool check_errors)
{
    (void)check_errors;
    TN_TRY(check_square((refusals){"linalg.inv", NULL, NULL}, A));
    by_columns(&g[0], A, rows(A), columns(A));
    batch_of(&g[1], A, TN_DTYPE_I32, 0);
    return TN_OK;
}

/* Two batches of the same sizes and dtype; the caller saw to that. */
static tn_status check_pair(refusals r, const tn_tensor *A, const tn_tensor *B)
{
    const char *op = r.op;
    TN_TRY(check_square(r, A));
    TN_CHECK(A->dtype == B->dtype, TN_INVALID,
             "%s: Expected A and B to have the same dtype, but found A of type %s and B of type %s "
             "instead",
             op, tni_dtype_text((tn_dtype)A->dtype), tni_dtype_text((tn_dtype)B->dtype));
    bool same = A->ndim == B->ndim;
    for (int d = 0; same && d < A->ndim - 1; d++)
        same = A->sizes[d] == B->sizes[d];
    TN_CHECK(same, TN_INVALID, "%s: A and B have other sizes", op);
    return TN_OK;
}

tn_status tni_shape_solve_square(tni_geometry *g, tn_tensor *A, tn_tensor *B, bool check_errors)
{
    (void)check_errors;
    TN_TRY(check_pair((refusals){"linalg.solve", NULL, "lu_cpu"}, A, B));
    by_columns(&g[0], B, rows(B), columns(B));
    batch_of(&g[1], A, TN_DTYPE_I32, 0);
    return TN_OK;
}

tn_status tni_shape_solve_triangle(tni_geometry *g, tn_tensor *A, tn_tensor *B, bool upper,
                                   bool unitriangular)
{
    (void)upper;
    (void)unitriangular;
    const char *kernel = "triangular_solve_cpu";
    TN_TRY(check_pair((refusals){"linalg.solve_triangular", kernel, kernel}, A, B));
    by_columns(&g[0], B, rows(B), columns(B));
    return TN_OK;
}

tn_status tni_shape_lu_unpack(tni_geometry *g, tn_tensor *LU_data, tn_tensor *LU_pivots,
                              bool unpack_data, bool unpack_pivots)
{
    char text[TNI_SIZES_TEXT]; /* any dtype will do: numbers are copied, not computed */
    TN_CHECK(LU_data->ndim >= 2, TN_INVALID,
             "torch.lu_unpack: Expected tensor with 2 or more dimensions. Got size: %s instead",
             tni_format_sizes(LU_data->ndim, LU_data->sizes, text, sizeof text));
    TN_CHECK(LU_pivots->dtype == TN_DTYPE_I32, TN_INVALID,
             "torch.lu_unpack: LU_pivots is expected to be a contiguous tensor of torch.int32 "
             "dtype.\nNote: this function is intended to be used with the output produced by "
             "torch.linalg.lu_factor");
    bool fits = LU_pivots->ndim == LU_data->ndim - 1 &&
                LU_pivots->sizes[LU_pivots->ndim - 1] == least(LU_data);
    for (int d = 0; fits && d < LU_data->ndim - 2; d++)
        fits = LU_pivots->sizes[d] == LU_data->sizes[d];
    TN_CHECK(fits, TN_INVALID, "lu_unpack: LU_pivots has other sizes than LU_data");
    if (unpack_pivots)
        matrices(&g[0], LU_data, rows(LU_data), rows(LU_data));
    else
        nothing(&g[0], LU_data, (tn_dtype)LU_data->dtype);
    if (unpack_data) {
        matrices(&g[1], LU_data, rows(LU_data), least(LU_data));
        matrices(&g[2], LU_data, least(LU_data), columns(LU_data));
    } else {
        nothing(&g[1], LU_data, (tn_dtype)LU_data->dtype);
        nothing(&g[2], LU_data, (tn_dtype)LU_data->dtype);
    }
    return TN_OK;
}

tn_status tni_shape_linalg_det(tni_geometry *g, tn_tensor *A)
{
    TN_TRY(check_square((refusals){"linalg.det", NULL, "lu_cpu"}, A));
    batch_of(&g[0], A, (tn_dtype)A->dtype, 0);
    return TN_OK;
}

tn_status tni_shape_linalg_slogdet(tni_geometry *g, tn_tensor *A)
{
    TN_TRY(check_square((refusals){"linalg.slogdet", NULL, NULL}, A));
    batch_of(&g[0], A, (tn_dtype)A->dtype, 0);
    batch_of(&g[1], A, real_of(A), 0);
    return TN_OK;
}

tn_status tni_shape_linalg_qr(tni_geometry *g, tn_tensor *A, const char *mode)
{
    const refusals r = {"linalg.qr", NULL, "geqrf_cpu"};
    TN_TRY(check_matrices(r, A));
    TN_TRY(check_kernel(r, A));
    bool reduced = strcmp(mode, "reduced") == 0, complete = strcmp(mode, "complete") == 0;
    TN_CHECK(reduced || complete || strcmp(mode, "r") == 0, TN_INVALID,
             "qr received unrecognized mode '%s' but expected one of 'reduced' (default), 'r', or "
             "'complete'",
             mode);
    if (reduced || complete)
        by_columns(&g[0], A, rows(A), complete ? rows(A) : least(A));
    else
        nothing(&g[0], A, (tn_dtype)A->dtype);
    by_columns(&g[1], A, complete ? rows(A) : least(A), columns(A));
    return TN_OK;
}

tn_status tni_shape_geqrf(tni_geometry *g, tn_tensor *self)
{
    const refusals r = {"geqrf", "geqrf_cpu", "geqrf_cpu"};
    TN_CHECK(self->ndim >= 2, TN_INVALID, "torch.geqrf: input must have at least 2 dimensions.");
    TN_TRY(check_kernel(r, self));
    by_columns(&g[0], self, rows(self), columns(self));
    vectors(&g[1], self, (tn_dtype)self->dtype, least(self));
    return TN_OK;
}

tn_status tni_shape__linalg_eigh(tni_geometry *g, tn_tensor *A, const char *UPLO, bool compute_v)
{
    const char *kernel = "linalg_eigh_cpu";
    TN_TRY(check_square((refusals){"linalg.eigh", kernel, kernel}, A));
    TN_CHECK(strlen(UPLO) == 1 && strchr("LlUu", UPLO[0]), TN_INVALID,
             "Expected UPLO argument to be 'L' or 'U', but got %s", UPLO);
    vectors(&g[0], A, real_of(A), columns(A));
    if (compute_v)
        by_columns(&g[1], A, rows(A), columns(A));
    else
        nothing(&g[1], A, (tn_dtype)A->dtype);
    return TN_OK;
}

tn_status tni_shape_linalg_eig(tni_geometry *g, tn_tensor *self)
{
    TN_CHECK(self->ndim < 2 || !tn_dtype_is_integral((tn_dtype)self->dtype, true), TN_INVALID,
             "Unknown Complex ScalarType for %s", tni_dtype_text((tn_dtype)self->dtype));
    TN_TRY(check_square((refusals){"linalg.eig", NULL, "linalg_eig_out_cpu"}, self));
    tn_dtype dtype = real_of(self) == TN_DTYPE_F32 ? TN_DTYPE_C64 : TN_DTYPE_C128;
    vectors(&g[0], self, dtype, columns(self));
    by_columns(&g[1], self, rows(self), columns(self));
    g[1].dtype = dtype;
    return TN_OK;
}

tn_status tni_shape_eigenvalues(tni_geometry *g, tn_tensor *self)
{
    tni_geometry both[2] = {g[0], g[0]};
    TN_TRY(tni_shape_linalg_eig(both, self));
    g[0] = both[0];
    return TN_OK;
}

tn_status tni_shape_least_squares(tni_geometry *g, tn_tensor *A, tn_tensor *B, double rcond)
{
    (void)rcond;
    const refusals r = {"torch.linalg.lstsq", NULL, "linalg_lstsq_cpu"};
    TN_TRY(check_matrices(r, A));
    TN_TRY(check_kernel(r, A));
    bool fit = A->dtype == B->dtype && A->ndim == B->ndim;
    for (int d = 0; fit && d < A->ndim - 1; d++)
        fit = A->sizes[d] == B->sizes[d];
    TN_CHECK(fit, TN_INVALID, "torch.linalg.lstsq: input.size(-2) should match other.size(-2)");
    by_columns(&g[0], A, rows(A) > columns(A) ? rows(A) : columns(A), columns(B));
    batch_of(&g[1], A, TN_DTYPE_I64, 0);
    return TN_OK;
}

tn_status tni_shape__linalg_svd(tni_geometry *g, tn_tensor *A, bool full_matrices, bool compute_uv,
                                const char *driver)
{
    const refusals r = {"linalg.svd", NULL, "linalg_svd_cpu"};
    TN_TRY(check_matrices(r, A));
    TN_CHECK(!driver || A->device.type == TN_DEVICE_CUDA, TN_INVALID,
             "torch.linalg.svd: keyword argument `driver=` is only supported on CUDA inputs with "
             "cuSOLVER backend.");
    TN_TRY(check_kernel(r, A));
    if (compute_uv) {
        by_columns(&g[0], A, rows(A), full_matrices ? rows(A) : least(A));
        by_columns(&g[2], A, full_matrices ? columns(A) : least(A), columns(A));
    } else {
        nothing(&g[0], A, (tn_dtype)A->dtype);
        nothing(&g[2], A, (tn_dtype)A->dtype);
    }
    vectors(&g[1], A, real_of(A), least(A));
    return TN_OK;
}

/* ---- L D L^T ---- */

tn_status tni_shape_linalg_ldl_factor_ex(tni_geometry *g, tn_tensor *self, bool hermitian,
                                         bool check_errors)
{
    (void)hermitian;
    (void)check_errors;
    const refusals r = {"torch.linalg.ldl_factor_ex", NULL, "ldl_factor_kernel_cpu"};
    TN_TRY(check_square(r, self));
    by_columns(&g[0], self, rows(self), columns(self));
    vectors(&g[1], self, TN_DTYPE_I32, columns(self));
    batch_of(&g[2], self, TN_DTYPE_I32, 0);
    return TN_OK;
}

/* The larger of two sizes of a batch that go together. */
static tn_status common_batch(tni_geometry *g, const tn_tensor *A, const tn_tensor *B)
{
    int ndim = A->ndim > B->ndim ? A->ndim : B->ndim;
    int64_t sizes[TN_MAX_DIMS];
    for (int d = 0; d < ndim - 2; d++) {
        int a = d - (ndim - A->ndim), b = d - (ndim - B->ndim);
        int64_t x = a >= 0 ? A->sizes[a] : 1, y = b >= 0 ? B->sizes[b] : 1;
        TN_CHECK(x == y || x == 1 || y == 1, TN_INVALID,
                 "The size of tensor a (%lld) must match the size of tensor b (%lld) at "
                 "non-singleton dimension %d",
                 (long long)x, (long long)y, d);
        sizes[d] = x == 1 ? y : x;
    }
    tni_geometry_like(g, B, ndim);
    memcpy(g->sizes, sizes, (size_t)(ndim - 2) * sizeof *sizes);
    int64_t m = rows(B), n = columns(B), step;
    g->sizes[ndim - 2] = m;
    g->sizes[ndim - 1] = n;
    g->offset = 0;
    g->has_strides = true;
    g->strides[ndim - 2] = 1;
    g->strides[ndim - 1] = m > 1 ? m : 1;
    step = (m > 1 ? m : 1) * (n > 1 ? n : 1);
    for (int d = ndim - 3; d >= 0; d--) {
        g->strides[d] = step;
        step *= g->sizes[d] > 1 ? g->sizes[d] : 1;
    }
    return TN_OK;
}

tn_status tni_shape_linalg_ldl_solve(tni_geometry *g, tn_tensor *LD, tn_tensor *pivots,
                                     tn_tensor *B, bool hermitian)
{
    (void)hermitian;
    char text[TNI_SIZES_TEXT];
    const refusals r = {"torch.linalg.ldl_solve", NULL, "ldl_solve_kernel_cpu"};
    TN_TRY(check_square(r, LD));
    TN_CHECK(B->ndim >= 2, TN_INVALID,
             "torch.linalg.ldl_solve: Expected B to have at least 2 dimensions, but it has %d "
             "dimensions instead",
             B->ndim);
    bool same = pivots->ndim == LD->ndim - 1;
    for (int d = 0; same && d < pivots->ndim; d++)
        same = pivots->sizes[d] == LD->sizes[d];
    TN_CHECK(same, TN_INVALID,
             "torch.linalg.ldl_solve: Expected LD.shape[:-1] and pivots.shape to be the same, but "
             "got pivots with shape %s instead",
             tni_format_sizes(pivots->ndim, pivots->sizes, text, sizeof text));
    TN_CHECK(tn_dtype_is_integral((tn_dtype)pivots->dtype, false), TN_INVALID,
             "torch.linalg.ldl_solve: Expected pivots to be integers. Got %s",
             tni_dtype_text((tn_dtype)pivots->dtype));
    TN_CHECK(LD->dtype == B->dtype, TN_INVALID,
             "Expected b and A to have the same dtype, but found b of type %s and A of type %s "
             "instead.",
             tni_dtype_text((tn_dtype)B->dtype), tni_dtype_text((tn_dtype)LD->dtype));
    TN_CHECK(rows(B) == rows(LD), TN_INVALID,
             "Incompatible matrix sizes for torch.linalg.ldl_solve: each A matrix is %lld by %lld "
             "but each b matrix is %lld by %lld",
             (long long)rows(LD), (long long)columns(LD), (long long)rows(B),
             (long long)columns(B));
    return common_batch(g, LD, B);
}
