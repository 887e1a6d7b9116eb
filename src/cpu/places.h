/* SPDX-License-Identifier: MIT */
/* cpu/places.h: places whose channels lie side by side in memory, for pooling and upsampling.
 * Compiled for each instruction set (kern/places.c). Nothing is fused: the same bits in each. */
#ifndef TNI_CPU_PLACES_H
#define TNI_CPU_PLACES_H

#include "cpu/loops.h"

/* Place p of a result with some taps is made of those t of places from[p * taps + t] of x, with
 * weight[p * taps + t] each. */
typedef struct tni_mix_loops {
    /* out[p] = the sum of its taps, in their order. */
    void (*mix)(void *out, const void *x, const int64_t *from, const void *weight, int taps,
                int64_t places, int64_t channels);
    /* The way back: x[from] += weight * grad[p], place after place. */
    void (*spread)(void *x, const void *grad, const int64_t *from, const void *weight, int taps,
                   int64_t places, int64_t channels);
    /* to[i] += weight * x[i] */
    void (*add_scaled)(void *to, const void *x, double weight, int64_t n);
} tni_mix_loops;

typedef struct tni_places_table {
    /* The largest number of each channel among the places of a window, and where it is. A NaN wins,
     * the last one; of equal numbers the first; @p first where none is more than -inf. */
    void (*largest)(float *out, int64_t *place, const float *x, const int64_t *window, int64_t n,
                    int64_t channels, int64_t first);
    /* Their sum, in their order, over a divisor. */
    void (*average)(float *out, const float *x, const int64_t *window, int64_t n, int64_t channels,
                    float divisor);
    tni_mix_loops f32, f64;
    /* Of many windows of a line each looks at one place: window o at x[o * stride], whose number is
     * @p here + o * stride. As above, kept in best and place. */
    void (*look)(float *best, int32_t *place, const float *x, int64_t stride, int32_t here,
                 int64_t n);
    /* sum[o] += x[o * stride] */
    void (*add)(float *sum, const float *x, int64_t stride, int64_t n);
} tni_places_table;

#define X(isa) extern const tni_places_table tni_places_##isa;
TNI_KERN_LIST(X)
#undef X

#endif
