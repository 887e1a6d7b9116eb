/* SPDX-License-Identifier: MIT */
/* cpu/kern/rows.c: loops over whole rows: softmax, normalisation, and their gradients. Rows are
 * summed as Note [Sums] says, so that every instruction set gives the same bits. */
#include "cpu/rows.h"

#include <string.h>
#include "cpu/kern/maths.h"
#include "cpu/kern/types.h"

/* Bytes of a vector register. Lanes are 128 bytes whatever it is. */
#if defined(__AVX512F__)
#    define REGISTER 64
#elif defined(__AVX2__)
#    define REGISTER 32
#else
#    define REGISTER 16
#endif
#define LANE_BYTES 128
#define REGISTERS  (LANE_BYTES / REGISTER)

#if defined(__clang__)
#    define UNROLL _Pragma("clang loop unroll(full)")
#else
#    define UNROLL _Pragma("GCC unroll 8")
#endif

/* exp of what is at most 0, in fewer steps than exp_f32: results below 2^-126 are 0. The constant
 * leaves the exponent of the result, biased, in the low bits. */
static inline float exp_down_f32(float x)
{
    x = x < -88.0f ? -88.0f : x;
    float shifted = x * 1.44269504088896341f + (0x1.8p+23f + 127.0f);
    float k = shifted - (0x1.8p+23f + 127.0f);
    float r = x - k * 0.693359375f;
    r = r - k * -2.12194440e-4f;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = (p * (r * r) + r) + 1.0f;
    return p * from_bits_f32(bits_f32(shifted) << 23);
}

#define T        float
#define SUF      f32
#define EXP      exp_f32
#define EXP_DOWN exp_down_f32
#define LOG      log_f32
#define SQRT     sqrtf
#include "cpu/kern/rows.inc"

#define T        double
#define SUF      f64
#define EXP      exp_f64
#define EXP_DOWN exp_f64
#define LOG      log_f64
#define SQRT     sqrt
#include "cpu/kern/rows.inc"

const tni_rows_table TNI_KERN_NAME(tni_rows) = {&rows_f32, &rows_f64};
