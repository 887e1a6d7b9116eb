/* SPDX-License-Identifier: MIT */
/* iter/range.h: the numbers that arange gives. */
#ifndef TNI_ITER_RANGE_H
#define TNI_ITER_RANGE_H

#include "tenon/dtype.h"

typedef struct tni_range {
    int64_t n;                   /* how many */
    int64_t start_int, step_int; /* for integer dtypes */
    double start, step;
} tni_range;

/* The dtype when none is given: int64 for whole numbers, else the default dtype. */
tn_dtype tni_range_dtype(tn_scalar start, tn_scalar end, tn_scalar step);
/* How many numbers there are from @p start to before @p end, ceil((end - start) / step).
 * @retval TN_INVALID  "step must be nonzero", "upper bound and lower bound inconsistent with step
 * sign", "unsupported range: 0 -> inf"; @retval TN_UNSUPPORTED  bool or complex */
TN_NODISCARD tn_status tni_range_check(tn_scalar start, tn_scalar end, tn_scalar step,
                                       tn_dtype dtype, tni_range *out);

#endif
