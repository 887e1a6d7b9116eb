/* SPDX-License-Identifier: MIT */
/* cli/cmd_doctor.c: `tenon doctor`: where every thread of another process is, and what is wrong. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli.h"
#include "term.h"
#include "watch.h"
#include "tenon/dispatch.h"
#include "tenon/recorder.h"

static int run_doctor(const command *self, int argc, char **argv);

const command command_doctor = {
    .name = "doctor",
    .usage = "PID|FILE [--json] [--watch[=SECONDS]] [--verdict] [--native]",
    .summary = "say where every thread of a process is, and what it is stuck on",
    .help =
        "PID is a process of yours that uses Tenon; it is not stopped, and needs no preparation.\n"
        "FILE is a record that a program left behind: TENON_RECORD=FILE or tn_recorder_save.\n\n"
        "First comes the verdict, with what to try next. Then for each thread: what it waits for\n"
        "and holds, its backward passes with what is ready and what is not, and its dispatch\n"
        "frames, the outermost first: operator, tensors, key, stage, time, kernel.\n\n"
        "  --verdict          the verdict alone\n"
        "  --watch[=SECONDS]  again and again, every second or so often, until it ends or q or ^C "
        "is\n"
        "                     pressed; on a terminal a screen of its own: arrows and pages move\n"
        "  --json             as JSON\n"
        "  --native           also native stacks, by gdb or eu-stack if installed; this stops the\n"
        "                     process for a moment and may need more rights\n\n"
        "Exit status: 0, 1 when the process or file cannot be read, 2 for wrong usage. In a "
        "program\n"
        "of your own: TENON_HANG_TIMEOUT=SECONDS writes this report when a thread stops moving.\n",
    .run = run_doctor,
};

/* ---- native stacks ---- */

enum { TOOL_SECONDS = 60 };

typedef enum outcome { TOLD, FAILED, NOT_THERE } outcome;

/* Pass on what a tool says; true when there was a frame of a stack among it: what such tools return
 * says little. It is ended after a while: symbols may be many, and a debugger can hang, too. */
static bool pass_on(int from, pid_t child)
{
    char piece[4096];
    bool any = false, at_start = true;
    uint64_t until = clock_ns() + TOOL_SECONDS * UINT64_C(1000000000);
    for (;;) {
        uint64_t now = clock_ns();
        struct pollfd input = {from, POLLIN, 0};
        int found = poll(&input, 1, now < until ? (int)((until - now) / 1000000u) + 1 : 0);
        ssize_t n = found > 0 ? read(from, piece, sizeof piece) : -1;
        if (found == 0) {
            printf("  it has not answered for %d s, and is ended\n", TOOL_SECONDS);
            kill(child, SIGKILL); /* the system lets its process go on */
            return any;
        }
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return any;
        for (ssize_t i = 0; i < n; i++) {
            any = any || (at_start && piece[i] == '#');
            at_start = piece[i] == '\n';
        }
        fwrite(piece, 1, (size_t)n, stdout);
    }
}

static outcome run_tool(char *const *words)
{
    int ends[2], status = 0;
    fflush(stdout);
    if (pipe(ends) != 0)
        return FAILED;
    pid_t child = fork();
    if (child == 0) {
        dup2(open("/dev/null", O_RDONLY), STDIN_FILENO);
        dup2(ends[1], STDOUT_FILENO);
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        close(ends[1]);
        execvp(words[0], words);
        _exit(127);
    }
    close(ends[1]);
    bool any = child > 0 && pass_on(ends[0], child);
    close(ends[0]);
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    return any ? TOLD : WIFEXITED(status) && WEXITSTATUS(status) == 127 ? NOT_THERE : FAILED;
}

static void print_native_stacks(int pid)
{
    char number[16];
    snprintf(number, sizeof number, "%d", pid);
    char eu[] = "eu-stack", n[] = "-n", most[] = "48", p[] = "-p", gdb[] = "gdb",
         batch[] = "-batch", nx[] = "-nx", iex[] = "-iex", off[] = "set debuginfod enabled off",
         ex[] = "-ex", bt[] = "thread apply all bt 48";
    char *by_elfutils[] = {eu, n, most, p, number, NULL};
    char *by_gdb[] = {gdb, nx, batch, iex, off, p, number, ex, bt, NULL};
    printf("\nnative stacks:\n");
    outcome first = run_tool(by_elfutils);
    if (first == TOLD)
        return;
    outcome second = run_tool(by_gdb);
    if (first == NOT_THERE && second == NOT_THERE)
        printf("  neither eu-stack (elfutils) nor gdb is installed\n");
    else if (second != TOLD && kill(pid, 0) != 0 && errno == ESRCH)
        printf("  process %d has ended\n", pid);
    else if (second != TOLD)
        printf("  they need the right to trace it (root, CAP_SYS_PTRACE, or "
               "kernel.yama.ptrace_scope=0);"
               "\n  a watchdog inside the program needs none: TENON_HANG_TIMEOUT, "
               "TENON_HANG_NATIVE=1\n");
}

/* ---- the report ---- */

typedef struct request {
    const char *what;
    int pid; /* 0: a file */
    bool native;
    tn_doctor_opts opts;
} request;

/* The verdict stands out on a terminal. */
static void print_report(const char *text)
{
    styles st = term_styles(stdout);
    const char *verdict = strstr(text, "verdict:");
    const char *end = verdict ? strchr(verdict, '\n') : NULL;
    if (!end || !st.bold[0]) {
        fputs(text, stdout);
        return;
    }
    printf("%.*s%s%.*s%s%s", (int)(verdict - text), text, st.bold, (int)(end - verdict), verdict,
           st.off, end);
}

static tn_status look(const request *q, char **out)
{
    return q->pid ? tn_doctor_process(q->pid, &q->opts, out)
                  : tn_doctor_file(q->what, &q->opts, out);
}

static int print_once(const command *self, const request *q)
{
    char *text;
    if (look(q, &text) != TN_OK)
        return library_error(self);
    print_report(text);
    tn_string_free(text);
    if (q->native && q->pid)
        print_native_stacks(q->pid);
    return EXIT_OK;
}

static tn_status look_again(void *ctx, char **out)
{
    return look(ctx, out);
}

static int run_doctor(const command *self, int argc, char **argv)
{
    bool again = false;
    const char *every = NULL;
    request q = {.opts = TN_DOCTOR_OPTS_INIT};
    const option options[] = {{"--json", &q.opts.json, NULL, false},
                              {"--verdict", &q.opts.verdict_only, NULL, false},
                              {"--native", &q.native, NULL, false},
                              {"--watch", &again, &every, true}};
    int n = take_options(self, argc, argv, options, 4);
    if (n < 0)
        return EXIT_USAGE;
    if (n != 1)
        return usage_error(self, "one process or file, please");
    if (q.opts.json && (q.native || q.opts.verdict_only))
        return usage_error(self, "--json goes with neither --native nor --verdict");
    if (again && q.native)
        return usage_error(self, "--native stops the process for a moment: it does not go with "
                                 "--watch");
    char *end;
    double seconds = every ? strtod(every, &end) : 1;
    if (every && (end == every || *end || !(seconds >= 0.05 && seconds <= 3600)))
        return usage_error(self, "--watch takes a number of seconds from 0.05 to 3600");
    q.what = argv[0];
    errno = 0;
    long pid = strtol(argv[0], &end, 10);
    bool is_number = end != argv[0] && *end == '\0';
    if (is_number && (errno || pid <= 0 || pid > 0x7fffffff))
        return usage_error(self, "%s is not the number of a process", argv[0]);
    q.pid = is_number ? (int)pid : 0;
    if (again && !q.pid)
        return usage_error(self, "--watch needs a process: a file does not change");
    if (again)
        return watch(self, look_again, &q, seconds, q.opts.json);
    return print_once(self, &q);
}
