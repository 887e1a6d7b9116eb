/* SPDX-License-Identifier: MIT */
/* composite/activation.c: activations that are others with certain parameters. */
#include "core/tensor.h"
#include "gen/composites.h"
#include "tenon/ops.h"

tn_status tni_composite_relu6(tn_tensor *self, tn_tensor **out)
{
    return tn_hardtanh(self, tn_int(0), tn_int(6), out);
}

tn_status tni_composite_relu6_(tn_tensor *self)
{
    return tn_hardtanh_(self, tn_int(0), tn_int(6));
}

#define SELU_ALPHA 1.6732632423543772848170429916717
#define SELU_SCALE 1.0507009873554804934193349852946

tn_status tni_composite_selu(tn_tensor *self, tn_tensor **out)
{
    return tn_elu(self, tn_float(SELU_ALPHA), tn_float(SELU_SCALE), tn_float(1), out);
}

tn_status tni_composite_selu_(tn_tensor *self)
{
    return tn_elu_(self, tn_float(SELU_ALPHA), tn_float(SELU_SCALE), tn_float(1));
}

static tn_status inverse(tn_scalar alpha, double *out)
{
    double a = tn_scalar_to_double(alpha);
    TN_CHECK(a != 0, TN_INVALID, "ZeroDivisionError: alpha cannot be 0 for CELU");
    *out = 1.0 / a;
    return TN_OK;
}

tn_status tni_composite_celu(tn_tensor *self, tn_scalar alpha, tn_tensor **out)
{
    double inverse_alpha = 0;
    TN_TRY(inverse(alpha, &inverse_alpha));
    return tn_elu(self, alpha, tn_float(1), tn_float(inverse_alpha), out);
}

tn_status tni_composite_celu_(tn_tensor *self, tn_scalar alpha)
{
    double inverse_alpha = 0;
    TN_TRY(inverse(alpha, &inverse_alpha));
    return tn_elu_(self, alpha, tn_float(1), tn_float(inverse_alpha));
}

tn_status tni_composite_log_sigmoid(tn_tensor *self, tn_tensor **out)
{
    TN_AUTO(tn_tensor) buffer = NULL;
    return tn_log_sigmoid_forward(self, out, &buffer);
}

/* The weight in the place of the channels. */
tn_status tni_composite_prelu(tn_tensor *self, tn_tensor *weight, tn_tensor **out)
{
    TN_CHECK(self->dtype == weight->dtype, TN_INVALID,
             "prelu: Type promoting not supported. Got %s and %s",
             tni_dtype_text((tn_dtype)self->dtype), tni_dtype_text((tn_dtype)weight->dtype));
    if (weight->numel != 1) {
        TN_CHECK(self->ndim > 0, TN_INVALID, "Not allow zero-dim input tensor.");
        int64_t channels = self->ndim >= 2 ? self->sizes[1] : 1;
        TN_CHECK(channels == weight->numel, TN_INVALID,
                 "Mismatch of parameter numbers and input channel size. Found parameter numbers = "
                 "%lld and channel size = %lld.",
                 (long long)weight->numel, (long long)channels);
    }
    TN_CHECK(weight->ndim <= 1, TN_INVALID,
             "prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = %d",
             weight->ndim);
    int64_t sizes[TN_MAX_DIMS];
    for (int d = 0; d < self->ndim; d++)
        sizes[d] = d == 1 ? weight->numel : 1;
    TN_AUTO(tn_tensor) placed = NULL;
    TN_TRY(tn_reshape(weight, sizes, self->ndim, &placed));
    return tn__prelu_kernel(self, placed, out);
}
