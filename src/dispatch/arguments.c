/* SPDX-License-Identifier: MIT */
/* dispatch/arguments.c: checking boxed arguments against a schema, and giving each the form that
 * its type has. */
#include "dispatch/arguments.h"

#include <string.h>
#include "base/alloc.h"
#include "base/str.h"

static bool is_none(const tn_value *v)
{
    return v->tag == TN_TAG_NONE || (v->tag == TN_TAG_TENSOR && !v->u.tensor) ||
           (v->tag == TN_TAG_GENERATOR && !v->u.generator);
}

static tn_status refuse(const tn_op *op, const tni_schema_arg *arg, int at, const tn_value *found)
{
    tni_str wanted = TNI_STR_INIT;
    tni_schema_arg_type_print(arg, &wanted);
    bool no_array = found->tag >= TN_TAG_TENSOR_LIST && found->tag <= TN_TAG_DICT && found->count &&
                    !found->u.pointer;
    tn_status st =
        tni_fail(TN_TYPE, TNI_WHERE, "%s: argument '%s' (position %d) must be %s, not %s%s",
                 op->name, arg->name, at, tni_str_get(&wanted),
                 is_none(found) ? "None" : tn_tag_name((tn_tag)found->tag),
                 no_array ? " without its elements (NULL)" : "");
    tni_str_clear(&wanted);
    return st;
}

/* ---- forms ---- */

static const tni_schema_type *without_optional(const tni_schema_type *type)
{
    return type->kind == TNI_TYPE_OPTIONAL ? type->children[0] : type;
}

/* The tag of a list of such elements; TN_TAG_NONE: there is more than one. */
static tn_tag list_tag(const tni_schema_type *element)
{
    switch (element->kind) {
    case TNI_TYPE_INT:
    case TNI_TYPE_SYMINT:
    case TNI_TYPE_SCALAR_TYPE:
    case TNI_TYPE_LAYOUT:
    case TNI_TYPE_MEMORY_FORMAT:
        return TN_TAG_INT_LIST;
    case TNI_TYPE_FLOAT:
        return TN_TAG_FLOAT_LIST;
    case TNI_TYPE_BOOL:
    case TNI_TYPE_SYMBOOL:
        return TN_TAG_BOOL_LIST;
    case TNI_TYPE_SCALAR:
        return TN_TAG_LIST;
    case TNI_TYPE_TENSOR:
        return TN_TAG_TENSOR_LIST;
    case TNI_TYPE_OPTIONAL:
        return element->children[0]->kind == TNI_TYPE_TENSOR ? TN_TAG_TENSOR_LIST : TN_TAG_NONE;
    default:
        return TN_TAG_NONE;
    }
}

/* The tag that a fitting value of this type should have; its own where any is right. */
static tn_tag form_of(const tn_value *v, const tni_schema_type *type)
{
    type = without_optional(type);
    if (is_none(v))
        return TN_TAG_NONE;
    if (type->kind == TNI_TYPE_FLOAT)
        return TN_TAG_FLOAT;
    if (type->kind == TNI_TYPE_COMPLEX)
        return TN_TAG_COMPLEX;
    tn_tag list = type->kind == TNI_TYPE_LIST ? list_tag(type->children[0]) : TN_TAG_NONE;
    return list == TN_TAG_NONE ? (tn_tag)v->tag : list;
}

static double as_float(const tn_value *v)
{
    return v->tag == TN_TAG_FLOAT ? v->u.f : (double)v->u.i;
}

/* A list of @p form with the same elements, in memory of its own. */
static tn_status make_list(tn_value *v, tn_tag form, uint32_t n)
{
    size_t size = form == TN_TAG_BOOL_LIST ? sizeof(bool)
                  : form == TN_TAG_LIST    ? sizeof(tn_value)
                                           : 8; /* pointer, int64_t or double */
    _Static_assert(sizeof(tn_tensor *) == 8 && sizeof(double) == 8, "sizes of elements");
    void *array = tni_alloc(n * size);
    TN_CHECK(array, TN_NOMEM, "cannot allocate a list of %u elements", n);
    for (uint32_t i = 0; i < n; i++) {
        const tn_value e = tni_value_element(v, i);
        if (form == TN_TAG_LIST)
            ((tn_value *)array)[i] = e;
        else if (form == TN_TAG_INT_LIST)
            ((int64_t *)array)[i] = e.u.i;
        else if (form == TN_TAG_FLOAT_LIST)
            ((double *)array)[i] = as_float(&e);
        else if (form == TN_TAG_BOOL_LIST)
            ((bool *)array)[i] = e.u.i != 0;
        else
            ((tn_tensor **)array)[i] = e.tag == TN_TAG_TENSOR ? e.u.tensor : NULL;
    }
    *v = (tn_value){.tag = (uint8_t)form, .count = n, .u.pointer = array};
    return TN_OK;
}

/* Give room[i] its form. */
static tn_status settle(tni_arguments *a, int i, const tni_schema_arg *arg)
{
    tn_value *v = &a->room[i];
    tn_tag form = form_of(v, arg->type);
    if (form == TN_TAG_NONE) {
        *v = tn_value_none();
    } else if (form == TN_TAG_FLOAT) {
        *v = tn_value_float(as_float(v));
    } else if (form == TN_TAG_COMPLEX) {
        *v = (tn_value){.tag = TN_TAG_COMPLEX, .u.z = {as_float(v), 0}};
    } else {
        bool is_list = v->tag >= TN_TAG_TENSOR_LIST && v->tag <= TN_TAG_LIST;
        TN_TRY(make_list(v, form, is_list ? v->count : (uint32_t)arg->fixed_n));
        a->made |= UINT64_C(1) << i;
    }
    return TN_OK;
}

/* ---- taking ---- */

static tn_status fill_defaults(tni_arguments *a, const tn_op *op, const tni_schema *schema,
                               const tn_value *given, int nargs)
{
    TN_CHECK(nargs >= 0 && nargs <= schema->nargs, TN_INVALID,
             "%s: takes %d arguments, but %d were given", op->name, schema->nargs, nargs);
    for (int i = 0; i < schema->nargs; i++) {
        const tni_schema_arg *arg = &schema->args[i];
        TN_CHECK(i < nargs || arg->has_default, TN_INVALID,
                 "%s: missing value for argument '%s' (position %d)", op->name, arg->name, i);
        a->room[i] = i < nargs ? given[i] : arg->default_value;
    }
    a->values = a->room;
    return TN_OK;
}

tn_status tni_arguments_take(tni_arguments *a, const tn_op *op, const tni_schema *schema,
                             const tn_value *given, int nargs)
{
    a->values = given;
    a->made = 0;
    if (TNI_UNLIKELY(nargs != schema->nargs))
        TN_TRY(fill_defaults(a, op, schema, given, nargs));
    for (int i = 0; i < schema->nargs; i++) {
        const tni_schema_arg *arg = &schema->args[i];
        const tn_value *v = &a->values[i];
        bool is_tensor =
            v->tag == TN_TAG_TENSOR && v->u.tensor && arg->type->kind == TNI_TYPE_TENSOR;
        if (!is_tensor && !tni_arg_fits(v, arg))
            return refuse(op, arg, i, v);
        bool has_form = is_tensor || v->tag == form_of(v, arg->type);
        if (has_form && v->flags == 0)
            continue;
        if (a->values != a->room) {
            memcpy(a->room, given, (size_t)schema->nargs * sizeof *given);
            a->values = a->room;
        }
        a->room[i].flags = 0;
        if (!has_form)
            TN_TRY(settle(a, i, arg));
    }
    return TN_OK;
}

void tni_arguments_drop(tni_arguments *a)
{
    for (uint64_t bits = a->made; bits; bits &= bits - 1)
        tni_free(a->room[__builtin_ctzll(bits)].u.pointer); /* tensors in it are the caller's */
    a->made = 0;
}
