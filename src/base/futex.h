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
#include <unistd.h>

/* Sleep while *word is @p value. Only a wake with a common bit in @p channel ends it. */
static inline void tni_futex_wait(_Atomic uint32_t *word, uint32_t value, uint32_t channel)
{
    syscall(SYS_futex, word, FUTEX_WAIT_BITSET_PRIVATE, value, NULL, NULL, channel);
}

static inline void tni_futex_wake(_Atomic uint32_t *word, int n, uint32_t channel)
{
    syscall(SYS_futex, word, FUTEX_WAKE_BITSET_PRIVATE, n, NULL, NULL, channel);
}

#endif
