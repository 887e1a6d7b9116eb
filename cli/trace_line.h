/* SPDX-License-Identifier: MIT */
/* cli/trace_line.h: which lines of a file are lines of a trace, and where in the line they begin.
 *
 * People put traces into notes and reports, and say in them what was not printed: a sentence that
 * has the words of a stage is none. */
#ifndef CLI_TRACE_LINE_H
#define CLI_TRACE_LINE_H

#include <stdbool.h>
#include <stddef.h>

/* Takes colours and other sequences for a terminal out of @p line, and replaces every other control
 * character but tabs by a blank, in place. Returns the new length, without blanks at the end.
 * @p damaged: something was there that no text has. */
size_t trace_clean(char *line, size_t n, bool *damaged);

/* Where "[DEBUG LABEL] text" (or a functor's line) begins in @p line: at its start, behind a prefix
 * of a log, or where another thread wrote into the same line (then @p torn). NULL: it is none. */
const char *trace_stage_begin(const char *line, bool *torn);

/* The same for "[call] op=[…", the blanks of its depth not counted. */
const char *trace_dispatch_begin(const char *line);

/* The label of a stage line that was written down without one, NULL when @p line is no such line.
 * Nothing else is in the line. */
const char *trace_bare_label(const char *line);

#endif
