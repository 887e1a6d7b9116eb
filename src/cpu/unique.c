/* SPDX-License-Identifier: MIT */
/* cpu/unique.c: the different elements of a tensor. */
#include <string.h>
#include "cpu/ready.h"
#include "cpu/sort.h"
#include "gen/kernels.h"

/* Keys of NaN: each is different from any other. */
static bool is_nan_key(tn_dtype dtype, uint64_t key)
{
    return (dtype == TN_DTYPE_F32 && key == UINT32_MAX) ||
           (dtype == TN_DTYPE_F64 && key == UINT64_MAX);
}

static bool starts(const tni_place *x, int64_t i, tn_dtype dtype)
{
    return i == 0 || x[i].key != x[i - 1].key || is_nan_key(dtype, x[i].key);
}

/* @p inverse and @p counts may be NULL. */
static void fill(const tni_place *x, int64_t n, tn_dtype dtype, const char *from, char *values,
                 int64_t *inverse, int64_t *counts)
{
    size_t size = tn_dtype_size(dtype);
    int64_t at = -1;
    for (int64_t i = 0; i < n; i++) {
        if (starts(x, i, dtype)) {
            at++;
            memcpy(values + (size_t)at * size, from + (size_t)x[i].at * size, size);
            if (counts)
                counts[at] = 0;
        }
        if (inverse)
            inverse[x[i].at] = at;
        if (counts)
            counts[at]++;
    }
}

tn_status tni_kernel__unique2(tn_call *call, tn_tensor *self, bool sorted, bool return_inverse,
                              bool return_counts, tn_tensor **out0, tn_tensor **out1,
                              tn_tensor **out2)
{
    tn_dtype dtype = (tn_dtype)self->dtype, key = tni_sort_dtype(dtype);
    int64_t n = self->numel, different = 0, none = 0;
    (void)call;
    (void)sorted;
    TN_CHECK(!tn_dtype_is_complex(dtype), TN_UNSUPPORTED, "\"unique\" not implemented for '%s'",
             tni_dtype_text(dtype));
    TN_AUTO(tn_tensor) x = NULL;
    TN_AUTO(tn_tensor) places = NULL;
    TN_AUTO(tn_tensor) found = NULL;
    TN_AUTO(tn_tensor) values = NULL;
    TN_AUTO(tn_tensor) inverse = NULL;
    TN_AUTO(tn_tensor) counts = NULL;
    TN_TRY(tni_ready(self, key, &x));
    /* Room for the places and for sorting them: two numbers each. */
    TN_TRY(tni_tensor_new(2, (const int64_t[]){n, 4}, NULL, TN_DTYPE_I64, TN_CPU, &places));
    tni_place *p = places->data;
    if (n) {
        tni_sort_keys(p, x->data, key, n, false);
        tni_sort_places(p, p + n, n);
        for (int64_t i = 0; i < n; i++)
            different += starts(p, i, key);
    }
    TN_TRY(tni_tensor_new(1, &different, NULL, key, TN_CPU, &found));
    TN_TRY(tni_tensor_new(return_inverse ? self->ndim : 1, return_inverse ? self->sizes : &none,
                          NULL, TN_DTYPE_I64, TN_CPU, &inverse));
    TN_TRY(
        tni_tensor_new(1, return_counts ? &different : &none, NULL, TN_DTYPE_I64, TN_CPU, &counts));
    if (n)
        fill(p, n, key, x->data, found->data, return_inverse ? inverse->data : NULL,
             return_counts ? counts->data : NULL);
    TN_TRY(tni_ready(found, dtype, &values));
    *out0 = TN_MOVE(values);
    *out1 = TN_MOVE(inverse);
    *out2 = TN_MOVE(counts);
    return TN_OK;
}
