/* SPDX-License-Identifier: MIT */
/* core/half.h: float16 and bfloat16 as structs, so that arithmetic on the raw bits does not
 * compile, with conversions that round to nearest even, keep NaN a NaN and handle subnormals.
 * Portable bit code: the cpu layer has vectors of its own for long runs. */
#ifndef TNI_CORE_HALF_H
#define TNI_CORE_HALF_H

#include <stdint.h>
#include <string.h>

typedef struct tni_f16 {
    uint16_t bits;
} tni_f16;

typedef struct tni_bf16 {
    uint16_t bits;
} tni_bf16;

static inline uint32_t tni_float_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float tni_bits_float(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline float tni_f16_to_float(tni_f16 h)
{
    uint32_t sign = (uint32_t)(h.bits & 0x8000u) << 16;
    uint32_t rest = h.bits & 0x7fffu;
    if (rest >= 0x7c00u) /* infinity and NaN: a signalling NaN becomes quiet, as in hardware */
        return tni_bits_float(sign | 0x7f800000u | ((rest & 0x3ffu) << 13) |
                              (rest > 0x7c00u ? 0x400000u : 0u));
    if (rest >= 0x400u) /* normal: move the exponent's bias from 15 to 127 */
        return tni_bits_float(sign | ((rest << 13) + 0x38000000u));
    /* Subnormal: rest * 2^-24, exact in float. */
    float value = (float)rest * 0x1p-24f;
    return tni_bits_float(tni_float_bits(value) | sign);
}

static inline tni_f16 tni_f16_from_float(float value)
{
    uint32_t bits = tni_float_bits(value);
    uint16_t sign = (uint16_t)((bits >> 16) & 0x8000u);
    uint32_t rest = bits & 0x7fffffffu;
    uint32_t half;
    if (rest > 0x7f800000u) {
        half = 0x7e00u | ((rest >> 13) & 0x3ffu); /* NaN: quiet, upper payload kept */
    } else if (rest >= 0x477ff000u) {
        half = 0x7c00u; /* 65520 and more round to infinity */
    } else if (rest >= 0x38800000u) {
        rest += 0xfffu + ((rest >> 13) & 1u); /* to nearest, ties to even */
        half = (rest - 0x38000000u) >> 13;
    } else {
        /* Subnormal or zero. Adding 0.5 puts the value's 2^-24 place at the last bit of the sum, so
         * that the addition itself rounds. */
        float sum = tni_bits_float(rest) + 0.5f;
        half = tni_float_bits(sum) - 0x3f000000u;
    }
    return (tni_f16){(uint16_t)(sign | half)};
}

static inline float tni_bf16_to_float(tni_bf16 b)
{
    return tni_bits_float((uint32_t)b.bits << 16);
}

static inline tni_bf16 tni_bf16_from_float(float value)
{
    uint32_t bits = tni_float_bits(value);
    if ((bits & 0x7fffffffu) > 0x7f800000u) /* keep it a NaN when its payload sat in the low half */
        return (tni_bf16){(uint16_t)((bits >> 16) | 0x40u)};
    bits += 0x7fffu + ((bits >> 16) & 1u);
    return (tni_bf16){(uint16_t)(bits >> 16)};
}

#endif
