/* SPDX-License-Identifier: MIT */
/* composite/reshape.c: reshape and what is said in terms of it. */
#include "gen/composites.h"
#include "shape/reshape.h"
#include "tenon/ops.h"

/* `view` where the strides allow it, else a contiguous copy under the new sizes, which hold no -1.
 */
static tn_status reshape(tn_tensor *self, const int64_t *sizes, int ndim, tn_tensor **out)
{
    int64_t strides[TN_MAX_DIMS];
    if (TNI_LIKELY(tni_views_are_contiguous(self)) ||
        tni_view_strides(self->ndim, self->sizes, self->strides, self->numel, ndim, sizes, strides))
        return tn_view(self, sizes, ndim, out);
    TN_AUTO(tn_tensor) copy = NULL;
    TN_TRY(tn_clone(self, TN_FORMAT_CONTIGUOUS, &copy));
    return tn__unsafe_view(copy, sizes, ndim, out);
}

tn_status tni_composite_reshape(tn_tensor *self, const int64_t *shape, int64_t shape_n,
                                tn_tensor **out)
{
    if (TNI_LIKELY(tni_views_are_contiguous(self)))
        return tn_view(self, shape, shape_n, out); /* infers and refuses by itself */
    int64_t sizes[TN_MAX_DIMS];
    TN_TRY(tni_infer_sizes(self->numel, shape, shape_n, sizes));
    return reshape(self, sizes, (int)shape_n, out);
}

tn_status tni_composite_flatten(tn_tensor *self, int64_t start_dim, int64_t end_dim,
                                tn_tensor **out)
{
    int first, last;
    TN_TRY(tni_wrap_dim(start_dim, self->ndim, &first));
    TN_TRY(tni_wrap_dim(end_dim, self->ndim, &last));
    TN_CHECK(first <= last, TN_INVALID,
             "flatten() has invalid args: start_dim cannot come after end_dim");
    if (self->ndim == 0)
        return reshape(self, &(int64_t){1}, 1, out);
    if (first == last) {
        *out = tn_tensor_ref(self);
        return TN_OK;
    }
    int64_t sizes[TN_MAX_DIMS];
    int n = 0;
    for (int i = 0; i < self->ndim; i++) {
        if (i > first && i <= last)
            sizes[n - 1] *= self->sizes[i];
        else
            sizes[n++] = self->sizes[i];
    }
    return reshape(self, sizes, n, out);
}

tn_status tni_composite_view_as(tn_tensor *self, tn_tensor *other, tn_tensor **out)
{
    return tn_view(self, other->sizes, other->ndim, out);
}

tn_status tni_composite_expand_as(tn_tensor *self, tn_tensor *other, tn_tensor **out)
{
    return tn_expand(self, other->sizes, other->ndim, false, out);
}
