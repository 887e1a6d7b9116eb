/* SPDX-License-Identifier: MIT */
/* Which kernels a call passes through, and in which order: the thread's key sets, modes as
 * whole-key fallbacks, redispatch by key set, inference mode, and where the keys come from. What
 * the reference's backend_fallback_test.cpp and the key-set tests of op_registration_test.cpp
 * assert. */
#include "dispatch/kit.h"

#include <stdio.h>
#include <string.h>
#include "gen/redispatch.h"
#include "tenon/kernels.h"
#include "tenon/ops.h"

static void say(const char *letter)
{
    size_t n = strlen(kit_log);
    snprintf(kit_log + n, sizeof kit_log - n, "%s", letter);
}

/* Register kit_redispatching(letter). */
static void pass_on(kit *k, const char *op, tn_key key, const char *letter)
{
    tn_kernel kernel = kit_redispatching(letter);
    ASSERT_OK(tn_library_impl(k->impls, op, key, &kernel, NULL));
}

/* ---- modes: a whole-key fallback that the thread includes ---- */

static tn_status call_again_without_mode(tn_call *call, const tn_value *args, tn_value *rets)
{
    ++*(int *)tn_call_context(call);
    tn_key_guard guard = tn_exclude_keys(tn_keyset_of(TN_KEY_TESTING_ONLY_GENERIC_MODE));
    tn_status st = tn_op_call(tn_call_op(call), args, tn_call_num_arguments(call), rets);
    tn_keys_restore(guard);
    return st;
}

/* A composite kernel: calls t::inner twice. */
static tn_status call_inner_twice(tn_call *call, const tn_value *args, tn_value *rets)
{
    tn_op *inner = kit_op("t::inner");
    (void)call;
    say("o");
    for (int i = 0; i < 2; i++) {
        tn_value_clear(&rets[0]);
        tn_status st = tn_op_call(inner, args, 1, &rets[0]);
        if (st != TN_OK)
            return st;
    }
    return TN_OK;
}

static void define_outer_and_inner(kit *k)
{
    kit_def_with(k, "outer(Tensor x) -> Tensor", call_inner_twice, NULL);
    kit_def(k, "inner(Tensor x) -> Tensor");
    kit_impl(k, "inner", TN_KEY_CPU, "i");
}

TEST(a_mode_sees_each_call_that_is_made_in_it_and_not_what_it_makes_itself)
{
    kit k = kit_open();
    int count = 0;
    tn_kernel mode = TN_KERNEL_INIT(call_again_without_mode);
    mode.ctx = &count;
    define_outer_and_inner(&k);
    ASSERT_OK(tn_library_fallback(k.fallbacks, TN_KEY_TESTING_ONLY_GENERIC_MODE, &mode, NULL));
    tn_key_guard guard = tn_include_keys(tn_keyset_of(TN_KEY_TESTING_ONLY_GENERIC_MODE));
    EXPECT_OK(kit_call("t::outer", kit_keys(TN_KEY_CPU)));
    EXPECT_STR(kit_log, "oii");
    EXPECT_OK(kit_call("t::inner", kit_keys(TN_KEY_CPU)));
    EXPECT_EQ_INT(count, 2);
    tn_keys_restore(guard);
    EXPECT_OK(kit_call("t::outer", kit_keys(TN_KEY_CPU)));
    EXPECT_EQ_INT(count, 2);
    kit_close(&k);
}

static tn_tensor *wrapped;

static tn_status unwrap(tn_call *call, const tn_value *args, tn_value *rets)
{
    ++*(int *)tn_call_context(call);
    tn_value inner = args[0];
    inner.u.tensor = wrapped;
    return tn_op_call(tn_call_op(call), &inner, 1, rets);
}

TEST(a_wrapper_tensor_is_unwrapped_once_by_its_fallback)
{
    kit k = kit_open();
    int count = 0;
    tn_kernel wrapper = TN_KERNEL_INIT(unwrap);
    wrapper.ctx = &count;
    define_outer_and_inner(&k);
    ASSERT_OK(
        tn_library_fallback(k.fallbacks, TN_KEY_TESTING_ONLY_GENERIC_WRAPPER, &wrapper, NULL));
    wrapped = kit_tensor(kit_keys(TN_KEY_CPU));
    EXPECT_OK(kit_call("t::outer", tn_keyset_of(TN_KEY_TESTING_ONLY_GENERIC_WRAPPER)));
    EXPECT_STR(kit_log, "oii");
    EXPECT_EQ_INT(count, 1);
    tn_tensor_unref(wrapped);
    kit_close(&k);
}

TEST(a_fallback_that_falls_through_is_overridden_by_one_operator_alone)
{
    kit k = kit_open();
    tn_kernel through = tn_kernel_fallthrough("x.c", 1);
    tn_keyset keys = kit_keys(TN_KEY_CPU) | tn_keyset_of(TN_KEY_TESTING_ONLY_GENERIC_WRAPPER);
    kit_def(&k, "plain(Tensor x) -> Tensor");
    kit_impl(&k, "plain", TN_KEY_CPU, "p");
    kit_def(&k, "own(Tensor x) -> Tensor");
    kit_impl(&k, "own", TN_KEY_CPU, "c");
    pass_on(&k, "own", TN_KEY_TESTING_ONLY_GENERIC_WRAPPER, "w");
    ASSERT_OK(
        tn_library_fallback(k.fallbacks, TN_KEY_TESTING_ONLY_GENERIC_WRAPPER, &through, NULL));
    EXPECT_OK(kit_call("t::plain", keys));
    EXPECT_STR(kit_log, "p");
    EXPECT_OK(kit_call("t::own", keys));
    EXPECT_STR(kit_log, "wc");
    kit_close(&k);
}

/* ---- the thread's sets ---- */

TEST(guards_nest_and_excluding_beats_including)
{
    kit k = kit_open();
    const tn_keyset tracer = tn_keyset_of(TN_KEY_TRACER), vmap = tn_keyset_of(TN_KEY_VMAP_MODE);
    kit_def(&k, "op(Tensor x) -> Tensor");
    kit_impl(&k, "op", TN_KEY_CPU, "c");
    pass_on(&k, "op", TN_KEY_TRACER, "t");
    pass_on(&k, "op", TN_KEY_VMAP_MODE, "v");
    const tn_keyset included = tn_included_keys(), excluded = tn_excluded_keys();
    tn_key_guard a = tn_include_keys(tracer);
    EXPECT_OK(kit_call("t::op", kit_keys(TN_KEY_CPU)));
    EXPECT_STR(kit_log, "tc");
    tn_key_guard b = tn_include_keys(tracer | vmap);
    EXPECT_OK(kit_call("t::op", kit_keys(TN_KEY_CPU)));
    EXPECT_STR(kit_log, "vtc");
    tn_key_guard c = tn_exclude_keys(tracer);
    EXPECT_OK(kit_call("t::op", kit_keys(TN_KEY_CPU) | tracer)); /* not even the tensor's own */
    EXPECT_STR(kit_log, "vc");
    tn_key_guard d = tn_force_keys(0, vmap);
    EXPECT_EQ_INT(tn_included_keys(), 0);
    EXPECT_OK(kit_call("t::op", kit_keys(TN_KEY_CPU) | tracer | vmap));
    EXPECT_STR(kit_log, "tc");
    tn_keys_restore(d);
    tn_keys_restore(c);
    EXPECT_OK(kit_call("t::op", kit_keys(TN_KEY_CPU)));
    EXPECT_STR(kit_log, "vtc");
    tn_keys_restore(b); /* the inner guard added vmap alone */
    EXPECT_OK(kit_call("t::op", kit_keys(TN_KEY_CPU)));
    EXPECT_STR(kit_log, "tc");
    tn_keys_restore(a);
    EXPECT_EQ_INT(tn_included_keys(), included);
    EXPECT_EQ_INT(tn_excluded_keys(), excluded);
    kit_close(&k);
}

TEST(a_key_may_be_switched_without_a_guard)
{
    kit k = kit_open();
    kit_def(&k, "op(Tensor x) -> Tensor");
    kit_impl(&k, "op", TN_KEY_CPU, "c");
    kit_impl(&k, "op", TN_KEY_META, "m");
    tn_set_key_included(TN_KEY_META, true);
    EXPECT_OK(kit_call("t::op", kit_keys(TN_KEY_CPU)));
    EXPECT_STR(kit_log, "m");
    tn_set_key_included(TN_KEY_META, false);
    EXPECT_OK(kit_call("t::op", kit_keys(TN_KEY_CPU)));
    EXPECT_STR(kit_log, "c");
    pass_on(&k, "op", TN_KEY_TRACER, "t");
    tn_set_key_excluded(TN_KEY_TRACER, true);
    EXPECT_OK(kit_call("t::op", kit_keys(TN_KEY_CPU) | tn_keyset_of(TN_KEY_TRACER)));
    EXPECT_STR(kit_log, "c");
    tn_set_key_excluded(TN_KEY_TRACER, false);
    EXPECT_OK(kit_call("t::op", kit_keys(TN_KEY_CPU) | tn_keyset_of(TN_KEY_TRACER)));
    EXPECT_STR(kit_log, "tc");
    kit_close(&k);
}

/* ---- from layer to layer by key set ---- */

/* Typed and boxed kernels of aten::neg that pass on, and one that ends. */
static tn_keyset below(tn_call *call)
{
    tn_keyset ks = tn_call_keys(call);
    return ks & tn_keyset_full_after(tn_keyset_highest(ks));
}

static tn_status neg_typed(tn_call *call, tn_tensor *self, tn_tensor **out)
{
    const char *letter = tn_call_context(call);
    say(letter);
    if (letter[0] != 'c')
        return tni_re_neg(call, below(call), self, out);
    *out = tn_tensor_ref(self);
    return TN_OK;
}

static tn_status neg_array(tn_call *call, const tn_value *args, tn_value *rets)
{
    const char *letter = tn_call_context(call);
    say(letter);
    if (letter[0] != 'c')
        return tn_call_redispatch(call, below(call), args, rets);
    return tn_value_copy(&args[0], &rets[0]);
}

static tn_status neg_stack(tn_call *call, const tn_value *args, tn_value *rets)
{
    const char *letter = tn_call_context(call);
    say(letter);
    if (letter[0] == 'c')
        return tn_value_copy(&args[0], &rets[0]);
    tn_stack stack = TN_STACK_INIT;
    tn_status st = tn_stack_push(&stack, args[0]);
    if (st == TN_OK)
        st = tn_op_redispatch_boxed(call, below(call), &stack);
    if (st == TN_OK)
        rets[0] = tn_stack_pop(&stack);
    tn_stack_clear(&stack);
    return st;
}

static void register_neg(tn_library *aten, tn_key key, int how, const char *letter)
{
    tn_kernel array = TN_KERNEL_INIT(neg_array), stack = TN_KERNEL_INIT(neg_stack);
    tn_kernel kernel = how == 0   ? tn_kernel_neg(neg_typed, __FILE__, __LINE__)
                       : how == 1 ? array
                                  : stack;
    kernel.ctx = (void *)(uintptr_t)letter;
    ASSERT_OK(tn_library_impl(aten, "neg", key, &kernel, NULL));
}

TEST(tracer_autograd_and_backend_pass_on_in_every_mix_of_conventions)
{
    tn_tensor *t = kit_tensor(kit_keys_grad(TN_KEY_PRIVATE1) | tn_keyset_of(TN_KEY_TRACER));
    for (int mix = 0; mix < 27; mix++) {
        tn_library *aten;
        ASSERT_OK(tn_library_open(TN_LIBRARY_IMPL, "aten", TN_KEY_NONE, "x.c", 1, &aten));
        register_neg(aten, TN_KEY_TRACER, mix % 3, "t");
        register_neg(aten, TN_KEY_AUTOGRAD_PRIVATE1, mix / 3 % 3, "a");
        register_neg(aten, TN_KEY_PRIVATE1, mix / 9, "c");
        test_note("mix %d", mix);
        tn_tensor *out = NULL;
        tn_value arg = tn_value_tensor(t), ret;
        kit_log_clear();
        EXPECT_OK(tn_neg(t, &out));
        EXPECT_STR(kit_log, "tac");
        EXPECT(out == t);
        tn_tensor_unref(out);
        kit_log_clear();
        ASSERT_OK(tn_op_call(kit_op("aten::neg"), &arg, 1, &ret));
        EXPECT_STR(kit_log, "tac");
        EXPECT(ret.u.tensor == t);
        tn_value_clear(&ret);
        EXPECT_EQ_INT(kit_refs(t), 1);
        tn_library_close(aten);
    }
    tn_tensor_unref(t);
}

static tn_status select_backend(tn_call *call, const tn_value *args, tn_value *rets)
{
    say("b");
    EXPECT_EQ_INT(tn_keyset_highest(tn_call_keys(call)), TN_KEY_BACKEND_SELECT);
    tn_keyset ks = (tn_call_keys(call) | tn_keyset_of(TN_KEY_CPU)) &
                   tn_keyset_full_after(TN_KEY_BACKEND_SELECT);
    return tn_call_redispatch(call, ks, args, rets);
}

TEST(a_backend_select_kernel_chooses_the_backend_of_a_factory)
{
    kit k = kit_open();
    tn_op *op = kit_def(&k, "make(int n) -> int");
    tn_kernel select = TN_KERNEL_INIT(select_backend);
    tn_value n = tn_value_int(3), ret;
    kit_impl(&k, "make", TN_KEY_CPU, "c");
    ASSERT_OK(tn_library_impl(k.impls, "make", TN_KEY_BACKEND_SELECT, &select, NULL));
    kit_log_clear();
    EXPECT_OK(tn_op_call(op, &n, 1, &ret));
    EXPECT_STR(kit_log, "bc");
    EXPECT_EQ_INT(ret.u.i, 3);
    kit_close(&k);
}

static tn_status go_on_to_meta(tn_call *call, const tn_value *args, tn_value *rets)
{
    say("a");
    return tn_call_redispatch(call, tn_keyset_of(TN_KEY_META), args, rets);
}

TEST(a_redispatch_takes_the_given_set_and_not_the_tensors)
{
    kit k = kit_open();
    kit_def(&k, "op(Tensor x) -> Tensor");
    tn_kernel kernel = TN_KERNEL_INIT(go_on_to_meta);
    ASSERT_OK(tn_library_impl(k.impls, "op", TN_KEY_AUTOGRAD_CPU, &kernel, NULL));
    kit_impl(&k, "op", TN_KEY_CPU, "c");
    kit_impl(&k, "op", TN_KEY_META, "m");
    EXPECT_OK(kit_call("t::op", kit_keys_grad(TN_KEY_CPU)));
    EXPECT_STR(kit_log, "am");
    tn_key_guard guard = tn_exclude_keys(tn_keyset_of(TN_KEY_META)); /* nor the thread's sets */
    EXPECT_OK(kit_call("t::op", kit_keys_grad(TN_KEY_CPU)));
    EXPECT_STR(kit_log, "am");
    tn_keys_restore(guard);
    kit_close(&k);
}

TEST(a_redispatch_to_a_key_that_falls_through_goes_to_the_next)
{
    /* ADInplaceOrView falls through for this operator; a call never has it, a set made by hand may.
     */
    kit k = kit_open();
    tn_keyset keys = kit_keys_grad(TN_KEY_CPU);
    kit_def(&k, "op(Tensor x) -> Tensor");
    pass_on(&k, "op", TN_KEY_TRACER, "t");
    kit_impl(&k, "op", TN_KEY_CPU, "c");
    EXPECT_OK(kit_call("t::op", keys | tn_keyset_of(TN_KEY_TRACER)));
    EXPECT_STR(kit_log, "tc");
    tn_library *aten;
    ASSERT_OK(tn_library_open(TN_LIBRARY_IMPL, "aten", TN_KEY_NONE, "x.c", 1, &aten));
    tn_kernel through = tn_kernel_fallthrough("x.c", 1);
    ASSERT_OK(tn_library_impl(aten, "neg", TN_KEY_AUTOGRAD_PRIVATE1, &through, NULL));
    for (int how = 0; how < 3; how++) {
        register_neg(aten, TN_KEY_TRACER, how, "t");
        register_neg(aten, TN_KEY_PRIVATE1, how, "c");
        tn_tensor *t = kit_tensor(kit_keys_grad(TN_KEY_PRIVATE1)), *out;
        tn_key_guard guard = tn_include_keys(tn_keyset_of(TN_KEY_TRACER));
        kit_log_clear();
        ASSERT_OK(tn_neg(t, &out));
        EXPECT_STR(kit_log, "tc");
        tn_keys_restore(guard);
        tn_tensor_unref(out);
        tn_tensor_unref(t);
    }
    tn_library_close(aten);
    kit_close(&k);
}

TEST(an_operator_that_falls_through_everywhere_has_no_kernel)
{
    kit k = kit_open();
    tn_kernel through = tn_kernel_fallthrough("x.c", 1);
    kit_def(&k, "op(Tensor x) -> Tensor");
    ASSERT_OK(tn_library_impl(k.impls, "op", TN_KEY_COMPOSITE_IMPLICIT, &through, NULL));
    EXPECT_FAIL(TN_UNSUPPORTED, "t::op", kit_call("t::op", kit_keys(TN_KEY_CPU)));
    EXPECT_FAIL(TN_UNSUPPORTED, "t::op", kit_call("t::op", kit_keys_grad(TN_KEY_CPU)));
    kit_close(&k);
}

/* ---- inference mode ---- */

TEST(inference_mode_skips_autograd_and_normal_tensors_still_count_writes)
{
    kit k = kit_open();
    kit_def(&k, "op(Tensor x) -> Tensor");
    pass_on(&k, "op", TN_KEY_AUTOGRAD_CPU, "a");
    pass_on(&k, "op", TN_KEY_ADINPLACE_OR_VIEW, "v");
    kit_impl(&k, "op", TN_KEY_CPU, "c");
    EXPECT_OK(kit_call("t::op", kit_keys_grad(TN_KEY_CPU)));
    EXPECT_STR(kit_log, "avc");
    bool grad = tn_set_grad_enabled(false); /* is read by kernels, and changes no route */
    EXPECT_OK(kit_call("t::op", kit_keys_grad(TN_KEY_CPU)));
    EXPECT_STR(kit_log, "avc");
    tn_set_grad_enabled(grad);
    tn_inference_guard on = tn_inference_enter(true);
    EXPECT_OK(kit_call("t::op", kit_keys_grad(TN_KEY_CPU)));
    EXPECT_STR(kit_log, "vc");
    EXPECT_OK(kit_call("t::op", kit_keys(TN_KEY_CPU))); /* an inference tensor */
    EXPECT_STR(kit_log, "c");
    tn_inference_guard off = tn_inference_enter(false);
    EXPECT_OK(kit_call("t::op", kit_keys_grad(TN_KEY_CPU)));
    EXPECT_STR(kit_log, "avc");
    EXPECT_OK(kit_call("t::op", kit_keys(TN_KEY_CPU)));
    EXPECT_STR(kit_log, "vc");
    tn_inference_leave(off);
    EXPECT_OK(kit_call("t::op", kit_keys_grad(TN_KEY_CPU)));
    EXPECT_STR(kit_log, "vc");
    tn_inference_leave(on);
    EXPECT_OK(kit_call("t::op", kit_keys_grad(TN_KEY_CPU)));
    EXPECT_STR(kit_log, "avc");
    kit_close(&k);
}

/* ---- one key's kernel ---- */

static tn_status call_for_key(const char *op, tn_key key, tn_keyset keys)
{
    tn_stack stack = TN_STACK_INIT;
    ASSERT_OK(tn_stack_push(&stack, tn_value_int(11)));
    ASSERT_OK(tn_stack_push(&stack, tn_value_take_tensor(kit_tensor(keys))));
    kit_log_clear();
    tn_status st = tn_op_call_for_key(kit_op(op), key, &stack);
    EXPECT_EQ_INT(stack.n, 2);
    EXPECT_EQ_INT(stack.values[0].u.i, 11);
    EXPECT_EQ_INT(stack.values[1].tag, TN_TAG_TENSOR);
    tn_stack_clear(&stack);
    EXPECT_EQ_INT(tn_dispatch_depth(), 0);
    return st;
}

TEST(a_call_for_a_key_runs_what_was_registered_to_it_whatever_the_table_says)
{
    kit k = kit_open();
    tn_kernel fallback = kit_kernel("F"), through = tn_kernel_fallthrough("x.c", 1);
    kit_def(&k, "op(Tensor x) -> Tensor");
    kit_impl(&k, "op", TN_KEY_CPU, "c");
    kit_impl(&k, "op", TN_KEY_CPU, "d");
    kit_impl(&k, "op", TN_KEY_COMPOSITE_IMPLICIT, "m");
    pass_on(&k, "op", TN_KEY_AUTOGRAD, "a");
    ASSERT_OK(tn_library_fallback(k.fallbacks, TN_KEY_XLA, &fallback, NULL));
    ASSERT_OK(tn_library_impl(k.impls, "op", TN_KEY_TRACER, &through, NULL));
    tn_keyset keys = kit_keys_grad(TN_KEY_CPU);
    EXPECT_OK(call_for_key("t::op", TN_KEY_CPU, keys));
    EXPECT_STR(kit_log, "d"); /* the newest */
    EXPECT_OK(call_for_key("t::op", TN_KEY_COMPOSITE_IMPLICIT, keys));
    EXPECT_STR(kit_log, "m");
    EXPECT_OK(call_for_key("t::op", TN_KEY_AUTOGRAD, keys)); /* gets the set of the arguments */
    EXPECT_STR(kit_log, "ad");
    EXPECT_OK(call_for_key("t::op", TN_KEY_XLA, keys));
    EXPECT_STR(kit_log, "F");
    EXPECT_FAIL(TN_UNSUPPORTED, "t::op has no kernel registered to CUDA",
                call_for_key("t::op", TN_KEY_CUDA, keys));
    EXPECT_FAIL(TN_UNSUPPORTED, "t::op has no kernel registered to CompositeExplicitAutograd",
                call_for_key("t::op", TN_KEY_COMPOSITE_EXPLICIT, keys));
    EXPECT_FAIL(TN_UNSUPPORTED, "the kernel registered to Tracer falls through",
                call_for_key("t::op", TN_KEY_TRACER, keys));
    kit_close(&k);
}

/* ---- where keys come from ---- */

TEST(keys_come_from_tensors_optional_ones_and_lists_of_both)
{
    kit k = kit_open();
    tn_op *op = kit_def(&k, "op(int n, Tensor? a, Tensor[] b, Tensor?[] c, Generator? g) -> ()");
    kit_impl(&k, "op", TN_KEY_CPU, "c");
    kit_impl(&k, "op", TN_KEY_META, "m");
    kit_impl(&k, "op", TN_KEY_COMPOSITE_EXPLICIT, "u"); /* serves no tensor at all */
    tn_tensor *cpu = kit_tensor(kit_keys(TN_KEY_CPU)), *meta = kit_tensor(kit_keys(TN_KEY_META));
    tn_tensor *const one_cpu[] = {cpu}, *const mixed[] = {cpu, meta}, *const gaps[] = {NULL, meta},
                     *const nothing[] = {NULL, NULL};
    tn_value values[2] = {tn_value_none(), tn_value_tensor(meta)};
    tn_value list = {.tag = TN_TAG_LIST, .count = 2, .u.values = values};
    const struct {
        tn_value a, b, c;
        const char *who;
    } cases[] = {
        {tn_value_none(), tn_value_tensors(NULL, 0), tn_value_tensors(NULL, 0), "u"},
        {tn_value_none(), tn_value_tensors(NULL, 0), tn_value_tensors(nothing, 2), "u"},
        {tn_value_tensor(cpu), tn_value_tensors(NULL, 0), tn_value_tensors(NULL, 0), "c"},
        {tn_value_none(), tn_value_tensors(one_cpu, 1), tn_value_tensors(NULL, 0), "c"},
        {tn_value_none(), tn_value_tensors(mixed, 2), tn_value_tensors(NULL, 0), "m"},
        {tn_value_tensor(cpu), tn_value_tensors(one_cpu, 1), tn_value_tensors(gaps, 2), "m"},
        {tn_value_tensor(cpu), tn_value_tensors(NULL, 0), list, "m"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tn_value args[5] = {tn_value_int(1), cases[i].a, cases[i].b, cases[i].c,
                            tn_value_generator(tn_default_generator())};
        test_note("case %zu", i);
        kit_log_clear();
        EXPECT_OK(tn_op_call(op, args, 5, NULL));
        EXPECT_STR(kit_log, cases[i].who);
    }
    tn_tensor_unref(cpu);
    tn_tensor_unref(meta);
    kit_close(&k);
}

TEST(lists_of_lists_of_tensors_give_no_keys)
{
    /* As in the reference: such an operator dispatches as one without tensors. */
    kit k = kit_open();
    tn_op *op = kit_def(&k, "op(Tensor[][] x) -> ()");
    kit_impl(&k, "op", TN_KEY_CPU, "c");
    tn_tensor *t = kit_tensor(kit_keys(TN_KEY_CPU));
    tn_tensor *const tensors[] = {t};
    tn_value row = tn_value_tensors(tensors, 1);
    tn_value arg = {.tag = TN_TAG_LIST, .count = 1, .u.values = &row};
    EXPECT_FAIL(TN_UNSUPPORTED, "There were no tensor arguments to this function",
                tn_op_call(op, &arg, 1, NULL));
    tn_tensor_unref(t);
    kit_close(&k);
}

static tn_status linear_boxed(tn_call *call, const tn_value *args, tn_value *rets)
{
    say(tn_key_name(tn_keyset_highest(tn_call_keys(call))));
    return tn_value_copy(&args[0], &rets[0]);
}

TEST(a_typed_call_takes_keys_from_optional_tensors_and_lists_too)
{
    tn_library *aten;
    tn_kernel kernel = TN_KERNEL_INIT(linear_boxed);
    ASSERT_OK(tn_library_open(TN_LIBRARY_IMPL, "aten", TN_KEY_NONE, "x.c", 1, &aten));
    ASSERT_OK(tn_library_impl(aten, "linear", TN_KEY_PRIVATE1, &kernel, NULL));
    ASSERT_OK(tn_library_impl(aten, "linear", TN_KEY_PRIVATE2, &kernel, NULL));
    tn_tensor *a = kit_tensor(kit_keys(TN_KEY_PRIVATE1)), *out;
    tn_tensor *b = kit_tensor(kit_keys(TN_KEY_PRIVATE2));
    kit_log_clear();
    EXPECT_OK(tn_linear(a, a, NULL, &out));
    EXPECT_STR(kit_log, "PrivateUse1");
    tn_tensor_unref(out);
    kit_log_clear();
    EXPECT_OK(tn_linear(a, a, b, &out));
    EXPECT_STR(kit_log, "PrivateUse2");
    tn_tensor_unref(out);
    tn_tensor_unref(a);
    tn_tensor_unref(b);
    tn_library_close(aten);
}

TEST(a_key_set_without_a_backend_bit_goes_to_the_cpu)
{
    kit k = kit_open();
    kit_def(&k, "op(Tensor x) -> Tensor");
    kit_impl(&k, "op", TN_KEY_CPU, "c");
    tn_keyset dense = tn_keyset_remove_backend(tn_keyset_of(TN_KEY_CPU), 0);
    EXPECT_EQ_INT(tn_keyset_slot(dense), 1);
    EXPECT_OK(kit_call("t::op", dense));
    EXPECT_STR(kit_log, "c");
    kit_close(&k);
}

static tn_status top_layer(tn_call *call, const tn_value *args, tn_value *rets)
{
    tn_keyset ks = tn_call_keys(call);
    say("p");
    /* Everything below a key always contains this one, so it must be taken out by hand. */
    EXPECT_FAIL(
        TN_RECURSION, "does not lower the key",
        tn_call_redispatch(call, ks & tn_keyset_full_after(TN_KEY_PYTHON_DISPATCHER), args, rets));
    return tn_call_redispatch(call, tn_keyset_remove(ks, TN_KEY_PYTHON_DISPATCHER), args, rets);
}

TEST(the_highest_layer_takes_itself_out_of_the_set)
{
    kit k = kit_open();
    tn_kernel kernel = TN_KERNEL_INIT(top_layer);
    kit_def(&k, "op(Tensor x) -> Tensor");
    kit_impl(&k, "op", TN_KEY_CPU, "c");
    ASSERT_OK(tn_library_impl(k.impls, "op", TN_KEY_PYTHON_DISPATCHER, &kernel, NULL));
    tn_key_guard guard = tn_include_keys(tn_keyset_of(TN_KEY_PYTHON_DISPATCHER));
    EXPECT_OK(kit_call("t::op", kit_keys(TN_KEY_CPU)));
    EXPECT_STR(kit_log, "pc");
    tn_keys_restore(guard);
    kit_close(&k);
}
