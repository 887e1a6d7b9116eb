/* SPDX-License-Identifier: MIT */
/* cpu/blas.h: what a BLAS library does better than our own kernels. blas.c is the only file that
 * knows one; in a build without it tni_blas_gemm says so each time. */
#ifndef TNI_CPU_BLAS_H
#define TNI_CPU_BLAS_H

#include "cpu/gemm.h"

/* Multiply-adds from which on a product of this dtype goes to the library; INT64_MAX: never. */
int64_t tni_blas_from(tn_dtype dtype);
/* One entry of the batch, on the calling thread, with D in C's place. A NULL beta is 0.
 * False: not done, because the library cannot take these strides or sizes. */
bool tni_blas_gemm(tn_dtype dtype, const tni_gemm_args *g, const void *alpha, const void *beta);

#endif
