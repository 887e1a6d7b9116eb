/* SPDX-License-Identifier: MIT */
/* autograd/formula_join.c: gradients of joining, padding, repeating and moving elements, of writing
 * views, and of pooling. See formula.c. */
#include "autograd/formula.h"
#include "gen/gradients.h"

#include "tenon/ops.h"

/* ---- cat and stack ---- */

/* @p shapes: of each tensor its number of dimensions, then its sizes. */
void tni_grad_cat_gradients(tn_tensor *grad, const int64_t *shapes, int64_t shapes_n, int64_t dim,
                            tni_backward *b, uint32_t first)
{
    if (!grad)
        return;
    dim = tni_wrapped(dim, grad->ndim);
    int64_t at = 0, start = 0;
    for (uint32_t edge = first; at < shapes_n; edge++) {
        int64_t ndim = shapes[at];
        const int64_t *sizes = shapes + at + 1;
        bool skipped = ndim == 1 && sizes[0] == 0; /* joins with anything */
        if (tni_backward_needs(b, edge))
            b->results[edge] = skipped ? tnx_new_zeros(grad, sizes, 1, NULL)
                                       : tnx_narrow(grad, dim, start, sizes[dim]);
        start += skipped ? 0 : sizes[dim];
        at += 1 + ndim;
    }
}

void tni_grad_stack_gradients(tn_tensor *grad, int64_t dim, tni_backward *b, uint32_t first)
{
    for (uint32_t edge = first; edge < b->node->n_edges; edge++)
        if (tni_backward_needs(b, edge))
            b->results[edge] = tnx_select(grad, dim, (int64_t)(edge - first));
}

/* ---- padding, repeating, moving ---- */

tn_tensor *tni_grad_pad_gradient(tn_tensor *grad, const int64_t *pad, int64_t n)
{
    int64_t back[2 * TN_MAX_DIMS];
    for (int64_t i = 0; i < n; i++)
        back[i] = -pad[i];
    return tnx_constant_pad_nd(grad, back, n, tn_int(0));
}

/* Dimension d as repeats times size, summed over the repeats; leading ones summed away. */
tn_tensor *tni_grad_repeat_gradient(tn_tensor *grad, const int64_t *repeats, int64_t repeats_n,
                                    const int64_t *sizes, int64_t ndim)
{
    int64_t shape[2 * TN_MAX_DIMS], sums[TN_MAX_DIMS], n = 0, n_sums = 0;
    for (int64_t i = 0; i < repeats_n; i++)
        if (repeats[i] == 0)
            return tnx_new_zeros(grad, sizes, ndim, NULL);
    int64_t lead = repeats_n - ndim;
    for (int64_t i = 0; i < repeats_n; i++) {
        if (i < lead || repeats[i] != 1) {
            sums[n_sums++] = n;
            shape[n++] = repeats[i];
        }
        if (i >= lead)
            shape[n++] = sizes[i - lead];
    }
    if (n_sums == 0)
        return grad;
    return tnx_sum_dim(tnx_reshape(grad, shape, n), sums, n_sums, false, TN_DTYPE_NONE);
}

tn_tensor *tni_grad_roll_gradient(tn_tensor *grad, const int64_t *shifts, int64_t n,
                                  const int64_t *dims, int64_t dims_n)
{
    int64_t back[TN_MAX_DIMS];
    for (int64_t at = 0; at < n; at += TN_MAX_DIMS) {
        int64_t some = n - at < TN_MAX_DIMS ? n - at : TN_MAX_DIMS;
        for (int64_t i = 0; i < some; i++)
            back[i] = (int64_t)(0 - (uint64_t)shifts[at + i]);
        grad = dims_n > 0 ? tnx_roll(grad, back, some, dims + at, some)
                          : tnx_roll(grad, back, some, NULL, 0);
    }
    return grad;
}

/* ---- copies in which a view was written: what was overwritten has no gradient ---- */

static tn_tensor *zeros_like(tn_tensor *t)
{
    return tnx_zeros_like(t, NULL, TN_FORMAT_NONE);
}

tn_tensor *tni_grad_select_scatter_self(tn_tensor *grad, int64_t dim, int64_t index)
{
    return tnx_select_scatter(grad, zeros_like(tnx_select(grad, dim, index)), dim, index);
}

tn_tensor *tni_grad_slice_scatter_self(tn_tensor *grad, int64_t dim, tn_opt_int start,
                                       tn_opt_int end, int64_t step)
{
    tn_tensor *part = tnx_slice(grad, dim, start, end, step);
    return tnx_slice_scatter(grad, zeros_like(part), dim, start, end, step);
}

tn_tensor *tni_grad_diagonal_scatter_self(tn_tensor *grad, int64_t offset, int64_t dim1,
                                          int64_t dim2)
{
    tn_tensor *part = tnx_diagonal(grad, offset, dim1, dim2);
    return tnx_diagonal_scatter(grad, zeros_like(part), offset, dim1, dim2);
}

tn_tensor *tni_grad_trace_gradient(tn_tensor *grad, const int64_t *sizes, int64_t ndim)
{
    int64_t n = sizes[0] < sizes[1] ? sizes[0] : sizes[1];
    return tnx_diagonal_backward(tnx_expand(grad, &n, 1, false), sizes, ndim, 0, 0, 1);
}

/* ---- pooling ---- */

/* What the maxima were picked from is read at the same places, over the last @p n dimensions. */
tn_tensor *tni_grad_max_pool_double(tn_tensor *grad, tn_tensor *indices, int64_t n)
{
    if (tni_scope_failed())
        return NULL;
    tn_tensor *planes = tnx_flatten(grad, -n, -1), *places = tnx_flatten(indices, -n, -1);
    return tnx_reshape(tnx_gather(planes, -1, places, false), indices->sizes, indices->ndim);
}

/* The mean of means: over the windows of a result with these sizes. */
tn_tensor *tni_grad_adaptive_avg_pool_double(tn_tensor *grad, const int64_t *sizes, int64_t ndim,
                                             int64_t n)
{
    const int64_t *out = sizes + ndim - n;
    return n == 2 ? tnx__adaptive_avg_pool2d(grad, out, n) : tnx__adaptive_avg_pool3d(grad, out, n);
}
