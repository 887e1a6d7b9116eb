/* SPDX-License-Identifier: MIT */
/* cpu/halves.h: products of rows of float16 or bfloat16 with rows, summed up in float32. Compiled
 * for each instruction set (kern/halves.c); where one has no kernel, there is none. */
#ifndef TNI_CPU_HALVES_H
#define TNI_CPU_HALVES_H

#include "cpu/loops.h"

/* m rows of A, n rows of B, of k elements each, so many elements apart. sums[i * sums_row + j] is
 * the product of row i of A with row j of B, which depends on those two rows alone. */
typedef struct tni_row_products {
    float *sums;
    int64_t sums_row;
    const uint16_t *a, *b;
    int64_t a_row, b_row;
    int64_t m, n, k;
} tni_row_products;

typedef void (*tni_halves_fn)(const tni_row_products *x);

typedef struct tni_halves_table {
    tni_halves_fn f16, bf16; /* NULL: there is none */
    /* For processors that multiply pairs of bfloat16, twice as many at a time as float32; numbers
     * that are subnormal as float32 count as 0. NULL elsewhere. */
    tni_halves_fn (*bf16_pairs)(void);
} tni_halves_table;

#define X(isa) extern const tni_halves_table tni_halves_##isa;
TNI_KERN_LIST(X)
#undef X

#endif
