/* SPDX-License-Identifier: MIT */
/* cli/demo.h: the parts of `tenon demo`. */
#ifndef CLI_DEMO_H
#define CLI_DEMO_H

#include "tenon/base.h"

/* Fit a small network to a curve, with a progress bar, and draw how the loss fell. */
TN_NODISCARD tn_status demo_fit(void);

#endif
