/* SPDX-License-Identifier: MIT */
/* tests/opgen/fakes.h: what generated code calls, replaced by functions that write down that they
 * were called. They compute nothing. */
#ifndef TNI_TESTS_OPGEN_FAKES_H
#define TNI_TESTS_OPGEN_FAKES_H

#include "tenon/base.h"

/* Calls since fake_reset(), separated by spaces: "shape_mm cpu_mm". */
const char *fake_log(void);
void fake_reset(void);
/* The function of this name fails with TN_VALUE "NAME refuses" until the next reset. */
void fake_fails(const char *name);

#endif
