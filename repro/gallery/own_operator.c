/* SPDX-License-Identifier: MIT */
/* A kernel that calls its own operator: refused at the depth limit, with the cycle named. */
#include "gallery.h"

static tn_op *op;

static tn_status calls_itself(tn_call *frame, const tn_value *args, tn_value *rets)
{
    (void)frame;
    return tn_op_call(op, args, 1, rets);
}

int main(void)
{
    limit_life();
    op = plant("ouroboros", TN_KEY_CPU, calls_itself, "calls_itself", __LINE__);
    return refused(call(op, ones(4, TN_CPU)));
}
