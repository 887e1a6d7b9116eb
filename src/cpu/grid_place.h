/* SPDX-License-Identifier: MIT */
/* cpu/grid_place.h: where a number of a sampling grid lies among the elements of a dimension, as
 * the padding sees it, with the derivative. */
#ifndef TNI_CPU_GRID_PLACE_H
#define TNI_CPU_GRID_PLACE_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

enum { TNI_GRID_ZEROS, TNI_GRID_BORDER, TNI_GRID_MIRROR };

/* From [-1, 1] to elements; @p slope gets the derivative. A grid of float32 or less (@p single)
 * often lies on elements (the transform that changes nothing does), where rounding decides between
 * which two a place is, and gradients jump: so it is rounded step by step, as PyTorch does. */
static inline double tni_grid_place(double x, int64_t size, bool align, bool single, double *slope)
{
    *slope = (double)(align ? size - 1 : size) / 2;
    if (single)
        return (double)(align ? ((float)x + 1) / 2 * (float)(size - 1)
                              : (((float)x + 1) * (float)size - 1) / 2);
    return align ? (x + 1) / 2 * (double)(size - 1) : ((x + 1) * (double)size - 1) / 2;
}

/* NaN is the first place in a plane, and the last in a volume, as in PyTorch. */
static inline double tni_grid_clip(double x, int64_t size, bool plane, double *slope)
{
    double most = (double)(size - 1);
    if (!(x > 0) || !(x < most))
        *slope = 0;
    if (plane ? !(x > 0) : x <= 0)
        return 0;
    return x < most ? x : most;
}

static inline double tni_grid_mirror(double x, double twice_low, double twice_high, double *slope)
{
    if (twice_low == twice_high) {
        *slope = 0;
        return 0;
    }
    double low = twice_low / 2, span = (twice_high - twice_low) / 2, sign = x < low ? -1 : 1;
    x = fabs(x - low);
    double extra = fmod(x, span), flips = floor(x / span);
    bool even = fmod(flips, 2) == 0;
    *slope *= even ? sign : -sign;
    return even ? extra + low : span - extra + low;
}

/* A place that may be outside, as the padding sees it. */
static inline double tni_grid_padded(double x, int64_t size, bool align, int padding, bool plane,
                                     double *slope)
{
    if (padding == TNI_GRID_BORDER)
        x = tni_grid_clip(x, size, plane, slope);
    else if (padding == TNI_GRID_MIRROR) {
        x = align ? tni_grid_mirror(x, 0, (double)(2 * (size - 1)), slope)
                  : tni_grid_mirror(x, -1, (double)(2 * size - 1), slope);
        x = tni_grid_clip(x, size, plane, slope);
    }
    return fabs(x) < 0x1p31 ? x : -100; /* far away is outside; so is NaN */
}

#endif
