/* SPDX-License-Identifier: MIT */
/* cpu/lapack.h: eigenvalues and singular values by the LAPACK that OpenBLAS carries. The arguments
 * are those of factor.h; only the last takes no NULL for @p v. False: nothing was done, because the
 * library is not there, the matrix is small (our own are as fast then) or has a NaN or an infinity,
 * memory ran out or the algorithm found no end: the caller's own algorithm does the work.
 *
 * Everything runs on the calling thread; results depend on the matrix alone. */
#ifndef TNI_CPU_LAPACK_H
#define TNI_CPU_LAPACK_H

#include "cpu/factor.h"

bool tni_lapack_hermitian(const tni_cd *a, int64_t n, double *values, tni_cd *v);
bool tni_lapack_singular(const tni_cd *a, int64_t m, int64_t n, tni_cd *u, double *s, tni_cd *v);
bool tni_lapack_general(const tni_cd *a, int64_t n, tni_cd *values, tni_cd *v);

#endif
