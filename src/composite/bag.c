/* SPDX-License-Identifier: MIT */
/* composite/bag.c: gradients of embeddings and of bags of them, as operators. What they are made of
 * differentiates again. */
#include "composite/leave.h"
#include "core/at_hand.h"
#include "core/tensor.h"
#include "gen/composites.h"
#include "shape/index.h"
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

/* ---- what is refused ---- */

static tn_status check_matrix(const tn_tensor *t, const char *name)
{
    TN_CHECK(t->ndim == 2, TN_INVALID,
             "embedding_bag_backward: %s has to be a 2D Tensor, but got Tensor of dimension %d",
             name, t->ndim);
    return TN_OK;
}

static tn_status check_grad(const tn_tensor *grad)
{
    char text[TNI_TYPE_TEXT];
    int last;
    TN_CHECK(tn_dtype_is_floating((tn_dtype)grad->dtype), TN_INVALID,
             "Expected tensor for argument #1 'grad_' to have one of the following scalar types: "
             "Half, BFloat16, Float, Double; but got %s instead (while checking arguments for "
             "embedding_bag)",
             tni_type_text((tn_dtype)grad->dtype, text));
    TN_TRY(tni_wrap_dim(1, grad->ndim, &last));
    return check_matrix(grad, "grad");
}

static bool is_whole(tn_dtype dtype)
{
    return dtype == TN_DTYPE_I64 || dtype == TN_DTYPE_I32;
}

static tn_status check_whole(tn_dtype dtype, const char *name)
{
    char text[TNI_TYPE_TEXT];
    TN_CHECK(is_whole(dtype), TN_INVALID,
             "Expected tensor for argument #1 '%s' to have one of the following scalar types: "
             "Long, Int; but got %s instead (while checking arguments for embedding_bag)",
             name, tni_type_text(dtype, text));
    return TN_OK;
}

static tn_status check_dtype(const tn_tensor *t, tn_dtype want)
{
    TN_CHECK(t->dtype == want, TN_INVALID, "expected scalar type %s but found %s",
             tni_dtype_text(want), tni_dtype_text((tn_dtype)t->dtype));
    return TN_OK;
}

/* One of @p t for each of @p n things. */
static tn_status check_each(const tn_tensor *t, const char *name, int64_t n, const char *things)
{
    char text[TNI_SIZES_TEXT];
    TN_CHECK(t->ndim == 1 && t->sizes[0] == n, TN_INDEX,
             "embedding_bag_backward: expected an element of %s for each of %lld %s, but got a "
             "Tensor of size %s",
             name, (long long)n, things, tni_format_sizes(t->ndim, t->sizes, text, sizeof text));
    return TN_OK;
}

static tn_status check_sparse(bool sparse, bool scale_grad_by_freq)
{
    TN_CHECK(!sparse || !scale_grad_by_freq, TN_INVALID,
             "embedding_backward: scale_grad_by_freq not supported with sparse gradients");
    return TN_OK;
}

/* ---- dense gradients ---- */

/* Places in a matrix of @p columns, the rows of which are @p rows, as places in all of it. */
static tn_tensor *places(tn_tensor *rows, int64_t columns)
{
    tn_tensor *wide = tnx_to_dtype(rows, TN_DTYPE_I64, false, false, TN_FORMAT_NONE);
    tn_tensor *ones = tnx_ones_like(wide, NULL, TN_FORMAT_NONE);
    tn_tensor *counted = tnx_sub_scalar(tnx_cumsum(ones, 1, TN_DTYPE_I64), tn_int(1), tn_int(1));
    return tnx_flatten(tnx_add(tnx_mul_scalar(wide, tn_int(columns)), counted, tn_int(1)), 0, 1);
}

/* Bags that hold something have a row that it is from. */
static tn_status check_empty(const tn_tensor *grad, tn_tensor *bag_size)
{
    TN_AUTO(tn_tensor) any = NULL;
    tn_scalar found;
    TN_TRY(tni_same_device(grad, bag_size));
    if (!tni_is_at_hand(bag_size))
        return TN_OK;
    TN_TRY(tn_any(bag_size, &any));
    TN_TRY(tn_item(any, &found));
    TN_CHECK(found.v.i == 0, TN_INDEX, "index out of range in self");
    return TN_OK;
}

/* The largest elements came from @p from; that of an empty bag from nowhere. */
static tn_status largest(tn_tensor *grad, tn_tensor *bag_size, tn_tensor *from, int64_t num_weights,
                         tn_tensor **out)
{
    const int64_t sizes[] = {num_weights, grad->sizes[1]};
    tn_scope *scope;
    int last;
    TN_TRY(tni_wrap_dim(1, from->ndim, &last));
    TN_TRY(check_matrix(from, "maximum_indices"));
    TN_CHECK(is_whole((tn_dtype)from->dtype), TN_INVALID,
             "index_add_(): Expected dtype int32/int64 for index but got: %s",
             tni_dtype_text((tn_dtype)from->dtype));
    if (num_weights == 0) { /* every bag is empty, and `from` shows a row that is not there */
        TN_TRY(check_empty(grad, bag_size));
        return tn_new_zeros(grad, sizes, 2, NULL, out);
    }
    TN_TRY(tn_scope_enter(&scope));
    tn_tensor *empty = tnx_unsqueeze(tnx_eq_scalar(bag_size, tn_int(0)), 1);
    tn_tensor *kept = tnx_flatten(tnx_masked_fill(grad, empty, tn_int(0)), 0, 1);
    tn_tensor *zeros = tnx_flatten(tnx_new_zeros(grad, sizes, 2, NULL), 0, 1);
    tn_tensor *to = places(tnx_narrow(from, 1, 0, sizes[1]), sizes[1]);
    tn_tensor *made = tnx_index_add(zeros, 0, to, kept, tn_int(1));
    return tni_leave(scope, tnx_reshape(made, sizes, 2), out);
}

tn_status tni_composite_embedding_bag_dense_backward(tn_tensor *grad, tn_tensor *indices,
                                                     tn_tensor *offset2bag, tn_tensor *bag_size,
                                                     tn_tensor *maximum_indices,
                                                     int64_t num_weights, bool scale_grad_by_freq,
                                                     int64_t mode, tn_tensor *per_sample_weights,
                                                     int64_t padding_idx, tn_tensor **out)
{
    const tn_dtype index = (tn_dtype)indices->dtype;
    tn_scope *scope;
    TN_TRY(check_grad(grad));
    TN_CHECK(mode >= SUM && mode <= LARGEST, TN_INVALID,
             "embedding_bag: mode is 0 to 2, but got %lld", (long long)mode);
    TN_CHECK(num_weights >= 0, TN_INVALID, "zeros: Dimension size must be non-negative.");
    TN_CHECK(!per_sample_weights || mode == SUM, TN_INVALID,
             "embedding_bag: per_sample_weights only supported with mode='sum'");
    if (mode != SUM)
        TN_TRY(check_each(bag_size, "bag_size", grad->sizes[0], "bags"));
    if (mode == LARGEST)
        return largest(grad, bag_size, maximum_indices, num_weights, out);
    TN_CHECK(indices->ndim == 1, TN_INDEX, "index_select(): Index is supposed to be a vector");
    TN_CHECK(is_whole(index), TN_UNSUPPORTED,
             "\"_embedding_bag_dense_backward_cpu_sum_mean\" not implemented for '%s'",
             tni_dtype_text(index));
    TN_TRY(check_dtype(offset2bag, index));
    TN_TRY(check_dtype(bag_size, index));
    TN_TRY(check_each(offset2bag, "offset2bag", indices->numel, "indices"));
    if (per_sample_weights) {
        TN_TRY(check_dtype(per_sample_weights, (tn_dtype)grad->dtype));
        TN_TRY(check_each(per_sample_weights, "per_sample_weights", indices->numel, "indices"));
    }
    const int64_t sizes[] = {num_weights, grad->sizes[1]};
    TN_TRY(tn_scope_enter(&scope));
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
    tn_tensor *zeros = tnx_new_zeros(grad, sizes, 2, NULL);
    return tni_leave(scope, tnx_index_add(zeros, 0, indices, rows, tn_int(1)), out);
}

/* ---- bags by where they begin ---- */

/* The dtype that indices and offsets are read in, and whether the forward pass said which bag each
 * index is in. */
static tn_status check_bags(const tn_tensor *indices, const tn_tensor *offsets,
                            const tn_tensor *offset2bag, tn_dtype *dtype, bool *known)
{
    *dtype = tn_promote_types((tn_dtype)indices->dtype, (tn_dtype)offsets->dtype);
    *known = indices->numel == 0 || offset2bag->numel > 0;
    TN_TRY(check_whole(*dtype, "indices"));
    return *known ? check_whole((tn_dtype)offset2bag->dtype, "offset2bag") : TN_OK;
}

static tn_tensor *in_dtype(tn_tensor *t, tn_dtype dtype)
{
    return tnx_to_dtype(t, dtype, false, false, TN_FORMAT_NONE);
}

/* Which bag each of @p n indices is in, where the forward pass did not say: a one at each beginning
 * but the first, added up. */
static tn_tensor *bag_of(int64_t n, tn_tensor *offsets, tn_dtype dtype)
{
    const int64_t more = n + 1;
    tn_tensor *begin = in_dtype(offsets, dtype);
    tn_tensor *ones = tnx_ones_like(begin, NULL, TN_FORMAT_NONE);
    tn_tensor *begins =
        tnx_index_add(tnx_new_zeros(begin, &more, 1, NULL), 0, begin, ones, tn_int(1));
    tn_tensor *count = tnx_sub_scalar(tnx_cumsum(begins, 0, dtype), tn_int(1), tn_int(1));
    return tnx_narrow(count, 0, 0, n);
}

/* A gradient of rows that are not chosen is dense here, whatever @p sparse says. */
tn_status tni_composite_embedding_bag_backward(
    tn_tensor *grad, tn_tensor *indices, tn_tensor *offsets, tn_tensor *offset2bag,
    tn_tensor *bag_size, tn_tensor *maximum_indices, int64_t num_weights, bool scale_grad_by_freq,
    int64_t mode, bool sparse, tn_tensor *per_sample_weights, int64_t padding_idx, tn_tensor **out)
{
    tn_scope *scope;
    tn_dtype dtype;
    bool known;
    TN_TRY(check_bags(indices, offsets, offset2bag, &dtype, &known));
    TN_TRY(check_sparse(sparse, scale_grad_by_freq));
    TN_TRY(tn_scope_enter(&scope));
    tn_tensor *made = tnx__embedding_bag_dense_backward(
        grad, in_dtype(indices, dtype), known ? offset2bag : bag_of(indices->numel, offsets, dtype),
        bag_size, maximum_indices, num_weights, scale_grad_by_freq, mode, per_sample_weights,
        padding_idx);
    return tni_leave(scope, made, out);
}

tn_status tni_composite_embedding_bag_per_sample_weights_backward(
    tn_tensor *grad, tn_tensor *weight, tn_tensor *indices, tn_tensor *offsets,
    tn_tensor *offset2bag, int64_t mode, int64_t padding_idx, tn_tensor **out)
{
    const tn_dtype given = (tn_dtype)grad->dtype;
    const int64_t last = 1;
    tn_scope *scope;
    tn_dtype dtype;
    bool known;
    TN_CHECK(mode == SUM, TN_INVALID,
             "embedding_bag_backward: per_sample_weights only supported for mode='sum'");
    TN_TRY(check_matrix(grad, "grad"));
    TN_TRY(check_matrix(weight, "weight"));
    TN_CHECK(weight->sizes[1] == grad->sizes[1], TN_INVALID,
             "embedding_bag_backward: grad and weight have %lld and %lld columns",
             (long long)grad->sizes[1], (long long)weight->sizes[1]);
    TN_TRY(check_bags(indices, offsets, offset2bag, &dtype, &known));
    TN_CHECK(indices->ndim == 1, TN_INVALID,
             "embedding_bag_backward: indices has to be a 1D Tensor, but got Tensor of dimension "
             "%d",
             indices->ndim);
    TN_CHECK(tn_dtype_is_floating(given), TN_UNSUPPORTED,
             "\"_embedding_bag_per_sample_weights_backward_cpu\" not implemented for '%s'",
             tni_dtype_text(given));
    TN_TRY(check_dtype(weight, given));
    if (known) {
        TN_TRY(check_dtype(offset2bag, dtype));
        TN_TRY(check_each(offset2bag, "offset2bag", indices->numel, "indices"));
    }
    TN_TRY(tn_scope_enter(&scope));
    tn_tensor *ids = in_dtype(indices, dtype);
    tn_tensor *which = known ? offset2bag : bag_of(indices->numel, offsets, dtype);
    /* Halves are rounded once: what is left of products that cancel is not rounding. */
    const tn_dtype wide = given == TN_DTYPE_F16 || given == TN_DTYPE_BF16 ? TN_DTYPE_F32 : given;
    tn_tensor *rows = tnx_mul(in_dtype(tnx_index_select(grad, 0, which), wide),
                              in_dtype(tnx_index_select(weight, 0, ids), wide));
    rows = without_padding(rows, indices, padding_idx);
    tn_tensor *made = tnx_sum_dim(rows, &last, 1, false, TN_DTYPE_NONE);
    return tni_leave(scope, in_dtype(made, given), out);
}

/* ---- single rows ---- */

tn_status tni_composite_embedding_backward(tn_tensor *grad, tn_tensor *indices, int64_t num_weights,
                                           int64_t padding_idx, bool scale_grad_by_freq,
                                           bool sparse, tn_tensor **out)
{
    TN_TRY(check_sparse(sparse, scale_grad_by_freq));
    return tn_embedding_dense_backward(grad, indices, num_weights, padding_idx, scale_grad_by_freq,
                                       out);
}
