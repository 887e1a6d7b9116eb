/* SPDX-License-Identifier: MIT */
/* core/philox.h: Philox4x32-10, the one source of random bits. A block of four words is a pure
 * function of seed and counter, so any number of threads, on any machine, gives the same bits.
 * Salmon et al., "Parallel random numbers: as easy as 1, 2, 3". */
#ifndef TNI_CORE_PHILOX_H
#define TNI_CORE_PHILOX_H

#include <stdint.h>

typedef struct tni_philox_block {
    uint32_t word[4];
} tni_philox_block;

/* The whole function: 128-bit counter, 64-bit key, ten rounds. */
static inline tni_philox_block tni_philox4x32(const uint32_t counter[4], const uint32_t key[2])
{
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
    uint32_t k0 = key[0], k1 = key[1];
    for (int round = 0; round < 10; round++) {
        uint64_t a = (uint64_t)c0 * 0xD2511F53u;
        uint64_t b = (uint64_t)c2 * 0xCD9E8D57u;
        c0 = (uint32_t)(b >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)b;
        c2 = (uint32_t)(a >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)a;
        k0 += 0x9E3779B9u; /* the golden ratio, and the square root of 3 less 1 */
        k1 += 0xBB67AE85u;
    }
    return (tni_philox_block){{c0, c1, c2, c3}};
}

/* Block number @p counter of the stream of @p seed. The upper half of the counter is free for what
 * wants several streams of one seed. */
static inline tni_philox_block tni_philox(uint64_t seed, uint64_t counter, uint64_t stream)
{
    const uint32_t c[4] = {(uint32_t)counter, (uint32_t)(counter >> 32), (uint32_t)stream,
                           (uint32_t)(stream >> 32)};
    const uint32_t k[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    return tni_philox4x32(c, k);
}

/* Uniform in [0, 1): every value of the float grid 2^-24, of the double grid 2^-53. */
static inline float tni_uniform_float(uint32_t word)
{
    return (float)(word >> 8) * 0x1p-24f;
}
static inline double tni_uniform_double(uint32_t high, uint32_t low)
{
    return (double)((((uint64_t)high << 32) | low) >> 11) * 0x1p-53;
}

#endif
