/* SPDX-License-Identifier: MIT */
/* cpu/run.h: run a loop over a planned elementwise operation. */
#ifndef TNI_CPU_RUN_H
#define TNI_CPU_RUN_H

#include "cpu/loops.h"
#include "iter/iter.h"

enum {
    /* A number that is the second input of tensors of float16 or bfloat16 keeps its digits; any
     * other is rounded to the dtype first. So does the reference. */
    TNI_RUN_EXACT_SECOND = 1u << 0,
    /* Input 0 is a condition: bool, whatever the common dtype is. */
    TNI_RUN_CONDITION = 1u << 1,
    TNI_RUN_BOOL_RESULT = 1u << 2,
    TNI_RUN_REAL_RESULT = 1u << 4, /* of complex numbers */
    /* Elements are moved, not computed with: float16 stays float16. */
    TNI_RUN_RAW = 1u << 3,
    TNI_RUN_EXACT_THIRD = 1u << 5, /* as the second one */
};

/* Threads share out work in pieces of about this many elements. Up to ALONE one thread does it all;
 * between them it depends on whether others are at hand. */
#if defined(TN_STRESS) && TN_STRESS
#    define TNI_GRAIN 100
#    define TNI_ALONE 50
#else
#    define TNI_GRAIN 32768
#    define TNI_ALONE 16384
#endif

TN_NODISCARD tn_status tni_run_general(tni_iter *it, tni_loop loop, unsigned flags,
                                       const void *ctx);

/* @p ctx as the loop wants it, of the dtype that tni_run_dtype gives. */
TN_NODISCARD static inline tn_status tni_run(tni_iter *it, tni_loop loop, unsigned flags,
                                             const void *ctx)
{
    if (TNI_LIKELY(it->flat == TNI_FLAT_SAME && it->numel <= TNI_ALONE)) {
        tni_loop_fn fn = tni_loop_find(tni_cpu_kernels(), loop, it->dtype);
        if (TNI_LIKELY(fn != NULL)) {
            fn(it->out_data, it->in_data, it->numel, ctx);
            return TN_OK;
        }
    }
    return tni_run_general(it, loop, flags, ctx);
}

/* The dtype that loops compute in. */
static inline tn_dtype tni_run_dtype(const tni_iter *it)
{
    if (TNI_UNLIKELY(TN_DTYPE_IS_LIMITED(it->dtype))) /* integers wrap to the right bits */
        return tni_dtype_is_float8(it->dtype) ? TN_DTYPE_F32 : TN_DTYPE_I64;
    return it->dtype == TN_DTYPE_F16 || it->dtype == TN_DTYPE_BF16 ? TN_DTYPE_F32 : it->dtype;
}

/* Whether input @p i, converted to the common dtype, an integer one, has an element that is 0. */
TN_NODISCARD tn_status tni_run_find_zero(tni_iter *it, int i, bool *out);

#endif
