/* SPDX-License-Identifier: MIT */
/* cpu/reduce.c: reductions. An output element is reduced from its elements in the order of memory:
 * either run by run (the reduced dimensions are the fast ones), or many outputs at once, row by row
 * (a kept dimension is the fastest). See Note [Sums] for what a sum is. */
#include "cpu/reduce.h"

#include <math.h>
#include <string.h>
#include "base/pool.h"
#include "core/scalar.h"
#include "cpu/copy.h"
#include "cpu/move.h"
#include "cpu/rows.h"

#define BLOCK       TNI_SUM_BLOCK
#define COLUMNS     256 /* outputs that are reduced together, row by row */
#define ROW_BLOCK   128 /* rows that are added before they go to the double-precision total */
#define MOST_CHUNKS 64
#define TOGETHER    64    /* outputs of one block each whose results are stored together */
#define ROWS_BYTES  16384 /* of rows that are converted together */
#define GRAIN       32768

/* Some dimensions, fastest first. */
typedef struct axes {
    int n;
    int64_t numel;
    int64_t sizes[TN_MAX_DIMS], x[TN_MAX_DIMS], out[TN_MAX_DIMS]; /* strides in bytes */
} axes;

/* What is carried from block to block. A sum of floats is carried in double precision. */
typedef union total {
    double real[2];
    int64_t whole;
    char element[16];
} total;

typedef struct reduce_job {
    tni_reduction what;
    const tni_kernels *kernels;
    tn_dtype x_dtype, read, dtype,
        out_dtype; /* of x, what loops read, of the accumulation, of out */
    size_t x_size, read_size, size, out_size;
    tni_block_fn block;
    tni_rows_fn rows;
    const char *x;
    char *out;
    axes kept, reduced;
    int64_t chunk; /* reduced elements (or rows) that a chunk has; a multiple of the block */
    int64_t chunks;
} reduce_job;

/* ---- planning ---- */

static void axis_add(axes *a, int64_t size, int64_t x, int64_t out)
{
    a->numel *= size;
    if (size == 1)
        return;
    int at = a->n++;
    for (; at > 0 && x < a->x[at - 1]; at--) {
        a->sizes[at] = a->sizes[at - 1];
        a->x[at] = a->x[at - 1];
        a->out[at] = a->out[at - 1];
    }
    a->sizes[at] = size;
    a->x[at] = x;
    a->out[at] = out;
}

static void axes_merge(axes *a)
{
    int last = 0;
    for (int d = 1; d < a->n; d++) {
        if (a->x[d] == a->x[last] * a->sizes[last] && a->out[d] == a->out[last] * a->sizes[last]) {
            a->sizes[last] *= a->sizes[d];
            continue;
        }
        last++;
        a->sizes[last] = a->sizes[d];
        a->x[last] = a->x[d];
        a->out[last] = a->out[d];
    }
    if (a->n > 0)
        a->n = last + 1;
}

/* Of no elements: one axis of none. The sizes beside it may be ones that cannot be multiplied. */
static void axes_none(axes *a)
{
    a->n = 1;
    a->sizes[0] = a->x[0] = a->out[0] = a->numel = 0;
}

static void plan_axes(reduce_job *j, const tn_tensor *x, uint64_t dims, const tn_tensor *out)
{
    bool keepdim = out->ndim == x->ndim, none = x->numel == 0;
    j->kept.n = j->reduced.n = 0;
    j->kept.numel = j->reduced.numel = 1;
    int at = 0;
    if (none)
        axes_none(&j->reduced);
    if (out->numel == 0) {
        axes_none(&j->kept);
        return;
    }
    for (int d = 0; d < x->ndim; d++) {
        bool reduced = dims & (UINT64_C(1) << d);
        int64_t stride = none ? 0 : x->strides[d] * (int64_t)j->x_size;
        if (!reduced)
            axis_add(&j->kept, x->sizes[d], stride, out->strides[at] * (int64_t)j->out_size);
        else if (!none)
            axis_add(&j->reduced, x->sizes[d], stride, 0);
        at += !reduced || keepdim;
    }
    axes_merge(&j->kept);
    axes_merge(&j->reduced);
}

/* Offsets of index @p i in these axes. */
static inline void axes_at(const axes *a, int64_t i, int64_t *x, int64_t *out)
{
    *x = *out = 0;
    for (int d = 0; d < a->n; d++) {
        int64_t at = d + 1 < a->n ? i % a->sizes[d] : i;
        if (d + 1 < a->n)
            i /= a->sizes[d];
        *x += at * a->x[d];
        *out += at * a->out[d];
    }
}

/* ---- totals ---- */

static bool is_sum(const reduce_job *j)
{
    return j->what < TNI_REDUCE_PRODUCT;
}

static void total_clear(total *t)
{
    memset(t, 0, sizeof *t);
}

/* Take one block's result, an element of j->dtype, into the total. @p first: of an extreme, nothing
 * is there yet. */
static void total_take(const reduce_job *j, total *t, const void *element, bool first)
{
    if (j->what == TNI_REDUCE_PRODUCT && !first) {
        if (j->dtype == TN_DTYPE_I64)
            t->whole = (int64_t)((uint64_t)t->whole * *(const uint64_t *)element);
        else
            t->real[0] *= *(const double *)element;
        return;
    }
    switch (is_sum(j) ? j->dtype : TN_DTYPE_NONE) {
    case TN_DTYPE_F32:
        t->real[0] += (double)*(const float *)element;
        return;
    case TN_DTYPE_F64:
        t->real[0] += *(const double *)element;
        return;
    case TN_DTYPE_C64:
        t->real[0] += (double)((const float *)element)[0];
        t->real[1] += (double)((const float *)element)[1];
        return;
    case TN_DTYPE_C128:
        t->real[0] += ((const double *)element)[0];
        t->real[1] += ((const double *)element)[1];
        return;
    case TN_DTYPE_I64:
        t->whole = (int64_t)((uint64_t)t->whole + *(const uint64_t *)element);
        return;
    default:
        if (first)
            memcpy(t->element, element, j->size);
        else
            j->rows(t->element, element, 1);
    }
}

static void total_merge(const reduce_job *j, total *t, const total *other, bool first)
{
    if (!is_sum(j)) {
        total_take(j, t, other->element, first);
    } else if (j->dtype == TN_DTYPE_I64) {
        t->whole = (int64_t)((uint64_t)t->whole + (uint64_t)other->whole);
    } else {
        t->real[0] += other->real[0];
        t->real[1] += other->real[1];
    }
}

/* From sums to results, where that takes more than rounding. */
static void finish(const reduce_job *j, double *sums, int64_t n)
{
    if (j->what == TNI_REDUCE_MEAN)
        for (int64_t i = 0; i < n; i++)
            sums[i] /= (double)j->reduced.numel;
    if (j->what == TNI_REDUCE_SQUARES)
        for (int64_t i = 0; i < n; i++)
            sums[i] = sqrt(sums[i]);
}

static void total_store(const reduce_job *j, total *t, char *out)
{
    tn_dtype dtype = j->dtype;
    if (is_sum(j) && dtype != TN_DTYPE_I64) {
        bool complex = tn_dtype_is_complex(dtype);
        finish(j, t->real, 2);
        dtype = complex ? TN_DTYPE_C128 : TN_DTYPE_F64;
    }
    tni_convert(j->kernels, j->out_dtype, out, dtype, t->element, 1);
}

/* ---- run by run ---- */

/* Elements [begin, end) of one output's reduction into a total. @p begin is a multiple of BLOCK. */
static void reduce_runs(const reduce_job *j, const char *x, int64_t begin, int64_t end, total *t)
{
    _Alignas(64) char buffer[BLOCK * 16], raw[BLOCK * 16];
    _Alignas(16) char element[16];
    const axes *a = &j->reduced;
    bool contiguous = a->n <= 1 && (a->n == 0 || a->x[0] == (int64_t)j->x_size);
    total_clear(t);
    for (int64_t i = begin; i < end; i += BLOCK) {
        int64_t n = end - i < BLOCK ? end - i : BLOCK;
        const void *from = x + i * (int64_t)j->x_size;
        if (!contiguous) {
            int64_t row = a->sizes[0], at = i;
            char *to = raw;
            for (int64_t left = n; left > 0;) {
                int64_t offset, unused, m = row - at % row;
                if (m > left)
                    m = left;
                axes_at(a, at, &offset, &unused);
                tni_gather(to, x + offset, m, a->x[0], j->x_size);
                to += (size_t)m * j->x_size;
                at += m;
                left -= m;
            }
            from = raw;
        }
        if (j->x_dtype != j->read) {
            tni_convert(j->kernels, j->read, buffer, j->x_dtype, from, n);
            from = buffer;
        }
        j->block(element, from, n);
        total_take(j, t, element, i == begin);
    }
}

/* All chunks of one output, one after the other: the same sums as when they are shared out. */
static void reduce_one(const reduce_job *j, const char *x, total *t)
{
    int64_t n = j->reduced.numel;
    if (j->chunks <= 1) {
        reduce_runs(j, x, 0, n, t);
        return;
    }
    total_clear(t);
    for (int64_t c = 0; c < j->chunks; c++) {
        total part;
        int64_t begin = c * j->chunk, end = begin + j->chunk < n ? begin + j->chunk : n;
        reduce_runs(j, x, begin, end, &part);
        total_merge(j, t, &part, c == 0);
    }
}

/* One contiguous block each. */
static bool is_short(const reduce_job *j)
{
    const axes *r = &j->reduced;
    return r->numel > 0 && r->numel <= BLOCK &&
           (r->n == 0 || (r->n == 1 && r->x[0] == (int64_t)j->x_size));
}

/* One contiguous block each, of the dtype of out: what the block gives is the result. */
static bool is_simple(const reduce_job *j)
{
    return is_short(j) && j->what != TNI_REDUCE_MEAN && j->what != TNI_REDUCE_SQUARES &&
           j->x_dtype == j->dtype && j->out_dtype == j->dtype;
}

static tn_status simple_outputs(int64_t begin, int64_t end, void *arg)
{
    const reduce_job *j = arg;
    const axes *k = &j->kept;
    int64_t width = k->n > 0 ? k->sizes[0] : 1, n = j->reduced.numel;
    for (int64_t i = begin; i < end;) {
        int64_t x, out, m = width - i % width;
        axes_at(k, i, &x, &out);
        if (m > end - i)
            m = end - i;
        for (int64_t c = 0; c < m; c++) {
            j->block(j->out + out, j->x + x, n);
            x += k->x[0];
            out += k->out[0];
        }
        i += m;
    }
    return TN_OK;
}

/* Whether totals are in double precision: integers wrap wherever they are added, and of extremes
 * the order does not matter. */
static bool has_double_totals(const reduce_job *j)
{
    return is_sum(j) && j->dtype != TN_DTYPE_I64;
}

/* n results of @p dtype to where they belong. */
static void store_columns(const reduce_job *j, char *out, tn_dtype dtype, const void *from,
                          int64_t n, char *raw)
{
    bool run = n == 1 || j->kept.out[0] == (int64_t)j->out_size;
    tni_convert(j->kernels, j->out_dtype, run ? out : raw, dtype, from, n);
    if (!run)
        tni_scatter(out, raw, n, j->kept.out[0], j->out_size);
}

/* Results of blocks, n neighbours, rounded and stored together. */
static void store_blocks(const reduce_job *j, char *out, const void *results, int64_t n)
{
    _Alignas(64) char raw[TOGETHER * 16];
    _Alignas(64) double totals[TOGETHER * 2];
    if (!has_double_totals(j)) {
        store_columns(j, out, j->dtype, results, n, raw);
        return;
    }
    bool complex = tn_dtype_is_complex(j->dtype);
    int64_t parts = complex ? 2 * n : n;
    if (j->dtype == TN_DTYPE_F64 || j->dtype == TN_DTYPE_C128)
        memcpy(totals, results, (size_t)parts * sizeof(double));
    else
        for (int64_t i = 0; i < parts; i++)
            totals[i] = (double)((const float *)results)[i];
    finish(j, totals, parts);
    store_columns(j, out, complex ? TN_DTYPE_C128 : TN_DTYPE_F64, totals, n, raw);
}

/* Outputs of one block each that need more than the block: some at a time are converted before and
 * after. */
static tn_status short_outputs(int64_t begin, int64_t end, void *arg)
{
    _Alignas(64) char buffer[BLOCK * 16], results[TOGETHER * 16];
    const reduce_job *j = arg;
    const axes *k = &j->kept;
    int64_t width = k->n > 0 ? k->sizes[0] : 1, n = j->reduced.numel;
    int64_t step = k->n > 0 ? k->x[0] : 0, row = n * (int64_t)j->read_size;
    bool converted = j->x_dtype != j->read, adjacent = step == n * (int64_t)j->x_size;
    int64_t most = BLOCK * 16 / row;
    most = most < TOGETHER ? most : TOGETHER;
    for (int64_t i = begin, m; i < end; i += m) {
        int64_t x, out;
        m = width - i % width;
        axes_at(k, i, &x, &out);
        m = m < end - i ? m : end - i;
        m = m < most ? m : most;
        const char *from = j->x + x;
        if (converted && adjacent)
            tni_convert(j->kernels, j->read, buffer, j->x_dtype, from, m * n);
        for (int64_t c = 0; c < m; c++) {
            if (converted && !adjacent)
                tni_convert(j->kernels, j->read, buffer + c * row, j->x_dtype, from + c * step, n);
            j->block(results + (size_t)c * j->size, converted ? buffer + c * row : from + c * step,
                     n);
        }
        store_blocks(j, j->out + out, results, m);
    }
    return TN_OK;
}

static tn_status runs_of_outputs(int64_t begin, int64_t end, void *arg)
{
    const reduce_job *j = arg;
    if (is_simple(j))
        return simple_outputs(begin, end, arg);
    if (is_short(j))
        return short_outputs(begin, end, arg);
    for (int64_t i = begin; i < end; i++) {
        int64_t x, out;
        total t;
        axes_at(&j->kept, i, &x, &out);
        reduce_one(j, j->x + x, &t);
        total_store(j, &t, j->out + out);
    }
    return TN_OK;
}

typedef struct chunk_job {
    const reduce_job *job;
    const char *x;
    total partial[MOST_CHUNKS];
} chunk_job;

static tn_status runs_of_chunks(int64_t begin, int64_t end, void *arg)
{
    chunk_job *c = arg;
    const reduce_job *j = c->job;
    for (int64_t i = begin; i < end; i++) {
        int64_t last = (i + 1) * j->chunk;
        reduce_runs(j, c->x, i * j->chunk, last < j->reduced.numel ? last : j->reduced.numel,
                    &c->partial[i]);
    }
    return TN_OK;
}

/* Few outputs of many elements each: the chunks of one are shared out. */
static tn_status by_chunks(const reduce_job *j)
{
    for (int64_t i = 0; i < j->kept.numel; i++) {
        int64_t x, out;
        axes_at(&j->kept, i, &x, &out);
        chunk_job c = {.job = j, .x = j->x + x};
        TN_TRY(tni_pool_for(j->chunks, 1, runs_of_chunks, &c));
        total t;
        total_clear(&t);
        for (int64_t k = 0; k < j->chunks; k++)
            total_merge(j, &t, &c.partial[k], k == 0);
        total_store(j, &t, j->out + out);
    }
    return TN_OK;
}

/* ---- row by row ---- */

/* Where row r is. */
static const char *row_at(const reduce_job *j, const char *x, int64_t r)
{
    int64_t offset, unused;
    axes_at(&j->reduced, r, &offset, &unused);
    return x + offset;
}

/* Rows [r, r + m) of n outputs' elements, one after the other, of the dtype that loops read. */
static void rows_ready(const reduce_job *j, const char *x, int64_t r, int64_t m, int64_t n,
                       char *raw, char *buffer)
{
    bool run = j->kept.x[0] == (int64_t)j->x_size;
    if (run && j->reduced.n == 1 && j->reduced.x[0] == n * (int64_t)j->x_size) {
        tni_convert(j->kernels, j->read, buffer, j->x_dtype, row_at(j, x, r), m * n);
        return;
    }
    for (int64_t i = 0; i < m; i++, buffer += (size_t)n * j->read_size) {
        const char *from = row_at(j, x, r + i);
        if (!run) {
            tni_gather(raw, from, n, j->kept.x[0], j->x_size);
            from = raw;
        }
        tni_convert(j->kernels, j->read, buffer, j->x_dtype, from, n);
    }
}

static bool has_column_sums(const reduce_job *j)
{
    return j->what <= TNI_REDUCE_MEAN && (j->dtype == TN_DTYPE_F32 || j->dtype == TN_DTYPE_F64);
}

/* Rows of floats as far apart as each other, of neighbours: there is a loop for all of them. */
static bool is_direct(const reduce_job *j)
{
    return has_column_sums(j) && j->x_dtype == j->dtype && j->kept.x[0] == (int64_t)j->size &&
           j->reduced.n == 1 && j->reduced.x[0] % (int64_t)j->size == 0;
}

/* What a block of rows made of n columns, added to their totals. */
static void add_columns(const reduce_job *j, double *totals, const void *acc, int64_t n)
{
    int64_t parts = tn_dtype_is_complex(j->dtype) ? 2 * n : n;
    if (j->dtype == TN_DTYPE_F64 || j->dtype == TN_DTYPE_C128)
        for (int64_t i = 0; i < parts; i++)
            totals[i] += ((const double *)acc)[i];
    else
        for (int64_t i = 0; i < parts; i++)
            totals[i] += (double)((const float *)acc)[i];
}

/* Rows [begin, end) of n columns into accumulators, which hold nothing yet when @p first. */
static void take_rows(const reduce_job *j, const char *x, int64_t begin, int64_t end, int64_t n,
                      void *acc, bool first, char *raw, char *buffer)
{
    bool ready = j->x_dtype == j->read && j->kept.x[0] == (int64_t)j->x_size;
    int64_t bytes = n * (int64_t)j->read_size, most = ready ? 1 : ROWS_BYTES / bytes;
    bool copied = j->what <= TNI_REDUCE_MEAN || j->what >= TNI_REDUCE_MAX;
    if (first && j->what == TNI_REDUCE_PRODUCT) {
        double one = 1;
        int64_t whole = 1;
        for (int64_t i = 0; i < n; i++)
            memcpy((char *)acc + 8 * i, j->dtype == TN_DTYPE_I64 ? (void *)&whole : (void *)&one,
                   8);
    } else if (first && !copied) {
        memset(acc, 0, (size_t)n * j->size);
    }
    for (int64_t r = begin, m; r < end; r += m) {
        m = end - r < most ? end - r : most;
        const char *row = ready ? row_at(j, x, r) : buffer;
        if (!ready)
            rows_ready(j, x, r, m, n, raw, buffer);
        for (int64_t i = 0; i < m; i++, row += bytes) {
            if (first && copied && r == begin && i == 0)
                memcpy(acc, row, (size_t)bytes);
            else
                j->rows(acc, row, n);
        }
    }
}

/* The same for sums of floats that are not at hand: some rows at a time. */
static void sum_rows_ready(const reduce_job *j, const char *x, int64_t n, double *totals, char *raw,
                           char *buffer)
{
    int64_t rows = j->reduced.numel, most = ROWS_BYTES / (n * (int64_t)j->read_size);
    const tni_rows_loops *loops = tni_rows_of(j->kernels, j->dtype);
    for (int64_t r = 0; r < rows; r += most) {
        int64_t m = rows - r < most ? rows - r : most;
        rows_ready(j, x, r, m, n, raw, buffer);
        loops->columns.sums(totals, buffer, m, n, n);
    }
}

/* n <= COLUMNS neighbours along the fastest kept dimension. */
static void reduce_columns(const reduce_job *j, const char *x, char *out, int64_t n)
{
    _Alignas(64) char raw[COLUMNS * 16], buffer[ROWS_BYTES], acc[COLUMNS * 16];
    _Alignas(64) double totals[COLUMNS * 2];
    int64_t rows = j->reduced.numel;
    if (!has_double_totals(j)) {
        take_rows(j, x, 0, rows, n, acc, true, raw, buffer);
        store_columns(j, out, j->dtype, acc, n, raw);
        return;
    }
    memset(totals, 0, sizeof totals);
    if (is_direct(j)) {
        tni_rows_of(j->kernels, j->dtype)
            ->columns.sums(totals, x, rows, j->reduced.x[0] / (int64_t)j->size, n);
    } else if (has_column_sums(j) && j->x_dtype != j->read) {
        sum_rows_ready(j, x, n, totals, raw, buffer);
    } else {
        for (int64_t begin = 0; begin < rows; begin += ROW_BLOCK) {
            int64_t end = rows - begin < ROW_BLOCK ? rows : begin + ROW_BLOCK;
            take_rows(j, x, begin, end, n, acc, true, raw, buffer);
            add_columns(j, totals, acc, n);
        }
    }
    bool complex = tn_dtype_is_complex(j->dtype);
    finish(j, totals, complex ? 2 * n : n);
    store_columns(j, out, complex ? TN_DTYPE_C128 : TN_DTYPE_F64, totals, n, raw);
}

/* Units of COLUMNS outputs; those of one row of the fastest kept dimension come together. */
static tn_status columns_of_units(int64_t begin, int64_t end, void *arg)
{
    const reduce_job *j = arg;
    int64_t width = j->kept.sizes[0], units = (width + COLUMNS - 1) / COLUMNS;
    for (int64_t i = begin; i < end; i++) {
        int64_t x, out, first = i % units * COLUMNS;
        axes_at(&j->kept, i / units * width + first, &x, &out);
        reduce_columns(j, j->x + x, j->out + out,
                       width - first < COLUMNS ? width - first : COLUMNS);
    }
    return TN_OK;
}

/* ---- all ---- */

/* Whether outputs that are neighbours in memory are better reduced together. The first row is what
 * accumulators begin with: there must be one. */
static bool row_by_row(const reduce_job *j)
{
    const axes *k = &j->kept, *r = &j->reduced;
    return k->n > 0 && r->n > 0 && r->numel > 0 && k->x[0] < r->x[0] && k->sizes[0] >= 4;
}

static tn_dtype accumulation(tni_reduction what, tn_dtype x, tn_dtype out)
{
    tn_dtype dtype = what == TNI_REDUCE_MAX || what == TNI_REDUCE_MIN ? x : out;
    if (dtype == TN_DTYPE_F16 || dtype == TN_DTYPE_BF16)
        return TN_DTYPE_F32;
    if ((what == TNI_REDUCE_SUM || what == TNI_REDUCE_PRODUCT) && tn_dtype_is_integral(dtype, true))
        return TN_DTYPE_I64;
    return dtype;
}

static tn_status reduce_go(reduce_job *j)
{
    int64_t outputs = j->kept.numel, n = j->reduced.numel;
    if (row_by_row(j)) {
        int64_t units = (j->kept.sizes[0] + COLUMNS - 1) / COLUMNS * (outputs / j->kept.sizes[0]);
        int64_t work = n * (j->kept.sizes[0] < COLUMNS ? j->kept.sizes[0] : COLUMNS);
        int64_t grain = work < GRAIN ? GRAIN / (work + 1) + 1 : 1;
        return tni_pool_for(units, grain, columns_of_units, j);
    }
    /* Chunks depend on n alone, whether they are shared out or not. */
    int64_t blocks = (n + BLOCK - 1) / BLOCK;
    int64_t each = (blocks + MOST_CHUNKS - 1) / MOST_CHUNKS;
    if (each < GRAIN / BLOCK)
        each = GRAIN / BLOCK;
    j->chunk = each * BLOCK;
    j->chunks = (n + j->chunk - 1) / j->chunk;
    if (j->chunks > 1 && outputs < 16)
        return by_chunks(j);
    int64_t grain = n < GRAIN ? GRAIN / (n + 1) + 1 : 1;
    return outputs <= grain ? runs_of_outputs(0, outputs, j)
                            : tni_pool_for(outputs, grain, runs_of_outputs, j);
}

static bool adds_up(tni_reduction what)
{
    return what <= TNI_REDUCE_KNOWN || what == TNI_REDUCE_PRODUCT;
}

/* Bits that a dtype has for the digits of a number, or of a part of one. */
static int digits(tn_dtype dtype)
{
    switch (dtype) {
    case TN_DTYPE_F16:
        return 11;
    case TN_DTYPE_BF16:
        return 8;
    case TN_DTYPE_F32:
    case TN_DTYPE_C64:
        return 24;
    case TN_DTYPE_F64:
    case TN_DTYPE_C128:
        return 53;
    case TN_DTYPE_BOOL:
        return 1;
    default:
        return 8 * (int)tni_dtype_size(dtype);
    }
}

/* Whether each element of dtype @p x is one of @p dtype, but for bits of whole numbers that fall
 * away from a sum as well, and bool, for which elements are compared. */
static bool holds(tn_dtype dtype, tn_dtype x)
{
    if (dtype == x || dtype == TN_DTYPE_BOOL)
        return true;
    if (tn_dtype_is_integral(dtype, true))
        return tn_dtype_is_integral(x, true);
    return digits(x) <= digits(dtype) && !(dtype == TN_DTYPE_F16 && x == TN_DTYPE_BF16);
}

tn_status tni_in_dtype(const tn_tensor *x, tn_dtype dtype, tn_dtype read, tn_tensor **made)
{
    if (TNI_LIKELY(dtype == read || holds(dtype, (tn_dtype)x->dtype))) {
        *made = tn_tensor_ref((tn_tensor *)(uintptr_t)x);
        return TN_OK;
    }
    TN_AUTO(tn_tensor) rounded = NULL;
    TN_TRY(tni_tensor_new(x->ndim, x->sizes, NULL, dtype, TN_CPU, &rounded));
    TN_TRY(tni_copy_cpu(rounded, x));
    *made = TN_MOVE(rounded);
    return TN_OK;
}

tn_status tni_reduce(tni_reduction what, const tn_tensor *x, uint64_t dims, tn_tensor *out)
{
    if (out->numel == 0)
        return TN_OK;
    reduce_job j = {.what = what, .kernels = tni_cpu_kernels()};
    j.x_dtype = (tn_dtype)x->dtype;
    j.out_dtype = (tn_dtype)out->dtype;
    j.read = j.dtype = accumulation(what, j.x_dtype, j.out_dtype);
    TN_AUTO(tn_tensor) rounded = NULL;
    if (TNI_UNLIKELY(j.read != j.out_dtype && adds_up(what))) {
        TN_TRY(tni_in_dtype(x, j.out_dtype, j.read, &rounded));
        x = rounded;
        j.x_dtype = (tn_dtype)x->dtype;
    }
    if (what == TNI_REDUCE_PRODUCT && j.dtype != TN_DTYPE_I64)
        j.dtype = TN_DTYPE_F64;
    j.x_size = tni_dtype_size(j.x_dtype);
    j.read_size = tni_dtype_size(j.read);
    j.size = tni_dtype_size(j.dtype);
    j.out_size = tni_dtype_size(j.out_dtype);
    const tni_reduce_table *k = j.kernels->reduce;
    const tni_block_fn *blocks[] = {k->sum_block,  k->sum_block,    k->known_block,
                                    k->size_block, k->square_block, k->product_block,
                                    k->max_block,  k->min_block};
    const tni_rows_fn *rows[] = {k->sum_rows,    k->sum_rows,     k->known_rows, k->size_rows,
                                 k->square_rows, k->product_rows, k->max_rows,   k->min_rows};
    j.block = blocks[what][j.read];
    j.rows = rows[what][j.read];
    TN_CHECK(j.block && j.rows, TN_UNSUPPORTED, "reduction not implemented for '%s'",
             tni_dtype_text(j.x_dtype));
    j.x = x->data;
    j.out = out->data;
    plan_axes(&j, x, dims, out);
    return reduce_go(&j);
}
