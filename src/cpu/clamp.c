/* SPDX-License-Identifier: MIT */
/* cpu/clamp.c: bounds, either of which may be missing, and filling by a mask. The kernels serve the
 * CPU and Meta. */
#include "core/scalar.h"
#include "cpu/run.h"
#include "gen/kernels.h"
#include "shape/expand.h"
#include "shape/index.h"
#include "tenon/ops.h"

/* ---- clamp ---- */

/* NULL tensor and no number: no such bound. */
typedef struct bound {
    bool given;
    tni_operand operand;
} bound;

static bound bound_number(const tn_scalar *s)
{
    bound b = {.given = s != NULL};
    if (s)
        b.operand.scalar = *s;
    return b;
}

static bound bound_tensor(tn_tensor *t)
{
    return (bound){.given = t != NULL, .operand = {.tensor = t}};
}

static tn_status check(const tni_operand *in, int n, const tn_tensor *given, const char *kernel)
{
    tn_dtype dtype = tni_result_type(in, n);
    TN_CHECK(!tn_dtype_is_complex(dtype), TN_UNSUPPORTED,
             "clamp is not supported for complex types");
    if (kernel && dtype == TN_DTYPE_BOOL) {
        if (in[1].tensor)
            TN_TRY(tni_iter_check(in, n, given));
        TN_FAIL(TN_UNSUPPORTED, "\"%s\" not implemented for 'Bool'", kernel);
    }
    for (int i = 1; i < n; i++)
        if (!in[i].tensor)
            TN_TRY(tni_check_number(in[i].scalar, dtype));
    return TN_OK;
}

static tn_status clamp(tn_tensor *self, bound min, bound max, tn_tensor *given, int mode,
                       tn_tensor **out)
{
    tni_operand in[3] = {{.tensor = self}};
    int n = 1;
    TN_CHECK(min.given || max.given, TN_INVALID,
             "torch.clamp: At least one of 'min' or 'max' must not be None");
    if (min.given)
        in[n++] = min.operand;
    if (max.given)
        in[n++] = max.operand;
    bool numbers = !in[1].tensor;
    const char *kernel = n == 3      ? (numbers ? "clamp_scalar_cpu" : "clamp_cpu")
                         : min.given ? (numbers ? "clamp_min_scalar_cpu" : "maximum_cpu")
                                     : (numbers ? "clamp_max_scalar_cpu" : "minimum_cpu");
    TN_TRY(check(in, n, given, n == 3 || numbers ? kernel : NULL));
    const tni_pointwise_attr attr = {"clamp", TNI_PW_PROMOTE, TNI_LAYOUT_TENSORS, 0, kernel};
    tni_iter it;
    TN_TRY(tni_iter_begin(&it, &attr, in, n, given, mode));
    tni_loop loop = n == 3 ? TNI_LOOP_CLAMP : min.given ? TNI_LOOP_MAXIMUM : TNI_LOOP_MINIMUM;
    tn_status status = tni_is_meta(it.out) ? TN_OK : tni_run(&it, loop, 0, NULL);
    return tni_iter_end(&it, status, out);
}

tn_status tni_kernel_clamp(tn_call *call, tn_tensor *self, const tn_scalar *min,
                           const tn_scalar *max, tn_tensor **out)
{
    (void)call;
    return clamp(self, bound_number(min), bound_number(max), NULL, TNI_ITER_NEW, out);
}

tn_status tni_kernel_clamp_(tn_call *call, tn_tensor *self, const tn_scalar *min,
                            const tn_scalar *max)
{
    (void)call;
    return clamp(self, bound_number(min), bound_number(max), self, TNI_ITER_INPLACE, NULL);
}

tn_status tni_kernel_clamp_out(tn_call *call, tn_tensor *self, const tn_scalar *min,
                               const tn_scalar *max, tn_tensor *out)
{
    (void)call;
    return clamp(self, bound_number(min), bound_number(max), out, TNI_ITER_OUT, NULL);
}

tn_status tni_kernel_clamp_tensor(tn_call *call, tn_tensor *self, tn_tensor *min, tn_tensor *max,
                                  tn_tensor **out)
{
    (void)call;
    return clamp(self, bound_tensor(min), bound_tensor(max), NULL, TNI_ITER_NEW, out);
}

tn_status tni_kernel_clamp_tensor_(tn_call *call, tn_tensor *self, tn_tensor *min, tn_tensor *max)
{
    (void)call;
    return clamp(self, bound_tensor(min), bound_tensor(max), self, TNI_ITER_INPLACE, NULL);
}

tn_status tni_kernel_clamp_tensor_out(tn_call *call, tn_tensor *self, tn_tensor *min,
                                      tn_tensor *max, tn_tensor *out)
{
    (void)call;
    return clamp(self, bound_tensor(min), bound_tensor(max), out, TNI_ITER_OUT, NULL);
}

/* ---- masked_fill ---- */

static tn_status check_mask(const tn_tensor *mask)
{
    TN_CHECK(mask->dtype == TN_DTYPE_BOOL, TN_INVALID,
             "masked_fill_ only supports boolean masks, but got mask with dtype %s",
             tni_dtype_cpp((tn_dtype)mask->dtype));
    return TN_OK;
}

static tn_status check_value(const tn_tensor *self, const tn_tensor *value)
{
    TN_CHECK(value->ndim == 0, TN_INVALID,
             "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with %d "
             "dimension(s).",
             value->ndim);
    return tni_is_meta(value) ? tni_same_device(self, value) : TN_OK;
}

/* The number as one of the tensor's own kind, so that it has no say in the dtype. */
static tn_scalar of_kind(tn_scalar value, tn_dtype dtype)
{
    _Alignas(16) char element[16];
    tni_scalar_store(value, dtype, element);
    return tni_scalar_load(dtype, element);
}

static tn_status fill(tn_tensor *self, tn_tensor *mask, tni_operand value, tn_tensor *out)
{
    static const tni_pointwise_attr attr = {"masked_fill", TNI_PW_WHERE, TNI_LAYOUT_OPERANDS, 0,
                                            "masked_fill"};
    if (!value.tensor) {
        TN_TRY(tni_check_number(value.scalar, (tn_dtype)self->dtype));
        value.scalar = of_kind(value.scalar, (tn_dtype)self->dtype);
    }
    const tni_operand in[] = {{.tensor = mask}, value, {.tensor = self}};
    tni_iter it;
    TN_TRY(tni_iter_begin(&it, &attr, in, 3, out, TNI_ITER_OUT));
    tn_status status = TN_OK;
    if (!tni_is_meta(out))
        status = tni_run(&it, TNI_LOOP_WHERE, TNI_RUN_CONDITION | TNI_RUN_RAW, NULL);
    return tni_iter_end(&it, status, NULL);
}

/* A 0-dim tensor is read as a number, but on Meta, where there is nothing to read; what it holds is
 * of no importance there. */
static tni_operand value_of(tn_tensor *value)
{
    tni_operand o = {.scalar = tn_int(0)};
    if (!tni_is_meta(value))
        o.scalar = tni_scalar_load((tn_dtype)value->dtype, value->data);
    return o;
}

static tn_status fill_new(tn_tensor *self, tn_tensor *mask, tni_operand value, tn_tensor **out)
{
    int ndim;
    int64_t sizes[TN_MAX_DIMS];
    TN_AUTO(tn_tensor) made = NULL;
    TN_TRY(tni_broadcast_sizes(mask->ndim, mask->sizes, self->ndim, self->sizes, &ndim, sizes));
    TN_TRY(tni_tensor_new(ndim, sizes, NULL, (tn_dtype)self->dtype, self->device, &made));
    TN_TRY(fill(self, mask, value, made));
    *out = TN_MOVE(made);
    return TN_OK;
}

/* An expanded tensor: an element is filled when the mask says so at any of its places. */
static tn_status fill_expanded(tn_tensor *self, tn_tensor *mask, tni_operand value)
{
    int64_t dims[TN_MAX_DIMS], sizes[TN_MAX_DIMS], n = 0;
    TN_AUTO(tn_tensor) whole = NULL;
    TN_AUTO(tn_tensor) any = NULL;
    TN_AUTO(tn_tensor) once = NULL;
    for (int d = 0; d < self->ndim; d++) {
        bool repeated = self->strides[d] == 0 && self->sizes[d] > 1;
        sizes[d] = repeated ? 1 : self->sizes[d];
        if (repeated)
            dims[n++] = d;
    }
    TN_TRY(tn_expand(mask, self->sizes, self->ndim, false, &whole));
    TN_TRY(tn_any_dims(whole, dims, n, true, &any));
    TN_TRY(tni_tensor_alias(self, self->ndim, sizes, self->strides, self->offset, &once));
    return fill(once, any, value, once);
}

static tn_status fill_self(tn_tensor *self, tn_tensor *mask, tni_operand value)
{
    int ndim;
    int64_t sizes[TN_MAX_DIMS];
    TN_TRY(tni_broadcast_sizes(self->ndim, self->sizes, mask->ndim, mask->sizes, &ndim, sizes));
    bool expanded = false;
    for (int d = 0; d < self->ndim; d++)
        expanded |= self->strides[d] == 0 && self->sizes[d] > 1;
    if (expanded && ndim == self->ndim && self->numel > 0)
        return fill_expanded(self, mask, value);
    return fill(self, mask, value, self);
}

tn_status tni_kernel_masked_fill_scalar(tn_call *call, tn_tensor *self, tn_tensor *mask,
                                        tn_scalar value, tn_tensor **out)
{
    (void)call;
    TN_TRY(check_mask(mask));
    return fill_new(self, mask, (tni_operand){.scalar = value}, out);
}

tn_status tni_kernel_masked_fill_scalar_(tn_call *call, tn_tensor *self, tn_tensor *mask,
                                         tn_scalar value)
{
    (void)call;
    TN_TRY(check_mask(mask));
    return fill_self(self, mask, (tni_operand){.scalar = value});
}

tn_status tni_kernel_masked_fill_tensor(tn_call *call, tn_tensor *self, tn_tensor *mask,
                                        tn_tensor *value, tn_tensor **out)
{
    (void)call;
    TN_TRY(check_value(self, value));
    TN_TRY(check_mask(mask));
    return fill_new(self, mask, value_of(value), out);
}

tn_status tni_kernel_masked_fill_tensor_(tn_call *call, tn_tensor *self, tn_tensor *mask,
                                         tn_tensor *value)
{
    (void)call;
    TN_TRY(check_value(self, value));
    TN_TRY(check_mask(mask));
    return fill_self(self, mask, value_of(value));
}
