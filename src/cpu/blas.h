/* SPDX-License-Identifier: MIT */
/* cpu/blas.h: what a BLAS library does better than our own kernels. blas.c and lapack.c are the
 * only files that know one; in a build without it they want nothing. */
#ifndef TNI_CPU_BLAS_H
#define TNI_CPU_BLAS_H

#include "cpu/gemm.h"

/* OpenBLAS, for dlsym, told to keep to the calling thread; NULL where there is none. */
void *tni_blas_library(void);
/* Whether it knows this processor: on others it is a fraction as fast. */
bool tni_blas_fast(void);

/* Whether a product of so many multiply-adds should go to the library: it is there, knows this
 * processor, and is faster than our kernels for this dtype and size. */
bool tni_blas_wants(tn_dtype dtype, int64_t work);
/* One entry of the batch, on the calling thread, with D in C's place. A NULL beta is 0.
 * False: not done, because the library cannot take these strides or sizes. */
bool tni_blas_gemm(tn_dtype dtype, const tni_gemm_args *g, const void *alpha, const void *beta);

#endif
