/* SPDX-License-Identifier: MIT */
/* cli/cmd_trace.c: `tenon trace` and `tenon run`: make a call, with the dispatch trace or without.
 */
#include <string.h>

#include "cli.h"
#include "opcall.h"
#include "tenon/dispatch.h"

static int run_trace(const command *self, int argc, char **argv);
static int run_run(const command *self, int argc, char **argv);

const command command_trace = {
    .name = "trace",
    .usage = "OP ARG... [--fake] [--debug[=NAMES]]",
    .summary = "call an operator with the dispatch trace on stderr",
    .help = "Every dispatch prints one line before its kernel is looked up, so the last line of a "
            "call\n"
            "that hangs or crashes names the operator and the key that it went to:\n\n"
            "   [call] op=[aten::mm], key=[AutogradMeta]\n"
            "    [redispatch] op=[aten::mm], key=[Meta]\n\n"
            "  --debug         also print the stages of each dispatch of OP\n"
            "  --debug=NAMES   of these: aten::mm, mm (names that end so), aten::conv*;\n"
            "                  * for all\n"
            "  --fake          with fake tensors\n\n"
            "In a program of your own: TENON_SHOW_DISPATCH_TRACE=1, TENON_DISPATCH_DEBUG=NAMES.\n"
            "OP and ARG are as in `tenon explain`.\n",
    .run = run_trace,
};

const command command_run = {
    .name = "run",
    .usage = "OP ARG... [--fake] [--json]",
    .summary = "call an operator and print what it returns",
    .help =
        "OP and ARG are as in `tenon explain`. A tensor argument is filled with a fixed, varied\n"
        "pattern that depends on its sizes and dtype alone, or with V when it ends in =V.\n\n"
        "  --fake    with fake tensors, which have no values\n"
        "  --json    shapes as JSON, without the values\n\n"
        "  tenon run aten::mm 'f32[2,3]' 'f32[3,2]'\n",
    .run = run_run,
};

/* Call, print, and say how to exit. A failure goes to stderr. */
static int call_and_print(const command *self, opcall *c, bool as_json)
{
    opcall_run(c);
    if (as_json) {
        json j = JSON_TO(stdout);
        json_object(&j);
        json_key(&j, "operator");
        json_string(&j, tn_op_name(c->op));
        opcall_json_results(&j, c);
        json_object_end(&j);
        json_finish(&j);
    } else if (c->status == TN_OK) {
        opcall_print_results(stdout, c, true);
    }
    return c->status == TN_OK ? EXIT_OK : library_error(self);
}

static int run_trace(const command *self, int argc, char **argv)
{
    bool debug = false, fake = false;
    const char *filter = NULL;
    const option options[] = {{"--debug", &debug, &filter, true}, {"--fake", &fake, NULL, false}};
    int n = take_options(self, argc, argv, options, 2);
    if (n < 0)
        return EXIT_USAGE;
    if (filter && !filter[0])
        return usage_error(self, "--debug= needs the name of an operator, its end, or a pattern");
    opcall c;
    int code = opcall_read(self, n, argv, fake, &c);
    if (code != EXIT_OK)
        return code;
    if (debug && tn_set_dispatch_debug(filter ? filter : tn_op_name(c.op)) != TN_OK) {
        opcall_free(&c);
        return library_error(self);
    }
    tn_set_dispatch_trace(true);
    code = call_and_print(self, &c, false);
    opcall_free(&c);
    return code;
}

static int run_run(const command *self, int argc, char **argv)
{
    bool as_json = false, fake = false;
    const option options[] = {{"--json", &as_json, NULL, false}, {"--fake", &fake, NULL, false}};
    int n = take_options(self, argc, argv, options, 2);
    if (n < 0)
        return EXIT_USAGE;
    opcall c;
    int code = opcall_read(self, n, argv, fake, &c);
    if (code != EXIT_OK)
        return code;
    code = call_and_print(self, &c, as_json);
    opcall_free(&c);
    return code;
}
