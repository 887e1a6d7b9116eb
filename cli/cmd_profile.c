/* SPDX-License-Identifier: MIT */
/* cli/cmd_profile.c: `tenon profile`: records a program that uses Tenon, or one call of an
 * operator, and writes what ran as a page, a trace or a table. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli.h"
#include "opcall.h"
#include "tenon/profiler.h"

static int run_profile(const command *self, int argc, char **argv);

const command command_profile = {
    .name = "profile",
    .usage =
        "[--shapes] [--memory] [--stack] [--max=BYTES] [-o FILE] -- PROGRAM ARG... | OP ARG...",
    .summary = "record what ran, for how long, and what it allocated",
    .help =
        "PROGRAM is any program that uses Tenon; it runs as it is, and FILE is written when it\n"
        "ends. With OP and ARG (as in `tenon explain`) the call is made here, --repeat=N times.\n\n"
        "  -o FILE        .html, a page with a timeline, the operators and the dispatch tree;\n"
        "                 .json, a Chrome trace, which Perfetto opens; .txt, the table.\n"
        "                 profile.html when left out; for a call of OP the table on stdout\n"
        "  --shapes       dtype and sizes of tensor arguments\n"
        "  --memory       bytes of tensor data that each event allocated and freed\n"
        "  --stack        each redispatch, with the kernel that it reached\n"
        "  --max=BYTES    memory for the recording, such as 64M; 256M when left out. What comes\n"
        "                 after that is counted and dropped\n"
        "  --repeat=N     make the call N times (OP only)\n\n"
        "Exit status: that of PROGRAM; 1 when the call or writing failed, 2 for wrong usage.\n\n"
        "  tenon profile --shapes -o run.html -- ./train\n"
        "  tenon profile --stack --repeat=100 aten::matmul 'meta f32[2,4,16]' 'meta f32[16,16]'\n",
    .run = run_profile,
};

typedef struct settings {
    bool shapes, memory, stack;
    const char *max, *file, *repeat;
} settings;

static bool read_bytes(const char *text, size_t *out)
{
    char *end;
    errno = 0;
    unsigned long long n = strtoull(text, &end, 10);
    int shift = *end == 'K' ? 10 : *end == 'M' ? 20 : *end == 'G' ? 30 : 0;
    end += shift != 0;
    if (end == text || *end || errno || n == 0 || text[0] == '-' || n > SIZE_MAX >> shift)
        return false;
    *out = (size_t)n << shift;
    return true;
}

static bool has_ending(const char *path)
{
    static const char *const endings[] = {".html", ".json", ".txt"};
    size_t n = strlen(path);
    for (int i = 0; i < 3; i++) {
        size_t m = strlen(endings[i]);
        if (n > m && strcmp(path + n - m, endings[i]) == 0)
            return true;
    }
    return false;
}

/* ---- a program ---- */

/* When the file was last written, 0 when it is not there. */
static uint64_t written_at(const char *path)
{
    struct stat info;
    if (stat(path, &info) != 0)
        return 0;
    return (uint64_t)info.st_mtim.tv_sec * 1000000000u + (uint64_t)info.st_mtim.tv_nsec;
}

/* Whether a file can be made in the folder of @p path. Looked at before the program runs: it may
 * run for hours. A folder that has %p in its name is not known yet. */
static bool folder_takes_files(const char *path)
{
    const char *slash = strrchr(path, '/');
    char folder[8192] = ".";
    size_t n = slash ? (size_t)(slash - path) + 1 : 0;
    if (n >= sizeof folder)
        return true;
    if (slash) {
        memcpy(folder, path, n);
        folder[n] = '\0';
    }
    return strstr(folder, "%p") || access(folder, W_OK | X_OK) == 0;
}

static int profile_program(const command *self, const settings *s, char **argv)
{
    const char *file = s->file ? s->file : "profile.html";
    char variable[8192];
    if (strchr(file, ','))
        return usage_error(self, "the name of FILE must not have a comma");
    int n = snprintf(variable, sizeof variable, "%s%s%s%s%s%s", file, s->shapes ? ",shapes" : "",
                     s->memory ? ",memory" : "", s->stack ? ",stack" : "", s->max ? ",max=" : "",
                     s->max ? s->max : "");
    if (n < 0 || (size_t)n >= sizeof variable)
        return usage_error(self, "the name of FILE is too long");
    if (!folder_takes_files(file)) {
        fprintf(stderr, "tenon %s: cannot write %s: %s\n", self->name, file, strerror(errno));
        return EXIT_FAILED;
    }
    uint64_t before = written_at(file);
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        setenv("TENON_PROFILE", variable, 1);
        execvp(argv[0], argv);
        fprintf(stderr, "tenon %s: cannot run %s: %s\n", self->name, argv[0], strerror(errno));
        _exit(127);
    }
    int status = 0;
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    if (pid < 0) {
        fprintf(stderr, "tenon %s: cannot start a process: %s\n", self->name, strerror(errno));
        return EXIT_FAILED;
    }
    int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    if (code == 127 && written_at(file) == before)
        return code;
    if (!strstr(file, "%p") && written_at(file) == before) {
        fprintf(stderr,
                "tenon %s: %s was not written: %s uses no Tenon, or it was killed or left with "
                "_exit\n",
                self->name, file, argv[0]);
        return code ? code : EXIT_FAILED;
    }
    fprintf(stderr, "tenon %s: wrote %s\n", self->name, file);
    return code;
}

/* ---- a call ---- */

static int show(const command *self, const settings *s, const tn_profile *profile)
{
    if (s->file) {
        if (tn_profile_write(profile, s->file) != TN_OK)
            return library_error(self);
        fprintf(stderr, "tenon %s: wrote %s\n", self->name, s->file);
        return EXIT_OK;
    }
    char *table;
    if (tn_profile_table(profile, 0, &table) != TN_OK)
        return library_error(self);
    fputs(table, stdout);
    tn_string_free(table);
    return EXIT_OK;
}

static int profile_call(const command *self, const settings *s, int argc, char **argv, long repeat)
{
    opcall c;
    int code = opcall_read(self, argc, argv, false, &c);
    if (code != EXIT_OK)
        return code;
    tn_profiler_options options = TN_PROFILER_OPTIONS_INIT;
    options.shapes = s->shapes;
    options.memory = s->memory;
    options.stack = s->stack;
    if (s->max)
        (void)read_bytes(s->max, &options.max_bytes);
    tn_profile *profile = NULL;
    tn_status status = tn_profiler_start(&options);
    for (long i = 0; status == TN_OK && i < repeat; i++) {
        opcall_run(&c);
        status = c.status;
    }
    if (status != TN_OK) {
        code = library_error(self);
    } else if (tn_profiler_stop(&profile) != TN_OK) {
        code = library_error(self);
    } else {
        code = show(self, s, profile);
    }
    tn_profile_free(profile);
    opcall_free(&c);
    return code;
}

/* ---- the command line ---- */

/* "-o FILE" as "--output=FILE", in one block that the caller frees. NULL: no FILE, or no memory. */
static char **with_long_output(int argc, char **argv, int *out_argc)
{
    size_t nbytes = ((size_t)argc + 1) * sizeof(char *);
    for (int i = 0; i < argc; i++)
        nbytes += strlen(argv[i]) + sizeof "--output=";
    char **words = calloc(1, nbytes);
    if (!words)
        return NULL;
    char *text = (char *)(words + argc + 1);
    int n = 0;
    bool ended = false;
    for (int i = 0; i < argc; i++) {
        ended = ended || strcmp(argv[i], "--") == 0;
        if (ended || strncmp(argv[i], "-o", 2) != 0) {
            words[n++] = argv[i];
            continue;
        }
        const char *file = argv[i][2] ? argv[i] + 2 : ++i < argc ? argv[i] : NULL;
        if (!file || strcmp(file, "--") == 0) {
            free(words);
            return NULL;
        }
        words[n++] = text;
        text += sprintf(text, "--output=%s", file) + 1;
    }
    *out_argc = n;
    return words;
}

static int profile_words(const command *self, int argc, char **words)
{
    settings s = {0};
    bool has_max = false, has_file = false, has_repeat = false, program = false;
    const option options[] = {
        {"--shapes", &s.shapes, NULL, false},    {"--memory", &s.memory, NULL, false},
        {"--stack", &s.stack, NULL, false},      {"--max", &has_max, &s.max, false},
        {"--output", &has_file, &s.file, false}, {"--repeat", &has_repeat, &s.repeat, false}};
    for (int i = 1; i < argc; i++)
        program = program || strcmp(words[i], "--") == 0;
    int n = take_options(self, argc, words, options, 6);
    if (n < 0)
        return EXIT_USAGE;
    size_t bytes;
    long repeat = 1;
    if (s.max && !read_bytes(s.max, &bytes))
        return usage_error(self, "--max needs a number of bytes such as 64M, not '%s'", s.max);
    if (s.file && !has_ending(s.file))
        return usage_error(self, "FILE must end in .html, .json or .txt, not '%s'", s.file);
    if (s.repeat) {
        char *end;
        repeat = strtol(s.repeat, &end, 10);
        if (end == s.repeat || *end || repeat < 1 || repeat > 100000000)
            return usage_error(self, "--repeat needs a number from 1, not '%s'", s.repeat);
    }
    if (n == 0)
        return usage_error(self, program ? "which program?" : "which operator or program?");
    if (!program)
        return profile_call(self, &s, n, words, repeat);
    if (s.repeat)
        return usage_error(self, "--repeat goes with OP, not with a program");
    words[n] = NULL;
    return profile_program(self, &s, words);
}

static int run_profile(const command *self, int argc, char **argv)
{
    char **words = with_long_output(argc, argv, &argc);
    if (!words)
        return usage_error(self, "option '-o' needs a value: -o FILE");
    int code = profile_words(self, argc, words);
    free(words);
    return code;
}
