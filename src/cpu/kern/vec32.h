/* SPDX-License-Identifier: MIT */
/* cpu/kern/vec32.h: what functions of float32 in pieces are written with: vf is a vector of as many
 * floats as a register holds, tables have 16 entries, which AVX-512 looks up in one register and
 * AVX2 in two. As in vec64.h nothing is fused unless a product is exact: the same bits in every
 * instruction set. */
#ifndef TNI_CPU_KERN_VEC32_H
#define TNI_CPU_KERN_VEC32_H

#include "cpu/kern/fits32.h"
#include "cpu/kern/maths.h"
#include "cpu/loops.h"

#if defined(__SSE4_1__)
#    include <immintrin.h>
#endif
#if defined(__AVX512F__)
#    define VEC32_LANES 16
#    define F_(name)    _mm512_##name
#elif defined(__AVX2__) && defined(__FMA__)
#    define VEC32_LANES 8
#    define F_(name)    _mm256_##name
#elif defined(__SSE4_1__)
#    define VEC32_LANES 4
#    define F_(name)    _mm_##name
#endif

#ifdef VEC32_LANES
typedef float vf __attribute__((vector_size(4 * VEC32_LANES)));
typedef uint32_t vw __attribute__((vector_size(4 * VEC32_LANES)));
#    define VF(x) F_(set1_ps)(x)
/* Second operand where one is NaN. */
#    define F_MIN(limit, x) F_(min_ps)(limit, x)
static inline vw f_bits(vf x)
{
    return (vw)x;
}
static inline vf f_of(vw b)
{
    return (vf)b;
}
#else /* one by one */
typedef float vf;
typedef uint32_t vw;
#    define VF(x)           (x)
#    define F_MIN(limit, x) ((limit) < (x) ? (limit) : (x))
static inline vw f_bits(vf x)
{
    return bits_f32(x);
}
static inline vf f_of(vw b)
{
    return from_bits_f32(b);
}
#endif
#if VEC32_LANES > 4
#    define F_LESS_EXACT(c, a, b) F_(fnmadd_ps)(a, b, c)
#else
#    define F_LESS_EXACT(c, a, b) ((c) - (a) * (b))
#endif

/* a < b ? yes : no */
static inline vf f_pick_less(vf a, vf b, vf yes, vf no)
{
#if VEC32_LANES == 16
    return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(a, b, _CMP_LT_OQ), no, yes);
#elif defined(VEC32_LANES)
    return F_(blendv_ps)(no, yes, (vf)(a < b));
#else
    return a < b ? yes : no;
#endif
}
/* The entry of which the index is in the lowest four bits. */
static inline vf f_look(const float *table, vw i)
{
#if VEC32_LANES == 16
    return _mm512_permutexvar_ps((__m512i)i, _mm512_load_ps(table));
#elif VEC32_LANES == 8
    const vf low = _mm256_permutevar8x32_ps(_mm256_load_ps(table), (__m256i)i);
    const vf high = _mm256_permutevar8x32_ps(_mm256_load_ps(table + 8), (__m256i)i);
    return _mm256_blendv_ps(low, high, (vf)(i << 28));
#elif VEC32_LANES == 4
    return (vf){table[i[0] & 15], table[i[1] & 15], table[i[2] & 15], table[i[3] & 15]};
#else
    return table[i & 15];
#endif
}
/* c[2] + c[3] x + …, with coefficients of the piece of each element; even and odd powers apart. */
static inline __attribute__((always_inline)) vf f_piece(vf x, vw i, const float (*c)[16], int n)
{
    vf s = x * x, p = f_look(c[n - 1], i), q = f_look(c[n - 2], i);
#pragma GCC unroll 16
    for (int k = n - 3; k >= 2; k -= 2) {
        p = p * s + f_look(c[k], i);
        if (k > 2)
            q = q * s + f_look(c[k - 1], i);
    }
    return n % 2 ? p + q * x : p * x + q;
}

/* The magnitude of one with the sign of the other. */
static inline vf f_signed(vf a, vf sign)
{
    return f_of((f_bits(a) & 0x7fffffffu) | (f_bits(sign) & 0x80000000u));
}
/* An odd function that is 1 from `far` on, in pieces of such a width. In the first the table has
 * what the linear factor has beyond 1, so that the largest term is exact. */
static inline __attribute__((always_inline)) vf odd_in_pieces(vf x, float far, float width,
                                                              const float (*c)[16], int n)
{
    vf a = F_MIN(VF(far), f_of(f_bits(x) & 0x7fffffffu)), shifted = a * (1.0f / width) + 0x1.8p+23f;
    vw i = f_bits(shifted);
    vf u = F_LESS_EXACT(a, shifted - 0x1.8p+23f, VF(width)), p = f_piece(u, i, c, n);
    vf start = f_pick_less(a, VF(0.5f * width), a, f_look(c[0], i));
    return f_signed(F_MIN(VF(1.0f), (p * u + f_look(c[1], i)) * u + start), x);
}
static inline vf erf_32(vf x)
{
    return odd_in_pieces(x, 4.05f, 0.265625f, fit32_erf, 7);
}

/* A loop; the last, which are fewer than a vector's, go over a buffer. */
#ifdef VEC32_LANES
#    define LOOP1_32(name, f)                                        \
        LOOP_HEAD(name)                                              \
        {                                                            \
            float *o = out, rest[VEC32_LANES] = {0};                 \
            const float *a = in[0];                                  \
            (void)ctx;                                               \
            for (; n > 0; n -= VEC32_LANES, o += VEC32_LANES) {      \
                float *to = o;                                       \
                if (TNI_UNLIKELY(n < VEC32_LANES))                   \
                    a = to = memcpy(rest, a, (size_t)n * sizeof *a); \
                F_(storeu_ps)(to, f(F_(loadu_ps)(a)));               \
                if (TNI_UNLIKELY(n < VEC32_LANES))                   \
                    memcpy(o, rest, (size_t)n * sizeof *o);          \
                a += VEC32_LANES;                                    \
            }                                                        \
        }
#else
#    define LOOP1_32(name, f) LOOP1(name, float, f(x))
#endif

#endif
