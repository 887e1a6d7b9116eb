/* SPDX-License-Identifier: MIT */
/* observe/profile_chrome.c: a profile as a Chrome trace, the JSON that Perfetto and
 * chrome://tracing open: complete events, which nest on each thread's track, arrows from calls to
 * their backward turns, and the bytes in use as a counter. */
#include "observe/profile.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"

/* ---- text ---- */

/* Length of the UTF-8 character at @p s, 0 when there is none. */
static size_t utf8_length(const unsigned char *s)
{
    size_t n = s[0] < 0x80                   ? 1
               : s[0] >= 0xc2 && s[0] < 0xe0 ? 2
               : s[0] >= 0xe0 && s[0] < 0xf0 ? 3
               : s[0] >= 0xf0 && s[0] < 0xf5 ? 4
                                             : 0;
    for (size_t i = 1; i < n; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    }
    if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] >= 0xa0) ||
        (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] >= 0x90))
        return 0; /* too long a form, a surrogate, past the end */
    return n;
}

void tni_prof_json_string(tni_str *out, const char *text)
{
    const unsigned char *s = (const unsigned char *)text;
    tni_str_add(out, "\"");
    while (*s) {
        size_t n = utf8_length(s);
        if (n == 0) {
            tni_str_add(out, "\\ufffd");
            n = 1;
        } else if (*s == '"' || *s == '\\') {
            tni_str_addf(out, "\\%c", *s);
        } else if (*s < 0x20 || *s == '<' || *s == '>' || *s == '&' || *s == 0x7f) {
            tni_str_addf(out, "\\u%04x", *s);
        } else {
            tni_str_addn(out, (const char *)s, n);
        }
        s += n;
    }
    tni_str_add(out, "\"");
}

static void add_field(tni_str *out, const char *key, const char *text)
{
    if (!text[0])
        return;
    tni_str_addf(out, ",\"%s\":", key);
    tni_prof_json_string(out, text);
}

/* Microseconds, to the nanosecond. */
static void add_time(tni_str *out, const char *key, uint64_t ns)
{
    tni_str_addf(out, ",\"%s\":%" PRIu64 ".%03" PRIu64, key, ns / 1000, ns % 1000);
}

/* ---- events ---- */

static const char *category(const tni_prof_item *item, bool torch)
{
    static const char *const names[][2] = {[TN_PROFILE_CALL] = {"operator", "cpu_op"},
                                           [TN_PROFILE_REDISPATCH] = {"redispatch", "redispatch"},
                                           [TN_PROFILE_BACKWARD] = {"backward", "backward"},
                                           [TN_PROFILE_RANGE] = {"range", "user_annotation"}};
    return names[item->kind][torch];
}

/* The name alone, without the overload behind a point. */
static void add_operator(tni_str *out, const char *name)
{
    char room[128];
    size_t n = strcspn(name, ".");
    bool fits = n < sizeof room;
    memcpy(room, name, fits ? n : 0);
    room[fits ? n : 0] = '\0';
    tni_prof_json_string(out, fits ? room : name);
}

/* "float32[8, 16], float32[]" as [[8, 16],[]]; integers are none. */
static void add_dims(tni_str *out, const char *shapes)
{
    tni_str_add(out, ",\"Input Dims\":[");
    bool some = false;
    for (const char *at = strchr(shapes, '['); at; at = strchr(at + 1, '[')) {
        if (at - shapes >= 3 && !memcmp(at - 3, "int", 3) && (at - shapes == 3 || at[-4] == ' '))
            continue;
        tni_str_add(out, some ? "," : "");
        tni_str_addn(out, at, strcspn(at, "]") + 1);
        some = true;
    }
    tni_str_add(out, "]");
}

static void add_thread(const tn_profile *p, const tni_prof_thread *t, int pid, size_t place,
                       tni_str *out)
{
    tni_str_addf(
        out,
        ",\n{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":%d,\"tid\":%d,\"args\":{\"name\":", pid,
        t->id);
    tni_prof_json_string(out, tni_prof_get_text(p, t->name));
    tni_str_addf(out,
                 "}},\n{\"ph\":\"M\",\"name\":\"thread_sort_index\",\"pid\":%d,\"tid\":%d,\"args\":"
                 "{\"sort_index\":%zu}}",
                 pid, t->id, place);
}

static void add_event(const tn_profile *p, const tni_prof_item *item, int pid, bool torch,
                      tni_str *out)
{
    const tni_prof_thread *t = &p->threads[item->thread];
    const char *name = tni_prof_get_text(p, item->name), *shapes;
    bool is_operator = item->kind == TN_PROFILE_CALL || item->kind == TN_PROFILE_REDISPATCH;
    tni_str_addf(out, ",\n{\"ph\":\"X\",\"cat\":\"%s\",\"name\":", category(item, torch));
    (torch && is_operator ? add_operator : tni_prof_json_string)(out, name);
    tni_str_addf(out, ",\"pid\":%d,\"tid\":%d", pid, t->id);
    add_time(out, "ts", item->start);
    add_time(out, "dur", item->duration);
    tni_str_addf(out, ",\"args\":{\"depth\":%d", item->depth);
    add_field(out, "key", tni_prof_get_text(p, item->key));
    add_field(out, "kernel", tni_prof_get_text(p, item->kernel));
    shapes = tni_prof_get_text(p, item->shapes);
    add_field(out, "shapes", shapes);
    if (torch && shapes[0])
        add_dims(out, shapes);
    if (item->sequence >= 0)
        tni_str_addf(out, ",\"%s\":%" PRId64, torch ? "Sequence number" : "sequence",
                     item->sequence);
    if (item->allocated || item->freed)
        tni_str_addf(out, ",\"allocated\":%" PRId64 ",\"freed\":%" PRId64, item->allocated,
                     item->freed);
    if (item->status != TN_OK)
        add_field(out, "status", tn_status_name((tn_status)item->status));
    if (item->unfinished)
        tni_str_add(out, ",\"unfinished\":true");
    tni_str_add(out, "}}");
}

static void add_arrow(const tn_profile *p, size_t i, int pid, tni_str *out)
{
    const tni_prof_item *to = &p->items[i], *from = &p->items[to->forward];
    static const char begin[] = ",\n{\"ph\":\"%s\",\"cat\":\"autograd\",\"name\":\"forward to "
                                "backward\",\"id\":%zu,\"pid\":%d,\"tid\":%d";
    tni_str_addf(out, begin, "s", i, pid, p->threads[from->thread].id);
    add_time(out, "ts", from->start);
    tni_str_add(out, "}");
    tni_str_addf(out, begin, "f\",\"bp\":\"e", i, pid, p->threads[to->thread].id);
    add_time(out, "ts", to->start);
    tni_str_add(out, "}");
}

static void add_counter(const tni_prof_item *item, int pid, tni_str *out)
{
    tni_str_addf(out, ",\n{\"ph\":\"C\",\"name\":\"tensor bytes\",\"pid\":%d", pid);
    add_time(out, "ts", item->start + item->duration);
    tni_str_addf(out, ",\"args\":{\"bytes\":%" PRId64 "}}", item->live);
}

/* Something at the end that a person sees and a search finds. */
static void add_note(const tn_profile *p, int pid, uint64_t n, const char *what, tni_str *out)
{
    if (n)
        tni_str_addf(out,
                     ",\n{\"ph\":\"i\",\"s\":\"g\",\"cat\":\"profiler\",\"name\":\"%" PRIu64
                     " %s\",\"pid\":%d,\"tid\":%d,\"ts\":%" PRIu64 "}",
                     n, what, pid, p->n_threads ? p->threads[0].id : pid, p->duration / 1000);
}

void tni_prof_show_chrome(const tn_profile *p, size_t most, const char *more, tni_str *out)
{
    int pid = (int)getpid();
    size_t chosen = 0;
    int64_t *place = tni_prof_choose(p, most, &chosen);
    if (!place) {
        out->failed = true;
        return;
    }
    tni_str_addf(
        out,
        "{\"displayTimeUnit\":\"ns\",\n\"otherData\":{\"writer\":\"tenon %s\","
        "\"events\":%zu,\"shown\":%zu,\"dropped\":%" PRIu64 "},\n\"traceEvents\":[\n"
        "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":%d,\"args\":{\"name\":\"tenon\"}}",
        TN_VERSION_STRING, p->n, chosen, p->dropped, pid);
    for (size_t i = 0; i < p->n_threads; i++)
        add_thread(p, &p->threads[i], pid, i, out);
    for (size_t i = 0; i < p->n && !out->failed; i++) {
        const tni_prof_item *item = &p->items[i];
        /* An event without a name is a mark of the Python package's. */
        if (place[i] < 0 || (more && !tni_prof_get_text(p, item->name)[0]))
            continue;
        add_event(p, item, pid, more != NULL, out);
        if (item->forward >= 0 && place[item->forward] >= 0)
            add_arrow(p, i, pid, out);
        if (p->has_memory && !item->unfinished && (item->allocated || item->freed))
            add_counter(item, pid, out);
    }
    add_note(p, pid, p->n - chosen, "shorter events left out", out);
    add_note(p, pid, p->dropped, "events dropped", out);
    tni_str_addf(out, "\n]%s%s}\n", more && more[0] ? ",\n" : "", more ? more : "");
    tni_free(place);
}
