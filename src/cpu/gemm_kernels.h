/* SPDX-License-Identifier: MIT */
/* cpu/gemm_kernels.h: the table of product kernels. kern/gemm.c is compiled once for each
 * instruction set and defines one such table each time. */
#ifndef TNI_CPU_GEMM_KERNELS_H
#define TNI_CPU_GEMM_KERNELS_H

#include "cpu/gemm.h"

/* C = alpha * (A @ B) + beta * C on one thread, for c_col 1. @p alpha and @p beta point to
 * elements; a NULL beta is 0. @p room is scratch memory, 64-byte aligned, of tni_gemm_room bytes.
 */
typedef void (*tni_gemm_fn)(const tni_gemm_args *g, const void *alpha, const void *beta,
                            void *room);
/* y[i] = alpha * dot(row i of A, x) + beta * y[i]; x is contiguous. */
typedef void (*tni_gemv_fn)(int64_t m, int64_t k, const void *a, int64_t a_row, int64_t a_col,
                            const void *x, void *y, int64_t y_stride, const void *alpha,
                            const void *beta);

typedef struct tni_gemm_table {
    tni_gemm_fn gemm[TN_DTYPE_LIMIT]; /* NULL for halves and bool */
    tni_gemv_fn gemv[TN_DTYPE_LIMIT];
} tni_gemm_table;

/* Sizes of the blocks that the float kernels copy into the order of use: of B KC x NC, of A MC x
 * KC. Panels of a block are at most PANEL wide. */
#define TNI_GEMM_KC    256
#define TNI_GEMM_NC    512
#define TNI_GEMM_MC    96
#define TNI_GEMM_PANEL 32
/* A B of at most so many elements is used as it lies when its rows are contiguous; of at most so
 * many it is transposed on the stack when they are not. */
#define TNI_GEMM_DIRECT 16384
#define TNI_GEMM_TURN   2048

/* Whether the float kernels copy blocks. */
static inline bool tni_gemm_blocked(const tni_gemm_args *g)
{
    return g->n * g->k > (g->b_col == 1 ? TNI_GEMM_DIRECT : TNI_GEMM_TURN) ||
           (g->a_col != 1 && g->a_row != 1);
}

/* Bytes of scratch memory that a kernel needs for these sizes; 0 for kernels that are not blocked.
 */
static inline size_t tni_gemm_room(const tni_gemm_args *g, size_t itemsize)
{
    int64_t kc = g->k < TNI_GEMM_KC ? g->k : TNI_GEMM_KC;
    int64_t nc = g->n < TNI_GEMM_NC ? g->n : TNI_GEMM_NC;
    int64_t mc = g->a_col == 1 ? 0 : g->m < TNI_GEMM_MC ? g->m : TNI_GEMM_MC;
    return (size_t)(kc * (nc + TNI_GEMM_PANEL + mc + TNI_GEMM_PANEL)) * itemsize;
}

#endif
