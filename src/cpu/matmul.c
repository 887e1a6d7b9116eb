/* SPDX-License-Identifier: MIT */
/* cpu/matmul.c: mm, bmm, mv, dot and the forms that add, on tensors. What they look like is said in
 * shape/linalg.c; how they are computed in cpu/gemm.c. */
#include "core/scalar.h"
#include "cpu/copy.h"
#include "cpu/gemm.h"
#include "dispatch/debug.h"
#include "gen/cpu.h"
#include "shape/expand.h"

/* ---- tensors as matrices ---- */

/* The last two dimensions; one before them is a batch. */
static tni_matrix matrix_of(const tn_tensor *t)
{
    int i = t->ndim - 2;
    return (tni_matrix){t->data, t->strides[i], t->strides[i + 1], i ? t->strides[0] : 0};
}

static tni_matrix column_of(const tn_tensor *t)
{
    return (tni_matrix){t->data, t->strides[0], 1, 0};
}

static tni_gemm_args product_of(const tn_tensor *a, const tn_tensor *b, const tn_tensor *out)
{
    int i = out->ndim - 2;
    tni_gemm_args g = {.m = out->sizes[i],
                       .n = out->sizes[i + 1],
                       .k = a->sizes[i + 1],
                       .batch = i ? out->sizes[0] : 1,
                       .a = matrix_of(a),
                       .b = matrix_of(b)};
    g.c = g.d = matrix_of(out);
    return g;
}

/* The product of a matrix and a vector, as one of matrices. */
static tni_gemm_args vector_product_of(const tn_tensor *mat, const tn_tensor *vec,
                                       const tn_tensor *out)
{
    tni_gemm_args g = {.m = mat->sizes[0],
                       .n = 1,
                       .k = mat->sizes[1],
                       .batch = 1,
                       .a = matrix_of(mat),
                       .b = column_of(vec)};
    g.c = g.d = column_of(out);
    return g;
}

/* What is added is @p self, expanded to the sizes of @p out: read where it lies, or, where the
 * dtypes differ, copied first. */
static tn_status add_self(tni_gemm_args *g, tn_tensor *self, tn_scalar beta, tn_tensor *out)
{
    if (self == out || !tni_scalar_is_true(beta) || out->numel == 0)
        return TN_OK;
    if (TNI_UNLIKELY(self->dtype != out->dtype))
        return tni_copy_cpu(out, self);
    int64_t sizes[3], strides[3];
    TN_TRY(tni_expand(self, out->ndim, out->sizes, sizes, strides));
    int n = out->ndim;
    g->d.data = self->data;
    g->d.row = n == 1 ? strides[0] : strides[n - 2];
    g->d.col = n == 1 ? 1 : strides[n - 1];
    g->d.batch = n == 3 ? strides[0] : 0;
    return TN_OK;
}

/* ---- operators ---- */

static TNI_COLD void mm_debug(const char *what)
{
    if (tni_debug_on("aten::mm"))
        tni_debug_line("TORCH_IMPL_FUNC(mm_out_cpu)", "%s", what);
}

tn_status tni_cpu_mm(tn_tensor *self, tn_tensor *mat2, tn_tensor *out)
{
    if (tni_observing)
        mm_debug("========== ENTERED MM CPU FUNCTION ==========");
    tni_gemm_args g = product_of(self, mat2, out);
    TN_TRY(tni_gemm((tn_dtype)out->dtype, &g, tn_int(1), tn_int(0)));
    if (tni_observing)
        mm_debug("CPU function complete");
    return TN_OK;
}

tn_status tni_cpu_bmm(tn_tensor *self, tn_tensor *mat2, tn_tensor *out)
{
    tni_gemm_args g = product_of(self, mat2, out);
    return tni_gemm((tn_dtype)out->dtype, &g, tn_int(1), tn_int(0));
}

tn_status tni_cpu_addmm(tn_tensor *self, tn_tensor *mat1, tn_tensor *mat2, tn_scalar beta,
                        tn_scalar alpha, tn_tensor *out)
{
    tni_gemm_args g = product_of(mat1, mat2, out);
    TN_TRY(add_self(&g, self, beta, out));
    return tni_gemm((tn_dtype)out->dtype, &g, alpha, beta);
}

tn_status tni_cpu_baddbmm(tn_tensor *self, tn_tensor *batch1, tn_tensor *batch2, tn_scalar beta,
                          tn_scalar alpha, tn_tensor *out)
{
    return tni_cpu_addmm(self, batch1, batch2, beta, alpha, out);
}

tn_status tni_cpu_mv(tn_tensor *self, tn_tensor *vec, tn_tensor *out)
{
    tni_gemm_args g = vector_product_of(self, vec, out);
    return tni_gemm((tn_dtype)out->dtype, &g, tn_int(1), tn_int(0));
}

tn_status tni_cpu_addmv(tn_tensor *self, tn_tensor *mat, tn_tensor *vec, tn_scalar beta,
                        tn_scalar alpha, tn_tensor *out)
{
    tni_gemm_args g = vector_product_of(mat, vec, out);
    TN_TRY(add_self(&g, self, beta, out));
    return tni_gemm((tn_dtype)out->dtype, &g, alpha, beta);
}

tn_status tni_cpu_dot(tn_tensor *self, tn_tensor *tensor, tn_tensor *out)
{
    tni_gemm_args g = {.m = 1,
                       .n = 1,
                       .k = self->numel,
                       .batch = 1,
                       .a = {self->data, self->numel, self->strides[0], 0},
                       .b = column_of(tensor),
                       .c = {out->data, 1, 1, 0}};
    g.d = g.c;
    return tni_gemm((tn_dtype)out->dtype, &g, tn_int(1), tn_int(0));
}
