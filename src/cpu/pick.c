/* SPDX-License-Identifier: MIT */
/* cpu/pick.c: see pick.h. */
#include "cpu/pick.h"

#include "cpu/loops.h"

#include "core/float8.h"
#include "core/half.h"
#include "cpu/copy.h"

typedef struct wide {
    uint64_t a, b;
} wide;

#define MOVES(S, T)                                                                 \
    static void pick_##S(void *to, const char *from, const int64_t *at, int64_t n)  \
    {                                                                               \
        T *o = to;                                                                  \
        for (int64_t i = 0; i < n; i++)                                             \
            o[i] = *(const T *)(from + at[i]);                                      \
    }                                                                               \
    static void place_##S(char *to, const int64_t *at, const void *from, int64_t n) \
    {                                                                               \
        const T *x = from;                                                          \
        for (int64_t i = 0; i < n; i++)                                             \
            *(T *)(to + at[i]) = x[i];                                              \
    }
MOVES(1, uint8_t)
MOVES(2, uint16_t)
MOVES(4, uint32_t)
MOVES(8, uint64_t)
MOVES(16, wide)

void tni_pick(void *to, const char *from, const int64_t *at, int64_t n, size_t itemsize)
{
    if (itemsize == 4)
        pick_4(to, from, at, n);
    else if (itemsize == 8)
        pick_8(to, from, at, n);
    else if (itemsize == 2)
        pick_2(to, from, at, n);
    else if (itemsize == 1)
        pick_1(to, from, at, n);
    else
        pick_16(to, from, at, n);
}

void tni_place(char *to, const int64_t *at, const void *from, int64_t n, size_t itemsize)
{
    if (itemsize == 4)
        place_4(to, at, from, n);
    else if (itemsize == 8)
        place_8(to, at, from, n);
    else if (itemsize == 2)
        place_2(to, at, from, n);
    else if (itemsize == 1)
        place_1(to, at, from, n);
    else
        place_16(to, at, from, n);
}

/* ---- combining ---- */

typedef struct c64 {
    float re, im;
} c64;
typedef struct c128 {
    double re, im;
} c128;

#define LOOP(S, name, T, expression)                                                 \
    static void name##_##S(char *to, const int64_t *at, const void *from, int64_t n) \
    {                                                                                \
        const T *b = from;                                                           \
        for (int64_t i = 0; i < n; i++) {                                            \
            T *p = (T *)(to + at[i]), x = *p, y = b[i];                              \
            *p = (expression);                                                       \
        }                                                                            \
    }
#define WHOLE(S, T)                                 \
    LOOP(S, add, T, (T)((uint64_t)x + (uint64_t)y)) \
    LOOP(S, mul, T, (T)((uint64_t)x * (uint64_t)y)) \
    LOOP(S, max, T, x > y ? x : y)                  \
    LOOP(S, min, T, x < y ? x : y)
#define REAL(S, T)                              \
    LOOP(S, add, T, x + y)                      \
    LOOP(S, mul, T, x *y)                       \
    LOOP(S, max, T, (x != x) | (x > y) ? x : y) \
    LOOP(S, min, T, (x != x) | (x < y) ? x : y)
#define HALF(S, T, LOAD, STORE)                                         \
    LOOP(S, add, T, STORE(LOAD(x) + LOAD(y)))                           \
    LOOP(S, mul, T, STORE(LOAD(x) * LOAD(y)))                           \
    LOOP(S, max, T, (LOAD(x) != LOAD(x)) | (LOAD(x) > LOAD(y)) ? x : y) \
    LOOP(S, min, T, (LOAD(x) != LOAD(x)) | (LOAD(x) < LOAD(y)) ? x : y)
#define EIGHT(S, DTYPE)                                          \
    static inline float load_##S(uint8_t bits)                   \
    {                                                            \
        const tni_float8 kind = tni_float8_of(TN_DTYPE_##DTYPE); \
        return tni_float8_to_float(&kind, bits);                 \
    }                                                            \
    static inline uint8_t store_##S(float value)                 \
    {                                                            \
        const tni_float8 kind = tni_float8_of(TN_DTYPE_##DTYPE); \
        return tni_float8_from_float(&kind, value);              \
    }                                                            \
    HALF(S, uint8_t, load_##S, store_##S)
#define PAIR(S, T)                                   \
    LOOP(S, add, T, ((T){x.re + y.re, x.im + y.im})) \
    LOOP(S, mul, T, ((T){x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re}))

WHOLE(u8, uint8_t)
WHOLE(i8, int8_t)
WHOLE(i16, int16_t)
WHOLE(i32, int32_t)
WHOLE(i64, int64_t)
WHOLE(u16, uint16_t)
WHOLE(u32, uint32_t)
WHOLE(u64, uint64_t)
REAL(f32, float)
REAL(f64, double)
HALF(f16, tni_f16, tni_f16_to_float, tni_f16_from_float)
HALF(bf16, tni_bf16, tni_bf16_to_float, tni_bf16_from_float)
EIGHT(e5m2, F8E5M2)
EIGHT(e4m3, F8E4M3)
EIGHT(e5m2uz, F8E5M2UZ)
EIGHT(e4m3uz, F8E4M3UZ)
PAIR(c64, c64)
PAIR(c128, c128)
LOOP(bool, or, uint8_t, tni_truth(x | y))
LOOP(bool, and, uint8_t, tni_truth(x) & tni_truth(y))

#define ROW(op)                                                                        \
    [TN_DTYPE_U8] = op##_u8, [TN_DTYPE_I8] = op##_i8, [TN_DTYPE_I16] = op##_i16,       \
    [TN_DTYPE_I32] = op##_i32, [TN_DTYPE_I64] = op##_i64, [TN_DTYPE_F32] = op##_f32,   \
    [TN_DTYPE_F64] = op##_f64, [TN_DTYPE_F16] = op##_f16, [TN_DTYPE_BF16] = op##_bf16, \
    [TN_DTYPE_U16] = op##_u16, [TN_DTYPE_U32] = op##_u32, [TN_DTYPE_U64] = op##_u64,   \
    [TN_DTYPE_F8E5M2] = op##_e5m2, [TN_DTYPE_F8E4M3] = op##_e4m3,                      \
    [TN_DTYPE_F8E5M2UZ] = op##_e5m2uz, [TN_DTYPE_F8E4M3UZ] = op##_e4m3uz

static const tni_combine_fn combines[TNI_COMBINE_LIMIT][TN_DTYPE_LIMIT] = {
    {ROW(add), [TN_DTYPE_C64] = add_c64, [TN_DTYPE_C128] = add_c128, [TN_DTYPE_BOOL] = or_bool},
    {ROW(mul), [TN_DTYPE_C64] = mul_c64, [TN_DTYPE_C128] = mul_c128, [TN_DTYPE_BOOL] = and_bool},
    {ROW(max), [TN_DTYPE_BOOL] = or_bool},
    {ROW(min), [TN_DTYPE_BOOL] = and_bool},
};

tni_combine_fn tni_combine_find(tni_combination op, tn_dtype dtype)
{
    return combines[op][dtype];
}

/* ---- indices ---- */

tn_status tni_index_run(tn_tensor *index, tn_tensor **out)
{
    if (index->dtype == TN_DTYPE_I64 && (index->flags & TNI_CONTIGUOUS)) {
        *out = tn_tensor_ref(index);
        return TN_OK;
    }
    TN_AUTO(tn_tensor) run = NULL;
    TN_TRY(tni_tensor_new(index->ndim, index->sizes, NULL, TN_DTYPE_I64, TN_CPU, &run));
    TN_TRY(tni_copy_cpu(run, index));
    *out = TN_MOVE(run);
    return TN_OK;
}
