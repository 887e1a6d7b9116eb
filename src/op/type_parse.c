/* SPDX-License-Identifier: MIT */
/* Types of schemas and their alias annotations.
 *
 *   type  : base [alias] { "[" "]" [alias] | "?" }
 *   base  : "Tensor" | NAMED | VARIABLE | "Dict" "(" type "," type ")" | "Union" "(" type {","
 * type} ")" | ("Future" | "Await" | "RRef") "(" type ")" | "(" type { "," type } ")" | "__torch__"
 * "." "torch" "." "classes" "." IDENT "." IDENT alias : "(" sets [ "!" ] [ "->" sets ] ")" | "!"
 *   sets  : (IDENT | "*") { "|" (IDENT | "*") }
 *
 * No alias may follow a tuple, a Future and its like, or a class. */
#include "op/parser.h"

#include <stdio.h>
#include <string.h>

tn_status tni_parse_nomem(void)
{
    TN_FAIL(TN_NOMEM, "cannot allocate memory for a schema");
}

/* Types of one word. They carry nothing, so that every schema shares these. */
typedef struct word_type {
    const char *word;
    tni_schema_type type;
} word_type;

#define PLAIN(text, which) \
    {                      \
        text,              \
        {                  \
            .kind = which  \
        }                  \
    }
#define NAMED(text)                              \
    {                                            \
        text,                                    \
        {                                        \
            .kind = TNI_TYPE_NAMED, .name = text \
        }                                        \
    }

static const word_type words[] = {
    PLAIN("Tensor", TNI_TYPE_TENSOR),
    PLAIN("int", TNI_TYPE_INT),
    PLAIN("SymInt", TNI_TYPE_SYMINT),
    PLAIN("bool", TNI_TYPE_BOOL),
    PLAIN("float", TNI_TYPE_FLOAT),
    PLAIN("Scalar", TNI_TYPE_SCALAR),
    PLAIN("ScalarType", TNI_TYPE_SCALAR_TYPE),
    PLAIN("str", TNI_TYPE_STRING),
    PLAIN("Device", TNI_TYPE_DEVICE),
    PLAIN("Layout", TNI_TYPE_LAYOUT),
    PLAIN("MemoryFormat", TNI_TYPE_MEMORY_FORMAT),
    PLAIN("Generator", TNI_TYPE_GENERATOR),
    PLAIN("complex", TNI_TYPE_COMPLEX),
    PLAIN("SymBool", TNI_TYPE_SYMBOOL),
    PLAIN("None", TNI_TYPE_NONE),
    PLAIN("NoneType", TNI_TYPE_NONE),
    PLAIN("Dimname", TNI_TYPE_STRING),
    PLAIN("DeviceIndex", TNI_TYPE_INT),
    PLAIN("ConstQuantizerPtr", TNI_TYPE_INT),
    NAMED("Any"),
    NAMED("AnyClassType"),
    NAMED("AnyEnumType"),
    NAMED("Capsule"),
    NAMED("PyObject"),
    NAMED("QScheme"),
    NAMED("Quantizer"),
    NAMED("Storage"),
    NAMED("Stream"),
};

static tn_status node(tni_parser *p, tni_type_kind kind, const char *name, int n_children,
                      const tni_schema_type *const *children, const tni_schema_type **out)
{
    tni_schema_type *type = tni_arena_alloc(p->arena, sizeof *type);
    const tni_schema_type **kept = NULL;
    if (n_children) {
        kept = tni_arena_alloc(p->arena, (size_t)n_children * sizeof *kept);
        if (!kept)
            return tni_parse_nomem();
        memcpy(kept, children, (size_t)n_children * sizeof *kept);
    }
    if (!type)
        return tni_parse_nomem();
    *type =
        (tni_schema_type){.kind = kind, .n_children = n_children, .name = name, .children = kept};
    *out = type;
    return TN_OK;
}

static tn_status too_deep(tni_parser *p)
{
    return tni_lex_fail(&p->lex, p->lex.cur, TNI_WHERE, "a type that nests deeper than %d levels",
                        TNI_SCHEMA_MAX_DEPTH);
}

tn_status tni_parse_wrap(tni_parser *p, tni_type_kind kind, const tni_schema_type **type,
                         int *depth)
{
    if (kind == TNI_TYPE_OPTIONAL && (*type)->kind == TNI_TYPE_OPTIONAL)
        return TN_OK;
    if (*depth >= TNI_SCHEMA_MAX_DEPTH)
        return too_deep(p);
    *depth += 1;
    return node(p, kind, NULL, 1, type, type);
}

tn_status tni_parse_annotate(tni_parser *p, const tni_schema_type **type, const tni_alias *alias)
{
    if (!alias)
        return TN_OK;
    tni_schema_type *copy = tni_arena_alloc(p->arena, sizeof *copy);
    if (!copy)
        return tni_parse_nomem();
    *copy = **type;
    copy->alias = alias;
    *type = copy;
    return TN_OK;
}

/* "a|b"; a wildcard swallows the names. */
static tn_status alias_sets(tni_parser *p, const char **out)
{
    tni_lexer *lex = &p->lex;
    size_t n = 0;
    bool wildcard = false;
    tni_lexer start = *lex;
    do {
        tni_token name;
        if (tni_lex_skip(lex, '*')) {
            wildcard = true;
        } else {
            TN_TRY(tni_lex_name(lex, "the name of an alias set", &name));
            n += name.n + 1;
        }
    } while (tni_lex_skip(lex, '|'));
    if (wildcard) {
        *out = "*";
        return TN_OK;
    }
    /* The names once more, without the space that may be between them. */
    char *text = tni_arena_alloc(p->arena, n);
    if (!text)
        return tni_parse_nomem();
    size_t used = 0;
    do {
        memcpy(text + used, start.text + start.cur.at, start.cur.n);
        used += start.cur.n;
        text[used++] = '|';
        tni_lex_next(&start);
    } while (tni_lex_skip(&start, '|'));
    text[used - 1] = '\0';
    *out = text;
    return TN_OK;
}

tn_status tni_parse_alias(tni_parser *p, const tni_alias **out)
{
    tni_lexer *lex = &p->lex;
    tni_alias alias = {0};
    *out = NULL;
    if (tni_lex_skip(lex, '!')) {
        /* A private set: two bare marks never share one. No set in a text can be called so. */
        char name[16];
        int n = snprintf(name, sizeof name, "$%d", p->n_private++);
        alias.write = true;
        alias.before = alias.after = tni_arena_text(p->arena, name, (size_t)n);
        if (!alias.before)
            return tni_parse_nomem();
    } else if (tni_lex_skip(lex, '(')) {
        TN_TRY(alias_sets(p, &alias.before));
        alias.after = alias.before;
        alias.write = tni_lex_skip(lex, '!');
        if (tni_lex_skip(lex, TNI_TOKEN_ARROW))
            TN_TRY(alias_sets(p, &alias.after));
        TN_TRY(tni_lex_expect(lex, ')', "')' after an alias annotation"));
    } else {
        return TN_OK;
    }
    tni_alias *kept = tni_arena_alloc(p->arena, sizeof *kept);
    if (!kept)
        return tni_parse_nomem();
    *kept = alias;
    *out = kept;
    return TN_OK;
}

/* "(" type { "," type } ")": the parts of a tuple, a Dict and so on. */
static tn_status parts(tni_parser *p, tni_type_kind kind, const char *name,
                       const tni_schema_type **out, int *out_depth)
{
    const tni_schema_type *children[TNI_SCHEMA_MAX_ARGS];
    int n = 0, deepest = 0;
    tni_lexer *lex = &p->lex;
    TN_TRY(tni_lex_expect(lex, '(', "'('"));
    do {
        int depth;
        if (n == TNI_SCHEMA_MAX_ARGS)
            return tni_lex_fail(lex, lex->cur, TNI_WHERE, "a type with more than %d parts",
                                TNI_SCHEMA_MAX_ARGS);
        TN_TRY(tni_parse_type(p, &children[n++], &depth));
        deepest = depth > deepest ? depth : deepest;
    } while (tni_lex_skip(lex, ','));
    if (deepest >= TNI_SCHEMA_MAX_DEPTH)
        return too_deep(p);
    int wanted = kind == TNI_TYPE_DICT ? 2 : kind == TNI_TYPE_FUTURE ? 1 : n;
    if (n != wanted)
        return tni_lex_fail(lex, lex->cur, TNI_WHERE, "a %s of %d types, which takes %d,",
                            kind == TNI_TYPE_DICT ? "Dict" : name, n, wanted);
    TN_TRY(tni_lex_expect(lex, ')', "',' or ')'"));
    *out_depth = deepest + 1;
    return node(p, kind, name, n, children, out);
}

/* __torch__.torch.classes.NAMESPACE.CLASS */
static tn_status class_type(tni_parser *p, const tni_schema_type **out)
{
    static const char *const wanted[] = {"__torch__", "torch", "classes"};
    tni_lexer *lex = &p->lex;
    char text[2 * TNI_IDENT_MAX + 32];
    size_t n = 0;
    for (int i = 0; i < 5; i++) {
        tni_token token;
        if (i > 0) {
            TN_TRY(tni_lex_expect(lex, '.', "'.' in the name of a class"));
            text[n++] = '.';
        }
        TN_TRY(tni_lex_name(lex, "a part of the name of a class", &token));
        if (i < 3 && !tni_token_is(lex, token, wanted[i]))
            return tni_lex_fail_expected(lex, token, wanted[i],
                                         "A class is __torch__.torch.classes.NAMESPACE.NAME",
                                         TNI_WHERE);
        memcpy(text + n, lex->text + token.at, token.n);
        n += token.n;
    }
    const char *name = tni_arena_text(p->arena, text, n);
    if (!name)
        return tni_parse_nomem();
    return node(p, TNI_TYPE_CLASS, name, 0, NULL, out);
}

static tn_status unknown_type(tni_parser *p, tni_token token)
{
    const char *hint = "unknown type specifier. Common valid schema types include Tensor, SymInt, "
                       "int, float, bool, Scalar";
    if (tni_token_is(&p->lex, token, "double"))
        hint = "Use `float` instead of `double` in an operator's schema string. `float` in schema "
               "corresponds to the double type in C";
    else if (tni_token_is(&p->lex, token, "int64_t"))
        hint =
            "Use `SymInt` or `int` instead of `int64_t` in an operator's schema string. `int` in "
            "schema corresponds to the int64_t type in C";
    return tni_lex_fail_expected(&p->lex, token, "a type", hint, TNI_WHERE);
}

/* Named types and type variables. */
static tn_status word(tni_parser *p, const tni_schema_type **out)
{
    tni_lexer *lex = &p->lex;
    tni_token token = lex->cur;
    for (size_t i = 0; token.kind == TNI_TOKEN_IDENT && i < sizeof words / sizeof *words; i++) {
        if (tni_token_is(lex, token, words[i].word)) {
            tni_lex_next(lex);
            *out = &words[i].type;
            return TN_OK;
        }
    }
    if (token.kind != TNI_TOKEN_IDENT)
        return tni_lex_fail_expected(lex, token, "a type", NULL, TNI_WHERE);
    char first = lex->text[token.at];
    if (!p->type_variables || first < 'a' || first > 'z' || tni_token_is(lex, token, "double") ||
        tni_token_is(lex, token, "int64_t"))
        return unknown_type(p, token);
    TN_TRY(tni_lex_name(lex, "a type", &token));
    const char *name = tni_arena_text(p->arena, lex->text + token.at, token.n);
    if (!name)
        return tni_parse_nomem();
    return node(p, TNI_TYPE_VARIABLE, name, 0, NULL, out);
}

static tn_status base(tni_parser *p, const tni_schema_type **out, int *depth)
{
    static const char *const futures[] = {"Future", "Await", "RRef"};
    tni_lexer *lex = &p->lex;
    const tni_alias *alias;
    *depth = 1;
    if (lex->cur.kind == '(')
        return parts(p, TNI_TYPE_TUPLE, NULL, out, depth);
    if (tni_token_is(lex, lex->cur, "__torch__"))
        return class_type(p, out);
    for (int i = 0; i < 3; i++) {
        if (tni_token_is(lex, lex->cur, futures[i])) {
            tni_lex_next(lex);
            return parts(p, TNI_TYPE_FUTURE, futures[i], out, depth);
        }
    }
    if (tni_token_is(lex, lex->cur, "Dict")) {
        tni_lex_next(lex);
        TN_TRY(parts(p, TNI_TYPE_DICT, NULL, out, depth));
    } else if (tni_token_is(lex, lex->cur, "Union")) {
        tni_lex_next(lex);
        TN_TRY(parts(p, TNI_TYPE_UNION, NULL, out, depth));
    } else {
        TN_TRY(word(p, out));
    }
    TN_TRY(tni_parse_alias(p, &alias));
    return tni_parse_annotate(p, out, alias);
}

tn_status tni_parse_type(tni_parser *p, const tni_schema_type **out, int *out_depth)
{
    tni_lexer *lex = &p->lex;
    const tni_schema_type *type;
    const tni_alias *alias;
    int depth;
    if (p->level == TNI_SCHEMA_MAX_DEPTH)
        return too_deep(p);
    p->level++;
    TN_TRY(base(p, &type, &depth));
    for (;;) {
        if (lex->cur.kind == '[' && tni_lex_peek(lex).kind == ']') {
            tni_lex_next(lex);
            tni_lex_next(lex);
            TN_TRY(tni_parse_wrap(p, TNI_TYPE_LIST, &type, &depth));
            TN_TRY(tni_parse_alias(p, &alias));
            TN_TRY(tni_parse_annotate(p, &type, alias));
        } else if (tni_lex_skip(lex, '?')) {
            TN_TRY(tni_parse_wrap(p, TNI_TYPE_OPTIONAL, &type, &depth));
        } else {
            break;
        }
    }
    p->level--;
    *out = type;
    *out_depth = depth;
    return TN_OK;
}
