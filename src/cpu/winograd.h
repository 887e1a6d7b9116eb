/* SPDX-License-Identifier: MIT */
/* cpu/winograd.h: the transforms of Winograd's convolution of 2 x 2 results with 3 x 3 kernels, for
 * float32, with strides of 1 and of 2; see cpu/conv_winograd.c. Compiled for each instruction set
 * (kern/winograd.c). Elements that lie side by side, channels, are transformed side by side. */
#ifndef TNI_CPU_WINOGRAD_H
#define TNI_CPU_WINOGRAD_H

#include "cpu/loops.h"

#define TNI_WINOGRAD_OUT     2 /* places of a tile of the result, in each dimension */
#define TNI_WINOGRAD_STRIDES 2 /* strides that there are loops for */

/* Elements of a transformed tile lie @p plane apart. */
typedef struct tni_winograd_loops {
    int in;   /* places that a tile is made from, in each dimension */
    int step; /* from one tile to the next, in places of the input */
    int all;  /* elements of a transformed tile */
    /* n channels of a tile: rows @p row, columns @p column elements apart. */
    void (*input)(float *to, int64_t plane, const float *x, int64_t row, int64_t column, int64_t n);
    /* n kernels, their nine elements @p tap apart; @p turned: last element first. */
    void (*kernel)(float *to, int64_t plane, const float *w, int64_t tap, int64_t n, bool turned);
    /* n channels of a tile, of which there are @p rows x @p columns places, plus bias (or NULL).
     * False when one of them is not finite. */
    bool (*output)(float *y, int64_t row, int64_t column, const float *from, int64_t plane,
                   int64_t n, int rows, int columns, const float *bias);
    /* to[j * to_row + i] = from[i * from_row + j], for i < rows, j < columns. */
    void (*turn)(float *to, int64_t to_row, const float *from, int64_t from_row, int64_t rows,
                 int64_t columns);
} tni_winograd_loops;

/* By stride, less 1. */
#define X(isa) extern const tni_winograd_loops tni_winograd_##isa[TNI_WINOGRAD_STRIDES];
TNI_KERN_LIST(X)
#undef X

#endif
