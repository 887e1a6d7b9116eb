/* SPDX-License-Identifier: MIT */
/* cpu/gather.c: gather, and scatter with its reductions: an index for each element along one
 * dimension. Lines along that dimension do not meet, so threads share them out, and within a line
 * elements are taken in order: of equal places the last one wins. Where an index is the same for
 * all of a slice, slices are moved instead (cpu/slices.h). */
#include <math.h>
#include <string.h>
#include "base/pool.h"
#include "core/scalar.h"
#include "cpu/copy.h"
#include "cpu/hit_rows.h"
#include "cpu/move.h"
#include "cpu/ready.h"
#include "cpu/slices.h"
#include "gen/cpu.h"
#include "tenon/ops.h"

#define BLOCK   512
#define GRAIN   16384
#define COLUMNS 512

/* `a` is indexed, `b` goes along with the index. Strides of a and b are in bytes. The last two
 * dimensions of the walk are the indexed one and the row; the others count lines. */
typedef struct job {
    bool read; /* b = a[index], else a[index] = b */
    tni_combine_fn combine;
    size_t itemsize;
    const int64_t *index;
    char *a;
    char *b;
    int ndim;
    int64_t sizes[TN_MAX_DIMS], a_strides[TN_MAX_DIMS], b_strides[TN_MAX_DIMS],
        index_strides[TN_MAX_DIMS];
    int64_t k_n, k_index, k_a, k_b;         /* along the indexed dimension */
    int64_t row_n, row_index, row_a, row_b; /* along the last other one; 1 element without one */
    int64_t lines;
} job;

static int64_t size_at(const tn_tensor *t, int d)
{
    return t->ndim ? t->sizes[d] : 1;
}
static int64_t stride_at(const tn_tensor *t, int d)
{
    return t && t->ndim ? t->strides[d] : 0;
}

static void plan(job *j, tn_tensor *a, tn_tensor *b, const tn_tensor *index, int dim)
{
    int ndim = index->ndim ? index->ndim : 1;
    int64_t item = (int64_t)tni_itemsize(a), index_step = 1;
    j->itemsize = (size_t)item;
    j->a = a->data;
    j->b = b ? b->data : NULL;
    j->index = index->data;
    j->ndim = 0;
    j->lines = 1;
    j->row_n = 1;
    j->row_index = j->row_a = j->row_b = 0;
    bool has_row = false;
    for (int d = ndim - 1; d >= 0; d--) {
        int64_t size = size_at(index, d);
        int64_t a_stride = stride_at(a, d) * item, b_stride = stride_at(b, d) * item;
        if (d == dim) {
            j->k_n = size;
            j->k_index = index_step;
            j->k_a = a_stride;
            j->k_b = b_stride;
        } else if (!has_row && dim != ndim - 1) {
            has_row = true;
            j->row_n = size;
            j->row_index = index_step;
            j->row_a = a_stride;
            j->row_b = b_stride;
        } else {
            int at = j->ndim++;
            j->sizes[at] = size;
            j->index_strides[at] = index_step;
            j->a_strides[at] = a_stride;
            j->b_strides[at] = b_stride;
            j->lines *= size;
        }
        index_step *= size;
    }
}

static void line_at(const job *j, int64_t i, int64_t *index, int64_t *a, int64_t *b)
{
    *index = *a = *b = 0;
    for (int d = 0; d < j->ndim; d++) {
        int64_t at = i % j->sizes[d];
        i /= j->sizes[d];
        *index += at * j->index_strides[d];
        *a += at * j->a_strides[d];
        *b += at * j->b_strides[d];
    }
}

/* n elements of which element i has its index at index[i * index_step], its own place i * a_own in
 * a besides, and i * b_own in b. */
static void move(const job *j, const int64_t *index, int64_t index_step, char *a, int64_t a_own,
                 char *b, int64_t b_own, int64_t n)
{
    _Alignas(16) char raw[BLOCK * 16];
    int64_t at[BLOCK];
    /* Elements side by side: vectors shift 64 bits, but do not multiply them. */
    bool dense = index_step == 1 && a_own == 0 && j->k_a == (int64_t)j->itemsize;
    int shift = __builtin_ctz((unsigned)j->itemsize);
    for (int64_t i = 0; i < n; i += BLOCK) {
        int64_t m = n - i < BLOCK ? n - i : BLOCK;
        const int64_t *x = index + i * index_step;
        if (dense)
            for (int64_t k = 0; k < m; k++)
                at[k] = (int64_t)((uint64_t)x[k] << shift);
        else if (index_step == 1 && a_own == 0)
            for (int64_t k = 0; k < m; k++)
                at[k] = x[k] * j->k_a;
        else
            for (int64_t k = 0; k < m; k++)
                at[k] = x[k * index_step] * j->k_a + (i + k) * a_own;
        char *run = b + i * b_own;
        if (j->read && b_own == (int64_t)j->itemsize) {
            tni_pick(run, a, at, m, j->itemsize);
        } else if (j->read) {
            tni_pick(raw, a, at, m, j->itemsize);
            tni_scatter(run, raw, m, b_own, j->itemsize);
        } else {
            const char *from = run;
            if (b_own != (int64_t)j->itemsize) {
                tni_gather(raw, run, m, b_own, j->itemsize);
                from = raw;
            }
            if (j->combine)
                j->combine(a, at, from, m);
            else
                tni_place(a, at, from, m, j->itemsize);
        }
    }
}

/* A unit is a line where the indexed dimension is the last; reading, else, one row of a line. */
static tn_status read_units(int64_t begin, int64_t end, void *arg)
{
    const job *j = arg;
    bool lines = j->row_n == 1;
    for (int64_t u = begin; u < end; u++) {
        int64_t index, a, b;
        line_at(j, lines ? u : u / j->k_n, &index, &a, &b);
        if (lines) {
            move(j, j->index + index, j->k_index, j->a + a, 0, j->b + b, j->k_b, j->k_n);
        } else {
            int64_t k = u % j->k_n;
            move(j, j->index + index + k * j->k_index, j->row_index, j->a + a, j->row_a,
                 j->b + b + k * j->k_b, j->row_b, j->row_n);
        }
    }
    return TN_OK;
}

/* Writing, a unit is a line, or some columns of all rows of a line. */
static tn_status write_units(int64_t begin, int64_t end, void *arg)
{
    const job *j = arg;
    int64_t pieces = (j->row_n + COLUMNS - 1) / COLUMNS;
    for (int64_t u = begin; u < end; u++) {
        int64_t index, a, b, first = u % pieces * COLUMNS;
        int64_t n = j->row_n - first < COLUMNS ? j->row_n - first : COLUMNS;
        line_at(j, u / pieces, &index, &a, &b);
        if (j->row_n == 1) {
            move(j, j->index + index, j->k_index, j->a + a, 0, j->b + b, j->k_b, j->k_n);
            continue;
        }
        index += first * j->row_index;
        a += first * j->row_a;
        b += first * j->row_b;
        for (int64_t k = 0; k < j->k_n; k++)
            move(j, j->index + index + k * j->k_index, j->row_index, j->a + a, j->row_a,
                 j->b + b + k * j->k_b, j->row_b, n);
    }
    return TN_OK;
}

static tn_status run(job *j)
{
    int64_t pieces = (j->row_n + COLUMNS - 1) / COLUMNS;
    int64_t units = j->lines, each = j->k_n;
    if (j->read && j->row_n > 1) {
        units = j->lines * j->k_n;
        each = j->row_n;
    } else if (j->row_n > 1) {
        units = j->lines * pieces;
        each = j->k_n * (j->row_n < COLUMNS ? j->row_n : COLUMNS);
    }
    int64_t grain = each < GRAIN ? GRAIN / each : 1;
    tni_pool_fn fn = j->read ? read_units : write_units;
    return units <= grain ? fn(0, units, j) : tni_pool_for(units, grain, fn, j);
}

/* Before anything is written. */
typedef struct range_job {
    const int64_t *index;
    int64_t size;
    int dim;
} range_job;

static tn_status check_piece(int64_t begin, int64_t end, void *arg)
{
    const range_job *j = arg;
    uint64_t signs = 0, size = (uint64_t)j->size;
    /* Negative, or more than size - 1: one of two signs says so, and vectors have no comparison. */
    for (int64_t i = begin; i < end; i++)
        signs |= (uint64_t)j->index[i] | (size - 1 - (uint64_t)j->index[i]);
    for (int64_t i = begin; signs >> 63 && i < end; i++)
        TN_CHECK((uint64_t)j->index[i] < size, TN_INVALID,
                 "index %lld is out of bounds for dimension %d with size %lld",
                 (long long)j->index[i], j->dim, (long long)j->size);
    return TN_OK;
}

static tn_status check_range(const tn_tensor *index, int64_t size, int dim)
{
    range_job j = {index->data, size, dim};
    return tni_pool_for(index->numel, 2 * GRAIN, check_piece, &j);
}

static tn_status prepare(tn_tensor *self, int64_t dim, tn_tensor *index, int *at, tn_tensor **run)
{
    TN_AUTO(tn_tensor) values = NULL;
    TN_TRY(tni_wrap_dim(dim, self->ndim, at));
    TN_TRY(tni_index_run(index, &values));
    TN_TRY(check_range(values, size_at(self, *at), *at));
    *run = TN_MOVE(values);
    return TN_OK;
}

/* ---- one index for a whole slice ---- */

/* Whether the index changes along @p dim alone, as one that was expanded does: slices of the others
 * are then moved whole, and only so many indices are read. */
static bool is_same_across(const tn_tensor *index, int dim)
{
    bool some = false;
    for (int d = 0; d < index->ndim; d++) {
        if (d == dim || index->sizes[d] == 1)
            continue;
        if (index->strides[d] != 0)
            return false;
        some = true;
    }
    return some;
}

/* `a` is indexed, `b` goes along with the index. @p before is copied into a first, unless it is a.
 */
static tn_status move_slices(tni_slices_what what, tni_combination op, tn_tensor *a, tn_tensor *b,
                             tn_tensor *index, int dim, const tn_tensor *before)
{
    TN_AUTO(tn_tensor) column = NULL;
    TN_AUTO(tn_tensor) values = NULL;
    TN_AUTO(tn_tensor) at = NULL;
    int64_t n = index->sizes[dim], item = (int64_t)tni_itemsize(a);
    TN_TRY(tni_tensor_alias(index, 1, &n, &index->strides[dim], index->offset, &column));
    TN_TRY(tni_index_run(column, &values));
    TN_TRY(check_range(values, a->sizes[dim], dim));
    if (before != a)
        TN_TRY(tni_copy_cpu(a, before));
    TN_TRY(tni_tensor_new(1, &n, NULL, TN_DTYPE_I64, TN_CPU, &at));
    const int64_t *value = values->data;
    int64_t *place = at->data;
    for (int64_t i = 0; i < n; i++)
        place[i] = value[i] * a->strides[dim] * item;
    tni_slices r = {.what = what,
                    .op = op,
                    .dtype = (tn_dtype)a->dtype,
                    .itemsize = (size_t)item,
                    .a = a->data,
                    .a_at = place,
                    .b = b->data,
                    .b_step = b->strides[dim] * item,
                    .n = n};
    for (int d = 0; d < index->ndim; d++)
        if (d != dim)
            tni_slices_dim(&r, index->sizes[d], a->strides[d] * item, b->strides[d] * item);
    return tni_slices_run(&r);
}

tn_status tni_cpu_gather(tn_tensor *self, int64_t dim, tn_tensor *index, bool sparse_grad,
                         tn_tensor *out)
{
    (void)sparse_grad;
    int at;
    TN_AUTO(tn_tensor) values = NULL;
    if (index->numel == 0)
        return TN_OK;
    TN_TRY(tni_wrap_dim(dim, self->ndim, &at));
    if (is_same_across(index, at))
        return move_slices(TNI_SLICES_READ, TNI_COMBINE_ADD, self, out, index, at, self);
    TN_TRY(prepare(self, dim, index, &at, &values));
    job j = {.read = true};
    plan(&j, self, out, values, at);
    return run(&j);
}

/* ---- scatter ---- */

/* What is written takes the place of what was there. */
#define REPLACE TNI_COMBINE_LIMIT

static tn_status scatter(tn_tensor *self, int64_t dim, tn_tensor *index, tn_tensor *src,
                         tni_combination op, tn_tensor *out);

/* Sums of halves, rounded once: a bfloat16 would stop growing at 256 times what is added. */
static tn_status scatter_widened(tn_tensor *self, int dim, tn_tensor *index, tn_tensor *src,
                                 tn_tensor *out)
{
    TN_AUTO(tn_tensor) sums = NULL;
    TN_AUTO(tn_tensor) terms = NULL;
    TN_AUTO(tn_tensor) rows = NULL;
    TN_AUTO(tn_tensor) ranks = NULL;
    TN_TRY(tni_ready(src, TN_DTYPE_F32, &terms));
    if (self->ndim > 0)
        TN_TRY(tni_hit_rows_read(self, dim, index, &rows, &ranks, &sums));
    if (rows) {
        TN_TRY(scatter(sums, dim, ranks, terms, TNI_COMBINE_ADD, sums));
        if (out != self)
            TN_TRY(tni_copy_cpu(out, self));
        return tni_hit_rows_write(rows, sums, dim, out);
    }
    TN_TRY(tni_ready(self, TN_DTYPE_F32, &sums));
    TN_TRY(scatter(sums, dim, index, terms, TNI_COMBINE_ADD, sums));
    return tni_copy_cpu(out, sums);
}

static tn_status scatter(tn_tensor *self, int64_t dim, tn_tensor *index, tn_tensor *src,
                         tni_combination op, tn_tensor *out)
{
    int at;
    TN_AUTO(tn_tensor) values = NULL;
    TN_TRY(tni_wrap_dim(dim, self->ndim, &at));
    bool half = self->dtype == TN_DTYPE_F16 || self->dtype == TN_DTYPE_BF16;
    if (half && op == TNI_COMBINE_ADD && index->ndim > 0 && index->numel > 0 &&
        index->sizes[at] > 1) /* one alone is rounded once anyway */
        return scatter_widened(self, at, index, src, out);
    if (index->numel > 0 && is_same_across(index, at))
        return move_slices(op == REPLACE ? TNI_SLICES_WRITE : TNI_SLICES_COMBINE, op, out, src,
                           index, at, self);
    if (index->numel > 0)
        TN_TRY(prepare(self, dim, index, &at, &values));
    if (out != self)
        TN_TRY(tni_copy_cpu(out, self));
    if (index->numel == 0)
        return TN_OK;
    job j = {.combine = op == REPLACE ? NULL : tni_combine_find(op, (tn_dtype)self->dtype)};
    plan(&j, out, src, values, at);
    return run(&j);
}

tn_status tni_cpu_scatter_src(tn_tensor *self, int64_t dim, tn_tensor *index, tn_tensor *src,
                              tn_tensor *out)
{
    return scatter(self, dim, index, src, REPLACE, out);
}

tn_status tni_cpu_scatter_add(tn_tensor *self, int64_t dim, tn_tensor *index, tn_tensor *src,
                              tn_tensor *out)
{
    return scatter(self, dim, index, src, TNI_COMBINE_ADD, out);
}

/* One number, seen as a tensor that has it everywhere. */
static tn_status everywhere(tn_scalar value, tn_dtype dtype, const tn_tensor *index,
                            tn_tensor **out)
{
    TN_AUTO(tn_tensor) one = NULL;
    const int64_t zeros[TN_MAX_DIMS] = {0};
    TN_TRY(tn_tensor_from_scalar(value, dtype, &one));
    return tni_tensor_alias(one, index->ndim, index->sizes, zeros, 0, out);
}

tn_status tni_cpu_scatter_value(tn_tensor *self, int64_t dim, tn_tensor *index, tn_scalar value,
                                tn_tensor *out)
{
    TN_AUTO(tn_tensor) src = NULL;
    TN_TRY(everywhere(value, (tn_dtype)self->dtype, index, &src));
    return scatter(self, dim, index, src, REPLACE, out);
}

/* ---- scatter with "add" or "multiply" ---- */

static tni_combination add_or_multiply(const char *reduce)
{
    return strcmp(reduce, "add") == 0 ? TNI_COMBINE_ADD : TNI_COMBINE_MUL;
}

tn_status tni_cpu_scatter_src_reduce(tn_tensor *self, int64_t dim, tn_tensor *index, tn_tensor *src,
                                     const char *reduce, tn_tensor *out)
{
    return scatter(self, dim, index, src, add_or_multiply(reduce), out);
}

tn_status tni_cpu_scatter_value_reduce(tn_tensor *self, int64_t dim, tn_tensor *index,
                                       tn_scalar value, const char *reduce, tn_tensor *out)
{
    TN_AUTO(tn_tensor) src = NULL;
    TN_TRY(everywhere(value, (tn_dtype)self->dtype, index, &src));
    return scatter(self, dim, index, src, add_or_multiply(reduce), out);
}

/* ---- scatter_reduce ---- */

/* What a reduction starts from where self does not count. */
static tn_scalar identity(tni_combination op, tn_dtype dtype)
{
    static const int64_t most[] = {[TN_DTYPE_U8] = UINT8_MAX,
                                   [TN_DTYPE_I8] = INT8_MAX,
                                   [TN_DTYPE_I16] = INT16_MAX,
                                   [TN_DTYPE_I32] = INT32_MAX,
                                   [TN_DTYPE_I64] = INT64_MAX};
    static const int64_t least[] = {[TN_DTYPE_U8] = 0,
                                    [TN_DTYPE_I8] = INT8_MIN,
                                    [TN_DTYPE_I16] = INT16_MIN,
                                    [TN_DTYPE_I32] = INT32_MIN,
                                    [TN_DTYPE_I64] = INT64_MIN};
    if (op == TNI_COMBINE_ADD || op == TNI_COMBINE_MUL)
        return tn_int(op == TNI_COMBINE_MUL);
    if (dtype == TN_DTYPE_BOOL)
        return tn_int(op == TNI_COMBINE_MIN);
    if (!tn_dtype_is_integral(dtype, false))
        return tn_float(op == TNI_COMBINE_MAX ? -INFINITY : INFINITY);
    return tn_int(op == TNI_COMBINE_MAX ? least[dtype] : most[dtype]);
}

/* out /= how many numbers each element is the sum of. */
static tn_status divide(tn_tensor *out, int64_t dim, tn_tensor *index, bool include_self)
{
    tn_dtype dtype = (tn_dtype)out->dtype;
    TN_AUTO(tn_tensor) counts = NULL;
    TN_AUTO(tn_tensor) one = NULL;
    TN_AUTO(tn_tensor) divisor = NULL;
    /* Counted in int64: a half or an int8 would stop or wrap. */
    TN_TRY(tni_tensor_new(out->ndim, out->sizes, NULL, TN_DTYPE_I64, TN_CPU, &counts));
    TN_TRY(tn_fill_(counts, tn_int(include_self)));
    TN_TRY(everywhere(tn_int(1), TN_DTYPE_I64, index, &one));
    TN_TRY(scatter(counts, dim, index, one, TNI_COMBINE_ADD, counts));
    int64_t *n = counts->data;
    for (int64_t i = 0; i < counts->numel; i++)
        n[i] = n[i] ? n[i] : 1;
    TN_TRY(tni_tensor_new(out->ndim, out->sizes, NULL, dtype, TN_CPU, &divisor));
    TN_TRY(tni_copy_cpu(divisor, counts));
    if (!tn_dtype_is_integral(dtype, true))
        return tn_div_(out, divisor);
    return tn_div_tensor_mode_(out, divisor, "floor");
}

static tn_status reduce_in(tn_tensor *self, int64_t dim, tn_tensor *index, tn_tensor *src,
                           tni_combination op, bool include_self, tn_tensor *out)
{
    if (include_self)
        return scatter(self, dim, index, src, op, out);
    TN_TRY(tni_cpu_scatter_value(self, dim, index, identity(op, (tn_dtype)self->dtype), out));
    return scatter(out, dim, index, src, op, out);
}

/* What a mean is computed in: neither the sum nor the count of its numbers may fit in the dtype. */
static tn_dtype mean_dtype(tn_dtype dtype)
{
    if (dtype == TN_DTYPE_F16 || dtype == TN_DTYPE_BF16)
        return TN_DTYPE_F32;
    return tn_dtype_is_integral(dtype, false) ? TN_DTYPE_I64 : dtype;
}

static tn_status mean_in(tn_tensor *self, int64_t dim, tn_tensor *index, tn_tensor *src,
                         bool include_self, tn_tensor *out)
{
    tn_dtype dtype = mean_dtype((tn_dtype)self->dtype);
    TN_AUTO(tn_tensor) from = NULL;
    TN_AUTO(tn_tensor) terms = NULL;
    TN_AUTO(tn_tensor) work = NULL;
    TN_TRY(tni_ready(self, dtype, &from));
    TN_TRY(tni_ready(src, dtype, &terms));
    TN_TRY(tni_work_of(out, dtype, &work));
    TN_TRY(reduce_in(from, dim, index, terms, TNI_COMBINE_ADD, include_self, work));
    TN_TRY(divide(work, dim, index, include_self));
    return tni_work_back(out, work);
}

tn_status tni_cpu_scatter_reduce(tn_tensor *self, int64_t dim, tn_tensor *index, tn_tensor *src,
                                 const char *reduce, bool include_self, tn_tensor *out)
{
    static const struct {
        const char *name;
        tni_combination op;
    } known[] = {{"sum", TNI_COMBINE_ADD},  {"prod", TNI_COMBINE_MUL}, {"amax", TNI_COMBINE_MAX},
                 {"amin", TNI_COMBINE_MIN}, {"max", TNI_COMBINE_MAX},  {"min", TNI_COMBINE_MIN}};
    tni_combination op = TNI_COMBINE_ADD;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strcmp(reduce, known[i].name) == 0)
            op = known[i].op;
    if (strcmp(reduce, "mean") == 0 && index->numel > 0)
        return mean_in(self, dim, index, src, include_self, out);
    return reduce_in(self, dim, index, src, op, include_self, out);
}
