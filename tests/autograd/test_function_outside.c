/* SPDX-License-Identifier: MIT */
/* tests/autograd/test_function_outside.c: operators from outside, and the formulas that they bring.
 */
#include "kit.h"

#include <stdio.h>

#include "tenon/function.h"
#include "tenon/kernels.h"

typedef struct cube_counts {
    int setups, backwards, destroyed;
} cube_counts;

static tn_status cube_kernel(tn_call *call, const tn_value *args, tn_value *rets)
{
    (void)call;
    tn_tensor *square = NULL, *cube = NULL;
    tn_status status = tn_mul(args[0].u.tensor, args[0].u.tensor, &square);
    if (status == TN_OK)
        status = tn_mul(square, args[0].u.tensor, &cube);
    tn_tensor_unref(square);
    if (status == TN_OK)
        rets[0] = tn_value_take_tensor(cube);
    return status;
}

static tn_status cube_setup(tn_function_ctx *ctx, const tn_value *args, int n_args,
                            const tn_value *rets, int n_rets)
{
    EXPECT(n_args == 3 && n_rets == 1 && rets[0].u.tensor != NULL);
    ((cube_counts *)tn_function_args(ctx))->setups++;
    *(double *)tn_function_state(ctx) = args[2].u.f;
    return tn_function_save(ctx, &args[0].u.tensor, 1);
}

static tn_status cube_backward(tn_function_ctx *ctx, tn_tensor *const *grads, int n_grads,
                               tn_tensor **out, int n_out)
{
    EXPECT(n_grads == 1 && n_out == 2);
    EXPECT(!tn_function_needs_input_grad(ctx, 1));
    ((cube_counts *)tn_function_args(ctx))->backwards++;
    tn_tensor *x = NULL;
    tn_status status = tn_function_saved(ctx, 0, &x);
    if (status != TN_OK)
        return status;
    double scale = *(double *)tn_function_state(ctx);
    tn_tensor *g = tnx_mul(tnx_mul_scalar(grads[0], tn_float(3 * scale)), tnx_mul(x, x));
    out[0] = tn_scope_keep(g);
    tn_tensor_unref(x);
    return TN_OK;
}

static void cube_done(void *ctx)
{
    ((cube_counts *)ctx)->destroyed++;
}

TEST(an_operator_from_outside_is_differentiated_by_its_formula)
{
    kit_warm_up();
    cube_counts counts = {0, 0, 0};
    tn_library *lib = NULL;
    tn_op *op = NULL;
    tn_kernel kernel = TN_KERNEL_INIT(cube_kernel);
    ASSERT_OK(tn_library_open(TN_LIBRARY_DEF, "outside", TN_KEY_NONE, __FILE__, __LINE__, &lib));
    ASSERT_OK(tn_library_def(lib, "cube(Tensor x, Tensor? y=None, float scale=1.) -> Tensor", NULL,
                             NULL));
    ASSERT_OK(tn_library_def(lib, "inp(Tensor(a!) x) -> ()", NULL, NULL));
    ASSERT_OK(tn_library_impl(lib, "cube", TN_KEY_CPU, &kernel, NULL));
    tn_autograd_formula formula = {.size = sizeof formula,
                                   .setup = cube_setup,
                                   .backward = cube_backward,
                                   .state_size = sizeof(double),
                                   .ctx = &counts,
                                   .destroy = cube_done};
    ASSERT_OK(tn_library_autograd(lib, "cube", &formula, NULL));
    EXPECT_FAIL(TN_INVALID,
                "Cannot register autograd formula for non-functional operator outside::inp with "
                "schema outside::inp(Tensor(a!) x) -> (). Please create a functional operator and "
                "register an autograd formula for that.",
                tn_library_autograd(lib, "inp", &formula, NULL));
    EXPECT_FAIL(TN_INVALID, "outside::none", tn_library_autograd(lib, "none", &formula, NULL));
    ASSERT_OK(tn_op_find("outside::cube", &op));

    tn_tensor *x = kit_leaf(2, 2), *plain = kit_vector(2, 2);
    tn_value args[3] = {tn_value_tensor(plain), tn_value_none(), tn_value_float(1)}, ret;
    ASSERT_OK(tn_op_call(op, args, 3, &ret));
    EXPECT(!tn_tensor_requires_grad(ret.u.tensor));
    tn_value_clear(&ret);
    args[0] = tn_value_tensor(x);
    ASSERT_OK(tn_op_call(op, args, 3, &ret));
    EXPECT_EQ_INT(counts.setups, 1);
    tn_tensor *y = ret.u.tensor;
    EXPECT_NEAR(kit_at(y, 0), 8, 0);
    EXPECT_STR(kit_node_name(y), "outside::cubeBackward");
    tn_library_close(lib); /* what was recorded stays good */
    EXPECT_OK(kit_backward_with(y, 1, NULL));
    EXPECT_NEAR(kit_grad(x, 0), 12, 0);
    EXPECT_EQ_INT(counts.backwards, 1);
    EXPECT_FAIL(TN_INVALID, kit_second_time, kit_backward_with(y, 1, NULL));
    tn_value_clear(&ret);
    EXPECT_EQ_INT(counts.destroyed, 1);
    tn_tensor_unref(x);
    tn_tensor_unref(plain);
}

/* Computes on memory: no operator sees it. */
static tn_status raw_kernel(tn_call *call, const tn_value *args, tn_value *rets)
{
    (void)call, (void)args;
    const float values[] = {8, 8};
    tn_tensor *out = NULL;
    tn_status status = tn_tensor_from_data(values, 1, (int64_t[]){2}, TN_DTYPE_F32, &out);
    rets[0] = tn_value_take_tensor(out);
    return status;
}

/* Writes into what an operator made: the history of that is no longer true. */
static tn_status writing_kernel(tn_call *call, const tn_value *args, tn_value *rets)
{
    (void)call;
    tn_tensor *out = NULL;
    tn_status status = tn_clone(args[0].u.tensor, TN_FORMAT_CONTIGUOUS, &out);
    if (status == TN_OK)
        ((float *)tn_tensor_data(out))[0] = 8;
    rets[0] = tn_value_take_tensor(out);
    return status;
}

/* Reads, and computes with operators. */
static tn_status reading_kernel(tn_call *call, const tn_value *args, tn_value *rets)
{
    (void)call;
    tn_tensor *out = NULL;
    const float *x = tn_tensor_const_data(args[0].u.tensor);
    tn_status status = tn_mul_scalar(args[0].u.tensor, tn_float(x[0] > 0 ? 3 : 4), &out);
    rets[0] = tn_value_take_tensor(out);
    return status;
}

/* A library with two operators of one tensor, each with a kernel for the CPU alone. */
static tn_library *open_pair(const char *ns, const char *const names[2],
                             const tn_kernel *const kernels[2], tn_op *ops[2])
{
    tn_library *lib = NULL;
    EXPECT_OK(tn_library_open(TN_LIBRARY_DEF, ns, TN_KEY_NONE, __FILE__, __LINE__, &lib));
    for (int i = 0; i < 2; i++) {
        char text[64];
        snprintf(text, sizeof text, "%s(Tensor x) -> Tensor", names[i]);
        EXPECT_OK(tn_library_def(lib, text, NULL, NULL));
        EXPECT_OK(tn_library_impl(lib, names[i], TN_KEY_CPU, kernels[i], NULL));
        snprintf(text, sizeof text, "%s::%s", ns, names[i]);
        EXPECT_OK(tn_op_find(text, &ops[i]));
    }
    return lib;
}

TEST(an_operator_from_outside_that_writes_what_was_recorded_is_refused)
{
    kit_warm_up();
    tn_kernel writing = TN_KERNEL_INIT(writing_kernel), reading = TN_KERNEL_INIT(reading_kernel);
    tn_op *ops[2] = {NULL, NULL};
    tn_library *lib = open_pair("bare2", (const char *const[]){"writes", "reads"},
                                (const tn_kernel *const[]){&writing, &reading}, ops);
    tn_op *writes = ops[0], *reads = ops[1];
    ASSERT(writes && reads);
    tn_tensor *leaf = kit_leaf(2, 2), *x = NULL;
    ASSERT_OK(tn_mul_scalar(leaf, tn_float(2), &x));
    (void)tn_tensor_data(x); /* outside of kernels it is the caller's own business */
    tn_value arg = tn_value_tensor(x), ret = tn_value_none();

    EXPECT_FAIL(TN_UNSUPPORTED, "derivative for bare2::writes is not implemented: give it one",
                tn_op_call(writes, &arg, 1, &ret));
    EXPECT_OK(tn_op_call(reads, &arg, 1, &ret));
    EXPECT(tn_tensor_requires_grad(ret.u.tensor));
    tn_value_clear(&ret);
    bool grad = tn_set_grad_enabled(false);
    EXPECT_OK(tn_op_call(writes, &arg, 1, &ret));
    tn_set_grad_enabled(grad);
    tn_value_clear(&ret);
    tn_tensor_unref(x);
    tn_tensor_unref(leaf);
    tn_library_close(lib);
}

TEST(an_operator_from_outside_without_a_formula_loses_no_gradient_silently)
{
    kit_warm_up();
    tn_kernel of_operators = TN_KERNEL_INIT(cube_kernel), of_memory = TN_KERNEL_INIT(raw_kernel);
    tn_op *ops[2] = {NULL, NULL};
    tn_library *lib = open_pair("bare", (const char *const[]){"made", "raw"},
                                (const tn_kernel *const[]){&of_operators, &of_memory}, ops);
    tn_op *made = ops[0], *raw = ops[1];
    ASSERT(made && raw);
    tn_tensor *x = kit_leaf(2, 2);
    tn_value arg = tn_value_tensor(x), ret = tn_value_none();

    ASSERT_OK(tn_op_call(made, &arg, 1, &ret)); /* has the gradients of what it calls */
    EXPECT(tn_tensor_requires_grad(ret.u.tensor));
    tn_value_clear(&ret);
    EXPECT_FAIL(TN_UNSUPPORTED, "derivative for bare::raw is not implemented: give it one",
                tn_op_call(raw, &arg, 1, &ret));
    bool grad = tn_set_grad_enabled(false);
    EXPECT_OK(tn_op_call(raw, &arg, 1, &ret));
    tn_set_grad_enabled(grad);
    tn_value_clear(&ret);
    EXPECT_EQ_INT(tn_tensor_use_count(x), 1);
    tn_tensor_unref(x);
    tn_library_close(lib);
}

static tn_status same_kernel(tn_call *call, const tn_value *args, tn_value *rets)
{
    (void)call;
    rets[0] = tn_value_take_tensor(tn_tensor_ref(args[0].u.tensor));
    return TN_OK;
}

TEST(an_operator_from_outside_must_not_return_its_argument)
{
    tn_library *lib = NULL;
    tn_op *op = NULL;
    tn_kernel kernel = TN_KERNEL_INIT(same_kernel);
    ASSERT_OK(tn_library_open(TN_LIBRARY_DEF, "outside2", TN_KEY_NONE, __FILE__, __LINE__, &lib));
    ASSERT_OK(tn_library_def(lib, "same(Tensor x) -> Tensor", NULL, NULL));
    ASSERT_OK(tn_library_impl(lib, "same", TN_KEY_CPU, &kernel, NULL));
    tn_autograd_formula formula = {.size = sizeof formula, .backward = cube_backward};
    ASSERT_OK(tn_library_autograd(lib, "same", &formula, NULL));
    ASSERT_OK(tn_op_find("outside2::same", &op));
    tn_tensor *x = kit_leaf(2, 2);
    tn_value arg = tn_value_tensor(x), ret = tn_value_none();
    EXPECT_FAIL(TN_INVALID, "outside2::same returned its argument 0",
                tn_op_call(op, &arg, 1, &ret));
    EXPECT(tn_tensor_is_leaf(x));
    EXPECT_EQ_INT(tn_tensor_use_count(x), 1);
    tn_library_close(lib);
    tn_tensor_unref(x);
}

static tn_status same_exp(tn_call *call, tn_tensor *self, tn_tensor **out)
{
    (void)call;
    *out = tn_tensor_ref(self);
    return TN_OK;
}

static tn_status second_factor(tn_call *call, tn_tensor *self, tn_tensor *other, tn_tensor **out)
{
    (void)call, (void)self;
    *out = tn_tensor_ref(other);
    return TN_OK;
}

TEST(nor_may_a_kernel_from_outside_for_a_built_in_operator)
{
    tn_library *lib = NULL;
    tn_kernel exp = tn_kernel_exp(same_exp, __FILE__, __LINE__);
    tn_kernel mul = tn_kernel_mul(second_factor, __FILE__, __LINE__);
    ASSERT_OK(tn_library_open(TN_LIBRARY_IMPL, "aten", TN_KEY_CPU, __FILE__, __LINE__, &lib));
    ASSERT_OK(tn_library_impl(lib, "exp", TN_KEY_NONE, &exp, NULL));
    ASSERT_OK(tn_library_impl(lib, "mul.Tensor", TN_KEY_NONE, &mul, NULL));
    tn_tensor *x = kit_leaf(2, 2), *plain = kit_vector(2, 3), *y = NULL;
    EXPECT_FAIL(TN_INVALID, "aten::exp returned its argument 0", tn_exp(x, &y));
    EXPECT_FAIL(TN_INVALID, "aten::mul.Tensor returned its argument 1", tn_mul(x, plain, &y));
    EXPECT(!y && tn_tensor_is_leaf(x) && !tn_tensor_requires_grad(plain));
    EXPECT_OK(tn_exp(plain, &y)); /* nothing is recorded */
    EXPECT(y == plain);
    tn_tensor_unref(y);
    EXPECT_EQ_INT(tn_tensor_use_count(x), 1);
    EXPECT_EQ_INT(tn_tensor_use_count(plain), 1);
    tn_library_close(lib);
    tn_tensor_unref(x);
    tn_tensor_unref(plain);
}

/* The gradient of anything, ten times over. */
static tn_status tenfold_backward(tn_function_ctx *ctx, tn_tensor *const *grads, int n_grads,
                                  tn_tensor **out, int n_out)
{
    (void)ctx, (void)n_grads, (void)n_out;
    return tn_mul_scalar(grads[0], tn_float(10), &out[0]);
}

/* A typed call takes a frame that no boxed call need have had before. */
TEST(a_formula_from_outside_is_asked_by_typed_calls_of_a_built_in_operator)
{
    tn_library *lib = NULL;
    tn_op *op = NULL;
    ASSERT_OK(tn_library_open(TN_LIBRARY_IMPL, "aten", TN_KEY_NONE, __FILE__, __LINE__, &lib));
    tn_autograd_formula formula = {.size = sizeof formula, .backward = tenfold_backward};
    ASSERT_OK(tn_library_autograd(lib, "exp", &formula, NULL));
    ASSERT_OK(tn_op_find("aten::exp", &op));
    tn_tensor *x = kit_leaf(2, 0), *typed = NULL;
    tn_value arg = tn_value_tensor(x), boxed = tn_value_none();
    ASSERT_OK(tn_exp(x, &typed));
    EXPECT_STR(kit_node_name(typed), "aten::expBackward");
    EXPECT_OK(kit_backward_with(typed, 1, NULL));
    EXPECT_NEAR(kit_grad(x, 0), 10, 0);
    ASSERT_OK(tn_op_call(op, &arg, 1, &boxed));
    EXPECT_OK(kit_backward_with(boxed.u.tensor, 1, NULL));
    EXPECT_NEAR(kit_grad(x, 0), 20, 0);
    tn_value_clear(&boxed);
    tn_tensor_unref(typed);
    tn_tensor_unref(x);
    tn_library_close(lib);
}
