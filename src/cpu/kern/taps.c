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

/* ---- channels side by side ---- */

#define UNROLLED _Pragma("GCC unroll 16")

#define TAP_ROWS(T, S)                                                                            \
    /* nv vectors of channels, or a part of one, of np places. */                                 \
    static inline __attribute__((always_inline)) void rows_piece_##S(                             \
        const int nv, const int np, const int part, T *out, const T *x, const tni_tap_rows *r,    \
        int64_t c)                                                                                \
    {                                                                                             \
        vec_##S sum[4][2], weight[2];                                                             \
        const T *start = r->start;                                                                \
        UNROLLED for (int i = 0; i < np * nv; i++)                                                \
        {                                                                                         \
            const T *from = start ? start + c + i % nv * VL_##S : NULL;                           \
            sum[i / nv][i % nv] = !from  ? set_##S(0)                                             \
                                  : part ? load_part_##S(from, part)                              \
                                         : load_##S(from);                                        \
        }                                                                                         \
        for (int64_t t = 0; t < r->taps; t++) {                                                   \
            const T *w = (const T *)r->weight + r->kernel[t] * r->channels + c;                   \
            const T *from = x + r->offset[t] + c;                                                 \
            UNROLLED for (int j = 0; j < nv; j++) weight[j] =                                     \
                part ? load_part_##S(w, part) : load_##S(w + j * VL_##S);                         \
            UNROLLED for (int i = 0; i < np * nv; i++)                                            \
            {                                                                                     \
                const T *at = from + i / nv * r->x_step + i % nv * VL_##S;                        \
                sum[i / nv][i % nv] =                                                             \
                    fma_##S(weight[i % nv], part ? load_part_##S(at, part) : load_##S(at),        \
                            sum[i / nv][i % nv]);                                                 \
            }                                                                                     \
        }                                                                                         \
        UNROLLED for (int i = 0; i < np * nv; i++)                                                \
        {                                                                                         \
            T *to = out + i / nv * r->out_step + c + i % nv * VL_##S;                             \
            if (part)                                                                             \
                store_part_##S(to, sum[i / nv][i % nv], part);                                    \
            else                                                                                  \
                store_##S(to, sum[i / nv][i % nv]);                                               \
        }                                                                                         \
    }                                                                                             \
    static void rows_##S(void *to, const void *from, const tni_tap_rows *r)                       \
    {                                                                                             \
        int64_t p = 0, n = r->channels;                                                           \
        for (; p < r->places; p += p + 4 <= r->places ? 4 : 1) {                                  \
            T *out = (T *)to + p * r->out_step;                                                   \
            const T *x = (const T *)from + p * r->x_step;                                         \
            bool four = p + 4 <= r->places;                                                       \
            int64_t c = 0;                                                                        \
            for (; four && c + 2 * VL_##S <= n; c += 2 * VL_##S)                                  \
                rows_piece_##S(2, 4, 0, out, x, r, c);                                            \
            for (; four && c + VL_##S <= n; c += VL_##S)                                          \
                rows_piece_##S(1, 4, 0, out, x, r, c);                                            \
            for (; !four && c + 2 * VL_##S <= n; c += 2 * VL_##S)                                 \
                rows_piece_##S(2, 1, 0, out, x, r, c);                                            \
            for (; !four && c + VL_##S <= n; c += VL_##S)                                         \
                rows_piece_##S(1, 1, 0, out, x, r, c);                                            \
            for (int k = 0; c < n && k < (four ? 4 : 1); k++)                                     \
                rows_piece_##S(1, 1, (int)(n - c), out + k * r->out_step, x + k * r->x_step, r,   \
                               c);                                                                \
        }                                                                                         \
    }                                                                                             \
    /* nt taps of a vector of channels, or a part of one. */                                      \
    static inline __attribute__((always_inline)) void row_dots_piece_##S(                         \
        const int nt, const int part, T *sums, const T *grad, const T *x, const tni_tap_rows *r,  \
        const int64_t *offset, int64_t n)                                                         \
    {                                                                                             \
        vec_##S sum[9];                                                                           \
        UNROLLED for (int t = 0; t < nt; t++) sum[t] =                                            \
            part ? load_part_##S(sums + t * n, part) : load_##S(sums + t * n);                    \
        for (int64_t p = 0; p < r->places; p++) {                                                 \
            const T *g_at = grad + p * r->out_step, *x_at = x + p * r->x_step;                    \
            vec_##S g = part ? load_part_##S(g_at, part) : load_##S(g_at);                        \
            UNROLLED for (int t = 0; t < nt; t++) sum[t] = fma_##S(                               \
                g, part ? load_part_##S(x_at + offset[t], part) : load_##S(x_at + offset[t]),     \
                sum[t]);                                                                          \
        }                                                                                         \
        UNROLLED for (int t = 0; t < nt; t++)                                                     \
        {                                                                                         \
            if (part)                                                                             \
                store_part_##S(sums + t * n, sum[t], part);                                       \
            else                                                                                  \
                store_##S(sums + t * n, sum[t]);                                                  \
        }                                                                                         \
    }                                                                                             \
    static void row_dots_##S(void *to, const void *grad, const void *from, const tni_tap_rows *r, \
                             int64_t n)                                                           \
    {                                                                                             \
        for (int64_t c = 0; c < n; c += VL_##S) {                                                 \
            const T *g = (const T *)grad + c, *x = (const T *)from + c;                           \
            T *sums = (T *)to + c;                                                                \
            int64_t t = 0;                                                                        \
            if (n - c < VL_##S) {                                                                 \
                for (; t < r->taps; t++)                                                          \
                    row_dots_piece_##S(1, (int)(n - c), sums + t * n, g, x, r, r->offset + t, n); \
                continue;                                                                         \
            }                                                                                     \
            for (; t + 9 <= r->taps; t += 9)                                                      \
                row_dots_piece_##S(9, 0, sums + t * n, g, x, r, r->offset + t, n);                \
            for (; t + 4 <= r->taps; t += 4)                                                      \
                row_dots_piece_##S(4, 0, sums + t * n, g, x, r, r->offset + t, n);                \
            for (; t < r->taps; t++)                                                              \
                row_dots_piece_##S(1, 0, sums + t * n, g, x, r, r->offset + t, n);                \
        }                                                                                         \
    }

TAP_ROWS(float, f32)
TAP_ROWS(double, f64)

const tni_taps_table TNI_KERN_NAME(tni_taps) = {{sum_f32, dots_f32, rows_f32, row_dots_f32},
                                                {sum_f64, dots_f64, rows_f64, row_dots_f64}};
