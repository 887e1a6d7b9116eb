/* SPDX-License-Identifier: MIT */
/* Which kernel a call runs: by key, by age, by the tensors of the call; composite kernels and
 * fallbacks. What the reference's op_registration_test.cpp asserts of it. */
#include "dispatch/kit.h"

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
