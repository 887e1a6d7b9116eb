/* SPDX-License-Identifier: MIT */
/* shape/structured.c: `out=` and in-place results of structured operators: checks, resizing, and
 * temporaries where memory is shared. */
#include "shape/structured.h"
#include "base/warn.h"
#include "core/state.h"
#include "shape/geometry.h"
#include "tenon/ops.h"

static bool can_cast(tn_dtype from, tn_dtype to)
{
    return !(tn_dtype_is_complex(from) && !tn_dtype_is_complex(to)) &&
           !(tn_dtype_is_floating(from) && tn_dtype_is_integral(to, true)) &&
           !(from != TN_DTYPE_BOOL && to == TN_DTYPE_BOOL);
}

tn_status tni_check_cast(tn_dtype from, tn_dtype to)
{
    TN_CHECK(can_cast(from, to), TN_INVALID,
             "result type %s can't be cast to the desired output type %s", tni_dtype_text(from),
             tni_dtype_text(to));
    return TN_OK;
}

static TNI_COLD tn_status refuse_dtype(tn_status bad, tn_dtype from, tn_dtype to, const char *text)
{
    char line[256];
    size_t n = 0;
    for (; *text && n < sizeof line - 1; text++) {
        if (text[0] != '%' || !text[1]) {
            line[n++] = *text;
            continue;
        }
        tn_dtype dtype = *++text == 'w' || *text == 'W' ? from : to;
        const char *name =
            *text == 'w' || *text == 'g' ? tni_dtype_text(dtype) : tni_dtype_cpp(dtype);
        for (; *name && n < sizeof line - 1; name++)
            line[n++] = *name;
    }
    line[n] = '\0';
    TN_FAIL(bad, "%s", line);
}

tn_status tni_check_safe(tn_status bad, tn_dtype from, const tn_tensor *out, const char *text)
{
    if (TNI_LIKELY(!out || can_cast(from, (tn_dtype)out->dtype)))
        return TN_OK;
    return refuse_dtype(bad, from, (tn_dtype)out->dtype, text);
}

tn_status tni_check_float(tn_dtype from, const tn_tensor *out, const char *text)
{
    if (TNI_LIKELY(!out || tn_dtype_is_floating((tn_dtype)out->dtype)))
        return TN_OK;
    return refuse_dtype(TN_INVALID, from, (tn_dtype)out->dtype, text);
}

tn_status tni_check_exact(tn_dtype from, const tn_tensor *out, const char *text)
{
    if (TNI_LIKELY(!out || out->dtype == (int8_t)from))
        return TN_OK;
    return refuse_dtype(TN_INVALID, from, (tn_dtype)out->dtype, text);
}

tn_status tni_check_meta(const tni_geometry *g, int n)
{
    char device[32];
    for (int i = 0; i < n && !tni_tls.faking; i++)
        TN_CHECK(g[i].device.type == TN_DEVICE_META, TN_INVALID,
                 "Expected all tensors to be on the same device, but found at least two devices, "
                 "%s and meta!",
                 tn_device_format(g[i].device, device, sizeof device));
    return TN_OK;
}

static bool has_sizes(const tn_tensor *t, const tni_geometry *g)
{
    if (t->ndim != g->ndim)
        return false;
    for (int i = 0; i < g->ndim; i++) {
        if (t->sizes[i] != g->sizes[i])
            return false;
    }
    return true;
}

/* The address past the last byte that a tensor with elements can touch; its first one is its data.
 */
static inline uintptr_t end_of(const tn_tensor *t)
{
    int64_t last = t->numel - 1;
    if (TNI_UNLIKELY(!(t->flags & TNI_CONTIGUOUS))) {
        last = 0;
        for (int i = 0; i < t->ndim; i++)
            last += (t->sizes[i] - 1) * t->strides[i];
    }
    return (uintptr_t)t->data + (size_t)(last + 1) * tni_itemsize(t);
}

/* By address, not by storage: two storages may lie over one piece of foreign memory. An input that
 * is the output itself would change its sizes with it, also where it has no elements. */
static inline bool shares_with_any(const tn_tensor *t, tn_tensor *const *others, int n)
{
    for (int i = 0; i < n; i++)
        if (TNI_UNLIKELY(others[i] == t))
            return true;
    if (!t->data)
        return false;
    const uintptr_t first = (uintptr_t)t->data, end = end_of(t);
    for (int i = 0; i < n; i++)
        if (others[i] && others[i]->data && (uintptr_t)others[i]->data < end &&
            end_of(others[i]) > first)
            return true;
    return false;
}

static TNI_COLD tn_status bad_out(const tni_geometry *g, const tn_tensor *out)
{
    char want[32], have[32];
    TN_CHECK(out->dtype == (int8_t)g->dtype, TN_INVALID,
             "Expected out tensor to have dtype %s, but got %s instead", tni_dtype_cpp(g->dtype),
             tni_dtype_cpp((tn_dtype)out->dtype));
    TN_FAIL(TN_INVALID, "Expected out tensor to have device %s, but got %s instead",
            tn_device_format(g->device, want, sizeof want),
            tn_device_format(out->device, have, sizeof have));
}

static TNI_COLD tn_status bad_inplace(const tni_geometry *g, const tn_tensor *self)
{
    char have[TNI_SIZES_TEXT], want[TNI_SIZES_TEXT];
    if (!has_sizes(self, g))
        TN_FAIL(TN_INVALID,
                "Bad in-place call: input tensor size %s and output tensor size %s should match",
                tni_format_sizes(self->ndim, self->sizes, have, sizeof have),
                tni_format_sizes(g->ndim, g->sizes, want, sizeof want));
    TN_CHECK(self->dtype == (int8_t)g->dtype, TN_INVALID,
             "Bad in-place call: input tensor dtype %s and output tensor dtype %s should match",
             tni_dtype_cpp((tn_dtype)self->dtype), tni_dtype_cpp(g->dtype));
    TN_FAIL(TN_INVALID,
            "Bad in-place call: input tensor device %s and output tensor device %s should match",
            tn_device_format(self->device, have, sizeof have),
            tn_device_format(g->device, want, sizeof want));
}

static bool same_device(tn_device a, tn_device b)
{
    return a.type == b.type && a.index == b.index;
}

static tn_status resize_out(tn_tensor *out, int ndim, const int64_t *sizes, const int64_t *strides)
{
    TN_TRY(tni_tensor_resize(out, ndim, sizes));
    return strides ? tni_tensor_set_geometry(out, ndim, sizes, strides, out->offset) : TN_OK;
}

static inline tn_status check_out(const char *op, const tni_geometry *g, const tn_tensor *out,
                                  bool *fits)
{
    TN_CHECK(out, TN_INVALID, "%s(): argument 'out' must be a tensor, not NULL", op);
    if (TNI_UNLIKELY(out->dtype != (int8_t)g->dtype || !same_device(out->device, g->device)))
        return bad_out(g, out);
    *fits = has_sizes(out, g);
    /* One that is dense repeats nothing. */
    return *fits && !(out->flags & TNI_DENSE) ? tni_check_internal_overlap(out) : TN_OK;
}

tn_status tni_out_check(const char *op, const tni_geometry *g, const tn_tensor *out)
{
    bool fits;
    return check_out(op, g, out, &fits);
}

tn_status tni_out_check_cast(const char *op, const tni_geometry *g, const tn_tensor *out)
{
    if (TNI_LIKELY(!out || out->dtype == (int8_t)g->dtype || !same_device(out->device, g->device)))
        return tni_out_check(op, g, out);
    TN_TRY(tni_check_cast(g->dtype, (tn_dtype)out->dtype));
    return has_sizes(out, g) ? tni_check_internal_overlap(out) : TN_OK;
}

void tni_out_keep(tni_out_kept *kept, tn_tensor *out, const tni_geometry *g)
{
    kept->out = out && !has_sizes(out, g) ? out : NULL;
    if (TNI_UNLIKELY(kept->out)) {
        tni_geometry_copy(&kept->g, out);
        kept->nbytes = out->storage->nbytes;
    }
}

static bool has_strides(const tn_tensor *t, const tni_geometry *g)
{
    return memcmp(t->strides, g->strides, (size_t)g->ndim * sizeof *g->strides) == 0;
}

/* One tensor that stands for two results may have been resized twice, to its sizes in the end. */
void tni_out_restore(const tni_out_kept *kept)
{
    tn_tensor *out = kept->out;
    if (!out || (has_sizes(out, &kept->g) && has_strides(out, &kept->g) &&
                 out->storage->nbytes == kept->nbytes))
        return;
    tni_tensor_put_back(out, &kept->g, kept->nbytes);
}

/* Where neither has gaps this is exact; columns of one matrix may lie beside each other. */
static bool overlap(const tn_tensor *a, const tn_tensor *b)
{
    tn_tensor *other = (tn_tensor *)(uintptr_t)b;
    if (a == b)
        return true;
    if (a->numel == 0 || b->numel == 0)
        return false;
    if (!a->data)
        return a->storage == b->storage && a->offset == b->offset;
    return (a->data == b->data || (a->flags & b->flags & TNI_DENSE)) &&
           shares_with_any(a, &other, 1);
}

tn_status tni_outs_apart(tn_tensor *const *outs, int64_t n)
{
    for (int64_t i = 1; i < n; i++)
        for (int64_t k = 0; outs[i] && k < i; k++)
            TN_CHECK(!outs[k] || !overlap(outs[i], outs[k]), TN_INVALID,
                     "unsupported operation: some elements of two written-to tensors refer to a "
                     "single memory "
                     "location. Please clone() one of them before performing the operation.");
    return TN_OK;
}

tn_status tni_out_tell(const tn_tensor *out, int ndim, const int64_t *sizes)
{
    char have[TNI_SIZES_TEXT], want[TNI_SIZES_TEXT];
    if (out->numel == 0 || !tni_somebody_listens())
        return TN_OK;
    return tni_warn("An output with one or more elements was resized since it had shape %s, which "
                    "does not match the required output shape %s. This behavior is deprecated, and "
                    "in a future PyTorch release outputs will not be resized unless they have zero "
                    "elements. You can explicitly reuse an out tensor t by resizing it, inplace, "
                    "to zero elements with t.resize_(0).",
                    tni_format_sizes(out->ndim, out->sizes, have, sizeof have),
                    tni_format_sizes(ndim, sizes, want, sizeof want));
}

/* What stands in for @p out, which is resized when other results may have been written already. */
static tn_status make_beside(const tni_geometry *g, const tn_tensor *out, tn_tensor **beside)
{
    if (!has_sizes(out, g))
        TN_TRY(tni_tensor_check_resize(out, g->ndim, g->sizes));
    return tni_tensor_from_geometry(g, beside);
}

tn_status tni_out_prepare(const char *op, const tni_geometry *g, tn_tensor *out,
                          tn_tensor *const *inputs, int n, tn_tensor **beside)
{
    bool fits = false;
    TN_TRY(check_out(op, g, out, &fits));
    if (TNI_UNLIKELY(!fits))
        TN_TRY(tni_out_tell(out, g->ndim, g->sizes));
    if (TNI_UNLIKELY(!tni_is_meta(out) && shares_with_any(out, inputs, n)))
        return make_beside(g, out, beside);
    if (TNI_UNLIKELY(!fits))
        TN_TRY(resize_out(out, g->ndim, g->sizes, g->has_strides ? g->strides : NULL));
    return TN_OK;
}

tn_status tni_out_prepare_cast(const char *op, const tni_geometry *g, tn_tensor *out,
                               tn_tensor *const *inputs, int n, tn_tensor **beside)
{
    if (TNI_LIKELY(!out || out->dtype == (int8_t)g->dtype || !same_device(out->device, g->device)))
        return tni_out_prepare(op, g, out, inputs, n, beside);
    TN_TRY(tni_out_check_cast(op, g, out));
    if (tni_is_meta(out)) { /* nothing will be computed, or brought over */
        tni_geometry same = *g;
        same.dtype = (tn_dtype)out->dtype;
        return tni_out_prepare(op, &same, out, inputs, n, beside);
    }
    if (!has_sizes(out, g))
        TN_TRY(tni_out_tell(out, g->ndim, g->sizes));
    return make_beside(g, out, beside);
}

tn_status tni_inplace_prepare(const char *op, const tni_geometry *g, tn_tensor *self,
                              tn_tensor *const *others, int n, tn_tensor **beside)
{
    TN_CHECK(self, TN_INVALID, "%s(): argument 'self' must be a tensor, not NULL", op);
    if (TNI_UNLIKELY(!has_sizes(self, g) || self->dtype != (int8_t)g->dtype ||
                     !same_device(self->device, g->device)))
        return bad_inplace(g, self);
    TN_TRY(tni_check_internal_overlap(self));
    if (TNI_UNLIKELY(!tni_is_meta(self) && shares_with_any(self, others, n)))
        return tni_tensor_from_geometry(g, beside);
    return TN_OK;
}

tn_status tni_out_finish(tn_tensor *out, tn_tensor *beside)
{
    if (TNI_LIKELY(!beside))
        return TN_OK;
    /* A temporary stood in: only now may memory that the inputs share change. */
    TN_TRY(tni_tensor_resize(out, beside->ndim, beside->sizes));
    return tn_copy_(out, beside, false);
}
