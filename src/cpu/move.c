/* SPDX-License-Identifier: MIT */
/* cpu/move.c: see move.h. */
#include "cpu/move.h"

#include <string.h>
#if defined(__SSE2__)
#    include <emmintrin.h>
#endif

typedef struct wide {
    uint64_t a, b;
} wide;

#define MOVES(S, T)                                                                \
    static void gather_##S(void *to, const char *from, int64_t n, int64_t stride)  \
    {                                                                              \
        T *o = to;                                                                 \
        for (int64_t i = 0; i < n; i++)                                            \
            o[i] = *(const T *)(from + i * stride);                                \
    }                                                                              \
    static void scatter_##S(char *to, const void *from, int64_t n, int64_t stride) \
    {                                                                              \
        const T *x = from;                                                         \
        for (int64_t i = 0; i < n; i++)                                            \
            *(T *)(to + i * stride) = x[i];                                        \
    }                                                                              \
    static void splat_##S(void *to, const void *from, int64_t n)                   \
    {                                                                              \
        T *o = to, x = *(const T *)from;                                           \
        for (int64_t i = 0; i < n; i++)                                            \
            o[i] = x;                                                              \
    }
MOVES(1, uint8_t)
MOVES(2, uint16_t)
MOVES(4, uint32_t)
MOVES(8, uint64_t)
MOVES(16, wide)

void tni_gather(void *to, const void *from, int64_t n, int64_t stride, size_t itemsize)
{
    if (stride == (int64_t)itemsize)
        memcpy(to, from, (size_t)n * itemsize);
    else if (stride == 0 && n > 0)
        tni_splat(to, from, n, itemsize);
    else if (itemsize == 4)
        gather_4(to, from, n, stride);
    else if (itemsize == 8)
        gather_8(to, from, n, stride);
    else if (itemsize == 2)
        gather_2(to, from, n, stride);
    else if (itemsize == 1)
        gather_1(to, from, n, stride);
    else
        gather_16(to, from, n, stride);
}

void tni_scatter(void *to, const void *from, int64_t n, int64_t stride, size_t itemsize)
{
    if (stride == (int64_t)itemsize)
        memcpy(to, from, (size_t)n * itemsize);
    else if (itemsize == 4)
        scatter_4(to, from, n, stride);
    else if (itemsize == 8)
        scatter_8(to, from, n, stride);
    else if (itemsize == 2)
        scatter_2(to, from, n, stride);
    else if (itemsize == 1)
        scatter_1(to, from, n, stride);
    else
        scatter_16(to, from, n, stride);
}

void tni_splat(void *to, const void *from, int64_t n, size_t itemsize)
{
    if (itemsize == 4)
        splat_4(to, from, n);
    else if (itemsize == 8)
        splat_8(to, from, n);
    else if (itemsize == 2)
        splat_2(to, from, n);
    else if (itemsize == 1)
        splat_1(to, from, n);
    else
        splat_16(to, from, n);
}

static bool is_half(tn_dtype dtype)
{
    return dtype == TN_DTYPE_F16 || dtype == TN_DTYPE_BF16;
}

/* The dtype on the way where there is no direct conversion. Halves go by way of float32, complex
 * numbers by way of their real type, narrow integers by way of int32. Nothing is lost on the way
 * that the reference would keep. */
static tn_dtype between(tn_dtype from, tn_dtype to)
{
    if (is_half(from) || is_half(to))
        return TN_DTYPE_F32;
    if (tn_dtype_is_complex(from))
        return tni_dtype_to_real(from);
    return tn_dtype_is_complex(to) ? tni_dtype_to_real(to) : TN_DTYPE_I32;
}

void tni_convert(const tni_kernels *k, tn_dtype to_dtype, void *to, tn_dtype from_dtype,
                 const void *from, int64_t n)
{
    size_t to_size = tni_dtype_size(to_dtype), from_size = tni_dtype_size(from_dtype);
    if (to_dtype == from_dtype) {
        if (to != from)
            memcpy(to, from, (size_t)n * to_size);
        return;
    }
    tni_cast_fn cast = (*k->casts)[from_dtype][to_dtype];
    if (cast) {
        cast(to, from, n);
        return;
    }
    _Alignas(16) char buffer[256 * sizeof(double)];
    tn_dtype middle = between(from_dtype, to_dtype);
    for (int64_t i = 0; i < n; i += 256) {
        int64_t m = n - i < 256 ? n - i : 256;
        tni_convert(k, middle, buffer, from_dtype, (const char *)from + (size_t)i * from_size, m);
        tni_convert(k, to_dtype, (char *)to + (size_t)i * to_size, middle, buffer, m);
    }
}

/* ---- past the caches ---- */

#if defined(__SSE2__)
static inline __attribute__((always_inline)) void stream(void *to, const void *from, size_t nbytes,
                                                         const char *next)
{
    char *out = to;
    const char *in = from;
    size_t head = (size_t)(-(uintptr_t)out & 63);
    if (head > nbytes)
        head = nbytes;
    memcpy(out, in, head);
    size_t i = head;
    for (; i + 64 <= nbytes; i += 64) {
        __m128i a = _mm_loadu_si128((const __m128i *)(const void *)(in + i));
        __m128i b = _mm_loadu_si128((const __m128i *)(const void *)(in + i + 16));
        __m128i c = _mm_loadu_si128((const __m128i *)(const void *)(in + i + 32));
        __m128i d = _mm_loadu_si128((const __m128i *)(const void *)(in + i + 48));
        if (next)
            __builtin_prefetch(next + i);
        _mm_stream_si128((__m128i *)(void *)(out + i), a);
        _mm_stream_si128((__m128i *)(void *)(out + i + 16), b);
        _mm_stream_si128((__m128i *)(void *)(out + i + 32), c);
        _mm_stream_si128((__m128i *)(void *)(out + i + 48), d);
    }
    memcpy(out + i, in + i, nbytes - i);
}

void tni_stream(void *to, const void *from, size_t nbytes)
{
    stream(to, from, nbytes, NULL);
}

void tni_stream_and_fetch(void *to, const void *from, size_t nbytes, const void *next)
{
    stream(to, from, nbytes, next);
}

void tni_stream_end(void)
{
    _mm_sfence();
}
#else
void tni_stream(void *to, const void *from, size_t nbytes)
{
    memcpy(to, from, nbytes);
}

void tni_stream_and_fetch(void *to, const void *from, size_t nbytes, const void *next)
{
    (void)next;
    memcpy(to, from, nbytes);
}

void tni_stream_end(void) {}
#endif
