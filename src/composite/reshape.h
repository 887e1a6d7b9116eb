/* SPDX-License-Identifier: MIT */
/* composite/reshape.h: reshape without the dispatch of `reshape` itself, for other composites. */
#ifndef TNI_COMPOSITE_RESHAPE_H
#define TNI_COMPOSITE_RESHAPE_H

#include "core/tensor.h"

/* `view` where the strides allow it, else a contiguous copy under the new sizes. @p sizes hold no
 * -1 and have as many elements as @p self. */
TN_NODISCARD tn_status tni_reshape(tn_tensor *self, const int64_t *sizes, int ndim,
                                   TN_OWNED tn_tensor **out);
/* @p self itself when it is contiguous, else a copy that is. */
TN_NODISCARD tn_status tni_contiguous(tn_tensor *self, TN_OWNED tn_tensor **out);

#endif
