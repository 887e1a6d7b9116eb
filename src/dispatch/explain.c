/* SPDX-License-Identifier: MIT */
/* dispatch/explain.c: what is registered, what the table says, and why, in the
 * reference's formats. */
#include "base/alloc.h"
#include "dispatch/explain.h"

static void add_site(tni_str *s, const tni_kernel *k)
{
    const tni_record *r = k->record;
    if (r && r->file[0]) {
        tni_str_addf(s, "registered at %s:%d", r->file, r->line);
        if (r->text && r->name[0] && !tni_is_fallthrough(k)) /* a user's: built-in ones are found */
            tni_str_addf(s, " (%s)", r->name);
    } else if (k->boxed == tni_ambiguous_fn)
        tni_str_add(s, "ambiguous_autogradother_kernel");
    else
        tni_str_add(s, "registered at an unknown place");
}

void tni_describe_table(const tn_op *op, tni_str *s)
{
    const tni_record *newest[TN_KEY_LIMIT];
    tni_records_by_key(op, newest);
    for (unsigned slot = 0; slot < TNI_NUM_SLOTS; slot++) {
        tni_provenance why;
        const tni_kernel *k = tni_table_resolve(newest, slot, &why);
        if (!k->boxed)
            continue;
        tni_str_addf(s, "%s: ", tn_key_name(tni_slot_key(slot)));
        if (tni_is_fallthrough(k))
            tni_str_add(s, "fallthrough ");
        add_site(s, k);
        tni_str_addf(s, " [%s]\n", tni_provenance_name(why));
    }
}

void tni_describe_backends(const tn_op *op, tni_str *s)
{
    const tni_record *newest[TN_KEY_LIMIT];
    tni_records_by_key(op, newest);
    bool first = true;
    for (unsigned slot = 0; slot < TNI_NUM_SLOTS; slot++) {
        tni_provenance why;
        const tni_kernel *k = tni_table_resolve(newest, slot, &why);
        /* A slot that only falls through, raises or is a fallback says nothing about the operator.
         */
        if (!k->boxed || tni_is_fallthrough(k) || why == TNI_FROM_AMBIGUOUS ||
            why == TNI_FROM_FALLBACK)
            continue;
        tni_str_addf(s, "%s%s", first ? "" : ", ", tn_key_name(tni_slot_key(slot)));
        first = false;
    }
}

static tn_status take(tni_str *s, char **out)
{
    if (!s->text)
        tni_str_add(s, "");
    char *text = tni_str_take(s);
    TN_CHECK(text, TN_NOMEM, "cannot allocate the description of an operator");
    *out = text;
    return TN_OK;
}

tn_status tn_op_dump_table(const tn_op *op, char **out)
{
    TN_CHECK(op && out, TN_INVALID, "tn_op_dump_table: '%s' must not be NULL", op ? "out" : "op");
    TN_TRY(tni_ready());
    tni_str s = TNI_STR_INIT;
    tni_lock();
    tni_describe_table(op, &s);
    tni_unlock();
    return take(&s, out);
}

static const char *alias_name(tn_alias_analysis alias)
{
    switch (alias) {
    case TN_ALIAS_FROM_SCHEMA:
        return "FROM_SCHEMA";
    case TN_ALIAS_PURE_FUNCTION:
        return "PURE_FUNCTION";
    case TN_ALIAS_INTERNAL_SPECIAL_CASE:
        return "INTERNAL_SPECIAL_CASE";
    default:
        return "CONSERVATIVE";
    }
}

static void describe_record(const tni_record *r, bool active, tni_str *s)
{
    tni_str_add(s, tn_key_name(r->key));
    if (tni_key_is_alias(r->key))
        tni_str_add(s, "[alias]");
    if (!active)
        tni_str_add(s, " (inactive)");
    tni_str_add(s, ": ");
    add_site(s, &r->kernel);
    tni_str_addf(s, " :: %s [ %s%s%s]\n", r->signature ? r->signature : "(none)",
                 tni_is_fallthrough(&r->kernel) ? "fallthrough " : "",
                 r->kernel.boxed ? "boxed " : "", r->typed ? "unboxed " : "");
}

tn_status tn_op_dump_state(const tn_op *op, char **out)
{
    TN_CHECK(op && out, TN_INVALID, "tn_op_dump_state: '%s' must not be NULL", op ? "out" : "op");
    TN_TRY(tni_ready());
    tni_str s = TNI_STR_INIT;
    char *schema = NULL;
    if (tn_op_has_schema(op)) {
        tn_status st = tn_op_schema(op, &schema);
        if (st != TN_OK && tn_op_has_schema(op)) /* it may just have been undone */
            return st;
    }
    tni_lock();
    tni_str_addf(&s, "name: %s\n", op->name);
    if (schema) {
        tni_str_addf(&s, "schema: %s\n", schema);
        if (op->builtin)
            tni_str_addf(&s, "debug: registered at %s:%d\n", op->builtin->file, op->builtin->line);
        else
            tni_str_addf(&s, "debug: %s\n", op->def_site ? op->def_site : "");
        tni_str_addf(&s, "alias analysis kind: %s%s\n", alias_name(op->alias),
                     op->alias == TN_ALIAS_DEFAULT ? " (default)" : "");
    } else {
        tni_str_add(&s, "schema: (none)\n");
    }
    tn_key last = TN_KEY_NONE;
    for (const tni_record *r = op->records; r; r = r->next) {
        describe_record(r, r->key != last, &s);
        last = r->key;
    }
    tni_unlock();
    tn_string_free(schema);
    return take(&s, out);
}

tn_status tn_op_slot(const tn_op *op, unsigned slot, tn_slot_info *out)
{
    TN_CHECK(op && out, TN_INVALID, "tn_op_slot: '%s' must not be NULL", op ? "out" : "op");
    TN_CHECK(slot < TNI_NUM_SLOTS, TN_INDEX, "tn_op_slot: slot must be below %d, not %u",
             TNI_NUM_SLOTS, slot);
    TN_TRY(tni_ready());
    const tni_record *newest[TN_KEY_LIMIT];
    tni_provenance why;
    tni_lock();
    tni_records_by_key(op, newest);
    const tni_kernel *k = tni_table_resolve(newest, slot, &why);
    const tni_record *r = k->record;
    *out = (tn_slot_info){.size = sizeof *out,
                          .key = tni_slot_key(slot),
                          .valid = k->boxed != NULL,
                          .fallthrough = tni_is_fallthrough(k),
                          .has_typed = k->typed != NULL,
                          .has_boxed = k->boxed != NULL,
                          .provenance = tni_provenance_name(why),
                          .name = r ? r->name : "",
                          .file = r ? r->file : "",
                          .line = r ? r->line : 0};
    tni_unlock();
    return TN_OK;
}

tn_keyset tn_op_mask(const tn_op *op, tn_keyset ks)
{
    if (!op || tni_ready() != TN_OK)
        return 0;
    bool entered = tni_epoch_enter();
    tn_keyset mask = tni_table_mask(tni_op_table(op), ks);
    tni_epoch_leave(entered);
    return mask;
}

size_t tn_op_table_bytes(const tn_op *op)
{
    return op ? sizeof(tni_table) : 0;
}

/* The first slot at which two tables differ; TNI_NUM_SLOTS: none. Other differences count for the
 * first slot. */
static unsigned difference(tni_table *a, tni_table *b)
{
    for (unsigned slot = 0; slot < TNI_NUM_SLOTS; slot++) {
        if (a->slots[slot] != b->slots[slot])
            return slot;
    }
    bool same = a->mask == b->mask && a->per_backend == b->per_backend;
    for (int i = 0; i < TNI_NUM_BACKENDS; i++)
        same = same && a->backend_masks[i] == b->backend_masks[i];
    for (int i = 0; i < 8; i++)
        same = same && a->hot[i].keys == b->hot[i].keys && a->hot[i].slot == b->hot[i].slot &&
               a->hot[i].kernel == b->hot[i].kernel;
    return same ? TNI_NUM_SLOTS : 0;
}

tn_status tn_check_invariants(void)
{
    TN_TRY(tni_ready());
    tni_table *fresh = tni_table_alloc();
    TN_CHECK(fresh, TN_NOMEM, "cannot allocate a dispatch table to compare with");
    const tn_op *bad = NULL;
    unsigned slot = 0;
    tni_lock();
    for (size_t i = 0; !bad && i < tni_registry_.n_ops; i++) {
        tn_op *op = tni_registry_.ops[i];
        tni_table_compute_again(op, fresh);
        slot = difference(fresh, atomic_load(&op->table));
        bool filed_wrong = tni_records_newest(op->records, TN_KEY_UNDEFINED) != NULL;
        bad = slot < TNI_NUM_SLOTS || filed_wrong ? op : NULL;
    }
    tni_unlock();
    tni_free(fresh);
    TN_CHECK(!bad, TN_INTERNAL,
             "the dispatch table of %s differs from its registrations at slot %u (%s); please "
             "report this",
             bad->name, slot, tn_key_name(tni_slot_key(slot)));
    return TN_OK;
}
