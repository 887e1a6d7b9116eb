/* SPDX-License-Identifier: MIT */
/* composite/sizes.c: sizes and strides as operators, so that a traced program can ask for them. */
#include "core/tensor.h"
#include "gen/composites.h"

tn_status tni_composite_sym_size(tn_tensor *self, int64_t dim, int64_t *out)
{
    int at;
    TN_CHECK(self->ndim > 0, TN_INDEX, "Dimension specified as %lld but tensor has no dimensions",
             (long long)dim);
    TN_TRY(tni_wrap_dim(dim, self->ndim, &at));
    *out = self->sizes[at];
    return TN_OK;
}

tn_status tni_composite_sym_stride(tn_tensor *self, int64_t dim, int64_t *out)
{
    int at;
    TN_CHECK(self->ndim > 0, TN_INDEX, "Dimension specified as %lld but tensor has no dimensions",
             (long long)dim);
    TN_TRY(tni_wrap_dim(dim, self->ndim, &at));
    *out = self->strides[at];
    return TN_OK;
}

tn_status tni_composite_sym_numel(tn_tensor *self, int64_t *out)
{
    *out = self->numel;
    return TN_OK;
}

tn_status tni_composite_sym_storage_offset(tn_tensor *self, int64_t *out)
{
    *out = self->offset;
    return TN_OK;
}

tn_status tni_composite_sym_is_contiguous(tn_tensor *self, tn_memory_format memory_format,
                                          bool *out)
{
    *out = tn_tensor_is_contiguous(self, memory_format);
    return TN_OK;
}
