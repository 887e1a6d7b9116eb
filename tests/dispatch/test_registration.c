/* SPDX-License-Identifier: MIT */
/* Libraries and definitions, and finding what was defined; what the reference's
 * op_registration_test.cpp asserts of them, in the terms of this API. */
#include "dispatch/kit.h"

#include <string.h>

/* ---- definitions ---- */

TEST(an_operator_is_callable_whichever_of_schema_and_kernel_comes_first)
{
    for (int kernel_first = 0; kernel_first < 2; kernel_first++) {
        kit k = kit_open();
        if (kernel_first)
            kit_impl(&k, "op", TN_KEY_CPU, "c");
        ASSERT_OK(tn_library_def(k.defs, "op(Tensor x) -> Tensor", NULL, NULL));
        if (!kernel_first)
            kit_impl(&k, "op", TN_KEY_CPU, "c");
        EXPECT_OK(kit_call("t::op", kit_keys(TN_KEY_CPU)));
        EXPECT_STR(kit_log, "c");
        kit_close(&k);
    }
}

TEST(a_schema_alone_exists_and_calling_it_fails)
{
    kit k = kit_open();
    ASSERT_OK(tn_library_def(k.defs, "op(Tensor x) -> Tensor", NULL, NULL));
    EXPECT_FAIL(TN_UNSUPPORTED, "Could not run 't::op' with arguments from the 'CPU' backend",
                kit_call("t::op", kit_keys(TN_KEY_CPU)));
    kit_close(&k);
    tn_op *op = NULL;
    EXPECT_FAIL(TN_INVALID, "Could not find schema for t::op", tn_op_find("t::op", &op));
    EXPECT(op == NULL);
}

TEST(kernels_without_a_schema_cannot_be_called)
{
    kit k = kit_open();
    kit_impl(&k, "op", TN_KEY_CPU, "c");
    EXPECT_FAIL(TN_INVALID, "Could not find schema for t::op",
                kit_call("t::op", kit_keys(TN_KEY_CPU)));
    kit_close(&k);
}

TEST(a_second_definition_is_refused_and_names_both_sites)
{
    kit k = kit_open();
    ASSERT_OK(tn_library_def(k.defs, "op(Tensor x) -> Tensor", NULL, NULL));
    EXPECT_FAIL(
        TN_INVALID,
        "Tried to register an operator (t::op) with the same name and overload name multiple times",
        tn_library_def(k.defs, "op(Tensor x) -> Tensor", NULL, NULL));
    EXPECT_CONTAINS(tn_last_error(), "registered at defs.c:10");
    EXPECT_FAIL(TN_INVALID, "multiple times",
                tn_library_def_ex(k.defs, "op(Tensor y) -> Tensor", NULL, TN_ALIAS_PURE_FUNCTION,
                                  NULL, 0, NULL));
    kit_close(&k);
}

TEST(a_built_in_operator_cannot_be_defined_again)
{
    tn_library *lib;
    ASSERT_OK(tn_library_open(TN_LIBRARY_FRAGMENT, "aten", TN_KEY_NONE, "x.c", 1, &lib));
    EXPECT_FAIL(TN_INVALID, "multiple times",
                tn_library_def(lib, "mm(Tensor self, Tensor mat2) -> Tensor", NULL, NULL));
    tn_library_close(lib);
}

TEST(a_kernel_with_another_signature_is_refused_in_either_order_and_nothing_changes)
{
    tn_kernel wrong = kit_kernel("w");
    wrong.signature = "(Tensor) -> Tensor";
    kit k = kit_open();
    ASSERT_OK(tn_library_def(k.defs, "op(Tensor x, Tensor y) -> Tensor", NULL, NULL));
    EXPECT_FAIL(TN_INVALID, "The number of arguments is different. 2 vs 1",
                tn_library_impl(k.impls, "op", TN_KEY_CPU, &wrong, NULL));
    EXPECT_STR(kit_slot("t::op", TN_KEY_CPU), "-");
    kit_close(&k);
    k = kit_open();
    ASSERT_OK(tn_library_impl(k.impls, "op", TN_KEY_CPU, &wrong, NULL));
    EXPECT_FAIL(TN_INVALID, "The number of arguments is different",
                tn_library_def(k.defs, "op(Tensor x, Tensor y) -> Tensor", NULL, NULL));
    tn_op *op;
    ASSERT_OK(tn_op_find("t::op", &op));
    EXPECT(!tn_op_has_schema(op));
    kit_close(&k);
}

TEST(signatures_are_compared_in_number_and_type_of_arguments_and_results)
{
    static const struct {
        const char *signature, *text;
    } cases[] = {
        {"(Tensor, int, int) -> Tensor", "number of arguments"},
        {"(Tensor, float) -> Tensor", "argument"},
        {"(Tensor, int) -> (Tensor, Tensor)", "number of returns"},
        {"(Tensor, int) -> int", "return"},
        {"(Tensor, int) -> Tensor", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        kit k = kit_open();
        tn_kernel kernel = kit_kernel("c");
        kernel.signature = cases[i].signature;
        test_note("%s", cases[i].signature);
        ASSERT_OK(tn_library_def(k.defs, "op(Tensor x, int n) -> Tensor", NULL, NULL));
        if (cases[i].text)
            EXPECT_FAIL(TN_INVALID, cases[i].text,
                        tn_library_impl(k.impls, "op", TN_KEY_CPU, &kernel, NULL));
        else
            EXPECT_OK(tn_library_impl(k.impls, "op", TN_KEY_CPU, &kernel, NULL));
        kit_close(&k);
    }
}

TEST(two_typed_kernels_must_agree_before_there_is_a_schema)
{
    kit k = kit_open();
    tn_kernel a = kit_kernel("a"), b = kit_kernel("b");
    a.signature = "(Tensor, int) -> Tensor";
    b.signature = "(Tensor) -> Tensor";
    ASSERT_OK(tn_library_impl(k.impls, "op", TN_KEY_CPU, &a, NULL));
    EXPECT_FAIL(TN_INVALID, "Mismatch in kernel signatures of t::op",
                tn_library_impl(k.impls, "op", TN_KEY_META, &b, NULL));
    kit_close(&k);
}

TEST(a_rejected_kernel_does_not_pin_its_signature)
{
    kit k = kit_open();
    tn_kernel wrong = kit_kernel("w"), right = kit_kernel("r");
    wrong.signature = "(Tensor, int) -> Tensor";
    right.signature = "(Tensor) -> Tensor";
    ASSERT_OK(tn_library_def(k.defs, "op(Tensor x) -> Tensor", NULL, NULL));
    EXPECT_FAIL(TN_INVALID, "number of arguments",
                tn_library_impl(k.impls, "op", TN_KEY_CPU, &wrong, NULL));
    EXPECT_OK(tn_library_impl(k.impls, "op", TN_KEY_CPU, &right, NULL));
    kit_close(&k);
}

TEST(a_schema_is_inferred_from_a_kernel_whose_signature_is_known)
{
    kit k = kit_open();
    tn_op *op;
    char *text;
    tn_kernel kernel = kit_kernel("c");
    kernel.signature = "(Tensor, int[]) -> Tensor";
    ASSERT_OK(tn_library_def(k.defs, "op", &kernel, NULL));
    ASSERT_OK(tn_op_find("t::op", &op));
    ASSERT_OK(tn_op_schema(op, &text));
    EXPECT_STR(text, "t::op(Tensor _0, int[] _1) -> Tensor _0"); /* as the reference prints it */
    tn_string_free(text);
    ASSERT_OK(tn_op_dump_state(op, &text));
    EXPECT_CONTAINS(text, "alias analysis kind: CONSERVATIVE\n");
    tn_string_free(text);
    kit_close(&k);
}

TEST(a_schema_cannot_be_inferred_from_a_boxed_kernel)
{
    kit k = kit_open();
    tn_kernel kernel = kit_kernel("c");
    EXPECT_FAIL(TN_INVALID, "needs a schema", tn_library_def(k.defs, "op", &kernel, NULL));
    EXPECT_FAIL(TN_INVALID, "needs a schema", tn_library_def(k.defs, "op", NULL, NULL));
    kit_close(&k);
}

TEST(an_explicit_alias_kind_is_kept)
{
    kit k = kit_open();
    tn_op *op;
    char *text;
    ASSERT_OK(tn_library_def_ex(k.defs, "op(Tensor x) -> Tensor", NULL, TN_ALIAS_PURE_FUNCTION,
                                NULL, 0, NULL));
    ASSERT_OK(tn_op_find("t::op", &op));
    ASSERT_OK(tn_op_dump_state(op, &text));
    EXPECT_CONTAINS(text, "alias analysis kind: PURE_FUNCTION\n");
    tn_string_free(text);
    kit_close(&k);
}

TEST(bad_schemas_and_overload_names_are_refused)
{
    kit k = kit_open();
    EXPECT_FAIL(TN_INVALID, "default",
                tn_library_def(k.defs, "op.default(Tensor x) -> Tensor", NULL, NULL));
    EXPECT_FAIL(TN_INVALID, "__x",
                tn_library_def(k.defs, "op.__x(Tensor x) -> Tensor", NULL, NULL));
    EXPECT_FAIL(TN_INVALID, "other::op",
                tn_library_def(k.defs, "other::op(Tensor x) -> Tensor", NULL, NULL));
    EXPECT_FAIL(TN_INVALID, "", tn_library_def(k.defs, "op(Tenso x) -> ", NULL, NULL));
    EXPECT_FAIL(TN_INVALID, "lib", tn_library_def(NULL, "op(Tensor x) -> Tensor", NULL, NULL));
    EXPECT_FAIL(TN_INVALID, "schema", tn_library_def(k.defs, NULL, NULL, NULL));
    EXPECT_FAIL(TN_INVALID, "only implements",
                tn_library_def(k.impls, "op(Tensor x) -> Tensor", NULL, NULL));
    tn_kernel empty = kit_kernel("e");
    empty.boxed = NULL;
    EXPECT_FAIL(TN_INVALID, "no boxed entry",
                tn_library_impl(k.impls, "op", TN_KEY_CPU, &empty, NULL));
    EXPECT_FAIL(TN_INVALID, "TN_KERNEL_INIT",
                tn_library_impl(k.impls, "op", TN_KEY_CPU, NULL, NULL));
    kit_close(&k);
}

TEST(overloads_are_different_operators)
{
    kit k = kit_open();
    tn_kernel a = kit_kernel("a"), b = kit_kernel("b");
    ASSERT_OK(tn_library_def(k.defs, "op(Tensor x) -> Tensor", &a, NULL));
    ASSERT_OK(tn_library_def(k.defs, "op.two(Tensor x) -> Tensor", &b, NULL));
    EXPECT_OK(kit_call("t::op", kit_keys(TN_KEY_CPU)));
    EXPECT_STR(kit_log, "a");
    EXPECT_OK(kit_call("t::op.two", kit_keys(TN_KEY_CPU)));
    EXPECT_STR(kit_log, "b");
    kit_close(&k);
}

/* ---- libraries ---- */

TEST(a_namespace_has_one_owner_at_a_time)
{
    tn_library *a, *b = NULL;
    ASSERT_OK(tn_library_open(TN_LIBRARY_DEF, "ns", TN_KEY_NONE, "a.c", 1, &a));
    EXPECT_FAIL(TN_INVALID, "Only a single library can own the namespace ns",
                tn_library_open(TN_LIBRARY_DEF, "ns", TN_KEY_NONE, "b.c", 2, &b));
    EXPECT_CONTAINS(tn_last_error(), "a.c:1");
    EXPECT_CONTAINS(tn_last_error(), "b.c:2");
    EXPECT(b == NULL);
    ASSERT_OK(tn_library_open(TN_LIBRARY_FRAGMENT, "ns", TN_KEY_NONE, "b.c", 2, &b));
    tn_library_close(b);
    tn_library_close(a);
    ASSERT_OK(tn_library_open(TN_LIBRARY_DEF, "ns", TN_KEY_NONE, "b.c", 2, &b));
    tn_library_close(b);
}

TEST(malformed_libraries_are_refused)
{
    tn_library *lib = NULL;
    EXPECT_FAIL(TN_INVALID, "not a namespace",
                tn_library_open(TN_LIBRARY_DEF, "a b", TN_KEY_NONE, "x", 1, &lib));
    EXPECT_FAIL(TN_INVALID, "not a namespace",
                tn_library_open(TN_LIBRARY_DEF, NULL, TN_KEY_NONE, "x", 1, &lib));
    EXPECT_FAIL(TN_INVALID, "not '_'",
                tn_library_open(TN_LIBRARY_DEF, "_", TN_KEY_NONE, "x", 1, &lib));
    EXPECT_FAIL(TN_INVALID, "takes no dispatch key",
                tn_library_open(TN_LIBRARY_DEF, "ns", TN_KEY_CPU, "x", 1, &lib));
    EXPECT_FAIL(TN_INVALID, "not a dispatch key",
                tn_library_open(TN_LIBRARY_IMPL, "ns", (tn_key)999, "x", 1, &lib));
    EXPECT_FAIL(TN_INVALID, "kind",
                tn_library_open((tn_library_kind)7, "ns", TN_KEY_NONE, "x", 1, &lib));
    EXPECT(lib == NULL);
    tn_library_close(NULL);
    tn_registration_undo(NULL);
}

TEST(a_librarys_key_is_the_default_of_its_kernels)
{
    kit k = kit_open();
    tn_library *cpu;
    tn_kernel kernel = kit_kernel("c");
    ASSERT_OK(tn_library_def(k.defs, "op(Tensor x) -> Tensor", NULL, NULL));
    ASSERT_OK(tn_library_open(TN_LIBRARY_IMPL, "t", TN_KEY_CPU, "x.c", 1, &cpu));
    ASSERT_OK(tn_library_impl(cpu, "op", TN_KEY_NONE, &kernel, NULL));
    EXPECT_STR(kit_slot("t::op", TN_KEY_CPU), "c");
    EXPECT_FAIL(TN_INVALID, "is for CPU", tn_library_impl(cpu, "op", TN_KEY_META, &kernel, NULL));
    tn_library_close(cpu);
    EXPECT_STR(kit_slot("t::op", TN_KEY_CPU), "-");
    kit_close(&k);
}

TEST(kernels_cannot_go_to_keys_that_are_no_slots)
{
    kit k = kit_open();
    tn_kernel kernel = kit_kernel("c");
    EXPECT_FAIL(TN_INVALID, "Undefined",
                tn_library_impl(k.impls, "op", TN_KEY_UNDEFINED, &kernel, NULL));
    EXPECT_FAIL(TN_INVALID, "Dense", tn_library_impl(k.impls, "op", TN_KEY_DENSE, &kernel, NULL));
    EXPECT_FAIL(TN_INVALID, "Unknown", tn_library_impl(k.impls, "op", (tn_key)500, &kernel, NULL));
    kit_close(&k);
}

/* ---- finding ---- */

TEST(a_name_that_is_nearly_right_gets_a_suggestion)
{
    tn_op *op = NULL;
    EXPECT_FAIL(TN_INVALID, "Could not find schema for aten::matmull. Did you mean aten::matmul?",
                tn_op_find("aten::matmull", &op));
    EXPECT_FAIL(TN_INVALID, "Did you mean aten::add.Tensor", tn_op_find("aten::add", &op));
    EXPECT_FAIL(TN_INVALID, "Could not find schema for mm. Did you mean aten::mm",
                tn_op_find("mm", &op));
    EXPECT_FAIL(TN_INVALID, "Did you mean aten::matmul", tn_op_find("matmull", &op));
    EXPECT_FAIL(TN_INVALID, "Could not find schema for nothing::like.this.",
                tn_op_find("nothing::like.this", &op));
    EXPECT(op == NULL);
}

TEST(the_list_of_operators_is_sorted_and_complete)
{
    tn_op **ops;
    size_t n;
    ASSERT_OK(tn_op_list(&ops, &n));
    EXPECT(n > 100);
    for (size_t i = 1; i < n; i++)
        EXPECT(strcmp(tn_op_name(ops[i - 1]), tn_op_name(ops[i])) < 0);
    tn_op_list_free(ops);
}
