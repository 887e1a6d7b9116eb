/* SPDX-License-Identifier: MIT */
/* shape/number.h: whether a bare number fits a dtype. */
#ifndef TNI_SHAPE_NUMBER_H
#define TNI_SHAPE_NUMBER_H

#include "base/status.h"
#include "tenon/dtype.h"

/* Whether a bare number can be stored in this dtype, as filling wants it; any number can in bool.
 * @retval TN_INVALID  "value cannot be converted to type int8_t without overflow" */
TN_NODISCARD tn_status tni_check_number(tn_scalar value, tn_dtype dtype);
/* The same of a factor or parameter, which is applied in float32 to float16 and bfloat16. */
TN_NODISCARD tn_status tni_check_factor(tn_scalar value, tn_dtype dtype);

#endif
