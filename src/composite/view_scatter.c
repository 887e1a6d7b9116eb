/* SPDX-License-Identifier: MIT */
/* composite/view_scatter.c: a copy of a tensor in which one view has other values, and the
 * gradients of views, which are zeros but for it; diagonals as matrices. */
#include <string.h>
#include "core/tensor.h"
#include "gen/composites.h"
#include "gen/kernels.h"
#include "tenon/ops.h"

/* ---- gradients ---- */

static tn_status zeros_for(const tn_tensor *grad, const int64_t *sizes, int64_t n, tn_tensor **out)
{
    tn_tensor_opts opts = tn_opts((tn_dtype)grad->dtype, grad->device);
    return tn_zeros(sizes, n, &opts, out);
}

tn_status tni_kernel_select_backward(tn_call *call, tn_tensor *grad_output,
                                     const int64_t *input_sizes, int64_t input_sizes_n, int64_t dim,
                                     int64_t index, tn_tensor **out)
{
    (void)call;
    TN_AUTO(tn_tensor) grad = NULL;
    TN_AUTO(tn_tensor) part = NULL;
    TN_TRY(zeros_for(grad_output, input_sizes, input_sizes_n, &grad));
    TN_TRY(tn_select(grad, dim, index, &part));
    TN_TRY(tn_copy_(part, grad_output, false));
    *out = TN_MOVE(grad);
    return TN_OK;
}

tn_status tni_kernel_slice_backward(tn_call *call, tn_tensor *grad_output,
                                    const int64_t *input_sizes, int64_t input_sizes_n, int64_t dim,
                                    int64_t start, int64_t end, int64_t step, tn_tensor **out)
{
    (void)call;
    TN_AUTO(tn_tensor) grad = NULL;
    TN_AUTO(tn_tensor) part = NULL;
    TN_TRY(zeros_for(grad_output, input_sizes, input_sizes_n, &grad));
    TN_TRY(tn_slice(grad, dim, tn_some_int(start), tn_some_int(end), step, &part));
    TN_TRY(tn_copy_(part, grad_output, false));
    *out = TN_MOVE(grad);
    return TN_OK;
}

tn_status tni_kernel_diagonal_backward(tn_call *call, tn_tensor *grad_output,
                                       const int64_t *input_sizes, int64_t input_sizes_n,
                                       int64_t offset, int64_t dim1, int64_t dim2, tn_tensor **out)
{
    (void)call;
    TN_AUTO(tn_tensor) grad = NULL;
    TN_AUTO(tn_tensor) part = NULL;
    TN_TRY(zeros_for(grad_output, input_sizes, input_sizes_n, &grad));
    TN_TRY(tn_diagonal(grad, offset, dim1, dim2, &part));
    TN_TRY(tn_copy_(part, grad_output, false));
    *out = TN_MOVE(grad);
    return TN_OK;
}

/* Element i of all windows at once: they lie `step` apart, so that no two of them meet. */
tn_status tni_kernel_unfold_backward(tn_call *call, tn_tensor *grad_in, const int64_t *input_sizes,
                                     int64_t input_sizes_n, int64_t dim, int64_t size, int64_t step,
                                     tn_tensor **out)
{
    (void)call;
    char have[TNI_SIZES_TEXT], want[TNI_SIZES_TEXT];
    TN_AUTO(tn_tensor) grad = NULL;
    TN_AUTO(tn_tensor) windows = NULL;
    TN_CHECK(step > 0, TN_VALUE, "step is %lld but must be > 0", (long long)step);
    TN_TRY(zeros_for(grad_in, input_sizes, input_sizes_n, &grad));
    TN_TRY(tn_unfold(grad, dim, size, step, &windows));
    TN_CHECK(windows->ndim == grad_in->ndim &&
                 !memcmp(windows->sizes, grad_in->sizes, (size_t)windows->ndim * sizeof(int64_t)),
             TN_INVALID, "unfold_backward(): expected grad_in of size %s, but got %s",
             tni_format_sizes(windows->ndim, windows->sizes, want, sizeof want),
             tni_format_sizes(grad_in->ndim, grad_in->sizes, have, sizeof have));
    for (int64_t i = 0; i < size; i++) {
        TN_AUTO(tn_tensor) to = NULL;
        TN_AUTO(tn_tensor) from = NULL;
        TN_TRY(tn_select(windows, -1, i, &to));
        TN_TRY(tn_select(grad_in, -1, i, &from));
        TN_TRY(tn_add_(to, from, tn_int(1)));
    }
    *out = TN_MOVE(grad);
    return TN_OK;
}

/* ---- scatter ---- */

/* A copy with the very strides and offset of @p self, unless elements repeat. */
static tn_status clone_as_it_is(tn_tensor *self, tn_tensor **out)
{
    for (int d = 0; d < self->ndim; d++)
        if (self->strides[d] == 0 && self->sizes[d] > 1)
            return tn_clone(self, TN_FORMAT_NONE, out);
    TN_AUTO(tn_tensor) all = NULL;
    TN_AUTO(tn_tensor) copy = NULL;
    int64_t n = (int64_t)(self->storage->nbytes / tni_itemsize(self));
    TN_TRY(tni_tensor_alias(self, 1, &n, NULL, 0, &all));
    TN_TRY(tn_clone(all, TN_FORMAT_CONTIGUOUS, &copy));
    return tni_tensor_over(copy->storage, self->ndim, self->sizes, self->strides, self->offset,
                           (tn_dtype)self->dtype, copy->keys, self->device, out);
}

static tn_status write_view(TN_STOLEN tn_tensor *copied, TN_STOLEN tn_tensor *view, tn_tensor *src,
                            tn_tensor **out)
{
    TN_AUTO(tn_tensor) copy = copied;
    TN_AUTO(tn_tensor) part = view;
    char have[TNI_SIZES_TEXT], want[TNI_SIZES_TEXT];
    bool same = part->ndim == src->ndim;
    for (int d = 0; same && d < part->ndim; d++)
        same = part->sizes[d] == src->sizes[d];
    TN_CHECK(same, TN_INVALID,
             "expected src to have a size equal to the slice of self. src size = %s, slice size = "
             "%s",
             tni_format_sizes(src->ndim, src->sizes, have, sizeof have),
             tni_format_sizes(part->ndim, part->sizes, want, sizeof want));
    TN_TRY(tn_copy_(part, src, false));
    *out = TN_MOVE(copy);
    return TN_OK;
}

/* A copy with the strides and offset of @p self: of everything else in its storage too, which
 * as_strided may show. Elements that lie in one place are several in a copy, which begins at 0. */
static tn_status clone_with_strides(tn_tensor *self, tn_tensor **out)
{
    TN_AUTO(tn_tensor) all = NULL;
    TN_AUTO(tn_tensor) copy = NULL;
    const int64_t n = (int64_t)(self->storage->nbytes / tni_itemsize(self)), one = 1;
    for (int d = 0; d < self->ndim; d++)
        if (self->sizes[d] > 1 && self->strides[d] == 0)
            return tn_clone(self, TN_FORMAT_CONTIGUOUS, out);
    if (n == self->numel && self->offset == 0 && (self->flags & TNI_DENSE))
        return tn_clone(self, TN_FORMAT_PRESERVE, out);
    TN_TRY(tn_as_strided(self, &n, 1, &one, 1, tn_some_int(0), &all));
    TN_TRY(tn_clone(all, TN_FORMAT_CONTIGUOUS, &copy));
    return tn_as_strided(copy, self->sizes, self->ndim, self->strides, self->ndim,
                         tn_some_int(self->offset), out);
}

tn_status tni_composite_as_strided_scatter(tn_tensor *self, tn_tensor *src, const int64_t *size,
                                           int64_t size_n, const int64_t *stride, int64_t stride_n,
                                           tn_opt_int storage_offset, tn_tensor **out)
{
    TN_AUTO(tn_tensor) copy = NULL;
    TN_AUTO(tn_tensor) part = NULL;
    TN_TRY(clone_with_strides(self, &copy));
    tn_opt_int from = storage_offset;
    if (from.has)
        from.value += copy->offset - self->offset;
    TN_TRY(tn_as_strided(copy, size, size_n, stride, stride_n, from, &part));
    return write_view(TN_MOVE(copy), TN_MOVE(part), src, out);
}

tn_status tni_kernel_select_scatter(tn_call *call, tn_tensor *self, tn_tensor *src, int64_t dim,
                                    int64_t index, tn_tensor **out)
{
    (void)call;
    TN_AUTO(tn_tensor) copy = NULL;
    TN_AUTO(tn_tensor) part = NULL;
    TN_TRY(clone_as_it_is(self, &copy));
    TN_TRY(tn_select(copy, dim, index, &part));
    return write_view(TN_MOVE(copy), TN_MOVE(part), src, out);
}

tn_status tni_kernel_slice_scatter(tn_call *call, tn_tensor *self, tn_tensor *src, int64_t dim,
                                   tn_opt_int start, tn_opt_int end, int64_t step, tn_tensor **out)
{
    (void)call;
    TN_AUTO(tn_tensor) copy = NULL;
    TN_AUTO(tn_tensor) part = NULL;
    TN_TRY(clone_as_it_is(self, &copy));
    TN_TRY(tn_slice(copy, dim, start, end, step, &part));
    return write_view(TN_MOVE(copy), TN_MOVE(part), src, out);
}

tn_status tni_kernel_diagonal_scatter(tn_call *call, tn_tensor *self, tn_tensor *src,
                                      int64_t offset, int64_t dim1, int64_t dim2, tn_tensor **out)
{
    (void)call;
    TN_AUTO(tn_tensor) copy = NULL;
    TN_AUTO(tn_tensor) part = NULL;
    TN_TRY(clone_as_it_is(self, &copy));
    TN_TRY(tn_diagonal(copy, offset, dim1, dim2, &part));
    return write_view(TN_MOVE(copy), TN_MOVE(part), src, out);
}

/* ---- diagonals ---- */

tn_status tni_kernel_diag_embed(tn_call *call, tn_tensor *self, int64_t offset, int64_t dim1,
                                int64_t dim2, tn_tensor **out)
{
    (void)call;
    int ndim = self->ndim + 1, a, b;
    int64_t sizes[TN_MAX_DIMS], side = 0;
    int64_t step = offset == INT64_MIN ? -1 : offset < 0 ? -offset : offset;
    TN_CHECK(ndim <= TN_MAX_DIMS, TN_INVALID,
             "diag_embed: the result would have %d dimensions, at most %d are possible", ndim,
             TN_MAX_DIMS);
    TN_TRY(tni_wrap_dim(dim1, ndim, &a));
    TN_TRY(tni_wrap_dim(dim2, ndim, &b));
    TN_CHECK(a != b, TN_INVALID, "diagonal dimensions cannot be identical %lld, %lld",
             (long long)dim1, (long long)dim2);
    TN_CHECK(step >= 0 && tni_i64_add(self->sizes[self->ndim - 1], step, &side), TN_INVALID,
             "diag_embed: offset %lld is too large", (long long)offset);
    for (int d = 0, from = 0; d < ndim; d++)
        sizes[d] = d == a || d == b ? side : self->sizes[from++];
    TN_AUTO(tn_tensor) result = NULL;
    TN_AUTO(tn_tensor) diagonal = NULL;
    TN_TRY(zeros_for(self, sizes, ndim, &result));
    TN_TRY(tn_diagonal(result, offset, dim1, dim2, &diagonal));
    TN_TRY(tn_copy_(diagonal, self, false));
    *out = TN_MOVE(result);
    return TN_OK;
}

tn_status tni_composite_diag(tn_tensor *self, int64_t diagonal, tn_tensor **out)
{
    TN_AUTO(tn_tensor) view = NULL;
    TN_CHECK(self->ndim == 1 || self->ndim == 2, TN_INVALID,
             "diag(): Supports 1D or 2D tensors. Got %dD", self->ndim);
    if (self->ndim == 1)
        return tn_diag_embed(self, diagonal, 0, 1, out);
    TN_TRY(tn_diagonal(self, diagonal, 0, 1, &view));
    return tn_clone(view, TN_FORMAT_CONTIGUOUS, out);
}

tn_status tni_kernel_trace(tn_call *call, tn_tensor *self, tn_tensor **out)
{
    (void)call;
    TN_AUTO(tn_tensor) diagonal = NULL;
    TN_CHECK(self->dtype != TN_DTYPE_BOOL && self->dtype != TN_DTYPE_F16 &&
                 self->dtype != TN_DTYPE_BF16,
             TN_UNSUPPORTED, "\"trace\" not implemented for '%s'",
             tni_dtype_text((tn_dtype)self->dtype));
    TN_CHECK(self->ndim == 2, TN_INVALID, "trace: expected a matrix, but got tensor with dim %d",
             self->ndim);
    TN_TRY(tn_diagonal(self, 0, 0, 1, &diagonal));
    return tn_sum(diagonal, TN_DTYPE_NONE, out);
}

/* ---- rot90 ---- */

tn_status tni_kernel_rot90(tn_call *call, tn_tensor *self, int64_t k, const int64_t *dims,
                           int64_t dims_n, tn_tensor **out)
{
    (void)call;
    TN_CHECK(dims_n == 2, TN_INVALID, "expected total rotation dims == 2, but got dims = %lld",
             (long long)dims_n);
    TN_CHECK(self->ndim >= 2, TN_INVALID, "expected total dims >= 2, but got total dims = %d",
             self->ndim);
    int64_t n = self->ndim, a = dims[0], b = dims[1];
    uint64_t gap = a > b ? (uint64_t)a - (uint64_t)b : (uint64_t)b - (uint64_t)a;
    TN_CHECK(a != b && gap != (uint64_t)n, TN_INVALID,
             "expected rotation dims to be different, but got dim0 = %lld and dim1 = %lld",
             (long long)a, (long long)b);
    TN_CHECK(a >= -n && a < n, TN_INVALID, "Rotation dim0 out of range, dim0 = %lld", (long long)a);
    TN_CHECK(b >= -n && b < n, TN_INVALID, "Rotation dim1 out of range, dim1 = %lld", (long long)b);
    TN_AUTO(tn_tensor) flipped = NULL;
    switch ((int)(((k % 4) + 4) % 4)) {
    case 1:
        TN_TRY(tn_flip(self, &b, 1, &flipped));
        break;
    case 2:
        return tn_flip(self, dims, 2, out);
    case 3:
        TN_TRY(tn_flip(self, &a, 1, &flipped));
        break;
    default:
        return tn_clone(self, TN_FORMAT_CONTIGUOUS, out);
    }
    TN_TRY(tn_transpose_(flipped, a, b));
    *out = TN_MOVE(flipped);
    return TN_OK;
}
