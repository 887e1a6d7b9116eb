/* SPDX-License-Identifier: MIT */
/* gradients.c: first and second derivatives, a hook, a function with a gradient of its own, and
 * what happens when a value that is still needed is overwritten. */
#include <stdio.h>
#include <stdlib.h>
#include <tenon/autograd.h>
#include <tenon/function.h>
#include <tenon/ops.h>

static void must(tn_status status)
{
    if (status == TN_OK)
        return;
    fprintf(stderr, "error: %s\n", tn_last_error());
    exit(1);
}

static void show(const char *what, const tn_tensor *t)
{
    char *text;
    must(tn_tensor_to_string(t, &text));
    printf("%-28s %s\n", what, text);
    tn_string_free(text);
}

/* Hooks see gradients on their way and may put another in their place. */
static tn_status clip(void *ctx, tn_tensor *grad, tn_tensor **out)
{
    tn_scalar limit = tn_float(*(const double *)ctx), lower = tn_float(-*(const double *)ctx);
    return tn_clamp(grad, &lower, &limit, out);
}

/* sign(x) with the gradient of the identity: "straight through". */
static tn_status sign_forward(tn_function_ctx *ctx, tn_tensor *const *in, int n_in, tn_tensor **out,
                              int n_out)
{
    (void)ctx, (void)n_in, (void)n_out;
    return tn_sign(in[0], &out[0]);
}

static tn_status sign_backward(tn_function_ctx *ctx, tn_tensor *const *grads, int n_grads,
                               tn_tensor **out, int n_out)
{
    (void)ctx, (void)n_grads, (void)n_out;
    out[0] = tn_tensor_ref(grads[0]);
    return TN_OK;
}

int main(void)
{
    const float values[] = {1, -2, 3};
    tn_tensor *x, *first, *second, *out;
    tn_scope *scope;
    must(tn_tensor_from_data(values, 1, (int64_t[]){3}, TN_DTYPE_F32, &x));
    must(tn_tensor_set_requires_grad(x, true));
    must(tn_scope_enter(&scope));

    /* y = sum(x^3): backward adds 3 x^2 to x's gradient. */
    tn_tensor *y = tnx_sum(tnx_pow_tensor_scalar(x, tn_int(3)), TN_DTYPE_NONE);
    must(tn_tensor_backward(y));
    show("3 x^2, added to x.grad", tn_tensor_grad(x));

    /* The same as a value, recorded, and differentiated once more: 6 x. */
    tn_grad_opts again = TN_GRAD_OPTS_INIT;
    again.create_graph = TN_BOOL_TRUE;
    y = tnx_sum(tnx_pow_tensor_scalar(x, tn_int(3)), TN_DTYPE_NONE);
    must(tn_grad(&y, 1, &x, 1, NULL, &again, &first));
    tn_tensor *total = tnx_sum(first, TN_DTYPE_NONE);
    must(tn_grad(&total, 1, &x, 1, NULL, NULL, &second));
    show("6 x, the second derivative", second);

    /* A hook on a value in between keeps its gradient within 5. */
    double limit = 5;
    tn_tensor *square = tnx_mul(x, x);
    must(tn_tensor_add_hook(square, clip, &limit, NULL, NULL));
    y = tnx_sum(tnx_mul_scalar(square, tn_int(10)), TN_DTYPE_NONE);
    tn_tensor_unref(first);
    must(tn_grad(&y, 1, &x, 1, NULL, NULL, &first));
    show("2 x * clip(10, 5)", first);

    /* A function of our own. */
    static const tn_function straight = TN_FUNCTION_INIT("Sign", sign_forward, sign_backward);
    must(tn_function_apply(&straight, NULL, &x, 1, &out, 1));
    y = tnx_sum(tnx_mul(out, x), TN_DTYPE_NONE);
    tn_tensor_unref(second);
    must(tn_grad(&y, 1, &x, 1, NULL, NULL, &second));
    show("x + sign(x)", second);

    /* Overwriting what backward still needs is noticed, not computed with. */
    tn_tensor *h = tnx_exp(x);
    y = tnx_sum(h, TN_DTYPE_NONE);
    must(tn_zero_(h));
    tn_status status = tn_tensor_backward(y);
    printf("refused: %s\n", status == TN_OK ? "nothing" : tn_last_error());

    must(tn_scope_leave(scope));
    tn_tensor *all[] = {x, first, second, out};
    for (int i = 0; i < 4; i++)
        tn_tensor_unref(all[i]);
    return status == TN_OK; /* the last one had to fail */
}
