/* SPDX-License-Identifier: MIT */
/* Tensors of literals: their geometry and their values. Note [Argument literals] of schema.h is the
 * contract; the scripts of tests/golden make the same values. */
#include "op/literal.h"

#include <string.h>
#include "core/device.h"
#include "core/fake.h"
#include "core/state.h"
#include "core/scalar.h"
#include "core/tensor.h"

/* ---- geometry ---- */

static tn_status too_large(const tni_tensor_literal *l)
{
    char text[TNI_SIZES_TEXT];
    TN_FAIL(TN_INVALID, "Storage size calculation overflowed with sizes=%s",
            tni_format_sizes(l->ndim, l->sizes, text, sizeof text));
}

static tn_status check_layout(const tni_tensor_literal *l)
{
    static const char *const names[] = {"", ".t", ".strided", ".expanded", ".cl"};
    static const int wanted[] = {0, 2, 1, 1, 4};
    TN_CHECK(l->ndim >= wanted[l->layout], TN_INVALID,
             "a tensor of %d dimensions cannot be %s, which takes at least %d", l->ndim,
             names[l->layout], wanted[l->layout]);
    TN_CHECK(l->layout != TNI_LITERAL_CHANNELS_LAST || l->ndim <= 5, TN_INVALID,
             "a tensor of %d dimensions cannot be .cl, which takes 4 or 5", l->ndim);
    return TN_OK;
}

/* Strides of the result, and how many elements its memory has. */
static tn_status layout_strides(const tni_tensor_literal *l, int64_t *strides, int64_t *out_n)
{
    int64_t memory[TN_MAX_DIMS], n = 1, positive = 1, numel;
    int last = l->ndim - 1;
    memcpy(memory, l->sizes, sizeof memory);
    if (l->layout == TNI_LITERAL_T) {
        memory[last] = l->sizes[last - 1];
        memory[last - 1] = l->sizes[last];
    } else if (l->layout == TNI_LITERAL_STRIDED) {
        if (!tni_i64_mul(memory[last], 2, &memory[last]))
            return too_large(l);
    } else if (l->layout == TNI_LITERAL_EXPANDED) {
        memory[0] = memory[0] > 0;
    }
    for (int d = 0; d < l->ndim; d++) {
        if (!tni_i64_mul(positive, memory[d] > 0 ? memory[d] : 1, &positive))
            return too_large(l);
        n = memory[d] > 0 ? n : 0;
    }
    if (!tni_numel(l->ndim, l->sizes, &numel))
        return too_large(l);
    tni_contiguous_strides(l->ndim, memory, strides);
    if (l->layout == TNI_LITERAL_T) {
        int64_t swapped = strides[last];
        strides[last] = strides[last - 1];
        strides[last - 1] = swapped;
    } else if (l->layout == TNI_LITERAL_STRIDED) {
        strides[last] = 2;
    } else if (l->layout == TNI_LITERAL_EXPANDED) {
        strides[0] = 0;
    } else if (l->layout == TNI_LITERAL_CHANNELS_LAST) {
        TN_TRY(
            tni_format_strides(l->ndim == 4 ? TN_FORMAT_CHANNELS_LAST : TN_FORMAT_CHANNELS_LAST_3D,
                               l->ndim, l->sizes, strides));
    }
    *out_n = n ? positive : 0;
    return TN_OK;
}

/* ---- values ---- */

static double pattern(int64_t k)
{
    int64_t m = (7919 * (k % 41) + 13) % 41 - 20;
    return (double)(m ? m : 21) / 8;
}

/* The element at row-major index k. */
static tn_scalar value_at(tn_dtype dtype, int64_t k)
{
    if (tn_dtype_is_complex(dtype))
        return tn_complex(pattern(k), pattern(k + 7));
    if (tn_dtype_is_floating(dtype))
        return tn_float(pattern(k));
    if (dtype == TN_DTYPE_BOOL)
        return tn_bool(k % 2 == 0);
    if (dtype == TN_DTYPE_U8)
        return tn_int((7919 * (k % 10) + 13) % 10);
    return tn_int((7919 * (k % 11) + 13) % 11 - 5);
}

enum { MAX_PERIOD = 41, MAX_ITEM = 16 };

/* Values repeat after this many elements. */
static int64_t period(const tni_tensor_literal *l)
{
    if (l->has_fill)
        return 1;
    if (tn_dtype_is_complex(l->dtype) || tn_dtype_is_floating(l->dtype))
        return 41;
    return l->dtype == TN_DTYPE_BOOL ? 2 : l->dtype == TN_DTYPE_U8 ? 10 : 11;
}

/* Give the elements of @p t their values; @p memory is its storage, on the host. */
static void write_values(const tni_tensor_literal *l, const tn_tensor *t, char *memory)
{
    _Alignas(16) char table[MAX_PERIOD * MAX_ITEM];
    size_t item = tni_itemsize(t);
    int64_t n = t->numel, repeat = period(l), index[TN_MAX_DIMS] = {0};
    memset(memory, l->dtype == TN_DTYPE_BOOL ? 1 : 0x7f, t->storage->nbytes);
    for (int64_t k = 0; k < repeat; k++)
        tni_scalar_store(l->has_fill ? l->fill : value_at(l->dtype, k), l->dtype,
                         table + (size_t)k * item);
    if (l->layout == TNI_LITERAL_EXPANDED && n > 0)
        n /= l->sizes[0];
    int64_t at = t->offset;
    for (int64_t k = 0; k < n; k++) {
        memcpy(memory + (size_t)at * item, table + (size_t)(k % repeat) * item, item);
        for (int d = l->ndim - 1; d >= 0; d--) { /* the next index, row-major */
            at += t->strides[d];
            if (++index[d] < l->sizes[d])
                break;
            at -= index[d] * t->strides[d];
            index[d] = 0;
        }
    }
}

static tn_status fill(const tni_tensor_literal *l, tn_tensor *t)
{
    tni_storage *s = t->storage;
    if (tni_is_meta(t) || s->nbytes == 0)
        return TN_OK;
    const tn_device_vtable *device = tni_device_vtable(s->device);
    if (!device) {
        write_values(l, t, s->data);
        return TN_OK;
    }
    char *host = tni_alloc(s->nbytes);
    TN_CHECK(host, TN_NOMEM, "cannot allocate %zu bytes", s->nbytes);
    write_values(l, t, host);
    tn_status status = device->from_host(device->ctx, s->device, s->data, host, s->nbytes);
    tni_free(host);
    return status;
}

/* In a fake mode a literal is a fake tensor, like everything else that is made there. */
static tn_status new_tensor(const tni_tensor_literal *l, int ndim, const int64_t *sizes,
                            tn_tensor **out)
{
    if (tni_tls.fake_mode)
        return tni_tensor_new_fake(tni_tls.fake_mode, ndim, sizes, NULL, l->dtype, l->device, out);
    return tni_tensor_new(ndim, sizes, NULL, l->dtype, l->device, out);
}

tn_status tni_literal_make(const tni_tensor_literal *l, tn_tensor **out)
{
    int64_t strides[TN_MAX_DIMS], n;
    TN_AUTO(tn_tensor) memory = NULL;
    TN_AUTO(tn_tensor) t = NULL;
    TN_TRY(check_layout(l));
    TN_TRY(layout_strides(l, strides, &n));
    if (!tni_i64_add(n, l->offset, &n))
        return too_large(l);
    if (l->layout == TNI_LITERAL_PLAIN && !l->offset) {
        TN_TRY(new_tensor(l, l->ndim, l->sizes, &t));
    } else {
        TN_TRY(new_tensor(l, 1, &n, &memory));
        TN_TRY(tni_tensor_over(memory->storage, l->ndim, l->sizes, strides, l->offset, l->dtype,
                               memory->keys, memory->device, &t));
    }
    TN_TRY(fill(l, t));
    if (l->grad)
        TN_TRY(tn_tensor_set_requires_grad(t, true));
    *out = TN_MOVE(t);
    return TN_OK;
}
