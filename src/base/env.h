/* SPDX-License-Identifier: MIT */
/* base/env.h: environment variables and the processor. */
#ifndef TNI_BASE_ENV_H
#define TNI_BASE_ENV_H

#include "base/status.h"

/* The value, or NULL when unset or empty, and in a program that runs with rights of its own
 * (setuid): variables name files, and those are the caller's. Reads the environment each time. */
const char *tni_env(const char *name);
/* "1", "true", "on", "yes" -> true; "0", "false", "off", "no" or unset -> false; else @p other. */
bool tni_env_flag(const char *name, bool other);
int64_t tni_env_int(const char *name, int64_t low, int64_t high, int64_t other);
int tni_cpu_count(void); /* processors this process may use, at least 1 */

typedef enum tni_isa { TNI_ISA_BASE = 0, TNI_ISA_AVX2 = 1, TNI_ISA_AVX512 = 2 } tni_isa;
/* The best instruction set of this machine, lowered by TENON_CPU=base|avx2|avx512. */
tni_isa tni_cpu_isa(void);
const char *tni_isa_name(tni_isa isa);

#endif
