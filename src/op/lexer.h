/* SPDX-License-Identifier: MIT */
/* op/lexer.h: schemas, signatures and argument texts as tokens, and the errors that point into
 * them. */
#ifndef TNI_OP_LEXER_H
#define TNI_OP_LEXER_H

#include "base/status.h"
#include "op/arena.h"

/* Single characters are their own kind: '(', ',', '!' … */
enum {
    TNI_TOKEN_END = 0,
    TNI_TOKEN_IDENT = 256,
    TNI_TOKEN_NUMBER, /* 12, 1.5, .5, 1e-3, 2j; the sign is a token of its own */
    TNI_TOKEN_STRING, /* with its quotes */
    TNI_TOKEN_ARROW,
    TNI_TOKEN_DOTS,
    TNI_TOKEN_NEWLINE,     /* outside brackets only */
    TNI_TOKEN_OPEN_STRING, /* a string that does not end */
    TNI_TOKEN_WRONG,       /* a character that no token has */
};

typedef struct tni_token {
    int kind;
    size_t at, n; /* where in the text */
} tni_token;

typedef struct tni_lexer {
    const char *text;
    const char *what; /* "schema", "signature", "argument text": for messages */
    size_t n, pos;
    int nesting;   /* open brackets */
    tni_token cur; /* the token to be looked at */
} tni_lexer;

#define TNI_IDENT_MAX 255       /* characters of an identifier */
#define TNI_TEXT_MAX  (1 << 16) /* characters of a schema or argument text */

/* Start at the first token. @retval TN_INVALID  NULL, or longer than TNI_TEXT_MAX */
TN_NODISCARD tn_status tni_lex_begin(tni_lexer *lex, const char *text, const char *what);
void tni_lex_next(tni_lexer *lex);
/* The token after the present one. */
tni_token tni_lex_peek(const tni_lexer *lex);
/* Step over the present token if it is @p kind. */
bool tni_lex_skip(tni_lexer *lex, int kind);
/* Whether a token is this word. */
bool tni_token_is(const tni_lexer *lex, tni_token token, const char *word);
/* True, False, None, NoneType cannot be names. */
bool tni_token_is_name(const tni_lexer *lex, tni_token token);
/* Step over a token of this kind. @p wanted names it in the message: "expected ')' in schema '…' at
 * column 7, found 'x'". @retval TN_INVALID */
TN_NODISCARD tn_status tni_lex_expect(tni_lexer *lex, int kind, const char *wanted);
/* Step over an identifier that is no reserved word. @retval TN_INVALID  also when it is too long */
TN_NODISCARD tn_status tni_lex_name(tni_lexer *lex, const char *wanted, tni_token *out);
/* Nothing but newlines may follow. */
TN_NODISCARD tn_status tni_lex_end(tni_lexer *lex);
/* The value of a string token, escapes resolved, in @p arena. @retval TN_INVALID  an unknown
 * escape, or a NUL @retval TN_NOMEM */
TN_NODISCARD tn_status tni_lex_string(const tni_lexer *lex, tni_token token, tni_arena *arena,
                                      const char **out, uint32_t *out_n);

/* "expected WANTED in schema 'f(x)' at column 3, found 'x'", and then @p hint if it is not NULL. */
TNI_COLD tn_status tni_lex_fail_expected(const tni_lexer *lex, tni_token token, const char *wanted,
                                         const char *hint, const char *where);
/* "MESSAGE in schema 'f(x)' at column 3". */
TNI_COLD tn_status tni_lex_fail(const tni_lexer *lex, tni_token token, const char *where,
                                const char *format, ...) TN_PRINTF(4, 5);

/* Room for the text of one token as messages quote it. */
#define TNI_QUOTE_TEXT 64
/* 'text' of a token, cut, printable; "end of text" and the like for others. Returns @p buffer. */
char *tni_token_quote(const tni_lexer *lex, tni_token token, char *buffer);

#endif
