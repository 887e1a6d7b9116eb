/* SPDX-License-Identifier: MIT */
/* base/env.h: environment variables and the processor. */
#ifndef TNI_BASE_ENV_H
#define TNI_BASE_ENV_H

#include "base/status.h"

/* The value, or NULL when unset or empty, and in a program that runs with rights of its own
 * (setuid): variables name files, and those are the caller's. Reads the environment each time. */
const char *tni_env(const char *name);
/* Say on stderr, once for each variable, that its value is not understood, what is (@p wanted: "a
 * number of seconds") and what happens instead (@p instead: "nothing is watched"). A mistake in the
 * environment is the mistake of whoever starts the program, and no call of it can report that. */
void tni_env_complain(const char *name, const char *wanted, const char *instead);
/* "1", "true", "on", "yes" -> true; "0", "false", "off", "no" or unset -> false; else @p other, and
 * a complaint. */
bool tni_env_flag(const char *name, bool other);
/* A whole number from @p low to @p high; @p other when unset, and with a complaint for all else. */
int64_t tni_env_int(const char *name, int64_t low, int64_t high, int64_t other);
int tni_cpu_count(void); /* processors this process may use, at least 1 */

typedef enum tni_isa { TNI_ISA_BASE = 0, TNI_ISA_AVX2 = 1, TNI_ISA_AVX512 = 2 } tni_isa;
/* The best instruction set of this machine, lowered by TENON_CPU=base|avx2|avx512, or v2|v3|v4 and
 * x86-64-v2|… for the same. */
tni_isa tni_cpu_isa(void);
const char *tni_isa_name(tni_isa isa);

#endif
