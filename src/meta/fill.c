/* SPDX-License-Identifier: MIT */
/* meta/fill.c: writing to meta tensors: the checks of the CPU, and nothing written. Random fills
 * take nothing from a generator either. */
#include "gen/kernels.h"
#include "iter/iter.h"
#include "iter/random.h"

tn_status tni_kernel_fill_meta(tn_call *call, tn_tensor *self, tn_scalar value)
{
    (void)call;
    return tni_check_number(value, (tn_dtype)self->dtype);
}

tn_status tni_kernel_fill_tensor_meta(tn_call *call, tn_tensor *self, tn_tensor *value)
{
    (void)call;
    TN_CHECK(value->ndim == 0, TN_INVALID,
             "fill_ only supports 0-dimension value tensor but got tensor with %d dimensions.",
             value->ndim);
    TN_TRY(tni_check_internal_overlap(self));
    TN_CHECK(tni_is_meta(self), TN_UNSUPPORTED, "Cannot copy out of meta tensor; no data!");
    return TN_OK;
}

tn_status tni_kernel_zero_meta(tn_call *call, tn_tensor *self)
{
    (void)call;
    (void)self;
    return TN_OK;
}

tn_status tni_kernel_uniform_meta(tn_call *call, tn_tensor *self, double from, double to,
                                  tn_generator *generator)
{
    (void)call;
    (void)generator;
    return tni_check_uniform(self, from, to);
}

tn_status tni_kernel_normal_meta(tn_call *call, tn_tensor *self, double mean, double std,
                                 tn_generator *generator)
{
    (void)call;
    (void)mean;
    (void)generator;
    return tni_check_normal(self, std);
}
