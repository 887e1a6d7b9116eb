/* SPDX-License-Identifier: MIT */
/* cli/watch.c: see watch.h.
 *
 * Note [The screen]
 * On a terminal the text has a screen of its own, which goes with the command: what was there
 * before comes back, and the terminal's settings with it, however the command ends or pauses (^C,
 * ^Z, a signal). Signals are taken while it waits, at no other moment, so nothing is ever half
 * drawn. */
#define _GNU_SOURCE /* ppoll */
#include "watch.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "term.h"

/* ---- signals ---- */

static volatile sig_atomic_t resized, paused, continued, ended; /* ended: by which signal */

static void on_signal(int number)
{
    if (number == SIGWINCH)
        resized = 1;
    else if (number == SIGTSTP)
        paused = 1;
    else if (number == SIGCONT)
        continued = 1;
    else
        ended = number;
}

static const int caught[] = {SIGWINCH, SIGTSTP, SIGCONT, SIGINT, SIGTERM, SIGHUP, SIGQUIT};
enum { CAUGHT = sizeof caught / sizeof *caught };

/* Signals come in while *open is the mask, and wait otherwise. */
static void catch_signals(sigset_t *open)
{
    struct sigaction action = {.sa_handler = on_signal};
    sigset_t all;
    sigemptyset(&all);
    for (int i = 0; i < CAUGHT; i++) {
        struct sigaction old;
        /* Who started it with nohup or in the background meant it. */
        if (sigaction(caught[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
            sigaction(caught[i], &action, NULL);
        sigaddset(&all, caught[i]);
    }
    sigprocmask(SIG_BLOCK, &all, open);
    for (int i = 0; i < CAUGHT; i++)
        sigdelset(open, caught[i]);
}

static void end_by(int number)
{
    sigset_t one;
    signal(number, SIG_DFL);
    sigemptyset(&one);
    sigaddset(&one, number);
    sigprocmask(SIG_UNBLOCK, &one, NULL);
    raise(number);
}

/* ---- the screen ---- */

typedef struct screen {
    bool on;   /* it is ours now */
    bool keys; /* the keyboard is, too */
    struct termios before;
    int rows, columns;
    size_t first; /* line of the rest that is at the top */
} screen;

static bool has_foreground(void)
{
    return isatty(STDIN_FILENO) && tcgetpgrp(STDIN_FILENO) == getpgrp();
}

static void screen_measure(screen *s)
{
    struct winsize size;
    bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0;
    s->rows = known && size.ws_row ? size.ws_row : 24;
    s->columns = known && size.ws_col ? size.ws_col : 80;
}

static void screen_enter(screen *s)
{
    screen_measure(s);
    if (has_foreground() && (s->keys || tcgetattr(STDIN_FILENO, &s->before) == 0)) {
        struct termios raw = s->before;
        raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
        raw.c_cc[VMIN] = 0;
        raw.c_cc[VTIME] = 0;
        s->keys = tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) == 0;
    }
    if (!s->on)
        fputs("\033[?1049h\033[?25l", stdout); /* another screen, no cursor */
    s->on = true;
}

static void screen_leave(screen *s)
{
    if (s->keys && has_foreground())
        tcsetattr(STDIN_FILENO, TCSADRAIN, &s->before);
    s->keys = false;
    if (s->on)
        fputs("\033[?25h\033[?1049l", stdout);
    s->on = false;
    fflush(stdout);
}

/* ---- drawing ---- */

/* Bytes of @p text that fit into @p columns; whole characters. */
static size_t fitting(const char *text, size_t n, int columns)
{
    size_t i = 0;
    for (int used = 0; i < n; i++) {
        if (((unsigned char)text[i] & 0xc0) != 0x80 && used++ == columns)
            break;
    }
    return i;
}

static void put_line(const screen *s, const char *text, size_t n, int *row)
{
    if (*row >= s->rows)
        return;
    printf("%s%.*s\033[K", *row ? "\r\n" : "", (int)fitting(text, n, s->columns), text);
    ++*row;
}

/* A line of the head: it goes on below, at spaces where there are some. */
static void put_wrapped(const screen *s, const char *text, size_t n, int *row)
{
    const char *indent = "";
    while (n && *row < s->rows) {
        int room = s->columns - (int)strlen(indent);
        size_t fits = fitting(text, n, room > 1 ? room : 1);
        if (fits < n) {
            size_t cut = fits;
            while (cut > 0 && text[cut] != ' ')
                cut--;
            fits = cut ? cut : fits;
        }
        printf("%s%s%.*s\033[K", *row ? "\r\n" : "", indent, (int)fits, text);
        ++*row;
        while (fits < n && text[fits] == ' ')
            fits++;
        text += fits;
        n -= fits;
        indent = s->columns > 30 ? "         " : "";
    }
}

static const char *line_end(const char *line)
{
    const char *end = strchr(line, '\n');
    return end ? end : line + strlen(line);
}

static size_t count_lines(const char *text)
{
    size_t n = 0;
    for (; *text; text = *line_end(text) ? line_end(text) + 1 : line_end(text))
        n++;
    return n;
}

static void draw(screen *s, const char *text)
{
    int row = 0;
    styles st = term_styles(stdout);
    fputs("\033[H", stdout);
    while (*text && *text != '\n') {
        const char *end = line_end(text);
        bool verdict = strncmp(text, "verdict:", 8) == 0;
        fputs(verdict ? st.bold : "", stdout);
        put_wrapped(s, text, (size_t)(end - text), &row);
        fputs(verdict ? st.off : "", stdout);
        text = *end ? end + 1 : end;
    }
    size_t lines = count_lines(text), room = s->rows - 1 > row ? (size_t)(s->rows - 1 - row) : 0;
    size_t most = lines > room ? lines - room : 0;
    s->first = s->first < most ? s->first : most;
    for (size_t i = 0; i < s->first; i++)
        text = line_end(text) + 1;
    for (size_t i = 0; i < room && *text; i++) {
        const char *end = line_end(text);
        put_line(s, text, (size_t)(end - text), &row);
        text = *end ? end + 1 : end;
    }
    fputs("\033[J", stdout);
    char foot[96];
    if (most)
        snprintf(foot, sizeof foot, "lines %zu to %zu of %zu; up, down, q", s->first + 1,
                 s->first + (lines < room ? lines : room), lines);
    else
        snprintf(foot, sizeof foot, "q to quit");
    if (row < s->rows)
        printf("\033[%d;1H%s%.*s%s\033[K", s->rows, st.dim,
               (int)fitting(foot, strlen(foot), s->columns), foot, st.off);
}

/* ---- keys ---- */

/* True: the person wants to go. */
static bool take_keys(screen *s, bool *again)
{
    char keys[64];
    ssize_t n = read(STDIN_FILENO, keys, sizeof keys);
    size_t page = s->rows > 8 ? (size_t)s->rows - 6 : 1;
    for (ssize_t i = 0; i < n; i++) {
        char key = keys[i];
        if (key == '\033' && n - i >= 3 && keys[i + 1] == '[') { /* arrows and pages */
            key = keys[i + 2] == 'A'   ? 'k'
                  : keys[i + 2] == 'B' ? 'j'
                  : keys[i + 2] == '6' ? 'f'
                                       : 'b';
            i += keys[i + 2] >= 'A' ? 2 : 3;
        }
        size_t by = key == 'f' || key == 'b' ? page : 1;
        if (key == 'q' || key == 'Q' || key == 4)
            return true;
        if (key == 'j' || key == 'f')
            s->first += by;
        else if (key == 'k' || key == 'b')
            s->first -= s->first < by ? s->first : by;
        else if (key == ' ' || key == '\n' || key == '\r')
            *again = true;
    }
    return false;
}

/* ---- watching ---- */

static uint64_t left(uint64_t until)
{
    uint64_t now = clock_ns();
    return now < until ? until - now : 0;
}

static void pause_here(screen *s)
{
    screen_leave(s);
    paused = 0;
    struct sigaction usual = {.sa_handler = SIG_DFL}, ours;
    sigaction(SIGTSTP, &usual, &ours);
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, SIGTSTP);
    sigprocmask(SIG_UNBLOCK, &one, NULL);
    raise(SIGTSTP);
    sigprocmask(SIG_BLOCK, &one, NULL);
    sigaction(SIGTSTP, &ours, NULL);
    continued = 1;
}

/* Until the next text is due; true: it is, false: enough. */
static bool rest(screen *s, const char *text, uint64_t until, const sigset_t *open)
{
    bool again = false;
    while (!ended && !again && left(until)) {
        struct timespec pause = {(time_t)(left(until) / 1000000000u),
                                 (long)(left(until) % 1000000000u)};
        struct pollfd input = {STDIN_FILENO, POLLIN, 0};
        int found = ppoll(&input, s->keys ? 1 : 0, &pause, open);
        bool keys = found > 0 && (input.revents & POLLIN);
        if (found > 0 && !keys)
            s->keys = false; /* the keyboard is gone */
        if (keys && take_keys(s, &again))
            return false;
        if (paused && s->on)
            pause_here(s);
        if (s->on && (keys || resized || continued)) {
            if (continued)
                s->on = false; /* somebody else had the terminal meanwhile */
            resized = continued = 0;
            screen_enter(s);
            draw(s, text);
            if (fflush(stdout) != 0)
                return false;
        }
    }
    return !ended;
}

static void print_last(screen *s, const char *text, const char *message)
{
    bool had_screen = s->on;
    screen_leave(s);
    if (had_screen && text)
        fputs(text, stdout);
    if (message)
        printf("%s\n", message);
}

int watch(const command *self, watch_fn make, void *ctx, double seconds, bool plain)
{
    screen s = {.on = false};
    sigset_t open;
    char *text = NULL, *next;
    int code = EXIT_OK;
    bool live = !plain && term_live(stdout);
    catch_signals(&open);
    for (bool first = true;; first = false) {
        uint64_t until = clock_ns() + (uint64_t)(seconds * 1e9);
        if (make(ctx, &next) != TN_OK) {
            if (first)
                code = library_error(self);
            else
                print_last(&s, text, tn_last_error());
            break;
        }
        tn_string_free(text);
        text = next;
        if (live) {
            screen_enter(&s);
            draw(&s, text);
        } else {
            printf("%s%s", first || plain ? "" : "\n", text);
        }
        if (fflush(stdout) != 0) {
            code = EXIT_FAILED;
            break;
        }
        /* However long the look took, signals and keys have their turn. */
        uint64_t least = clock_ns() + 20000000u;
        if (!rest(&s, text, until > least ? until : least, &open)) {
            print_last(&s, text, NULL);
            break;
        }
    }
    screen_leave(&s);
    tn_string_free(text);
    if (ended && ended != SIGINT)
        end_by(ended);
    return code;
}
