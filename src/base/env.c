/* SPDX-License-Identifier: MIT */
/* What the process was started with, and what it runs on. Nothing is remembered: these are asked at
 * start, not in a hot path, and a test may change the environment. */
#define _GNU_SOURCE /* sched_getaffinity, secure_getenv */
#include "base/env.h"

#include <errno.h>
#include <sched.h>
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
    return whole && number >= low && number <= high ? (int64_t)number : other;
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

const char *tni_isa_name(tni_isa isa)
{
    return (unsigned)isa <= TNI_ISA_AVX512 ? isa_names[isa] : "unknown";
}

tni_isa tni_cpu_isa(void)
{
    tni_isa isa = machine_isa();
    const char *wanted = tni_env("TENON_CPU");
    for (int i = 0; wanted && i < (int)isa; i++) {
        if (strcasecmp(wanted, isa_names[i]) == 0)
            return (tni_isa)i;
    }
    return isa;
}
