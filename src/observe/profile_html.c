/* SPDX-License-Identifier: MIT */
/* observe/profile_html.c: a profile as a page that needs nothing else. The page is written by hand
 * in src/observe/page; here is the data that it shows, in columns, which is a third of the size of
 * one object an event. */
#include "observe/profile.h"

#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"

/* ---- columns ---- */

typedef enum column {
    NAME,
    KEY,
    KERNEL,
    SHAPES,
    START,
    DURATION,
    SELF,
    THREAD,
    DEPTH,
    PARENT,
    FORWARD,
    KIND,
    SEQUENCE,
    MARKS, /* bits: it failed, it did not end */
    ALLOCATED,
    FREED,
    LIVE,
    COLUMNS
} column;

static const char *const column_names[COLUMNS] = {
    [NAME] = "name",         [KEY] = "key",       [KERNEL] = "kernel",       [SHAPES] = "shapes",
    [START] = "start",       [DURATION] = "dur",  [SELF] = "self",           [THREAD] = "thread",
    [DEPTH] = "depth",       [PARENT] = "parent", [FORWARD] = "forward",     [KIND] = "kind",
    [SEQUENCE] = "sequence", [MARKS] = "marks",   [ALLOCATED] = "allocated", [FREED] = "freed",
    [LIVE] = "live",
};

static int64_t cell(const tni_prof_item *item, column which, const int64_t *place)
{
    switch (which) {
    case NAME:
        return item->name;
    case KEY:
        return item->key;
    case KERNEL:
        return item->kernel;
    case SHAPES:
        return item->shapes;
    case START:
        return (int64_t)item->start;
    case DURATION:
        return (int64_t)item->duration;
    case SELF:
        return (int64_t)item->self;
    case THREAD:
        return item->thread;
    case DEPTH:
        return item->depth;
    case PARENT:
        return item->parent >= 0 ? place[item->parent] : -1;
    case FORWARD:
        return item->forward >= 0 ? place[item->forward] : -1;
    case KIND:
        return item->kind;
    case SEQUENCE:
        return item->sequence;
    case MARKS:
        return (item->status != TN_OK) | item->unfinished << 1;
    case ALLOCATED:
        return item->allocated;
    case FREED:
        return item->freed;
    default:
        return item->live;
    }
}

static void add_column(const tn_profile *p, const int64_t *place, column which, tni_str *out)
{
    const char *comma = "";
    tni_str_addf(out, ",\n\"%s\":[", column_names[which]);
    for (size_t i = 0; i < p->n && !out->failed; i++) {
        if (place[i] < 0)
            continue;
        tni_str_addf(out, "%s%" PRId64, comma, cell(&p->items[i], which, place));
        comma = ",";
    }
    tni_str_add(out, "]");
}

static void add_texts(const tn_profile *p, tni_str *out)
{
    tni_str_add(out, ",\n\"texts\":[");
    for (uint32_t i = 0; i < p->texts.n; i++) {
        if (i)
            tni_str_add(out, ",");
        tni_prof_json_string(out, p->texts.items[i]);
    }
    tni_str_add(out, "],\n\"threads\":[");
    for (size_t i = 0; i < p->n_threads; i++) {
        const tni_prof_thread *t = &p->threads[i];
        tni_str_addf(out,
                     "%s{\"id\":%d,\"events\":%zu,\"dropped\":%" PRIu64 ",\"name\":", i ? "," : "",
                     t->id, t->n, t->dropped);
        tni_prof_json_string(out, tni_prof_get_text(p, t->name));
        tni_str_add(out, "}");
    }
    tni_str_add(out, "]");
}

/* Of all events, also of those that are left out of the timeline. */
static void add_averages(const tn_profile *p, tni_str *out)
{
    tni_str_add(out, ",\n\"averages\":[");
    for (size_t i = 0; i < p->n_averages; i++) {
        const tni_prof_average *a = &p->averages[i];
        tni_str_addf(out,
                     "%s\n[%u,%u,%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64
                     ",%" PRIu64 ",%" PRId64 ",%" PRId64 "]",
                     i ? "," : "", a->name, a->kind, a->calls, a->self, a->total,
                     a->calls ? a->sum / a->calls : 0, a->calls ? a->min : 0, a->max, a->allocated,
                     a->freed);
    }
    tni_str_add(out, "]");
}

void tni_prof_show_html(const tn_profile *p, size_t most, tni_str *out)
{
    size_t n = 0;
    int64_t *place = tni_prof_choose(p, most, &n);
    if (!place) {
        out->failed = true;
        return;
    }
    tni_str_add(out, tni_profile_page_head);
    tni_str_addf(out,
                 "{\"version\":\"%s\",\"duration\":%" PRIu64 ",\"events\":%zu,\"shown\":%zu,"
                 "\"dropped\":%" PRIu64 ",\"memory\":%s",
                 TN_VERSION_STRING, p->duration, p->n, n, p->dropped,
                 p->has_memory ? "true" : "false");
    add_texts(p, out);
    add_averages(p, out);
    for (int c = 0; c < COLUMNS; c++) {
        if (p->has_memory || (c != ALLOCATED && c != FREED && c != LIVE))
            add_column(p, place, (column)c, out);
    }
    tni_str_add(out, "}");
    tni_str_add(out, tni_profile_page_tail);
    tni_free(place);
}
