/* SPDX-License-Identifier: MIT */
/* fake/convert.h: real tensors to fake ones. The public half is tn_fake_from_real. */
#ifndef TNI_FAKE_CONVERT_H
#define TNI_FAKE_CONVERT_H

#include "fake/mode.h"
#include "op/schema.h"

/* Copy boxed arguments, with each real tensor replaced by its fake; bare numbers stay. On success
 * tn_value_clear each of @p out. */
TN_NODISCARD tn_status tni_fake_convert_arguments(tn_fake_mode *mode, const tni_schema *schema,
                                                  const tn_value *args, tn_value *out);

#endif
