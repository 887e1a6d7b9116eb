/* SPDX-License-Identifier: MIT */
/* cpu/kern/reduce.c: reductions of one run, and of runs into a run of accumulators. See Note
 * [Sums]. */
#include <string.h>
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

/* WIDTH numbers make an element: 2 for complex ones, whose parts are added apart. */
#define SUM(S, T, WIDTH)                                                                     \
    typedef T vec_##S __attribute__((vector_size(REGISTER), aligned(sizeof(T)), may_alias)); \
    static void sum_block_##S(void *out, const void *from, int64_t n)                        \
    {                                                                                        \
        enum { LANES = LANE_BYTES / (int)sizeof(T), STEP = REGISTER / (int)sizeof(T) };      \
        const T *x = from;                                                                   \
        T lanes[LANES] = {0}, *o = out;                                                      \
        int64_t i = 0, total = n * (WIDTH);                                                  \
        if (total >= LANES) {                                                                \
            vec_##S sums[REGISTERS] = {0};                                                   \
            for (; i + LANES <= total; i += LANES)                                           \
                for (int r = 0; r < REGISTERS; r++)                                          \
                    sums[r] += *(const vec_##S *)(x + i + r * STEP);                         \
            memcpy(lanes, sums, sizeof lanes);                                               \
        }                                                                                    \
        for (int l = 0; i < total; i++, l++)                                                 \
            lanes[l] += x[i];                                                                \
        int w = LANES / 2;                                                                   \
        while (w >= total && w > (WIDTH)) /* lanes from w on hold 0 */                       \
            w /= 2;                                                                          \
        for (; w >= (WIDTH); w /= 2)                                                         \
            for (int l = 0; l < w; l++)                                                      \
                lanes[l] += lanes[l + w];                                                    \
        memcpy(o, lanes, sizeof(T) * (WIDTH));                                               \
    }                                                                                        \
    static void sum_rows_##S(void *acc, const void *from, int64_t n)                         \
    {                                                                                        \
        T *o = acc;                                                                          \
        const T *x = from;                                                                   \
        INDEPENDENT for (int64_t i = 0; i < n * (WIDTH); i++) o[i] += x[i];                  \
    }
SUM(f32, float, 1)
SUM(f64, double, 1)
SUM(i64, uint64_t, 1)
SUM(c64, float, 2)
SUM(c128, double, 2)

#if defined(__clang__)
#    define UNROLL _Pragma("clang loop unroll(full)")
#else
#    define UNROLL _Pragma("GCC unroll 8")
#endif

/* The larger or smaller; NaN beats both. Neither the order matters nor whether an element is seen
 * twice: so the last lanes of a run end with it. */
#define EXTREME(name, S, T, BETTER)                                                               \
    static inline vec_of_##S name##_vec_##S(vec_of_##S old, vec_of_##S v)                         \
    {                                                                                             \
        __typeof__(v > old) is = (BETTER);                                                        \
        return (vec_of_##S)((is & (__typeof__(is))v) | (~is & (__typeof__(is))old));              \
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
            memcpy(lanes, bests, sizeof lanes);                                                   \
            UNROLL for (int w = LANES / 2; w >= 1; w /= 2)                                        \
            {                                                                                     \
                for (int l = 0; l < w; l++) {                                                     \
                    T v = lanes[l + w], old = lanes[l];                                           \
                    lanes[l] = (BETTER) ? v : old;                                                \
                }                                                                                 \
            }                                                                                     \
            best = lanes[0];                                                                      \
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
#define VECTOR(S, T) \
    typedef T vec_of_##S __attribute__((vector_size(REGISTER), aligned(sizeof(T)), may_alias));
VECTOR(u8, uint8_t)
VECTOR(i8, int8_t)
VECTOR(i16, int16_t)
VECTOR(i32, int32_t)
VECTOR(i64, int64_t)
VECTOR(f32, float)
VECTOR(f64, double)
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

const tni_reduce_table TNI_KERN_NAME(tni_reduce) = {
    .sum_block = SUM_ROW(sum_block),
    .sum_rows = SUM_ROW(sum_rows),
    .max_block = EXTREME_ROW(max_block),
    .min_block = EXTREME_ROW(min_block),
    .max_rows = EXTREME_ROW(max_rows),
    .min_rows = EXTREME_ROW(min_rows),
};
