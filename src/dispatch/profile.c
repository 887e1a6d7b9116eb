/* SPDX-License-Identifier: MIT */
/* dispatch/profile.c: the profiler's eyes in the dispatcher: what an event says about a call, the
 * switches, and TENON_PROFILE. Recording itself is observe's. */
#include "dispatch/profile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/env.h"
#include "dispatch/debug.h"
#include "observe/log.h"

/* ---- events ---- */

/* Shapes of more tensors than fit here are cut. */
enum { MOST_NUMBERS = 256 };

static size_t put_shape(int64_t *numbers, size_t at, const tn_tensor *t)
{
    if (!t || at + 3 + (size_t)t->ndim > MOST_NUMBERS)
        return at;
    numbers[at++] = (int64_t)(intptr_t)tn_dtype_name((tn_dtype)t->dtype);
    numbers[at++] = t->ndim;
    for (int d = 0; d < t->ndim; d++) /* memcpy of a few words costs more than the words */
        numbers[at++] = t->sizes[d];
    return at;
}

/* Of one argument that is an integer or a list of them. */
static size_t put_integers(int64_t *numbers, size_t at, const tn_value *arg)
{
    bool is_list = arg->tag == TN_TAG_INT_LIST;
    size_t count = is_list ? arg->count : 1;
    if ((!is_list && arg->tag != TN_TAG_INT) || at + 3 + count > MOST_NUMBERS)
        return at;
    numbers[at++] = (int64_t)(intptr_t) "int";
    numbers[at++] = (int64_t)count;
    for (size_t i = 0; i < count; i++)
        numbers[at++] = is_list ? arg->u.ints[i] : arg->u.i;
    return at;
}

static void put_shapes(tni_prof_event *e, const tn_value *args, int nargs, bool integers)
{
    int64_t numbers[MOST_NUMBERS];
    size_t n = 0;
    for (int i = 0; i < nargs; i++) {
        if (args[i].tag == TN_TAG_TENSOR)
            n = put_shape(numbers, n, args[i].u.tensor);
        for (uint32_t k = 0; args[i].tag == TN_TAG_TENSOR_LIST && k < args[i].count; k++)
            n = put_shape(numbers, n, args[i].u.tensors[k]);
    }
    for (int i = 0; i < nargs && integers; i++)
        n = put_integers(numbers, n, &args[i]);
    numbers[n++] = 0;
    tni_prof_put_shapes(e, numbers, n);
}

/* A kernel of a user's may be gone before the profile is taken; the library's own stay for ever. */
static const tni_prof_kernel *note_kernel(const tni_kernel *kernel)
{
    const tni_record *r = kernel->record;
    return !r ? NULL : r->text ? tni_prof_keep_kernel(&r->site) : &r->site;
}

void tni_profile_begin(tn_call *c, const tn_value *args, int nargs)
{
    bool redispatch = c->kind == TN_EVENT_REDISPATCH || c->kind == TN_EVENT_REDISPATCH_BOXED;
    tni_prof_wants wants;
    tni_prof_event *e = tni_prof_begin(redispatch ? TN_PROFILE_REDISPATCH : TN_PROFILE_CALL,
                                       c->op->name, c->depth, &wants);
    if (!e)
        return;
    e->key = tn_key_name(tni_slot_key(c->slot));
    if (wants.stack)
        atomic_store_explicit(&e->kernel, note_kernel(c->kernel), memory_order_relaxed);
    if (wants.shapes)
        put_shapes(e, args, nargs, wants.integers);
    c->flags |= TNI_FRAME_WATCHED | TNI_FRAME_PROFILED;
    tni_prof_go(e);
}

void tni_profile_label(const tn_call *call)
{
    if ((call->flags & TNI_FRAME_PROFILED) && call->kernel->record)
        tni_prof_set_kernel(call->depth, &call->kernel->record->site);
}

void tni_profile_end(const tn_call *call, tn_status status)
{
    tni_prof_end_frame(call->depth, status);
}

/* ---- switches ---- */

tn_status tn_profiler_start(const tn_profiler_options *options)
{
    TN_TRY(tni_ready());
    TN_TRY(tni_prof_start(options));
    tni_watch(TNI_WATCH_PROFILE, true);
    return TN_OK;
}

tn_status tn_profiler_stop(tn_profile **out)
{
    TN_CHECK(tn_profiler_running(), TN_INVALID,
             "tn_profiler_stop: no recording runs: call tn_profiler_start first");
    tn_profile *p = NULL;
    tni_watch(TNI_WATCH_PROFILE, false);
    tn_status status = out ? tn_profiler_snapshot(&p) : TN_OK;
    if (status != TN_OK) {
        tni_watch(TNI_WATCH_PROFILE, tn_profiler_running());
        return status;
    }
    status = tni_prof_drop(); /* another thread may have been faster */
    if (status != TN_OK) {
        tn_profile_free(p);
        return status;
    }
    if (out)
        *out = p;
    return TN_OK;
}

/* ---- the environment ---- */

enum { PATH_ROOM = 4096 };
static struct {
    char path[PATH_ROOM]; /* where the profile goes when the process ends */
    pid_t owner;
} at_exit;

/* There is nobody left to give a status to. */
static void write_at_exit(void)
{
    tn_profile *p = NULL;
    if (getpid() != at_exit.owner || !tn_profiler_running())
        return;
    if (tn_profiler_stop(&p) != TN_OK || tn_profile_write(p, at_exit.path) != TN_OK)
        fprintf(stderr, "tenon: TENON_PROFILE: %s\n", tn_last_error());
    tn_profile_free(p);
}

static bool read_size(const char *text, size_t *out)
{
    char *end;
    unsigned long long n = strtoull(text, &end, 10);
    int shift = *end == 'K' ? 10 : *end == 'M' ? 20 : *end == 'G' ? 30 : 0;
    end += shift != 0;
    if (end == text || *end || n == 0 || text[0] == '-' || n > SIZE_MAX >> shift)
        return false;
    *out = (size_t)n << shift;
    return true;
}

static tn_status read_option(const char *word, tn_profiler_options *o)
{
    if (strcmp(word, "shapes") == 0)
        o->shapes = true;
    else if (strcmp(word, "memory") == 0)
        o->memory = true;
    else if (strcmp(word, "stack") == 0)
        o->stack = true;
    else if (strncmp(word, "max=", 4) == 0)
        TN_CHECK(read_size(word + 4, &o->max_bytes), TN_VALUE,
                 "TENON_PROFILE: max= needs a number of bytes such as 64M, not '%s'", word + 4);
    else
        TN_FAIL(
            TN_VALUE,
            "TENON_PROFILE: unknown option '%s'; it is FILE, then any of shapes, memory, stack, "
            "max=BYTES, with commas between",
            word);
    return TN_OK;
}

/* %p becomes the number of the process. */
static tn_status put_path(const char *name)
{
    size_t at = 0;
    for (const char *c = name; *c; c++) {
        int n = c[0] == '%' && c[1] == 'p'
                    ? snprintf(at_exit.path + at, PATH_ROOM - at, "%d", (int)getpid())
                    : snprintf(at_exit.path + at, PATH_ROOM - at, "%c", *c);
        at += (size_t)n;
        TN_CHECK(at < PATH_ROOM, TN_VALUE, "TENON_PROFILE: the name of the file is too long");
        c += c[0] == '%' && c[1] == 'p';
    }
    size_t n = strlen(at_exit.path);
    const char *ending = n > 5 ? at_exit.path + n - 5 : "";
    TN_CHECK(strcmp(ending, ".html") == 0 || strcmp(ending, ".json") == 0 ||
                 (n > 4 && strcmp(at_exit.path + n - 4, ".txt") == 0),
             TN_VALUE, "TENON_PROFILE: the file must end in .html, .json or .txt, not '%s'", name);
    return TN_OK;
}

static tn_status read_environment(const char *text, tn_profiler_options *o)
{
    char words[PATH_ROOM];
    TN_CHECK(strlen(text) < sizeof words, TN_VALUE, "TENON_PROFILE is too long");
    memcpy(words, text, strlen(text) + 1);
    char *rest = words, *name = strsep(&rest, ",");
    TN_TRY(put_path(name));
    while (rest)
        TN_TRY(read_option(strsep(&rest, ","), o));
    return TN_OK;
}

/* A mistake in the environment is the mistake of whoever starts the program, not of the program:
 * the status alone would be blamed on some call of it, so it is printed as well, once. */
tn_status tni_profile_from_environment(void)
{
    static bool complained;
    const char *text = tni_env("TENON_PROFILE");
    if (!text || tn_profiler_running())
        return TN_OK;
    tn_profiler_options o = TN_PROFILER_OPTIONS_INIT;
    tn_status status = read_environment(text, &o);
    if (status != TN_OK) {
        if (!complained)
            fprintf(stderr, "tenon: %s\n", tn_last_error());
        complained = true;
        return status;
    }
    if (at_exit.owner == 0)
        TN_CHECK(atexit(write_at_exit) == 0, TN_NOMEM, "cannot register what must happen at exit");
    at_exit.owner = getpid();
    TN_TRY(tni_prof_start(&o));
    tni_watch(TNI_WATCH_PROFILE, true);
    return TN_OK;
}
