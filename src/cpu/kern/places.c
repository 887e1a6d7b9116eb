/* SPDX-License-Identifier: MIT */
/* cpu/kern/places.c: see cpu/places.h. Some channels at a time stay in registers while a window is
 * walked. */
#include "cpu/places.h"

#include <math.h>
#include <string.h>
#include "cpu/kern/types.h"

#if defined(__AVX512F__)
enum { LANES = 16 };
#elif defined(__AVX2__)
enum { LANES = 8 };
#else
enum { LANES = 4 };
#endif
typedef float lanes_f __attribute__((vector_size(4 * LANES)));
typedef int32_t lanes_i __attribute__((vector_size(4 * LANES)));
typedef int64_t lanes_l __attribute__((vector_size(8 * LANES)));

static inline lanes_f load(const float *x)
{
    lanes_f v;
    memcpy(&v, x, sizeof v);
    return v;
}

static inline lanes_i chosen(lanes_i take, lanes_i a, lanes_i b)
{
    return (take & a) | (~take & b);
}

/* ---- windows ---- */

static inline void largest_one(float *out, int64_t *place, const float *x, const int64_t *window,
                               int64_t n, int64_t channels, int64_t first)
{
    float best = -INFINITY;
    int64_t at = first;
    for (int64_t t = 0; t < n; t++) {
        float v = x[window[t] * channels];
        if (v > best || v != v) {
            best = v;
            at = window[t];
        }
    }
    *out = best;
    *place = at;
}

static void largest(float *out, int64_t *place, const float *x, const int64_t *window, int64_t n,
                    int64_t channels, int64_t first)
{
    int64_t c = 0;
    for (; c + LANES <= channels; c += LANES) {
        lanes_f best = (lanes_f){0} - INFINITY;
        lanes_i at = (lanes_i){0} + (int32_t)first;
        for (int64_t t = 0; t < n; t++) {
            lanes_f v = load(x + window[t] * channels + c);
            lanes_i take = (v > best) | (v != v);
            best = (lanes_f)chosen(take, (lanes_i)v, (lanes_i)best);
            at = chosen(take, (lanes_i){0} + (int32_t)window[t], at);
        }
        memcpy(out + c, &best, sizeof best);
        lanes_l wide = __builtin_convertvector(at, lanes_l);
        memcpy(place + c, &wide, sizeof wide);
    }
    for (; c < channels; c++)
        largest_one(out + c, place + c, x + c, window, n, channels, first);
}

static void average(float *out, const float *x, const int64_t *window, int64_t n, int64_t channels,
                    float divisor)
{
    int64_t c = 0;
    for (; c + 2 * LANES <= channels; c += 2 * LANES) {
        lanes_f a = {0}, b = {0};
        for (int64_t t = 0; t < n; t++) {
            a += load(x + window[t] * channels + c);
            b += load(x + window[t] * channels + c + LANES);
        }
        a /= divisor;
        b /= divisor;
        memcpy(out + c, &a, sizeof a);
        memcpy(out + c + LANES, &b, sizeof b);
    }
    for (; c + LANES <= channels; c += LANES) {
        lanes_f a = {0};
        for (int64_t t = 0; t < n; t++)
            a += load(x + window[t] * channels + c);
        a /= divisor;
        memcpy(out + c, &a, sizeof a);
    }
    for (; c < channels; c++) {
        float sum = 0;
        for (int64_t t = 0; t < n; t++)
            sum += x[window[t] * channels + c];
        out[c] = sum / divisor;
    }
}

/* ---- many windows ---- */

#define INLINE static inline __attribute__((always_inline))

enum { EIGHT = 8 };
typedef float eight_f __attribute__((vector_size(4 * EIGHT)));
typedef int32_t eight_i __attribute__((vector_size(4 * EIGHT)));

/* Eight windows, 1 or 2 apart; nothing beyond the last is read. */
INLINE void look_eight(float *best, int32_t *place, const float *x, const int64_t stride,
                       int32_t here)
{
    const eight_i steps = {0, 1, 2, 3, 4, 5, 6, 7};
    eight_f v, most;
    eight_i at;
    memcpy(&v, x, sizeof v);
    if (stride == 2) {
        eight_f next;
        memcpy(&next, x + EIGHT - 1, sizeof next);
        v = __builtin_shufflevector(v, next, 0, 2, 4, 6, 9, 11, 13, 15);
    }
    memcpy(&most, best, sizeof most);
    memcpy(&at, place, sizeof at);
    eight_i take = (v > most) | (v != v);
    most = (eight_f)((take & (eight_i)v) | (~take & (eight_i)most));
    at = (take & (here + steps * (int32_t)stride)) | (~take & at);
    memcpy(best, &most, sizeof most);
    memcpy(place, &at, sizeof at);
}

INLINE void look_by(float *best, int32_t *place, const float *x, const int64_t stride, int32_t here,
                    int64_t n)
{
    int64_t o = 0;
    for (; stride <= 2 && n >= EIGHT && o < n; o += EIGHT) {
        o = o + EIGHT <= n ? o : n - EIGHT; /* to look twice changes nothing */
        look_eight(best + o, place + o, x + o * stride, stride, here + (int32_t)(o * stride));
    }
    for (; o < n; o++) {
        float v = x[o * stride];
        bool take = (v > best[o]) | (v != v);
        best[o] = take ? v : best[o];
        place[o] = take ? here + (int32_t)(o * stride) : place[o];
    }
}

static void look(float *best, int32_t *place, const float *x, int64_t stride, int32_t here,
                 int64_t n)
{
    if (stride == 1)
        look_by(best, place, x, 1, here, n);
    else if (stride == 2)
        look_by(best, place, x, 2, here, n);
    else
        look_by(best, place, x, stride, here, n);
}

static void add(float *sum, const float *x, int64_t stride, int64_t n)
{
    if (stride == 1) {
        INDEPENDENT for (int64_t o = 0; o < n; o++) sum[o] += x[o];
    } else if (stride == 2) {
        INDEPENDENT for (int64_t o = 0; o < n; o++) sum[o] += x[2 * o];
    } else {
        for (int64_t o = 0; o < n; o++)
            sum[o] += x[o * stride];
    }
}

/* ---- weighted places ---- */

#define MIXES(T, S)                                                                              \
    static void mix_##S(void *out, const void *from, const int64_t *at, const void *weights,     \
                        int taps, int64_t places, int64_t channels)                              \
    {                                                                                            \
        T *restrict o = out;                                                                     \
        const T *x = from, *w = weights;                                                         \
        if (channels == 1 && taps == 4) {                                                        \
            for (int64_t p = 0; p < places; p++, at += 4, w += 4)                                \
                o[p] = w[0] * x[at[0]] + w[1] * x[at[1]] + w[2] * x[at[2]] + w[3] * x[at[3]];    \
            return;                                                                              \
        }                                                                                        \
        for (int64_t p = 0; p < places; p++, o += channels, at += taps, w += taps) {             \
            const T *a = x + at[0] * channels;                                                   \
            if (taps == 2) {                                                                     \
                const T *b = x + at[1] * channels, wa = w[0], wb = w[1];                         \
                INDEPENDENT for (int64_t c = 0; c < channels; c++) o[c] = wa * a[c] + wb * b[c]; \
            } else if (taps == 4) {                                                              \
                const T *b = x + at[1] * channels, *d = x + at[2] * channels,                    \
                        *e = x + at[3] * channels;                                               \
                const T wa = w[0], wb = w[1], wd = w[2], we = w[3];                              \
                INDEPENDENT for (int64_t c = 0; c < channels; c++) o[c] =                        \
                    wa * a[c] + wb * b[c] + wd * d[c] + we * e[c];                               \
            } else {                                                                             \
                for (int64_t c = 0; c < channels; c++)                                           \
                    o[c] = w[0] * a[c];                                                          \
                for (int k = 1; k < taps; k++)                                                   \
                    for (int64_t c = 0; c < channels; c++)                                       \
                        o[c] += w[k] * x[at[k] * channels + c];                                  \
            }                                                                                    \
        }                                                                                        \
    }                                                                                            \
    static void add_scaled_##S(void *out, const void *from, double weight, int64_t n)            \
    {                                                                                            \
        T *o = out, w = (T)weight;                                                               \
        const T *x = from;                                                                       \
        INDEPENDENT for (int64_t i = 0; i < n; i++) o[i] += w * x[i];                            \
    }                                                                                            \
    static void spread_##S(void *out, const void *grad, const int64_t *at, const void *weights,  \
                           int taps, int64_t places, int64_t channels)                           \
    {                                                                                            \
        const T *g = grad, *w = weights;                                                         \
        if (channels == 1) {                                                                     \
            T *o = out;                                                                          \
            for (int64_t p = 0; p < places; p++, at += taps, w += taps)                          \
                for (int k = 0; k < taps; k++)                                                   \
                    o[at[k]] += w[k] * g[p];                                                     \
            return;                                                                              \
        }                                                                                        \
        for (int64_t p = 0; p < places; p++, g += channels, at += taps, w += taps) {             \
            for (int k = 0; k < taps; k++) {                                                     \
                T *o = (T *)out + at[k] * channels;                                              \
                const T weight = w[k];                                                           \
                INDEPENDENT for (int64_t c = 0; c < channels; c++) o[c] += weight * g[c];        \
            }                                                                                    \
        }                                                                                        \
    }
MIXES(float, f32)
MIXES(double, f64)

const tni_places_table TNI_KERN_NAME(tni_places) = {
    largest, average, {mix_f32, spread_f32, add_scaled_f32}, {mix_f64, spread_f64, add_scaled_f64},
    look,    add,
};
