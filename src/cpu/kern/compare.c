/* SPDX-License-Identifier: MIT */
/* cpu/kern/compare.c: comparisons, which give bool, and where, which moves elements as they are. */
#include "cpu/kern/types.h"

#define LOOP2(name, T, expression)                                                 \
    static void name(void *out, const void *const *in, int64_t n, const void *ctx) \
    {                                                                              \
        uint8_t *o = out;                                                          \
        const T *a = in[0], *b = in[1];                                            \
        (void)ctx;                                                                 \
        INDEPENDENT for (int64_t i = 0; i < n; i++)                                \
        {                                                                          \
            T x = a[i], y = b[i];                                                  \
            o[i] = (uint8_t)(expression);                                          \
        }                                                                          \
    }
#define LOOP1(name, T, expression)                                                 \
    static void name(void *out, const void *const *in, int64_t n, const void *ctx) \
    {                                                                              \
        uint8_t *o = out;                                                          \
        const T *a = in[0];                                                        \
        (void)ctx;                                                                 \
        INDEPENDENT for (int64_t i = 0; i < n; i++)                                \
        {                                                                          \
            T x = a[i];                                                            \
            o[i] = (uint8_t)(expression);                                          \
        }                                                                          \
    }

/* Equality of integers does not ask for the sign. */
#define EQUALITY(S, T)       \
    LOOP2(eq_##S, T, x == y) \
    LOOP2(ne_##S, T, x != y) \
    LOOP1(logical_not_##S, T, x == 0)
EQUALITY(w8, uint8_t)
EQUALITY(w16, uint16_t)
EQUALITY(w32, uint32_t)
EQUALITY(w64, uint64_t)
EQUALITY(f32, float)
EQUALITY(f64, double)
#define COMPLEX_EQUALITY(S, T)                        \
    LOOP2(eq_##S, T, (x.re == y.re) & (x.im == y.im)) \
    LOOP2(ne_##S, T, (x.re != y.re) | (x.im != y.im)) \
    LOOP1(logical_not_##S, T, (x.re == 0) & (x.im == 0))
COMPLEX_EQUALITY(c64, c64)
COMPLEX_EQUALITY(c128, c128)

/* gt and ge are lt and le with the operands exchanged. */
#define ORDER(S, T)                                                                  \
    LOOP2(lt_##S, T, x < y)                                                          \
    LOOP2(le_##S, T, x <= y)                                                         \
    static void gt_##S(void *out, const void *const *in, int64_t n, const void *ctx) \
    {                                                                                \
        lt_##S(out, (const void *const[]){in[1], in[0]}, n, ctx);                    \
    }                                                                                \
    static void ge_##S(void *out, const void *const *in, int64_t n, const void *ctx) \
    {                                                                                \
        le_##S(out, (const void *const[]){in[1], in[0]}, n, ctx);                    \
    }
ORDER(u8, uint8_t)
ORDER(i8, int8_t)
ORDER(i16, int16_t)
ORDER(i32, int32_t)
ORDER(i64, int64_t)
ORDER(f32, float)
ORDER(f64, double)

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
    [TN_DTYPE_U8] = f##_w8, [TN_DTYPE_I8] = f##_w8, [TN_DTYPE_BOOL] = f##_w8,     \
    [TN_DTYPE_I16] = f##_w16, [TN_DTYPE_I32] = f##_w32, [TN_DTYPE_I64] = f##_w64, \
    [TN_DTYPE_F32] = f##_f32, [TN_DTYPE_F64] = f##_f64, [TN_DTYPE_C64] = f##_c64, \
    [TN_DTYPE_C128] = f##_c128
#define ORDER_ROW(f)                                                              \
    [TN_DTYPE_U8] = f##_u8, [TN_DTYPE_BOOL] = f##_u8, [TN_DTYPE_I8] = f##_i8,     \
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
