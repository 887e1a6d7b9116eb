/* SPDX-License-Identifier: MIT */
/* iter/join_shape.c: what joining, padding, repeating and moving around gives: cat, stack,
 * constant_pad_nd, repeat, roll, flip, tril, triu. */
#include <string.h>
#include "gen/shapes.h"
#include "iter/iter.h"
#include "shape/index.h"

/* ---- cat ---- */

/* A tensor of size [0] joins with anything: an old habit that programs rely on. */
static bool is_skipped(const tn_tensor *t)
{
    return t->ndim == 1 && t->sizes[0] == 0;
}

static tn_status check_cat(tn_tensor *const *tensors, int64_t n)
{
    TN_CHECK(n > 0, TN_VALUE, "torch.cat(): expected a non-empty list of Tensors");
    for (int64_t i = 0; i < n; i++) {
        TN_CHECK(tensors[i], TN_INVALID, "cat(): tensor number %lld in the list is None",
                 (long long)i);
        TN_CHECK(tensors[i]->ndim > 0, TN_INVALID,
                 "zero-dimensional tensor (at position %lld) cannot be concatenated", (long long)i);
        TN_TRY(tni_same_device(tensors[0], tensors[i]));
    }
    return TN_OK;
}

static tn_status common_dtype(tn_tensor *const *tensors, int64_t n, tn_dtype *out)
{
    tn_dtype dtype = (tn_dtype)tensors[0]->dtype;
    for (int64_t i = 1; i < n; i++)
        if (tensors[i]->dtype != (int8_t)dtype) {
            tn_dtype met = tn_promote_types(dtype, (tn_dtype)tensors[i]->dtype);
            if (met == TN_DTYPE_NONE)
                return tni_promotion_refused(dtype, (tn_dtype)tensors[i]->dtype);
            dtype = met;
        }
    *out = dtype;
    return TN_OK;
}

static tn_status add_piece(tni_geometry *g, const tn_tensor *first, const tn_tensor *t, int dim,
                           int64_t number)
{
    TN_CHECK(first->ndim == t->ndim, TN_INVALID,
             "Tensors must have same number of dimensions: got %d and %d", first->ndim, t->ndim);
    for (int d = 0; d < t->ndim; d++)
        TN_CHECK(d == dim || t->sizes[d] == first->sizes[d], TN_INVALID,
                 "Sizes of tensors must match except in dimension %d. Expected size %lld but got "
                 "size %lld for tensor number %lld in the list.",
                 dim, (long long)first->sizes[d], (long long)t->sizes[d], (long long)number);
    TN_CHECK(tni_i64_add(g->sizes[dim], t->sizes[dim], &g->sizes[dim]), TN_INVALID,
             "cat(): the sizes along dimension %d add up to more than 64 bits hold", dim);
    return TN_OK;
}

/* Channels-last where all inputs are. With @p extra they are seen with a last dimension of size 1.
 */
static tn_memory_format cat_format(tn_tensor *const *tensors, int64_t n, bool extra)
{
    tn_memory_format format = TN_FORMAT_CONTIGUOUS;
    for (int64_t i = 0; i < n; i++) {
        tn_memory_format f;
        if (extra) {
            int64_t dims[2 * TN_MAX_DIMS];
            tn_tensor t = *tensors[i];
            memcpy(dims, t.sizes, (size_t)t.ndim * sizeof *dims);
            memcpy(dims + TN_MAX_DIMS, t.strides, (size_t)t.ndim * sizeof *dims);
            dims[t.ndim] = dims[TN_MAX_DIMS + t.ndim] = 1;
            t.sizes = dims;
            t.strides = dims + TN_MAX_DIMS;
            t.ndim++;
            f = tni_suggest_format(&t);
        } else {
            f = tni_suggest_format(tensors[i]);
        }
        if (f == TN_FORMAT_CONTIGUOUS || (i > 0 && f != format))
            return TN_FORMAT_CONTIGUOUS;
        format = f;
    }
    return format;
}

static tn_status use_format(tni_geometry *g, tn_memory_format format)
{
    g->has_strides = format != TN_FORMAT_CONTIGUOUS;
    return g->has_strides ? tni_format_strides(format, g->ndim, g->sizes, g->strides) : TN_OK;
}

tn_status tni_cat_dtype(tn_tensor *const *tensors, int64_t n, int64_t dim, tn_dtype *out)
{
    int at;
    TN_TRY(check_cat(tensors, n));
    for (int64_t i = 0; i < n; i++)
        if (!is_skipped(tensors[i])) {
            TN_TRY(tni_wrap_dim(dim, tensors[i]->ndim, &at));
            break;
        }
    return common_dtype(tensors, n, out);
}

tn_status tni_shape_cat(tni_geometry *g, tn_tensor *const *tensors, int64_t tensors_n, int64_t dim)
{
    TN_TRY(check_cat(tensors, tensors_n));
    const tn_tensor *first = NULL;
    int at = 0;
    for (int64_t i = 0; i < tensors_n; i++) {
        const tn_tensor *t = tensors[i];
        if (is_skipped(t))
            continue;
        if (!first) {
            TN_TRY(tni_wrap_dim(dim, t->ndim, &at));
            tni_geometry_sizes_of(g, t);
            first = t;
            continue;
        }
        TN_TRY(add_piece(g, first, t, at, i));
    }
    if (!first)
        tni_geometry_sizes_of(g, tensors[0]);
    TN_TRY(common_dtype(tensors, tensors_n, &g->dtype));
    return first ? use_format(g, cat_format(tensors, tensors_n, false)) : TN_OK;
}

tn_status tni_shape_stack(tni_geometry *g, tn_tensor *const *tensors, int64_t tensors_n,
                          int64_t dim)
{
    char a[TNI_SIZES_TEXT], b[TNI_SIZES_TEXT];
    TN_CHECK(tensors_n > 0, TN_INVALID, "stack expects a non-empty TensorList");
    for (int64_t i = 0; i < tensors_n; i++)
        TN_CHECK(tensors[i], TN_INVALID, "stack(): tensor number %lld in the list is None",
                 (long long)i);
    const tn_tensor *first = tensors[0];
    int at;
    TN_CHECK(first->ndim < TN_MAX_DIMS, TN_INVALID,
             "stack(): the result would have %d dimensions, at most %d are possible",
             first->ndim + 1, TN_MAX_DIMS);
    TN_TRY(tni_wrap_dim(dim, first->ndim + 1, &at));
    for (int64_t i = 1; i < tensors_n; i++) {
        const tn_tensor *t = tensors[i];
        TN_TRY(tni_same_device(first, t));
        bool same = t->ndim == first->ndim;
        for (int d = 0; same && d < t->ndim; d++)
            same = t->sizes[d] == first->sizes[d];
        TN_CHECK(
            same, TN_INVALID,
            "stack expects each tensor to be equal size, but got %s at entry 0 and %s at entry "
            "%lld",
            tni_format_sizes(first->ndim, first->sizes, a, sizeof a),
            tni_format_sizes(t->ndim, t->sizes, b, sizeof b), (long long)i);
    }
    tni_geometry_fresh(g, first, first->ndim + 1);
    TN_TRY(common_dtype(tensors, tensors_n, &g->dtype));
    for (int d = 0; d < g->ndim; d++)
        g->sizes[d] = d == at ? tensors_n : first->sizes[d - (d > at)];
    tn_memory_format format = cat_format(tensors, tensors_n, at == first->ndim);
    if (format == TN_FORMAT_CONTIGUOUS || at == first->ndim)
        return use_format(g, format);
    /* Laid out as the tensors one after the other along that dimension would be. */
    tni_geometry joined;
    tni_geometry_sizes_of(&joined, first);
    TN_CHECK(tni_i64_mul(joined.sizes[at], tensors_n, &joined.sizes[at]), TN_INVALID,
             "stack(): the result has more elements than 64 bits count");
    TN_TRY(use_format(&joined, format));
    g->has_strides = true;
    for (int d = 0; d < g->ndim; d++)
        g->strides[d] = joined.strides[d - (d > at)];
    g->strides[at] = joined.strides[at] * first->sizes[at];
    return TN_OK;
}

/* ---- padding with a number ---- */

/* Strides as a copy of this part of @p self would have them. */
static void strides_of_part(tni_geometry *g, const tn_tensor *self)
{
    tn_tensor part = *self;
    part.sizes = g->sizes;
    part.flags = tni_geometry_flags(g->ndim, g->sizes, self->strides);
    g->has_strides = true;
    tni_preserve_strides(&part, g->strides);
}

tn_status tni_shape_constant_pad_nd(tni_geometry *g, tn_tensor *self, const int64_t *pad,
                                    int64_t pad_n, tn_scalar value)
{
    TN_CHECK(pad_n % 2 == 0, TN_INVALID, "Length of pad must be even but instead it equals %lld",
             (long long)pad_n);
    TN_CHECK(pad_n / 2 <= self->ndim, TN_INVALID,
             "Length of pad should be no more than twice the number of dimensions of the input. "
             "Pad length is %lldwhile the input has %ddimensions.",
             (long long)pad_n, self->ndim);
    tni_geometry_sizes_of(g, self);
    bool cuts_only = true;
    for (int64_t i = 0; i < pad_n; i++)
        cuts_only &= pad[i] <= 0;
    for (int64_t i = 0; i < pad_n / 2; i++) {
        int d = self->ndim - 1 - (int)i;
        int64_t size;
        int64_t before = pad[2 * i], after = pad[2 * i + 1], left = self->sizes[d];
        bool cuts = before >= 0 || tni_i64_add(left, before, &left);
        cuts = cuts && left >= 0 && (after >= 0 || tni_i64_add(left, after, &left));
        TN_CHECK(cuts && left >= 0, TN_INVALID, "narrow(): length must be non-negative.");
        bool counts = tni_i64_add(self->sizes[d], before, &size) && tni_i64_add(size, after, &size);
        TN_CHECK(counts, TN_INVALID,
                 "constant_pad_nd: size %lld and padding %lld and %lld add up to more than 64 bits "
                 "hold, at dimension %d",
                 (long long)self->sizes[d], (long long)before, (long long)after, d);
        g->sizes[d] = size;
    }
    if (cuts_only) {
        strides_of_part(g, self);
        return TN_OK;
    }
    TN_TRY(tni_check_number(value, (tn_dtype)self->dtype));
    return use_format(g, tni_suggest_format(self));
}

/* ---- repeating and moving ---- */

tn_status tni_shape_repeat(tni_geometry *g, tn_tensor *self, const int64_t *repeats,
                           int64_t repeats_n)
{
    char text[TNI_SIZES_TEXT];
    TN_CHECK(repeats_n >= self->ndim, TN_INVALID,
             "Number of dimensions of repeat dims can not be smaller than number of dimensions of "
             "tensor");
    TN_CHECK(repeats_n <= TN_MAX_DIMS, TN_INVALID,
             "repeat(): repeats has 0 to %d entries, but got %lld", TN_MAX_DIMS,
             (long long)repeats_n);
    tni_geometry_fresh(g, self, (int)repeats_n);
    int lead = g->ndim - self->ndim;
    bool counts = true;
    int negative = -1;
    for (int d = g->ndim - 1; d >= 0; d--) {
        counts &= tni_i64_mul(repeats[d], d < lead ? 1 : self->sizes[d - lead], &g->sizes[d]);
        negative = g->sizes[d] < 0 ? d : negative;
    }
    TN_CHECK(counts, TN_INVALID, "repeat(): the result has more elements than 64 bits count");
    TN_CHECK(negative < 0, TN_INVALID, "Trying to create tensor with negative dimension %lld: %s",
             (long long)g->sizes[negative < 0 ? 0 : negative],
             tni_format_sizes(g->ndim, g->sizes, text, sizeof text));
    return TN_OK;
}

tn_status tni_shape_roll(tni_geometry *g, tn_tensor *self, const int64_t *shifts, int64_t shifts_n,
                         const int64_t *dims, int64_t dims_n)
{
    TN_CHECK(shifts_n > 0, TN_INVALID, "`shifts` required");
    TN_CHECK(shifts_n == dims_n || (dims_n == 0 && shifts_n == 1), TN_INVALID,
             "shifts and dimensions must align. shifts: %lld, dims:%lld", (long long)shifts_n,
             (long long)dims_n);
    for (int64_t i = 0; i < dims_n; i++) {
        int at;
        TN_CHECK(self->ndim > 0, TN_INDEX,
                 "Dimension specified as %lld but tensor has no dimensions", (long long)dims[i]);
        TN_TRY(tni_wrap_dim(dims[i], self->ndim, &at));
    }
    tni_geometry_sizes_of(g, self);
    if (self->numel == 0) {
        g->has_strides = true;
        tni_preserve_strides(self, g->strides);
        return TN_OK;
    }
    if (dims_n == 0)
        return TN_OK;
    tn_memory_format format = tni_suggest_format(self);
    for (int64_t i = 0; i < dims_n && format != TN_FORMAT_CONTIGUOUS; i++) {
        int at;
        TN_TRY(tni_wrap_dim(dims[i], self->ndim, &at));
        if (shifts[i] % self->sizes[at] == 0) /* a piece that is empty has no format */
            format = TN_FORMAT_CONTIGUOUS;
    }
    return use_format(g, format);
}

tn_status tni_shape_flip(tni_geometry *g, tn_tensor *self, const int64_t *dims, int64_t dims_n)
{
    uint64_t bits;
    if (dims_n > 0)
        TN_TRY(tni_reduced_dims(dims, dims_n, self->ndim, &bits));
    tni_geometry_sizes_of(g, self);
    g->has_strides = true;
    tni_preserve_strides(self, g->strides);
    return TN_OK;
}

static tn_status triangle(const char *name, tni_geometry *g, const tn_tensor *self)
{
    TN_CHECK(self->ndim >= 2, TN_INVALID, "%s: input tensor must have at least 2 dimensions", name);
    tni_geometry_sizes_of(g, self);
    return TN_OK;
}

tn_status tni_shape_tril(tni_geometry *g, tn_tensor *self, int64_t diagonal)
{
    (void)diagonal;
    return triangle("tril", g, self);
}

tn_status tni_shape_triu(tni_geometry *g, tn_tensor *self, int64_t diagonal)
{
    (void)diagonal;
    return triangle("triu", g, self);
}
