/* SPDX-License-Identifier: MIT */
/* composite/out.h: `out=` of operators that compute their result by other operators. */
#ifndef TNI_COMPOSITE_OUT_H
#define TNI_COMPOSITE_OUT_H

#include "tenon/base.h"
#include "tenon/tensor.h"

/* Bring what operator @p op computed to @p out, which is resized when its sizes differ. Nothing is
 * resized or written when @p out cannot take it.
 *
 * @retval TN_INVALID  "Expected out tensor to have dtype float, but got double instead" */
TN_NODISCARD tn_status tni_out_take(const char *op, tn_tensor *made, tn_tensor *out);

#endif
