/* SPDX-License-Identifier: MIT */
/* observe/profile.h: a profile, taken from the logs: for the files that show it. */
#ifndef TNI_OBSERVE_PROFILE_H
#define TNI_OBSERVE_PROFILE_H

#include "base/hash.h"
#include "base/str.h"
#include "tenon/profiler.h"

/* Texts, each once; number 0 is "". */
typedef struct tni_prof_texts {
    tni_map map; /* text -> its number + 1 */
    char **items;
    uint32_t n, capacity;
} tni_prof_texts;

typedef struct tni_prof_item {
    uint64_t start, duration, self; /* nanoseconds */
    int64_t parent, forward;        /* -1: none */
    int64_t sequence;
    int64_t allocated, freed, live;
    uint32_t name, key, kernel, shapes; /* texts */
    uint32_t thread;
    uint16_t depth, maker;
    uint8_t kind, status;
    bool unfinished;
} tni_prof_item;

typedef struct tni_prof_thread {
    int32_t id;
    uint16_t number;
    uint32_t name;
    size_t first, n; /* items */
    uint64_t dropped;
} tni_prof_thread;

typedef struct tni_prof_average {
    uint64_t calls, self, total, min, max, sum;
    int64_t allocated, freed;
    uint32_t name;
    uint8_t kind;
} tni_prof_average;

struct tn_profile {
    tni_prof_item *items;
    size_t n, capacity;
    tni_prof_thread *threads;
    size_t n_threads, thread_capacity;
    tni_prof_average *averages;
    size_t n_averages;
    tni_prof_texts texts;
    uint64_t duration, dropped;
    bool has_memory; /* some event allocated or freed something */
};

static inline const char *tni_prof_get_text(const tn_profile *p, uint32_t number)
{
    return p->texts.items[number];
}

/* Average by name, fill p->averages. */
TN_NODISCARD tn_status tni_prof_average_all(tn_profile *p);

/* ---- showing (each appends to @p out; test out->failed) ---- */

void tni_prof_show_table(const tn_profile *p, size_t rows, tni_str *out);
/* At most @p most events, the longest. @p more: see tn_profile_trace; NULL: in our own words. */
void tni_prof_show_chrome(const tn_profile *p, size_t most, const char *more, tni_str *out);
void tni_prof_show_html(const tn_profile *p, size_t most, tni_str *out);
/* "text" with quotes and escapes; also safe inside a script of a page. */
void tni_prof_json_string(tni_str *out, const char *text);

/* The page around the data; written by tools/embed.py from src/observe/page. */
extern const char tni_profile_page_head[], tni_profile_page_tail[];

/* For each event its number among the @p most longest, -1: left out; owned, NULL: no memory. */
int64_t *tni_prof_choose(const tn_profile *p, size_t most, size_t *chosen);

#endif
