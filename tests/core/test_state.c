/* SPDX-License-Identifier: MIT */
/* tests/core/test_state.c: what is promised about a thread's key sets and modes. */
#include "harness/test.h"

#include "core/state.h"
#include "core/tensor.h"

static const tn_keyset meta_set = UINT64_C(0x18000);

static void expect_defaults(void)
{
    EXPECT(tn_included_keys() == TNI_DEFAULT_INCLUDED);
    EXPECT(tn_excluded_keys() == TNI_DEFAULT_EXCLUDED);
    EXPECT(tn_grad_enabled() && !tn_inference_mode_enabled());
}

static void check_fresh_thread(int i, void *arg)
{
    (void)i;
    (void)arg;
    expect_defaults();
}

TEST(a_new_thread_starts_with_the_defaults)
{
    tn_key_guard guard = tn_exclude_keys(TNI_KS_AUTOGRAD);
    (void)tn_set_grad_enabled(false);
    run_threads(2, check_fresh_thread, NULL);
    (void)tn_set_grad_enabled(true);
    tn_keys_restore(guard);
    expect_defaults();
}

TEST(a_guard_takes_away_exactly_what_it_added)
{
    tn_key_guard outer = tn_include_keys(meta_set);
    EXPECT(tn_included_keys() == (TNI_DEFAULT_INCLUDED | meta_set));
    tn_key_guard inner = tn_include_keys(meta_set); /* nothing new */
    tn_keys_restore(inner);
    EXPECT(tn_included_keys() == (TNI_DEFAULT_INCLUDED | meta_set));
    tn_set_key_included(TN_KEY_PYTHON, true); /* by hand, inside: survives */
    tn_keys_restore(outer);
    EXPECT(tn_included_keys() == (TNI_DEFAULT_INCLUDED | tn_keyset_of(TN_KEY_PYTHON)));
    tn_set_key_included(TN_KEY_PYTHON, false);

    outer = tn_exclude_keys(TNI_BELOW_ADINPLACE_OR_VIEW);
    EXPECT(tn_excluded_keys() == (TNI_DEFAULT_EXCLUDED | TNI_BELOW_ADINPLACE_OR_VIEW));
    EXPECT(tn_included_keys() == TNI_DEFAULT_INCLUDED);
    tn_keys_restore(outer);
    expect_defaults();
}

TEST(forcing_overwrites_both_sets_and_restores_both)
{
    tn_key_guard guard = tn_force_keys(meta_set, 0);
    EXPECT(tn_included_keys() == meta_set && tn_excluded_keys() == 0);
    tn_key_guard inner = tn_force_keys(0, UINT64_MAX);
    EXPECT(tn_excluded_keys() == TNI_KS_FULL);
    tn_keys_restore(inner);
    EXPECT(tn_included_keys() == meta_set && tn_excluded_keys() == 0);
    tn_keys_restore(guard);
    expect_defaults();
}

TEST(switching_a_backend_key_off_leaves_no_stray_backend_bit)
{
    tn_set_key_included(TN_KEY_META, true);
    EXPECT(tn_included_keys() == (TNI_DEFAULT_INCLUDED | meta_set));
    tn_set_key_included(TN_KEY_META, false);
    expect_defaults();
    tn_set_key_excluded(TN_KEY_FUNCTIONALIZE, true);
    EXPECT(tn_excluded_keys() & tn_keyset_of(TN_KEY_FUNCTIONALIZE));
    tn_set_key_excluded(TN_KEY_FUNCTIONALIZE, false);
    tn_set_key_excluded(TN_KEY_AUTOCAST_CPU, false); /* an autocast region */
    EXPECT(!(tn_excluded_keys() & tn_keyset_of(TN_KEY_AUTOCAST_CPU)));
    tn_set_key_excluded(TN_KEY_AUTOCAST_CPU, true);
    expect_defaults();
}

TEST(exclusion_beats_inclusion)
{
    tn_key_guard in = tn_include_keys(tn_keyset_of(TN_KEY_PYTHON));
    tn_key_guard ex = tn_exclude_keys(tn_keyset_of(TN_KEY_PYTHON));
    EXPECT(!(tni_effective_keys(&tni_tls, meta_set) & tn_keyset_of(TN_KEY_PYTHON)));
    EXPECT((tni_effective_keys(&tni_tls, meta_set) & meta_set) == meta_set);
    tn_keys_restore(ex);
    EXPECT(tni_effective_keys(&tni_tls, 0) & tn_keyset_of(TN_KEY_PYTHON));
    tn_keys_restore(in);
    uint64_t old = tni_exclude(&tni_tls, TNI_KS_AUTOGRAD);
    EXPECT(tn_excluded_keys() == (TNI_DEFAULT_EXCLUDED | TNI_KS_AUTOGRAD));
    tni_tls.excluded_xor = old;
    old = tni_include(&tni_tls, meta_set);
    EXPECT(tn_included_keys() == (TNI_DEFAULT_INCLUDED | meta_set));
    tni_tls.included_xor = old;
    expect_defaults();
}

TEST(grad_mode_does_not_touch_keys)
{
    EXPECT(tn_set_grad_enabled(false) == true);
    EXPECT(!tn_grad_enabled());
    EXPECT(tn_included_keys() == TNI_DEFAULT_INCLUDED);
    EXPECT(tn_excluded_keys() == TNI_DEFAULT_EXCLUDED);
    EXPECT(tn_set_grad_enabled(true) == false);
    expect_defaults();
}

TEST(inference_mode_sets_modes_and_keys_and_restores_them)
{
    tn_inference_guard guard = tn_inference_enter(true);
    EXPECT(tn_inference_mode_enabled() && !tn_grad_enabled());
    EXPECT(tni_tls.no_forward_grad && tni_tls.serial_backward);
    EXPECT(tn_included_keys() == (TNI_DEFAULT_INCLUDED & ~TNI_KS_ADINPLACE_OR_VIEW));
    EXPECT(tn_excluded_keys() == (TNI_DEFAULT_EXCLUDED | TNI_KS_AUTOGRAD));
    EXPECT(!(tn_excluded_keys() & TNI_KS_ADINPLACE_OR_VIEW));
    tn_inference_leave(guard);
    EXPECT(!tni_tls.no_forward_grad && !tni_tls.serial_backward);
    expect_defaults();
}

TEST(switching_inference_mode_off_inside_turns_grad_mode_on)
{
    (void)tn_set_grad_enabled(false);
    tn_inference_guard outer = tn_inference_enter(true);
    tn_inference_guard inner = tn_inference_enter(false);
    expect_defaults();
    tn_inference_leave(inner);
    EXPECT(tn_inference_mode_enabled() && !tn_grad_enabled());
    (void)tn_set_grad_enabled(true); /* flips the flag, and the guard puts back what was outside */
    tn_inference_leave(outer);
    EXPECT(!tn_grad_enabled() && !tn_inference_mode_enabled());
    (void)tn_set_grad_enabled(true);
    expect_defaults();
}

TEST(a_tensor_made_in_inference_mode_is_an_inference_tensor)
{
    int64_t sizes[] = {2};
    tn_tensor *normal = NULL, *inference = NULL, *view = NULL;
    ASSERT_OK(tni_tensor_new(1, sizes, NULL, TN_DTYPE_F32, TN_CPU, &normal));
    tn_inference_guard guard = tn_inference_enter(true);
    ASSERT_OK(tni_tensor_new(1, sizes, NULL, TN_DTYPE_F32, TN_CPU, &inference));
    /* A view has the keys of what it looks at, whatever the mode. */
    ASSERT_OK(tni_tensor_alias(normal, 1, sizes, normal->strides, 0, &view));
    EXPECT_OK(tni_tensor_bump_version(inference)); /* inside, nothing is counted and all is well */
    EXPECT_OK(tni_tensor_bump_version(normal));
    EXPECT_OK(tn_tensor_set_requires_grad(inference, true));
    EXPECT_OK(tn_tensor_set_requires_grad(inference, false));
    tn_inference_leave(guard);
    EXPECT(tn_tensor_is_inference(inference) && !tn_tensor_is_inference(normal));
    EXPECT(!tn_tensor_is_inference(view) && !tn_tensor_is_inference(NULL));
    uint32_t version = 77;
    EXPECT_FAIL(TN_INVALID, "Inference tensors do not track version counter.",
                tn_tensor_version(inference, &version));
    EXPECT_EQ_INT(version, 77);
    EXPECT_FAIL(TN_INVALID,
                "Inplace update to inference tensor outside InferenceMode is not allowed.You can "
                "make a clone to get a normal tensor before doing inplace update.See "
                "https://github.com/pytorch/rfcs/pull/17 for more details.",
                tni_tensor_bump_version(inference));
    EXPECT_FAIL(TN_INVALID,
                "Setting requires_grad=True on inference tensor outside InferenceMode is not "
                "allowed.",
                tn_tensor_set_requires_grad(inference, true));
    EXPECT_OK(tn_tensor_version(normal, &version));
    EXPECT_EQ_INT(version, 1);
    tn_tensor_unref(view);
    tn_tensor_unref(normal);
    tn_tensor_unref(inference);
}
