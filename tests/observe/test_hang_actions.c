/* SPDX-License-Identifier: MIT */
/* tests/observe/test_hang_actions.c: what the watchdog does, asked for by the environment and by a
 * call: in a kernel that sleeps or spins, in a worker of the pool, in a backward pass. Each is a
 * program of its own that writes what it says into a file. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <time.h>

#include "kit.h"
#include "base/mark.h"
#include "base/pool.h"
#include "tenon/autograd.h"

static char said_path[64], record_path[64];
static char patience[16]; /* the watchdog's, in seconds */

static bool has_been_said(void)
{
    struct stat st;
    return fstat(STDERR_FILENO, &st) == 0 && st.st_size > 0;
}

/* Until the watchdog has spoken. Not static: its name is what the native stack must show. */
void sleeps_in_here(void);
__attribute__((noinline)) void sleeps_in_here(void)
{
    do {
        struct timespec once = {0, 100000000};
        while (nanosleep(&once, &once) != 0 && errno == EINTR)
            ;
    } while (!has_been_said());
    __asm__ volatile("");
}

/* The watchdog acts after it has spoken. */
static void await_interrupt(void)
{
    tni_thread_marks *marks = tni_marks_self();
    while (atomic_load(&tni_waits_can_end) && marks && !atomic_load(&marks->interrupt))
        usleep(1000);
}

static tn_status sleeps(tn_call *call, const tn_value *args, tn_value *rets)
{
    (void)call;
    sleeps_in_here();
    await_interrupt();
    tn_tensor *y = NULL;
    tn_status status = tn_neg(args[0].u.tensor, &y); /* here it can be stopped */
    if (status == TN_OK)
        rets[0] = tn_value_take_tensor(y);
    return status;
}

/* Takes the end of its sleep as it comes, as much code does: the watchdog's own signal may be it.
 */
static tn_status naps(tn_call *call, const tn_value *args, tn_value *rets)
{
    (void)call;
    const tni_thread_marks *marks = tni_marks_self();
    struct timespec once = {0, 100000000};
    while (nanosleep(&once, NULL) == 0 && !(marks && atomic_load(&marks->interrupt)))
        ;
    tn_tensor *y = NULL;
    tn_status status = tn_neg(args[0].u.tensor, &y);
    if (status == TN_OK)
        rets[0] = tn_value_take_tensor(y);
    return status;
}

static tn_status is_told(tn_call *call, const tn_value *args, tn_value *rets)
{
    sleeps_in_here();
    await_interrupt();
    ASSERT_OK(tn_set_dispatch_debug("neg"));
    return naps(call, args, rets);
}

static _Atomic bool worker_came;

static tn_status chunk_sleeps(int64_t begin, int64_t end, void *arg)
{
    (void)begin;
    (void)end;
    (void)arg;
    if (tni_pool_thread_index() != 0) {
        atomic_store(&worker_came, true);
        sleeps_in_here();
    }
    while (!atomic_load(&worker_came)) /* the worker must get one */
        usleep(1000);
    return TN_OK;
}

static tn_status in_worker(tn_call *call, const tn_value *args, tn_value *rets)
{
    (void)call;
    tn_tensor *y = NULL;
    tn_status status = tni_pool_for(2, 1, chunk_sleeps, NULL);
    if (status == TN_OK)
        await_interrupt();
    if (status == TN_OK)
        status = tn_neg(args[0].u.tensor, &y);
    if (status == TN_OK)
        rets[0] = tn_value_take_tensor(y);
    return status;
}

static tn_status hook_sleeps(void *ctx, tn_tensor *grad, tn_tensor **out)
{
    (void)ctx;
    (void)grad;
    (void)out;
    sleeps_in_here();
    await_interrupt();
    return TN_OK;
}

static tn_status in_pass(void)
{
    tn_tensor *x = kit_ones(TN_CPU), *y = NULL, *s = NULL;
    ASSERT_OK(tn_tensor_set_requires_grad(x, true));
    ASSERT_OK(tn_exp(x, &y));
    ASSERT_OK(tn_sum(y, TN_DTYPE_NONE, &s));
    ASSERT_OK(tn_tensor_add_hook(y, hook_sleeps, NULL, NULL, NULL));
    return tn_backward(&s, 1, NULL, NULL);
}

/* ---- programs ---- */

enum { KERNEL, WORKER, PASS, NAP, TOLD };

typedef struct program {
    int where;
    const char *action; /* NULL: nobody says */
    bool by_call;
    const char *native;
} program;

/* Exit status: 0 it went on, 3 TN_TIMEOUT, 4 another failure. */
static int run_program(void *arg)
{
    const program *p = arg;
    int fd = open(said_path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    dup2(fd, STDERR_FILENO);
    setenv("TENON_NUM_THREADS", "2", 1);
    if (p->by_call) {
        tn_watchdog_opts opts = TN_WATCHDOG_OPTS_INIT;
        opts.seconds = strtod(patience, NULL);
        opts.save_path = record_path;
        opts.native = p->native != NULL;
        opts.action = strcmp(p->action, "end") == 0     ? TN_HANG_END
                      : strcmp(p->action, "raise") == 0 ? TN_HANG_RAISE
                                                        : TN_HANG_REPORT;
        ASSERT_OK(tn_watchdog_start(&opts));
    } else {
        setenv("TENON_HANG_TIMEOUT", patience, 1);
        setenv("TENON_HANG_RECORD", record_path, 1);
        if (p->native)
            setenv("TENON_HANG_NATIVE", p->native, 1);
        if (p->action)
            setenv("TENON_HANG_ACTION", p->action, 1);
    }
    static const tn_boxed_fn kernels[] = {
        [KERNEL] = sleeps, [WORKER] = in_worker, [NAP] = naps, [TOLD] = is_told};
    tn_status status = p->where == PASS ? in_pass()
                                        : kit_call(kit_op("stuck", TN_KEY_CPU, kernels[p->where]),
                                                   kit_ones(TN_CPU));
    tn_watchdog_stop(); /* it says all that it has to say */
    return status == TN_OK ? 0 : status == TN_TIMEOUT ? 3 : 4;
}

static char said[65536];

static void read_said(void)
{
    int fd = open(said_path, O_RDONLY);
    ssize_t n = read(fd, said, sizeof said - 1);
    said[n > 0 ? n : 0] = '\0';
    close(fd);
    unlink(said_path);
}

static void name_files(void)
{
    snprintf(said_path, sizeof said_path, "/tmp/tenon-said-%d", (int)getpid());
    snprintf(record_path, sizeof record_path, "/tmp/tenon-hang-%d.rec", (int)getpid());
}

static bool says_all(const char *const *texts)
{
    while (*texts && strstr(said, *texts))
        texts++;
    return !*texts;
}

/* On a busy machine the program may stand still before it comes to where the test wants it, and the
 * watchdog speaks too early. Then it is given more time. */
static void expect_program(program p, int status, const char *const *texts, bool has_record)
{
    int found = -1;
    name_files();
    test_note("%s, %s by %s",
              p.where == PASS     ? "pass"
              : p.where == NAP    ? "nap"
              : p.where == TOLD   ? "stages"
              : p.where == WORKER ? "worker"
                                  : "kernel",
              p.action ? p.action : "nothing", p.by_call ? "a call" : "the environment");
    for (double seconds = 0.15; seconds < 10; seconds *= 4) {
        snprintf(patience, sizeof patience, "%g", seconds);
        unlink(record_path);
        found = try_in_child(run_program, &p, 60);
        read_said();
        if (found == status && says_all(texts))
            break;
    }
    EXPECT_EQ_INT(found, status);
    for (int i = 0; texts[i]; i++)
        EXPECT_CONTAINS(said, texts[i]);
    EXPECT_CONTAINS(said, patience);
    if (!p.native && (!p.action || strcmp(p.action, "report") == 0))
        EXPECT(!strstr(said, "native stacks"));
    char *text = NULL;
    tn_status st = tn_doctor_file(record_path, NULL, &text);
    EXPECT((st == TN_OK) == has_record);
    if (st == TN_OK && has_record)
        EXPECT_CONTAINS(text, "the watchdog ended the program there");
    tn_string_free(text);
    unlink(record_path);
}

static const char *const words[][8] = {
    [KERNEL] = {"[tenon watchdog] thread", " has not moved for ",
                "inside the kernel of kit::stuck [CPU]", "next:", NULL},
    [WORKER] = {"waits for pool workers", "(tenon-1) has not finished its part",
                "pool worker, works for thread", "next:", NULL},
    [PASS] = {"in a tensor hook of a backward pass", "AccumulateGrad waits for ExpBackward0",
              "next:", NULL},
    [TOLD] = {"inside the kernel of kit::stuck [CPU]", "[DEBUG Dispatcher::call] op=aten::neg",
              "[DEBUG Dispatcher::call] Refused: ", NULL},
    [NAP] = {"what follows: raise", "inside the kernel of kit::stuck [CPU]", "native stacks", NULL},
};

static void expect_everywhere(const char *action, bool by_call, int status, bool has_record)
{
    for (int where = KERNEL; where <= PASS; where++)
        expect_program((program){where, action, by_call, NULL}, status, words[where], has_record);
}

TEST(without_an_action_it_reports_and_the_program_goes_on)
{
    expect_everywhere(NULL, false, 0, false);
}

TEST(report_goes_on)
{
    expect_everywhere("report", false, 0, false);
    expect_everywhere("report", true, 0, false);
}

TEST(raise_lets_the_call_fail)
{
    expect_everywhere("raise", false, 3, false);
    expect_everywhere("raise", true, 3, false);
}

TEST(raise_also_stops_a_call_whose_sleep_the_question_for_its_stack_ended)
{
    expect_program((program){NAP, "raise", false, NULL}, 3, words[NAP], false);
    expect_program((program){NAP, "raise", true, NULL}, 3, words[NAP], false);
}

TEST(raise_stops_a_call_whose_stages_are_printed)
{
    expect_program((program){TOLD, "raise", true, NULL}, 3, words[TOLD], false);
}

TEST(end_ends_the_process_and_leaves_a_record)
{
    expect_everywhere("end", false, 124, true);
    expect_everywhere("end", true, 124, true);
}

TEST(native_stacks_show_the_function_that_a_thread_is_in)
{
    if (test_thread_sanitized())
        SKIP(
            "the thread sanitizer keeps signals back until a thread comes to its next system call");
    static const char *const in_function[] = {"native stacks", "sleeps_in_here+0x", "#1", NULL};
    for (int where = KERNEL; where <= PASS; where++) {
        expect_program((program){where, "end", false, NULL}, 124, in_function, true);
        expect_program((program){where, "report", true, "1"}, 0, in_function, false);
        expect_program((program){where, "report", false, "1"}, 0, in_function, false);
    }
}

static void own_handler(int number)
{
    (void)number;
}

static int handles_signal(void *arg)
{
    struct sigaction action = {.sa_handler = own_handler}, after;
    sigaction(SIGURG, &action, NULL);
    int status = run_program(arg);
    sigaction(SIGURG, NULL, &after);
    return after.sa_handler == own_handler ? status : 9;
}

TEST(a_program_that_handles_the_signal_itself_keeps_its_handler)
{
    name_files();
    snprintf(patience, sizeof patience, "0.15");
    program p = {KERNEL, "report", true, "1"};
    EXPECT_EQ_INT(run_in_child(handles_signal, &p, 60), 0);
    read_said();
    EXPECT_CONTAINS(said, ": none, the program handles SIGURG itself");
}

static int asks_for_nonsense(void *arg)
{
    (void)arg;
    int fd = open(said_path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    dup2(fd, STDERR_FILENO);
    setenv("TENON_HANG_TIMEOUT", "soon", 1);
    setenv("TENON_HANG_ACTION", "explode", 1);
    tn_tensor_unref(kit_ones(TN_CPU));
    return 0;
}

TEST(a_variable_that_makes_no_sense_is_said_and_the_program_goes_on)
{
    name_files();
    EXPECT_EQ_INT(run_in_child(asks_for_nonsense, NULL, 30), 0);
    read_said();
    EXPECT_CONTAINS(said, "tenon: TENON_HANG_TIMEOUT=soon is not understood: it takes a number of "
                          "seconds from 0.01 to 1e6, or 0 for no watchdog; nothing is watched\n");
    EXPECT_CONTAINS(said, "tenon: TENON_HANG_ACTION=explode is not understood: it takes report, "
                          "raise or end; report is used\n");
}

static tn_status sleeps_long(tn_call *call, const tn_value *args, tn_value *rets)
{
    (void)call;
    (void)args;
    (void)rets;
    for (unsigned left = 3600; left > 0;) /* being asked for its stack wakes it */
        left = sleep(left);
    return TN_OK;
}

/* Standard error is a pipe that is full and that nobody reads. */
static int ends_with_stuck_stderr(void *arg)
{
    (void)arg;
    int ends[2];
    char bytes[4096] = "";
    if (pipe(ends) != 0)
        return 8;
    fcntl(ends[1], F_SETFL, O_NONBLOCK);
    while (write(ends[1], bytes, sizeof bytes) > 0)
        ;
    fcntl(ends[1], F_SETFL, 0);
    dup2(ends[1], STDERR_FILENO);
    setenv("TENON_HANG_TIMEOUT", "0.15", 1);
    setenv("TENON_HANG_ACTION", "end", 1);
    (void)kit_call(kit_op("stuck", TN_KEY_CPU, sleeps_long), kit_ones(TN_CPU));
    return 0;
}

TEST(the_process_ends_also_when_nobody_reads_the_report)
{
    EXPECT_EQ_INT(run_in_child(ends_with_stuck_stderr, NULL, 60), 124);
}
