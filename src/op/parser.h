/* SPDX-License-Identifier: MIT */
/* op/parser.h: what the parts of the schema parser share. */
#ifndef TNI_OP_PARSER_H
#define TNI_OP_PARSER_H

#include "op/arena.h"
#include "op/lexer.h"
#include "op/schema.h"

typedef struct tni_parser {
    tni_lexer lex;
    tni_arena *arena;
    bool type_variables; /* an unknown lower-case word is a type */
    int level;           /* types that we are inside of */
    int n_private;       /* sets named so far by a bare '!' */
} tni_parser;

/* One type without a size, "Tensor(a!)[]?". @p out_depth is how deep it nests, at least 1. */
TN_NODISCARD tn_status tni_parse_type(tni_parser *p, const tni_schema_type **out, int *out_depth);
/* List or optional of @p child; "??" is "?". Fails beyond TNI_SCHEMA_MAX_DEPTH. */
TN_NODISCARD tn_status tni_parse_wrap(tni_parser *p, tni_type_kind kind,
                                      const tni_schema_type **type, int *depth);
/* The annotation that may follow; NULL when there is none. */
TN_NODISCARD tn_status tni_parse_alias(tni_parser *p, const tni_alias **out);
/* Put an annotation, which may be NULL, on the outermost node of a type. */
TN_NODISCARD tn_status tni_parse_annotate(tni_parser *p, const tni_schema_type **type,
                                          const tni_alias *alias);
/* The value behind "NAME=", for an argument whose type and size are known. */
TN_NODISCARD tn_status tni_parse_default(tni_parser *p, tni_schema_arg *arg);

/* "(Tensor, int[]) -> Tensor" as a schema without a name. */
TN_NODISCARD tn_status tni_signature_parse(const char *signature, TN_OWNED tni_schema **out);

TNI_COLD tn_status tni_parse_nomem(void);

#endif
