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
#    define F_MORE_EXACT(c, a, b) F_(fmadd_ps)(a, b, c)
#else
#    define F_LESS_EXACT(c, a, b) ((c) - (a) * (b))
#    define F_MORE_EXACT(c, a, b) ((c) + (a) * (b))
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
/* c[0] + c[1] x + …, even and odd powers apart: one step more, but half as long to wait for. */
static inline __attribute__((always_inline)) vf f_poly(vf x, const float *c, int n)
{
    vf s = x * x, p = VF(c[n - 1]), q = VF(c[n - 2]);
#pragma GCC unroll 16
    for (int i = n - 3; i >= 0; i -= 2) {
        p = p * s + c[i];
        if (i > 0)
            q = q * s + c[i - 1];
    }
    return n % 2 ? p + q * x : p * x + q;
}
#define F_POLY(x, c) f_poly(x, c, (int)(sizeof(c) / sizeof *(c)))
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
/* c[1] + c[2] x + …, with coefficients of the piece of each element; even and odd powers apart. */
static inline __attribute__((always_inline)) vf f_piece(vf x, vw i, const float (*c)[16], int n)
{
    vf s = x * x, p = f_look(c[n - 1], i), q = f_look(c[n - 2], i);
#pragma GCC unroll 16
    for (int k = n - 3; k >= 2; k -= 2) {
        p = p * s + f_look(c[k], i);
        if (k > 2)
            q = q * s + f_look(c[k - 1], i);
    }
    /* The largest terms last, where their errors are seen. */
    p = n % 2 ? p + q * x : p * x + q;
    return p * x + f_look(c[1], i);
}
#define F_PIECE(x, i, c) f_piece(x, i, c, (int)(sizeof(c) / sizeof *(c)))

/* The magnitude of one with the sign of the other. */
static inline vf f_signed(vf a, vf sign)
{
    return f_of((f_bits(a) & 0x7fffffffu) | (f_bits(sign) & 0x80000000u));
}
/* Up to 1/2 what erf has beyond x is a polynomial; from there on it is cut in pieces, in which the
 * first term is known in two parts. Beyond 4.05 it is 1. */
static inline vf erf_32(vf x)
{
    vf a = F_MIN(VF(4.05f), f_of(f_bits(x) & 0x7fffffffu));
    vf from = a - 0.5f, shifted = from * (64.0f / 15.0f) + 0x1.8p+23f;
    vw i = f_bits(shifted);
    vf u = F_LESS_EXACT(from, shifted - 0x1.8p+23f, VF(0.234375f));
    vf far = F_MIN(VF(1.0f), F_PIECE(u, i, fit32_erf) + f_look(fit32_erf[0], i));
    return f_signed(f_pick_less(a, VF(0.5f), a + a * F_POLY(a * a, fit32_erf_near), far), x);
}

/* exp(-a^2) times exp(a^2) erfc(a), each in pieces. Of both factors the largest part has 12 bits,
 * so that their product is exact, and the rest is at most an eighth of it. The square is taken in
 * two parts, the first of them exact: what it rounds away would be seen in an exponent. From 10.1
 * on the result is 0; the power of two is applied last, in two steps, so that results below the
 * normal numbers are rounded once. */
static inline vf erfc_32(vf x)
{
    vf a = F_MIN(VF(10.1f), f_of(f_bits(x) & 0x7fffffffu)), t = a + 0.75f;
    vw piece = f_bits(t) >> 21;
    vf u = a - (f_of((f_bits(t) & 0xffe00000u) | 0x00100000u) - 0.75f);
    vf first = f_look(fit32_erfc[0], piece), rest = F_PIECE(u, piece, fit32_erfc);
    vf shifted = a * a * -23.0831203f + 0x1.8p+23f, k = shifted - 0x1.8p+23f;
    vf high = f_of(f_bits(a) & 0xfffff000u);
    /* log 2 / 16 in two parts; products with the first are exact */
    vf r = F_LESS_EXACT(F_LESS_EXACT(VF(0.0f), high, high), k, VF(0.0433349609375f));
    r = (r - k * -1.32621526e-5f) - (a - high) * (a + high);
    vf e = (r * 0.166667223f + 0.500016153f) * (r * r) + r;
    vw step = f_bits(shifted);
    vf root = f_look(fit32_roots, step), more = f_look(fit32_roots_low, step);
    vf sum = first + rest, y = root * rest + ((root + more) * e + more) * sum;
    y = F_MORE_EXACT(y, root, first);
    /* 16 times the exponent, made positive for the shift. */
    vw power = ((step - 0x4b400000u + 0x10000u) >> 4) - 0x1000u, half = ((power + 512) >> 1) - 256;
    y = y * f_of((half + 127) << 23) * f_of((power - half + 127) << 23);
    return f_pick_less(x, VF(0.0f), 2.0f - y, y);
}

/* erfinv: x times a function of w = -log(1 - x^2), cut in pieces. What the logarithm's last sum
 * rounds away is taken along, as far from 0 it would be seen; the product is taken in two parts, of
 * which the larger is exact. */
static inline vf erfinv_32(vf x)
{
    vf a = f_of(f_bits(x) & 0x7fffffffu), v = (1.0f - a) * (1.0f + a);
    vw up = f_bits(v) - ROOT_HALF_BITS;
    /* The exponent, made positive for the shift, in the low bits of a float. */
    vf k = f_of(((up + 0x7f800000u) >> 23) | 0x4b000000u) - (0x1p+23f + 255.0f);
    vf m = f_of((up & 0x007fffffu) + ROOT_HALF_BITS) - 1.0f;
    vf most = k * 0.693359375f;
    vf less = m + (F_POLY(m, fit32_log) * (m * m) + k * -2.12194440e-4f);
    vf l = most + less, lost = less - (l - most), t = 1.25f - l;
    vw piece = f_bits(t) >> 21;
    vf centre = f_of((f_bits(t) & 0xffe00000u) | 0x00100000u) - 1.25f;
    vf first = f_look(fit32_erfinv[0], piece);
    vf rest = F_PIECE((0.0f - l - centre) - lost, piece, fit32_erfinv);
    vf high = f_of(f_bits(x) & 0xfffff000u);
    vf y = F_MORE_EXACT((x - high) * first + x * rest, high, first);
    /* Infinities at 1 and -1, and NaN of NaN. */
    y = f_pick_less(a, VF(1.0f), f_signed(y, x), x * INFINITY);
    return f_pick_less(VF(1.0f), a, VF(NAN), y);
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
