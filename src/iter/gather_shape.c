/* SPDX-License-Identifier: MIT */
/* iter/gather_shape.c: what picking and placing along one dimension gives: index_select, index_add,
 * gather, scatter, embeddings, take. Indices are checked for their dtype and sizes here; their
 * values are for the backend that has them. */
#include <string.h>
#include "gen/shapes.h"
#include "iter/iter.h"
#include "shape/expand.h"
#include "shape/index.h"

static bool is_long_or_int(const tn_tensor *t)
{
    return t->dtype == TN_DTYPE_I64 || t->dtype == TN_DTYPE_I32;
}

/* A 0-dim tensor counts as one of a single dimension of size 1. */
static int dims_of(const tn_tensor *t)
{
    return t->ndim ? t->ndim : 1;
}
static int64_t size_of(const tn_tensor *t, int dim)
{
    return t->ndim ? t->sizes[dim] : 1;
}

/* ---- whole slices ---- */

tn_status tni_shape_index_select(tni_geometry *g, tn_tensor *self, int64_t dim, tn_tensor *index)
{
    int at;
    TN_TRY(tni_wrap_dim(dim, self->ndim, &at));
    TN_TRY(tni_same_device(self, index));
    TN_CHECK(index->ndim <= 1, TN_INDEX, "index_select(): Index is supposed to be a vector");
    TN_CHECK(self->ndim > 0 || index->numel == 1, TN_INVALID,
             "index_select(): Index to scalar can have only 1 value, got %lld value(s)",
             (long long)index->numel);
    TN_CHECK(is_long_or_int(index), TN_INVALID,
             "index_select(): Expected dtype int32 or int64 for index");
    tni_geometry_sizes_of(g, self);
    if (self->ndim > 0)
        g->sizes[at] = index->numel;
    return TN_OK;
}

static TNI_COLD tn_status bad_source(const tn_tensor *self, const tn_tensor *source)
{
    char a[TNI_SIZES_TEXT], b[TNI_SIZES_TEXT];
    TN_FAIL(TN_INVALID,
            "source tensor shape must match self tensor shape, excluding the specified dimension. "
            "Got self.shape = %s source.shape = %s",
            tni_format_sizes(self->ndim, self->sizes, a, sizeof a),
            tni_format_sizes(source->ndim, source->sizes, b, sizeof b));
}

tn_status tni_check_slices(const char *op, tn_tensor *self, int64_t dim, tn_tensor *index,
                           tn_tensor *source, int *at)
{
    char text[TNI_SIZES_TEXT];
    TN_TRY(tni_wrap_dim(dim, self->ndim, at));
    TN_TRY(tni_same_device(self, index));
    TN_TRY(tni_same_device(self, source));
    TN_CHECK(index->ndim <= 1, TN_INDEX,
             "%s(): Index is supposed to be a vector, but got dim: %d with type: %s and size: %s",
             op, index->ndim, tni_dtype_text((tn_dtype)index->dtype),
             tni_format_sizes(index->ndim, index->sizes, text, sizeof text));
    TN_CHECK(is_long_or_int(index), TN_INVALID,
             "%s(): Expected dtype int32/int64 for index but got: %s", op,
             tni_dtype_text((tn_dtype)index->dtype));
    TN_CHECK(self->dtype == source->dtype, TN_INVALID,
             "%s(): self (%s) and source (%s) must have the same scalar type", op,
             tni_dtype_text((tn_dtype)self->dtype), tni_dtype_text((tn_dtype)source->dtype));
    TN_CHECK(*at == 0 || *at < source->ndim, TN_INVALID,
             "%s(): Indexing dim %d is out of bounds of the source tensor with dim %d", op, *at,
             source->ndim);
    TN_CHECK(source->ndim > 0 || index->numel == 1, TN_INDEX,
             "Dimension specified as %d but tensor has no dimensions", *at);
    TN_CHECK(index->numel == size_of(source, *at), TN_INVALID,
             "%s(): Number of indices (%lld) should be equal to source.size(dim): (%lld), "
             "for dim: %d",
             op, (long long)index->numel, (long long)size_of(source, *at), *at);
    if (TNI_UNLIKELY(source->ndim != self->ndim))
        return bad_source(self, source);
    for (int d = 0; d < self->ndim; d++)
        if (TNI_UNLIKELY(d != *at && self->sizes[d] != source->sizes[d]))
            return bad_source(self, source);
    return TN_OK;
}

tn_status tni_shape_index_add(tni_geometry *g, tn_tensor *self, int64_t dim, tn_tensor *index,
                              tn_tensor *source, tn_scalar alpha)
{
    (void)alpha;
    int at;
    TN_TRY(tni_check_slices("index_add_", self, dim, index, source, &at));
    tni_geometry_sizes_of(g, self);
    return TN_OK;
}

tn_status tni_shape_take(tni_geometry *g, tn_tensor *self, tn_tensor *index)
{
    TN_TRY(tni_same_device(self, index));
    TN_CHECK(index->dtype == TN_DTYPE_I64, TN_INVALID,
             "take(): Expected a long tensor for index, but got %s",
             tni_dtype_text((tn_dtype)index->dtype));
    TN_CHECK(self->numel > 0 || index->numel == 0, TN_INDEX,
             "take(): tried to take from an empty tensor");
    tni_geometry_sizes_of(g, index);
    g->dtype = (tn_dtype)self->dtype;
    return TN_OK;
}

/* ---- gather and scatter ---- */

static tn_status check_dims(const tn_tensor *self, const tn_tensor *index, const char *what)
{
    TN_CHECK(dims_of(index) == dims_of(self), TN_INVALID,
             "Index tensor must have the same number of dimensions as %s tensor", what);
    return TN_OK;
}

tn_status tni_shape_gather(tni_geometry *g, tn_tensor *self, int64_t dim, tn_tensor *index,
                           bool sparse_grad)
{
    (void)sparse_grad;
    char a[TNI_SIZES_TEXT], b[TNI_SIZES_TEXT];
    int at;
    TN_TRY(tni_wrap_dim(dim, self->ndim, &at));
    TN_TRY(tni_same_device(self, index));
    tni_geometry_sizes_of(g, index);
    g->dtype = (tn_dtype)self->dtype;
    if (index->numel == 0)
        return TN_OK;
    TN_CHECK(is_long_or_int(index), TN_INVALID, "gather(): Expected dtype int32/int64 for index");
    TN_TRY(check_dims(self, index, "input"));
    for (int d = 0; d < dims_of(self); d++)
        TN_CHECK(d == at || size_of(index, d) <= size_of(self, d), TN_INVALID,
                 "Size does not match at dimension %d expected index %s to be no larger than self "
                 "%s apart from dimension %d",
                 d, tni_format_sizes(index->ndim, index->sizes, a, sizeof a),
                 tni_format_sizes(self->ndim, self->sizes, b, sizeof b), at);
    return TN_OK;
}

static tn_status scatter_shape(const char *name, tni_geometry *g, const tn_tensor *self,
                               int64_t dim, const tn_tensor *index, const tn_tensor *src)
{
    char a[TNI_SIZES_TEXT], b[TNI_SIZES_TEXT], c[TNI_SIZES_TEXT];
    int at;
    TN_TRY(tni_wrap_dim(dim, self->ndim, &at));
    TN_TRY(tni_same_device(self, index));
    if (src) {
        TN_TRY(tni_same_device(self, src));
        TN_CHECK(self->dtype == src->dtype, TN_INVALID,
                 "%s(): Expected self.dtype to be equal to src.dtype", name);
    }
    tni_geometry_sizes_of(g, self);
    if (index->numel == 0) /* whatever it is of, it names nothing */
        return TN_OK;
    TN_CHECK(is_long_or_int(index), TN_INVALID, "%s(): Expected dtype int32/int64 for index", name);
    TN_TRY(check_dims(self, index, "self"));
    TN_CHECK(!src || dims_of(src) == dims_of(index), TN_INVALID,
             "Index tensor must have the same number of dimensions as src tensor");
    bool fits = true;
    for (int d = 0; d < dims_of(self); d++) {
        fits &= d == at || size_of(index, d) <= size_of(self, d);
        fits &= !src || size_of(index, d) <= size_of(src, d);
    }
    if (TNI_LIKELY(fits))
        return TN_OK;
    tni_format_sizes(index->ndim, index->sizes, a, sizeof a);
    tni_format_sizes(self->ndim, self->sizes, b, sizeof b);
    TN_CHECK(src, TN_INVALID,
             "Expected index %s to be no larger than self %s apart from dimension %d", a, b, at);
    TN_FAIL(TN_INVALID,
            "Expected index %s to be no larger than self %s apart from dimension %d and to be no "
            "larger size than src %s",
            a, b, at, tni_format_sizes(src->ndim, src->sizes, c, sizeof c));
}

tn_status tni_shape_scatter_src(tni_geometry *g, tn_tensor *self, int64_t dim, tn_tensor *index,
                                tn_tensor *src)
{
    return scatter_shape("scatter", g, self, dim, index, src);
}

tn_status tni_shape_scatter_add(tni_geometry *g, tn_tensor *self, int64_t dim, tn_tensor *index,
                                tn_tensor *src)
{
    return scatter_shape("scatter", g, self, dim, index, src);
}

static tn_status check_reduce(const char *reduce, tn_dtype dtype)
{
    static const char *const names[] = {"sum", "prod", "mean", "amax", "amin", "max", "min"};
    bool known = false;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        known |= strcmp(reduce, names[i]) == 0;
    TN_CHECK(known, TN_INVALID,
             "reduce argument must be either sum, prod, mean, amax or amin, got %s", reduce);
    bool has_loop = strcmp(reduce, "mean") == 0
                        ? dtype != TN_DTYPE_BOOL
                        : !strpbrk(reduce, "xi") || !tn_dtype_is_complex(dtype);
    TN_CHECK(has_loop, TN_UNSUPPORTED,
             "\"scatter_gather_tensor_cpu_reduce_%s\" not implemented for '%s'", reduce,
             tni_dtype_text(dtype));
    return TN_OK;
}

tn_status tni_shape_scatter_reduce(tni_geometry *g, tn_tensor *self, int64_t dim, tn_tensor *index,
                                   tn_tensor *src, const char *reduce, bool include_self)
{
    (void)include_self;
    TN_TRY(scatter_shape("scatter", g, self, dim, index, src));
    return check_reduce(reduce, (tn_dtype)self->dtype);
}

tn_status tni_shape_scatter_value(tni_geometry *g, tn_tensor *self, int64_t dim, tn_tensor *index,
                                  tn_scalar value)
{
    TN_TRY(scatter_shape("scatter", g, self, dim, index, NULL));
    return index->numel ? tni_check_number(value, (tn_dtype)self->dtype) : TN_OK;
}

static tn_status check_add_or_multiply(const char *reduce)
{
    TN_CHECK(strcmp(reduce, "add") == 0 || strcmp(reduce, "multiply") == 0, TN_INVALID,
             "reduce argument must be either add or multiply.");
    return TN_OK;
}

tn_status tni_shape_scatter_src_reduce(tni_geometry *g, tn_tensor *self, int64_t dim,
                                       tn_tensor *index, tn_tensor *src, const char *reduce)
{
    TN_TRY(scatter_shape("scatter", g, self, dim, index, src));
    return check_add_or_multiply(reduce);
}

tn_status tni_shape_scatter_value_reduce(tni_geometry *g, tn_tensor *self, int64_t dim,
                                         tn_tensor *index, tn_scalar value, const char *reduce)
{
    TN_TRY(tni_shape_scatter_value(g, self, dim, index, value));
    return check_add_or_multiply(reduce);
}

/* ---- embeddings ---- */

tn_status tni_shape_embedding(tni_geometry *g, tn_tensor *weight, tn_tensor *indices,
                              int64_t padding_idx, bool scale_grad_by_freq, bool sparse)
{
    (void)padding_idx;
    (void)scale_grad_by_freq;
    (void)sparse;
    char text[TNI_TYPE_TEXT];
    TN_CHECK(weight->ndim == 2, TN_INVALID, "'weight' must be 2-D");
    TN_TRY(tni_same_device(weight, indices));
    TN_CHECK(is_long_or_int(indices), TN_INVALID,
             "Expected tensor for argument #1 'indices' to have one of the following scalar types: "
             "Long, Int; but got %s instead (while checking arguments for embedding)",
             tni_type_text((tn_dtype)indices->dtype, text));
    TN_CHECK(indices->ndim < TN_MAX_DIMS, TN_INVALID,
             "embedding: the result would have %d dimensions, at most %d are possible",
             indices->ndim + 1, TN_MAX_DIMS);
    tni_geometry_sizes_of(g, indices);
    g->dtype = (tn_dtype)weight->dtype;
    g->sizes[g->ndim++] = weight->sizes[1];
    return TN_OK;
}

tn_status tni_shape_embedding_dense_backward(tni_geometry *g, tn_tensor *grad_output,
                                             tn_tensor *indices, int64_t num_weights,
                                             int64_t padding_idx, bool scale_grad_by_freq)
{
    (void)padding_idx;
    (void)scale_grad_by_freq;
    char text[TNI_TYPE_TEXT];
    TN_TRY(tni_same_device(grad_output, indices));
    TN_CHECK(is_long_or_int(indices), TN_INVALID,
             "Expected tensor for argument #2 'indices' to have one of the following scalar types: "
             "Long, Int; but got %s instead (while checking arguments for embedding_backward)",
             tni_type_text((tn_dtype)indices->dtype, text));
    TN_CHECK(grad_output->ndim > 0, TN_INVALID,
             "embedding_dense_backward: grad_output must have at least 1 dimension, but got 0");
    TN_CHECK(num_weights >= 0, TN_INVALID,
             "embedding_dense_backward: num_weights must not be negative, but got %lld",
             (long long)num_weights);
    int64_t width = grad_output->sizes[grad_output->ndim - 1], all;
    bool fits = tni_i64_mul(indices->numel, width, &all) && all == grad_output->numel;
    TN_CHECK(fits, TN_INVALID, "shape '[%lld, %lld]' is invalid for input of size %lld",
             (long long)indices->numel, (long long)width, (long long)grad_output->numel);
    tni_geometry_fresh(g, grad_output, 2);
    g->sizes[0] = num_weights;
    g->sizes[1] = width;
    return TN_OK;
}

/* ---- masks ---- */

tn_status tni_shape_masked_scatter(tni_geometry *g, tn_tensor *self, tn_tensor *mask,
                                   tn_tensor *source)
{
    TN_TRY(tni_same_device(self, mask));
    TN_TRY(tni_same_device(self, source));
    TN_CHECK(self->dtype == source->dtype, TN_INVALID,
             "masked_scatter: expected self and source to have same dtypes but got%s and %s",
             tni_dtype_text((tn_dtype)self->dtype), tni_dtype_text((tn_dtype)source->dtype));
    TN_CHECK(mask->dtype == TN_DTYPE_BOOL, TN_INVALID,
             "masked_scatter_ only supports boolean masks, but got mask with dtype %s",
             tni_dtype_text((tn_dtype)mask->dtype));
    tni_geometry_fresh(g, self, 0);
    return tni_broadcast_sizes(mask->ndim, mask->sizes, self->ndim, self->sizes, &g->ndim,
                               g->sizes);
}

tn_status tni_shape_masked_scatter_backward(tni_geometry *g, tn_tensor *grad_output,
                                            tn_tensor *mask, const int64_t *sizes, int64_t sizes_n)
{
    int64_t both[TN_MAX_DIMS];
    int ndim;
    TN_TRY(tni_same_device(grad_output, mask));
    TN_CHECK(mask->dtype == TN_DTYPE_BOOL, TN_INVALID,
             "masked_select: expected BoolTensor for mask");
    TN_TRY(tni_broadcast_sizes(mask->ndim, mask->sizes, grad_output->ndim, grad_output->sizes,
                               &ndim, both));
    TN_CHECK(sizes_n <= TN_MAX_DIMS, TN_INVALID, "a shape has 0 to %d dimensions, but got %lld",
             TN_MAX_DIMS, (long long)sizes_n);
    tni_geometry_fresh(g, grad_output, (int)sizes_n);
    if (sizes_n > 0)
        memcpy(g->sizes, sizes, (size_t)sizes_n * sizeof *sizes);
    return TN_OK;
}
