/* SPDX-License-Identifier: MIT */
/* iter/checks_act.c: what activations, bounds and losses refuse, on every backend, in the
 * reference's words. */
#include <string.h>
#include "core/scalar.h"
#include "gen/shapes.h"
#include "iter/iter.h"

static bool is_complex(const tn_tensor *t)
{
    return t->dtype == TN_DTYPE_C64 || t->dtype == TN_DTYPE_C128;
}

/* ---- parameters ---- */

/* A parameter of an activation is a number of the tensor's kind; tensors of other than
 * floating-point numbers are refused elsewhere. */
static tn_status check_parameter(const tn_tensor *self, tn_scalar value)
{
    const tn_dtype dtype = (tn_dtype)self->dtype;
    return tn_dtype_is_floating(dtype) ? tni_check_factor(value, dtype) : TN_OK;
}

static tn_status check_approximate(const char *approximate)
{
    TN_CHECK(strcmp(approximate, "none") == 0 || strcmp(approximate, "tanh") == 0, TN_INVALID,
             "approximate argument must be either none or tanh.");
    return TN_OK;
}

tn_status tni_check_gelu(tn_tensor *self, const char *approximate)
{
    (void)self;
    return check_approximate(approximate);
}

tn_status tni_check_gelu_backward(tn_tensor *grad_output, tn_tensor *self, const char *approximate)
{
    (void)grad_output;
    (void)self;
    return check_approximate(approximate);
}

tn_status tni_check_leaky_relu(tn_tensor *self, tn_scalar negative_slope)
{
    return check_parameter(self, negative_slope);
}

tn_status tni_check_hardshrink(tn_tensor *self, tn_scalar lambd)
{
    const tn_dtype dtype = (tn_dtype)self->dtype;
    return tn_dtype_is_floating(dtype) ? tni_check_number(lambd, dtype) : TN_OK;
}

tn_status tni_check_softshrink(tn_tensor *self, tn_scalar lambd)
{
    const tn_dtype dtype = (tn_dtype)self->dtype;
    TN_TRY(tni_check_number(lambd, TN_DTYPE_F64));
    TN_CHECK(tn_dtype_is_floating(dtype), TN_UNSUPPORTED,
             "\"softshrink_check\" not implemented for '%s'", tni_dtype_text(dtype));
    double most = tn_scalar_to_double(lambd), largest = tni_dtype_largest(dtype);
    TN_CHECK(most >= 0 && most <= largest, TN_INVALID,
             "lambda must be in range [0, %g] for input dtype %s, but found %g", largest,
             tni_dtype_text(dtype), most);
    return TN_OK;
}

tn_status tni_check_leaky_relu_backward(tn_tensor *grad_output, tn_tensor *self,
                                        tn_scalar negative_slope, bool self_is_result)
{
    (void)grad_output;
    TN_CHECK(!self_is_result || tn_scalar_to_double(negative_slope) >= 0, TN_INVALID,
             "In-place leakyReLu backward calculation is triggered with a negative slope which is "
             "not supported. This is caused by calling in-place forward function with a negative "
             "slope, please call out-of-place version instead.");
    return check_parameter(self, negative_slope);
}

tn_status tni_check_elu(tn_tensor *self, tn_scalar alpha, tn_scalar scale, tn_scalar input_scale)
{
    TN_TRY(check_parameter(self, alpha));
    TN_TRY(check_parameter(self, scale));
    return check_parameter(self, input_scale);
}

tn_status tni_check_elu_backward(tn_tensor *grad_output, tn_scalar alpha, tn_scalar scale,
                                 tn_scalar input_scale, bool is_result, tn_tensor *self_or_result)
{
    (void)grad_output;
    TN_CHECK(!is_result || tn_scalar_to_double(alpha) >= 0, TN_INVALID,
             "In-place elu backward calculation is triggered with a negative slope which is not "
             "supported. This is caused by calling in-place forward function with a negative "
             "slope, please call out-of-place version instead.");
    return tni_check_elu(self_or_result, alpha, scale, input_scale);
}

tn_status tni_check_softplus(tn_tensor *self, tn_scalar beta, tn_scalar threshold)
{
    TN_TRY(check_parameter(self, beta));
    return check_parameter(self, threshold);
}

tn_status tni_check_hardtanh(tn_tensor *self, tn_scalar min_val, tn_scalar max_val)
{
    TN_CHECK(self->dtype != TN_DTYPE_BOOL, TN_INVALID, "Bool inputs not supported for hardtanh");
    TN_CHECK(!is_complex(self), TN_UNSUPPORTED, "clamp is not supported for complex types");
    if (tn_dtype_is_integral((tn_dtype)self->dtype, false)) {
        TN_TRY(tni_check_number(min_val, TN_DTYPE_I64));
        TN_TRY(tni_check_number(max_val, TN_DTYPE_I64));
    }
    TN_CHECK(self->dtype != TN_DTYPE_U8 ||
                 (tn_scalar_to_double(min_val) >= 0 && tn_scalar_to_double(max_val) >= 0),
             TN_INVALID, "cannot do hardtanh on an unsigned type with negative limits");
    TN_TRY(tni_check_number(min_val, (tn_dtype)self->dtype));
    return tni_check_number(max_val, (tn_dtype)self->dtype);
}

tn_status tni_check_threshold(tn_tensor *self, tn_scalar threshold, tn_scalar value)
{
    if (is_complex(self))
        return TN_OK; /* refused elsewhere */
    TN_TRY(tni_check_factor(threshold, (tn_dtype)self->dtype));
    return tni_check_number(value, (tn_dtype)self->dtype);
}

/* ---- bounds ---- */

static tn_status check_bound(const tn_tensor *self, tn_scalar bound)
{
    TN_CHECK(!is_complex(self) && bound.kind != TN_SCALAR_COMPLEX, TN_UNSUPPORTED,
             "clamp is not supported for complex types");
    const tni_operand in[2] = {{.tensor = (tn_tensor *)(uintptr_t)self}, {.scalar = bound}};
    return tni_check_number(bound, tni_result_type(in, 2));
}

tn_status tni_check_clamp_min(tn_tensor *self, tn_scalar min)
{
    return check_bound(self, min);
}

tn_status tni_check_clamp_max(tn_tensor *self, tn_scalar max)
{
    return check_bound(self, max);
}

/* ---- losses ---- */

static tn_status check_loss(tn_tensor *grad, tn_tensor *self, tn_tensor *target)
{
    const tni_operand in[] = {{.tensor = self}, {.tensor = grad}, {.tensor = target}};
    return tni_check_same_dtype(in, 3);
}

tn_status tni_check_mse_loss_backward(tn_tensor *grad_output, tn_tensor *self, tn_tensor *target,
                                      int64_t reduction)
{
    (void)reduction;
    return check_loss(grad_output, self, target);
}

tn_status tni_check_huber_loss_backward(tn_tensor *grad_output, tn_tensor *self, tn_tensor *target,
                                        int64_t reduction, double delta)
{
    (void)reduction;
    (void)delta;
    return check_loss(grad_output, self, target);
}

tn_status tni_check_log_sigmoid_backward(tn_tensor *grad_output, tn_tensor *self, tn_tensor *buffer)
{
    return check_loss(grad_output, self, buffer);
}

tn_status tni_check_prelu(tn_tensor *self, tn_tensor *weight)
{
    const tni_operand in[] = {{.tensor = self}, {.tensor = weight}};
    return tni_check_same_dtype(in, 2);
}

/* ---- two results ---- */

tn_status tni_shape_log_sigmoid_forward(tni_geometry *g, tn_tensor *self)
{
    const tni_operand in[] = {{.tensor = self}};
    TN_TRY(tni_check_dtypes(in, 1, TNI_PW_PROMOTE, TNI_PW_FLOATS, "log_sigmoid_cpu", NULL));
    for (int i = 0; i < 2; i++) {
        g[i].ndim = self->ndim;
        g[i].dtype = (tn_dtype)self->dtype;
        g[i].device = self->device;
        g[i].has_strides = false;
        g[i].offset = 0;
        for (int d = 0; d < self->ndim; d++)
            g[i].sizes[d] = self->sizes[d];
    }
    return TN_OK;
}

tn_status tni_shape_frexp(tni_geometry *g, tn_tensor *self)
{
    TN_CHECK(tn_dtype_is_floating((tn_dtype)self->dtype), TN_INVALID,
             "torch.frexp() only supports floating-point dtypes");
    for (int i = 0; i < 2; i++) {
        g[i].ndim = self->ndim;
        g[i].dtype = i ? TN_DTYPE_I32 : (tn_dtype)self->dtype;
        g[i].device = self->device;
        g[i].has_strides = true;
        g[i].offset = 0;
        for (int d = 0; d < self->ndim; d++)
            g[i].sizes[d] = self->sizes[d];
        tni_preserve_strides(self, g[i].strides);
    }
    return TN_OK;
}
