/* SPDX-License-Identifier: MIT */
/* tests/observe/kit.h: programs to look at: children that come to a place, say so, and stay there;
 * and what the doctor says about them. */
#ifndef OBSERVE_KIT_H
#define OBSERVE_KIT_H

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/test.h"
#include "tenon/dispatch.h"
#include "tenon/ops.h"
#include "tenon/recorder.h"

#define UNUSED __attribute__((unused))

static int kit_pipe[2] = {-1, -1};

/* In the child: it is where the test wants it. */
UNUSED static void kit_ready(void)
{
    (void)!write(kit_pipe[1], "r", 1);
}

/* In the child, for ever; or until half an hour has passed and nobody came. */
UNUSED static void kit_stay(void)
{
    for (int i = 0; i < 180000; i++)
        usleep(10000);
    _exit(9);
}

/* A child made by fork() that runs @p fn and ends; comes back when it has called kit_ready or
 * ended. */
UNUSED static pid_t kit_begin(void (*fn)(void *arg), void *arg)
{
    ASSERT(pipe(kit_pipe) == 0);
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* nothing is left behind */
        close(kit_pipe[0]);
        fn(arg);
        _exit(0);
    }
    close(kit_pipe[1]);
    char letter;
    (void)!read(kit_pipe[0], &letter, 1);
    close(kit_pipe[0]);
    return child;
}

UNUSED static void kit_end(pid_t child)
{
    kill(child, SIGKILL);
    while (waitpid(child, NULL, 0) < 0)
        ;
}

/* What the doctor says. Owned: tn_string_free. */
UNUSED static char *kit_report(pid_t pid, bool json)
{
    tn_doctor_opts opts = TN_DOCTOR_OPTS_INIT;
    opts.json = json;
    opts.interval_ms = 60;
    char *text = NULL;
    ASSERT_OK(tn_doctor_process((int)pid, &opts, &text));
    return text;
}

/* What is true sooner or later, however busy the machine is: tried for a minute. */
#define KIT_WAIT_FOR(condition)                           \
    do {                                                  \
        for (int i_ = 0; i_ < 6000 && !(condition); i_++) \
            usleep(10000);                                \
        EXPECT(condition);                                \
    } while (0)

UNUSED static bool kit_says_all(const char *text, const char *const *wanted)
{
    while (*wanted && strstr(text, *wanted))
        wanted++;
    return !*wanted;
}

/* Sooner or later the doctor says all of that, up to NULL, at one time: a child that has said that
 * it is ready may come to its place a moment later, and where the machine is busy, or the child
 * gets no processor, what is said is that. Asked for a minute and more. */
UNUSED static void kit_expect_all(pid_t pid, bool json, const char *const *wanted)
{
    char *text = NULL;
    for (double left = 60; left > 0; left -= 0.1) {
        tn_string_free(text);
        text = kit_report(pid, json);
        if (kit_says_all(text, wanted))
            break;
        usleep(40000);
    }
    for (; *wanted; wanted++)
        EXPECT_CONTAINS(text, *wanted);
    tn_string_free(text);
}
#define KIT_EXPECT_ALL(pid, json, ...) \
    kit_expect_all((pid), (json), (const char *const[]){__VA_ARGS__, NULL})

/* The system may forbid to look into a child of one's own. */
UNUSED static bool kit_may_read(pid_t pid)
{
    char here;
    struct iovec to = {&here, 1}, from = {kit_pipe, 1};
    return process_vm_readv(pid, &to, 1, &from, 1, 0) == 1 || errno != EPERM;
}

/* What the doctor says of a child that runs @p fn, in words and as JSON, where it may look into
 * its memory. */
UNUSED static void kit_expect(void (*fn)(void *arg), const char *wanted, const char *kind)
{
    pid_t child = kit_begin(fn, NULL);
    if (!kit_may_read(child)) {
        test_note("the system does not let a parent read its child: nothing to see");
        kit_end(child);
        return;
    }
    KIT_EXPECT_ALL(child, false, wanted);
    KIT_EXPECT_ALL(child, true, kind);
    kit_end(child);
}

/* It has ended, and is still to be waited for. */
UNUSED static bool kit_has_ended(pid_t child)
{
    siginfo_t info = {.si_pid = 0};
    return waitid(P_PID, (id_t)child, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid == child;
}

/* The child has become the program @p name. */
UNUSED static bool kit_is_program(pid_t pid, const char *name)
{
    char path[64], text[32] = "";
    snprintf(path, sizeof path, "/proc/%d/comm", (int)pid);
    FILE *file = fopen(path, "r");
    bool is = file && fgets(text, sizeof text, file) && strcspn(text, "\n") == strlen(name) &&
              strncmp(text, name, strlen(name)) == 0;
    if (file)
        fclose(file);
    return is;
}

UNUSED static tn_tensor *kit_ones(tn_device device)
{
    const int64_t sizes[] = {4};
    tn_tensor_opts opts = tn_opts(TN_DTYPE_F32, device);
    tn_tensor *t = NULL;
    ASSERT_OK(tn_ones(sizes, 1, &opts, &t));
    return t;
}

/* Define kit::NAME(Tensor x) -> Tensor with one kernel for @p key. */
UNUSED static tn_op *kit_op(const char *name, tn_key key, tn_boxed_fn fn)
{
    static tn_library *lib;
    char schema[128], full[128];
    if (!lib)
        ASSERT_OK(tn_library_open(TN_LIBRARY_DEF, "kit", TN_KEY_NONE, __FILE__, __LINE__, &lib));
    snprintf(schema, sizeof schema, "%s(Tensor x) -> Tensor", name);
    snprintf(full, sizeof full, "kit::%s", name);
    ASSERT_OK(tn_library_def(lib, schema, NULL, NULL));
    tn_kernel kernel = TN_KERNEL_INIT(fn);
    kernel.name = name;
    ASSERT_OK(tn_library_impl(lib, name, key, &kernel, NULL));
    tn_op *op = NULL;
    ASSERT_OK(tn_op_find(full, &op));
    return op;
}

UNUSED static tn_status kit_call(tn_op *op, tn_tensor *x)
{
    tn_value arg = tn_value_tensor(x), ret;
    tn_status status = tn_op_call(op, &arg, 1, &ret);
    if (status == TN_OK)
        tn_value_clear(&ret);
    return status;
}

/* A kernel that says that it was reached, and stays. */
UNUSED static tn_status kit_stays(tn_call *call, const tn_value *args, tn_value *rets)
{
    (void)call;
    (void)args;
    (void)rets;
    kit_ready();
    kit_stay();
    return TN_OK;
}

#endif
