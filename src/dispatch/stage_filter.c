/* SPDX-License-Identifier: MIT */
/* dispatch/stage_filter.c: which operators the stage lines are wanted for.
 *
 * A plain word stands for the names that end with it: `mm` for mm, addmm and bmm, and not for
 * hamming_window. A name with its namespace is that name; `*` and `?` stand for any text and any
 * character. Overloads and the in-place form are meant too unless the pattern has them. */
#include <string.h>

#include "dispatch/stages.h"

typedef struct piece {
    const char *at;
    size_t n;
} piece;

static bool is(piece text, const char *word)
{
    return text.n == strlen(word) && memcmp(text.at, word, text.n) == 0;
}

/* `*` goes back to the last star only: linear in practice, never more than pattern times text. */
static bool glob(piece pattern, piece text)
{
    size_t p = 0, t = 0, star = SIZE_MAX, again = 0;
    while (t < text.n) {
        if (p < pattern.n && pattern.at[p] == '*') {
            star = p++;
            again = t;
        } else if (p < pattern.n && (pattern.at[p] == '?' || pattern.at[p] == text.at[t])) {
            p++;
            t++;
        } else if (star != SIZE_MAX) {
            p = star + 1;
            t = ++again;
        } else {
            return false;
        }
    }
    while (p < pattern.n && pattern.at[p] == '*')
        p++;
    return p == pattern.n;
}

/* Where the namespace ends; 0: there is none. */
static size_t behind_namespace(piece text)
{
    for (size_t i = 0; i + 1 < text.n; i++) {
        if (text.at[i] == ':' && text.at[i + 1] == ':')
            return i + 2;
    }
    return 0;
}

static bool matches(piece pattern, piece name)
{
    if (is(pattern, "1") || is(pattern, "all") || is(pattern, "*"))
        return true;
    bool is_glob = memchr(pattern.at, '*', pattern.n) || memchr(pattern.at, '?', pattern.n);
    bool has_namespace = behind_namespace(pattern) != 0;
    if (!has_namespace) {
        size_t skipped = behind_namespace(name);
        name = (piece){name.at + skipped, name.n - skipped};
    }
    const char *dot = memchr(name.at, '.', name.n);
    if (dot && !memchr(pattern.at, '.', pattern.n))
        name.n = (size_t)(dot - name.at);
    if (name.n > 1 && name.at[name.n - 1] == '_' && pattern.at[pattern.n - 1] != '_' && !is_glob)
        name.n--;
    if (!is_glob && !has_namespace && name.n > pattern.n)
        name = (piece){name.at + name.n - pattern.n, pattern.n};
    return glob(pattern, name);
}

bool tni_stages_wanted(const char *filter, const char *op_name)
{
    piece name = {op_name, strlen(op_name)};
    for (const char *at = filter; *at;) {
        at += strspn(at, ", ");
        piece pattern = {at, strcspn(at, ", ")};
        if (pattern.n && matches(pattern, name))
            return true;
        at += pattern.n;
    }
    return false;
}
