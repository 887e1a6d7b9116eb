/* SPDX-License-Identifier: MIT */
/* repro/test_meta_vs_fake_tensor.c: the scenarios that the report compares: plain meta tensors,
 * fake tensors, gradients off, and a product that does not fold. It expects the first to hang; here
 * all of them return, with the same shape. */
#include "repro.h"
#include "tenon/fake.h"

typedef struct operands {
    tn_tensor *a, *b;
} operands;

static tn_status product(void *ctx, tn_tensor **out)
{
    const operands *x = ctx;
    return tn_matmul(x->a, x->b, out);
}

static operands make(int ndim, tn_device device)
{
    const int64_t three[] = {2, 4, 16}, two[] = {16, 16};
    return (operands){randn(ndim, ndim == 3 ? three : two, device), randn(2, two, device)};
}

static void drop(operands *x)
{
    tn_tensor_unref(x->a);
    tn_tensor_unref(x->b);
}

static timing folded(const char *name, tn_device device)
{
    operands x = make(3, device);
    printf("%-34s", name);
    fflush(stdout);
    timing t = time_product(product, &x, name);
    printf("ok  [2, 4, 16]  %8.2f us\n", (double)t.best / 1e3);
    drop(&x);
    return t;
}

static timing worse(timing a, timing b)
{
    return a.best > b.best ? a : b;
}

int main(void)
{
    timing t = folded("1. plain meta, 3D x 2D", TN_META);

    tn_fake_mode *mode;
    must(tn_fake_mode_new(NULL, &mode), "fake mode");
    tn_fake_guard guard = tn_fake_enter(mode);
    t = worse(t, folded("2. fake tensors on the CPU, 3D x 2D", TN_CPU));
    t = worse(t, folded("   fake tensors on CUDA, 3D x 2D",
                        (tn_device)TN_DEVICE_INIT(TN_DEVICE_CUDA, 0)));
    tn_fake_leave(guard);
    tn_fake_mode_unref(mode);

    bool was = tn_set_grad_enabled(false);
    t = worse(t, folded("3. plain meta, no_grad, 3D x 2D", TN_META));
    tn_set_grad_enabled(was);

    char text[64];
    tn_tensor *out = NULL;
    operands flat = make(2, TN_META);
    must(product(&flat, &out), "2D x 2D");
    printf("%-34sok  %s\n", "4. plain meta, 2D x 2D", shape_text(out, text, sizeof text));
    tn_tensor_unref(out);
    drop(&flat);
    return verdict(t);
}
