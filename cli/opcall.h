/* SPDX-License-Identifier: MIT */
/* cli/opcall.h: a call of an operator as it is written on a command line: OP ARG… */
#ifndef CLI_OPCALL_H
#define CLI_OPCALL_H

#include "cli.h"
#include "json.h"
#include "tenon/dispatch.h"
#include "tenon/fake.h"

typedef struct opcall {
    tn_op *op;
    char *schema;
    tn_value *args, *rets; /* owned values */
    int nargs, nrets;
    tn_status status; /* of the call; meaningful once it was made */
    bool fake;        /* inside `guard` from reading to freeing */
    tn_fake_guard guard;
} opcall;

/* Find the operator and read its arguments; with @p fake in a fake mode, which lasts until
 * opcall_free. Returns EXIT_OK, or complains and says how to exit. */
int opcall_read(const command *self, int argc, char **argv, bool fake, opcall *out);
/* Make the call, boxed. The results of an earlier one are released. */
void opcall_run(opcall *c);
void opcall_free(opcall *c);

/* "result  float32[2, 4, 16], strides [64, 16, 1], on meta", a line for each; with @p values also
 * what is in them. */
void opcall_print_results(FILE *file, const opcall *c, bool values);
/* "status", then "results" or "error". */
void opcall_json_results(json *j, const opcall *c);
/* One argument or result as JSON. */
void value_json(json *j, const tn_value *v);
/* One argument or result in a line, without a newline. */
void value_print(FILE *file, const tn_value *v);

#endif
