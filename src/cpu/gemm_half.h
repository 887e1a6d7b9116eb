/* SPDX-License-Identifier: MIT */
/* cpu/gemm_half.h: tni_gemm for float16 and bfloat16. */
#ifndef TNI_CPU_GEMM_HALF_H
#define TNI_CPU_GEMM_HALF_H

#include "cpu/gemm.h"

/* As tni_gemm, for sizes that are not 0 (but k): operands are widened to float32, multiplied there,
 * and each element of C is rounded once. */
TN_NODISCARD tn_status tni_gemm_half(tn_dtype dtype, const tni_gemm_args *g, tn_scalar alpha,
                                     tn_scalar beta);

#endif
