/* SPDX-License-Identifier: MIT */
/* autocast/kernels.h: the kernels of operators that declare `autocast`. */
#ifndef TNI_AUTOCAST_KERNELS_H
#define TNI_AUTOCAST_KERNELS_H

#include "tenon/dispatch.h"

tn_status tni_autocast_lower(tn_call *call, const tn_value *args, tn_value *rets);
tn_status tni_autocast_float32(tn_call *call, const tn_value *args, tn_value *rets);
tn_status tni_autocast_promote(tn_call *call, const tn_value *args, tn_value *rets);
tn_status tni_autocast_lower_lstm(tn_call *call, const tn_value *args, tn_value *rets);

#endif
