/* SPDX-License-Identifier: MIT */
/* cpu/kern/random.c: random words, and numbers made of them. Whole blocks of words are computed
 * side by side; the arithmetic has no fused multiply-add, so every instruction set gives the same
 * numbers. */
#if defined(__SSE2__)
#    include <immintrin.h>
#endif
#include "core/philox.h"
#include "cpu/kern/maths.h"
#include "cpu/kern/types.h"

/* ---- words: the blocks of core/philox.h ---- */

/* Vectors of 64-bit lanes, one block a lane. PRODUCT multiplies the low halves of two lanes; plain
 * C has no such thing that compilers turn into the one instruction it is. */
#if defined(__AVX512F__)
typedef uint64_t lanes __attribute__((vector_size(64)));
#    define PRODUCT(a, b) ((lanes)_mm512_mul_epu32((__m512i)(a), (__m512i)(b)))
#elif defined(__AVX2__)
typedef uint64_t lanes __attribute__((vector_size(32)));
#    define PRODUCT(a, b) ((lanes)_mm256_mul_epu32((__m256i)(a), (__m256i)(b)))
#elif defined(__SSE2__)
typedef uint64_t lanes __attribute__((vector_size(16)));
#    define PRODUCT(a, b) ((lanes)_mm_mul_epu32((__m128i)(a), (__m128i)(b)))
#else
typedef uint64_t lanes __attribute__((vector_size(16)));
#    define PRODUCT(a, b) (((a)&UINT32_MAX) * (b))
#endif
enum { SIDE = sizeof(lanes) / sizeof(uint64_t) };

static void words(uint32_t *out, uint64_t seed, uint64_t first, int64_t n_blocks)
{
    const lanes m0 = (lanes){0} + 0xD2511F53u, m1 = (lanes){0} + 0xCD9E8D57u;
    lanes step = {0};
    for (int i = 0; i < SIDE; i++)
        step[i] = (uint64_t)i;
    for (int64_t begin = 0; begin < n_blocks; begin += SIDE) {
        /* The upper halves of lanes hold anything from the first round on. */
        lanes c0 = step + (first + (uint64_t)begin), c1 = c0 >> 32, c2 = {0}, c3 = {0};
        uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
        for (int round = 0; round < 10; round++) {
            lanes a = PRODUCT(c0, m0), b = PRODUCT(c2, m1);
            c0 = (b >> 32) ^ c1 ^ (uint64_t)k0;
            c1 = b;
            c2 = (a >> 32) ^ c3 ^ (uint64_t)k1;
            c3 = a;
            k0 += 0x9E3779B9u;
            k1 += 0xBB67AE85u;
        }
        int64_t m = n_blocks - begin < SIDE ? n_blocks - begin : SIDE;
        for (int64_t i = 0; i < m; i++) {
            uint32_t *o = out + 4 * (begin + i);
            o[0] = (uint32_t)c0[i];
            o[1] = (uint32_t)c1[i];
            o[2] = (uint32_t)c2[i];
            o[3] = (uint32_t)c3[i];
        }
    }
}

/* ---- uniform ---- */

/* Taken from as many bits as the dtype has digits, so that none rounds up to the upper end; what
 * the scaling rounds up to it goes to the number below. */
static void uniform_f32(float *out, const uint32_t *w, int64_t n, const tni_random_scale *s)
{
    int shift = 32 - s->digits;
    double unit = from_bits_f64((uint64_t)(1023 - s->digits) << 52);
    double low = s->low, range = s->range * unit;
    float below = s->below_f32, high = s->high_f32;
    INDEPENDENT for (int64_t i = 0; i < n; i++)
    {
        float x = (float)(low + range * (double)(int32_t)(w[i] >> shift));
        out[i] = x < high ? x : below;
    }
}

static void uniform_f64(double *out, const uint32_t *w, int64_t n, const tni_random_scale *s)
{
    double low = s->low, range = s->range, below = s->below_f64, high = s->high_f64;
    INDEPENDENT for (int64_t i = 0; i < n; i++)
    {
        double x = low + range * tni_uniform_double(w[2 * i], w[2 * i + 1]);
        out[i] = x < high ? x : below;
    }
}

/* ---- normal: Box and Muller, two numbers from two uniform ones ---- */

/* Sine and cosine of 2 pi u for u in [0, 1): polynomials of Cephes on an eighth of the circle. */
static inline void turn_f32(float u, float *sine, float *cosine)
{
    float shifted = u * 4.0f + 0x1.8p+23f;
    float quarter = shifted - 0x1.8p+23f;
    uint32_t q = bits_f32(shifted);
    float x = (u - quarter * 0.25f) * 6.28318530717958647692f, z = x * x;
    float s = -1.9515295891e-4f;
    s = s * z + 8.3321608736e-3f;
    s = s * z + -1.6666654611e-1f;
    s = s * z * x + x;
    float c = 2.443315711809948e-5f;
    c = c * z + -1.388731625493765e-3f;
    c = c * z + 4.166664568298827e-2f;
    c = c * z * z - 0.5f * z + 1.0f;
    float a = q & 1 ? c : s, b = q & 1 ? s : c;
    *sine = q & 2 ? -a : a;
    *cosine = (q + 1) & 2 ? -b : b;
}

static inline void turn_f64(double u, double *sine, double *cosine)
{
    double shifted = u * 4.0 + 0x1.8p+52;
    double quarter = shifted - 0x1.8p+52;
    uint64_t q = bits_f64(shifted);
    double x = (u - quarter * 0.25) * 6.28318530717958647692, z = x * x;
    double s = 1.58962301576546568060e-10;
    s = s * z + -2.50507477628578072866e-8;
    s = s * z + 2.75573136213857245213e-6;
    s = s * z + -1.98412698295895385996e-4;
    s = s * z + 8.33333333332211858878e-3;
    s = s * z + -1.66666666666666307295e-1;
    s = s * z * x + x;
    double c = -1.13585365213876817300e-11;
    c = c * z + 2.08757008419747316778e-9;
    c = c * z + -2.75573141792967388112e-7;
    c = c * z + 2.48015872888517045348e-5;
    c = c * z + -1.38888888888730564116e-3;
    c = c * z + 4.16666666666665929218e-2;
    c = c * z * z - 0.5 * z + 1.0;
    double a = q & 1 ? c : s, b = q & 1 ? s : c;
    *sine = q & 2 ? -a : a;
    *cosine = (q + 1) & 2 ? -b : b;
}

/* n is even. 1 - u is in (0, 1]: its logarithm is finite. */
static void normal_f32(float *out, const uint32_t *w, int64_t n, const tni_random_scale *s)
{
    float mean = (float)s->low, std = (float)s->range;
    INDEPENDENT for (int64_t i = 0; i < n / 2; i++)
    {
        float u = 1.0f - (float)(int32_t)(w[2 * i] >> 8) * 0x1p-24f;
        float v = (float)(int32_t)(w[2 * i + 1] >> 8) * 0x1p-24f, sine, cosine;
        float radius = std * sqrtf(-2.0f * log_f32(u));
        turn_f32(v, &sine, &cosine);
        out[2 * i] = mean + radius * cosine;
        out[2 * i + 1] = mean + radius * sine;
    }
}

static void normal_f64(double *out, const uint32_t *w, int64_t n, const tni_random_scale *s)
{
    double mean = s->low, std = s->range;
    INDEPENDENT for (int64_t i = 0; i < n / 2; i++)
    {
        double u = 1.0 - tni_uniform_double(w[4 * i], w[4 * i + 1]);
        double v = tni_uniform_double(w[4 * i + 2], w[4 * i + 3]), sine, cosine;
        double radius = std * sqrt(-2.0 * log_f64(u));
        turn_f64(v, &sine, &cosine);
        out[2 * i] = mean + radius * cosine;
        out[2 * i + 1] = mean + radius * sine;
    }
}

const tni_random_table TNI_KERN_NAME(tni_random) = {words, uniform_f32, uniform_f64, normal_f32,
                                                    normal_f64};
