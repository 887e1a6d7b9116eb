/* SPDX-License-Identifier: MIT */
/* What boxed calls refuse (arguments, handles, results, kernels made for another operator), and
 * what stacks and results are afterwards. */
#include "dispatch/ways.h"

#include <stdio.h>
#include <string.h>
#include "tenon/kernels.h"
#include "tenon/ops.h"

/* ---- stacks ---- */

static tn_status fail_after_writing(tn_call *call, const tn_value *args, tn_value *rets)
{
    (void)call;
    EXPECT_OK(tn_value_copy(&args[0], &rets[0])); /* against the rules; must not leak */
    return tn_fail(TN_VALUE, "the kernel refuses");
}

TEST(a_failing_call_leaves_the_stack_and_the_results_as_they_were)
{
    kit k = kit_open();
    tn_op *op =
        kit_def_with(&k, "op(Tensor x, int[] n) -> (Tensor, Tensor)", fail_after_writing, NULL);
    tn_tensor *t = kit_tensor(kit_keys(TN_KEY_CPU));
    const int64_t ints[] = {1, 2};
    tn_value args[2] = {tn_value_tensor(t), tn_value_ints(ints, 2)};
    tn_value rets[2] = {tn_value_int(8), tn_value_int(9)};
    EXPECT_FAIL(TN_VALUE, "the kernel refuses", tn_op_call(op, args, 2, rets));
    EXPECT(rets[0].u.i == 8 && rets[1].u.i == 9);
    EXPECT_EQ_INT(kit_refs(t), 1);
    tn_stack stack = TN_STACK_INIT;
    ASSERT_OK(tn_stack_push(&stack, tn_value_string("below")));
    ASSERT_OK(tn_stack_push(&stack, args[0]));
    ASSERT_OK(tn_stack_push(&stack, args[1]));
    EXPECT_FAIL(TN_VALUE, "the kernel refuses", tn_op_call_boxed(op, &stack));
    EXPECT_EQ_INT(stack.n, 3);
    EXPECT_STR(stack.values[0].u.text, "below");
    EXPECT(stack.values[1].u.tensor == t && stack.values[2].u.ints[1] == 2);
    EXPECT_EQ_INT(kit_refs(t), 2);
    tn_stack_clear(&stack);
    tn_tensor_unref(t);
    kit_close(&k);
}

TEST(a_stack_with_too_few_values_is_refused)
{
    kit k = kit_open();
    tn_op *op = kit_def_with(&k, "op(Tensor x, int n) -> ()", fail_after_writing, NULL);
    tn_stack stack = TN_STACK_INIT;
    EXPECT_FAIL(TN_INVALID, "t::op: takes 2 arguments, but the stack holds 0 values",
                tn_op_call_boxed(op, &stack));
    ASSERT_OK(tn_stack_push(&stack, tn_value_int(1)));
    EXPECT_FAIL(TN_INVALID, "but the stack holds 1 values", tn_op_call_boxed(op, &stack));
    EXPECT_EQ_INT(stack.n, 1);
    tn_stack_clear(&stack);
    kit_close(&k);
}

static tn_status twenty(tn_call *call, const tn_value *args, tn_value *rets)
{
    (void)call;
    (void)args;
    for (int i = 0; i < 20; i++)
        rets[i] = tn_value_int(i);
    return TN_OK;
}

TEST(a_stack_grows_when_there_are_more_results_than_arguments)
{
    kit k = kit_open();
    tn_op *op = kit_def_with(&k,
                             "op(Tensor x) -> (int, int, int, int, int, int, int, int, int, int, "
                             "int, int, int, int, int, int, int, int, int, int)",
                             twenty, NULL);
    tn_tensor *t = kit_tensor(kit_keys(TN_KEY_CPU));
    tn_value arg = tn_value_tensor(t), rets[20];
    for (way how = ARRAY; how < WAYS; how++) {
        ASSERT_OK(call_boxed(how, op, &arg, 1, rets));
        for (int i = 0; i < 20; i++)
            EXPECT_EQ_INT(rets[i].u.i, i);
    }
    tn_tensor_unref(t);
    kit_close(&k);
}

/* ---- refusals ---- */

TEST(a_wrong_argument_is_named_with_what_was_found_and_what_was_wanted)
{
    kit k = kit_open();
    tn_op *op = kit_def_with(&k,
                             "op(Tensor x, int n, int[] list, Tensor[] ts, str? s=None, "
                             "float[] fs=[]) -> ()",
                             fail_after_writing, NULL);
    tn_tensor *t = kit_tensor(kit_keys(TN_KEY_CPU));
    tn_tensor *const with_none[2] = {t, NULL};
    const int64_t ints[2] = {1, 2};
    const tn_value good[6] = {tn_value_tensor(t),     tn_value_int(1),
                              tn_value_ints(ints, 2), tn_value_tensors(with_none, 1),
                              tn_value_none(),        tn_value_floats(NULL, 0)};
    const struct {
        int at;
        tn_value value;
        const char *text;
    } cases[] = {
        {0, tn_value_int(1), "t::op: argument 'x' (position 0) must be Tensor, not int"},
        {0, tn_value_none(), "t::op: argument 'x' (position 0) must be Tensor, not None"},
        {0, tn_value_tensor(NULL), "t::op: argument 'x' (position 0) must be Tensor, not None"},
        {1, tn_value_float(1), "t::op: argument 'n' (position 1) must be int, not float"},
        {1, tn_value_tensor(t), "t::op: argument 'n' (position 1) must be int, not Tensor"},
        {2, tn_value_int(1), "t::op: argument 'list' (position 2) must be int[], not int"},
        {2, tn_value_tensors(with_none, 1), "argument 'list' (position 2) must be int[]"},
        {2, tn_value_ints(NULL, 3), "argument 'list' (position 2) must be int[]"},
        {3, tn_value_tensors(with_none, 2), "argument 'ts' (position 3) must be Tensor[]"},
        {3, tn_value_tensors(NULL, 2), "argument 'ts' (position 3) must be Tensor[]"},
        {4, tn_value_int(3), "t::op: argument 's' (position 4) must be str?, not int"},
        {5, (tn_value){.tag = 99},
         "t::op: argument 'fs' (position 5) must be float[], not unknown"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        for (way how = ARRAY; how < WAYS; how++) {
            tn_value args[6];
            if (how == STACK && (cases[i].value.tag == 99 || !cases[i].value.u.pointer))
                continue; /* tn_stack_push has refused it already, or made it None */
            memcpy(args, good, sizeof good);
            args[cases[i].at] = cases[i].value;
            test_note("case %zu, %s", i, way_names[how]);
            EXPECT_FAIL(TN_TYPE, cases[i].text, call_boxed(how, op, args, 6, NULL));
        }
    }
    EXPECT_FAIL(TN_INVALID, "t::op: takes 6 arguments, but 7 were given",
                tn_op_call(op, good, 7, NULL));
    EXPECT_FAIL(TN_INVALID, "t::op: takes 6 arguments, but -1 were given",
                tn_op_call(op, good, -1, NULL));
    EXPECT_FAIL(TN_INVALID, "missing value for argument 'list' (position 2)",
                tn_op_call(op, good, 2, NULL));
    EXPECT_EQ_INT(kit_refs(t), 1);
    tn_tensor_unref(t);
    kit_close(&k);
}

TEST(null_handles_are_refused_by_name)
{
    kit k = kit_open();
    tn_op *op = kit_def(&k, "op(Tensor x) -> Tensor");
    tn_tensor *t = kit_tensor(kit_keys(TN_KEY_CPU));
    tn_value arg = tn_value_tensor(t), ret;
    tn_stack stack = TN_STACK_INIT;
    EXPECT_FAIL(TN_INVALID, "'op' must not be NULL", tn_op_call(NULL, &arg, 1, &ret));
    EXPECT_FAIL(TN_INVALID, "'args' must not be NULL", tn_op_call(op, NULL, 1, &ret));
    EXPECT_FAIL(TN_INVALID, "'rets' must not be NULL", tn_op_call(op, &arg, 1, NULL));
    EXPECT_FAIL(TN_INVALID, "'op' must not be NULL", tn_op_call_boxed(NULL, &stack));
    EXPECT_FAIL(TN_INVALID, "'stack' must not be NULL", tn_op_call_boxed(op, NULL));
    EXPECT_FAIL(TN_INVALID, "'op' must not be NULL", tn_op_call_for_key(NULL, TN_KEY_CPU, &stack));
    EXPECT_FAIL(TN_INVALID, "'stack' must not be NULL", tn_op_call_for_key(op, TN_KEY_CPU, NULL));
    EXPECT_FAIL(TN_INVALID, "999 is not a dispatch key",
                tn_op_call_for_key(op, (tn_key)999, &stack));
    EXPECT_FAIL(TN_INVALID, "'op' must not be NULL", tn_op_call_with_keys(NULL, 0, &arg, 1, &ret));
    EXPECT_FAIL(TN_INVALID, "'args' must not be NULL", tn_op_call_with_keys(op, 0, NULL, 1, &ret));
    EXPECT_FAIL(TN_INVALID, "'call' must not be NULL", tn_call_redispatch(NULL, 0, &arg, &ret));
    EXPECT_FAIL(TN_INVALID, "'call' must not be NULL", tn_op_redispatch_boxed(NULL, 0, &stack));
    EXPECT_FAIL(TN_INVALID, "must not be NULL", tn_op_parse_arguments(NULL, NULL, 0, &arg));
    EXPECT_FAIL(TN_INVALID, "must not be NULL", tn_op_parse_arguments(op, NULL, 1, &arg));
    EXPECT_FAIL(TN_INVALID, "'out'", tn_op_find("t::op", NULL));
    EXPECT_FAIL(TN_INVALID, "'name'", tn_op_find(NULL, &op));
    EXPECT_FAIL(TN_INVALID, "'out'", tn_op_schema(op, NULL));
    EXPECT_FAIL(TN_INVALID, "'op'", tn_op_schema(NULL, NULL));
    EXPECT_FAIL(TN_INVALID, "'out_n'", tn_op_list((tn_op ***)&op, NULL));
    EXPECT_FAIL(TN_INVALID, "'out'", tn_op_dump_state(op, NULL));
    EXPECT_FAIL(TN_INVALID, "'op'", tn_op_dump_table(NULL, NULL));
    EXPECT_FAIL(TN_INVALID, "'out'", tn_op_slot(op, 0, NULL));
    tn_slot_info info;
    EXPECT_FAIL(TN_INDEX, "slot must be below 138, not 138", tn_op_slot(op, 138, &info));
    EXPECT_FAIL(TN_INVALID, "listener", tn_add_listener(NULL, NULL));
    EXPECT_FAIL(TN_INVALID, "'out'", tn_find_dangling(NULL));
    EXPECT_STR(tn_op_name(NULL), "");
    EXPECT_STR(tn_op_doc(NULL), "");
    EXPECT(!tn_op_has_schema(NULL));
    EXPECT_EQ_INT(tn_op_num_arguments(NULL), 0);
    EXPECT_EQ_INT(tn_op_num_returns(NULL), 0);
    EXPECT_EQ_INT(tn_op_mask(NULL, 0), 0);
    EXPECT_EQ_INT(tn_op_table_bytes(NULL), 0);
    EXPECT(tn_call_op(NULL) == NULL && tn_call_context(NULL) == NULL && tn_call_keys(NULL) == 0);
    EXPECT(tn_call_num_arguments(NULL) == 0 && tn_call_num_returns(NULL) == 0);
    tn_op_list_free(NULL);
    EXPECT_FAIL(TN_INVALID, "aten::mm: argument 'self' must not be NULL", tn_mm(NULL, t, &t));
    EXPECT_FAIL(TN_INVALID, "aten::mm: argument 'mat2' must not be NULL", tn_mm(t, NULL, &t));
    EXPECT_FAIL(TN_INVALID, "aten::mm: ", tn_mm(t, t, NULL));
    tn_tensor_unref(t);
    kit_close(&k);
}

typedef struct answer {
    tn_value values[2];
} answer;

static tn_status answers(tn_call *call, const tn_value *args, tn_value *rets)
{
    const answer *a = tn_call_context(call);
    (void)args;
    for (int i = 0; i < 2; i++) {
        if (tn_value_copy(&a->values[i], &rets[i]) != TN_OK)
            return tn_last_status();
    }
    return TN_OK;
}

TEST(a_kernels_result_that_does_not_fit_the_schema_is_refused_and_released)
{
    tn_tensor *t = kit_tensor(kit_keys(TN_KEY_CPU));
    const struct {
        const char *returns;
        tn_value values[2];
        const char *text;
    } cases[] = {
        {"(Tensor, Tensor)", {tn_value_tensor(t), tn_value_none()}, "result 1 is None"},
        {"(Tensor, int)", {tn_value_tensor(t), tn_value_float(1)}, "result 1 is float"},
        {"(Tensor, int[])", {tn_value_tensor(t), tn_value_int(1)}, "result 1 is int"},
        {"(int, Tensor)", {tn_value_tensor(t), tn_value_tensor(t)}, "result 0 is Tensor"},
        {"(Tensor[], Tensor)", {tn_value_tensor(t), tn_value_tensor(t)}, "result 0 is Tensor"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        kit k = kit_open();
        char schema[96];
        answer a = {{cases[i].values[0], cases[i].values[1]}};
        snprintf(schema, sizeof schema, "op(Tensor x) -> %s", cases[i].returns);
        tn_op *op = kit_def_with(&k, schema, answers, &a);
        tn_value arg = tn_value_tensor(t), rets[2];
        for (way how = ARRAY; how < WAYS; how++) {
            test_note("%s, %s", cases[i].returns, way_names[how]);
            EXPECT_FAIL(TN_TYPE, cases[i].text, call_boxed(how, op, &arg, 1, rets));
            EXPECT_CONTAINS(tn_last_error(), "t::op");
            EXPECT_EQ_INT(kit_refs(t), 1);
        }
        kit_close(&k);
    }
    tn_tensor_unref(t);
}

static tn_status wrong_for_add(tn_call *call, const tn_value *args, tn_value *rets)
{
    (void)call;
    (void)args;
    rets[0] = tn_value_int(1);
    return TN_OK;
}

TEST(a_typed_call_refuses_a_boxed_kernels_wrong_result_and_leaves_out_alone)
{
    tn_library *aten;
    tn_kernel kernel = TN_KERNEL_INIT(wrong_for_add);
    ASSERT_OK(tn_library_open(TN_LIBRARY_IMPL, "aten", TN_KEY_PRIVATE1, "x.c", 1, &aten));
    ASSERT_OK(tn_library_impl(aten, "add.Tensor", TN_KEY_NONE, &kernel, NULL));
    tn_tensor *t = kit_tensor(device_keys()), *out = t;
    EXPECT_FAIL(TN_TYPE, "aten::add.Tensor: the kernel's result 0 is int",
                tn_add(t, t, tn_int(1), &out));
    EXPECT(out == t);
    tn_library_close(aten);
    EXPECT_FAIL(TN_UNSUPPORTED, "Could not run 'aten::add.Tensor'", tn_add(t, t, tn_int(1), &out));
    EXPECT(out == t);
    tn_tensor_unref(t);
}

static tn_status negate_typed(tn_call *call, tn_tensor *self, tn_tensor **out)
{
    (void)call;
    *out = tn_tensor_ref(self);
    return TN_OK;
}

static tn_status negate_in_place(tn_call *call, tn_tensor *self)
{
    (void)call;
    (void)self;
    return TN_OK;
}

TEST(a_typed_kernel_made_for_another_operator_is_refused)
{
    /* neg and neg_ read the same as signatures, (Tensor) -> Tensor, and are different in C: called
     * as one another they would write through a pointer that nobody passed. */
    tn_library *aten;
    tn_kernel functional = tn_kernel_neg(negate_typed, __FILE__, __LINE__);
    tn_kernel in_place = tn_kernel_neg_(negate_in_place, __FILE__, __LINE__);
    ASSERT_OK(tn_library_open(TN_LIBRARY_IMPL, "aten", TN_KEY_PRIVATE1, "x.c", 1, &aten));
    EXPECT_FAIL(TN_INVALID, "aten::neg",
                tn_library_impl(aten, "neg", TN_KEY_NONE, &in_place, NULL));
    EXPECT_CONTAINS(tn_last_error(), "tn_kernel_neg");
    EXPECT_FAIL(TN_INVALID, "aten::neg_",
                tn_library_impl(aten, "neg_", TN_KEY_NONE, &functional, NULL));
    EXPECT_OK(tn_library_impl(aten, "neg", TN_KEY_NONE, &functional, NULL));
    EXPECT_OK(tn_library_impl(aten, "neg_", TN_KEY_NONE, &in_place, NULL));
    tn_tensor *t = kit_tensor(device_keys()), *out = NULL;
    EXPECT_OK(tn_neg(t, &out));
    EXPECT(out == t);
    tn_key_guard guard = to_the_backend();
    EXPECT_OK(tn_neg_(t));
    tn_keys_restore(guard);
    tn_tensor_unref(out);
    tn_tensor_unref(t);
    tn_library_close(aten);
}

TEST(a_typed_kernel_serves_a_custom_operator_and_its_identities_are_checked_too)
{
    kit k = kit_open();
    tn_kernel kernel = tn_kernel_neg(negate_typed, __FILE__, __LINE__);
    ASSERT_OK(tn_library_def(k.defs, "same(Tensor x) -> Tensor", &kernel, NULL));
    EXPECT_OK(kit_call("t::same", kit_keys(TN_KEY_CPU)));
    kit_close(&k);
}
