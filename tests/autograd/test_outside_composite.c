/* SPDX-License-Identifier: MIT */
/* tests/autograd/test_outside_composite.c: operators from outside whose kernels are registered as
 * made of operators: those that are have the gradients of what they call, and those that compute
 * with elements themselves lose none unseen. */
#include "kit.h"
#include "tenon/kernels.h"
#include "tenon/storage.h"

/* What a stranger's library registers, all as made of operators. */

static tn_status double_into(const float *x, tn_value *ret)
{
    const float y[] = {2 * x[0], 2 * x[1]};
    tn_tensor *out = NULL;
    tn_status status = tn_tensor_from_data(y, 1, (int64_t[]){2}, TN_DTYPE_F32, &out);
    *ret = tn_value_take_tensor(out);
    return status;
}

static tn_status computes_itself(tn_call *call, const tn_value *args, tn_value *rets)
{
    (void)call;
    return double_into(tn_tensor_const_data(args[0].u.tensor), &rets[0]);
}

static tn_status computes_through_storage(tn_call *call, const tn_value *args, tn_value *rets)
{
    (void)call;
    tn_storage *storage = tn_tensor_storage(args[0].u.tensor);
    tn_status status = double_into(tn_storage_data(storage), &rets[0]);
    tn_storage_unref(storage);
    return status;
}

static tn_status detaches_first(tn_call *call, const tn_value *args, tn_value *rets)
{
    (void)call;
    tn_tensor *plain = NULL;
    TN_TRY(tn_detach(args[0].u.tensor, &plain));
    tn_status status = double_into(tn_tensor_const_data(plain), &rets[0]);
    tn_tensor_unref(plain);
    return status;
}

static tn_status leaves_grad_mode(tn_call *call, const tn_value *args, tn_value *rets)
{
    bool grad = tn_set_grad_enabled(false);
    tn_status status = computes_itself(call, args, rets);
    tn_set_grad_enabled(grad);
    return status;
}

static tn_status looks_and_calls(tn_call *call, const tn_value *args, tn_value *rets)
{
    (void)call;
    const float *x = tn_tensor_const_data(args[0].u.tensor);
    tn_tensor *out = NULL;
    tn_status status = tn_mul_scalar(args[0].u.tensor, tn_float(x[0] > 0 ? 2 : 3), &out);
    rets[0] = tn_value_take_tensor(out);
    return status;
}

static tn_status compares(tn_call *call, const tn_value *args, tn_value *rets)
{
    (void)call;
    tn_tensor *positive = NULL, *out = NULL;
    TN_TRY(tn_gt_scalar(args[0].u.tensor, tn_float(0), &positive));
    tn_status status = tn_to_dtype(positive, TN_DTYPE_F32, false, false, TN_FORMAT_NONE, &out);
    tn_tensor_unref(positive);
    rets[0] = tn_value_take_tensor(out);
    return status;
}

static tn_status counts(tn_call *call, const tn_value *args, tn_value *rets)
{
    (void)call;
    const float *x = tn_tensor_const_data(args[0].u.tensor);
    tn_tensor *out = NULL;
    int64_t n = (x[0] > 0) + (x[1] > 0);
    tn_status status = tn_tensor_from_data(&n, 0, NULL, TN_DTYPE_I64, &out);
    rets[0] = tn_value_take_tensor(out);
    return status;
}

static tn_status writes_what_it_recorded(tn_call *call, const tn_value *args, tn_value *rets)
{
    (void)call;
    tn_tensor *out = NULL;
    tn_status status = tn_mul_scalar(args[0].u.tensor, tn_float(2), &out);
    if (status == TN_OK)
        ((float *)tn_tensor_data(out))[0] = 8;
    rets[0] = tn_value_take_tensor(out);
    return status;
}

/* A composite that calls another one: each answers for itself. */
static tn_status calls_another(tn_call *call, const tn_value *args, tn_value *rets)
{
    (void)call;
    tn_op *op = NULL;
    TN_TRY(tn_op_find("strange::looks_and_calls", &op));
    return tn_op_call(op, args, 1, rets);
}

typedef struct entry {
    const char *schema;
    tn_boxed_fn fn;
} entry;

static tn_library *open_library(const entry *all, size_t n)
{
    kit_warm_up();
    tn_library *lib = NULL;
    EXPECT_OK(tn_library_open(TN_LIBRARY_DEF, "strange", TN_KEY_NONE, __FILE__, __LINE__, &lib));
    for (size_t i = 0; i < n; i++) {
        tn_kernel kernel = TN_KERNEL_INIT(NULL);
        kernel.boxed = all[i].fn;
        kernel.name = all[i].schema;
        EXPECT_OK(tn_library_def(lib, all[i].schema, &kernel, NULL));
    }
    return lib;
}

static tn_status call(const char *name, tn_tensor *x, tn_value *ret)
{
    tn_op *op = NULL;
    tn_value arg = tn_value_tensor(x);
    TN_TRY(tn_op_find(name, &op));
    return tn_op_call(op, &arg, 1, ret);
}

#define ENTRY(fn)                        \
    {                                    \
#        fn "(Tensor x) -> Tensor", (fn) \
    }

TEST(a_kernel_that_is_not_made_of_operators_is_refused_where_a_gradient_would_be_lost)
{
    const entry all[] = {ENTRY(computes_itself), ENTRY(computes_through_storage),
                         ENTRY(writes_what_it_recorded)};
    tn_library *lib = open_library(all, 3);
    tn_tensor *leaf = kit_leaf(2, 2), *made = NULL;
    ASSERT_OK(tn_mul_scalar(leaf, tn_float(2), &made));
    tn_tensor *inputs[] = {leaf, made};
    for (int i = 0; i < 2; i++) {
        tn_value ret = tn_value_none();
        EXPECT_FAIL(TN_UNSUPPORTED, "derivative for strange::computes_itself is not implemented",
                    call("strange::computes_itself", inputs[i], &ret));
        EXPECT_FAIL(TN_UNSUPPORTED, "derivative for strange::computes_through_storage",
                    call("strange::computes_through_storage", inputs[i], &ret));
        EXPECT_FAIL(TN_UNSUPPORTED, "derivative for strange::writes_what_it_recorded",
                    call("strange::writes_what_it_recorded", inputs[i], &ret));
        EXPECT(ret.tag == TN_TAG_NONE);
    }
    tn_tensor_unref(made);
    EXPECT_EQ_INT(tn_tensor_use_count(leaf), 1);
    tn_tensor_unref(leaf);
    tn_library_close(lib);
}

TEST(such_a_kernel_runs_where_no_gradient_is_asked_for)
{
    const entry all[] = {ENTRY(computes_itself)};
    tn_library *lib = open_library(all, 1);
    tn_tensor *plain = kit_vector(2, 2), *leaf = kit_leaf(2, 2);
    tn_value ret = tn_value_none();
    EXPECT_OK(call("strange::computes_itself", plain, &ret));
    tn_value_clear(&ret);
    bool grad = tn_set_grad_enabled(false);
    EXPECT_OK(call("strange::computes_itself", leaf, &ret));
    tn_set_grad_enabled(grad);
    tn_value_clear(&ret);
    tn_tensor_unref(plain);
    tn_tensor_unref(leaf);
    tn_library_close(lib);
}

TEST(a_kernel_that_says_that_it_means_no_gradient_is_believed)
{
    const entry all[] = {ENTRY(detaches_first), ENTRY(leaves_grad_mode), ENTRY(compares),
                         ENTRY(counts)};
    const char *const names[] = {"strange::detaches_first", "strange::leaves_grad_mode",
                                 "strange::compares", "strange::counts"};
    tn_library *lib = open_library(all, 4);
    tn_tensor *leaf = kit_leaf(2, 2);
    for (int i = 0; i < 4; i++) {
        tn_value ret = tn_value_none();
        EXPECT_OK(call(names[i], leaf, &ret));
        EXPECT(!tn_tensor_requires_grad(ret.u.tensor));
        tn_value_clear(&ret);
    }
    tn_tensor_unref(leaf);
    tn_library_close(lib);
}

TEST(a_kernel_made_of_operators_may_look_at_elements)
{
    const entry all[] = {ENTRY(looks_and_calls), ENTRY(calls_another)};
    tn_library *lib = open_library(all, 2);
    tn_tensor *leaf = kit_leaf(2, 2);
    const char *const names[] = {"strange::looks_and_calls", "strange::calls_another"};
    for (int i = 0; i < 2; i++) {
        tn_value ret = tn_value_none();
        ASSERT_OK(call(names[i], leaf, &ret));
        EXPECT(tn_tensor_requires_grad(ret.u.tensor));
        tn_value_clear(&ret);
    }
    tn_tensor_unref(leaf);
    tn_library_close(lib);
}

/* ---- what is written rather than returned ---- */

static tn_status writes_its_argument(tn_call *call, const tn_value *args, tn_value *rets)
{
    (void)call, (void)rets;
    const float *x = tn_tensor_const_data(args[1].u.tensor);
    float *y = tn_tensor_data(args[0].u.tensor);
    for (int i = 0; i < 2; i++)
        y[i] = 2 * x[i];
    return TN_OK;
}

TEST(a_gradient_is_not_lost_in_an_argument_that_is_written)
{
    const entry all[] = {{"fills(Tensor(a!) into, Tensor x) -> ()", writes_its_argument}};
    tn_library *lib = open_library(all, 1);
    tn_kernel kernel = TN_KERNEL_INIT(writes_its_argument);
    ASSERT_OK(tn_library_def(lib, "fills_for_device(Tensor(a!) into, Tensor x) -> ()", NULL, NULL));
    ASSERT_OK(tn_library_impl(lib, "fills_for_device", TN_KEY_CPU, &kernel, NULL));
    tn_tensor *into = kit_vector(2, 0), *leaf = kit_leaf(2, 2);
    const char *const names[] = {"strange::fills", "strange::fills_for_device"};
    for (int i = 0; i < 2; i++) {
        tn_op *op = NULL;
        tn_value args[] = {tn_value_tensor(into), tn_value_tensor(leaf)};
        ASSERT_OK(tn_op_find(names[i], &op));
        EXPECT_FAIL(TN_UNSUPPORTED, "is not implemented", tn_op_call(op, args, 2, NULL));
        args[1] = tn_value_tensor(into);
        EXPECT_OK(tn_op_call(op, args, 2, NULL));
    }
    tn_tensor_unref(into);
    tn_tensor_unref(leaf);
    tn_library_close(lib);
}

/* ---- over an operator that is built in, by typed kernels ---- */

static tn_status doubles_elements(tn_call *call, tn_tensor *x, tn_tensor **out)
{
    (void)call;
    tn_value ret = tn_value_none();
    TN_TRY(double_into(tn_tensor_const_data(x), &ret));
    *out = ret.u.tensor;
    return TN_OK;
}

static tn_status doubles_by_operators(tn_call *call, tn_tensor *x, tn_tensor **out)
{
    (void)call;
    return tn_mul_scalar(x, tn_float(2), out);
}

static tn_library *relu6_by(tn_relu6_fn fn)
{
    kit_warm_up();
    tn_library *lib = NULL;
    tn_kernel kernel = tn_kernel_relu6(fn, __FILE__, __LINE__);
    EXPECT_OK(tn_library_open(TN_LIBRARY_IMPL, "aten", TN_KEY_NONE, __FILE__, __LINE__, &lib));
    EXPECT_OK(tn_library_impl(lib, "relu6", TN_KEY_COMPOSITE_IMPLICIT, &kernel, NULL));
    return lib;
}

TEST(a_typed_kernel_over_a_built_in_operator_loses_no_gradient_either)
{
    tn_library *lib = relu6_by(doubles_elements);
    tn_tensor *leaf = kit_leaf(2, 3), *plain = kit_vector(2, 3), *y = NULL;
    EXPECT_FAIL(TN_UNSUPPORTED, "derivative for aten::relu6 is not implemented",
                tn_relu6(leaf, &y));
    EXPECT(y == NULL);
    EXPECT_EQ_INT(tn_tensor_use_count(leaf), 1);
    ASSERT_OK(tn_relu6(plain, &y));
    EXPECT(kit_at(y, 0) == 6);
    tn_tensor_unref(y);
    bool grad = tn_set_grad_enabled(false);
    ASSERT_OK(tn_relu6(leaf, &y));
    tn_set_grad_enabled(grad);
    EXPECT(!tn_tensor_requires_grad(y));
    tn_tensor_unref(y);
    tn_tensor_unref(plain);
    tn_tensor_unref(leaf);
    tn_library_close(lib);
}

TEST(a_typed_kernel_that_is_made_of_operators_has_their_gradient)
{
    tn_library *lib = relu6_by(doubles_by_operators);
    tn_tensor *leaf = kit_leaf(2, 3), *y = NULL;
    ASSERT_OK(tn_relu6(leaf, &y));
    ASSERT_OK(kit_backward_with(y, 1, NULL));
    EXPECT(kit_grad(leaf, 1) == 2);
    tn_tensor_unref(y);
    tn_tensor_unref(leaf);
    tn_library_close(lib);
}
