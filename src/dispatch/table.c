/* SPDX-License-Identifier: MIT */
/* dispatch/table.c: what each slot of an operator's table holds, from its registrations alone.
 *
 * The rules and their order are the reference's (docs/user/explain.md has them as a table). A table
 * is always computed whole, so the order of registrations cannot matter: see
 * docs/decisions/0007-dispatch-tables.md. */
#include "base/alloc.h"
#include "dispatch/debug.h"
#include "dispatch/stages.h"

const tni_kernel tni_kernel_missing;
static const tni_kernel ambiguous = {tni_ambiguous_fn, NULL, NULL, NULL};

static const char *const provenance_names[] = {
    [TNI_FROM_KERNEL] = "kernel",          [TNI_FROM_DEFAULT_BACKEND] = "default backend kernel",
    [TNI_FROM_NESTED] = "nested kernel",   [TNI_FROM_AMBIGUOUS] = "ambiguous autogradother",
    [TNI_FROM_MATH] = "math kernel",       [TNI_FROM_AUTOGRAD] = "autograd kernel",
    [TNI_FROM_BATCHED] = "batched kernel", [TNI_FROM_FALLBACK] = "backend fallback",
    [TNI_FROM_NOTHING] = "missing",
};

const char *tni_provenance_name(tni_provenance why)
{
    return provenance_names[why];
}

/* Keys without a backend bit, and the per-backend ones, that AutogradOther stands above. */
static tn_keyset autograd_other_backends(void)
{
    return TNI_FBIT(TN_KEY_FPGA) | TNI_FBIT(TN_KEY_VULKAN) | TNI_FBIT(TN_KEY_METAL) |
           TNI_FBIT(TN_KEY_CUSTOM_RNG) | TNI_FBIT(TN_KEY_MKLDNN_CPU) | TNI_FBIT(TN_KEY_SPARSE) |
           TNI_FBIT(TN_KEY_SPARSE_CSR) | TNI_FBIT(TN_KEY_QUANTIZED) | TNI_BACKEND_MASK;
}

static bool any_direct(const tni_record *const *newest, tn_keyset ks)
{
    unsigned cursor = 0;
    tn_key key;
    while (tni_keyset_next(ks, &cursor, &key)) {
        if (newest[key])
            return true;
    }
    return false;
}

/* Whether a backend has a kernel of its own, so that its autograd key must not take the composite
 * one. */
static bool is_protected(const tni_record *const *newest, tn_key key)
{
    if (key == TN_KEY_AUTOGRAD_OTHER)
        return any_direct(newest, autograd_other_backends());
    if (key == TN_KEY_AUTOGRAD_NESTED_TENSOR)
        return any_direct(newest, TNI_FBIT(TN_KEY_NESTED_TENSOR) | TNI_BACKEND_MASK);
    if (key < TN_KEY_AUTOGRAD_CPU || key > TN_KEY_AUTOGRAD_META)
        return false;
    /* The reference forgets HIP, VE and MTIA; tables must agree with it. */
    if (key == TN_KEY_AUTOGRAD_HIP || key == TN_KEY_AUTOGRAD_VE || key == TN_KEY_AUTOGRAD_MTIA)
        return false;
    return newest[TN_KEY_CPU + (key - TN_KEY_AUTOGRAD_CPU)] != NULL;
}

static bool fills(tn_key alias, tn_key key)
{
    if (alias == TN_KEY_AUTOGRAD)
        return (tni_key_set(tni_key_functionality(key)) & TNI_KS_AUTOGRAD) != 0;
    return key != TN_KEY_UNDEFINED && tni_keyset_has(tni_alias_set(alias), key);
}

const tni_kernel *tni_table_resolve(const tni_record *const *newest, unsigned slot,
                                    tni_provenance *why)
{
    const tn_key key = tni_slot_key(slot);
    const bool undefined = key == TN_KEY_UNDEFINED;

    if (!undefined && newest[key]) { /* 1 */
        *why = TNI_FROM_KERNEL;
        return &newest[key]->kernel;
    }
    static const tn_key explicit_aliases[] = {TN_KEY_COMPOSITE_EXPLICIT_NON_FUNCTIONAL,
                                              TN_KEY_COMPOSITE_EXPLICIT};
    for (int i = 0; i < 2; i++) { /* 2.1, 2.2 */
        tn_key alias = explicit_aliases[i];
        if (newest[alias] && (undefined || fills(alias, key))) {
            *why = TNI_FROM_DEFAULT_BACKEND;
            return &newest[alias]->kernel;
        }
    }
    if (newest[TN_KEY_COMPOSITE_IMPLICIT_NESTED] && fills(TN_KEY_COMPOSITE_IMPLICIT_NESTED, key)) {
        *why = TNI_FROM_NESTED; /* 2.3a */
        return &newest[TN_KEY_COMPOSITE_IMPLICIT_NESTED]->kernel;
    }
    if (newest[TN_KEY_COMPOSITE_IMPLICIT] && (undefined || fills(TN_KEY_COMPOSITE_IMPLICIT, key))) {
        if (key == TN_KEY_AUTOGRAD_OTHER && any_direct(newest, autograd_other_backends())) {
            *why = TNI_FROM_AMBIGUOUS; /* 2.3b */
            return &ambiguous;
        }
        if (!newest[TN_KEY_COMPOSITE_EXPLICIT] && !is_protected(newest, key)) {
            *why = TNI_FROM_MATH; /* 2.3c */
            return &newest[TN_KEY_COMPOSITE_IMPLICIT]->kernel;
        }
    }
    if (newest[TN_KEY_AUTOGRAD] && fills(TN_KEY_AUTOGRAD, key)) { /* 2.4 */
        *why = TNI_FROM_AUTOGRAD;
        return &newest[TN_KEY_AUTOGRAD]->kernel;
    }
    if (newest[TN_KEY_FUNCTORCH_BATCHED_DECOMPOSITION] && key == TN_KEY_FUNCTORCH_BATCHED) {
        *why = TNI_FROM_BATCHED; /* 2.5 */
        return &newest[TN_KEY_FUNCTORCH_BATCHED_DECOMPOSITION]->kernel;
    }
    if (tni_registry_.fallbacks[slot]) { /* 3 */
        *why = TNI_FROM_FALLBACK;
        return &tni_registry_.fallbacks[slot]->kernel;
    }
    *why = TNI_FROM_NOTHING; /* 4 */
    return &tni_kernel_missing;
}

void tni_records_by_key(const tn_op *op, const tni_record **newest)
{
    for (int i = 0; i < TN_KEY_LIMIT; i++)
        newest[i] = NULL;
    for (const tni_record *r = op->records; r; r = r->next) {
        if (!newest[r->key])
            newest[r->key] = r;
    }
}

/* The slot of @p key falls through: calls skip it. */
static void note_fallthrough(tn_keyset *masks, tn_key key)
{
    int backend = tni_key_backend(key);
    for (int b = 0; b < TNI_NUM_BACKENDS; b++) {
        if (backend < 0 || b == backend)
            masks[b] = tni_keyset_minus(masks[b], tni_key_set(key));
    }
}

static void fill_hot_sets(tni_table *t)
{
    for (unsigned i = 0; i < 8; i++) {
        tn_keyset ks = TNI_FBIT(TN_KEY_DENSE) |
                       (i & 4 ? tni_key_set(TN_KEY_META) : tni_key_set(TN_KEY_CPU)) |
                       (i & 2 ? TNI_KS_ADINPLACE_OR_VIEW : 0) |
                       (i & 1 ? TNI_FBIT(TN_KEY_AUTOGRAD_FUNCTIONALITY) : 0);
        TNI_ASSERT(tni_hot_index(ks) == i);
        t->hot[i].keys = ks;
        t->hot[i].slot = tni_keyset_slot(ks);
        atomic_store_explicit(&t->hot[i].kernel, t->slots[t->hot[i].slot], memory_order_relaxed);
    }
}

static void compute(const tn_op *op, tni_table *t, bool tell)
{
    const tni_record *newest[TN_KEY_LIMIT];
    tni_records_by_key(op, newest);
    tn_keyset masks[TNI_NUM_BACKENDS];
    for (int b = 0; b < TNI_NUM_BACKENDS; b++)
        masks[b] = TNI_KS_FULL;
    for (unsigned slot = 0; slot < TNI_NUM_SLOTS; slot++) {
        tni_provenance why;
        if (TNI_UNLIKELY(tell))
            tni_tell_slot(op, slot);
        const tni_kernel *k = tni_table_resolve(newest, slot, &why);
        if (TNI_UNLIKELY(tell))
            tni_tell_path(k, why);
        atomic_store_explicit(&t->slots[slot], k, memory_order_relaxed);
        if (slot && tni_is_fallthrough(k))
            note_fallthrough(masks, tni_slot_key(slot));
    }
    bool differ = false;
    for (int b = 0; b < TNI_NUM_BACKENDS; b++) {
        atomic_store_explicit(&t->backend_masks[b], masks[b], memory_order_relaxed);
        differ |= masks[b] != masks[0];
    }
    atomic_store_explicit(&t->per_backend, differ, memory_order_relaxed);
    atomic_store_explicit(&t->mask, masks[0], memory_order_relaxed);
    fill_hot_sets(t);
}

void tni_table_compute(const tn_op *op, tni_table *t)
{
    compute(op, t, tni_observing && tni_debug_on(op->name));
}

void tni_table_compute_again(const tn_op *op, tni_table *t)
{
    compute(op, t, false);
}

tni_table *tni_table_alloc(void)
{
    return tni_calloc(sizeof(tni_table));
}

static void free_table(tni_retired *item)
{
    tni_free((char *)item - offsetof(tni_table, retired));
}

static void swap_in(tn_op *op, tni_table *fresh)
{
    tni_table *old = atomic_exchange_explicit(&op->table, fresh, memory_order_seq_cst);
    if (old)
        tni_retire(&old->retired, free_table);
}

/* No memory for a new table, and the change must happen: patch the one that callers read. Each word
 * changes atomically. A caller that read the mask before and the slot after may land on a
 * fallthrough kernel; tni_run_boxed then looks again. */
static void patch(tn_op *op)
{
    tni_table fresh;
    tni_table_compute(op, &fresh);
    tni_table *t = atomic_load_explicit(&op->table, memory_order_relaxed);
    for (unsigned slot = 0; slot < TNI_NUM_SLOTS; slot++)
        atomic_store_explicit(&t->slots[slot], fresh.slots[slot], memory_order_seq_cst);
    for (int i = 0; i < 8; i++)
        atomic_store_explicit(&t->hot[i].kernel, fresh.hot[i].kernel, memory_order_seq_cst);
    for (int b = 0; b < TNI_NUM_BACKENDS; b++)
        t->backend_masks[b] = fresh.backend_masks[b];
    t->per_backend = fresh.per_backend;
    atomic_store_explicit(&t->mask, fresh.mask, memory_order_seq_cst);
}

tn_status tni_table_publish(tn_op *op, bool must_succeed)
{
    tni_table *fresh = tni_table_alloc();
    if (!fresh) {
        TN_CHECK(must_succeed, TN_NOMEM, "cannot allocate the dispatch table of %s", op->name);
        patch(op);
        return TN_OK;
    }
    tni_table_compute(op, fresh);
    swap_in(op, fresh);
    return TN_OK;
}

tn_status tni_table_publish_all(bool must_succeed)
{
    size_t n = tni_registry_.n_ops;
    tni_table **fresh = tni_calloc(n * sizeof(tni_table *));
    size_t made = 0;
    for (; fresh && made < n; made++) {
        fresh[made] = tni_table_alloc();
        if (!fresh[made])
            break;
    }
    if (made < n && !must_succeed) {
        while (made > 0)
            tni_free(fresh[--made]);
        tni_free(fresh);
        TN_FAIL(TN_NOMEM, "cannot allocate the dispatch tables of %zu operators", n);
    }
    for (size_t i = 0; i < n; i++) {
        tn_op *op = tni_registry_.ops[i];
        if (i < made) {
            tni_table_compute(op, fresh[i]);
            swap_in(op, fresh[i]);
        } else {
            patch(op);
        }
    }
    tni_free(fresh);
    return TN_OK;
}
