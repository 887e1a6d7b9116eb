/* SPDX-License-Identifier: MIT */
/* cpu/gemm.h: matrix products on strided memory.
 *
 * tni_gemm takes any strides and any dtype but bool, chooses a way (our own kernels, or a
 * BLAS where that is faster, both in tiles over the thread pool) and computes, for each entry of a
 * batch,
 *
 *     C = alpha * (A @ B) + beta * D
 *
 * beta 0 never reads D, alpha 0 and an inner size of 0 never read A and B. float16 and bfloat16 are
 * computed in float32 and rounded once; integers wrap. How the work is cut depends on sizes and
 * dtype alone, so results do not depend on the number of threads. */
#ifndef TNI_CPU_GEMM_H
#define TNI_CPU_GEMM_H

#include "core/tensor.h"

/* A matrix in memory, or a batch of them; strides are in elements. */
typedef struct tni_matrix {
    const void *data;
    int64_t row, col; /* from one row, one column to the next */
    int64_t batch;    /* from one entry to the next */
} tni_matrix;

/* An operand whose elements lie at sums of two tables: (i, j) is data[at[i] + line[j / width] + j %
 * width]. Up to TNI_GATHER_SLACK bytes behind any of them are read as well. */
typedef struct tni_gathered {
    const int64_t *at, *line;
    int64_t width;
} tni_gathered;
#define TNI_GATHER_SLACK 64

typedef struct tni_gemm_args {
    int64_t m, n, k; /* C and D are m x n, A m x k, B k x n */
    int64_t batch;   /* how many entries */
    tni_matrix a, b;
    /* Float and double: A, or B, is not a matrix; of it, data and batch are used alone. C's rows
     * are contiguous then. */
    const tni_gathered *gather_a, *gather_b;
    int64_t gather_first; /* row of A, column of B, where the product begins */
    /* C is written: it repeats no element and overlaps no operand, but may be D itself. */
    tni_matrix c, d;
} tni_gemm_args;

/* @retval TN_NOMEM */
TN_NODISCARD tn_status tni_gemm(tn_dtype dtype, const tni_gemm_args *g, tn_scalar alpha,
                                tn_scalar beta);
/* C = A @ B: alpha 1, beta 0. Scalars that are handed over cost as much as a fifth of a product of
 * 16 x 16. */
TN_NODISCARD tn_status tni_gemm_plain(tn_dtype dtype, const tni_gemm_args *g);

#endif
