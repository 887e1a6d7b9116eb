/* SPDX-License-Identifier: MIT */
/* composite/view_copy.c: what a view shows, in memory of its own, contiguous: the view's operator
 * and a clone of its result. */
#include "core/tensor.h"
#include "gen/composites.h"
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
#define SELF tn_tensor *self
#define OUT  tn_tensor **out
#define LIST tn_tensor ***out, int64_t *out_n

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
