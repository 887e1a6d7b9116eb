/* SPDX-License-Identifier: MIT */
/* cpu/kern/rows.c: loops over whole rows: softmax, normalisation, and their gradients. Rows are
 * summed as Note [Sums] says, so that every instruction set gives the same bits. */
#include "cpu/rows.h"

#include <string.h>
#include "cpu/kern/lanes.h"
#include "cpu/kern/maths.h"
#include "cpu/kern/rows_short.h"

#define ACROSS_BLOCK 64 /* rows whose sum is not yet in double */

#define T        float
#define SUF      f32
#define EXP      exp_f32
#define EXP_DOWN exp_down_f32
#define LOG      log_f32
#define SQRT     sqrtf
#ifdef SHORT_ROW
#    define SOFTMAX_SHORT     short_softmax
#    define LOG_SOFTMAX_SHORT short_log_softmax
#endif
#include "cpu/kern/across.inc"
#include "cpu/kern/rows.inc"
#undef SOFTMAX_SHORT
#undef LOG_SOFTMAX_SHORT

#define T        double
#define SUF      f64
#define EXP      exp_f64
#define EXP_DOWN exp_f64
#define LOG      log_f64
#define SQRT     sqrt
#include "cpu/kern/across.inc"
#include "cpu/kern/rows.inc"

const tni_rows_table TNI_KERN_NAME(tni_rows) = {&rows_f32, &rows_f64};
