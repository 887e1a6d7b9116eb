/* SPDX-License-Identifier: MIT */
/* repro/test_with_dispatch_trace.c: the folded product with the dispatch trace on stderr, and a
 * check of what the report could not see: that the call of mm reaches autograd's kernel, then the
 * Meta kernel, and comes back from both. */
#include "repro.h"

typedef struct operands {
    tn_tensor *a, *b;
} operands;

static tn_status product(void *ctx, tn_tensor **out)
{
    const operands *x = ctx;
    return tn_matmul(x->a, x->b, out);
}

static struct {
    int entered_autograd, entered_meta, returned;
} mm;

static void watch(void *ctx, const tn_event *event)
{
    (void)ctx;
    if (strcmp(tn_op_name(event->op), "aten::mm") != 0)
        return;
    if (event->kind == TN_EVENT_RETURN)
        mm.returned++;
    else if (event->key == TN_KEY_AUTOGRAD_META)
        mm.entered_autograd++;
    else if (event->key == TN_KEY_META)
        mm.entered_meta++;
}

int main(void)
{
    const int64_t three[] = {2, 4, 16}, two[] = {16, 16};
    operands x = {randn(3, three, TN_META), randn(2, two, TN_META)};
    tn_tensor *out = NULL;

    printf("torch.matmul of meta [2, 4, 16] and [16, 16], traced\n");
    fflush(stdout);
    tn_set_dispatch_trace(true);
    must(tn_observe_thread(watch, NULL), "observing");
    must(product(&x, &out), "matmul");
    must(tn_observe_thread(NULL, NULL), "observing");
    tn_set_dispatch_trace(false);
    (void)!tn_set_dispatch_debug(NULL); /* what the environment asked for has been seen */

    expect(is_2_4_16(out), "the result must be [2, 4, 16]");
    printf("aten::mm: AutogradMeta entered %d, Meta entered %d, returned %d\n", mm.entered_autograd,
           mm.entered_meta, mm.returned);
    expect(mm.entered_autograd == 1 && mm.entered_meta == 1 && mm.returned == 2,
           "mm must pass AutogradMeta and Meta once each and return from both");
    tn_tensor_unref(out);

    timing t = time_product(product, &x, "matmul");
    tn_tensor_unref(x.a);
    tn_tensor_unref(x.b);
    return verdict(t);
}
