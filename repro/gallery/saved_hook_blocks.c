/* SPDX-License-Identifier: MIT */
/* A saved-tensor hook that blocks: it reads from a pipe into which nobody writes. */
#include "gallery.h"
#include "tenon/saved_hooks.h"

static int pipe_ends[2];

static tn_status blocks(void *ctx, tn_tensor *t, void **packed)
{
    (void)ctx;
    *packed = t;
    ready();
    char c;
    return read(pipe_ends[0], &c, 1) == 1 ? TN_OK : TN_INVALID;
}

static tn_status unpacks(void *ctx, void *packed, tn_tensor **out)
{
    (void)ctx;
    *out = packed;
    return TN_OK;
}

int main(void)
{
    limit_life();
    if (pipe(pipe_ends) != 0)
        return 1;
    tn_tensor *x = ones(4, TN_CPU), *y;
    must(tn_tensor_set_requires_grad(x, true));
    tn_saved_hooks hooks = {.size = sizeof hooks, .pack = blocks, .unpack = unpacks};
    must(tn_saved_hooks_push(&hooks));
    return refused(tn_mul(x, x, &y));
}
