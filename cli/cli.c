/* SPDX-License-Identifier: MIT */
/* cli/cli.c: options, complaints, and names that are nearly right. */
#include "cli.h"

#include <ctype.h>
#include <stdarg.h>
#include <string.h>

/* ---- complaints ---- */

int usage_error(const command *self, const char *format, ...)
{
    va_list args;
    fprintf(stderr, "tenon %s: ", self->name);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fprintf(stderr, "\nusage: tenon %s%s%s\n", self->name, self->usage[0] ? " " : "", self->usage);
    return EXIT_USAGE;
}

int library_error(const command *self)
{
    fprintf(stderr, "tenon %s: %s\n", self->name, tn_last_error());
    return EXIT_FAILED;
}

/* ---- options ---- */

static bool is_option(const char *word)
{
    return word[0] == '-' && word[1] && !isdigit((unsigned char)word[1]) && word[1] != '.';
}

static bool take_one(const command *self, const char *word, const option *options, int n)
{
    size_t length = strcspn(word, "=");
    const char *text = word[length] ? word + length + 1 : NULL;
    for (int i = 0; i < n; i++) {
        const option *o = &options[i];
        if (strlen(o->name) != length || strncmp(o->name, word, length) != 0)
            continue;
        if (text && !o->value) {
            usage_error(self, "option '%s' takes no value", o->name);
            return false;
        }
        if (!text && o->value && !o->value_optional) {
            usage_error(self, "option '%s' needs a value: %s=TEXT", o->name, o->name);
            return false;
        }
        *o->flag = true;
        if (text)
            *o->value = text;
        return true;
    }
    usage_error(self, "unknown option '%.*s'", (int)length, word);
    return false;
}

int take_options(const command *self, int argc, char **argv, const option *options, int n)
{
    int operands = 0;
    bool ended = false;
    for (int i = 1; i < argc; i++) {
        if (!ended && strcmp(argv[i], "--") == 0) {
            ended = true;
            continue;
        }
        if (!ended && is_option(argv[i])) {
            if (!take_one(self, argv[i], options, n))
                return -1;
            continue;
        }
        argv[operands++] = argv[i];
    }
    return operands;
}

/* ---- names ---- */

static int smallest(int a, int b, int c)
{
    int ab = a < b ? a : b;
    return ab < c ? ab : c;
}

/* Edits between two words; far apart when one is long. */
static int distance(const char *a, const char *b)
{
    enum { MOST = 31 };
    int row[MOST + 1];
    int n = (int)strlen(a), m = (int)strlen(b);
    if (n > MOST || m > MOST)
        return MOST;
    for (int j = 0; j <= m; j++)
        row[j] = j;
    for (int i = 1; i <= n; i++) {
        int diagonal = row[0];
        row[0] = i;
        for (int j = 1; j <= m; j++) {
            int change = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            row[j] = smallest(change, row[j] + 1, row[j - 1] + 1);
        }
    }
    return row[m];
}

const char *nearest_name(const char *word, const char *const *names, int n)
{
    const char *best = NULL;
    int least = 3; /* more edits than this are another word */
    for (int i = 0; i < n; i++) {
        int edits = distance(word, names[i]);
        if (edits < least && edits < (int)strlen(names[i])) {
            least = edits;
            best = names[i];
        }
    }
    return best;
}
