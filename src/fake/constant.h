/* SPDX-License-Identifier: MIT */
/* fake/constant.h: computing with known values. */
#ifndef TNI_FAKE_CONSTANT_H
#define TNI_FAKE_CONSTANT_H

#include "fake/inputs.h"

/* Every fake argument has known values: run the operator on them, if it is one that may be, and
 * give the results as fake tensors with known values. @p rets gets owned values when *done.
 * @param done  false: nothing has happened, and the operator must be run without values */
TN_NODISCARD tn_status tni_fake_compute(tn_call *call, const tni_fake_inputs *in, tn_value *rets,
                                        bool *done);
/* The operator has written its arguments: what was known of those is no longer so. */
void tni_fake_forget_written(const tni_fake_inputs *in);

#endif
