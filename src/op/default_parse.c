/* SPDX-License-Identifier: MIT */
/* Default values of schema arguments.
 *
 * A constant is True, False, None, a number, a string, or one of a few words that stand for
 * numbers; lists of int, float, bool and complex are written [1, 2]. A list of a fixed size may be
 * given as one constant: a sized list of equal elements is kept as that constant, however it was
 * written, so that equal schemas hold equal values. The value must fit the argument's type. */
#include "op/parser.h"

#include <string.h>
#include "base/str.h"
#include "op/number.h"

/* The type without "?"; what a list's elements are goes through here as well. */
static const tni_schema_type *unwrap(const tni_schema_type *type)
{
    return type->kind == TNI_TYPE_OPTIONAL ? type->children[0] : type;
}

static tn_status number(tni_parser *p, const tni_schema_type *type, tn_value *out)
{
    tni_lexer *lex = &p->lex;
    bool negative = tni_lex_skip(lex, '-');
    tni_token token = lex->cur;
    if (token.kind != TNI_TOKEN_NUMBER)
        return tni_lex_fail_expected(lex, token, negative ? "a number" : "a default value", NULL,
                                     TNI_WHERE);
    tni_lex_next(lex);
    const char *text = lex->text + token.at;
    bool imaginary = text[token.n - 1] == 'j';
    size_t n = token.n - imaginary;
    bool real = memchr(text, '.', n) || memchr(text, 'e', n) || memchr(text, 'E', n);
    double f = 0;
    int64_t i = 0;
    /* As in the reference, "float? x=1" holds an int: it is the bare type that makes a float of it.
     */
    bool is_float = type->kind == TNI_TYPE_FLOAT || type->kind == TNI_TYPE_COMPLEX;
    bool good = imaginary || real || is_float ? tni_number_double(text, n, &f)
                                              : tni_number_int(text, n, negative, &i);
    if (!good)
        return tni_lex_fail(lex, token, TNI_WHERE, "the number %.*s is out of range",
                            token.n < TNI_NUMBER_TEXT ? (int)token.n : TNI_NUMBER_TEXT, text);
    f = negative ? -f : f;
    if (imaginary || type->kind == TNI_TYPE_COMPLEX) {
        *out = (tn_value){.tag = TN_TAG_COMPLEX};
        out->u.z.re = imaginary ? 0 : f;
        out->u.z.im = imaginary ? f : 0;
    } else if (real || is_float) {
        *out = (tn_value){.tag = TN_TAG_FLOAT, .u.f = f};
    } else {
        *out = (tn_value){.tag = TN_TAG_INT, .u.i = i};
    }
    return TN_OK;
}

/* Words that stand for whole numbers. A name of a dtype does so for a ScalarType alone. */
static tn_status named_number(tni_parser *p, const tni_schema_type *type, tn_value *out)
{
    static const struct {
        const char *word;
        int64_t value;
    } known[] = {
        {"float", TN_DTYPE_F32},
        {"complex", TN_DTYPE_C64},
        {"long", TN_DTYPE_I64},
        {"strided", TN_LAYOUT_STRIDED},
        {"Mean", 1},
        {"contiguous_format", TN_FORMAT_CONTIGUOUS},
    };
    tni_lexer *lex = &p->lex;
    tni_token token = lex->cur;
    char name[32];
    bool is_real = type->kind == TNI_TYPE_FLOAT || type->kind == TNI_TYPE_COMPLEX;
    for (size_t i = 0; !is_real && i < sizeof known / sizeof *known; i++) {
        if (tni_token_is(lex, token, known[i].word)) {
            tni_lex_next(lex);
            *out = (tn_value){.tag = TN_TAG_INT, .u.i = known[i].value};
            return TN_OK;
        }
    }
    if (unwrap(type)->kind == TNI_TYPE_SCALAR_TYPE && token.n < sizeof name) {
        memcpy(name, lex->text + token.at, token.n);
        name[token.n] = '\0';
        tn_dtype dtype = tn_dtype_parse(name);
        if (dtype != TN_DTYPE_NONE) {
            tni_lex_next(lex);
            *out = (tn_value){.tag = TN_TAG_INT, .u.i = dtype};
            return TN_OK;
        }
    }
    return tni_lex_fail_expected(lex, token, "a default value", "invalid numeric default value",
                                 TNI_WHERE);
}

static tn_status text(tni_parser *p, const tni_schema_type *type, tn_value *out)
{
    tni_token token = p->lex.cur;
    const char *value;
    uint32_t n;
    TN_TRY(tni_lex_string(&p->lex, token, p->arena, &value, &n));
    tni_lex_next(&p->lex);
    if (unwrap(type)->kind == TNI_TYPE_DEVICE) {
        tn_device device;
        TN_TRY(tn_device_parse(value, &device));
        *out = (tn_value){.tag = TN_TAG_DEVICE, .u.device = device};
    } else {
        *out = (tn_value){.tag = TN_TAG_STRING, .count = n, .u.text = value};
    }
    return TN_OK;
}

static tn_status constant(tni_parser *p, const tni_schema_type *type, tn_value *out)
{
    tni_lexer *lex = &p->lex;
    tni_token token = lex->cur;
    if (token.kind == TNI_TOKEN_STRING)
        return text(p, type, out);
    if (token.kind != TNI_TOKEN_IDENT)
        return number(p, type, out);
    if (tni_token_is_name(lex, token))
        return named_number(p, type, out);
    tni_lex_next(lex);
    *out = (tn_value){.tag = TN_TAG_NONE};
    if (tni_token_is(lex, token, "True") || tni_token_is(lex, token, "False"))
        *out = (tn_value){.tag = TN_TAG_BOOL, .u.i = tni_token_is(lex, token, "True")};
    return TN_OK;
}

static bool same_constant(const tn_value *a, const tn_value *b)
{
    if (a->tag != b->tag)
        return false;
    if (a->tag == TN_TAG_COMPLEX)
        return memcmp(&a->u.z, &b->u.z, sizeof a->u.z) == 0;
    return memcmp(&a->u.i, &b->u.i, sizeof a->u.i) == 0; /* as bits: -0. is not 0. */
}

/* Pack @p n constants, which all fit the element type, as the list's own representation. */
static tn_status pack(tni_parser *p, const tni_schema_type *element, const tn_value *values,
                      uint32_t n, tn_value *out)
{
    size_t each = element->kind == TNI_TYPE_FLOAT     ? sizeof(double)
                  : element->kind == TNI_TYPE_BOOL    ? sizeof(bool)
                  : element->kind == TNI_TYPE_COMPLEX ? sizeof(tn_value)
                                                      : sizeof(int64_t);
    void *data = tni_arena_alloc(p->arena, n * each);
    if (!data)
        return tni_parse_nomem();
    *out = (tn_value){.count = n};
    for (uint32_t i = 0; i < n; i++) {
        if (element->kind == TNI_TYPE_FLOAT)
            ((double *)data)[i] = values[i].u.f;
        else if (element->kind == TNI_TYPE_BOOL)
            ((bool *)data)[i] = values[i].u.i != 0;
        else if (element->kind == TNI_TYPE_COMPLEX)
            ((tn_value *)data)[i] = values[i];
        else
            ((int64_t *)data)[i] = values[i].u.i;
    }
    if (element->kind == TNI_TYPE_FLOAT) {
        out->tag = TN_TAG_FLOAT_LIST;
        out->u.floats = data;
    } else if (element->kind == TNI_TYPE_BOOL) {
        out->tag = TN_TAG_BOOL_LIST;
        out->u.bools = data;
    } else if (element->kind == TNI_TYPE_COMPLEX) {
        out->tag = TN_TAG_LIST;
        out->u.values = data;
    } else {
        out->tag = TN_TAG_INT_LIST;
        out->u.ints = data;
    }
    return TN_OK;
}

/* The value that began with @p token and ends before the present one does not fit. */
static tn_status misfit(tni_parser *p, tni_token token, const tni_schema_type *type)
{
    tni_str s = TNI_STR_INIT;
    char found[TNI_QUOTE_TEXT];
    token.kind = TNI_TOKEN_IDENT;
    token.n = p->lex.cur.at - token.at;
    while (token.n > 1 && p->lex.text[token.at + token.n - 1] == ' ')
        token.n--;
    tni_schema_type_print(type, &s);
    tn_status status =
        tni_lex_fail(&p->lex, token, TNI_WHERE, "the default value %s is no value of type '%s'",
                     tni_token_quote(&p->lex, token, found), tni_str_get(&s));
    tni_str_clear(&s);
    return status;
}

/* Lists that a default value can be written for. */
static tn_status check_element(tni_parser *p, const tni_schema_type *element)
{
    switch (element->kind) {
    case TNI_TYPE_INT:
    case TNI_TYPE_SYMINT:
    case TNI_TYPE_SCALAR_TYPE:
    case TNI_TYPE_FLOAT:
    case TNI_TYPE_BOOL:
    case TNI_TYPE_COMPLEX:
        return TN_OK;
    default:
        return tni_lex_fail(&p->lex, p->lex.cur, TNI_WHERE,
                            "lists are only supported for float, int, bool and complex types as a "
                            "default value,");
    }
}

/* "[" [ constant { "," constant } ] "]" */
static tn_status list(tni_parser *p, const tni_schema_type *element, int fixed_n, tn_value *out)
{
    tn_value values[TNI_SCHEMA_MAX_LIST];
    uint32_t n = 0;
    tni_lexer *lex = &p->lex;
    tni_lex_next(lex);
    for (bool more = lex->cur.kind != ']'; more; more = tni_lex_skip(lex, ',')) {
        tni_token token = lex->cur;
        if (n == TNI_SCHEMA_MAX_LIST)
            return tni_lex_fail(lex, token, TNI_WHERE, "a default value of more than %d elements",
                                TNI_SCHEMA_MAX_LIST);
        TN_TRY(constant(p, element, &values[n]));
        if (!tni_value_fits(&values[n++], element))
            return misfit(p, token, element);
    }
    TN_TRY(tni_lex_expect(lex, ']', "',' or ']'"));
    bool equal = n > 0 && values[0].tag == TN_TAG_INT;
    for (uint32_t i = 1; i < n && equal; i++)
        equal = same_constant(&values[0], &values[i]);
    if (equal && fixed_n > 0 && n == (uint32_t)fixed_n) {
        *out = values[0];
        return TN_OK;
    }
    return pack(p, element, values, n, out);
}

/* One constant for a sized list: an int stays, anything else becomes the list. */
static tn_status spread(tni_parser *p, const tni_schema_type *element, int n, tn_value *value)
{
    tn_value values[TNI_SCHEMA_MAX_LIST];
    if (value->tag == TN_TAG_INT)
        return TN_OK;
    for (int i = 0; i < n; i++)
        values[i] = *value;
    return pack(p, element, values, (uint32_t)n, value);
}

tn_status tni_parse_default(tni_parser *p, tni_schema_arg *arg)
{
    tni_lexer *lex = &p->lex;
    tni_token token = lex->cur;
    const tni_schema_type *type = unwrap(arg->type);
    bool is_optional = type != arg->type;
    bool is_list = type->kind == TNI_TYPE_LIST;
    if (is_list && token.kind == '[') {
        TN_TRY(check_element(p, type->children[0]));
        TN_TRY(list(p, type->children[0], arg->fixed_n, &arg->default_value));
    } else if (is_list && arg->fixed_n > 0 && !tni_token_is(lex, token, "None")) {
        const tni_schema_type *element = type->children[0];
        TN_TRY(check_element(p, element));
        TN_TRY(constant(p, element, &arg->default_value));
        if (!tni_value_fits(&arg->default_value, element))
            return misfit(p, token, arg->type);
        TN_TRY(spread(p, element, arg->fixed_n, &arg->default_value));
    } else {
        TN_TRY(constant(p, arg->type, &arg->default_value));
        bool none = arg->default_value.tag == TN_TAG_NONE;
        /* None also stands for "no tensor" and "the default generator". */
        bool absent = none && (type->kind == TNI_TYPE_TENSOR || type->kind == TNI_TYPE_GENERATOR ||
                               (type->kind == TNI_TYPE_NAMED && !strcmp(type->name, "Quantizer")));
        bool single = !is_list || (none && is_optional);
        if (!absent && (!single || !tni_value_fits(&arg->default_value, arg->type)))
            return misfit(p, token, arg->type);
    }
    arg->has_default = true;
    return TN_OK;
}
