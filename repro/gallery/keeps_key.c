/* SPDX-License-Identifier: MIT */
/* A redispatch that keeps its key: refused at once, with both sets named. */
#include "gallery.h"

static tn_status keeps_its_key(tn_call *frame, const tn_value *args, tn_value *rets)
{
    return tn_call_redispatch(frame, tn_call_keys(frame), args, rets);
}

int main(void)
{
    limit_life();
    tn_op *op = plant("keeps_key", TN_KEY_CPU, keeps_its_key, "keeps_its_key", __LINE__);
    return refused(call(op, ones(4, TN_CPU)));
}
