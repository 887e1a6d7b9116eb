/* SPDX-License-Identifier: MIT */
/* cpu/lapack.h: what the LAPACK that OpenBLAS carries does with one matrix, which lies by columns,
 * in each of the four dtypes it knows. Where the library is not there, or is no faster, there is
 * none to be had, and our own algorithms (factor.h) do the work.
 *
 * The table's functions run on the calling thread. Those below cut large matrices into blocks by
 * their size alone and share out the products; results do not depend on the number of threads. */
#ifndef TNI_CPU_LAPACK_H
#define TNI_CPU_LAPACK_H

#include <stdbool.h>
#include <stdint.h>
#include "core/tensor.h"

/* Matrices have @p lead elements from one column to the next, or as many as they have rows. */
typedef struct tni_lapack {
    tn_dtype dtype;
    size_t item;
    /* Over @p a: L and U; the lower factor; @p info as in factor.h. */
    void (*lu)(int m, int n, void *a, int lead, int32_t *pivots, int32_t *info);
    void (*cholesky)(int n, void *a, int32_t *info);
    /* Rows @p first to @p last, from 1, changed over as @p pivots say, of @p n columns. */
    void (*exchange)(int n, void *a, int lead, int first, int last, const int32_t *pivots);
    /* @p b [m, n] becomes the solution with the triangle @p a; @p how has BLAS's four letters:
     * side, triangle, transposition, diagonal. */
    void (*triangle)(const char *how, int m, int n, const void *a, int lead_a, void *b, int lead_b);
    /* Reflectors and R over @p a [m, n]; then the first n columns of the product of k of them.
     * @retval TN_NOMEM, here and below */
    tn_status (*reflect)(int m, int n, void *a, void *tau);
    tn_status (*product)(int m, int n, int k, void *a, const void *tau);
    /* Eigenvectors over @p a where they are wanted; values are real. */
    tn_status (*hermitian)(int n, void *a, bool upper, bool vectors, void *values, int32_t *info);
    /* @p job: 'N' values alone, 'S' as many vectors as values, 'A' all vectors. */
    tn_status (*singular)(char job, int m, int n, void *a, void *s, void *u, void *vh,
                          int32_t *info);
    /* Values and vectors are complex; NULL for @p v: values alone. */
    tn_status (*general)(int n, void *a, void *values, void *v, int32_t *info);
    /* Vectors of length 1 turned so that the largest component of each is real and positive. */
    void (*settle)(int n, void *v);
    /* The least squares of A X = B over @p b [max(m, n), k]; singular values below @p rcond of the
     * largest, as estimated, count as 0. */
    tn_status (*least_squares)(int m, int n, int k, void *a, void *b, double rcond, int32_t *rank);
    /* Whether all of @p n numbers are finite. */
    bool (*finite)(const void *a, int64_t n);
} tni_lapack;

typedef enum tni_lapack_use {
    TNI_LAPACK_FACTOR, /* LU, Cholesky and triangles: of real numbers ours are faster */
    TNI_LAPACK_QR,
    TNI_LAPACK_SPECTRUM,
} tni_lapack_use;

/* The library's functions for @p dtype, or NULL where it is not to have matrices of this size. */
const tni_lapack *tni_lapack_for(tni_lapack_use use, tn_dtype dtype, int64_t m, int64_t n);

/* In blocks. @retval TN_NOMEM */
TN_NODISCARD tn_status tni_lapack_lu(const tni_lapack *lib, int64_t m, int64_t n, void *a,
                                     int32_t *pivots, int32_t *info);
/* @p a [n, n] by columns, or by rows; X over @p b [n, k]. */
TN_NODISCARD tn_status tni_lapack_triangle(const tni_lapack *lib, int64_t n, const void *a,
                                           bool by_rows, bool upper, bool unit, void *b, int64_t k);
/* X over @p b [n, k], of what tni_lapack_lu gives. */
TN_NODISCARD tn_status tni_lapack_solve(const tni_lapack *lib, int64_t n, const void *lu,
                                        const int32_t *pivots, void *b, int64_t k);

#endif
