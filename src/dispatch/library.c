/* SPDX-License-Identifier: MIT */
/* dispatch/library.c: registering from outside: libraries, definitions, kernels, fallbacks.
 *
 * Everything is validated before anything changes, and every registration can be undone in any
 * order. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "dispatch/box.h"
#include "dispatch/library.h"

static struct {
    tn_library
        *owners; /* open DEF libraries: who owns which namespace; guarded by the registry's lock */
} libraries;

/* ---- handles ---- */

static void registration_unref(tn_registration *r) /* locked */
{
    if (--r->refs == 0)
        tni_free(r);
}

tn_status tni_registration_new(tni_registration_kind kind, tn_registration **out)
{
    tn_registration *r = tni_calloc(sizeof *r);
    TN_CHECK(r, TN_NOMEM, "cannot allocate a registration");
    r->kind = kind;
    r->refs = 1;
    *out = r;
    return TN_OK;
}

/* Locked. The library holds a reference, and so does the caller who asked for the handle. */
static void adopt(tn_library *lib, tn_registration *r, tn_registration **out)
{
    r->library = lib;
    r->next = lib->registrations;
    lib->registrations = r;
    if (out) {
        r->refs++;
        *out = r;
    }
}

static void free_record(tni_retired *item)
{
    tni_record *r = (tni_record *)((char *)item - offsetof(tni_record, retired));
    if (r->destroy)
        r->destroy(r->kernel.ctx);
    tni_record_free_now(r);
}

/* ---- opening and closing ---- */

static bool valid_namespace(const char *ns)
{
    if (!ns || !(isalpha((unsigned char)ns[0]) || ns[0] == '_'))
        return false;
    for (const char *p = ns; *p; p++) {
        if (!isalnum((unsigned char)*p) && *p != '_')
            return false;
    }
    return true;
}

tn_status tn_library_open(tn_library_kind kind, const char *ns, tn_key key, const char *file,
                          int line, tn_library **out)
{
    TN_CHECK(out, TN_INVALID, "tn_library_open: 'out' must not be NULL");
    TN_CHECK(kind == TN_LIBRARY_DEF || kind == TN_LIBRARY_FRAGMENT || kind == TN_LIBRARY_IMPL,
             TN_INVALID, "tn_library_open: %d is not a kind of library", (int)kind);
    TN_CHECK(valid_namespace(ns), TN_INVALID, "tn_library_open: '%s' is not a namespace",
             ns ? ns : "(null)");
    bool wildcard = strcmp(ns, "_") == 0;
    TN_CHECK(kind == TN_LIBRARY_IMPL || !wildcard, TN_INVALID,
             "tn_library_open: a library that defines operators needs a namespace, not '_'");
    TN_CHECK(kind == TN_LIBRARY_IMPL || key == TN_KEY_NONE, TN_INVALID,
             "tn_library_open: a library that defines operators takes no dispatch key, but %s was "
             "given",
             tn_key_name(key));
    TN_CHECK(key == TN_KEY_NONE || tni_key_is_alias(key) ||
                 (tni_key_is_runtime(key) && key != TN_KEY_UNDEFINED),
             TN_INVALID, "tn_library_open: %d is not a dispatch key", (int)key);
    TN_TRY(tni_ready());
    size_t n_ns = strlen(ns) + 1, n_file = strlen(file ? file : "") + 1;
    tn_library *lib = tni_calloc(sizeof *lib + n_ns + n_file);
    TN_CHECK(lib, TN_NOMEM, "cannot allocate a library");
    lib->kind = kind;
    lib->key = key;
    lib->line = line;
    lib->ns = memcpy(lib + 1, ns, n_ns);
    lib->file = memcpy((char *)(lib + 1) + n_ns, file ? file : "", n_file);
    tni_lock();
    if (kind == TN_LIBRARY_DEF) {
        for (tn_library *o = libraries.owners; o; o = o->next_owner) {
            if (strcmp(o->ns, ns) != 0)
                continue;
            tn_status st = tni_fail(
                TN_INVALID, TNI_WHERE,
                "Only a single library can own the namespace %s; please put all of your "
                "definitions "
                "in one, or open a fragment. Previous registration of the namespace was at %s:%d; "
                "latest registration was at %s:%d",
                ns, o->file, o->line, lib->file, lib->line);
            tni_unlock();
            tni_free(lib);
            return st;
        }
        lib->next_owner = libraries.owners;
        libraries.owners = lib;
    }
    tni_unlock();
    *out = lib;
    return TN_OK;
}

void tn_library_close(tn_library *lib)
{
    if (!lib)
        return;
    for (;;) { /* newest first */
        tni_lock();
        tn_registration *r = lib->registrations;
        if (r)
            r->refs++;
        tni_unlock();
        if (!r)
            break;
        tn_registration_undo(r);
    }
    tni_lock();
    for (tn_library **link = &libraries.owners; *link; link = &(*link)->next_owner) {
        if (*link == lib) {
            *link = lib->next_owner;
            break;
        }
    }
    tni_unlock();
    tni_free(lib);
}

/* ---- names ---- */

/* "name", "name.overload" or "ns::name" as a full name of the library's namespace. */
static tn_status full_name(const tn_library *lib, const char *name, char **out)
{
    const char *colons = strstr(name, "::");
    size_t n_ns = strlen(lib->ns);
    bool wildcard = strcmp(lib->ns, "_") == 0;
    if (colons) {
        TN_CHECK(wildcard || ((size_t)(colons - name) == n_ns && memcmp(name, lib->ns, n_ns) == 0),
                 TN_INVALID,
                 "'%s' names another namespace than its library, which is for '%s' (opened at "
                 "%s:%d)",
                 name, lib->ns, lib->file, lib->line);
        *out = tni_strdup(name);
    } else {
        TN_CHECK(!wildcard, TN_INVALID, "'%s' needs a namespace: the library is for '_'", name);
        size_t n = n_ns + 2 + strlen(name) + 1;
        *out = tni_alloc(n);
        if (*out)
            snprintf(*out, n, "%s::%s", lib->ns, name);
    }
    TN_CHECK(*out, TN_NOMEM, "cannot allocate an operator's name");
    return TN_OK;
}

static tn_status check_kernel(const tn_kernel *kernel, const char *who)
{
    TN_CHECK(kernel && kernel->size >= sizeof(tn_kernel), TN_INVALID,
             "%s: the kernel must be made with TN_KERNEL_INIT or a maker of tenon/kernels.h", who);
    TN_CHECK(kernel->boxed, TN_INVALID, "%s: the kernel has no boxed entry", who);
    TN_CHECK(!kernel->typed || kernel->signature, TN_INVALID,
             "%s: a typed kernel needs a signature: make it with tenon/kernels.h", who);
    return TN_OK;
}

/* ---- definitions ---- */

typedef struct definition {
    char *name; /* full */
    tni_schema *schema;
    char *site;
    char *tags;
    tni_record *record; /* its kernel, NULL for none */
    tn_registration *registration;
    tn_alias_analysis alias;
} definition;

static void definition_clear(definition *d)
{
    tni_free(d->name);
    if (d->schema)
        tni_schema_free(d->schema);
    tni_free(d->site);
    tni_free(d->tags);
    if (d->record)
        tni_record_free_now(d->record);
    tni_free(d->registration);
}

static tn_status join_tags(const char *const *tags, int ntags, char **out)
{
    tni_str s = TNI_STR_INIT;
    for (int i = 0; i < ntags; i++)
        tni_str_addf(&s, "%s%s", i ? " " : "", tags[i] ? tags[i] : "");
    if (ntags == 0)
        return TN_OK;
    *out = tni_str_take(&s);
    TN_CHECK(*out, TN_NOMEM, "cannot allocate an operator's tags");
    return TN_OK;
}

/* Everything that can fail, before anything changes. */
static tn_status definition_prepare(definition *d, tn_library *lib, const char *text,
                                    const tn_kernel *kernel, tn_alias_analysis alias,
                                    const char *const *tags, int ntags)
{
    TN_AUTO(tni_schema) parsed = NULL;
    char *bare = NULL;
    TN_TRY(tni_schema_parse_or_name(text, &parsed, &bare));
    tn_status st = full_name(lib, bare, &d->name);
    tni_free(bare);
    TN_TRY(st);
    if (parsed) {
        /* Parse again with the namespace in front, so that the schema carries its full name. */
        const char *rest = strchr(text, '(');
        tni_str s = TNI_STR_INIT;
        tni_str_addf(&s, "%s%s", d->name, rest ? rest : "");
        st = s.failed ? tni_fail(TN_NOMEM, TNI_WHERE, "cannot allocate a schema")
                      : tni_schema_parse(tni_str_get(&s), &d->schema);
        tni_str_clear(&s);
        TN_TRY(st);
    } else {
        TN_CHECK(
            kernel && kernel->signature, TN_INVALID,
            "%s: a definition needs a schema, or a kernel whose signature is known, to infer it "
            "from. A boxed kernel has none: write the schema out, "
            "\"%s(Tensor x) -> Tensor\"",
            d->name, text);
        TN_TRY(tni_schema_infer(d->name, kernel->signature, &d->schema));
    }
    d->alias = alias != TN_ALIAS_DEFAULT ? alias
               : parsed                  ? TN_ALIAS_FROM_SCHEMA
                                         : TN_ALIAS_CONSERVATIVE;
    tni_str site = TNI_STR_INIT;
    tni_str_addf(&site, "registered at %s:%d", lib->file, lib->line);
    d->site = tni_str_take(&site);
    TN_CHECK(d->site, TN_NOMEM, "cannot allocate a definition");
    TN_TRY(join_tags(tags, ntags, &d->tags));
    TN_TRY(tni_registration_new(TNI_REGISTERED_DEF, &d->registration));
    if (kernel) {
        TN_TRY(check_kernel(kernel, d->name));
        if (kernel->signature)
            TN_TRY(tni_signature_check(d->schema, kernel->signature));
        TN_TRY(tni_record_new(kernel, TN_KEY_COMPOSITE_IMPLICIT, &d->record));
    }
    return TN_OK;
}

/* Locked. *event gets the number of the definition. */
static tn_status definition_commit(definition *d, tn_library *lib, tn_op **out_op, uint64_t *event,
                                   tn_registration **out)
{
    tn_op *op;
    TN_TRY(tni_op_intern(d->name, &op));
    TN_CHECK(!op->defined, TN_INVALID,
             "Tried to register an operator (%s) with the same name and overload name multiple "
             "times. Each overload's schema should only be registered with a single call to def(). "
             "Duplicate registration: %s. Original registration: %s%s",
             d->name, d->site, op->builtin ? op->builtin->file : op->def_site,
             op->builtin ? " (built in)" : "");
    for (const tni_record *r = op->records; r; r = r->next) {
        if (r->signature)
            TN_TRY(tni_signature_check(d->schema, r->signature));
    }
    if (d->record) {
        tni_records_insert(&op->records, d->record);
        tn_status st = tni_table_publish(op, false);
        if (st != TN_OK) {
            tni_records_remove(&op->records, d->record);
            return st;
        }
        d->registration->record = TN_MOVE(d->record);
    }
    atomic_store_explicit(&op->schema, TN_MOVE(d->schema), memory_order_release);
    op->defined = true;
    op->alias = d->alias;
    op->def_site = TN_MOVE(d->site);
    op->tags = TN_MOVE(d->tags);
    d->registration->op = op;
    adopt(lib, TN_MOVE(d->registration), out);
    *event = tni_next_event();
    *out_op = op;
    return TN_OK;
}

tn_status tn_library_def_ex(tn_library *lib, const char *schema, const tn_kernel *kernel,
                            tn_alias_analysis alias, const char *const *tags, int ntags,
                            tn_registration **out)
{
    TN_CHECK(lib && schema, TN_INVALID, "tn_library_def: '%s' must not be NULL",
             lib ? "schema" : "lib");
    TN_CHECK(lib->kind != TN_LIBRARY_IMPL, TN_INVALID,
             "tn_library_def: the library of '%s' (opened at %s:%d) only implements; open it with "
             "TN_LIBRARY_DEF or TN_LIBRARY_FRAGMENT to define '%s'",
             lib->ns, lib->file, lib->line, schema);
    TN_CHECK(ntags >= 0 && (tags || ntags == 0), TN_INVALID,
             "tn_library_def: 'tags' must be %d texts, not NULL", ntags);
    TN_TRY(tni_ready());
    definition d = {0};
    tn_op *op = NULL;
    uint64_t event = 0;
    tn_status st = definition_prepare(&d, lib, schema, kernel, alias, tags, ntags);
    if (st == TN_OK) {
        tni_lock();
        st = definition_commit(&d, lib, &op, &event, out);
        tni_unlock();
    }
    definition_clear(&d);
    if (st == TN_OK)
        tni_tell_listeners(op, true, event);
    return st;
}

tn_status tn_library_def(tn_library *lib, const char *schema, const tn_kernel *kernel,
                         tn_registration **out)
{
    return tn_library_def_ex(lib, schema, kernel, TN_ALIAS_DEFAULT, NULL, 0, out);
}

/* ---- kernels ---- */

static tn_status choose_key(const tn_library *lib, const char *name, tn_key key, tn_key *out)
{
    TN_CHECK(key == TN_KEY_NONE || lib->key == TN_KEY_NONE || key == lib->key, TN_INVALID,
             "%s: the kernel is for %s, but its library (opened at %s:%d) is for %s", name,
             tn_key_name(key), lib->file, lib->line, tn_key_name(lib->key));
    if (key == TN_KEY_NONE)
        key = lib->key != TN_KEY_NONE ? lib->key : TN_KEY_COMPOSITE_IMPLICIT;
    TN_CHECK(tni_key_is_alias(key) || (tni_key_is_runtime(key) && key != TN_KEY_UNDEFINED),
             TN_INVALID,
             "%s: a kernel cannot be registered to %s: it is neither a runtime key nor "
             "an alias key",
             name, tn_key_name(key));
    *out = key;
    return TN_OK;
}

/* Signatures are not enough: neg and neg_ both read (Tensor) -> Tensor, and differ in C. */
static tn_status check_typed_entry(const tn_op *op, const tni_record *record)
{
    TN_CHECK(!op->builtin || !record->typed ||
                 record->kernel.boxed == tni_op_unbox[op->builtin - tni_op_defs],
             TN_INVALID,
             "%s: the typed kernel%s%s, registered at %s:%d, was made for another operator, whose "
             "functions may take other arguments; make it with tn_kernel_%s",
             op->name, record->name[0] ? " " : "", record->name, record->file, record->line,
             op->builtin->c_name + 3);
    return TN_OK;
}

_Atomic uint32_t tni_n_foreign_kernels;

/* Locked; before the kernel can run, and when no new call can reach it. NULL: a fallback. The key
 * Python is seen in the tensors' keys and the thread's. */
static void count_foreign(const tn_op *op, const tni_record *record, int by)
{
    if ((!op || op->builtin) && record->key != TN_KEY_PYTHON &&
        !tni_is_fallthrough(&record->kernel))
        atomic_fetch_add_explicit(&tni_n_foreign_kernels, (uint32_t)by, memory_order_relaxed);
}

/* Locked. */
static tn_status impl_commit(const char *name, tni_record *record, tn_registration *r)
{
    tn_op *op;
    TN_TRY(tni_op_intern(name, &op));
    TN_TRY(check_typed_entry(op, record));
    if (record->signature) {
        const tni_schema *schema = op->defined ? tni_op_get_schema(op) : NULL;
        if (op->defined && !schema)
            return tn_last_status();
        if (schema)
            TN_TRY(tni_signature_check(schema, record->signature));
        for (const tni_record *o = op->records; o; o = o->next) {
            TN_CHECK(schema || !o->signature || strcmp(o->signature, record->signature) == 0,
                     TN_INVALID,
                     "Mismatch in kernel signatures of %s: %s, registered at %s:%d, has %s; %s, "
                     "registered at %s:%d, has %s",
                     name, o->name, o->file, o->line, o->signature, record->name, record->file,
                     record->line, record->signature);
        }
    }
    count_foreign(op, record, 1);
    tni_records_insert(&op->records, record);
    tn_status st = tni_table_publish(op, false);
    if (st != TN_OK) {
        tni_records_remove(&op->records, record);
        count_foreign(op, record, -1);
        return st;
    }
    r->op = op;
    r->record = record;
    return TN_OK;
}

/* Locked. Fallbacks are for runtime keys; an alias stands for each of its keys. */
static tn_status fallback_commit(tni_record *record, tn_registration *r)
{
    unsigned slot = tni_key_slot(record->key);
    tni_record *old = tni_registry_.fallbacks[slot];
    /* A device claims this key from the library's own fallback. */
    bool may_replace = record->key == TN_KEY_AUTOGRAD_PRIVATE1;
    TN_CHECK(!old || may_replace, TN_INVALID,
             "Tried to register multiple backend fallbacks for the same dispatch key %s; previous "
             "registration at %s:%d, new registration at %s:%d",
             tn_key_name(record->key), old->file, old->line, record->file, record->line);
    count_foreign(NULL, record, 1);
    record->next = old;
    tni_registry_.fallbacks[slot] = record;
    tn_status st = tni_table_publish_all(false);
    if (st != TN_OK) {
        tni_registry_.fallbacks[slot] = old;
        count_foreign(NULL, record, -1);
        return st;
    }
    r->record = record;
    return TN_OK;
}

/* Put @p kernel where it belongs: to the operator @p name, or, NULL, as the fallback of its key. */
static tn_status register_kernel(tn_library *lib, const char *name, tn_key key,
                                 const tn_kernel *kernel, tn_registration **out)
{
    tni_record *record = NULL;
    tn_registration *r = NULL;
    TN_TRY(tni_record_new(kernel, key, &record));
    tn_status st = tni_registration_new(name ? TNI_REGISTERED_IMPL : TNI_REGISTERED_FALLBACK, &r);
    if (st == TN_OK) {
        tni_lock();
        st = name ? impl_commit(name, record, r) : fallback_commit(record, r);
        if (st == TN_OK)
            adopt(lib, r, out);
        tni_unlock();
    }
    if (st != TN_OK) {
        tni_record_free_now(record);
        tni_free(r);
    }
    return st;
}

tn_status tn_library_impl(tn_library *lib, const char *name, tn_key key, const tn_kernel *kernel,
                          tn_registration **out)
{
    TN_CHECK(lib && name, TN_INVALID, "tn_library_impl: '%s' must not be NULL",
             lib ? "name" : "lib");
    TN_TRY(check_kernel(kernel, name));
    TN_TRY(choose_key(lib, name, key, &key));
    TN_TRY(tni_ready());
    TN_AUTO(tni_schema) schema = NULL;
    char *bare = NULL, *full = NULL;
    TN_TRY(tni_schema_parse_or_name(name, &schema, &bare));
    tn_status st =
        schema ? tni_fail(TN_INVALID, TNI_WHERE,
                          "tn_library_impl: '%s' is a schema; give the operator's name alone", name)
               : full_name(lib, bare, &full);
    tni_free(bare);
    if (st == TN_OK)
        st = register_kernel(lib, full, key, kernel, out);
    tni_free(full);
    return st;
}

tn_status tn_library_fallback(tn_library *lib, tn_key key, const tn_kernel *kernel,
                              tn_registration **out)
{
    TN_CHECK(lib, TN_INVALID, "tn_library_fallback: 'lib' must not be NULL");
    TN_TRY(check_kernel(kernel, "tn_library_fallback"));
    TN_CHECK(
        lib->kind == TN_LIBRARY_IMPL && strcmp(lib->ns, "_") == 0, TN_INVALID,
        "tn_library_fallback: a fallback is for every namespace, so its library must be opened "
        "with TN_LIBRARY_IMPL and '_', not '%s'",
        lib->ns);
    TN_CHECK(key != TN_KEY_NONE || lib->key != TN_KEY_NONE, TN_INVALID,
             "tn_library_fallback: a fallback needs a dispatch key");
    TN_TRY(choose_key(lib, "tn_library_fallback", key, &key));
    TN_CHECK(tni_key_is_runtime(key), TN_INVALID,
             "tn_library_fallback: %s is an alias key; register each runtime key by itself",
             tn_key_name(key));
    TN_TRY(tni_ready());
    return register_kernel(lib, NULL, key, kernel, out);
}

/* ---- undoing ---- */

static void free_schema(tni_retired *item)
{
    tn_registration *r = (tn_registration *)((char *)item - offsetof(tn_registration, retired));
    tni_schema_free(r->old_schema);
    tni_lock();
    registration_unref(r);
    tni_unlock();
}

static void undo_kernel(tn_registration *r)
{
    if (!r->record)
        return;
    tni_records_remove(&r->op->records, r->record);
    (void)!tni_table_publish(r->op, true);
    count_foreign(r->op, r->record, -1);
    tni_retire(&r->record->retired, free_record);
}

/* Locked. Nothing here must allocate: undoing cannot fail. */
static void undo(tn_registration *r)
{
    tn_op *op = r->op;
    switch (r->kind) {
    case TNI_REGISTERED_DEF:
        r->old_schema = atomic_exchange(&op->schema, NULL);
        op->defined = op->leaving = false;
        op->alias = TN_ALIAS_DEFAULT;
        tni_free(op->def_site);
        tni_free(op->tags);
        op->def_site = op->tags = NULL;
        r->refs++; /* the registration carries the old schema until it can go */
        tni_retire(&r->retired, free_schema);
        undo_kernel(r);
        break;
    case TNI_REGISTERED_IMPL:
        undo_kernel(r);
        break;
    case TNI_REGISTERED_FALLBACK:
        tni_records_remove(&tni_registry_.fallbacks[tni_key_slot(r->record->key)], r->record);
        (void)!tni_table_publish_all(true);
        count_foreign(NULL, r->record, -1);
        tni_retire(&r->record->retired, free_record);
        break;
    case TNI_REGISTERED_LISTENER:
        break;
    }
}

/* Locked. The first who comes undoes it. From here on its library knows nothing of it: closing the
 * library, also from a listener that hears of this very undoing, neither waits nor does it again.
 */
static bool claim_undoing(tn_registration *r)
{
    if (r->undone)
        return false;
    r->undone = true;
    for (tn_registration **link = &r->library->registrations; *link; link = &(*link)->next) {
        if (*link == r) {
            *link = r->next;
            break;
        }
    }
    return true;
}

void tn_registration_undo(tn_registration *r)
{
    if (!r)
        return;
    if (r->kind == TNI_REGISTERED_LISTENER) {
        tni_remove_listener(r);
        return;
    }
    tni_lock();
    bool mine = claim_undoing(r);
    if (mine && r->kind == TNI_REGISTERED_DEF) {
        tn_op *op = r->op;
        op->leaving = true;
        uint64_t event = tni_next_event();
        tni_unlock();
        tni_tell_listeners(op, false, event); /* before the schema goes */
        tni_lock();
    }
    if (mine) {
        undo(r);
        registration_unref(r); /* the library's reference */
    }
    registration_unref(r); /* the caller's */
    tni_unlock();
}
