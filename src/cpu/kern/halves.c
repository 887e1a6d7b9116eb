/* SPDX-License-Identifier: MIT */
/* cpu/kern/halves.c: see cpu/halves.h. A block of up to six rows with four keeps its sums in
 * registers, a vector of lanes each; lanes are added up at the end, always in the same order. */
#include "cpu/halves.h"

#include "cpu/kern/gemm_vec.h"
#include "cpu/kern/types.h"

#if defined(__AVX512F__) && defined(__AVX512BW__) && HAVE_SUMS_f32

#    define INLINE   static inline __attribute__((always_inline))
#    define UNROLLED _Pragma("GCC unroll 24")

static inline __m512 load_f16(const uint16_t *x)
{
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)x));
}
static inline __m512 part_f16(const uint16_t *x, int64_t n)
{
    return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16((__mmask16)((1u << n) - 1u), x));
}
static inline __m512 widened(__m256i x)
{
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(x), 16));
}
static inline __m512 load_bf16(const uint16_t *x)
{
    return widened(_mm256_loadu_si256((const __m256i *)(const void *)x));
}
static inline __m512 part_bf16(const uint16_t *x, int64_t n)
{
    return widened(_mm256_maskz_loadu_epi16((__mmask16)((1u << n) - 1u), x));
}
static inline __m512 add_wide(__m512 sum, __m512 a, __m512 b)
{
    return _mm512_fmadd_ps(a, b, sum);
}

/* Pairs stay as they are. */
#    define PAIRS __attribute__((target("avx512bf16")))
static inline __m512i load_pairs(const uint16_t *x)
{
    return _mm512_loadu_si512(x);
}
static inline __m512i part_pairs(const uint16_t *x, int64_t n)
{
    return _mm512_maskz_loadu_epi16((__mmask32)((1u << n) - 1u), x);
}
PAIRS INLINE __m512 add_pairs(__m512 sum, __m512i a, __m512i b)
{
    return _mm512_dpbf16_ps(sum, (__m512bh)a, (__m512bh)b);
}

/* Of vectors V of STEP elements. */
#    define PRODUCTS(NAME, TARGET, V, STEP, LOAD, PART, ADD)                                       \
        TARGET INLINE void NAME##_block(const int rows, const int columns,                         \
                                        const tni_row_products *x, int64_t i0, int64_t j0)         \
        {                                                                                          \
            __m512 sum[24];                                                                        \
            V b[8];                                                                                \
            const uint16_t *from_a = x->a + i0 * x->a_row, *from_b = x->b + j0 * x->b_row;         \
            int64_t p = 0;                                                                         \
            UNROLLED for (int s = 0; s < rows * columns; s++) sum[s] = _mm512_setzero_ps();        \
            for (; p + STEP <= x->k; p += STEP) {                                                  \
                UNROLLED for (int j = 0; j < columns; j++) b[j] = LOAD(from_b + j * x->b_row + p); \
                UNROLLED for (int i = 0; i < rows; i++)                                            \
                {                                                                                  \
                    const V a = LOAD(from_a + i * x->a_row + p);                                   \
                    UNROLLED for (int j = 0; j < columns; j++) sum[i * columns + j] =              \
                        ADD(sum[i * columns + j], a, b[j]);                                        \
                }                                                                                  \
            }                                                                                      \
            if (p < x->k) {                                                                        \
                UNROLLED for (int j = 0; j < columns; j++) b[j] =                                  \
                    PART(from_b + j * x->b_row + p, x->k - p);                                     \
                UNROLLED for (int i = 0; i < rows; i++)                                            \
                {                                                                                  \
                    const V a = PART(from_a + i * x->a_row + p, x->k - p);                         \
                    UNROLLED for (int j = 0; j < columns; j++) sum[i * columns + j] =              \
                        ADD(sum[i * columns + j], a, b[j]);                                        \
                }                                                                                  \
            }                                                                                      \
            UNROLLED for (int i = 0; i < rows; i++)                                                \
            {                                                                                      \
                float *to = x->sums + (i0 + i) * x->sums_row + j0;                                 \
                if (columns == 1)                                                                  \
                    *to = _mm512_reduce_add_ps(sum[i]);                                            \
                UNROLLED for (int j = 0; j + 4 <= columns; j += 4)                                 \
                    four_sums_f32(to + j, &sum[i * columns + j]);                                  \
            }                                                                                      \
        }                                                                                          \
        TARGET static void NAME(const tni_row_products *x)                                         \
        {                                                                                          \
            int64_t j = 0;                                                                         \
            for (; x->m == 1 && j + 8 <= x->n; j += 8)                                             \
                NAME##_block(1, 8, x, 0, j);                                                       \
            for (; j + 4 <= x->n; j += 4) {                                                        \
                int64_t i = 0;                                                                     \
                for (; i + 6 <= x->m; i += 6)                                                      \
                    NAME##_block(6, 4, x, i, j);                                                   \
                for (; i + 2 <= x->m; i += 2)                                                      \
                    NAME##_block(2, 4, x, i, j);                                                   \
                for (; i < x->m; i++)                                                              \
                    NAME##_block(1, 4, x, i, j);                                                   \
            }                                                                                      \
            for (; j < x->n; j++) {                                                                \
                int64_t i = 0;                                                                     \
                for (; i + 6 <= x->m; i += 6)                                                      \
                    NAME##_block(6, 1, x, i, j);                                                   \
                for (; i < x->m; i++)                                                              \
                    NAME##_block(1, 1, x, i, j);                                                   \
            }                                                                                      \
        }
PRODUCTS(products_f16, , __m512, 16, load_f16, part_f16, add_wide)
PRODUCTS(products_bf16, , __m512, 16, load_bf16, part_bf16, add_wide)
PRODUCTS(products_pairs, PAIRS, __m512i, 32, load_pairs, part_pairs, add_pairs)

static tni_halves_fn pairs(void)
{
    return __builtin_cpu_supports("avx512bf16") ? products_pairs : NULL;
}

const tni_halves_table TNI_KERN_NAME(tni_halves) = {products_f16, products_bf16, pairs};

#else

static tni_halves_fn pairs(void)
{
    return NULL;
}

const tni_halves_table TNI_KERN_NAME(tni_halves) = {NULL, NULL, pairs};

#endif
