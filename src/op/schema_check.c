/* SPDX-License-Identifier: MIT */
/* Whether a kernel's signature, or a boxed value, fits a schema. */
#include <stdio.h>
#include <string.h>
#include "base/alloc.h"
#include "base/str.h"
#include "op/parser.h"

/* ---- signatures ---- */

static tni_type_kind plain_kind(tni_type_kind kind)
{
    return kind == TNI_TYPE_SYMINT ? TNI_TYPE_INT : kind;
}

static bool same_type(const tni_schema_type *a, const tni_schema_type *b)
{
    if (a == b)
        return true;
    if (plain_kind(a->kind) != plain_kind(b->kind) || a->n_children != b->n_children)
        return false;
    if (a->name && (!b->name || strcmp(a->name, b->name) != 0))
        return false;
    for (int i = 0; i < a->n_children; i++) {
        if (!same_type(a->children[i], b->children[i]))
            return false;
    }
    return true;
}

static void types_differ(const char *what, int i, const tni_schema_type *wanted,
                         const tni_schema_type *found, tni_str *reason)
{
    tni_str_addf(reason, "Type mismatch in %s %d: ", what, i + 1);
    tni_schema_type_print(wanted, reason);
    tni_str_add(reason, " vs ");
    tni_schema_type_print(found, reason);
    tni_str_add(reason, ".");
}

/* False and a reason, in the reference's words, when they differ. */
static bool same_signature(const tni_schema *wanted, const tni_schema *found, tni_str *reason)
{
    if (wanted->nargs != found->nargs) {
        tni_str_addf(reason, "The number of arguments is different. %d vs %d.", wanted->nargs,
                     found->nargs);
        return false;
    }
    if (wanted->nrets != found->nrets) {
        tni_str_addf(reason, "The number of returns is different. %d vs %d.", wanted->nrets,
                     found->nrets);
        return false;
    }
    if (wanted->vararg != found->vararg || wanted->varret != found->varret) {
        tni_str_add(reason, "One of them takes or returns a variable number of values (...).");
        return false;
    }
    for (int i = 0; i < wanted->nargs; i++) {
        if (!same_type(wanted->args[i].type, found->args[i].type)) {
            types_differ("argument", i, wanted->args[i].type, found->args[i].type, reason);
            return false;
        }
    }
    for (int i = 0; i < wanted->nrets; i++) {
        if (!same_type(wanted->rets[i].type, found->rets[i].type)) {
            types_differ("return", i, wanted->rets[i].type, found->rets[i].type, reason);
            return false;
        }
    }
    return true;
}

tn_status tni_signature_check(const tni_schema *schema, const char *signature)
{
    TN_AUTO(tni_schema) found = NULL;
    TN_TRY(tni_signature_parse(signature, &found));
    tni_str reason = TNI_STR_INIT;
    if (same_signature(schema, found, &reason))
        return TN_OK;
    char *wanted_text = NULL, *found_text = NULL;
    tn_status status = tni_schema_print(schema, &wanted_text);
    if (status == TN_OK)
        status = tni_schema_print(found, &found_text);
    if (status == TN_OK && reason.failed)
        status = tni_parse_nomem();
    if (status == TN_OK)
        status = tni_fail(TN_INVALID, TNI_WHERE,
                          "Inferred operator schema for a kernel function doesn't match the "
                          "expected function schema.\n  operator: %s\n  expected schema: %s\n"
                          "  inferred schema: %s\n  reason: %s",
                          schema->full, wanted_text, found_text, tni_str_get(&reason));
    tni_str_clear(&reason);
    tni_free(wanted_text);
    tni_free(found_text);
    return status;
}

/* ---- values ---- */

static bool is_none(const tn_value *v)
{
    return v->tag == TN_TAG_NONE || (v->tag == TN_TAG_TENSOR && !v->u.tensor) ||
           (v->tag == TN_TAG_GENERATOR && !v->u.generator);
}

static bool is_list(const tn_value *v)
{
    return v->tag == TN_TAG_TENSOR_LIST || v->tag == TN_TAG_INT_LIST ||
           v->tag == TN_TAG_FLOAT_LIST || v->tag == TN_TAG_BOOL_LIST || v->tag == TN_TAG_LIST;
}

/* Nothing is read through a NULL that a caller gave. */
static bool has_elements(const tn_value *v)
{
    return v->count == 0 || v->u.pointer;
}

static bool list_fits(const tn_value *v, const tni_schema_type *element)
{
    if (!is_list(v) || !has_elements(v))
        return false;
    /* The common lists are right or wrong as a whole. */
    if (v->tag == TN_TAG_INT_LIST || v->tag == TN_TAG_FLOAT_LIST || v->tag == TN_TAG_BOOL_LIST) {
        tn_value first = {0};
        if (v->count == 0)
            return true;
        first = tni_value_element(v, 0);
        return tni_value_fits(&first, element);
    }
    for (uint32_t i = 0; i < v->count; i++) {
        tn_value one = tni_value_element(v, i);
        if (!tni_value_fits(&one, element))
            return false;
    }
    return true;
}

static bool tuple_fits(const tn_value *v, const tni_schema_type *type)
{
    if (!is_list(v) || !has_elements(v) || v->count != (uint32_t)type->n_children)
        return false;
    for (uint32_t i = 0; i < v->count; i++) {
        tn_value one = tni_value_element(v, i);
        if (!tni_value_fits(&one, type->children[i]))
            return false;
    }
    return true;
}

static bool dict_fits(const tn_value *v, const tni_schema_type *type)
{
    if (v->tag != TN_TAG_DICT || !has_elements(v))
        return false;
    for (uint32_t i = 0; i < v->count; i++) {
        if (!tni_value_fits(&v->u.values[2 * (size_t)i], type->children[0]) ||
            !tni_value_fits(&v->u.values[2 * (size_t)i + 1], type->children[1]))
            return false;
    }
    return true;
}

static bool union_fits(const tn_value *v, const tni_schema_type *type)
{
    for (int i = 0; i < type->n_children; i++) {
        if (tni_value_fits(v, type->children[i]))
            return true;
    }
    return false;
}

static bool named_fits(const tn_value *v, const char *name)
{
    if (strcmp(name, "Any") == 0)
        return true;
    return v->tag == TN_TAG_POINTER || (v->tag == TN_TAG_INT && strcmp(name, "QScheme") == 0);
}

/* An int that stands for all elements of a list of ints. */
static bool single_fits(const tn_value *v, const tni_schema_type *element)
{
    return v->tag == TN_TAG_INT &&
           (element->kind == TNI_TYPE_INT || element->kind == TNI_TYPE_SYMINT ||
            element->kind == TNI_TYPE_SCALAR_TYPE);
}

bool tni_value_fits(const tn_value *v, const tni_schema_type *type)
{
    switch (type->kind) {
    case TNI_TYPE_TENSOR:
        return v->tag == TN_TAG_TENSOR && v->u.tensor;
    case TNI_TYPE_INT:
    case TNI_TYPE_SYMINT:
    case TNI_TYPE_SCALAR_TYPE:
    case TNI_TYPE_LAYOUT:
    case TNI_TYPE_MEMORY_FORMAT:
        return v->tag == TN_TAG_INT;
    case TNI_TYPE_FLOAT:
        return v->tag == TN_TAG_FLOAT || v->tag == TN_TAG_INT;
    case TNI_TYPE_COMPLEX:
        return v->tag == TN_TAG_COMPLEX || v->tag == TN_TAG_FLOAT || v->tag == TN_TAG_INT;
    case TNI_TYPE_BOOL:
    case TNI_TYPE_SYMBOOL:
        return v->tag == TN_TAG_BOOL;
    case TNI_TYPE_SCALAR:
        return v->tag == TN_TAG_INT || v->tag == TN_TAG_FLOAT || v->tag == TN_TAG_BOOL ||
               v->tag == TN_TAG_COMPLEX;
    case TNI_TYPE_STRING:
        return v->tag == TN_TAG_STRING && v->u.text;
    case TNI_TYPE_DEVICE:
        return v->tag == TN_TAG_DEVICE;
    case TNI_TYPE_GENERATOR:
        return v->tag == TN_TAG_GENERATOR && v->u.generator;
    case TNI_TYPE_NONE:
        return is_none(v);
    case TNI_TYPE_NAMED:
        return named_fits(v, type->name);
    case TNI_TYPE_VARIABLE:
        return true;
    case TNI_TYPE_CLASS:
    case TNI_TYPE_FUTURE:
        return v->tag == TN_TAG_POINTER;
    case TNI_TYPE_LIST:
        return list_fits(v, type->children[0]) || single_fits(v, type->children[0]);
    case TNI_TYPE_OPTIONAL:
        return is_none(v) || tni_value_fits(v, type->children[0]);
    case TNI_TYPE_TUPLE:
        return tuple_fits(v, type);
    case TNI_TYPE_DICT:
        return dict_fits(v, type);
    case TNI_TYPE_UNION:
        return union_fits(v, type);
    }
    return false;
}

bool tni_arg_fits(const tn_value *v, const tni_schema_arg *arg)
{
    const tni_schema_type *type = arg->type;
    if (type->kind == TNI_TYPE_OPTIONAL) {
        if (is_none(v))
            return true;
        type = type->children[0];
    }
    if (type->kind != TNI_TYPE_LIST || is_list(v))
        return tni_value_fits(v, type);
    return arg->fixed_n > 0 && single_fits(v, type->children[0]);
}
