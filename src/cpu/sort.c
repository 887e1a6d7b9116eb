/* SPDX-License-Identifier: MIT */
/* cpu/sort.c: sorting by keys that are unsigned integers: runs of a few by insertion, few by
 * merging, many by their bytes; selecting by partition. */
#include "cpu/sort.h"

#include <string.h>

#define SHORT_RUN   16
#define RADIX_LEAST 512

tn_dtype tni_sort_dtype(tn_dtype dtype)
{
    switch (dtype) {
    case TN_DTYPE_F64:
    case TN_DTYPE_I64:
    case TN_DTYPE_U64:
        return dtype;
    case TN_DTYPE_U32:
        return TN_DTYPE_I64;
    case TN_DTYPE_F16:
    case TN_DTYPE_BF16:
    case TN_DTYPE_F32:
        return TN_DTYPE_F32;
    default:
        return TN_DTYPE_I32;
    }
}

static uint64_t key_f32(float x)
{
    uint32_t bits;
    if (x != x)
        return UINT32_MAX;
    x += 0.0f; /* -0 becomes 0 */
    memcpy(&bits, &x, sizeof bits);
    return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

static uint64_t key_f64(double x)
{
    uint64_t bits;
    if (x != x)
        return UINT64_MAX;
    x += 0.0;
    memcpy(&bits, &x, sizeof bits);
    return bits >> 63 ? ~bits : bits | (UINT64_C(1) << 63);
}

void tni_sort_keys(tni_place *to, const void *line, tn_dtype dtype, int64_t n, bool descending)
{
    uint64_t turn = !descending                                      ? 0
                    : dtype == TN_DTYPE_F32 || dtype == TN_DTYPE_I32 ? UINT32_MAX
                                                                     : UINT64_MAX;
    switch (dtype) {
    case TN_DTYPE_F32:
        for (int64_t i = 0; i < n; i++)
            to[i] = (tni_place){key_f32(((const float *)line)[i]) ^ turn, i};
        break;
    case TN_DTYPE_F64:
        for (int64_t i = 0; i < n; i++)
            to[i] = (tni_place){key_f64(((const double *)line)[i]) ^ turn, i};
        break;
    case TN_DTYPE_I32:
        for (int64_t i = 0; i < n; i++)
            to[i] = (tni_place){(((const uint32_t *)line)[i] ^ 0x80000000u) ^ turn, i};
        break;
    case TN_DTYPE_U64:
        for (int64_t i = 0; i < n; i++)
            to[i] = (tni_place){((const uint64_t *)line)[i] ^ turn, i};
        break;
    default:
        for (int64_t i = 0; i < n; i++)
            to[i] = (tni_place){((const uint64_t *)line)[i] ^ (UINT64_C(1) << 63) ^ turn, i};
    }
}

static inline bool before(tni_place a, tni_place b)
{
    return a.key != b.key ? a.key < b.key : a.at < b.at;
}

static void insertion(tni_place *x, int64_t n)
{
    for (int64_t i = 1; i < n; i++) {
        tni_place v = x[i];
        int64_t k = i;
        for (; k > 0 && before(v, x[k - 1]); k--)
            x[k] = x[k - 1];
        x[k] = v;
    }
}

static void merge(tni_place *to, const tni_place *a, int64_t na, const tni_place *b, int64_t nb)
{
    while (na > 0 && nb > 0) {
        bool second = before(*b, *a);
        *to++ = second ? *b : *a;
        b += second;
        nb -= second;
        a += !second;
        na -= !second;
    }
    memcpy(to, na ? a : b, (size_t)(na ? na : nb) * sizeof *to);
}

static void merge_sort(tni_place *x, tni_place *scratch, int64_t n)
{
    for (int64_t i = 0; i < n; i += SHORT_RUN)
        insertion(x + i, n - i < SHORT_RUN ? n - i : SHORT_RUN);
    tni_place *from = x, *to = scratch;
    for (int64_t run = SHORT_RUN; run < n; run *= 2) {
        for (int64_t i = 0; i < n; i += 2 * run) {
            int64_t na = n - i < run ? n - i : run;
            int64_t nb = n - i - na < run ? n - i - na : run;
            merge(to + i, from + i, na, from + i + na, nb);
        }
        tni_place *swap = from;
        from = to;
        to = swap;
    }
    if (from != x)
        memcpy(x, from, (size_t)n * sizeof *x);
}

/* Byte by byte from the lowest; bytes that all keys share are left out. Places ascend when they
 * come in, and equal keys keep their order. */
static void radix_sort(tni_place *x, tni_place *scratch, int64_t n)
{
    int64_t counts[8][256] = {{0}};
    for (int64_t i = 0; i < n; i++)
        for (int b = 0; b < 8; b++)
            counts[b][x[i].key >> (8 * b) & 255]++;
    tni_place *from = x, *to = scratch;
    for (int b = 0; b < 8; b++) {
        int64_t at = 0;
        if (counts[b][from[0].key >> (8 * b) & 255] == n)
            continue;
        for (int v = 0; v < 256; v++) {
            int64_t count = counts[b][v];
            counts[b][v] = at;
            at += count;
        }
        for (int64_t i = 0; i < n; i++)
            to[counts[b][from[i].key >> (8 * b) & 255]++] = from[i];
        tni_place *swap = from;
        from = to;
        to = swap;
    }
    if (from != x)
        memcpy(x, from, (size_t)n * sizeof *x);
}

void tni_sort_places(tni_place *x, tni_place *scratch, int64_t n)
{
    bool ascending = n >= RADIX_LEAST;
    for (int64_t i = 1; ascending && i < n; i++)
        ascending = x[i - 1].at < x[i].at;
    if (ascending)
        radix_sort(x, scratch, n);
    else
        merge_sort(x, scratch, n);
}

void tni_select_places(tni_place *x, int64_t n, int64_t k)
{
    int64_t low = 0, high = n;
    while (high - low > SHORT_RUN && k > low && k < high) {
        /* The median of three, by a fixed choice: no input is known that makes this slow twice. */
        tni_place a = x[low], b = x[low + (high - low) / 2], c = x[high - 1];
        tni_place pivot = before(a, b) ? (before(b, c)   ? b
                                          : before(a, c) ? c
                                                         : a)
                                       : (before(a, c)   ? a
                                          : before(b, c) ? c
                                                         : b);
        int64_t i = low, h = high - 1;
        while (i <= h) {
            while (before(x[i], pivot))
                i++;
            while (before(pivot, x[h]))
                h--;
            if (i <= h) {
                tni_place swap = x[i];
                x[i++] = x[h];
                x[h--] = swap;
            }
        }
        if (k <= h + 1)
            high = h + 1;
        else if (k >= i)
            low = i;
        else
            return;
    }
    if (k > low && k < high)
        insertion(x + low, high - low);
}
