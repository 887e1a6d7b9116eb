/* SPDX-License-Identifier: MIT */
/* autograd/formula_bag.c: gradients of bags of embeddings, written by hand. See formula.c. */
#include "gen/gradients.h"

#include "tenon/ops.h"

enum { SUM, MEAN, LARGEST };

/* Rows of padding count for nothing. */
static tn_tensor *without_padding(tn_tensor *rows, tn_tensor *indices, int64_t padding)
{
    if (padding < 0)
        return rows;
    tn_tensor *is_padding = tnx_eq_scalar(indices, tn_int(padding));
    return tnx_masked_fill(rows, tnx_unsqueeze(is_padding, 1), tn_int(0));
}

/* Indices behind the last bag are in one more, of which @p of has a row of zeros then. */
static tn_tensor *with_none(tn_tensor *of, bool ends)
{
    static const int64_t pads[] = {0, 0, 0, 1};
    int64_t dims = of ? of->ndim : 0;
    return ends ? tnx_constant_pad_nd(of, pads + (dims == 1 ? 2 : 0), 2 * dims, tn_int(0)) : of;
}

/* One of @p of for each index, as a column in the dtype of @p like. */
static tn_tensor *column(tn_tensor *of, tn_tensor *which, const tn_tensor *like)
{
    tn_tensor *chosen = tnx_clamp_min(tnx_index_select(of, 0, which), tn_int(1));
    tn_dtype dtype = like ? (tn_dtype)like->dtype : TN_DTYPE_F32;
    return tnx_unsqueeze(tnx_to_dtype(chosen, dtype, false, false, TN_FORMAT_NONE), 1);
}

/* The largest elements came from @p from; that of an empty bag from nowhere. */
static tn_tensor *largest(tn_tensor *grad, tn_tensor *from, tn_tensor *bag_size, tn_tensor *zeros)
{
    tn_tensor *empty = tnx_unsqueeze(tnx_eq_scalar(bag_size, tn_int(0)), 1);
    return tnx_scatter_add(zeros, 0, from, tnx_masked_fill(grad, empty, tn_int(0)));
}

tn_tensor *tni_grad_bag_weight(tn_tensor *grad, tn_tensor *indices, tn_tensor *bag_of,
                               tn_tensor *bag_size, tn_tensor *from, const int64_t *sizes,
                               int64_t ndim, bool by_frequency, int64_t mode, tn_tensor *scale,
                               bool ends, int64_t padding)
{
    tn_tensor *zeros = tnx_new_zeros(grad, sizes, ndim, NULL);
    if (mode == LARGEST)
        return largest(grad, from, bag_size, zeros);
    tn_tensor *rows = tnx_index_select(with_none(grad, ends), 0, bag_of);
    if (mode == MEAN)
        rows = tnx_div(rows, column(with_none(bag_size, ends), bag_of, grad));
    if (scale)
        rows = tnx_mul(rows, tnx_unsqueeze(scale, 1));
    if (by_frequency) {
        tn_tensor *none = tnx_new_zeros(indices, sizes, 1, NULL);
        tn_tensor *ones = tnx_ones_like(indices, NULL, TN_FORMAT_NONE);
        rows =
            tnx_div(rows, column(tnx_index_add(none, 0, indices, ones, tn_int(1)), indices, grad));
    }
    return tnx_index_add(zeros, 0, indices, without_padding(rows, indices, padding), tn_int(1));
}

tn_tensor *tni_grad_bag_scale(tn_tensor *grad, tn_tensor *weight, tn_tensor *indices,
                              tn_tensor *bag_of, bool ends, int64_t padding)
{
    tn_tensor *rows = tnx_mul(tnx_index_select(with_none(grad, ends), 0, bag_of),
                              tnx_index_select(weight, 0, indices));
    return tnx_sum_dim(without_padding(rows, indices, padding), (const int64_t[]){1}, 1, false,
                       TN_DTYPE_NONE);
}
