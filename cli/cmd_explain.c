/* SPDX-License-Identifier: MIT */
/* cli/cmd_explain.c: `tenon explain`: makes a call while watching it, then says hop by hop where it
 * went and why. */
#include "cli.h"
#include "hops.h"
#include "opcall.h"
#include "term.h"

static int run_explain(const command *self, int argc, char **argv);

const command command_explain = {
    .name = "explain",
    .usage = "OP ARG... [--fake] [--json] [--time]",
    .summary = "call an operator and explain every dispatch of the call",
    .help = "OP is an operator's full name (aten::mm, aten::add.Tensor). An ARG is positional, or\n"
            "NAME=VALUE; what is left out takes its default:\n\n"
            "  meta f32[2,4,16]   a tensor: device (cpu when left out), dtype, sizes; then any of\n"
            "                     .t .strided .expanded .cl .grad, and =V to fill it with V\n"
            "  2.5  True  None  [1, 2]  'text'  float32  cpu\n\n"
            "The call is a real one. For each dispatch (hop) of it, indented by depth, you see\n\n"
            "  arguments  the key set of each tensor argument\n"
            "  include    the thread's include set     } when the set was computed\n"
            "  exclude    the thread's exclude set     }\n"
            "  mask       keys that fall through for this operator\n"
            "  set        the key set that results, which the kernel gets\n"
            "  winner     its highest key, and that key's slot in the operator's table\n"
            "  kernel     what sits in the slot, and who registered it\n"
            "  why        how it came to sit there\n\n"
            "and the time it took, watching included. Then comes the result, or the error.\n\n"
            "  --fake     with fake tensors: they pretend their device, also one that is not here\n"
            "  --json     the same as JSON\n"
            "  --time     then call again, unwatched, and print the best time\n\n"
            "Exit status: 0, 1 when the call failed, 2 for wrong usage.\n\n"
            "  tenon explain aten::matmul 'meta f32[2,4,16]' 'meta f32[16,16]'\n",
    .run = run_explain,
};

/* Best time of one call among many; gives up counting after a moment. */
static uint64_t best_time(opcall *c, int *calls)
{
    enum { MOST = 10000 };
    const uint64_t moment = 50 * 1000 * 1000;
    uint64_t best = UINT64_MAX, begin = clock_ns();
    int n = 0;
    while (n < MOST) {
        uint64_t start = clock_ns();
        opcall_run(c);
        uint64_t end = clock_ns();
        n++;
        if (c->status != TN_OK)
            break;
        best = end - start < best ? end - start : best;
        if (end - begin > moment)
            break;
    }
    *calls = n;
    return best;
}

static void print_text(const opcall *c, const hop_list *hops)
{
    styles st = term_styles(stdout);
    printf("%s%s%s\n", st.bold, c->schema, st.off);
    hops_print(stdout, hops);
    putchar('\n');
    opcall_print_results(stdout, c, false);
}

static void print_json(const opcall *c, const hop_list *hops, int argc, char **argv)
{
    json j = JSON_TO(stdout);
    json_object(&j);
    json_key(&j, "operator");
    json_string(&j, tn_op_name(c->op));
    json_key(&j, "schema");
    json_string(&j, c->schema);
    json_key(&j, "arguments");
    json_one_line(&j);
    json_array(&j);
    for (int i = 0; i < argc; i++)
        json_string(&j, argv[i]);
    json_array_end(&j);
    json_key(&j, "hops");
    hops_json(&j, hops);
    json_key(&j, "complete");
    json_bool(&j, !hops->incomplete);
    opcall_json_results(&j, c);
    json_object_end(&j);
    json_finish(&j);
}

static int run_explain(const command *self, int argc, char **argv)
{
    bool as_json = false, timed = false, fake = false;
    const option options[] = {{"--json", &as_json, NULL, false},
                              {"--time", &timed, NULL, false},
                              {"--fake", &fake, NULL, false}};
    int n = take_options(self, argc, argv, options, 3);
    if (n < 0)
        return EXIT_USAGE;
    if (as_json && timed)
        return usage_error(self, "--json and --time do not go together");
    opcall c;
    int code = opcall_read(self, n, argv, fake, &c);
    if (code != EXIT_OK)
        return code;
    hop_list hops = {0};
    if (hops_start(&hops) != TN_OK) {
        opcall_free(&c);
        return library_error(self);
    }
    opcall_run(&c);
    hops_stop();
    if (as_json)
        print_json(&c, &hops, n - 1, argv + 1);
    else
        print_text(&c, &hops);
    code = c.status == TN_OK ? EXIT_OK : EXIT_FAILED;
    hops_free(&hops);
    if (timed && code == EXIT_OK) {
        char text[32];
        int calls;
        uint64_t best = best_time(&c, &calls);
        if (c.status == TN_OK)
            printf("time      %s, the best of %d boxed calls that nobody watched\n",
                   time_text(best, text, sizeof text), calls);
    }
    opcall_free(&c);
    return code;
}
