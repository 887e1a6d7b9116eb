/* SPDX-License-Identifier: MIT */
/* cpu/slices.c: see slices.h. Where slices are long they are moved run by run; where they are
 * short, many slices are moved together, one element of each. Reading shares out slices among
 * threads; writing shares out the columns instead, since two slices may go to the same place. */
#include "cpu/slices.h"

#include "base/pool.h"
#include "cpu/loops.h"
#include "cpu/move.h"

#define GRAIN_BYTES (128 * 1024)
#define BLOCK       512
#define SHORT_ROW   8
#define COLUMNS     256
/* A result of at least so many bytes does not stay in the caches of a core. Written past them, with
 * slices fetched about so many bytes before their turn, it takes three quarters of the time, and
 * whoever reads it afterwards loses less than that: embeddings of 12 MB with a sum over them take
 * 1.71 ms against 1.74 on one thread of Sapphire Rapids. */
#if defined(TN_STRESS) && TN_STRESS
#    define STREAM_BYTES 4096
#else
#    define STREAM_BYTES (INT64_C(8) << 20)
#endif
#define FETCH_BYTES    8192
#define FEWEST_FETCHED 256
/* Where the last cache takes them up, results stay there that have, with the slices that they are
 * picked from, up to so many bytes: 4096 of 4096 rows of 4 KB take two threads of Zen 4 240 to 350
 * microseconds with plain stores, 300 to 600 past the caches; 6144 of them 510 and 465. Of short
 * rows, 512 bytes, the fetching is worth more. 4096 rows of 3 KB from a table of 154 MB, other ones
 * each time, with a sum over them: on Zen 5 363 fetched, 425 not, 410 past the caches. */
#define TAKEN_BYTES (INT64_C(32) << 20)
#define LONG_RUN    2048

void tni_slices_dim(tni_slices *r, int64_t size, int64_t a_stride, int64_t b_stride)
{
    if (size == 1)
        return;
    int at = r->ndim++;
    for (; at > 0 && (b_stride < r->b_strides[at - 1] ||
                      (b_stride == r->b_strides[at - 1] && a_stride <= r->a_strides[at - 1]));
         at--) {
        r->sizes[at] = r->sizes[at - 1];
        r->a_strides[at] = r->a_strides[at - 1];
        r->b_strides[at] = r->b_strides[at - 1];
    }
    r->sizes[at] = size;
    r->a_strides[at] = a_stride;
    r->b_strides[at] = b_stride;
}

static void merge(tni_slices *r)
{
    int last = 0;
    for (int d = 1; d < r->ndim; d++) {
        if (r->a_strides[d] == r->a_strides[last] * r->sizes[last] &&
            r->b_strides[d] == r->b_strides[last] * r->sizes[last]) {
            r->sizes[last] *= r->sizes[d];
            continue;
        }
        last++;
        r->sizes[last] = r->sizes[d];
        r->a_strides[last] = r->a_strides[d];
        r->b_strides[last] = r->b_strides[d];
    }
    if (r->ndim > 0)
        r->ndim = last + 1;
}

/* Where index @p i of the dimensions from @p first on is. */
static inline void outer_at(const tni_slices *r, int first, int64_t i, int64_t *a, int64_t *b)
{
    *a = *b = 0;
    for (int d = first; d < r->ndim; d++) {
        int64_t at = i % r->sizes[d];
        i /= r->sizes[d];
        *a += at * r->a_strides[d];
        *b += at * r->b_strides[d];
    }
}

static inline int64_t b_place(const tni_slices *r, int64_t i)
{
    return r->b_at ? r->b_at[i] : i * r->b_step;
}

/* ---- long slices ---- */

static void move_run(char *to, int64_t to_stride, const char *from, int64_t from_stride, int64_t n,
                     size_t itemsize)
{
    if (to_stride == (int64_t)itemsize) {
        tni_gather(to, from, n, from_stride, itemsize);
        return;
    }
    _Alignas(16) char raw[BLOCK * 16];
    for (int64_t i = 0; i < n; i += BLOCK) {
        int64_t m = n - i < BLOCK ? n - i : BLOCK;
        tni_gather(raw, from + i * from_stride, m, from_stride, itemsize);
        tni_scatter(to + i * to_stride, raw, m, to_stride, itemsize);
    }
}

/* a += b, of halves that are runs, in float32. */
static void add_halves(tn_dtype dtype, char *a, const char *b, int64_t n)
{
    const tni_kernels *k = tni_cpu_kernels();
    tni_loop_fn add = tni_loop_find(k, TNI_LOOP_ADD, TN_DTYPE_F32);
    _Alignas(64) float sum[BLOCK], other[BLOCK];
    for (int64_t i = 0; i < n; i += BLOCK) {
        int64_t m = n - i < BLOCK ? n - i : BLOCK;
        tni_convert(k, TN_DTYPE_F32, sum, dtype, a + 2 * i, m);
        tni_convert(k, TN_DTYPE_F32, other, dtype, b + 2 * i, m);
        add(sum, (const void *const[]){sum, other}, m, NULL);
        tni_convert(k, dtype, a + 2 * i, TN_DTYPE_F32, sum, m);
    }
}

static void combine_run(const tni_slices *r, tni_combine_fn combine, tni_loop_fn add, char *a,
                        const char *b, int64_t n)
{
    int64_t a_stride = r->a_strides[0], b_stride = r->b_strides[0];
    if (r->op == TNI_COMBINE_ADD && a_stride == 2 && b_stride == 2 &&
        (r->dtype == TN_DTYPE_BF16 || r->dtype == TN_DTYPE_F16)) {
        add_halves(r->dtype, a, b, n);
        return;
    }
    if (add && a_stride == (int64_t)r->itemsize && b_stride == a_stride) {
        add(a, (const void *const[]){a, b}, n, NULL);
        return;
    }
    _Alignas(16) char raw[BLOCK * 16];
    int64_t at[BLOCK];
    for (int64_t i = 0; i < n; i += BLOCK) {
        int64_t m = n - i < BLOCK ? n - i : BLOCK;
        for (int64_t k = 0; k < m; k++)
            at[k] = (i + k) * a_stride;
        tni_gather(raw, b + i * b_stride, m, b_stride, r->itemsize);
        combine(a, at, raw, m);
    }
}

static tn_status read_long(int64_t begin, int64_t end, void *arg)
{
    const tni_slices *r = arg;
    for (int64_t u = begin; u < end; u++) {
        int64_t p = u % r->n, a, b;
        outer_at(r, 1, u / r->n, &a, &b);
        move_run(r->b + b + b_place(r, p), r->b_strides[0], r->a + a + r->a_at[p], r->a_strides[0],
                 r->sizes[0], r->itemsize);
    }
    return TN_OK;
}

/* Whole runs of bytes, past the caches, two at a time: see docs/decisions/0021. */
static tn_status read_past_caches(int64_t begin, int64_t end, void *arg)
{
    const tni_slices *r = arg;
    const size_t run = (size_t)r->sizes[0] * r->itemsize;
    const int64_t ahead = run < FETCH_BYTES / 2 ? FETCH_BYTES / 2 / (int64_t)run * 2 : 2;
    for (int64_t u = begin, count; u < end; u += count) {
        int64_t p = u % r->n, a, b;
        count = p + 1 < r->n && u + 1 < end ? 2 : 1;
        outer_at(r, 1, u / r->n, &a, &b);
        const void *from[2], *next[2];
        void *to[2];
        for (int64_t i = 0; i < count; i++) {
            from[i] = r->a + a + r->a_at[p + i];
            next[i] = r->a + a + r->a_at[p + i + ahead < r->n ? p + i + ahead : r->n - 1];
            to[i] = r->b + b + b_place(r, p + i);
        }
        if (count == 2)
            tni_stream_pair(to, from, run, next);
        else
            tni_stream(to[0], from[0], run, next, 1);
    }
    tni_stream_end();
    return TN_OK;
}

/* Into the caches, in registers; the slice after the next one is fetched meanwhile where that is
 * not at hand already. */
static inline __attribute__((always_inline)) tn_status read_runs_by(const bool fetches,
                                                                    int64_t begin, int64_t end,
                                                                    const tni_slices *r)
{
    const size_t run = (size_t)r->sizes[0] * r->itemsize;
    const tni_kernels *k = tni_cpu_kernels();
    for (int64_t u = begin; u < end; u++) {
        int64_t p = u % r->n, a, b;
        outer_at(r, 1, u / r->n, &a, &b);
        const char *next = r->a + a + r->a_at[p + 2 < r->n ? p + 2 : r->n - 1];
        for (size_t at = 0; fetches && at < run; at += 64)
            __builtin_prefetch(next + at);
        k->copy(r->b + b + b_place(r, p), r->a + a + r->a_at[p], run);
    }
    return TN_OK;
}

static tn_status read_runs(int64_t begin, int64_t end, void *arg)
{
    return read_runs_by(false, begin, end, arg);
}

static tn_status read_far_runs(int64_t begin, int64_t end, void *arg)
{
    return read_runs_by(true, begin, end, arg);
}

/* AMD's last cache takes up what leaves the caches of its cores: a result that fits it, with what
 * was read, costs less there than a way to memory does. */
static bool last_cache_takes_results(void)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    return __builtin_cpu_is("amd");
#else
    return false;
#endif
}

/* Bytes from the first to the last slice of `a`. */
static int64_t span_of(const tni_slices *r)
{
    int64_t low = r->a_at[0], high = low;
    for (int64_t i = 1; i < r->n; i++) {
        low = r->a_at[i] < low ? r->a_at[i] : low;
        high = r->a_at[i] > high ? r->a_at[i] : high;
    }
    return high - low;
}

typedef tn_status (*slices_fn)(int64_t begin, int64_t end, void *arg);

static slices_fn way_to_read(const tni_slices *r, int64_t each)
{
    const int64_t run = r->sizes[0] * (int64_t)r->itemsize;
    const int64_t all = r->n * each * (int64_t)r->itemsize;
    if (r->a_strides[0] != (int64_t)r->itemsize || r->b_strides[0] != (int64_t)r->itemsize ||
        run < FEWEST_FETCHED || all < STREAM_BYTES)
        return read_long;
    if (run < LONG_RUN || all > TAKEN_BYTES || !last_cache_takes_results())
        return read_past_caches;
    const int64_t span = span_of(r);
    if (span + all <= TAKEN_BYTES)
        return read_runs;
    return all + (span < all ? span : all) <= TAKEN_BYTES ? read_far_runs : read_past_caches;
}

/* A unit is some columns of one outer index, in all slices. */
static tn_status write_long(int64_t begin, int64_t end, void *arg)
{
    const tni_slices *r = arg;
    int64_t pieces = (r->sizes[0] + COLUMNS - 1) / COLUMNS;
    tni_combine_fn combine =
        r->what == TNI_SLICES_COMBINE ? tni_combine_find(r->op, r->dtype) : NULL;
    tni_loop_fn add = r->what == TNI_SLICES_COMBINE && r->op == TNI_COMBINE_ADD
                          ? tni_loop_find(tni_cpu_kernels(), TNI_LOOP_ADD, r->dtype)
                          : NULL;
    while (begin < end) {
        int64_t first = begin % pieces, a, b;
        int64_t many = pieces - first < end - begin ? pieces - first : end - begin;
        outer_at(r, 1, begin / pieces, &a, &b);
        a += first * COLUMNS * r->a_strides[0];
        b += first * COLUMNS * r->b_strides[0];
        int64_t n = r->sizes[0] - first * COLUMNS;
        n = n < many * COLUMNS ? n : many * COLUMNS;
        for (int64_t p = 0; p < r->n; p++) {
            char *to = r->a + a + r->a_at[p];
            const char *from = r->b + b + b_place(r, p);
            if (combine)
                combine_run(r, combine, add, to, from, n);
            else
                move_run(to, r->a_strides[0], from, r->b_strides[0], n, r->itemsize);
        }
        begin += many;
    }
    return TN_OK;
}

/* ---- short slices ---- */

static tn_status read_short(int64_t begin, int64_t end, void *arg)
{
    const tni_slices *r = arg;
    _Alignas(16) char raw[BLOCK * 16];
    int64_t blocks = (r->n + BLOCK - 1) / BLOCK;
    for (int64_t u = begin; u < end; u++) {
        int64_t p = u % blocks * BLOCK, a, b;
        int64_t m = r->n - p < BLOCK ? r->n - p : BLOCK;
        outer_at(r, 0, u / blocks, &a, &b);
        char *to = r->b + b;
        if (!r->b_at && r->b_step == (int64_t)r->itemsize) {
            tni_pick(to + p * r->b_step, r->a + a, r->a_at + p, m, r->itemsize);
            continue;
        }
        tni_pick(raw, r->a + a, r->a_at + p, m, r->itemsize);
        if (r->b_at)
            tni_place(to, r->b_at + p, raw, m, r->itemsize);
        else
            tni_scatter(to + p * r->b_step, raw, m, r->b_step, r->itemsize);
    }
    return TN_OK;
}

static tn_status write_short(int64_t begin, int64_t end, void *arg)
{
    const tni_slices *r = arg;
    _Alignas(16) char raw[BLOCK * 16];
    tni_combine_fn combine =
        r->what == TNI_SLICES_COMBINE ? tni_combine_find(r->op, r->dtype) : NULL;
    for (int64_t u = begin; u < end; u++) {
        int64_t a, b;
        outer_at(r, 0, u, &a, &b);
        for (int64_t p = 0; p < r->n; p += BLOCK) {
            int64_t m = r->n - p < BLOCK ? r->n - p : BLOCK;
            if (r->b_at)
                tni_pick(raw, r->b + b, r->b_at + p, m, r->itemsize);
            else
                tni_gather(raw, r->b + b + p * r->b_step, m, r->b_step, r->itemsize);
            if (combine)
                combine(r->a + a, r->a_at + p, raw, m);
            else
                tni_place(r->a + a, r->a_at + p, raw, m, r->itemsize);
        }
    }
    return TN_OK;
}

/* ---- all ---- */

static tn_status share_out(tni_slices *r, int64_t units, int64_t elements_each, tni_pool_fn fn)
{
    int64_t bytes = elements_each * (int64_t)r->itemsize;
    int64_t grain = bytes > 0 && bytes < GRAIN_BYTES ? GRAIN_BYTES / bytes : 1;
    return units <= grain ? fn(0, units, r) : tni_pool_for(units, grain, fn, r);
}

tn_status tni_slices_run(tni_slices *r)
{
    int64_t each = 1;
    for (int d = 0; d < r->ndim; d++)
        each *= r->sizes[d];
    if (each == 0 || r->n == 0)
        return TN_OK;
    merge(r);
    /* Or where the slices of `b` lie closer to each other than their elements do. */
    bool is_short = r->ndim == 0 || (r->sizes[0] < SHORT_ROW && r->sizes[0] < r->n) ||
                    (!r->b_at && r->b_step < r->b_strides[0] && r->n >= SHORT_ROW);
    if (is_short && r->what == TNI_SLICES_READ)
        return share_out(r, each * ((r->n + BLOCK - 1) / BLOCK), r->n < BLOCK ? r->n : BLOCK,
                         read_short);
    if (is_short)
        return share_out(r, each, r->n, write_short);
    int64_t outer = each / r->sizes[0], row = r->sizes[0];
    if (r->what == TNI_SLICES_READ)
        return share_out(r, outer * r->n, row, way_to_read(r, each));
    return share_out(r, outer * ((row + COLUMNS - 1) / COLUMNS),
                     (row < COLUMNS ? row : COLUMNS) * r->n, write_long);
}

bool tni_slices_places(const int64_t *index, int64_t n, int64_t size, int64_t stride, bool wrap,
                       int64_t *at, int64_t *bad)
{
    uint64_t low = wrap ? (uint64_t)size : 0, span = (uint64_t)size + low;
    uint64_t wrong = 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t k = index[i];
        wrong |= (uint64_t)((uint64_t)k + low >= span);
        at[i] = (int64_t)((uint64_t)(k < 0 ? k + size : k) * (uint64_t)stride);
    }
    for (int64_t i = 0; wrong && i < n; i++)
        if ((uint64_t)index[i] + low >= span) {
            *bad = index[i];
            return false;
        }
    return true;
}
