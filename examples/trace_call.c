/* SPDX-License-Identifier: MIT */
/* trace_call.c: watch every dispatch of a call from inside the program, in any build.
 *
 * An observer of the thread hears of each dispatch before its kernel runs and after it returned.
 * The same facts, formatted for people, are what `tenon explain` prints;
 * TENON_SHOW_DISPATCH_TRACE=1 prints one line a dispatch without any code. */
#include <stdio.h>
#include <tenon/dispatch.h>
#include <tenon/ops.h>

typedef struct tally {
    int dispatches, failures, deepest;
} tally;

static void observe(void *ctx, const tn_event *event)
{
    tally *t = ctx;
    if (event->kind == TN_EVENT_RETURN) {
        t->failures += event->status != TN_OK;
        return;
    }
    t->dispatches++;
    t->deepest = event->depth > t->deepest ? event->depth : t->deepest;

    /* What sits in the slot that won, who put it there, and by which rule. */
    tn_slot_info slot;
    if (tn_op_slot(event->op, event->slot, &slot) != TN_OK)
        return;
    char set[256];
    printf("%*s%-20s %s\n", 2 * event->depth, "", tn_op_name(event->op),
           tn_keyset_format(event->keys, set, sizeof set));
    printf("%*s  -> %s, slot %u: %s at %s:%d [%s]\n", 2 * event->depth, "", tn_key_name(event->key),
           event->slot, slot.name, slot.file, slot.line, slot.provenance);
}

static tn_status watched_matmul(tn_tensor *a, tn_tensor *b, tally *t)
{
    tn_tensor *y;
    *t = (tally){0};
    tn_status status = tn_observe_thread(observe, t);
    if (status != TN_OK)
        return status;
    status = tn_matmul(a, b, &y);
    if (tn_observe_thread(NULL, NULL) != TN_OK) /* stopping does not fail */
        fprintf(stderr, "%s\n", tn_last_error());
    printf("%d dispatches, at most %d deep, %d failed: %s\n\n", t->dispatches, t->deepest,
           t->failures, status == TN_OK ? "fine" : tn_last_error());
    if (status == TN_OK)
        tn_tensor_unref(y);
    return status;
}

int main(void)
{
    tally good, bad;
    tn_tensor *x, *w;
    tn_tensor_opts meta = tn_opts(TN_DTYPE_F32, TN_META);
    if (tn_empty((int64_t[]){2, 4, 16}, 3, &meta, TN_FORMAT_NONE, &x) != TN_OK ||
        tn_empty((int64_t[]){16, 16}, 2, &meta, TN_FORMAT_NONE, &w) != TN_OK) {
        fprintf(stderr, "%s\n", tn_last_error());
        return 1;
    }
    printf("matmul of [2, 4, 16] and [16, 16] on meta:\n");
    tn_status first = watched_matmul(x, w, &good);
    printf("matmul of [16, 16] and [2, 4, 16], which does not go:\n");
    tn_status second = watched_matmul(w, x, &bad);
    tn_tensor_unref(x);
    tn_tensor_unref(w);
    return !(first == TN_OK && good.failures == 0 && second == TN_INVALID && bad.failures > 0);
}
