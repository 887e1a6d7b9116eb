/* SPDX-License-Identifier: MIT */
/* cli/registrations.c: reads the text of tn_op_dump_state, and puts the provenance of a slot into
 * words. A slot's provenance is the dispatcher's own word; what is added here (which alias, which
 * backend) follows from the registrations. */
#include "registrations.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- reading ---- */

static const char *after(const char *text, const char *prefix)
{
    size_t n = strlen(prefix);
    return strncmp(text, prefix, n) == 0 ? text + n : NULL;
}

/* Cut "FILE:LINE" or "FILE:LINE (NAME)" before the line. */
static void read_site(char *site, registration *r)
{
    char *file = strncmp(site, "registered at ", 14) == 0 ? site + 14 : NULL;
    r->file = "";
    for (char *colon = file; colon && (colon = strchr(colon, ':')) != NULL; colon++) {
        char *end;
        long line = strtol(colon + 1, &end, 10);
        if (end == colon + 1 || (*end && strncmp(end, " (", 2) != 0))
            continue;
        *colon = '\0';
        r->file = file;
        r->line = (int)line;
        return;
    }
}

static char *last(char *text, const char *word)
{
    char *found = NULL;
    for (char *p = text; p && (p = strstr(p, word)) != NULL; p++)
        found = p;
    return found;
}

/* KEY[alias] (inactive): registered at FILE:LINE (NAME) :: SIGNATURE [ fallthrough boxed unboxed ]
 */
static bool read_line(char *line, registration *r)
{
    char *site = strstr(line, ": "), *signature = last(site, " :: ");
    char *flags = signature ? strstr(signature, " [ ") : NULL;
    if (!flags)
        return false;
    *site = *signature = *flags = '\0';
    site += 2;
    signature += 4;
    flags += 3;
    *r = (registration){.key = line, .active = true};
    char *mark = strstr(line, " (inactive)");
    if (mark) {
        r->active = false;
        *mark = '\0';
    }
    mark = strstr(line, "[alias]");
    if (mark) {
        r->alias = true;
        *mark = '\0';
    }
    read_site(site, r);
    r->signature = strcmp(signature, "(none)") == 0 ? NULL : signature;
    r->fallthrough = strstr(flags, "fallthrough") != NULL;
    r->typed = strstr(flags, "unboxed") != NULL;
    r->boxed = strncmp(flags, "boxed", 5) == 0 || strstr(flags, " boxed") != NULL;
    return true;
}

static void read_head_or_kernel(char *line, registration_list *list)
{
    const char *rest;
    if (after(line, "name: "))
        return;
    if ((rest = after(line, "schema: ")) != NULL)
        list->schema = strcmp(rest, "(none)") == 0 ? NULL : rest;
    else if ((rest = after(line, "debug: registered at ")) != NULL)
        list->defined_at = rest;
    else if ((rest = after(line, "alias analysis kind: ")) != NULL)
        list->alias_analysis = rest;
    else if (read_line(line, &list->items[list->n]))
        list->n++;
}

tn_status registrations_read(const tn_op *op, registration_list *out)
{
    char *text;
    tn_status st = tn_op_dump_state(op, &text);
    if (st != TN_OK)
        return st;
    size_t lines = 1;
    for (const char *p = text; *p; p++)
        lines += *p == '\n';
    *out = (registration_list){.text = text, .items = calloc(lines, sizeof *out->items)};
    if (!out->items) {
        tn_string_free(text);
        return tn_fail(TN_NOMEM, "cannot allocate the list of kernels");
    }
    for (char *line = text; line && *line;) {
        char *end = strchr(line, '\n');
        if (end)
            *end = '\0';
        read_head_or_kernel(line, out);
        line = end ? end + 1 : NULL;
    }
    return TN_OK;
}

void registrations_free(registration_list *list)
{
    tn_string_free(list->text);
    free(list->items);
    *list = (registration_list){0};
}

/* ---- why ---- */

static bool has_registration(const tn_op *op, const char *key)
{
    registration_list list;
    if (registrations_read(op, &list) != TN_OK)
        return false;
    bool found = false;
    for (size_t i = 0; i < list.n; i++)
        found |= list.items[i].active && strcmp(list.items[i].key, key) == 0;
    registrations_free(&list);
    return found;
}

/* Which of the two explicit composites fills the slot: the one that is asked first, if it is there.
 */
static const char *explicit_alias(const tn_op *op, tn_key key)
{
    tn_key first = TN_KEY_COMPOSITE_EXPLICIT_NON_FUNCTIONAL;
    bool fills = key == TN_KEY_UNDEFINED || tn_keyset_has(tn_keyset_of_alias(first), key);
    return fills && has_registration(op, tn_key_name(first))
               ? tn_key_name(first)
               : tn_key_name(TN_KEY_COMPOSITE_EXPLICIT);
}

static void why_composite(const tn_op *op, tn_key key, bool many, char *buffer, size_t n)
{
    const char *alias = tn_key_name(TN_KEY_COMPOSITE_IMPLICIT);
    if (key == TN_KEY_UNDEFINED) {
        snprintf(buffer, n, "the %s kernel, which also serves calls without tensors", alias);
        return;
    }
    if (!many && key >= TN_KEY_AUTOGRAD_CPU && key <= TN_KEY_AUTOGRAD_META) {
        const char *backend = tn_key_name((tn_key)(TN_KEY_CPU + (key - TN_KEY_AUTOGRAD_CPU)));
        if (!has_registration(op, backend)) {
            snprintf(buffer, n,
                     "the %s kernel, because neither %s nor its backend %s has one of its own",
                     alias, tn_key_name(key), backend);
            return;
        }
    }
    snprintf(buffer, n, "the %s kernel, because %s has none of its own", alias,
             many ? "each of these keys" : tn_key_name(key));
}

char *slot_why(const tn_op *op, const tn_slot_info *info, bool many, char *buffer, size_t n)
{
    const char *why = info->provenance;
    const char *key = many ? "each of these keys" : tn_key_name(info->key);
    if (strcmp(why, "kernel") == 0)
        snprintf(buffer, n, "%s to %s",
                 info->fallthrough ? "registered as a fallthrough" : "registered directly", key);
    else if (strcmp(why, "default backend kernel") == 0)
        snprintf(buffer, n, "the %s kernel, %s%s", explicit_alias(op, info->key),
                 info->key == TN_KEY_UNDEFINED ? "which also serves calls without tensors"
                                               : "because no kernel is registered to ",
                 info->key == TN_KEY_UNDEFINED ? ""
                 : many                        ? "any of these backends"
                                               : key);
    else if (strcmp(why, "nested kernel") == 0)
        snprintf(buffer, n, "the %s kernel, because %s has none of its own",
                 tn_key_name(TN_KEY_COMPOSITE_IMPLICIT_NESTED), key);
    else if (strcmp(why, "math kernel") == 0)
        why_composite(op, info->key, many, buffer, n);
    else if (strcmp(why, "autograd kernel") == 0)
        snprintf(buffer, n, "the kernel of the alias Autograd, because %s has none of its own",
                 key);
    else if (strcmp(why, "batched kernel") == 0)
        snprintf(buffer, n, "the %s kernel, because %s has none of its own",
                 tn_key_name(TN_KEY_FUNCTORCH_BATCHED_DECOMPOSITION), key);
    else if (strcmp(why, "backend fallback") == 0)
        snprintf(buffer, n, "the fallback of %s, because the operator has no kernel for %s", key,
                 many ? "any of them" : "it");
    else if (strcmp(why, "ambiguous autogradother") == 0)
        snprintf(buffer, n, "refuses: there is a %s kernel, and one for a backend that shares %s",
                 tn_key_name(TN_KEY_COMPOSITE_IMPLICIT), key);
    else if (strcmp(why, "missing") == 0)
        snprintf(buffer, n, "no kernel: none registered, none from an alias key, and no fallback");
    else
        snprintf(buffer, n, "%s", why);
    return buffer;
}
