/* SPDX-License-Identifier: MIT */
/* What the dispatch trace costs while it is off: the one branch that every wrapper has for it,
 * measured against the same loop without it. Sees inside the library on purpose. */
#include "dispatch/call.h"
#include "timer.h"

static volatile long sink;

int main(int argc, char **argv)
{
    const char *only = argc > 1 ? argv[1] : NULL;
    BENCH("loop_plain", __asm__ volatile("" ::: "memory"););
    BENCH("loop_watched", if (tni_observing) sink++; __asm__ volatile("" ::: "memory"););
    return 0;
}
