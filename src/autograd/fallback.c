/* SPDX-License-Identifier: MIT */
/* autograd/fallback.c: autograd for operators without an autograd kernel: step aside. */
#include "autograd/fallback.h"
#include "core/keys.h"

tn_status tni_autograd_fallback(tn_call *call, const tn_value *args, tn_value *rets)
{
    return tn_call_redispatch(call, tn_call_keys(call) & TNI_KS_AFTER_AUTOGRAD, args, rets);
}
