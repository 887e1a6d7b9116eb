/* SPDX-License-Identifier: MIT */
/* cpu/kern/block.h: whether a short block of float32 needs a function's slow parts at all. Blocks
 * are so short that the next is on its way from memory while one is computed; looking at 256 at a
 * time took a fifth longer over 16 MiB. An element's bits never depend on those beside it: the
 * short form of a function gives the same bits as the long one where it is used. */
#ifndef TNI_CPU_KERN_BLOCK_H
#define TNI_CPU_KERN_BLOCK_H

#include <stdbool.h>
#if defined(__AVX512F__)
#    include <immintrin.h>
#endif
#include "cpu/kern/maths.h"

enum { BLOCK = 64 };

/* Whether (bits & mask) - offset is at most the limit for each of a block's elements. */
static inline bool block_is_within(const float *a, uint32_t mask, uint32_t offset, uint32_t limit)
{
#if defined(__AVX512F__)
    const __m512i kept = _mm512_set1_epi32((int)mask), from = _mm512_set1_epi32((int)offset);
    __m512i most = _mm512_setzero_si512();
    for (int i = 0; i < BLOCK; i += 16) {
        __m512i bits = _mm512_and_si512(kept, _mm512_loadu_si512(a + i));
        most = _mm512_max_epu32(most, _mm512_sub_epi32(bits, from));
    }
    return !_mm512_cmpgt_epu32_mask(most, _mm512_set1_epi32((int)limit));
#else
    uint32_t most = 0;
    for (int i = 0; i < BLOCK; i++) {
        uint32_t distance = (bits_f32(a[i]) & mask) - offset;
        most = most > distance ? most : distance;
    }
    return most <= limit;
#endif
}

/* Whether none is NaN or of a magnitude above the limit. */
static inline bool block_is_small(const float *a, float limit)
{
    return block_is_within(a, 0x7fffffffu, 0, bits_f32(limit));
}

/* Whether all are positive normal numbers. */
static inline bool block_is_normal(const float *a)
{
    return block_is_within(a, 0xffffffffu, 0x00800000u, 0x7effffffu);
}

/* A loop that takes the short form for whole blocks of which the condition on `block`, a pointer,
 * holds, and the long form for others and for the rest. */
#define LOOP_OF_BLOCKS(name, condition, short_form, long_form)                           \
    LOOP_HEAD(name)                                                                      \
    {                                                                                    \
        float *o = out;                                                                  \
        const float *block = in[0];                                                      \
        (void)ctx;                                                                       \
        for (; n >= BLOCK; n -= BLOCK, block += BLOCK, o += BLOCK) {                     \
            if (condition) {                                                             \
                INDEPENDENT for (int i = 0; i < BLOCK; i++) o[i] = short_form(block[i]); \
            } else {                                                                     \
                INDEPENDENT for (int i = 0; i < BLOCK; i++) o[i] = long_form(block[i]);  \
            }                                                                            \
        }                                                                                \
        INDEPENDENT for (int64_t i = 0; i < n; i++) o[i] = long_form(block[i]);          \
    }

#endif
