/* SPDX-License-Identifier: MIT */
/* autograd/formula_index.c: gradients of indexing: what was read at an index is added there, what
 * was written there is read. See formula.c. */
#include "autograd/formula.h"
#include "gen/gradients.h"

#include <string.h>
#include "tenon/ops.h"

static tn_tensor *zeros_of(tn_tensor *grad, const int64_t *sizes, int64_t ndim)
{
    return tnx_new_zeros(grad, sizes, ndim, NULL);
}

/* ---- index, index_put, take ---- */

tn_tensor *tni_grad_index_gradient(tn_tensor *grad, const int64_t *sizes, int64_t ndim,
                                   tn_tensor *const *indices, int64_t n)
{
    return tnx_index_put_(zeros_of(grad, sizes, ndim), indices, n, grad, true);
}

/* What was overwritten has no gradient. */
tn_tensor *tni_grad_index_put_self(tn_tensor *grad, tn_tensor *const *indices, int64_t n,
                                   bool accumulate)
{
    return accumulate ? grad : tnx_index_put(grad, indices, n, zeros_of(grad, NULL, 0), false);
}

tn_tensor *tni_grad_take_gradient(tn_tensor *grad, const int64_t *sizes, int64_t ndim,
                                  tn_tensor *index)
{
    int64_t numel = 1;
    for (int64_t d = 0; d < ndim; d++)
        numel *= sizes[d];
    tn_tensor *all = tnx_index_put_(zeros_of(grad, &numel, 1), &index, 1, grad, true);
    return tnx_reshape(all, sizes, ndim);
}

/* ---- along a dimension ---- */

tn_tensor *tni_grad_index_select_gradient(tn_tensor *grad, const int64_t *sizes, int64_t ndim,
                                          int64_t dim, tn_tensor *index)
{
    return tnx_index_add_(zeros_of(grad, sizes, ndim), dim, index, grad, tn_int(1));
}

tn_tensor *tni_grad_index_add_source(tn_tensor *grad, const int64_t *sizes, int64_t ndim,
                                     int64_t dim, tn_tensor *index, tn_scalar alpha)
{
    if (tni_scope_failed())
        return NULL;
    if (ndim == 0 && index->ndim > 0)
        index = tnx_squeeze_dim(index, 0);
    tn_tensor *picked = tnx_index_select(grad, dim, index);
    return tni_grad_mul_conj_number(tnx_expand(picked, sizes, ndim, false), alpha);
}

tn_tensor *tni_grad_gather_gradient(tn_tensor *grad, const int64_t *sizes, int64_t ndim,
                                    int64_t dim, tn_tensor *index)
{
    return tnx_scatter_add_(zeros_of(grad, sizes, ndim), dim, index, grad);
}

/* ---- scatter_reduce ---- */

typedef struct reduction {
    tn_tensor *grad, *self, *index, *src, *result;
    int64_t dim;
    bool include_self;
} reduction;

static tn_tensor *at_index(const reduction *r, tn_tensor *t)
{
    return tnx_gather(t, r->dim, r->index, false);
}

static void sum_gradients(const reduction *r, tn_tensor **of_self, tn_tensor **of_src)
{
    *of_self = r->grad;
    *of_src = at_index(r, r->grad);
}

/* Whether some product has several zeros among its factors, or may have, where Python stands for
 * the elements. */
static bool has_several(tn_tensor *zeros)
{
    tn_tensor *any = tnx_any(tnx_gt_scalar(zeros, tn_int(1)));
    tn_scalar found = tn_int(any && tni_stands_for_others(any));
    if (any && tni_can_look(any))
        (void)tni_scope_result(tn_item(any, &found), NULL);
    return found.v.i != 0;
}

/* For each element of src the product of all others that go to its place, written out: the
 * derivative of a quotient is wrong where two of them are zero. */
static tn_tensor *others(const reduction *r)
{
    int64_t dim = tni_wrapped(r->dim, r->index->ndim), n = r->index->sizes[dim];
    int64_t sizes[TN_MAX_DIMS + 1];
    for (int d = 0; d <= r->index->ndim; d++)
        sizes[d] = d == dim || d == dim + 1 ? n : 1;
    const tn_tensor_opts bools = tn_opts(TN_DTYPE_BOOL, r->index->device);
    tn_tensor *self = tnx_reshape(tnx_eye(n, &bools), sizes, r->index->ndim + 1);
    tn_tensor *same = tnx_eq(tnx_unsqueeze(r->index, dim + 1), tnx_unsqueeze(r->index, dim));
    tn_tensor *counts = tnx_logical_and(same, tnx_logical_not(self));
    tn_tensor *each = tnx_where_scalarother(counts, tnx_unsqueeze(r->src, dim), tn_int(1));
    tn_tensor *product = tnx_prod_dim_int(each, dim + 1, false, TN_DTYPE_NONE);
    return r->include_self ? tnx_mul(product, at_index(r, r->self)) : product;
}

/* Products of the others, without dividing by 0: a zero counts as 1 in the product that is its
 * gradient. */
static void prod_gradients(const reduction *r, tn_tensor **of_self, tn_tensor **of_src)
{
    const tn_scalar zero = tn_int(0), one = tn_int(1);
    tn_tensor *self = tnx_masked_fill(r->self, tnx_eq_scalar(r->self, zero), one);
    tn_tensor *product =
        tnx_scatter_reduce(self, r->dim, r->index, r->src, "prod", r->include_self);
    *of_self = tnx_div(tnx_mul(r->grad, product), self);

    tn_tensor *is_zero = tnx_eq_scalar(r->src, zero);
    const tn_tensor_opts whole = tn_opts(TN_DTYPE_I64, r->self->device);
    tn_tensor *counts = tnx_zeros_like(r->self, &whole, TN_FORMAT_NONE);
    counts = tnx_scatter_add(counts, r->dim, r->index,
                             tnx_to_dtype(is_zero, TN_DTYPE_I64, false, false, TN_FORMAT_NONE));
    if (tni_recording && has_several(counts)) {
        *of_src = tnx_mul(at_index(r, r->grad), others(r));
        return;
    }
    tn_tensor *only = tnx_logical_and(is_zero, tnx_eq_scalar(at_index(r, counts), one));
    tn_tensor *without = tnx_masked_fill(r->src, only, one);
    without = tnx_scatter_reduce(r->self, r->dim, r->index, without, "prod", r->include_self);
    tn_tensor *divided =
        tnx_div(at_index(r, tnx_mul(r->grad, r->result)), tnx_masked_fill(r->src, is_zero, one));
    *of_src = tnx_where(only, at_index(r, tnx_mul(r->grad, without)), divided);
}

/* What elements are counted in: the dtype of the result, but for halves, which end at 65504, or
 * skip numbers above 256. */
static tn_dtype counting(const reduction *r)
{
    tn_dtype own = (tn_dtype)r->self->dtype;
    return own == TN_DTYPE_F16 || own == TN_DTYPE_BF16 ? TN_DTYPE_F32 : own;
}

/* Each of @p grad by its count, rounded once. */
static tn_tensor *shared_out(tn_tensor *grad, tn_tensor *count)
{
    return tnx_to_other(tnx_div(grad, count), grad, false, false, TN_FORMAT_NONE);
}

static void mean_gradients(const reduction *r, tn_tensor **of_self, tn_tensor **of_src)
{
    const tn_tensor_opts opts = tn_opts(counting(r), r->self->device);
    tn_tensor *count = r->include_self ? tnx_ones_like(r->grad, &opts, TN_FORMAT_NONE)
                                       : tnx_zeros_like(r->grad, &opts, TN_FORMAT_NONE);
    count = tnx_scatter_add(count, r->dim, r->index, tnx_ones_like(r->src, &opts, TN_FORMAT_NONE));
    count = tnx_masked_fill(count, tnx_eq_scalar(count, tn_int(0)), tn_int(1));
    *of_self = shared_out(r->grad, count);
    *of_src = shared_out(at_index(r, r->grad), at_index(r, count));
}

/* Split evenly among all that equal the extreme. */
static void extreme_gradients(const reduction *r, tn_tensor **of_self, tn_tensor **of_src)
{
    tn_tensor *self_is = tnx_eq(r->self, r->result);
    tn_tensor *src_is = tnx_eq(r->src, at_index(r, r->result));
    tn_tensor *count = tnx_to_dtype(self_is, counting(r), false, false, TN_FORMAT_NONE);
    count = tnx_scatter_add(count, r->dim, r->index,
                            tnx_to_dtype(src_is, counting(r), false, false, TN_FORMAT_NONE));
    tn_tensor *share = shared_out(r->grad, count);
    *of_self = tnx_mul(self_is, share);
    *of_src = tnx_mul(src_is, at_index(r, share));
}

tn_status tni_grad_scatter_reduce_gradients(tn_tensor *grad, tn_tensor *self, int64_t dim,
                                            tn_tensor *index, tn_tensor *src, const char *reduce,
                                            bool include_self, tn_tensor *result, const bool *mask,
                                            int64_t mask_n, tn_tensor **made)
{
    (void)mask;
    (void)mask_n;
    if (tn_dtype_is_complex((tn_dtype)self->dtype)) { /* factors of a gradient are conjugated */
        self = tnx_conj(self);
        src = tnx_conj(src);
        result = tnx_conj(result);
    }
    const reduction r = {grad, self, index, src, result, dim, include_self};
    tn_tensor *of_self = NULL, *of_src = NULL;
    if (strcmp(reduce, "sum") == 0)
        sum_gradients(&r, &of_self, &of_src);
    else if (strcmp(reduce, "prod") == 0)
        prod_gradients(&r, &of_self, &of_src);
    else if (strcmp(reduce, "mean") == 0)
        mean_gradients(&r, &of_self, &of_src);
    else
        extreme_gradients(&r, &of_self, &of_src);
    if (!include_self)
        of_self = tnx_scatter_value(of_self, dim, index, tn_int(0));
    TN_TRY(tni_scope_settle());
    made[0] = tn_tensor_ref(of_self);
    made[1] = tn_tensor_ref(of_src);
    return TN_OK;
}

/* ---- masks ---- */

tn_tensor *tni_grad_masked_select_gradient(tn_tensor *grad, const int64_t *sizes, int64_t ndim,
                                           tn_tensor *mask)
{
    if (tni_scope_failed())
        return NULL;
    int64_t shape[TN_MAX_DIMS], n = ndim > mask->ndim ? ndim : mask->ndim;
    for (int64_t d = 1; d <= n; d++) {
        int64_t have = d <= ndim ? sizes[ndim - d] : 1;
        shape[n - d] = have != 1 || d > mask->ndim ? have : mask->sizes[mask->ndim - d];
    }
    return tnx_masked_scatter_(zeros_of(grad, shape, n), mask, grad);
}

/* ---- embedding ---- */

tn_tensor *tni_grad_embedding_gradient(tn_tensor *grad, tn_tensor *indices,
                                       const int64_t *weight_sizes, int64_t n, int64_t padding_idx,
                                       bool scale_grad_by_freq)
{
    (void)n;
    return tnx_embedding_dense_backward(grad, indices, weight_sizes[0], padding_idx,
                                        scale_grad_by_freq);
}

/* Dividing by the frequency was the first gradient's part. */
tn_tensor *tni_grad_embedding_double(tn_tensor *grad, tn_tensor *indices, int64_t padding_idx,
                                     bool by_frequency)
{
    if (tni_scope_failed())
        return NULL;
    int64_t sizes[TN_MAX_DIMS];
    memcpy(sizes, indices->sizes, (size_t)indices->ndim * sizeof *sizes);
    sizes[indices->ndim] = grad->sizes[1];
    tn_tensor *row = tnx_reshape(indices, (int64_t[]){-1}, 1);
    tn_tensor *rows = tnx_index_select(grad, 0, row);
    if (by_frequency) { /* each row was divided by how often its index occurs */
        tn_tensor *ones = tnx_new_ones(indices, &indices->numel, 1, NULL);
        tn_tensor *none = tnx_new_zeros(indices, grad->sizes, 1, NULL);
        tn_tensor *counts = tnx_index_add(none, 0, row, ones, tn_int(1));
        rows = tnx_div(rows, tnx_unsqueeze(tnx_index_select(counts, 0, row), 1));
    }
    if (padding_idx >= 0)
        rows = tnx_masked_fill(rows, tnx_unsqueeze(tnx_eq_scalar(row, tn_int(padding_idx)), 1),
                               tn_int(0));
    return tnx_reshape(rows, sizes, indices->ndim + 1);
}
