/* SPDX-License-Identifier: MIT */
/* composite/range.h: what operators that fill a range of numbers have in common. */
#ifndef TNI_COMPOSITE_RANGE_H
#define TNI_COMPOSITE_RANGE_H

#include "core/tensor.h"

/* The options of @p steps numbers from @p start to @p end: complex ends make a complex result.
 *
 * @retval TN_INVALID  a negative count; complex ends and a real dtype */
TN_NODISCARD tn_status tni_range_opts(const char *op, tn_scalar start, tn_scalar end, int64_t steps,
                                      const tn_tensor_opts *opts, tn_tensor_opts *out);

#endif
