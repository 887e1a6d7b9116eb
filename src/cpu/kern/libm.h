/* SPDX-License-Identifier: MIT */
/* cpu/kern/libm.h: loops through the C library, compiled once and used by every instruction set. */
#ifndef TNI_CPU_KERN_LIBM_H
#define TNI_CPU_KERN_LIBM_H

#include "cpu/loops.h"

#define TNI_LIBM_ONE(name) \
    void tni_libm_##name(void *out, const void *const *in, int64_t n, const void *ctx);
#define TNI_LIBM_ALL(f) TNI_LIBM_ONE(f##_c64) TNI_LIBM_ONE(f##_c128)
TNI_LIBM_ALL(sin)
TNI_LIBM_ALL(cos)
TNI_LIBM_ALL(tan)
TNI_LIBM_ALL(asin)
TNI_LIBM_ALL(acos)
TNI_LIBM_ALL(atan)
TNI_LIBM_ALL(sinh)
TNI_LIBM_ALL(cosh)
TNI_LIBM_ALL(asinh)
TNI_LIBM_ALL(acosh)
TNI_LIBM_ALL(atanh)
TNI_LIBM_ALL(log1p)
TNI_LIBM_ALL(expm1)
TNI_LIBM_ALL(log2)
TNI_LIBM_ALL(log10)
TNI_LIBM_ALL(exp2)
TNI_LIBM_ALL(pow)
TNI_LIBM_ONE(lgamma_f64)
TNI_LIBM_ALL(logaddexp)

#endif
