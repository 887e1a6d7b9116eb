/* SPDX-License-Identifier: MIT */
/* core/blob.c: tensors from what the caller already has: an array to copy, memory to look at, a
 * number. */
#include "core/fake.h"
#include "core/scalar.h"
#include "core/state.h"
#include "core/tensor.h"

#include <string.h>

static tn_status check_dtype(const char *function, tn_dtype dtype)
{
    TN_CHECK(tn_dtype_valid(dtype), TN_TYPE, "%s: %d is not a dtype", function, (int)dtype);
    return TN_OK;
}

/* Values that were copied: under a fake mode they become a fake tensor, which remembers a single
 * one as a constant. */
static tn_status deliver(TN_STOLEN tn_tensor *fresh, tn_tensor **out)
{
    if (TNI_LIKELY(tni_tls.fake_mode == NULL)) {
        *out = fresh;
        return TN_OK;
    }
    TN_AUTO(tn_tensor) t = fresh;
    return tni_fake_constant(tni_tls.fake_mode, t, out);
}

tn_status tn_tensor_from_data(const void *data, int ndim, const int64_t *sizes, tn_dtype dtype,
                              tn_tensor **out)
{
    TN_CHECK(out, TN_INVALID, "tn_tensor_from_data: out is NULL");
    TN_TRY(check_dtype("tn_tensor_from_data", dtype));
    TN_AUTO(tn_tensor) t = NULL;
    TN_TRY(tni_tensor_new_real(ndim, sizes, NULL, dtype, TN_CPU, &t));
    size_t nbytes = (size_t)t->numel * tni_itemsize(t);
    TN_CHECK(data || nbytes == 0, TN_INVALID,
             "tn_tensor_from_data: data is NULL, expected %zu bytes", nbytes);
    if (nbytes)
        memcpy(t->data, data, nbytes);
    return deliver(TN_MOVE(t), out);
}

tn_status tn_tensor_from_blob(void *data, int ndim, const int64_t *sizes, const int64_t *strides,
                              tn_dtype dtype, void (*release)(void *ctx), void *ctx,
                              tn_tensor **out)
{
    TN_CHECK(out, TN_INVALID, "tn_tensor_from_blob: out is NULL");
    TN_TRY(check_dtype("tn_tensor_from_blob", dtype));
    tni_geometry g;
    size_t nbytes;
    TN_TRY(tni_geometry_check(ndim, sizes, strides, dtype, &g, &nbytes));
    TN_CHECK(data || nbytes == 0, TN_INVALID,
             "tn_tensor_from_blob: data is NULL, expected %zu bytes", nbytes);
    size_t align = tni_dtype_align(dtype);
    TN_CHECK((uintptr_t)data % align == 0, TN_INVALID,
             "tn_tensor_from_blob: data at %p is not aligned to the %zu bytes that %s needs", data,
             align, tn_dtype_name(dtype));

    TN_AUTO(tni_storage) storage = NULL;
    TN_TRY(tni_storage_foreign(nbytes ? data : NULL, nbytes, TN_CPU, NULL, NULL, &storage));
    TN_AUTO(tn_tensor) t = NULL;
    TN_TRY(tni_tensor_over(storage, g.ndim, g.sizes, g.strides, 0, dtype,
                           tni_fresh_keys[tni_tls.inference != 0][TN_DEVICE_CPU], TN_CPU, &t));
    /* From here on nothing fails: the memory is ours to let go of. */
    tni_storage_set_release(storage, release, ctx);
    *out = TN_MOVE(t);
    return TN_OK;
}

tn_status tn_tensor_from_scalar(tn_scalar value, tn_dtype dtype, tn_tensor **out)
{
    TN_CHECK(out, TN_INVALID, "tn_tensor_from_scalar: out is NULL");
    if (dtype == TN_DTYPE_NONE)
        dtype = tni_scalar_dtype(value);
    TN_TRY(check_dtype("tn_tensor_from_scalar", dtype));
    tn_tensor *t;
    TN_TRY(tni_tensor_new_real(0, NULL, NULL, dtype, TN_CPU, &t));
    tni_scalar_store(value, dtype, t->data);
    return deliver(t, out);
}

tn_status tn_tensor_from_number(tn_scalar value, tn_tensor **out)
{
    TN_CHECK(out, TN_INVALID, "tn_tensor_from_number: out is NULL");
    /* The number itself, whatever the default dtype: a float64 tensor beside it must see all its
     * digits. */
    tn_dtype dtype = value.kind == TN_SCALAR_FLOAT     ? TN_DTYPE_F64
                     : value.kind == TN_SCALAR_COMPLEX ? TN_DTYPE_C128
                                                       : tni_scalar_dtype(value);
    TN_TRY(tn_tensor_from_scalar(value, dtype, out));
    (*out)->flags |= TNI_WRAPPED_NUMBER;
    return TN_OK;
}
