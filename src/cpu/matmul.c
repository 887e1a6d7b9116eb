/* SPDX-License-Identifier: MIT */
/* cpu/matmul.c: mm, bmm, mv, dot and the forms that add, on tensors. What they look like is said in
 * shape/linalg.c; how they are computed in cpu/gemm.c. */
#include "core/scalar.h"
#include "cpu/copy.h"
#include "cpu/gemm.h"
#include "dispatch/debug.h"
#include "gen/cpu.h"

static tni_gemm_args matrices(const tn_tensor *a, const tn_tensor *b, const tn_tensor *c)
{
    int i = c->ndim - 2, j = c->ndim - 1;
    return (tni_gemm_args){.m = a->sizes[i],
                           .n = b->sizes[j],
                           .k = a->sizes[j],
                           .a = a->data,
                           .a_row = a->strides[i],
                           .a_col = a->strides[j],
                           .b = b->data,
                           .b_row = b->strides[i],
                           .b_col = b->strides[j],
                           .c = c->data,
                           .c_row = c->strides[i],
                           .c_col = c->strides[j]};
}

static tn_status multiply(const tn_tensor *a, const tn_tensor *b, tn_tensor *out, tn_scalar alpha,
                          tn_scalar beta)
{
    tni_gemm_args g = matrices(a, b, out);
    bool batched = out->ndim == 3;
    return tni_gemm((tn_dtype)out->dtype, &g, alpha, beta, batched ? out->sizes[0] : 1,
                    batched ? a->strides[0] : 0, batched ? b->strides[0] : 0,
                    batched ? out->strides[0] : 0);
}

/* Put @p self, expanded, where the product will be added; nothing when it is there already or beta
 * says that it is not read. */
static tn_status put_self(tn_tensor *self, tn_scalar beta, tn_tensor *out)
{
    if (self == out || !tni_scalar_is_true(beta) || out->numel == 0)
        return TN_OK;
    return tni_copy_cpu(out, self);
}

static TNI_COLD void mm_debug(const char *what)
{
    if (tni_debug_on("aten::mm"))
        tni_debug_line("TORCH_IMPL_FUNC(mm_out_cpu)", "%s", what);
}

tn_status tni_cpu_mm(tn_tensor *self, tn_tensor *mat2, tn_tensor *out)
{
    if (tni_observing)
        mm_debug("========== ENTERED MM CPU FUNCTION ==========");
    TN_TRY(multiply(self, mat2, out, tn_int(1), tn_int(0)));
    if (tni_observing)
        mm_debug("CPU function complete");
    return TN_OK;
}

tn_status tni_cpu_addmm(tn_tensor *self, tn_tensor *mat1, tn_tensor *mat2, tn_scalar beta,
                        tn_scalar alpha, tn_tensor *out)
{
    TN_TRY(put_self(self, beta, out));
    return multiply(mat1, mat2, out, alpha, beta);
}

tn_status tni_cpu_bmm(tn_tensor *self, tn_tensor *mat2, tn_tensor *out)
{
    return multiply(self, mat2, out, tn_int(1), tn_int(0));
}

tn_status tni_cpu_baddbmm(tn_tensor *self, tn_tensor *batch1, tn_tensor *batch2, tn_scalar beta,
                          tn_scalar alpha, tn_tensor *out)
{
    TN_TRY(put_self(self, beta, out));
    return multiply(batch1, batch2, out, alpha, beta);
}

static tn_status multiply_vector(const tn_tensor *mat, const tn_tensor *vec, tn_tensor *out,
                                 tn_scalar alpha, tn_scalar beta)
{
    return tni_gemv((tn_dtype)out->dtype, mat->sizes[0], mat->sizes[1], mat->data, mat->strides[0],
                    mat->strides[1], vec->data, vec->strides[0], out->data, out->strides[0], alpha,
                    beta);
}

tn_status tni_cpu_mv(tn_tensor *self, tn_tensor *vec, tn_tensor *out)
{
    return multiply_vector(self, vec, out, tn_int(1), tn_int(0));
}

tn_status tni_cpu_addmv(tn_tensor *self, tn_tensor *mat, tn_tensor *vec, tn_scalar beta,
                        tn_scalar alpha, tn_tensor *out)
{
    TN_TRY(put_self(self, beta, out));
    return multiply_vector(mat, vec, out, alpha, beta);
}

tn_status tni_cpu_dot(tn_tensor *self, tn_tensor *tensor, tn_tensor *out)
{
    return tni_dot((tn_dtype)self->dtype, self->numel, self->data, self->strides[0], tensor->data,
                   tensor->strides[0], out->data);
}
