/* SPDX-License-Identifier: MIT */
/* cli/main.c: `tenon`: finds the command that was named and runs it; help, version, and what to say
 * when nobody knows the word. Exit status: 0 done, 1 it failed, 2 wrong usage. */
#include "cli.h"

#include <errno.h>
#include <string.h>

#include "tenon/base.h"

static int run_help(const command *self, int argc, char **argv);

static const command command_help = {
    .name = "help",
    .usage = "[COMMAND]",
    .summary = "explain a command",
    .help = "Without COMMAND, list the commands.\n",
    .run = run_help,
};

static const command *const commands[] = {
    &command_ops,     &command_explain,  &command_trace, &command_run,  &command_doctor,
    &command_profile, &command_diagnose, &command_repro, &command_demo, &command_help};
enum { COMMANDS = sizeof commands / sizeof commands[0] };

/* Words that later versions will know. */
static const char *const not_yet[] = {"train", "compile", "bench"};
enum { NOT_YET = sizeof not_yet / sizeof not_yet[0] };

static void print_overview(FILE *file)
{
    fputs("usage: tenon COMMAND [OPTION]... [ARGUMENT]...\n"
          "       tenon --version | --help\n\n"
          "Ask Tenon what it would do, and why.\n\n",
          file);
    for (int i = 0; i < COMMANDS; i++)
        fprintf(file, "  %-9s %s\n", commands[i]->name, commands[i]->summary);
    fputs(
        "\n`tenon help COMMAND` says more about one. Environment: TENON_SHOW_DISPATCH_TRACE=1 and\n"
        "TENON_DISPATCH_DEBUG=NAMES watch dispatches; NO_COLOR=1 leaves colours away.\n",
        file);
}

static void print_help(FILE *file, const command *c)
{
    fprintf(file, "usage: tenon %s%s%s\n\n%s.\n\n%s", c->name, c->usage[0] ? " " : "", c->usage,
            c->summary, c->help);
}

static const command *find(const char *name)
{
    for (int i = 0; i < COMMANDS; i++) {
        if (strcmp(commands[i]->name, name) == 0)
            return commands[i];
    }
    return NULL;
}

static int unknown_command(const char *word)
{
    for (int i = 0; i < NOT_YET; i++) {
        if (strcmp(word, not_yet[i]) == 0) {
            fprintf(stderr, "tenon: '%s' is not part of this version\n", word);
            return EXIT_USAGE;
        }
    }
    const char *names[COMMANDS];
    for (int i = 0; i < COMMANDS; i++)
        names[i] = commands[i]->name;
    const char *near = nearest_name(word, names, COMMANDS);
    fprintf(stderr, "tenon: '%s' is not a command; see 'tenon --help'\n", word);
    if (near)
        fprintf(stderr, "The most similar command is '%s'.\n", near);
    return EXIT_USAGE;
}

static int run_help(const command *self, int argc, char **argv)
{
    int n = take_options(self, argc, argv, NULL, 0);
    if (n < 0)
        return EXIT_USAGE;
    if (n > 1)
        return usage_error(self, "one command at a time");
    if (n == 0) {
        print_overview(stdout);
        return EXIT_OK;
    }
    const command *c = find(argv[0]);
    if (!c)
        return unknown_command(argv[0]);
    print_help(stdout, c);
    return EXIT_OK;
}

static int run_command(int argc, char **argv)
{
    const command *c = find(argv[0]);
    if (!c)
        return unknown_command(argv[0]);
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            print_help(stdout, c);
            return EXIT_OK;
        }
    }
    return c->run(c, argc, argv);
}

/* What was written may still lie in a buffer, and the disk may be full. */
static int close_output(int code)
{
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fprintf(stderr, "tenon: cannot write: %s\n", strerror(errno));
        return code == EXIT_OK ? EXIT_FAILED : code;
    }
    return code;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        print_overview(stderr);
        return EXIT_USAGE;
    }
    if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0) {
        fputs(tn_build_info(), stdout);
        return close_output(EXIT_OK);
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        print_overview(stdout);
        return close_output(EXIT_OK);
    }
    if (argv[1][0] == '-') {
        fprintf(stderr, "tenon: unknown option '%s'; see 'tenon --help'\n", argv[1]);
        return EXIT_USAGE;
    }
    return close_output(run_command(argc - 1, argv + 1));
}
