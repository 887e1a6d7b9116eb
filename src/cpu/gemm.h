/* SPDX-License-Identifier: MIT */
/* cpu/gemm.h: matrix products on strided memory.
 *
 * tni_gemm and its relatives take any strides and any dtype but bool, choose a way (our own
 * kernels, a BLAS for large products, both in tiles over the thread pool) and compute
 *
 *     C = alpha * (A @ B) + beta * C
 *
 * beta 0 never reads C, alpha 0 and an inner size of 0 never read A and B. float16 and bfloat16 are
 * computed in float32 and rounded once; integers wrap. How the work is cut depends on sizes and
 * dtype alone, so results do not depend on the number of threads. */
#ifndef TNI_CPU_GEMM_H
#define TNI_CPU_GEMM_H

#include "core/tensor.h"

/* Strides are in elements. */
typedef struct tni_gemm_args {
    int64_t m, n, k; /* C is m x n, A m x k, B k x n */
    const void *a;
    int64_t a_row, a_col;
    const void *b;
    int64_t b_row, b_col;
    void *c;
    int64_t c_row, c_col;
} tni_gemm_args;

/* @p batch products of the same sizes; the i-th operands lie a_batch * i, … elements further.
 * C must not overlap A or B, nor repeat elements. @retval TN_NOMEM */
TN_NODISCARD tn_status tni_gemm(tn_dtype dtype, const tni_gemm_args *g, tn_scalar alpha,
                                tn_scalar beta, int64_t batch, int64_t a_batch, int64_t b_batch,
                                int64_t c_batch);
/* y = alpha * (A @ x) + beta * y for A m x k. @retval TN_NOMEM */
TN_NODISCARD tn_status tni_gemv(tn_dtype dtype, int64_t m, int64_t k, const void *a, int64_t a_row,
                                int64_t a_col, const void *x, int64_t x_stride, void *y,
                                int64_t y_stride, tn_scalar alpha, tn_scalar beta);
/* *out = sum of x[i] * y[i]. @retval TN_NOMEM */
TN_NODISCARD tn_status tni_dot(tn_dtype dtype, int64_t n, const void *x, int64_t x_stride,
                               const void *y, int64_t y_stride, void *out);

#endif
