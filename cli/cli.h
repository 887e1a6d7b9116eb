/* SPDX-License-Identifier: MIT */
/* cli/cli.h: what the commands of `tenon` share: their table, options, and words for errors.
 *
 * The command is a user of the library like any other: it includes public headers alone. */
#ifndef CLI_H
#define CLI_H

#include <stdbool.h>
#include <stdio.h>

#include "tenon/base.h"

enum { EXIT_OK = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

/* One subcommand. @p argv[0] is its name; what it returns is the exit status. */
typedef struct command {
    const char *name;
    const char *usage; /* what follows "tenon NAME" */
    const char *summary;
    const char *help; /* paragraphs after the usage line */
    int (*run)(const struct command *self, int argc, char **argv);
} command;

extern const command command_ops, command_explain, command_trace, command_run, command_doctor,
    command_profile, command_diagnose, command_repro, command_demo;

/* One option. A flag has @p flag alone; with @p value, "--name=TEXT" sets both, and "--name" alone
 * sets the flag when @p value_optional. */
typedef struct option {
    const char *name; /* "--json" */
    bool *flag;
    const char **value;
    bool value_optional;
} option;

/* Take the options out of @p argv, wherever they stand before "--", and leave operands.
 * Returns the number of operands, or -1 after it has complained. A word such as -1 is an operand.
 */
int take_options(const command *self, int argc, char **argv, const option *options, int n);

/* "tenon ops: …" to stderr, then the usage line; returns EXIT_USAGE. */
int usage_error(const command *self, const char *format, ...) TN_PRINTF(2, 3);
/* The library's last failure to stderr, "tenon ops: …"; returns EXIT_FAILED. */
int library_error(const command *self);

/* Of @p n names the one most like @p word, NULL when none is near. */
const char *nearest_name(const char *word, const char *const *names, int n);

#endif
