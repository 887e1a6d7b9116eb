/* SPDX-License-Identifier: MIT */
/* cpu/factor_rows.h: loops over rows of doubles that factorisations of real matrices are made of.
 * Compiled for each instruction set (kern/factor_rows.c); all give the same bits. */
#ifndef TNI_CPU_FACTOR_ROWS_H
#define TNI_CPU_FACTOR_ROWS_H

#include "cpu/loops.h"

typedef struct tni_factor_rows {
    /* row -= f * other, n elements */
    void (*subtract)(double *row, const double *other, double f, int64_t n);
    /* row -= f * other for @p count others, one after the other; others and factors are so far
     * apart
     */
    void (*subtract_all)(double *row, const double *other, int64_t step, const double *f,
                         int64_t f_step, int64_t count, int64_t n);
    /* Each of @p count rows, @p step apart: its first element is divided by @p d and then is how
     * much of @p other is taken from the n elements behind it */
    void (*eliminate)(double *row, int64_t step, int64_t count, const double *other, double d,
                      int64_t n);
    /* The sum of products, in eight lanes that are added up in halves. */
    double (*dot)(const double *a, const double *b, int64_t n);
} tni_factor_rows;

#define X(isa) extern const tni_factor_rows tni_factor_rows_##isa;
TNI_KERN_LIST(X)
#undef X

#endif
