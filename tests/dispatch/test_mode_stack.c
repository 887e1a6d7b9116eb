/* SPDX-License-Identifier: MIT */
/* Modes and handled tensors: who sees a call, in which order, and what is off meanwhile. */
#include "dispatch/kit.h"
#include "tenon/autograd.h"
#include "tenon/fake.h"
#include "tenon/mode.h"
#include "tenon/ops.h"
#include "tenon/recorder.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static _Thread_local char seen[512];

static void say(const char *letter, const char *name)
{
    size_t n = strlen(seen);
    snprintf(seen + n, sizeof seen - n, "%s(%s) ", letter, strstr(name, "::") + 2);
}

static tn_status log_and_go_on(void *ctx, tn_call *call, const tn_value *args, tn_value *rets)
{
    say(ctx, tn_op_name(tn_call_op(call)));
    return tn_call_mode_go_on(call, args, rets);
}

static tn_status refuse(void *ctx, tn_call *call, const tn_value *args, tn_value *rets)
{
    (void)call, (void)args, (void)rets;
    return tn_fail(TN_VALUE, "%s does not want this", (const char *)ctx);
}

static tn_call_mode *mode_of(tn_call_mode_fn fn, const char *letter)
{
    tn_call_mode *mode = NULL;
    ASSERT_OK(tn_call_mode_new(fn, (void *)(uintptr_t)letter, NULL, &mode));
    return mode;
}

static void push(tn_call_mode_fn fn, const char *letter)
{
    tn_call_mode *mode = mode_of(fn, letter);
    ASSERT_OK(tn_call_mode_push(mode));
    tn_call_mode_unref(mode);
    seen[0] = 0;
}

static tn_tensor *ones(void)
{
    tn_tensor *t = NULL;
    const float data[] = {1, 2, 3, 4};
    ASSERT_OK(tn_tensor_from_data(data, 2, (const int64_t[]){2, 2}, TN_DTYPE_F32, &t));
    return t;
}

TEST(a_mode_sees_calls_and_is_off_while_it_is_asked)
{
    tn_tensor *x = ones(), *y = NULL;
    push(log_and_go_on, "a");
    ASSERT_OK(tn_mm(x, x, &y));
    EXPECT_STR(seen, "a(mm) ");
    EXPECT_NEAR(((const float *)tn_tensor_data(y))[0], 7, 0);
    tn_call_mode_unref(tn_call_mode_pop());
    tn_tensor_unref(y);
    ASSERT_OK(tn_mm(x, x, &y));
    EXPECT_STR(seen, "a(mm) ");
    ASSERT(tn_call_mode_pop() == NULL);
    tn_tensor_unref(x);
    tn_tensor_unref(y);
}

TEST(the_innermost_mode_is_asked_first_and_then_the_next_one_out)
{
    tn_tensor *x = ones(), *y = NULL;
    push(log_and_go_on, "a");
    push(log_and_go_on, "b");
    EXPECT_EQ_INT(tn_call_mode_count(), 2);
    EXPECT_STR(tn_call_mode_context(tn_call_mode_at(0)), "a");
    ASSERT(tn_call_mode_at(2) == NULL);
    ASSERT_OK(tn_mm(x, x, &y));
    EXPECT_STR(seen, "b(mm) a(mm) ");
    tn_call_mode_unref(tn_call_mode_pop());
    tn_call_mode_unref(tn_call_mode_pop());
    tn_tensor_unref(x);
    tn_tensor_unref(y);
}

TEST(composite_operators_are_taken_apart_and_gradients_tracked_above_a_mode)
{
    tn_tensor *x = ones(), *y = NULL;
    ASSERT_OK(tn_tensor_set_requires_grad(x, true));
    push(log_and_go_on, "a");
    ASSERT_OK(tn_matmul(x, x, &y));
    EXPECT_STR(seen, "a(mm) ");
    ASSERT(tn_tensor_requires_grad(y));
    tn_call_mode_unref(tn_call_mode_pop());
    tn_tensor_unref(x);
    tn_tensor_unref(y);
}

TEST(a_failure_of_a_handler_is_the_failure_of_the_call_and_the_mode_stays)
{
    tn_tensor *x = ones(), *y = NULL;
    push(refuse, "b");
    for (int i = 0; i < 2; i++) {
        EXPECT_EQ_INT(tn_mm(x, x, &y), TN_VALUE);
        EXPECT_STR(tn_last_error(), "b does not want this");
        EXPECT_EQ_INT(tn_call_mode_count(), 1);
    }
    tn_call_modes_guard guard = tn_call_modes_off();
    ASSERT_OK(tn_mm(x, x, &y));
    tn_call_modes_restore(guard);
    EXPECT_EQ_INT(tn_call_mode_count(), 1);
    tn_call_mode_unref(tn_call_mode_pop());
    tn_tensor_unref(x);
    tn_tensor_unref(y);
}

TEST(of_a_mode_and_a_fake_mode_the_inner_one_answers)
{
    tn_fake_mode *fake = NULL;
    tn_tensor *x = NULL, *y = NULL;
    const tn_tensor_opts opts = tn_opts(TN_DTYPE_F32, TN_CPU);
    ASSERT_OK(tn_fake_mode_new(NULL, &fake));
    tn_fake_guard guard = tn_fake_enter(fake);
    push(log_and_go_on, "a");
    ASSERT_OK(tn_ones((const int64_t[]){2, 2}, 2, &opts, &x));
    seen[0] = 0;
    ASSERT_OK(tn_mm(x, x, &y));
    EXPECT_STR(seen, "a(mm) ");
    ASSERT(tn_is_fake(y));
    tn_tensor_unref(y);
    tn_call_mode_unref(tn_call_mode_pop());
    tn_fake_leave(guard);

    push(log_and_go_on, "a");
    guard = tn_fake_enter(fake);
    ASSERT_OK(tn_mm(x, x, &y));
    EXPECT_STR(seen, "");
    tn_fake_leave(guard);
    tn_call_mode_unref(tn_call_mode_pop());
    tn_tensor_unref(x);
    tn_tensor_unref(y);
    tn_fake_mode_unref(fake);
}

static tn_status answer_with_first(void *ctx, tn_call *call, const tn_value *args, tn_value *rets)
{
    (void)ctx;
    say("h", tn_op_name(tn_call_op(call)));
    rets[0] = tn_value_take_tensor(tn_tensor_ref(args[0].u.tensor));
    return TN_OK;
}

TEST(a_bare_number_is_known_among_tensors)
{
    tn_tensor *x = ones(), *number = NULL, *scalar = NULL;
    ASSERT_OK(tn_tensor_from_number(tn_int(3), &number));
    ASSERT_OK(tn_tensor_from_scalar(tn_int(3), TN_DTYPE_NONE, &scalar));
    EXPECT(tn_tensor_is_number(number));
    EXPECT(!tn_tensor_is_number(scalar) && !tn_tensor_is_number(x) && !tn_tensor_is_number(NULL));
    tn_tensor_unref(x);
    tn_tensor_unref(number);
    tn_tensor_unref(scalar);
}

TEST(calls_with_a_handled_tensor_go_to_the_handler)
{
    tn_tensor *shell = NULL, *x = ones(), *y = NULL;
    seen[0] = 0;
    ASSERT_OK(tn_tensor_new_shell(2, (const int64_t[]){2, 2}, NULL, TN_DTYPE_F32, TN_CPU, &shell));
    ASSERT(tn_tensor_is_handled(shell) && !tn_tensor_is_handled(x));
    EXPECT_EQ_INT(tn_tensor_device(shell).type, TN_DEVICE_CPU);
    EXPECT_EQ_INT(tn_mm(shell, x, &y), TN_UNSUPPORTED);
    ASSERT_OK(tn_set_tensor_handler(answer_with_first, NULL));
    ASSERT_OK(tn_mm(shell, x, &y));
    ASSERT(y == shell);
    EXPECT_STR(seen, "h(mm) ");
    tn_tensor_unref(y);
    push(log_and_go_on, "a");
    ASSERT_OK(tn_mm(shell, x, &y));
    EXPECT_STR(seen, "a(mm) h(mm) ");
    tn_call_mode_unref(tn_call_mode_pop());
    ASSERT_OK(tn_set_tensor_handler(NULL, NULL));
    tn_tensor_unref(y);
    tn_tensor_unref(x);
    tn_tensor_unref(shell);
}

static int destroyed;

static void count_destroyed(void *ctx)
{
    (void)ctx;
    destroyed++;
}

TEST(a_mode_goes_with_its_last_reference)
{
    tn_call_mode *mode = NULL;
    ASSERT_OK(tn_call_mode_new(refuse, NULL, count_destroyed, &mode));
    ASSERT_OK(tn_call_mode_push(mode));
    tn_call_mode_unref(mode);
    EXPECT_EQ_INT(destroyed, 0);
    tn_call_mode_unref(tn_call_mode_pop());
    EXPECT_EQ_INT(destroyed, 1);
    EXPECT_EQ_INT(tn_call_mode_new(NULL, NULL, NULL, &mode), TN_INVALID);
    EXPECT_EQ_INT(tn_call_mode_push(NULL), TN_INVALID);
}

TEST(an_operator_says_its_tags)
{
    tn_op *op = NULL;
    ASSERT_OK(tn_op_find("aten::nonzero", &op));
    ASSERT(strstr(tn_op_tags(op), "dynamic_output_shape") != NULL);
    EXPECT_STR(tn_op_tags(NULL), "");
}

/* ---- labels ---- */

static char *report;

static void look_at_myself(void)
{
    tn_string_free(report);
    report = NULL;
    tn_doctor_opts opts = TN_DOCTOR_OPTS_INIT;
    opts.interval_ms = 1;
    ASSERT_OK(tn_doctor_process((int)getpid(), &opts, &report));
}

static tn_status answer_with_label(void *ctx, tn_call *call, const tn_value *args, tn_value *rets)
{
    tn_call_set_label(call, NULL);
    tn_call_set_label(call, ctx);
    look_at_myself();
    return tn_call_mode_go_on(call, args, rets);
}

TEST(a_label_shows_who_answers_a_call_until_it_has_returned)
{
    tn_call_label *label = NULL;
    char name[] = "their_mode", file[] = "theirs.lua";
    ASSERT_OK(tn_call_label_new(name, file, 12, &label));
    memset(name, 'x', sizeof name - 1); /* copied */
    memset(file, 'x', sizeof file - 1);
    tn_tensor *x = ones(), *y = NULL;
    tn_call_mode *mode = NULL;
    ASSERT_OK(tn_call_mode_new(answer_with_label, label, NULL, &mode));
    ASSERT_OK(tn_call_mode_push(mode));
    ASSERT_OK(tn_mm(x, x, &y));
    tn_call_mode_unref(tn_call_mode_pop());
    tn_call_mode_unref(mode);
    EXPECT_CONTAINS(report, "key Python, inside the kernel");
    EXPECT_CONTAINS(report, "kernel their_mode (theirs.lua:12)");
    look_at_myself();
    EXPECT(strstr(report, "their_mode") == NULL);
    tn_string_free(report);
    report = NULL;
    tn_call_label_free(label);
    tn_tensor_unref(x);
    tn_tensor_unref(y);
}

static tn_status label_myself(tn_call *call, const tn_value *args, tn_value *rets)
{
    tn_call_label *ctx = tn_call_context(call);
    (void)args, (void)rets;
    tn_call_set_label(call, ctx);
    return tn_call_context(call) == ctx ? TN_OK : TN_INTERNAL;
}

TEST(a_kernel_keeps_its_own_name_and_context_whatever_label_is_set)
{
    kit k = kit_open();
    tn_call_label *label = NULL;
    ASSERT_OK(tn_call_label_new("label", NULL, 0, &label));
    kit_def_with(&k, "plain(Tensor x) -> ()", label_myself, label);
    EXPECT_OK(kit_call("t::plain", kit_keys(TN_KEY_CPU)));
    kit_close(&k);
    tn_call_label_free(label);
    tn_call_label_free(NULL);
    EXPECT_EQ_INT(tn_call_label_new(NULL, "x", 1, &label), TN_INVALID);
    EXPECT_EQ_INT(tn_call_label_new("x", "x", 1, NULL), TN_INVALID);
}

TEST(allocations_of_modes_fail_in_turn_and_leave_nothing)
{
    tn_call_mode *first = mode_of(refuse, "warm");
    ASSERT_OK(tn_call_mode_push(first));
    tn_call_mode_unref(tn_call_mode_pop());
    tn_status rc = TN_INTERNAL;
    int64_t before = tni_test_live;
    WITH_EACH_ALLOCATION_FAILING(rc)
    {
        tn_call_mode *mode = NULL;
        tn_tensor *shell = NULL;
        tn_call_label *label = NULL;
        rc = tn_call_label_new("label", "file", 1, &label);
        tn_call_label_free(label);
        if (rc == TN_OK)
            rc = tn_call_mode_new(refuse, NULL, NULL, &mode);
        if (rc == TN_OK)
            rc = tn_call_mode_push(mode);
        if (rc == TN_OK)
            tn_call_mode_unref(tn_call_mode_pop());
        tn_call_mode_unref(mode);
        if (rc == TN_OK)
            rc = tn_tensor_new_shell(1, (const int64_t[]){2}, NULL, TN_DTYPE_F32, TN_CPU, &shell);
        tn_tensor_unref(shell);
        EXPECT_EQ_INT(tni_test_live, before);
        EXPECT_EQ_INT(tn_call_mode_count(), 0);
    }
    tn_call_mode_unref(first);
}
