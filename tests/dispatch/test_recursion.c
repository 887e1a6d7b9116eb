/* SPDX-License-Identifier: MIT */
/* No dispatch loops or hangs silently: a redispatch that does not lower the key and calls that nest
 * too deeply are refused, at once, with a message that prints the cycle; afterwards all is as
 * before. */
#include "dispatch/kit.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include "gen/redispatch.h"
#include "tenon/kernels.h"
#include "tenon/ops.h"

/* What must be as before when a call was refused. */
typedef struct state {
    int depth;
    tn_keyset included, excluded;
} state;

static state state_now(void)
{
    return (state){tn_dispatch_depth(), tn_included_keys(), tn_excluded_keys()};
}

static void expect_state(state s)
{
    EXPECT_EQ_INT(tn_dispatch_depth(), s.depth);
    EXPECT_EQ_INT(tn_included_keys(), s.included);
    EXPECT_EQ_INT(tn_excluded_keys(), s.excluded);
}

/* ---- redispatch ---- */

/* The set that the kernels below go on with; 0: their own. */
static tn_keyset go_on_with;

static tn_keyset next_set(tn_call *call)
{
    return go_on_with ? go_on_with : tn_call_keys(call);
}

static tn_status loop_typed(tn_call *call, tn_tensor *self, tn_tensor **out)
{
    return tni_re_neg(call, next_set(call), self, out);
}

static tn_status loop_array(tn_call *call, const tn_value *args, tn_value *rets)
{
    return tn_call_redispatch(call, next_set(call), args, rets);
}

static tn_status loop_stack(tn_call *call, const tn_value *args, tn_value *rets)
{
    tn_stack stack = TN_STACK_INIT;
    (void)rets;
    EXPECT_OK(tn_stack_push(&stack, args[0]));
    tn_status st = tn_op_redispatch_boxed(call, next_set(call), &stack);
    EXPECT_EQ_INT(stack.n, 1); /* untouched */
    tn_stack_clear(&stack);
    return st;
}

static tn_kernel looping(int how)
{
    tn_kernel array = TN_KERNEL_INIT(loop_array), stack = TN_KERNEL_INIT(loop_stack);
    tn_kernel kernel = how == 0 ? tn_kernel_neg(loop_typed, "mine.c", 7) : how == 1 ? array : stack;
    kernel.name = "looping";
    kernel.file = "mine.c";
    kernel.line = 7;
    return kernel;
}

TEST(a_redispatch_with_the_same_or_a_higher_key_is_refused_and_named)
{
    for (int how = 0; how < 3; how++) {
        for (int higher = 0; higher < 2; higher++) {
            tn_library *aten;
            tn_kernel kernel = looping(how);
            go_on_with = higher ? tn_keyset_of(TN_KEY_TRACER) | tn_keyset_of(TN_KEY_PRIVATE1) : 0;
            ASSERT_OK(tn_library_open(TN_LIBRARY_IMPL, "aten", TN_KEY_PRIVATE1, "x.c", 1, &aten));
            ASSERT_OK(tn_library_impl(aten, "neg", TN_KEY_NONE, &kernel, NULL));
            tn_tensor *t = kit_tensor(kit_keys(TN_KEY_PRIVATE1)), *out = NULL;
            state before = state_now();
            test_note("way %d, %s key", how, higher ? "a higher" : "the same");
            EXPECT_FAIL(TN_RECURSION, "redispatch does not lower the key", tn_neg(t, &out));
            EXPECT(out == NULL);
            EXPECT_CONTAINS(tn_last_error(), "the kernel of aten::neg was called with "
                                             "DispatchKeySet(PrivateUse1)");
            EXPECT_CONTAINS(tn_last_error(), higher ? "whose highest key Tracer is not below its "
                                                      "own key PrivateUse1"
                                                    : "whose highest key PrivateUse1 is not below "
                                                      "its own key PrivateUse1");
            EXPECT_CONTAINS(tn_last_error(),
                            higher ? "It would loop: aten::neg [PrivateUse1] in looping "
                                     "(mine.c:7) -> aten::neg [Tracer]"
                                   : "It would loop: aten::neg [PrivateUse1] in looping "
                                     "(mine.c:7) -> aten::neg [PrivateUse1]");
            EXPECT_CONTAINS(tn_last_error(), "tn_keyset_full_after");
            EXPECT_STR(tn_last_error_op(), "aten::neg");
            expect_state(before);
            EXPECT_EQ_INT(kit_refs(t), 1);
            tn_tensor_unref(t);
            tn_library_close(aten);
        }
    }
}

/* A kernel that gets a refusal may still do something else. */
static tn_status recover(tn_call *call, const tn_value *args, tn_value *rets)
{
    state before = state_now();
    EXPECT_FAIL(TN_RECURSION, "does not lower the key",
                tn_call_redispatch(call, tn_call_keys(call), args, rets));
    expect_state(before);
    tn_clear_error();
    return tn_call_redispatch(call, tn_keyset_of(TN_KEY_CPU), args, rets);
}

TEST(a_kernel_goes_on_after_a_refusal)
{
    kit k = kit_open();
    tn_kernel kernel = TN_KERNEL_INIT(recover);
    kit_def(&k, "op(Tensor x) -> Tensor");
    kit_impl(&k, "op", TN_KEY_CPU, "c");
    ASSERT_OK(tn_library_impl(k.impls, "op", TN_KEY_TRACER, &kernel, NULL));
    EXPECT_OK(kit_call("t::op", kit_keys(TN_KEY_CPU) | tn_keyset_of(TN_KEY_TRACER)));
    EXPECT_STR(kit_log, "c");
    EXPECT_EQ_INT(tn_last_status(), TN_OK);
    kit_close(&k);
}

/* ---- calls that call themselves ---- */

static tn_status call_self(tn_call *call, const tn_value *args, tn_value *rets)
{
    tn_key_guard guard = tn_exclude_keys(tn_keyset_of(TN_KEY_TRACER));
    tn_status st = tn_op_call(tn_call_op(call), args, 1, rets);
    tn_keys_restore(guard);
    return st;
}

static tn_status call_self_typed(tn_call *call, tn_tensor *self, tn_tensor **out)
{
    (void)call;
    return tn_neg(self, out);
}

TEST(a_kernel_that_calls_its_own_operator_is_stopped_and_the_cycle_is_printed)
{
    kit k = kit_open();
    tn_kernel kernel = TN_KERNEL_INIT(call_self);
    kernel.file = "mine.c";
    kernel.line = 12;
    kit_def(&k, "op(Tensor x) -> Tensor");
    ASSERT_OK(tn_library_impl(k.impls, "op", TN_KEY_CPU, &kernel, NULL));
    state before = state_now();
    EXPECT_WITHIN_SECONDS(test_sanitized() ? 2 : 0.1,
                          EXPECT_FAIL(TN_RECURSION, "t::op: dispatches are nested 1024 deep",
                                      kit_call("t::op", kit_keys(TN_KEY_CPU))));
    EXPECT_CONTAINS(tn_last_error(), "They go round in this cycle:\n"
                                     "  t::op [CPU] in call_self (mine.c:12)\n"
                                     "A kernel must go on with a redispatch to a lower key, not by "
                                     "calling its own operator again.");
    EXPECT_STR(tn_last_error_op(), "t::op");
    expect_state(before);
    kit_impl(&k, "op", TN_KEY_CPU, "c"); /* the thread is well */
    EXPECT_OK(kit_call("t::op", kit_keys(TN_KEY_CPU)));
    EXPECT_STR(kit_log, "c");
    kit_close(&k);
}

TEST(the_same_for_typed_calls)
{
    tn_library *aten;
    tn_kernel kernel = tn_kernel_neg(call_self_typed, "mine.c", 3);
    kernel.name = "call_self_typed";
    ASSERT_OK(tn_library_open(TN_LIBRARY_IMPL, "aten", TN_KEY_PRIVATE1, "x.c", 1, &aten));
    ASSERT_OK(tn_library_impl(aten, "neg", TN_KEY_NONE, &kernel, NULL));
    tn_tensor *t = kit_tensor(kit_keys(TN_KEY_PRIVATE1)), *out = NULL;
    state before = state_now();
    EXPECT_FAIL(TN_RECURSION, "aten::neg [PrivateUse1] in call_self_typed (mine.c:3)\n",
                tn_neg(t, &out));
    EXPECT(out == NULL);
    expect_state(before);
    tn_tensor_unref(t);
    tn_library_close(aten);
}

/* Calls the operator that the context names. */
static tn_status call_other(tn_call *call, const tn_value *args, tn_value *rets)
{
    return tn_op_call(kit_op(tn_call_context(call)), args, 1, rets);
}

static void define_calling(kit *k, const char *name, const char *other)
{
    char schema[64], text[32];
    tn_kernel kernel = TN_KERNEL_INIT(call_other);
    snprintf(schema, sizeof schema, "%s(Tensor x) -> Tensor", name);
    snprintf(text, sizeof text, "kernel of %s", name);
    kernel.ctx = (void *)(uintptr_t)other;
    kernel.name = text;
    kernel.file = "mine.c";
    kernel.line = name[0];
    ASSERT_OK(tn_library_def(k->defs, schema, &kernel, NULL));
}

static char asked[256];
static int hops;

/* Calls on, and at the depth of ten asks what the calls look like, instead. */
static tn_status call_or_ask(tn_call *call, const tn_value *args, tn_value *rets)
{
    if (tn_dispatch_depth() < 10)
        return call_other(call, args, rets);
    hops = tn_dispatch_cycle(asked, sizeof asked);
    TN_FAIL(TN_VALUE, "asked");
}

TEST(a_binding_can_ask_for_the_cycle_before_the_limit_comes)
{
    kit k = kit_open();
    tn_kernel kernel = TN_KERNEL_INIT(call_or_ask);
    kernel.ctx = (void *)(uintptr_t) "t::y";
    kernel.name = "kernel of x";
    kernel.file = "mine.c";
    kernel.line = 7;
    ASSERT_OK(tn_library_def(k.defs, "x(Tensor x) -> Tensor", &kernel, NULL));
    kernel.ctx = (void *)(uintptr_t) "t::x";
    kernel.name = "kernel of y";
    ASSERT_OK(tn_library_def(k.defs, "y(Tensor x) -> Tensor", &kernel, NULL));
    EXPECT_FAIL(TN_VALUE, "asked", kit_call("t::x", kit_keys(TN_KEY_CPU)));
    EXPECT_EQ_INT(hops, 2);
    EXPECT_STR(asked, "  t::x [CPU] in kernel of x (mine.c:7) ->\n"
                      "  t::y [CPU] in kernel of y (mine.c:7)");
    EXPECT_EQ_INT(tn_dispatch_cycle(asked, sizeof asked), 0);
    EXPECT_STR(asked, "");
    kit_close(&k);
}

TEST(operators_that_call_each_other_are_printed_as_a_cycle)
{
    kit k = kit_open();
    define_calling(&k, "a", "t::b");
    define_calling(&k, "b", "t::c");
    define_calling(&k, "c", "t::a");
    state before = state_now();
    EXPECT_FAIL(TN_RECURSION, "nested 1024 deep", kit_call("t::a", kit_keys(TN_KEY_CPU)));
    /* 1024 is one more than a multiple of three: the last that runs is t::a. */
    EXPECT_CONTAINS(tn_last_error(), "They go round in this cycle:\n"
                                     "  t::b [CPU] in kernel of b (mine.c:98) ->\n"
                                     "  t::c [CPU] in kernel of c (mine.c:99) ->\n"
                                     "  t::a [CPU] in kernel of a (mine.c:97)\n");
    EXPECT_STR(tn_last_error_op(), "t::a");
    expect_state(before);
    kit_close(&k);
}

TEST(a_way_that_does_not_repeat_is_printed_from_its_end)
{
    /* 1100 operators in a row. */
    kit k = kit_open();
    static char names[1101][20];
    for (int i = 0; i <= 1100; i++)
        snprintf(names[i], sizeof names[i], "t::n%d", i);
    for (int i = 0; i < 1100; i++)
        define_calling(&k, names[i] + 3, names[i + 1]);
    EXPECT_FAIL(TN_RECURSION, "t::n1024: dispatches are nested 1024 deep",
                kit_call("t::n0", kit_keys(TN_KEY_CPU)));
    EXPECT_CONTAINS(tn_last_error(), "The innermost are:\n  t::n1012 [CPU]");
    EXPECT_CONTAINS(tn_last_error(), "t::n1023 [CPU] in kernel of n1023");
    EXPECT_CONTAINS(tn_last_error(), "tn_set_dispatch_depth_limit");
    kit_close(&k);
}

/* ---- depth ---- */

/* Nests as deep as the context says. */
static tn_status nest(tn_call *call, const tn_value *args, tn_value *rets)
{
    if (tn_dispatch_depth() < *(int *)tn_call_context(call))
        return tn_op_call(tn_call_op(call), args, 1, rets);
    return tn_value_copy(&args[0], &rets[0]);
}

TEST(deep_calls_below_the_limit_work)
{
    kit k = kit_open();
    int depth;
    tn_kernel kernel = TN_KERNEL_INIT(nest);
    kernel.ctx = &depth;
    ASSERT_OK(tn_library_def(k.defs, "op(Tensor x) -> Tensor", &kernel, NULL));
    depth = 1024;
    EXPECT_OK(kit_call("t::op", kit_keys(TN_KEY_CPU)));
    depth = 1025;
    EXPECT_FAIL(TN_RECURSION, "nested 1024 deep", kit_call("t::op", kit_keys(TN_KEY_CPU)));
    EXPECT_EQ_INT(tn_dispatch_depth(), 0);
    kit_close(&k);
}

static void nest_to_16_and_17(int i, void *arg)
{
    int *depth = arg;
    (void)i;
    *depth = 16;
    EXPECT_OK(kit_call("t::op", kit_keys(TN_KEY_CPU)));
    *depth = 17;
    EXPECT_FAIL(TN_RECURSION, "nested 16 deep", kit_call("t::op", kit_keys(TN_KEY_CPU)));
    EXPECT_CONTAINS(tn_last_error(), "t::op [CPU] in nest");
}

TEST(a_new_thread_takes_the_limit_that_is_set)
{
    kit k = kit_open();
    int depth = 1;
    tn_kernel kernel = TN_KERNEL_INIT(nest);
    kernel.ctx = &depth;
    ASSERT_OK(tn_library_def(k.defs, "op(Tensor x) -> Tensor", &kernel, NULL));
    EXPECT_FAIL(TN_VALUE, "between 16 and 1048576, not 15", tn_set_dispatch_depth_limit(15));
    EXPECT_FAIL(TN_VALUE, "not -1", tn_set_dispatch_depth_limit(-1));
    EXPECT_FAIL(TN_VALUE, "not 1048577", tn_set_dispatch_depth_limit((1 << 20) + 1));
    ASSERT_OK(tn_set_dispatch_depth_limit(16));
    run_threads(1, nest_to_16_and_17, &depth);
    ASSERT_OK(tn_set_dispatch_depth_limit(1024));
    depth = 1000; /* this thread has the limit that it began with */
    EXPECT_OK(kit_call("t::op", kit_keys(TN_KEY_CPU)));
    kit_close(&k);
}

/* A thread whose stack is full long before the limit. */
static void *nest_on_small_stack(void *arg)
{
    int *depth = arg;
    *depth = 99999;
    EXPECT_FAIL(TN_RECURSION, "KiB are left of this thread's stack",
                kit_call("t::op", kit_keys(TN_KEY_CPU)));
    EXPECT_CONTAINS(tn_last_error(), "They go round in this cycle");
    EXPECT_CONTAINS(tn_last_error(), "t::op [CPU] in nest");
    EXPECT_EQ_INT(tn_dispatch_depth(), 0);
    *depth = 100; /* and goes on */
    EXPECT_OK(kit_call("t::op", kit_keys(TN_KEY_CPU)));
    return NULL;
}

TEST(calls_that_nest_until_the_stack_is_full_are_refused_with_the_cycle)
{
    kit k = kit_open();
    int depth = 1;
    tn_kernel kernel = TN_KERNEL_INIT(nest);
    kernel.ctx = &depth;
    ASSERT_OK(tn_library_def(k.defs, "op(Tensor x) -> Tensor", &kernel, NULL));
    ASSERT_OK(tn_set_dispatch_depth_limit(100000));
    pthread_attr_t small;
    pthread_t thread;
    ASSERT(pthread_attr_init(&small) == 0);
    ASSERT(pthread_attr_setstacksize(&small, 1 << 20) == 0);
    ASSERT(pthread_create(&thread, &small, nest_on_small_stack, &depth) == 0);
    pthread_join(thread, NULL);
    pthread_attr_destroy(&small);
    ASSERT_OK(tn_set_dispatch_depth_limit(1024));
    kit_close(&k);
}
