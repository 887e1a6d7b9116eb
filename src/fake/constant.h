/* SPDX-License-Identifier: MIT */
/* fake/constant.h: computing with known values. */
#ifndef TNI_FAKE_CONSTANT_H
#define TNI_FAKE_CONSTANT_H

#include "fake/inputs.h"

/* Whether a call whose fake arguments all have known values is one that may be computed. */
bool tni_fake_may_compute(const tni_fake_inputs *in);
/* No result has more than one element: what is known stays small. */
bool tni_fake_are_small(const tn_value *rets, int n);
/* Run the operator on the known values of its arguments, and give the results as fake tensors that
 * know theirs. @p rets gets owned values; on failure all are None. */
TN_NODISCARD tn_status tni_fake_compute(tn_call *call, const tni_fake_inputs *in, tn_value *rets);
/* The operator has written its arguments: what was known of those is no longer so. */
void tni_fake_forget_written(const tni_fake_inputs *in);

#endif
