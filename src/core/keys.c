/* SPDX-License-Identifier: MIT */
/* core/keys.c: the tables behind dispatch keys and key sets: slots, names, aliases, iteration, and
 * which keys a fresh tensor carries. Nothing here knows operators; which kernel a slot holds is the
 * dispatcher's business. */
#include "core/keys.h"

#include "base/status.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

/* Instances of the six per-backend functionalities follow a sentinel each, 17 numbers apart. */
#define FIRST_SENTINEL  48
#define INSTANCE_STRIDE 17
#define NUM_FAMILIES    6
#define FIRST_ALIAS     150

static const uint8_t families[NUM_FAMILIES] = {
    TN_KEY_DENSE,      TN_KEY_QUANTIZED,     TN_KEY_SPARSE,
    TN_KEY_SPARSE_CSR, TN_KEY_NESTED_TENSOR, TN_KEY_AUTOGRAD_FUNCTIONALITY,
};

#define ONE(f, slot)         [f] = {(slot), 0}
#define PER_BACKEND(f, slot) [f] = {(slot), 0xffff}
const tni_slot_rule tni_slot_rules[TNI_NUM_FUNCTIONALITIES] = {
    ONE(0, 0),          PER_BACKEND(1, 1),  ONE(2, 17),          ONE(3, 18),
    ONE(4, 19),         PER_BACKEND(5, 20), ONE(6, 36),          ONE(7, 37),
    PER_BACKEND(8, 38), PER_BACKEND(9, 54), PER_BACKEND(10, 70), ONE(11, 86),
    ONE(12, 87),        ONE(13, 88),        ONE(14, 89),         ONE(15, 90),
    ONE(16, 91),        ONE(17, 92),        ONE(18, 93),         ONE(19, 94),
    ONE(20, 95),        ONE(21, 96),        PER_BACKEND(22, 97), ONE(23, 113),
    ONE(24, 114),       ONE(25, 115),       ONE(26, 116),        ONE(27, 117),
    ONE(28, 118),       ONE(29, 119),       ONE(30, 120),        ONE(31, 121),
    ONE(32, 122),       ONE(33, 123),       ONE(34, 124),        ONE(35, 125),
    ONE(36, 126),       ONE(37, 127),       ONE(38, 128),        ONE(39, 129),
    ONE(40, 130),       ONE(41, 131),       ONE(42, 132),        ONE(43, 133),
    ONE(44, 134),       ONE(45, 135),       ONE(46, 136),        ONE(47, 137),
};
#undef ONE
#undef PER_BACKEND

/* ---- names ---- */

#define X(name, text, number) text,
static const char *const dense_names[] = {TN_BACKEND_LIST(X)};
#undef X
#define X(name, text, number) "Quantized" text,
static const char *const quantized_names[] = {TN_BACKEND_LIST(X)};
#undef X
#define X(name, text, number) "Sparse" text,
static const char *const sparse_names[] = {TN_BACKEND_LIST(X)};
#undef X
#define X(name, text, number) "SparseCsr" text,
static const char *const sparse_csr_names[] = {TN_BACKEND_LIST(X)};
#undef X
#define X(name, text, number) "NestedTensor" text,
static const char *const nested_tensor_names[] = {TN_BACKEND_LIST(X)};
#undef X
#define X(name, text, number) "Autograd" text,
static const char *const autograd_names[] = {TN_BACKEND_LIST(X)};
#undef X
#define X(name, text, number, per_backend) [number] = text,
static const char *const functionality_names[] = {TN_FUNCTIONALITY_LIST(X)};
#undef X
#define X(name, text, number) text,
static const char *const alias_names[] = {TN_ALIAS_LIST(X)};
#undef X

typedef struct family_text {
    const char *prefix;
    const char *sentinel; /* what a set with the functionality but no backend is called */
    const char *const *names;
} family_text;

static const family_text family_texts[NUM_FAMILIES] = {
    {"", "Undefined", dense_names},
    {"Quantized", "QuantizedUndefined", quantized_names},
    {"Sparse", "SparseUndefined", sparse_names},
    {"SparseCsr", "SparseCsrUndefined", sparse_csr_names},
    {"NestedTensor", "NestedTensorUndefined", nested_tensor_names},
    {"Autograd", "AutogradUndefined", autograd_names},
};

/* Names of a claimed backend. Written once under the device registry's lock, before `ready` is
 * stored with release order; readers load it with acquire order and never see half a name. */
enum { FIRST_PRIVATE = 12, NUM_PRIVATE = 3, NAME_ROOM = 64 };
static struct {
    _Atomic bool ready;
    char family[NUM_FAMILIES][NAME_ROOM];
    char autocast[NAME_ROOM];
} renamed[NUM_PRIVATE];

static bool is_renamed(int backend)
{
    int i = backend - FIRST_PRIVATE;
    return i >= 0 && i < NUM_PRIVATE &&
           atomic_load_explicit(&renamed[i].ready, memory_order_acquire);
}

void tni_backend_rename(int backend, const char *name)
{
    int i = backend - FIRST_PRIVATE;
    if (i < 0 || i >= NUM_PRIVATE || is_renamed(backend))
        return;
    for (int f = 0; f < NUM_FAMILIES; f++)
        snprintf(renamed[i].family[f], NAME_ROOM, "%s%.40s", family_texts[f].prefix, name);
    snprintf(renamed[i].autocast, NAME_ROOM, "Autocast%.40s", name);
    atomic_store_explicit(&renamed[i].ready, true, memory_order_release);
}

const char *tn_key_name(tn_key key)
{
    if (key < 0 || key >= TN_KEY_LIMIT)
        return "Unknown";
    if (key >= FIRST_ALIAS)
        return alias_names[key - FIRST_ALIAS];
    if (key == TN_KEY_AUTOCAST_PRIVATE1 && is_renamed(FIRST_PRIVATE))
        return renamed[0].autocast;
    if (key < FIRST_SENTINEL)
        return functionality_names[key];
    int family = (key - FIRST_SENTINEL) / INSTANCE_STRIDE;
    int backend = tni_key_backend(key);
    if (backend < 0)
        return family_texts[family].sentinel;
    if (is_renamed(backend))
        return renamed[backend - FIRST_PRIVATE].family[family];
    return family_texts[family].names[backend];
}

const char *tni_key_name_with(tn_key key, const char backends[TNI_NUM_BACKENDS][16],
                              char room[NAME_ROOM])
{
    if (key < 0 || key >= TN_KEY_LIMIT)
        return "Unknown";
    const char *prefix = "Autocast", *usual = "";
    int backend = FIRST_PRIVATE;
    if (key >= FIRST_ALIAS) {
        return alias_names[key - FIRST_ALIAS];
    } else if (key < FIRST_SENTINEL) {
        usual = functionality_names[key];
        if (key != TN_KEY_AUTOCAST_PRIVATE1)
            return usual;
    } else {
        int family = (key - FIRST_SENTINEL) / INSTANCE_STRIDE;
        backend = tni_key_backend(key);
        if (backend < 0)
            return family_texts[family].sentinel;
        prefix = family_texts[family].prefix;
        usual = family_texts[family].names[backend];
    }
    if (!backends[backend][0])
        return usual;
    snprintf(room, NAME_ROOM, "%s%.15s", prefix, backends[backend]);
    return room;
}

tn_status tn_key_parse(const char *name, tn_key *out)
{
    TN_CHECK(name && out, TN_INVALID, "tn_key_parse: %s is NULL", name ? "out" : "name");
    for (int k = 0; k < TN_KEY_LIMIT; k++) {
        tn_key key = (tn_key)k;
        bool instance = k >= FIRST_SENTINEL && k < FIRST_ALIAS;
        int backend = tni_key_backend(key);
        if (instance && backend < 0)
            continue;
        /* A claimed backend answers to its own name and to the one it had before. */
        const char *old = instance
                              ? family_texts[(k - FIRST_SENTINEL) / INSTANCE_STRIDE].names[backend]
                          : k < FIRST_SENTINEL ? functionality_names[k]
                                               : alias_names[k - FIRST_ALIAS];
        if (strcmp(name, tn_key_name(key)) == 0 || strcmp(name, old) == 0) {
            *out = key;
            return TN_OK;
        }
    }
    TN_FAIL(TN_INVALID, "could not parse dispatch key: %s", name);
}

/* ---- one key ---- */

bool tni_key_is_alias(tn_key key)
{
    return key >= FIRST_ALIAS && key < TN_KEY_LIMIT;
}

bool tni_key_is_per_backend(tn_key key)
{
    return key >= 0 && key < FIRST_SENTINEL && tni_slot_rules[key].mask != 0;
}

bool tni_key_is_runtime(tn_key key)
{
    if (key < 0 || key >= FIRST_ALIAS)
        return false;
    if (key < FIRST_SENTINEL)
        return tni_slot_rules[key].mask == 0;
    return tni_key_backend(key) >= 0;
}

tn_key tni_key_functionality(tn_key key)
{
    if (key < 0 || key >= FIRST_ALIAS)
        return TN_KEY_UNDEFINED;
    if (key < FIRST_SENTINEL)
        return key;
    return (tn_key)families[(key - FIRST_SENTINEL) / INSTANCE_STRIDE];
}

int tni_key_backend(tn_key key)
{
    if (key < FIRST_SENTINEL || key >= FIRST_ALIAS)
        return -1;
    return (key - FIRST_SENTINEL) % INSTANCE_STRIDE - 1;
}

/* The runtime key of a functionality on a backend; backend -1 gives the family's sentinel. */
static tn_key instance_of(tn_key functionality, int backend)
{
    int family = 0;
    while (families[family] != functionality)
        family++;
    return (tn_key)(FIRST_SENTINEL + INSTANCE_STRIDE * family + 1 + backend);
}

tn_keyset tni_key_set(tn_key key)
{
    tn_key f = tni_key_functionality(key);
    int backend = tni_key_backend(key);
    tn_keyset ks = f == TN_KEY_UNDEFINED ? 0 : TNI_FBIT(f);
    return backend < 0 ? ks : ks | UINT64_C(1) << backend;
}

unsigned tni_key_slot(tn_key key)
{
    return tni_keyset_slot(tni_key_set(key));
}

/* Key of each slot, written out: computing a table asks for all of them. tests/core/test_keys.c
 * holds it against the rules. */
#define EACH_BACKEND(first)                                                                \
    (first), (first) + 1, (first) + 2, (first) + 3, (first) + 4, (first) + 5, (first) + 6, \
        (first) + 7, (first) + 8, (first) + 9, (first) + 10, (first) + 11, (first) + 12,   \
        (first) + 13, (first) + 14, (first) + 15
static const uint8_t slot_keys[TNI_NUM_SLOTS] = {TN_KEY_UNDEFINED,
                                                 EACH_BACKEND(TN_KEY_CPU),
                                                 TN_KEY_FPGA,
                                                 TN_KEY_VULKAN,
                                                 TN_KEY_METAL,
                                                 EACH_BACKEND(TN_KEY_QUANTIZED_CPU),
                                                 TN_KEY_CUSTOM_RNG,
                                                 TN_KEY_MKLDNN_CPU,
                                                 EACH_BACKEND(TN_KEY_SPARSE_CPU),
                                                 EACH_BACKEND(TN_KEY_SPARSE_CSR_CPU),
                                                 EACH_BACKEND(TN_KEY_NESTED_TENSOR_CPU),
                                                 11,
                                                 12,
                                                 13,
                                                 14,
                                                 15,
                                                 16,
                                                 17,
                                                 18,
                                                 19,
                                                 20,
                                                 TN_KEY_AUTOGRAD_OTHER,
                                                 EACH_BACKEND(TN_KEY_AUTOGRAD_CPU),
                                                 23,
                                                 24,
                                                 25,
                                                 26,
                                                 27,
                                                 28,
                                                 29,
                                                 30,
                                                 31,
                                                 32,
                                                 33,
                                                 34,
                                                 35,
                                                 36,
                                                 37,
                                                 38,
                                                 39,
                                                 40,
                                                 41,
                                                 42,
                                                 43,
                                                 44,
                                                 45,
                                                 46,
                                                 47};

tn_key tni_slot_key(unsigned slot)
{
    return slot < TNI_NUM_SLOTS ? (tn_key)slot_keys[slot] : TN_KEY_UNDEFINED;
}

/* ---- sets ---- */

#define BACKENDS_OF_ALL TNI_BACKEND_MASK
#define BACKEND_BIT(b)  (UINT64_C(1) << (b))
#define KS_ALONE                                                                \
    (TNI_FBIT(TN_KEY_FPGA) | TNI_FBIT(TN_KEY_VULKAN) | TNI_FBIT(TN_KEY_METAL) | \
     TNI_FBIT(TN_KEY_CUSTOM_RNG) | TNI_FBIT(TN_KEY_MKLDNN_CPU))
#define KS_BACKEND                                                                              \
    (KS_ALONE | TNI_FBIT(TN_KEY_DENSE) | TNI_FBIT(TN_KEY_QUANTIZED) | TNI_FBIT(TN_KEY_SPARSE) | \
     TNI_FBIT(TN_KEY_SPARSE_CSR) | BACKENDS_OF_ALL)

tn_keyset tni_alias_set(tn_key alias)
{
    switch ((int)alias) {
    case TN_KEY_AUTOGRAD:
        return TNI_KS_AUTOGRAD | BACKENDS_OF_ALL;
    case TN_KEY_COMPOSITE_IMPLICIT:
        return KS_BACKEND | TNI_FBIT(TN_KEY_NESTED_TENSOR) | TNI_KS_AUTOGRAD;
    case TN_KEY_FUNCTORCH_BATCHED_DECOMPOSITION:
        return TNI_FBIT(TN_KEY_FUNCTORCH_BATCHED);
    case TN_KEY_COMPOSITE_IMPLICIT_NESTED:
        return TNI_FBIT(TN_KEY_NESTED_TENSOR) | TNI_FBIT(TN_KEY_AUTOGRAD_NESTED_TENSOR) |
               BACKENDS_OF_ALL;
    case TN_KEY_COMPOSITE_EXPLICIT:
        return KS_BACKEND;
    case TN_KEY_COMPOSITE_EXPLICIT_NON_FUNCTIONAL: /* functional backends must not see its views */
        return KS_BACKEND & ~(TNI_FBIT(TN_KEY_SPARSE) | BACKEND_BIT(3) | BACKEND_BIT(9));
    default:
        return tni_key_set(alias);
    }
}

bool tni_keyset_has(tn_keyset ks, tn_key key)
{
    tn_keyset want = tni_key_set(key);
    return (ks & want) == want;
}

tn_key tni_keyset_highest(tn_keyset ks)
{
    tn_key f = (tn_key)tni_top_bit(ks >> 16);
    if (tni_slot_rules[f].mask == 0)
        return f;
    return instance_of(f, tni_top_bit(ks & TNI_BACKEND_MASK) - 1);
}

/* The cursor is the last slot visited: slots are in the order of priority. */
bool tni_keyset_next(tn_keyset ks, unsigned *cursor, tn_key *out)
{
    for (unsigned slot = *cursor + 1; slot < TNI_NUM_SLOTS;) {
        tn_key key = tni_slot_key(slot);
        tn_key f = tni_key_functionality(key);
        if (!(ks & TNI_FBIT(f))) {
            slot = f + 1 < TNI_NUM_FUNCTIONALITIES ? tni_slot_rules[f + 1].offset : TNI_NUM_SLOTS;
            continue;
        }
        int backend = tni_key_backend(key);
        if (backend < 0 || (ks & BACKEND_BIT(backend))) {
            *cursor = slot;
            *out = key;
            return true;
        }
        slot++;
    }
    *cursor = TNI_NUM_SLOTS;
    return false;
}

/* ---- what a tensor carries ---- */

/* Autocast key of each backend, 0 where there is none, as in the reference. */
static const uint8_t autocast_keys[TNI_NUM_BACKENDS] = {
    [0] = TN_KEY_AUTOCAST_CPU,       [1] = TN_KEY_AUTOCAST_CUDA,  [3] = TN_KEY_AUTOCAST_XLA,
    [4] = TN_KEY_AUTOCAST_MPS,       [5] = TN_KEY_AUTOCAST_IPU,   [6] = TN_KEY_AUTOCAST_XPU,
    [7] = TN_KEY_AUTOCAST_HPU,       [10] = TN_KEY_AUTOCAST_MTIA, [11] = TN_KEY_AUTOCAST_MAIA,
    [12] = TN_KEY_AUTOCAST_PRIVATE1,
};

tn_key tni_backend_autograd_key(int backend)
{
    if (backend < 0 || backend >= TNI_NUM_BACKENDS || backend == 2 || backend == 8) /* HIP, VE */
        return TN_KEY_AUTOGRAD_OTHER;
    return (tn_key)(TN_KEY_AUTOGRAD_CPU + backend);
}

tn_keyset tni_backend_autocast_set(int backend)
{
    if (backend < 0 || backend >= TNI_NUM_BACKENDS || autocast_keys[backend] == 0)
        return 0;
    return TNI_FBIT(autocast_keys[backend]);
}

#define DENSE(b)   (TNI_FBIT(TN_KEY_DENSE) | BACKEND_BIT(b))
#define CAST(name) TNI_FBIT(TN_KEY_AUTOCAST_##name)
#define NORMAL     (TNI_KS_ADINPLACE_OR_VIEW | TNI_FBIT(TN_KEY_AUTOGRAD_FUNCTIONALITY))
#define OTHER      (TNI_KS_ADINPLACE_OR_VIEW | TNI_FBIT(TN_KEY_AUTOGRAD_OTHER))
#define ROWS(normal, other)                                                                    \
    {                                                                                          \
        DENSE(0) | CAST(CPU) | (normal), DENSE(1) | CAST(CUDA) | (normal), DENSE(2) | (other), \
            DENSE(3) | CAST(XLA) | (normal), DENSE(4) | CAST(MPS) | (normal),                  \
            DENSE(5) | CAST(IPU) | (normal), DENSE(6) | CAST(XPU) | (normal),                  \
            DENSE(7) | CAST(HPU) | (normal), DENSE(8) | (other), DENSE(9) | (normal),          \
            DENSE(10) | CAST(MTIA) | (normal), DENSE(11) | CAST(MAIA) | (normal),              \
            DENSE(12) | CAST(PRIVATE1) | (normal), DENSE(13) | (normal), DENSE(14) | (normal), \
            DENSE(15) | (normal),                                                              \
    }
const tn_keyset tni_fresh_keys[2][TNI_NUM_BACKENDS] = {ROWS(NORMAL, OTHER), ROWS(0, 0)};
#undef DENSE
#undef CAST
#undef NORMAL
#undef OTHER
#undef ROWS

tn_keyset tni_tensor_keys_for(int backend, bool inference)
{
    if (backend < 0 || backend >= TNI_NUM_BACKENDS)
        return 0;
    return tni_fresh_keys[inference][backend];
}

/* ---- the public names ---- */

tn_keyset tn_keyset_of(tn_key key)
{
    return tni_key_set(key);
}

tn_keyset tn_keyset_add(tn_keyset ks, tn_key key)
{
    return ks | tni_key_set(key);
}

tn_keyset tn_keyset_remove(tn_keyset ks, tn_key key)
{
    return tni_keyset_minus(ks, tni_key_set(key));
}

tn_keyset tn_keyset_remove_backend(tn_keyset ks, int backend)
{
    return backend < 0 || backend >= TNI_NUM_BACKENDS ? ks : ks & ~BACKEND_BIT(backend);
}

bool tn_keyset_has(tn_keyset ks, tn_key key)
{
    return tni_keyset_has(ks, key);
}

tn_keyset tn_keyset_full_after(tn_key key)
{
    tn_key f = tni_key_functionality(key);
    return f == TN_KEY_UNDEFINED ? TNI_FBIT(TN_KEY_PYTHON_DISPATCHER) : TNI_KS_AFTER(f);
}

tn_key tn_keyset_highest(tn_keyset ks)
{
    return tni_keyset_highest(ks & TNI_KS_FULL);
}

unsigned tn_keyset_slot(tn_keyset ks)
{
    return tni_keyset_slot(ks & TNI_KS_FULL);
}

tn_keyset tn_keyset_of_alias(tn_key alias)
{
    return tni_alias_set(alias);
}

char *tn_keyset_format(tn_keyset ks, char *buffer, size_t n)
{
    if (!buffer || n == 0)
        return buffer;
    size_t at = 0;
    unsigned cursor = 0;
    tn_key key;
    const char *separator = "DispatchKeySet(";
    while (at < n && tni_keyset_next(ks, &cursor, &key)) {
        int wrote = snprintf(buffer + at, n - at, "%s%s", separator, tn_key_name(key));
        at += wrote > 0 ? (size_t)wrote : 0;
        separator = ", ";
    }
    if (at < n)
        snprintf(buffer + at, n - at, "%s)", at == 0 ? "DispatchKeySet(" : "");
    return buffer;
}
