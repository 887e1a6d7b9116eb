/* SPDX-License-Identifier: MIT */
/* bench/timer.h: time a piece of code, the same way in every program of the benchmark (C and C++).
 *
 * Prints one line a sample: "NAME NANOSECONDS-PER-CALL". bench.py takes medians over samples and
 * runs. BENCH_CLOCK=thread in the environment takes the processor time of the calling thread: right
 * where one thread does all, on a machine that does other things too. BENCH_PACED=1 takes a sample
 * for each byte on standard input, and ends with it: whoever compares two programs lets them take
 * turns, so that what disturbs one disturbs the other as well. */
#ifndef BENCH_TIMER_H
#define BENCH_TIMER_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double bench_now(void)
{
    static int clock = -1;
    if (clock < 0) {
        const char *wanted = getenv("BENCH_CLOCK");
        clock = wanted && strcmp(wanted, "thread") == 0 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC;
    }
    struct timespec ts;
    clock_gettime(clock, &ts);
    return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

/* Whether sample @p s is wanted, of @p samples where nobody paces them. */
static int bench_wanted(int s, int samples)
{
    fflush(stdout);
    return getenv("BENCH_PACED") ? getchar() != EOF : s < samples;
}

#ifndef BENCH_SAMPLES
#    define BENCH_SAMPLES   7
#    define BENCH_SAMPLE_NS 8e6
#    define BENCH_FIRST     16 /* calls that are tried first */
#endif

/* BENCH("name", statement;): runs when `only` is NULL or equals the name. BENCH_EACH: the statement
 * does something @p count times, and the figure is that of one. */
#define BENCH(name, ...) BENCH_EACH(name, 1, __VA_ARGS__)
#define BENCH_EACH(name, count, ...)                                                            \
    do {                                                                                        \
        if (only && strcmp(only, (name)) != 0)                                                  \
            break;                                                                              \
        long bench_n = BENCH_FIRST;                                                             \
        for (;;) { /* warm up, and find how many calls fill a sample */                         \
            double bench_t = bench_now();                                                       \
            for (long bench_i = 0; bench_i < bench_n; bench_i++) {                              \
                __VA_ARGS__                                                                     \
            }                                                                                   \
            bench_t = bench_now() - bench_t;                                                    \
            if (bench_t > BENCH_SAMPLE_NS)                                                      \
                break;                                                                          \
            bench_n *= 2;                                                                       \
        }                                                                                       \
        for (int bench_s = 0; bench_wanted(bench_s, BENCH_SAMPLES); bench_s++) {                \
            double bench_t = bench_now();                                                       \
            for (long bench_i = 0; bench_i < bench_n; bench_i++) {                              \
                __VA_ARGS__                                                                     \
            }                                                                                   \
            printf("%s %.3f\n", (name), (bench_now() - bench_t) / ((count) * (double)bench_n)); \
        }                                                                                       \
        fflush(stdout);                                                                         \
    } while (0)

#endif
