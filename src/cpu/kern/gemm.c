/* SPDX-License-Identifier: MIT */
/* cpu/kern/gemm.c: matrix products on one thread, for one instruction set. */
#include <string.h>
#include "cpu/gemm_kernels.h"
#include "cpu/kern/gemm_vec.h"
#include "cpu/kern/types.h"

/* Registers decide: two vectors for each row, two of B and one of A must fit. */
#if defined(__AVX512F__)
#    define VECTORS_OF_64_BYTES 1
#    define ROWS                12
#else
#    define VECTORS_OF_64_BYTES 0
#    define ROWS                6
#endif

#define T  float
#define S  f32
#define MR ROWS
#include "cpu/kern/gemm_float.inc"

#define T  double
#define S  f64
#define MR ROWS
#include "cpu/kern/gemm_float.inc"

/* Integers wrap: computed without a sign, which gives the same bits. The product of two small ones
 * is an int in C, which may not overflow; so they are widened first. */
#define T                  uint8_t
#define S                  w8
#define ADD_MUL(sum, x, y) ((sum) = (uint8_t)((unsigned)(sum) + (unsigned)(x) * (unsigned)(y)))
#define SCALE(alpha, x)    ((uint8_t)((unsigned)(alpha) * (unsigned)(x)))
#define ADD(x, y)          ((uint8_t)((x) + (y)))
#include "cpu/kern/gemm_plain.inc"

#define T                  uint16_t
#define S                  w16
#define ADD_MUL(sum, x, y) ((sum) = (uint16_t)((unsigned)(sum) + (unsigned)(x) * (unsigned)(y)))
#define SCALE(alpha, x)    ((uint16_t)((unsigned)(alpha) * (unsigned)(x)))
#define ADD(x, y)          ((uint16_t)((x) + (y)))
#include "cpu/kern/gemm_plain.inc"

#define T                  uint32_t
#define S                  w32
#define ADD_MUL(sum, x, y) ((sum) += (x) * (y))
#define SCALE(alpha, x)    ((alpha) * (x))
#define ADD(x, y)          ((x) + (y))
#include "cpu/kern/gemm_plain.inc"

#define T                  uint64_t
#define S                  w64
#define ADD_MUL(sum, x, y) ((sum) += (x) * (y))
#define SCALE(alpha, x)    ((alpha) * (x))
#define ADD(x, y)          ((x) + (y))
#include "cpu/kern/gemm_plain.inc"

/* Complex numbers by the formula, without C's recovery of infinities. */
#define COMPLEX_ADD_MUL(sum, x, y) \
    ((sum).re += (x).re * (y).re - (x).im * (y).im, (sum).im += (x).re * (y).im + (x).im * (y).re)
#define COMPLEX_SCALE(T, alpha, x) \
    ((T){(alpha).re * (x).re - (alpha).im * (x).im, (alpha).re * (x).im + (alpha).im * (x).re})
#define COMPLEX_ADD(T, x, y) ((T){(x).re + (y).re, (x).im + (y).im})

#define T                  c64
#define S                  c64
#define ADD_MUL(sum, x, y) COMPLEX_ADD_MUL(sum, x, y)
#define SCALE(alpha, x)    COMPLEX_SCALE(c64, alpha, x)
#define ADD(x, y)          COMPLEX_ADD(c64, x, y)
#include "cpu/kern/gemm_plain.inc"

#define T                  c128
#define S                  c128
#define ADD_MUL(sum, x, y) COMPLEX_ADD_MUL(sum, x, y)
#define SCALE(alpha, x)    COMPLEX_SCALE(c128, alpha, x)
#define ADD(x, y)          COMPLEX_ADD(c128, x, y)
#include "cpu/kern/gemm_plain.inc"

#define TABLE(kernel)                                                                            \
    {                                                                                            \
        [TN_DTYPE_U8] = kernel##_w8, [TN_DTYPE_I8] = kernel##_w8, [TN_DTYPE_I16] = kernel##_w16, \
        [TN_DTYPE_I32] = kernel##_w32, [TN_DTYPE_I64] = kernel##_w64,                            \
        [TN_DTYPE_F32] = kernel##_f32, [TN_DTYPE_F64] = kernel##_f64,                            \
        [TN_DTYPE_C64] = kernel##_c64, [TN_DTYPE_C128] = kernel##_c128                           \
    }

#if VECTORS_OF_64_BYTES
#    define LARGE(S)                                          \
        {                                                     \
            .run = by_rows_##S, .mr = ROWS, .copies_a = false \
        }
#else
#    define LARGE(S)                                           \
        {                                                      \
            .run = by_panels_##S, .mr = ROWS, .copies_a = true \
        }
#endif

const tni_gemm_table TNI_KERN_NAME(tni_gemm) = {
    .gemm = TABLE(gemm),
    .gemv = TABLE(gemv),
    .packed = {[TN_DTYPE_F32] = &packed_f32, [TN_DTYPE_F64] = &packed_f64},
    .large = {[TN_DTYPE_F32] = LARGE(f32), [TN_DTYPE_F64] = LARGE(f64)},
    .tiny = {[TN_DTYPE_F32] = tiny_f32, [TN_DTYPE_F64] = tiny_f64},
    .small = {[TN_DTYPE_F32] = small_f32, [TN_DTYPE_F64] = small_f64},
    .thin = {[TN_DTYPE_F32] = thin_f32, [TN_DTYPE_F64] = thin_f64},
};
