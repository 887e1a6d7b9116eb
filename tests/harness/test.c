/* SPDX-License-Identifier: MIT */
/* The harness: registers, runs and reports tests. Uses the public library alone. */
#define _GNU_SOURCE /* strsignal, pthread_barrier_t */
#include "harness/test.h"

#include <dirent.h>
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#if defined(__SANITIZE_THREAD__)
#    define THREAD_SANITIZED 1
#elif defined(__has_feature)
#    if __has_feature(thread_sanitizer)
#        define THREAD_SANITIZED 1
#    endif
#endif
#ifndef THREAD_SANITIZED
#    define THREAD_SANITIZED 0
#endif
#if defined(__SANITIZE_ADDRESS__)
#    define ADDRESS_SANITIZED 1
#elif defined(__has_feature)
#    if __has_feature(address_sanitizer)
#        define ADDRESS_SANITIZED 1
#    endif
#endif
#ifndef ADDRESS_SANITIZED
#    define ADDRESS_SANITIZED 0
#endif

enum {
    /* A machine may be slow and busy: only what hangs takes so long. */
    DEFAULT_TIMEOUT = THREAD_SANITIZED || ADDRESS_SANITIZED ? 1200 : 600,
    CHILD_PATIENCE = 300, /* seconds more than a quiet machine needs */
    CHILD_FAILED = 99,
    MOST_PRINTED = 25
};

static test_case *first_case;
static test_case **last_link = &first_case;

/* The test that runs. */
static const char *current = "";
static _Atomic int complaints; /* failed expectations, from all its threads */
static pthread_t main_thread;
static jmp_buf way_out;
static char skip_reason[256];
static char note[4096]; /* a report fits */
static void (*at_end)(void);
static unsigned timeout;

void test_register(test_case *test)
{
    *last_link = test;
    last_link = &test->next;
}

bool test_sanitized(void)
{
    return THREAD_SANITIZED || ADDRESS_SANITIZED;
}

bool test_thread_sanitized(void)
{
    return THREAD_SANITIZED;
}

/* --- reporting ----------------------------------------------------------------------------------
 */

bool test_wrong(const char *file, int line, const char *format, ...)
{
    if (atomic_fetch_add(&complaints, 1) >= MOST_PRINTED)
        return false; /* a loop that is wrong is wrong everywhere */
    va_list args;
    va_start(args, format);
    flockfile(stdout);
    printf("%s:%d: %s: ", file, line, current);
    vprintf(format, args);
    printf(note[0] ? "\n    (%s)\n" : "\n", note);
    fflush(stdout);
    funlockfile(stdout);
    va_end(args);
    return false;
}

void test_note(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(note, sizeof note, format, args);
    va_end(args);
}

void test_at_end(void (*fn)(void))
{
    at_end = fn;
}

void test_end(void)
{
    if (!pthread_equal(pthread_self(), main_thread))
        pthread_exit(NULL);
    longjmp(way_out, 1);
}

void test_skip(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(skip_reason, sizeof skip_reason, format, args);
    va_end(args);
    test_end();
}

/* --- expectations -------------------------------------------------------------------------------
 */

bool test_true(bool condition, const char *text, const char *file, int line)
{
    return condition || test_wrong(file, line, "%s does not hold", text);
}

bool test_eq_int(int64_t actual, int64_t wanted, const char *actual_text, const char *wanted_text,
                 const char *file, int line)
{
    return actual == wanted || test_wrong(file, line, "%s is %lld, wanted %s = %lld", actual_text,
                                          (long long)actual, wanted_text, (long long)wanted);
}

static const char *shown(const char *text)
{
    return text ? text : "(NULL)";
}

bool test_str(const char *actual, const char *wanted, const char *text, const char *file, int line)
{
    bool same = actual && wanted ? strcmp(actual, wanted) == 0 : actual == wanted;
    return same || test_wrong(file, line, "%s is \"%s\",\n    wanted \"%s\"", text, shown(actual),
                              shown(wanted));
}

bool test_contains(const char *haystack, const char *needle, const char *text, const char *file,
                   int line)
{
    bool found = haystack && needle && strstr(haystack, needle);
    return found || test_wrong(file, line, "%s is \"%s\",\n    wanted it to contain \"%s\"", text,
                               shown(haystack), shown(needle));
}

bool test_near(double actual, double wanted, double tolerance, const char *text, const char *file,
               int line)
{
    bool near = (isnan(actual) && isnan(wanted)) ||
                (isinf(wanted) && signbit(actual) == signbit(wanted) && isinf(actual)) ||
                fabs(actual - wanted) <= tolerance;
    return near || test_wrong(file, line, "%s is %.17g, wanted %.17g within %g", text, actual,
                              wanted, tolerance);
}

bool test_ok(tn_status status, const char *text, const char *file, int line)
{
    return status == TN_OK ||
           test_wrong(file, line, "%s gave %s: %s (%s %s)", text, tn_status_name(status),
                      tn_last_error(), tn_last_error_where(), tn_last_error_op());
}

bool test_fail(tn_status wanted, const char *substring, tn_status status, const char *text,
               const char *file, int line)
{
    if (status != wanted)
        return test_wrong(file, line, "%s gave %s: \"%s\",\n    wanted %s", text,
                          tn_status_name(status), tn_last_error(), tn_status_name(wanted));
    if (tn_last_status() != status)
        return test_wrong(file, line, "%s gave %s, but the error record says %s", text,
                          tn_status_name(status), tn_status_name(tn_last_status()));
    if (!strstr(tn_last_error(), substring))
        return test_wrong(file, line, "%s: the message is \"%s\",\n    wanted it to contain \"%s\"",
                          text, tn_last_error(), substring);
    return true;
}

/* --- time ---------------------------------------------------------------------------------------
 */

static double now(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

test_time test_begin_time(void)
{
    return (test_time){now(CLOCK_MONOTONIC), now(CLOCK_PROCESS_CPUTIME_ID)};
}

bool test_within(test_time start, double seconds, const char *text, const char *file, int line)
{
    double took = now(CLOCK_MONOTONIC) - start.wall,
           cpu = now(CLOCK_PROCESS_CPUTIME_ID) - start.cpu;
    return took <= seconds || cpu <= seconds ||
           test_wrong(file, line,
                      "%s took %.3f s, %.3f s of them of a processor, wanted at most %g s", text,
                      took, cpu, seconds);
}

/* Async-signal-safe: the test may hang while holding any lock. */
static void say(const char *text)
{
    ssize_t ignored = write(STDOUT_FILENO, text, strlen(text));
    (void)ignored;
}

static void on_signal(int number)
{
    say(current);
    say(number == SIGALRM ? ": timed out\n" : ": crashed\n");
    if (number == SIGALRM)
        _exit(124);
    signal(number, SIG_DFL);
    raise(number);
}

/* --- threads and children -----------------------------------------------------------------------
 */

typedef struct helper {
    pthread_t thread;
    pthread_barrier_t *start;
    int i;
    void (*fn)(int i, void *arg);
    void *arg;
} helper;

static void *helper_main(void *arg)
{
    helper *h = arg;
    pthread_barrier_wait(h->start);
    h->fn(h->i, h->arg);
    return NULL;
}

static void *need(void *memory)
{
    if (!memory) {
        say("the harness is out of memory\n");
        _exit(1);
    }
    return memory;
}

void run_threads(int n, void (*fn)(int i, void *arg), void *arg)
{
    pthread_barrier_t start;
    helper *helpers = need(calloc((size_t)n, sizeof *helpers));
    pthread_barrier_init(&start, NULL, (unsigned)n);
    for (int i = 0; i < n; i++) {
        helpers[i] = (helper){.start = &start, .i = i, .fn = fn, .arg = arg};
        if (pthread_create(&helpers[i].thread, NULL, helper_main, &helpers[i]) != 0) {
            say("the harness cannot start a thread\n"); /* the others wait at the barrier for ever
                                                         */
            _exit(1);
        }
    }
    for (int i = 0; i < n; i++)
        pthread_join(helpers[i].thread, NULL);
    pthread_barrier_destroy(&start);
    free(helpers);
}

/* Whether all other threads of the process sleep. */
static bool others_sleep(void)
{
    bool asleep = true;
    DIR *tasks = opendir("/proc/self/task");
    struct dirent *task;
    while (tasks && asleep && (task = readdir(tasks)) != NULL) {
        char path[sizeof "/proc/self/task//stat" + sizeof task->d_name], line[256];
        if (task->d_name[0] == '.' || atoi(task->d_name) == getpid())
            continue;
        snprintf(path, sizeof path, "/proc/self/task/%s/stat", task->d_name);
        FILE *file = fopen(path, "r");
        size_t n = file ? fread(line, 1, sizeof line - 1, file) : 0; /* 0: it has ended */
        line[n] = '\0';
        if (file)
            fclose(file);
        const char *state = strrchr(line, ')'); /* a name may hold anything */
        asleep = !state || strncmp(state, ") R", 3) != 0;
    }
    if (tasks)
        closedir(tasks);
    return asleep;
}

/* A thread that begins or ends holds the locks of the sanitizers' allocator, which has no handlers
 * of fork(): a child that is made meanwhile waits for them for ever. So such threads get the time
 * to do it; one that computes all the time does not stop the test. */
static void let_threads_settle(void)
{
    enum { LOOKS = 200, BETWEEN_US = 5000 };
    for (int i = 0; (ADDRESS_SANITIZED || THREAD_SANITIZED) && i < LOOKS && !others_sleep(); i++)
        usleep(BETWEEN_US);
}

static int child_status(int (*fn)(void *arg), void *arg, unsigned seconds)
{
    fflush(stdout);
    let_threads_settle();
    pid_t child = fork();
    if (child == 0) {
        signal(SIGALRM, SIG_DFL);
        alarm(CHILD_PATIENCE + seconds);
        atomic_store(&complaints, 0);
        main_thread = pthread_self();
        int status = setjmp(way_out) == 0 ? fn(arg) : CHILD_FAILED;
        fflush(stdout);
        _exit(atomic_load(&complaints) ? CHILD_FAILED : status);
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child)
        return -1;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

int try_in_child(int (*fn)(void *arg), void *arg, unsigned seconds)
{
    return child_status(fn, arg, seconds);
}

int run_in_child(int (*fn)(void *arg), void *arg, unsigned seconds)
{
    int status = child_status(fn, arg, seconds);
    if (status < 0)
        test_wrong(__FILE__, __LINE__, "fork or waitpid failed");
    else if (status > 128)
        test_wrong(__FILE__, __LINE__, "the child was killed: %s", strsignal(status - 128));
    else if (status == CHILD_FAILED)
        test_wrong(__FILE__, __LINE__, "an expectation failed in the child");
    return status;
}

uint64_t test_random(void)
{
    static uint64_t state;
    if (!state) {
        const char *seed = getenv("TEST_SEED");
        state = seed ? strtoull(seed, NULL, 10) * 2 + 1 : UINT64_C(0x9e3779b97f4a7c15);
    }
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state * UINT64_C(0x2545f4914f6cdd1d);
}

/* --- running ------------------------------------------------------------------------------------
 */

static bool chosen(const test_case *test, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (strstr(test->name, argv[i]))
            return true;
    }
    return argc < 2;
}

static void run_one(const test_case *test)
{
    current = test->name;
    atomic_store(&complaints, 0);
    skip_reason[0] = note[0] = '\0';
    tn_clear_error();
    alarm(timeout);
    if (setjmp(way_out) == 0)
        test->run();
    alarm(0);
    if (at_end)
        at_end();
    at_end = NULL;
}

int main(int argc, char **argv)
{
    int passed = 0, failed = 0, skipped = 0;
    if (argc == 2 && strcmp(argv[1], "--list") == 0) {
        for (const test_case *test = first_case; test; test = test->next)
            printf("%s\n", test->name);
        return 0;
    }
    const char *seconds = getenv("TEST_TIMEOUT");
    timeout = seconds && atoi(seconds) > 0 ? (unsigned)atoi(seconds) : DEFAULT_TIMEOUT;
    main_thread = pthread_self();
    signal(SIGALRM, on_signal);
    if (!test_sanitized()) { /* a sanitizer says more than we could */
        signal(SIGSEGV, on_signal);
        signal(SIGBUS, on_signal);
        signal(SIGFPE, on_signal);
        signal(SIGILL, on_signal);
        signal(SIGABRT, on_signal);
    }
    for (const test_case *test = first_case; test; test = test->next) {
        if (!chosen(test, argc, argv))
            continue;
        run_one(test);
        if (atomic_load(&complaints)) {
            failed++;
            printf("FAIL %s (%s:%d): %d failed expectations\n", test->name, test->file, test->line,
                   atomic_load(&complaints));
        } else if (skip_reason[0]) {
            skipped++;
            printf("skip %s: %s\n", test->name, skip_reason);
        } else {
            passed++;
            printf("ok   %s\n", test->name);
        }
        fflush(stdout);
    }
    bool none = passed + failed + skipped == 0;
    if (none)
        printf("no test has such a name\n");
    printf("%d passed, %d failed", passed, failed);
    printf(skipped ? ", %d skipped\n" : "\n", skipped);
    return failed || none ? 1 : 0;
}
