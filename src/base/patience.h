/* SPDX-License-Identifier: MIT */
/* base/patience.h: how long a thread that waits for another keeps its processor before it sleeps.
 *
 * Note [Patience]
 * To wake a thread that sleeps takes 15 µs where its processor is busy with something else and 50
 * and more where it has gone to rest, as long as a whole product of small matrices takes. So
 * whoever waits looks again and again for LONG_NS before it sleeps; but not where that would only
 * burn time:
 *  - what it waited for took longer than that the last times: an idle program sleeps;
 *  - the system took its processor away since it last waited: others have work for it;
 *  - more threads than processors.
 * Then it waits for a few microseconds, as a lock does. How long the wait has been is learnt from
 * waits that slept as well, so that patience comes back. */
#ifndef TNI_BASE_PATIENCE_H
#define TNI_BASE_PATIENCE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <time.h>

typedef struct tni_patience {
    uint64_t began, until; /* of the wait; until 0: it does not look for long */
    long taken;            /* how often the processor was taken away, when last asked */
    int vain;              /* rises with waits that were too long, falls with others */
    int crowded;           /* waits to come that are short because others want the processor */
} tni_patience;

enum {
    TNI_PATIENCE_SPINS = 256, /* some microseconds */
    TNI_PATIENCE_LONG_NS = 200000,
    TNI_PATIENCE_VAIN = 3,
    TNI_PATIENCE_CROWDED = 16,
};

static inline void tni_pause(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static inline uint64_t tni_patience_now(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* The first few microseconds are over. @p room: every thread has a processor. */
static inline void tni_patience_begin(tni_patience *p, bool room)
{
    struct rusage usage;
    p->began = tni_patience_now();
    p->until = 0;
    if (!room || getrusage(RUSAGE_THREAD, &usage) != 0)
        return;
    if (usage.ru_nivcsw != p->taken)
        p->crowded = TNI_PATIENCE_CROWDED;
    p->taken = usage.ru_nivcsw;
    if (p->crowded > 0)
        p->crowded--;
    else if (p->vain < TNI_PATIENCE_VAIN)
        p->until = p->began + TNI_PATIENCE_LONG_NS;
}

/* Whether to look once more; it paused before. */
static inline bool tni_patience_lasts(const tni_patience *p)
{
    if (!p->until)
        return false;
    for (int i = 0; i < 8; i++)
        tni_pause();
    return tni_patience_now() < p->until;
}

/* What was waited for is there. */
static inline void tni_patience_end(tni_patience *p)
{
    if (tni_patience_now() - p->began > TNI_PATIENCE_LONG_NS)
        p->vain += p->vain < TNI_PATIENCE_VAIN;
    else
        p->vain -= p->vain > 0;
}

#endif
