/* SPDX-License-Identifier: MIT */
/* dispatch/registry.c: operators by name, and the lists of kernels registered for them. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "dispatch/builtin.h"
#include "dispatch/call.h"
#include "gen/op_ids.h"

extern const tni_op_def tni_op_defs[];
extern const tn_boxed_fn tni_op_unbox[];

tni_registry tni_registry_ = {.lock = PTHREAD_MUTEX_INITIALIZER};
tn_op tni_builtin_ops[TNI_NUM_BUILTIN_OPS];

/* ---- operators ---- */

static tn_status add_op(tn_op *op)
{
    tni_registry *r = &tni_registry_;
    if (r->n_ops == r->ops_capacity) {
        size_t capacity = r->ops_capacity ? 2 * r->ops_capacity : 512;
        tn_op **ops = tni_realloc(r->ops, r->n_ops * sizeof *ops, capacity * sizeof *ops);
        TN_CHECK(ops, TN_NOMEM, "cannot allocate the list of operators");
        r->ops = ops;
        r->ops_capacity = capacity;
    }
    TN_TRY(tni_map_put(&r->by_name, op->name, op));
    r->ops[r->n_ops++] = op;
    return TN_OK;
}

/* Operators are never freed: whoever holds a handle may keep it. */
tn_status tni_op_intern(const char *name, tn_op **out)
{
    tn_op *op = tni_map_get(&tni_registry_.by_name, name);
    if (op) {
        *out = op;
        return TN_OK;
    }
    size_t n = strlen(name) + 1;
    op = tni_calloc(sizeof *op + n);
    TN_CHECK(op, TN_NOMEM, "cannot allocate operator %s", name);
    op->name = memcpy(op + 1, name, n);
    tni_table *table = tni_table_alloc();
    tn_status st =
        table ? TN_OK
              : tni_fail(TN_NOMEM, TNI_WHERE, "cannot allocate the dispatch table of %s", name);
    if (st == TN_OK) {
        tni_table_compute(op, table);
        atomic_store_explicit(&op->table, table, memory_order_release);
        st = add_op(op);
    }
    if (st != TN_OK) {
        tni_free(table);
        tni_free(op);
        return st;
    }
    tni_flight_name_add(TNI_NAME_OP, op, op->name, NULL, 0, true);
    *out = op;
    return TN_OK;
}

const tni_schema *tni_op_get_schema(tn_op *op)
{
    tni_schema *schema = atomic_load_explicit(&op->schema, memory_order_acquire);
    if (TNI_LIKELY(schema != NULL))
        return schema;
    if (!op->builtin) {
        tni_fail(TN_INVALID, TNI_WHERE,
                 "Could not find schema for %s. It is not defined, or not any more: define it with "
                 "tn_library_def",
                 op->name);
        return NULL;
    }
    tni_schema *parsed;
    if (tni_schema_parse(op->builtin->schema, &parsed) != TN_OK)
        return NULL;
    if (atomic_compare_exchange_strong(&op->schema, &schema, parsed))
        return parsed;
    tni_schema_free(parsed); /* another thread was quicker */
    return schema;
}

/* ---- records ---- */

void tni_records_insert(tni_record **list, tni_record *record)
{
    tni_record **link = list;
    while (*link && (*link)->key < record->key)
        link = &(*link)->next;
    record->next = *link;
    *link = record;
}

void tni_records_remove(tni_record **list, tni_record *record)
{
    for (tni_record **link = list; *link; link = &(*link)->next) {
        if (*link == record) {
            *link = record->next;
            return;
        }
    }
}

tni_record *tni_records_newest(tni_record *list, tn_key key)
{
    while (list && list->key < key)
        list = list->next;
    return list && list->key == key ? list : NULL;
}

tn_status tni_record_new(const tn_kernel *kernel, tn_key key, tni_record **out)
{
    tni_record *r = tni_calloc(sizeof *r);
    TN_CHECK(r, TN_NOMEM, "cannot allocate a kernel record");
    const char *texts[3] = {kernel->name ? kernel->name : "", kernel->file ? kernel->file : "",
                            kernel->signature};
    size_t n[3], total = 0;
    for (int i = 0; i < 3; i++) {
        n[i] = texts[i] ? strlen(texts[i]) + 1 : 0;
        total += n[i];
    }
    char *text = tni_alloc(total); /* the registering library may be unloaded before we print */
    if (!text) {
        tni_free(r);
        TN_FAIL(TN_NOMEM, "cannot allocate a kernel record");
    }
    r->text = text;
    const char **fields[3] = {&r->name, &r->file, &r->signature};
    for (int i = 0; i < 3; i++) {
        if (!n[i])
            continue;
        *fields[i] = memcpy(text, texts[i], n[i]);
        text += n[i];
    }
    bool is_guarded = key == TN_KEY_COMPOSITE_IMPLICIT; /* see Note [Composites from outside] */
    r->kernel = (tni_kernel){kernel->boxed, is_guarded ? NULL : kernel->typed, kernel->ctx, r};
    r->typed = kernel->typed;
    r->key = key;
    r->line = kernel->line;
    r->destroy = kernel->destroy;
    r->told = tni_flight_name_add(TNI_NAME_KERNEL, &r->kernel, r->name, r->file, r->line, false);
    *out = r;
    return TN_OK;
}

void tni_record_free_now(tni_record *record)
{
    tni_flight_name_drop(record->told);
    tni_free(record->text);
    tni_free(record);
}

/* ---- the built-in ones ---- */

/* A boot that failed for lack of memory is tried again: start from nothing. */
static void forget_builtin(void)
{
    tni_registry *r = &tni_registry_;
    for (size_t i = 0; i < TNI_NUM_BUILTIN_OPS; i++)
        tni_free(atomic_load(&tni_builtin_ops[i].table));
    memset(tni_builtin_ops, 0, sizeof tni_builtin_ops);
    memset(r->fallbacks, 0, sizeof r->fallbacks);
    tni_map_clear(&r->by_name);
    tni_free(r->ops);
    r->ops = NULL;
    r->n_ops = r->ops_capacity = 0;
}

/* For whoever reads the frames from outside. */
static void tell_names(const tni_record *records, size_t n)
{
    tni_flight_names_lock();
    for (size_t i = 0; i < TNI_NUM_BUILTIN_OPS; i++)
        tni_flight_name_add_locked(TNI_NAME_OP, &tni_builtin_ops[i], tni_builtin_ops[i].name, NULL,
                                   0, true);
    for (size_t i = 0; i < n; i++)
        tni_flight_name_add_locked(TNI_NAME_KERNEL, &records[i].kernel, records[i].name,
                                   records[i].file, records[i].line, true);
    tni_flight_names_unlock();
}

static tn_status make_builtin_tables(void)
{
    for (size_t i = 0; i < TNI_NUM_BUILTIN_OPS; i++) {
        tn_op *op = &tni_builtin_ops[i];
        tni_table *table = tni_table_alloc();
        TN_CHECK(table, TN_NOMEM, "cannot allocate the dispatch table of %s", op->name);
        tni_table_compute(op, table);
        atomic_store_explicit(&op->table, table, memory_order_release);
        TN_TRY(add_op(op));
    }
    return TN_OK;
}

tn_status tni_register_builtin(const tni_builtins *all)
{
    const size_t n_kernels = all->n_kernels, n_fallbacks = all->n_fallbacks;
    tni_record *records = tni_calloc((n_kernels + n_fallbacks) * sizeof *records);
    TN_CHECK(records, TN_NOMEM, "cannot allocate the records of the built-in kernels");
    tni_lock();
    if (tni_registry_.n_ops > 0) { /* a fork() between registering and saying so: all is there */
        tni_unlock();
        tni_free(records);
        return TN_OK;
    }
    for (size_t i = 0; i < TNI_NUM_BUILTIN_OPS; i++) {
        tn_op *op = &tni_builtin_ops[i];
        op->name = tni_op_defs[i].name;
        op->builtin = &tni_op_defs[i];
        op->defined = true;
        op->alias = TN_ALIAS_FROM_SCHEMA;
    }
    tni_registry_.composite_guard = all->composite_guard;
    for (size_t i = 0; i < n_fallbacks; i++) {
        const tni_builtin_fallback *f = &all->fallbacks[i];
        tni_record *r = &records[n_kernels + i];
        r->kernel = (tni_kernel){f->boxed, NULL, NULL, r};
        r->gate = f->gate;
        r->key = f->key;
        r->name = f->name;
        r->file = f->file;
        r->line = f->line;
        tni_registry_.fallbacks[tni_key_slot(f->key)] = r;
    }
    for (size_t i = 0; i < n_kernels; i++) {
        const tni_builtin_kernel *k = &all->kernels[i];
        tni_record *r = &records[i];
        tn_boxed_fn boxed = k->boxed ? k->boxed : tni_op_unbox[k->op];
        r->kernel = (tni_kernel){boxed, k->typed, NULL, r};
        r->typed = k->typed;
        r->key = (tn_key)k->key;
        r->name = k->name;
        r->file = k->file;
        r->line = k->line;
        tni_records_insert(&tni_builtin_ops[k->op].records, r);
    }
    tn_status st = make_builtin_tables();
    if (st == TN_OK)
        tell_names(records, n_kernels + n_fallbacks);
    else
        forget_builtin();
    tni_unlock();
    if (st != TN_OK)
        tni_free(records);
    return st;
}
