/* SPDX-License-Identifier: MIT */
/* shape/index.c: what indexing with tensors gives: `index` and `index_put`. */
#include "shape/index.h"
#include "shape/reshape.h"

#include <stdio.h>
#include <string.h>

TNI_COLD static tn_status two_devices(const tn_tensor *a, const tn_tensor *b)
{
    char one[32], two[32];
    TN_FAIL(TN_INVALID,
            "Expected all tensors to be on the same device, but found at least two devices, %s and "
            "%s!",
            tn_device_format(a->device, one, sizeof one),
            tn_device_format(b->device, two, sizeof two));
}

tn_status tni_same_device(const tn_tensor *a, const tn_tensor *b)
{
    if (TNI_LIKELY(a->device.type == b->device.type && a->device.index == b->device.index))
        return TN_OK;
    return two_devices(a, b);
}

tn_status tni_check_mask_length(int64_t n, int64_t wanted)
{
    TN_CHECK(n == wanted, TN_INVALID,
             "Tried to convert a List with %lld elements to a fixed-size array of size %lld",
             (long long)n, (long long)wanted);
    return TN_OK;
}

static bool is_index(const tn_tensor *t)
{
    return t->dtype == TN_DTYPE_I64 || t->dtype == TN_DTYPE_I32 || tni_is_mask(t);
}

/* A mask takes as many dimensions as it has. */
static tn_status check_mask(const tn_tensor *self, const tn_tensor *mask, int at)
{
    char have[TNI_SIZES_TEXT], want[TNI_SIZES_TEXT];
    for (int d = 0; d < mask->ndim; d++) {
        bool fits = at + d < self->ndim && mask->sizes[d] == self->sizes[at + d];
        TN_CHECK(fits, TN_INDEX,
                 "The shape of the mask %s at index %d does not match the shape of the indexed "
                 "tensor %s at index %d",
                 tni_format_sizes(mask->ndim, mask->sizes, have, sizeof have), d,
                 tni_format_sizes(self->ndim, self->sizes, want, sizeof want), at + d);
    }
    return TN_OK;
}

/* Indices on the CPU serve every device. */
static tn_status index_device(const tn_tensor *self, const tn_tensor *index)
{
    char name[32];
    TN_CHECK(self->device.type == index->device.type && self->device.index == index->device.index,
             TN_INVALID,
             "indices should be either on cpu or on the same device as the indexed tensor (%s)",
             tn_device_format(self->device, name, sizeof name));
    return TN_OK;
}

tn_status tni_check_indices(const tn_tensor *self, tn_tensor *const *indices, int64_t n)
{
    TN_CHECK(n <= self->ndim, TN_INDEX, "too many indices for tensor of dimension %d (got %lld)",
             self->ndim, (long long)n);
    bool any = false;
    for (int64_t i = 0; i < n; i++) {
        if (!indices[i])
            continue;
        any = true;
        if (TNI_UNLIKELY(indices[i]->device.type != TN_DEVICE_CPU))
            TN_TRY(index_device(self, indices[i]));
        TN_CHECK(is_index(indices[i]), TN_INDEX,
                 "tensors used as indices must be long, int, byte or bool tensors");
    }
    TN_CHECK(any, TN_INDEX, "at least one index must be provided");
    int at = 0;
    for (int64_t i = 0; i < n; i++) {
        if (tni_is_mask(indices[i])) {
            TN_TRY(check_mask(self, indices[i], at));
            at += indices[i]->ndim;
        } else {
            at++;
        }
    }
    TN_CHECK(at <= self->ndim, TN_INDEX, "too many indices for tensor of dimension %d (got %d)",
             self->ndim, at);
    return TN_OK;
}

static TNI_COLD tn_status no_broadcast(tn_tensor *const *indices, int64_t n)
{
    char text[1024], one[TNI_SIZES_TEXT];
    size_t at = 0;
    for (int64_t i = 0; i < n && at < sizeof text; i++) {
        if (!indices[i])
            continue;
        int wrote =
            snprintf(text + at, sizeof text - at, "%s%s", at ? ", " : "",
                     tni_format_sizes(indices[i]->ndim, indices[i]->sizes, one, sizeof one));
        at += wrote > 0 ? (size_t)wrote : 0;
    }
    TN_FAIL(TN_INDEX,
            "shape mismatch: indexing tensors could not be broadcast together with shapes %s",
            text);
}

tn_status tni_index_plan_make(const tn_tensor *self, tn_tensor *const *indices, int64_t n,
                              tni_index_plan *out)
{
    bool indexed[TN_MAX_DIMS] = {false};
    out->n = out->ndim = out->rest_n = 0;
    for (int64_t i = 0; i < n; i++) {
        const tn_tensor *t = indices[i];
        if (!t)
            continue;
        int dim = (int)i;
        indexed[dim] = true;
        out->dims[out->n++] = dim;
        int ndim = t->ndim > out->ndim ? t->ndim : out->ndim;
        for (int d = 0; d < ndim; d++) { /* from the last dimension on */
            int64_t have = d < out->ndim ? out->sizes[out->ndim - 1 - d] : 1;
            int64_t size = d < t->ndim ? t->sizes[t->ndim - 1 - d] : 1;
            if (TNI_UNLIKELY(have != size && have != 1 && size != 1))
                return no_broadcast(indices, n);
        }
        int64_t merged[TN_MAX_DIMS];
        for (int d = 0; d < ndim; d++) {
            int own = d - (ndim - t->ndim), old = d - (ndim - out->ndim);
            int64_t size = own >= 0 ? t->sizes[own] : 1, have = old >= 0 ? out->sizes[old] : 1;
            merged[d] = have == 1 ? size : have;
        }
        memcpy(out->sizes, merged, (size_t)ndim * sizeof(int64_t));
        out->ndim = ndim;
    }
    /* Indices side by side leave their dimensions where they were; otherwise these come first. */
    bool adjacent = true;
    for (int k = 1; k < out->n; k++)
        adjacent &= out->dims[k] == out->dims[k - 1] + 1;
    out->first = adjacent ? out->dims[0] : 0;
    bool empty = false, none = out->ndim > 0;
    for (int d = 0; d < out->ndim; d++)
        none &= out->sizes[d] != 0;
    none |= out->ndim == 0;
    for (int d = 0; d < self->ndim; d++) {
        if (!indexed[d])
            out->rest[out->rest_n++] = d;
        else
            empty |= self->sizes[d] == 0;
    }
    TN_CHECK(!empty || !none, TN_INDEX, "index is out of bounds for dimension with size 0");
    TN_CHECK(out->rest_n + out->ndim <= TN_MAX_DIMS, TN_INVALID,
             "index: the result would have %d dimensions, at most %d are possible",
             out->rest_n + out->ndim, TN_MAX_DIMS);
    return TN_OK;
}

/* ---- the order of the result's dimensions in memory ---- */

/* Strides of one operand in the dimensions of the result. */
typedef struct operand {
    int64_t strides[TN_MAX_DIMS];
} operand;

static void operand_of_self(const tni_index_plan *p, const tn_tensor *self, operand *o)
{
    int at = 0;
    for (int k = 0; k < p->rest_n + p->ndim; k++) {
        bool index_dim = k >= p->first && k < p->first + p->ndim;
        o->strides[k] = index_dim ? 0 : self->strides[p->rest[at++]] * (int64_t)tni_itemsize(self);
    }
}

/* Of an index, broadcast to the common sizes. */
static void broadcast_strides(const tni_index_plan *p, const tn_tensor *t, int64_t *strides)
{
    for (int d = p->ndim - 1; d >= 0; d--) {
        int own = d - (p->ndim - t->ndim);
        int64_t size = own >= 0 ? t->sizes[own] : 1;
        strides[d] = size != p->sizes[d] ? 0
                     : own >= 0          ? t->strides[own]
                     : d + 1 < p->ndim   ? p->sizes[d + 1] * strides[d + 1]
                                         : 1;
    }
}

/* An index stands among ones for the dimensions that it does not choose from. Such a one has the
 * stride that a view gives it where the result has one element, too; it decides where there is
 * nothing else to go by. */
static void operand_of_index(const tni_index_plan *p, const tn_tensor *t, const int64_t *sizes,
                             operand *o)
{
    int ndim = p->rest_n + p->ndim;
    int64_t own[TN_MAX_DIMS], shape[TN_MAX_DIMS], numel = 1, step = 1;
    broadcast_strides(p, t, own);
    for (int k = 0; k < ndim; k++) {
        bool index_dim = k >= p->first && k < p->first + p->ndim;
        shape[k] = index_dim ? p->sizes[k - p->first] : 1;
        numel *= shape[k];
    }
    bool viewed = tni_view_strides(p->ndim, p->sizes, own, numel, ndim, shape, o->strides);
    for (int k = ndim - 1; k >= 0; k--) {
        o->strides[k] = (viewed ? o->strides[k] : step) * (int64_t)tni_itemsize(t);
        if (shape[k] == 1 && sizes[k] != 1)
            o->strides[k] = 0;
        step *= shape[k];
    }
}

/* As in iter/layout.c, for one operand: whether dimension p comes after q. */
static int compare_by(const operand *o, const int64_t *sizes, int p, int q)
{
    int64_t s = o->strides[p], t = o->strides[q];
    if (s == 0 || t == 0)
        return 0;
    if (s != t)
        return s < t ? -1 : 1;
    return sizes[p] > sizes[q] ? 1 : 0;
}

static int compare(const tni_index_plan *plan, const tn_tensor *self, tn_tensor *const *indices,
                   const int64_t *sizes, int p, int q)
{
    operand o;
    operand_of_self(plan, self, &o);
    int c = compare_by(&o, sizes, p, q);
    for (int k = 0; c == 0 && k < plan->n; k++) {
        operand_of_index(plan, indices[plan->dims[k]], sizes, &o);
        c = compare_by(&o, sizes, p, q);
    }
    return c;
}

int tni_index_sizes(const tni_index_plan *plan, const tn_tensor *self, int64_t *sizes)
{
    int at = 0, ndim = plan->rest_n + plan->ndim;
    for (int k = 0; k < ndim; k++) {
        bool index_dim = k >= plan->first && k < plan->first + plan->ndim;
        sizes[k] = index_dim ? plan->sizes[k - plan->first] : self->sizes[plan->rest[at++]];
    }
    return ndim;
}

/* Nothing to sort: a contiguous self, indexed by contiguous tensors at its first dimensions. */
static bool plainly_row_major(const tni_index_plan *plan, const tn_tensor *self,
                              tn_tensor *const *indices)
{
    if (!(self->flags & TNI_CONTIGUOUS))
        return false;
    for (int k = 0; k < plan->n; k++)
        if (!(indices[plan->dims[k]]->flags & TNI_CONTIGUOUS))
            return false;
    return true;
}

void tni_index_geometry(const tni_index_plan *plan, const tn_tensor *self,
                        tn_tensor *const *indices, tni_geometry *g)
{
    tni_geometry_fresh(g, self, 0);
    g->ndim = tni_index_sizes(plan, self, g->sizes);
    int ndim = g->ndim;
    bool empty = false, alike = true; /* alike: all are of the sizes of the result */
    for (int d = 0; d < ndim; d++) {
        empty |= g->sizes[d] == 0;
        alike &= g->sizes[d] == 1 || (d >= plan->first && d < plan->first + plan->ndim);
    }
    if (empty ? alike : plainly_row_major(plan, self, indices))
        return;
    uint8_t perm[TN_MAX_DIMS];
    for (int d = 0; d < ndim; d++)
        perm[d] = (uint8_t)(ndim - 1 - d);
    for (int i = 1; i < ndim; i++) {
        int at = i;
        for (int j = i - 1; j >= 0; j--) {
            int c = compare(plan, self, indices, g->sizes, perm[j], perm[at]);
            if (c < 0)
                break;
            if (c == 0)
                continue;
            uint8_t moved = perm[j];
            perm[j] = perm[at];
            perm[at] = moved;
            at = j;
        }
    }
    bool plain = true;
    for (int d = 0; d < ndim; d++)
        plain &= perm[d] == ndim - 1 - d;
    if (plain)
        return;
    g->has_strides = true;
    int64_t step = 1;
    for (int d = 0; d < ndim; d++) {
        g->strides[perm[d]] = step;
        step *= g->sizes[perm[d]];
    }
}
