/* SPDX-License-Identifier: MIT */
/* The harness's half that reaches into the library: counting and failing allocations. A file of its
 * own, so that a test of the shared library, which hides those names, does not link it. */
#include "harness/test.h"

#include "base/alloc.h"

/* More than any function under test needs; a body that always allocates more is a mistake. */
enum { MOST_ALLOCATIONS = 100000, EACH_OF_THE_FIRST = 512 };

int64_t test_live(void)
{
    if (!tni_alloc_watching()) {
        tni_alloc_watch(-1, false);
        test_at_end(tni_alloc_unwatch);
    }
    return tni_alloc_live();
}

/* One by one, and from some hundred on by steps of up to 17: who allocates so often does the same
 * for each of many operators, and to try every one of them takes time with the square of their
 * number. */
static int64_t step_from(int64_t failing)
{
    int64_t beyond = failing - EACH_OF_THE_FIRST;
    return beyond < 0 ? 1 : beyond < 16 * 16 ? 1 + beyond / 16 : 17;
}

bool test_next_alloc(test_each_alloc *loop, tn_status *rc)
{
    test_at_end(tni_alloc_unwatch);
    if (loop->failing >= 0 && tni_alloc_tried() <= loop->failing) {
        /* The body has come to its end before the allocation that would have failed. */
        tni_alloc_watch(-1, false);
        if (*rc != TN_OK)
            test_wrong(loop->file, loop->line, "no allocation failed, but the body gave %s: %s",
                       tn_status_name(*rc), tn_last_error());
        return false;
    }
    if (loop->failing >= MOST_ALLOCATIONS) {
        tni_alloc_watch(-1, false);
        test_wrong(loop->file, loop->line, "the body still allocates after %d rounds",
                   MOST_ALLOCATIONS);
        return false;
    }
    *rc = TN_INTERNAL; /* a body that forgets to assign it fails */
    loop->failing += step_from(loop->failing);
    tni_alloc_watch(loop->failing, false);
    return true;
}
