/* SPDX-License-Identifier: MIT */
/* cpu/taps.h: loops for convolutions of one channel each: a few elements of a kernel, its taps,
 * over a line. Compiled for each instruction set (kern/taps.c), for float32 and float64. */
#ifndef TNI_CPU_TAPS_H
#define TNI_CPU_TAPS_H

#include "cpu/loops.h"

#define TNI_TAP_LANES 16

/* Taps over places whose channels lie side by side. Tap t of channel c weighs weight[kernel[t] *
 * channels + c]; steps are in elements. */
typedef struct tni_tap_rows {
    const int64_t *offset, *kernel;
    const void *weight, *start; /* start: one for each channel, or NULL */
    int64_t taps, channels, places;
    int64_t x_step, out_step; /* from place to place */
} tni_tap_rows;

typedef struct tni_taps_loops {
    /* out[i] = *start + the sum over t of weight[t] * x[offset[t] + i], for i < n. */
    void (*sum)(void *out, const void *x, const int64_t *offset, const void *weight, int64_t taps,
                int64_t n, const void *start);
    /* For each tap t, grad[i] * x[offset[t] + i] is added to one of the TNI_TAP_LANES sums at
     * lanes + t * TNI_TAP_LANES. */
    void (*dots)(void *lanes, const void *grad, const void *x, const int64_t *offset, int64_t taps,
                 int64_t n);
    /* For each place p and channel c, out[p * out_step + c] = start[c] + the sum over t of tap t's
     * weight * x[offset[t] + p * x_step + c]. */
    void (*rows)(void *out, const void *x, const tni_tap_rows *r);
    /* For each tap t and the first n channels, grad[p * out_step + c] * x[offset[t] + p * x_step +
     * c] is added, place after place, to sums[t * n + c]. */
    void (*row_dots)(void *sums, const void *grad, const void *x, const tni_tap_rows *r, int64_t n);
} tni_taps_loops;

typedef struct tni_taps_table {
    tni_taps_loops f32, f64;
} tni_taps_table;

#define X(isa) extern const tni_taps_table tni_taps_##isa;
TNI_KERN_LIST(X)
#undef X

#endif
