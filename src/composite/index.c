/* SPDX-License-Identifier: MIT */
/* composite/index.c: index_put in terms of the one kernel that writes; where as a list. */
#include "core/tensor.h"
#include "gen/composites.h"
#include "gen/kernels.h"
#include "shape/index.h"
#include "tenon/ops.h"

/* One number where one mask holds: it is cast, as masked_fill_ does. */
static bool fills(tn_tensor *const *indices, int64_t n, const tn_tensor *values)
{
    int masks = 0, others = 0;
    for (int64_t i = 0; i < n; i++)
        if (indices[i])
            *(tni_is_mask(indices[i]) ? &masks : &others) += 1;
    return masks == 1 && others == 0 && values->numel == 1 && values->device.type == TN_DEVICE_CPU;
}

static tn_status number_as(tn_dtype dtype, tn_tensor *values, tn_tensor **out)
{
    tn_scalar number;
    TN_AUTO(tn_tensor) made = NULL;
    TN_AUTO(tn_tensor) all = NULL;
    TN_TRY(tn_item(values, &number));
    TN_TRY(tn_tensor_from_scalar(tn_int(0), dtype, &made));
    TN_TRY(tn_tensor_from_scalar(tn_bool(true), TN_DTYPE_BOOL, &all));
    TN_TRY(tn_masked_fill_(made, all, number));
    *out = TN_MOVE(made);
    return TN_OK;
}

tn_status tni_kernel_index_put(tn_call *call, tn_tensor *self, tn_tensor *const *indices,
                               int64_t indices_n, tn_tensor *values, bool accumulate,
                               tn_tensor **out)
{
    (void)call;
    TN_AUTO(tn_tensor) copy = NULL;
    TN_TRY(tn_clone(self, TN_FORMAT_PRESERVE, &copy));
    TN_TRY(tn_index_put_(copy, indices, indices_n, values, accumulate));
    *out = TN_MOVE(copy);
    return TN_OK;
}

tn_status tni_kernel_index_put_(tn_call *call, tn_tensor *self, tn_tensor *const *indices,
                                int64_t indices_n, tn_tensor *values, bool accumulate)
{
    (void)call;
    TN_AUTO(tn_tensor) cast = NULL;
    if (self->dtype != values->dtype && !accumulate && fills(indices, indices_n, values)) {
        TN_TRY(number_as((tn_dtype)self->dtype, values, &cast));
        values = cast;
    }
    return tn__index_put_impl_(self, indices, indices_n, values, accumulate, false);
}

tn_status tni_composite_where_nonzero(tn_tensor *condition, tn_tensor ***out, int64_t *out_n)
{
    TN_AUTO(tn_tensor) whole = NULL;
    TN_AUTO(tn_tensor) places = NULL;
    /* A number counts as a vector of one. */
    if (condition->ndim == 0)
        TN_TRY(tn_unsqueeze(condition, 0, &whole));
    TN_TRY(tn_nonzero(whole ? whole : condition, &places));
    return tn_unbind(places, 1, out, out_n);
}
