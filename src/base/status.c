/* SPDX-License-Identifier: MIT */
/* The thread's error record: filled by whoever fails first, read by whoever asks, moved between
 * threads by the pool.
 *
 * Note [Error records]
 * A record is too big for thread-local storage: a library that is loaded at run time and uses the
 * fast model even for one pointer gets its whole thread-local segment from a reserve of about a
 * kilobyte. So a thread holds a pointer, and at its first failure gets a record for as long as it
 * lives: one of a few static ones while they last, else one from the heap. A message that does not
 * fit the record is kept whole on the heap if there is memory, else it ends in "...". A thread that
 * finds no record at all keeps the status, and a fixed text says that the message was lost. Hence
 * running out of memory can always be reported, and none of this is seen by tni_alloc_watch. */
#include "base/status.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include "base/alloc.h"

enum { STATIC_RECORDS = 8 };

static tni_error static_records[STATIC_RECORDS];
static _Atomic uint32_t static_taken; /* bit i: static_records[i] belongs to a thread */

static _Thread_local tni_error *record;     /* NULL until the first failure */
static _Thread_local tn_status lost_status; /* the failure for which there was no record */

static _Atomic(tni_current_op_fn) current_op;

static const char *const names[] = {
#define X(name, number, exception) [number] = #name,
    TN_STATUS_LIST(X)
#undef X
};
static const char *const exceptions[] = {
#define X(name, number, exception) [number] = exception,
    TN_STATUS_LIST(X)
#undef X
};

static bool known(tn_status status)
{
    return (unsigned)status < sizeof names / sizeof *names && names[status];
}

const char *tn_status_name(tn_status status)
{
    return known(status) ? names[status] : "UNKNOWN";
}

const char *tn_status_exception(tn_status status)
{
    return known(status) ? exceptions[status] : "RuntimeError";
}

/* --- the thread's record ------------------------------------------------------------------------
 */

static pthread_once_t key_once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static bool key_made;

static bool is_static(const tni_error *r)
{
    return r >= static_records && r < static_records + STATIC_RECORDS;
}

static void give_back(tni_error *r)
{
    tni_error_drop(r);
    if (is_static(r)) {
        uint32_t bit = UINT32_C(1) << (r - static_records);
        atomic_fetch_and_explicit(&static_taken, ~bit, memory_order_release);
    } else {
        tni_free_unwatched(r);
    }
}

/* Other destructors of the same thread may fail after this one: they get a record again, and the
 * system calls us again. */
static void thread_ends(void *r)
{
    record = NULL;
    give_back(r);
}

static void make_key(void)
{
    key_made = pthread_key_create(&key, thread_ends) == 0;
}

static tni_error *claim_static(void)
{
    uint32_t taken = atomic_load_explicit(&static_taken, memory_order_relaxed);
    while (taken != (UINT32_C(1) << STATIC_RECORDS) - 1) {
        unsigned i = (unsigned)__builtin_ctz(~taken);
        if (atomic_compare_exchange_weak_explicit(&static_taken, &taken, taken | UINT32_C(1) << i,
                                                  memory_order_acquire, memory_order_relaxed))
            return &static_records[i];
    }
    return NULL;
}

/* This thread's record; NULL when there is no memory for one, or no way to give it back. */
static tni_error *get_record(void)
{
    if (record)
        return record;
    pthread_once(&key_once, make_key);
    if (!key_made)
        return NULL;
    tni_error *r = claim_static();
    if (!r)
        r = tni_alloc_unwatched(sizeof *r);
    if (!r)
        return NULL;
    memset(r, 0, sizeof *r);
    if (pthread_setspecific(key, r) != 0) {
        give_back(r);
        return NULL;
    }
    return record = r;
}

/* --- failing ------------------------------------------------------------------------------------
 */

void tni_set_current_op_fn(tni_current_op_fn fn)
{
    atomic_store_explicit(&current_op, fn, memory_order_release);
}

static void copy_text(char *to, size_t size, const char *from)
{
    size_t n = strnlen(from, size - 1);
    memcpy(to, from, n);
    to[n] = '\0';
}

/* What is left of a path when the machine that it was compiled on is taken away: from the last
 * "src/" on, else the file's name. */
static const char *short_where(const char *where)
{
    const char *from_src = NULL;
    const char *name = where;
    for (const char *p = where; *p; p++) {
        if ((p == where || p[-1] == '/') && strncmp(p, "src/", 4) == 0)
            from_src = p;
        if (*p == '/')
            name = p + 1;
    }
    return from_src ? from_src : name;
}

static tn_status vfail(tn_status status, const char *where, const char *format, va_list args)
{
    char text[sizeof record->message]; /* the arguments may point into the record */
    char *long_text = NULL;
    if (status == TN_OK || !known(status))
        status = TN_INTERNAL;
    tni_error *r = get_record();
    if (!r)
        return lost_status = status;

    va_list again;
    va_copy(again, args);
    int n = format ? vsnprintf(text, sizeof text, format, args) : -1;
    if (n < 0) {
        copy_text(text, sizeof text, format ? format : "");
    } else if ((size_t)n >= sizeof text) {
        long_text = tni_alloc_unwatched((size_t)n + 1);
        if (long_text)
            vsnprintf(long_text, (size_t)n + 1, format, again);
        memcpy(text + sizeof text - 4, "...", 4);
    }
    va_end(again);

    tni_current_op_fn op = atomic_load_explicit(&current_op, memory_order_acquire);
    const char *op_name = op ? op() : NULL;
    tni_error_drop(r);
    lost_status = TN_OK;
    r->code = status;
    r->long_message = long_text;
    memcpy(r->message, text, sizeof text);
    copy_text(r->op, sizeof r->op, op_name ? op_name : "");
    copy_text(r->where, sizeof r->where, short_where(where));
    return status;
}

tn_status tni_fail(tn_status status, const char *where, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    status = vfail(status, where, format, args);
    va_end(args);
    return status;
}

tn_status tn_fail(tn_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    status = vfail(status, "", format, args);
    va_end(args);
    return status;
}

/* --- asking -------------------------------------------------------------------------------------
 */

const char *tn_last_error(void)
{
    if (lost_status != TN_OK)
        return "out of memory: there was no room for the message of this failure";
    if (!record || record->code == TN_OK)
        return "";
    return record->long_message ? record->long_message : record->message;
}

tn_status tn_last_status(void)
{
    if (lost_status != TN_OK)
        return lost_status;
    return record ? record->code : TN_OK;
}

const char *tn_last_error_op(void)
{
    return record && lost_status == TN_OK && record->code != TN_OK ? record->op : "";
}

const char *tn_last_error_where(void)
{
    return record && lost_status == TN_OK && record->code != TN_OK ? record->where : "";
}

void tn_clear_error(void)
{
    lost_status = TN_OK;
    if (record) {
        tni_error_drop(record);
        record->code = TN_OK;
    }
}

/* --- moving between threads ---------------------------------------------------------------------
 */

void tni_error_take(tni_error *out)
{
    if (lost_status != TN_OK || !record) {
        *out = (tni_error){.code = lost_status};
        copy_text(out->message, sizeof out->message, tn_last_error());
        tn_clear_error();
        return;
    }
    *out = *record;
    record->long_message = NULL; /* moved */
    record->code = TN_OK;
}

tn_status tni_error_raise(tni_error *error)
{
    if (error->code == TN_OK)
        return TN_OK;
    tni_error *r = get_record();
    if (!r) {
        tni_error_drop(error);
        return lost_status = error->code;
    }
    tn_clear_error();
    *r = *error;
    error->long_message = NULL; /* moved */
    return r->code;
}

void tni_error_drop(tni_error *error)
{
    if (error->long_message)
        tni_free_unwatched(error->long_message);
    error->long_message = NULL;
}
