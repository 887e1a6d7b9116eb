/* SPDX-License-Identifier: MIT */
/* cli/term.c: what is known about the terminal, and the few things that depend on it. */
#include "term.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

bool term_live(FILE *file)
{
    const char *term = getenv("TERM");
    return isatty(fileno(file)) && term && strcmp(term, "dumb") != 0;
}

bool term_colours(FILE *file)
{
    const char *no_color = getenv("NO_COLOR");
    return (!no_color || !no_color[0]) && term_live(file);
}

styles term_styles(FILE *file)
{
    if (!term_colours(file))
        return (styles){"", "", "", "", ""};
    return (styles){"\033[1m", "\033[2m", "\033[32m", "\033[31m", "\033[0m"};
}

char *time_text(uint64_t nanoseconds, char *buffer, size_t n)
{
    double ns = (double)nanoseconds;
    if (nanoseconds < 1000)
        snprintf(buffer, n, "%.0f ns", ns);
    else if (nanoseconds < 1000000)
        snprintf(buffer, n, "%.2f us", ns / 1e3);
    else if (nanoseconds < 1000000000)
        snprintf(buffer, n, "%.2f ms", ns / 1e6);
    else
        snprintf(buffer, n, "%.2f s", ns / 1e9);
    return buffer;
}

uint64_t clock_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

void progress_show(int done, int total, const char *note)
{
    enum { WIDTH = 32 };
    if (!term_live(stderr) || total <= 0)
        return;
    char bar[WIDTH + 1];
    int filled = (int)((long)done * WIDTH / total);
    memset(bar, '.', WIDTH);
    memset(bar, '#', (size_t)filled);
    bar[WIDTH] = '\0';
    fprintf(stderr, "\r  [%s] %3d%%  %s\033[K", bar, (int)((long)done * 100 / total), note);
    fflush(stderr);
}

void progress_end(void)
{
    if (term_live(stderr)) {
        fputs("\r\033[K", stderr);
        fflush(stderr);
    }
}
