/* SPDX-License-Identifier: MIT */
/* cpu/factor_real.h: what factor.h has, for one matrix of doubles, or of floats, row by row in
 * memory. The functions of factor.h call these when a matrix has no imaginary part. */
#ifndef TNI_CPU_FACTOR_REAL_H
#define TNI_CPU_FACTOR_REAL_H

#include "core/tensor.h"
#include "cpu/factor.h"

/* Real numbers as they lie: element (i, j) is data[i * row + j * column]. */
typedef struct tni_real_view {
    const void *data;
    int64_t row, column;
} tni_real_view;

/* Factorisations of matrices of one dtype, in halves. All @retval TN_NOMEM. */
typedef struct tni_real_blocks {
    tn_status (*lu)(void *a, int64_t m, int64_t n, int32_t *pivots, bool pivot, int32_t *info);
    /* The triangle above, where nothing is read, is room until it is filled with zeros. */
    tn_status (*cholesky)(void *a, int64_t n, int32_t *info);
    tn_status (*triangle)(tni_real_view a, int64_t n, void *b, int64_t k, bool upper, bool unit);
} tni_real_blocks;

/* For float32 and float64; NULL for others. */
const tni_real_blocks *tni_real_blocks_of(tn_dtype dtype);

/* Whether none of @p n numbers has an imaginary part. */
bool tni_real_only(const tni_cd *a, int64_t n);
/* The real parts of @p n numbers to the first half of their memory. */
void tni_real_pack(tni_cd *a, int64_t n);
/* Back again, with imaginary parts of 0. */
void tni_real_unpack(tni_cd *a, int64_t n);

/* Matrices that are written are packed; those that are only read are as they were. */
/* @p room: for n numbers, here, and for as many as Q has columns below. */
void tni_real_reflect(double *a, int64_t m, int64_t n, double *tau, double *room);
void tni_real_product(const tni_cd *a, int64_t m, int64_t n, const tni_cd *tau, int64_t k,
                      double *q, int64_t columns, double *room);

#endif
