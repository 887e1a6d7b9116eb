/* SPDX-License-Identifier: MIT */
/* cpu/join.c: cat, stack, constant_pad_nd, repeat, roll, flip: copies between parts of tensors. */
#include <string.h>
#include "base/pool.h"
#include "cpu/ready.h"
#include "gen/cpu.h"
#include "gen/kernels.h"
#include "gen/shapes.h"
#include "iter/iter.h"
#include "shape/structured.h"
#include "tenon/ops.h"

/* An element of @p t, @p elements from its first. */
static void *at(const tn_tensor *t, int64_t elements)
{
    return (char *)t->data + elements * (int64_t)tni_itemsize(t);
}

/* A copy between parts of two tensors. Strides are in elements; those of the source may be
 * negative.
 */
typedef struct part {
    tn_dtype to, from;
    void *dst;
    const void *src;
    int ndim;
    const int64_t *sizes, *dst_strides, *src_strides;
} part;

/* All of both, which have the same sizes; the caller changes what differs. */
static part whole(const tn_tensor *dst, const tn_tensor *src)
{
    part c = {.to = (tn_dtype)dst->dtype,
              .from = (tn_dtype)src->dtype,
              .dst = dst->data,
              .src = src->data,
              .ndim = dst->ndim,
              .sizes = dst->sizes,
              .dst_strides = dst->strides,
              .src_strides = src->strides};
    return c;
}

static tn_status copy(const part *p)
{
    int64_t to[TN_MAX_DIMS], from[TN_MAX_DIMS];
    for (int d = 0; d < p->ndim; d++) {
        to[d] = p->dst_strides[d] * (int64_t)tni_dtype_size(p->to);
        from[d] = p->src_strides[d] * (int64_t)tni_dtype_size(p->from);
    }
    tni_strided c = {p->ndim, p->sizes, to, from, p->dst, p->src, p->to, p->from};
    return tni_copy_strided(&c);
}

/* ---- cat, stack ---- */

tn_status tni_cpu_cat(tn_tensor *const *tensors, int64_t tensors_n, int64_t dim, tn_tensor *out)
{
    int d;
    int64_t start = 0;
    if (out->numel == 0)
        return TN_OK;
    TN_TRY(tni_wrap_dim(dim, out->ndim, &d));
    for (int64_t i = 0; i < tensors_n; i++) {
        const tn_tensor *t = tensors[i];
        if (t->numel == 0)
            continue;
        part c = whole(out, t);
        c.sizes = t->sizes;
        c.dst = at(out, start * out->strides[d]);
        TN_TRY(copy(&c));
        start += t->sizes[d];
    }
    return TN_OK;
}

tn_status tni_cpu_stack(tn_tensor *const *tensors, int64_t tensors_n, int64_t dim, tn_tensor *out)
{
    int d;
    int64_t strides[TN_MAX_DIMS];
    if (out->numel == 0)
        return TN_OK;
    TN_TRY(tni_wrap_dim(dim, out->ndim, &d));
    for (int k = 0; k < out->ndim - 1; k++)
        strides[k] = out->strides[k + (k >= d)];
    for (int64_t i = 0; i < tensors_n; i++) {
        const tn_tensor *t = tensors[i];
        part c = whole(out, t);
        c.ndim = t->ndim;
        c.sizes = t->sizes;
        c.dst = at(out, i * out->strides[d]);
        c.dst_strides = strides;
        TN_TRY(copy(&c));
    }
    return TN_OK;
}

typedef tn_status (*join_fn)(tn_tensor *const *tensors, int64_t n, int64_t dim, tn_tensor *out);

static tn_status check_given(const char *name, tn_dtype dtype, const tn_tensor *out)
{
    if (tni_check_cast(dtype, (tn_dtype)out->dtype) == TN_OK)
        return TN_OK;
    TN_FAIL(TN_TYPE, "torch.%s(): input types can't be cast to the desired output type %s", name,
            tni_dtype_text((tn_dtype)out->dtype));
}

/* Unlike other structured operators these convert to the dtype of a given output. */
static tn_status join_out(const char *name, tni_geometry *g, join_fn fn, tn_tensor *const *tensors,
                          int64_t n, int64_t dim, tn_tensor *out)
{
    TN_AUTO(tn_tensor) beside = NULL;
    TN_TRY(check_given(name, g->dtype, out));
    g->dtype = (tn_dtype)out->dtype;
    TN_TRY(tni_out_prepare(name, g, out, tensors, (int)n, &beside));
    if (tni_is_meta(out))
        return TN_OK;
    TN_TRY(fn(tensors, n, dim, tni_out_target(out, beside)));
    return tni_out_finish(out, beside);
}

tn_status tni_kernel_cat_out(tn_call *call, tn_tensor *const *tensors, int64_t tensors_n,
                             int64_t dim, tn_tensor *out)
{
    (void)call;
    tni_geometry g;
    tn_dtype dtype;
    TN_TRY(tni_cat_dtype(tensors, tensors_n, dim, &dtype)); /* said before sizes that do not fit */
    TN_TRY(check_given("cat", dtype, out));
    TN_TRY(tni_shape_cat(&g, tensors, tensors_n, dim));
    return join_out("cat", &g, tni_cpu_cat, tensors, tensors_n, dim, out);
}

tn_status tni_kernel_stack_out(tn_call *call, tn_tensor *const *tensors, int64_t tensors_n,
                               int64_t dim, tn_tensor *out)
{
    (void)call;
    tni_geometry g;
    TN_TRY(tni_shape_stack(&g, tensors, tensors_n, dim));
    return join_out("stack", &g, tni_cpu_stack, tensors, tensors_n, dim, out);
}

/* ---- padding ---- */

tn_status tni_cpu_constant_pad_nd(tn_tensor *self, const int64_t *pad, int64_t pad_n,
                                  tn_scalar value, tn_tensor *out)
{
    int64_t sizes[TN_MAX_DIMS], from = 0, to = 0;
    bool grows = false;
    if (out->numel == 0)
        return TN_OK;
    for (int d = 0; d < self->ndim; d++) {
        int64_t k = self->ndim - 1 - d;
        int64_t before = 2 * k < pad_n ? pad[2 * k] : 0, after = 2 * k < pad_n ? pad[2 * k + 1] : 0;
        grows |= before > 0 || after > 0;
        int64_t first = before < 0 ? -before : 0;
        int64_t last = self->sizes[d] + (after < 0 ? after : 0);
        sizes[d] = last > first ? last - first : 0;
        from += first * self->strides[d];
        to += (before > 0 ? before : 0) * out->strides[d];
    }
    if (grows)
        TN_TRY(tn_fill_(out, value));
    for (int d = 0; d < self->ndim; d++)
        if (sizes[d] == 0)
            return TN_OK;
    part c = whole(out, self);
    c.sizes = sizes;
    c.src = at(self, from);
    c.dst = at(out, to);
    return copy(&c);
}

/* ---- repeat ---- */

/* Each dimension of the result is two: how often, and which element. Those of size 1 are left out,
 * so there are never too many: 2^64 elements would be. */
tn_status tni_cpu_repeat(tn_tensor *self, const int64_t *repeats, int64_t repeats_n, tn_tensor *out)
{
    int64_t sizes[TN_MAX_DIMS], to[TN_MAX_DIMS], from[TN_MAX_DIMS];
    int n = 0, lead = (int)repeats_n - self->ndim;
    if (out->numel == 0)
        return TN_OK;
    for (int d = 0; d < (int)repeats_n; d++) {
        int64_t size = d < lead ? 1 : self->sizes[d - lead];
        if (repeats[d] > 1) {
            TNI_REQUIRE(n < TN_MAX_DIMS);
            sizes[n] = repeats[d];
            to[n] = size * out->strides[d];
            from[n++] = 0;
        }
        if (size > 1) {
            TNI_REQUIRE(n < TN_MAX_DIMS);
            sizes[n] = size;
            to[n] = out->strides[d];
            from[n++] = self->strides[d - lead];
        }
    }
    part c = whole(out, self);
    c.ndim = n;
    c.sizes = sizes;
    c.dst_strides = to;
    c.src_strides = from;
    return copy(&c);
}

/* ---- roll ---- */

/* Copy part by part: dimension @p d and those after it are still to be cut in two. */
static tn_status roll_parts(part *c, const tn_tensor *self, tn_tensor *out, const int64_t *shifts,
                            int d, int64_t *sizes, int64_t from, int64_t to)
{
    while (d < self->ndim && shifts[d] == 0)
        d++;
    if (d == self->ndim) {
        c->src = at(self, from);
        c->dst = at(out, to);
        return copy(c);
    }
    int64_t size = self->sizes[d], shift = shifts[d];
    sizes[d] = size - shift;
    TN_TRY(roll_parts(c, self, out, shifts, d + 1, sizes, from, to + shift * out->strides[d]));
    sizes[d] = shift;
    TN_TRY(roll_parts(c, self, out, shifts, d + 1, sizes, from + (size - shift) * self->strides[d],
                      to));
    sizes[d] = size;
    return TN_OK;
}

/* Note [Short lines rolled]: lines of a few elements, side by side, are rolled as one long vector,
 * one copy, and the elements that came from the line beside are then written again, column by
 * column. Line by line it would take longer to begin a copy than to make it. */
#define SHORT_LINE 16

typedef struct short_lines {
    const char *src;
    char *dst;
    int64_t length, shift; /* by which elements go up; negative: down, by less than they would up */
    size_t itemsize;
} short_lines;

#define COLUMN(SIZE)                                                      \
    case SIZE:                                                            \
        for (int64_t i = 0; i < n; i++)                                   \
            memcpy(dst + (size_t)i * line, src + (size_t)i * line, SIZE); \
        break

/* One element of each of @p n lines of @p line bytes. */
static void copy_column(char *dst, const char *src, int64_t n, size_t line, size_t itemsize)
{
    switch (itemsize) {
        COLUMN(1);
        COLUMN(2);
        COLUMN(4);
        COLUMN(8);
        COLUMN(16);
    }
}

static tn_status roll_some(int64_t begin, int64_t end, void *arg)
{
    const short_lines *r = arg;
    const size_t size = r->itemsize, line = (size_t)r->length * size;
    const int64_t moved = r->shift < 0 ? -r->shift : r->shift;
    const size_t by = (size_t)moved * size, all = (size_t)(end - begin) * line;
    const char *src = r->src + (size_t)begin * line;
    char *dst = r->dst + (size_t)begin * line;
    bool up = r->shift > 0;
    memcpy(up ? dst + by : dst, up ? src : src + by, all - by);
    for (int64_t k = 0; k < moved; k++) {
        size_t first = (size_t)k * size, last = line - by + first;
        copy_column(dst + (up ? first : last), src + (up ? last : first), end - begin, line, size);
    }
    return TN_OK;
}

/* Whether the last dimension alone is rolled, and is as in Note [Short lines rolled]. */
static bool is_short(const tn_tensor *self, const tn_tensor *out, const int64_t *by)
{
    int last = self->ndim - 1;
    for (int d = 0; d < last; d++)
        if (by[d])
            return false;
    return (self->flags & out->flags & TNI_CONTIGUOUS) && by[last] && self->dtype == out->dtype &&
           self->sizes[last] <= SHORT_LINE;
}

static tn_status roll_short(const tn_tensor *self, int64_t by, tn_tensor *out)
{
    int64_t length = self->sizes[self->ndim - 1];
    short_lines r = {.src = self->data,
                     .dst = out->data,
                     .length = length,
                     .shift = 2 * by <= length ? by : by - length,
                     .itemsize = tni_itemsize(self)};
    return tni_pool_for(self->numel / length, 32768 / length, roll_some, &r);
}

/* As one long vector. */
static tn_status roll_flat(tn_tensor *self, int64_t shift, tn_tensor *out)
{
    TN_AUTO(tn_tensor) x = NULL;
    TN_AUTO(tn_tensor) y = NULL;
    TN_TRY(tni_ready(self, (tn_dtype)self->dtype, &x));
    TN_TRY(tni_work_of(out, (tn_dtype)out->dtype, &y));
    size_t itemsize = tni_itemsize(self), head = (size_t)(self->numel - shift) * itemsize;
    memcpy((char *)y->data + (size_t)shift * itemsize, x->data, head);
    memcpy(y->data, (char *)x->data + head, (size_t)shift * itemsize);
    return tni_work_back(out, y);
}

static int64_t positive_modulo(int64_t a, int64_t n)
{
    int64_t r = a % n;
    return r < 0 ? r + n : r;
}

tn_status tni_cpu_roll(tn_tensor *self, const int64_t *shifts, int64_t shifts_n,
                       const int64_t *dims, int64_t dims_n, tn_tensor *out)
{
    int64_t by[TN_MAX_DIMS] = {0}, sizes[TN_MAX_DIMS];
    if (self->numel == 0)
        return TN_OK;
    if (dims_n == 0)
        return roll_flat(self, positive_modulo(shifts[0], self->numel), out);
    for (int64_t i = 0; i < shifts_n; i++) {
        int d;
        TN_TRY(tni_wrap_dim(dims[i], self->ndim, &d));
        by[d] = positive_modulo(by[d] + positive_modulo(shifts[i], self->sizes[d]), self->sizes[d]);
    }
    for (int d = 0; d < self->ndim; d++)
        sizes[d] = self->sizes[d];
    if (self->ndim && is_short(self, out, by))
        return roll_short(self, by[self->ndim - 1], out);
    part c = whole(out, self);
    c.sizes = sizes;
    return roll_parts(&c, self, out, by, 0, sizes, 0, 0);
}

/* ---- flip ---- */

/* Read backwards. */
tn_status tni_cpu_flip(tn_tensor *self, const int64_t *dims, int64_t dims_n, tn_tensor *out)
{
    int64_t strides[TN_MAX_DIMS], from = 0;
    if (self->numel == 0)
        return TN_OK;
    for (int d = 0; d < self->ndim; d++)
        strides[d] = self->strides[d];
    for (int64_t i = 0; self->ndim > 0 && i < dims_n; i++) {
        int d;
        TN_TRY(tni_wrap_dim(dims[i], self->ndim, &d));
        from += (self->sizes[d] - 1) * self->strides[d];
        strides[d] = -self->strides[d];
    }
    part c = whole(out, self);
    c.src = at(self, from);
    c.src_strides = strides;
    return copy(&c);
}
