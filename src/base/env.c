/* SPDX-License-Identifier: MIT */
/* What the process was started with, and what it runs on. Nothing is remembered: these are asked at
 * start, not in a hot path, and a test may change the environment. */
#define _GNU_SOURCE /* sched_getaffinity, secure_getenv */
#include "base/env.h"

#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

const char *tni_env(const char *name)
{
    const char *value =
        secure_getenv(name); /* a program with borrowed rights ignores its caller's */
    return value && *value ? value : NULL;
}

/* Names of variables that were complained about: literals. */
static _Atomic(const char *) known[32];

/* True the first time. */
static bool is_new(const char *name)
{
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const char *none = NULL;
        if (atomic_compare_exchange_strong(&known[i], &none, name))
            return true;
        if (strcmp(none, name) == 0)
            return false;
    }
    return false;
}

void tni_env_complain(const char *name, const char *wanted, const char *instead)
{
    char value[64];
    if (!is_new(name))
        return;
    snprintf(value, sizeof value, "%s", tni_env(name) ? tni_env(name) : "");
    for (char *c = value; *c; c++) {
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            *c = '?'; /* one line, and nothing that a terminal obeys */
    }
    fprintf(stderr, "tenon: %s=%s is not understood: it takes %s; %s\n", name, value, wanted,
            instead);
}

bool tni_env_flag(const char *name, bool other)
{
    static const char *const yes[] = {"1", "true", "on", "yes"};
    static const char *const no[] = {"0", "false", "off", "no"};
    const char *value = tni_env(name);
    if (!value)
        return false;
    for (size_t i = 0; i < sizeof yes / sizeof *yes; i++) {
        if (strcasecmp(value, yes[i]) == 0)
            return true;
        if (strcasecmp(value, no[i]) == 0)
            return false;
    }
    tni_env_complain(name, "1, true, on, yes, 0, false, off or no",
                     other ? "it counts as 1" : "it counts as 0");
    return other;
}

int64_t tni_env_int(const char *name, int64_t low, int64_t high, int64_t other)
{
    const char *value = tni_env(name);
    if (!value)
        return other;
    char *end;
    errno = 0;
    long long number = strtoll(value, &end, 10);
    bool whole = end != value && *end == '\0' && errno == 0;
    if (whole && number >= low && number <= high)
        return (int64_t)number;
    char wanted[96], instead[48];
    snprintf(wanted, sizeof wanted, "a whole number from %lld to %lld", (long long)low,
             (long long)high);
    snprintf(instead, sizeof instead, "%lld is used", (long long)other);
    tni_env_complain(name, wanted, instead);
    return other;
}

int tni_cpu_count(void)
{
    cpu_set_t set;
    int n = 0;
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        n = CPU_COUNT(&set);
    else /* a machine with more processors than the set has bits */
        n = (int)sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 ? n : 1;
}

#if defined(__x86_64__)
/* The levels are whole sets of features: kernels are compiled for the level, not for AVX alone. */
static tni_isa machine_isa(void)
{
    __builtin_cpu_init();
#    if defined(__clang__)
    bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
              __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
    bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
              __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
              __builtin_cpu_supports("avx512vl");
#    else
    bool v3 = __builtin_cpu_supports("x86-64-v3");
    bool v4 = __builtin_cpu_supports("x86-64-v4");
#    endif
    return v4 ? TNI_ISA_AVX512 : v3 ? TNI_ISA_AVX2 : TNI_ISA_BASE;
}
#else
static tni_isa machine_isa(void)
{
    return TNI_ISA_BASE;
}
#endif

static const char *const isa_names[] = {"base", "avx2", "avx512"};
/* What the kernels are compiled for, in the words of the architecture's manual. */
static const char *const isa_levels[] = {"x86-64-v2", "x86-64-v3", "x86-64-v4"};

static bool is_isa(const char *text, int isa)
{
    return strcasecmp(text, isa_names[isa]) == 0 || strcasecmp(text, isa_levels[isa]) == 0 ||
           strcasecmp(text, strrchr(isa_levels[isa], 'v')) == 0;
}

const char *tni_isa_name(tni_isa isa)
{
    return (unsigned)isa <= TNI_ISA_AVX512 ? isa_names[isa] : "unknown";
}

tni_isa tni_cpu_isa(void)
{
    tni_isa isa = machine_isa();
    const char *wanted = tni_env("TENON_CPU");
    for (int i = 0; wanted && i <= (int)isa; i++) {
        if (is_isa(wanted, i))
            return (tni_isa)i;
    }
    if (wanted) {
        char all[64], instead[64];
        snprintf(all, sizeof all, "what this machine has of %s, %s, %s", isa_names[0], isa_names[1],
                 isa_names[2]);
        snprintf(instead, sizeof instead, "%s is used", isa_names[isa]);
        tni_env_complain("TENON_CPU", all, instead);
    }
    return isa;
}
