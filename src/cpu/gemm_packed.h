/* SPDX-License-Identifier: MIT */
/* cpu/gemm_packed.h: large products of floats. Each thread copies the columns of B that it
 * multiplies; or, where there are few rows, those are copied and the rest is read as it lies. */
#ifndef TNI_CPU_GEMM_PACKED_H
#define TNI_CPU_GEMM_PACKED_H

#include "cpu/gemm_kernels.h"

/* What the product's shape calls for. Depends on sizes, strides, dtype and instruction set alone.
 */
typedef enum tni_gemm_way {
    TNI_GEMM_TILES,   /* not these files: each tile makes its own copies, or none */
    TNI_GEMM_BY_ROWS, /* copies of some columns of B (gemm_rows.c) */
    TNI_GEMM_TURNED,  /* few rows of A, and B's columns contiguous, as in x @ w.t(): the transposed
                         product, which reads w as it lies (gemm_packed.c) */
} tni_gemm_way;
tni_gemm_way tni_gemm_choose_way(const tni_gemm_large *kernel, const tni_gemm_args *g,
                                 const void *beta);

/* Rows of A that lie a multiple of the size of a way apart share its lines: where the first-level
 * cache has fewer ways than a strip has rows they push each other out, which takes a tenth of the
 * time of a large product and a third of that of one with few rows. With 12 ways there is room for
 * them. @p row in elements, @p rows of a strip */
bool tni_gemm_rows_collide(int64_t row, int64_t itemsize, int rows);
/* One product, for the way that was chosen; by rows also a batch of them, and of a gathered B.
 * @retval TN_NOMEM */
TN_NODISCARD tn_status tni_gemm_run_by_rows(const tni_gemm_large *kernel, const tni_gemm_args *g,
                                            const void *alpha, const void *beta, size_t itemsize);
TN_NODISCARD tn_status tni_gemm_run_turned(const tni_gemm_packed_kernels *kernels,
                                           const tni_gemm_args *g, const void *alpha,
                                           const void *beta, size_t itemsize);

/* The same for what was turned already, each thread with a copy of its own; k is at most 1024. */
bool tni_gemm_is_apart(const tni_gemm_packed *x);
TN_NODISCARD tn_status tni_gemm_run_apart(const tni_gemm_packed_kernels *kernels,
                                          const tni_gemm_packed *x, const tni_matrix *b,
                                          size_t itemsize);

#endif
