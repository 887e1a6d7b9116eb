/* SPDX-License-Identifier: MIT */
/* tests/observe/test_stages.c: the words for where a call is. One call is walked through an
 * instruction at a time, and after each the record is read as the doctor reads it: every stage must
 * be seen, under its name, in the order in which it happens. Another is stopped at every stage line
 * that it prints: the record must say what the line says. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/test.h"
#include "observe/report.h"
#include "tenon/autograd.h"
#include "tenon/dispatch.h"
#include "tenon/ops.h"
#include "tenon/recorder.h"

enum { MOST_STEPS = 4000000, MOST_SEEN = 64 };

static tn_tensor *tensor_on(tn_device device)
{
    const int64_t sizes[] = {4, 4};
    tn_tensor_opts opts = tn_opts(TN_DTYPE_F32, device);
    tn_tensor *t = NULL;
    ASSERT_OK(tn_ones(sizes, 2, &opts, &t));
    return t;
}

/* In the child: the same call twice, so that the second has nothing left to initialise. Without
 * autograd, whose kernel would stand before the one of the device. */
static void call_mm(tn_device device, bool boxed, const char *stages_of)
{
    (void)tn_inference_enter(true);
    tn_tensor *x = tensor_on(device), *y = NULL;
    tn_op *mm = NULL;
    ASSERT_OK(tn_op_find("aten::mm", &mm));
    for (int i = 0; i < 2; i++) {
        tn_value args[2] = {tn_value_tensor(x), tn_value_tensor(x)}, ret;
        if (i == 1) {
            ASSERT_OK(tn_set_dispatch_debug(stages_of));
            raise(SIGSTOP);
        }
        if (boxed) {
            ASSERT_OK(tn_op_call(mm, args, 2, &ret));
            tn_value_clear(&ret);
        } else {
            ASSERT_OK(tn_mm(x, x, &y));
            tn_tensor_unref(y);
        }
    }
    raise(SIGSTOP);
}

/* What was seen: "operator: stage", each when it changed. */
typedef struct walk {
    int n;
    char seen[MOST_SEEN][96];
} walk;

static void note_stage(walk *w, const tni_seen *seen)
{
    if (!seen->n_threads || !seen->threads[0].n_frames)
        return;
    const tni_seen_thread *t = &seen->threads[0];
    char text[96], room[24];
    const tni_flight_frame *f = &t->frames[t->n_frames - 1];
    snprintf(text, sizeof text, "%s: %s", tni_seen_name(seen, TNI_NAME_OP, f->op, room),
             tni_frame_stage(f));
    if (w->n && strcmp(w->seen[w->n - 1], text) == 0)
        return;
    if (w->n < MOST_SEEN)
        memcpy(w->seen[w->n++], text, sizeof text);
    /* The report says the same. */
    tni_verdict verdict;
    tni_str report = TNI_STR_INIT;
    tni_judge(seen, false, &verdict);
    tni_report_text(&report, seen, &verdict);
    EXPECT_CONTAINS(tni_str_get(&report), tni_frame_stage(f));
    EXPECT_CONTAINS(tni_str_get(&verdict.text), tni_frame_stage(f));
    EXPECT(verdict.next.n > 0);
    tni_str_clear(&report);
    tni_verdict_clear(&verdict);
}

/* Something a look would show differently: the stages of the first frames, without a whole read. */
static uint64_t stages_now(int fd, const tni_flight_thread *t)
{
    tni_flight_frame frames[3];
    memset(frames, 0, sizeof frames);
    uint64_t calls = 0, at = 0, word = 0;
    (void)!pread(fd, &at, sizeof at, TNI_FLIGHT_PAGE); /* the directory's first place */
    (void)!pread(fd, &calls, sizeof calls, (off_t)(at + offsetof(tni_flight_thread, calls)));
    (void)!pread(fd, frames, sizeof frames,
                 (off_t)(t->slots_at + calls % TNI_FLIGHT_RING * sizeof *frames));
    for (int i = 0; i < 3; i++)
        word = word << 8 | frames[i].stage;
    return word;
}

static bool may_trace(void)
{
    pid_t child = fork();
    if (child == 0)
        _exit(ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0);
    int status;
    return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void take_walk(tn_device device, bool boxed, walk *w)
{
    memset(w, 0, sizeof *w);
    pid_t child = fork();
    if (child == 0) {
        ptrace(PTRACE_TRACEME, 0, NULL, NULL);
        call_mm(device, boxed, NULL);
        _exit(0);
    }
    int status;
    tni_process_records records;
    ASSERT(waitpid(child, &status, 0) == child && WIFSTOPPED(status));
    ASSERT_OK(tni_process_open((int)child, &records));
    int fd = records.fd[0];
    tni_seen seen;
    ASSERT_OK(tni_seen_read(fd, true, &seen));
    ASSERT(seen.n_threads == 1);
    tni_flight_thread thread = seen.threads[0].block;
    tni_seen_clear(&seen);
    uint64_t last = 0;
    for (int i = 0; i < MOST_STEPS; i++) {
        if (ptrace(PTRACE_SINGLESTEP, child, NULL, NULL) != 0 ||
            waitpid(child, &status, 0) != child || !WIFSTOPPED(status) ||
            WSTOPSIG(status) == SIGSTOP)
            break;
        uint64_t now = stages_now(fd, &thread);
        if (now == last)
            continue;
        last = now;
        ASSERT_OK(tni_seen_read(fd, true, &seen));
        note_stage(w, &seen);
        tni_seen_clear(&seen);
    }
    tni_process_close(&records);
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
}

static int find(const walk *w, const char *text, int from)
{
    for (int i = from; i < w->n; i++) {
        if (strcmp(w->seen[i], text) == 0)
            return i;
    }
    return -1;
}

static void expect_in_order(const walk *w, const char *const *texts, int n)
{
    int at = 0;
    for (int i = 0; i < n; i++) {
        int found = find(w, texts[i], at);
        test_note("wanted \"%s\"; seen were %d stages, the first \"%s\"", texts[i], w->n,
                  w->n ? w->seen[0] : "");
        EXPECT(found >= 0);
        at = found >= 0 ? found : at;
    }
}

TEST(a_boxed_call_on_meta_passes_every_stage_under_its_name)
{
    if (!may_trace())
        SKIP("this system does not let a program trace its own child");
    static const char *const wanted[] = {
        "aten::mm: entering the dispatcher",
        "aten::mm: in lookup",
        "aten::mm: in the validity check",
        "aten::mm: in kernel invocation",
        "aten::mm: between boxed call and meta kernel",
        "aten::mm: inside the kernel",
    };
    walk w;
    take_walk(TN_META, true, &w);
    expect_in_order(&w, wanted, 6);
}

TEST(a_typed_call_enters_looks_up_and_is_inside)
{
    if (!may_trace())
        SKIP("this system does not let a program trace its own child");
    static const char *const wanted[] = {"aten::mm: entering the dispatcher", "aten::mm: in lookup",
                                         "aten::mm: inside the kernel"};
    walk w;
    take_walk(TN_CPU, false, &w);
    expect_in_order(&w, wanted, 3);
}

/* ---- beside the stage lines ---- */

/* Lines, each with the innermost frame while it was being printed. */
typedef struct held {
    int n;
    struct {
        char text[128];
        char place[96];
    } lines[MOST_SEEN];
} held;

/* At the beginning of a write() to stderr: what it is about to write. */
static bool is_line(pid_t child, char text[128])
{
    struct __ptrace_syscall_info call;
    memset(&call, 0, sizeof call);
    if (ptrace(PTRACE_GET_SYSCALL_INFO, child, (void *)sizeof call, &call) <= 0 ||
        call.op != PTRACE_SYSCALL_INFO_ENTRY || call.entry.nr != SYS_write ||
        call.entry.args[0] != STDERR_FILENO)
        return false;
    size_t n = call.entry.args[2] < 127 ? call.entry.args[2] : 127;
    struct iovec to = {text, n}, from = {(void *)(uintptr_t)call.entry.args[1], n};
    memset(text, 0, 128);
    return process_vm_readv(child, &to, 1, &from, 1, 0) == (ssize_t)n;
}

static void note_line(held *h, int fd, const char text[128])
{
    tni_seen seen;
    char room[24];
    ASSERT_OK(tni_seen_read(fd, true, &seen));
    ASSERT(seen.n_threads == 1 && h->n < MOST_SEEN);
    const tni_seen_thread *t = &seen.threads[0];
    memcpy(h->lines[h->n].text, text, 128);
    snprintf(h->lines[h->n].place, sizeof h->lines[h->n].place, "no frame");
    if (t->n_frames) {
        const tni_flight_frame *f = &t->frames[t->n_frames - 1];
        snprintf(h->lines[h->n].place, sizeof h->lines[h->n].place, "%s: %s",
                 tni_seen_name(&seen, TNI_NAME_OP, f->op, room), tni_frame_stage(f));
    }
    h->n++;
    tni_seen_clear(&seen);
}

static void hold_at_lines(tn_device device, bool boxed, held *h)
{
    memset(h, 0, sizeof *h);
    pid_t child = fork();
    if (child == 0) {
        int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
        dup2(nowhere, STDERR_FILENO);
        ptrace(PTRACE_TRACEME, 0, NULL, NULL);
        call_mm(device, boxed, "mm");
        _exit(0);
    }
    int status;
    char text[128];
    tni_process_records records;
    ASSERT(waitpid(child, &status, 0) == child && WIFSTOPPED(status));
    ASSERT(ptrace(PTRACE_SETOPTIONS, child, NULL, PTRACE_O_TRACESYSGOOD) == 0);
    ASSERT_OK(tni_process_open((int)child, &records));
    while (ptrace(PTRACE_SYSCALL, child, NULL, NULL) == 0 && waitpid(child, &status, 0) == child &&
           WIFSTOPPED(status) && WSTOPSIG(status) == (SIGTRAP | 0x80)) {
        if (is_line(child, text))
            note_line(h, records.fd[0], text);
    }
    tni_process_close(&records);
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
}

typedef struct expected {
    const char *line, *place;
} expected;

/* Every line is there, in this order, and the record was in that stage. */
static void expect_places(const held *h, const expected *wanted, int n)
{
    int at = 0;
    for (int i = 0; i < n; i++) {
        while (at < h->n && !strstr(h->lines[at].text, wanted[i].line))
            at++;
        test_note("wanted the line \"%s\" of %d", wanted[i].line, h->n);
        ASSERT(at < h->n);
        EXPECT_STR(h->lines[at].place, wanted[i].place);
    }
}

#define BEFORE_CALL(label)                                                              \
    {"[DEBUG Dispatcher::" label "] op=aten::mm", "aten::mm: entering the dispatcher"}, \
        {"dispatchKeySet=", "aten::mm: entering the dispatcher"},                       \
        {"About to call lookup()", "aten::mm: in lookup"},                              \
        {"[DEBUG OperatorEntry::lookup] op=aten::mm, keyset=", "aten::mm: in lookup"},  \
        {"highest priority key=", "aten::mm: in lookup"},                               \
        {"dispatch table index=", "aten::mm: in the validity check"},                   \
        {"kernel.isValid=1", "aten::mm: in kernel invocation"},                         \
        {"Returning kernel, about to call it", "aten::mm: in kernel invocation"},       \
        {"lookup() returned", "aten::mm: in kernel invocation"},                        \
    {                                                                                   \
        "About to call kernel.call", "aten::mm: in kernel invocation"                   \
    }

TEST(a_boxed_call_that_is_held_at_a_stage_line_is_in_that_stage)
{
    if (!may_trace())
        SKIP("this system does not let a program trace its own child");
    static const expected wanted[] = {
        BEFORE_CALL("callBoxed"),
        {"About to call boxed_kernel_func_.callBoxed()", "aten::mm: in kernel invocation"},
        {"About to invoke (*boxed_kernel_func_)(...)",
         "aten::mm: between boxed call and meta kernel"},
        {"ENTERED MM META FUNCTION", "aten::mm: inside the kernel"},
        {"(*boxed_kernel_func_)() RETURNED!", "aten::mm: inside the kernel"},
    };
    held h;
    hold_at_lines(TN_META, true, &h);
    expect_places(&h, wanted, sizeof wanted / sizeof *wanted);
}

TEST(a_typed_call_that_is_held_at_a_stage_line_is_in_that_stage)
{
    if (!may_trace())
        SKIP("this system does not let a program trace its own child");
    static const expected wanted[] = {
        BEFORE_CALL("call"),
        {"ENTERED MM META FUNCTION", "aten::mm: inside the kernel"},
        {"kernel.call<>() RETURNED", "aten::mm: inside the kernel"},
    };
    held h;
    hold_at_lines(TN_META, false, &h);
    expect_places(&h, wanted, sizeof wanted / sizeof *wanted);
}

TEST(each_stage_has_the_word_that_the_documents_give_it)
{
    static const struct {
        int stage;
        tn_key key;
        const char *text;
    } words[] = {
        {TNI_STAGE_ENTERING, TN_KEY_META, "entering the dispatcher"},
        {TNI_STAGE_LOOKUP, TN_KEY_META, "in lookup"},
        {TNI_STAGE_CHECK, TN_KEY_META, "in the validity check"},
        {TNI_STAGE_INVOKE, TN_KEY_META, "in kernel invocation"},
        {TNI_STAGE_INSIDE, TN_KEY_META, "inside the kernel"},
        {TNI_STAGE_BOXED, TN_KEY_META, "between boxed call and meta kernel"},
        {TNI_STAGE_BOXED, TN_KEY_AUTOGRAD_META, "between boxed call and kernel"},
        {TNI_STAGE_BOXED, TN_KEY_CPU, "between boxed call and kernel"},
        {TNI_STAGE_MISSING, TN_KEY_META, "reporting a missing kernel"},
        {99, TN_KEY_META, "in an unknown stage"},
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        tni_flight_frame f = {.stage = (uint8_t)words[i].stage,
                              .slot = (uint16_t)tn_keyset_slot(tn_keyset_of(words[i].key))};
        EXPECT_STR(tni_frame_stage(&f), words[i].text);
    }
}
