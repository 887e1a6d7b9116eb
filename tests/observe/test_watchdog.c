/* SPDX-License-Identifier: MIT */
/* tests/observe/test_watchdog.c: a frame that does not move is reported once, and what follows is
 * what was asked for. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/test.h"
#include "base/alloc.h"
#include "tenon/autograd.h"
#include "tenon/dispatch.h"
#include "tenon/ops.h"
#include "tenon/recorder.h"

static _Atomic int reports;
static char last_report[32768];
static pthread_mutex_t report_lock = PTHREAD_MUTEX_INITIALIZER;

static void hear(void *ctx, const char *text)
{
    (void)ctx;
    pthread_mutex_lock(&report_lock);
    strncpy(last_report, text, sizeof last_report - 1);
    pthread_mutex_unlock(&report_lock);
    atomic_fetch_add(&reports, 1);
}

static void expect_in_report(const char *what)
{
    pthread_mutex_lock(&report_lock);
    EXPECT_CONTAINS(last_report, what);
    pthread_mutex_unlock(&report_lock);
}

static tn_watchdog_opts quick(tn_hang_action action)
{
    tn_watchdog_opts opts = TN_WATCHDOG_OPTS_INIT;
    opts.seconds = 0.1;
    opts.action = action;
    opts.report = hear;
    return opts;
}

static tn_tensor *ones(void)
{
    const int64_t sizes[] = {4};
    tn_tensor_opts opts = tn_opts(TN_DTYPE_F32, TN_CPU);
    tn_tensor *t = NULL;
    ASSERT_OK(tn_ones(sizes, 1, &opts, &t));
    return t;
}

static tn_tensor *shared;

/* Sleeps until it was reported, or for too long; then calls an operator. */
static tn_status sleeps(tn_call *call, const tn_value *args, tn_value *rets)
{
    (void)call;
    int before = atomic_load(&reports);
    for (int i = 0; i < 2000 && atomic_load(&reports) == before; i++)
        usleep(5000);
    usleep(30000); /* the watchdog acts after it has spoken */
    tn_tensor *y = NULL;
    tn_status status = tn_neg(shared, &y);
    tn_tensor_unref(y);
    if (status == TN_OK)
        rets[0] = tn_value_take_tensor(tn_tensor_ref(args[0].u.tensor));
    return status;
}

static tn_op *sleeper(void)
{
    static tn_op *op;
    if (op)
        return op;
    tn_library *lib = NULL;
    tn_kernel kernel = TN_KERNEL_INIT(sleeps);
    ASSERT_OK(tn_library_open(TN_LIBRARY_DEF, "dog", TN_KEY_NONE, __FILE__, __LINE__, &lib));
    ASSERT_OK(tn_library_def(lib, "sleep(Tensor x) -> Tensor", &kernel, NULL));
    ASSERT_OK(tn_op_find("dog::sleep", &op));
    return op;
}

static tn_status call_sleeper(void)
{
    shared = shared ? shared : ones();
    tn_value arg = tn_value_tensor(shared), ret;
    tn_op *op = sleeper();
    tn_status status = tn_op_call(op, &arg, 1, &ret);
    if (status == TN_OK)
        tn_value_clear(&ret);
    return status;
}

TEST(a_call_that_does_not_move_is_reported_once_and_goes_on)
{
    tn_watchdog_opts opts = quick(TN_HANG_REPORT);
    ASSERT_OK(tn_watchdog_start(&opts));
    int before = atomic_load(&reports);
    EXPECT_OK(call_sleeper());
    EXPECT_EQ_INT(atomic_load(&reports), before + 1);
    expect_in_report("has not moved for 0.1 s");
    expect_in_report("dog::sleep");
    expect_in_report("verdict:");
    tn_watchdog_stop();
}

TEST(the_next_dispatch_of_a_stuck_call_fails_when_that_was_asked_for)
{
    tn_watchdog_opts opts = quick(TN_HANG_RAISE);
    ASSERT_OK(tn_watchdog_start(&opts));
    EXPECT_FAIL(TN_TIMEOUT, "interrupted by the watchdog", call_sleeper());
    tn_watchdog_stop();
    tn_tensor *y = NULL;
    EXPECT_OK(tn_neg(shared, &y)); /* once */
    tn_tensor_unref(y);
}

static tn_status sleeping_hook(void *ctx, tn_tensor *grad, tn_tensor **out)
{
    (void)ctx;
    (void)grad;
    (void)out;
    int before = atomic_load(&reports);
    for (int i = 0; i < 2000 && atomic_load(&reports) == before; i++)
        usleep(5000);
    usleep(30000);
    return TN_OK;
}

TEST(a_pass_ends_between_two_nodes_when_that_was_asked_for)
{
    tn_tensor *x = ones(), *y = NULL, *z = NULL, *s = NULL;
    ASSERT_OK(tn_tensor_set_requires_grad(x, true));
    ASSERT_OK(tn_view(x, (const int64_t[]){2, 2}, 2, &y));
    ASSERT_OK(tn_view(y, (const int64_t[]){4}, 1, &z));
    ASSERT_OK(tn_sum(z, TN_DTYPE_NONE, &s));
    ASSERT_OK(tn_tensor_add_hook(s, sleeping_hook, NULL, NULL, NULL));
    tn_watchdog_opts opts = quick(TN_HANG_RAISE);
    ASSERT_OK(tn_watchdog_start(&opts));
    EXPECT_FAIL(TN_TIMEOUT, "interrupted by the watchdog", tn_backward(&s, 1, NULL, NULL));
    tn_watchdog_stop();
    tn_tensor *all[] = {x, y, z, s};
    for (int i = 0; i < 4; i++)
        tn_tensor_unref(all[i]);
}

static int ends(void *path)
{
    tn_watchdog_opts opts = TN_WATCHDOG_OPTS_INIT;
    opts.seconds = 0.1;
    opts.action = TN_HANG_END;
    opts.save_path = path;
    opts.report = hear;
    EXPECT_OK(tn_watchdog_start(&opts));
    (void)!call_sleeper();
    sleep(20);
    return 0;
}

TEST(the_process_ends_with_a_record_when_that_was_asked_for)
{
    char path[] = "/tmp/tenon-watchdog-XXXXXX";
    int fd = mkstemp(path);
    ASSERT(fd >= 0);
    close(fd);
    EXPECT_EQ_INT(run_in_child(ends, path, 30), 124);
    char *text = NULL;
    ASSERT_OK(tn_doctor_file(path, NULL, &text));
    EXPECT_CONTAINS(text, "dog::sleep");
    EXPECT_CONTAINS(text, "the watchdog ended the program there");
    tn_string_free(text);
    unlink(path);
}

static int child_is_watched(void *arg)
{
    (void)arg;
    int before = atomic_load(&reports);
    EXPECT_OK(call_sleeper());
    EXPECT_EQ_INT(atomic_load(&reports), before + 1);
    return 0;
}

TEST(a_child_has_a_watchdog_of_its_own)
{
    if (test_thread_sanitized())
        SKIP("a child of several threads starts a thread, which the thread sanitizer refuses");
    shared = shared ? shared : ones();
    (void)sleeper();
    tn_watchdog_opts opts = quick(TN_HANG_REPORT);
    ASSERT_OK(tn_watchdog_start(&opts));
    EXPECT_EQ_INT(run_in_child(child_is_watched, NULL, 30), 0);
    tn_watchdog_stop();
}

TEST(what_makes_no_sense_is_refused)
{
    tn_watchdog_opts opts = quick(TN_HANG_REPORT);
    opts.seconds = 0;
    EXPECT_FAIL(TN_VALUE, "seconds", tn_watchdog_start(&opts));
    opts = quick((tn_hang_action)7);
    EXPECT_FAIL(TN_VALUE, "no action", tn_watchdog_start(&opts));
    opts = quick(TN_HANG_REPORT);
    opts.size = 3;
    EXPECT_FAIL(TN_INVALID, "size", tn_watchdog_start(&opts));
    tn_watchdog_stop(); /* that does not run */
}

/* ---- allocations ---- */

/* The watchdog's own looks and reports fail for want of memory one after the other: it says what it
 * can, misses a look at most, and the program goes on. */
TEST(a_watchdog_without_memory_does_no_harm)
{
    shared = shared ? shared : ones();
    tn_watchdog_opts opts = quick(TN_HANG_REPORT);
    opts.seconds = 0.02;
    opts.native = true;
    tni_alloc_watch(-1, false);
    test_at_end(tni_alloc_unwatch);
    int64_t live = 0;
    for (int64_t failing = 0; failing < 30; failing++) {
        tni_alloc_watch(failing, true); /* that one and all after it */
        tn_status rc = tn_watchdog_start(&opts);
        EXPECT(rc == TN_OK || rc == TN_NOMEM);
        usleep(3000);
        tn_wait_begin(TN_WAIT_LOCK, &opts, "what a watchdog looks at");
        usleep(60000);
        tn_wait_end();
        tn_watchdog_stop();
        tni_alloc_watch(-1, false);
        if (failing == 0)
            live = tni_alloc_live(); /* what is made once has been made */
        EXPECT_EQ_INT(tni_alloc_live(), live);
    }
    tn_tensor *y = NULL;
    EXPECT_OK(tn_neg(shared, &y));
    tn_tensor_unref(y);
}
