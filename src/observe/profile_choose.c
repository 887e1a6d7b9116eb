/* SPDX-License-Identifier: MIT */
/* observe/profile_choose.c: which events of a long recording are shown: the longest. */
#include "observe/profile.h"

#include <stdlib.h>

#include "base/alloc.h"

static int longest_first(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? 1 : x > y ? -1 : 0;
}

/* An event is at least as long as what is inside it, so a limit on the length never takes a parent
 * away from its child. */
int64_t *tni_prof_choose(const tn_profile *p, size_t most, size_t *chosen)
{
    int64_t *place = tni_alloc((p->n + 1) * sizeof *place);
    if (!place)
        return NULL;
    uint64_t least = 0;
    if (p->n > most) {
        uint64_t *lengths = tni_alloc(p->n * sizeof *lengths);
        if (!lengths) {
            tni_free(place);
            return NULL;
        }
        for (size_t i = 0; i < p->n; i++)
            lengths[i] = p->items[i].duration;
        qsort(lengths, p->n, sizeof *lengths, longest_first);
        least = lengths[most - 1];
        tni_free(lengths);
    }
    size_t n = 0, longer = 0;
    for (size_t i = 0; i < p->n; i++)
        longer += p->items[i].duration > least;
    size_t equal = p->n > most ? most - longer : p->n;
    for (size_t i = 0; i < p->n; i++) {
        const tni_prof_item *item = &p->items[i];
        /* Of those just as long as the limit the first few; a child after its parent alone. */
        bool take = p->n <= most || item->duration > least ||
                    (item->duration == least && equal > 0 &&
                     (item->parent < 0 || place[item->parent] >= 0));
        if (take && p->n > most && item->duration == least)
            equal--;
        place[i] = take ? (int64_t)n++ : -1;
    }
    *chosen = n;
    return place;
}
