/* SPDX-License-Identifier: MIT */
/* cpu/kern/rows_short.h: softmax and log_softmax of rows of at most eight registers of floats,
 * whole rows in registers. The same sums in the same order as rows.inc, so the same bits; half of
 * the time at 16 and at 64 floats, where loops over parts of vectors are most of the work. */
#ifndef TNI_CPU_KERN_ROWS_SHORT_H
#define TNI_CPU_KERN_ROWS_SHORT_H

#include "cpu/kern/gemm_vec.h"
#include "cpu/kern/maths.h"
#include "cpu/kern/types.h"

#if defined(__AVX2__) && defined(__FMA__)
#    define SHORT_ROW    (8 * VL_f32)
#    define SHORT_LANES  (32 / VL_f32) /* registers of the lanes of Note [Sums] */
#    define SHORT_ALWAYS static inline __attribute__((always_inline))

#    if defined(__AVX512F__) && defined(__AVX512VL__)
SHORT_ALWAYS vec_f32 short_max(vec_f32 a, vec_f32 b)
{
    return _mm512_max_ps(a, b);
}
/* n numbers, then -inf. */
SHORT_ALWAYS vec_f32 short_load(const float *x, int n)
{
    return _mm512_mask_loadu_ps(_mm512_set1_ps(-INFINITY), (__mmask16)((1u << n) - 1u), x);
}
SHORT_ALWAYS vec_f32 short_power(vec_f32 shifted)
{
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_castps_si512(shifted), 23));
}
SHORT_ALWAYS __m256 short_halves_add(vec_f32 v)
{
    return _mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
}
SHORT_ALWAYS __m256 short_halves_max(vec_f32 v)
{
    return _mm256_max_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
}
#    else
SHORT_ALWAYS vec_f32 short_max(vec_f32 a, vec_f32 b)
{
    return _mm256_max_ps(a, b);
}
SHORT_ALWAYS vec_f32 short_load(const float *x, int n)
{
    __m256 mask = _mm256_castsi256_ps(mask_f32(n));
    return _mm256_blendv_ps(_mm256_set1_ps(-INFINITY), load_part_f32(x, n), mask);
}
SHORT_ALWAYS vec_f32 short_power(vec_f32 shifted)
{
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_castps_si256(shifted), 23));
}
SHORT_ALWAYS __m256 short_halves_add(vec_f32 v)
{
    return v;
}
SHORT_ALWAYS __m256 short_halves_max(vec_f32 v)
{
    return v;
}
#    endif

SHORT_ALWAYS float short_across_add(__m256 v)
{
    __m128 x = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    x = _mm_add_ps(x, _mm_movehl_ps(x, x));
    return _mm_cvtss_f32(_mm_add_ss(x, _mm_movehdup_ps(x)));
}

SHORT_ALWAYS vec_f32 short_across_max(__m256 v)
{
    __m128 x = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    x = _mm_max_ps(x, _mm_movehl_ps(x, x));
    return set_f32(_mm_cvtss_f32(_mm_max_ss(x, _mm_movehdup_ps(x))));
}

/* exp_down_f32 of each. */
SHORT_ALWAYS vec_f32 short_exp_down(vec_f32 x)
{
    x = short_max(set_f32(-88.0f), x); /* this way round NaN stays */
    vec_f32 shifted = x * 1.44269504088896341f + (0x1.8p+23f + 127.0f);
    vec_f32 k = shifted - (0x1.8p+23f + 127.0f);
    vec_f32 r = x - k * 0.693359375f;
    r = r - k * -2.12194440e-4f;
    vec_f32 p = r * 1.3814568520e-3f + 8.3687314764e-3f;
    p = p * r + 4.1668388993e-2f;
    p = p * r + 1.6666521132e-1f;
    p = p * r + 4.9999994040e-1f;
    p = (p * (r * r) + r) + 1.0f;
    return p * short_power(shifted);
}

/* exp of a row less its largest number, in `vectors` registers of which the last has @p rest
 * numbers; returns their sum. */
SHORT_ALWAYS float short_exps(const int vectors, const float *x, int rest, vec_f32 *e, vec_f32 *max)
{
    for (int i = 0; i + 1 < vectors; i++)
        e[i] = load_f32(x + i * VL_f32);
    e[vectors - 1] = short_load(x + (vectors - 1) * VL_f32, rest);
    vec_f32 best = e[0];
    for (int i = 1; i < vectors; i++)
        best = short_max(best, e[i]);
    *max = short_across_max(short_halves_max(best));
    for (int i = 0; i < vectors; i++)
        e[i] = short_exp_down(e[i] - *max);
    /* Lanes first, then registers in halves, then within one. What a row does not have is 0. */
    vec_f32 sum[SHORT_LANES];
    for (int l = 0; l < SHORT_LANES && l < vectors; l++) {
        sum[l] = e[l];
        for (int i = l + SHORT_LANES; i < vectors; i += SHORT_LANES)
            sum[l] += e[i];
    }
    for (int w = SHORT_LANES / 2; w >= 1; w /= 2)
        for (int l = 0; l < w && l + w < vectors; l++)
            sum[l] += sum[l + w];
    return short_across_add(short_halves_add(sum[0]));
}

SHORT_ALWAYS void short_store_last(float *o, vec_f32 v, int rest)
{
    if (rest == VL_f32)
        store_f32(o, v);
    else
        store_part_f32(o, v, rest);
}

SHORT_ALWAYS void short_softmax_by(const int vectors, float *o, const float *x, int64_t rows, int n)
{
    const int rest = n - (vectors - 1) * VL_f32;
    for (int64_t r = 0; r < rows; r++, o += n, x += n) {
        vec_f32 e[SHORT_ROW / VL_f32], max;
        float sum = short_exps(vectors, x, rest, e, &max);
        /* The same bits as by way of a double, which has more than twice the digits. */
        vec_f32 scale = set_f32(1.0f / sum);
        for (int i = 0; i + 1 < vectors; i++)
            store_f32(o + i * VL_f32, e[i] * scale);
        short_store_last(o + (vectors - 1) * VL_f32, e[vectors - 1] * scale, rest);
    }
}

SHORT_ALWAYS void short_log_softmax_by(const int vectors, float *o, const float *x, int64_t rows,
                                       int n)
{
    enum { TOGETHER = 16 }; /* rows whose logarithms are taken at once */
    const int rest = n - (vectors - 1) * VL_f32;
    for (int64_t r = 0; r < rows; r += TOGETHER) {
        int some = (int)(rows - r < TOGETHER ? rows - r : TOGETHER);
        float maxes[TOGETHER], sums[TOGETHER];
        for (int k = 0; k < TOGETHER; k++)
            sums[k] = 1;
        for (int k = 0; k < some; k++) {
            vec_f32 e[SHORT_ROW / VL_f32], max;
            sums[k] = short_exps(vectors, x + k * n, rest, e, &max);
            maxes[k] = max[0];
        }
        INDEPENDENT for (int k = 0; k < TOGETHER; k++) sums[k] = log_f32(sums[k]);
        for (int k = 0; k < some; k++, o += n, x += n) {
            vec_f32 max = set_f32(maxes[k]), log_sum = set_f32(sums[k]);
            for (int i = 0; i + 1 < vectors; i++)
                store_f32(o + i * VL_f32, load_f32(x + i * VL_f32) - max - log_sum);
            vec_f32 last = short_load(x + (vectors - 1) * VL_f32, rest) - max - log_sum;
            short_store_last(o + (vectors - 1) * VL_f32, last, rest);
        }
    }
}

#    if VL_f32 == 16
/* Four numbers, each in a quarter of its own: those of four registers put together by @p op, in the
 * order of short_across_add. A third of the steps that it takes one by one. */
#        define SHORT_FOUR(op, r)                                                               \
            ({                                                                                  \
                __m512 ab = op(_mm512_shuffle_f32x4((r)[0], (r)[1], 0x44),                      \
                               _mm512_shuffle_f32x4((r)[0], (r)[1], 0xee));                     \
                __m512 cd = op(_mm512_shuffle_f32x4((r)[2], (r)[3], 0x44),                      \
                               _mm512_shuffle_f32x4((r)[2], (r)[3], 0xee));                     \
                __m512 all =                                                                    \
                    op(_mm512_shuffle_f32x4(ab, cd, 0x88), _mm512_shuffle_f32x4(ab, cd, 0xdd)); \
                all = op(all, _mm512_permute_ps(all, 0x4e));                                    \
                op(all, _mm512_permute_ps(all, 0xb1));                                          \
            })

/* short_exp_down of several, step by step: while one waits for its last step the others do theirs.
 */
#        define EACH _Pragma("GCC unroll 8") for (int i = 0; i < n; i++)
SHORT_ALWAYS void short_exps_down(const int n, vec_f32 *x)
{
    vec_f32 shifted[8], k[8], p[8];
    EACH x[i] = short_max(set_f32(-88.0f), x[i]);
    EACH shifted[i] = x[i] * 1.44269504088896341f;
    EACH shifted[i] += 0x1.8p+23f + 127.0f;
    EACH k[i] = shifted[i] - (0x1.8p+23f + 127.0f);
    EACH x[i] = fma_f32(k[i], set_f32(-0.693359375f), x[i]); /* this product is exact */
    EACH x[i] -= k[i] * -2.12194440e-4f;
    EACH p[i] = x[i] * 1.3814568520e-3f;
    EACH p[i] = (p[i] + 8.3687314764e-3f) * x[i];
    EACH p[i] = (p[i] + 4.1668388993e-2f) * x[i];
    EACH p[i] = (p[i] + 1.6666521132e-1f) * x[i];
    EACH p[i] = (p[i] + 4.9999994040e-1f) * (x[i] * x[i]);
    EACH p[i] = (p[i] + x[i]) + 1.0f;
    EACH x[i] = p[i] * short_power(shifted[i]);
}
#        undef EACH

/* Several times four rows at once, each of at most one register: most of the time goes into waiting
 * for one step before the next, which the rows do together. */
SHORT_ALWAYS void short_softmax_fours(const int fours, float *o, const float *x, int n)
{
    const __m512i firsts = _mm512_castsi128_si512(_mm_set_epi32(12, 8, 4, 0));
    const __mmask16 some = (__mmask16)((1u << n) - 1u);
    __m512 e[8];
#        pragma GCC unroll 8
    for (int i = 0; i < 4 * fours; i++)
        e[i] = short_load(x + i * n, n);
#        pragma GCC unroll 2
    for (int q = 0; q < fours; q++) {
        __m512 *r = e + 4 * q, max = SHORT_FOUR(_mm512_max_ps, r);
        r[0] -= _mm512_shuffle_f32x4(max, max, 0x00);
        r[1] -= _mm512_shuffle_f32x4(max, max, 0x55);
        r[2] -= _mm512_shuffle_f32x4(max, max, 0xaa);
        r[3] -= _mm512_shuffle_f32x4(max, max, 0xff);
    }
    short_exps_down(4 * fours, e);
#        pragma GCC unroll 2
    for (int q = 0; q < fours; q++) {
        __m512 sums = SHORT_FOUR(_mm512_add_ps, e + 4 * q);
        __m128 sum = _mm512_castps512_ps128(_mm512_permutexvar_ps(firsts, sums));
        __m512 scale = _mm512_castps128_ps512(_mm_set1_ps(1) / sum);
#        pragma GCC unroll 4
        for (int i = 4 * q; i < 4 * q + 4; i++)
            _mm512_mask_storeu_ps(o + i * n, some,
                                  e[i] * _mm512_permutexvar_ps(_mm512_set1_epi32(i % 4), scale));
    }
}
#        undef SHORT_FOUR
#    endif

/* A form of its own for each number of registers that a row takes. */
#    define SHORT_CASE(f, vectors) \
    case vectors:                  \
        f(vectors, o, x, rows, n); \
        break;
#    define SHORT_BY_VECTORS(f)              \
        switch ((n + VL_f32 - 1) / VL_f32) { \
            SHORT_CASE(f, 1)                 \
            SHORT_CASE(f, 2)                 \
            SHORT_CASE(f, 3)                 \
            SHORT_CASE(f, 4)                 \
            SHORT_CASE(f, 5)                 \
            SHORT_CASE(f, 6)                 \
            SHORT_CASE(f, 7)                 \
        default:                             \
            f(8, o, x, rows, n);             \
        }
/* A function of its own: what it keeps in memory would be set up for the shortest rows too. */
static __attribute__((noinline)) void short_softmax_longer(float *o, const float *x, int64_t rows,
                                                           int n)
{
    SHORT_BY_VECTORS(short_softmax_by)
}

static void short_softmax(float *o, const float *x, int64_t rows, int n)
{
#    if VL_f32 == 16
    for (; n <= VL_f32 && rows >= 8; rows -= 8, o += 8 * n, x += 8 * n)
        short_softmax_fours(2, o, x, n);
    if (n <= VL_f32 && rows >= 4) {
        short_softmax_fours(1, o, x, n);
        rows -= 4;
        o += 4 * n;
        x += 4 * n;
    }
#    endif
    if (n > 2 * VL_f32)
        short_softmax_longer(o, x, rows, n);
    else if (n > VL_f32)
        short_softmax_by(2, o, x, rows, n);
    else
        short_softmax_by(1, o, x, rows, n);
}

static void short_log_softmax(float *o, const float *x, int64_t rows, int n)
{
    SHORT_BY_VECTORS(short_log_softmax_by)
}
#    undef SHORT_BY_VECTORS
#endif

#endif
