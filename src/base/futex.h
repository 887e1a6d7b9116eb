/* SPDX-License-Identifier: MIT */
/* base/futex.h: sleep until a word changes. Private to the process; a sleeper may wake for no
 * reason, so the caller looks at the word again. */
#ifndef TNI_BASE_FUTEX_H
#define TNI_BASE_FUTEX_H

#include <limits.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Sleep while *word is @p value. Only a wake with a common bit in @p channel ends it. */
static inline void tni_futex_wait(_Atomic uint32_t *word, uint32_t value, uint32_t channel)
{
    syscall(SYS_futex, word, FUTEX_WAIT_BITSET_PRIVATE, value, NULL, NULL, channel);
}

/* The same for so many milliseconds at most. */
static inline void tni_futex_wait_ms(_Atomic uint32_t *word, uint32_t value, uint32_t channel,
                                     long ms)
{
    struct timespec until; /* FUTEX_WAIT_BITSET takes a moment, not a span */
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += ms % 1000 * 1000000;
    until.tv_sec += ms / 1000 + until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    syscall(SYS_futex, word, FUTEX_WAIT_BITSET_PRIVATE, value, &until, NULL, channel);
}

static inline void tni_futex_wake(_Atomic uint32_t *word, int n, uint32_t channel)
{
    syscall(SYS_futex, word, FUTEX_WAKE_BITSET_PRIVATE, n, NULL, NULL, channel);
}

#endif
