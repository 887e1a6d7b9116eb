/* SPDX-License-Identifier: MIT */
/* core/unset.c: what memory that nobody wrote holds: whatever it held before, or, where a program
 * wants to find reads of it, a mark that is the same in every run. */
#include "core/scalar.h"
#include "core/tensor.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

static _Atomic bool fill_empty;

bool tn_fill_empty(void)
{
    return atomic_load_explicit(&fill_empty, memory_order_relaxed);
}

void tn_set_fill_empty(bool on)
{
    atomic_store_explicit(&fill_empty, on, memory_order_relaxed);
}

/* NaN where there is one, else the largest number. */
static tn_scalar mark_of(tn_dtype dtype)
{
    if (!tn_dtype_is_integral(dtype, true))
        return tn_float((double)NAN);
    if (dtype == TN_DTYPE_BOOL)
        return tn_int(1);
    int bits = 8 * (int)tn_dtype_size(dtype);
    bool is_signed = dtype == TN_DTYPE_I8 || dtype == TN_DTYPE_I16 || dtype == TN_DTYPE_I32 ||
                     dtype == TN_DTYPE_I64;
    return is_signed ? tn_int((int64_t)(UINT64_MAX >> (65 - bits))) : tn_int(-1);
}

void tni_fill_unset(tn_tensor *t, size_t from)
{
    tni_storage *s = t->storage;
    size_t item = tni_itemsize(t);
    if (t->device.type != TN_DEVICE_CPU || !s->data)
        return;
    _Alignas(16) unsigned char mark[16];
    tni_scalar_store(mark_of((tn_dtype)t->dtype), (tn_dtype)t->dtype, mark);
    unsigned char *data = s->data;
    for (size_t at = (from + item - 1) / item * item; at + item <= s->nbytes; at += item)
        memcpy(data + at, mark, item);
}
