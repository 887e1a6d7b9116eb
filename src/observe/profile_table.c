/* SPDX-License-Identifier: MIT */
/* observe/profile_table.c: events of one name taken together, and the table of them. */
#include "observe/profile.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "observe/reader.h"

/* ---- averages ---- */

/* Whether something of the same name is around it: its time is counted there. */
static bool is_inside_its_like(const tn_profile *p, const tni_prof_item *item)
{
    for (int64_t at = item->parent; at >= 0; at = p->items[at].parent) {
        if (p->items[at].name == item->name &&
            (p->items[at].kind == TN_PROFILE_RANGE) == (item->kind == TN_PROFILE_RANGE))
            return true;
    }
    return false;
}

static int by_self(const void *a, const void *b)
{
    const tni_prof_average *x = a, *y = b;
    if (x->self != y->self)
        return x->self < y->self ? 1 : -1;
    return x->name < y->name ? -1 : x->name > y->name;
}

static void add_to_average(const tn_profile *p, const tni_prof_item *item, tni_prof_average *a)
{
    a->self += item->self;
    a->allocated += item->allocated;
    a->freed += item->freed;
    if (!is_inside_its_like(p, item))
        a->total += item->duration;
    if (item->kind == TN_PROFILE_REDISPATCH)
        return;
    a->min = a->calls == 0 || item->duration < a->min ? item->duration : a->min;
    a->max = item->duration > a->max ? item->duration : a->max;
    a->sum += item->duration;
    a->calls++;
}

tn_status tni_prof_average_all(tn_profile *p)
{
    if (p->n == 0)
        return TN_OK;
    /* For each text, where its operator, backward node and range are; plus 1. */
    uint32_t(*place)[3] = tni_calloc(p->texts.n * sizeof *place);
    size_t names = 0;
    for (size_t i = 0; place && i < p->n; i++) {
        const tni_prof_item *item = &p->items[i];
        int kind = item->kind == TN_PROFILE_RANGE ? 2 : item->kind == TN_PROFILE_BACKWARD ? 1 : 0;
        if (!place[item->name][kind])
            place[item->name][kind] = (uint32_t)++names;
    }
    p->averages = place ? tni_calloc(names * sizeof *p->averages) : NULL;
    if (!p->averages) {
        tni_free(place);
        TN_FAIL(TN_NOMEM, "cannot allocate the averages of a profile");
    }
    for (size_t i = 0; i < p->n; i++) {
        const tni_prof_item *item = &p->items[i];
        int kind = item->kind == TN_PROFILE_RANGE ? 2 : item->kind == TN_PROFILE_BACKWARD ? 1 : 0;
        static const uint8_t kinds[] = {TN_PROFILE_CALL, TN_PROFILE_BACKWARD, TN_PROFILE_RANGE};
        tni_prof_average *a = &p->averages[place[item->name][kind] - 1];
        a->name = item->name;
        a->kind = kinds[kind];
        add_to_average(p, item, a);
        if (item->parent < 0)
            continue;
        /* Bytes of what is inside are its own. */
        const tni_prof_item *parent = &p->items[item->parent];
        int outer = parent->kind == TN_PROFILE_RANGE      ? 2
                    : parent->kind == TN_PROFILE_BACKWARD ? 1
                                                          : 0;
        tni_prof_average *b = &p->averages[place[parent->name][outer] - 1];
        b->allocated -= item->allocated;
        b->freed -= item->freed;
    }
    tni_free(place);
    p->n_averages = names;
    qsort(p->averages, names, sizeof *p->averages, by_self);
    return TN_OK;
}

/* ---- the table ---- */

static const char *time_cell(uint64_t ns, char *text, size_t n)
{
    double value = (double)ns;
    if (ns < 10000)
        snprintf(text, n, "%" PRIu64 " ns", ns);
    else if (ns < 10000000)
        snprintf(text, n, "%.1f us", value / 1e3);
    else if (ns < UINT64_C(10000000000))
        snprintf(text, n, "%.1f ms", value / 1e6);
    else
        snprintf(text, n, "%.1f s", value / 1e9);
    return text;
}

static const char *bytes_cell(int64_t bytes, char *text, size_t n)
{
    double value = (double)(bytes < 0 ? -bytes : bytes);
    const char *sign = bytes < 0 ? "-" : "";
    if (value < 10240)
        snprintf(text, n, "%s%.0f B", sign, value);
    else if (value < 10485760.0)
        snprintf(text, n, "%s%.1f KiB", sign, value / 1024);
    else
        snprintf(text, n, "%s%.1f MiB", sign, value / 1048576);
    return text;
}

/* A name of any characters as one cell: a person's range may be called anything. */
enum { CELL = 128 };
static const char *name_cell(const tn_profile *p, uint32_t name, char cell[CELL], int *width)
{
    const char *text = tni_prof_get_text(p, name);
    size_t n = strlen(text), fits = n < CELL - 4 ? n : CELL - 4;
    memcpy(cell, text, fits);
    tni_plain_text(cell, fits);
    memcpy(cell + fits, n > fits ? "..." : "", n > fits ? 4 : 1);
    *width = 0;
    for (const char *c = cell; *c; c++)
        *width += ((unsigned char)*c & 0xc0) != 0x80; /* characters, not bytes */
    return cell;
}

static void show_row(const tn_profile *p, const tni_prof_average *a, uint64_t whole, int width,
                     tni_str *out)
{
    char self[32], total[32], mean[32], allocated[32], freed[32];
    static const char *const words[] = {
        [TN_PROFILE_CALL] = "", [TN_PROFILE_BACKWARD] = "backward", [TN_PROFILE_RANGE] = "range"};
    char cell[CELL];
    int used;
    tni_str_add(out, name_cell(p, a->name, cell, &used));
    tni_str_addf(out, "%*s  %-8s %9" PRIu64 "  %10s  %5.1f%%  %10s  %10s",
                 width > used ? width - used : 0, "", words[a->kind], a->calls,
                 time_cell(a->self, self, sizeof self),
                 whole ? 100.0 * (double)a->self / (double)whole : 0.0,
                 time_cell(a->total, total, sizeof total),
                 time_cell(a->calls ? a->sum / a->calls : 0, mean, sizeof mean));
    if (p->has_memory)
        tni_str_addf(out, "  %11s  %11s", bytes_cell(a->allocated, allocated, sizeof allocated),
                     bytes_cell(a->freed, freed, sizeof freed));
    tni_str_add(out, "\n");
}

void tni_prof_show_table(const tn_profile *p, size_t rows, tni_str *out)
{
    size_t n = rows && rows < p->n_averages ? rows : p->n_averages;
    int width = 4;
    uint64_t whole = 0;
    for (size_t i = 0; i < p->n_averages; i++)
        whole += p->averages[i].self;
    for (size_t i = 0; i < n; i++) {
        char cell[CELL];
        int used;
        name_cell(p, p->averages[i].name, cell, &used);
        if (used > width)
            width = used > 60 ? 60 : used;
    }
    char text[32];
    tni_str_addf(out, "%-*s  %-8s %9s  %10s  %6s  %10s  %10s%s\n", width, "name", "", "calls",
                 "self", "", "total", "mean", p->has_memory ? "    allocated        freed" : "");
    for (size_t i = 0; i < n; i++)
        show_row(p, &p->averages[i], whole, width, out);
    if (n < p->n_averages)
        tni_str_addf(out, "and %zu more\n", p->n_averages - n);
    tni_str_addf(out, "%zu events on %zu thread%s in %s\n", p->n, p->n_threads,
                 p->n_threads == 1 ? "" : "s", time_cell(p->duration, text, sizeof text));
    if (p->dropped)
        tni_str_addf(out,
                     "%" PRIu64 " more events did not fit and are missing above: raise max_bytes\n",
                     p->dropped);
}

tn_status tn_profile_table(const tn_profile *profile, size_t rows, char **out)
{
    TN_CHECK(profile && out, TN_INVALID, "tn_profile_table: '%s' must not be NULL",
             profile ? "out" : "profile");
    tni_str text = TNI_STR_INIT;
    tni_prof_show_table(profile, rows, &text);
    char *taken = tni_str_take(&text);
    TN_CHECK(taken, TN_NOMEM, "cannot allocate the table of a profile");
    *out = taken;
    return TN_OK;
}
