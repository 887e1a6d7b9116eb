/* SPDX-License-Identifier: MIT */
/* cli/term.h: colours where a person looks at a terminal and wants them, plain text elsewhere. */
#ifndef CLI_TERM_H
#define CLI_TERM_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* True when @p file is a terminal that can take escape codes and NO_COLOR is not set. */
bool term_colours(FILE *file);
/* True when @p file is a terminal whose line can be rewritten. */
bool term_live(FILE *file);

/* Escape codes for stdout: "" when it takes none. */
typedef struct styles {
    const char *bold, *dim, *good, *bad, *off;
} styles;
styles term_styles(FILE *file);

/* "820 ns", "2.31 us", "1.20 s" into @p buffer. */
char *time_text(uint64_t nanoseconds, char *buffer, size_t n);
uint64_t clock_ns(void);

/* A bar on stderr that rewrites its own line on a terminal, and is silent elsewhere. */
void progress_show(int done, int total, const char *note);
void progress_end(void);

#endif
