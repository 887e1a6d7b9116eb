/* SPDX-License-Identifier: MIT */
/* cpu/index.c: index and index_put: elements at places that several index tensors say together.
 * Masks become indices first; then all indices are checked and added up to one place for each
 * position, and the rest is a walk over slices (cpu/slices.h). */
#include <string.h>
#include "cpu/copy.h"
#include "cpu/mask.h"
#include "cpu/slices.h"
#include "gen/kernels.h"
#include "iter/iter.h"
#include "shape/expand.h"
#include "shape/index.h"
#include "shape/structured.h"

/* Indices without masks: owned tensors, one for each dimension that is indexed. */
typedef struct expanded {
    int64_t n;
    tn_tensor *list[TN_MAX_DIMS];
} expanded;

static void expanded_clear(expanded *e)
{
    for (int64_t i = 0; i < e->n; i++)
        tn_tensor_unref(e->list[i]);
}

/* The coordinate @p dim of each element of @p mask that is not 0. Their numbers ascend: coordinates
 * are counted, not divided. */
static tn_status coordinate(const tn_tensor *mask, int dim, const tn_tensor *flat, tn_tensor **out)
{
    int64_t inner = 1;
    for (int d = dim + 1; d < mask->ndim; d++)
        inner *= mask->sizes[d];
    TN_TRY(tni_tensor_new(1, &flat->numel, NULL, TN_DTYPE_I64, TN_CPU, out));
    const int64_t *number = flat->data;
    int64_t *o = (*out)->data;
    int64_t size = mask->sizes[dim], at = 0, base = 0, end = inner;
    for (int64_t i = 0; inner == 1 && i < flat->numel; i++) {
        while (number[i] >= base + size)
            base += size;
        o[i] = number[i] - base;
    }
    for (int64_t i = 0; inner > 1 && i < flat->numel; i++) {
        for (; number[i] >= end; end += inner)
            at = at + 1 == size ? 0 : at + 1;
        o[i] = at;
    }
    return TN_OK;
}

static tn_status expand_masks(tn_tensor *const *indices, int64_t n, expanded *e)
{
    e->n = 0;
    for (int64_t i = 0; i < n; i++) {
        if (!tni_is_mask(indices[i])) {
            e->list[e->n++] = tn_tensor_ref(indices[i]);
            continue;
        }
        TN_AUTO(tn_tensor) flat = NULL;
        TN_TRY(tni_nonzero_flat(indices[i], &flat));
        for (int d = 0; d < indices[i]->ndim; d++) {
            tn_tensor *c = NULL;
            TN_TRY(coordinate(indices[i], d, flat, &c));
            e->list[e->n++] = c;
        }
    }
    return TN_OK;
}

/* ---- places ---- */

/* Byte offsets of a tensor that is broadcast to the plan's sizes, one for each position. */
static void walk_places(int ndim, const int64_t *sizes, const int64_t *strides, int64_t n,
                        int64_t *at)
{
    int64_t index[TN_MAX_DIMS] = {0}, offset = 0;
    for (int64_t i = 0; i < n; i++) {
        at[i] = offset;
        for (int d = ndim - 1; d >= 0; d--) {
            offset += strides[d];
            if (++index[d] < sizes[d])
                break;
            offset -= index[d] * strides[d];
            index[d] = 0;
        }
    }
}

static int64_t positions_of(const tni_index_plan *p)
{
    int64_t n = 1;
    for (int d = 0; d < p->ndim; d++)
        n *= p->sizes[d];
    return n;
}

/* For each position, where its slice of @p self begins.
 * @retval TN_INDEX  "index 5 is out of bounds for dimension 0 with size 3", where dimensions are
 * counted among the index tensors */
static tn_status places(const tni_index_plan *p, const tn_tensor *self, tn_tensor *const *indices,
                        tn_tensor **out)
{
    int64_t n = positions_of(p);
    TN_AUTO(tn_tensor) at = NULL;
    TN_TRY(tni_tensor_new(1, &n, NULL, TN_DTYPE_I64, TN_CPU, &at));
    int64_t *sum = at->data;
    if (n > 0)
        memset(sum, 0, (size_t)n * sizeof *sum);
    for (int k = 0; k < p->n; k++) {
        TN_AUTO(tn_tensor) run = NULL;
        int dim = p->dims[k];
        int64_t size = self->sizes[dim], stride = self->strides[dim] * (int64_t)tni_itemsize(self);
        tn_tensor *index = indices[dim];
        if (index->numel == n && index->dtype == TN_DTYPE_I64 && (index->flags & TNI_CONTIGUOUS)) {
            run = tn_tensor_ref(index);
        } else {
            TN_TRY(tni_tensor_new(p->ndim, p->sizes, NULL, TN_DTYPE_I64, TN_CPU, &run));
            TN_TRY(tni_copy_cpu(run, index));
        }
        const int64_t *value = run->data;
        for (int64_t i = 0; i < n; i++) {
            int64_t v = value[i];
            TN_CHECK(v >= -size && v < size, TN_INDEX,
                     "index %lld is out of bounds for dimension %d with size %lld", (long long)v, k,
                     (long long)size);
            sum[i] += (v < 0 ? v + size : v) * stride;
        }
    }
    *out = TN_MOVE(at);
    return TN_OK;
}

/* The walk between self (`a`) and a tensor in the form of the result (`b`), whose strides may be 0.
 */
static tn_status run(const tni_index_plan *p, tni_slices_what what, tn_tensor *self,
                     const tn_tensor *at, tn_tensor *b, const int64_t *b_strides)
{
    tni_slices r = tni_slices_of(what, self, at, b);
    TN_AUTO(tn_tensor) b_at = NULL;
    int64_t item = (int64_t)r.itemsize;
    for (int k = 0; k < p->rest_n; k++) {
        int place = k < p->first ? k : k + p->ndim;
        tni_slices_dim(&r, self->sizes[p->rest[k]], self->strides[p->rest[k]] * item,
                       b_strides[place] * item);
    }
    /* One step from position to position, or a list of places. */
    int64_t strides[TN_MAX_DIMS];
    int last = -1;
    bool even = true;
    for (int d = p->ndim - 1; d >= 0; d--) {
        strides[d] = b_strides[p->first + d] * item;
        if (p->sizes[d] == 1)
            continue;
        even &= last < 0 || strides[d] == strides[last] * p->sizes[last];
        last = d;
    }
    r.b_step = 0;
    for (int d = p->ndim - 1; d >= 0 && r.b_step == 0; d--)
        r.b_step = p->sizes[d] > 1 ? strides[d] : 0;
    if (!even) {
        TN_TRY(tni_tensor_new(1, &at->numel, NULL, TN_DTYPE_I64, TN_CPU, &b_at));
        walk_places(p->ndim, p->sizes, strides, at->numel, b_at->data);
        r.b_at = b_at->data;
    }
    return tni_slices_run(&r);
}

/* ---- index ---- */

static tn_status index_into(tn_tensor *self, const expanded *e, tn_tensor *given, tn_tensor **out)
{
    tni_index_plan p;
    tni_geometry g;
    TN_AUTO(tn_tensor) at = NULL;
    TN_AUTO(tn_tensor) made = NULL;
    TN_TRY(tni_index_plan_make(self, e->list, e->n, &p));
    tni_index_geometry(&p, self, e->list, &g);
    TN_TRY(places(&p, self, e->list, &at));
    if (given)
        TN_TRY(tni_out_prepare("index", &g, given, &self, 1, &made));
    else
        TN_TRY(tni_tensor_from_geometry(&g, &made));
    tn_tensor *to = given ? tni_out_target(given, made) : made;
    TN_TRY(run(&p, TNI_SLICES_READ, self, at, to, to->strides));
    if (given)
        return tni_out_finish(given, made);
    *out = TN_MOVE(made);
    return TN_OK;
}

static tn_status index_any(tn_tensor *self, tn_tensor *const *indices, int64_t n, tn_tensor *given,
                           tn_tensor **out)
{
    expanded e;
    TN_TRY(tni_check_indices(self, indices, n));
    tn_status status = expand_masks(indices, n, &e);
    if (status == TN_OK)
        status = index_into(self, &e, given, out);
    expanded_clear(&e);
    return status;
}

tn_status tni_kernel_index(tn_call *call, tn_tensor *self, tn_tensor *const *indices,
                           int64_t indices_n, tn_tensor **out)
{
    (void)call;
    return index_any(self, indices, indices_n, NULL, out);
}

tn_status tni_kernel_index_out(tn_call *call, tn_tensor *self, tn_tensor *const *indices,
                               int64_t indices_n, tn_tensor *out)
{
    (void)call;
    TN_TRY(tni_same_device(self, out));
    TN_CHECK(self->dtype == out->dtype, TN_INVALID,
             "index_out: self (%s) and result (%s) must have the same scalar type",
             tni_dtype_text((tn_dtype)self->dtype), tni_dtype_text((tn_dtype)out->dtype));
    return index_any(self, indices, indices_n, out, NULL);
}

/* ---- index_put ---- */

/* The strides of @p values when they are broadcast to the indexing result. */
static tn_status value_strides(const tni_index_plan *p, const tn_tensor *self,
                               const tn_tensor *values, int64_t *strides)
{
    char have[TNI_SIZES_TEXT], want[TNI_SIZES_TEXT];
    int64_t sizes[TN_MAX_DIMS];
    int ndim = tni_index_sizes(p, self, sizes), lead = ndim - values->ndim;
    bool fits = lead >= 0;
    for (int d = 0; fits && d < ndim; d++) {
        int own = d - lead;
        int64_t size = own >= 0 ? values->sizes[own] : 1;
        fits = size == sizes[d] || size == 1;
        strides[d] = size == 1 ? 0 : values->strides[own];
    }
    TN_CHECK(fits, TN_INVALID,
             "shape mismatch: value tensor of shape %s cannot be broadcast to indexing result of "
             "shape %s",
             tni_format_sizes(values->ndim, values->sizes, have, sizeof have),
             tni_format_sizes(ndim, sizes, want, sizeof want));
    return TN_OK;
}

static tn_status same_dtype(const tn_tensor *self, const tn_tensor *values)
{
    TN_CHECK(self->dtype == values->dtype, TN_INVALID,
             "Index put requires the source and destination dtypes match, got %s for the "
             "destination and %s for the source.",
             tni_dtype_text((tn_dtype)self->dtype), tni_dtype_text((tn_dtype)values->dtype));
    return TN_OK;
}

static tn_status put_into(tn_tensor *self, const expanded *e, tn_tensor *values, bool accumulate)
{
    tni_index_plan p;
    int64_t strides[TN_MAX_DIMS];
    TN_AUTO(tn_tensor) at = NULL;
    TN_AUTO(tn_tensor) own = NULL;
    TN_TRY(tni_index_plan_make(self, e->list, e->n, &p));
    TN_TRY(value_strides(&p, self, values, strides));
    TN_TRY(same_dtype(self, values));
    /* What is written must not be what is read. */
    if (values->storage == self->storage) {
        TN_TRY(tni_tensor_new(values->ndim, values->sizes, NULL, (tn_dtype)values->dtype, TN_CPU,
                              &own));
        TN_TRY(tni_copy_cpu(own, values));
        values = own;
        TN_TRY(value_strides(&p, self, values, strides));
    }
    TN_TRY(places(&p, self, e->list, &at));
    return run(&p, accumulate ? TNI_SLICES_COMBINE : TNI_SLICES_WRITE, self, at, values, strides);
}

tn_status tni_kernel__index_put_impl_(tn_call *call, tn_tensor *self, tn_tensor *const *indices,
                                      int64_t indices_n, tn_tensor *values, bool accumulate,
                                      bool unsafe)
{
    (void)call;
    (void)unsafe; /* indices are always checked */
    expanded e;
    TN_TRY(tni_check_indices(self, indices, indices_n));
    if (!tni_is_meta(self) || values->ndim > 0 || values->device.type != TN_DEVICE_CPU)
        TN_TRY(tni_same_device(self, values)); /* but for a number, which any device takes */
    TN_TRY(tni_check_internal_overlap(self));
    for (int64_t i = 0; i < indices_n; i++)
        if (indices[i])
            TN_TRY(tni_check_apart(self, indices[i]));
    TN_TRY(tni_check_apart(self, values));
    if (tni_is_meta(self)) {
        /* A mask's count is not known, so neither is what the values would be broadcast to. */
        for (int64_t i = 0; i < indices_n; i++)
            if (tni_is_mask(indices[i]))
                return same_dtype(self, values);
        tni_index_plan p;
        int64_t strides[TN_MAX_DIMS];
        TN_TRY(tni_index_plan_make(self, indices, indices_n, &p));
        TN_TRY(value_strides(&p, self, values, strides));
        return same_dtype(self, values);
    }
    tn_status status = expand_masks(indices, indices_n, &e);
    if (status == TN_OK)
        status = put_into(self, &e, values, accumulate);
    expanded_clear(&e);
    return status;
}
