/* SPDX-License-Identifier: MIT */
/* cpu/kern/gemm_vec.h: vectors of float and double for the product kernels: load, store, broadcast,
 * fused multiply-add where the instruction set has it, and parts of a vector at the right edge of a
 * matrix. */
#ifndef TNI_CPU_KERN_GEMM_VEC_H
#define TNI_CPU_KERN_GEMM_VEC_H

#include <stdint.h>

#if defined(__AVX512F__) && defined(__AVX512VL__)
#    include <immintrin.h>
#    define VL_f32 16
#    define VL_f64 8
typedef __m512 vec_f32;
typedef __m512d vec_f64;
#    define VEC_OPS(S, T, V, X, M)                                 \
        static inline V load_##S(const T *p)                       \
        {                                                          \
            return _mm512_loadu_##X(p);                            \
        }                                                          \
        static inline void store_##S(T *p, V v)                    \
        {                                                          \
            _mm512_storeu_##X(p, v);                               \
        }                                                          \
        static inline V set_##S(T x)                               \
        {                                                          \
            return _mm512_set1_##X(x);                             \
        }                                                          \
        static inline V fma_##S(V a, V b, V c)                     \
        {                                                          \
            return _mm512_fmadd_##X(a, b, c);                      \
        }                                                          \
        static inline V load_part_##S(const T *p, int n)           \
        {                                                          \
            return _mm512_maskz_loadu_##X((M)((1u << n) - 1u), p); \
        }                                                          \
        static inline void store_part_##S(T *p, V v, int n)        \
        {                                                          \
            _mm512_mask_storeu_##X(p, (M)((1u << n) - 1u), v);     \
        }
VEC_OPS(f32, float, vec_f32, ps, __mmask16)
VEC_OPS(f64, double, vec_f64, pd, __mmask8)
/* Numbers of lanes, for __builtin_shuffle. */
typedef int32_t lanes_f32 __attribute__((vector_size(64)));
typedef int64_t lanes_f64 __attribute__((vector_size(64)));
#elif defined(__AVX2__) && defined(__FMA__)
#    include <immintrin.h>
#    define VL_f32 8
#    define VL_f64 4
typedef __m256 vec_f32;
typedef __m256d vec_f64;
/* The n-th window of these has its first n lanes set. */
static const int32_t part_mask_f32[16] = {-1, -1, -1, -1, -1, -1, -1, -1};
static const int64_t part_mask_f64[8] = {-1, -1, -1, -1};
#    define VEC_OPS(S, T, V, X)                                               \
        static inline V load_##S(const T *p)                                  \
        {                                                                     \
            return _mm256_loadu_##X(p);                                       \
        }                                                                     \
        static inline void store_##S(T *p, V v)                               \
        {                                                                     \
            _mm256_storeu_##X(p, v);                                          \
        }                                                                     \
        static inline V set_##S(T x)                                          \
        {                                                                     \
            return _mm256_set1_##X(x);                                        \
        }                                                                     \
        static inline V fma_##S(V a, V b, V c)                                \
        {                                                                     \
            return _mm256_fmadd_##X(a, b, c);                                 \
        }                                                                     \
        static inline __m256i mask_##S(int n)                                 \
        {                                                                     \
            return _mm256_loadu_si256(                                        \
                (const __m256i *)(const void *)(part_mask_##S + VL_##S - n)); \
        }                                                                     \
        static inline V load_part_##S(const T *p, int n)                      \
        {                                                                     \
            return _mm256_maskload_##X(p, mask_##S(n));                       \
        }
VEC_OPS(f32, float, vec_f32, ps)
VEC_OPS(f64, double, vec_f64, pd)
/* Masked stores are slow on some processors. */
static inline void store_part_f32(float *p, vec_f32 v, int n)
{
    __m128 x = _mm256_castps256_ps128(v);
    if (n & 4) {
        _mm_storeu_ps(p, x);
        p += 4;
        x = _mm256_extractf128_ps(v, 1);
    }
    if (n & 2) {
        _mm_storel_pi((__m64 *)(void *)p, x);
        p += 2;
        x = _mm_movehl_ps(x, x);
    }
    if (n & 1)
        _mm_store_ss(p, x);
}
static inline void store_part_f64(double *p, vec_f64 v, int n)
{
    __m128d x = _mm256_castpd256_pd128(v);
    if (n & 2) {
        _mm_storeu_pd(p, x);
        p += 2;
        x = _mm256_extractf128_pd(v, 1);
    }
    if (n & 1)
        _mm_store_sd(p, x);
}
#else
#    define VL_f32 4
#    define VL_f64 2
typedef float vec_f32 __attribute__((vector_size(16)));
typedef double vec_f64 __attribute__((vector_size(16)));
/* Through these, not memcpy: that would go over the stack. */
typedef float loose_f32 __attribute__((vector_size(16), aligned(4), may_alias));
typedef double loose_f64 __attribute__((vector_size(16), aligned(8), may_alias));
#    define VEC_OPS(S, T, V)                    \
        static inline V load_##S(const T *p)    \
        {                                       \
            return *(const loose_##S *)p;       \
        }                                       \
        static inline void store_##S(T *p, V v) \
        {                                       \
            *(loose_##S *)p = v;                \
        }                                       \
        static inline V set_##S(T x)            \
        {                                       \
            return (V){} + x;                   \
        }                                       \
        static inline V fma_##S(V a, V b, V c)  \
        {                                       \
            return a * b + c;                   \
        }
VEC_OPS(f32, float, vec_f32)
VEC_OPS(f64, double, vec_f64)
static inline vec_f32 load_part_f32(const float *p, int n)
{
    return n == 1 ? (vec_f32){p[0]} : n == 2 ? (vec_f32){p[0], p[1]} : (vec_f32){p[0], p[1], p[2]};
}
static inline void store_part_f32(float *p, vec_f32 v, int n)
{
    p[0] = v[0];
    if (n > 1)
        p[1] = v[1];
    if (n > 2)
        p[2] = v[2];
}
static inline vec_f64 load_part_f64(const double *p, int n)
{
    (void)n; /* 1: there is no other part of two */
    return (vec_f64){p[0]};
}
static inline void store_part_f64(double *p, vec_f64 v, int n)
{
    (void)n;
    p[0] = v[0];
}
#endif
#undef VEC_OPS

/* Sums of the lanes of four vectors: lanes i and i + half first, as a loop would add them. */
#if VL_f32 == 16
#    define HAVE_SUMS_f32 1
static inline void four_sums_f32(float *to, const vec_f32 *v)
{
    __m512 x[2];
    for (int i = 0; i < 2; i++) /* halves of both beside each other */
        x[i] = _mm512_shuffle_f32x4(v[2 * i], v[2 * i + 1], 0x44) +
               _mm512_shuffle_f32x4(v[2 * i], v[2 * i + 1], 0xee);
    __m512 y = _mm512_shuffle_f32x4(x[0], x[1], 0x88) + _mm512_shuffle_f32x4(x[0], x[1], 0xdd);
    y += _mm512_permute_ps(y, 0x4e);
    y += _mm512_permute_ps(y, 0xb1);
    const __m512i first = _mm512_set_epi32(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 12, 8, 4, 0);
    _mm_storeu_ps(to, _mm512_castps512_ps128(_mm512_permutexvar_ps(first, y)));
}
#else
#    define HAVE_SUMS_f32 0
#endif
#define HAVE_SUMS_f64 0

/* Transpose a small square: SQUARE rows, to_row and from_row elements apart. */
#define SQUARE_f32 4
#define SQUARE_f64 2
typedef float quad_f32 __attribute__((vector_size(16), aligned(4), may_alias));
typedef double pair_f64 __attribute__((vector_size(16), aligned(8), may_alias));
static inline void turn_square_f32(float *to, int64_t to_row, const float *from, int64_t from_row)
{
    quad_f32 a = *(const quad_f32 *)from, b = *(const quad_f32 *)(from + from_row);
    quad_f32 c = *(const quad_f32 *)(from + 2 * from_row);
    quad_f32 d = *(const quad_f32 *)(from + 3 * from_row);
    quad_f32 ab = __builtin_shufflevector(a, b, 0, 4, 1, 5);
    quad_f32 ab2 = __builtin_shufflevector(a, b, 2, 6, 3, 7);
    quad_f32 cd = __builtin_shufflevector(c, d, 0, 4, 1, 5);
    quad_f32 cd2 = __builtin_shufflevector(c, d, 2, 6, 3, 7);
    *(quad_f32 *)to = __builtin_shufflevector(ab, cd, 0, 1, 4, 5);
    *(quad_f32 *)(to + to_row) = __builtin_shufflevector(ab, cd, 2, 3, 6, 7);
    *(quad_f32 *)(to + 2 * to_row) = __builtin_shufflevector(ab2, cd2, 0, 1, 4, 5);
    *(quad_f32 *)(to + 3 * to_row) = __builtin_shufflevector(ab2, cd2, 2, 3, 6, 7);
}

/* Two rows of four columns: the rest of six rows. */
static inline void turn_pair_f32(float *to, int64_t to_row, const float *from, int64_t from_row)
{
    typedef float two __attribute__((vector_size(8), aligned(4), may_alias));
    quad_f32 a = *(const quad_f32 *)from, b = *(const quad_f32 *)(from + from_row);
    quad_f32 lo = __builtin_shufflevector(a, b, 0, 4, 1, 5);
    quad_f32 hi = __builtin_shufflevector(a, b, 2, 6, 3, 7);
    *(two *)to = __builtin_shufflevector(lo, lo, 0, 1);
    *(two *)(to + to_row) = __builtin_shufflevector(lo, lo, 2, 3);
    *(two *)(to + 2 * to_row) = __builtin_shufflevector(hi, hi, 0, 1);
    *(two *)(to + 3 * to_row) = __builtin_shufflevector(hi, hi, 2, 3);
}
#define turn_pair_f64 turn_square_f64

/* Transpose four columns of a vector's number of rows: to[q][i] = from[i][q]. */
#if VL_f32 >= 8
#    define LANE_LO(l) 4 * (l), VL_f32 + 4 * (l), 4 * (l) + 1, VL_f32 + 4 * (l) + 1
#    define LANE_HI(l) 4 * (l) + 2, VL_f32 + 4 * (l) + 2, 4 * (l) + 3, VL_f32 + 4 * (l) + 3
#    define PAIR_LO(l) 4 * (l), 4 * (l) + 1, VL_f32 + 4 * (l), VL_f32 + 4 * (l) + 1
#    define PAIR_HI(l) 4 * (l) + 2, 4 * (l) + 3, VL_f32 + 4 * (l) + 2, VL_f32 + 4 * (l) + 3
#    if VL_f32 == 16
#        define LANES(f) f(0), f(1), f(2), f(3)
#    else
#        define LANES(f) f(0), f(1)
#    endif
/* Four elements each of every fourth row. */
static inline vec_f32 fourths_f32(const float *from, int64_t row)
{
    quad_f32 a = *(const quad_f32 *)from, b = *(const quad_f32 *)(from + 4 * row);
    typedef float eight __attribute__((vector_size(32)));
    eight ab = __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7);
#    if VL_f32 == 16
    quad_f32 c = *(const quad_f32 *)(from + 8 * row), d = *(const quad_f32 *)(from + 12 * row);
    eight cd = __builtin_shufflevector(c, d, 0, 1, 2, 3, 4, 5, 6, 7);
    return __builtin_shufflevector(ab, cd, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
#    else
    return ab;
#    endif
}
static inline void turn_four_f32(float *to, int64_t to_row, const float *from, int64_t from_row)
{
    vec_f32 a = fourths_f32(from, from_row), b = fourths_f32(from + from_row, from_row);
    vec_f32 c = fourths_f32(from + 2 * from_row, from_row);
    vec_f32 d = fourths_f32(from + 3 * from_row, from_row);
    vec_f32 ab = __builtin_shufflevector(a, b, LANES(LANE_LO));
    vec_f32 ab2 = __builtin_shufflevector(a, b, LANES(LANE_HI));
    vec_f32 cd = __builtin_shufflevector(c, d, LANES(LANE_LO));
    vec_f32 cd2 = __builtin_shufflevector(c, d, LANES(LANE_HI));
    store_f32(to, __builtin_shufflevector(ab, cd, LANES(PAIR_LO)));
    store_f32(to + to_row, __builtin_shufflevector(ab, cd, LANES(PAIR_HI)));
    store_f32(to + 2 * to_row, __builtin_shufflevector(ab2, cd2, LANES(PAIR_LO)));
    store_f32(to + 3 * to_row, __builtin_shufflevector(ab2, cd2, LANES(PAIR_HI)));
}
#    undef LANE_LO
#    undef LANE_HI
#    undef PAIR_LO
#    undef PAIR_HI
#    undef LANES
#    define WIDE_f32 VL_f32
#else
#    define WIDE_f32      SQUARE_f32
#    define turn_four_f32 turn_square_f32
#endif
#define WIDE_f64      SQUARE_f64
#define turn_four_f64 turn_square_f64

static inline void turn_square_f64(double *to, int64_t to_row, const double *from, int64_t from_row)
{
    pair_f64 a = *(const pair_f64 *)from, b = *(const pair_f64 *)(from + from_row);
    *(pair_f64 *)to = __builtin_shufflevector(a, b, 0, 2);
    *(pair_f64 *)(to + to_row) = __builtin_shufflevector(a, b, 1, 3);
}

#endif
