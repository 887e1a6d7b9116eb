/* SPDX-License-Identifier: MIT */
/* cpu/gemm_cut.h: how matrices are cut into pieces. */
#ifndef TNI_CPU_GEMM_CUT_H
#define TNI_CPU_GEMM_CUT_H

#include "cpu/gemm.h"

static inline int64_t tni_at_most(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t tni_round_up(int64_t n, int64_t to)
{
    return (n + to - 1) / to * to;
}

static inline int64_t tni_pieces_of(int64_t n, int64_t each)
{
    return (n + each - 1) / each;
}

/* The matrix from this row and column on. */
static inline tni_matrix tni_matrix_at(const tni_matrix *x, int64_t row, int64_t column,
                                       int64_t itemsize)
{
    return (tni_matrix){(const char *)x->data + (row * x->row + column * x->col) * itemsize, x->row,
                        x->col, 0};
}

#endif
