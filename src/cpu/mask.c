/* SPDX-License-Identifier: MIT */
/* cpu/mask.c: nonzero, masked_select, masked_scatter: elements that a mask picks, in row-major
 * order. */
#include "cpu/mask.h"

#include <string.h>
#include "base/pool.h"
#include "cpu/copy.h"
#include "cpu/ready.h"
#include "cpu/loops.h"
#include "cpu/pick.h"
#include "gen/cpu.h"
#include "gen/kernels.h"
#include "iter/iter.h"
#include "shape/expand.h"
#include "shape/index.h"
#include "shape/structured.h"

#define CHUNK 32768
#define SOME  256 /* flags that are looked at before their numbers are moved on */

/* @p t, seen with these sizes, in a contiguous tensor of @p dtype: itself where it is that already.
 */
static tn_status as_run(tn_tensor *t, int ndim, const int64_t *sizes, tn_dtype dtype,
                        tn_tensor **out)
{
    bool same = t->dtype == (int8_t)dtype && t->ndim == ndim && (t->flags & TNI_CONTIGUOUS);
    for (int d = 0; same && d < ndim; d++)
        same = t->sizes[d] == sizes[d];
    if (same) {
        *out = tn_tensor_ref(t);
        return TN_OK;
    }
    TN_AUTO(tn_tensor) run = NULL;
    TN_TRY(tni_tensor_new(ndim, sizes, NULL, dtype, TN_CPU, &run));
    TN_TRY(tni_copy_cpu(run, t));
    *out = TN_MOVE(run);
    return TN_OK;
}

/* ---- where ---- */

/* Counting each chunk first tells where its numbers go, so that threads can write them. */
typedef struct where_job {
    const uint8_t *flags;
    int64_t n;
    int64_t *starts; /* of each chunk, and the end of the last */
    int64_t *out;
} where_job;

static tn_status count_chunks(int64_t begin, int64_t end, void *arg)
{
    where_job *j = arg;
    for (int64_t c = begin; c < end; c++) {
        int64_t from = c * CHUNK, to = j->n - from < CHUNK ? j->n : from + CHUNK, count = 0;
        for (int64_t i = from; i < to; i++)
            count += tni_truth(j->flags[i]); /* see Note [Bool bytes] */
        j->starts[c + 1] = count;
    }
    return TN_OK;
}

/* Of n <= SOME flags that begin with number @p first; returns where the next numbers go. Each
 * number is written and stays if its flag says so: nobody could guess which branch flags take. */
static int64_t *write_some(const uint8_t *flags, int64_t first, int64_t n, int64_t *o)
{
    int64_t found[SOME], count = 0;
    for (int64_t i = 0; i < n; i++) {
        found[count] = first + i;
        count += tni_truth(flags[i]);
    }
    memcpy(o, found, (size_t)count * sizeof *o);
    return o + count;
}

static tn_status write_chunks(int64_t begin, int64_t end, void *arg)
{
    where_job *j = arg;
    for (int64_t c = begin; c < end; c++) {
        int64_t from = c * CHUNK, to = j->n - from < CHUNK ? j->n : from + CHUNK;
        int64_t *o = j->out + j->starts[c];
        for (int64_t i = from; i < to; i += SOME)
            o = write_some(j->flags + i, i, to - i < SOME ? to - i : SOME, o);
    }
    return TN_OK;
}

/* As tni_nonzero_flat, of a contiguous bool tensor. */
static tn_status where(const tn_tensor *flags, tn_tensor **out)
{
    where_job j = {.flags = flags->data, .n = flags->numel};
    int64_t chunks = (j.n + CHUNK - 1) / CHUNK, entries = chunks + 1;
    TN_AUTO(tn_tensor) starts = NULL;
    TN_AUTO(tn_tensor) found = NULL;
    TN_TRY(tni_tensor_new(1, &entries, NULL, TN_DTYPE_I64, TN_CPU, &starts));
    j.starts = starts->data;
    j.starts[0] = 0;
    TN_TRY(tni_pool_for(chunks, 1, count_chunks, &j));
    for (int64_t c = 0; c < chunks; c++)
        j.starts[c + 1] += j.starts[c];
    TN_TRY(tni_tensor_new(1, &j.starts[chunks], NULL, TN_DTYPE_I64, TN_CPU, &found));
    j.out = found->data;
    if (j.starts[chunks] > 0)
        TN_TRY(tni_pool_for(chunks, 1, write_chunks, &j));
    *out = TN_MOVE(found);
    return TN_OK;
}

tn_status tni_nonzero_flat(tn_tensor *self, tn_tensor **out)
{
    TN_AUTO(tn_tensor) flags = NULL;
    TN_TRY(as_run(self, self->ndim, self->sizes, TN_DTYPE_BOOL, &flags));
    return where(flags, out);
}

/* ---- nonzero ---- */

typedef struct indices_job {
    const tn_tensor *self, *out;
    const int64_t *number;
} indices_job;

/* Row i of the result is the index of the i-th element that is not 0. Numbers ascend: as long as
 * they are in one row of self, the last part alone changes. */
static tn_status some_indices(int64_t begin, int64_t end, void *arg)
{
    const indices_job *j = arg;
    const int64_t *sizes = j->self->sizes, *strides = j->out->strides;
    int last = j->self->ndim - 1;
    int64_t index[TN_MAX_DIMS] = {0}, row = -1, width = sizes[last];
    for (int64_t i = begin; i < end; i++) {
        int64_t *o = (int64_t *)j->out->data + i * strides[0], number = j->number[i];
        if (row < 0 || number - row >= width) {
            int64_t rest = number / width;
            row = rest * width;
            for (int d = last - 1; d >= 0; d--) {
                index[d] = rest % sizes[d];
                rest /= sizes[d];
            }
        }
        for (int d = 0; d < last; d++)
            o[d * strides[1]] = index[d];
        o[last * strides[1]] = number - row;
    }
    return TN_OK;
}

static tn_status write_indices(const tn_tensor *self, const tn_tensor *flat, const tn_tensor *out)
{
    indices_job j = {self, out, flat->data};
    return self->ndim == 0 ? TN_OK : tni_pool_for(flat->numel, CHUNK, some_indices, &j);
}

tn_status tni_kernel_nonzero(tn_call *call, tn_tensor *self, tn_tensor **out)
{
    (void)call;
    TN_AUTO(tn_tensor) flat = NULL;
    TN_AUTO(tn_tensor) made = NULL;
    TN_TRY(tni_nonzero_flat(self, &flat));
    const int64_t sizes[2] = {flat->numel, self->ndim}, strides[2] = {1, flat->numel};
    TN_TRY(tni_tensor_new(2, sizes, strides, TN_DTYPE_I64, TN_CPU, &made));
    TN_TRY(write_indices(self, flat, made));
    *out = TN_MOVE(made);
    return TN_OK;
}

tn_status tni_kernel_nonzero_out(tn_call *call, tn_tensor *self, tn_tensor *out)
{
    TN_CHECK(out->dtype == TN_DTYPE_I64, TN_INVALID,
             "nonzero: Expected out tensor to have scalar type Long but got scalar type %s",
             tni_dtype_text((tn_dtype)out->dtype));
    TN_TRY(tni_same_device(self, out));
    TN_AUTO(tn_tensor) made = NULL;
    TN_AUTO(tn_tensor) beside = NULL;
    TN_TRY(tni_kernel_nonzero(call, self, &made));
    tni_geometry g;
    tni_geometry_sizes_of(&g, made);
    g.has_strides = true;
    for (int d = 0; d < g.ndim; d++)
        g.strides[d] = made->strides[d];
    TN_TRY(tni_out_prepare("nonzero", &g, out, &self, 1, &beside));
    tn_tensor *target = tni_out_target(out, beside);
    if (target->numel > 0)
        TN_TRY(tni_copy_cpu(target, made));
    return tni_out_finish(out, beside);
}

tn_status tni_cpu_nonzero_static(tn_tensor *self, int64_t size, int64_t fill_value, tn_tensor *out)
{
    TN_AUTO(tn_tensor) flat = NULL;
    if (out->numel == 0)
        return TN_OK;
    TN_TRY(tni_nonzero_flat(self, &flat));
    const int64_t *number = flat->data;
    int64_t *o = out->data;
    for (int64_t i = 0; i < size; i++) {
        int64_t rest = i < flat->numel ? number[i] : 0;
        for (int d = self->ndim - 1; d >= 0; d--) {
            o[i * out->strides[0] + d * out->strides[1]] =
                i < flat->numel ? rest % self->sizes[d] : fill_value;
            rest /= self->sizes[d] ? self->sizes[d] : 1;
        }
    }
    return TN_OK;
}

/* ---- masked_select ---- */

static tn_status select_masked(tn_tensor *self, tn_tensor *mask, tn_tensor **out)
{
    int ndim;
    int64_t sizes[TN_MAX_DIMS];
    TN_AUTO(tn_tensor) x = NULL;
    TN_AUTO(tn_tensor) flags = NULL;
    TN_AUTO(tn_tensor) at = NULL;
    TN_AUTO(tn_tensor) made = NULL;
    TN_TRY(tni_same_device(self, mask));
    TN_CHECK(mask->dtype == TN_DTYPE_BOOL, TN_INVALID,
             "masked_select: expected BoolTensor for mask");
    TN_TRY(tni_broadcast_sizes(mask->ndim, mask->sizes, self->ndim, self->sizes, &ndim, sizes));
    TN_TRY(as_run(self, ndim, sizes, (tn_dtype)self->dtype, &x));
    TN_TRY(as_run(mask, ndim, sizes, TN_DTYPE_BOOL, &flags));
    TN_TRY(where(flags, &at));
    TN_TRY(tni_tensor_new(1, &at->numel, NULL, (tn_dtype)self->dtype, TN_CPU, &made));
    int64_t *places = at->data;
    int64_t itemsize = (int64_t)tni_itemsize(self);
    for (int64_t i = 0; i < at->numel; i++)
        places[i] *= itemsize;
    tni_pick(made->data, x->data, places, at->numel, (size_t)itemsize);
    *out = TN_MOVE(made);
    return TN_OK;
}

tn_status tni_kernel_masked_select(tn_call *call, tn_tensor *self, tn_tensor *mask, tn_tensor **out)
{
    (void)call;
    return select_masked(self, mask, out);
}

tn_status tni_kernel_masked_select_out(tn_call *call, tn_tensor *self, tn_tensor *mask,
                                       tn_tensor *out)
{
    (void)call;
    TN_CHECK(out->dtype == self->dtype, TN_INVALID,
             "masked_select(): self and result must have the same scalar type");
    TN_TRY(tni_same_device(self, out));
    TN_AUTO(tn_tensor) made = NULL;
    TN_AUTO(tn_tensor) beside = NULL;
    tni_geometry g;
    TN_TRY(select_masked(self, mask, &made));
    tni_geometry_sizes_of(&g, made);
    TN_TRY(tni_out_prepare("masked_select", &g, out, NULL, 0, &beside));
    tn_tensor *target = tni_out_target(out, beside);
    if (target->numel > 0)
        TN_TRY(tni_copy_cpu(target, made));
    return tni_out_finish(out, beside);
}

/* ---- masked_scatter ---- */

tn_status tni_cpu_masked_scatter(tn_tensor *self, tn_tensor *mask, tn_tensor *source,
                                 tn_tensor *out)
{
    TN_AUTO(tn_tensor) flags = NULL;
    TN_AUTO(tn_tensor) at = NULL;
    TN_AUTO(tn_tensor) from = NULL;
    TN_AUTO(tn_tensor) run = NULL;
    TN_TRY(as_run(mask, out->ndim, out->sizes, TN_DTYPE_BOOL, &flags));
    TN_TRY(where(flags, &at));
    TN_CHECK(at->numel <= source->numel, TN_INVALID,
             "Number of elements of source < number of ones in mask");
    TN_TRY(as_run(source, source->ndim, source->sizes, (tn_dtype)source->dtype, &from));
    TN_TRY(tni_work_of(out, (tn_dtype)out->dtype, &run));
    if (run != self)
        TN_TRY(tni_copy_cpu(run, self));
    int64_t *places = at->data;
    int64_t itemsize = (int64_t)tni_itemsize(out);
    for (int64_t i = 0; i < at->numel; i++)
        places[i] *= itemsize;
    tni_place(run->data, places, from->data, at->numel, (size_t)itemsize);
    return tni_work_back(out, run);
}

tn_status tni_cpu_masked_scatter_backward(tn_tensor *grad_output, tn_tensor *mask,
                                          const int64_t *sizes, int64_t sizes_n, tn_tensor *out)
{
    char text[TNI_SIZES_TEXT];
    TN_AUTO(tn_tensor) used = NULL;
    TN_TRY(select_masked(grad_output, mask, &used));
    TN_CHECK(used->numel <= out->numel, TN_INVALID, "shape '%s' is invalid for input of size %lld",
             tni_format_sizes((int)sizes_n, sizes, text, sizeof text), (long long)used->numel);
    size_t itemsize = tni_itemsize(out), taken = (size_t)used->numel * itemsize;
    if (out->numel == 0)
        return TN_OK;
    uint8_t *to = out->data;
    if (taken > 0)
        memcpy(to, used->data, taken);
    memset(to + taken, 0, (size_t)out->numel * itemsize - taken);
    return TN_OK;
}
