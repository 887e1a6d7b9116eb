/* SPDX-License-Identifier: MIT */
/* cpu/hit_rows.c: see hit_rows.h. */
#include "cpu/hit_rows.h"

#include <string.h>
#include "cpu/copy.h"
#include "cpu/slices.h"
#include "gen/cpu.h"

/* Elements of a table below which it is widened whole, and how many of it are widened in the time
 * that an index is looked at. */
#if defined(TN_STRESS) && TN_STRESS
#    define FEWEST 1
#else
#    define FEWEST 65536
#endif
#define DEAR 8

/* Gives each of the @p n indices the number of its slot, in the order in which they come; how many
 * slots there are goes to *count. @p slots has @p size of them, all -1. False where an index is out
 * of range. */
static bool number_slots(const int64_t *index, int64_t n, int64_t size, int32_t *slots,
                         int64_t *ranks, int32_t *count)
{
    int32_t next = 0;
    for (int64_t i = 0; i < n; i++) {
        if ((uint64_t)index[i] >= (uint64_t)size)
            return false;
        int32_t *slot = &slots[index[i]];
        if (*slot < 0)
            *slot = next++;
        ranks[i] = *slot;
    }
    *count = next;
    return true;
}

/* An index that repeats itself along a dimension, as one that was expanded does, is read once. */
static int64_t once_numel(const tn_tensor *index)
{
    int64_t n = 1;
    for (int d = 0; d < index->ndim; d++)
        n *= index->strides[d] == 0 ? 1 : index->sizes[d];
    return n;
}

static tn_status index_once(tn_tensor *index, tn_tensor **out)
{
    int64_t sizes[TN_MAX_DIMS];
    TN_AUTO(tn_tensor) once = NULL;
    for (int d = 0; d < index->ndim; d++)
        sizes[d] = index->strides[d] == 0 ? 1 : index->sizes[d];
    TN_TRY(tni_tensor_alias(index, index->ndim, sizes, index->strides, index->offset, &once));
    return tni_index_run(once, out);
}

/* @p ranks as large as @p index again. */
static tn_status expand_like(tn_tensor *ranks, const tn_tensor *index, tn_tensor **out)
{
    int64_t strides[TN_MAX_DIMS];
    for (int d = 0; d < index->ndim; d++)
        strides[d] = index->strides[d] == 0 ? 0 : ranks->strides[d];
    return tni_tensor_alias(ranks, index->ndim, index->sizes, strides, 0, out);
}

/* The slices of @p self that @p rows names, in its dtype and then as float32. */
static tn_status widen_rows(tn_tensor *self, int dim, tn_tensor *rows, tn_tensor **out)
{
    int64_t sizes[TN_MAX_DIMS];
    TN_AUTO(tn_tensor) halves = NULL;
    TN_AUTO(tn_tensor) sums = NULL;
    memcpy(sizes, self->sizes, (size_t)self->ndim * sizeof *sizes);
    sizes[dim] = rows->numel;
    TN_TRY(tni_tensor_new(self->ndim, sizes, NULL, (tn_dtype)self->dtype, TN_CPU, &halves));
    TN_TRY(tni_tensor_new(self->ndim, sizes, NULL, TN_DTYPE_F32, TN_CPU, &sums));
    TN_TRY(tni_cpu_index_select(self, dim, rows, halves));
    TN_TRY(tni_copy_cpu(sums, halves));
    *out = TN_MOVE(sums);
    return TN_OK;
}

tn_status tni_hit_rows_read(tn_tensor *self, int dim, tn_tensor *index, tn_tensor **rows,
                            tn_tensor **ranks, tn_tensor **sums)
{
    const int64_t size = self->sizes[dim];
    TN_AUTO(tn_tensor) values = NULL;
    TN_AUTO(tn_tensor) numbers = NULL;
    TN_AUTO(tn_tensor) named = NULL;
    TN_AUTO(tn_tensor) wide = NULL;
    TN_AUTO(tn_tensor) expanded = NULL;
    if (self->numel < FEWEST || size > INT32_MAX || once_numel(index) > self->numel / DEAR)
        return TN_OK;
    TN_TRY(index_once(index, &values));
    TN_TRY(tni_tensor_new(values->ndim, values->sizes, NULL, TN_DTYPE_I64, TN_CPU, &numbers));
    const size_t nbytes = (size_t)size * sizeof(int32_t);
    int32_t *slots = tni_block_alloc(nbytes), count = 0;
    TN_CHECK(slots, TN_NOMEM, "cannot allocate %zu bytes for the slots of an index", nbytes);
    memset(slots, -1, nbytes);
    bool few = number_slots(values->data, values->numel, size, slots, numbers->data, &count) &&
               count <= size / 2;
    tni_block_free(slots, nbytes);
    if (!few)
        return TN_OK;
    const int64_t n = count, *value = values->data, *number = numbers->data;
    TN_TRY(tni_tensor_new(1, &n, NULL, TN_DTYPE_I64, TN_CPU, &named));
    for (int64_t i = 0; i < values->numel; i++)
        ((int64_t *)named->data)[number[i]] = value[i];
    TN_TRY(widen_rows(self, dim, named, &wide));
    TN_TRY(expand_like(numbers, index, &expanded));
    *rows = TN_MOVE(named);
    *ranks = TN_MOVE(expanded);
    *sums = TN_MOVE(wide);
    return TN_OK;
}

tn_status tni_hit_rows_write(const tn_tensor *rows, tn_tensor *sums, int dim, tn_tensor *out)
{
    TN_AUTO(tn_tensor) halves = NULL;
    TN_AUTO(tn_tensor) at = NULL;
    const int64_t item = (int64_t)tni_itemsize(out);
    TN_TRY(tni_tensor_new(sums->ndim, sums->sizes, NULL, (tn_dtype)out->dtype, TN_CPU, &halves));
    TN_TRY(tni_copy_cpu(halves, sums));
    TN_TRY(tni_tensor_new(1, &rows->numel, NULL, TN_DTYPE_I64, TN_CPU, &at));
    for (int64_t i = 0; i < rows->numel; i++)
        ((int64_t *)at->data)[i] = ((const int64_t *)rows->data)[i] * out->strides[dim] * item;
    tni_slices r = {.what = TNI_SLICES_WRITE,
                    .dtype = (tn_dtype)out->dtype,
                    .itemsize = (size_t)item,
                    .a = out->data,
                    .a_at = at->data,
                    .b = halves->data,
                    .b_step = halves->strides[dim] * item,
                    .n = rows->numel};
    for (int d = 0; d < out->ndim; d++)
        if (d != dim)
            tni_slices_dim(&r, out->sizes[d], out->strides[d] * item, halves->strides[d] * item);
    return tni_slices_run(&r);
}
