/* SPDX-License-Identifier: MIT */
/* cpu/select.c: whole slices along a dimension: index_select, index_add, embeddings, take. All
 * indices are checked before anything is written. */
#include <string.h>
#include "cpu/hit_rows.h"
#include "cpu/ready.h"
#include "cpu/slices.h"
#include "gen/cpu.h"
#include "tenon/ops.h"

/* The places of @p index in steps of @p stride bytes, as an int64 tensor. */
static tn_status places(tn_tensor *index, int64_t size, int64_t stride, bool wrap, int64_t *bad,
                        tn_tensor **out)
{
    TN_AUTO(tn_tensor) run = NULL;
    TN_AUTO(tn_tensor) at = NULL;
    TN_TRY(tni_index_run(index, &run));
    TN_TRY(tni_tensor_new(1, &index->numel, NULL, TN_DTYPE_I64, TN_CPU, &at));
    *bad = 0;
    if (tni_slices_places(run->data, index->numel, size, stride, wrap, at->data, bad))
        *out = TN_MOVE(at);
    return TN_OK;
}

static void dims_but(tni_slices *r, const tn_tensor *a, const tn_tensor *b, int dim)
{
    for (int d = 0; d < a->ndim; d++)
        if (d != dim)
            tni_slices_dim(r, a->sizes[d], a->strides[d] * (int64_t)r->itemsize,
                           b->strides[d] * (int64_t)r->itemsize);
}

static tni_slices slices_of(tni_slices_what what, tn_tensor *a, const tn_tensor *at, tn_tensor *b,
                            int64_t b_step)
{
    tni_slices r = tni_slices_of(what, a, at, b);
    r.b_step = b_step * (int64_t)r.itemsize;
    return r;
}

/* The reference's way along the second dimension, into what is contiguous, names the index. */
static TNI_COLD tn_status bad_choice(const tn_tensor *self, int d, const tn_tensor *out,
                                     int64_t bad)
{
    bool by_rows = self->ndim > 1 && d == 1 && self->numel > 0 && (out->flags & TNI_CONTIGUOUS);
    TN_CHECK(!by_rows, TN_INVALID, "INDICES element is out of DATA bounds, id=%lld axis_dim=%lld",
             (long long)bad, (long long)self->sizes[d]);
    TN_FAIL(TN_INDEX, "index out of range in self");
}

tn_status tni_cpu_index_select(tn_tensor *self, int64_t dim, tn_tensor *index, tn_tensor *out)
{
    int d;
    int64_t bad;
    TN_AUTO(tn_tensor) at = NULL;
    TN_TRY(tni_wrap_dim(dim, self->ndim, &d));
    bool flat = self->ndim == 0;
    int64_t size = flat ? 1 : self->sizes[d], stride = flat ? 0 : self->strides[d];
    TN_TRY(places(index, size, stride * (int64_t)tni_itemsize(self), false, &bad, &at));
    if (!at)
        return bad_choice(self, d, out, bad);
    tni_slices r = slices_of(TNI_SLICES_READ, self, at, out, flat ? 0 : out->strides[d]);
    dims_but(&r, self, out, d);
    return tni_slices_run(&r);
}

/* The reference adds along the first and the last dimension by scatter_add, which names the index.
 */
static TNI_COLD tn_status bad_place(const tn_tensor *self, int d, tn_scalar alpha, int64_t bad)
{
    bool number = alpha.kind == TN_SCALAR_INT || alpha.kind == TN_SCALAR_FLOAT;
    bool once = number && tn_scalar_to_double(alpha) == 1;
    bool outer = self->ndim > 1 && (d == 0 || d == self->ndim - 1);
    TN_CHECK(!once || !outer, TN_INVALID,
             "index %lld is out of bounds for dimension %d with size %lld", (long long)bad, d,
             (long long)self->sizes[d]);
    TN_FAIL(TN_INDEX, "index out of range in self");
}

/* Sums of halves, rounded once, as scatter_add does it. */
static tn_status index_add_widened(tn_tensor *self, int64_t dim, tn_tensor *index,
                                   tn_tensor *source, tn_scalar alpha, tn_tensor *out)
{
    int d;
    TN_AUTO(tn_tensor) sums = NULL;
    TN_AUTO(tn_tensor) terms = NULL;
    TN_AUTO(tn_tensor) rows = NULL;
    TN_AUTO(tn_tensor) ranks = NULL;
    TN_TRY(tni_wrap_dim(dim, self->ndim, &d));
    TN_TRY(tni_ready(source, TN_DTYPE_F32, &terms));
    if (self->ndim > 0)
        TN_TRY(tni_hit_rows_read(self, d, index, &rows, &ranks, &sums));
    if (rows) {
        TN_TRY(tni_cpu_index_add(sums, d, ranks, terms, alpha, sums));
        if (out != self)
            TN_TRY(tni_copy_cpu(out, self));
        return tni_hit_rows_write(rows, sums, d, out);
    }
    TN_TRY(tni_ready(self, TN_DTYPE_F32, &sums));
    TN_TRY(tni_cpu_index_add(sums, dim, index, terms, alpha, sums));
    return tni_copy_cpu(out, sums);
}

tn_status tni_cpu_index_add(tn_tensor *self, int64_t dim, tn_tensor *index, tn_tensor *source,
                            tn_scalar alpha, tn_tensor *out)
{
    bool half = self->dtype == TN_DTYPE_F16 || self->dtype == TN_DTYPE_BF16;
    if (half && index->numel > 1 && source->dtype == self->dtype)
        return index_add_widened(self, dim, index, source, alpha, out);
    int d;
    int64_t bad;
    TN_AUTO(tn_tensor) at = NULL;
    TN_AUTO(tn_tensor) factor = NULL;
    TN_AUTO(tn_tensor) scaled = NULL;
    TN_TRY(tni_wrap_dim(dim, self->ndim, &d));
    bool flat = self->ndim == 0;
    int64_t size = flat ? 1 : self->sizes[d], stride = flat ? 0 : out->strides[d];
    TN_TRY(places(index, size, stride * (int64_t)tni_itemsize(self), false, &bad, &at));
    if (!at)
        return bad_place(self, d, alpha, bad);
    if (alpha.kind != TN_SCALAR_INT || alpha.v.i != 1) {
        TN_TRY(tn_tensor_from_scalar(alpha, (tn_dtype)self->dtype, &factor));
        TN_TRY(tn_mul(source, factor, &scaled));
        source = scaled;
    }
    if (out != self)
        TN_TRY(tni_copy_cpu(out, self));
    tni_slices r = slices_of(TNI_SLICES_COMBINE, out, at, source, flat ? 0 : source->strides[d]);
    dims_but(&r, out, source, d);
    return tni_slices_run(&r);
}

tn_status tni_cpu_take(tn_tensor *self, tn_tensor *index, tn_tensor *out)
{
    int64_t bad;
    TN_AUTO(tn_tensor) at = NULL;
    TN_AUTO(tn_tensor) flat = NULL;
    TN_TRY(places(index, self->numel, (int64_t)tni_itemsize(self), true, &bad, &at));
    TN_CHECK(at, TN_INDEX, "out of range: tried to access index %lld on a tensor of %lld elements.",
             (long long)bad, (long long)self->numel);
    TN_TRY(tni_ready(self, (tn_dtype)self->dtype, &flat));
    TN_AUTO(tn_tensor) run = NULL;
    TN_TRY(tni_work_of(out, (tn_dtype)out->dtype, &run));
    tni_slices r = slices_of(TNI_SLICES_READ, flat, at, run, 1);
    TN_TRY(tni_slices_run(&r));
    return tni_work_back(out, run);
}

/* ---- embeddings ---- */

tn_status tni_cpu_embedding(tn_tensor *weight, tn_tensor *indices, int64_t padding_idx,
                            bool scale_grad_by_freq, bool sparse, tn_tensor *out)
{
    (void)padding_idx;
    (void)scale_grad_by_freq;
    (void)sparse;
    int64_t bad;
    TN_AUTO(tn_tensor) at = NULL;
    TN_AUTO(tn_tensor) run = NULL;
    TN_TRY(places(indices, weight->sizes[0], weight->strides[0] * (int64_t)tni_itemsize(weight),
                  false, &bad, &at));
    TN_CHECK(at, TN_INDEX, "index out of range in self");
    TN_TRY(tni_work_of(out, (tn_dtype)out->dtype, &run));
    tni_slices r = slices_of(TNI_SLICES_READ, weight, at, run, weight->sizes[1]);
    tni_slices_dim(&r, weight->sizes[1], weight->strides[1] * (int64_t)r.itemsize,
                   (int64_t)r.itemsize);
    TN_TRY(tni_slices_run(&r));
    return tni_work_back(out, run);
}

/* grad[i] / (how often its index occurs). */
static tn_status scale_by_frequency(const int64_t *index, int64_t n, int64_t num_weights,
                                    tn_tensor **grad)
{
    TN_AUTO(tn_tensor) counts = NULL;
    TN_AUTO(tn_tensor) factors = NULL;
    TN_AUTO(tn_tensor) scaled = NULL;
    const int64_t column[2] = {n, 1};
    TN_TRY(tni_tensor_new(1, &num_weights, NULL, TN_DTYPE_I64, TN_CPU, &counts));
    TN_TRY(tni_tensor_new(2, column, NULL, TN_DTYPE_F64, TN_CPU, &factors));
    int64_t *count = counts->data;
    double *factor = factors->data;
    if (num_weights > 0)
        memset(count, 0, (size_t)num_weights * sizeof *count);
    for (int64_t i = 0; i < n; i++)
        if (index[i] >= 0 && index[i] < num_weights) /* else it is the padding, which is left out */
            count[index[i]]++;
    for (int64_t i = 0; i < n; i++)
        factor[i] = index[i] >= 0 && index[i] < num_weights ? 1.0 / (double)count[index[i]] : 0;
    TN_AUTO(tn_tensor) same = NULL;
    TN_TRY(tni_tensor_new(2, column, NULL, (tn_dtype)(*grad)->dtype, TN_CPU, &same));
    TN_TRY(tni_copy_cpu(same, factors));
    TN_TRY(tn_mul(*grad, same, &scaled));
    tn_tensor_unref(*grad);
    *grad = TN_MOVE(scaled);
    return TN_OK;
}

tn_status tni_cpu_embedding_dense_backward(tn_tensor *grad_output, tn_tensor *indices,
                                           int64_t num_weights, int64_t padding_idx,
                                           bool scale_grad_by_freq, tn_tensor *out)
{
    int64_t n = indices->numel, width = out->sizes[1], kept = 0;
    TN_AUTO(tn_tensor) index = NULL;
    TN_AUTO(tn_tensor) at = NULL;
    TN_AUTO(tn_tensor) sources = NULL;
    TN_AUTO(tn_tensor) grad = NULL;
    TN_TRY(tni_index_run(indices, &index));
    TN_TRY(tni_tensor_new(1, &n, NULL, TN_DTYPE_I64, TN_CPU, &at));
    TN_TRY(tni_tensor_new(1, &n, NULL, TN_DTYPE_I64, TN_CPU, &sources));
    const int64_t *k = index->data;
    for (int64_t i = 0; i < n; i++)
        TN_CHECK(k[i] == padding_idx || (k[i] >= 0 && k[i] < num_weights), TN_INDEX,
                 "index out of range in self");
    /* One row a slice, whatever the layout was. */
    tn_tensor *rows = grad_output;
    bool as_is = (grad_output->flags & TNI_CONTIGUOUS) && !scale_grad_by_freq;
    if (!as_is) {
        TN_TRY(tni_tensor_new(2, (const int64_t[]){n, width}, NULL, (tn_dtype)grad_output->dtype,
                              TN_CPU, &grad));
        int64_t to[TN_MAX_DIMS], from[TN_MAX_DIMS], item = (int64_t)tni_itemsize(grad);
        tni_contiguous_strides(grad_output->ndim, grad_output->sizes, to);
        for (int d = 0; d < grad_output->ndim; d++) {
            to[d] *= item;
            from[d] = grad_output->strides[d] * item;
        }
        tni_strided c = {
            grad_output->ndim,     grad_output->sizes,   to, from, grad->data, grad_output->data,
            (tn_dtype)grad->dtype, (tn_dtype)grad->dtype};
        TN_TRY(tni_copy_strided(&c));
        if (scale_grad_by_freq)
            TN_TRY(scale_by_frequency(k, n, num_weights, &grad));
        rows = grad;
    }
    size_t itemsize = tni_itemsize(out);
    int64_t *to = at->data, *source = sources->data;
    for (int64_t i = 0; i < n; i++) {
        if (k[i] == padding_idx)
            continue;
        to[kept] = k[i] * out->strides[0] * (int64_t)itemsize;
        source[kept++] = i * width * (int64_t)itemsize;
    }
    TN_TRY(tn_zero_(out));
    tni_slices r = slices_of(TNI_SLICES_COMBINE, out, at, rows, 0);
    r.b_at = source;
    r.n = kept;
    tni_slices_dim(&r, width, out->strides[1] * (int64_t)itemsize, (int64_t)itemsize);
    return tni_slices_run(&r);
}
