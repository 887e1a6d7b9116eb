/* SPDX-License-Identifier: MIT */
/* cpu/kern/vec64.h: what functions of float64 are written with, once: vd is a vector of as many
 * doubles as a register holds. The same operations in the same order, none of them fused unless its
 * product is exact: the same bits in every instruction set. Tables have 16 entries, so that AVX-512
 * looks them up in registers. */
#ifndef TNI_CPU_KERN_VEC64_H
#define TNI_CPU_KERN_VEC64_H

#include "cpu/kern/fits64.h"
#include "cpu/kern/maths.h"
#include "cpu/loops.h"

#if defined(__SSE4_1__)
#    include <immintrin.h>
#endif
#if defined(__AVX512F__) && defined(__AVX512DQ__)
#    define VEC64_LANES 8
#    define V_(name)    _mm512_##name
#elif defined(__AVX2__) && defined(__FMA__)
#    define VEC64_LANES 4
#    define V_(name)    _mm256_##name
#elif defined(__SSE4_1__)
#    define VEC64_LANES 2
#    define V_(name)    _mm_##name
#endif

#ifdef VEC64_LANES
typedef double vd __attribute__((vector_size(8 * VEC64_LANES)));
typedef unsigned long long vu __attribute__((vector_size(8 * VEC64_LANES)));
#    define VD(x)     V_(set1_pd)(x)
#    define V_SQRT(x) V_(sqrt_pd)(x)
/* Second operand where one is NaN. */
#    define V_MIN(limit, x) V_(min_pd)(limit, x)
#    define V_MAX(limit, x) V_(max_pd)(limit, x)
static inline vu v_bits(vd x)
{
    return (vu)x;
}
static inline vd v_of(vu b)
{
    return (vd)b;
}
#endif

#if VEC64_LANES == 8
typedef __mmask8 vm;
#    define V_LESS(a, b) _mm512_cmp_pd_mask(a, b, _CMP_LT_OQ)
#    define V_MOST(a, b) _mm512_cmp_pd_mask(a, b, _CMP_LE_OQ) /* a <= b */
#    define V_SAME(a, b) _mm512_cmp_pd_mask(a, b, _CMP_EQ_OQ)
#    define V_NAN(a)     _mm512_cmp_pd_mask(a, a, _CMP_UNORD_Q)
#    define V_ODD(b)     _mm512_test_epi64_mask((__m512i)(b), _mm512_set1_epi64(1))
#    define V_ALL(m)     ((m) == 0xff)
#    define V_AT(m, k)   ((m) >> (k)&1)
#    define V_FLOOR(x)   _mm512_roundscale_pd(x, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC)
#    define V_TRUNC(x)   _mm512_roundscale_pd(x, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC)
static inline vd v_pick(vm m, vd yes, vd no)
{
    return _mm512_mask_blend_pd(m, no, yes);
}
static inline vm v_not(vm m)
{
    return (vm)~m;
}
static inline vd v_look(const double *table, vu i)
{
    return _mm512_permutex2var_pd(_mm512_loadu_pd(table), (__m512i)i, _mm512_loadu_pd(table + 8));
}
/* y times 2^floor(k / 16), where `shifted` is k + 1.5 * 2^52. */
static inline vd v_scale(vd y, vd k, vd shifted)
{
    (void)shifted;
    return _mm512_scalef_pd(y, k * 0.0625);
}
/* The exponent of a number of which the bits above the lowest 52 are given, as a double. */
static inline vd v_exponent(vu b)
{
    return _mm512_cvtepi64_pd(_mm512_srai_epi64((__m512i)b, 52));
}
#else
#    ifdef VEC64_LANES
typedef long long vm __attribute__((vector_size(8 * VEC64_LANES)));
#        define V_ALL(m)   (V_(movemask_pd)((vd)(m)) == (1 << VEC64_LANES) - 1)
#        define V_AT(m, k) ((m)[k])
#        define V_FLOOR(x) V_(floor_pd)(x)
#        define V_TRUNC(x) V_(round_pd)(x, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC)
static inline vd v_pick(vm m, vd yes, vd no)
{
    return V_(blendv_pd)(no, yes, (vd)m);
}
static inline vm v_not(vm m)
{
    return ~m;
}
static inline vd v_look(const double *table, vu i)
{
#        if VEC64_LANES == 4
    return _mm256_i64gather_pd(table, (__m256i)(i & 15), 8);
#        else
    return (vd){table[i[0] & 15], table[i[1] & 15]};
#        endif
}
#        if VEC64_LANES == 4 /* of many tables: the indices are taken out of the vector once */
#            define v_look_many(table, i)                                               \
                ((vd){(table)[(i)[0] & 15], (table)[(i)[1] & 15], (table)[(i)[2] & 15], \
                      (table)[(i)[3] & 15]})
#        endif
#    else /* one by one */
typedef double vd;
typedef uint64_t vu;
typedef int vm;
#        define VD(x)           (x)
#        define V_SQRT(x)       sqrt(x)
#        define V_FLOOR(x)      floor(x)
#        define V_TRUNC(x)      trunc(x)
#        define V_MIN(limit, x) ((limit) < (x) ? (limit) : (x))
#        define V_MAX(limit, x) ((limit) > (x) ? (limit) : (x))
static inline vu v_bits(vd x)
{
    return bits_f64(x);
}
static inline vd v_of(vu b)
{
    return from_bits_f64(b);
}
static inline vd v_pick(vm m, vd yes, vd no)
{
    return m ? yes : no;
}
static inline vm v_not(vm m)
{
    return !m;
}
static inline vd v_look(const double *table, vu i)
{
    return table[i & 15];
}
#    endif
#    define V_LESS(a, b) ((a) < (b))
#    define V_MOST(a, b) ((a) <= (b))
#    define V_SAME(a, b) ((a) == (b))
#    define V_NAN(a)     ((a) != (a))
#    define V_ODD(b)     (((b)&1) == 1)
/* In two steps, so that results below the normal numbers are rounded once; the exponent is made
 * positive first, because vectors have no arithmetic shift of 64 bits. */
static inline vd v_scale(vd y, vd k, vd shifted)
{
    (void)k;
    vu e = ((v_bits(shifted) - bits_f64(0x1.8p+52) + 0x10000u) >> 4) - 0x1000u;
    vu half = ((e + 4096) >> 1) - 2048;
    return y * v_of((half + 1023) << 52) * v_of((e - half + 1023) << 52);
}
static inline vd v_exponent(vu b)
{
    vu biased = (b + 0x7ff0000000000000u) >> 52;
    return v_of(biased | 0x4330000000000000u) - (0x1p+52 + 2047.0);
}
#endif

/* c - a * b and c + a * b where the product is exact: fusing does not change what comes out. */
#if VEC64_LANES > 2
#    define V_LESS_EXACT(c, a, b) V_(fnmadd_pd)(a, b, c)
#    define V_MORE_EXACT(c, a, b) V_(fmadd_pd)(a, b, c)
#else
#    define V_LESS_EXACT(c, a, b) ((c) - (a) * (b))
#    define V_MORE_EXACT(c, a, b) ((a) * (b) + (c))
#endif

static inline vd v_abs(vd x)
{
    return v_of(v_bits(x) & 0x7fffffffffffffffu);
}
/* The magnitude of one with the sign of the other; where `a` is not negative. */
static inline vd v_signed(vd a, vd sign)
{
    return v_of(v_bits(a) | (v_bits(sign) & 0x8000000000000000u));
}

/* c[0] + c[1] x + …, even and odd powers apart: one step more, but half as long to wait for. */
static inline __attribute__((always_inline)) vd v_poly(vd x, const double *c, int n)
{
    vd s = x * x, p = VD(c[n - 1]), q = VD(c[n - 2]);
#pragma GCC unroll 16
    for (int i = n - 3; i >= 0; i -= 2) {
        p = p * s + c[i];
        if (i > 0)
            q = q * s + c[i - 1];
    }
    return n % 2 ? p + q * x : p * x + q;
}
#define V_POLY(x, c) v_poly(x, c, (int)(sizeof(c) / sizeof *(c)))
#ifndef v_look_many
#    define v_look_many v_look
#endif
/* c[1] + c[2] x + …, with coefficients of the piece of each element. */
static inline __attribute__((always_inline)) vd v_piece(vd x, vu i, const double (*c)[16], int n)
{
    vd s = x * x, p = v_look_many(c[n - 1], i), q = v_look_many(c[n - 2], i);
#pragma GCC unroll 16
    for (int k = n - 3; k >= 2; k -= 2) {
        p = p * s + v_look_many(c[k], i);
        if (k > 2)
            q = q * s + v_look_many(c[k - 1], i);
    }
    /* The largest terms last, where their errors are seen. */
    p = n % 2 ? p + q * x : p * x + q;
    return p * x + v_look_many(c[1], i);
}
#define V_PIECE(x, i, c) v_piece(x, i, c, (int)(sizeof(c) / sizeof *(c)))

/* The sum of two numbers and what it rounds away, exactly; in the short form where the first is not
 * smaller. */
static inline vd v_sum(vd a, vd b, vd *rest)
{
    vd s = a + b, t = s - a;
    *rest = (a - (s - t)) + (b - t);
    return s;
}
static inline vd v_sum_short(vd a, vd b, vd *rest)
{
    vd s = a + b;
    *rest = b - (s - a);
    return s;
}
/* The upper 26 bits: products of such parts are exact. */
static inline vd v_upper(vd x)
{
    return v_of(v_bits(x) & 0xfffffffff8000000u);
}
/* The product and what it rounds away, exactly, of numbers below 2^990 whose product is above
 * 2^-900 or 0. Without a fused step both are cut in the nearest 26 bits and what is left of them,
 * which has 26 more. */
static inline vd v_product(vd a, vd b, vd *rest)
{
    vd p = a * b;
#if VEC64_LANES > 2
    *rest = V_(fmsub_pd)(a, b, p);
#else
    vd ah = v_of((v_bits(a) + 0x4000000u) & 0xfffffffff8000000u), al = a - ah;
    vd bh = v_of((v_bits(b) + 0x4000000u) & 0xfffffffff8000000u), bl = b - bh;
    *rest = (((ah * bh - p) + ah * bl) + al * bh) + al * bl;
#endif
    return p;
}
/* 1 / d within an eighth: as much as what is left of a quotient needs. */
static inline vd v_inverse_guess(vd d)
{
    return v_of(0x7fde623822fc16e6u - v_bits(d));
}
/* n / d, and what (n + n_low) / (d + d_low) has beyond it but for the quotient's own rounding. */
static inline vd v_quotient(vd n, vd n_low, vd d, vd d_low, vd *rest)
{
    vd q = n / d;
    *rest = (n_low - q * d_low) * v_inverse_guess(d);
    return q;
}
/* The same with that; of a quotient and a divisor from 2^-700 on. */
static inline vd v_quotient_close(vd n, vd n_low, vd d, vd d_low, vd *rest)
{
    vd q = n / d, cut, p = v_product(q, d, &cut);
    *rest = (((n - p) - cut) + (n_low - q * d_low)) * v_inverse_guess(d);
    return q;
}

/* Loops over them. The last, which are fewer than a vector's, go over a buffer, so that the
 * function is there once. */
#ifdef VEC64_LANES
#    define V_LOOP(inputs, before, value)                         \
        double *o = out, rest[4][VEC64_LANES];                    \
        const double *a[inputs];                                  \
        for (int k = 0; k < (inputs); k++)                        \
            a[k] = in[k];                                         \
        for (; n > 0; n -= VEC64_LANES, o += VEC64_LANES) {       \
            double *to = o;                                       \
            if (TNI_UNLIKELY(n < VEC64_LANES)) {                  \
                for (int k = 0; k < (inputs); k++) {              \
                    memset(rest[k], 0, sizeof rest[k]);           \
                    memcpy(rest[k], a[k], (size_t)n * sizeof *o); \
                    a[k] = rest[k];                               \
                }                                                 \
                to = rest[3];                                     \
            }                                                     \
            before;                                               \
            V_(storeu_pd)(to, value);                             \
            if (TNI_UNLIKELY(n < VEC64_LANES))                    \
                memcpy(o, rest[3], (size_t)n * sizeof *o);        \
            for (int k = 0; k < (inputs); k++)                    \
                a[k] += VEC64_LANES;                              \
        }
#    define V_X vd x = V_(loadu_pd)(a[0])
#    define V_Y vd y = V_(loadu_pd)(a[1])
#    define V_Z vd z = V_(loadu_pd)(a[2])
#    define LOOP1_64(name, f)    \
        LOOP_HEAD(name)          \
        {                        \
            (void)ctx;           \
            V_LOOP(1, V_X, f(x)) \
        }
#    define LOOP2_64(name, f)            \
        LOOP_HEAD(name)                  \
        {                                \
            (void)ctx;                   \
            V_LOOP(2, V_X; V_Y, f(x, y)) \
        }
/* A short form where `usual`, a mask of x, has all elements: the same bits in fewer steps. */
#    define LOOP1_64_USUAL(name, usual, short_form, f)                         \
        LOOP_HEAD(name)                                                        \
        {                                                                      \
            (void)ctx;                                                         \
            V_LOOP(1, V_X, TNI_LIKELY(V_ALL(usual(x))) ? short_form(x) : f(x)) \
        }
/* What is not within reach, NaN among it, is for the C library, one by one. */
#    define V_REPAIR(r, within, expression)                   \
        {                                                     \
            vm near = within;                                 \
            if (TNI_UNLIKELY(!V_ALL(near)))                   \
                for (int k = 0; k < VEC64_LANES; k++)         \
                    r[k] = V_AT(near, k) ? r[k] : expression; \
        }
#    define LOOP1_64_REACH(name, within, f, libm)                              \
        LOOP_HEAD(name)                                                        \
        {                                                                      \
            (void)ctx;                                                         \
            V_LOOP(1, V_X; vd r = f(x); V_REPAIR(r, within(x), libm(x[k])), r) \
        }
#    define LOOP2_64_REACH(name, within, f, libm)                                               \
        LOOP_HEAD(name)                                                                         \
        {                                                                                       \
            (void)ctx;                                                                          \
            V_LOOP(2, V_X; V_Y; vd r = f(x, y); V_REPAIR(r, within(x, y), libm(x[k], y[k])), r) \
        }
/* With the operator's parameters, `p`. */
#    define LOOP1_64_WITH(name, f)  \
        LOOP_HEAD(name)             \
        {                           \
            const double *p = ctx;  \
            V_LOOP(1, V_X, f(x, p)) \
        }
#    define LOOP2_64_WITH(name, f)          \
        LOOP_HEAD(name)                     \
        {                                   \
            const double *p = ctx;          \
            V_LOOP(2, V_X; V_Y, f(x, y, p)) \
        }
#    define LOOP3_64_WITH(name, f)                  \
        LOOP_HEAD(name)                             \
        {                                           \
            const double *p = ctx;                  \
            V_LOOP(3, V_X; V_Y; V_Z, f(x, y, z, p)) \
        }
#else
#    define LOOP1_64_WITH(name, f)                     LOOP1_WITH(name, double, f(x, p))
#    define LOOP2_64_WITH(name, f)                     LOOP2_WITH(name, double, f(x, y, p))
#    define LOOP3_64_WITH(name, f)                     LOOP3_WITH(name, double, f(x, y, z, p))
#    define LOOP1_64(name, f)                          LOOP1(name, double, f(x))
#    define LOOP2_64(name, f)                          LOOP2(name, double, f(x, y))
#    define LOOP1_64_USUAL(name, usual, short_form, f) LOOP1(name, double, f(x))
#    define LOOP1_64_REACH(name, within, f, libm)                                     \
        LOOP_HEAD(name)                                                               \
        {                                                                             \
            double *o = out;                                                          \
            const double *a = in[0];                                                  \
            (void)ctx;                                                                \
            for (int64_t begin = 0; begin < n; begin += 64) {                         \
                int64_t end = begin + 64 < n ? begin + 64 : n;                        \
                int near = 1;                                                         \
                for (int64_t i = begin; i < end; i++)                                 \
                    near &= within(a[i]);                                             \
                if (near) {                                                           \
                    INDEPENDENT for (int64_t i = begin; i < end; i++) o[i] = f(a[i]); \
                    continue;                                                         \
                }                                                                     \
                for (int64_t i = begin; i < end; i++)                                 \
                    o[i] = within(a[i]) ? f(a[i]) : libm(a[i]);                       \
            }                                                                         \
        }
#    define LOOP2_64_REACH(name, within, f, libm)                                           \
        LOOP_HEAD(name)                                                                     \
        {                                                                                   \
            double *o = out;                                                                \
            const double *a = in[0], *b = in[1];                                            \
            (void)ctx;                                                                      \
            for (int64_t begin = 0; begin < n; begin += 64) {                               \
                int64_t end = begin + 64 < n ? begin + 64 : n;                              \
                int near = 1;                                                               \
                for (int64_t i = begin; i < end; i++)                                       \
                    near &= within(a[i], b[i]);                                             \
                if (near) {                                                                 \
                    INDEPENDENT for (int64_t i = begin; i < end; i++) o[i] = f(a[i], b[i]); \
                    continue;                                                               \
                }                                                                           \
                for (int64_t i = begin; i < end; i++)                                       \
                    o[i] = within(a[i], b[i]) ? f(a[i], b[i]) : libm(a[i], b[i]);           \
            }                                                                               \
        }
#endif

#endif
