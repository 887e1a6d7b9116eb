/* SPDX-License-Identifier: MIT */
/* cli/trace_line.c: see trace_line.h. */
#include "trace_line.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

/* ---- what a terminal would obey ---- */

/* The sequence at @p s, which begins with an escape: its length. */
static size_t escape_length(const char *s, size_t n)
{
    size_t i = 2;
    if (n < 2)
        return n;
    if (s[1] == '[') { /* parameters, then a letter */
        while (i < n && (unsigned char)s[i] >= 0x20 && (unsigned char)s[i] < 0x40)
            i++;
        return i < n ? i + 1 : n;
    }
    if (s[1] == ']') { /* up to a bell or an escape and a backslash */
        while (i < n && s[i] != '\a' && s[i] != 0x1b)
            i++;
        return i < n ? i + (s[i] == 0x1b && i + 1 < n ? 2 : 1) : n;
    }
    return 2;
}

size_t trace_clean(char *line, size_t n, bool *damaged)
{
    size_t to = 0;
    *damaged = false;
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)line[i];
        bool follows_text = to == 0 || (unsigned char)line[to - 1] < 0x80;
        if (c == 0x1b) {
            i += escape_length(line + i, n - i) - 1;
            continue;
        }
        /* 0xc2 and one of these, or one alone, are controls, too. */
        bool is_high = c >= 0x80 && c < 0xa0;
        if (is_high && to && (unsigned char)line[to - 1] == 0xc2) {
            line[to - 1] = ' ';
            *damaged = true;
            continue;
        }
        bool is_control = (c < 0x20 && c != '\t') || c == 0x7f || (is_high && follows_text);
        *damaged = *damaged || (is_control && c != '\r');
        line[to++] = is_control ? ' ' : (char)c;
    }
    while (to && line[to - 1] == ' ')
        to--;
    line[to] = '\0';
    return to;
}

/* ---- prefixes ---- */

static bool has_digit(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (isdigit((unsigned char)s[i]))
            return true;
    }
    return false;
}

/* A time, a rank, "stderr |": what logs put before a line. Sentences end in a word. */
static bool is_log_prefix(const char *line, size_t n)
{
    while (n && (line[n - 1] == ' ' || line[n - 1] == '\t'))
        n--;
    size_t start = 0;
    while (start < n && (line[start] == ' ' || line[start] == '\t'))
        start++;
    line += start;
    n -= start;
    if (n == 0)
        return true;
    size_t first = 0, last = n;
    while (first < n && line[first] != ' ')
        first++;
    while (last && line[last - 1] != ' ')
        last--;
    if (strchr("|>])", line[n - 1]) || has_digit(line + last, n - last))
        return true;
    /* "2026-01-01" and "[12.3]" begin a log, "3." begins a point of a list. */
    if (first > 2 && (isdigit((unsigned char)line[0]) || line[0] == '['))
        return has_digit(line, first);
    return line[n - 1] == ':' && last == 0; /* "stderr:" */
}

/* "Note: [DEBUG X] was never printed" looks like a log's line until one reads it. */
static bool denies(const char *text)
{
    static const char *const words[] = {" never ", " not ", "n't ", " missing", " absent"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strstr(text, words[i]))
            return true;
    }
    return false;
}

static bool begins_here(const char *line, const char *at, bool *torn)
{
    size_t n = (size_t)(at - line);
    *torn = false;
    if (strspn(line, " \t") >= n)
        return true;
    if (strchr("`'\"", at[-1]))
        return false; /* quoted: somebody speaks about it */
    if (is_log_prefix(line, n) && !denies(at))
        return true;
    const char *other = strstr(line, "[DEBUG ");
    *torn = at[-1] != ' ' || (other && other < at);
    return *torn;
}

const char *trace_stage_begin(const char *line, bool *torn)
{
    static const char *const marks[] = {"[DEBUG ", "[BoxedKernel LAMBDA]"};
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
        const char *found = NULL;
        bool is_torn = false;
        for (const char *at = line; (at = strstr(at, marks[i])); at++) {
            if (begins_here(line, at, &is_torn)) {
                found = at;
                *torn = is_torn;
            }
        }
        if (found)
            return found;
    }
    return NULL;
}

const char *trace_dispatch_begin(const char *line)
{
    static const char *const kinds[] = {"[call] op=[", "[redispatch] op=[", "[callBoxed] op=[",
                                        "[redispatchBoxed] op=["};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const char *at = strstr(line, kinds[i]);
        bool torn;
        if (at && begins_here(line, at, &torn) && !torn)
            return at;
    }
    return NULL;
}

/* ---- lines without a label ---- */

/* The rest behind @p part, in any case of letters; NULL: @p text does not begin with it. */
static const char *behind(const char *text, const char *part)
{
    size_t n = strlen(part);
    return strncasecmp(text, part, n) == 0 ? text + n : NULL;
}

static bool is_tail(const char *text)
{
    static const char *const tails[] = {"",
                                        "...",
                                        "!",
                                        " NOW ===",
                                        " WITHOUT NoGradGuard...",
                                        " RETURNED",
                                        " returned",
                                        " RETURNED!",
                                        "() RETURNED!",
                                        "(...)",
                                        " =====",
                                        " - Compute output shape"};
    static const char *const paths[] = {" [fast path]", " [slow path]"};
    char kept[64];
    size_t n = strlen(text);
    for (size_t i = 0; i < 2; i++) {
        size_t path = strlen(paths[i]);
        if (n >= path && strcmp(text + n - path, paths[i]) == 0)
            n -= path;
    }
    while (n > 6 && text[n - 1] == '=' && text[n - 6] == '=')
        n--;
    if (n >= sizeof kept)
        return false;
    memcpy(kept, text, n);
    kept[n] = '\0';
    for (size_t i = 0; i < sizeof tails / sizeof *tails; i++) {
        if (strcmp(kept, tails[i]) == 0)
            return true;
    }
    return false;
}

const char *trace_bare_label(const char *line)
{
    static const char *const heads[] = {"lookup() returned, ", "after lookup, ",  "about to call ",
                                        "about to invoke ",    "before calling ", "before ",
                                        "now calling ",        "calling "};
    static const struct {
        const char *text, *label;
        bool has_value; /* anything may follow, after a value */
    } known[] = {
        {"at::mm", "_matmul_impl", false},
        {"entry.lookup()", "Dispatcher::call", false},
        {"lookup()", "Dispatcher::call", false},
        {"dispatch table index=", "OperatorEntry::lookup", true},
        {"highest priority key=", "OperatorEntry::lookup", true},
        {"kernel.isValid=", "OperatorEntry::lookup", true},
        {"Returning kernel, about to call it", "OperatorEntry::lookup", false},
        {"boxed_kernel_func_.callBoxed()", "KernelFunction::callBoxed", false},
        {"(*boxed_kernel_func_)", "BoxedKernel::callBoxed", false},
        {"kernel.callBoxed()", "Dispatcher::callBoxed", false},
        {"kernel.call<>()", "Dispatcher::call", false},
        {"ENTERED MM META FUNCTION", "TORCH_META_FUNC(mm)", false},
        {"Meta function complete", "TORCH_META_FUNC(mm)", false},
        {"TORCH_META_FUNC(mm)", "TORCH_META_FUNC(mm)", false},
        {"TORCH_IMPL_FUNC(mm_out_cpu)", "TORCH_IMPL_FUNC(mm_out_cpu)", false},
        {"[Dispatcher] Looking at dispatch keys: ", "Dispatcher::call", true},
        {"[Autograd layer] Since ", "drawing of the autograd layer", true},
        {"[Meta dispatch] Dispatch to ", "drawing of the meta dispatch", true},
    };
    const char *text = line + strspn(line, " \t");
    text += strspn(text, "=");
    text += strspn(text, " ");
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        const char *rest = behind(text, heads[i]);
        text = rest ? rest : text;
    }
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const char *rest = behind(text, known[i].text);
        if (rest && (known[i].has_value ? isalnum((unsigned char)*rest) : is_tail(rest)))
            return known[i].label;
    }
    return NULL;
}
