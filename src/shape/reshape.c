/* SPDX-License-Identifier: MIT */
/* shape/reshape.c: sizes of a view, and whether its strides exist. */
#include "shape/reshape.h"

static TNI_COLD tn_status bad_shape(int64_t numel, const int64_t *shape, int n)
{
    char text[TNI_SIZES_TEXT];
    TN_FAIL(TN_INVALID, "shape '%s' is invalid for input of size %lld",
            tni_format_sizes(n, shape, text, sizeof text), (long long)numel);
}

static TNI_COLD tn_status bad_size(const int64_t *shape, int n, int at)
{
    char text[TNI_SIZES_TEXT];
    TN_FAIL(TN_INVALID, "invalid shape dimension %lld at index %d of shape %s",
            (long long)shape[at], at, tni_format_sizes(n, shape, text, sizeof text));
}

tn_status tni_infer_sizes(int64_t numel, const int64_t *shape, int64_t n, int64_t *sizes)
{
    TN_CHECK(n >= 0 && n <= TN_MAX_DIMS && (shape || n == 0), TN_INVALID,
             "a shape has 0 to %d dimensions, but got %lld", TN_MAX_DIMS, (long long)n);
    int infer = -1;
    bool fits = true;
    int64_t product = 1;
    for (int i = 0; i < (int)n; i++) {
        int64_t size = shape[i];
        sizes[i] = size;
        if (TNI_UNLIKELY(size < 0)) {
            if (size != -1)
                return bad_size(shape, (int)n, i);
            TN_CHECK(infer < 0, TN_INVALID, "only one dimension can be inferred");
            infer = i;
            continue;
        }
        fits &= tni_i64_mul(product, size, &product);
    }
    if (TNI_UNLIKELY(!fits)) {
        /* Only a later 0 could bring the product back to something that fits. */
        bool zero = false;
        for (int i = 0; i < (int)n; i++)
            zero |= shape[i] == 0;
        if (!zero)
            return bad_shape(numel, shape, (int)n);
        product = 0;
    }
    if (infer < 0)
        return product == numel ? TN_OK : bad_shape(numel, shape, (int)n);
    if (product == 0) {
        if (numel != 0)
            return bad_shape(numel, shape, (int)n);
        char text[TNI_SIZES_TEXT];
        TN_FAIL(TN_INVALID,
                "cannot reshape tensor of 0 elements into shape %s because the unspecified "
                "dimension size -1 can be any value and is ambiguous",
                tni_format_sizes((int)n, shape, text, sizeof text));
    }
    if (numel % product != 0)
        return bad_shape(numel, shape, (int)n);
    sizes[infer] = numel / product;
    return TN_OK;
}

static bool same_sizes(int a_ndim, const int64_t *a, int b_ndim, const int64_t *b)
{
    if (a_ndim != b_ndim)
        return false;
    for (int i = 0; i < a_ndim; i++) {
        if (a[i] != b[i])
            return false;
    }
    return true;
}

bool tni_view_strides(int old_ndim, const int64_t *old_sizes, const int64_t *old_strides,
                      int64_t numel, int ndim, const int64_t *sizes, int64_t *strides)
{
    if (numel == 0) {
        if (same_sizes(old_ndim, old_sizes, ndim, sizes)) {
            for (int i = 0; i < ndim; i++)
                strides[i] = old_strides[i];
        } else {
            tni_contiguous_strides(ndim, sizes, strides);
        }
        return true;
    }
    if (old_ndim == 0) {
        for (int i = 0; i < ndim; i++)
            strides[i] = 1;
        return true;
    }
    /* Walk the old dimensions from the last one and collect them to chunks that are one run of
     * memory; each chunk must be used up exactly by the new dimensions that lie on it. */
    int d = ndim - 1;
    int64_t base = old_strides[old_ndim - 1];
    int64_t chunk = 1, used = 1;
    for (int i = old_ndim - 1; i >= 0; i--) {
        chunk *= old_sizes[i];
        bool ends = i == 0 || (old_sizes[i - 1] != 1 && old_strides[i - 1] != chunk * base);
        if (!ends)
            continue;
        while (d >= 0 && (used < chunk || sizes[d] == 1)) {
            strides[d] = used * base;
            used *= sizes[d];
            d--;
        }
        if (used != chunk)
            return false;
        if (i > 0) {
            base = old_strides[i - 1];
            chunk = used = 1;
        }
    }
    return d == -1;
}
