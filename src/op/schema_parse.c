/* SPDX-License-Identifier: MIT */
/* Schemas, signatures and names from text.
 *
 *   decl   : opname [ "(" [ item { "," item } ] ")" "->" rets ]
 *   opname : IDENT [ "::" IDENT ] [ "." IDENT ]
 *   item   : "*" | "..." | type [ sized ] IDENT [ "=" default ]
 *   sized  : "[" INT "]" [alias] [ "?" ]
 *   rets   : "..." | ret | "(" [ ret { "," ret } ] [ "," "..." ] ")"
 *   ret    : type [ sized ] [ IDENT ]
 *
 * A signature is the same from "(" on, with names optional and no defaults. */
#include "op/parser.h"

#include <stdio.h>
#include <string.h>
#include "op/number.h"

/* A schema lies in its own arena. */
typedef struct owned_schema {
    tni_schema schema;
    tni_arena arena;
} owned_schema;

/* What is being collected; the arrays move into the arena at the end. */
typedef struct draft {
    tni_schema schema;
    tni_schema_arg args[TNI_SCHEMA_MAX_ARGS];
    tni_schema_arg rets[TNI_SCHEMA_MAX_ARGS];
} draft;

void tni_schema_free(tni_schema *schema)
{
    if (schema)
        tni_arena_clear(&((owned_schema *)schema)->arena);
}

static const char *token_text(tni_parser *p, tni_token token)
{
    return tni_arena_text(p->arena, p->lex.text + token.at, token.n);
}

/* "ns::name.overload" into the schema's three names. */
static tn_status op_name(tni_parser *p, tni_schema *schema)
{
    tni_lexer *lex = &p->lex;
    tni_token token;
    char full[3 * TNI_IDENT_MAX + 8];
    size_t n = 0;
    TN_TRY(tni_lex_name(lex, "the name of an operator", &token));
    memcpy(full, lex->text + token.at, token.n);
    n += token.n;
    if (tni_lex_skip(lex, ':')) {
        p->type_variables = tni_token_is(lex, token, "aten") || tni_token_is(lex, token, "prim");
        TN_TRY(tni_lex_expect(lex, ':', "'::' after the namespace"));
        TN_TRY(tni_lex_name(lex, "the name of an operator", &token));
        memcpy(full + n, "::", 2);
        memcpy(full + n + 2, lex->text + token.at, token.n);
        n += token.n + 2;
    }
    schema->name = tni_arena_text(p->arena, full, n);
    schema->overload = "";
    if (tni_lex_skip(lex, '.')) {
        TN_TRY(tni_lex_name(lex, "the name of an overload", &token));
        const char *text = lex->text + token.at;
        if (tni_token_is(lex, token, "default") || (token.n >= 2 && memcmp(text, "__", 2) == 0))
            return tni_lex_fail(lex, token, TNI_WHERE,
                                "%.*s is not a legal overload name for aten operators,",
                                (int)token.n, text);
        full[n] = '.';
        memcpy(full + n + 1, text, token.n);
        n += token.n + 1;
        schema->overload = token_text(p, token);
    }
    schema->full =
        schema->overload && *schema->overload ? tni_arena_text(p->arena, full, n) : schema->name;
    if (!schema->name || !schema->overload || !schema->full)
        return tni_parse_nomem();
    return TN_OK;
}

/* Some annotation inside says "!". */
static bool type_is_written(const tni_schema_type *type)
{
    if (type->alias && type->alias->write)
        return true;
    for (int i = 0; i < type->n_children; i++) {
        if (type_is_written(type->children[i]))
            return true;
    }
    return false;
}

static bool type_is_annotated(const tni_schema_type *type)
{
    if (type->alias)
        return true;
    for (int i = 0; i < type->n_children; i++) {
        if (type_is_annotated(type->children[i]))
            return true;
    }
    return false;
}

/* type [ sized ] */
static tn_status sized_type(tni_parser *p, tni_schema_arg *arg)
{
    tni_lexer *lex = &p->lex;
    int depth;
    TN_TRY(tni_parse_type(p, &arg->type, &depth));
    if (tni_lex_skip(lex, '[')) {
        tni_token size = lex->cur;
        int64_t n;
        const tni_alias *alias;
        TN_TRY(tni_lex_expect(lex, TNI_TOKEN_NUMBER, "']' or the size of a list"));
        if (!tni_number_int(lex->text + size.at, size.n, false, &n) || n < 1 ||
            n > TNI_SCHEMA_MAX_LIST)
            return tni_lex_fail(lex, size, TNI_WHERE, "the size of a list is %.*s, not 1 to %d,",
                                size.n < TNI_NUMBER_TEXT ? (int)size.n : TNI_NUMBER_TEXT,
                                lex->text + size.at, TNI_SCHEMA_MAX_LIST);
        TN_TRY(tni_lex_expect(lex, ']', "']'"));
        arg->fixed_n = (int)n;
        TN_TRY(tni_parse_wrap(p, TNI_TYPE_LIST, &arg->type, &depth));
        TN_TRY(tni_parse_alias(p, &alias));
        TN_TRY(tni_parse_annotate(p, &arg->type, alias));
        if (tni_lex_skip(lex, '?'))
            TN_TRY(tni_parse_wrap(p, TNI_TYPE_OPTIONAL, &arg->type, &depth));
    }
    arg->is_write = type_is_written(arg->type);
    return TN_OK;
}

/* "_0", "_1", …: what arguments and results of a signature are called. */
static tn_status number_name(tni_parser *p, int i, const char **out)
{
    char name[16];
    int n = snprintf(name, sizeof name, "_%d", i);
    *out = tni_arena_text(p->arena, name, (size_t)n);
    return *out ? TN_OK : tni_parse_nomem();
}

static tn_status argument(tni_parser *p, draft *d, bool keyword_only, bool named)
{
    tni_lexer *lex = &p->lex;
    tni_schema *s = &d->schema;
    tni_schema_arg *arg = &d->args[s->nargs];
    tni_token start = lex->cur, name = {0};
    *arg = (tni_schema_arg){.keyword_only = keyword_only};
    TN_TRY(sized_type(p, arg));
    arg->is_out = keyword_only && arg->is_write;
    if (named || lex->cur.kind == TNI_TOKEN_IDENT) {
        TN_TRY(tni_lex_name(lex, "the name of an argument", &name));
        arg->name = token_text(p, name);
        if (!arg->name)
            return tni_parse_nomem();
    } else {
        TN_TRY(number_name(p, s->nargs, &arg->name));
    }
    for (int i = 0; i < s->nargs; i++) {
        if (strcmp(d->args[i].name, arg->name) == 0)
            return tni_lex_fail(lex, name.n ? name : start, TNI_WHERE,
                                "two arguments are named '%.60s'", arg->name);
    }
    if (lex->cur.kind == '=') {
        if (!named)
            return tni_lex_fail(lex, lex->cur, TNI_WHERE,
                                "a default value, which only schemas have,");
        tni_lex_next(lex);
        TN_TRY(tni_parse_default(p, arg));
    }
    /* Python's rule; keyword-only arguments and, for old times' sake, lists are free of it. */
    bool after_default = false;
    for (int i = 0; i < s->nargs; i++)
        after_default = after_default || d->args[i].has_default;
    if (after_default && !arg->has_default && !keyword_only && arg->type->kind != TNI_TYPE_LIST)
        return tni_lex_fail(lex, start, TNI_WHERE,
                            "Non-default positional argument follows default argument. Parameter "
                            "%.60s",
                            arg->name);
    s->nargs++;
    return TN_OK;
}

static tn_status too_many(tni_parser *p, tni_token token, const char *what)
{
    return tni_lex_fail(&p->lex, token, TNI_WHERE,
                        "The schema has %d %s; at most %d are supported,", TNI_SCHEMA_MAX_ARGS + 1,
                        what, TNI_SCHEMA_MAX_ARGS);
}

/* "(" [ item { "," item } ] ")" */
static tn_status arguments(tni_parser *p, draft *d, bool named)
{
    tni_lexer *lex = &p->lex;
    tni_schema *s = &d->schema;
    bool keyword_only = false;
    TN_TRY(tni_lex_expect(lex, '(', "'('"));
    for (bool more = lex->cur.kind != ')'; more; more = tni_lex_skip(lex, ',')) {
        tni_token token = lex->cur;
        if (s->vararg)
            return tni_lex_fail(lex, token, TNI_WHERE,
                                "... must be the last element of the argument list,");
        if (named && !keyword_only && tni_lex_skip(lex, '*')) {
            keyword_only = true;
        } else if (tni_lex_skip(lex, TNI_TOKEN_DOTS)) {
            s->vararg = true;
            for (int i = 0; i < s->nargs; i++) {
                if (d->args[i].has_default)
                    return tni_lex_fail(lex, token, TNI_WHERE,
                                        "schemas with vararg (...) can't have default value args,");
            }
        } else if (s->nargs == TNI_SCHEMA_MAX_ARGS) {
            return too_many(p, token, "arguments");
        } else {
            TN_TRY(argument(p, d, keyword_only, named));
        }
    }
    return tni_lex_expect(lex, ')', "',' or ')'");
}

static tn_status result(tni_parser *p, draft *d, bool named)
{
    tni_lexer *lex = &p->lex;
    tni_schema *s = &d->schema;
    tni_schema_arg *ret = &d->rets[s->nrets];
    if (s->nrets == TNI_SCHEMA_MAX_ARGS)
        return too_many(p, lex->cur, "returns");
    *ret = (tni_schema_arg){.name = ""};
    TN_TRY(sized_type(p, ret));
    if (lex->cur.kind == TNI_TOKEN_IDENT) {
        tni_token name;
        TN_TRY(tni_lex_name(lex, "the name of a result", &name));
        ret->name = token_text(p, name);
        if (!ret->name)
            return tni_parse_nomem();
    } else if (!named) {
        TN_TRY(number_name(p, s->nrets, &ret->name));
    }
    s->nrets++;
    return TN_OK;
}

static tn_status results(tni_parser *p, draft *d, bool named)
{
    tni_lexer *lex = &p->lex;
    tni_schema *s = &d->schema;
    TN_TRY(tni_lex_expect(lex, TNI_TOKEN_ARROW, "'->'"));
    if (tni_lex_skip(lex, TNI_TOKEN_DOTS)) {
        s->varret = true;
        return TN_OK;
    }
    if (lex->cur.kind != '(')
        return result(p, d, named);
    tni_lex_next(lex);
    for (bool more = lex->cur.kind != ')'; more; more = tni_lex_skip(lex, ',')) {
        if (s->varret)
            return tni_lex_fail(lex, lex->cur, TNI_WHERE,
                                "... must be the last element of the return list,");
        if (tni_lex_skip(lex, TNI_TOKEN_DOTS))
            s->varret = true;
        else
            TN_TRY(result(p, d, named));
    }
    return tni_lex_expect(lex, ')', "',' or ')'");
}

static bool is_tensor(const tni_schema_type *type)
{
    if (type->kind == TNI_TYPE_OPTIONAL)
        return type->children[0]->kind == TNI_TYPE_TENSOR;
    return type->kind == TNI_TYPE_TENSOR;
}

/* Tensor, Tensor?, Tensor[] and Tensor?[]: what dispatch looks at. */
static bool is_dispatched(const tni_schema_type *type)
{
    return is_tensor(type) || (type->kind == TNI_TYPE_LIST && is_tensor(type->children[0]));
}

static bool is_generator(const tni_schema_type *type)
{
    if (type->kind == TNI_TYPE_OPTIONAL)
        type = type->children[0];
    return type->kind == TNI_TYPE_GENERATOR;
}

/* What follows from the arguments. */
static void summarize(draft *d)
{
    tni_schema *s = &d->schema;
    bool annotated = false;
    for (int i = 0; i < s->nargs; i++) {
        const tni_schema_arg *arg = &d->args[i];
        s->is_mutable = s->is_mutable || arg->is_write;
        annotated = annotated || type_is_annotated(arg->type);
        s->tensor_args |= (uint64_t)is_dispatched(arg->type) << i;
        s->generator_args |= (uint64_t)is_generator(arg->type) << i;
    }
    s->is_view = annotated && !s->is_mutable;
}

/* Move a finished draft into the arena, which then belongs to the schema. */
static tn_status finish(tni_parser *p, draft *d, tni_schema **out)
{
    tni_schema *s = &d->schema;
    summarize(d);
    owned_schema *owned = tni_arena_alloc(p->arena, sizeof *owned);
    tni_schema_arg *args = tni_arena_alloc(p->arena, (size_t)(s->nargs + s->nrets) * sizeof *args);
    if (!owned || !args)
        return tni_parse_nomem();
    memcpy(args, d->args, (size_t)s->nargs * sizeof *args);
    memcpy(args + s->nargs, d->rets, (size_t)s->nrets * sizeof *args);
    s->args = args;
    s->rets = args + s->nargs;
    owned->schema = *s;
    owned->arena = *p->arena;
    *p->arena = tni_arena_make(0);
    *out = &owned->schema;
    return TN_OK;
}

/* A guess that makes one block do for most schemas. */
static tni_arena arena_for(const char *text)
{
    return tni_arena_make(text ? 512 + 4 * strnlen(text, TNI_TEXT_MAX) : 0);
}

/* Everything of a schema behind its name. */
static tn_status declaration(tni_parser *p, draft *d, bool named, tni_schema **out)
{
    TN_TRY(arguments(p, d, named));
    TN_TRY(results(p, d, named));
    TN_TRY(tni_lex_end(&p->lex));
    return finish(p, d, out);
}

static tn_status parse_or_name(tni_parser *p, const char *text, tni_schema **out_schema,
                               char **out_name)
{
    draft d;
    d.schema = (tni_schema){0};
    TN_TRY(tni_lex_begin(&p->lex, text, "schema"));
    TN_TRY(op_name(p, &d.schema));
    TN_AUTO(tni_schema) schema = NULL;
    char *name = NULL;
    if (out_name) {
        name = tni_strdup(d.schema.full);
        if (!name)
            return tni_parse_nomem();
    }
    tn_status status = p->lex.cur.kind == '(' || !out_name ? declaration(p, &d, true, &schema)
                                                           : tni_lex_end(&p->lex);
    if (status != TN_OK) {
        tni_free(name);
        return status;
    }
    *out_schema = TN_MOVE(schema);
    if (out_name)
        *out_name = name;
    return TN_OK;
}

tn_status tni_schema_parse_or_name(const char *text, tni_schema **out_schema, char **out_name)
{
    tni_arena arena = arena_for(text);
    tni_parser p = {.arena = &arena};
    tn_status status = parse_or_name(&p, text, out_schema, out_name);
    tni_arena_clear(&arena); /* empty when a schema took it */
    return status;
}

tn_status tni_schema_parse(const char *text, tni_schema **out)
{
    return tni_schema_parse_or_name(text, out, NULL);
}

static tn_status infer(tni_parser *p, const char *name, const char *signature, tni_schema **out)
{
    draft d;
    d.schema = (tni_schema){.name = "", .overload = "", .full = ""};
    if (name) {
        TN_TRY(tni_lex_begin(&p->lex, name, "operator name"));
        TN_TRY(op_name(p, &d.schema));
        TN_TRY(tni_lex_end(&p->lex));
    }
    /* A kernel may serve an operator of any namespace. */
    p->type_variables = true;
    TN_TRY(tni_lex_begin(&p->lex, signature, "signature"));
    return declaration(p, &d, false, out);
}

static tn_status infer_schema(const char *name, const char *signature, tni_schema **out)
{
    tni_arena arena = arena_for(signature);
    tni_parser p = {.arena = &arena};
    tn_status status = infer(&p, name, signature, out);
    tni_arena_clear(&arena);
    return status;
}

tn_status tni_signature_parse(const char *signature, tni_schema **out)
{
    return infer_schema(NULL, signature, out);
}

tn_status tni_schema_infer(const char *name, const char *signature, tni_schema **out)
{
    TN_CHECK(name, TN_INVALID, "the name of the operator is NULL");
    return infer_schema(name, signature, out);
}
