/* SPDX-License-Identifier: MIT */
/* fake/memo.h: what stands for what: a map from counted object to counted object that keeps neither
 * alive. Not thread-safe; the owner locks. */
#ifndef TNI_FAKE_MEMO_H
#define TNI_FAKE_MEMO_H

#include "base/ref.h"

typedef struct tni_memo {
    struct tni_memo_entry *entries; /* NULL when capacity is 0 */
    size_t capacity;                /* 0 or a power of two */
    size_t n;                       /* entries in use, of the dead too */
} tni_memo;

/* A strong reference of what stands for @p key; NULL: nothing, or it is gone. */
TN_OWNED tni_object *tni_memo_get(const tni_memo *memo, const tni_object *key);
/* From now on @p value stands for @p key. Entries whose value is gone make room.
 * @retval TN_NOMEM  the memo is unchanged */
TN_NODISCARD tn_status tni_memo_put(tni_memo *memo, tni_object *key, tni_object *value);
void tni_memo_clear(tni_memo *memo);

#endif
