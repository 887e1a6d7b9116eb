/* SPDX-License-Identifier: MIT */
/* repro/reproduce_linear_meta_hang.c: F.linear on meta, with and without bias, under an alarm. With
 * a bias it is one addmm of flattened input; without, it is matmul and folds. */
#include <signal.h>

#include "repro.h"

enum { TIMEOUT_S = 60 };

typedef struct layer {
    tn_tensor *input, *weight, *bias;
} layer;

static tn_status forward(void *ctx, tn_tensor **out)
{
    const layer *l = ctx;
    return tn_linear(l->input, l->weight, l->bias, out);
}

/* Only what is allowed in a signal handler. */
static void too_late(int signal_number)
{
    (void)signal_number;
    static const char text[] = "\nTIMEOUT: F.linear did not return\n";
    (void)!write(STDOUT_FILENO, text, sizeof text - 1);
    _exit(2);
}

int main(void)
{
    const int64_t input[] = {2, 4, 16}, weight[] = {16, 16}, bias[] = {16};
    layer with = {randn(3, input, TN_META), randn(2, weight, TN_META), randn(1, bias, TN_META)};
    layer without = {with.input, with.weight, NULL};
    signal(SIGALRM, too_late);
    alarm(TIMEOUT_S);

    printf("F.linear(input [2, 4, 16], weight [16, 16], bias [16])\n");
    fflush(stdout);
    timing a = time_product(forward, &with, "linear with bias");
    printf("  returned\nF.linear(input, weight)\n");
    fflush(stdout);
    timing b = time_product(forward, &without, "linear without bias");
    printf("  returned\n");
    alarm(0);

    tn_tensor_unref(with.input);
    tn_tensor_unref(with.weight);
    tn_tensor_unref(with.bias);
    return verdict(a.best > b.best ? a : b);
}
