/* SPDX-License-Identifier: MIT */
/* composite/split.c: views that come as a list: split, split_with_sizes, unbind, chunk. */
#include "gen/composites.h"
#include "gen/kernels.h"
#include "shape/geometry.h"
#include "tenon/ops.h"

/* Fills piece @p i of a geometry that starts as all of the tensor. */
typedef void (*piece_fn)(tni_geometry *g, int dim, int64_t i, const void *ctx);

static tn_status make_list(const tn_tensor *self, int dim, int64_t n, piece_fn piece,
                           const void *ctx, tn_tensor ***out, int64_t *out_n)
{
    size_t nbytes;
    TN_CHECK(tni_size_mul((size_t)n, sizeof(tn_tensor *), &nbytes), TN_INVALID,
             "%lld pieces are too many", (long long)n);
    tn_tensor **list = tni_alloc(nbytes);
    TN_CHECK(list, TN_NOMEM, "cannot allocate a list of %lld tensors", (long long)n);
    for (int64_t i = 0; i < n; i++) {
        tni_geometry g;
        tni_geometry_copy(&g, self);
        piece(&g, dim, i, ctx);
        tn_status status = tni_tensor_alias(self, g.ndim, g.sizes, g.strides, g.offset, &list[i]);
        if (status != TN_OK) {
            tn_tensor_list_free(list, i);
            return status;
        }
    }
    *out = list;
    *out_n = n;
    return TN_OK;
}

static void equal_piece(tni_geometry *g, int dim, int64_t i, const void *ctx)
{
    int64_t size = *(const int64_t *)ctx, start = i * size, left = g->sizes[dim] - start;
    tni_geometry_narrow(g, dim, start, size < left ? size : left);
}

tn_status tni_kernel_split(tn_call *call, tn_tensor *self, int64_t split_size, int64_t dim,
                           tn_tensor ***out, int64_t *out_n)
{
    (void)call;
    TN_CHECK(self->ndim > 0, TN_INVALID, "split expects at least a 1-dimensional tensor");
    TN_CHECK(split_size >= 0, TN_INVALID,
             "split expects split_size be non-negative, but got split_size=%lld",
             (long long)split_size);
    int at;
    TN_TRY(tni_wrap_dim(dim, self->ndim, &at));
    int64_t size = self->sizes[at];
    TN_CHECK(split_size > 0 || size == 0, TN_INVALID,
             "split_size can only be 0 if dimension size is 0, but got dimension size of %lld",
             (long long)size);
    int64_t n = size ? size / split_size + (size % split_size != 0) : 1;
    return make_list(self, at, n, equal_piece, &split_size, out, out_n);
}

/* Sizes of the pieces, and where the last one that was asked for began. Pieces are made in order.
 */
typedef struct given_sizes {
    const int64_t *sizes;
    int64_t *start;
} given_sizes;

static void given_piece(tni_geometry *g, int dim, int64_t i, const void *ctx)
{
    const given_sizes *given = ctx;
    int64_t start = *given->start;
    *given->start += given->sizes[i];
    tni_geometry_narrow(g, dim, start, given->sizes[i]);
}

static TNI_COLD char *format_list(const int64_t *sizes, int64_t n, char *text, size_t nbytes)
{
    return tni_format_sizes((int)(n < INT32_MAX ? n : INT32_MAX), sizes, text, nbytes);
}

tn_status tni_kernel_split_with_sizes(tn_call *call, tn_tensor *self, const int64_t *split_sizes,
                                      int64_t split_sizes_n, int64_t dim, tn_tensor ***out,
                                      int64_t *out_n)
{
    (void)call;
    char text[TNI_SIZES_TEXT];
    TN_CHECK(self->ndim > 0, TN_INVALID, "split expects at least a 1-dimensional tensor");
    int at;
    TN_TRY(tni_wrap_dim(dim, self->ndim, &at));
    int64_t sum = 0;
    bool fits = true;
    for (int64_t i = 0; i < split_sizes_n; i++) {
        TN_CHECK(split_sizes[i] >= 0, TN_INVALID,
                 "split_with_sizes expects split_sizes have only non-negative entries, but got "
                 "split_sizes=%s",
                 format_list(split_sizes, split_sizes_n, text, sizeof text));
        fits &= tni_i64_add(sum, split_sizes[i], &sum);
    }
    TN_CHECK(fits && sum == self->sizes[at], TN_INVALID,
             "split_with_sizes expects split_sizes to sum exactly to %lld (input tensor's size at "
             "dimension %d), but got split_sizes=%s",
             (long long)self->sizes[at], at,
             format_list(split_sizes, split_sizes_n, text, sizeof text));
    int64_t start = 0;
    given_sizes given = {split_sizes, &start};
    return make_list(self, at, split_sizes_n, given_piece, &given, out, out_n);
}

static void slice_piece(tni_geometry *g, int dim, int64_t i, const void *ctx)
{
    (void)ctx;
    g->offset += i * g->strides[dim];
    tni_geometry_drop(g, dim);
}

tn_status tni_kernel_unbind(tn_call *call, tn_tensor *self, int64_t dim, tn_tensor ***out,
                            int64_t *out_n)
{
    (void)call;
    int at;
    TN_TRY(tni_wrap_dim(dim, self->ndim, &at));
    TN_CHECK(self->ndim > 0, TN_INDEX, "Dimension specified as %d but tensor has no dimensions",
             at);
    return make_list(self, at, self->sizes[at], slice_piece, NULL, out, out_n);
}

typedef tn_status (*split_fn)(tn_tensor *self, int64_t size, int64_t dim, tn_tensor ***out,
                              int64_t *out_n);
typedef tn_status (*split_sizes_fn)(tn_tensor *self, const int64_t *sizes, int64_t n, int64_t dim,
                                    tn_tensor ***out, int64_t *out_n);

/* As many empty pieces as were asked for: split could not tell how many. */
static tn_status empty_chunks(tn_tensor *self, int64_t chunks, int64_t dim, split_sizes_fn split,
                              tn_tensor ***out, int64_t *out_n)
{
    size_t nbytes;
    TN_CHECK(tni_size_mul((size_t)chunks, sizeof(int64_t), &nbytes), TN_INVALID,
             "%lld chunks are too many", (long long)chunks);
    int64_t *sizes = tni_calloc(nbytes);
    TN_CHECK(sizes, TN_NOMEM, "cannot allocate a list of %lld sizes", (long long)chunks);
    tn_status status = split(self, sizes, chunks, dim, out, out_n);
    tni_free(sizes);
    return status;
}

static tn_status chunk(tn_tensor *self, int64_t chunks, int64_t dim, split_fn split,
                       split_sizes_fn by_sizes, tn_tensor ***out, int64_t *out_n)
{
    TN_CHECK(self->ndim > 0, TN_INVALID, "chunk expects at least a 1-dimensional tensor");
    TN_CHECK(chunks > 0, TN_INVALID, "chunk expects `chunks` to be greater than 0, got: %lld",
             (long long)chunks);
    int at;
    TN_TRY(tni_wrap_dim(dim, self->ndim, &at));
    int64_t size = self->sizes[at];
    if (size == 0)
        return empty_chunks(self, chunks, at, by_sizes, out, out_n);
    return split(self, size / chunks + (size % chunks != 0), at, out, out_n);
}

tn_status tni_composite_chunk(tn_tensor *self, int64_t chunks, int64_t dim, tn_tensor ***out,
                              int64_t *out_n)
{
    return chunk(self, chunks, dim, tn_split, tn_split_with_sizes, out, out_n);
}

tn_status tni_composite_split_sizes(tn_tensor *self, const int64_t *split_size,
                                    int64_t split_size_n, int64_t dim, tn_tensor ***out,
                                    int64_t *out_n)
{
    return tn_split_with_sizes(self, split_size, split_size_n, dim, out, out_n);
}

/* ---- pieces that nobody counts as views ---- */

tn_status tni_composite_unsafe_chunk(tn_tensor *self, int64_t chunks, int64_t dim, tn_tensor ***out,
                                     int64_t *out_n)
{
    return chunk(self, chunks, dim, tn_unsafe_split, tn_unsafe_split_with_sizes, out, out_n);
}
