/* SPDX-License-Identifier: MIT */
/* What observers of a thread are told of calls, and when they stop being told. */
#include "dispatch/watch.h"

#include "dispatch/call.h"
#include "tenon/ops.h"

TEST(an_observer_is_told_of_each_hop_and_of_each_return)
{
    stack_of_layers l = layers_open();
    start_observing(observe);
    EXPECT_OK(negate(&l));
    stop_observing();
    static const struct {
        tn_event_kind kind;
        int depth;
        const char *op;
        tn_key key;
        unsigned slot;
    } wanted[] = {
        {TN_EVENT_CALL, 1, "aten::neg", TN_KEY_TRACER, 114},
        {TN_EVENT_REDISPATCH_BOXED, 2, "aten::neg", TN_KEY_AUTOGRAD_PRIVATE1, 109},
        {TN_EVENT_REDISPATCH, 3, "aten::neg", TN_KEY_PRIVATE1, 13},
        {TN_EVENT_CALL_BOXED, 4, "t::inner", TN_KEY_PRIVATE1, 13},
        {TN_EVENT_RETURN, 4, "t::inner", TN_KEY_PRIVATE1, 13},
        {TN_EVENT_RETURN, 3, "aten::neg", TN_KEY_PRIVATE1, 13},
        {TN_EVENT_RETURN, 2, "aten::neg", TN_KEY_AUTOGRAD_PRIVATE1, 109},
        {TN_EVENT_RETURN, 1, "aten::neg", TN_KEY_TRACER, 114},
    };
    ASSERT_EQ_INT(seen.n, sizeof wanted / sizeof wanted[0]);
    for (int i = 0; i < seen.n; i++) {
        const tn_event *e = &seen.events[i];
        test_note("event %d", i);
        EXPECT_EQ_INT(e->kind, wanted[i].kind);
        EXPECT_EQ_INT(e->depth, wanted[i].depth);
        EXPECT_STR(tn_op_name(e->op), wanted[i].op);
        EXPECT_EQ_INT(e->key, wanted[i].key);
        EXPECT_EQ_INT(e->slot, wanted[i].slot);
        EXPECT_EQ_INT(tn_keyset_highest(e->keys), e->key);
        EXPECT_EQ_INT(e->included, tn_included_keys());
        EXPECT_EQ_INT(e->status, TN_OK);
        if (e->kind == TN_EVENT_RETURN)
            continue;
        EXPECT_EQ_INT(e->n_args, 1);
        EXPECT_EQ_INT(seen.first_arg[i], tni_keys(l.t));
        bool call = e->kind == TN_EVENT_CALL || e->kind == TN_EVENT_CALL_BOXED;
        EXPECT(call ? e->keys ==
                          (((tni_keys(l.t) | e->included) & ~(e->excluded & ~TNI_BACKEND_MASK)) &
                           e->mask)
                    : e->mask == TNI_KS_FULL);
    }
    /* ADInplaceOrView is included, and the mask takes it out again. */
    EXPECT(seen.events[0].included & ~seen.events[0].mask & TNI_KS_ADINPLACE_OR_VIEW);
    EXPECT(seen.events[3].excluded & tn_keyset_of(TN_KEY_TRACER)); /* the backend's guard */
    EXPECT(seen.events[7].nanoseconds >= seen.events[4].nanoseconds);
    EXPECT(seen.events[7].nanoseconds < 3600000000000u);
    layers_close(&l);
}

TEST(an_observer_hears_how_a_call_failed)
{
    kit k = kit_open();
    kit_def(&k, "op(Tensor x) -> Tensor");
    start_observing(observe);
    EXPECT_FAIL(TN_UNSUPPORTED, "Could not run", kit_call("t::op", kit_keys(TN_KEY_CUDA)));
    stop_observing();
    EXPECT_EQ_INT(seen.n, 2);
    EXPECT_EQ_INT(seen.events[1].kind, TN_EVENT_RETURN);
    EXPECT_EQ_INT(seen.events[1].status, TN_UNSUPPORTED);
    kit_close(&k);
}

TEST(an_observer_gets_the_keys_of_every_tensor_of_a_list)
{
    kit k = kit_open();
    tn_op *op = kit_def(&k, "op(Tensor x, int n, Tensor?[] ts, Tensor? y) -> ()");
    kit_impl(&k, "op", TN_KEY_META, "m");
    tn_tensor *a = kit_tensor(kit_keys(TN_KEY_CPU)), *b = kit_tensor(kit_keys(TN_KEY_META));
    tn_tensor *const list[] = {b, NULL, a};
    tn_value args[4] = {tn_value_tensor(a), tn_value_int(1), tn_value_tensors(list, 3),
                        tn_value_none()};
    start_observing(observe);
    EXPECT_OK(tn_op_call(op, args, 4, NULL));
    stop_observing();
    EXPECT_EQ_INT(seen.events[0].n_args, 3);
    EXPECT_EQ_INT(seen.first_arg[0], tni_keys(a));
    tn_tensor_unref(a);
    tn_tensor_unref(b);
    kit_close(&k);
}

static void call_from_observer(void *ctx, const tn_event *event)
{
    observe(ctx, event);
    int depth = tn_dispatch_depth();
    tn_op *op;
    EXPECT_OK(kit_call("t::other", kit_keys(TN_KEY_CPU)));
    EXPECT_FAIL(TN_INVALID, "no::such", tn_op_find("no::such", &op));
    EXPECT_EQ_INT(tn_dispatch_depth(), depth);
}

TEST(what_an_observer_calls_is_not_observed_and_its_failures_are_its_own)
{
    kit k = kit_open();
    kit_def(&k, "op(Tensor x) -> Tensor");
    kit_def(&k, "other(Tensor x) -> Tensor");
    kit_impl(&k, "other", TN_KEY_CPU, "o");
    start_observing(call_from_observer);
    EXPECT_FAIL(TN_UNSUPPORTED, "Could not run 't::op'", kit_call("t::op", kit_keys(TN_KEY_CUDA)));
    tn_clear_error();
    kit_impl(&k, "op", TN_KEY_CPU, "c");
    EXPECT_OK(kit_call("t::op", kit_keys(TN_KEY_CPU)));
    EXPECT_EQ_INT(tn_last_status(), TN_OK);
    stop_observing();
    EXPECT_EQ_INT(seen.n, 4);
    kit_close(&k);
}

static void leave_at_first_event(void *ctx, const tn_event *event)
{
    observe(ctx, event);
    EXPECT_OK(tn_observe_thread(NULL, NULL));
}

TEST(an_observer_may_leave_inside_an_event)
{
    stack_of_layers l = layers_open();
    start_observing(leave_at_first_event);
    EXPECT_OK(negate(&l));
    EXPECT_EQ_INT(seen.n, 1);
    EXPECT_OK(negate(&l));
    EXPECT_EQ_INT(seen.n, 1);
    layers_close(&l);
}

static tn_status observe_from_here(tn_call *call, const tn_value *args, tn_value *rets)
{
    (void)call;
    EXPECT_OK(tn_observe_thread(observe, &seen));
    return tn_value_copy(&args[0], &rets[0]);
}

TEST(an_observer_that_comes_inside_a_call_does_not_hear_of_its_return)
{
    kit k = kit_open();
    kit_def_with(&k, "op(Tensor x) -> Tensor", observe_from_here, NULL);
    catch_stderr();
    seen.n = 0;
    tn_set_dispatch_trace(true); /* so that the frame is watched */
    EXPECT_OK(kit_call("t::op", kit_keys(TN_KEY_CPU)));
    stop_observing();
    (void)caught_text();
    EXPECT_EQ_INT(seen.n, 0);
    kit_close(&k);
}

static void observe_and_end(int i, void *arg)
{
    (void)i;
    (void)arg;
    EXPECT_OK(tn_observe_thread(observe, &seen));
}

TEST(a_thread_that_ends_takes_its_observer_with_it)
{
    stack_of_layers l = layers_open();
    seen.n = 0;
    run_threads(1, observe_and_end, NULL);
    EXPECT_OK(negate(&l));
    EXPECT_EQ_INT(seen.n, 0);
    EXPECT_EQ_INT((tni_watching & ~TNI_WATCH_RECORD), 0); /* and the common path is taken again */
    layers_close(&l);
}
