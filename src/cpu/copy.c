/* SPDX-License-Identifier: MIT */
/* cpu/copy.c: copying between CPU tensors of any strides and dtypes. The walk follows the
 * destination; where the source is transposed against it, squares are copied, so that both sides
 * use whole cache lines. */
#include "cpu/copy.h"

#include <string.h>
#include "base/pool.h"
#include "cpu/move.h"
#include "cpu/square.h"
#include "iter/iter.h"

#define GRAIN_BYTES (256 * 1024)
#define BLOCK_BYTES 4096
#define TILE        32
#define SHORT       8 /* elements of a row that is short */
#define SHORT_ROWS  256
#define FEWEST      3 /* elements of a row that a square would hardly fill */

typedef struct copy_job {
    const tni_kernels *kernels;
    tn_dtype to, from;
    size_t to_size, from_size;
    char *dst;
    const char *src;
    int ndim; /* dimension 0 is the fastest of dst */
    int64_t sizes[TN_MAX_DIMS], dst_strides[TN_MAX_DIMS], src_strides[TN_MAX_DIMS];
    int crossed; /* the dimension in which src is contiguous, when it is not 0; else 0 */
} copy_job;

/* ---- planning ---- */

/* Sort dimensions by the strides of dst, those of src where dst has none to say; then merge. */
static void plan(copy_job *j, const tni_strided *c)
{
    j->ndim = 0;
    for (int d = 0; d < c->ndim; d++) {
        if (c->sizes[d] == 1)
            continue;
        int64_t to = c->dst_strides[d], from = c->src_strides[d];
        int at = j->ndim++;
        while (at > 0 && (to < j->dst_strides[at - 1] ||
                          (to == j->dst_strides[at - 1] && from <= j->src_strides[at - 1]))) {
            j->sizes[at] = j->sizes[at - 1];
            j->dst_strides[at] = j->dst_strides[at - 1];
            j->src_strides[at] = j->src_strides[at - 1];
            at--;
        }
        j->sizes[at] = c->sizes[d];
        j->dst_strides[at] = to;
        j->src_strides[at] = from;
    }
    int last = 0;
    for (int d = 1; d < j->ndim; d++) {
        if (j->dst_strides[d] == j->dst_strides[last] * j->sizes[last] &&
            j->src_strides[d] == j->src_strides[last] * j->sizes[last]) {
            j->sizes[last] *= j->sizes[d];
            continue;
        }
        last++;
        j->sizes[last] = j->sizes[d];
        j->dst_strides[last] = j->dst_strides[d];
        j->src_strides[last] = j->src_strides[d];
    }
    if (j->ndim == 0) { /* one element */
        j->sizes[0] = 1;
        j->dst_strides[0] = (int64_t)j->to_size;
        j->src_strides[0] = (int64_t)j->from_size;
    }
    j->ndim = last + 1;
    j->crossed = 0;
    if (j->to == j->from && j->src_strides[0] > (int64_t)j->from_size)
        for (int d = 1; d < j->ndim; d++)
            if (j->src_strides[d] == (int64_t)j->from_size)
                j->crossed = d;
}

/* ---- rows ---- */

/* One row of n elements. */
static void copy_row(const copy_job *j, char *dst, const char *src, int64_t n, int64_t to_stride,
                     int64_t from_stride)
{
    bool to_dense = to_stride == (int64_t)j->to_size;
    if (j->to == j->from && to_dense) {
        tni_gather(dst, src, n, from_stride, j->to_size);
        return;
    }
    if (to_dense && from_stride == (int64_t)j->from_size) {
        tni_convert(j->kernels, j->to, dst, j->from, src, n);
        return;
    }
    _Alignas(64) char raw[BLOCK_BYTES], converted[BLOCK_BYTES];
    int64_t block = BLOCK_BYTES / 16;
    for (int64_t i = 0; i < n; i += block) {
        int64_t m = n - i < block ? n - i : block;
        tni_gather(raw, src + i * from_stride, m, from_stride, j->from_size);
        char *result = raw;
        if (j->to != j->from) {
            result = converted;
            tni_convert(j->kernels, j->to, converted, j->from, raw, m);
        }
        tni_scatter(dst + i * to_stride, result, m, to_stride, j->to_size);
    }
}

/* Where outer index @p i is; dimension 0 and @p skip do not count. */
static void outer_offset(const copy_job *j, int64_t i, int skip, int64_t *dst, int64_t *src)
{
    *dst = *src = 0;
    for (int d = 1; d < j->ndim; d++) {
        if (d == skip)
            continue;
        int64_t at = i % j->sizes[d];
        i /= j->sizes[d];
        *dst += at * j->dst_strides[d];
        *src += at * j->src_strides[d];
    }
}

static tn_status copy_rows(int64_t begin, int64_t end, void *arg)
{
    const copy_job *j = arg;
    int64_t dst, src, at[TN_MAX_DIMS], rest = begin;
    outer_offset(j, begin, 0, &dst, &src);
    for (int d = 1; d < j->ndim; d++) {
        at[d] = rest % j->sizes[d];
        rest /= j->sizes[d];
    }
    for (int64_t i = begin; i < end; i++) {
        copy_row(j, j->dst + dst, j->src + src, j->sizes[0], j->dst_strides[0], j->src_strides[0]);
        /* Counted on: to divide for each row takes as long as to copy a few hundred bytes. */
        for (int d = 1; d < j->ndim; d++) {
            dst += j->dst_strides[d];
            src += j->src_strides[d];
            if (++at[d] < j->sizes[d])
                break;
            dst -= j->sizes[d] * j->dst_strides[d];
            src -= j->sizes[d] * j->src_strides[d];
            at[d] = 0;
        }
    }
    return TN_OK;
}

/* Rows that are so short that starting one takes longer than copying it: SHORT_ROWS of them at a
 * time, first their first elements, then their second … Those whose elements lie side by side in
 * the source are taken, if there are any. */
static tn_status copy_short_rows(int64_t begin, int64_t end, void *arg)
{
    const copy_job *j = arg;
    int along = j->crossed ? j->crossed : 1;
    int64_t rows = j->sizes[along], parts = (rows + SHORT_ROWS - 1) / SHORT_ROWS;
    for (int64_t i = begin; i < end; i++) {
        int64_t dst, src, first = i % parts * SHORT_ROWS;
        outer_offset(j, i / parts, along, &dst, &src);
        int64_t n = rows - first < SHORT_ROWS ? rows - first : SHORT_ROWS;
        dst += first * j->dst_strides[along];
        src += first * j->src_strides[along];
        for (int64_t k = 0; k < j->sizes[0]; k++)
            tni_move(j->dst + dst + k * j->dst_strides[0], j->src + src + k * j->src_strides[0], n,
                     j->dst_strides[along], j->src_strides[along], j->to_size);
    }
    return TN_OK;
}

/* A single row, cut into pieces. */
static tn_status copy_piece(int64_t begin, int64_t end, void *arg)
{
    const copy_job *j = arg;
    copy_row(j, j->dst + begin * j->dst_strides[0], j->src + begin * j->src_strides[0], end - begin,
             j->dst_strides[0], j->src_strides[0]);
    return TN_OK;
}

/* ---- transposed ---- */

/* n x m elements: dst is contiguous along the first, src along the second. They go through a small
 * square, so that every line of either side is used whole when it is there: lines that lie a power
 * of two apart throw each other out of the cache. */
#define TRANSPOSE(S, T)                                                                     \
    static void transpose_##S(char *dst, const char *src, int64_t n, int64_t m, int64_t to, \
                              int64_t from)                                                 \
    {                                                                                       \
        T square[TILE][TILE];                                                               \
        for (int64_t i = 0; i < n; i++)                                                     \
            memcpy(square[i], src + i * from, (size_t)m * sizeof(T));                       \
        for (int64_t y = 0; y < m; y++) {                                                   \
            T *o = (T *)(dst + y * to);                                                     \
            for (int64_t i = 0; i < n; i++)                                                 \
                o[i] = square[i][y];                                                        \
        }                                                                                   \
    }
typedef struct pair {
    uint64_t a, b;
} pair;
TRANSPOSE(1, uint8_t)
TRANSPOSE(8, uint64_t)
TRANSPOSE(16, pair)

/* The first m rows of a square, n elements of each: mostly whole ones, of a size that is known. */
__attribute__((always_inline)) static inline void write_rows(char *dst, int64_t to,
                                                             const void *square, int64_t n,
                                                             int64_t m, size_t size)
{
    for (int64_t y = 0; y < m; y++) {
        const char *row = (const char *)square + (size_t)y * TILE * size;
        if (n == TILE)
            memcpy(dst + y * to, row, TILE * size);
        else
            memcpy(dst + y * to, row, (size_t)n * size);
    }
}

/* By squares of four. */
static void transpose_4(char *dst, const char *src, int64_t n, int64_t m, int64_t to, int64_t from)
{
    if (m <= 4 || (n >= 4 && to <= 64)) { /* few lines are written: none throws another out */
        tni_turn_words(dst, to, src, from, n, m);
        return;
    }
    uint32_t square[TILE][TILE];
    tni_turn_words(square, sizeof square[0], src, from, n, m);
    write_rows(dst, to, square, n, m, sizeof square[0][0]);
}

/* By squares of eight. */
static void transpose_2(char *dst, const char *src, int64_t n, int64_t m, int64_t to, int64_t from)
{
    uint16_t square[TILE][TILE];
    tni_turn_halves(square, sizeof square[0], src, from, n, m);
    write_rows(dst, to, square, n, m, sizeof square[0][0]);
}

/* A stripe: TILE elements of the crossed dimension, all of dimension 0, tile by tile. Stripes of
 * one outer index come one after the other. */
static tn_status copy_stripes(int64_t begin, int64_t end, void *arg)
{
    const copy_job *j = arg;
    int64_t m_all = j->sizes[j->crossed], stripes = (m_all + TILE - 1) / TILE;
    int64_t to = j->dst_strides[j->crossed], from = j->src_strides[0];
    for (int64_t i = begin; i < end; i++) {
        int64_t dst, src, y = i % stripes * TILE;
        outer_offset(j, i / stripes, j->crossed, &dst, &src);
        int64_t m = m_all - y < TILE ? m_all - y : TILE;
        for (int64_t x = 0; x < j->sizes[0]; x += TILE) {
            int64_t n = j->sizes[0] - x < TILE ? j->sizes[0] - x : TILE;
            char *o = j->dst + dst + y * to + x * (int64_t)j->to_size;
            const char *a = j->src + src + y * (int64_t)j->to_size + x * from;
            switch (j->to_size) {
            case 1:
                transpose_1(o, a, n, m, to, from);
                break;
            case 2:
                transpose_2(o, a, n, m, to, from);
                break;
            case 4:
                transpose_4(o, a, n, m, to, from);
                break;
            case 8:
                transpose_8(o, a, n, m, to, from);
                break;
            default:
                transpose_16(o, a, n, m, to, from);
            }
        }
    }
    return TN_OK;
}

/* ---- all ---- */

tn_status tni_copy_strided(const tni_strided *c)
{
    int64_t numel = 1;
    for (int d = 0; d < c->ndim; d++)
        numel *= c->sizes[d];
    if (numel == 0)
        return TN_OK;
    copy_job j;
    j.kernels = tni_cpu_kernels();
    j.to = c->to;
    j.from = c->from;
    j.to_size = tni_dtype_size(c->to);
    j.from_size = tni_dtype_size(c->from);
    j.dst = c->dst;
    j.src = c->src;
    plan(&j, c);
    int64_t grain = GRAIN_BYTES / (int64_t)j.to_size;
    if (j.ndim == 1)
        return numel <= grain ? copy_piece(0, numel, &j)
                              : tni_pool_for(numel, grain, copy_piece, &j);
    int64_t units = numel / j.sizes[0], each = j.sizes[0];
    tni_pool_fn fn = copy_rows;
    int along = j.crossed ? j.crossed : 1;
    bool crosses = j.crossed && j.dst_strides[0] == (int64_t)j.to_size;
    if (crosses && (j.sizes[0] > FEWEST || j.sizes[j.crossed] < 2 * SHORT)) {
        int64_t stripes = (j.sizes[j.crossed] + TILE - 1) / TILE;
        units = units / j.sizes[j.crossed] * stripes;
        each = j.sizes[0] * TILE;
        fn = copy_stripes;
    } else if (j.to == j.from && j.sizes[0] <= SHORT && j.sizes[along] >= 2 * SHORT) {
        int64_t rows = j.sizes[along];
        units = units / rows * ((rows + SHORT_ROWS - 1) / SHORT_ROWS);
        each = j.sizes[0] * (rows < SHORT_ROWS ? rows : SHORT_ROWS);
        fn = copy_short_rows;
    }
    int64_t units_each = grain / each > 0 ? grain / each : 1;
    return units <= units_each ? fn(0, units, &j) : tni_pool_for(units, units_each, fn, &j);
}

tn_status tni_copy_cpu(tn_tensor *dst, const tn_tensor *src)
{
    int64_t to[TN_MAX_DIMS], from[TN_MAX_DIMS];
    int64_t to_size = (int64_t)tni_itemsize(dst), from_size = (int64_t)tni_itemsize(src);
    int missing = dst->ndim - src->ndim;
    if (dst->numel == 0) /* where strides may be any number */
        return TN_OK;
    for (int d = 0; d < dst->ndim; d++) {
        int own = d - missing;
        to[d] = dst->strides[d] * to_size;
        from[d] = own < 0 || src->sizes[own] == 1 ? 0 : src->strides[own] * from_size;
    }
    tni_strided c = {
        dst->ndim,           dst->sizes, to, from, dst->data, src->data, (tn_dtype)dst->dtype,
        (tn_dtype)src->dtype};
    return tni_copy_strided(&c);
}
