/* SPDX-License-Identifier: MIT */
/* A kernel that never returns: it spins. */
#include "gallery.h"

static tn_status spins(tn_call *frame, const tn_value *args, tn_value *rets)
{
    (void)frame;
    (void)args;
    (void)rets;
    ready();
    volatile bool stop = false;
    while (!stop)
        ;
    return TN_OK;
}

int main(void)
{
    limit_life();
    tn_op *op = plant("spins", TN_KEY_CPU, spins, "spins", __LINE__);
    return refused(call(op, ones(4, TN_CPU)));
}
