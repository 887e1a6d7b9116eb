/* SPDX-License-Identifier: MIT */
/* Backward waits for itself: a tensor hook waits for the thread that runs this very pass. */
#include "gallery.h"

static const void *self;

static tn_status waits_for_the_end(void *ctx, tn_tensor *grad, tn_tensor **replacement)
{
    (void)ctx;
    (void)grad;
    (void)replacement;
    ready();
    tn_wait_begin(TN_WAIT_THREAD, self, "backward");
    volatile bool stop = false;
    while (!stop)
        pause();
    return TN_OK;
}

int main(void)
{
    limit_life();
    self = (const void *)(intptr_t)gettid();
    tn_tensor *x = ones(4, TN_CPU), *y, *z;
    must(tn_tensor_set_requires_grad(x, true));
    must(tn_mul(x, x, &y));
    must(tn_sum(y, TN_DTYPE_NONE, &z));
    tn_hook *hook;
    must(tn_tensor_add_hook(y, waits_for_the_end, NULL, NULL, &hook));
    return refused(tn_backward(&z, 1, NULL, NULL));
}
