/* SPDX-License-Identifier: MIT */
/* Libraries, definitions, kernels, fallbacks and listeners; what the reference's
 * op_registration_test.cpp asserts, in the terms of this API. */
#include "dispatch/kit.h"

#include <stdio.h>
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

/* ---- which kernel runs ---- */

TEST(the_newest_kernel_of_a_key_wins_and_the_older_comes_back)
{
    kit k = kit_open();
    ASSERT_OK(tn_library_def(k.defs, "op(Tensor x) -> Tensor", NULL, NULL));
    tn_registration *a = kit_impl_handle(&k, "op", TN_KEY_COMPOSITE_IMPLICIT, "a");
    tn_registration *b = kit_impl_handle(&k, "op", TN_KEY_COMPOSITE_IMPLICIT, "b");
    tn_registration *c = kit_impl_handle(&k, "op", TN_KEY_COMPOSITE_IMPLICIT, "c");
    EXPECT_STR(kit_slot("t::op", TN_KEY_CPU), "c");
    tn_registration_undo(b); /* inactive: nothing visible changes */
    EXPECT_STR(kit_slot("t::op", TN_KEY_CPU), "c");
    tn_registration_undo(c);
    EXPECT_STR(kit_slot("t::op", TN_KEY_CPU), "a");
    tn_registration_undo(a);
    EXPECT_STR(kit_slot("t::op", TN_KEY_CPU), "-");
    kit_close(&k);
}

TEST(a_kernel_without_a_key_serves_any_tensor_and_none)
{
    kit k = kit_open();
    tn_kernel kernel = kit_kernel("m");
    tn_op *op;
    ASSERT_OK(tn_library_def(k.defs, "op(Tensor x) -> Tensor", NULL, NULL));
    ASSERT_OK(tn_library_impl(k.impls, "op", TN_KEY_NONE, &kernel, NULL));
    static const tn_key keys[] = {TN_KEY_CPU,        TN_KEY_XLA,  TN_KEY_LAZY,
                                  TN_KEY_SPARSE_CPU, TN_KEY_META, TN_KEY_FPGA};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        test_note("%s", tn_key_name(keys[i]));
        EXPECT_OK(kit_call("t::op", kit_keys(keys[i])));
        EXPECT_STR(kit_log, "m");
        EXPECT_OK(kit_call("t::op", kit_keys_grad(keys[i])));
        EXPECT_STR(kit_log, "m");
    }
    ASSERT_OK(tn_library_def(k.defs, "none(int n) -> ()", NULL, NULL));
    tn_kernel empty = kit_kernel("n");
    ASSERT_OK(tn_library_impl(k.impls, "none", TN_KEY_NONE, &empty, NULL));
    ASSERT_OK(tn_op_find("t::none", &op));
    tn_value n = tn_value_int(3);
    kit_log_clear();
    EXPECT_OK(tn_op_call(op, &n, 1, NULL));
    EXPECT_STR(kit_log, "n");
    kit_close(&k);
}

TEST(an_operator_without_tensor_arguments_and_without_a_fallback_says_so)
{
    kit k = kit_open();
    tn_op *op;
    ASSERT_OK(tn_library_def(k.defs, "op(Tensor[] xs) -> ()", NULL, NULL));
    kit_impl(&k, "op", TN_KEY_CPU, "c");
    ASSERT_OK(tn_op_find("t::op", &op));
    tn_value empty = tn_value_tensors(NULL, 0);
    EXPECT_FAIL(TN_UNSUPPORTED, "There were no tensor arguments to this function",
                tn_op_call(op, &empty, 1, NULL));
    EXPECT_CONTAINS(tn_last_error(), "[CPU]");
    kit_close(&k);
}

TEST(the_missing_kernel_error_names_what_there_is_and_what_to_do)
{
    kit k = kit_open();
    ASSERT_OK(tn_library_def(k.defs, "op(Tensor x) -> Tensor", NULL, NULL));
    kit_impl(&k, "op", TN_KEY_CPU, "c");
    kit_impl(&k, "op", TN_KEY_XLA, "x");
    EXPECT_FAIL(TN_UNSUPPORTED, "Could not run 't::op' with arguments from the 'CUDA' backend",
                kit_call("t::op", kit_keys(TN_KEY_CUDA)));
    EXPECT_CONTAINS(tn_last_error(), "only available for these backends: [CPU, XLA].");
    EXPECT_CONTAINS(tn_last_error(), "tn_library_impl");
    EXPECT_CONTAINS(tn_last_error(), "\n\nCPU: registered at ");
    EXPECT_STR(tn_last_error_op(), "t::op");
    kit_close(&k);
}

TEST(autograd_is_reached_only_with_autograd_keys)
{
    kit k = kit_open();
    ASSERT_OK(tn_library_def(k.defs, "op(Tensor x) -> Tensor", NULL, NULL));
    kit_impl(&k, "op", TN_KEY_CPU, "c");
    kit_impl(&k, "op", TN_KEY_AUTOGRAD, "a");
    EXPECT_OK(kit_call("t::op", kit_keys(TN_KEY_CPU)));
    EXPECT_STR(kit_log, "c");
    EXPECT_OK(kit_call("t::op", kit_keys_grad(TN_KEY_CPU)));
    EXPECT_STR(kit_log, "a");
    kit_impl(&k, "op", TN_KEY_AUTOGRAD_CPU, "d");
    EXPECT_OK(kit_call("t::op", kit_keys_grad(TN_KEY_CPU)));
    EXPECT_STR(kit_log, "d");
    kit_close(&k);
}

TEST(a_composite_kernel_beats_autograd_unless_the_backend_has_its_own)
{
    kit k = kit_open();
    ASSERT_OK(tn_library_def(k.defs, "op(Tensor x) -> Tensor", NULL, NULL));
    kit_impl(&k, "op", TN_KEY_COMPOSITE_IMPLICIT, "m");
    kit_impl(&k, "op", TN_KEY_AUTOGRAD, "a");
    EXPECT_OK(kit_call("t::op", kit_keys_grad(TN_KEY_CPU)));
    EXPECT_STR(kit_log, "m");
    kit_impl(&k, "op", TN_KEY_CPU, "c");
    EXPECT_OK(kit_call("t::op", kit_keys_grad(TN_KEY_CPU)));
    EXPECT_STR(kit_log, "a");
    EXPECT_OK(kit_call("t::op", kit_keys_grad(TN_KEY_META)));
    EXPECT_STR(kit_log, "m");
    kit_close(&k);
}

TEST(ambiguous_autogradother_raises_only_when_an_autograd_key_is_there)
{
    kit k = kit_open();
    ASSERT_OK(tn_library_def(k.defs, "op(Tensor x) -> Tensor", NULL, NULL));
    kit_impl(&k, "op", TN_KEY_COMPOSITE_IMPLICIT, "m");
    kit_impl(&k, "op", TN_KEY_SPARSE_CPU, "s");
    EXPECT_OK(kit_call("t::op", kit_keys(TN_KEY_SPARSE_CPU)));
    EXPECT_STR(kit_log, "s");
    EXPECT_FAIL(TN_UNSUPPORTED,
                "both CompositeImplicitAutograd and a backend mapped to AutogradOther",
                kit_call("t::op", kit_keys_grad(TN_KEY_SPARSE_CPU)));
    kit_close(&k);
}

TEST(of_two_tensors_the_higher_backend_decides)
{
    kit k = kit_open();
    tn_op *op;
    ASSERT_OK(tn_library_def(k.defs, "op(Tensor x, Tensor y) -> Tensor", NULL, NULL));
    kit_impl(&k, "op", TN_KEY_CPU, "c");
    kit_impl(&k, "op", TN_KEY_PRIVATE1, "p");
    ASSERT_OK(tn_op_find("t::op", &op));
    for (int grad = 0; grad < 2; grad++) {
        tn_tensor *a = kit_tensor(grad ? kit_keys_grad(TN_KEY_CPU) : kit_keys(TN_KEY_CPU));
        tn_tensor *b =
            kit_tensor(grad ? kit_keys_grad(TN_KEY_PRIVATE1) : kit_keys(TN_KEY_PRIVATE1));
        tn_value args[2] = {tn_value_tensor(a), tn_value_tensor(b)}, ret;
        kit_log_clear();
        EXPECT_OK(tn_op_call(op, args, 2, &ret));
        EXPECT_STR(kit_log, "p");
        tn_value_clear(&ret);
        tn_tensor_unref(a);
        tn_tensor_unref(b);
    }
    kit_close(&k);
}

/* ---- fallbacks ---- */

TEST(a_fallback_serves_operators_without_a_kernel_for_its_key)
{
    kit k = kit_open();
    tn_kernel fallback = kit_kernel("F");
    tn_registration *handle;
    ASSERT_OK(tn_library_def(k.defs, "op(Tensor x) -> Tensor", NULL, NULL));
    ASSERT_OK(tn_library_fallback(k.fallbacks, TN_KEY_XLA, &fallback, &handle));
    EXPECT_OK(kit_call("t::op", kit_keys(TN_KEY_XLA)));
    EXPECT_STR(kit_log, "F");
    EXPECT_FAIL(TN_UNSUPPORTED, "'CUDA'", kit_call("t::op", kit_keys(TN_KEY_CUDA)));
    kit_impl(&k, "op", TN_KEY_XLA, "x");
    EXPECT_OK(kit_call("t::op", kit_keys(TN_KEY_XLA)));
    EXPECT_STR(kit_log, "x");
    ASSERT_OK(
        tn_library_def(k.defs, "later(Tensor x) -> Tensor", NULL, NULL)); /* copies fallbacks */
    EXPECT_OK(kit_call("t::later", kit_keys(TN_KEY_XLA)));
    EXPECT_STR(kit_log, "F");
    tn_registration_undo(handle);
    EXPECT_FAIL(TN_UNSUPPORTED, "'XLA'", kit_call("t::later", kit_keys(TN_KEY_XLA)));
    kit_close(&k);
}

TEST(a_composite_kernel_beats_a_whole_key_fallback)
{
    kit k = kit_open();
    tn_kernel fallback = kit_kernel("F");
    ASSERT_OK(tn_library_def(k.defs, "op(Tensor x) -> Tensor", NULL, NULL));
    ASSERT_OK(tn_library_fallback(k.fallbacks, TN_KEY_XLA, &fallback, NULL));
    kit_impl(&k, "op", TN_KEY_COMPOSITE_IMPLICIT, "m");
    EXPECT_OK(kit_call("t::op", kit_keys(TN_KEY_XLA)));
    EXPECT_STR(kit_log, "m");
    kit_close(&k);
}

TEST(a_second_fallback_for_a_key_is_refused)
{
    kit k = kit_open();
    tn_kernel fallback = kit_kernel("F");
    ASSERT_OK(tn_library_fallback(k.fallbacks, TN_KEY_XLA, &fallback, NULL));
    EXPECT_FAIL(TN_INVALID, "multiple backend fallbacks for the same dispatch key XLA",
                tn_library_fallback(k.fallbacks, TN_KEY_XLA, &fallback, NULL));
    EXPECT_FAIL(TN_INVALID, "needs a dispatch key",
                tn_library_fallback(k.fallbacks, TN_KEY_NONE, &fallback, NULL));
    EXPECT_FAIL(TN_INVALID, "'_'", tn_library_fallback(k.impls, TN_KEY_CUDA, &fallback, NULL));
    EXPECT_FAIL(TN_INVALID, "alias",
                tn_library_fallback(k.fallbacks, TN_KEY_AUTOGRAD, &fallback, NULL));
    kit_close(&k);
}

TEST(a_device_may_replace_the_autograd_fallback_of_its_slot)
{
    kit k = kit_open();
    tn_kernel fallback = kit_redispatching("F");
    tn_registration *handle;
    ASSERT_OK(tn_library_def(k.defs, "op(Tensor x) -> Tensor", NULL, NULL));
    kit_impl(&k, "op", TN_KEY_PRIVATE1, "p");
    ASSERT_OK(tn_library_fallback(k.fallbacks, TN_KEY_AUTOGRAD_PRIVATE1, &fallback, &handle));
    EXPECT_OK(kit_call("t::op", kit_keys_grad(TN_KEY_PRIVATE1)));
    EXPECT_STR(kit_log, "Fp");
    tn_registration_undo(handle);
    EXPECT_OK(kit_call("t::op", kit_keys_grad(TN_KEY_PRIVATE1)));
    EXPECT_STR(kit_log, "p");
    kit_close(&k);
}

/* ---- handles ---- */

static int destroyed;
static void count_destroyed(void *ctx)
{
    (void)ctx;
    destroyed++;
}

TEST(closing_a_library_undoes_everything_and_destroys_each_context_once)
{
    destroyed = 0;
    kit k = kit_open();
    tn_registration *handle;
    tn_kernel kernel = kit_kernel("c");
    kernel.destroy = count_destroyed;
    ASSERT_OK(tn_library_def(k.defs, "op(Tensor x) -> Tensor", &kernel, NULL));
    ASSERT_OK(tn_library_impl(k.impls, "op", TN_KEY_CPU, &kernel, &handle));
    ASSERT_OK(tn_library_fallback(k.fallbacks, TN_KEY_XLA, &kernel, NULL));
    kit_close(&k);
    EXPECT_EQ_INT(destroyed, 3);
    tn_registration_undo(handle); /* a handle outlives its library: nothing is left to undo */
    EXPECT_EQ_INT(destroyed, 3);
    tn_op *op;
    EXPECT_FAIL(TN_INVALID, "Could not find schema", tn_op_find("t::op", &op));
    EXPECT_OK(tn_check_invariants());
}

TEST(a_handle_to_an_undefined_operator_stays_valid_and_calls_fail)
{
    kit k = kit_open();
    tn_op *op;
    tn_kernel kernel = kit_kernel("c");
    ASSERT_OK(tn_library_def(k.defs, "op(Tensor x) -> Tensor", &kernel, NULL));
    ASSERT_OK(tn_op_find("t::op", &op));
    kit_close(&k);
    EXPECT_STR(tn_op_name(op), "t::op");
    EXPECT(!tn_op_has_schema(op));
    tn_tensor *t = kit_tensor(kit_keys(TN_KEY_CPU));
    tn_value arg = tn_value_tensor(t), ret;
    EXPECT_FAIL(TN_INVALID, "Could not find schema for t::op", tn_op_call(op, &arg, 1, &ret));
    tn_tensor_unref(t);
    k = kit_open();
    ASSERT_OK(tn_library_def(k.defs, "op(Tensor x) -> Tensor", &kernel, NULL));
    EXPECT_OK(kit_call("t::op", kit_keys(TN_KEY_CPU)));
    kit_close(&k);
}

typedef struct self_undo {
    tn_registration *handle;
    int runs;
} self_undo;

static tn_status undo_self(tn_call *call, const tn_value *args, tn_value *rets)
{
    self_undo *s = tn_call_context(call);
    tn_registration_undo(TN_MOVE(s->handle)); /* its own registration: the context must survive */
    s->runs++;
    EXPECT(tn_call_context(call) == s);
    return tn_value_copy(&args[0], &rets[0]);
}

TEST(a_kernel_may_undo_its_own_registration_while_it_runs)
{
    destroyed = 0;
    kit k = kit_open();
    self_undo s = {0};
    tn_kernel kernel = TN_KERNEL_INIT(undo_self);
    kernel.ctx = &s;
    kernel.destroy = count_destroyed;
    ASSERT_OK(tn_library_def(k.defs, "op(Tensor x) -> Tensor", NULL, NULL));
    ASSERT_OK(tn_library_impl(k.impls, "op", TN_KEY_CPU, &kernel, &s.handle));
    EXPECT_OK(kit_call("t::op", kit_keys(TN_KEY_CPU)));
    EXPECT_EQ_INT(s.runs, 1);
    EXPECT_EQ_INT(destroyed, 0); /* was inside; goes with the next registration */
    EXPECT_FAIL(TN_UNSUPPORTED, "Could not run", kit_call("t::op", kit_keys(TN_KEY_CPU)));
    kit_close(&k);
    EXPECT_EQ_INT(destroyed, 1);
}

TEST(undoing_a_definition_takes_the_kernel_that_came_with_it)
{
    destroyed = 0;
    kit k = kit_open();
    tn_registration *def;
    tn_kernel kernel = kit_kernel("m");
    char *dangling;
    tn_op *op;
    kernel.destroy = count_destroyed;
    ASSERT_OK(tn_library_def(k.defs, "op(Tensor x) -> Tensor", &kernel, &def));
    tn_registration_undo(def);
    EXPECT_EQ_INT(destroyed, 1);
    EXPECT_FAIL(TN_INVALID, "t::op", tn_op_find("t::op", &op));
    ASSERT_OK(tn_find_dangling(&dangling));
    EXPECT_STR(dangling, "");
    tn_string_free(dangling);
    kit_close(&k);
}

static void fail_in_destructor(void *ctx)
{
    tn_op *op;
    (void)ctx;
    destroyed++;
    EXPECT_FAIL(TN_INVALID, "no::such", tn_op_find("no::such", &op));
}

TEST(what_fails_in_a_destructor_is_not_taken_for_the_callers_failure)
{
    destroyed = 0;
    kit k = kit_open();
    tn_registration *handle;
    tn_kernel kernel = kit_kernel("m");
    kernel.destroy = fail_in_destructor;
    ASSERT_OK(tn_library_def(k.defs, "op(Tensor x) -> Tensor", NULL, NULL));
    ASSERT_OK(tn_library_impl(k.impls, "op", TN_KEY_CPU, &kernel, &handle));
    EXPECT_FAIL(TN_VALUE, "mine", tn_fail(TN_VALUE, "%s", "mine"));
    tn_registration_undo(handle);
    EXPECT_EQ_INT(destroyed, 1);
    EXPECT_EQ_INT(tn_last_status(), TN_VALUE);
    EXPECT_STR(tn_last_error(), "mine");
    tn_clear_error();
    ASSERT_OK(tn_library_impl(k.impls, "op", TN_KEY_CPU, &kernel, &handle));
    tn_registration_undo(handle);
    EXPECT_EQ_INT(tn_last_status(), TN_OK);
    kit_close(&k);
}

TEST(tags_are_a_list_of_texts)
{
    kit k = kit_open();
    const char *tags[] = {"pointwise", NULL};
    EXPECT_FAIL(
        TN_INVALID, "'tags'",
        tn_library_def_ex(k.defs, "op(Tensor x) -> Tensor", NULL, TN_ALIAS_DEFAULT, NULL, 2, NULL));
    EXPECT_FAIL(TN_INVALID, "'tags'",
                tn_library_def_ex(k.defs, "op(Tensor x) -> Tensor", NULL, TN_ALIAS_DEFAULT, tags,
                                  -1, NULL));
    EXPECT_OK(
        tn_library_def_ex(k.defs, "op(Tensor x) -> Tensor", NULL, TN_ALIAS_DEFAULT, tags, 2, NULL));
    kit_close(&k);
}

/* ---- listeners ---- */

static char heard[256];
static void hear(const char *sign, const tn_op *op)
{
    if (strncmp(tn_op_name(op), "t::", 3) != 0)
        return;
    size_t n = strlen(heard);
    snprintf(heard + n, sizeof heard - n, "%s%s ", sign, tn_op_name(op) + 3);
}
static void hear_defined(void *ctx, tn_op *op)
{
    (void)ctx;
    EXPECT(tn_op_has_schema(op));
    hear("+", op);
}
static void hear_undefined(void *ctx, tn_op *op)
{
    (void)ctx;
    EXPECT(tn_op_has_schema(op)); /* told before the schema goes */
    hear("-", op);
}

TEST(listeners_hear_of_definitions_but_not_of_kernels)
{
    tn_listener l = {sizeof l, 0, hear_defined, hear_undefined, NULL, NULL};
    tn_registration *handle;
    kit k = kit_open();
    heard[0] = '\0';
    ASSERT_OK(tn_library_def(k.defs, "before(Tensor x) -> Tensor", NULL, NULL));
    ASSERT_OK(tn_add_listener(&l, &handle));
    EXPECT_STR(heard, "+before ");
    kit_impl(&k, "late", TN_KEY_CPU, "c");
    EXPECT_STR(heard, "+before ");
    tn_registration *def;
    ASSERT_OK(tn_library_def(k.defs, "late(Tensor x) -> Tensor", NULL, &def));
    EXPECT_STR(heard, "+before +late ");
    tn_registration_undo(def);
    EXPECT_STR(heard, "+before +late -late ");
    tn_registration_undo(handle);
    kit_close(&k);
    EXPECT_STR(heard, "+before +late -late ");
}

typedef struct closing {
    tn_library *lib;
    tn_registration *listener;
    int heard;
} closing;

static void close_library(void *ctx, tn_op *op)
{
    closing *c = ctx;
    if (strcmp(tn_op_name(op), "t::op") != 0)
        return;
    c->heard++;
    tn_library_close(TN_MOVE(c->lib));
    EXPECT(tn_op_has_schema(op)); /* the one who undoes it is still telling */
}

static int close_from_listener(void *arg)
{
    (void)arg;
    kit k = kit_open();
    closing c = {0};
    tn_registration *def;
    tn_op *op;
    tn_listener l = {sizeof l, 0, NULL, close_library, &c, NULL};
    ASSERT_OK(tn_library_open(TN_LIBRARY_FRAGMENT, "t", TN_KEY_NONE, "x.c", 1, &c.lib));
    ASSERT_OK(tn_library_def(c.lib, "op(Tensor x) -> Tensor", NULL, &def));
    ASSERT_OK(tn_library_def(c.lib, "other(Tensor x) -> Tensor", NULL, NULL));
    ASSERT_OK(tn_add_listener(&l, &c.listener));
    tn_registration_undo(def);
    EXPECT_EQ_INT(c.heard, 1);
    EXPECT_FAIL(TN_INVALID, "t::op", tn_op_find("t::op", &op));
    EXPECT_FAIL(TN_INVALID, "t::other", tn_op_find("t::other", &op));
    tn_registration_undo(c.listener);
    kit_close(&k);
    return 0;
}

TEST(a_listener_may_close_the_library_whose_definition_goes)
{
    EXPECT_EQ_INT(run_in_child(close_from_listener, NULL, 5), 0);
}

static tn_registration *late_listener;

static void join_late(void *ctx, tn_op *op)
{
    tn_listener l = {sizeof l, 0, hear_defined, hear_undefined, NULL, NULL};
    (void)ctx;
    if (strcmp(tn_op_name(op), "t::going") == 0 && !late_listener)
        EXPECT_OK(tn_add_listener(&l, &late_listener));
}

TEST(a_listener_hears_of_the_end_of_exactly_what_it_heard_of)
{
    kit k = kit_open();
    tn_listener l = {sizeof l, 0, NULL, join_late, NULL, NULL};
    tn_registration *early, *going;
    ASSERT_OK(tn_library_def(k.defs, "stays(Tensor x) -> Tensor", NULL, NULL));
    ASSERT_OK(tn_library_def(k.defs, "going(Tensor x) -> Tensor", NULL, &going));
    ASSERT_OK(tn_add_listener(&l, &early));
    heard[0] = '\0';
    tn_registration_undo(going); /* the late one joins while this one is being told */
    EXPECT_STR(heard, "+stays ");
    ASSERT_OK(tn_library_def(k.defs, "going(Tensor x) -> Tensor", NULL, &going));
    tn_registration_undo(going);
    EXPECT_STR(heard, "+stays +going -going ");
    tn_registration_undo(early);
    tn_registration_undo(TN_MOVE(late_listener));
    kit_close(&k);
}

/* ---- finding ---- */

TEST(a_name_that_is_nearly_right_gets_a_suggestion)
{
    tn_op *op = NULL;
    EXPECT_FAIL(TN_INVALID, "Could not find schema for aten::matmull. Did you mean aten::matmul?",
                tn_op_find("aten::matmull", &op));
    EXPECT_FAIL(TN_INVALID, "Did you mean aten::add.Tensor", tn_op_find("aten::add", &op));
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

/* ---- devices ---- */

/* A claim lasts as long as the process, so this runs in a child. */
static int claim_three_devices(void *arg)
{
    (void)arg;
    tn_device_vtable v = kit_no_memory();
    static const char *const names[] = {"one", "two", "three"};
    kit k = kit_open();
    ASSERT_OK(tn_library_def(k.defs, "op(Tensor x) -> Tensor", NULL, NULL));
    for (int i = 0; i < 3; i++) {
        tn_device_type type;
        char text[128];
        ASSERT_OK(tn_device_register(names[i], &v, &type));
        tn_key key = (tn_key)(TN_KEY_CPU + (int)type);
        kit_impl(&k, "op", key, names[i]);
        test_note("%s", names[i]);
        EXPECT_OK(kit_call("t::op", kit_keys_grad(key))); /* no autograd kernel of its own */
        EXPECT_STR(kit_log, names[i]);
        EXPECT_STR(tn_key_name(key), names[i]);
        EXPECT_CONTAINS(tn_keyset_format(tn_keyset_of(key), text, sizeof text), names[i]);
    }
    tn_device_type none;
    EXPECT_FAIL(TN_INVALID, "no slot is free", tn_device_register("four", &v, &none));
    EXPECT_OK(tn_check_invariants());
    kit_close(&k);
    return 0;
}

TEST(three_devices_have_their_own_names_and_an_autograd_fallback_each)
{
    EXPECT_EQ_INT(run_in_child(claim_three_devices, NULL, 20), 0);
}

static void register_device(void *ctx)
{
    tn_device_vtable v = kit_no_memory();
    tn_device_type type;
    (void)ctx;
    destroyed++;
    EXPECT_OK(tn_device_register("second", &v, &type));
}

/* The destructor of a kernel that undid itself runs with the next registration, here a device's. */
static int register_from_destructor(void *arg)
{
    (void)arg;
    tn_device_vtable v = kit_no_memory();
    tn_device_type type;
    kit k = kit_open();
    self_undo s = {0};
    tn_kernel kernel = TN_KERNEL_INIT(undo_self);
    destroyed = 0;
    kernel.ctx = &s;
    kernel.destroy = register_device;
    ASSERT_OK(tn_library_def(k.defs, "op(Tensor x) -> Tensor", NULL, NULL));
    ASSERT_OK(tn_library_impl(k.impls, "op", TN_KEY_CPU, &kernel, &s.handle));
    EXPECT_OK(kit_call("t::op", kit_keys(TN_KEY_CPU)));
    EXPECT_OK(tn_device_register("first", &v, &type));
    EXPECT_OK(tn_check_invariants());
    EXPECT_EQ_INT(destroyed, 1);
    kit_close(&k);
    return 0;
}

TEST(a_destructor_may_register_a_device_while_a_device_is_being_registered)
{
    EXPECT_EQ_INT(run_in_child(register_from_destructor, NULL, 5), 0);
}
