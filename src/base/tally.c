/* SPDX-License-Identifier: MIT */
/* base/tally.c: the counters. */
#include "base/tally.h"

_Atomic bool tni_tallying;
_Atomic int64_t tni_tally_live;
_Thread_local tni_tally tni_tally_mine;

void tni_tally_note(int64_t nbytes)
{
    if (nbytes > 0)
        tni_tally_mine.allocated += nbytes;
    else
        tni_tally_mine.freed -= nbytes;
    atomic_fetch_add_explicit(&tni_tally_live, nbytes, memory_order_relaxed);
}
