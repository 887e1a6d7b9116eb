/* SPDX-License-Identifier: MIT */
/* meta/fallback.c: refuse an operator that nobody taught what its results look like. */
#include "meta/fallback.h"
#include "base/status.h"

tn_status tni_meta_fallback(tn_call *call, const tn_value *args, tn_value *rets)
{
    (void)args;
    (void)rets;
    TN_FAIL(
        TN_UNSUPPORTED,
        "%s: attempted to run this operator with Meta tensors, but there was no fake impl or Meta "
        "kernel registered. You may have run into this message while using an operator with PT2 "
        "compilation APIs (torch.compile/torch.export); in order to use this operator with those "
        "APIs you'll need to add a fake impl. Please see the following for next steps: "
        "https://pytorch.org/tutorials/advanced/custom_ops_landing_page.html",
        tn_op_name(tn_call_op(call)));
}
