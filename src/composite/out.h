/* SPDX-License-Identifier: MIT */
/* composite/out.h: `out=` and in-place forms of operators that compute their result by other
 * operators. */
#ifndef TNI_COMPOSITE_OUT_H
#define TNI_COMPOSITE_OUT_H

#include "tenon/base.h"
#include "tenon/tensor.h"

/* Bring what operator @p op computed to @p out, which is resized when its sizes differ. Nothing is
 * resized or written when @p out cannot take it.
 *
 * @retval TN_INVALID  "Expected out tensor to have dtype float, but got double instead" */
TN_NODISCARD tn_status tni_out_take(const char *op, tn_tensor *made, tn_tensor *out);
/* What a function computes with that will be written over @p self: @p self, or a copy while
 * gradients are recorded, which keep what was there before. */
TN_NODISCARD tn_status tni_inplace_begin(tn_tensor *self, tn_tensor **out);
/* The same for what is written in place: sizes must fit, and values must be of a kind that the
 * dtype of @p self can take.
 *
 * @retval TN_INVALID  "result type Float can't be cast to the desired output type Long" */
TN_NODISCARD tn_status tni_inplace_take(tn_tensor *made, tn_tensor *self);

#endif
