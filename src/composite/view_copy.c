/* SPDX-License-Identifier: MIT */
/* composite/view_copy.c: what a view shows, in memory of its own, contiguous: the view's operator
 * and a clone of its result. */
#include "composite/out.h"

#include <string.h>
#include "core/tensor.h"
#include "gen/composites.h"
#include "shape/expand.h"
#include "shape/structured.h"
#include "tenon/ops.h"

/* Takes the view over. */
static tn_status copy_of(tn_status status, tn_tensor *shown, tn_tensor **out)
{
    if (status == TN_OK)
        status = tn_clone(shown, TN_FORMAT_CONTIGUOUS, out);
    tn_tensor_unref(shown);
    return status;
}

static tn_status copies_of(tn_status status, tn_tensor **shown, int64_t n, tn_tensor ***out,
                           int64_t *out_n)
{
    tn_tensor **list;
    if (status != TN_OK)
        return status;
    list = tni_alloc((size_t)(n ? n : 1) * sizeof *list);
    if (!list) {
        tn_tensor_list_free(shown, n);
        TN_FAIL(TN_NOMEM, "cannot allocate a list of %lld tensors", (long long)n);
    }
    int64_t made = 0;
    while (status == TN_OK && made < n) {
        status = tn_clone(shown[made], TN_FORMAT_CONTIGUOUS, &list[made]);
        made += status == TN_OK;
    }
    tn_tensor_list_free(shown, n);
    if (status != TN_OK) {
        tn_tensor_list_free(list, made);
        return status;
    }
    *out = list;
    *out_n = n;
    return TN_OK;
}

/* PARAMETERS are those of the operator, `arguments` what its view gets of them. */
#define COPY(name, view, PARAMETERS, ...)                  \
    tn_status tni_composite_##name PARAMETERS              \
    {                                                      \
        tn_tensor *shown = NULL;                           \
        tn_status status = tn_##view(__VA_ARGS__, &shown); \
        return copy_of(status, shown, out);                \
    }
#define COPIES(name, view, PARAMETERS, ...)                    \
    tn_status tni_composite_##name PARAMETERS                  \
    {                                                          \
        tn_tensor **shown = NULL;                              \
        int64_t n = 0;                                         \
        tn_status status = tn_##view(__VA_ARGS__, &shown, &n); \
        return copies_of(status, shown, n, out, out_n);        \
    }
static tn_status check_outs_count(const char *op, int64_t n, int64_t out_n)
{
    TN_CHECK(n == out_n, TN_INVALID, "%s expected an out= argument of size %lld, got size %lld", op,
             (long long)n, (long long)out_n);
    return TN_OK;
}

static tn_status check_still(const char *op, tn_tensor *self, tn_tensor *const *out, int64_t out_n)
{
    TN_TRY(tni_check_still(op, &self, 1));
    return tni_check_still(op, out, out_n);
}

static tn_status check_outs(const char *op, tn_tensor *const *shown, int64_t n,
                            tn_tensor *const *out, int64_t out_n)
{
    TN_TRY(check_outs_count(op, n, out_n));
    for (int64_t i = 0; i < n; i++)
        TN_CHECK(out[i]->dtype == shown[i]->dtype, TN_INVALID,
                 "Expected out tensor to have dtype %s, but got %s instead",
                 tni_dtype_cpp((tn_dtype)shown[i]->dtype), tni_dtype_cpp((tn_dtype)out[i]->dtype));
    return TN_OK;
}

/* Takes the views over. */
static tn_status copies_into(const char *op, tn_status status, tn_tensor **shown, int64_t n,
                             tn_tensor *const *out, int64_t out_n)
{
    if (status != TN_OK)
        return status;
    status = check_outs(op, shown, n, out, out_n);
    if (status == TN_OK)
        status = tni_out_take_all(op, shown, out, (int)n);
    tn_tensor_list_free(shown, n);
    return status;
}
#define COPIES_INTO(name, view, PARAMETERS, ...)                 \
    tn_status tni_composite_##name PARAMETERS                    \
    {                                                            \
        tn_tensor **shown = NULL;                                \
        int64_t n = 0;                                           \
        TN_TRY(check_still(#view "_copy", self, out, out_n));    \
        tn_status status = tn_##view(__VA_ARGS__, &shown, &n);   \
        return copies_into(#name, status, shown, n, out, out_n); \
    }
#define SELF tn_tensor *self
#define OUT  tn_tensor **out
#define LIST tn_tensor ***out, int64_t *out_n
#define OUTS tn_tensor *const *out, int64_t out_n

COPY(alias_copy, alias, (SELF, OUT), self)
COPY(detach_copy, detach, (SELF, OUT), self)
COPY(t_copy, t, (SELF, OUT), self)
COPY(squeeze_copy, squeeze, (SELF, OUT), self)
COPY(squeeze_copy_dim, squeeze_dim, (SELF, int64_t dim, OUT), self, dim)
COPY(squeeze_copy_dims, squeeze_dims, (SELF, const int64_t *dim, int64_t dim_n, OUT), self, dim,
     dim_n)
COPY(unsqueeze_copy, unsqueeze, (SELF, int64_t dim, OUT), self, dim)
COPY(transpose_copy, transpose, (SELF, int64_t dim0, int64_t dim1, OUT), self, dim0, dim1)
COPY(permute_copy, permute, (SELF, const int64_t *dims, int64_t dims_n, OUT), self, dims, dims_n)
COPY(select_copy, select, (SELF, int64_t dim, int64_t index, OUT), self, dim, index)
COPY(slice_copy, slice, (SELF, int64_t dim, tn_opt_int start, tn_opt_int end, int64_t step, OUT),
     self, dim, start, end, step)
COPY(diagonal_copy, diagonal, (SELF, int64_t offset, int64_t dim1, int64_t dim2, OUT), self, offset,
     dim1, dim2)
COPY(unfold_copy, unfold, (SELF, int64_t dimension, int64_t size, int64_t step, OUT), self,
     dimension, size, step)
COPY(expand_copy, expand, (SELF, const int64_t *size, int64_t size_n, bool implicit, OUT), self,
     size, size_n, implicit)
COPY(view_copy_dtype, view_dtype, (SELF, tn_dtype dtype, OUT), self, dtype)
COPY(view_as_real_copy, view_as_real, (SELF, OUT), self)
COPY(view_as_complex_copy, view_as_complex, (SELF, OUT), self)
COPY(as_strided_copy, as_strided,
     (SELF, const int64_t *size, int64_t size_n, const int64_t *stride, int64_t stride_n,
      tn_opt_int storage_offset, OUT),
     self, size, size_n, stride, stride_n, storage_offset)
COPIES(split_copy, split, (SELF, int64_t split_size, int64_t dim, LIST), self, split_size, dim)
COPIES(split_with_sizes_copy, split_with_sizes,
       (SELF, const int64_t *split_sizes, int64_t split_sizes_n, int64_t dim, LIST), self,
       split_sizes, split_sizes_n, dim)
COPIES(unbind_copy, unbind, (SELF, int64_t dim, LIST), self, dim)
COPIES_INTO(split_with_sizes_copy_out, split_with_sizes,
            (SELF, const int64_t *split_sizes, int64_t split_sizes_n, int64_t dim, OUTS), self,
            split_sizes, split_sizes_n, dim)
COPIES_INTO(unbind_copy_int_out, unbind, (SELF, int64_t dim, OUTS), self, dim)

/* What is copied into @p out may be repeated, @p out may not, and nothing in it. */
static tn_status check_takes(const tn_tensor *out, int ndim, const int64_t *sizes)
{
    char a[TNI_SIZES_TEXT], b[TNI_SIZES_TEXT];
    TN_CHECK(ndim == out->ndim && memcmp(sizes, out->sizes, (size_t)ndim * sizeof *sizes) == 0,
             TN_INVALID, "output with shape %s doesn't match the broadcast shape %s",
             tni_format_sizes(out->ndim, out->sizes, a, sizeof a),
             tni_format_sizes(ndim, sizes, b, sizeof b));
    return tni_check_internal_overlap(out);
}

/* The one of the three that neither resizes nor looks at dtypes: it copies as `copy_` does. */
tn_status tni_composite_split_copy_Tensor_out(SELF, int64_t split_size, int64_t dim, OUTS)
{
    tn_tensor **shown = NULL;
    int64_t n = 0, sizes[TN_MAX_DIMS];
    int ndim;
    TN_TRY(check_still("split_copy", self, out, out_n));
    TN_TRY(tn_split(self, split_size, dim, &shown, &n));
    tn_status status = check_outs_count("split_copy_Tensor_out()", n, out_n);
    if (status == TN_OK)
        status = tni_outs_apart(out, n);
    for (int64_t i = 0; status == TN_OK && i < n; i++) { /* all of them before any is written */
        status = tni_check_writable(shown[i], out[i]);
        if (status == TN_OK)
            status = tni_broadcast_sizes(out[i]->ndim, out[i]->sizes, shown[i]->ndim,
                                         shown[i]->sizes, &ndim, sizes);
        if (status == TN_OK)
            status = check_takes(out[i], ndim, sizes);
    }
    for (int64_t i = 0; status == TN_OK && i < n; i++)
        status = tn_copy_(out[i], shown[i], false);
    tn_tensor_list_free(shown, n);
    return status;
}

/* Where there is no such view, what a reshape copies. */
tn_status tni_composite_view_copy(tn_tensor *self, const int64_t *size, int64_t size_n,
                                  tn_tensor **out)
{
    tn_tensor *shown = NULL;
    TN_TRY(tn_reshape(self, size, size_n, &shown));
    if (shown->storage != self->storage) {
        *out = shown;
        return TN_OK;
    }
    return copy_of(TN_OK, shown, out);
}
