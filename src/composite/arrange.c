/* SPDX-License-Identifier: MIT */
/* composite/arrange.c: tensors put beside each other, turned round and taken apart. */
#include <string.h>
#include "base/alloc.h"
#include "composite/leave.h"
#include "core/at_hand.h"
#include "core/tensor.h"
#include "gen/composites.h"
#include "tenon/ops.h"

/* ---- dimensions ---- */

static tn_tensor *with_dims(tn_tensor *t, int least)
{
    switch (least) {
    case 1:
        return t->ndim == 0 ? tnx_reshape(t, (const int64_t[]){1}, 1) : t;
    case 2:
        return t->ndim == 0   ? tnx_reshape(t, (const int64_t[]){1, 1}, 2)
               : t->ndim == 1 ? tnx_unsqueeze(t, 0)
                              : t;
    default:
        return t->ndim == 0   ? tnx_reshape(t, (const int64_t[]){1, 1, 1}, 3)
               : t->ndim == 1 ? tnx_unsqueeze(tnx_unsqueeze(t, 0), -1)
               : t->ndim == 2 ? tnx_unsqueeze(t, -1)
                              : t;
    }
}

static tn_status one_with_dims(tn_tensor *self, int least, tn_tensor **out)
{
    tn_scope *scope;
    TN_TRY(tn_scope_enter(&scope));
    return tni_leave(scope, with_dims(self, least), out);
}

static tn_status each_with_dims(tn_tensor *const *tensors, int64_t n, int least, tn_tensor ***out,
                                int64_t *out_n)
{
    tn_tensor **list = tni_alloc((size_t)(n ? n : 1) * sizeof *list);
    TN_CHECK(list, TN_NOMEM, "cannot allocate a list of %lld tensors", (long long)n);
    for (int64_t i = 0; i < n; i++) {
        tn_status status = one_with_dims(tensors[i], least, &list[i]);
        if (status != TN_OK) {
            tn_tensor_list_free(list, i);
            return status;
        }
    }
    *out = list;
    *out_n = n;
    return TN_OK;
}

#define AT_LEAST(n)                                                                           \
    tn_status tni_composite_atleast_##n##d(tn_tensor *self, tn_tensor **out)                  \
    {                                                                                         \
        return one_with_dims(self, n, out);                                                   \
    }                                                                                         \
    tn_status tni_composite_atleast_##n##d_each(tn_tensor *const *tensors, int64_t tensors_n, \
                                                tn_tensor ***out, int64_t *out_n)             \
    {                                                                                         \
        return each_with_dims(tensors, tensors_n, n, out, out_n);                             \
    }
AT_LEAST(1)
AT_LEAST(2)
AT_LEAST(3)

tn_status tni_composite_adjoint(tn_tensor *self, tn_tensor **out)
{
    TN_AUTO(tn_tensor) turned = NULL;
    TN_CHECK(self->ndim != 1, TN_INVALID,
             "tensor.adjoint() is only supported on matrices or batches of matrices. Got 1-D "
             "tensor.");
    if (self->ndim == 0)
        return tn_conj(self, out);
    TN_TRY(tn_transpose(self, -2, -1, &turned));
    return tn_conj(turned, out);
}

tn_status tni_composite_fliplr(tn_tensor *self, tn_tensor **out)
{
    TN_CHECK(self->ndim >= 2, TN_INVALID, "Input must be >= 2-d.");
    return tn_flip(self, (const int64_t[]){1}, 1, out);
}

tn_status tni_composite_flipud(tn_tensor *self, tn_tensor **out)
{
    TN_CHECK(self->ndim >= 1, TN_INVALID, "Input must be >= 1-d.");
    return tn_flip(self, (const int64_t[]){0}, 1, out);
}

tn_status tni_composite_diagflat(tn_tensor *self, int64_t offset, tn_tensor **out)
{
    TN_AUTO(tn_tensor) flat = NULL;
    TN_TRY(tn_reshape(self, (const int64_t[]){-1}, 1, &flat));
    return tn_diag_embed(flat, offset, -2, -1, out);
}

tn_status tni_composite_narrow_copy(tn_tensor *self, int64_t dim, int64_t start, int64_t length,
                                    tn_tensor **out)
{
    TN_AUTO(tn_tensor) part = NULL;
    if (length < 0 && self->ndim > 0) { /* in other words than narrow: first where, then how much */
        int at;
        TN_TRY(tni_wrap_dim(dim, self->ndim, &at));
        int64_t size = self->sizes[at];
        TN_CHECK(start >= -size && start <= size, TN_INDEX,
                 "start out of range (expected to be in range of [-%lld, %lld], but got %lld)",
                 (long long)size, (long long)size, (long long)start);
        TN_CHECK(length >= 0, TN_INVALID,
                 "start (%lld) + length (%lld) exceeds dimension size (%lld).",
                 (long long)(start < 0 ? start + size : start), (long long)length, (long long)size);
    }
    TN_TRY(tn_narrow(self, dim, start, length, &part));
    return tn_clone(part, TN_FORMAT_CONTIGUOUS, out);
}

tn_status tni_composite_reshape_as(tn_tensor *self, tn_tensor *other, tn_tensor **out)
{
    return tn_reshape(self, other->sizes, other->ndim, out);
}

tn_status tni_composite_type_as(tn_tensor *self, tn_tensor *other, tn_tensor **out)
{
    tn_tensor_opts opts = tn_opts((tn_dtype)other->dtype, other->device);
    return tn_to(self, &opts, false, false, TN_FORMAT_NONE, out);
}

tn_status tni_composite_sum_to_size(tn_tensor *self, const int64_t *size, int64_t size_n,
                                    tn_tensor **out)
{
    char a[TNI_SIZES_TEXT], b[TNI_SIZES_TEXT];
    int64_t dims[TN_MAX_DIMS], n = 0, lead = self->ndim - size_n;
    bool fits = lead >= 0;
    for (int d = 0; fits && d < self->ndim; d++) {
        int64_t wanted = d < lead ? 1 : size[d - lead];
        fits = d < lead || wanted == 1 || wanted == self->sizes[d];
        if (d < lead || (wanted == 1 && self->sizes[d] != 1))
            dims[n++] = d;
    }
    TN_CHECK(fits, TN_INVALID, "size {%s} is not expandable to size {%s}.",
             tni_format_sizes((int)size_n, size, a, sizeof a),
             tni_format_sizes(self->ndim, self->sizes, b, sizeof b));
    if (size_n == 0) /* also of a number, which becomes int64 where it is whole */
        return tn_sum(self, TN_DTYPE_NONE, out);
    if (n == 0) {
        *out = tn_tensor_ref(self);
        return TN_OK;
    }
    TN_AUTO(tn_tensor) sum = NULL;
    TN_TRY(tn_sum_dim(self, dims, n, true, TN_DTYPE_NONE, &sum));
    return tn_view(sum, size, size_n, out);
}

tn_status tni_composite_argwhere(tn_tensor *self, tn_tensor **out)
{
    return tn_nonzero(self, out);
}

/* ---- beside each other ---- */

tn_status tni_composite_column_stack(tn_tensor *const *tensors, int64_t tensors_n, tn_tensor **out)
{
    tn_scope *scope;
    TN_CHECK(tensors_n > 0, TN_INVALID, "column_stack expects a non-empty TensorList");
    tn_tensor **list = tni_alloc((size_t)tensors_n * sizeof *list);
    TN_CHECK(list, TN_NOMEM, "cannot allocate a list of %lld tensors", (long long)tensors_n);
    tn_status status = tn_scope_enter(&scope);
    if (status != TN_OK) {
        tni_free(list);
        return status;
    }
    bool whole = true;
    for (int64_t i = 0; i < tensors_n; i++) {
        tn_tensor *t = tensors[i];
        list[i] = t->ndim <= 1 ? tnx_reshape(t, (const int64_t[]){t->numel, 1}, 2) : t;
        whole &= list[i] != NULL;
    }
    tn_tensor *made = whole ? tnx_hstack(list, tensors_n) : NULL;
    tni_free(list);
    return tni_leave(scope, made, out);
}

/* A tensor without dimensions changes a dtype only to a higher kind. */
static int kind_of(tn_dtype dtype)
{
    return tn_dtype_is_complex(dtype)           ? 3
           : tn_dtype_is_floating(dtype)        ? 2
           : tn_dtype_is_integral(dtype, false) ? 1
                                                : 0;
}

#define BLOCKS 32 /* that are joined at a time */

tn_status tni_composite_block_diag(tn_tensor *const *tensors, int64_t tensors_n, tn_tensor **out)
{
    tn_scope *scope;
    int64_t columns = 0;
    TN_CHECK(tensors_n > 0, TN_INVALID, "torch.block_diag(): expected a non-empty TensorList");
    tn_dtype dtype = TN_DTYPE_NONE, weak = TN_DTYPE_NONE; /* of what has dimensions, and has none */
    for (int64_t i = 0; i < tensors_n; i++) {
        const tn_tensor *t = tensors[i];
        TN_CHECK(t->ndim <= 2, TN_INVALID,
                 "torch.block_diag: Input tensors must have 2 or fewer dimensions. Input %lld has "
                 "%d dimensions",
                 (long long)i, t->ndim);
        columns += t->ndim == 0 ? 1 : t->sizes[t->ndim - 1];
        tn_dtype *one = t->ndim ? &dtype : &weak;
        *one =
            *one == TN_DTYPE_NONE ? (tn_dtype)t->dtype : tn_promote_types(*one, (tn_dtype)t->dtype);
    }
    if (weak != TN_DTYPE_NONE && (dtype == TN_DTYPE_NONE || kind_of(weak) > kind_of(dtype)))
        dtype = dtype == TN_DTYPE_NONE ? weak : tn_promote_types(dtype, weak);
    TN_TRY(tn_scope_enter(&scope));
    /* Each block with zeros at its sides, one below the other. */
    tn_tensor *below[BLOCKS], *all = NULL;
    int64_t column = 0, held = 0;
    for (int64_t i = 0; i < tensors_n; i++) {
        tn_tensor *t = tensors[i];
        int64_t h = t->ndim == 2 ? t->sizes[0] : 1, w = t->ndim == 0 ? 1 : t->sizes[t->ndim - 1];
        tn_tensor *block = tnx_to_dtype(tnx_reshape(t, (const int64_t[]){h, w}, 2), dtype, false,
                                        false, TN_FORMAT_NONE);
        tn_tensor *zeros = tnx_new_zeros(block, (const int64_t[]){h, columns}, 2, NULL);
        below[held++] =
            tnx_slice_scatter(zeros, block, 1, tn_some_int(column), tn_some_int(column + w), 1);
        column += w;
        if (held == BLOCKS || i + 1 == tensors_n) {
            all = tnx_cat(below, held, 0);
            below[0] = all;
            held = 1;
        }
    }
    return tni_leave(scope, all, out);
}

/* How many ways there are to take @p r of @p n elements, @p r at least 1. False: with r elements
 * each, they are more than 64 bits count. */
static bool count_ways(int64_t n, int64_t r, bool replacement, int64_t *count)
{
    *count = n > 0 && (replacement || r <= n);
    /* Each step's product is r times a count or less, and divided without a rest. */
    for (int64_t i = 1; *count && i <= r; i++) {
        if (!tni_i64_mul(*count, replacement ? n - 1 + i : n - r + i, count))
            return false;
        *count /= i;
    }
    int64_t elements;
    return tni_i64_mul(*count, r, &elements);
}

/* The places of @p r of @p n elements in order, in @p count rows of @p r. */
static void choose(int64_t n, int64_t r, bool replacement, int64_t count, int64_t *rows)
{
    int64_t at[64];
    for (int64_t i = 0; i < r; i++)
        at[i] = replacement ? 0 : i;
    for (int64_t row = 0; row < count; row++) {
        memcpy(rows + row * r, at, (size_t)r * sizeof *at);
        int64_t i = r - 1;
        while (i >= 0 && at[i] == (replacement ? n - 1 : n - r + i))
            i--;
        if (i < 0)
            break;
        at[i]++;
        for (int64_t j = i + 1; j < r; j++)
            at[j] = replacement ? at[i] : at[j - 1] + 1;
    }
}

tn_status tni_composite_combinations(tn_tensor *self, int64_t r, bool with_replacement,
                                     tn_tensor **out)
{
    char text[TNI_SIZES_TEXT];
    TN_CHECK(self->ndim == 1, TN_INVALID, "Expect a 1D vector, but got shape %s",
             tni_format_sizes(self->ndim, self->sizes, text, sizeof text));
    TN_CHECK(r >= 0, TN_INVALID, "Expect a non-negative number, but got %lld", (long long)r);
    if (r == 0)
        return tn_new_empty(self, (const int64_t[]){0}, 1, NULL, out);
    TN_CHECK(r <= 64, TN_INVALID, "combinations of %lld elements are too many", (long long)r);
    int64_t count;
    TN_CHECK(count_ways(self->numel, r, with_replacement, &count), TN_INVALID,
             "combinations(): the result has more elements than 64 bits count");
    TN_AUTO(tn_tensor) places = NULL;
    TN_AUTO(tn_tensor) here = NULL;
    TN_AUTO(tn_tensor) flat = NULL;
    int64_t many = count * r;
    tn_tensor_opts opts = tn_opts(TN_DTYPE_I64, self->device);
    TN_TRY(tn_new_empty(self, &many, 1, &opts, &here));
    if (!tni_is_hollow(here)) {
        TN_TRY(tni_tensor_new(1, &many, NULL, TN_DTYPE_I64, TN_CPU, &places));
        choose(self->numel, r, with_replacement, count, places->data);
        TN_TRY(tn_copy_(here, places, false));
    }
    TN_TRY(tn_index_select(self, 0, here, &flat));
    return tn_view(flat, (const int64_t[]){count, r}, 2, out);
}

/* ---- powers side by side ---- */

static tn_status powers(tn_tensor *x, int64_t n, bool increasing, tn_tensor **out)
{
    tn_scope *scope;
    TN_TRY(tn_scope_enter(&scope));
    const int64_t last = -1;
    tn_dtype dtype =
        tn_dtype_is_integral((tn_dtype)x->dtype, true) ? TN_DTYPE_I64 : (tn_dtype)x->dtype;
    x = tnx_to_dtype(x, dtype, false, false, TN_FORMAT_NONE);
    tn_tensor *column = tnx_unsqueeze(x, -1), *made = NULL;
    if (n > 0)
        made = tnx_ones_like(column, NULL, TN_FORMAT_CONTIGUOUS);
    else if (column)
        made = tnx_slice(column, -1, tn_some_int(0), tn_some_int(0), 1);
    if (n > 1 && column) {
        int64_t sizes[TN_MAX_DIMS];
        for (int d = 0; d < column->ndim; d++)
            sizes[d] = d == column->ndim - 1 ? n - 1 : column->sizes[d];
        tn_tensor *many = tnx_expand(column, sizes, column->ndim, false);
        tn_tensor *parts[2] = {made, tnx_cumprod(many, -1, TN_DTYPE_NONE)};
        made = parts[1] ? tnx_cat(parts, 2, -1) : NULL;
    }
    return tni_leave(scope, increasing ? made : tnx_flip(made, &last, 1), out);
}

tn_status tni_composite_vander(tn_tensor *x, tn_opt_int n, bool increasing, tn_tensor **out)
{
    TN_CHECK(x->ndim == 1, TN_INVALID, "x must be a one-dimensional tensor.");
    int64_t count = n.has ? n.value : x->numel;
    TN_CHECK(count >= 0, TN_INVALID, "N must be non-negative.");
    return powers(x, count, increasing, out);
}

tn_status tni_composite_linalg_vander(tn_tensor *x, tn_opt_int n, tn_tensor **out)
{
    tn_dtype dtype = (tn_dtype)x->dtype;
    TN_CHECK(dtype != TN_DTYPE_BOOL && dtype != TN_DTYPE_F16 && dtype != TN_DTYPE_BF16, TN_INVALID,
             "linalg.vander supports floating point, complex, and integer tensors, but got %s",
             tni_dtype_text(dtype));
    int64_t count = n.has ? n.value : x->ndim ? x->sizes[x->ndim - 1] : 1;
    TN_CHECK(count > 1, TN_INVALID, "N must be greater than 1.");
    if (x->ndim)
        return powers(x, count, true, out);
    TN_AUTO(tn_tensor) row = NULL;
    TN_TRY(tn_unsqueeze(x, 0, &row));
    return powers(row, count, true, out);
}
