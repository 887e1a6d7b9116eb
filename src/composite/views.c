/* SPDX-License-Identifier: MIT */
/* composite/views.c: views that are said in terms of other views, and view kernels that no rule of
 * one result can state: `_unsafe_view` and the in-place ones without a twin of the same name. */
#include <string.h>
#include "composite/out.h"
#include "core/state.h"
#include "dispatch/call.h"
#include "gen/composites.h"
#include "gen/kernels.h"
#include "gen/redispatch.h"
#include "gen/shapes.h"
#include "shape/geometry.h"
#include "tenon/ops.h"

/* ---- kernels ---- */

/* Shares memory; nobody makes it a view, so it keeps the version counter that it was born with. */
tn_status tni_kernel__unsafe_view(tn_call *call, tn_tensor *self, const int64_t *size,
                                  int64_t size_n, tn_tensor **out)
{
    (void)call;
    tni_geometry g;
    TN_TRY(tni_view_view(&g, self, size, size_n));
    return tni_tensor_view(self, &g, out);
}

tn_status tni_kernel_t_(tn_call *call, tn_tensor *self)
{
    TN_CHECK(self->ndim <= 2, TN_INVALID,
             "t_() expects a tensor with <= 2 dimensions, but self is %dD", self->ndim);
    return tni_kernel_transpose_(call, self, 0, self->ndim < 2 ? 0 : 1);
}

tn_status tni_kernel_transpose_(tn_call *call, tn_tensor *self, int64_t dim0, int64_t dim1)
{
    (void)call;
    tni_geometry g;
    TN_TRY(tni_view_transpose(&g, self, dim0, dim1));
    return tni_tensor_set_geometry(self, g.ndim, g.sizes, g.strides, g.offset);
}

/* What there is to detach from belongs to autograd; the tensor's own part is nothing. */
tn_status tni_kernel_detach_(tn_call *call, tn_tensor *self)
{
    (void)call;
    (void)self;
    return TN_OK;
}

/* detach_ is marked as writing, but no element changes: unlike the generated kernel this one counts
 * no write. */
tn_status tni_kernel_detach_below(tn_call *call, tn_tensor *self)
{
    uint64_t saved = tni_exclude(&tni_tls, TNI_BELOW_ADINPLACE_OR_VIEW);
    tn_status status = tni_re_detach_(call, call->keys & TNI_KS_AFTER_ADINPLACE_OR_VIEW, self);
    tni_tls.excluded_xor = saved;
    return status;
}

/* ---- resize_ ---- */

tn_status tni_kernel_resize_(tn_call *call, tn_tensor *self, const int64_t *size, int64_t size_n,
                             tn_memory_format memory_format)
{
    (void)call;
    TN_CHECK(tni_tls.inference || !tn_tensor_requires_grad(self), TN_INVALID,
             "cannot resize variables that require grad");
    TN_CHECK(!tni_moves(self), TN_INVALID, "cannot resize variables that has a forward grad");
    TN_CHECK(memory_format != TN_FORMAT_PRESERVE, TN_INVALID, "Unsupported memory format Preserve");
    TN_CHECK(size_n <= TN_MAX_DIMS, TN_INVALID, "resize_(): size has 0 to %d entries, but got %lld",
             TN_MAX_DIMS, (long long)size_n);
    int ndim = (int)size_n;
    int64_t strides[TN_MAX_DIMS];
    if (memory_format != TN_FORMAT_NONE)
        TN_TRY(tni_format_strides(memory_format, ndim, size, strides));
    size_t before = self->storage->nbytes;
    TN_TRY(tni_tensor_resize(self, ndim, size));
    if (TNI_UNLIKELY(tn_fill_empty()) && self->storage->nbytes > before)
        tni_fill_unset(self, before);
    if (memory_format == TN_FORMAT_NONE)
        return TN_OK;
    return tni_tensor_set_geometry(self, ndim, size, strides, self->offset);
}

static bool has_sizes(const tn_tensor *t, const int64_t *size, int64_t n)
{
    return t->ndim == n && (n == 0 || memcmp(t->sizes, size, (size_t)n * sizeof *size) == 0);
}

/* Counts as a write only where it changes something. */
tn_status tni_kernel_resize_below(tn_call *call, tn_tensor *self, const int64_t *size,
                                  int64_t size_n, tn_memory_format memory_format)
{
    bool changes = !has_sizes(self, size, size_n);
    uint64_t saved = tni_exclude(&tni_tls, TNI_BELOW_ADINPLACE_OR_VIEW);
    tn_status status = tni_re_resize_(call, call->keys & TNI_KS_AFTER_ADINPLACE_OR_VIEW, self, size,
                                      size_n, memory_format);
    tni_tls.excluded_xor = saved;
    TN_TRY(status);
    return changes ? tni_tensor_bump_version(self) : TN_OK;
}

/* ---- composites ---- */

tn_status tni_composite_mT(tn_tensor *self, tn_tensor **out)
{
    TN_CHECK(self->ndim != 1, TN_INVALID,
             "tensor.mT is only supported on matrices or batches of matrices. Got 1-D tensor.");
    if (self->ndim == 0) {
        *out = tn_tensor_ref(self);
        return TN_OK;
    }
    return tn_transpose(self, -2, -1, out);
}

/* Wrap each dimension; @p seen gets a bit for each. */
static tn_status wrap_dims(const char *name, const tn_tensor *self, const int64_t *dims, int n,
                           int *wrapped, uint64_t *seen)
{
    *seen = 0;
    for (int i = 0; i < n; i++) {
        TN_TRY(tni_wrap_dim(dims[i], self->ndim, &wrapped[i]));
        *seen |= UINT64_C(1) << wrapped[i];
    }
    char text[TNI_SIZES_TEXT];
    TN_CHECK(__builtin_popcountll(*seen) == n, TN_INVALID, "movedim: repeated dim in `%s` (%s)",
             name, tni_format_sizes(n, dims, text, sizeof text));
    return TN_OK;
}

tn_status tni_composite_movedim(tn_tensor *self, const int64_t *source, int64_t source_n,
                                const int64_t *destination, int64_t destination_n, tn_tensor **out)
{
    char from[TNI_SIZES_TEXT], to[TNI_SIZES_TEXT];
    TN_CHECK(source_n <= TN_MAX_DIMS && destination_n <= TN_MAX_DIMS, TN_INVALID,
             "movedim: a tensor has at most %d dimensions, but got %lld to move", TN_MAX_DIMS,
             (long long)(source_n > destination_n ? source_n : destination_n));
    TN_CHECK(
        source_n == destination_n, TN_INVALID,
        "movedim: Invalid source or destination dims: source (%s dims) should contain the same "
        "number of dims as destination (%s dims)",
        tni_format_sizes((int)source_n, source, from, sizeof from),
        tni_format_sizes((int)destination_n, destination, to, sizeof to));
    int n = (int)source_n, moved_from[TN_MAX_DIMS], moved_to[TN_MAX_DIMS];
    uint64_t gone, taken;
    TN_TRY(wrap_dims("source", self, source, n, moved_from, &gone));
    TN_TRY(wrap_dims("destination", self, destination, n, moved_to, &taken));
    int64_t order[TN_MAX_DIMS];
    if (self->ndim == 0)
        return tn_permute(self, order, 0, out);
    for (int i = 0; i < n; i++)
        order[moved_to[i]] = moved_from[i];
    int from_dim = 0;
    for (int i = 0; i < self->ndim; i++) {
        if (taken >> i & 1)
            continue;
        while (gone >> from_dim & 1)
            from_dim++;
        order[i] = from_dim++;
    }
    return tn_permute(self, order, self->ndim, out);
}

tn_status tni_composite_movedim_int(tn_tensor *self, int64_t source, int64_t destination,
                                    tn_tensor **out)
{
    return tni_composite_movedim(self, &source, 1, &destination, 1, out);
}

tn_status tni_composite_narrow(tn_tensor *self, int64_t dim, int64_t start, int64_t length,
                               tn_tensor **out)
{
    TN_CHECK(self->ndim > 0, TN_INVALID, "narrow() cannot be applied to a 0-dim tensor.");
    TN_CHECK(length >= 0, TN_INVALID, "narrow(): length must be non-negative.");
    int at;
    TN_TRY(tni_wrap_dim(dim, self->ndim, &at));
    int64_t size = self->sizes[at];
    TN_CHECK(start >= -size && start <= size, TN_INDEX,
             "start out of range (expected to be in range of [%lld, %lld], but got %lld)",
             (long long)-size, (long long)size, (long long)start);
    if (start < 0)
        start += size;
    TN_CHECK(length <= size - start, TN_INVALID,
             "start (%lld) + length (%lld) exceeds dimension size (%lld).", (long long)start,
             (long long)length, (long long)size);
    return tn_slice(self, at, tn_some_int(start), tn_some_int(start + length), 1, out);
}

/* ---- the start in a tensor, the bytes as another dtype ---- */

tn_status tni_composite_narrow_tensor(tn_tensor *self, int64_t dim, tn_tensor *start,
                                      int64_t length, tn_tensor **out)
{
    tn_scalar from;
    TN_CHECK(start->ndim == 0 && tn_dtype_is_integral((tn_dtype)start->dtype, false), TN_INVALID,
             "start must be an 0-dim integral Tensor.");
    TN_TRY(tn_item(start, &from));
    return tn_narrow(self, dim, from.v.i, length, out);
}

/* The result is the argument, which is no view of itself. */
tn_status tni_kernel_lift_fresh_below(tn_call *call, tn_tensor *self, tn_tensor **out)
{
    uint64_t saved = tni_exclude(&tni_tls, TNI_BELOW_ADINPLACE_OR_VIEW);
    tn_status status =
        tni_re_lift_fresh(call, call->keys & TNI_KS_AFTER_ADINPLACE_OR_VIEW, self, out);
    tni_tls.excluded_xor = saved;
    return status;
}

tn_status tni_kernel_lift_fresh(tn_call *call, tn_tensor *self, tn_tensor **out)
{
    (void)call;
    *out = tn_tensor_ref(self);
    return TN_OK;
}

static tn_status check_last_stride(const tn_tensor *self, tn_dtype dtype)
{
    int64_t stride = self->strides[self->ndim - 1];
    TN_CHECK(stride == 1, TN_INVALID,
             "self.stride(-1) must be 1 to view %s as %s (different element sizes), but got %lld",
             tni_dtype_text((tn_dtype)self->dtype), tni_dtype_text(dtype), (long long)stride);
    return TN_OK;
}

/* Sizes and strides of larger or smaller elements over the same bytes. */
static tn_status view_as_dtype(const tn_tensor *self, tn_dtype dtype, tni_geometry *g)
{
    TN_CHECK(tn_dtype_valid(dtype), TN_TYPE, "%d is not a dtype", (int)dtype);
    int64_t from = (int64_t)tni_itemsize(self), to = (int64_t)tn_dtype_size(dtype);
    int last = self->ndim - 1;
    const char *old = tni_dtype_text((tn_dtype)self->dtype), *new = tni_dtype_text(dtype);
    tni_geometry_copy(g, self);
    if (from == to)
        return TN_OK;
    TN_CHECK(self->ndim > 0, TN_INVALID,
             "self.dim() cannot be 0 to view %s as %s (different element sizes)", old, new);
    if (from > to) {
        TN_TRY(check_last_stride(self, dtype));
        int64_t ratio = from / to;
        for (int d = 0; d < last; d++)
            g->strides[d] *= ratio;
        TN_CHECK(!__builtin_mul_overflow(self->sizes[last], ratio, &g->sizes[last]), TN_INVALID,
                 "the view has too many elements");
        g->offset *= ratio;
        return TN_OK;
    }
    int64_t ratio = to / from;
    TN_CHECK(self->sizes[last] % ratio == 0, TN_INVALID,
             "self.size(-1) must be divisible by %lld to view %s as %s (different element sizes), "
             "but got %lld",
             (long long)ratio, old, new, (long long)self->sizes[last]);
    TN_CHECK(self->offset % ratio == 0, TN_INVALID,
             "self.storage_offset() must be divisible by %lld to view %s as %s (different element "
             "sizes), but got %lld",
             (long long)ratio, old, new, (long long)self->offset);
    TN_TRY(check_last_stride(self, dtype));
    for (int d = 0; d < last; d++) {
        TN_CHECK(self->strides[d] % ratio == 0, TN_INVALID,
                 "self.stride(%d) must be divisible by %lld to view %s as %s (different element "
                 "sizes), but got %lld",
                 d, (long long)ratio, old, new, (long long)self->strides[d]);
        g->strides[d] /= ratio;
    }
    g->sizes[last] /= ratio;
    g->offset /= ratio;
    return TN_OK;
}

tn_status tni_kernel_view_dtype(tn_call *call, tn_tensor *self, tn_dtype dtype, tn_tensor **out)
{
    (void)call;
    tni_geometry g;
    TN_TRY(view_as_dtype(self, dtype, &g));
    return tni_tensor_over(self->storage, g.ndim, g.sizes, g.strides, g.offset, dtype, self->keys,
                           self->device, out);
}
