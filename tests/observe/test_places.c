/* SPDX-License-Identifier: MIT */
/* tests/observe/test_places.c: what counts as movement, for the watchdog and for the doctor: from
 * looks that are made up, at times that are made up, so that no machine is too slow for it; and
 * from looks at this program itself. */
#include <stdlib.h>
#include <string.h>

#include "harness/test.h"
#include "base/clock.h"
#include "observe/places.h"
#include "observe/verdict.h"
#include "tenon/dispatch.h"
#include "tenon/ops.h"
#include "tenon/recorder.h"

#define SECOND UINT64_C(1000000000)

/* A thread that is in two frames, 100 and 101 seconds after the machine started. */
typedef struct standing {
    tni_seen_thread thread;
    tni_flight_frame frames[TNI_SEEN_OUTER + TNI_SEEN_INNER];
} standing;

static void frame_is(tni_flight_frame *f, uint32_t depth, uint64_t op, uint64_t stamp)
{
    memset(f, 0, sizeof *f);
    f->op = op;
    f->depth = depth;
    f->kind = TN_EVENT_CALL;
    f->stage = TNI_STAGE_INSIDE;
    f->stamp = stamp;
}

static void begin(standing *s)
{
    memset(s, 0, sizeof *s);
    s->thread.block.tid = 7;
    s->thread.block.limit = 1024;
    s->thread.frames = s->frames;
    s->thread.depth = s->thread.n_frames = 2;
    s->thread.state = 'S';
    frame_is(&s->frames[0], 0, 0x1000, 100 * SECOND);
    frame_is(&s->frames[1], 1, 0x2000, 101 * SECOND);
}

/* The innermost frame made a call, which has ended. */
static void calls(standing *s, uint64_t op, uint64_t stamp, tn_status status)
{
    frame_is(&s->thread.last[0], s->thread.depth, op, stamp);
    s->thread.last[0].stage = TNI_STAGE_ENDED;
    s->thread.last[0].status = (uint8_t)status;
    s->thread.n_last = 1;
}

/* Calls of two operators that call each other, @p depth deep. */
static void nests(standing *s, uint32_t depth)
{
    const uint32_t most = TNI_SEEN_OUTER + TNI_SEEN_INNER;
    s->thread.depth = depth;
    s->thread.n_frames = depth < most ? depth : most;
    for (uint32_t i = 0; i < s->thread.n_frames; i++) {
        uint32_t at = i < TNI_SEEN_OUTER ? i : i + depth - s->thread.n_frames;
        frame_is(&s->frames[i], at, 0x1000 * (1 + at % 2), (100 + at) * SECOND);
    }
}

/* For how long it has stood there when it is looked at once more, at @p now. */
static uint64_t stood(tni_places *places, const standing *s, uint64_t now)
{
    const tni_place *p = tni_places_look(places, &s->thread, now, SECOND, 5 * SECOND);
    ASSERT(p);
    return now - p->since;
}

TEST(a_thread_that_stays_in_a_frame_has_stood_since_it_was_first_seen_there)
{
    tni_places places = {NULL, 0, 0};
    standing s;
    begin(&s);
    EXPECT_EQ_INT(stood(&places, &s, 200 * SECOND), 0);
    EXPECT_EQ_INT(stood(&places, &s, 204 * SECOND), 4 * SECOND);
    s.thread.block.calls++;
    EXPECT_EQ_INT(stood(&places, &s, 205 * SECOND), 0);
    tni_places_clear(&places);
}

TEST(calls_that_come_and_go_inside_a_running_operator_are_movement)
{
    tni_places places = {NULL, 0, 0};
    standing s;
    begin(&s);
    for (uint64_t now = 200; now < 220; now++) {
        calls(&s, 0x3000, now * SECOND, TN_OK);
        EXPECT_EQ_INT(stood(&places, &s, now * SECOND), 0);
    }
    EXPECT_EQ_INT(stood(&places, &s, 225 * SECOND), 6 * SECOND);
    tni_places_clear(&places);
}

TEST(what_a_call_of_a_call_does_is_movement_too)
{
    tni_places places = {NULL, 0, 0};
    standing s;
    begin(&s);
    calls(&s, 0x3000, 150 * SECOND, TN_OK);
    s.thread.last[0].kind = TN_EVENT_REDISPATCH; /* it has no stamp of its own */
    for (uint64_t now = 200; now < 210; now++) {
        frame_is(&s.thread.last[1], 3, 0x4000, now * SECOND);
        s.thread.n_last = 2;
        EXPECT_EQ_INT(stood(&places, &s, now * SECOND), 0);
    }
    tni_places_clear(&places);
}

TEST(a_call_that_always_fails_in_the_same_way_is_no_movement)
{
    tni_places places = {NULL, 0, 0};
    standing s;
    begin(&s);
    for (uint64_t now = 200; now < 220; now++) {
        calls(&s, 0x3000, now * SECOND, TN_RECURSION);
        EXPECT_EQ_INT(stood(&places, &s, now * SECOND), (now - 200) * SECOND);
    }
    calls(&s, 0x3000, 220 * SECOND, TN_OK);
    EXPECT_EQ_INT(stood(&places, &s, 220 * SECOND), 0);
    tni_places_clear(&places);
}

TEST(dispatches_that_nest_deeper_and_deeper_in_a_cycle_are_no_movement)
{
    tni_places places = {NULL, 0, 0};
    standing s;
    begin(&s);
    for (uint32_t i = 0; i < 9; i++) {
        nests(&s, 40 + 100 * i);
        EXPECT_EQ_INT(stood(&places, &s, (200 + i) * SECOND), i * SECOND);
    }
    tni_places_clear(&places);
}

TEST(a_cycle_that_has_come_to_the_limit_of_depth_and_goes_round_there_is_no_movement)
{
    tni_places places = {NULL, 0, 0};
    standing s;
    begin(&s);
    nests(&s, 1020);
    EXPECT_EQ_INT(stood(&places, &s, 200 * SECOND), 0);
    for (uint32_t i = 1; i < 9; i++) {
        nests(&s, 1020 - 2 * i);
        EXPECT_EQ_INT(stood(&places, &s, (200 + i) * SECOND), i * SECOND);
    }
    tni_places_clear(&places);
}

TEST(backward_passes_that_nest_deeper_and_deeper_are_no_movement)
{
    tni_places places = {NULL, 0, 0};
    standing s;
    begin(&s);
    s.thread.depth = s.thread.n_frames = 0;
    for (uint32_t i = 0; i < TNI_FLIGHT_PASSES; i++)
        s.thread.block.passes[i].id = i + 1;
    for (uint32_t i = 0; i < 9; i++) {
        s.thread.block.n_passes = 30 + 10 * i;
        s.thread.block.calls += 7;
        EXPECT_EQ_INT(stood(&places, &s, (200 + i) * SECOND), i * SECOND);
    }
    s.thread.block.n_passes = 50; /* some have ended */
    EXPECT_EQ_INT(stood(&places, &s, 209 * SECOND), 0);
    tni_places_clear(&places);
}

TEST(a_recursion_that_comes_back_is_movement)
{
    tni_places places = {NULL, 0, 0};
    standing s;
    begin(&s);
    for (uint32_t i = 0; i < 9; i++) {
        nests(&s, 100 - 2 * i);
        EXPECT_EQ_INT(stood(&places, &s, (200 + i) * SECOND), 0);
    }
    tni_places_clear(&places);
}

TEST(time_without_a_processor_is_not_counted)
{
    tni_places places = {NULL, 0, 0};
    standing s;
    begin(&s);
    EXPECT_EQ_INT(stood(&places, &s, 200 * SECOND), 0);
    s.thread.state = 'R';
    EXPECT_EQ_INT(stood(&places, &s, 201 * SECOND), 0);
    s.thread.cpu_ns += SECOND;
    EXPECT_EQ_INT(stood(&places, &s, 202 * SECOND), SECOND);
    tni_places_clear(&places);
}

/* ---- this program itself ---- */

typedef struct looks {
    tn_status status;
    bool moved;
    bool made_calls;
    char verdict[512];
    tni_verdict_kind kind;
} looks;

static looks found;

/* So that two stamps differ. */
static void await_tick(void)
{
    uint64_t then = tni_coarse_ns();
    while (tni_coarse_ns() == then)
        ;
}

/* A kernel that is looked at twice; in between it calls an operator, which fails or not, or only
 * lets time pass. */
static tn_status is_looked_at(tn_call *call, const tn_value *args, tn_value *rets)
{
    (void)call;
    (void)rets;
    int64_t what = args[1].u.i;
    tn_tensor *x = args[0].u.tensor, *y = NULL;
    tni_seen before, now;
    for (int i = 0; i < 2; i++) {
        await_tick();
        if (what == 1)
            EXPECT_OK(tn_neg(x, &y));
        if (what == 2)
            EXPECT(tn_mm(x, x, &y) != TN_OK);
        tn_tensor_unref(y);
        y = NULL;
        ASSERT_OK(tni_seen_read(tni_flight_fd(), true, i ? &now : &before));
    }
    now.pid = before.pid = 1;
    now.process_state = 'S';
    now.now = tni_coarse_ns();
    for (uint32_t i = 0; i < now.n_threads; i++)
        now.threads[i].alive = before.threads[i].alive = true;
    tni_seen_compare(&before, &now, 1000);
    tni_verdict v;
    tni_judge(&now, true, &v);
    found.moved = now.threads[0].moved;
    found.made_calls = tni_last_inside(&now.threads[0]) != NULL;
    found.kind = v.kind;
    strncpy(found.verdict, tni_str_get(&v.text), sizeof found.verdict - 1);
    test_note("%s", found.verdict);
    tni_verdict_clear(&v);
    tni_seen_clear(&before);
    tni_seen_clear(&now);
    rets[0] = tn_value_take_tensor(tn_tensor_ref(x));
    return TN_OK;
}

static void look_at_kernel(int64_t what)
{
    static tn_op *op;
    if (!op) {
        tn_library *lib = NULL;
        tn_kernel kernel = TN_KERNEL_INIT(is_looked_at);
        ASSERT_OK(tn_library_open(TN_LIBRARY_DEF, "place", TN_KEY_NONE, __FILE__, __LINE__, &lib));
        ASSERT_OK(tn_library_def(lib, "looked(Tensor x, int what) -> Tensor", &kernel, NULL));
        ASSERT_OK(tn_op_find("place::looked", &op));
    }
    const int64_t sizes[] = {4};
    tn_tensor_opts opts = tn_opts(TN_DTYPE_F32, TN_CPU);
    tn_tensor *x = NULL;
    ASSERT_OK(tn_ones(sizes, 1, &opts, &x));
    memset(&found, 0, sizeof found);
    tn_value args[] = {tn_value_tensor(x), tn_value_int(what)}, ret;
    ASSERT_OK(tn_op_call(op, args, 2, &ret));
    tn_value_clear(&ret);
    tn_tensor_unref(x);
}

TEST(the_doctor_sees_that_a_kernel_computes_with_other_operators)
{
    look_at_kernel(1);
    EXPECT(found.moved);
    EXPECT(found.made_calls);
    EXPECT_EQ_INT(found.kind, TNI_VERDICT_PROGRESS);
    EXPECT_CONTAINS(found.verdict, "in place::looked, kernel is_looked_at");
}

TEST(the_doctor_sees_that_a_kernel_makes_no_calls)
{
    look_at_kernel(0);
    EXPECT(!found.moved);
    EXPECT(!found.made_calls);
    EXPECT(found.kind != TNI_VERDICT_PROGRESS);
}

TEST(the_doctor_names_the_call_that_fails_again_and_again)
{
    look_at_kernel(2);
    EXPECT(!found.moved);
    EXPECT(found.kind != TNI_VERDICT_PROGRESS);
    EXPECT_CONTAINS(found.verdict, "what it calls from there fails, aten::mm with");
}
