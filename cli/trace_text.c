/* SPDX-License-Identifier: MIT */
/* cli/trace_text.c: see trace_text.h. */
#include "trace_text.h"

#include <string.h>

/* ---- what it is ---- */

typedef struct beginning {
    const char *bytes;
    size_t n;
    const char *what;
} beginning;

static const char *known_file(const unsigned char *bytes, size_t n)
{
    static const beginning known[] = {
        {"\x1f\x8b", 2, "compressed (gzip): zcat it into `tenon diagnose -`"},
        {"\x28\xb5\x2f\xfd", 4, "compressed (zstd): zstdcat it into `tenon diagnose -`"},
        {"\xfd"
         "7zXZ",
         5, "compressed (xz): xzcat it into `tenon diagnose -`"},
        {"BZh", 3, "compressed (bzip2): bzcat it into `tenon diagnose -`"},
        {"PK\x03\x04", 4, "an archive (zip)"},
        {"\x7f"
         "ELF",
         4, "a program or library (ELF)"},
        {"TENONREC", 8, "a record of the flight recorder: `tenon doctor` reads it"},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (n >= known[i].n && memcmp(bytes, known[i].bytes, known[i].n) == 0)
            return known[i].what;
    }
    size_t zeros = 0;
    for (size_t i = 0; i < n; i++)
        zeros += bytes[i] == 0;
    return n == 0 ? "empty" : zeros ? "no text: it has zero bytes" : NULL;
}

/* By the mark that says so, or because every other byte is zero, as in English text. */
static text_kind kind_of(const unsigned char *bytes, size_t n)
{
    if (n >= 2 && bytes[0] == 0xff && bytes[1] == 0xfe)
        return TEXT_UTF16_LITTLE;
    if (n >= 2 && bytes[0] == 0xfe && bytes[1] == 0xff)
        return TEXT_UTF16_BIG;
    size_t zeros[2] = {0, 0};
    for (size_t i = 0; i < n; i++)
        zeros[i % 2] += bytes[i] == 0;
    if (n < 16 || zeros[0] + zeros[1] < n / 3)
        return TEXT_PLAIN;
    return zeros[1] > 4 * zeros[0]   ? TEXT_UTF16_LITTLE
           : zeros[0] > 4 * zeros[1] ? TEXT_UTF16_BIG
                                     : TEXT_PLAIN;
}

/* ---- UTF-16 ---- */

typedef struct decoder {
    text_kind kind;
    bool half; /* a byte is left over from the piece before */
    unsigned char left;
    uint32_t high; /* the first of two units, 0: none */
} decoder;

static size_t put_utf8(uint32_t code, char *to)
{
    if (code < 0x80) {
        to[0] = (char)code;
        return 1;
    }
    if (code < 0x800) {
        to[0] = (char)(0xc0 | code >> 6);
        to[1] = (char)(0x80 | (code & 0x3f));
        return 2;
    }
    if (code < 0x10000) {
        to[0] = (char)(0xe0 | code >> 12);
        to[1] = (char)(0x80 | (code >> 6 & 0x3f));
        to[2] = (char)(0x80 | (code & 0x3f));
        return 3;
    }
    to[0] = (char)(0xf0 | code >> 18);
    to[1] = (char)(0x80 | (code >> 12 & 0x3f));
    to[2] = (char)(0x80 | (code >> 6 & 0x3f));
    to[3] = (char)(0x80 | (code & 0x3f));
    return 4;
}

static size_t put_unit(decoder *d, uint32_t unit, char *to)
{
    if (unit == 0xfeff || (unit >= 0xd800 && unit < 0xdc00)) {
        d->high = unit == 0xfeff ? 0 : unit;
        return 0;
    }
    bool is_low = unit >= 0xdc00 && unit < 0xe000;
    uint32_t code = !is_low   ? unit
                    : d->high ? 0x10000 + ((d->high & 0x3ff) << 10) + (unit & 0x3ff)
                              : '?';
    d->high = 0;
    return put_utf8(code, to);
}

static void feed(decoder *d, const unsigned char *bytes, size_t n, trace *t)
{
    char text[4096];
    size_t at = 0;
    if (d->kind == TEXT_PLAIN) {
        trace_feed(t, (const char *)bytes, n);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        if (!d->half) {
            d->left = bytes[i];
            d->half = true;
            continue;
        }
        d->half = false;
        uint32_t unit = d->kind == TEXT_UTF16_LITTLE ? (uint32_t)bytes[i] << 8 | d->left
                                                     : (uint32_t)d->left << 8 | bytes[i];
        at += put_unit(d, unit, text + at);
        if (at > sizeof text - 8) {
            trace_feed(t, text, at);
            at = 0;
        }
    }
    trace_feed(t, text, at);
}

/* ---- the file ---- */

bool trace_read_file(FILE *file, trace *t, const char **looks_like)
{
    unsigned char piece[16384];
    decoder d = {.kind = TEXT_PLAIN};
    size_t n = fread(piece, 1, sizeof piece, file), skip = 0;
    d.kind = kind_of(piece, n);
    *looks_like = d.kind == TEXT_PLAIN ? known_file(piece, n) : NULL;
    if (d.kind == TEXT_PLAIN && n >= 3 && memcmp(piece, "\xef\xbb\xbf", 3) == 0)
        skip = 3; /* a mark that says UTF-8 */
    for (; n > 0; n = fread(piece, 1, sizeof piece, file)) {
        feed(&d, piece + skip, n - skip, t);
        skip = 0;
    }
    trace_finish(t);
    return !ferror(file);
}
