/* SPDX-License-Identifier: MIT */
/* cpu/factor.h: factorisations of one matrix of complex doubles, row by row in memory. Real
 * matrices have imaginary parts of 0 throughout. Results depend on the matrix alone. */
#ifndef TNI_CPU_FACTOR_H
#define TNI_CPU_FACTOR_H

#include <complex.h>
#include <stdbool.h>
#include <stdint.h>
#include "base/status.h"

typedef double complex tni_cd;

/* L and U over @p a [m, n], rows changed over where another is larger: @p pivots[i], from 1, is the
 * row that i changed with. @p info is 0, or 1 + the first place on the diagonal that is 0.
 * @retval TN_NOMEM */
TN_NODISCARD tn_status tni_factor_lu(tni_cd *a, int64_t m, int64_t n, int32_t *pivots, bool pivot,
                                     int32_t *info);
/* The lower factor over @p a [n, n], of which the lower triangle is read; zeros above. @p info
 * is 0, or the order of the first leading minor that is not positive. @retval TN_NOMEM */
TN_NODISCARD tn_status tni_factor_cholesky(tni_cd *a, int64_t n, int32_t *info);
/* Reflectors below the diagonal and R above, over @p a [m, n]; @p tau has min(m, n) factors. */
void tni_factor_reflect(tni_cd *a, int64_t m, int64_t n, tni_cd *tau);
/* The first @p columns columns [m, columns] of the product of @p k reflectors that stand in @p a
 * [m, n]. */
void tni_factor_product(const tni_cd *a, int64_t m, int64_t n, const tni_cd *tau, int64_t k,
                        tni_cd *q, int64_t columns);
/* x with T x = b for the triangle T of @p a [n, n]; over @p b [n, k].
 * @retval TN_NOMEM */
TN_NODISCARD tn_status tni_factor_triangle(const tni_cd *a, int64_t n, tni_cd *b, int64_t k,
                                           bool upper, bool unit);
/* Eigenvalues in order and, in columns of @p v [n, n], eigenvectors of a Hermitian matrix; @p a is
 * overwritten. NULL for @p v: values alone. */
void tni_factor_hermitian(tni_cd *a, int64_t n, double *values, tni_cd *v);
/* Singular values from the largest, U [m, k] and V [n, k] in columns, where k = min(m, n). @p a
 * [m, n] is overwritten; @p u and @p work have room for max(m, n) * k. NULL for @p v: values alone,
 * and @p u is room. */
void tni_factor_singular(tni_cd *a, int64_t m, int64_t n, tni_cd *u, double *s, tni_cd *v,
                         tni_cd *work);
/* Column @p j of @p w [m, columns]: a vector of length 1, orthogonal to the columns before. */
void tni_factor_complete(tni_cd *w, int64_t m, int64_t columns, int64_t j);
/* Eigenvalues and, in columns of @p v, eigenvectors of length 1 of any square matrix; @p a is
 * overwritten, @p z [n, n] is room. Returns 0, or how many values were not found. */
int64_t tni_factor_general(tni_cd *a, int64_t n, tni_cd *values, tni_cd *v, tni_cd *z);

#endif
