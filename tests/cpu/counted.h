/* SPDX-License-Identifier: MIT */
/* tests/cpu/counted.h: tensors whose elements say where they belong. */
#ifndef TEST_CPU_COUNTED_H
#define TEST_CPU_COUNTED_H

#include "harness/test.h"
#include "tenon/ops.h"

/* 0, 1, 2, ... in the order of a contiguous tensor. */
static inline tn_tensor *counted(int ndim, const int64_t *sizes, tn_dtype dtype)
{
    int64_t n = 1;
    for (int d = 0; d < ndim; d++)
        n *= sizes[d];
    tn_tensor *flat = NULL, *t = NULL;
    tn_tensor_opts opts = tn_opts(dtype, TN_CPU);
    ASSERT_OK(tn_arange(tn_int(n), &opts, &flat));
    ASSERT_OK(tn_view(flat, sizes, ndim, &t));
    tn_tensor_unref(flat);
    return t;
}

#endif
