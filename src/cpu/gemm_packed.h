/* SPDX-License-Identifier: MIT */
/* cpu/gemm_packed.h: large products of floats. Where A's rows are contiguous, each thread copies
 * the columns of B that it multiplies. Else both operands, or the one that is not read in order,
 * are copied once, by all threads; then tiles over these copies are computed, by all threads. */
#ifndef TNI_CPU_GEMM_PACKED_H
#define TNI_CPU_GEMM_PACKED_H

#include "cpu/gemm_kernels.h"

/* What the product's shape calls for. Depends on sizes, strides and dtype alone. */
typedef enum tni_gemm_way {
    TNI_GEMM_TILES,         /* not this file: each tile makes its own copies, or none */
    TNI_GEMM_BY_ROWS,       /* A as it lies, copies of some columns of B (gemm_rows.c) */
    TNI_GEMM_PACKED,        /* copies of both operands */
    TNI_GEMM_PACKED_TURNED, /* few rows of A, and B's columns contiguous, as in x @ w.t(): the
                               transposed product, which reads w as it lies */
} tni_gemm_way;
tni_gemm_way tni_gemm_choose_way(const tni_gemm_args *g, const void *beta);

/* One product, for the way that was chosen; by rows also a batch of them, and of a gathered B.
 * @retval TN_NOMEM */
TN_NODISCARD tn_status tni_gemm_run_by_rows(tni_gemm_fn kernel, const tni_gemm_args *g,
                                            const void *alpha, const void *beta, size_t itemsize);
TN_NODISCARD tn_status tni_gemm_run_packed(const tni_gemm_packed_kernels *kernels,
                                           const tni_gemm_args *g, tni_gemm_way way,
                                           const void *alpha, const void *beta, size_t itemsize);

/* The same, each thread with copies of its own. k is at most a block's depth: of any `turned`
 * product at most 1024, else TNI_GEMM_KC. @p turned: g is the transposed product. */
bool tni_gemm_is_apart(const tni_gemm_args *g);
TN_NODISCARD tn_status tni_gemm_run_apart(const tni_gemm_packed_kernels *kernels,
                                          const tni_gemm_args *g, bool turned, const void *alpha,
                                          const void *beta, size_t itemsize);

#endif
