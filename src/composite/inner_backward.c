/* SPDX-License-Identifier: MIT */
/* composite/inner_backward.c: gradients that PyTorch has as operators of their own. Those that are
 * recorded here are formulas (src/autograd); these are for who calls them by name. */
#include <math.h>
#include "composite/leave.h"
#include "core/tensor.h"
#include "gen/composites.h"
#include "shape/expand.h"
#include "tenon/ops.h"

tn_status tni_composite_trace_backward(tn_tensor *grad, const int64_t *sizes, int64_t sizes_n,
                                       tn_tensor **out)
{
    TN_CHECK(sizes_n == 2, TN_INVALID, "expected matrix input");
    TN_CHECK(grad->ndim == 0, TN_INVALID,
             "index_fill_ only supports a 0-dimensional value tensor, but got tensor with %d "
             "dimension(s).",
             grad->ndim);
    TN_AUTO(tn_tensor) made = NULL;
    TN_AUTO(tn_tensor) diagonal = NULL;
    TN_TRY(tn_new_zeros(grad, sizes, sizes_n, NULL, &made));
    TN_TRY(tn_diagonal(made, 0, 0, 1, &diagonal));
    TN_TRY(tn_copy_(diagonal, grad, false));
    *out = TN_MOVE(made);
    return TN_OK;
}

tn_status tni_composite_value_selecting_reduction_backward(tn_tensor *grad, int64_t dim,
                                                           tn_tensor *indices, const int64_t *sizes,
                                                           int64_t sizes_n, bool keepdim,
                                                           tn_tensor **out)
{
    tn_scope *scope;
    TN_TRY(tn_scope_enter(&scope));
    if (!keepdim && sizes_n > 0) {
        grad = tnx_unsqueeze(grad, dim);
        indices = tnx_unsqueeze(indices, dim);
    }
    tn_tensor *zeros = tnx_new_zeros(grad, sizes, sizes_n, NULL);
    return tni_leave(scope, tnx_scatter(zeros, dim, indices, grad), out);
}

tn_status tni_composite_masked_select_backward(tn_tensor *grad, tn_tensor *input, tn_tensor *mask,
                                               tn_tensor **out)
{
    int64_t sizes[TN_MAX_DIMS];
    int ndim;
    tn_scope *scope;
    TN_TRY(tni_broadcast_sizes(input->ndim, input->sizes, mask->ndim, mask->sizes, &ndim, sizes));
    TN_AUTO(tn_tensor) made = NULL;
    TN_TRY(tn_scope_enter(&scope));
    TN_TRY(tni_leave(
        scope, tnx_zeros_like(tnx_expand(input, sizes, ndim, false), NULL, TN_FORMAT_NONE), &made));
    TN_TRY(tn_masked_scatter_(made, mask, grad));
    *out = TN_MOVE(made);
    return TN_OK;
}

tn_status tni_composite_index_select_backward(tn_tensor *grad, const int64_t *self_sizes,
                                              int64_t self_sizes_n, int64_t dim, tn_tensor *index,
                                              tn_tensor **out)
{
    TN_AUTO(tn_tensor) zeros = NULL;
    TN_TRY(tn_new_zeros(grad, self_sizes, self_sizes_n, NULL, &zeros));
    return tn_index_add(zeros, dim, index, grad, tn_int(1), out);
}

tn_status tni_composite_gather_backward(tn_tensor *grad, tn_tensor *self, int64_t dim,
                                        tn_tensor *index, bool sparse_grad, tn_tensor **out)
{
    (void)sparse_grad;
    TN_AUTO(tn_tensor) zeros = NULL;
    TN_TRY(tn_new_zeros(grad, self->sizes, self->ndim, NULL, &zeros));
    return tn_scatter_add(zeros, dim, index, grad, out);
}

tn_status tni_composite_cummaxmin_backward(tn_tensor *grad, tn_tensor *input, tn_tensor *indices,
                                           int64_t dim, tn_tensor **out)
{
    TN_AUTO(tn_tensor) zeros = NULL;
    TN_TRY(tn_new_zeros(input, input->sizes, input->ndim, NULL, &zeros));
    return tn_scatter_add(zeros, dim, indices, grad, out);
}

tn_status tni_composite_infinitely_differentiable_gelu_backward(tn_tensor *grad, tn_tensor *self,
                                                                tn_tensor **out)
{
    tn_scope *scope;
    const tn_scalar one = tn_int(1), half = tn_float(0.5);
    TN_TRY(tn_scope_enter(&scope));
    tn_tensor *scaled = tnx_mul_scalar(self, tn_float(M_SQRT1_2));
    tn_tensor *below = tnx_mul_scalar(tnx_add_scalar(tnx_erf(scaled), one, one), half);
    tn_tensor *density =
        tnx_mul_scalar(tnx_exp(tnx_mul_scalar(tnx_mul(self, self), tn_float(-0.5))),
                       tn_float(0.5 * M_2_SQRTPI * M_SQRT1_2));
    tn_tensor *slope = tnx_add(below, tnx_mul(self, density), one);
    TN_AUTO(tn_tensor) made = NULL;
    TN_TRY(tni_leave(scope, slope, &made));
    TN_TRY(tn_mul_(made, grad));
    *out = TN_MOVE(made);
    return TN_OK;
}
