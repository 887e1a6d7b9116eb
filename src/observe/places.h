/* SPDX-License-Identifier: MIT */
/* observe/places.h: where each thread was at the last look, and since when: has it moved?
 *
 * Note [What counts as movement]
 * Calls that come and go, also those that a running operator makes: a kernel may compute with other
 * operators for hours. So do the nodes of a backward pass. What an innermost call leaves behind is
 * its frame, with its stamp, just beyond the live ones: a reader sees it there, and callers pay
 * nothing for it.
 *
 * Not movement: backward passes that nest deeper and deeper, dispatches that do so in a cycle, or
 * have come to the limit of depth and go round there; and one call that fails in the same way
 * whenever somebody looks. Both can last for ever, and what was asked for never comes of it. */
#ifndef TNI_OBSERVE_PLACES_H
#define TNI_OBSERVE_PLACES_H

#include "observe/reader.h"

/* What is remembered of a thread between two looks. */
typedef struct tni_place {
    uint32_t tid; /* 0: free */
    bool told;    /* its standing here was reported */
    bool stopped; /* it was asked to stop */
    uint64_t hash, inner, outer, passes;
    uint32_t deepest, most_passes;
    uint64_t began; /* to be here */
    uint64_t since; /* later, when it could not have moved */
    uint64_t cpu_ns;
} tni_place;

typedef struct tni_places {
    tni_place *list; /* owned */
    uint32_t n, room;
} tni_places;

/* A look at a thread: its place, a fresh one when it has moved or was not known. @p passed: since
 * the look before; @p limit: for how long one may stand, all in nanoseconds. NULL: no memory.
 * Borrowed until the next call. */
tni_place *tni_places_look(tni_places *places, const tni_seen_thread *t, uint64_t now,
                           uint64_t passed, uint64_t limit);
/* A thread's place at the last look, NULL when it is not known. Borrowed like that. */
tni_place *tni_places_find(const tni_places *places, uint32_t tid);
/* Forget the threads that are not there any more. */
void tni_places_forget(tni_places *places, const tni_seen *seen);
void tni_places_clear(tni_places *places);

#endif
