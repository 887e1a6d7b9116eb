/* SPDX-License-Identifier: MIT */
/* Tokens, and messages that quote the text around one. */
#include "op/lexer.h"

#include <stdio.h>
#include <stdarg.h>
#include <string.h>

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/* Spaces and comments; newlines too inside brackets, where they mean nothing. */
static size_t skip_space(const tni_lexer *lex)
{
    size_t pos = lex->pos;
    for (;; pos++) {
        char c = lex->text[pos];
        if (c == '#') {
            while (lex->text[pos + 1] != '\0' && lex->text[pos + 1] != '\n')
                pos++;
        } else if (c != ' ' && c != '\t' && c != '\r' && !(c == '\n' && lex->nesting > 0)) {
            return pos;
        }
    }
}

/* End of the number that starts at @p pos. */
static size_t number_end(const char *text, size_t pos)
{
    while (is_digit(text[pos]))
        pos++;
    if (text[pos] == '.' && text[pos + 1] != '.') { /* "2..." is 2 and dots */
        pos++;
        while (is_digit(text[pos]))
            pos++;
    }
    if (text[pos] == 'e' || text[pos] == 'E') {
        size_t sign = text[pos + 1] == '+' || text[pos + 1] == '-';
        if (is_digit(text[pos + 1 + sign])) {
            pos += 1 + sign;
            while (is_digit(text[pos]))
                pos++;
        }
    }
    return text[pos] == 'j' ? pos + 1 : pos;
}

/* End of the string that starts at @p pos with its quote; 0 when it does not end on its line. */
static size_t string_end(const char *text, size_t pos)
{
    char quote = text[pos++];
    for (; text[pos] != quote; pos++) {
        if (text[pos] == '\\' && text[pos + 1] != '\0')
            pos++;
        if (text[pos] == '\0' || text[pos] == '\n')
            return 0;
    }
    return pos + 1;
}

void tni_lex_next(tni_lexer *lex)
{
    size_t at = skip_space(lex), end = at + 1;
    const char *text = lex->text;
    char c = text[at];
    int kind = (unsigned char)c;
    if (c == '\0') {
        kind = TNI_TOKEN_END;
        end = at;
    } else if (is_letter(c)) {
        kind = TNI_TOKEN_IDENT;
        while (is_letter(text[end]) || is_digit(text[end]))
            end++;
    } else if (is_digit(c) || (c == '.' && is_digit(text[at + 1]))) {
        kind = TNI_TOKEN_NUMBER;
        end = number_end(text, at);
    } else if (c == '"' || c == '\'') {
        end = string_end(text, at);
        kind = end ? TNI_TOKEN_STRING : TNI_TOKEN_OPEN_STRING;
        if (!end)
            end = lex->n;
    } else if (c == '-' && text[at + 1] == '>') {
        kind = TNI_TOKEN_ARROW;
        end = at + 2;
    } else if (strncmp(text + at, "...", 3) == 0) {
        kind = TNI_TOKEN_DOTS;
        end = at + 3;
    } else if (c == '\n') {
        kind = TNI_TOKEN_NEWLINE;
    } else if (c == '(' || c == '[') {
        lex->nesting++;
    } else if (c == ')' || c == ']') {
        lex->nesting -= lex->nesting > 0;
    } else if (!strchr(",:.=*!?|-+", c)) {
        kind = TNI_TOKEN_WRONG;
    }
    lex->cur = (tni_token){kind, at, end - at};
    lex->pos = end;
}

tn_status tni_lex_begin(tni_lexer *lex, const char *text, const char *what)
{
    TN_CHECK(text, TN_INVALID, "the %s is NULL", what);
    size_t n = strnlen(text, TNI_TEXT_MAX + 1);
    TN_CHECK(n <= TNI_TEXT_MAX, TN_INVALID, "the %s '%.40s...' is too long: at most %d characters",
             what, text, TNI_TEXT_MAX);
    *lex = (tni_lexer){.text = text, .what = what, .n = n};
    do {
        tni_lex_next(lex);
    } while (lex->cur.kind == TNI_TOKEN_NEWLINE);
    return TN_OK;
}

tni_token tni_lex_peek(const tni_lexer *lex)
{
    tni_lexer ahead = *lex;
    tni_lex_next(&ahead);
    return ahead.cur;
}

bool tni_lex_skip(tni_lexer *lex, int kind)
{
    if (lex->cur.kind != kind)
        return false;
    tni_lex_next(lex);
    return true;
}

bool tni_token_is(const tni_lexer *lex, tni_token token, const char *word)
{
    return token.n == strlen(word) && memcmp(lex->text + token.at, word, token.n) == 0;
}

bool tni_token_is_name(const tni_lexer *lex, tni_token token)
{
    return token.kind == TNI_TOKEN_IDENT && !tni_token_is(lex, token, "True") &&
           !tni_token_is(lex, token, "False") && !tni_token_is(lex, token, "None") &&
           !tni_token_is(lex, token, "NoneType");
}

tn_status tni_lex_expect(tni_lexer *lex, int kind, const char *wanted)
{
    if (lex->cur.kind != kind)
        return tni_lex_fail_expected(lex, lex->cur, wanted, NULL, TNI_WHERE);
    tni_lex_next(lex);
    return TN_OK;
}

tn_status tni_lex_name(tni_lexer *lex, const char *wanted, tni_token *out)
{
    tni_token token = lex->cur;
    if (!tni_token_is_name(lex, token))
        return tni_lex_fail_expected(lex, token, wanted, NULL, TNI_WHERE);
    if (token.n > TNI_IDENT_MAX)
        return tni_lex_fail(lex, token, TNI_WHERE, "a name of %zu characters, at most %d allowed,",
                            token.n, TNI_IDENT_MAX);
    tni_lex_next(lex);
    *out = token;
    return TN_OK;
}

tn_status tni_lex_end(tni_lexer *lex)
{
    while (tni_lex_skip(lex, TNI_TOKEN_NEWLINE))
        continue;
    if (lex->cur.kind != TNI_TOKEN_END)
        return tni_lex_fail_expected(lex, lex->cur, "the end", NULL, TNI_WHERE);
    return TN_OK;
}

/* One escape, @p pos just behind the backslash; the number of characters read, 0 for a wrong one.
 */
static size_t unescape(const char *text, size_t n, char *out)
{
    static const char names[] = "\\'\"abfnrtv", values[] = "\\'\"\a\b\f\n\r\t\v";
    const char *found = n && text[0] ? strchr(names, text[0]) : NULL;
    if (found) {
        *out = values[found - names];
        return 1;
    }
    unsigned value = 0;
    size_t i = 0;
    if (n && text[0] == 'x') {
        for (i = 1; i < n && i < 3; i++) {
            char c = text[i];
            unsigned digit = is_digit(c)            ? (unsigned)(c - '0')
                             : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a') + 10
                             : c >= 'A' && c <= 'F' ? (unsigned)(c - 'A') + 10
                                                    : 16;
            if (digit == 16)
                return 0;
            value = value * 16 + digit;
        }
        if (i != 3)
            return 0;
    } else {
        for (; i < n && i < 3 && text[i] >= '0' && text[i] <= '7'; i++)
            value = value * 8 + (unsigned)(text[i] - '0');
    }
    if (value > 255)
        return 0;
    *out = (char)(unsigned char)value;
    return i;
}

tn_status tni_lex_string(const tni_lexer *lex, tni_token token, tni_arena *arena, const char **out,
                         uint32_t *out_n)
{
    const char *text = lex->text + token.at + 1;
    size_t n = token.n - 2, length = 0;
    char *value = tni_arena_alloc(arena, n + 1);
    TN_CHECK(value, TN_NOMEM, "cannot allocate %zu bytes for a string", n + 1);
    for (size_t i = 0; i < n; i++) {
        char c = text[i];
        if (c == '\\') {
            size_t used = unescape(text + i + 1, n - i - 1, &c);
            if (used == 0)
                return tni_lex_fail(lex, token, TNI_WHERE, "unknown escape '\\%c' in a string",
                                    text[i + 1] >= ' ' && text[i + 1] <= '~' ? text[i + 1] : '?');
            i += used;
        }
        if (c == '\0')
            return tni_lex_fail(lex, token, TNI_WHERE, "a NUL character in a string");
        value[length++] = c;
    }
    value[length] = '\0';
    *out = value;
    *out_n = (uint32_t)length;
    return TN_OK;
}

/* ---- messages ---- */

/* Characters [from, to) of the text, printable ones as they are, into @p buffer, which has room. */
static void quote(const tni_lexer *lex, size_t from, size_t to, char *buffer)
{
    size_t n = 0;
    for (size_t i = from; i < to; i++) {
        char c = lex->text[i];
        buffer[n++] = c >= ' ' && c <= '~' ? c : c == '\n' || c == '\t' || c == '\r' ? ' ' : '?';
    }
    buffer[n] = '\0';
}

char *tni_token_quote(const tni_lexer *lex, tni_token token, char *buffer)
{
    enum { SHOWN = TNI_QUOTE_TEXT - 8 };
    switch (token.kind) {
    case TNI_TOKEN_END:
        return strcpy(buffer, "the end");
    case TNI_TOKEN_NEWLINE:
        return strcpy(buffer, "a newline");
    case TNI_TOKEN_OPEN_STRING:
        return strcpy(buffer, "a string that does not end");
    default:
        break;
    }
    size_t shown = token.n < SHOWN ? token.n : SHOWN;
    buffer[0] = '\'';
    quote(lex, token.at, token.at + shown, buffer + 1);
    return strcat(buffer, shown < token.n ? "...'" : "'");
}

enum { SHOWN_BEFORE = 200, SHOWN_AFTER = 100, SHOWN_TEXT = SHOWN_BEFORE + SHOWN_AFTER + 8 };

/* The text, or what is around @p at of a long one. */
static void quote_around(const tni_lexer *lex, size_t at, char *buffer)
{
    size_t from = 0, to = lex->n;
    if (lex->n > SHOWN_BEFORE + SHOWN_AFTER) {
        from = at > SHOWN_BEFORE ? at - SHOWN_BEFORE : 0;
        to = lex->n - at > SHOWN_AFTER ? at + SHOWN_AFTER : lex->n;
    }
    strcpy(buffer, from > 0 ? "..." : "");
    quote(lex, from, to, buffer + strlen(buffer));
    strcat(buffer, to < lex->n ? "..." : "");
}

tn_status tni_lex_fail_expected(const tni_lexer *lex, tni_token token, const char *wanted,
                                const char *hint, const char *where)
{
    char found[TNI_QUOTE_TEXT], text[SHOWN_TEXT];
    tni_token_quote(lex, token, found);
    quote_around(lex, token.at, text);
    return tni_fail(TN_INVALID, where, "expected %s in %s '%s' at column %zu, found %s%s%s", wanted,
                    lex->what, text, token.at + 1, found, hint ? ". " : "", hint ? hint : "");
}

tn_status tni_lex_fail(const tni_lexer *lex, tni_token token, const char *where, const char *format,
                       ...)
{
    char message[256], text[SHOWN_TEXT];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    quote_around(lex, token.at, text);
    return tni_fail(TN_INVALID, where, "%s in %s '%s' at column %zu", message, lex->what, text,
                    token.at + 1);
}
