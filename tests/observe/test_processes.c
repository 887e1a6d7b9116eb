/* SPDX-License-Identifier: MIT */
/* tests/observe/test_processes.c: processes of every kind under the doctor's eyes: gone, dying,
 * foreign, other people's, busy while they are read, with two copies of the library or without
 * descriptors. Either the answer is right or the message says why there is none. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include "kit.h"
#include "observe/report.h"

static void expect_refused(int pid, tn_status status, const char *why)
{
    char *text = NULL;
    test_note("wanted: %s", why);
    EXPECT_FAIL(status, why, tn_doctor_process(pid, NULL, &text));
    EXPECT(text == NULL);
}

TEST(numbers_that_are_no_process)
{
    expect_refused(0, TN_INVALID, "0 is not the number of a process");
    expect_refused(-7, TN_INVALID, "-7 is not the number of a process");
    expect_refused(INT_MIN, TN_INVALID, "is not the number of a process");
    expect_refused(INT_MAX, TN_INVALID, "there is no process 2147483647");
}

static void ends_at_once(void *arg)
{
    (void)arg;
    tn_tensor_unref(kit_ones(TN_CPU));
}

TEST(a_zombie_is_called_one)
{
    pid_t child = kit_begin(ends_at_once, NULL);
    KIT_WAIT_FOR(kit_has_ended(child));
    expect_refused(child, TN_INVALID, "has ended, and its parent has not waited for it yet");
    kit_end(child);
    expect_refused(child, TN_INVALID, "there is no process");
}

/* ---- threads ---- */

static _Atomic int other_tid;

static void *other_thread(void *arg)
{
    (void)arg;
    atomic_store(&other_tid, (int)gettid());
    kit_ready();
    kit_stay();
    return NULL;
}

static void has_thread(void *arg)
{
    (void)arg;
    pthread_t thread;
    tn_tensor_unref(kit_ones(TN_CPU));
    pthread_create(&thread, NULL, other_thread, NULL);
    kit_stay();
}

TEST(the_number_of_a_thread_names_the_process)
{
    pid_t child = kit_begin(has_thread, NULL);
    char path[64], why[96];
    snprintf(path, sizeof path, "/proc/%d/task", (int)child);
    int tid = 0;
    for (int i = (int)child + 1; !tid && i < (int)child + 64; i++) {
        snprintf(path, sizeof path, "/proc/%d/task/%d", (int)child, i);
        tid = access(path, F_OK) == 0 ? i : 0;
    }
    if (!tid) {
        kit_end(child);
        SKIP("the thread's number is far from that of its process");
    }
    snprintf(why, sizeof why, "is a thread of process %d: ask for that", (int)child);
    expect_refused(tid, TN_INVALID, why);
    kit_end(child);
}

/* ---- other people's ---- */

static void stays_as_it_is(void *arg)
{
    (void)arg;
    (void)kit_call(kit_op("stays", TN_KEY_CPU, kit_stays), kit_ones(TN_CPU));
}

static int asks_as_nobody(void *arg)
{
    const uid_t nobody = 65534;
    if (setgid(65534) != 0 || setuid(nobody) != 0)
        return 77;
    char why[96];
    snprintf(why, sizeof why, "belongs to another user (0, and you are 65534): ask as that user");
    expect_refused(*(int *)arg, TN_UNSUPPORTED, why);
    return 0;
}

TEST(another_users_process_is_refused_with_both_users)
{
    if (geteuid() != 0)
        SKIP("only root can become somebody else");
    int child = (int)kit_begin(stays_as_it_is, NULL);
    EXPECT_EQ_INT(run_in_child(asks_as_nobody, &child, 30), 0);
    kit_end(child);
    expect_refused(2 /* a thread of the system, in most places */, TN_INVALID, "");
}

static void is_undumpable(void *arg)
{
    (void)arg;
    if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0))
        _exit(1);
    prctl(PR_SET_DUMPABLE, 0); /* as a program has that got rights of its own */
    stays_as_it_is(NULL);
}

static int asks_about_undumpable(void *arg)
{
    if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0))
        return 77;
    char *text = NULL;
    EXPECT(tn_doctor_process(*(int *)arg, NULL, &text) == TN_UNSUPPORTED);
    EXPECT(strstr(tn_last_error(), "setuid") || strstr(tn_last_error(), "another user"));
    return 0;
}

TEST(a_process_with_rights_of_its_own_is_refused)
{
    int child = (int)kit_begin(is_undumpable, NULL);
    EXPECT_EQ_INT(run_in_child(asks_about_undumpable, &child, 30), 0);
    kit_end(child);
}

/* 77: this system gives no user namespaces. */
static int asks_from_another_namespace(void *arg)
{
    if (unshare(CLONE_NEWUSER) != 0)
        return 77;
    char *text = NULL;
    EXPECT(tn_doctor_process(*(int *)arg, NULL, &text) == TN_UNSUPPORTED);
    EXPECT(strstr(tn_last_error(), "user namespace") || strstr(tn_last_error(), "another user"));
    return 0;
}

TEST(a_process_of_another_user_namespace_is_refused)
{
    int child = (int)kit_begin(stays_as_it_is, NULL);
    int status = run_in_child(asks_from_another_namespace, &child, 30);
    kit_end(child);
    if (status == 77)
        SKIP("this system gives no user namespaces");
    EXPECT_EQ_INT(status, 0);
}

/* ---- it dies, it becomes another program ---- */

TEST(a_process_that_dies_while_it_is_read_is_said_to_have_ended)
{
    for (int i = 0; i < 20; i++) {
        pid_t child = kit_begin(stays_as_it_is, NULL);
        pid_t killer = fork();
        if (killer == 0) {
            usleep((unsigned)(test_random() % 30000));
            kill(child, SIGKILL);
            _exit(0);
        }
        for (int k = 0; k < 20; k++) {
            tn_doctor_opts opts = TN_DOCTOR_OPTS_INIT;
            char *text = NULL;
            opts.interval_ms = 2;
            tn_status status = tn_doctor_process((int)child, &opts, &text);
            if (status == TN_OK)
                EXPECT(strstr(text, "kit::stays") || strstr(text, "has ended"));
            test_note("status %d: %s", (int)status, tn_last_error());
            if (status != TN_OK)
                EXPECT(strstr(tn_last_error(), "ended") || strstr(tn_last_error(), "no process"));
            tn_string_free(text);
        }
        waitpid(killer, NULL, 0);
        kit_end(child);
    }
}

static void becomes_sleep(void *arg)
{
    (void)arg;
    tn_tensor_unref(kit_ones(TN_CPU));
    kit_ready();
    execlp("sleep", "sleep", "1000", (char *)NULL);
    _exit(1);
}

TEST(a_process_that_runs_another_program_has_no_record_any_more)
{
    pid_t child = kit_begin(becomes_sleep, NULL);
    KIT_WAIT_FOR(kit_is_program(child, "sleep"));
    expect_refused(child, TN_INVALID, "(sleep) has no record: it does not use Tenon");
    kit_end(child);
}

/* ---- descriptors ---- */

static void closes_everything(void *arg)
{
    int keep = kit_pipe[1];
    (void)arg;
    tn_tensor_unref(kit_ones(TN_CPU));
    for (int fd = 0; fd < 1024; fd++) {
        if (fd != keep)
            close(fd);
    }
    stays_as_it_is(NULL);
}

TEST(a_process_that_has_closed_everything_says_so)
{
    pid_t child = kit_begin(closes_everything, NULL);
    expect_refused(child, TN_INVALID, "or has closed all its descriptors");
    kit_end(child);
}

static void has_parents_record(void *arg)
{
    int *fd = arg;
    /* Without the handlers of fork(): the parent's descriptor is here, the program is not its. */
    (void)fcntl(*fd, F_SETFD, 0);
    kit_ready();
    kit_stay();
}

static int reads_anothers_record(void *arg)
{
    (void)arg;
    char path[64] = "/tmp/tenon-foreign-XXXXXX";
    int fd = mkstemp(path);
    tn_tensor_unref(kit_ones(TN_CPU));
    EXPECT_OK(tn_recorder_save(path));
    int saved = open(path, O_RDONLY);
    unlink(path);
    setenv("TENON_RECORDER", "0", 1);
    pid_t child = kit_begin(has_parents_record, &saved);
    /* It was made by fork(), so it has a record of its own, and the saved one is not it. */
    char *text = kit_report(child, false), wanted[32];
    snprintf(wanted, sizeof wanted, "process %d ", (int)child);
    EXPECT_CONTAINS(text, wanted);
    EXPECT(!strstr(text, "copies of Tenon"));
    tn_string_free(text);
    kit_end(child);
    close(fd);
    return 0;
}

TEST(the_record_of_another_process_is_not_taken_for_its_own)
{
    EXPECT_EQ_INT(run_in_child(reads_anothers_record, NULL, 30), 0);
}

/* ---- two copies ---- */

static void uses_two_copies(void *arg)
{
    void *copy = dlopen(arg, RTLD_NOW | RTLD_LOCAL);
    if (!copy)
        _exit(77);
    tn_status (*parse)(const char *, tn_device *) =
        (tn_status(*)(const char *, tn_device *))(uintptr_t)dlsym(copy, "tn_device_parse");
    bool (*on)(void) = (bool (*)(void))(uintptr_t)dlsym(copy, "tn_recorder_on");
    tn_device device;
    if (!parse || !on || parse("cpu", &device) != TN_OK || !on())
        _exit(78);
    stays_as_it_is(NULL);
}

TEST(every_copy_of_the_library_in_a_process_is_read)
{
    char path[PATH_MAX];
    const char *build = getenv("TENON_BUILD_DIR");
    snprintf(path, sizeof path, "%s/libtenon.so", build ? build : "build");
    if (access(path, R_OK) != 0)
        SKIP("there is no %s", path);
    if (test_sanitized() || test_thread_sanitized())
        SKIP("a sanitizer's library does not come in twice");
    pid_t child = kit_begin(uses_two_copies, path);
    KIT_EXPECT_ALL(child, false, "2 copies of Tenon are in this process",
                   "inside the kernel of kit::stays");
    KIT_EXPECT_ALL(child, true, "\"copies\": 2");
    kit_end(child);
}

/* ---- in a container ---- */

static void is_first_in_container(void *arg)
{
    _Atomic int *pid = arg;
    if (unshare(CLONE_NEWPID) != 0)
        _exit(77);
    pid_t inner = fork();
    if (inner == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        stays_as_it_is(NULL); /* it calls itself process 1 */
    }
    *pid = (int)inner;
    kit_stay();
}

TEST(a_process_in_a_container_is_read_from_outside)
{
    _Atomic int *pid = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT(pid != MAP_FAILED);
    pid_t outer = kit_begin(is_first_in_container, pid);
    for (int i = 0; i < 6000 && !*pid && !kit_has_ended(outer); i++)
        usleep(10000);
    int inner = *pid;
    munmap((void *)(uintptr_t)pid, 4096);
    if (inner <= 0) {
        kit_end(outer);
        SKIP("this system does not let the test make a container");
    }
    /* What it sleeps in is known, too. */
    KIT_EXPECT_ALL(inner, false, "thread 1 \"", "\", sleeping in ",
                   "inside the kernel of kit::stays");
    kit_end(outer);
}

/* ---- nothing of ours is stuck ---- */

static void waits_for_child(void *arg)
{
    (void)arg;
    tn_tensor_unref(kit_ones(TN_CPU));
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        stays_as_it_is(NULL);
    }
    waitpid(child, NULL, 0);
}

TEST(a_program_that_waits_elsewhere_is_idle_and_its_child_is_named)
{
    pid_t child = kit_begin(waits_for_child, NULL);
    KIT_EXPECT_ALL(child, false,
                   "verdict: idle: no thread is in an operator; the main thread sleeps in ",
                   "the last call, aten::ones, began ",
                   "uses Tenon, too, and may be what it waits for: tenon doctor ");
    kit_end(child);
}

/* ---- busy while it is read ---- */

static _Atomic int n_working;

static void *works(void *arg)
{
    tn_tensor *x = arg, *y = NULL, *z = NULL;
    ASSERT_OK(tn_neg(x, &y));
    tn_tensor_unref(y);
    atomic_fetch_add(&n_working, 1);
    for (;;) {
        ASSERT_OK(tn_add(x, x, tn_int(1), &y));
        ASSERT_OK(tn_mul(y, x, &z));
        tn_tensor_unref(y);
        tn_tensor_unref(z);
    }
}

static void sixteen_work(void *arg)
{
    (void)arg;
    (void)!nice(10); /* the reader must get a processor, too */
    tn_tensor *x = kit_ones(TN_CPU);
    pthread_t threads[16];
    for (int i = 0; i < 16; i++)
        pthread_create(&threads[i], NULL, works, x);
    while (atomic_load(&n_working) < 16)
        usleep(1000);
    kit_ready();
    kit_stay();
}

static void expect_sense(const tni_seen *seen)
{
    EXPECT(!seen->damaged);
    EXPECT(seen->n_threads <= 17);
    for (uint32_t i = 0; i < seen->n_threads; i++) {
        const tni_seen_thread *t = &seen->threads[i];
        EXPECT(t->depth <= 6);
        for (uint32_t k = 0; !t->torn && k < t->n_frames; k++) {
            char room[24];
            const tni_flight_frame *f = &t->frames[k];
            const char *name = tni_seen_name(seen, TNI_NAME_OP, f->op, room);
            EXPECT(strncmp(name, "aten::", 6) == 0);
            EXPECT(f->stage > TNI_STAGE_ENDED && f->stage < TNI_STAGE_LIMIT);
            if (f->stage >= TNI_STAGE_INVOKE)
                EXPECT(tni_seen_entry(seen, TNI_NAME_KERNEL, f->kernel) != NULL);
        }
    }
}

/* On a crowded machine a thread may really not move for a while, and nothing that the doctor can
 * see says why. It is never said again and again. */
static void expect_no_hang(pid_t child, bool json)
{
    bool good = false;
    for (int tries = 0; tries < 20 && !good; tries++) {
        char *text = kit_report(child, json);
        test_note("try %d: %s", tries, text);
        EXPECT(!strstr(text, "unknown stage") && !strstr(text, "deadlock"));
        good = strstr(text, "makes progress") || strstr(text, "is ready to run, and others") ||
               strstr(text, "if it is only slow, look again");
        tn_string_free(text);
    }
    EXPECT(good);
}

TEST(sixteen_threads_at_work_are_read_a_thousand_times)
{
    pid_t child = kit_begin(sixteen_work, NULL);
    tni_process_records records;
    ASSERT_OK(tni_process_open((int)child, &records));
    int rounds = test_sanitized() || test_thread_sanitized() ? 100 : 1000;
    for (int i = 0; i < rounds; i++) {
        tni_seen seen;
        ASSERT_OK(tni_seen_read_all(&records, &seen));
        expect_sense(&seen);
        tni_seen_clear(&seen);
        if (i % 50 == 0)
            expect_no_hang(child, i % 100 == 0);
    }
    tni_process_close(&records);
    EXPECT_EQ_INT(kill(child, 0), 0);
    int status = 0;
    EXPECT_EQ_INT(waitpid(child, &status, WNOHANG), 0); /* it still runs */
    kit_end(child);
}
