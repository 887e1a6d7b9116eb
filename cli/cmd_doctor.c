/* SPDX-License-Identifier: MIT */
/* cli/cmd_doctor.c: `tenon doctor`: where every thread of another process is, and what is wrong. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli.h"
#include "term.h"
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
        "  --watch[=SECONDS]  again and again, every second or so often, until it ends\n"
        "  --json             as JSON\n"
        "  --native           also native stacks, by gdb or eu-stack if installed; this stops the\n"
        "                     process for a moment and may need more rights\n\n"
        "Exit status: 0, 1 when the process or file cannot be read, 2 for wrong usage. In a "
        "program\n"
        "of your own: TENON_HANG_TIMEOUT=SECONDS writes this report when a thread stops moving.\n",
    .run = run_doctor,
};

/* ---- native stacks ---- */

static bool run_tool(char *const *words)
{
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        dup2(STDOUT_FILENO, STDERR_FILENO);
        execvp(words[0], words);
        _exit(127);
    }
    int status = 0;
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    return child > 0 && !(WIFEXITED(status) && WEXITSTATUS(status) == 127);
}

static void print_native_stacks(int pid)
{
    char number[16];
    snprintf(number, sizeof number, "%d", pid);
    char eu[] = "eu-stack", p[] = "-p", gdb[] = "gdb", batch[] = "-batch", nx[] = "-nx",
         ex[] = "-ex", bt[] = "thread apply all bt 24";
    char *by_elfutils[] = {eu, p, number, NULL};
    char *by_gdb[] = {gdb, nx, batch, p, number, ex, bt, NULL};
    printf("\nnative stacks:\n");
    if (!run_tool(by_elfutils) && !run_tool(by_gdb))
        printf("  neither eu-stack (elfutils) nor gdb is installed\n");
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

static volatile sig_atomic_t interrupted;

static void on_interrupt(int signal_number)
{
    (void)signal_number;
    interrupted = 1;
}

/* Until the process ends, the reader goes, or somebody presses ^C. */
static int print_again_and_again(const command *self, const request *q, double seconds)
{
    struct sigaction action = {.sa_handler = on_interrupt};
    sigaction(SIGINT, &action, NULL);
    bool clear = term_live(stdout) && !q->opts.json;
    for (bool first = true; !interrupted; first = false) {
        char *text;
        if (look(q, &text) != TN_OK) {
            if (first)
                return library_error(self);
            printf("%s\n", tn_last_error());
            return EXIT_OK;
        }
        fputs(clear ? "\033[H\033[2J" : first || q->opts.json ? "" : "\n", stdout);
        print_report(text);
        tn_string_free(text);
        if (fflush(stdout) != 0)
            return EXIT_FAILED;
        struct timespec pause = {(time_t)seconds,
                                 (long)((seconds - (double)(time_t)seconds) * 1e9)};
        nanosleep(&pause, NULL);
    }
    return EXIT_OK;
}

static int run_doctor(const command *self, int argc, char **argv)
{
    bool watch = false;
    const char *every = NULL;
    request q = {.opts = TN_DOCTOR_OPTS_INIT};
    const option options[] = {{"--json", &q.opts.json, NULL, false},
                              {"--verdict", &q.opts.verdict_only, NULL, false},
                              {"--native", &q.native, NULL, false},
                              {"--watch", &watch, &every, true}};
    int n = take_options(self, argc, argv, options, 4);
    if (n < 0)
        return EXIT_USAGE;
    if (n != 1)
        return usage_error(self, "one process or file, please");
    if (q.opts.json && (q.native || q.opts.verdict_only))
        return usage_error(self, "--json goes with neither --native nor --verdict");
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
    if (watch && !q.pid)
        return usage_error(self, "--watch needs a process: a file does not change");
    return watch ? print_again_and_again(self, &q, seconds) : print_once(self, &q);
}
