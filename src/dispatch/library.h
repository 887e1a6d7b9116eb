/* SPDX-License-Identifier: MIT */
/* dispatch/library.h: libraries and registrations, inside the dispatch layer. */
#ifndef TNI_DISPATCH_LIBRARY_H
#define TNI_DISPATCH_LIBRARY_H

#include "base/str.h"
#include "dispatch/registry.h"

struct tn_library {
    tn_library_kind kind;
    tn_key key;
    const char *ns;
    const char *file;
    int line;
    tn_registration *registrations; /* newest first; guarded by the registry's lock */
    tn_library *next_owner;
};

typedef enum tni_registration_kind {
    TNI_REGISTERED_DEF,
    TNI_REGISTERED_IMPL,
    TNI_REGISTERED_FALLBACK,
    TNI_REGISTERED_LISTENER,
} tni_registration_kind;

struct tn_registration {
    tni_registration_kind kind;
    int refs; /* of the library and of the caller; guarded by the registry's lock */
    bool undone;
    tn_library *library;
    tn_registration *next; /* of the same library */
    tn_op *op;
    tni_record *record;     /* the kernel; of a definition too, NULL when it came without */
    tni_schema *old_schema; /* an undone definition's, until no call can be reading it */
    tni_retired retired;
    tn_listener listener;
    bool listener_dead;
    uint64_t joined; /* a listener hears of events after this one; see Note [Listeners] */
};

TN_NODISCARD tn_status tni_registration_new(tni_registration_kind kind, tn_registration **out);
/* A definition came, or begins to go: its number. Locked. */
uint64_t tni_next_event(void);
/* Tell every listener that @p op was defined, or is about to be undefined. Not locked. */
void tni_tell_listeners(tn_op *op, bool defined, uint64_t event);
void tni_remove_listener(tn_registration *r);

/* How many kernels from outside serve built-in operators, or a whole key: while there are none, a
 * call with plain tensors runs none. */
TNI_HIDDEN extern _Atomic uint32_t tni_n_foreign_kernels;
static inline bool tni_foreign_kernels(void)
{
    return TNI_UNLIKELY(atomic_load_explicit(&tni_n_foreign_kernels, memory_order_relaxed) != 0);
}

#endif
