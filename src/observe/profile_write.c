/* SPDX-License-Identifier: MIT */
/* observe/profile_write.c: a profile as a file, in the form that its name asks for. */
#include "observe/profile.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"

/* A page must open at once; a trace is read into a browser's memory, about 300 bytes an event. */
enum { PAGE_EVENTS = 200000, TRACE_EVENTS = 1000000 };

static bool ends_in(const char *path, const char *ending)
{
    size_t n = strlen(path), m = strlen(ending);
    return n > m && strcmp(path + n - m, ending) == 0;
}

static tn_status write_whole(const char *path, const char *text, size_t n)
{
    FILE *file = fopen(path, "wbe");
    TN_CHECK(file, TN_INVALID, "cannot write %s: %s", path, strerror(errno));
    size_t wrote = fwrite(text, 1, n, file);
    int error = wrote == n ? 0 : errno;
    if (fclose(file) != 0 && !error)
        error = errno;
    if (error || wrote != n) {
        unlink(path);
        TN_FAIL(TN_INVALID, "cannot write %s: %s", path, strerror(error));
    }
    return TN_OK;
}

/* Beside the place where it goes, then in its place at once: nobody reads half a file. */
static tn_status replace(const char *path, const char *text, size_t n)
{
    tni_str beside = TNI_STR_INIT;
    tni_str_addf(&beside, "%s.%d.tmp", path, (int)getpid());
    tn_status status = beside.failed
                           ? tni_fail(TN_NOMEM, TNI_WHERE, "cannot allocate a file's name")
                           : write_whole(beside.text, text, n);
    if (status == TN_OK && rename(beside.text, path) != 0) {
        int error = errno;
        unlink(beside.text);
        status = tni_fail(TN_INVALID, TNI_WHERE, "cannot write %s: %s", path, strerror(error));
    }
    tni_str_clear(&beside);
    return status;
}

tn_status tn_profile_write(const tn_profile *profile, const char *path)
{
    TN_CHECK(profile && path, TN_INVALID, "tn_profile_write: '%s' must not be NULL",
             profile ? "path" : "profile");
    tni_str text = TNI_STR_INIT;
    if (ends_in(path, ".json"))
        tni_prof_show_chrome(profile, TRACE_EVENTS, NULL, &text);
    else if (ends_in(path, ".html"))
        tni_prof_show_html(profile, PAGE_EVENTS, &text);
    else if (ends_in(path, ".txt"))
        tni_prof_show_table(profile, 0, &text);
    else
        TN_FAIL(TN_VALUE,
                "a profile is written to a name that ends in .html, .json or .txt, not %s", path);
    tn_status status = text.failed || !text.text
                           ? tni_fail(TN_NOMEM, TNI_WHERE, "cannot allocate the text of a profile")
                           : replace(path, text.text, text.n);
    tni_str_clear(&text);
    return status;
}

tn_status tn_profile_trace(const tn_profile *profile, const char *more, char **out)
{
    TN_CHECK(profile && out, TN_INVALID, "tn_profile_trace: '%s' must not be NULL",
             profile ? "out" : "profile");
    tni_str text = TNI_STR_INIT;
    tni_prof_show_chrome(profile, TRACE_EVENTS, more ? more : "", &text);
    char *trace = text.failed ? NULL : tni_str_take(&text);
    tni_str_clear(&text);
    TN_CHECK(trace, TN_NOMEM, "cannot allocate the text of a profile");
    *out = trace;
    return TN_OK;
}
