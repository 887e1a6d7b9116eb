/* SPDX-License-Identifier: MIT */
/* composite/complex.c: complex numbers: conjugates, and views as pairs of real ones. */
#include "core/tensor.h"
#include "gen/composites.h"
#include "gen/kernels.h"
#include "tenon/ops.h"

/* There is no conjugate that is only marked as such: a complex tensor is computed at once. */
tn_status tni_composite_conj(tn_tensor *self, tn_tensor **out)
{
    if (tn_dtype_is_complex((tn_dtype)self->dtype))
        return tn_conj_physical(self, out);
    *out = tn_tensor_ref(self);
    return TN_OK;
}

/* ---- views ---- */

static tn_status view_as(const tn_tensor *self, int ndim, const int64_t *sizes,
                         const int64_t *strides, int64_t offset, tn_dtype dtype, tn_tensor **out)
{
    return tni_tensor_over(self->storage, ndim, sizes, strides, offset, dtype, self->keys,
                           self->device, out);
}

tn_status tni_kernel_view_as_real(tn_call *call, tn_tensor *self, tn_tensor **out)
{
    (void)call;
    int64_t sizes[TN_MAX_DIMS], strides[TN_MAX_DIMS];
    int n = self->ndim;
    TN_CHECK(tn_dtype_is_complex((tn_dtype)self->dtype), TN_INVALID,
             "view_as_real is only supported for complex tensors");
    TN_CHECK(n < TN_MAX_DIMS, TN_INVALID, "view_as_real: at most %d dimensions are possible",
             TN_MAX_DIMS - 1);
    for (int d = 0; d < n; d++) {
        sizes[d] = self->sizes[d];
        strides[d] = 2 * self->strides[d];
    }
    sizes[n] = 2;
    strides[n] = 1;
    tn_dtype dtype = self->dtype == TN_DTYPE_C64 ? TN_DTYPE_F32 : TN_DTYPE_F64;
    return view_as(self, n + 1, sizes, strides, 2 * self->offset, dtype, out);
}

tn_status tni_kernel_view_as_complex(tn_call *call, tn_tensor *self, tn_tensor **out)
{
    (void)call;
    int64_t strides[TN_MAX_DIMS];
    int last = self->ndim - 1;
    bool half = self->dtype == TN_DTYPE_F16;
    TN_CHECK(half || self->dtype == TN_DTYPE_F32 || self->dtype == TN_DTYPE_F64, TN_INVALID,
             "view_as_complex is only supported for half, float and double tensors, but got a "
             "tensor of scalar type: %s",
             tni_dtype_text((tn_dtype)self->dtype));
    TN_CHECK(last >= 0, TN_INVALID, "Input tensor must have one or more dimensions");
    TN_CHECK(self->sizes[last] == 2, TN_INVALID, "Tensor must have a last dimension of size 2");
    TN_CHECK(self->strides[last] == 1, TN_INVALID,
             "Tensor must have a last dimension with stride 1");
    for (int d = 0; d < last; d++) {
        TN_CHECK(self->strides[d] % 2 == 0 || self->sizes[d] == 1, TN_INVALID,
                 "Tensor must have a stride divisible by 2 for all but last dimension");
        strides[d] = self->strides[d] / 2;
    }
    TN_CHECK(self->offset % 2 == 0, TN_INVALID, "Tensor must have a storage_offset divisible by 2");
    TN_CHECK(!half, TN_INVALID,
             "view_as_complex is not supported for half tensors: there is no complex dtype of "
             "their size");
    tn_dtype dtype = self->dtype == TN_DTYPE_F32 ? TN_DTYPE_C64 : TN_DTYPE_C128;
    return view_as(self, last, self->sizes, strides, self->offset / 2, dtype, out);
}

static tn_status part(tn_tensor *self, int64_t which, tn_tensor **out)
{
    TN_AUTO(tn_tensor) pairs = NULL;
    TN_TRY(tn_view_as_real(self, &pairs));
    return tn_select(pairs, -1, which, out);
}

tn_status tni_composite_real(tn_tensor *self, tn_tensor **out)
{
    if (tn_dtype_is_complex((tn_dtype)self->dtype))
        return part(self, 0, out);
    *out = tn_tensor_ref(self);
    return TN_OK;
}

tn_status tni_composite_imag(tn_tensor *self, tn_tensor **out)
{
    TN_CHECK(tn_dtype_is_complex((tn_dtype)self->dtype), TN_INVALID,
             "imag is not implemented for tensors with non-complex dtypes.");
    return part(self, 1, out);
}
