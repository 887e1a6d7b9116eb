/* SPDX-License-Identifier: MIT */
/* core/keys.h: dispatch keys and key sets, as bits. The public half is tenon/dispatch.h.
 *
 * A set is one word: bits 0..15 say which backends, bit 15+f says functionality f (1..47). The
 * layout, the order and the slot numbers are the reference's. Removing a key clears its
 * functionality bit only; backend bits survive (a set cannot say "autograd for CUDA, dense for
 * CPU"). */
#ifndef TNI_CORE_KEYS_H
#define TNI_CORE_KEYS_H

#include "tenon/dispatch.h"
#include "base/status.h"

#define TNI_NUM_BACKENDS        16
#define TNI_NUM_FUNCTIONALITIES 48
#define TNI_NUM_SLOTS           138
#define TNI_BACKEND_MASK        UINT64_C(0xffff)
#define TNI_KS_FULL             UINT64_C(0x7fffffffffffffff)

/* The bit of functionality f (tn_key value 1..47). */
#define TNI_FBIT(f) (UINT64_C(1) << (15 + (f)))

#define TNI_KS_AUTOGRAD                                                          \
    (TNI_FBIT(TN_KEY_AUTOGRAD_FUNCTIONALITY) | TNI_FBIT(TN_KEY_AUTOGRAD_OTHER) | \
     TNI_FBIT(TN_KEY_AUTOGRAD_NESTED_TENSOR))
#define TNI_KS_ADINPLACE_OR_VIEW TNI_FBIT(TN_KEY_ADINPLACE_OR_VIEW)
#define TNI_KS_FAKE              TNI_FBIT(TN_KEY_FAKE)
#define TNI_KS_AUTOCAST          (UINT64_C(0x3ff) << 40)
/* Every key below f, and PythonDispatcher always. */
#define TNI_KS_AFTER(f)                ((TNI_FBIT(f) - 1) | TNI_FBIT(TN_KEY_PYTHON_DISPATCHER))
#define TNI_KS_NAMED                   TNI_FBIT(TN_KEY_NAMED)
#define TNI_KS_NAMED_ON                TNI_KS_AFTER(TN_KEY_CONJUGATE) /* Named and what is below */
#define TNI_KS_AFTER_AUTOGRAD          TNI_KS_AFTER(TN_KEY_AUTOGRAD_OTHER)
#define TNI_KS_AFTER_ADINPLACE_OR_VIEW TNI_KS_AFTER(TN_KEY_ADINPLACE_OR_VIEW)
#define TNI_KS_AFTER_FUNCTIONALIZE     (TNI_KS_AFTER(TN_KEY_FUNCTIONALIZE) & ~TNI_KS_ADINPLACE_OR_VIEW)

/* Thread-local defaults. */
#define TNI_DEFAULT_INCLUDED (TNI_FBIT(TN_KEY_BACKEND_SELECT) | TNI_KS_ADINPLACE_OR_VIEW)
#define TNI_DEFAULT_EXCLUDED TNI_KS_AUTOCAST

/* First slot and backend mask of each functionality; index 0 is Undefined. */
typedef struct tni_slot_rule {
    uint16_t offset, mask;
} tni_slot_rule;
TNI_HIDDEN extern const tni_slot_rule tni_slot_rules[TNI_NUM_FUNCTIONALITIES];

static inline int tni_top_bit(uint64_t x) /* 1-based position of the highest bit, 0 for 0 */
{
    return x ? 64 - __builtin_clzll(x) : 0;
}

/* Slot of the highest key of a set. */
static inline unsigned tni_keyset_slot(tn_keyset ks)
{
    const tni_slot_rule rule = tni_slot_rules[tni_top_bit(ks >> 16)];
    return rule.offset + (unsigned)tni_top_bit((ks & rule.mask) >> 1);
}

/* a - b: clears functionality bits only. */
static inline tn_keyset tni_keyset_minus(tn_keyset a, tn_keyset b)
{
    return a & ~(b & ~TNI_BACKEND_MASK);
}

bool tni_key_is_alias(tn_key key);
bool tni_key_is_runtime(tn_key key);     /* owns a slot (Undefined included) */
bool tni_key_is_per_backend(tn_key key); /* a functionality such as Dense, not an instance */
tn_keyset tni_key_set(tn_key key);       /* runtime key as a set; empty for Undefined and aliases */
tn_keyset tni_alias_set(tn_key alias);   /* runtime keys that an alias fills; else tni_key_set */
tn_key tni_keyset_highest(tn_keyset ks); /* highest-priority runtime key */
tn_key tni_slot_key(unsigned slot);      /* runtime key that owns a slot */
unsigned tni_key_slot(tn_key key);       /* slot of a runtime key */
bool tni_keyset_has(tn_keyset ks, tn_key key); /* all bits of the key's set are present */
/* The functionality of a runtime key (AutogradCPU -> AutogradFunctionality), and its backend bit
 * index, -1 when it has none. */
tn_key tni_key_functionality(tn_key key);
int tni_key_backend(tn_key key);
/* Runtime keys of a set in ascending order; *cursor starts at 0; false at the end. */
bool tni_keyset_next(tn_keyset ks, unsigned *cursor, tn_key *out);
/* Autograd key of a tensor on this backend (HIP, VE: AutogradOther); set of its autocast key or 0.
 */
tn_key tni_backend_autograd_key(int backend);
tn_keyset tni_backend_autocast_set(int backend);
/* Keys that a fresh tensor of this device carries, in or out of inference mode. The table is
 * indexed by the mode and a valid backend; the function answers 0 for an invalid one. */
extern const tn_keyset tni_fresh_keys[2][TNI_NUM_BACKENDS];
tn_keyset tni_tensor_keys_for(int backend, bool inference);
/* The same with the key of dtypes that few kernels of the CPU and Meta take: see Note [Limited
 * dtypes] in iter/limited.c. Never with that of names: whoever gives a tensor names adds it. */
static inline tn_keyset tni_keys_of_dtype(tn_keyset keys, int dtype)
{
    const tn_keyset limited = (tn_keyset)1 << (15 + TN_KEY_QUANTIZED);
    const tn_keyset guarded = 1u << TN_DEVICE_CPU | 1u << TN_DEVICE_META;
    return dtype < 16 || !(keys & guarded) ? keys & ~(limited | TNI_KS_NAMED)
                                           : (keys & ~TNI_KS_NAMED) | limited;
}
/* What a key is called where backends have the names @p backends ("": the built-in one), whatever
 * they are called in this process. Borrowed, or written into @p room. */
const char *tni_key_name_with(tn_key key, const char backends[TNI_NUM_BACKENDS][16], char room[64]);
/* Give backend component i (PrivateUse1..3) another name; text must live for ever. */
void tni_backend_rename(int backend, const char *name);

#endif
