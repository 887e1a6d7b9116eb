/* SPDX-License-Identifier: MIT */
/* cli/hops.c: collects hops and shows them, as text and as JSON. */
#include "hops.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "keytext.h"
#include "registrations.h"
#include "term.h"

/* ---- collecting ---- */

static hop *add_hop(hop_list *list)
{
    if (list->n == list->capacity) {
        size_t capacity = list->capacity ? 2 * list->capacity : 32;
        hop *items = realloc(list->items, capacity * sizeof *items);
        if (!items)
            return NULL;
        list->items = items;
        list->capacity = capacity;
    }
    hop *h = &list->items[list->n++];
    *h = (hop){0};
    return h;
}

static void hop_begins(hop_list *list, const tn_event *event)
{
    size_t n = event->n_args > 0 ? (size_t)event->n_args : 0;
    tn_keyset *keys = malloc((n + 1) * sizeof *keys);
    hop *h = keys ? add_hop(list) : NULL;
    if (!h) {
        free(keys);
        list->incomplete = true;
        return;
    }
    if (n)
        memcpy(keys, event->arg_keys, n * sizeof *keys);
    h->event = *event;
    h->event.arg_keys = keys;
    h->slot_known = tn_op_slot(event->op, event->slot, &h->slot) == TN_OK;
}

static void hop_ends(hop_list *list, const tn_event *event)
{
    for (size_t i = list->n; i-- > 0;) {
        hop *h = &list->items[i];
        if (h->event.depth != event->depth || h->returned)
            continue;
        h->returned = true;
        h->status = event->status;
        h->nanoseconds = event->nanoseconds;
        return;
    }
}

static void observe(void *ctx, const tn_event *event)
{
    if (event->kind == TN_EVENT_RETURN)
        hop_ends(ctx, event);
    else
        hop_begins(ctx, event);
}

tn_status hops_start(hop_list *list)
{
    return tn_observe_thread(observe, list);
}

void hops_stop(void)
{
    /* Stopping has nothing to allocate. */
    if (tn_observe_thread(NULL, NULL) != TN_OK)
        fprintf(stderr, "tenon: %s\n", tn_last_error());
}

void hops_free(hop_list *list)
{
    for (size_t i = 0; i < list->n; i++)
        free((void *)(uintptr_t)list->items[i].event.arg_keys);
    free(list->items);
    *list = (hop_list){0};
}

/* ---- showing ---- */

const char *hop_kind(const hop *h)
{
    switch (h->event.kind) {
    case TN_EVENT_CALL:
        return "call";
    case TN_EVENT_REDISPATCH:
        return "redispatch";
    case TN_EVENT_CALL_BOXED:
        return "callBoxed";
    default:
        return "redispatchBoxed";
    }
}

static bool is_redispatch(const hop *h)
{
    return h->event.kind == TN_EVENT_REDISPATCH || h->event.kind == TN_EVENT_REDISPATCH_BOXED;
}

static void print_field(FILE *file, int indent, const char *name, const char *text)
{
    styles st = term_styles(file);
    fprintf(file, "%*s%s%-10s%s%s\n", indent, "", st.dim, name, st.off, text);
}

/* One line for arguments of equal keys, else a line for each. */
static void print_arguments(FILE *file, int indent, const tn_event *e)
{
    char text[KEYTEXT_ROOM], line[KEYTEXT_ROOM + 32];
    bool equal = true;
    for (int i = 1; i < e->n_args; i++)
        equal &= e->arg_keys[i] == e->arg_keys[0];
    if (e->n_args == 0)
        print_field(file, indent, "arguments", "no tensor");
    for (int i = 0; i < (equal && e->n_args ? 1 : e->n_args); i++) {
        const char *whose = "";
        char number[32];
        if (e->n_args == 2 && equal) {
            whose = " (both tensors)";
        } else if (e->n_args > 1) {
            snprintf(number, sizeof number, equal ? " (all %d tensors)" : " (tensor %d)",
                     equal ? e->n_args : i + 1);
            whose = number;
        }
        snprintf(line, sizeof line, "%s%s", keys_text(e->arg_keys[i], text, sizeof text), whose);
        print_field(file, indent, i == 0 ? "arguments" : "", line);
    }
}

static void print_mask(FILE *file, int indent, const hop *h)
{
    char text[KEYTEXT_ROOM], line[KEYTEXT_ROOM + 32];
    tn_keyset skipped = keys_not_in_mask(h->event.mask);
    if (is_redispatch(h))
        snprintf(line, sizeof line, "not applied: a redispatch takes the set that it is given");
    else
        snprintf(line, sizeof line, "falls through: %s", keys_text(skipped, text, sizeof text));
    print_field(file, indent, "mask", line);
}

static void print_kernel(FILE *file, int indent, const hop *h)
{
    char line[2048], why[WHY_ROOM];
    const tn_slot_info *s = &h->slot;
    if (!h->slot_known)
        return;
    if (!s->valid) {
        print_field(file, indent, "kernel", "none");
    } else {
        char where[1024] = "";
        if (s->file[0])
            snprintf(where, sizeof where, " (%s:%d)", s->file, s->line);
        snprintf(line, sizeof line, "%s%s, %s", s->name[0] ? s->name : "unnamed", where,
                 s->has_typed ? "typed and boxed" : "boxed only");
        print_field(file, indent, "kernel", line);
    }
    print_field(file, indent, "why", slot_why(h->event.op, s, false, why, sizeof why));
}

static void print_hop(FILE *file, size_t number, const hop *h)
{
    styles st = term_styles(file);
    char text[KEYTEXT_ROOM], took[32];
    int indent = 2 * (h->event.depth - 1);
    if (!h->returned)
        snprintf(took, sizeof took, "did not return");
    else
        time_text(h->nanoseconds, took, sizeof took);
    fprintf(file, "\n%*s%zu. %s%s%s [%s]  %s%s%s%s%s\n", indent, "", number, st.bold,
            tn_op_name(h->event.op), st.off, hop_kind(h), st.dim, took, st.off,
            h->returned && h->status != TN_OK ? "  failed: " : "",
            h->returned && h->status != TN_OK ? tn_status_name(h->status) : "");
    indent += 3;
    print_arguments(file, indent, &h->event);
    print_field(file, indent, "include", keys_text(h->event.included, text, sizeof text));
    print_field(file, indent, "exclude", keys_text(h->event.excluded, text, sizeof text));
    print_mask(file, indent, h);
    print_field(file, indent, "set", keys_text(h->event.keys, text, sizeof text));
    fprintf(file, "%*s%s%-10s%s%s%s%s, slot %u\n", indent, "", st.dim, "winner", st.off, st.good,
            tn_key_name(h->event.key), st.off, h->event.slot);
    print_kernel(file, indent, h);
}

void hops_print(FILE *file, const hop_list *list)
{
    for (size_t i = 0; i < list->n; i++)
        print_hop(file, i + 1, &list->items[i]);
    if (list->incomplete)
        fprintf(file, "\nMemory ran out: some hops are missing.\n");
}

static void kernel_json(json *j, const hop *h)
{
    const tn_slot_info *s = &h->slot;
    char why[WHY_ROOM];
    json_key(j, "kernel");
    if (!h->slot_known || !s->valid) {
        json_null(j);
    } else {
        json_one_line(j);
        json_object(j);
        json_key(j, "name");
        json_string(j, s->name);
        json_key(j, "file");
        json_string(j, s->file);
        json_key(j, "line");
        json_int(j, s->line);
        json_key(j, "typed");
        json_bool(j, s->has_typed);
        json_key(j, "boxed");
        json_bool(j, s->has_boxed);
        json_object_end(j);
    }
    if (!h->slot_known)
        return;
    json_key(j, "provenance");
    json_string(j, s->provenance);
    json_key(j, "why");
    json_string(j, slot_why(h->event.op, s, false, why, sizeof why));
}

static void hop_json(json *j, const hop *h)
{
    char bits[32];
    json_object(j);
    json_key(j, "depth");
    json_int(j, h->event.depth);
    json_key(j, "kind");
    json_string(j, hop_kind(h));
    json_key(j, "operator");
    json_string(j, tn_op_name(h->event.op));
    json_key(j, "argument_keys");
    json_array(j);
    for (int i = 0; i < h->event.n_args; i++)
        keys_json(j, h->event.arg_keys[i]);
    json_array_end(j);
    json_key(j, "included");
    keys_json(j, h->event.included);
    json_key(j, "excluded");
    keys_json(j, h->event.excluded);
    snprintf(bits, sizeof bits, "0x%016" PRIx64, h->event.mask);
    json_key(j, "mask");
    json_string(j, bits);
    json_key(j, "falls_through");
    keys_json(j, keys_not_in_mask(h->event.mask));
    json_key(j, "keys");
    keys_json(j, h->event.keys);
    json_key(j, "key");
    json_string(j, tn_key_name(h->event.key));
    json_key(j, "slot");
    json_int(j, h->event.slot);
    kernel_json(j, h);
    json_key(j, "returned");
    json_bool(j, h->returned);
    if (h->returned) {
        json_key(j, "status");
        json_string(j, tn_status_name(h->status));
        json_key(j, "nanoseconds");
        json_uint(j, h->nanoseconds);
    }
    json_object_end(j);
}

void hops_json(json *j, const hop_list *list)
{
    json_array(j);
    for (size_t i = 0; i < list->n; i++)
        hop_json(j, &list->items[i]);
    json_array_end(j);
}
