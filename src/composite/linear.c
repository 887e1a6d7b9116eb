/* SPDX-License-Identifier: MIT */
/* composite/linear.c: linear layers and outer products, in terms of addmm, matmul and mul. */
#include "core/tensor.h"
#include "gen/composites.h"
#include "gen/kernels.h"
#include "tenon/ops.h"

/* One addmm for an input of any number of dimensions: all but the last become rows. */
static tn_status flat_addmm(tn_tensor *input, tn_tensor *weight, tn_tensor *bias, tn_tensor **out)
{
    int64_t sizes[TN_MAX_DIMS], rows;
    int lead = input->ndim - 1;
    for (int i = 0; i < lead; i++)
        sizes[i] = input->sizes[i];
    TN_CHECK(tni_numel(lead, sizes, &rows), TN_INVALID,
             "linear: the leading dimensions of input have too many elements");
    TN_AUTO(tn_tensor) flat = NULL;
    TN_AUTO(tn_tensor) turned = NULL;
    TN_AUTO(tn_tensor) result = NULL;
    TN_TRY(tn_view(input, (const int64_t[]){rows, input->sizes[lead]}, 2, &flat));
    TN_TRY(tn_t(weight, &turned));
    TN_TRY(tn_addmm(bias, flat, turned, tn_int(1), tn_int(1), &result));
    sizes[lead] = result->sizes[1];
    return tn_view(result, sizes, lead + 1, out);
}

tn_status tni_composite_linear(tn_tensor *input, tn_tensor *weight, tn_tensor *bias,
                               tn_tensor **out)
{
    TN_CHECK(input->ndim && weight->ndim, TN_INVALID,
             "both arguments to linear need to be at least 1D, but they are %dD and %dD",
             input->ndim, weight->ndim);
    TN_AUTO(tn_tensor) squeezed = NULL;
    TN_AUTO(tn_tensor) turned = NULL;
    TN_AUTO(tn_tensor) product = NULL;
    if (bias && input->ndim != 2) {
        if (bias->ndim != 1) {
            TN_TRY(tn_squeeze(bias, &squeezed));
            bias = squeezed;
        }
        if (bias->ndim == 1 && (input->flags & TNI_CONTIGUOUS))
            return flat_addmm(input, weight, bias, out);
    }
    TN_TRY(tn_t(weight, &turned));
    if (bias && input->ndim == 2)
        return tn_addmm(bias, input, turned, tn_int(1), tn_int(1), out);
    TN_TRY(tn_matmul(input, turned, &product));
    if (bias)
        TN_TRY(tn_add_(product, bias, tn_int(1)));
    *out = TN_MOVE(product);
    return TN_OK;
}

tn_status tni_composite_outer(tn_tensor *self, tn_tensor *vec2, tn_tensor **out)
{
    TN_CHECK(self->ndim == 1, TN_INVALID, "outer: Expected 1-D argument self, but got %d-D",
             self->ndim);
    TN_CHECK(vec2->ndim == 1, TN_INVALID, "outer: Expected 1-D argument vec2, but got %d-D",
             vec2->ndim);
    TN_AUTO(tn_tensor) column = NULL;
    TN_TRY(tn_reshape(self, (const int64_t[]){self->sizes[0], 1}, 2, &column));
    return tn_mul(column, vec2, out);
}

/* ---- bilinear ---- */

static tn_status check_bilinear(const tn_tensor *a, const tn_tensor *b, const tn_tensor *weight,
                                const tn_tensor *bias)
{
    TN_CHECK(a->ndim == b->ndim, TN_INVALID,
             "bilinear(): input dimensions do not match: got %d and %d", a->ndim, b->ndim);
    TN_CHECK(a->ndim > 0 && weight->ndim > 1, TN_INVALID,
             "bilinear(): inputs need at least 1 dimension and weight 3, but got %d and %d",
             a->ndim, weight->ndim);
    int last = a->ndim - 1;
    for (int d = 0; d < last; d++)
        TN_CHECK(a->sizes[d] == b->sizes[d], TN_INVALID,
                 "bilinear(): input batch dimensions do not match at dim %d: got %lld and %lld", d,
                 (long long)a->sizes[d], (long long)b->sizes[d]);
    TN_CHECK(a->sizes[last] == weight->sizes[1], TN_INVALID,
             "bilinear(): input1 size does not match weight size: got %lld but expected %lld",
             (long long)a->sizes[last], (long long)weight->sizes[1]);
    TN_CHECK(weight->ndim == 3, TN_INVALID,
             "bilinear(): inputs need at least 1 dimension and weight 3, but got %d and %d",
             a->ndim, weight->ndim);
    TN_CHECK(b->sizes[last] == weight->sizes[2], TN_INVALID,
             "bilinear(): input2 size does not match weight size: got %lld but expected %lld",
             (long long)b->sizes[last], (long long)weight->sizes[2]);
    TN_CHECK(a->dtype == b->dtype && a->dtype == weight->dtype &&
                 (!bias || bias->dtype == a->dtype),
             TN_INVALID,
             "All tensors must have the same dtype, got input1: %s, input2: %s, weight: %s%s%s",
             tni_dtype_cpp((tn_dtype)a->dtype), tni_dtype_cpp((tn_dtype)b->dtype),
             tni_dtype_cpp((tn_dtype)weight->dtype), bias ? ", bias: " : "",
             bias ? tni_dtype_cpp((tn_dtype)bias->dtype) : "");
    TN_CHECK(!bias || (bias->ndim > 0 && bias->sizes[0] == weight->sizes[0]), TN_INVALID,
             "bilinear(): bias size does not match weight size: got %lld but expected %lld",
             (long long)(bias && bias->ndim ? bias->sizes[0] : 0), (long long)weight->sizes[0]);
    return TN_OK;
}

/* y[n, o] = sum over i, j of a[n, i] w[o, i, j] b[n, j]: one product with all of the weight, then a
 * sum over what a multiplies. */
tn_status tni_composite_bilinear(tn_tensor *input1, tn_tensor *input2, tn_tensor *weight,
                                 tn_tensor *bias, tn_tensor **out)
{
    int64_t sizes[TN_MAX_DIMS], rows = 1;
    TN_TRY(check_bilinear(input1, input2, weight, bias));
    int last = input1->ndim - 1;
    for (int d = 0; d < last; d++) {
        sizes[d] = input1->sizes[d];
        rows *= sizes[d];
    }
    int64_t o = weight->sizes[0], i = weight->sizes[1], j = weight->sizes[2];
    TN_AUTO(tn_tensor) a = NULL;
    TN_AUTO(tn_tensor) b = NULL;
    TN_AUTO(tn_tensor) turned = NULL;
    TN_AUTO(tn_tensor) flat = NULL;
    TN_AUTO(tn_tensor) wide = NULL;
    TN_AUTO(tn_tensor) cube = NULL;
    TN_AUTO(tn_tensor) product = NULL;
    TN_AUTO(tn_tensor) shaped = NULL;
    TN_TRY(tn_reshape(input1, (const int64_t[]){rows, i, 1}, 3, &a));
    TN_TRY(tn_reshape(input2, (const int64_t[]){rows, j}, 2, &b));
    TN_TRY(tn_reshape(weight, (const int64_t[]){o * i, j}, 2, &flat));
    TN_TRY(tn_transpose(flat, 0, 1, &turned));
    TN_TRY(tn_mm(b, turned, &wide));
    TN_TRY(tn_view(wide, (const int64_t[]){rows, o, i}, 3, &cube));
    TN_TRY(tn_bmm(cube, a, &product));
    sizes[last] = o;
    TN_TRY(tn_reshape(product, sizes, last + 1, &shaped));
    if (bias)
        return tn_add(shaped, bias, tn_int(1), out);
    *out = TN_MOVE(shaped);
    return TN_OK;
}

/* ---- addr ---- */

static tn_status check_addr(const tn_tensor *self, const tn_tensor *vec1, const tn_tensor *vec2,
                            tn_scalar beta, tn_scalar alpha, tn_dtype *dtype)
{
    TN_CHECK(vec1->ndim == 1, TN_INVALID, "addr: Expected 1-D argument vec1, but got %d-D",
             vec1->ndim);
    TN_CHECK(vec2->ndim == 1, TN_INVALID, "addr: Expected 1-D argument vec2, but got %d-D",
             vec2->ndim);
    *dtype = tn_promote_types((tn_dtype)self->dtype,
                              tn_promote_types((tn_dtype)vec1->dtype, (tn_dtype)vec2->dtype));
    bool whole = tn_dtype_is_integral(*dtype, true);
    TN_CHECK(beta.kind != TN_SCALAR_BOOL || *dtype == TN_DTYPE_BOOL, TN_INVALID,
             "Boolean beta only supported for Boolean results.");
    TN_CHECK(alpha.kind != TN_SCALAR_BOOL || *dtype == TN_DTYPE_BOOL, TN_INVALID,
             "Boolean alpha only supported for Boolean results.");
    TN_CHECK(!whole || (beta.kind != TN_SCALAR_FLOAT && beta.kind != TN_SCALAR_COMPLEX), TN_INVALID,
             "For integral input tensors, argument beta must not be a floating point number.");
    TN_CHECK(!whole || (alpha.kind != TN_SCALAR_FLOAT && alpha.kind != TN_SCALAR_COMPLEX),
             TN_INVALID,
             "For integral input tensors, argument alpha must not be a floating point number.");
    return TN_OK;
}

tn_status tni_kernel_addr(tn_call *call, tn_tensor *self, tn_tensor *vec1, tn_tensor *vec2,
                          tn_scalar beta, tn_scalar alpha, tn_tensor **out)
{
    (void)call;
    tn_dtype dtype = TN_DTYPE_NONE;
    TN_AUTO(tn_tensor) column = NULL;
    TN_AUTO(tn_tensor) product = NULL;
    TN_AUTO(tn_tensor) scaled = NULL;
    TN_AUTO(tn_tensor) wide = NULL;
    TN_AUTO(tn_tensor) own = NULL;
    TN_TRY(check_addr(self, vec1, vec2, beta, alpha, &dtype));
    const int64_t sizes[2] = {vec1->sizes[0], vec2->sizes[0]};
    TN_TRY(tn_expand(self, sizes, 2, false, &wide));
    bool no_self = tn_scalar_to_double(beta) == 0 && beta.imag == 0;
    if (dtype == TN_DTYPE_BOOL) {
        alpha = tn_bool(tn_scalar_to_double(alpha) != 0);
        beta = tn_bool(!no_self);
    }
    /* A number makes int64 of truth values: they are of the result's dtype before. */
    TN_AUTO(tn_tensor) first = NULL;
    TN_AUTO(tn_tensor) base = NULL;
    TN_TRY(tn_to_dtype(vec1, dtype, false, false, TN_FORMAT_NONE, &first));
    TN_TRY(tn_unsqueeze(first, 1, &column));
    TN_TRY(tn_mul_scalar(column, alpha, &scaled));
    TN_TRY(tn_mul(scaled, vec2, &product));
    if (no_self)
        return tn_to_dtype(product, dtype, false, false, TN_FORMAT_NONE, out);
    TN_TRY(tn_to_dtype(wide, dtype, false, false, TN_FORMAT_NONE, &base));
    TN_TRY(tn_mul_scalar(base, beta, &own));
    return tn_add(own, product, tn_int(1), out);
}
