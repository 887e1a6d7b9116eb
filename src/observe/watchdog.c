/* SPDX-License-Identifier: MIT */
/* observe/watchdog.c: the watchdog: a thread that reads this process's record now and then, as the
 * doctor reads that of another, and acts when a thread has been at the same place for too long.
 * Callers pay nothing, and it takes no lock that they take. */
#define _GNU_SOURCE
#include "observe/watchdog.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "base/alloc.h"
#include "base/env.h"
#include "observe/native.h"
#include "observe/places.h"
#include "observe/proc.h"
#include "observe/record_file.h"
#include "observe/report.h"

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool wanted, running, stop;
    uint64_t serial; /* of the thread that may run; an older one leaves */
    tn_watchdog_opts opts;
    char save_path[1024];
    void (*interrupt)(uint32_t tid, uint64_t request);
    _Atomic bool ending; /* the record says so already, and soon the report */
} dog = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static _Thread_local bool am_dog;

/* Its own thread has no place in the record that it reads. */
static void lock_dog(void)
{
    if (am_dog)
        pthread_mutex_lock(&dog.lock);
    else
        tni_mutex_lock(&dog.lock, "the watchdog");
}

static void unlock_dog(void)
{
    if (am_dog)
        pthread_mutex_unlock(&dog.lock);
    else
        tni_mutex_unlock(&dog.lock);
}

void tni_watchdog_set_interrupt(void (*fn)(uint32_t tid, uint64_t request))
{
    dog.interrupt = fn;
}

static uint64_t now_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* Inside an operator or a pass, or waiting for something of the library. A pool worker's caller is
 * the one to ask. */
static bool is_at_work(const tni_seen_thread *t)
{
    unsigned wait = t->block.marks.wait.kind;
    return !t->block.marks.is_worker &&
           (t->depth || t->block.n_passes || tni_seen_code(t) || wait == TNI_WAIT_LOCK ||
            wait == TNI_WAIT_ONCE || wait == TNI_WAIT_SPIN || wait == TNI_WAIT_INTERPRETER);
}

/* ---- acting ---- */

enum { PATIENCE_MS = 1000 }; /* with whoever reads stderr */

static void say(const tn_watchdog_opts *opts, const char *text)
{
    if (opts->report) {
        opts->report(opts->ctx, text);
        return;
    }
    size_t n = strlen(text);
    while (n) { /* no stdio: a stuck thread may hold its lock */
        /* A pipe that nobody reads must not hold up what follows. */
        struct pollfd room = {.fd = STDERR_FILENO, .events = POLLOUT};
        if (poll(&room, 1, PATIENCE_MS) == 0)
            return;
        ssize_t wrote = write(STDERR_FILENO, text, n < PIPE_BUF ? n : PIPE_BUF);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote <= 0)
            return;
        text += wrote;
        n -= (size_t)wrote;
    }
}

/* Note [A signal and a raise]
 * Being asked for its stack ends a thread's sleep, and it goes on. So it is asked to stop first:
 * then it fails at its next dispatch, instead of going on as if its time had passed. One that is
 * not to stop is not woken at all. A worker's caller stops for it. */
static tni_asking how_to_ask(const tn_watchdog_opts *opts, const tni_seen_thread *t)
{
    uint32_t caller = t->block.marks.works_for;
    if (opts->action == TN_HANG_END)
        return TNI_ASK_FOR_GOOD;
    return opts->action == TN_HANG_REPORT || tni_flight_is_asked(caller ? caller : t->block.tid)
               ? TNI_ASK
               : TNI_ASK_AWAKE;
}

/* Of threads at work and of workers in their loops. */
static void add_native(tni_str *s, const tn_watchdog_opts *opts, const tni_seen *seen)
{
    enum { MOST = 16 };
    int told = 0;
    tni_str_add(s, "\nnative stacks\n");
    for (uint32_t i = 0; i < seen->n_threads && told < MOST; i++) {
        const tni_seen_thread *t = &seen->threads[i];
        if (!is_at_work(t) && !t->block.marks.works_for)
            continue;
        void *frames[TNI_NATIVE_FRAMES];
        const char *why;
        int n = tni_native_stack(t->block.tid, how_to_ask(opts, t), frames, &why);
        tni_str_addf(s, "  thread %u%s%s\n", t->block.tid, n ? "" : ": none, ", n ? "" : why);
        tni_native_add(s, frames, n);
        told++;
    }
}

static void say_text(const tn_watchdog_opts *opts, tni_str *text)
{
    say(opts, text->failed ? "[tenon watchdog] a thread has not moved; no memory for a report\n"
                           : tni_str_get(text));
    tni_str_clear(text);
}

/* Threads that were told of, and where @p seen shows them. */
static void stop_threads(const tni_seen *seen, const tni_places *places)
{
    for (uint32_t i = 0; dog.interrupt && i < seen->n_threads; i++) {
        const tni_seen_thread *t = &seen->threads[i];
        tni_place *p = tni_places_find(places, t->block.tid);
        if (!p || !p->told || p->stopped)
            continue;
        p->stopped = true;
        dog.interrupt(t->block.tid,
                      tni_flight_request(&t->block, t->frames, t->n_frames, t->depth));
    }
}

/* @p found: where the threads were when it was found that one of them, @p tid, is stuck. */
static void tell(const tn_watchdog_opts *opts, tni_seen *before, const tni_seen *found,
                 uint64_t ns_between, uint32_t tid, const tni_places *places)
{
    static const char *const then[] = {"carry on", "raise an error in it where that is possible",
                                       "end the process"};
    tni_seen seen;
    /* Whom threads sleep for is asked twice, too, with a moment between. */
    before->is_python = tni_proc_is_python((int)getpid());
    tni_proc_sleepers((int)getpid(), before);
    nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    if (tni_seen_read(tni_flight_fd(), true, &seen) != TN_OK)
        return;
    tni_process_look((int)getpid(), &seen);
    seen.is_python = before->is_python;
    tni_proc_children((int)getpid(), &seen);
    tni_proc_sleepers((int)getpid(), &seen);
    tni_seen_compare(before, &seen, ns_between);
    tni_verdict verdict;
    tni_judge(&seen, true, &verdict);
    tni_str text = TNI_STR_INIT;
    tni_str_addf(&text, "[tenon watchdog] thread %u has not moved for %g s; what follows: %s\n",
                 tid, opts->seconds, then[opts->action]);
    tni_report_text(&text, &seen, &verdict);
    if (opts->action != TN_HANG_REPORT) /* first what is certain: signals may move the threads */
        say_text(opts, &text);
    if (opts->action == TN_HANG_RAISE)
        stop_threads(found, places);
    if (opts->action != TN_HANG_REPORT || opts->native)
        add_native(&text, opts, &seen);
    say_text(opts, &text);
    tni_verdict_clear(&verdict);
    tni_seen_clear(&seen);
}

/* Before anything is said, which takes time: the record shows the thread where it hangs. */
static void keep_record(const tn_watchdog_opts *opts)
{
    char path[sizeof dog.save_path + 16];
    atomic_store(&dog.ending, true);
    tni_flight_ended(2);
    if (!opts->save_path || !tni_record_path(opts->save_path, false, path, sizeof path) ||
        tni_flight_save(path) == TN_OK)
        return;
    say(opts, "[tenon watchdog] the record could not be saved: ");
    say(opts, tn_last_error());
    say(opts, "\n");
}

enum { ENDED = 124 }; /* exit status, as timeout(1) has it */

void tni_watchdog_finish(void)
{
    if (!atomic_load(&dog.ending))
        return;
    for (int i = 0; i < 3000; i++) /* it is still speaking */
        nanosleep(&(struct timespec){0, 10000000}, NULL);
    _exit(ENDED);
}

/* ---- the thread ---- */

static void look(const tn_watchdog_opts *opts, tni_seen *before, uint64_t *looked,
                 tni_places *places)
{
    tni_seen seen;
    if (tni_flight_fd() < 0 || tni_seen_read(tni_flight_fd(), false, &seen) != TN_OK)
        return;
    tni_flight_alive();
    tni_process_look((int)getpid(), &seen);
    uint64_t now = now_ns(), limit = (uint64_t)(opts->seconds * 1e9);
    tni_places_forget(places, &seen);
    uint32_t stuck = 0;
    for (uint32_t i = 0; i < seen.n_threads; i++) {
        const tni_seen_thread *t = &seen.threads[i];
        tni_place *p = tni_places_look(places, t, now, now - *looked, limit);
        if (!p || p->told || !is_at_work(t) || now - p->since < limit)
            continue;
        p->told = true;
        stuck = stuck ? stuck : t->block.tid;
    }
    if (stuck) { /* one report tells of all threads */
        if (opts->action == TN_HANG_END)
            keep_record(opts);
        tell(opts, before, &seen, now - *looked, stuck, places);
        if (opts->action == TN_HANG_RAISE)
            stop_threads(&seen, places); /* there was no memory to tell */
        if (opts->action == TN_HANG_END)
            _exit(ENDED);
    }
    tni_seen_clear(before);
    *before = seen;
    *looked = now;
}

/* Between two looks: a quarter of the time, within reason. True: go on. */
static bool rest(uint64_t serial, double seconds)
{
    double pause = seconds / 4 < 0.25 ? seconds / 4 : 0.25;
    pause = pause < 0.005 ? 0.005 : pause;
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    uint64_t ns = (uint64_t)until.tv_nsec + (uint64_t)(pause * 1e9);
    until.tv_sec += (time_t)(ns / 1000000000u);
    until.tv_nsec = (long)(ns % 1000000000u);
    lock_dog();
    bool go = !dog.stop && dog.serial == serial;
    if (go)
        pthread_cond_timedwait(&dog.changed, &dog.lock, &until);
    go = !dog.stop && dog.serial == serial;
    unlock_dog();
    return go;
}

static void *watch(void *arg)
{
    uint64_t serial = (uint64_t)(uintptr_t)arg;
    pthread_setname_np(pthread_self(), TNI_WATCHDOG_NAME);
    am_dog = true;
    lock_dog();
    tn_watchdog_opts opts = dog.opts;
    unlock_dog();
    tni_seen before;
    memset(&before, 0, sizeof before);
    tni_places places = {NULL, 0, 0};
    uint64_t looked = now_ns();
    while (rest(serial, opts.seconds))
        look(&opts, &before, &looked, &places);
    tni_seen_clear(&before);
    tni_places_clear(&places);
    lock_dog();
    if (dog.serial == serial)
        dog.running = false;
    pthread_cond_broadcast(&dog.changed);
    unlock_dog();
    return NULL;
}

/* Locked, so that no fork() comes in between: preparing loads a library, and in a child of that
 * moment nothing could be loaded any more. It takes no signals: those belong to the application's
 * threads. */
static tn_status start(void)
{
    tni_native_prepare();
    pthread_attr_t attributes;
    TN_CHECK(pthread_attr_init(&attributes) == 0, TN_NOMEM, "cannot start the watchdog's thread");
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    pthread_t thread;
    dog.stop = false;
    dog.running = true;
    int failed = pthread_create(&thread, &attributes, watch, (void *)(uintptr_t)++dog.serial);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    pthread_attr_destroy(&attributes);
    dog.running = !failed;
    atomic_store(&tni_waits_can_end, !failed && dog.opts.action == TN_HANG_RAISE);
    TN_CHECK(!failed, TN_NOMEM, "cannot start the watchdog's thread: %s", strerror(failed));
    return TN_OK;
}

#define LEAST_SECONDS 0.01
#define MOST_SECONDS  1e6

tn_status tn_watchdog_start(const tn_watchdog_opts *opts)
{
    tn_watchdog_opts usual = TN_WATCHDOG_OPTS_INIT;
    opts = opts ? opts : &usual;
    TN_CHECK(opts->size == sizeof *opts, TN_INVALID,
             "tn_watchdog_opts: size is %u, wanted sizeof(tn_watchdog_opts)", opts->size);
    TN_CHECK(opts->seconds >= LEAST_SECONDS && opts->seconds <= MOST_SECONDS, TN_VALUE,
             "tn_watchdog_start: seconds is %g, wanted 0.01 to 1e6", opts->seconds);
    TN_CHECK((unsigned)opts->action <= TN_HANG_END, TN_VALUE, "tn_watchdog_start: %d is no action",
             (int)opts->action);
    TN_CHECK(!opts->save_path || strlen(opts->save_path) < sizeof dog.save_path, TN_VALUE,
             "tn_watchdog_start: save_path is too long");
    tni_flight_start();
    TN_CHECK(tni_flight_fd() >= 0, TN_UNSUPPORTED,
             "the watchdog needs the recorder, which is off: TENON_RECORDER=0, or the system gave "
             "no memory for it");
    tn_watchdog_stop();
    lock_dog();
    dog.opts = *opts;
    if (opts->save_path) {
        memcpy(dog.save_path, opts->save_path, strlen(opts->save_path) + 1);
        dog.opts.save_path = dog.save_path;
    }
    dog.wanted = true;
    tn_status st = start();
    unlock_dog();
    return st;
}

void tn_watchdog_stop(void)
{
    lock_dog();
    dog.wanted = false;
    dog.stop = true;
    pthread_cond_broadcast(&dog.changed);
    if (dog.running && !am_dog) {
        tni_wait_begin(TNI_WAIT_EVENT, (uintptr_t)&dog, "the end of the watchdog", true);
        while (dog.running)
            pthread_cond_wait(&dog.changed, &dog.lock);
        tni_wait_end();
    }
    atomic_store(&tni_waits_can_end, false);
    unlock_dog();
}

void tni_watchdog_before_fork(void)
{
    if (am_dog)
        lock_dog();
    else
        tni_mutex_lock_known(&dog.lock, "the watchdog");
}

void tni_watchdog_after_fork(void)
{
    unlock_dog();
}

bool tni_watchdog_forked(void)
{
    unlock_dog();
    pthread_cond_init(&dog.changed, NULL); /* who waited for it is not here */
    dog.running = false;
    atomic_store(&dog.ending, false);
    return dog.wanted;
}

void tni_watchdog_restart(void)
{
    lock_dog();
    if (dog.wanted && !dog.running)
        (void)!start();
    unlock_dog();
}

static tn_hang_action action_from_environment(void)
{
    static const char *const names[] = {"report", "raise", "end"};
    const char *text = tni_env("TENON_HANG_ACTION");
    for (int i = 0; text && i < 3; i++) {
        if (strcmp(text, names[i]) == 0)
            return (tn_hang_action)i;
    }
    if (text)
        tni_env_complain("TENON_HANG_ACTION", "report, raise or end", "report is used");
    return TN_HANG_REPORT;
}

/* Variables that do nothing alone. */
static void say_what_is_missing(void)
{
    static const char *const names[] = {"TENON_HANG_ACTION", "TENON_HANG_RECORD",
                                        "TENON_HANG_NATIVE"};
    static _Atomic bool said;
    for (int i = 0; i < 3; i++) {
        if (tni_env(names[i]) && !atomic_exchange(&said, true))
            fprintf(stderr, "tenon: %s does nothing without TENON_HANG_TIMEOUT=SECONDS\n",
                    names[i]);
    }
}

void tni_watchdog_from_environment(void)
{
    const char *text = tni_env("TENON_HANG_TIMEOUT");
    if (!text) {
        say_what_is_missing();
        return;
    }
    tn_watchdog_opts opts = TN_WATCHDOG_OPTS_INIT;
    char *end;
    opts.seconds = strtod(text, &end);
    opts.action = action_from_environment();
    opts.save_path = tni_env("TENON_HANG_RECORD");
    opts.native = tni_env_flag("TENON_HANG_NATIVE", true);
    bool is_number = end != text && *end == '\0';
    if (is_number && opts.seconds == 0)
        return; /* off */
    if (!is_number || !(opts.seconds >= LEAST_SECONDS && opts.seconds <= MOST_SECONDS)) {
        tni_env_complain("TENON_HANG_TIMEOUT",
                         "a number of seconds from 0.01 to 1e6, or 0 for no watchdog",
                         "nothing is watched");
    } else if (tn_watchdog_start(&opts) != TN_OK) {
        fprintf(stderr, "[tenon watchdog] not started: %s\n", tn_last_error());
        tn_clear_error();
    }
}
