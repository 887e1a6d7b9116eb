/* SPDX-License-Identifier: MIT */
/* tests/observe/test_doctor.c: reports and verdicts, and records that are damaged, hostile or
 * absent. Verdicts about whole programs: repro/gallery. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kit.h"
#include "base/alloc.h"
#include "observe/report.h"
#include "tenon/autograd.h"
#include "tenon/dispatch.h"
#include "tenon/ops.h"
#include "tenon/recorder.h"

static tn_tensor *ones(void)
{
    const int64_t sizes[] = {4};
    tn_tensor_opts opts = tn_opts(TN_DTYPE_F32, TN_CPU);
    tn_tensor *t = NULL;
    ASSERT_OK(tn_ones(sizes, 1, &opts, &t));
    return t;
}

static char *report_of_self(bool json)
{
    tn_doctor_opts opts = TN_DOCTOR_OPTS_INIT;
    opts.json = json;
    opts.interval_ms = 20;
    char *text = NULL;
    EXPECT_OK(tn_doctor_process((int)getpid(), &opts, &text));
    return text;
}

static char *seen_in_hook[2];

static tn_status hook(void *ctx, tn_tensor *grad, tn_tensor **out)
{
    (void)ctx;
    (void)grad;
    (void)out;
    seen_in_hook[0] = report_of_self(false);
    seen_in_hook[1] = report_of_self(true);
    return TN_OK;
}

TEST(a_pass_is_told_with_what_ran_and_what_waits_for_what)
{
    tn_tensor *x = ones(), *y = NULL, *z = NULL, *s = NULL;
    ASSERT_OK(tn_tensor_set_requires_grad(x, true));
    ASSERT_OK(tn_mul(x, x, &y));
    ASSERT_OK(tn_exp(y, &z));
    ASSERT_OK(tn_sum(z, TN_DTYPE_NONE, &s));
    ASSERT_OK(tn_tensor_add_hook(z, hook, NULL, NULL, NULL));
    ASSERT_OK(tn_backward(&s, 1, NULL, NULL));
    ASSERT(seen_in_hook[0] && seen_in_hook[1]);
    EXPECT_CONTAINS(seen_in_hook[0], "1 of 4 nodes have run");
    EXPECT_CONTAINS(seen_in_hook[0], "in ExpBackward0");
    EXPECT_CONTAINS(seen_in_hook[0], "MulBackward0 waits for ExpBackward0");
    EXPECT_CONTAINS(seen_in_hook[0], "AccumulateGrad waits for MulBackward0");
    EXPECT_CONTAINS(seen_in_hook[0], "in a tensor hook");
    EXPECT_CONTAINS(seen_in_hook[1], "\"running\": \"ExpBackward0\"");
    for (int i = 0; i < 2; i++)
        tn_string_free(seen_in_hook[i]);
    char *after = report_of_self(false);
    EXPECT(after && !strstr(after, "backward pass"));
    tn_string_free(after);
    tn_tensor *all[] = {x, y, z, s};
    for (int i = 0; i < 4; i++)
        tn_tensor_unref(all[i]);
}

TEST(a_process_that_is_not_there_or_not_ours_is_said_to_be)
{
    char *text = NULL;
    EXPECT_FAIL(TN_INVALID, "there is no process", tn_doctor_process(0x3ffffff, NULL, &text));
    EXPECT_FAIL(TN_INVALID, "not the number of a process", tn_doctor_process(-1, NULL, &text));
    pid_t child = fork();
    if (child == 0) {
        execlp("sleep", "sleep", "1000", (char *)NULL);
        _exit(1);
    }
    KIT_WAIT_FOR(kit_is_program(child, "sleep"));
    EXPECT_FAIL(TN_INVALID, "has no record", tn_doctor_process((int)child, NULL, &text));
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    EXPECT_FAIL(TN_INVALID, "there is no process", tn_doctor_process((int)child, NULL, &text));
    EXPECT(text == NULL);
}

/* ---- another program's devices ---- */

static tn_status on_device_alloc(void *ctx, tn_device device, size_t nbytes, void **data)
{
    (void)ctx;
    (void)device;
    *data = calloc(1, nbytes ? nbytes : 1);
    return *data ? TN_OK : TN_NOMEM;
}

static void on_device_free(void *ctx, tn_device device, void *data, size_t nbytes)
{
    (void)ctx;
    (void)device;
    (void)nbytes;
    free(data);
}

static tn_status copy_out(void *ctx, tn_device device, void *host, const void *data, size_t nbytes)
{
    (void)ctx;
    (void)device;
    memcpy(host, data, nbytes);
    return TN_OK;
}

static tn_status copy_in(void *ctx, tn_device device, void *data, const void *host, size_t nbytes)
{
    return copy_out(ctx, device, data, host, nbytes);
}

static void stay_on_own_device(void *arg)
{
    (void)arg;
    tn_device_vtable vtable = {.size = sizeof vtable,
                               .alloc = on_device_alloc,
                               .free = on_device_free,
                               .to_host = copy_out,
                               .from_host = copy_in};
    tn_device_type type;
    const int64_t sizes[] = {4};
    ASSERT_OK(tn_device_register("npu", &vtable, &type));
    tn_op *op = kit_op("stays", (tn_key)(TN_KEY_CPU + (int)type), kit_stays);
    tn_tensor_opts opts = tn_opts(TN_DTYPE_F32, TN_DEVICE_INIT(type, 0));
    tn_tensor *x = NULL;
    ASSERT_OK(tn_empty(sizes, 1, &opts, TN_FORMAT_NONE, &x));
    ASSERT_OK(kit_call(op, x));
}

TEST(devices_and_keys_go_by_the_names_of_the_program_that_is_read)
{
    pid_t child = kit_begin(stay_on_own_device, NULL);
    KIT_EXPECT_ALL(child, false, "inside the kernel of kit::stays [npu]");
    char *text = kit_report(child, false), *json = kit_report(child, true);
    EXPECT_CONTAINS(text, "kit::stays(float32[4] npu)");
    EXPECT_CONTAINS(text, "key npu");
    EXPECT_CONTAINS(text, "DispatchKeySet(npu");
    EXPECT(!strstr(text, "PrivateUse1"));
    EXPECT_CONTAINS(json, "\"keys\": \"DispatchKeySet(npu");
    EXPECT_STR(tn_key_name(TN_KEY_PRIVATE1), "PrivateUse1"); /* as it is called here */
    tn_string_free(text);
    tn_string_free(json);
    kit_end(child);
}

static void has_odd_names(void *arg)
{
    (void)arg;
    tn_tensor_unref(kit_ones(TN_CPU));
    pthread_setname_np(pthread_self(), "a\033[31m");
    tn_hold_begin(TN_WAIT_LOCK, &arg, "red\033[31m\abell");
    kit_ready();
    kit_stay();
}

TEST(what_a_terminal_would_obey_is_taken_out_of_names)
{
    pid_t child = kit_begin(has_odd_names, NULL);
    char *text = kit_report(child, false);
    EXPECT_CONTAINS(text, "holds lock 'red?[31m?bell'");
    EXPECT_CONTAINS(text, "a?[31m");
    EXPECT(!strchr(text, '\033') && !strchr(text, '\a'));
    tn_string_free(text);
    kit_end(child);
}

/* ---- what is told of threads ---- */

static void has_names_in_french(void *arg)
{
    static char locks[12];
    (void)arg;
    tn_tensor_unref(kit_ones(TN_CPU));
    pthread_setname_np(pthread_self(), "\xc2\x9b"
                                       "31m\xff");
    tn_hold_begin(TN_WAIT_LOCK, &locks[0], "mod\xc3\xa8le \xf0\x9f\x90\x88");
    for (int i = 1; i < 12; i++)
        tn_hold_begin(TN_WAIT_LOCK, &locks[i], "more");
    kit_ready();
    kit_stay();
}

TEST(names_are_kept_in_any_language_and_what_is_no_text_is_not)
{
    pid_t child = kit_begin(has_names_in_french, NULL);
    char *text = kit_report(child, false), *json = kit_report(child, true);
    EXPECT_CONTAINS(text, "holds lock 'mod\xc3\xa8le \xf0\x9f\x90\x88'");
    EXPECT_CONTAINS(text, "holds 4 more, which are not named");
    EXPECT_CONTAINS(text, "\"??31m?\"");
    EXPECT_CONTAINS(json, "\"mod\\u00e8le \\ud83d\\udc08\"");
    EXPECT_CONTAINS(json, "\"holds_unnamed\": 4");
    EXPECT_CONTAINS(json, "\"??31m?\"");
    tn_string_free(text);
    tn_string_free(json);
    kit_end(child);
}

static tn_status waits_shortly(tn_call *call, const tn_value *args, tn_value *rets)
{
    (void)call;
    (void)args;
    (void)rets;
    kit_ready();
    for (int i = 0; i < 100000; i++) {
        tn_wait_begin(TN_WAIT_EVENT, &kit_pipe, "tick");
        usleep(20000);
        tn_wait_end();
    }
    return TN_OK;
}

static void many_short_waits(void *arg)
{
    (void)arg;
    (void)kit_call(kit_op("ticks", TN_KEY_CPU, waits_shortly), kit_ones(TN_CPU));
}

TEST(a_wait_that_has_just_begun_is_not_what_a_thread_is_stuck_on)
{
    pid_t child = kit_begin(many_short_waits, NULL);
    bool good = false;
    for (int tries = 0; tries < 100 && !good; tries++) { /* it may get no processor for a while */
        char *json = kit_report(child, true);
        test_note("try %d: %s", tries, json);
        EXPECT_CONTAINS(json, "\"verdict\": {");
        good = !strstr(json, "{\"kind\": \"wait\"") && !strstr(json, "waits for event");
        tn_string_free(json);
    }
    EXPECT(good);
    kit_end(child);
}

static tn_status refuses(tn_call *call, const tn_value *args, tn_value *rets)
{
    (void)call;
    (void)args;
    (void)rets;
    return tni_fail(TN_VALUE, TNI_WHERE, "refused");
}

static void fails_for_ever(void *arg)
{
    (void)arg;
    tn_op *op = kit_op("refuses", TN_KEY_CPU, refuses);
    tn_tensor *x = kit_ones(TN_CPU);
    for (int i = 0; i < 1000000; i++) {
        (void)kit_call(op, x);
        if (i == 20)
            kit_ready();
        usleep(1000);
    }
}

TEST(a_call_that_is_made_again_and_again_and_fails_is_said)
{
    pid_t child = kit_begin(fails_for_ever, NULL);
    KIT_EXPECT_ALL(child, false, "makes progress", "and the last 8 failed, kit::refuses with VALUE",
                   "look at the error that it returns");
    kit_end(child);
}

static tn_status keeps_its_key(tn_call *call, const tn_value *args, tn_value *rets)
{
    kit_ready();
    while (tn_call_redispatch(call, tn_call_keys(call), args, rets) != TN_OK)
        usleep(100);
    return TN_OK;
}

static void redispatches_for_ever(void *arg)
{
    (void)arg;
    (void)!kit_call(kit_op("keeps", TN_KEY_CPU, keeps_its_key), kit_ones(TN_CPU));
}

TEST(a_redispatch_that_is_refused_again_and_again_is_said)
{
    pid_t child = kit_begin(redispatches_for_ever, NULL);
    KIT_EXPECT_ALL(child, false,
                   "; it redispatches again and again to kit::keeps [CPU], which is refused",
                   "inside the kernel of kit::keeps [CPU]", "a redispatch to a lower key");
    KIT_EXPECT_ALL(child, true, "\"kind\": \"recursion\"");
    kit_end(child);
}

enum { TOO_MANY = 1040 };

static void *joins_and_stays(void *arg)
{
    tn_tensor_unref(kit_ones(TN_CPU));
    pthread_barrier_wait(arg);
    kit_stay();
    return NULL;
}

static void has_too_many_threads(void *arg)
{
    (void)arg;
    pthread_barrier_t all;
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 256 << 10);
    pthread_barrier_init(&all, NULL, TOO_MANY + 1);
    tn_tensor_unref(kit_ones(TN_CPU));
    for (int i = 0; i < TOO_MANY; i++) {
        pthread_t thread;
        ASSERT(pthread_create(&thread, &small, joins_and_stays, &all) == 0);
    }
    pthread_barrier_wait(&all);
    kit_ready();
    kit_stay();
}

TEST(threads_that_found_no_place_are_counted)
{
    if (test_sanitized() || test_thread_sanitized())
        SKIP("a sanitizer takes too much memory for a thousand threads");
    pid_t child = kit_begin(has_too_many_threads, NULL);
    KIT_EXPECT_ALL(child, false, "17 more threads found no room in the record",
                   "idle: no thread is in an operator of the 1024 that have a place");
    KIT_EXPECT_ALL(child, true, "\"unplaced\": 17");
    kit_end(child);
}

TEST(files_that_are_no_records_are_refused)
{
    char *text = NULL;
    EXPECT_FAIL(TN_INVALID, "cannot open", tn_doctor_file("/nowhere", NULL, &text));
    EXPECT_FAIL(TN_INVALID, "too short", tn_doctor_file("/dev/null", NULL, &text));
    EXPECT_FAIL(TN_INVALID, "no record of Tenon", tn_doctor_file("/proc/self/exe", NULL, &text));
    EXPECT_FAIL(TN_INVALID, "too short", tn_doctor_file("/proc", NULL, &text));
    tn_doctor_opts wrong = {.size = 1};
    EXPECT_FAIL(TN_INVALID, "sizeof", tn_doctor_file("/dev/null", &wrong, &text));
}

/* A saved record in memory. */
static int saved_record(size_t *nbytes)
{
    char path[] = "/tmp/tenon-doctor-XXXXXX";
    int fd = mkstemp(path);
    ASSERT(fd >= 0);
    close(fd);
    ASSERT_OK(tn_recorder_save(path));
    FILE *file = fopen(path, "rb");
    ASSERT(file != NULL);
    int to = memfd_create("copy", 0);
    char page[4096];
    size_t n, all = 0;
    while ((n = fread(page, 1, sizeof page, file)) > 0) {
        ASSERT(write(to, page, n) == (ssize_t)n);
        all += n;
    }
    fclose(file);
    unlink(path);
    *nbytes = all;
    return to;
}

static void report_all(int fd)
{
    tni_seen seen;
    if (tni_seen_read(fd, true, &seen) != TN_OK)
        return;
    tni_verdict verdict;
    tni_judge(&seen, false, &verdict);
    tni_str text = TNI_STR_INIT;
    tni_report_text(&text, &seen, &verdict);
    tni_report_json(&text, &seen, &verdict);
    EXPECT(!text.failed && text.n > 0);
    tni_str_clear(&text);
    tni_verdict_clear(&verdict);
    tni_seen_clear(&seen);
}

TEST(a_cut_record_is_reported_as_far_as_it_goes)
{
    tn_tensor *x = ones();
    size_t nbytes;
    int fd = saved_record(&nbytes), ncut = 0;
    for (size_t n = nbytes; n > 512; n -= n / 5) {
        ASSERT(ftruncate(fd, (off_t)n) == 0);
        tni_seen seen;
        ASSERT_OK(tni_seen_read(fd, true, &seen));
        EXPECT(n == nbytes || seen.damaged);
        tni_verdict verdict;
        tni_judge(&seen, false, &verdict);
        const char *text = tni_str_get(&verdict.text);
        test_note("%zu bytes, %s: %s", n, tni_verdict_name(verdict.kind), text);
        if (n < nbytes)
            EXPECT_CONTAINS(text, "the record is cut (");
        bool has_calls = seen.n_threads && seen.threads[0].n_recent > 0;
        EXPECT((verdict.kind == TNI_VERDICT_CUT) == !has_calls);
        EXPECT(strstr(text, "idle") == NULL || has_calls);
        ncut += verdict.kind == TNI_VERDICT_CUT;
        tni_verdict_clear(&verdict);
        tni_seen_clear(&seen);
        report_all(fd);
    }
    EXPECT(ncut > 0);
    close(fd);
    tn_tensor_unref(x);
}

TEST(a_record_of_random_bytes_does_no_harm)
{
    tn_tensor *x = ones();
    size_t nbytes;
    int fd = saved_record(&nbytes);
    int rounds = test_sanitized() ? 40 : 200;
    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < 30; i++) {
            uint64_t value = test_random();
            /* Most of a record is empty: aim at what is written. */
            uint64_t areas[] = {8, 4096, 12288, nbytes - 300000 + test_random() % 300000};
            uint64_t at = areas[test_random() % 4] + test_random() % 400;
            if (at + 8 <= nbytes)
                ASSERT(pwrite(fd, &value, 1 + test_random() % 8, (off_t)at) > 0);
        }
        report_all(fd);
    }
    close(fd);
    tn_tensor_unref(x);
}

TEST(reading_fails_cleanly_for_want_of_memory)
{
    tn_tensor *x = ones();
    tn_status rc;
    WITH_EACH_ALLOCATION_FAILING(rc)
    {
        int64_t before = tni_test_live;
        char *text = NULL;
        tn_doctor_opts opts = TN_DOCTOR_OPTS_INIT;
        opts.interval_ms = 1;
        rc = tn_doctor_process((int)getpid(), &opts, &text);
        EXPECT((rc == TN_OK) == (text != NULL));
        tn_string_free(text);
        EXPECT_EQ_INT(tni_test_live, before);
    }
    tn_tensor_unref(x);
}
