/* SPDX-License-Identifier: MIT */
/* shape/expand.c: geometry of expand, and broadcasting of sizes. */
#include "shape/expand.h"

static TNI_COLD tn_status too_few(const tn_tensor *t, int n, const int64_t *target)
{
    char have[TNI_SIZES_TEXT], want[TNI_SIZES_TEXT];
    tn_dtype dtype = (tn_dtype)t->dtype;
    /* The reference has old names for the dtypes that it began with. */
    bool old = dtype != TN_DTYPE_BOOL && dtype != TN_DTYPE_BF16 && !tn_dtype_is_complex(dtype);
    TN_FAIL(TN_INVALID,
            "expand(%s%s%s{%s}, size=%s): the number of sizes provided (%d) must be greater "
            "or equal to the number of dimensions in the tensor (%d)",
            old ? "torch." : "CPU", tni_dtype_text(dtype), old ? "Tensor" : "Type",
            tni_format_sizes(t->ndim, t->sizes, have, sizeof have),
            tni_format_sizes(n, target, want, sizeof want), n, t->ndim);
}

static TNI_COLD tn_status mismatch(const tn_tensor *t, int n, const int64_t *target, int at,
                                   int64_t found)
{
    char have[TNI_SIZES_TEXT], want[TNI_SIZES_TEXT];
    tni_format_sizes(n, target, want, sizeof want);
    TN_CHECK(target[at] >= 0, TN_INVALID,
             "Trying to create tensor with negative dimension %lld: %s", (long long)target[at],
             want);
    TN_FAIL(TN_INVALID,
            "The expanded size of the tensor (%lld) must match the existing size (%lld) at "
            "non-singleton dimension %d.  Target sizes: %s.  Tensor sizes: %s",
            (long long)target[at], (long long)found, at, want,
            tni_format_sizes(t->ndim, t->sizes, have, sizeof have));
}

tn_status tni_expand(const tn_tensor *t, int64_t n, const int64_t *target, int64_t *sizes,
                     int64_t *strides)
{
    TN_CHECK(n >= 0 && n <= TN_MAX_DIMS && (target || n == 0), TN_INVALID,
             "expand(): size has 0 to %d entries, but got %lld", TN_MAX_DIMS, (long long)n);
    if (TNI_UNLIKELY(n < t->ndim))
        return too_few(t, (int)n, target);
    int lead = (int)n - t->ndim;
    for (int i = (int)n - 1; i >= 0; i--) {
        int from = i - lead;
        int64_t size = from >= 0 ? t->sizes[from] : 1;
        int64_t stride;
        if (from >= 0)
            stride = t->strides[from];
        else
            stride = t->ndim ? sizes[i + 1] * strides[i + 1] : 0;
        int64_t wanted = target[i];
        if (wanted == -1) {
            TN_CHECK(
                from >= 0, TN_INVALID,
                "The expanded size of the tensor (-1) isn't allowed in a leading, non-existing "
                "dimension %d",
                i);
            wanted = size;
        }
        if (wanted != size) {
            if (TNI_UNLIKELY(size != 1 || wanted < 0))
                return mismatch(t, (int)n, target, i, size);
            size = wanted;
            stride = 0;
        }
        sizes[i] = size;
        strides[i] = stride;
    }
    return TN_OK;
}

tn_status tni_broadcast_sizes(int a_ndim, const int64_t *a, int b_ndim, const int64_t *b,
                              int *out_ndim, int64_t *out)
{
    int ndim = a_ndim > b_ndim ? a_ndim : b_ndim;
    for (int i = ndim - 1; i >= 0; i--) {
        int64_t x = i >= ndim - a_ndim ? a[i - (ndim - a_ndim)] : 1;
        int64_t y = i >= ndim - b_ndim ? b[i - (ndim - b_ndim)] : 1;
        TN_CHECK(x == y || x == 1 || y == 1, TN_INVALID,
                 "The size of tensor a (%lld) must match the size of tensor b (%lld) at "
                 "non-singleton dimension %d",
                 (long long)x, (long long)y, i);
        out[i] = x == 1 ? y : x;
    }
    *out_ndim = ndim;
    return TN_OK;
}
