/* SPDX-License-Identifier: MIT */
/* composite/bag.c: gradients of bags of embeddings, as operators. What they are made of
 * differentiates again. */
#include "composite/leave.h"
#include "core/tensor.h"
#include "gen/composites.h"
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

/* One of @p of for each index, as a column in the dtype of @p like. */
static tn_tensor *column(tn_tensor *of, tn_tensor *which, const tn_tensor *like)
{
    tn_tensor *chosen = tnx_clamp_min(tnx_index_select(of, 0, which), tn_int(1));
    tn_dtype dtype = (tn_dtype)like->dtype;
    return tnx_unsqueeze(tnx_to_dtype(chosen, dtype, false, false, TN_FORMAT_NONE), 1);
}

/* The largest elements came from @p from; that of an empty bag from nowhere. */
static tn_tensor *largest(tn_tensor *grad, tn_tensor *from, tn_tensor *bag_size, tn_tensor *zeros)
{
    tn_tensor *empty = tnx_unsqueeze(tnx_eq_scalar(bag_size, tn_int(0)), 1);
    return tnx_scatter_add(zeros, 0, from, tnx_masked_fill(grad, empty, tn_int(0)));
}

static tn_status check_grad(const tn_tensor *grad)
{
    char text[TNI_TYPE_TEXT];
    TN_CHECK(tn_dtype_is_floating((tn_dtype)grad->dtype), TN_INVALID,
             "Expected tensor for argument #1 'grad_' to have one of the following scalar types: "
             "Half, BFloat16, Float, Double; but got %s instead (while checking arguments for "
             "embedding_bag)",
             tni_type_text((tn_dtype)grad->dtype, text));
    TN_CHECK(grad->ndim == 2, TN_INVALID,
             "embedding_bag_backward: grad has to be a 2D Tensor, but got Tensor of dimension %d",
             grad->ndim);
    return TN_OK;
}

static tn_status check_whole(const tn_tensor *t, const char *name)
{
    char text[TNI_TYPE_TEXT];
    TN_CHECK(t->dtype == TN_DTYPE_I64 || t->dtype == TN_DTYPE_I32, TN_INVALID,
             "Expected tensor for argument #1 '%s' to have one of the following scalar types: "
             "Long, Int; but got %s instead (while checking arguments for embedding_bag)",
             name, tni_type_text((tn_dtype)t->dtype, text));
    return TN_OK;
}

tn_status tni_composite_embedding_bag_dense_backward(tn_tensor *grad, tn_tensor *indices,
                                                     tn_tensor *offset2bag, tn_tensor *bag_size,
                                                     tn_tensor *maximum_indices,
                                                     int64_t num_weights, bool scale_grad_by_freq,
                                                     int64_t mode, tn_tensor *per_sample_weights,
                                                     int64_t padding_idx, tn_tensor **out)
{
    tn_scope *scope;
    TN_TRY(check_grad(grad));
    TN_TRY(check_whole(indices, "indices"));
    TN_CHECK(mode >= SUM && mode <= LARGEST, TN_INVALID,
             "embedding_bag: mode is 0 to 2, but got %lld", (long long)mode);
    TN_CHECK(!per_sample_weights || mode == SUM, TN_INVALID,
             "embedding_bag: per_sample_weights only supported with mode='sum'");
    const int64_t sizes[] = {num_weights, grad->sizes[1]};
    TN_TRY(tn_scope_enter(&scope));
    tn_tensor *zeros = tnx_new_zeros(grad, sizes, 2, NULL);
    if (mode == LARGEST)
        return tni_leave(scope, largest(grad, maximum_indices, bag_size, zeros), out);
    tn_tensor *rows = tnx_index_select(grad, 0, offset2bag);
    if (mode == MEAN)
        rows = tnx_div(rows, column(bag_size, offset2bag, grad));
    if (per_sample_weights)
        rows = tnx_mul(rows, tnx_unsqueeze(per_sample_weights, 1));
    if (scale_grad_by_freq) {
        tn_tensor *none = tnx_new_zeros(indices, sizes, 1, NULL);
        tn_tensor *ones = tnx_ones_like(indices, NULL, TN_FORMAT_NONE);
        rows =
            tnx_div(rows, column(tnx_index_add(none, 0, indices, ones, tn_int(1)), indices, grad));
    }
    rows = without_padding(rows, indices, padding_idx);
    return tni_leave(scope, tnx_index_add(zeros, 0, indices, rows, tn_int(1)), out);
}

/* Which bag each index is in, where the forward pass did not say: a one at each beginning but the
 * first, added up. */
static tn_tensor *bag_of(tn_tensor *indices, tn_tensor *offsets)
{
    const int64_t n = indices->sizes[0] + 1;
    tn_tensor *ones = tnx_ones_like(offsets, NULL, TN_FORMAT_NONE);
    tn_tensor *begins =
        tnx_index_add(tnx_new_zeros(offsets, &n, 1, NULL), 0, offsets, ones, tn_int(1));
    tn_tensor *count =
        tnx_sub_scalar(tnx_cumsum(begins, 0, (tn_dtype)offsets->dtype), tn_int(1), tn_int(1));
    return tnx_narrow(count, 0, 0, n - 1);
}

/* A gradient that is not of chosen rows alone is dense here, whatever @p sparse says. */
tn_status tni_composite_embedding_bag_backward(
    tn_tensor *grad, tn_tensor *indices, tn_tensor *offsets, tn_tensor *offset2bag,
    tn_tensor *bag_size, tn_tensor *maximum_indices, int64_t num_weights, bool scale_grad_by_freq,
    int64_t mode, bool sparse, tn_tensor *per_sample_weights, int64_t padding_idx, tn_tensor **out)
{
    (void)sparse;
    tn_scope *scope;
    TN_TRY(check_whole(indices, "indices"));
    TN_TRY(check_whole(offsets, "offsets"));
    TN_TRY(tn_scope_enter(&scope));
    bool unknown = indices->numel > 0 && offset2bag->numel == 0;
    tn_tensor *made = tnx__embedding_bag_dense_backward(
        grad, indices, unknown ? bag_of(indices, offsets) : offset2bag, bag_size, maximum_indices,
        num_weights, scale_grad_by_freq, mode, per_sample_weights, padding_idx);
    return tni_leave(scope, made, out);
}

tn_status tni_composite_embedding_bag_per_sample_weights_backward(
    tn_tensor *grad, tn_tensor *weight, tn_tensor *indices, tn_tensor *offsets,
    tn_tensor *offset2bag, int64_t mode, int64_t padding_idx, tn_tensor **out)
{
    tn_scope *scope;
    TN_CHECK(mode == SUM, TN_INVALID,
             "embedding_bag_backward: per_sample_weights only supported for mode='sum'");
    TN_TRY(check_grad(grad));
    TN_TRY(check_whole(indices, "indices"));
    TN_TRY(tn_scope_enter(&scope));
    bool unknown = indices->numel > 0 && offset2bag->numel == 0;
    tn_tensor *which = unknown ? bag_of(indices, offsets) : offset2bag;
    tn_tensor *rows =
        tnx_mul(tnx_index_select(grad, 0, which), tnx_index_select(weight, 0, indices));
    rows = without_padding(rows, indices, padding_idx);
    return tni_leave(scope, tnx_sum_dim(rows, (const int64_t[]){1}, 1, false, TN_DTYPE_NONE), out);
}
