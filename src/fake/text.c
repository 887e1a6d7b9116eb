/* SPDX-License-Identifier: MIT */
/* fake/text.c: a refused call as the reference writes it: the operator with dots, each argument
 * that was given, tensors without their elements. */
#include "fake/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "core/fake.h"
#include "core/print.h"
#include "core/scalar.h"
#include "core/tensor.h"

char *tni_fake_op_name(const tn_op *op, char *buffer)
{
    const char *colons = strstr(op->name, "::");
    const char *rest = colons ? colons + 2 : op->name;
    int ns = colons ? (int)(colons - op->name) : 0;
    snprintf(buffer, TNI_FAKE_NAME, "%.*s%s%s%s", ns, op->name, ns ? "." : "", rest,
             strchr(rest, '.') ? "" : ".default");
    return buffer;
}

static tni_type_kind kind_of(const tni_schema_type *type)
{
    while (type->kind == TNI_TYPE_OPTIONAL || type->kind == TNI_TYPE_LIST)
        type = type->children[0];
    return type->kind;
}

static void write_float(double f, tni_str *s)
{
    char text[40];
    snprintf(text, sizeof text, "%.17g", f);
    for (int digits = 1; digits < 17; digits++) { /* as short as reads back the same */
        char shorter[40];
        double back = 0;
        snprintf(shorter, sizeof shorter, "%.*g", digits, f);
        if (sscanf(shorter, "%lf", &back) == 1 && back == f) {
            memcpy(text, shorter, sizeof text);
            break;
        }
    }
    tni_str_add(s, text);
    if (!strpbrk(text, ".einf"))
        tni_str_add(s, ".0");
}

/* Where the value of a bare number lies that was given for a tensor; NULL where it is not known. */
static const void *number_of(const tn_tensor *t)
{
    if (!(t->flags & TNI_WRAPPED_NUMBER) || t->numel != 1)
        return NULL;
    if (!tni_is_fake(t))
        return t->data;
    const tni_storage *known = tni_fake_side_of(t->storage)->constant;
    return known ? (const char *)known->data + (size_t)t->offset * tni_itemsize(t) : NULL;
}

static void write_number(tn_scalar n, tni_str *s)
{
    if (n.kind == TN_SCALAR_FLOAT)
        write_float(n.v.f, s);
    else if (n.kind == TN_SCALAR_BOOL)
        tni_str_add(s, n.v.i ? "True" : "False");
    else if (n.kind == TN_SCALAR_INT)
        tni_str_addf(s, "%" PRId64, n.v.i);
    else
        tni_str_addf(s, "(%g%+gj)", n.v.f, n.imag);
}

static void write_tensor(const tn_tensor *t, tni_str *s)
{
    static const tni_print_options brief = {"", NULL, true};
    const void *number = t ? number_of(t) : NULL;
    if (!t)
        tni_str_add(s, "None");
    else if (number)
        write_number(tni_scalar_load((tn_dtype)t->dtype, number), s);
    else if (tni_tensor_format(t, &brief, s) != TN_OK)
        s->failed = true;
}

static void write_one(const tn_value *v, tni_type_kind kind, uint32_t i, tni_str *s)
{
    char device[32];
    switch ((tn_tag)v->tag) {
    case TN_TAG_TENSOR:
        write_tensor(v->u.tensor, s);
        break;
    case TN_TAG_TENSOR_LIST:
        write_tensor(v->u.tensors[i], s);
        break;
    case TN_TAG_INT:
    case TN_TAG_INT_LIST: {
        int64_t n = v->tag == TN_TAG_INT ? v->u.i : v->u.ints[i];
        if (kind == TNI_TYPE_SCALAR_TYPE)
            tni_str_add(s, tn_dtype_name((tn_dtype)n));
        else
            tni_str_addf(s, "%" PRId64, n);
        break;
    }
    case TN_TAG_FLOAT:
    case TN_TAG_FLOAT_LIST:
        write_float(v->tag == TN_TAG_FLOAT ? v->u.f : v->u.floats[i], s);
        break;
    case TN_TAG_BOOL:
    case TN_TAG_BOOL_LIST:
        tni_str_add(s, (v->tag == TN_TAG_BOOL ? v->u.i != 0 : v->u.bools[i]) ? "True" : "False");
        break;
    case TN_TAG_STRING:
        tni_str_addf(s, "'%.*s'", (int)v->count, v->u.text);
        break;
    case TN_TAG_DEVICE:
        tni_str_addf(s, "device('%s')", tn_device_format(v->u.device, device, sizeof device));
        break;
    case TN_TAG_NONE:
        tni_str_add(s, "None");
        break;
    default:
        tni_str_addf(s, "<%s>", tn_tag_name((tn_tag)v->tag));
    }
}

static bool is_list(const tn_value *v)
{
    return v->tag >= TN_TAG_TENSOR_LIST && v->tag < TN_TAG_LIST;
}

static void write_value(const tn_value *v, const tni_schema_arg *arg, tni_str *s)
{
    tni_type_kind kind = kind_of(arg->type);
    if (!is_list(v)) {
        write_one(v, kind, 0, s);
        return;
    }
    tni_str_add(s, "[");
    for (uint32_t i = 0; i < v->count; i++) {
        tni_str_add(s, i ? ", " : "");
        write_one(v, kind, i, s);
    }
    tni_str_add(s, "]");
}

/* By what they would be written as: every value has a text, and few have an equality. */
static bool is_default(const tn_value *v, const tni_schema_arg *arg)
{
    tni_str a = TNI_STR_INIT, b = TNI_STR_INIT;
    if (!arg->has_default || v->tag == TN_TAG_TENSOR || v->tag == TN_TAG_TENSOR_LIST)
        return v->tag == TN_TAG_NONE && arg->has_default;
    write_value(v, arg, &a);
    write_value(&arg->default_value, arg, &b);
    bool same = strcmp(tni_str_get(&a), tni_str_get(&b)) == 0;
    tni_str_clear(&a);
    tni_str_clear(&b);
    return same;
}

static void write_call(const tn_op *op, const tni_schema *schema, const tn_value *args, tni_str *s)
{
    char name[TNI_FAKE_NAME];
    int given = schema->nargs; /* positional arguments up to the last that is no default */
    while (given > 0 && (schema->args[given - 1].keyword_only ||
                         is_default(&args[given - 1], &schema->args[given - 1])))
        given--;
    tni_str_addf(s, "%s(", tni_fake_op_name(op, name));
    bool first = true;
    for (int i = 0; i < schema->nargs; i++) {
        const tni_schema_arg *arg = &schema->args[i];
        if (i >= given && (!arg->keyword_only || is_default(&args[i], arg)))
            continue;
        tni_str_add(s, first ? "" : ", ");
        first = false;
        if (arg->keyword_only)
            tni_str_addf(s, "%s=", arg->name);
        write_value(&args[i], arg, s);
    }
    tni_str_add(s, ")");
}

tn_status tni_fake_refuse_call(const tn_op *op, const tni_schema *schema, const tn_value *args,
                               const char *what)
{
    tni_str text = TNI_STR_INIT;
    write_call(op, schema, args, &text);
    tn_status status = tni_fail(TN_INVALID, TNI_WHERE, "%s Found in %s", what, tni_str_get(&text));
    tni_str_clear(&text);
    return status;
}
