/* SPDX-License-Identifier: MIT */
/* composite/linear.c: linear layers and outer products, in terms of addmm, matmul and mul. */
#include "core/tensor.h"
#include "gen/composites.h"
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
