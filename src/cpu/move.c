/* SPDX-License-Identifier: MIT */
/* cpu/move.c: see move.h. */
#include "cpu/move.h"

#include <string.h>
#include <wchar.h>
#include "core/float8.h"
#if defined(__SSE2__)
#    include <emmintrin.h>
#endif

typedef struct wide {
    uint64_t a, b;
} wide;

/* Every second element, which halves of pairs are, goes in vectors: the compiler knows how. */
#define MOVES(S, T)                                                                \
    static void gather_second_##S(T *restrict o, const T *restrict x, int64_t n)   \
    {                                                                              \
        for (int64_t i = 0; i < n; i++)                                            \
            o[i] = x[2 * i];                                                       \
    }                                                                              \
    static void gather_##S(void *to, const char *from, int64_t n, int64_t stride)  \
    {                                                                              \
        T *o = to;                                                                 \
        if (stride == 2 * (int64_t)sizeof(T)) {                                    \
            gather_second_##S(o, (const T *)from, n);                              \
            return;                                                                \
        }                                                                          \
        for (int64_t i = 0; i < n; i++)                                            \
            o[i] = *(const T *)(from + i * stride);                                \
    }                                                                              \
    static void scatter_##S(char *to, const void *from, int64_t n, int64_t stride) \
    {                                                                              \
        const T *x = from;                                                         \
        for (int64_t i = 0; i < n; i++)                                            \
            *(T *)(to + i * stride) = x[i];                                        \
    }                                                                              \
    static void move_##S(char *to, const char *from, int64_t n, int64_t to_stride, \
                         int64_t from_stride)                                      \
    {                                                                              \
        for (int64_t i = 0; i < n; i++)                                            \
            *(T *)(to + i * to_stride) = *(const T *)(from + i * from_stride);     \
    }                                                                              \
    static inline void splat_##S(void *to, const void *from, int64_t n)            \
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

#define BACKWARDS(S, T)                                              \
    static void backwards_##S(void *to, const char *from, int64_t n) \
    {                                                                \
        T *o = to;                                                   \
        const T *x = (const T *)from - (n - 1);                      \
        for (int64_t i = 0; i < n; i++)                              \
            o[i] = x[n - 1 - i];                                     \
    }
BACKWARDS(4, uint32_t)
BACKWARDS(8, uint64_t)
BACKWARDS(16, wide)

/* Eight bytes at a time, turned. The last element is read first: it has the lowest address. */
static void bytes_backwards(void *to, const void *from, int64_t n, size_t itemsize)
{
    char *o = to;
    const char *x = from;
    int64_t each = 8 / (int64_t)itemsize, size = (int64_t)itemsize, i = 0;
    for (; i + each <= n; i += each) {
        uint64_t v;
        memcpy(&v, x - (i + each - 1) * size, sizeof v);
        v = __builtin_bswap64(v);
        if (itemsize == 2)
            v = (v & UINT64_C(0x00ff00ff00ff00ff)) << 8 | (v >> 8 & UINT64_C(0x00ff00ff00ff00ff));
        memcpy(o + i * size, &v, sizeof v);
    }
    for (; i < n; i++)
        memcpy(o + i * size, x - i * size, itemsize);
}

static void backwards(void *to, const void *from, int64_t n, size_t itemsize)
{
    if (itemsize == 4)
        backwards_4(to, from, n);
    else if (itemsize == 8)
        backwards_8(to, from, n);
    else if (itemsize <= 2)
        bytes_backwards(to, from, n, itemsize);
    else
        backwards_16(to, from, n);
}

void tni_move(void *to, const void *from, int64_t n, int64_t to_stride, int64_t from_stride,
              size_t itemsize)
{
    if (itemsize == 4)
        move_4(to, from, n, to_stride, from_stride);
    else if (itemsize == 8)
        move_8(to, from, n, to_stride, from_stride);
    else if (itemsize == 2)
        move_2(to, from, n, to_stride, from_stride);
    else if (itemsize == 1)
        move_1(to, from, n, to_stride, from_stride);
    else
        move_16(to, from, n, to_stride, from_stride);
}

void tni_gather(void *to, const void *from, int64_t n, int64_t stride, size_t itemsize)
{
    if (stride == (int64_t)itemsize)
        memcpy(to, from, (size_t)n * itemsize);
    else if (stride == 0 && n > 0)
        tni_splat(to, from, n, itemsize);
    else if (stride == -(int64_t)itemsize && n > 0)
        backwards(to, from, n, itemsize);
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

/* The C library fills with the widest registers that there are; numbers of 4 bytes and less. */
_Static_assert(sizeof(wchar_t) == 4, "wmemset fills with numbers of 4 bytes");

static void fill_twos(char *to, const void *from, int64_t n)
{
    uint16_t x = *(const uint16_t *)from;
    uint32_t pair = (uint32_t)x << 16 | x;
    int64_t head = (uintptr_t)to % 4 != 0 && n > 0;
    splat_2(to, from, head);
    wmemset((wchar_t *)(void *)(to + 2 * head), (wchar_t)pair, (size_t)((n - head) / 2));
    splat_2(to + 2 * (n - 1), from, n > head);
}

void tni_splat(void *to, const void *from, int64_t n, size_t itemsize)
{
    if (itemsize == 4)
        wmemset(to, *(const wchar_t *)from, (size_t)n);
    else if (itemsize == 8)
        splat_8(to, from, n);
    else if (itemsize == 2)
        fill_twos(to, from, n);
    else if (itemsize == 1)
        memset(to, *(const uint8_t *)from, (size_t)n);
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

/* ---- dtypes without loops ---- */

/* What float8 and unsigned integers are read as, and written from: a dtype that has every number of
 * theirs. The low bits of an int64 are a uint64. */
static tn_dtype wider(tn_dtype dtype)
{
    return tni_dtype_is_float8(dtype)   ? TN_DTYPE_F32
           : dtype == TN_DTYPE_U16      ? TN_DTYPE_I32
           : TN_DTYPE_IS_LIMITED(dtype) ? TN_DTYPE_I64
                                        : dtype;
}

static void widen(tn_dtype dtype, void *to, const void *from, int64_t n)
{
    tni_float8 kind = tni_float8_of(dtype);
    for (int64_t i = 0; i < n; i++)
        switch ((int)dtype) {
        case TN_DTYPE_U16:
            ((int32_t *)to)[i] = ((const uint16_t *)from)[i];
            break;
        case TN_DTYPE_U32:
            ((int64_t *)to)[i] = ((const uint32_t *)from)[i];
            break;
        case TN_DTYPE_U64:
            ((int64_t *)to)[i] = (int64_t)((const uint64_t *)from)[i];
            break;
        default:
            ((float *)to)[i] = tni_float8_to_float(&kind, ((const uint8_t *)from)[i]);
        }
}

static void narrow(tn_dtype dtype, void *to, const void *from, int64_t n)
{
    tni_float8 kind = tni_float8_of(dtype);
    for (int64_t i = 0; i < n; i++)
        switch ((int)dtype) {
        case TN_DTYPE_U16:
            ((uint16_t *)to)[i] = (uint16_t)((const int32_t *)from)[i];
            break;
        case TN_DTYPE_U32:
            ((uint32_t *)to)[i] = (uint32_t)((const int64_t *)from)[i];
            break;
        case TN_DTYPE_U64:
            ((uint64_t *)to)[i] = (uint64_t)((const int64_t *)from)[i];
            break;
        default:
            ((uint8_t *)to)[i] = tni_float8_from_float(&kind, ((const float *)from)[i]);
        }
}

/* The numbers of a uint64 that an int64 has not: as the real numbers that they are, and back. */
static void from_u64(tn_dtype dtype, void *to, const uint64_t *from, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (dtype == TN_DTYPE_F32)
            ((float *)to)[i] = (float)from[i];
        else
            ((double *)to)[i] = (double)from[i];
}

static void to_u64(uint64_t *to, const double *from, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        double v = from[i];
        to[i] = v >= 0x1p63 && v < 0x1p64   ? (uint64_t)v
                : v > -0x1p63 && v < 0x1p63 ? (uint64_t)(int64_t)v
                                            : (uint64_t)INT64_MIN;
    }
}

/* Where the way to a dtype begins, and where the way from one ends, if that is a real number. */
static tn_dtype real_beside(tn_dtype dtype)
{
    return dtype == TN_DTYPE_F64 || dtype == TN_DTYPE_C128 ? TN_DTYPE_F64 : TN_DTYPE_F32;
}

static void convert_limited(const tni_kernels *k, tn_dtype to_dtype, void *to, tn_dtype from_dtype,
                            const void *from, int64_t n)
{
    _Alignas(16) char a[256 * sizeof(double)], b[256 * sizeof(double)];
    size_t to_size = tni_dtype_size(to_dtype), from_size = tni_dtype_size(from_dtype);
    tn_dtype start = wider(from_dtype), end = wider(to_dtype);
    if (from_dtype == TN_DTYPE_U64 && tni_dtype_is_inexact(to_dtype))
        start = real_beside(to_dtype);
    if (to_dtype == TN_DTYPE_U64 && tni_dtype_is_inexact(from_dtype))
        end = TN_DTYPE_F64;
    for (int64_t i = 0; i < n; i += 256) {
        int64_t m = n - i < 256 ? n - i : 256;
        const char *x = (const char *)from + (size_t)i * from_size;
        char *out = (char *)to + (size_t)i * to_size;
        const void *middle = a;
        if (!TN_DTYPE_IS_LIMITED(from_dtype))
            middle = x;
        else if (from_dtype == TN_DTYPE_U64 && start != TN_DTYPE_I64)
            from_u64(start, a, (const void *)x, m);
        else
            widen(from_dtype, a, x, m);
        if (!TN_DTYPE_IS_LIMITED(to_dtype)) {
            tni_convert(k, to_dtype, out, start, middle, m);
            continue;
        }
        tni_convert(k, end, b, start, middle, m);
        if (to_dtype == TN_DTYPE_U64 && end == TN_DTYPE_F64)
            to_u64((void *)out, (const void *)b, m);
        else
            narrow(to_dtype, out, b, m);
    }
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
    if (TN_DTYPE_IS_LIMITED(to_dtype) || TN_DTYPE_IS_LIMITED(from_dtype)) {
        convert_limited(k, to_dtype, to, from_dtype, from, n);
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
static inline __attribute__((always_inline)) void stream_line(char *to, const char *from)
{
    __m128i a = _mm_loadu_si128((const __m128i *)(const void *)from);
    __m128i b = _mm_loadu_si128((const __m128i *)(const void *)(from + 16));
    __m128i c = _mm_loadu_si128((const __m128i *)(const void *)(from + 32));
    __m128i d = _mm_loadu_si128((const __m128i *)(const void *)(from + 48));
    _mm_stream_si128((__m128i *)(void *)to, a);
    _mm_stream_si128((__m128i *)(void *)(to + 16), b);
    _mm_stream_si128((__m128i *)(void *)(to + 32), c);
    _mm_stream_si128((__m128i *)(void *)(to + 48), d);
}

static inline __attribute__((always_inline)) void stream(void *to, const void *from, size_t nbytes,
                                                         const void *const *next, const int count)
{
    char *out = to;
    const char *in = from;
    size_t head = (size_t)(-(uintptr_t)out & 63);
    if (head > nbytes)
        head = nbytes;
    memcpy(out, in, head);
    size_t i = head;
    for (; i + 64 <= nbytes; i += 64) {
        for (int q = 0; q < count; q++)
            __builtin_prefetch((const char *)next[q] + i);
        stream_line(out + i, in + i);
    }
    memcpy(out + i, in + i, nbytes - i);
}

void tni_stream(void *to, const void *from, size_t nbytes, const void *const *next, int count)
{
    if (count == 1)
        stream(to, from, nbytes, next, 1);
    else if (count == 2)
        stream(to, from, nbytes, next, 2);
    else
        stream(to, from, nbytes, next, count);
}

void tni_stream_pair(void *const *to, const void *const *from, size_t nbytes,
                     const void *const *next)
{
    char *out[2] = {to[0], to[1]};
    const char *in[2] = {from[0], from[1]};
    if (((uintptr_t)out[0] | (uintptr_t)out[1]) & 63) { /* lines do not begin together */
        tni_stream(out[0], in[0], nbytes, next, 1);
        tni_stream(out[1], in[1], nbytes, next + 1, 1);
        return;
    }
    size_t i = 0;
    for (; i + 64 <= nbytes; i += 64) {
        __builtin_prefetch((const char *)next[0] + i);
        __builtin_prefetch((const char *)next[1] + i);
        stream_line(out[0] + i, in[0] + i);
        stream_line(out[1] + i, in[1] + i);
    }
    memcpy(out[0] + i, in[0] + i, nbytes - i);
    memcpy(out[1] + i, in[1] + i, nbytes - i);
}

void tni_stream_end(void)
{
    _mm_sfence();
}
#else
void tni_stream(void *to, const void *from, size_t nbytes, const void *const *next, int count)
{
    (void)next, (void)count;
    memcpy(to, from, nbytes);
}

void tni_stream_pair(void *const *to, const void *const *from, size_t nbytes,
                     const void *const *next)
{
    (void)next;
    memcpy(to[0], from[0], nbytes);
    memcpy(to[1], from[1], nbytes);
}

void tni_stream_end(void) {}
#endif
