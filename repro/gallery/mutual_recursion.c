/* SPDX-License-Identifier: MIT */
/* Two meta kernels that call each other. With the usual limit of depth they are refused, and the
 * cycle is named. With the argument "slow" each waits a little, so that the recursion can be
 * watched while it grows. */
#include "gallery.h"

static tn_op *to_copy, *device_put;
static bool slow;

/* Some frames come soon, the limit never. */
static void rest(void)
{
    static int n;
    if (slow)
        usleep(n++ < 100 ? 3000 : 1000000);
}

static tn_status to_copy_meta(tn_call *frame, const tn_value *args, tn_value *rets)
{
    (void)frame;
    rest();
    return tn_op_call(device_put, args, 1, rets);
}

static tn_status device_put_meta(tn_call *frame, const tn_value *args, tn_value *rets)
{
    (void)frame;
    rest();
    return tn_op_call(to_copy, args, 1, rets);
}

int main(int argc, char **argv)
{
    limit_life();
    to_copy = plant("to_copy", TN_KEY_META, to_copy_meta, "to_copy_meta", __LINE__);
    device_put = plant("device_put", TN_KEY_META, device_put_meta, "device_put_meta", __LINE__);
    if (argc > 1 && strcmp(argv[1], "slow") == 0) {
        slow = true;
        ready();
    }
    return refused(call(to_copy, ones(4, TN_META)));
}
