/* SPDX-License-Identifier: MIT */
/* iter/random.h: what random fills refuse, on every backend. */
#ifndef TNI_ITER_RANDOM_H
#define TNI_ITER_RANDOM_H

#include "core/tensor.h"

/* @retval TN_INVALID  "uniform_ expects to return a [from, to) range, but found from=2 > to=1"
 * @retval TN_UNSUPPORTED  not a floating or complex dtype */
TN_NODISCARD tn_status tni_check_uniform(const tn_tensor *self, double from, double to);
/* @retval TN_INVALID  "normal expects std >= 0.0, but found std -1" */
TN_NODISCARD tn_status tni_check_normal(const tn_tensor *self, double std);

#endif
