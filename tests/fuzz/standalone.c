/* SPDX-License-Identifier: MIT */
/* tests/fuzz/standalone.c: runs a fuzz target where libFuzzer is not at hand.
 *
 *   fuzz_x [-n runs] [-t seconds] [-s seed] [file or folder…]      FUZZ_RUNS is -n for all targets
 *
 * Every file of the corpus is run as it is, then mutations of it: flipped bits, inserted, removed,
 * repeated and spliced pieces. The same seed gives the same inputs, so what fails can be run again.
 * The input that is running when the process dies is in ./crash-input. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX_BYTES = 1 << 16, MAX_FILES = 4096, DEFAULT_RUNS = 500000 };

typedef struct input {
    uint8_t *data;
    size_t size;
} input;

static input corpus[MAX_FILES];
static size_t n_corpus;
static uint64_t state = 1;

/* What runs now, for the signal handler. */
static const uint8_t *volatile current;
static volatile size_t current_size;

static uint64_t next_random(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static size_t below(size_t n)
{
    return n == 0 ? 0 : (size_t)(next_random() % n);
}

static void on_crash(int signal_number)
{
    int fd = open("crash-input", O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (fd >= 0) {
        ssize_t written = write(fd, (const void *)current, current_size);
        (void)written;
        close(fd);
    }
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

/* A copy of the exact size, so that the address sanitizer sees a read past the end. */
static void run_one(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size ? size : 1);
    if (!copy)
        exit(2);
    if (size)
        memcpy(copy, data, size);
    current = copy;
    current_size = size;
    LLVMFuzzerTestOneInput(copy, size);
    free(copy);
}

static void add_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        exit(2);
    }
    uint8_t *data = malloc(MAX_BYTES);
    if (!data || n_corpus == MAX_FILES)
        exit(2);
    corpus[n_corpus].size = fread(data, 1, MAX_BYTES, file);
    corpus[n_corpus++].data = data;
    fclose(file);
}

static void add_path(const char *path)
{
    struct stat info;
    if (stat(path, &info) != 0 || !S_ISDIR(info.st_mode)) {
        add_file(path);
        return;
    }
    struct dirent **entries = NULL;
    int n = scandir(path, &entries, NULL, alphasort); /* sorted: the order is part of the seed */
    for (int i = 0; i < n; i++) {
        if (entries[i]->d_name[0] != '.') {
            char name[4096];
            snprintf(name, sizeof name, "%s/%s", path, entries[i]->d_name);
            add_file(name);
        }
        free(entries[i]);
    }
    free(entries);
}

static size_t mutate(uint8_t *buffer, size_t size)
{
    static const char interesting[] = "()[]{}<>,:;.*?!=->|&\"'\\ \n0123456789-+eE_aT#\xff\x80";
    switch (below(7)) {
    case 0: /* flip a bit */
        if (size)
            buffer[below(size)] ^= (uint8_t)(1u << below(8));
        return size;
    case 1: /* another byte */
        if (size)
            buffer[below(size)] = (uint8_t)interesting[below(sizeof interesting)];
        return size;
    case 2: { /* insert a byte */
        if (size == MAX_BYTES)
            return size;
        size_t at = below(size + 1);
        memmove(buffer + at + 1, buffer + at, size - at);
        buffer[at] = (uint8_t)interesting[below(sizeof interesting)];
        return size + 1;
    }
    case 3: { /* remove a piece */
        size_t at = below(size), n = below(size - at) + (size > at);
        memmove(buffer + at, buffer + at + n, size - at - n);
        return size - n;
    }
    case 4: { /* repeat a piece */
        size_t at = below(size), n = below(size - at);
        if (n > MAX_BYTES - size)
            return size;
        memmove(buffer + at + n, buffer + at, size - at);
        return size + n;
    }
    case 5: { /* end with the end of another input */
        const input *other = &corpus[below(n_corpus)];
        size_t keep = below(size + 1), from = below(other->size), n = other->size - from;
        if (n > MAX_BYTES - keep)
            n = MAX_BYTES - keep;
        memcpy(buffer + keep, other->data + from, n);
        return keep + n;
    }
    default: /* cut */
        return below(size + 1);
    }
}

static long number(const char *text)
{
    char *end = NULL;
    long value = strtol(text, &end, 10);
    if (*end != '\0' || value < 0) {
        fprintf(stderr, "not a number: %s\n", text);
        exit(2);
    }
    return value;
}

int main(int argc, char **argv)
{
    const char *wanted = getenv("FUZZ_RUNS");
    long runs = wanted && *wanted ? number(wanted) : DEFAULT_RUNS, seconds = 0;
    for (int option; (option = getopt(argc, argv, "n:t:s:")) != -1;) {
        if (option == 'n')
            runs = number(optarg);
        else if (option == 't')
            seconds = number(optarg);
        else if (option == 's')
            state = (uint64_t)number(optarg) * 2 + 1;
        else
            return 2;
    }
    for (int i = optind; i < argc; i++)
        add_path(argv[i]);
    if (n_corpus == 0) {
        static uint8_t nothing[1];
        corpus[n_corpus++].data = nothing;
    }
    const int signals[] = {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGALRM};
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        signal(signals[i], on_crash);

    for (size_t i = 0; i < n_corpus; i++)
        run_one(corpus[i].data, corpus[i].size);
    static uint8_t buffer[MAX_BYTES];
    time_t stop = time(NULL) + seconds;
    long done = 0;
    while (seconds > 0 ? time(NULL) < stop : done < runs) {
        const input *seed = &corpus[below(n_corpus)];
        size_t size = seed->size;
        memcpy(buffer, seed->data, size);
        for (size_t n = 1 + below(8); n > 0; n--)
            size = mutate(buffer, size);
        alarm(300); /* an input that takes so long hangs */
        run_one(buffer, size);
        done++;
    }
    alarm(0);
    printf("%zu inputs of the corpus and %ld mutations\n1 passed, 0 failed\n", n_corpus, done);
    return 0;
}
