/* SPDX-License-Identifier: MIT */
/* cpu/kern/reduce.c: reductions of one run, and of runs into a run of accumulators. See Note
 * [Sums]. */
#include <string.h>
#include "cpu/kern/lanes.h"
#include "cpu/kern/types.h"

#define VECTOR(S, T)                                                                            \
    typedef T vec_of_##S __attribute__((vector_size(REGISTER), aligned(sizeof(T)), may_alias)); \
    typedef T part_of_##S __attribute__((vector_size(16), aligned(sizeof(T)), may_alias));
VECTOR(u8, uint8_t)
VECTOR(i8, int8_t)
VECTOR(i16, int16_t)
VECTOR(i32, int32_t)
VECTOR(i64, int64_t)
VECTOR(u64, uint64_t)
VECTOR(f32, float)
VECTOR(f64, double)

/* The sum of TERM(v), which takes an element and a register of them. WIDTH numbers make an element:
 * 2 for complex ones, whose parts are added apart. */
#define SUM(name, S, V, T, WIDTH, TERM)                                                 \
    static void name##_block_##S(void *out, const void *from, int64_t n)                \
    {                                                                                   \
        enum { LANES = LANE_BYTES / (int)sizeof(T), STEP = REGISTER / (int)sizeof(T) }; \
        const T *x = from;                                                              \
        T lanes[LANES] = {0}, *o = out;                                                 \
        int64_t i = 0, total = n * (WIDTH);                                             \
        if (total >= LANES) {                                                           \
            V sums[REGISTERS] = {0};                                                    \
            for (; i + LANES <= total; i += LANES)                                      \
                for (int r = 0; r < REGISTERS; r++) {                                   \
                    V v = *(const V *)(x + i + r * STEP);                               \
                    sums[r] += TERM(v);                                                 \
                }                                                                       \
            int rest = 0; /* whole registers of it first */                             \
            UNROLL for (int r = 0; r < REGISTERS; r++) if (i + STEP <= total)           \
            {                                                                           \
                V v = *(const V *)(x + i);                                              \
                sums[r] += TERM(v);                                                     \
                i += STEP;                                                              \
                rest += STEP;                                                           \
            }                                                                           \
            memcpy(lanes, sums, sizeof lanes);                                          \
            for (; i < total; i++, rest++)                                              \
                lanes[rest] += TERM(x[i]);                                              \
            UNROLL for (int w = LANES / 2; w >= (WIDTH); w /= 2)                        \
            {                                                                           \
                for (int l = 0; l < w; l++)                                             \
                    lanes[l] += lanes[l + w];                                           \
            }                                                                           \
            memcpy(o, lanes, sizeof(T) * (WIDTH));                                      \
            return;                                                                     \
        }                                                                               \
        for (int l = 0; i < total; i++, l++)                                            \
            lanes[l] += TERM(x[i]);                                                     \
        int w = LANES / 2;                                                              \
        while (w >= total && w > (WIDTH)) /* lanes from w on hold 0 */                  \
            w /= 2;                                                                     \
        for (; w >= (WIDTH); w /= 2)                                                    \
            for (int l = 0; l < w; l++)                                                 \
                lanes[l] += lanes[l + w];                                               \
        memcpy(o, lanes, sizeof(T) * (WIDTH));                                          \
    }                                                                                   \
    static void name##_rows_##S(void *acc, const void *from, int64_t n)                 \
    {                                                                                   \
        T *o = acc;                                                                     \
        const T *x = from;                                                              \
        INDEPENDENT for (int64_t i = 0; i < n * (WIDTH); i++) o[i] += TERM(x[i]);       \
    }
#define ITSELF(v) (v)
#define SQUARE(v) ((v) * (v))
SUM(sum, f32, vec_of_f32, float, 1, ITSELF)
SUM(sum, f64, vec_of_f64, double, 1, ITSELF)
SUM(sum, i64, vec_of_u64, uint64_t, 1, ITSELF)
SUM(sum, c64, vec_of_f32, float, 2, ITSELF)
SUM(sum, c128, vec_of_f64, double, 2, ITSELF)
SUM(square, f32, vec_of_f32, float, 1, SQUARE)
SUM(square, f64, vec_of_f64, double, 1, SQUARE)

/* Bits of a float that is kept, or its sign left out: the same for one and for a register. */
#define MASKED(S, T, B)                                                               \
    typedef B bits_of_##S __attribute__((vector_size(REGISTER), aligned(sizeof(T)))); \
    static inline vec_of_##S size_all_##S(vec_of_##S v)                               \
    {                                                                                 \
        return (vec_of_##S)((bits_of_##S)v & ((((B)1) << (8 * sizeof(T) - 2)) - 1 +   \
                                              (((B)1) << (8 * sizeof(T) - 2))));      \
    }                                                                                 \
    static inline T size_one_##S(T v)                                                 \
    {                                                                                 \
        return v < 0 ? -v : v;                                                        \
    }                                                                                 \
    static inline vec_of_##S known_all_##S(vec_of_##S v)                              \
    {                                                                                 \
        return (vec_of_##S)((bits_of_##S)v & (bits_of_##S)(v == v));                  \
    }                                                                                 \
    static inline T known_one_##S(T v)                                                \
    {                                                                                 \
        return v == v ? v : 0;                                                        \
    }
MASKED(f32, float, int32_t)
MASKED(f64, double, int64_t)
#define OF(kind, S, v) _Generic((v), vec_of_##S : kind##_all_##S, default : kind##_one_##S)(v)
#define SIZE_f32(v)    OF(size, f32, v)
#define SIZE_f64(v)    OF(size, f64, v)
#define KNOWN_f32(v)   OF(known, f32, v)
#define KNOWN_f64(v)   OF(known, f64, v)
SUM(size, f32, vec_of_f32, float, 1, SIZE_f32)
SUM(size, f64, vec_of_f64, double, 1, SIZE_f64)
SUM(known, f32, vec_of_f32, float, 1, KNOWN_f32)
SUM(known, f64, vec_of_f64, double, 1, KNOWN_f64)

#define DOT(S, T)                                                                       \
    static void dot_block_##S(void *out, const void *one, const void *other, int64_t n) \
    {                                                                                   \
        enum { LANES = LANE_BYTES / (int)sizeof(T), STEP = REGISTER / (int)sizeof(T) }; \
        const T *x = one, *y = other;                                                   \
        T lanes[LANES];                                                                 \
        vec_of_##S sums[REGISTERS] = {0};                                               \
        int64_t i = 0;                                                                  \
        for (; i + LANES <= n; i += LANES)                                              \
            for (int r = 0; r < REGISTERS; r++)                                         \
                sums[r] += *(const vec_of_##S *)(x + i + r * STEP) *                    \
                           *(const vec_of_##S *)(y + i + r * STEP);                     \
        memcpy(lanes, sums, sizeof lanes);                                              \
        for (int l = 0; i < n; i++, l++)                                                \
            lanes[l] += x[i] * y[i];                                                    \
        UNROLL for (int w = LANES / 2; w >= 1; w /= 2)                                  \
        {                                                                               \
            for (int l = 0; l < w; l++)                                                 \
                lanes[l] += lanes[l + w];                                               \
        }                                                                               \
        *(T *)out = lanes[0];                                                           \
    }
DOT(f32, float)
DOT(f64, double)

/* Products in P: sixteen side by side, then of halves of them. */
#define PRODUCT(S, T, P)                                                  \
    static void product_block_##S(void *out, const void *from, int64_t n) \
    {                                                                     \
        const T *x = from;                                                \
        P p[16];                                                          \
        int64_t i = 0;                                                    \
        for (int l = 0; l < 16; l++)                                      \
            p[l] = 1;                                                     \
        for (; i + 16 <= n; i += 16)                                      \
            for (int l = 0; l < 16; l++)                                  \
                p[l] *= (P)x[i + l];                                      \
        for (int l = 0; i + l < n; l++)                                   \
            p[l] *= (P)x[i + l];                                          \
        UNROLL for (int w = 8; w >= 1; w /= 2)                            \
        {                                                                 \
            for (int l = 0; l < w; l++)                                   \
                p[l] *= p[l + w];                                         \
        }                                                                 \
        *(P *)out = p[0];                                                 \
    }                                                                     \
    static void product_rows_##S(void *acc, const void *from, int64_t n)  \
    {                                                                     \
        P *o = acc;                                                       \
        const T *x = from;                                                \
        INDEPENDENT for (int64_t i = 0; i < n; i++) o[i] *= (P)x[i];      \
    }
PRODUCT(f32, float, double)
PRODUCT(f64, double, double)
PRODUCT(i64, uint64_t, uint64_t)

/* Neighbours of so many bytes, each in the other's place. */
static inline part_of_i64 swap_eight(part_of_i64 v)
{
    return __builtin_shufflevector(v, v, 1, 0);
}

static inline part_of_i32 swap_four(part_of_i32 v)
{
    return __builtin_shufflevector(v, v, 1, 0, 3, 2);
}

static inline part_of_i16 swap_two(part_of_i16 v)
{
    return __builtin_shufflevector(v, v, 1, 0, 3, 2, 5, 4, 7, 6);
}

static inline part_of_u8 swap_one(part_of_u8 v)
{
    return __builtin_shufflevector(v, v, 1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14);
}

/* The larger or smaller; NaN beats both. Neither the order matters nor whether an element is seen
 * twice: so the last lanes of a run end with it. */
#define EXTREME(name, S, T, BETTER)                                                               \
    static inline vec_of_##S name##_vec_##S(vec_of_##S old, vec_of_##S v)                         \
    {                                                                                             \
        __typeof__(v > old) is = (BETTER);                                                        \
        return (vec_of_##S)((is & (__typeof__(is))v) | (~is & (__typeof__(is))old));              \
    }                                                                                             \
    static inline part_of_##S name##_part_##S(part_of_##S old, part_of_##S v)                     \
    {                                                                                             \
        __typeof__(v > old) is = (BETTER);                                                        \
        return (part_of_##S)((is & (__typeof__(is))v) | (~is & (__typeof__(is))old));             \
    }                                                                                             \
    static void name##_block_##S(void *out, const void *from, int64_t n)                          \
    {                                                                                             \
        enum { LANES = LANE_BYTES / (int)sizeof(T), STEP = REGISTER / (int)sizeof(T) };           \
        const T *x = from;                                                                        \
        T best = x[0];                                                                            \
        if (n >= LANES) {                                                                         \
            T lanes[LANES];                                                                       \
            vec_of_##S bests[REGISTERS];                                                          \
            for (int r = 0; r < REGISTERS; r++)                                                   \
                bests[r] = *(const vec_of_##S *)(x + r * STEP);                                   \
            int64_t i = LANES;                                                                    \
            for (; i + LANES <= n; i += LANES)                                                    \
                for (int r = 0; r < REGISTERS; r++)                                               \
                    bests[r] = name##_vec_##S(bests[r], *(const vec_of_##S *)(x + i + r * STEP)); \
            for (int r = 0; i < n && r < REGISTERS; r++)                                          \
                bests[r] =                                                                        \
                    name##_vec_##S(bests[r], *(const vec_of_##S *)(x + n - LANES + r * STEP));    \
            UNROLL for (int r = 1; r < REGISTERS; r++)                                            \
            {                                                                                     \
                bests[0] = name##_vec_##S(bests[0], bests[r]);                                    \
            }                                                                                     \
            memcpy(lanes, bests, REGISTER);                                                       \
            part_of_##S part = *(const part_of_##S *)lanes;                                       \
            UNROLL for (int l = 16 / (int)sizeof(T); l < STEP; l += 16 / (int)sizeof(T))          \
            {                                                                                     \
                part = name##_part_##S(part, *(const part_of_##S *)(lanes + l));                  \
            }                                                                                     \
            part = name##_part_##S(part, (part_of_##S)swap_eight((part_of_i64)part));             \
            if (sizeof(T) <= 4)                                                                   \
                part = name##_part_##S(part, (part_of_##S)swap_four((part_of_i32)part));          \
            if (sizeof(T) <= 2)                                                                   \
                part = name##_part_##S(part, (part_of_##S)swap_two((part_of_i16)part));           \
            if (sizeof(T) == 1)                                                                   \
                part = name##_part_##S(part, (part_of_##S)swap_one((part_of_u8)part));            \
            best = part[0];                                                                       \
        } else {                                                                                  \
            for (int64_t i = 1; i < n; i++) {                                                     \
                T v = x[i], old = best;                                                           \
                best = (BETTER) ? v : old;                                                        \
            }                                                                                     \
        }                                                                                         \
        *(T *)out = best;                                                                         \
    }                                                                                             \
    static void name##_rows_##S(void *acc, const void *from, int64_t n)                           \
    {                                                                                             \
        T *o = acc;                                                                               \
        const T *x = from;                                                                        \
        INDEPENDENT for (int64_t i = 0; i < n; i++)                                               \
        {                                                                                         \
            T v = x[i], old = o[i];                                                               \
            o[i] = (BETTER) ? v : old;                                                            \
        }                                                                                         \
    }
#define EXTREMES(S, T)          \
    EXTREME(max, S, T, v > old) \
    EXTREME(min, S, T, v < old)
#define FLOATING_EXTREMES(S, T)              \
    EXTREME(max, S, T, (v > old) | (v != v)) \
    EXTREME(min, S, T, (v < old) | (v != v))
EXTREMES(u8, uint8_t)
EXTREMES(i8, int8_t)

/* Of bytes that are not 0 some is the largest if any is there, and the smallest if all are: see
 * Note [Bool bytes]. */
#define TRUTHS(name, expression)                                          \
    static void name##_block_bool(void *out, const void *from, int64_t n) \
    {                                                                     \
        name##_block_u8(out, from, n);                                    \
        *(uint8_t *)out = tni_truth(*(uint8_t *)out);                     \
    }                                                                     \
    static void name##_rows_bool(void *acc, const void *from, int64_t n)  \
    {                                                                     \
        uint8_t *o = acc;                                                 \
        const uint8_t *x = from;                                          \
        INDEPENDENT for (int64_t i = 0; i < n; i++) o[i] = (expression);  \
    }
TRUTHS(max, tni_truth(o[i] | x[i]))
TRUTHS(min, tni_truth(o[i]) & tni_truth(x[i]))
EXTREMES(i16, int16_t)
EXTREMES(i32, int32_t)
EXTREMES(i64, int64_t)
FLOATING_EXTREMES(f32, float)
FLOATING_EXTREMES(f64, double)

#define SUM_ROW(f)                                                                    \
    {                                                                                 \
        [TN_DTYPE_I64] = f##_i64, [TN_DTYPE_F32] = f##_f32, [TN_DTYPE_F64] = f##_f64, \
        [TN_DTYPE_C64] = f##_c64, [TN_DTYPE_C128] = f##_c128                          \
    }
#define EXTREME_ROW(f)                                                                \
    {                                                                                 \
        [TN_DTYPE_BOOL] = f##_bool, [TN_DTYPE_U8] = f##_u8, [TN_DTYPE_I8] = f##_i8,   \
        [TN_DTYPE_I16] = f##_i16, [TN_DTYPE_I32] = f##_i32, [TN_DTYPE_I64] = f##_i64, \
        [TN_DTYPE_F32] = f##_f32, [TN_DTYPE_F64] = f##_f64                            \
    }

#define FLOAT_ROW(f)                                       \
    {                                                      \
        [TN_DTYPE_F32] = f##_f32, [TN_DTYPE_F64] = f##_f64 \
    }
#define PRODUCT_ROW(f)                                                               \
    {                                                                                \
        [TN_DTYPE_I64] = f##_i64, [TN_DTYPE_F32] = f##_f32, [TN_DTYPE_F64] = f##_f64 \
    }

const tni_reduce_table TNI_KERN_NAME(tni_reduce) = {
    .sum_block = SUM_ROW(sum_block),
    .sum_rows = SUM_ROW(sum_rows),
    .max_block = EXTREME_ROW(max_block),
    .min_block = EXTREME_ROW(min_block),
    .max_rows = EXTREME_ROW(max_rows),
    .min_rows = EXTREME_ROW(min_rows),
    .square_block = FLOAT_ROW(square_block),
    .size_block = FLOAT_ROW(size_block),
    .known_block = FLOAT_ROW(known_block),
    .square_rows = FLOAT_ROW(square_rows),
    .size_rows = FLOAT_ROW(size_rows),
    .known_rows = FLOAT_ROW(known_rows),
    .dot_block = FLOAT_ROW(dot_block),
    .product_block = PRODUCT_ROW(product_block),
    .product_rows = PRODUCT_ROW(product_rows),
};
