/* SPDX-License-Identifier: MIT */
/* cpu/factor_rows.h: loops over rows of numbers that factorisations of real matrices are made of.
 * Compiled for each instruction set (kern/factor_rows.c); all give the same bits. */
#ifndef TNI_CPU_FACTOR_ROWS_H
#define TNI_CPU_FACTOR_ROWS_H

#include "cpu/loops.h"

/* Loops for elements of type T. */
#define TNI_FACTOR_ROWS(T)                                                                        \
    struct {                                                                                      \
        /* row -= f * other, n elements */                                                        \
        void (*subtract)(T * row, const T *other, T f, int64_t n);                                \
        /* row -= f * other for @p count others, one after the other; others and factors are so   \
         * far apart */                                                                           \
        void (*subtract_all)(T * row, const T *other, int64_t step, const T *f, int64_t f_step,   \
                             int64_t count, int64_t n);                                           \
        /* Each of @p count rows, @p step apart: its first element is divided by @p d and then is \
         * how much of @p other is taken from the n elements behind it */                         \
        void (*eliminate)(T * row, int64_t step, int64_t count, const T *other, T d, int64_t n);  \
        /* The sum of products, in lanes that are added up in halves. */                          \
        T (*dot)(const T *a, const T *b, int64_t n);                                              \
    }

typedef TNI_FACTOR_ROWS(float) tni_factor_rows_f32;
typedef TNI_FACTOR_ROWS(double) tni_factor_rows_f64;

typedef struct tni_factor_rows {
    tni_factor_rows_f32 f32;
    tni_factor_rows_f64 f64;
} tni_factor_rows;

#define X(isa) extern const tni_factor_rows tni_factor_rows_##isa;
TNI_KERN_LIST(X)
#undef X

#endif
