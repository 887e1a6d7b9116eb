/* SPDX-License-Identifier: MIT */
/* custom_op.c: an operator of your own, registered from outside at run time.
 *
 * my::squash(Tensor x, float limit=1.0) -> Tensor brings every element into (-limit, limit). It
 * gets a kernel for the CPU, one for Meta, so that shapes can be asked for without computing, and a
 * derivative. Without one, a call with a tensor that requires grad would be refused. */
#include <math.h>
#include <stdio.h>
#include <tenon/autograd.h>
#include <tenon/dispatch.h>
#include <tenon/function.h>
#include <tenon/kernels.h>
#include <tenon/ops.h>

/* A boxed kernel gets all arguments of the schema, defaults filled in, each with the tag that the
 * schema says. It borrows them, and fills rets with values that the caller will own. */
static tn_status squash_cpu(tn_call *call, const tn_value *args, tn_value *rets)
{
    (void)call;
    double limit = args[1].u.f;
    if (tn_tensor_dtype(args[0].u.tensor) != TN_DTYPE_F32)
        return tn_fail(TN_TYPE, "my::squash: x must be float32, not %s",
                       tn_dtype_name(tn_tensor_dtype(args[0].u.tensor)));
    tn_tensor *out;
    tn_status status = tn_clone(args[0].u.tensor, TN_FORMAT_CONTIGUOUS, &out);
    if (status != TN_OK)
        return status;
    float *data =
        tn_tensor_data(out); /* computing on memory: operators would not need a derivative */
    for (int64_t i = 0; i < tn_tensor_numel(out); i++)
        data[i] = (float)(limit * tanh((double)data[i] / limit));
    rets[0] = tn_value_take_tensor(out);
    return TN_OK;
}

/* Meta: the result's sizes and dtype, and no elements. */
static tn_status squash_meta(tn_call *call, const tn_value *args, tn_value *rets)
{
    (void)call;
    tn_tensor *out;
    tn_status status = tn_clone(args[0].u.tensor, TN_FORMAT_CONTIGUOUS, &out);
    if (status == TN_OK)
        rets[0] = tn_value_take_tensor(out);
    return status;
}

/* The derivative, 1 - (y / limit)^2, made of operators: so it can be differentiated again. */
static tn_status squash_setup(tn_function_ctx *ctx, const tn_value *args, int n_args,
                              const tn_value *rets, int n_rets)
{
    (void)n_args, (void)n_rets;
    *(double *)tn_function_state(ctx) = args[1].u.f;
    return tn_function_save(ctx, &rets[0].u.tensor, 1);
}

static tn_status squash_backward(tn_function_ctx *ctx, tn_tensor *const *grads, int n_grads,
                                 tn_tensor **out, int n_out)
{
    (void)n_grads, (void)n_out;
    double limit = *(double *)tn_function_state(ctx);
    tn_tensor *y;
    tn_status status = tn_function_saved(ctx, 0, &y);
    if (status != TN_OK)
        return status;
    tn_tensor *share = tnx_square(tnx_div_scalar(y, tn_float(limit))); /* gone with the scope */
    out[0] = tn_scope_keep(tnx_mul(grads[0], tnx_rsub_scalar(share, tn_int(1), tn_int(1))));
    tn_tensor_unref(y);
    return TN_OK; /* a failure in a scope is noticed when that ends */
}

/* A typed kernel has the operator's own C signature. tenon/kernels.h makes one for each built-in
 * operator, checked by the compiler. This one takes the place of aten::neg on the CPU for a while.
 */
static int negations;
static tn_status counting_neg(tn_call *call, tn_tensor *self, tn_tensor **out)
{
    (void)call;
    negations++;
    return tn_mul_scalar(self, tn_int(-1), out);
}

static tn_status register_squash(tn_library **lib)
{
    const tn_kernel cpu = TN_KERNEL_INIT(squash_cpu), meta = TN_KERNEL_INIT(squash_meta);
    const tn_autograd_formula formula = {.size = sizeof formula,
                                         .setup = squash_setup,
                                         .backward = squash_backward,
                                         .state_size = sizeof(double)};
    tn_status status = tn_library_open(TN_LIBRARY_DEF, "my", TN_KEY_NONE, __FILE__, __LINE__, lib);
    if (status != TN_OK)
        return status;
    if ((status =
             tn_library_def(*lib, "squash(Tensor x, float limit=1.0) -> Tensor", NULL, NULL)) ||
        (status = tn_library_impl(*lib, "squash", TN_KEY_CPU, &cpu, NULL)) ||
        (status = tn_library_impl(*lib, "squash", TN_KEY_META, &meta, NULL)) ||
        (status = tn_library_autograd(*lib, "squash", &formula, NULL)))
        tn_library_close(*lib);
    return status;
}

/* A function of your own makes it as easy to call as the built-in ones. */
static tn_status my_squash(tn_tensor *x, double limit, tn_tensor **out)
{
    static tn_op *op; /* handles stay valid for ever: look it up once */
    tn_status status = op ? TN_OK : tn_op_find("my::squash", &op);
    tn_value args[] = {tn_value_tensor(x), tn_value_float(limit)}, result;
    if (status == TN_OK)
        status = tn_op_call(op, args, 2, &result);
    if (status == TN_OK)
        *out = result.u.tensor; /* ours: the result was an owned value */
    return status;
}

static void show(const char *what, tn_tensor *t)
{
    char *text;
    if (tn_tensor_to_string(t, &text) == TN_OK) {
        printf("%s: %s\n", what, text);
        tn_string_free(text);
    }
}

static tn_status demonstrate(tn_tensor *x, tn_tensor *meta_x)
{
    tn_tensor *y;
    tn_op *op;
    char *text;
    tn_status status = my_squash(x, 2.0, &y);
    if (status != TN_OK)
        return status;
    show("on the CPU", y);
    tn_tensor_unref(y);
    if ((status = my_squash(meta_x, 2.0, &y)) != TN_OK)
        return status;
    show("on meta", y);
    tn_tensor_unref(y);

    /* Boxed, on a stack, as an interpreter would: arguments in, results out. */
    tn_stack stack = TN_STACK_INIT;
    if ((status = tn_op_find("my::squash", &op)) == TN_OK &&
        (status = tn_stack_push(&stack, tn_value_tensor(x))) == TN_OK &&
        (status = tn_stack_push(&stack, tn_value_float(0.5))) == TN_OK &&
        (status = tn_op_call_boxed(op, &stack)) == TN_OK)
        show("boxed", stack.values[0].u.tensor);
    tn_stack_clear(&stack);

    /* Who registered what. `tenon ops` shows the same. */
    if (status == TN_OK && (status = tn_op_dump_state(op, &text)) == TN_OK) {
        printf("\n%s\n", text);
        tn_string_free(text);
    }
    return status;
}

/* The gradient of squash at x, by a backward pass. */
static tn_status differentiate(tn_tensor *x)
{
    tn_tensor *leaf = NULL, *y = NULL, *sum = NULL, *grad = NULL;
    tn_status status = tn_clone(x, TN_FORMAT_CONTIGUOUS, &leaf);
    if (status == TN_OK && (status = tn_tensor_set_requires_grad(leaf, true)) == TN_OK &&
        (status = my_squash(leaf, 2.0, &y)) == TN_OK &&
        (status = tn_sum(y, TN_DTYPE_NONE, &sum)) == TN_OK &&
        (status = tn_grad(&sum, 1, &leaf, 1, NULL, NULL, &grad)) == TN_OK)
        show("its gradient", grad);
    tn_tensor_unref(grad);
    tn_tensor_unref(sum);
    tn_tensor_unref(y);
    tn_tensor_unref(leaf);
    return status;
}

static tn_status replace_a_kernel(tn_tensor *x)
{
    tn_library *lib;
    tn_tensor *y;
    const tn_kernel kernel = tn_kernel_neg(counting_neg, __FILE__, __LINE__);
    tn_status status =
        tn_library_open(TN_LIBRARY_IMPL, "aten", TN_KEY_CPU, __FILE__, __LINE__, &lib);
    if (status != TN_OK)
        return status;
    if ((status = tn_library_impl(lib, "neg", TN_KEY_NONE, &kernel, NULL)) == TN_OK &&
        (status = tn_neg(x, &y)) == TN_OK)
        tn_tensor_unref(y);
    tn_library_close(lib); /* the built-in kernel is back */
    if (status == TN_OK && (status = tn_neg(x, &y)) == TN_OK)
        tn_tensor_unref(y);
    printf("aten::neg ran here %d time of 2\n", negations);
    return status;
}

int main(void)
{
    const float values[] = {-4, -0.5f, 0, 0.5f, 4};
    tn_library *lib = NULL;
    tn_tensor *x = NULL, *meta_x = NULL;
    tn_tensor_opts meta = tn_opts(TN_DTYPE_F32, TN_META);
    tn_status status;
    if ((status = register_squash(&lib)) == TN_OK &&
        (status = tn_tensor_from_data(values, 1, (int64_t[]){5}, TN_DTYPE_F32, &x)) == TN_OK &&
        (status = tn_empty((int64_t[]){2, 3}, 2, &meta, TN_FORMAT_NONE, &meta_x)) == TN_OK &&
        (status = demonstrate(x, meta_x)) == TN_OK && (status = differentiate(x)) == TN_OK)
        status = replace_a_kernel(x);
    if (status != TN_OK)
        fprintf(stderr, "%s: %s\n", tn_status_name(status), tn_last_error());
    tn_tensor_unref(x);
    tn_tensor_unref(meta_x);
    tn_library_close(lib); /* my::squash is gone */
    return status != TN_OK || negations != 1;
}
