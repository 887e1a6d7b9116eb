/* SPDX-License-Identifier: MIT */
/* shape/linalg.c: what matrix products look like, and what they refuse.
 *
 * One function an operator, for every backend. Checks and texts are those that the reference's CPU
 * kernels make, in their order; the dtype checks that it only makes while computing are made here,
 * so that Meta refuses what the CPU refuses. Results are row-major. */
#include "dispatch/debug.h"
#include "gen/shapes.h"
#include "shape/expand.h"
#include "shape/number.h"

static bool same_device(tn_device a, tn_device b)
{
    return a.type == b.type && a.index == b.index;
}

static TNI_COLD tn_status other_device(const char *op, const char *name, const tn_tensor *t,
                                       tn_device common)
{
    char have[32], want[32];
    TN_FAIL(
        TN_INVALID,
        "Expected all tensors to be on the same device, but got %s is on %s, different from other "
        "tensors on %s (when checking argument in method wrapper_%s)",
        name, tn_device_format(t->device, have, sizeof have),
        tn_device_format(common, want, sizeof want), op);
}

static inline tn_status check_device(const char *op, const char *name, const tn_tensor *t,
                                     const tn_tensor *first)
{
    if (TNI_LIKELY(same_device(t->device, first->device)))
        return TN_OK;
    return other_device(op, name, t, first->device);
}

/* The reference finds this out in the kernel, and its message says so. A product without elements
 * or without terms never gets there. */
static TNI_COLD tn_status no_kernel(const char *kernel, tn_dtype dtype)
{
    TN_FAIL(TN_UNSUPPORTED, "\"%s\" not implemented for '%s'", kernel, tni_dtype_text(dtype));
}

static TNI_COLD tn_status other_scalar_type(const tn_tensor *want, const tn_tensor *found)
{
    TN_FAIL(TN_INVALID, "expected scalar type %s but found %s",
            tni_dtype_text((tn_dtype)want->dtype), tni_dtype_text((tn_dtype)found->dtype));
}

static TNI_COLD tn_status no_product(const tn_tensor *a, const tn_tensor *b)
{
    TN_FAIL(TN_INVALID, "mat1 and mat2 shapes cannot be multiplied (%lldx%lld and %lldx%lld)",
            (long long)a->sizes[0], (long long)a->sizes[1], (long long)b->sizes[0],
            (long long)b->sizes[1]);
}

/* A factor must mean something in the dtype that it multiplies. */
static tn_status check_factor(tn_scalar s, tn_dtype dtype)
{
    if (TNI_LIKELY(s.kind == TN_SCALAR_INT && (s.v.i == 0 || s.v.i == 1)))
        return TN_OK;
    return tni_check_factor(s, dtype);
}

static inline void result(tni_geometry *g, const tn_tensor *like, int ndim)
{
    g->ndim = ndim;
    g->dtype = (tn_dtype)like->dtype;
    g->device = like->device;
    g->has_strides = false;
    g->offset = 0;
}

static inline void matrix_result(tni_geometry *g, const tn_tensor *like, int64_t rows,
                                 int64_t columns)
{
    result(g, like, 2);
    g->sizes[0] = rows;
    g->sizes[1] = columns;
}

/* ---- mm, addmm ---- */

static TNI_COLD void mm_debug_entered(const tn_tensor *self, const tn_tensor *mat2)
{
    char text[TNI_SIZES_TEXT];
    if (!tni_debug_on("aten::mm"))
        return;
    tni_debug_line("TORCH_META_FUNC(mm)", "========== ENTERED MM META FUNCTION ==========");
    tni_debug_line("TORCH_META_FUNC(mm)", "self shape: %s",
                   tni_format_sizes(self->ndim, self->sizes, text, sizeof text));
    tni_debug_line("TORCH_META_FUNC(mm)", "mat2 shape: %s",
                   tni_format_sizes(mat2->ndim, mat2->sizes, text, sizeof text));
}

static TNI_COLD void mm_debug_complete(void)
{
    if (tni_debug_on("aten::mm"))
        tni_debug_line("TORCH_META_FUNC(mm)", "Meta function complete");
}

tn_status tni_shape_mm(tni_geometry *g, tn_tensor *self, tn_tensor *mat2)
{
    if (tni_observing)
        mm_debug_entered(self, mat2);
    TN_TRY(check_device("mm", "mat2", mat2, self));
    TN_CHECK(self->ndim == 2, TN_INVALID, "self must be a matrix");
    TN_CHECK(mat2->ndim == 2, TN_INVALID, "mat2 must be a matrix");
    if (TNI_UNLIKELY(self->sizes[1] != mat2->sizes[0]))
        return no_product(self, mat2);
    TN_CHECK(self->dtype == mat2->dtype, TN_INVALID,
             "expected m1 and m2 to have the same dtype, but got: %s != %s",
             tni_dtype_cpp((tn_dtype)self->dtype), tni_dtype_cpp((tn_dtype)mat2->dtype));
    if (TNI_UNLIKELY(self->dtype == TN_DTYPE_BOOL && self->numel && mat2->numel))
        return no_kernel("addmm_impl_cpu_", TN_DTYPE_BOOL);
    matrix_result(g, self, self->sizes[0], mat2->sizes[1]);
    if (tni_observing)
        mm_debug_complete();
    return TN_OK;
}

static tn_status check_expands(const tn_tensor *t, const tni_geometry *g)
{
    int64_t sizes[3], strides[3];
    return tni_expand(t, g->ndim, g->sizes, sizes, strides);
}

static TNI_COLD tn_status other_dtype(const char *name, const tn_tensor *a, const tn_tensor *b)
{
    TN_FAIL(TN_INVALID, "%s and mat2 must have the same dtype, but got %s and %s", name,
            tni_dtype_text((tn_dtype)a->dtype), tni_dtype_text((tn_dtype)b->dtype));
}

tn_status tni_shape_addmm(tni_geometry *g, tn_tensor *self, tn_tensor *mat1, tn_tensor *mat2,
                          tn_scalar beta, tn_scalar alpha)
{
    TN_TRY(check_device("addmm", "mat1", mat1, self));
    TN_TRY(check_device("addmm", "mat2", mat2, self));
    if (TNI_UNLIKELY(self->dtype != mat2->dtype))
        return other_dtype("self", self, mat2);
    if (TNI_UNLIKELY(mat1->dtype != mat2->dtype))
        return other_dtype("mat1", mat1, mat2);
    TN_CHECK(mat1->ndim == 2, TN_INVALID, "mat1 must be a matrix, got %d-D tensor", mat1->ndim);
    TN_CHECK(mat2->ndim == 2, TN_INVALID, "mat2 must be a matrix, got %d-D tensor", mat2->ndim);
    if (TNI_UNLIKELY(mat1->sizes[1] != mat2->sizes[0]))
        return no_product(mat1, mat2);
    matrix_result(g, mat1, mat1->sizes[0], mat2->sizes[1]);
    TN_TRY(check_expands(self, g));
    if (TNI_UNLIKELY(mat1->dtype == TN_DTYPE_BOOL && mat1->numel && mat2->numel))
        return no_kernel("addmm_impl_cpu_", TN_DTYPE_BOOL);
    TN_TRY(check_factor(beta, g->dtype));
    return check_factor(alpha, g->dtype);
}

/* ---- bmm, baddbmm ---- */

static tn_status check_batches(const tn_tensor *batch1, const tn_tensor *batch2)
{
    TN_CHECK(batch1->ndim == 3, TN_INVALID, "batch1 must be a 3D tensor");
    TN_CHECK(batch2->ndim == 3, TN_INVALID, "batch2 must be a 3D tensor");
    TN_CHECK(batch1->sizes[0] == batch2->sizes[0] && batch1->sizes[2] == batch2->sizes[1],
             TN_INVALID,
             "Expected size for first two dimensions of batch2 tensor to be: [%lld, %lld] but got: "
             "[%lld, %lld].",
             (long long)batch1->sizes[0], (long long)batch1->sizes[2], (long long)batch2->sizes[0],
             (long long)batch2->sizes[1]);
    return TN_OK;
}

static void batch_result(tni_geometry *g, const tn_tensor *batch1, const tn_tensor *batch2)
{
    result(g, batch2, 3);
    g->sizes[0] = batch1->sizes[0];
    g->sizes[1] = batch1->sizes[1];
    g->sizes[2] = batch2->sizes[2];
}

tn_status tni_shape_bmm(tni_geometry *g, tn_tensor *self, tn_tensor *mat2)
{
    TN_TRY(check_device("bmm", "mat2", mat2, self));
    TN_TRY(check_batches(self, mat2));
    if (TNI_UNLIKELY(self->dtype != mat2->dtype))
        return other_scalar_type(self, mat2);
    if (TNI_UNLIKELY(self->dtype == TN_DTYPE_BOOL && self->numel && mat2->numel))
        return no_kernel("bmm", TN_DTYPE_BOOL);
    batch_result(g, self, mat2);
    return TN_OK;
}

tn_status tni_shape_baddbmm(tni_geometry *g, tn_tensor *self, tn_tensor *batch1, tn_tensor *batch2,
                            tn_scalar beta, tn_scalar alpha)
{
    TN_TRY(check_device("baddbmm", "batch1", batch1, self));
    TN_TRY(check_device("baddbmm", "batch2", batch2, self));
    if (batch1->ndim >= 3 && batch2->ndim >= 3) { /* more is refused below */
        batch_result(g, batch1, batch2);
        TN_TRY(check_expands(self, g));
    }
    TN_CHECK(batch1->ndim == 3, TN_INVALID, "batch1 must be a 3D tensor");
    TN_CHECK(batch2->ndim == 3, TN_INVALID, "batch2 must be a 3D tensor");
    if (TNI_UNLIKELY(self->dtype == batch1->dtype && self->dtype != batch2->dtype))
        return other_scalar_type(self, batch2);
    TN_CHECK(self->dtype == batch1->dtype && self->dtype == batch2->dtype, TN_INVALID,
             "Input dtypes must be the same, got: input %s, batch1: %s, batch2: %s",
             tni_dtype_cpp((tn_dtype)self->dtype), tni_dtype_cpp((tn_dtype)batch1->dtype),
             tni_dtype_cpp((tn_dtype)batch2->dtype));
    TN_TRY(check_batches(batch1, batch2));
    if (TNI_UNLIKELY(self->dtype == TN_DTYPE_BOOL && batch1->numel && batch2->numel))
        return no_kernel("baddbmm", TN_DTYPE_BOOL);
    TN_TRY(check_factor(beta, g->dtype));
    return check_factor(alpha, g->dtype);
}

/* ---- mv, addmv, dot ---- */

/* @p input_ndim and @p input_numel describe the vector that is added; mv adds one that fits. */
static tn_status matrix_vector(tni_geometry *g, int input_ndim, int64_t input_numel,
                               const tn_tensor *mat, const tn_tensor *vec)
{
    TN_CHECK(mat->ndim == 2 && vec->ndim == 1 && input_ndim <= 1, TN_INVALID,
             "vector + matrix @ vector expected, got %d, %d, %d", input_ndim, mat->ndim, vec->ndim);
    TN_CHECK(mat->sizes[1] == vec->sizes[0] && (input_numel == mat->sizes[0] || input_numel == 1),
             TN_INVALID, "size mismatch, got input (%lld), mat (%lldx%lld), vec (%lld)",
             (long long)input_numel, (long long)mat->sizes[0], (long long)mat->sizes[1],
             (long long)vec->sizes[0]);
    if (TNI_UNLIKELY(mat->dtype != vec->dtype))
        return other_scalar_type(mat, vec);
    if (TNI_UNLIKELY(vec->dtype == TN_DTYPE_BOOL && mat->numel))
        return no_kernel("addmv_impl_cpu", TN_DTYPE_BOOL);
    result(g, vec, 1);
    g->sizes[0] = mat->sizes[0];
    return TN_OK;
}

tn_status tni_shape_mv(tni_geometry *g, tn_tensor *self, tn_tensor *vec)
{
    TN_TRY(check_device("mv", "vec", vec, self));
    return matrix_vector(g, 1, self->ndim ? self->sizes[0] : 1, self, vec);
}

tn_status tni_shape_addmv(tni_geometry *g, tn_tensor *self, tn_tensor *mat, tn_tensor *vec,
                          tn_scalar beta, tn_scalar alpha)
{
    TN_TRY(check_device("addmv", "mat", mat, self));
    TN_TRY(check_device("addmv", "vec", vec, self));
    TN_TRY(matrix_vector(g, self->ndim, self->numel, mat, vec));
    TN_TRY(check_factor(beta, g->dtype));
    return check_factor(alpha, g->dtype);
}

tn_status tni_shape_dot(tni_geometry *g, tn_tensor *self, tn_tensor *tensor)
{
    TN_TRY(check_device("dot", "tensor", tensor, self));
    TN_CHECK(self->ndim == 1 && tensor->ndim == 1, TN_INVALID,
             "1D tensors expected, but got %dD and %dD tensors", self->ndim, tensor->ndim);
    TN_CHECK(self->dtype == tensor->dtype, TN_INVALID,
             "dot : expected both vectors to have same dtype, but found %s and %s",
             tni_dtype_text((tn_dtype)self->dtype), tni_dtype_text((tn_dtype)tensor->dtype));
    TN_CHECK(
        self->numel == tensor->numel, TN_INVALID,
        "inconsistent tensor size, expected tensor [%lld] and src [%lld] to have the same number "
        "of elements, but got %lld and %lld elements respectively",
        (long long)self->numel, (long long)tensor->numel, (long long)self->numel,
        (long long)tensor->numel);
    if (TNI_UNLIKELY(self->dtype == TN_DTYPE_BOOL))
        return no_kernel("dot", TN_DTYPE_BOOL);
    result(g, self, 0);
    return TN_OK;
}
