/* SPDX-License-Identifier: MIT */
/* tests/fake/test_gate.c: typed calls on fake tensors pass the Fake key without boxes, and nobody
 * can tell: a call that goes through its kernel gives the same tensor or the same refusal. */
#include <stdio.h>

#include "dispatch/call.h"
#include "kit.h"
#include "tenon/autograd.h"
#include "tenon/dispatch.h"
#include "tenon/kernels.h"

/* A thread that is watched takes no short ways. */
static void ignores(void *ctx, const tn_event *event)
{
    (void)ctx, (void)event;
}

static void go_through_boxes(bool on)
{
    ASSERT_OK(tn_observe_thread(on ? ignores : NULL, NULL));
}

static void expect_alike(const tn_tensor *a, const tn_tensor *b)
{
    ASSERT(a && b);
    char *x = NULL, *y = NULL;
    EXPECT_OK(tn_tensor_to_string(a, &x));
    EXPECT_OK(tn_tensor_to_string(b, &y));
    EXPECT_STR(x, y);
    EXPECT(tn_is_fake(a) && tn_is_fake(b));
    EXPECT(tn_tensor_keys(a) == tn_tensor_keys(b));
    tn_string_free(x);
    tn_string_free(y);
}

/* mm, the short way and the long. */
static void expect_same(tn_tensor *a, tn_tensor *b)
{
    tn_tensor *typed = NULL, *by_boxes = NULL;
    char text[512] = "";
    tn_status one = tn_mm(a, b, &typed);
    if (one != TN_OK)
        snprintf(text, sizeof text, "%s", tn_last_error());
    go_through_boxes(true);
    tn_status other = tn_mm(a, b, &by_boxes);
    go_through_boxes(false);
    EXPECT_EQ_INT(one, other);
    if (one == TN_OK) {
        expect_alike(typed, by_boxes);
    } else {
        EXPECT_STR(text, tn_last_error());
        EXPECT(!typed && !by_boxes);
    }
    UNREF(typed, by_boxes);
}

TEST(both_ways_give_the_same_tensor_or_the_same_refusal)
{
    tn_tensor *real = ones(2, TN_CPU);
    tn_fake_mode *mode = new_mode(false), *other_mode = new_mode(false);
    tn_fake_guard guard = tn_fake_enter(other_mode);
    tn_tensor *foreign = ones(2, cuda(0));
    tn_fake_leave(guard);
    guard = tn_fake_enter(mode);
    tn_tensor *here = ones(2, cuda(0)), *there = ones(2, cuda(1)), *cpu = ones(2, TN_CPU);
    tn_tensor *row = ones(1, cuda(0)), *meta = ones(2, TN_META);
    tn_tensor *all[] = {here, there, cpu, row, meta, real, foreign};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        expect_same(here, all[i]);
        expect_same(all[i], here);
        expect_same(all[i], all[i]);
    }
    tn_fake_leave(guard);
    expect_same(here, here); /* the tensors say the mode */
    UNREF(real, foreign, here, there, cpu, row, meta);
    tn_fake_mode_unref(mode);
    tn_fake_mode_unref(other_mode);
}

TEST(known_values_are_still_computed_and_views_are_views)
{
    tn_fake_mode *mode = new_mode(false);
    tn_fake_guard guard = tn_fake_enter(mode);
    tn_tensor *three = NULL, *nine = NULL, *x = ones(2, cuda(0)), *t = NULL, *same = NULL;
    ASSERT_OK(tn_tensor_from_scalar(tn_int(3), TN_DTYPE_NONE, &three));
    ASSERT_OK(tn_mul(three, three, &nine));
    tn_scalar value;
    ASSERT_OK(tn_item(nine, &value));
    EXPECT_EQ_INT(value.v.i, 9);
    ASSERT_OK(tn_t(x, &t));
    EXPECT(tn_tensor_base(t) == x);
    expect_device(t, "cuda:0");
    ASSERT_OK(tn_contiguous(x, TN_FORMAT_CONTIGUOUS, &same));
    EXPECT(same == x);
    UNREF(three, nine, t, same, x);
    tn_fake_leave(guard);
    tn_fake_mode_unref(mode);
}

TEST(what_depends_on_values_says_so)
{
    tn_fake_mode *mode = new_mode(false);
    tn_fake_guard guard = tn_fake_enter(mode);
    tn_tensor *x = ones(2, cuda(0)), *y = NULL, *z = NULL;
    char text[512] = "";
    EXPECT(tn_nonzero(x, &y) == TN_INVALID);
    snprintf(text, sizeof text, "%s", tn_last_error());
    go_through_boxes(true);
    EXPECT(tn_nonzero(x, &z) == TN_INVALID);
    go_through_boxes(false);
    EXPECT_STR(text, tn_last_error());
    EXPECT(!y && !z);
    UNREF(x);
    tn_fake_leave(guard);
    tn_fake_mode_unref(mode);
}

TEST(each_allocation_of_a_passing_call_may_fail)
{
    tn_fake_mode *mode = new_mode(false);
    tn_fake_guard guard = tn_fake_enter(mode);
    tn_tensor *x = ones(2, cuda(0)), *warm = NULL;
    ASSERT_OK(tn_mm(x, x, &warm));
    tn_status rc = TN_INTERNAL;
    int64_t before = tni_test_live;
    WITH_EACH_ALLOCATION_FAILING(rc)
    {
        tn_tensor *y = NULL;
        rc = tn_mm(x, x, &y);
        EXPECT((rc == TN_OK) == (y != NULL));
        tn_tensor_unref(y);
        EXPECT_EQ_INT(tni_test_live, before);
    }
    UNREF(x, warm);
    tn_fake_leave(guard);
    tn_fake_mode_unref(mode);
}

/* A Meta kernel looks at the frame that it was called from, as the doctor does. */
static unsigned stage_of_caller;

static tn_status looks_up(tn_call *call, tn_tensor *self, tn_tensor *mat2, tn_tensor **out)
{
    stage_of_caller = atomic_load(&call[-1].stage);
    return tn_mul(self, mat2, out);
}

TEST(who_passes_is_seen_inside_the_kernel)
{
    tn_library *lib = NULL;
    tn_kernel kernel = tn_kernel_mm(looks_up, __FILE__, __LINE__);
    ASSERT_OK(tn_library_open(TN_LIBRARY_IMPL, "aten", TN_KEY_NONE, __FILE__, __LINE__, &lib));
    ASSERT_OK(tn_library_impl(lib, "mm", TN_KEY_META, &kernel, NULL));
    tn_fake_mode *mode = new_mode(false);
    tn_fake_guard guard = tn_fake_enter(mode);
    tn_tensor *x = ones(2, cuda(0));
    for (int boxes = 0; boxes < 2; boxes++) {
        tn_tensor *y = NULL;
        stage_of_caller = TNI_STAGE_ENDED;
        go_through_boxes(boxes);
        EXPECT_OK(tn_mm(x, x, &y));
        go_through_boxes(false);
        EXPECT_EQ_INT(stage_of_caller, TNI_STAGE_INSIDE);
        UNREF(y);
    }
    UNREF(x);
    tn_fake_leave(guard);
    tn_fake_mode_unref(mode);
    tn_library_close(lib);
}
