/* SPDX-License-Identifier: MIT */
/* repro/reproduce_meta_mm_hang.c: the smallest form of the reported hang: matmul of plain meta
 * tensors, gradients on. Test 2 is the one that was said never to return. */
#include "repro.h"

typedef struct operands {
    tn_tensor *a, *b;
} operands;

static tn_status product(void *ctx, tn_tensor **out)
{
    const operands *x = ctx;
    return tn_matmul(x->a, x->b, out);
}

int main(void)
{
    const int64_t three[] = {2, 4, 16}, two[] = {16, 16};
    char text[64];
    tn_tensor *result = NULL;
    operands flat = {randn(2, two, TN_META), randn(2, two, TN_META)};
    operands folded = {randn(3, three, TN_META), randn(2, two, TN_META)};

    printf("Test 1: 2D x 2D on meta (does not fold)\n");
    must(product(&flat, &result), "2D x 2D");
    printf("  result %s\n", shape_text(result, text, sizeof text));
    tn_tensor_unref(result);

    printf("Test 2: 3D x 2D on meta (folds; reported to hang)\n");
    fflush(stdout);
    timing t = time_product(product, &folded, "3D x 2D");
    printf("  returned\n");

    tn_tensor *all[] = {flat.a, flat.b, folded.a, folded.b};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        tn_tensor_unref(all[i]);
    return verdict(t);
}
