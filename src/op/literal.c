/* SPDX-License-Identifier: MIT */
/* Arguments as people write them: one value, or all of a call with its defaults; the messages are
 * the reference's. Reading is literal_read.c's business; what is returned here is a deep copy. */
#include <string.h>
#include "base/str.h"
#include "op/literal.h"

/* ---- one value ---- */

/* What was read from @p from up to the present token, as messages quote it. */
static char *quote_from(const tni_reader *r, tni_token from, char *buffer)
{
    from.kind = TNI_TOKEN_IDENT;
    from.n = r->lex.cur.at - from.at;
    while (from.n > 1 && r->lex.text[from.at + from.n - 1] == ' ')
        from.n--;
    return tni_token_quote(&r->lex, from, buffer);
}

static tn_status read_one(tni_reader *r, const char *text, const tni_schema_type *type,
                          tn_value *out)
{
    tn_value value;
    char found[TNI_QUOTE_TEXT];
    TN_TRY(tni_reader_begin(r, text));
    tni_token start = r->lex.cur;
    TN_TRY(tni_read_value(r, type, &value));
    TN_TRY(tni_lex_end(&r->lex));
    if (type && !tni_value_fits(&value, type)) {
        tni_str s = TNI_STR_INIT;
        tni_schema_type_print(type, &s);
        tn_status status =
            tni_fail(TN_INVALID, TNI_WHERE,
                     "Expected a value of type '%s' but instead found type '%s'. Value: %s",
                     tni_str_get(&s), tn_tag_name((tn_tag)value.tag), quote_from(r, start, found));
        tni_str_clear(&s);
        return status;
    }
    return tn_value_copy(&value, out);
}

tn_status tni_value_parse(const char *text, const tni_schema_type *type, tn_value *out)
{
    tni_reader r;
    tn_status status = read_one(&r, text, type, out);
    tni_reader_end(&r);
    return status;
}

/* ---- all arguments of a call ---- */

/* Fail with a message that ends in the operator's declaration. */
static tn_status refuse(const tni_schema *schema, const tni_str *message, const char *where)
{
    char *text = NULL;
    TN_TRY(tni_schema_print(schema, &text));
    tn_status status = message->failed ? tni_reader_nomem()
                                       : tni_fail(TN_INVALID, where, "%s() %sDeclaration: %s",
                                                  schema->name, tni_str_get(message), text);
    tni_free(text);
    return status;
}

#define REFUSE(schema, ...)                                        \
    do {                                                           \
        tni_str refuse_s_ = TNI_STR_INIT;                          \
        tni_str_addf(&refuse_s_, __VA_ARGS__);                     \
        tn_status refuse_ = refuse(schema, &refuse_s_, TNI_WHERE); \
        tni_str_clear(&refuse_s_);                                 \
        return refuse_;                                            \
    } while (0)

/* One number that fits the elements of a sized list becomes the list. */
static tn_status spread(tni_reader *r, const tni_schema_arg *arg, tn_value *value)
{
    const tni_schema_type *type = tni_wanted_type(arg->type);
    if (!type || type->kind != TNI_TYPE_LIST || arg->fixed_n == 0 ||
        !tni_value_fits(value, type->children[0]) ||
        (value->tag != TN_TAG_INT && value->tag != TN_TAG_FLOAT && value->tag != TN_TAG_BOOL &&
         value->tag != TN_TAG_COMPLEX))
        return TN_OK;
    tn_value *values = tni_arena_alloc(&r->arena, (size_t)arg->fixed_n * sizeof *values);
    if (!values)
        return tni_reader_nomem();
    for (int i = 0; i < arg->fixed_n; i++)
        values[i] = *value;
    return tni_read_pack(r, type->children[0], values, (uint32_t)arg->fixed_n, value);
}

static tn_status read_argument(tni_reader *r, const tni_schema *schema, int i, tn_value *out)
{
    const tni_schema_arg *arg = &schema->args[i];
    char found[TNI_QUOTE_TEXT];
    tni_token start = r->lex.cur;
    TN_TRY(tni_read_value(r, arg->type, out));
    TN_TRY(spread(r, arg, out));
    if (!tni_arg_fits(out, arg)) {
        tni_str type = TNI_STR_INIT, message = TNI_STR_INIT;
        tni_schema_arg_type_print(arg, &type);
        tni_str_addf(&message,
                     "Expected a value of type '%s' for argument '%s' but instead found type "
                     "'%s'.\nPosition: %d\nValue: %s\n",
                     tni_str_get(&type), arg->name, tn_tag_name((tn_tag)out->tag), i,
                     quote_from(r, start, found));
        message.failed = message.failed || type.failed;
        tn_status status = refuse(schema, &message, TNI_WHERE);
        tni_str_clear(&type);
        tni_str_clear(&message);
        return status;
    }
    return TN_OK;
}

static bool is_keyword(const tni_lexer *lex)
{
    return lex->cur.kind == TNI_TOKEN_IDENT && tni_lex_peek(lex).kind == '=';
}

/* How many positional arguments the text goes on with, the present one included. */
static int count_positional(const tni_reader *r)
{
    tni_lexer lex = r->lex;
    int n = 1, nesting = lex.nesting;
    /* The lexer has counted a bracket that is the present token. */
    nesting -= lex.cur.kind == '(' || lex.cur.kind == '[';
    for (; lex.cur.kind != TNI_TOKEN_END; tni_lex_next(&lex)) {
        if (lex.cur.kind != ',' || lex.nesting != nesting)
            continue;
        tni_lex_next(&lex);
        if (is_keyword(&lex))
            break;
        n++;
    }
    return n;
}

static tn_status too_many(tni_reader *r, const tni_schema *schema, int positional)
{
    int n = positional + count_positional(r);
    if (positional == schema->nargs)
        REFUSE(schema, "expected at most %d argument(s) but received %d argument(s). ", positional,
               n);
    REFUSE(schema, "takes %d positional argument(s) but %d was/were given. ", positional, n);
}

/* Which argument comes next: by its name, or @p position, which is -1 after one by name. */
static tn_status choose(tni_reader *r, const tni_schema *schema, int position, uint64_t given,
                        int *out)
{
    tni_lexer *lex = &r->lex;
    tni_token token = lex->cur;
    if (is_keyword(lex)) {
        char found[TNI_QUOTE_TEXT];
        int i = 0;
        while (i < schema->nargs && !tni_token_is(lex, token, schema->args[i].name))
            i++;
        if (i == schema->nargs)
            REFUSE(schema, "Unknown keyword argument %s for operator '%s'. ",
                   tni_token_quote(lex, token, found), schema->full);
        if (given >> i & 1)
            REFUSE(schema, "got multiple values for argument '%s'. ", schema->args[i].name);
        tni_lex_next(lex);
        tni_lex_next(lex);
        *out = i;
        return TN_OK;
    }
    if (position < 0)
        return tni_lex_fail(lex, token, TNI_WHERE,
                            "a positional argument follows a keyword argument");
    if (position >= schema->nargs || schema->args[position].keyword_only)
        return too_many(r, schema, position);
    *out = position;
    return TN_OK;
}

static tn_status read_all(tni_reader *r, const tni_schema *schema, const char *text,
                          tn_value *values)
{
    TN_TRY(tni_reader_begin(r, text));
    tni_lexer *lex = &r->lex;
    uint64_t given = 0;
    int position = 0;
    for (bool more = lex->cur.kind != TNI_TOKEN_END; more; more = tni_lex_skip(lex, ',')) {
        int i = 0;
        bool by_name = is_keyword(lex);
        TN_TRY(choose(r, schema, position, given, &i));
        TN_TRY(read_argument(r, schema, i, &values[i]));
        given |= UINT64_C(1) << i;
        position = by_name ? -1 : position + 1;
    }
    TN_TRY(tni_lex_end(lex));
    for (int i = 0; i < schema->nargs; i++) {
        if (given >> i & 1)
            continue;
        if (!schema->args[i].has_default)
            REFUSE(schema, "is missing value for argument '%s'. ", schema->args[i].name);
        values[i] = schema->args[i].default_value;
        TN_TRY(spread(r, &schema->args[i], &values[i]));
    }
    return TN_OK;
}

static tn_status copy_all(const tn_value *values, int n, tn_value *out)
{
    for (int i = 0; i < n; i++) {
        tn_status status = tn_value_copy(&values[i], &out[i]);
        if (status != TN_OK) {
            while (i-- > 0)
                tn_value_clear(&out[i]);
            return status;
        }
    }
    return TN_OK;
}

tn_status tni_args_parse(const tni_schema *schema, const char *text, tn_value *args)
{
    tni_reader r;
    tn_value values[TNI_SCHEMA_MAX_ARGS], copies[TNI_SCHEMA_MAX_ARGS];
    tn_status status = read_all(&r, schema, text, values);
    if (status == TN_OK)
        status = copy_all(values, schema->nargs, copies);
    tni_reader_end(&r);
    if (status == TN_OK)
        memcpy(args, copies, (size_t)schema->nargs * sizeof *args);
    return status;
}
