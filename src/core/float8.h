/* SPDX-License-Identifier: MIT */
/* core/float8.h: the four kinds of eight-bit floats, to and from float32. Numbers are rounded to
 * the nearest, ties to even, subnormals too. What is too large becomes infinity where there is one
 * (e5m2), else NaN, as the reference has it; nothing saturates. */
#ifndef TNI_CORE_FLOAT8_H
#define TNI_CORE_FLOAT8_H

#include "core/half.h"
#include "tenon/dtype.h"

/* A kind: sign, then an exponent, then @p mantissa bits. */
typedef struct tni_float8 {
    int mantissa, bias;
    uint8_t most;     /* bits of the largest finite number */
    uint8_t overflow; /* bits of what is larger, but for its sign */
    uint8_t nan;
    bool unsigned_zero; /* 0x80 is NaN: there is no -0, no infinity, and NaN has no sign */
} tni_float8;

static inline tni_float8 tni_float8_of(tn_dtype dtype)
{
    switch (dtype) {
    case TN_DTYPE_F8E5M2:
        return (tni_float8){2, 15, 0x7b, 0x7c, 0x7f, false};
    case TN_DTYPE_F8E4M3:
        return (tni_float8){3, 7, 0x7e, 0x7f, 0x7f, false};
    case TN_DTYPE_F8E5M2UZ:
        return (tni_float8){2, 16, 0x7f, 0x80, 0x80, true};
    default:
        return (tni_float8){3, 8, 0x7f, 0x80, 0x80, true};
    }
}

static inline float tni_float8_to_float(const tni_float8 *kind, uint8_t bits)
{
    uint32_t sign = (uint32_t)(bits & 0x80u) << 24, rest = bits & 0x7fu;
    if (kind->unsigned_zero && bits == 0x80u)
        return tni_bits_float(0x7fc00000u | sign);
    if (rest > kind->most)
        return tni_bits_float(
            sign | (rest == kind->overflow && rest != kind->nan ? 0x7f800000u : 0x7fc00000u));
    uint32_t exponent = rest >> kind->mantissa;
    if (exponent != 0)
        return tni_bits_float(
            sign | ((rest << (23 - kind->mantissa)) + ((uint32_t)(127 - kind->bias) << 23)));
    /* Subnormal: a multiple of the smallest number, 2^(1 - bias - mantissa), exact in float. */
    float value =
        (float)rest * tni_bits_float((uint32_t)(127 + 1 - kind->bias - kind->mantissa) << 23);
    return tni_bits_float(tni_float_bits(value) | sign);
}

static inline uint8_t tni_float8_from_float(const tni_float8 *kind, float value)
{
    uint32_t bits = tni_float_bits(value), rest = bits & 0x7fffffffu, out;
    uint8_t sign = (uint8_t)(bits >> 24 & 0x80u);
    int drop = 23 - kind->mantissa;
    uint32_t low = (uint32_t)(127 - kind->bias) << 23; /* what the bias moves by */
    if (rest > 0x7f800000u)
        return kind->unsigned_zero ? kind->nan : sign | kind->nan;
    if (rest >= low + (1u << 23)) {
        rest += (1u << (drop - 1)) - 1 + (rest >> drop & 1u);
        rest -= low;
        out = rest >> drop > kind->most ? kind->overflow : rest >> drop;
    } else {
        /* Subnormal or zero: the sum's last bit is the place of the smallest number, so that the
         * addition itself rounds. */
        float one = tni_bits_float((uint32_t)(127 + 1 - kind->bias - kind->mantissa + 23) << 23);
        out = tni_float_bits(tni_bits_float(rest) + one) - tni_float_bits(one);
    }
    if (kind->unsigned_zero && (out == 0 || out == 0x80u))
        return (uint8_t)out;
    return (uint8_t)(sign | out);
}

#endif
