/* SPDX-License-Identifier: MIT */
/* Undoing registrations: what handles, contexts and listeners see of it, and
 * what a destructor may do. */
#include "dispatch/kit.h"

#include <stdio.h>
#include <string.h>

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
    EXPECT_FAIL(TN_INVALID, "Could not find schema for t::op. It is not defined, or not any more",
                tn_op_call(op, &arg, 1, &ret));
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

/* ---- destructors ---- */

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
