/* SPDX-License-Identifier: MIT */
/* cli/cmd_ops.c: `tenon ops`: lists operators, or shows one: schema, kernels, table and why. */
#include <fnmatch.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "json.h"
#include "keytext.h"
#include "registrations.h"
#include "tenon/dispatch.h"
#include "term.h"

static int run_ops(const command *self, int argc, char **argv);

const command command_ops = {
    .name = "ops",
    .usage = "[PATTERN] [--json] [--all]",
    .summary = "list operators, or show one: its kernels, its table, and why",
    .help =
        "PATTERN is a part of a name, or a pattern with * and ?; all operators when it is left "
        "out.\n"
        "When PATTERN is the full name of an operator (aten::mm, aten::add.Tensor) that operator "
        "is\n"
        "shown: its schema, its kernels with the file and line that registered them, the computed\n"
        "table with the reason for what each slot holds, and the keys that fall through.\n"
        "Neighbouring slots that hold the same are shown as one line.\n\n"
        "  --json    the same as JSON\n"
        "  --all     of one operator, every slot on its own line, empty ones too\n",
    .run = run_ops,
};

enum { SLOTS = 138 };

/* ---- the list ---- */

static bool matches(const char *name, const char *pattern)
{
    if (!pattern)
        return true;
    if (strpbrk(pattern, "*?["))
        return fnmatch(pattern, name, 0) == 0;
    return strstr(name, pattern) != NULL;
}

static tn_status list_json(tn_op *const *ops, size_t n, const char *pattern)
{
    json j = JSON_TO(stdout);
    json_array(&j);
    for (size_t i = 0; i < n; i++) {
        if (!matches(tn_op_name(ops[i]), pattern))
            continue;
        char *schema = NULL;
        if (tn_op_has_schema(ops[i])) {
            tn_status st = tn_op_schema(ops[i], &schema);
            if (st != TN_OK)
                return st;
        }
        json_one_line(&j);
        json_object(&j);
        json_key(&j, "name");
        json_string(&j, tn_op_name(ops[i]));
        json_key(&j, "schema");
        json_string(&j, schema);
        json_object_end(&j);
        tn_string_free(schema);
    }
    json_array_end(&j);
    json_finish(&j);
    return TN_OK;
}

static tn_status list_text(tn_op *const *ops, size_t n, const char *pattern)
{
    for (size_t i = 0; i < n; i++) {
        char *schema;
        if (!matches(tn_op_name(ops[i]), pattern))
            continue;
        if (!tn_op_has_schema(ops[i])) {
            printf("%s (kernels, but no schema)\n", tn_op_name(ops[i]));
            continue;
        }
        tn_status st = tn_op_schema(ops[i], &schema);
        if (st != TN_OK)
            return st;
        printf("%s\n", schema);
        tn_string_free(schema);
    }
    return TN_OK;
}

static int list(const command *self, const char *pattern, bool as_json)
{
    tn_op **ops;
    size_t n, found = 0;
    if (tn_op_list(&ops, &n) != TN_OK)
        return library_error(self);
    for (size_t i = 0; i < n; i++)
        found += matches(tn_op_name(ops[i]), pattern);
    tn_status st = as_json ? list_json(ops, n, pattern) : list_text(ops, n, pattern);
    tn_op_list_free(ops);
    if (st != TN_OK)
        return library_error(self);
    if (found == 0 && pattern) {
        tn_op *op;
        /* The library knows what is near. */
        if (tn_op_find(pattern, &op) != TN_OK && strstr(tn_last_error(), "Did you mean"))
            return library_error(self);
        fprintf(stderr, "tenon ops: no operator's name contains '%s'\n", pattern);
        return EXIT_FAILED;
    }
    return EXIT_OK;
}

/* ---- one operator, as text ---- */

static const char *entries(bool typed, bool boxed)
{
    return typed ? "typed and boxed" : boxed ? "boxed only" : "";
}

static void print_kernels(const registration_list *list)
{
    styles st = term_styles(stdout);
    printf("\n%sKernels%s, newest first for each key\n", st.bold, st.off);
    if (list->n == 0)
        printf("  none\n");
    for (size_t i = 0; i < list->n; i++) {
        const registration *r = &list->items[i];
        char key[96], where[1024];
        snprintf(key, sizeof key, "%s%s", r->key, r->alias ? " (alias)" : "");
        if (r->file[0])
            snprintf(where, sizeof where, "%s:%d", r->file, r->line);
        else
            snprintf(where, sizeof where, "an unknown place");
        printf("  %-36s %-28s %s%s\n", key, where,
               r->fallthrough ? "falls through" : entries(r->typed, r->boxed),
               r->active ? "" : ", inactive: there is a newer one");
    }
}

static bool same_slot(const tn_slot_info *a, const tn_slot_info *b)
{
    /* The slot of calls without tensors has reasons of its own. */
    if (a->key == TN_KEY_UNDEFINED)
        return false;
    return a->valid == b->valid && a->fallthrough == b->fallthrough && a->line == b->line &&
           a->has_typed == b->has_typed && strcmp(a->provenance, b->provenance) == 0 &&
           strcmp(a->name, b->name) == 0 && strcmp(a->file, b->file) == 0;
}

static void print_group(const tn_op *op, const tn_slot_info *slots, unsigned first, unsigned last)
{
    styles st = term_styles(stdout);
    const tn_slot_info *s = &slots[first];
    char numbers[16], keys[96], why[WHY_ROOM], site[1024] = "";
    if (first == last) {
        snprintf(numbers, sizeof numbers, "%u", first);
        snprintf(keys, sizeof keys, "%s", tn_key_name(s->key));
    } else {
        snprintf(numbers, sizeof numbers, "%u-%u", first, last);
        snprintf(keys, sizeof keys, "%s .. %s", tn_key_name(s->key), tn_key_name(slots[last].key));
    }
    printf("  %-8s %s%s%s\n", numbers, s->valid ? st.good : st.dim, keys, st.off);
    if (!s->valid) {
        if (first == last)
            printf("  %-8s   %s\n", "", slot_why(op, s, first != last, why, sizeof why));
        return;
    }
    if (s->file[0])
        snprintf(site, sizeof site, " (%s:%d)", s->file, s->line);
    printf("  %-8s   %s%s, %s\n", "", s->name[0] ? s->name : "unnamed", site,
           s->fallthrough ? "falls through" : entries(s->has_typed, s->has_boxed));
    printf("  %-8s   %s%s%s\n", "", st.dim, slot_why(op, s, first != last, why, sizeof why),
           st.off);
}

static tn_status read_slots(const tn_op *op, tn_slot_info *slots)
{
    for (unsigned i = 0; i < SLOTS; i++) {
        tn_status st = tn_op_slot(op, i, &slots[i]);
        if (st != TN_OK)
            return st;
    }
    return TN_OK;
}

static void print_table(const tn_op *op, const tn_slot_info *slots, bool all)
{
    styles st = term_styles(stdout);
    unsigned filled = 0;
    for (unsigned i = 0; i < SLOTS; i++)
        filled += slots[i].valid;
    printf("\n%sTable%s: %u of %d slots hold a kernel; %zu bytes\n", st.bold, st.off, filled, SLOTS,
           tn_op_table_bytes(op));
    for (unsigned first = 0; first < SLOTS;) {
        unsigned last = first;
        while (!all && last + 1 < SLOTS && same_slot(&slots[first], &slots[last + 1]))
            last++;
        if (all || slots[first].valid)
            print_group(op, slots, first, last);
        first = last + 1;
    }
    if (!all && filled < SLOTS)
        printf("  %s(slots without a kernel are left out; --all shows them)%s\n", st.dim, st.off);
}

/* The mask may differ from backend to backend. */
static void print_masks(const tn_op *op)
{
    styles st = term_styles(stdout);
    char text[KEYTEXT_ROOM];
    tn_keyset cpu = tn_op_mask(op, tn_keyset_of(TN_KEY_CPU));
    printf("\n%sMask%s: what falls through: %s\n", st.bold, st.off,
           keys_text(keys_not_in_mask(cpu), text, sizeof text));
    for (int key = TN_KEY_CUDA; key <= TN_KEY_META; key++) {
        tn_keyset mask = tn_op_mask(op, tn_keyset_of((tn_key)key));
        if (mask != cpu)
            printf("  for %s: %s\n", tn_key_name((tn_key)key),
                   keys_text(keys_not_in_mask(mask), text, sizeof text));
    }
}

static void print_doc(const char *doc)
{
    if (doc[0])
        putchar('\n');
    while (*doc) {
        size_t n = strcspn(doc, "\n");
        printf("  %.*s\n", (int)n, doc);
        doc += n + (doc[n] == '\n');
    }
}

static void show_text(const tn_op *op, const registration_list *list, const tn_slot_info *slots,
                      bool all)
{
    styles st = term_styles(stdout);
    printf("%s%s%s\n", st.bold, list->schema ? list->schema : tn_op_name(op), st.off);
    if (!list->schema)
        printf("  no schema is defined now: a call fails\n");
    if (list->defined_at)
        printf("  defined at %s, alias analysis %s\n", list->defined_at,
               list->alias_analysis ? list->alias_analysis : "unknown");
    print_doc(tn_op_doc(op));
    print_kernels(list);
    print_table(op, slots, all);
    print_masks(op);
}

/* ---- one operator, as JSON ---- */

static void kernels_json(json *j, const registration_list *list)
{
    json_array(j);
    for (size_t i = 0; i < list->n; i++) {
        const registration *r = &list->items[i];
        json_one_line(j);
        json_object(j);
        json_key(j, "key");
        json_string(j, r->key);
        json_key(j, "alias");
        json_bool(j, r->alias);
        json_key(j, "active");
        json_bool(j, r->active);
        json_key(j, "file");
        json_string(j, r->file);
        json_key(j, "line");
        json_int(j, r->line);
        json_key(j, "signature");
        json_string(j, r->signature);
        json_key(j, "fallthrough");
        json_bool(j, r->fallthrough);
        json_key(j, "typed");
        json_bool(j, r->typed);
        json_key(j, "boxed");
        json_bool(j, r->boxed);
        json_object_end(j);
    }
    json_array_end(j);
}

static void slot_json(json *j, const tn_op *op, unsigned slot, const tn_slot_info *s)
{
    char why[WHY_ROOM];
    json_one_line(j);
    json_object(j);
    json_key(j, "slot");
    json_int(j, slot);
    json_key(j, "key");
    json_string(j, tn_key_name(s->key));
    json_key(j, "valid");
    json_bool(j, s->valid);
    json_key(j, "fallthrough");
    json_bool(j, s->fallthrough);
    json_key(j, "typed");
    json_bool(j, s->has_typed);
    json_key(j, "boxed");
    json_bool(j, s->has_boxed);
    json_key(j, "name");
    json_string(j, s->name);
    json_key(j, "file");
    json_string(j, s->file);
    json_key(j, "line");
    json_int(j, s->line);
    json_key(j, "provenance");
    json_string(j, s->provenance);
    json_key(j, "why");
    json_string(j, slot_why(op, s, false, why, sizeof why));
    json_object_end(j);
}

static void show_json(const tn_op *op, const registration_list *list, const tn_slot_info *slots)
{
    json j = JSON_TO(stdout);
    json_object(&j);
    json_key(&j, "name");
    json_string(&j, tn_op_name(op));
    json_key(&j, "schema");
    json_string(&j, list->schema);
    json_key(&j, "doc");
    json_string(&j, tn_op_doc(op));
    json_key(&j, "defined_at");
    json_string(&j, list->defined_at);
    json_key(&j, "alias_analysis");
    json_string(&j, list->alias_analysis);
    json_key(&j, "kernels");
    kernels_json(&j, list);
    json_key(&j, "table_bytes");
    json_uint(&j, tn_op_table_bytes(op));
    json_key(&j, "table");
    json_array(&j);
    for (unsigned i = 0; i < SLOTS; i++)
        slot_json(&j, op, i, &slots[i]);
    json_array_end(&j);
    json_key(&j, "falls_through");
    json_object(&j);
    for (int key = TN_KEY_CPU; key <= TN_KEY_META; key++) {
        json_key(&j, tn_key_name((tn_key)key));
        keys_json(&j, keys_not_in_mask(tn_op_mask(op, tn_keyset_of((tn_key)key))));
    }
    json_object_end(&j);
    json_object_end(&j);
    json_finish(&j);
}

static int show(const command *self, const tn_op *op, bool as_json, bool all)
{
    tn_slot_info slots[SLOTS];
    registration_list registered;
    if (read_slots(op, slots) != TN_OK || registrations_read(op, &registered) != TN_OK)
        return library_error(self);
    if (as_json)
        show_json(op, &registered, slots);
    else
        show_text(op, &registered, slots, all);
    registrations_free(&registered);
    return EXIT_OK;
}

static int run_ops(const command *self, int argc, char **argv)
{
    bool as_json = false, all = false;
    const option options[] = {{"--json", &as_json, NULL, false}, {"--all", &all, NULL, false}};
    int n = take_options(self, argc, argv, options, 2);
    if (n < 0)
        return EXIT_USAGE;
    if (n > 1)
        return usage_error(self, "one pattern at a time, not %d", n);
    const char *pattern = n ? argv[0] : NULL;
    tn_op *op;
    if (pattern && strstr(pattern, "::") && tn_op_find(pattern, &op) == TN_OK)
        return show(self, op, as_json, all);
    if (all)
        return usage_error(self, "--all goes with the full name of an operator");
    return list(self, pattern, as_json);
}
