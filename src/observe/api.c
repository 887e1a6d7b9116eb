/* SPDX-License-Identifier: MIT */
/* observe/api.c: the public face of the recorder and the doctor, but for the switch, which is the
 * dispatcher's (dispatch/recorder.c). */
#define _GNU_SOURCE
#include "tenon/recorder.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "observe/report.h"

_Static_assert((int)TN_WAIT_LOCK == (int)TNI_WAIT_LOCK, "numbers of the record");
_Static_assert((int)TN_WAIT_INTERPRETER == (int)TNI_WAIT_INTERPRETER, "numbers of the record");
_Static_assert((int)TN_WAIT_THREAD == (int)TNI_WAIT_THREAD, "numbers of the record");
_Static_assert((int)TN_WAIT_EVENT == (int)TNI_WAIT_EVENT, "numbers of the record");

tn_status tn_recorder_save(const char *path)
{
    return tni_flight_save(path);
}

/* ---- marks ---- */

void tn_wait_begin(tn_wait_kind kind, const void *what, const char *name)
{
    tni_wait_begin((tni_wait_kind)kind, (uintptr_t)what, name, kind != TN_WAIT_INTERPRETER);
}

void tn_wait_end(void)
{
    tni_wait_end();
}

void tn_hold_begin(tn_wait_kind kind, const void *what, const char *name)
{
    tni_hold_begin((tni_wait_kind)kind, (uintptr_t)what, name);
}

void tn_hold_end(tn_wait_kind kind, const void *what)
{
    tni_hold_end((tni_wait_kind)kind, (uintptr_t)what);
}

void tn_code_begin(const char *text)
{
    tni_hold_begin((tni_wait_kind)TNI_HELD_CODE, (uintptr_t)text, text);
}

void tn_code_end(const char *text)
{
    tni_hold_end((tni_wait_kind)TNI_HELD_CODE, (uintptr_t)text);
}

/* ---- the doctor ---- */

static uint64_t now_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static tn_status check_opts(const tn_doctor_opts *opts, tn_doctor_opts *out)
{
    *out = (tn_doctor_opts)TN_DOCTOR_OPTS_INIT;
    if (!opts)
        return TN_OK;
    TN_CHECK(opts->size == sizeof *opts, TN_INVALID,
             "tn_doctor_opts: size is %u, wanted sizeof(tn_doctor_opts)", opts->size);
    *out = *opts;
    return TN_OK;
}

static tn_status write_report(const tni_seen *seen, bool two_looks, const tn_doctor_opts *opts,
                              char **out)
{
    tni_verdict verdict;
    tni_judge(seen, two_looks, &verdict);
    tni_str text = TNI_STR_INIT;
    if (opts->verdict_only)
        tni_str_addf(&text, "verdict: %s\nnext:    %s\n", tni_str_get(&verdict.text),
                     tni_str_get(&verdict.next));
    else
        (opts->json ? tni_report_json : tni_report_text)(&text, seen, &verdict);
    bool failed = verdict.text.failed || verdict.next.failed;
    tni_verdict_clear(&verdict);
    char *report = failed ? NULL : tni_str_take(&text);
    tni_str_clear(&text);
    TN_CHECK(report, TN_NOMEM, "cannot allocate a report");
    *out = report;
    return TN_OK;
}

/* What cannot be read says why; of which process or file, the caller adds. */
static tn_status explain(tn_status status, const char *what, const char *name)
{
    char why[256];
    strncpy(why, tn_last_error(), sizeof why - 1);
    why[sizeof why - 1] = '\0';
    TN_FAIL(status, "%s %s: %s", what, name, why);
}

/* Most looks after the first. A thread that stands still at the second is looked at again until it
 * has stood for so many intervals or has moved after all: a short sleep is not a hang. */
enum { PATIENCE = 6 };

static tn_status look_twice(int pid, const tni_process_records *records, uint32_t interval_ms,
                            tni_seen *first, tni_seen *out)
{
    TN_TRY(tni_seen_read_all(records, first));
    tni_process_look(pid, first);
    uint64_t began = now_ns();
    const uint64_t enough = PATIENCE * (uint64_t)interval_ms * 1000000u;
    do {
        struct timespec pause = {interval_ms / 1000, (long)(interval_ms % 1000) * 1000000};
        while (nanosleep(&pause, &pause) != 0 && errno == EINTR)
            ;
        tni_seen_clear(out);
        TN_TRY(tni_seen_read_all(records, out));
        tni_process_look(pid, out);
        tni_seen_compare(first, out, now_ns() - began);
    } while (tni_must_look_again(out, enough) && now_ns() - began < enough);
    return TN_OK;
}

tn_status tn_doctor_process(int pid, const tn_doctor_opts *given, char **out)
{
    TN_CHECK(out, TN_INVALID, "tn_doctor_process: 'out' must not be NULL");
    tn_doctor_opts opts;
    TN_TRY(check_opts(given, &opts));
    tni_process_records records;
    TN_TRY(tni_process_open(pid, &records));
    tni_seen first, second;
    memset(&first, 0, sizeof first);
    memset(&second, 0, sizeof second);
    tn_status st =
        look_twice(pid, &records, opts.interval_ms ? opts.interval_ms : 150, &first, &second);
    tni_process_close(&records);
    if (st == TN_OK)
        st = write_report(&second, true, &opts, out);
    else if (st == TN_INVALID)
        st = explain(st, "process", first.process_name[0] ? first.process_name : "?");
    tni_seen_clear(&first);
    tni_seen_clear(&second);
    return st;
}

/* The last moment of which a record tells, of those that can be true. */
static void take_sign(const tni_seen *seen, uint64_t at, uint64_t *last)
{
    const uint64_t century = 3155760000u * UINT64_C(1000000000);
    if (at > *last && at >= seen->head.began && at - seen->head.began < century)
        *last = at;
}

static uint64_t last_sign(const tni_seen *seen)
{
    uint64_t last = seen->head.began;
    take_sign(seen, seen->head.alive_at, &last);
    for (uint32_t i = 0; i < seen->n_threads; i++) {
        const tni_seen_thread *t = &seen->threads[i];
        const tni_thread_marks *m = &t->block.marks;
        take_sign(seen, t->block.began, &last);
        take_sign(seen, m->wait.since, &last);
        take_sign(seen, m->works_since, &last);
        for (int k = 0; k < TNI_MARK_HELD; k++)
            take_sign(seen, m->held[k].since, &last);
        for (int k = 0; k < TNI_FLIGHT_PASSES; k++)
            take_sign(seen, t->block.passes[k].began, &last);
        for (uint32_t k = 0; k < t->n_frames + t->n_recent; k++)
            take_sign(seen, t->frames[k].stamp, &last);
    }
    return last;
}

/* Until when a record in a file tells. Whoever writes one has a lock on it. */
static void find_end(int fd, tni_seen *seen)
{
    seen->now = seen->head.saved_at ? seen->head.saved_at : seen->head.ended_at;
    if (seen->now)
        return;
    if (flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
        seen->in_use = true;
        seen->now = tni_coarse_ns();
        return;
    }
    seen->now = last_sign(seen);
    seen->now_is_least = true;
}

tn_status tn_doctor_file(const char *path, const tn_doctor_opts *given, char **out)
{
    TN_CHECK(path && out, TN_INVALID, "tn_doctor_file: '%s' must not be NULL",
             path ? "out" : "path");
    tn_doctor_opts opts;
    TN_TRY(check_opts(given, &opts));
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    TN_CHECK(fd >= 0, TN_INVALID, "cannot open %s: %s", path, strerror(errno));
    tni_seen seen;
    tn_status st = tni_seen_read(fd, true, &seen);
    if (st == TN_OK)
        find_end(fd, &seen);
    close(fd);
    if (st == TN_INVALID)
        return explain(st, "file", path);
    if (st != TN_OK)
        return st;
    st = write_report(&seen, false, &opts, out);
    tni_seen_clear(&seen);
    return st;
}
