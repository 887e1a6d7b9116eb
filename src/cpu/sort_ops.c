/* SPDX-License-Identifier: MIT */
/* cpu/sort_ops.c: sort, topk, median, kthvalue and mode on the CPU. */
#include <math.h>
#include <string.h>
#include "core/scalar.h"
#include "cpu/copy.h"
#include "cpu/lines.h"
#include "cpu/sort.h"
#include "gen/cpu.h"
#include "gen/kernels.h"

typedef struct sort_job {
    tn_dtype dtype; /* of the line: one of tni_sort_dtype */
    size_t size;
    int64_t n, k;
    bool descending;
} sort_job;

static void put(const sort_job *j, void *const *line, int64_t to, int64_t at)
{
    if (line[0])
        memcpy((char *)line[0] + (size_t)to * j->size, (const char *)line[2] + (size_t)at * j->size,
               j->size);
    ((int64_t *)line[1])[to] = at;
}

static tn_status sort_line(void *const *line, void *scratch, void *ctx)
{
    const sort_job *j = ctx;
    tni_place *x = scratch;
    tni_sort_keys(x, line[2], j->dtype, j->n, j->descending);
    tni_sort_places(x, x + j->n, j->n);
    for (int64_t i = 0; i < j->n; i++)
        put(j, line, i, x[i].at);
    return TN_OK;
}

/* Few of many: those found so far are kept in order, and hardly any later one is among them. */
static void topk_few(const sort_job *j, void *const *line, tni_place *best)
{
    enum { BLOCK = 256 };
    tni_place block[BLOCK];
    int64_t found = 0;
    for (int64_t i = 0; i < j->n; i += BLOCK) {
        int64_t m = j->n - i < BLOCK ? j->n - i : BLOCK;
        tni_sort_keys(block, (const char *)line[2] + (size_t)i * j->size, j->dtype, m,
                      j->descending);
        for (int64_t b = 0; b < m; b++) {
            if (found == j->k && block[b].key >= best[found - 1].key)
                continue;
            int64_t at = found < j->k ? found++ : found - 1;
            for (; at > 0 && block[b].key < best[at - 1].key; at--)
                best[at] = best[at - 1];
            best[at] = (tni_place){block[b].key, i + b};
        }
    }
    for (int64_t i = 0; i < j->k; i++)
        put(j, line, i, best[i].at);
}

static tn_status topk_line(void *const *line, void *scratch, void *ctx)
{
    const sort_job *j = ctx;
    tni_place *x = scratch;
    if (j->k <= 64 && j->n >= 8 * j->k) {
        topk_few(j, line, x);
        return TN_OK;
    }
    tni_sort_keys(x, line[2], j->dtype, j->n, j->descending);
    tni_select_places(x, j->n, j->k);
    tni_sort_places(x, x + j->n, j->k);
    for (int64_t i = 0; i < j->k; i++)
        put(j, line, i, x[i].at);
    return TN_OK;
}

/* The k-th smallest, from 0. */
static tn_status kth_line(void *const *line, void *scratch, void *ctx)
{
    const sort_job *j = ctx;
    tni_place *x = scratch;
    tni_sort_keys(x, line[2], j->dtype, j->n, false);
    tni_select_places(x, j->n, j->k + 1);
    tni_place best = x[0];
    for (int64_t i = 1; i <= j->k; i++)
        if (x[i].key > best.key || (x[i].key == best.key && x[i].at > best.at))
            best = x[i];
    put(j, line, 0, best.at);
    return TN_OK;
}

static bool is_nan(const sort_job *j, const void *line, int64_t i)
{
    return (j->dtype == TN_DTYPE_F32 && isnan(((const float *)line)[i])) ||
           (j->dtype == TN_DTYPE_F64 && isnan(((const double *)line)[i]));
}

static tn_status median_line(void *const *line, void *scratch, void *ctx)
{
    const sort_job *j = ctx;
    if (j->dtype == TN_DTYPE_F32 || j->dtype == TN_DTYPE_F64)
        for (int64_t i = 0; i < j->n; i++)
            if (is_nan(j, line[2], i)) {
                put(j, line, 0, i);
                return TN_OK;
            }
    return kth_line(line, scratch, ctx);
}

/* The median of what is not NaN: keys of NaN are the largest. */
static tn_status nanmedian_line(void *const *line, void *scratch, void *ctx)
{
    sort_job j = *(const sort_job *)ctx;
    int64_t numbers = 0;
    for (int64_t i = 0; i < j.n; i++)
        numbers += !is_nan(&j, line[2], i);
    if (numbers == 0) {
        put(&j, line, 0, 0);
        return TN_OK;
    }
    j.k = (numbers - 1) / 2;
    return kth_line(line, scratch, &j);
}

/* The longest run of equal keys, the first of several; its last place. */
static tn_status mode_line(void *const *line, void *scratch, void *ctx)
{
    const sort_job *j = ctx;
    tni_place *x = scratch;
    int64_t best = 0, longest = 0;
    tni_sort_keys(x, line[2], j->dtype, j->n, false);
    tni_sort_places(x, x + j->n, j->n);
    for (int64_t i = 0, start = 0; i < j->n; i++) {
        if (x[i].key != x[start].key)
            start = i;
        if (i - start + 1 > longest) {
            longest = i - start + 1;
            best = i;
        }
    }
    put(j, line, 0, x[best].at);
    return TN_OK;
}

static tn_status run(tni_line_fn fn, const tn_tensor *self, uint64_t dims, int64_t k,
                     bool descending, tn_tensor *values, tn_tensor *indices)
{
    if (indices->numel == 0)
        return TN_OK;
    tn_dtype dtype = tni_sort_dtype((tn_dtype)self->dtype);
    sort_job j = {.dtype = dtype,
                  .size = tni_dtype_size(dtype),
                  .n = tni_line_length(self, dims),
                  .k = k,
                  .descending = descending};
    tni_line lines[] = {{values, dtype, TNI_LINE_WRITE},
                        {indices, TN_DTYPE_NONE, TNI_LINE_WRITE},
                        {self, dtype, TNI_LINE_READ}};
    return tni_lines(self, dims, lines, 3, (size_t)(2 * j.n) * sizeof(tni_place), fn, &j);
}

static tn_status along(tni_line_fn fn, const tn_tensor *self, int64_t dim, int64_t k,
                       bool descending, tn_tensor *values, tn_tensor *indices)
{
    int d;
    TN_TRY(tni_wrap_dim(dim, self->ndim, &d));
    return run(fn, self, UINT64_C(1) << d, k, descending, values, indices);
}

tn_status tni_cpu_sort(tn_tensor *self, int64_t dim, bool descending, tn_tensor *values,
                       tn_tensor *indices)
{
    return along(sort_line, self, dim, 0, descending, values, indices);
}

tn_status tni_cpu_sort_stable(tn_tensor *self, tn_opt_bool stable, int64_t dim, bool descending,
                              tn_tensor *values, tn_tensor *indices)
{
    (void)stable;
    return along(sort_line, self, dim, 0, descending, values, indices);
}

tn_status tni_cpu_topk(tn_tensor *self, int64_t k, int64_t dim, bool largest, bool sorted,
                       tn_tensor *values, tn_tensor *indices)
{
    (void)sorted;
    /* A tensor without dimensions has its element whatever k is. */
    return along(topk_line, self, dim, self->ndim ? k : 1, largest, values, indices);
}

static int64_t middle(const tn_tensor *self, int64_t dim)
{
    int d;
    if (tni_wrap_dim(dim, self->ndim, &d) != TN_OK || self->ndim == 0)
        return 0;
    return (self->sizes[d] - 1) / 2;
}

tn_status tni_cpu_median_dim(tn_tensor *self, int64_t dim, bool keepdim, tn_tensor *values,
                             tn_tensor *indices)
{
    (void)keepdim;
    return along(median_line, self, dim, middle(self, dim), false, values, indices);
}

tn_status tni_cpu_kthvalue(tn_tensor *self, int64_t k, int64_t dim, bool keepdim, tn_tensor *values,
                           tn_tensor *indices)
{
    (void)keepdim;
    return along(kth_line, self, dim, k - 1, false, values, indices);
}

tn_status tni_cpu_mode(tn_tensor *self, int64_t dim, bool keepdim, tn_tensor *values,
                       tn_tensor *indices)
{
    (void)keepdim;
    return along(mode_line, self, dim, 0, false, values, indices);
}

tn_status tni_cpu_nanmedian_dim(tn_tensor *self, int64_t dim, bool keepdim, tn_tensor *values,
                                tn_tensor *indices)
{
    (void)keepdim;
    return along(nanmedian_line, self, dim, 0, false, values, indices);
}

/* Of all elements. */
static tn_status median_of_all(tni_line_fn fn, tn_tensor *self, tn_tensor **out)
{
    tn_dtype dtype = (tn_dtype)self->dtype;
    TN_AUTO(tn_tensor) value = NULL;
    TN_AUTO(tn_tensor) place = NULL;
    TN_CHECK(!tn_dtype_is_complex(dtype) && dtype != TN_DTYPE_BOOL, TN_UNSUPPORTED,
             "\"median_cpu\" not implemented for '%s'", tni_dtype_text(dtype));
    TN_TRY(tni_tensor_new(0, NULL, NULL, dtype, self->device, &value));
    if (!tni_is_meta(self)) {
        TN_TRY(tni_tensor_new(0, NULL, NULL, TN_DTYPE_I64, self->device, &place));
        if (self->numel == 0)
            tni_scalar_store(tn_dtype_is_floating(dtype) ? tn_float((double)NAN)
                             : dtype == TN_DTYPE_I32     ? tn_int(INT32_MIN)
                                                         : tn_int(INT64_MIN),
                             dtype, value->data);
        else
            TN_TRY(run(fn, self, ~UINT64_C(0), (self->numel - 1) / 2, false, value, place));
    }
    *out = TN_MOVE(value);
    return TN_OK;
}

tn_status tni_kernel_median(tn_call *call, tn_tensor *self, tn_tensor **out)
{
    (void)call;
    return median_of_all(median_line, self, out);
}

tn_status tni_kernel_nanmedian(tn_call *call, tn_tensor *self, tn_tensor **out)
{
    (void)call;
    return median_of_all(nanmedian_line, self, out);
}
