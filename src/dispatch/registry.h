/* SPDX-License-Identifier: MIT */
/* dispatch/registry.h: operators, the kernels registered for them, and their tables.
 *
 * One mutex guards registration. Calls take no lock: they read an operator's table through one
 * pointer. No kernel, listener, observer or destructor runs while the mutex is held. */
#ifndef TNI_DISPATCH_REGISTRY_H
#define TNI_DISPATCH_REGISTRY_H

#include <pthread.h>
#include <stdatomic.h>
#include "base/hash.h"
#include "core/keys.h"
#include "observe/log.h"
#include "op/def.h"
#include "op/schema.h"

/* What a slot of a table points to. */
typedef struct tni_kernel {
    tn_boxed_fn boxed; /* NULL: no kernel here */
    tn_typed_fn typed; /* what a typed call goes to; NULL: it has to go through boxes */
    void *ctx;
    const struct tni_record *record; /* who registered it; NULL for the kernels made here */
} tni_kernel;

/* How typed calls pass a fallback without boxes, see dispatch/gate.h. */
typedef struct tni_gate tni_gate;

/* Something to free once no thread can be using it; see Note [Freeing old tables]. */
typedef struct tni_retired {
    struct tni_retired *next;
    uint64_t epoch;
    void (*free)(struct tni_retired *item);
} tni_retired;

/* A kernel registered for an operator and a key, or for a whole key. */
typedef struct tni_record {
    tni_kernel kernel; /* first: kernel.record points back here */
    tni_retired retired;
    struct tni_record *next; /* same list: by key, newest first within a key */
    tn_typed_fn typed;    /* as registered; NULL: boxed only. See Note [Composites from outside] */
    const tni_gate *gate; /* NULL: none, see dispatch/gate.h */
    tn_key key;
    union {
        struct {
            const char *name;
            const char *file;
            int line;
        };
        tni_prof_kernel site; /* the same, as the profiler takes it */
    };
    const char *signature;      /* NULL: not known */
    void (*destroy)(void *ctx); /* may be NULL */
    uint32_t told;              /* its name in the flight recorder */
    char *text;                 /* owns name, file and signature of a user's kernel; else NULL */
} tni_record;

/* Note [Hot sets]
 * Nearly every call has a dense CPU or Meta set, with or without autograd and ADInplaceOrView:
 * eight sets. Each table keeps what they lead to, found by three bits of the set and one
 * comparison, which is half the latency of finding the highest functionality, then its slots, then
 * the highest backend. */
typedef struct tni_hot_set {
    tn_keyset keys;
    _Atomic(const tni_kernel *) kernel;
    uint64_t slot;
} tni_hot_set;

static inline unsigned tni_hot_index(tn_keyset ks)
{
    /* Bits 37, 35 and 15 to 61, 62 and 63: one product instead of three shifts. No two products of
     * bits meet on the way there, so nothing is carried. */
    const tn_keyset bits = UINT64_C(1) << 37 | UINT64_C(1) << 35 | UINT64_C(1) << 15;
    const uint64_t places = UINT64_C(1) << 24 | UINT64_C(1) << 27 | UINT64_C(1) << 48;
    return (unsigned)((ks & bits) * places >> 61);
}

/* An operator's table, immutable once published. (When memory runs out while a registration is
 * being undone it is patched in place instead; see tni_table_publish.) */
typedef struct tni_table {
    _Atomic tn_keyset mask;   /* keys that do not fall through */
    _Atomic bool per_backend; /* the masks of the backends differ */
    _Atomic(const tni_kernel *) slots[TNI_NUM_SLOTS];
    _Atomic tn_keyset backend_masks[TNI_NUM_BACKENDS];
    tni_hot_set hot[8]; /* see Note [Hot sets] */
    tni_retired retired;
} tni_table;

struct tn_op {
    _Atomic(tni_table *) table;   /* NULL only before the library is booted */
    _Atomic(tni_schema *) schema; /* parsed when first needed */
    const char *name;             /* "aten::add.Tensor" */
    const tni_op_def *builtin;    /* NULL: defined at run time */
    tni_record *records;
    bool defined;
    bool leaving; /* still defined, but listeners are being told that it goes */
    tn_alias_analysis alias;
    char *def_site; /* "registered at FILE:LINE"; owned; NULL for built-in ones */
    char *tags;     /* owned; NULL for none and for built-in ones */
};

/* Why a slot holds what it holds. */
typedef enum tni_provenance {
    TNI_FROM_KERNEL = 0,
    TNI_FROM_DEFAULT_BACKEND,
    TNI_FROM_NESTED,
    TNI_FROM_AMBIGUOUS,
    TNI_FROM_MATH,
    TNI_FROM_AUTOGRAD,
    TNI_FROM_BATCHED,
    TNI_FROM_FALLBACK,
    TNI_FROM_NOTHING,
} tni_provenance;
const char *tni_provenance_name(tni_provenance why);

typedef struct tni_registry {
    pthread_mutex_t lock;
    tni_map by_name;                      /* full name -> tn_op */
    tni_record *fallbacks[TNI_NUM_SLOTS]; /* newest first */
    tn_boxed_fn composite_guard; /* runs composite kernels from outside, see tni_run_kernel */
    tn_op **ops;                 /* all of them, in order of creation */
    size_t n_ops, ops_capacity;
} tni_registry;
extern tni_registry tni_registry_;

/* Make sure that the built-in operators are registered and that this thread is known.
 * Every entry from outside goes through here; cheap when done. */
TN_NODISCARD tn_status tni_ready(void);

void tni_lock(void);
/* Unlock, then free what can be freed, without the lock: runs destructors of users, so no other
 * lock may be held. The thread's error record is as before. */
void tni_unlock(void);
/* Unlock alone: for those who hold another lock. */
void tni_unlock_only(void);

/* The operator of this name, created if there is none. Locked. */
TN_NODISCARD tn_status tni_op_intern(const char *name, tn_op **out);
/* The parsed schema, NULL with a failure set when there is none or no memory. Borrowed: valid while
 * the caller is inside a dispatch or an epoch (tni_epoch_enter). */
const tni_schema *tni_op_get_schema(tn_op *op);

/* ---- kernels (locked) ---- */

extern const tni_kernel tni_kernel_missing;
tn_status tni_fallthrough_fn(tn_call *call, const tn_value *args, tn_value *rets);
tn_status tni_ambiguous_fn(tn_call *call, const tn_value *args, tn_value *rets);
static inline bool tni_is_fallthrough(const tni_kernel *k)
{
    return k->boxed == tni_fallthrough_fn;
}

/* Put a record into an operator's list (or take it out) without computing the table. */
void tni_records_insert(tni_record **list, tni_record *record);
void tni_records_remove(tni_record **list, tni_record *record);
tni_record *tni_records_newest(tni_record *list, tn_key key);
/* A record that copies what the kernel says; not yet in any list. */
TN_NODISCARD tn_status tni_record_new(const tn_kernel *kernel, tn_key key, tni_record **out);
void tni_record_free_now(tni_record *record); /* without calling destroy */

/* ---- tables (locked) ---- */

/* What the registrations say about one slot. */
const tni_kernel *tni_table_resolve(const tni_record *const *newest, unsigned slot,
                                    tni_provenance *why);
/* newest[key] = newest record of each key; TN_KEY_LIMIT entries. */
void tni_records_by_key(const tn_op *op, const tni_record **newest);
/* Compute an operator's table from scratch into @p t. */
void tni_table_compute(const tn_op *op, tni_table *t);
/* The same to compare with: nothing is being registered, and no stage line says so. */
void tni_table_compute_again(const tn_op *op, tni_table *t);
tni_table *tni_table_alloc(void);
/* Compute and publish. With @p must_succeed a lack of memory patches the old table in place. */
TN_NODISCARD tn_status tni_table_publish(tn_op *op, bool must_succeed);
/* The same for every operator: all or nothing unless must_succeed. */
TN_NODISCARD tn_status tni_table_publish_all(bool must_succeed);

/* ---- threads and epochs (threads.c) ---- */

TNI_HIDDEN extern _Atomic uint64_t tni_epoch;
/* Hand over something that is no longer reachable for new calls. Locked. */
void tni_retire(tni_retired *item, void (*free_fn)(tni_retired *item));
/* Between these, nothing retired from now on is freed. Nest. True: leave with tni_epoch_leave. */
bool tni_epoch_enter(void);
void tni_epoch_leave(bool entered);

#endif
