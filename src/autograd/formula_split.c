/* SPDX-License-Identifier: MIT */
/* autograd/formula_split.c: gradients of views and of splitting, written by hand. See formula.c. */
#include "gen/gradients.h"

#include "tenon/ops.h"

tn_tensor *tni_grad_permute_backward(tn_tensor *grad, const int64_t *dims, int64_t n)
{
    int64_t back[TN_MAX_DIMS];
    for (int64_t i = 0; i < n; i++)
        back[dims[i] < 0 ? dims[i] + n : dims[i]] = i;
    return tnx_permute(grad, back, n);
}

/* start and end as slice() understands them: None, negative, beyond the end. */
tn_tensor *tni_grad_slice_gradient(tn_tensor *grad, const int64_t *sizes, int64_t ndim, int64_t dim,
                                   tn_opt_int start, tn_opt_int end, int64_t step)
{
    return tnx_slice_backward(grad, sizes, ndim, dim, start.has ? start.value : 0,
                              end.has ? end.value : INT64_MAX, step);
}

/* Join what came for the pieces; a piece without a gradient is zeros. */
static tn_tensor *join(tn_tensor *const *grads, int64_t n, const int64_t *lengths, int64_t dim,
                       const int64_t *sizes, int64_t ndim, const tn_tensor_opts *opts)
{
    tn_tensor **pieces = tni_alloc((size_t)n * sizeof *pieces);
    if (!pieces)
        return tni_scope_result(
            tni_fail(TN_NOMEM, TNI_WHERE, "cannot join the gradients of %lld pieces", (long long)n),
            NULL);
    int64_t shape[TN_MAX_DIMS];
    for (int64_t d = 0; d < ndim; d++)
        shape[d] = sizes[d];
    for (int64_t i = 0; i < n; i++) {
        shape[dim] = lengths ? lengths[i] : sizes[dim];
        pieces[i] = grads[i] ? grads[i] : tnx_zeros(shape, ndim, opts);
    }
    tn_tensor *joined = tni_scope_failed() ? NULL : tnx_cat(pieces, n, dim);
    tni_free(pieces);
    return joined;
}

tn_tensor *tni_grad_split_gradient(tn_tensor *const *grads, int64_t n, int64_t split_size,
                                   int64_t dim, const int64_t *sizes, int64_t ndim,
                                   const tn_tensor_opts *opts)
{
    dim = dim < 0 ? dim + ndim : dim;
    int64_t *lengths = tni_alloc((size_t)n * sizeof *lengths);
    if (!lengths)
        return tni_scope_result(
            tni_fail(TN_NOMEM, TNI_WHERE, "cannot join the gradients of %lld pieces", (long long)n),
            NULL);
    int64_t left = sizes[dim];
    for (int64_t i = 0; i < n; i++) {
        lengths[i] = left < split_size ? left : split_size;
        left -= lengths[i];
    }
    tn_tensor *joined = join(grads, n, lengths, dim, sizes, ndim, opts);
    tni_free(lengths);
    return joined;
}

tn_tensor *tni_grad_split_with_sizes_gradient(tn_tensor *const *grads, int64_t n,
                                              const int64_t *lengths, int64_t lengths_n,
                                              int64_t dim, const int64_t *sizes, int64_t ndim,
                                              const tn_tensor_opts *opts)
{
    (void)lengths_n;
    return join(grads, n, lengths, dim < 0 ? dim + ndim : dim, sizes, ndim, opts);
}

tn_tensor *tni_grad_unbind_gradient(tn_tensor *const *grads, int64_t n, int64_t dim,
                                    const int64_t *sizes, int64_t ndim, const tn_tensor_opts *opts)
{
    dim = dim < 0 ? dim + ndim : dim;
    int64_t shape[TN_MAX_DIMS];
    for (int64_t d = 0; d < ndim - 1; d++)
        shape[d] = sizes[d + (d >= dim)];
    tn_tensor **pieces = tni_alloc((size_t)n * sizeof *pieces);
    if (!pieces)
        return tni_scope_result(tni_fail(TN_NOMEM, TNI_WHERE,
                                         "cannot stack the gradients of %lld pieces", (long long)n),
                                NULL);
    for (int64_t i = 0; i < n; i++)
        pieces[i] = grads[i] ? grads[i] : tnx_zeros(shape, ndim - 1, opts);
    tn_tensor *stacked = tni_scope_failed() ? NULL : tnx_stack_tensors(pieces, n, dim);
    tni_free(pieces);
    return stacked;
}
