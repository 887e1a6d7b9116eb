/* SPDX-License-Identifier: MIT */
/* cpu/kern/maths.c: loops over exp, log and relatives. Complex numbers go through the C library. */
#include <complex.h>
#include "cpu/kern/block.h"
#include "cpu/kern/exp.h"
#include "cpu/kern/loop.h"
#include "cpu/kern/special64.h"

/* Roots are rounded correctly everywhere. In AVX-512 it is faster to come closer to them from an
 * estimate than to ask for them; the last step, of numbers whose squares are normal, rounds
 * correctly: tests/cpu/test_special.c tries every mantissa. */
#if defined(__AVX512F__)
static inline __m512 sqrt_near(__m512 x)
{
    const __m512 half = _mm512_set1_ps(0.5f), y = _mm512_rsqrt14_ps(x);
    __m512 g = x * y, h = y * half, r = _mm512_fnmadd_ps(g, h, half);
    g = _mm512_fmadd_ps(g, r, g);
    h = _mm512_fmadd_ps(h, r, h);
    return _mm512_fmadd_ps(_mm512_fnmadd_ps(g, g, x), h, g);
}
LOOP_HEAD(loop_sqrt_f32)
{
    float *o = out;
    const float *a = in[0];
    (void)ctx;
    for (; n >= BLOCK; n -= BLOCK, a += BLOCK, o += BLOCK) {
        /* from 2^-100 to 2^100 */
        if (block_is_within(a, 0xffffffffu, bits_f32(0x1p-100f), 200u << 23)) {
            for (int i = 0; i < BLOCK; i += 16)
                _mm512_storeu_ps(o + i, sqrt_near(_mm512_loadu_ps(a + i)));
        } else {
            INDEPENDENT for (int i = 0; i < BLOCK; i++) o[i] = sqrtf(a[i]);
        }
    }
    INDEPENDENT for (int64_t i = 0; i < n; i++) o[i] = sqrtf(a[i]);
}
#else
LOOP1(loop_sqrt_f32, float, sqrtf(x))
#endif
LOOP1(loop_sqrt_f64, double, sqrt(x))
LOOP1(loop_sqrt_c64, float complex, csqrtf(x))
LOOP1(loop_sqrt_c128, double complex, csqrt(x))
LOOP1(loop_rsqrt_f32, float, 1.0f / sqrtf(x))
LOOP1(loop_rsqrt_f64, double, 1.0 / sqrt(x))
LOOP1(loop_rsqrt_c64, float complex, 1.0f / csqrtf(x))
LOOP1(loop_rsqrt_c128, double complex, 1.0 / csqrt(x))

LOOP1(loop_exp_c64, float complex, cexpf(x))
LOOP1(loop_exp_c128, double complex, cexp(x))
LOOP_OF_BLOCKS(loop_log_f32, block_is_normal(block), log_inside_f32, log_f32)
LOOP1(loop_log_c64, float complex, clogf(x))
LOOP1(loop_log_c128, double complex, clog(x))
LOOP1(loop_sigmoid_f32, float, sigmoid_f32(x))
LOOP1(loop_sigmoid_c64, float complex, 1.0f / (1.0f + cexpf(-x)))
LOOP1(loop_sigmoid_c128, double complex, 1.0 / (1.0 + cexp(-x)))
LOOP1(loop_tanh_f32, float, tanh_f32(x))
LOOP1(loop_tanh_c64, float complex, ctanhf(x))
LOOP1(loop_tanh_c128, double complex, ctanh(x))

#define MATHS_ROW(NAME, f, f64)                                              \
    [TNI_LOOP_##NAME % TNI_FAMILY_LOOPS] = {[TN_DTYPE_F32] = loop_##f##_f32, \
                                            [TN_DTYPE_F64] = f64,            \
                                            [TN_DTYPE_C64] = loop_##f##_c64, \
                                            [TN_DTYPE_C128] = loop_##f##_c128}

const tni_loop_table TNI_KERN_NAME(tni_maths) = {
    MATHS_ROW(SQRT, sqrt, loop_sqrt_f64),
    MATHS_ROW(RSQRT, rsqrt, loop_rsqrt_f64),
    MATHS_ROW(EXP, exp, LOOP_64(exp)),
    MATHS_ROW(LOG, log, LOOP_64(log)),
    MATHS_ROW(SIGMOID, sigmoid, LOOP_64(sigmoid)),
    MATHS_ROW(TANH, tanh, LOOP_64(tanh)),
    [TNI_LOOP_EXP_PAST % TNI_FAMILY_LOOPS] = {[TN_DTYPE_F32] = loop_exp_past_f32},
};
