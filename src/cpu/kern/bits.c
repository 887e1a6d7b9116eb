/* SPDX-License-Identifier: MIT */
/* cpu/kern/bits.c: bit by bit, true or false, and small powers. Integers of one width share a loop
 * where the sign does not matter. */
#include <string.h>
#include "cpu/kern/loop.h"

#define WIDTHS(X)    \
    X(w8, uint8_t)   \
    X(w16, uint16_t) \
    X(w32, uint32_t) \
    X(w64, uint64_t)

#define BITWISE(S, T)                          \
    LOOP2(bit_and_##S, T, (T)(x & y))          \
    LOOP2(bit_or_##S, T, (T)(x | y))           \
    LOOP2(bit_xor_##S, T, (T)(x ^ y))          \
    LOOP1(bit_not_##S, T, (T)~x)               \
    LOOP1(square_##S, T, (T)((uint64_t)x * x)) \
    LOOP1(cube_##S, T, (T)((uint64_t)x * x * x))
WIDTHS(BITWISE)
LOOP1(not_bool, uint8_t, !x)

/* Bits that are shifted out are lost; a shift by too many, or by a negative number, loses all. */
#define SHIFTS(S, T, U, BITS, MOST)                                                  \
    LOOP2(left_##S, T, (y < 0) | (y >= BITS) ? (T)0 : (T)((U)x << (y & (BITS - 1)))) \
    LOOP2(right_##S, T, (T)(x >> ((y < 0) | (y >= MOST) ? MOST : y)))
SHIFTS(i8, int8_t, uint8_t, 8, 7)
SHIFTS(i16, int16_t, uint16_t, 16, 15)
SHIFTS(i32, int32_t, uint32_t, 32, 31)
SHIFTS(i64, int64_t, uint64_t, 64, 63)
LOOP2(left_u8, uint8_t, y >= 8 ? (uint8_t)0 : (uint8_t)(x << (y & 7)))
LOOP2(right_u8, uint8_t, (uint8_t)(x >> (y >= 8 ? 8 : y)))

/* ---- bool results ---- */

#define LOGIC(S, T)                                            \
    LOOP2_TO(logical_and_##S, uint8_t, T, (x != 0) & (y != 0)) \
    LOOP2_TO(logical_or_##S, uint8_t, T, (x != 0) | (y != 0))  \
    LOOP2_TO(logical_xor_##S, uint8_t, T, (x != 0) != (y != 0))
WIDTHS(LOGIC)
LOGIC(f32, float)
LOGIC(f64, double)
#define COMPLEX_LOGIC(S, T)                                                \
    static inline int is_true_##S(T x)                                     \
    {                                                                      \
        return (x.re != 0) | (x.im != 0);                                  \
    }                                                                      \
    LOOP2_TO(logical_and_##S, uint8_t, T, is_true_##S(x) & is_true_##S(y)) \
    LOOP2_TO(logical_or_##S, uint8_t, T, is_true_##S(x) | is_true_##S(y))  \
    LOOP2_TO(logical_xor_##S, uint8_t, T, is_true_##S(x) != is_true_##S(y))
COMPLEX_LOGIC(c64, c64)
COMPLEX_LOGIC(c128, c128)

LOOP1_TO(isnan_f32, uint8_t, float, x != x)
LOOP1_TO(isnan_f64, uint8_t, double, x != x)
LOOP1_TO(isnan_c64, uint8_t, c64, (x.re != x.re) | (x.im != x.im))
LOOP1_TO(isnan_c128, uint8_t, c128, (x.re != x.re) | (x.im != x.im))
LOOP1_TO(isinf_f32, uint8_t, float, fabsf(x) == INFINITY)
LOOP1_TO(isinf_f64, uint8_t, double, fabs(x) == (double)INFINITY)
LOOP1_TO(isinf_c64, uint8_t, c64, (fabsf(x.re) == INFINITY) | (fabsf(x.im) == INFINITY))
LOOP1_TO(isinf_c128, uint8_t, c128,
         (fabs(x.re) == (double)INFINITY) | (fabs(x.im) == (double)INFINITY))
/* Integers are neither. */
LOOP_HEAD(never)
{
    (void)in;
    (void)ctx;
    if (n > 0) /* of nothing `out` may be NULL */
        memset(out, 0, (size_t)n);
}

/* ---- small powers ---- */

LOOP1(square_f32, float, x *x)
LOOP1(square_f64, double, x *x)
LOOP1(cube_f32, float, x *x *x)
LOOP1(cube_f64, double, x *x *x)
LOOP1(inverse_square_f32, float, 1.0f / (x * x))
LOOP1(inverse_square_f64, double, 1.0 / (x * x))

/* Of complex numbers: by the formulas of the product and the quotient. */
#define POWERS(S, T, R, FABS)                                             \
    static inline T product_##S(T x, T y)                                 \
    {                                                                     \
        return (T){x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re}; \
    }                                                                     \
    static inline T inverse_##S(T x)                                      \
    {                                                                     \
        R c = FABS(x.re), d = FABS(x.im);                                 \
        if (c == 0 && d == 0)                                             \
            return (T){1 / c, 0 / d};                                     \
        if (c >= d) {                                                     \
            R ratio = x.im / x.re, scale = 1 / (x.re + x.im * ratio);     \
            return (T){scale, -ratio * scale};                            \
        }                                                                 \
        R ratio = x.re / x.im, scale = 1 / (x.re * ratio + x.im);         \
        return (T){ratio * scale, -scale};                                \
    }                                                                     \
    LOOP1(square_##S, T, product_##S(x, x))                               \
    LOOP1(cube_##S, T, product_##S(product_##S(x, x), x))                 \
    LOOP1(inverse_square_##S, T, inverse_##S(product_##S(x, x)))
POWERS(c64, c64, float, fabsf)
POWERS(c128, c128, double, fabs)

/* ---- conjugates; a real number is its own ---- */

LOOP1(conj_f32, float, x)
LOOP1(conj_f64, double, x)
LOOP1(conj_c64, c64, ((c64){x.re, -x.im}))
LOOP1(conj_c128, c128, ((c128){x.re, -x.im}))

#define WIDTH_ROW(f)                                                          \
    [TN_DTYPE_U8] = f##_w8, [TN_DTYPE_I8] = f##_w8, [TN_DTYPE_I16] = f##_w16, \
    [TN_DTYPE_I32] = f##_w32, [TN_DTYPE_I64] = f##_w64
#define SIGNED_ROW(f)                                                         \
    [TN_DTYPE_U8] = f##_u8, [TN_DTYPE_I8] = f##_i8, [TN_DTYPE_I16] = f##_i16, \
    [TN_DTYPE_I32] = f##_i32, [TN_DTYPE_I64] = f##_i64
#define FLOAT_ROW(f)   [TN_DTYPE_F32] = f##_f32, [TN_DTYPE_F64] = f##_f64
#define COMPLEX_ROW(f) [TN_DTYPE_C64] = f##_c64, [TN_DTYPE_C128] = f##_c128
#define ANY_ROW(f)     WIDTH_ROW(f), FLOAT_ROW(f), COMPLEX_ROW(f), [TN_DTYPE_BOOL] = f##_w8
#define NEVER_ROW                                                                                 \
    [TN_DTYPE_U8] = never, [TN_DTYPE_I8] = never, [TN_DTYPE_I16] = never, [TN_DTYPE_I32] = never, \
    [TN_DTYPE_I64] = never, [TN_DTYPE_BOOL] = never

const tni_loop_table TNI_KERN_NAME(tni_bits) = {
    ROW(BIT_AND) = {WIDTH_ROW(bit_and), [TN_DTYPE_BOOL] = logical_and_w8},
    ROW(BIT_OR) = {WIDTH_ROW(bit_or), [TN_DTYPE_BOOL] = logical_or_w8},
    ROW(BIT_XOR) = {WIDTH_ROW(bit_xor), [TN_DTYPE_BOOL] = logical_xor_w8},
    ROW(BIT_NOT) = {WIDTH_ROW(bit_not), [TN_DTYPE_BOOL] = not_bool},
    ROW(SHIFT_LEFT) = {SIGNED_ROW(left)},
    ROW(SHIFT_RIGHT) = {SIGNED_ROW(right)},
    ROW(LOGICAL_AND) = {ANY_ROW(logical_and)},
    ROW(LOGICAL_OR) = {ANY_ROW(logical_or)},
    ROW(LOGICAL_XOR) = {ANY_ROW(logical_xor)},
    ROW(ISNAN) = {FLOAT_ROW(isnan), COMPLEX_ROW(isnan), NEVER_ROW},
    ROW(ISINF) = {FLOAT_ROW(isinf), COMPLEX_ROW(isinf), NEVER_ROW},
    ROW(SQUARE) = {WIDTH_ROW(square), FLOAT_ROW(square), COMPLEX_ROW(square)},
    ROW(CUBE) = {WIDTH_ROW(cube), FLOAT_ROW(cube), COMPLEX_ROW(cube)},
    ROW(INVERSE_SQUARE) = {FLOAT_ROW(inverse_square), COMPLEX_ROW(inverse_square)},
    ROW(CONJ) = {FLOAT_ROW(conj), COMPLEX_ROW(conj)},
};
