/* SPDX-License-Identifier: MIT */
/* cli/cmd_repro.c: `tenon repro`: runs the reproducers of the hang reports, each in a process of
 * its own under a timeout, and prints a line for each. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "child.h"
#include "cli.h"
#include "json.h"
#include "term.h"

static int run_repro(const command *self, int argc, char **argv);

const command command_repro = {
    .name = "repro",
    .usage = "[NAME]... [--timeout=SECONDS] [--verbose] [--json] [--list]",
    .summary = "run the reproducers of the reported hangs, under a timeout",
    .help =
        "Each NAME (all of them when none is given) is a program or script that makes the call\n"
        "which was reported to hang, measures it, and fails unless it returns [2, 4, 16] in under\n"
        "a millisecond. Each runs in a process of its own; one that does not end in time is shown "
        "with\n"
        "what `tenon doctor` says about it, and is then ended.\n\n"
        "  --timeout=SECONDS  how long one may take; 10 when left out\n"
        "  --verbose          show what they print\n"
        "  --json             one object for each, as JSON\n"
        "  --list             only their names and where they are\n\n"
        "Scripts in Python run on Tenon through `python3 -m tenon.as_torch`; without the Python\n"
        "package they are left out, and the last line says so.\n\n"
        "Exit status: 0, 1 when one failed or hung, 2 for wrong usage.\n",
    .run = run_repro,
};

/* In the order in which the reports name them. */
static const char *const programs[] = {
    "reproduce_meta_mm_hang",   "reproduce_meta_mm_hang_detailed", "test_meta_vs_fake_tensor",
    "test_with_dispatch_trace", "test_hang_with_full_trace.sh",    "reproduce_linear_meta_hang",
};
static const char *const scripts[] = {
    "reproduce_meta_mm_hang.py",     "reproduce_meta_mm_hang_detailed.py",
    "test_meta_vs_fake_tensor.py",   "test_with_dispatch_trace.py",
    "reproduce_linear_meta_hang.py",
};
enum {
    PROGRAMS = sizeof programs / sizeof programs[0],
    SCRIPTS = sizeof scripts / sizeof scripts[0],
    NAME_WIDTH = 36
};

typedef struct session {
    char folder[CHILD_PATH];
    double timeout;
    bool verbose, python;
    json *j; /* NULL: text */
    int ran, failed, lacking;
} session;

static void path_of(const session *s, const char *name, char *path, size_t n)
{
    snprintf(path, n, "%s/%s", s->folder, name);
}

/* Of what it printed, the last line that is not empty. */
static char *last_line(char *text)
{
    size_t n = strlen(text);
    while (n && (text[n - 1] == '\n' || text[n - 1] == ' '))
        text[--n] = '\0';
    char *line = strrchr(text, '\n');
    return line ? line + 1 : text;
}

/* A script asked for a module of torch's that the Python package says it does not have: neither a
 * hang nor a wrong shape, and the line says which. */
static bool lacks_a_part(const char *line)
{
    return strncmp(line, "ModuleNotFoundError: ", 21) == 0 &&
           strstr(line, "Tenon does not have it");
}

static void report(session *s, const char *name, child_result *r)
{
    styles st = term_styles(stdout);
    char took[32];
    time_text(r->nanoseconds, took, sizeof took);
    char *line = last_line(r->output);
    bool lacks = !r->timed_out && r->status != 0 && lacks_a_part(line);
    const char *word = r->timed_out ? "HUNG" : r->status == 0 ? "ok" : lacks ? "lacks" : "FAILED";
    bool good = !r->timed_out && (r->status == 0 || lacks);
    s->ran += !lacks;
    s->lacking += lacks;
    s->failed += !good;
    if (s->j) {
        json_object(s->j);
        json_key(s->j, "name");
        json_string(s->j, name);
        json_key(s->j, "verdict");
        json_string(s->j, word);
        json_key(s->j, "status");
        json_int(s->j, r->status);
        json_key(s->j, "seconds");
        json_double(s->j, (double)r->nanoseconds / 1e9);
        json_key(s->j, "said");
        json_string(s->j, line);
        if (r->doctor) {
            json_key(s->j, "doctor");
            json_string(s->j, r->doctor);
        }
        json_object_end(s->j);
        return;
    }
    if (s->verbose)
        printf("%s\n", r->output);
    const char *said =
        strncmp(line, "PASS: ", 6) == 0 || strncmp(line, "FAIL: ", 6) == 0 ? line + 6 : line;
    printf("%-*s %s%-6s%s %9s  %s\n", NAME_WIDTH, name, good ? st.good : st.bad, word, st.off, took,
           r->timed_out ? "did not end in time; the last it said follows" : said);
    if (!good && !s->verbose)
        printf("%s\n", r->timed_out ? line : r->output);
    if (r->timed_out)
        printf("\nbefore it was ended, the doctor said:\n%s\n",
               r->doctor ? r->doctor : "nothing: it had no record, or had not called Tenon yet\n");
    fflush(stdout);
}

static int run_one(const command *self, session *s, const char *name, bool python)
{
    char path[2 * CHILD_PATH];
    path_of(s, name, path, sizeof path);
    if (access(path, F_OK) != 0) {
        fprintf(stderr, "tenon %s: %s is not there; it is built and installed with tenon\n",
                self->name, path);
        s->failed++;
        return EXIT_FAILED;
    }
    char python3[] = "python3", m[] = "-m", as_torch[] = "tenon.as_torch";
    char *with_python[] = {python3, m, as_torch, path, NULL}, *plain[] = {path, NULL};
    child_result r;
    if (!child_run(python ? with_python : plain, s->timeout, &r)) {
        fprintf(stderr, "tenon %s: cannot run %s: %s\n", self->name, path, r.output);
        s->failed++;
        return EXIT_FAILED;
    }
    report(s, name, &r);
    child_free(&r);
    return EXIT_OK;
}

/* In a build tree the package lies beside this command; an installed one Python finds by itself. */
static void show_package_to_python(void)
{
    char folder[CHILD_PATH], path[3 * CHILD_PATH];
    const char *before = getenv("PYTHONPATH");
    if (!child_folder("python", "python", folder, sizeof folder))
        return;
    snprintf(path, sizeof path, "%s%s%.*s", folder, before && *before ? ":" : "", CHILD_PATH,
             before ? before : "");
    setenv("PYTHONPATH", path, 1);
}

static bool python_package_is_there(void)
{
    char python3[] = "python3", c[] = "-c", text[] = "import tenon.as_torch";
    char *words[] = {python3, c, text, NULL};
    child_result r;
    if (!child_run(words, 60, &r))
        return false;
    bool there = !r.timed_out && r.status == 0;
    child_free(&r);
    return there;
}

static bool is_script(const char *name)
{
    size_t n = strlen(name);
    return n > 3 && strcmp(name + n - 3, ".py") == 0;
}

static bool known(const char *name)
{
    for (int i = 0; i < PROGRAMS; i++) {
        if (strcmp(name, programs[i]) == 0)
            return true;
    }
    for (int i = 0; i < SCRIPTS; i++) {
        if (strcmp(name, scripts[i]) == 0)
            return true;
    }
    return false;
}

static int list_all(const session *s)
{
    char path[2 * CHILD_PATH];
    for (int i = 0; i < PROGRAMS + SCRIPTS; i++) {
        const char *name = i < PROGRAMS ? programs[i] : scripts[i - PROGRAMS];
        path_of(s, name, path, sizeof path);
        if (access(path, F_OK) == 0)
            printf("%-*s %s\n", NAME_WIDTH, name, path);
    }
    return EXIT_OK;
}

/* All of them; returns how many scripts were left out. */
static int run_all(const command *self, session *s)
{
    char path[2 * CHILD_PATH];
    int left_out = 0;
    for (int i = 0; i < PROGRAMS; i++)
        run_one(self, s, programs[i], false);
    s->python = python_package_is_there();
    for (int i = 0; i < SCRIPTS; i++) {
        path_of(s, scripts[i], path, sizeof path);
        if (s->python && access(path, F_OK) == 0)
            run_one(self, s, scripts[i], true);
        else
            left_out++;
    }
    return left_out;
}

static bool read_timeout(const char *text, double *out)
{
    char *end;
    if (!text)
        return true;
    *out = strtod(text, &end);
    return end != text && !*end && *out > 0 && *out <= 86400;
}

static int run_repro(const command *self, int argc, char **argv)
{
    bool timed = false, as_json = false, list = false;
    const char *seconds = NULL;
    session s = {.timeout = 10};
    const option options[] = {{"--timeout", &timed, &seconds, false},
                              {"--verbose", &s.verbose, NULL, false},
                              {"--json", &as_json, NULL, false},
                              {"--list", &list, NULL, false}};
    int n = take_options(self, argc, argv, options, 4);
    if (n < 0)
        return EXIT_USAGE;
    if (!read_timeout(seconds, &s.timeout))
        return usage_error(self, "--timeout needs a number of seconds above 0, not '%s'", seconds);
    if (as_json && s.verbose)
        return usage_error(self, "--json and --verbose do not go together");
    for (int i = 0; i < n; i++) {
        if (!known(argv[i]))
            return usage_error(self, "no reproducer is called '%s'; see tenon repro --list",
                               argv[i]);
    }
    if (!child_folder("repro", TN_REPRO_FROM_BIN, s.folder, sizeof s.folder)) {
        fprintf(stderr, "tenon %s: the reproducers are neither beside this command nor in %s\n",
                self->name, TN_REPRO_FROM_BIN);
        return EXIT_FAILED;
    }
    if (list)
        return list_all(&s);
    show_package_to_python();
    json j = JSON_TO(stdout);
    if (as_json) {
        s.j = &j;
        json_array(&j);
    }
    int left_out = 0;
    if (n == 0)
        left_out = run_all(self, &s);
    for (int i = 0; i < n; i++)
        run_one(self, &s, argv[i], is_script(argv[i]));
    if (as_json) {
        json_array_end(&j);
        json_finish(&j);
    } else {
        printf("%d of %d returned in time with the right shape\n", s.ran - s.failed, s.ran);
        if (s.lacking)
            printf("%d could not run: the Python package lacks what its line names\n", s.lacking);
        if (left_out)
            printf("%d scripts in Python were left out: %s\n", left_out,
                   s.python ? "they are not there"
                            : "python3 cannot import tenon.as_torch (build the Python package, and "
                              "set PYTHONPATH to its folder)");
    }
    return s.failed ? EXIT_FAILED : EXIT_OK;
}
