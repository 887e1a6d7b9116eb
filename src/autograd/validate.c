/* SPDX-License-Identifier: MIT */
/* autograd/validate.c: what a gradient must look like, and sums of gradients.
 *
 * This is also how broadcasting is undone: formulas of elementwise operators give gradients of full
 * size, and they are summed here. */
#include "autograd/validate.h"
#include "autograd/accumulate.h"
#include "core/state.h"

#include <stdio.h>
#include "tenon/ops.h"

/* "Function MulBackward0 returned an " or nothing, before each text. */
#define PREFIX_FORMAT "%s%s%s"
#define PREFIX_VALUES(n) \
    (n) ? "Function " : "", (n) ? (n)->cls->name : "", (n) ? " returned an " : ""

/* Can a tensor of sizes @p from be broadcast to @p to? */
static bool expands_to(int from_ndim, const int64_t *from, int to_ndim, const int64_t *to)
{
    int lead = to_ndim - from_ndim;
    if (lead < 0)
        return false;
    for (int d = 0; d < from_ndim; d++)
        if (from[d] != 1 && from[d] != to[lead + d])
            return false;
    return true;
}

static bool same_sizes(const tn_tensor *t, int ndim, const int64_t *sizes)
{
    if (t->ndim != ndim)
        return false;
    for (int d = 0; d < ndim; d++)
        if (t->sizes[d] != sizes[d])
            return false;
    return true;
}

static bool same_device(tn_device a, tn_device b)
{
    return a.type == b.type && (a.index == b.index || a.index < 0 || b.index < 0);
}

static tn_status sum_to(tn_tensor *grad, int ndim, const int64_t *sizes, tn_tensor **out)
{
    int lead = grad->ndim - ndim;
    int64_t dims[TN_MAX_DIMS];
    int64_t n = 0;
    for (int d = 0; d < grad->ndim; d++)
        if (d < lead || (sizes[d - lead] == 1 && grad->sizes[d] != 1))
            dims[n++] = d;
    TN_AUTO(tn_tensor) sum = NULL;
    TN_TRY(tn_sum_dim(grad, dims, n, true, TN_DTYPE_NONE, &sum));
    if (lead > 0)
        return tn_reshape(sum, sizes, ndim, out);
    *out = TN_MOVE(sum);
    return TN_OK;
}

/* Replace *at, a reference, by what @p status and @p next say. */
static tn_status step(tn_tensor **at, tn_status status, tn_tensor *next)
{
    if (status == TN_OK) {
        tn_tensor_unref(*at);
        *at = next;
    }
    return status;
}

/* Whether a complex gradient may come for what is real, which gets its real part. */
static bool takes_real_part(const tni_node *node, const tni_input *in, const tn_tensor *grad)
{
    return node && (node->cls->flags & TNI_CLASS_REAL_PARTS) &&
           tn_dtype_is_complex((tn_dtype)grad->dtype) && tn_dtype_is_floating((tn_dtype)in->dtype);
}

/* A view of a complex gradient, where only its real part counts. */
static tn_status fit_part(const tni_node *node, const tni_input *in, tn_tensor **at)
{
    if (!takes_real_part(node, in, *at))
        return TN_OK;
    tn_tensor *next = NULL;
    tn_status status = tn_real(*at, &next);
    return step(at, status, next);
}

static tn_status fit_dtype(const tni_input *in, tn_tensor **at)
{
    tn_dtype has = (tn_dtype)(*at)->dtype, wants = (tn_dtype)in->dtype;
    TN_CHECK(tn_dtype_is_floating(has) || tn_dtype_is_complex(has) == tn_dtype_is_complex(wants),
             TN_INVALID,
             "Expected isFloatingType(grad.scalar_type()) || (input_is_complex == grad_is_complex) "
             "to be true, but got false.  (Could this error message be improved?  If so, please "
             "report an enhancement request to PyTorch.)");
    if (has == wants)
        return TN_OK;
    tn_tensor *next = NULL;
    tn_status status = tn_to_dtype(*at, wants, false, false, TN_FORMAT_NONE, &next);
    return step(at, status, next);
}

tn_status tni_gradient_fit(const tni_node *node, uint32_t i, const tni_input *in, tn_tensor *grad,
                           tn_tensor **out)
{
    if (in->dtype == TN_DTYPE_NONE) {
        *out = tn_tensor_ref(grad);
        return TN_OK;
    }
    const int64_t *sizes = tni_input_sizes(in);
    TN_AUTO(tn_tensor) at = tn_tensor_ref(grad);
    tn_tensor *next = NULL;
    TN_TRY(fit_part(node, in, &at));
    if (!same_sizes(grad, in->ndim, sizes)) {
        char got[TNI_SIZES_TEXT], wanted[TNI_SIZES_TEXT];
        TN_CHECK(expands_to(in->ndim, sizes, grad->ndim, grad->sizes), TN_INVALID,
                 PREFIX_FORMAT
                 "invalid gradient at index %u - got %s but expected shape compatible "
                 "with %s",
                 PREFIX_VALUES(node), i, tni_format_sizes(grad->ndim, grad->sizes, got, sizeof got),
                 tni_format_sizes(in->ndim, sizes, wanted, sizeof wanted));
        tn_status status = sum_to(at, in->ndim, sizes, &next);
        TN_TRY(step(&at, status, next));
    }
    TN_TRY(fit_dtype(in, &at));
    if (!same_device(at->device, in->device)) {
        char got[32], wanted[32];
        TN_CHECK(at->ndim == 0, TN_INVALID,
                 PREFIX_FORMAT "invalid gradient at index %u - expected device %s but got %s",
                 PREFIX_VALUES(node), i, tn_device_format(in->device, wanted, sizeof wanted),
                 tn_device_format(at->device, got, sizeof got));
        tn_status status =
            tn_to_device(at, in->device, (tn_dtype)at->dtype, false, false, TN_FORMAT_NONE, &next);
        TN_TRY(step(&at, status, next));
    }
    *out = TN_MOVE(at);
    return TN_OK;
}

tn_status tni_gradient_add(tn_tensor **slot, tn_tensor *grad)
{
    tn_tensor *old = *slot;
    if (!old) {
        *slot = grad;
        return TN_OK;
    }
    tn_status status;
    /* A tensor takes no sum of slices, which are many. */
    if (tni_tls.no_grad && (old->flags & TNI_DENSE) && tni_is_ours(old) &&
        !(grad->keys & TNI_FBIT(TN_KEY_PYTHON))) {
        status = tn_add_(old, grad, tn_int(1));
    } else {
        /* A sparse one is added to a dense one, whichever came first. */
        bool swap =
            (old->keys & TNI_FBIT(TN_KEY_PYTHON)) && tni_is_shell(old) && !tni_is_shell(grad);
        tn_tensor *sum = NULL;
        status = swap ? tn_add(grad, old, tn_int(1), &sum) : tn_add(old, grad, tn_int(1), &sum);
        if (status == TN_OK) {
            *slot = sum;
            tn_tensor_unref(old);
        }
    }
    tn_tensor_unref(grad);
    return status;
}
