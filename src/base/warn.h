/* SPDX-License-Identifier: MIT */
/* base/warn.h: telling the embedder about calls that go on. The public half is tenon/base.h. */
#ifndef TNI_BASE_WARN_H
#define TNI_BASE_WARN_H

#include <stdatomic.h>
#include "base/status.h"

/* Tells whoever listens (tn_set_warnings); TN_OK when nobody does. What listens may call the
 * library: not while a lock is held, not on a worker of the pool, and before anything is written,
 * so that a call that is refused has changed nothing. A text that is too long is cut. */
TNI_COLD TN_NODISCARD tn_status tni_warn(const char *format, ...) TN_PRINTF(1, 2);
/* The same, the first time in a process that somebody listens. */
#define TNI_WARN_ONCE(...)                                                   \
    do {                                                                     \
        static atomic_flag tni_told_ = ATOMIC_FLAG_INIT;                     \
        if (tni_somebody_listens() && !atomic_flag_test_and_set(&tni_told_)) \
            TN_TRY(tni_warn(__VA_ARGS__));                                   \
    } while (0)
bool tni_somebody_listens(void);

#endif
