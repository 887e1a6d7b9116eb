/* SPDX-License-Identifier: MIT */
/* cpu/kern/taps.c: a few elements of a kernel over a line, see cpu/taps.h. */
#include "cpu/taps.h"
#include "cpu/kern/gemm_vec.h"

#define TAPS(T, S)                                                                             \
    /* nv vectors of the line, or a part of one. */                                            \
    static inline __attribute__((always_inline)) void piece_##S(                               \
        const int nv, int part, T *out, const T *x, const int64_t *offset, const T *weight,    \
        int64_t taps, T start)                                                                 \
    {                                                                                          \
        vec_##S sum[4];                                                                        \
        for (int j = 0; j < nv; j++)                                                           \
            sum[j] = set_##S(start);                                                           \
        for (int64_t t = 0; t < taps; t++) {                                                   \
            vec_##S y = set_##S(weight[t]);                                                    \
            const T *from = x + offset[t];                                                     \
            _Pragma("GCC unroll 4") for (int j = 0; j < nv; j++)                               \
            {                                                                                  \
                vec_##S v = part ? load_part_##S(from, part) : load_##S(from + j * VL_##S);    \
                sum[j] = fma_##S(y, v, sum[j]);                                                \
            }                                                                                  \
        }                                                                                      \
        if (part)                                                                              \
            store_part_##S(out, sum[0], part);                                                 \
        for (int j = 0; j < nv && !part; j++)                                                  \
            store_##S(out + j * VL_##S, sum[j]);                                               \
    }                                                                                          \
    static void sum_##S(void *to, const void *from, const int64_t *offset, const void *weight, \
                        int64_t taps, int64_t n, const void *start_at)                         \
    {                                                                                          \
        T *out = to;                                                                           \
        const T *x = from, *w = weight;                                                        \
        const T start = *(const T *)start_at;                                                  \
        int64_t i = 0;                                                                         \
        for (; i + 4 * VL_##S <= n; i += 4 * VL_##S)                                           \
            piece_##S(4, 0, out + i, x + i, offset, w, taps, start);                           \
        for (; i + VL_##S <= n; i += VL_##S)                                                   \
            piece_##S(1, 0, out + i, x + i, offset, w, taps, start);                           \
        if (i < n)                                                                             \
            piece_##S(1, (int)(n - i), out + i, x + i, offset, w, taps, start);                \
    }                                                                                          \
    static void dots_##S(void *to, const void *grad, const void *from, const int64_t *offset,  \
                         int64_t taps, int64_t n)                                              \
    {                                                                                          \
        T *lanes = to;                                                                         \
        const T *g = grad;                                                                     \
        for (int64_t t = 0; t < taps; t++, lanes += TNI_TAP_LANES) {                           \
            const T *x = (const T *)from + offset[t];                                          \
            vec_##S sum = load_##S(lanes);                                                     \
            int64_t i = 0;                                                                     \
            for (; i + VL_##S <= n; i += VL_##S)                                               \
                sum = fma_##S(load_##S(g + i), load_##S(x + i), sum);                          \
            if (i < n) {                                                                       \
                int part = (int)(n - i);                                                       \
                sum = fma_##S(load_part_##S(g + i, part), load_part_##S(x + i, part), sum);    \
            }                                                                                  \
            store_##S(lanes, sum);                                                             \
        }                                                                                      \
    }

TAPS(float, f32)
TAPS(double, f64)

const tni_taps_table TNI_KERN_NAME(tni_taps) = {{sum_f32, dots_f32}, {sum_f64, dots_f64}};
