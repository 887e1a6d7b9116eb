/* SPDX-License-Identifier: MIT */
/* meta/fallback.h: the Meta key for operators that have no Meta kernel. */
#ifndef TNI_META_FALLBACK_H
#define TNI_META_FALLBACK_H

#include "tenon/dispatch.h"

/* Whole-key fallback: fails with TN_UNSUPPORTED and says what to register. */
TN_NODISCARD tn_status tni_meta_fallback(tn_call *call, const tn_value *args, tn_value *rets);

#endif
