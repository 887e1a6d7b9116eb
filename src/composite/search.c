/* SPDX-License-Identifier: MIT */
/* composite/search.c: searching for one number, membership of one, closeness of all, in terms of
 * the operators on tensors. */
#include <math.h>
#include "core/tensor.h"
#include "gen/composites.h"
#include "gen/kernels.h"
#include "tenon/ops.h"

/* A number that the default dtype cannot hold is infinite in it, and so still at the right end. */
static tn_status as_tensor(tn_scalar number, const tn_tensor *like, tn_tensor **out)
{
    tn_tensor_opts opts = tn_opts(TN_DTYPE_NONE, like->device);
    if (number.kind == TN_SCALAR_INT)
        opts.dtype = TN_DTYPE_I64;
    if (number.kind == TN_SCALAR_FLOAT && fabs(number.v.f) > tni_dtype_largest(tn_default_dtype()))
        number.v.f = copysign((double)INFINITY, number.v.f);
    return tn_scalar_tensor(number, &opts, out);
}

tn_status tni_kernel_searchsorted_scalar(tn_call *call, tn_tensor *sorted_sequence, tn_scalar self,
                                         bool out_int32, bool right, const char *side,
                                         tn_tensor *sorter, tn_tensor **out)
{
    (void)call;
    TN_AUTO(tn_tensor) value = NULL;
    TN_TRY(as_tensor(self, sorted_sequence, &value));
    return tn_searchsorted(sorted_sequence, value, out_int32, right, side, sorter, out);
}

tn_status tni_kernel_bucketize(tn_call *call, tn_tensor *self, tn_tensor *boundaries,
                               bool out_int32, bool right, tn_tensor **out)
{
    (void)call;
    TN_CHECK(boundaries->ndim == 1, TN_INVALID,
             "boundaries tensor must be 1 dimension, but got dim(%d)", boundaries->ndim);
    return tn_searchsorted(boundaries, self, out_int32, right, NULL, NULL, out);
}

tn_status tni_kernel_bucketize_scalar(tn_call *call, tn_scalar self, tn_tensor *boundaries,
                                      bool out_int32, bool right, tn_tensor **out)
{
    TN_AUTO(tn_tensor) value = NULL;
    TN_TRY(as_tensor(self, boundaries, &value));
    return tni_kernel_bucketize(call, value, boundaries, out_int32, right, out);
}

static tn_status check_isin(const tn_tensor *t, tn_scalar number)
{
    tn_dtype dtype = (tn_dtype)t->dtype;
    bool truth = number.kind == TN_SCALAR_BOOL || dtype == TN_DTYPE_BOOL;
    bool complex = number.kind == TN_SCALAR_COMPLEX || tn_dtype_is_complex(dtype);
    TN_CHECK(!truth && !complex, TN_INVALID, "Unsupported input type encountered for isin(): %s",
             truth                        ? "Bool"
             : tn_dtype_is_complex(dtype) ? tni_dtype_text(dtype)
                                          : "ComplexDouble");
    return TN_OK;
}

tn_status tni_kernel_isin_scalar(tn_call *call, tn_tensor *elements, tn_scalar test_element,
                                 bool assume_unique, bool invert, tn_tensor **out)
{
    (void)call;
    (void)assume_unique;
    TN_AUTO(tn_tensor) rows = NULL;
    TN_TRY(check_isin(elements, test_element));
    TN_TRY(tn_contiguous(elements, TN_FORMAT_CONTIGUOUS, &rows));
    return (invert ? tn_ne_scalar : tn_eq_scalar)(rows, test_element, out);
}

tn_status tni_kernel_scalar_isin(tn_call *call, tn_scalar element, tn_tensor *test_elements,
                                 bool assume_unique, bool invert, tn_tensor **out)
{
    (void)call;
    (void)assume_unique;
    TN_AUTO(tn_tensor) same = NULL;
    TN_AUTO(tn_tensor) found = NULL;
    TN_TRY(check_isin(test_elements, element));
    TN_TRY(tn_eq_scalar(test_elements, element, &same));
    TN_TRY(tn_any(same, &found));
    if (invert)
        return tn_logical_not(found, out);
    *out = TN_MOVE(found);
    return TN_OK;
}

tn_status tni_composite_msort(tn_tensor *self, tn_tensor **out)
{
    TN_AUTO(tn_tensor) places = NULL;
    return tn_sort(self, 0, false, out, &places);
}

tn_status tni_kernel_allclose(tn_call *call, tn_tensor *self, tn_tensor *other, double rtol,
                              double atol, bool equal_nan, bool *out)
{
    (void)call;
    TN_AUTO(tn_tensor) close = NULL;
    TN_AUTO(tn_tensor) all = NULL;
    tn_scalar yes;
    TN_TRY(tn_isclose(self, other, rtol, atol, equal_nan, &close));
    TN_TRY(tn_all(close, &all));
    TN_TRY(tn_item(all, &yes));
    *out = yes.v.i != 0;
    return TN_OK;
}
