/* SPDX-License-Identifier: MIT */
/* dispatch/mode.h: modes, for the layers above. */
#ifndef TNI_DISPATCH_MODE_H
#define TNI_DISPATCH_MODE_H

#include "tenon/mode.h"
#include "dispatch/call.h"

#define TNI_KS_PYTHON TNI_FBIT(TN_KEY_PYTHON)
/* What is off while a handler runs: every key above Python. Fake stays: a handler may use fake
 * tensors, and its calls on them are answered below the modes that are still on. */
#define TNI_KS_ABOVE_PYTHON (((UINT64_C(1) << 63) - 1) & ~(2 * TNI_KS_PYTHON - 1) & ~TNI_KS_FAKE)

/* Whether a call on fake tensors, which has the key Python too, goes to a mode or to a handled
 * tensor first: the mode was pushed inside the fake mode that is on. */
bool tni_mode_before_fake(const tni_schema *schema, const tn_value *args);

/* Around work for another thread: what this one has switched on (modes, keys, a fake mode, its
 * observer) is off meanwhile. */
typedef struct tni_aside {
    uint64_t included_xor, excluded_xor;
    struct tni_object *fake_mode;
    void *modes;
    bool in_observer;
} tni_aside;
void tni_aside_begin(tni_aside *out);
void tni_aside_end(const tni_aside *aside);

#endif
