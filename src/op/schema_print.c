/* SPDX-License-Identifier: MIT */
/* Schemas, types, signatures and default values as text, in the reference's canonical form. Where
 * that form cannot be read back (a device without quotes, an unsized list of equal numbers as one
 * number, a bare "!"), ours can. */
#include "base/alloc.h"
#include "base/str.h"
#include "op/number.h"
#include "op/schema.h"

#include <inttypes.h>
#include <string.h>

/* ---- types ---- */

static const char *const kind_names[] = {
    [TNI_TYPE_TENSOR] = "Tensor",
    [TNI_TYPE_INT] = "int",
    [TNI_TYPE_SYMINT] = "SymInt",
    [TNI_TYPE_FLOAT] = "float",
    [TNI_TYPE_COMPLEX] = "complex",
    [TNI_TYPE_BOOL] = "bool",
    [TNI_TYPE_SYMBOOL] = "SymBool",
    [TNI_TYPE_SCALAR] = "Scalar",
    [TNI_TYPE_STRING] = "str",
    [TNI_TYPE_DEVICE] = "Device",
    [TNI_TYPE_SCALAR_TYPE] = "ScalarType",
    [TNI_TYPE_LAYOUT] = "Layout",
    [TNI_TYPE_MEMORY_FORMAT] = "MemoryFormat",
    [TNI_TYPE_GENERATOR] = "Generator",
    [TNI_TYPE_NONE] = "NoneType",
    [TNI_TYPE_TUPLE] = "",
    [TNI_TYPE_DICT] = "Dict",
    [TNI_TYPE_UNION] = "Union",
};

static void print_alias(const tni_alias *alias, tni_str *s)
{
    if (alias->before[0] == '$') { /* the private set of a bare mark */
        tni_str_add(s, "!");
        return;
    }
    tni_str_addf(s, "(%s%s", alias->before, alias->write ? "!" : "");
    if (strcmp(alias->before, alias->after) != 0)
        tni_str_addf(s, " -> %s", alias->after);
    tni_str_add(s, ")");
}

/* @p fixed_n: size of the outermost list, 0 for none. @p bare: without annotations. */
static void print_type(const tni_schema_type *type, int fixed_n, bool bare, tni_str *s)
{
    switch (type->kind) {
    case TNI_TYPE_LIST:
        print_type(type->children[0], 0, bare, s);
        if (fixed_n > 0)
            tni_str_addf(s, "[%d]", fixed_n);
        else
            tni_str_add(s, "[]");
        break;
    case TNI_TYPE_OPTIONAL:
        print_type(type->children[0], fixed_n, bare, s);
        tni_str_add(s, "?");
        break;
    default:
        tni_str_add(s, type->name ? type->name : kind_names[type->kind]);
        for (int i = 0; i < type->n_children; i++) {
            tni_str_add(s, i ? ", " : "(");
            print_type(type->children[i], 0, bare, s);
        }
        tni_str_add(s, type->n_children ? ")" : "");
    }
    if (type->alias && !bare)
        print_alias(type->alias, s);
}

void tni_schema_type_print(const tni_schema_type *type, tni_str *s)
{
    print_type(type, 0, false, s);
}

void tni_schema_arg_type_print(const tni_schema_arg *arg, tni_str *s)
{
    print_type(arg->type, arg->fixed_n, false, s);
}

/* ---- default values ---- */

static void print_text(const char *text, size_t n, tni_str *s)
{
    static const char special[] = "\\'\"\a\b\f\n\r\t\v", names[] = "\\'\"abfnrtv";
    tni_str_add(s, "\"");
    for (size_t i = 0; i < n; i++) {
        char c = text[i];
        const char *found = c ? strchr(special, c) : NULL;
        if (found)
            tni_str_addf(s, "\\%c", names[found - special]);
        else if (c >= ' ' && c <= '~')
            tni_str_addn(s, &c, 1);
        else
            tni_str_addf(s, "\\%03o", (unsigned)(unsigned char)c);
    }
    tni_str_add(s, "\"");
}

static void print_constant(const tn_value *v, tni_str *s)
{
    char buffer[TNI_NUMBER_TEXT], device[32];
    switch (v->tag) {
    case TN_TAG_INT:
        tni_str_addf(s, "%" PRId64, v->u.i);
        break;
    case TN_TAG_FLOAT:
        tni_str_add(s, tni_number_format(v->u.f, buffer));
        break;
    case TN_TAG_BOOL:
        tni_str_add(s, v->u.i ? "True" : "False");
        break;
    case TN_TAG_COMPLEX: { /* the grammar has only purely real and purely imaginary numbers */
        uint64_t re_bits, im_bits; /* bits, because -0. is not 0. */
        memcpy(&re_bits, &v->u.z.re, sizeof re_bits);
        memcpy(&im_bits, &v->u.z.im, sizeof im_bits);
        bool real = im_bits == 0 && re_bits != 0;
        tni_str_addf(s, "%s%s", tni_number_format(real ? v->u.z.re : v->u.z.im, buffer),
                     real ? "" : "j");
        break;
    }
    case TN_TAG_STRING:
        print_text(v->u.text, v->count, s);
        break;
    case TN_TAG_DEVICE:
        tni_str_addf(s, "\"%s\"", tn_device_format(v->u.device, device, sizeof device));
        break;
    default:
        tni_str_add(s, "None");
    }
}

/* Whether one constant stands for all elements of a sized list when it is written out: the
 * reference does so for int[2] and up, and writes SymInt[2] and int[1] as lists. */
static bool is_short(const tni_schema_arg *arg)
{
    if (arg->type->kind != TNI_TYPE_LIST)
        return true;
    return arg->type->children[0]->kind == TNI_TYPE_INT && arg->fixed_n > 1;
}

static void print_default(const tni_schema_arg *arg, tni_str *s)
{
    const tn_value *v = &arg->default_value;
    bool is_list = v->tag == TN_TAG_INT_LIST || v->tag == TN_TAG_FLOAT_LIST ||
                   v->tag == TN_TAG_BOOL_LIST || v->tag == TN_TAG_LIST;
    tni_str_add(s, "=");
    if (!is_list && is_short(arg)) {
        print_constant(v, s);
        return;
    }
    uint32_t n = is_list ? v->count : (uint32_t)arg->fixed_n;
    tni_str_add(s, "[");
    for (uint32_t i = 0; i < n; i++) {
        tn_value one = tni_value_element(v, i);
        tni_str_add(s, i ? ", " : "");
        print_constant(&one, s);
    }
    tni_str_add(s, "]");
}

/* ---- schemas ---- */

static void print_args(const tni_schema *schema, tni_str *s)
{
    bool keyword_only = false;
    tni_str_add(s, "(");
    for (int i = 0; i < schema->nargs; i++) {
        const tni_schema_arg *arg = &schema->args[i];
        tni_str_add(s, i ? ", " : "");
        if (arg->keyword_only && !keyword_only)
            tni_str_add(s, "*, ");
        keyword_only = keyword_only || arg->keyword_only;
        print_type(arg->type, arg->fixed_n, false, s);
        tni_str_addf(s, " %s", arg->name);
        if (arg->has_default)
            print_default(arg, s);
    }
    if (schema->vararg)
        tni_str_add(s, schema->nargs ? ", ..." : "...");
    tni_str_add(s, ") -> ");
}

/* One result that is a tuple, or a list of tuples, needs brackets, or it would read as several. */
static bool starts_with_tuple(const tni_schema_type *type)
{
    while (type->kind == TNI_TYPE_LIST || type->kind == TNI_TYPE_OPTIONAL)
        type = type->children[0];
    return type->kind == TNI_TYPE_TUPLE;
}

static void print_rets(const tni_schema *schema, bool bare, tni_str *s)
{
    bool one = schema->nrets == 1 && !schema->varret && !starts_with_tuple(schema->rets[0].type);
    bool brackets = !one && !(schema->nrets == 0 && schema->varret);
    tni_str_add(s, brackets ? "(" : "");
    for (int i = 0; i < schema->nrets; i++) {
        const tni_schema_arg *ret = &schema->rets[i];
        tni_str_add(s, i ? ", " : "");
        print_type(ret->type, bare ? 0 : ret->fixed_n, bare, s);
        if (!bare && *ret->name)
            tni_str_addf(s, " %s", ret->name);
    }
    if (schema->varret)
        tni_str_add(s, schema->nrets ? ", ..." : "...");
    tni_str_add(s, brackets ? ")" : "");
}

static tn_status take(tni_str *s, char **out)
{
    char *text = tni_str_take(s);
    TN_CHECK(text, TN_NOMEM, "cannot allocate memory for the text of a schema");
    *out = text;
    return TN_OK;
}

tn_status tni_schema_print(const tni_schema *schema, char **out)
{
    tni_str s = TNI_STR_INIT;
    tni_str_add(&s, schema->full);
    print_args(schema, &s);
    print_rets(schema, false, &s);
    return take(&s, out);
}

tn_status tni_schema_signature(const tni_schema *schema, char **out)
{
    tni_str s = TNI_STR_INIT;
    tni_str_add(&s, "(");
    for (int i = 0; i < schema->nargs; i++) {
        tni_str_add(&s, i ? ", " : "");
        print_type(schema->args[i].type, 0, true, &s);
    }
    if (schema->vararg)
        tni_str_add(&s, schema->nargs ? ", ..." : "...");
    tni_str_add(&s, ") -> ");
    print_rets(schema, true, &s);
    return take(&s, out);
}
