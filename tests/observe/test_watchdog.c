/* SPDX-License-Identifier: MIT */
/* tests/observe/test_watchdog.c: a frame that does not move is reported once, and what follows is
 * what was asked for. */
#define _GNU_SOURCE
#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/test.h"
#include "base/alloc.h"
#include "base/mark.h"
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

/* How patient the watchdogs of this test are; more so when the machine is too busy for that. */
static double patience = 0.1;

static tn_watchdog_opts quick(tn_hang_action action)
{
    tn_watchdog_opts opts = TN_WATCHDOG_OPTS_INIT;
    opts.seconds = patience;
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
static bool waits_for_interrupt;
static int reported; /* of the last stay */

/* Until it was reported, and for some looks more; the watchdog acts after it has spoken. Or for too
 * long. */
static void stay(void)
{
    int before = atomic_load(&reports);
    for (int i = 0; i < 12000 && atomic_load(&reports) == before; i++)
        usleep(5000);
    for (int i = 0; i < 12000 && waits_for_interrupt && !atomic_load(&tni_marks_self()->interrupt);
         i++)
        usleep(5000);
    usleep((useconds_t)(1e6 * patience));
    reported = atomic_load(&reports) - before;
}

/* Then calls an operator. */
static tn_status sleeps(tn_call *call, const tn_value *args, tn_value *rets)
{
    (void)call;
    stay();
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

static int finds(struct dl_phdr_info *info, size_t size, void *found)
{
    (void)size;
    *(bool *)found |= strstr(info->dlpi_name, "libgcc_s") != NULL;
    return 0;
}

static int starts_and_looks(struct dl_phdr_info *info, size_t size, void *found)
{
    (void)info;
    (void)size;
    tn_watchdog_opts opts = quick(TN_HANG_REPORT);
    EXPECT_OK(tn_watchdog_start(&opts));
    dl_iterate_phdr(finds, found);
    return 1;
}

/* A child made while a thread loads a library can load none. So the caller does it, not the thread
 * that runs beside it, and which cannot while this one looks at what is loaded. */
TEST(what_stacks_need_is_loaded_when_the_watchdog_has_started)
{
    if (test_sanitized())
        SKIP("the sanitizers load it themselves");
    bool found = false;
    dl_iterate_phdr(starts_and_looks, &found);
    EXPECT(found);
    tn_watchdog_stop();
}

TEST(a_call_that_does_not_move_is_reported_once_and_goes_on)
{
    /* On a busy machine the call may take so long to come to its kernel that this is reported, too.
     */
    for (reported = 0; reported != 1 && patience < 10; patience *= reported == 1 ? 1 : 2) {
        tn_watchdog_opts opts = quick(TN_HANG_REPORT);
        ASSERT_OK(tn_watchdog_start(&opts));
        EXPECT_OK(call_sleeper());
        tn_watchdog_stop();
    }
    EXPECT_EQ_INT(reported, 1);
    char moved[64];
    snprintf(moved, sizeof moved, "has not moved for %g s", patience);
    expect_in_report(moved);
    expect_in_report("dog::sleep");
    expect_in_report("verdict:");
}

static void no_interrupt(void)
{
    waits_for_interrupt = false;
}

TEST(the_next_dispatch_of_a_stuck_call_fails_when_that_was_asked_for)
{
    tn_watchdog_opts opts = quick(TN_HANG_RAISE);
    waits_for_interrupt = true;
    test_at_end(no_interrupt);
    ASSERT_OK(tn_watchdog_start(&opts));
    EXPECT_FAIL(TN_TIMEOUT, "interrupted by the watchdog", call_sleeper());
    tn_watchdog_stop();
    tn_tensor *y = NULL;
    EXPECT_OK(tn_neg(shared, &y)); /* once */
    tn_tensor_unref(y);
}

/* Stands until it was asked to stop, and comes back by itself. */
static tn_status comes_back(tn_call *call, const tn_value *args, tn_value *rets)
{
    (void)call;
    stay();
    rets[0] = tn_value_take_tensor(tn_tensor_ref(args[0].u.tensor));
    return TN_OK;
}

static tn_op *other;

/* Calls that one, and then another operator. */
static tn_status calls_two(tn_call *call, const tn_value *args, tn_value *rets)
{
    (void)call;
    tn_value ret;
    tn_tensor *y = NULL;
    tn_status status = tn_op_call(other, args, 1, &ret);
    if (status != TN_OK)
        return status;
    tn_value_clear(&ret);
    status = tn_neg(shared, &y);
    if (status == TN_OK)
        rets[0] = tn_value_take_tensor(y);
    return status;
}

static tn_op *define(const char *name, tn_boxed_fn fn)
{
    static tn_library *lib;
    char schema[64], full[64];
    tn_op *op = NULL;
    tn_kernel kernel = TN_KERNEL_INIT(fn);
    if (!lib)
        ASSERT_OK(
            tn_library_open(TN_LIBRARY_FRAGMENT, "dog", TN_KEY_NONE, __FILE__, __LINE__, &lib));
    snprintf(schema, sizeof schema, "%s(Tensor x) -> Tensor", name);
    snprintf(full, sizeof full, "dog::%s", name);
    ASSERT_OK(tn_library_def(lib, schema, &kernel, NULL));
    ASSERT_OK(tn_op_find(full, &op));
    return op;
}

static tn_status call(tn_op *op)
{
    tn_value arg = tn_value_tensor(shared), ret;
    tn_status status = tn_op_call(op, &arg, 1, &ret);
    if (status == TN_OK)
        tn_value_clear(&ret);
    return status;
}

TEST(a_call_that_comes_back_by_itself_is_not_stopped_and_nor_is_the_next)
{
    shared = shared ? shared : ones();
    (void)sleeper(); /* its library has the name */
    other = define("back", comes_back);
    tn_op *two = define("two", calls_two);
    waits_for_interrupt = true;
    test_at_end(no_interrupt);
    /* On a busy machine a call may also be stopped before it is where it stays. */
    double before = patience;
    tn_status inner = TN_TIMEOUT, next = TN_TIMEOUT;
    for (; (inner != TN_OK || next != TN_OK) && patience < 10; patience *= 2) {
        tn_watchdog_opts opts = quick(TN_HANG_RAISE);
        ASSERT_OK(tn_watchdog_start(&opts));
        inner = call(two);
        tn_status back = call(other);
        tn_tensor *y = NULL;
        next = back == TN_OK ? tn_neg(shared, &y) : back;
        tn_tensor_unref(y);
        tn_watchdog_stop();
    }
    patience = before;
    EXPECT_OK(inner);
    EXPECT_OK(next);
}

static tn_status sleeping_hook(void *ctx, tn_tensor *grad, tn_tensor **out)
{
    (void)ctx;
    (void)grad;
    (void)out;
    stay();
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
    waits_for_interrupt = true;
    test_at_end(no_interrupt);
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
    shared = shared ? shared : ones(); /* which may take its time, too */
    (void)sleeper();
    EXPECT_OK(tn_watchdog_start(&opts));
    (void)!call_sleeper();
    sleep(3600);
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

static _Atomic bool is_said;

static void hear_slowly(void *ctx, const char *text)
{
    hear(ctx, text);
    atomic_store(&is_said, true);
    sleep(1);
}

/* Until a signal comes; and not for ever. */
static tn_status pauses(tn_call *call, const tn_value *args, tn_value *rets)
{
    (void)call;
    alarm(600);
    pause();
    rets[0] = tn_value_take_tensor(tn_tensor_ref(args[0].u.tensor));
    return TN_OK;
}

/* Until the end was announced. */
static tn_status lasts(tn_call *call, const tn_value *args, tn_value *rets)
{
    (void)call;
    while (!atomic_load(&is_said))
        usleep(1000);
    rets[0] = tn_value_take_tensor(tn_tensor_ref(args[0].u.tensor));
    return TN_OK;
}

static int exits_well(void *fn)
{
    tn_watchdog_opts opts = quick(TN_HANG_END);
    opts.report = hear_slowly;
    shared = shared ? shared : ones();
    (void)sleeper();
    tn_op *op = define("exits", (tn_boxed_fn)(uintptr_t)fn);
    EXPECT_OK(tn_watchdog_start(&opts));
    (void)!call(op);
    exit(0);
}

TEST(a_call_that_the_watchdogs_signal_wakes_ends_with_the_process)
{
    EXPECT_EQ_INT(run_in_child(exits_well, (void *)(uintptr_t)pauses, 300), 124);
}

TEST(a_program_that_comes_to_its_end_by_itself_keeps_the_announced_status)
{
    EXPECT_EQ_INT(run_in_child(exits_well, (void *)(uintptr_t)lasts, 300), 124);
}

static int child_is_watched(void *arg)
{
    (void)arg;
    EXPECT_OK(call_sleeper());
    EXPECT(reported >= 1);
    return 0;
}

TEST(a_child_has_a_watchdog_of_its_own)
{
    if (test_thread_sanitized())
        SKIP("a child of several threads starts a thread, which the thread sanitizer refuses");
    if (test_sanitized())
        SKIP("the sanitizers' own allocator does not get over a fork while a thread starts");
    shared = shared ? shared : ones();
    (void)sleeper();
    tn_watchdog_opts opts = quick(TN_HANG_REPORT);
    ASSERT_OK(tn_watchdog_start(&opts));
    EXPECT_EQ_INT(run_in_child(child_is_watched, NULL, 30), 0);
    tn_watchdog_stop();
}

/* ---- a thread that gets no processor ---- */

static _Atomic bool crowd_is_over, spins_now;

static void *crowd(void *arg)
{
    (void)arg;
    while (!atomic_load(&crowd_is_over))
        ;
    return NULL;
}

static tn_status spins(tn_call *call, const tn_value *args, tn_value *rets)
{
    (void)call;
    (void)args;
    (void)rets;
    atomic_store(&spins_now, true);
    while (!atomic_load(&crowd_is_over))
        ;
    return TN_VALUE;
}

static void *starves(void *arg)
{
    struct sched_param none = {.sched_priority = 0};
    if (sched_setscheduler(0, SCHED_IDLE, &none) != 0)
        atomic_store(&crowd_is_over, true);
    tn_value x = tn_value_tensor(shared), ret;
    (void)!tn_op_call(arg, &x, 1, &ret);
    return NULL;
}

/* Both on one processor, and one of them runs where nobody else wants to. */
TEST(a_thread_that_gets_no_processor_does_not_hang)
{
    shared = shared ? shared : ones();
    cpu_set_t all, one;
    ASSERT(sched_getaffinity(0, sizeof all, &all) == 0);
    CPU_ZERO(&one);
    for (size_t i = 0; i < CPU_SETSIZE && !CPU_COUNT(&one); i++) {
        if (CPU_ISSET(i, &all))
            CPU_SET(i, &one);
    }
    tn_library *lib = NULL;
    tn_op *op = NULL;
    tn_kernel kernel = TN_KERNEL_INIT(spins);
    ASSERT_OK(tn_library_open(TN_LIBRARY_DEF, "starved", TN_KEY_NONE, __FILE__, __LINE__, &lib));
    ASSERT_OK(tn_library_def(lib, "spin(Tensor x) -> Tensor", &kernel, NULL));
    ASSERT_OK(tn_op_find("starved::spin", &op));
    tn_watchdog_opts opts = quick(TN_HANG_REPORT);
    opts.seconds = 0.5;
    pthread_t crowding, starving;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setaffinity_np(&attributes, sizeof one, &one);
    ASSERT(pthread_create(&starving, &attributes, starves, op) == 0);
    while (!atomic_load(&spins_now) && !atomic_load(&crowd_is_over))
        usleep(1000);
    ASSERT(pthread_create(&crowding, &attributes, crowd, NULL) == 0);
    int before = atomic_load(&reports);
    bool refused = atomic_load(&crowd_is_over);
    test_time start = test_begin_time();
    ASSERT_OK(tn_watchdog_start(&opts));
    usleep(1500000);
    int said = atomic_load(&reports) - before;
    bool too_long = test_begin_time().wall - start.wall > 4; /* ten times its patience is enough */
    tn_watchdog_stop();
    atomic_store(&crowd_is_over, true);
    pthread_join(crowding, NULL);
    pthread_join(starving, NULL);
    pthread_attr_destroy(&attributes);
    tn_library_close(lib);
    if (refused)
        SKIP("this system does not let a thread run after all others");
    EXPECT(said == 0 || too_long);
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
