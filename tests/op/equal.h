/* SPDX-License-Identifier: MIT */
/* tests/op/equal.h: whether two schemas are equal in every field; the oracle of round trips. */
#ifndef TNI_TESTS_OP_EQUAL_H
#define TNI_TESTS_OP_EQUAL_H

#include <string.h>
#include "op/schema.h"

static inline bool equal_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

static inline bool equal_alias(const tni_alias *a, const tni_alias *b)
{
    if (!a || !b)
        return a == b;
    return a->write == b->write && equal_text(a->before, b->before) &&
           equal_text(a->after, b->after);
}

static inline bool equal_type(const tni_schema_type *a, const tni_schema_type *b)
{
    if (a->kind != b->kind || a->n_children != b->n_children || !equal_text(a->name, b->name) ||
        !equal_alias(a->alias, b->alias))
        return false;
    for (int i = 0; i < a->n_children; i++) {
        if (!equal_type(a->children[i], b->children[i]))
            return false;
    }
    return true;
}

/* Bit by bit: -0. differs from 0. */
static inline bool equal_value(const tn_value *a, const tn_value *b)
{
    if (a->tag != b->tag || a->count != b->count || a->flags != b->flags)
        return false;
    switch (a->tag) {
    case TN_TAG_STRING:
        return memcmp(a->u.text, b->u.text, (size_t)a->count + 1) == 0;
    case TN_TAG_COMPLEX:
        return memcmp(&a->u.z, &b->u.z, sizeof a->u.z) == 0;
    case TN_TAG_DEVICE:
        return a->u.device.type == b->u.device.type && a->u.device.index == b->u.device.index;
    case TN_TAG_INT_LIST:
        return memcmp(a->u.ints, b->u.ints, a->count * sizeof *a->u.ints) == 0;
    case TN_TAG_FLOAT_LIST:
        return memcmp(a->u.floats, b->u.floats, a->count * sizeof *a->u.floats) == 0;
    case TN_TAG_BOOL_LIST:
        return memcmp(a->u.bools, b->u.bools, a->count * sizeof *a->u.bools) == 0;
    case TN_TAG_LIST:
        for (uint32_t i = 0; i < a->count; i++) {
            if (!equal_value(&a->u.values[i], &b->u.values[i]))
                return false;
        }
        return true;
    case TN_TAG_NONE:
        return true;
    default:
        return memcmp(&a->u.i, &b->u.i, sizeof a->u.i) == 0;
    }
}

static inline bool equal_arg(const tni_schema_arg *a, const tni_schema_arg *b)
{
    return equal_text(a->name, b->name) && equal_type(a->type, b->type) &&
           a->fixed_n == b->fixed_n && a->keyword_only == b->keyword_only &&
           a->has_default == b->has_default && a->is_write == b->is_write &&
           a->is_out == b->is_out && equal_value(&a->default_value, &b->default_value);
}

static inline bool equal_schema(const tni_schema *a, const tni_schema *b)
{
    if (!equal_text(a->name, b->name) || !equal_text(a->overload, b->overload) ||
        !equal_text(a->full, b->full) || a->nargs != b->nargs || a->nrets != b->nrets ||
        a->vararg != b->vararg || a->varret != b->varret || a->is_mutable != b->is_mutable ||
        a->is_view != b->is_view || a->tensor_args != b->tensor_args ||
        a->generator_args != b->generator_args)
        return false;
    for (int i = 0; i < a->nargs; i++) {
        if (!equal_arg(&a->args[i], &b->args[i]))
            return false;
    }
    for (int i = 0; i < a->nrets; i++) {
        if (!equal_arg(&a->rets[i], &b->rets[i]))
            return false;
    }
    return true;
}

#endif
