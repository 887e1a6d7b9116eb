/* SPDX-License-Identifier: MIT */
/* Reading one argument as people write it; see Note [Argument literals] in schema.h.
 *
 *   value  : None | True | False | number | STRING | word | tensor
 *          | "[" [ value { "," value } ] "]" | "(" [ value { "," value } [ "," ] ] ")"
 *   number : [ "-" ] (NUMBER | "inf" | "nan") [ ("+" | "-") NUMBER "j" ]
 *   word   : [ "torch" "." ] IDENT | IDENT ":" INT
 *   tensor : [ device ] DTYPE "[" [ INT { "," INT } ] "]" { "." modifier } [ "=" value ]
 *
 * The values are borrowed: they live as long as the reader. */
#include "op/literal.h"

#include <math.h>
#include <string.h>
#include "core/tensor.h"
#include "op/lexer.h"
#include "op/number.h"
#include "op/schema.h"

enum { MAX_NESTING = 32 };

/* A tensor that was made, to be let go when reading is over. */
typedef struct tni_made {
    struct tni_made *next;
    tn_tensor *tensor;
} tni_made;

tn_status tni_reader_begin(tni_reader *r, const char *text)
{
    *r = (tni_reader){.arena = tni_arena_make(0)};
    return tni_lex_begin(&r->lex, text, "argument text");
}

void tni_reader_end(tni_reader *r)
{
    for (tni_made *m = r->tensors; m; m = m->next)
        tn_tensor_unref(m->tensor);
    tni_arena_clear(&r->arena);
}

tn_status tni_reader_nomem(void)
{
    TN_FAIL(TN_NOMEM, "cannot allocate memory for arguments");
}

const tni_schema_type *tni_wanted_type(const tni_schema_type *type)
{
    if (type && type->kind == TNI_TYPE_OPTIONAL)
        type = type->children[0];
    if (type && (type->kind == TNI_TYPE_VARIABLE || type->kind == TNI_TYPE_UNION ||
                 (type->kind == TNI_TYPE_NAMED && strcmp(type->name, "Any") == 0)))
        return NULL;
    return type;
}

static bool wants(const tni_schema_type *type, tni_type_kind kind)
{
    return type && type->kind == kind;
}

/* ---- numbers ---- */

/* The present token as a number; @p is_int tells which of the two it is. */
static tn_status magnitude(tni_reader *r, bool negative, double *f, int64_t *i, bool *is_int,
                           bool *imaginary)
{
    tni_lexer *lex = &r->lex;
    tni_token token = lex->cur;
    const char *text = lex->text + token.at;
    *is_int = *imaginary = false;
    if (tni_token_is(lex, token, "inf") || tni_token_is(lex, token, "nan")) {
        *f = text[0] == 'i' ? (double)INFINITY : (double)NAN;
    } else if (token.kind == TNI_TOKEN_NUMBER) {
        *imaginary = text[token.n - 1] == 'j';
        size_t n = token.n - *imaginary;
        *is_int =
            !*imaginary && !memchr(text, '.', n) && !memchr(text, 'e', n) && !memchr(text, 'E', n);
        bool good = *is_int ? tni_number_int(text, n, negative, i) : tni_number_double(text, n, f);
        if (!good)
            return tni_lex_fail(lex, token, TNI_WHERE, "the number %.*s is out of range",
                                token.n < TNI_NUMBER_TEXT ? (int)token.n : TNI_NUMBER_TEXT, text);
    } else {
        return tni_lex_fail_expected(lex, token, "a number", NULL, TNI_WHERE);
    }
    *f = *is_int ? (double)*i : negative ? -*f : *f;
    tni_lex_next(lex);
    return TN_OK;
}

static tn_status read_number(tni_reader *r, const tni_schema_type *want, tn_value *out)
{
    tni_lexer *lex = &r->lex;
    double re = 0, im = 0;
    int64_t i = 0;
    bool is_int, imaginary;
    bool negative = tni_lex_skip(lex, '-');
    TN_TRY(magnitude(r, negative, &re, &i, &is_int, &imaginary));
    if (imaginary) {
        im = re;
        re = 0;
    } else if (lex->cur.kind == '+' || lex->cur.kind == '-') {
        bool minus = lex->cur.kind == '-', again;
        tni_lex_next(lex);
        tni_token token = lex->cur;
        TN_TRY(magnitude(r, minus, &im, &i, &again, &imaginary));
        if (!imaginary)
            return tni_lex_fail_expected(lex, token, "an imaginary part", NULL, TNI_WHERE);
    }
    if (imaginary || wants(want, TNI_TYPE_COMPLEX)) {
        *out = tn_value_scalar(tn_complex(re, im));
    } else if (is_int && !wants(want, TNI_TYPE_FLOAT)) {
        *out = tn_value_int(i);
    } else {
        *out = tn_value_float(re);
    }
    return TN_OK;
}

/* ---- tensors ---- */

/* A NUL-terminated copy of a short piece of the text; NULL when it is long. */
static const char *short_text(const tni_lexer *lex, tni_token token, char *buffer, size_t n)
{
    if (token.n >= n)
        return NULL;
    memcpy(buffer, lex->text + token.at, token.n);
    buffer[token.n] = '\0';
    return buffer;
}

static tn_dtype token_dtype(const tni_lexer *lex, tni_token token)
{
    char buffer[32];
    const char *name = short_text(lex, token, buffer, sizeof buffer);
    return name ? tn_dtype_parse(name) : TN_DTYPE_NONE;
}

/* IDENT [ ":" INT ] */
static tn_status read_device(tni_reader *r, tn_device *out)
{
    tni_lexer *lex = &r->lex;
    tni_token token = lex->cur;
    char buffer[64];
    tni_lex_next(lex);
    if (lex->cur.kind == ':') {
        tni_lex_next(lex);
        tni_token index = lex->cur;
        TN_TRY(tni_lex_expect(lex, TNI_TOKEN_NUMBER, "the index of a device"));
        token.n = index.at + index.n - token.at;
    }
    const char *text = short_text(lex, token, buffer, sizeof buffer);
    if (!text)
        return tni_lex_fail_expected(lex, token, "a device", NULL, TNI_WHERE);
    return tn_device_parse(text, out);
}

static tn_status read_sizes(tni_reader *r, tni_tensor_literal *l)
{
    tni_lexer *lex = &r->lex;
    TN_TRY(tni_lex_expect(lex, '[', "'[' and the sizes of a tensor"));
    for (bool more = lex->cur.kind != ']'; more; more = tni_lex_skip(lex, ',')) {
        tni_token token = lex->cur;
        if (l->ndim == TN_MAX_DIMS)
            return tni_lex_fail(lex, token, TNI_WHERE, "a tensor of more than %d dimensions",
                                TN_MAX_DIMS);
        if (token.kind != TNI_TOKEN_NUMBER ||
            !tni_number_int(lex->text + token.at, token.n, false, &l->sizes[l->ndim]))
            return tni_lex_fail_expected(lex, token, "the size of a dimension", NULL, TNI_WHERE);
        l->ndim++;
        tni_lex_next(lex);
    }
    return tni_lex_expect(lex, ']', "',' or ']'");
}

static tn_status read_modifier(tni_reader *r, tni_tensor_literal *l)
{
    static const struct {
        const char *name;
        tni_literal_layout layout;
    } layouts[] = {{"t", TNI_LITERAL_T},
                   {"strided", TNI_LITERAL_STRIDED},
                   {"expanded", TNI_LITERAL_EXPANDED},
                   {"cl", TNI_LITERAL_CHANNELS_LAST}};
    tni_lexer *lex = &r->lex;
    tni_token token = lex->cur;
    tni_lex_next(lex);
    if (tni_token_is(lex, token, "offset")) {
        l->offset = true;
        return TN_OK;
    }
    if (tni_token_is(lex, token, "grad")) {
        l->grad = true;
        return TN_OK;
    }
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
        if (!tni_token_is(lex, token, layouts[i].name))
            continue;
        if (l->layout != TNI_LITERAL_PLAIN)
            return tni_lex_fail(lex, token, TNI_WHERE,
                                "a tensor has one of .t, .strided, .expanded and .cl at most,");
        l->layout = layouts[i].layout;
        return TN_OK;
    }
    return tni_lex_fail_expected(lex, token, "t, strided, expanded, cl, offset or grad", NULL,
                                 TNI_WHERE);
}

static tn_status read_fill(tni_reader *r, tni_tensor_literal *l)
{
    tni_token token = r->lex.cur;
    tn_value value;
    TN_TRY(tni_read_value(r, NULL, &value));
    if (value.tag != TN_TAG_INT && value.tag != TN_TAG_FLOAT && value.tag != TN_TAG_BOOL &&
        value.tag != TN_TAG_COMPLEX)
        return tni_lex_fail_expected(&r->lex, token, "a number to fill the tensor with", NULL,
                                     TNI_WHERE);
    l->has_fill = true;
    return tn_value_to_scalar(&value, &l->fill);
}

/* Behind the device. */
static tn_status read_tensor(tni_reader *r, tn_device device, tn_value *out)
{
    tni_lexer *lex = &r->lex;
    tni_tensor_literal l = {.device = device, .dtype = token_dtype(lex, lex->cur)};
    if (l.dtype == TN_DTYPE_NONE)
        return tni_lex_fail_expected(lex, lex->cur, "a dtype", NULL, TNI_WHERE);
    tni_lex_next(lex);
    TN_TRY(read_sizes(r, &l));
    while (tni_lex_skip(lex, '.'))
        TN_TRY(read_modifier(r, &l));
    if (tni_lex_skip(lex, '='))
        TN_TRY(read_fill(r, &l));
    tni_made *m = tni_arena_alloc(&r->arena, sizeof *m);
    if (!m)
        return tni_reader_nomem();
    TN_TRY(tni_literal_make(&l, &m->tensor));
    m->next = r->tensors;
    r->tensors = m;
    *out = tn_value_tensor(m->tensor);
    return TN_OK;
}

/* ---- words ---- */

static bool read_format(const tni_lexer *lex, tni_token token, tn_value *out)
{
    static const char *const formats[] = {
        [TN_FORMAT_CONTIGUOUS] = "contiguous_format",
        [TN_FORMAT_PRESERVE] = "preserve_format",
        [TN_FORMAT_CHANNELS_LAST] = "channels_last",
        [TN_FORMAT_CHANNELS_LAST_3D] = "channels_last_3d",
    };
    for (int i = 0; i < (int)(sizeof formats / sizeof *formats); i++) {
        if (tni_token_is(lex, token, formats[i])) {
            *out = tn_value_int(i);
            return true;
        }
    }
    return false;
}

/* A word that stands for a number: dtype, memory format or layout, as far as the type wants one. */
static bool read_named_number(const tni_lexer *lex, tni_token token, const tni_schema_type *want,
                              tn_value *out)
{
    if (!want || want->kind == TNI_TYPE_SCALAR_TYPE) {
        tn_dtype dtype = token_dtype(lex, token);
        if (dtype != TN_DTYPE_NONE) {
            *out = tn_value_int(dtype);
            return true;
        }
    }
    if ((!want || want->kind == TNI_TYPE_MEMORY_FORMAT) && read_format(lex, token, out))
        return true;
    if ((!want || want->kind == TNI_TYPE_LAYOUT) && tni_token_is(lex, token, "strided")) {
        *out = tn_value_int(TN_LAYOUT_STRIDED);
        return true;
    }
    return false;
}

static tn_status read_text(tni_reader *r, tni_token token, const tni_schema_type *want,
                           tn_value *out)
{
    const char *text;
    uint32_t n;
    if (token.kind == TNI_TOKEN_STRING) {
        TN_TRY(tni_lex_string(&r->lex, token, &r->arena, &text, &n));
    } else {
        text = tni_arena_text(&r->arena, r->lex.text + token.at, token.n);
        if (!text)
            return tni_reader_nomem();
    }
    if (wants(want, TNI_TYPE_DEVICE)) {
        tn_device device;
        TN_TRY(tn_device_parse(text, &device));
        *out = tn_value_device(device);
    } else {
        *out = tn_value_string(text);
    }
    return TN_OK;
}

static tn_status read_word(tni_reader *r, const tni_schema_type *want, tn_value *out)
{
    tni_lexer *lex = &r->lex;
    if (tni_token_is(lex, lex->cur, "torch") && tni_lex_peek(lex).kind == '.') {
        tni_lex_next(lex);
        tni_lex_next(lex);
    }
    tni_token token = lex->cur, next = tni_lex_peek(lex);
    if (token.kind != TNI_TOKEN_IDENT)
        return tni_lex_fail_expected(lex, token, "a value", NULL, TNI_WHERE);
    if (next.kind == '[')
        return read_tensor(r, TN_CPU, out);
    if (wants(want, TNI_TYPE_STRING)) {
        tni_lex_next(lex);
        return read_text(r, token, want, out);
    }
    if (tni_token_is(lex, token, "inf") || tni_token_is(lex, token, "nan"))
        return read_number(r, want, out);
    if (read_named_number(lex, token, want, out)) {
        tni_lex_next(lex);
        return TN_OK;
    }
    if (want && want->kind != TNI_TYPE_DEVICE && want->kind != TNI_TYPE_TENSOR &&
        want->kind != TNI_TYPE_LIST)
        return tni_lex_fail_expected(lex, token, "a value", NULL, TNI_WHERE);
    tn_device device;
    TN_TRY(read_device(r, &device));
    if (lex->cur.kind == TNI_TOKEN_IDENT)
        return read_tensor(r, device, out);
    *out = tn_value_device(device);
    return TN_OK;
}

/* ---- lists ---- */

tn_status tni_read_pack(tni_reader *r, const tni_schema_type *element, const tn_value *values,
                        uint32_t n, tn_value *out)
{
    bool tensors = true, ints = true, floats = true, bools = true;
    for (uint32_t i = 0; i < n; i++) {
        uint8_t tag = values[i].tag;
        tensors = tensors && (tag == TN_TAG_TENSOR || tag == TN_TAG_NONE);
        ints = ints && tag == TN_TAG_INT;
        floats = floats && (tag == TN_TAG_FLOAT || tag == TN_TAG_INT);
        bools = bools && tag == TN_TAG_BOOL;
    }
    if (element && element->kind == TNI_TYPE_OPTIONAL)
        element = element->children[0]->kind == TNI_TYPE_TENSOR ? element->children[0] : element;
    if (element) {
        tensors = tensors && element->kind == TNI_TYPE_TENSOR;
        ints = ints && (element->kind == TNI_TYPE_INT || element->kind == TNI_TYPE_SYMINT ||
                        element->kind == TNI_TYPE_SCALAR_TYPE);
        floats = floats && element->kind == TNI_TYPE_FLOAT;
        bools = bools && element->kind == TNI_TYPE_BOOL;
    }
    void *data = tni_arena_alloc(&r->arena, n * sizeof(int64_t));
    if (!data)
        return tni_reader_nomem();
    if (ints) {
        for (uint32_t i = 0; i < n; i++)
            ((int64_t *)data)[i] = values[i].u.i;
        *out = tn_value_ints(data, n);
    } else if (floats) {
        for (uint32_t i = 0; i < n; i++)
            ((double *)data)[i] =
                values[i].tag == TN_TAG_INT ? (double)values[i].u.i : values[i].u.f;
        *out = tn_value_floats(data, n);
    } else if (bools) {
        for (uint32_t i = 0; i < n; i++)
            ((bool *)data)[i] = values[i].u.i != 0;
        *out = tn_value_bools(data, n);
    } else if (tensors) {
        for (uint32_t i = 0; i < n; i++)
            ((tn_tensor **)data)[i] = values[i].tag == TN_TAG_TENSOR ? values[i].u.tensor : NULL;
        *out = tn_value_tensors(data, n);
    } else {
        *out = (tn_value){.tag = TN_TAG_LIST, .count = n, .u.values = values};
    }
    return TN_OK;
}

static tn_status read_list(tni_reader *r, const tni_schema_type *want, tn_value *out)
{
    tni_lexer *lex = &r->lex;
    bool round = lex->cur.kind == '(';
    int close = round ? ')' : ']';
    uint32_t n = 0, room = 4;
    tn_value *values = tni_arena_alloc(&r->arena, room * sizeof *values);
    if (!values)
        return tni_reader_nomem();
    if (r->level == MAX_NESTING)
        return tni_lex_fail(lex, lex->cur, TNI_WHERE, "lists within lists deeper than %d",
                            MAX_NESTING);
    r->level++;
    tni_lex_next(lex);
    for (bool more = lex->cur.kind != close; more; more = tni_lex_skip(lex, ',')) {
        if (round && n > 0 && lex->cur.kind == close) /* "(1,)" */
            break;
        if (n == room) {
            tn_value *larger = tni_arena_alloc(&r->arena, 2 * room * sizeof *values);
            if (!larger)
                return tni_reader_nomem();
            memcpy(larger, values, n * sizeof *values);
            values = larger;
            room *= 2;
        }
        const tni_schema_type *element =
            wants(want, TNI_TYPE_LIST)                                      ? want->children[0]
            : wants(want, TNI_TYPE_TUPLE) && n < (uint32_t)want->n_children ? want->children[n]
                                                                            : NULL;
        TN_TRY(tni_read_value(r, element, &values[n]));
        n++;
    }
    TN_TRY(tni_lex_expect(lex, close, round ? "',' or ')'" : "',' or ']'"));
    r->level--;
    if (wants(want, TNI_TYPE_TUPLE)) {
        *out = (tn_value){.tag = TN_TAG_LIST, .count = n, .u.values = values};
        return TN_OK;
    }
    return tni_read_pack(r, wants(want, TNI_TYPE_LIST) ? want->children[0] : NULL, values, n, out);
}

tn_status tni_read_value(tni_reader *r, const tni_schema_type *type, tn_value *out)
{
    const tni_schema_type *want = tni_wanted_type(type);
    tni_lexer *lex = &r->lex;
    tni_token token = lex->cur;
    /* One number for a list is read as an element of it. */
    const tni_schema_type *number =
        wants(want, TNI_TYPE_LIST) ? tni_wanted_type(want->children[0]) : want;
    switch (token.kind) {
    case '[':
    case '(':
        return read_list(r, want, out);
    case '-':
    case TNI_TOKEN_NUMBER:
        return read_number(r, number, out);
    case TNI_TOKEN_STRING:
        tni_lex_next(lex);
        return read_text(r, token, want, out);
    case TNI_TOKEN_IDENT:
        break;
    default:
        return tni_lex_fail_expected(lex, token, "a value", NULL, TNI_WHERE);
    }
    if (tni_token_is_name(lex, token))
        return read_word(r, want, out);
    tni_lex_next(lex);
    if (tni_token_is(lex, token, "True") || tni_token_is(lex, token, "False"))
        *out = tn_value_bool(tni_token_is(lex, token, "True"));
    else
        *out = tn_value_none();
    return TN_OK;
}
