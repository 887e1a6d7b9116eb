/* SPDX-License-Identifier: MIT */
/* cli/json.h: writes JSON to a stream as it is told, indented, with commas where they belong.
 *
 * Text that is not UTF-8 is written with U+FFFD in place of what is wrong, so that the output is
 * always JSON. The caller balances begin and end, and gives a key before each value of an object.
 */
#ifndef CLI_JSON_H
#define CLI_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef struct json {
    FILE *file;
    int depth;
    int flat;  /* depth from which everything stays on one line; 0: nothing does */
    bool some; /* the innermost object or array has an element already */
    bool after_key;
} json;

#define JSON_TO(stream)  \
    {                    \
        .file = (stream) \
    }

void json_object(json *j);
void json_object_end(json *j);
void json_array(json *j);
void json_array_end(json *j);
/* The array or object that begins next stays on one line. */
void json_one_line(json *j);
void json_key(json *j, const char *key);
void json_string(json *j, const char *text);
void json_string_n(json *j, const char *text, size_t n);
void json_int(json *j, int64_t value);
void json_uint(json *j, uint64_t value);
/* Shortest text that reads back as the same double; null when it is not finite. */
void json_double(json *j, double value);
void json_bool(json *j, bool value);
void json_null(json *j);
/* A newline after the outermost value. */
void json_finish(json *j);

#endif
