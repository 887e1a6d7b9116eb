/* SPDX-License-Identifier: MIT */
/* tests/observe/test_callouts.c: code of the program's that Tenon calls outside of operators, and
 * that does not come back, is named. */
#define _GNU_SOURCE /* F_SETPIPE_SZ */
#include <fcntl.h>

#include "kit.h"
#include "tenon/autograd.h"

static const char callout[] = "\"kind\": \"callout\"";

static void hears(void *ctx, tn_op *op)
{
    (void)ctx, (void)op;
    kit_ready();
    kit_stay();
}

static void tells_a_listener(void *arg)
{
    (void)arg;
    tn_listener listener = {.size = sizeof listener, .defined = hears};
    tn_registration *handle;
    tn_tensor_unref(kit_ones(TN_CPU));
    (void)!tn_add_listener(&listener, &handle);
}

TEST(a_listener_that_does_not_come_back_is_named)
{
    kit_expect(tells_a_listener, ", in a registration listener", callout);
}

static tn_status never_answers(void)
{
    kit_ready();
    kit_stay();
    return TN_OK;
}

static void asks_whether_to_go_on(void *arg)
{
    (void)arg;
    tn_tensor *x = kit_ones(TN_CPU), *y = NULL, *sum = NULL;
    ASSERT_OK(tn_tensor_set_requires_grad(x, true));
    ASSERT_OK(tn_mul(x, x, &y));
    ASSERT_OK(tn_sum(y, TN_DTYPE_NONE, &sum));
    (void)tn_set_interrupt_check(never_answers);
    (void)!tn_backward(&sum, 1, NULL, NULL);
}

TEST(an_interrupt_check_that_does_not_come_back_is_named)
{
    kit_expect(asks_whether_to_go_on, ", in the interrupt check of a backward pass", callout);
}

/* With lines of the trace into a pipe that nobody reads. */
static void prints_for_nobody(void *arg)
{
    (void)arg;
    int ends[2];
    tn_tensor *x = kit_ones(TN_CPU), *y = NULL;
    ASSERT(pipe(ends) == 0);
    (void)fcntl(ends[1], F_SETPIPE_SZ, 4096);
    ASSERT(dup2(ends[1], STDERR_FILENO) == STDERR_FILENO);
    ASSERT_OK(tn_set_dispatch_debug("all"));
    kit_ready();
    for (;;) {
        ASSERT_OK(tn_mul(x, x, &y));
        tn_tensor_unref(y);
    }
}

TEST(a_trace_that_nobody_reads_is_told_as_such)
{
    kit_expect(prints_for_nobody, "waits for event 'room in stderr'", "\"kind\": \"wait\"");
    kit_expect(prints_for_nobody, "; its stderr is full, and is not being read",
               "\"kind\": \"wait\"");
}
