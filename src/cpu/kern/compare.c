/* SPDX-License-Identifier: MIT */
/* cpu/kern/compare.c: comparisons, which give bool, and where, which moves elements as they are. */
#include "cpu/kern/types.h"

#define LOOP2(name, T, expression)                                                          \
    static __attribute__((noinline)) void name(void *out, const void *const *in, int64_t n, \
                                               const void *ctx)                             \
    {                                                                                       \
        uint8_t *o = out;                                                                   \
        const T *a = in[0], *b = in[1];                                                     \
        (void)ctx;                                                                          \
        INDEPENDENT for (int64_t i = 0; i < n; i++)                                         \
        {                                                                                   \
            T x = a[i], y = b[i];                                                           \
            o[i] = (uint8_t)(expression);                                                   \
        }                                                                                   \
    }
/* Equality of integers does not ask for the sign. */
LOOP2(eq_w8, uint8_t, x == y)
LOOP2(eq_w16, uint16_t, x == y)
LOOP2(eq_w32, uint32_t, x == y)
LOOP2(eq_w64, uint64_t, x == y)
LOOP2(eq_f32, float, x == y)
LOOP2(eq_f64, double, x == y)
LOOP2(eq_c64, c64, (x.re == y.re) & (x.im == y.im))
LOOP2(eq_c128, c128, (x.re == y.re) & (x.im == y.im))
LOOP2(eq_bool, uint8_t, tni_truth(x) == tni_truth(y))
LOOP2(lt_bool, uint8_t, tni_truth(x) < tni_truth(y))
LOOP2(lt_u8, uint8_t, x < y)
LOOP2(lt_i8, int8_t, x < y)
LOOP2(lt_i16, int16_t, x < y)
LOOP2(lt_i32, int32_t, x < y)
LOOP2(lt_i64, int64_t, x < y)
LOOP2(lt_f32, float, x < y)
LOOP2(lt_f64, double, x < y)
LOOP2(le_f32, float, x <= y)
LOOP2(le_f64, double, x <= y)

/* The other comparisons are these, exchanged or inverted: a pass over bytes that are in the cache,
 * for half the code. */
static __attribute__((noinline)) void invert(uint8_t *o, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        o[i] ^= 1;
}
#define INVERTED(name, of, first, second)                                          \
    static void name(void *out, const void *const *in, int64_t n, const void *ctx) \
    {                                                                              \
        of(out, (const void *const[]){in[first], in[second]}, n, ctx);             \
        invert(out, n);                                                            \
    }
#define EXCHANGED(name, of)                                                        \
    static void name(void *out, const void *const *in, int64_t n, const void *ctx) \
    {                                                                              \
        of(out, (const void *const[]){in[1], in[0]}, n, ctx);                      \
    }
#define OTHERS(S)                  \
    INVERTED(le_##S, lt_##S, 1, 0) \
    EXCHANGED(gt_##S, lt_##S)      \
    INVERTED(ge_##S, lt_##S, 0, 1)
OTHERS(bool)
OTHERS(u8)
OTHERS(i8)
OTHERS(i16)
OTHERS(i32)
OTHERS(i64)
EXCHANGED(gt_f32, lt_f32)
EXCHANGED(ge_f32, le_f32)
EXCHANGED(gt_f64, lt_f64)
EXCHANGED(ge_f64, le_f64)
INVERTED(ne_bool, eq_bool, 0, 1)
INVERTED(ne_w8, eq_w8, 0, 1)
INVERTED(ne_w16, eq_w16, 0, 1)
INVERTED(ne_w32, eq_w32, 0, 1)
INVERTED(ne_w64, eq_w64, 0, 1)
INVERTED(ne_f32, eq_f32, 0, 1)
INVERTED(ne_f64, eq_f64, 0, 1)
INVERTED(ne_c64, eq_c64, 0, 1)
INVERTED(ne_c128, eq_c128, 0, 1)

/* Not true: conversion to bool, inverted. Converting is another file's business. */
#define LOGICAL_NOT(S, D)                                                                     \
    static void logical_not_##S(void *out, const void *const *in, int64_t n, const void *ctx) \
    {                                                                                         \
        (void)ctx;                                                                            \
        TNI_KERN_NAME(tni_cast)[TN_DTYPE_##D][TN_DTYPE_BOOL](out, in[0], n);                  \
        invert(out, n);                                                                       \
    }
LOGICAL_NOT(w8, U8)
LOGICAL_NOT(w32, I32)
LOGICAL_NOT(w64, I64)
LOGICAL_NOT(f32, F32)
LOGICAL_NOT(f64, F64)
LOGICAL_NOT(c64, C64)
LOGICAL_NOT(c128, C128)
#define logical_not_bool logical_not_w8
static void logical_not_w16(void *out, const void *const *in, int64_t n, const void *ctx)
{
    uint8_t *o = out;
    const uint16_t *a = in[0];
    (void)ctx;
    INDEPENDENT for (int64_t i = 0; i < n; i++) o[i] = a[i] == 0;
}

#define WHERE(S, T)                                                                     \
    static void where_##S(void *out, const void *const *in, int64_t n, const void *ctx) \
    {                                                                                   \
        T *o = out;                                                                     \
        const uint8_t *c = in[0];                                                       \
        const T *a = in[1], *b = in[2];                                                 \
        (void)ctx;                                                                      \
        INDEPENDENT for (int64_t i = 0; i < n; i++)                                     \
        {                                                                               \
            T x = a[i], y = b[i];                                                       \
            o[i] = c[i] ? x : y;                                                        \
        }                                                                               \
    }
WHERE(w8, uint8_t)
WHERE(w16, uint16_t)
WHERE(w32, uint32_t)
WHERE(w64, uint64_t)
WHERE(w128, c128)

#define ROW(NAME) [TNI_LOOP_##NAME % TNI_FAMILY_LOOPS]
#define EQUALITY_ROW(f)                                                           \
    [TN_DTYPE_U8] = f##_w8, [TN_DTYPE_I8] = f##_w8, [TN_DTYPE_BOOL] = f##_bool,   \
    [TN_DTYPE_I16] = f##_w16, [TN_DTYPE_I32] = f##_w32, [TN_DTYPE_I64] = f##_w64, \
    [TN_DTYPE_F32] = f##_f32, [TN_DTYPE_F64] = f##_f64, [TN_DTYPE_C64] = f##_c64, \
    [TN_DTYPE_C128] = f##_c128
#define ORDER_ROW(f)                                                              \
    [TN_DTYPE_U8] = f##_u8, [TN_DTYPE_BOOL] = f##_bool, [TN_DTYPE_I8] = f##_i8,   \
    [TN_DTYPE_I16] = f##_i16, [TN_DTYPE_I32] = f##_i32, [TN_DTYPE_I64] = f##_i64, \
    [TN_DTYPE_F32] = f##_f32, [TN_DTYPE_F64] = f##_f64
#define WIDTH_ROW(f)                                                               \
    [TN_DTYPE_U8] = f##_w8, [TN_DTYPE_I8] = f##_w8, [TN_DTYPE_BOOL] = f##_w8,      \
    [TN_DTYPE_I16] = f##_w16, [TN_DTYPE_F16] = f##_w16, [TN_DTYPE_BF16] = f##_w16, \
    [TN_DTYPE_I32] = f##_w32, [TN_DTYPE_F32] = f##_w32, [TN_DTYPE_I64] = f##_w64,  \
    [TN_DTYPE_F64] = f##_w64, [TN_DTYPE_C64] = f##_w64, [TN_DTYPE_C128] = f##_w128

const tni_loop_table TNI_KERN_NAME(tni_compare) = {
    ROW(EQ) = {EQUALITY_ROW(eq)},
    ROW(NE) = {EQUALITY_ROW(ne)},
    ROW(LT) = {ORDER_ROW(lt)},
    ROW(LE) = {ORDER_ROW(le)},
    ROW(GT) = {ORDER_ROW(gt)},
    ROW(GE) = {ORDER_ROW(ge)},
    ROW(LOGICAL_NOT) = {EQUALITY_ROW(logical_not)},
    ROW(WHERE) = {WIDTH_ROW(where)},
};
