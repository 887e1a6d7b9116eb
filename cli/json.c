/* SPDX-License-Identifier: MIT */
/* cli/json.c: the writer of json.h. */
#include "json.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool on_one_line(const json *j)
{
    return j->flat && j->depth >= j->flat;
}

static void new_line(json *j, int depth)
{
    fprintf(j->file, "\n%*s", 2 * depth, "");
}

/* What comes before a key or an element of an array. */
static void separate(json *j)
{
    if (j->after_key) {
        j->after_key = false;
        return;
    }
    if (j->some)
        fputs(on_one_line(j) ? ", " : ",", j->file);
    if (j->depth && !on_one_line(j))
        new_line(j, j->depth);
    j->some = true;
}

static void begin(json *j, char bracket)
{
    separate(j);
    fputc(bracket, j->file);
    j->depth++;
    j->some = false;
}

static void end(json *j, char bracket)
{
    bool flat = on_one_line(j);
    if (j->flat == j->depth)
        j->flat = 0;
    j->depth--;
    if (j->some && !flat)
        new_line(j, j->depth);
    fputc(bracket, j->file);
    j->some = true;
}

void json_object(json *j)
{
    begin(j, '{');
}

void json_object_end(json *j)
{
    end(j, '}');
}

void json_array(json *j)
{
    begin(j, '[');
}

void json_array_end(json *j)
{
    end(j, ']');
}

void json_one_line(json *j)
{
    if (!j->flat)
        j->flat = j->depth + 1;
}

/* Bytes of the UTF-8 character at @p s, 0 when there is none. */
static size_t utf8_length(const unsigned char *s, size_t n)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t length = s[0] < 0x80               ? 1
                    : (s[0] & 0xe0u) == 0xc0u ? 2
                    : (s[0] & 0xf0u) == 0xe0u ? 3
                    : (s[0] & 0xf8u) == 0xf0u ? 4
                                              : 0;
    if (length == 0 || length > n)
        return 0;
    if (length == 1)
        return 1;
    uint32_t code = s[0] & (0x7fu >> length);
    for (size_t i = 1; i < length; i++) {
        if ((s[i] & 0xc0u) != 0x80u)
            return 0;
        code = code << 6 | (s[i] & 0x3fu);
    }
    bool surrogate = code >= 0xd800 && code <= 0xdfff;
    return code < least[length] || code > 0x10ffff || surrogate ? 0 : length;
}

static void write_quoted(FILE *file, const char *text, size_t n)
{
    const unsigned char *s = (const unsigned char *)text;
    fputc('"', file);
    for (size_t i = 0; i < n;) {
        size_t length = utf8_length(s + i, n - i);
        if (length == 0) {
            fputs("\\ufffd", file);
            i++;
        } else if (s[i] == '"' || s[i] == '\\') {
            fprintf(file, "\\%c", s[i++]);
        } else if (s[i] == '\n') {
            fputs("\\n", file);
            i++;
        } else if (s[i] < 0x20 || s[i] == 0x7f) {
            fprintf(file, "\\u%04x", s[i++]);
        } else {
            fwrite(s + i, 1, length, file);
            i += length;
        }
    }
    fputc('"', file);
}

void json_key(json *j, const char *key)
{
    separate(j);
    write_quoted(j->file, key, strlen(key));
    fputs(": ", j->file);
    j->after_key = true;
}

void json_string_n(json *j, const char *text, size_t n)
{
    separate(j);
    write_quoted(j->file, text, n);
}

void json_string(json *j, const char *text)
{
    if (text)
        json_string_n(j, text, strlen(text));
    else
        json_null(j);
}

void json_int(json *j, int64_t value)
{
    separate(j);
    fprintf(j->file, "%" PRId64, value);
}

void json_uint(json *j, uint64_t value)
{
    separate(j);
    fprintf(j->file, "%" PRIu64, value);
}

void json_double(json *j, double value)
{
    char text[40];
    if (!isfinite(value)) {
        json_null(j);
        return;
    }
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        if (strtod(text, NULL) == value)
            break;
    }
    separate(j);
    fputs(text, j->file);
}

void json_bool(json *j, bool value)
{
    separate(j);
    fputs(value ? "true" : "false", j->file);
}

void json_null(json *j)
{
    separate(j);
    fputs("null", j->file);
}

void json_finish(json *j)
{
    fputc('\n', j->file);
}
