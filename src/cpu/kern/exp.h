/* SPDX-License-Identifier: MIT */
/* cpu/kern/exp.h: exp of a run of float32, which takes as long to compute as to move: so with as
 * few steps as there are without fused multiply-adds, whose bits would be those of some
 * instruction sets alone. Where a function needs exp among other things, exp_f32 of maths.h has no
 * table.
 *
 * exp(x) = 2^(j/16) * 2^e * exp(r) with 16 e + j the nearest integer to 16 x / log 2. A table of 16
 * fits one register of AVX-512, two of AVX2, and r is so small that four terms are enough: their
 * relative error is 1.6e-9. */
#ifndef TNI_CPU_KERN_EXP_H
#define TNI_CPU_KERN_EXP_H

#if defined(__AVX2__)
#    include <immintrin.h>
#endif
#include "cpu/kern/block.h"
#include "cpu/kern/loop.h"

/* Up to this magnitude nothing on the way is so small that it loses digits. */
#define EXP_RUN_INSIDE 80.0f
#define EXP_STEPS      23.0831203f /* 16 / log 2 */
#define EXP_STEP_HIGH \
    0.0433349609375f /* log 2 / 16 in two parts; products with the first are exact */
#define EXP_STEP_LOW -1.32621526e-5f
#define EXP_SQUARE   0.500016153f
#define EXP_CUBE     0.166667223f

/* 2^(j/16), of whose bits j << 19 is taken: adding 16 e + j, shifted as far, multiplies by 2^e. */
static const uint32_t exp_roots[16] = {
    0x3f800000u, 0x3f7daac3u, 0x3f7b95c2u, 0x3f79c3d3u, 0x3f7837f0u, 0x3f76f532u,
    0x3f75fed7u, 0x3f75583fu, 0x3f7504f3u, 0x3f7508a4u, 0x3f75672au, 0x3f76248cu,
    0x3f7744fdu, 0x3f78ccdfu, 0x3f7ac0c7u, 0x3f7d257du,
};

/* exp(r) - 1 for x = k * log 2 / 16 + r, and the bits of k. */
static inline float exp_split(float x, uint32_t *k_bits)
{
    float shifted = x * EXP_STEPS + 0x1.8p+23f;
    float k = shifted - 0x1.8p+23f;
    float r = x - k * EXP_STEP_HIGH;
    r = r - k * EXP_STEP_LOW;
    *k_bits = bits_f32(shifted);
    return (r * EXP_CUBE + EXP_SQUARE) * (r * r) + r;
}

static inline float exp_run_inside(float x)
{
    uint32_t k;
    float p = exp_split(x, &k);
    float power = from_bits_f32(exp_roots[k & 15] + (k << 19));
    return power * p + power;
}

/* Of any number. The power of two is applied in two steps, so that subnormal results are right; it
 * is halved without a sign, because of NaN. */
static inline float exp_run_any(float x)
{
    float near = x > 89.0f ? 89.0f : x;
    near = near < -104.0f ? -104.0f : near;
    uint32_t k;
    float p = exp_split(near, &k);
    float root = from_bits_f32(exp_roots[k & 15] + ((k & 15) << 19));
    uint32_t e = (k - bits_f32(0x1.8p+23f) + 0x10000u) >> 4, half = e >> 1;
    float y = (root * p + root) * from_bits_f32((half - 0x800u + 127) << 23) *
              from_bits_f32((e - half - 0x800u + 127) << 23);
    return fabsf(x) <= EXP_RUN_INSIDE ? exp_run_inside(x) : y;
}

/* A vector at a time, with the table in registers: compilers would read it from memory. */
#if defined(__AVX512F__)
typedef __m512 exp_vector;
#    define EXP_LANES       16
#    define EXP_SET(x)      _mm512_set1_ps(x)
#    define EXP_LOAD(p)     _mm512_loadu_ps(p)
#    define EXP_STORE(p, v) _mm512_storeu_ps(p, v)
static inline __m512 exp_powers(__m512 shifted)
{
    const __m512i k = _mm512_castps_si512(shifted);
    const __m512i root = _mm512_permutexvar_epi32(k, _mm512_loadu_si512(exp_roots));
    return _mm512_castsi512_ps(_mm512_add_epi32(root, _mm512_slli_epi32(k, 19)));
}
#elif defined(__AVX2__)
typedef __m256 exp_vector;
#    define EXP_LANES       8
#    define EXP_SET(x)      _mm256_set1_ps(x)
#    define EXP_LOAD(p)     _mm256_loadu_ps(p)
#    define EXP_STORE(p, v) _mm256_storeu_ps(p, v)
static inline __m256 exp_powers(__m256 shifted)
{
    const __m256i *table = (const __m256i *)(const void *)exp_roots,
                  k = _mm256_castps_si256(shifted);
    const __m256i low = _mm256_permutevar8x32_epi32(_mm256_loadu_si256(table), k);
    const __m256i high = _mm256_permutevar8x32_epi32(_mm256_loadu_si256(table + 1), k);
    const __m256 root = _mm256_blendv_ps(_mm256_castsi256_ps(low), _mm256_castsi256_ps(high),
                                         _mm256_castsi256_ps(_mm256_slli_epi32(k, 28)));
    return _mm256_castsi256_ps(
        _mm256_add_epi32(_mm256_castps_si256(root), _mm256_slli_epi32(k, 19)));
}
#endif

#ifdef EXP_LANES
static inline exp_vector exp_run_vector(exp_vector x)
{
    exp_vector shifted = x * EXP_SET(EXP_STEPS) + EXP_SET(0x1.8p+23f);
    exp_vector k = shifted - EXP_SET(0x1.8p+23f);
    exp_vector r = x - k * EXP_SET(EXP_STEP_HIGH);
    r = r - k * EXP_SET(EXP_STEP_LOW);
    exp_vector p = (r * EXP_SET(EXP_CUBE) + EXP_SET(EXP_SQUARE)) * (r * r) + r;
    exp_vector power = exp_powers(shifted);
    return power * p + power;
}

#    define EXP_BLOCK(store)                       \
        for (int i = 0; i < BLOCK; i += EXP_LANES) \
        store(o + i, exp_run_vector(EXP_LOAD(block + i)))
#else
#    define EXP_BLOCK(store) \
        INDEPENDENT for (int i = 0; i < BLOCK; i++) o[i] = exp_run_inside(block[i])
#endif

LOOP_HEAD(loop_exp_f32)
{
    float *o = out;
    const float *block = in[0];
    (void)ctx;
    for (; n >= BLOCK; n -= BLOCK, block += BLOCK, o += BLOCK) {
        if (block_is_small(block, EXP_RUN_INSIDE)) {
            EXP_BLOCK(EXP_STORE);
        } else {
            INDEPENDENT for (int i = 0; i < BLOCK; i++) o[i] = exp_run_any(block[i]);
        }
    }
    INDEPENDENT for (int64_t i = 0; i < n; i++) o[i] = exp_run_any(block[i]);
}

/* The same past the caches. Straight from the registers: what goes over a buffer waits for its
 * stores, and takes two thirds longer. */
#if defined(__AVX512F__)
LOOP_HEAD(loop_exp_past_f32)
{
    enum { AHEAD = 1024 }; /* beside a stream the processor does not fetch far enough by itself */
    float *o = out;
    const float *block = in[0];
    int64_t head = (int64_t)(-(uintptr_t)o % 64 / sizeof *o);
    head = head < n ? head : n;
    loop_exp_f32(o, in, head, ctx);
    for (n -= head, block += head, o += head; n >= BLOCK; n -= BLOCK, block += BLOCK, o += BLOCK) {
        for (int i = 0; i < BLOCK; i += 16)
            __builtin_prefetch(block + AHEAD + i);
        if (block_is_small(block, EXP_RUN_INSIDE)) {
            EXP_BLOCK(_mm512_stream_ps);
        } else {
            INDEPENDENT for (int i = 0; i < BLOCK; i++) o[i] = exp_run_any(block[i]);
        }
    }
    loop_exp_f32(o, (const void *const[]){block}, n, ctx);
    _mm_sfence();
}
#else
#    define loop_exp_past_f32 NULL
#endif
#undef EXP_BLOCK

#endif
