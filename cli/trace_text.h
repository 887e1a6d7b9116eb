/* SPDX-License-Identifier: MIT */
/* cli/trace_text.h: the bytes of a file as the lines of a trace. A shell may have written them in
 * UTF-16, and a person may give the wrong file. */
#ifndef TENON_CLI_TRACE_TEXT_H
#define TENON_CLI_TRACE_TEXT_H

#include <stdio.h>

#include "trace_read.h"

/* What the beginning of the file looks like. */
typedef enum text_kind {
    TEXT_PLAIN, /* ASCII, UTF-8 or anything else: bytes are taken as they are */
    TEXT_UTF16_LITTLE,
    TEXT_UTF16_BIG,
} text_kind;

/* Read all of @p file into @p t; false: it could not be read to its end, errno says why. What is no
 * trace for a reason that shows is named in *looks_like ("compressed (gzip)"), else NULL. */
bool trace_read_file(FILE *file, trace *t, const char **looks_like);

#endif
