/* SPDX-License-Identifier: MIT */
/* iter/checks_arith.c: what rounding, powers and interpolation refuse, on every backend, in the
 * reference's words. */
#include "gen/shapes.h"
#include "iter/iter.h"

static bool is_complex(const tn_tensor *t)
{
    return t->dtype == TN_DTYPE_C64 || t->dtype == TN_DTYPE_C128;
}

static tn_status check_rounding(const char *name, const tn_tensor *self)
{
    TN_CHECK(!is_complex(self), TN_UNSUPPORTED, "%s is not supported for complex inputs", name);
    TN_CHECK(self->dtype != TN_DTYPE_BOOL, TN_UNSUPPORTED,
             "\"%s_vml_cpu\" not implemented for 'Bool'", name);
    return TN_OK;
}

tn_status tni_check_floor(tn_tensor *self)
{
    return check_rounding("floor", self);
}

tn_status tni_check_ceil(tn_tensor *self)
{
    return check_rounding("ceil", self);
}

tn_status tni_check_trunc(tn_tensor *self)
{
    return check_rounding("trunc", self);
}

tn_status tni_check_sign(tn_tensor *self)
{
    TN_CHECK(!is_complex(self), TN_UNSUPPORTED,
             "Unlike NumPy, torch.sign is not intended to support complex numbers. Please use "
             "torch.sgn instead.");
    return TN_OK;
}

tn_status tni_check_fmax(tn_tensor *self, tn_tensor *other)
{
    TN_CHECK(!is_complex(self) && !is_complex(other), TN_INVALID,
             "fmax not implemented for complex tensors.");
    return TN_OK;
}

tn_status tni_check_fmin(tn_tensor *self, tn_tensor *other)
{
    TN_CHECK(!is_complex(self) && !is_complex(other), TN_INVALID,
             "fmin not implemented for complex tensors.");
    return TN_OK;
}

tn_status tni_check_pow_scalar(tn_tensor *self, tn_scalar exponent)
{
    const tni_operand in[2] = {{.tensor = self}, {.scalar = exponent}};
    TN_CHECK(!tn_dtype_is_integral((tn_dtype)self->dtype, true) || exponent.kind != TN_SCALAR_INT ||
                 exponent.beyond || exponent.v.i >= 0,
             TN_INVALID, "Integers to negative integer powers are not allowed.");
    /* In float32 and wider a number that is too large is infinite. */
    tn_dtype dtype = tni_result_type(in, 2);
    return dtype == TN_DTYPE_F16 || dtype == TN_DTYPE_BF16 || tn_dtype_is_integral(dtype, false)
               ? tni_check_number(exponent, dtype)
               : TN_OK;
}

/* ---- three tensors ---- */

tn_status tni_check_addcmul(tn_tensor *self, tn_tensor *tensor1, tn_tensor *tensor2,
                            tn_scalar value)
{
    if (TNI_LIKELY(value.kind == TN_SCALAR_INT && value.v.i == 1))
        return TN_OK;
    tni_operand in[3] = {{.tensor = self}, {.tensor = tensor1}, {.tensor = tensor2}};
    return tni_check_factor(value, tni_result_type(in, 3));
}

tn_status tni_check_addcdiv(tn_tensor *self, tn_tensor *tensor1, tn_tensor *tensor2,
                            tn_scalar value)
{
    TN_CHECK(!tn_dtype_is_integral((tn_dtype)tensor1->dtype, true) ||
                 !tn_dtype_is_integral((tn_dtype)tensor2->dtype, true),
             TN_INVALID,
             "Integer division with addcdiv is no longer supported, and in a future  release "
             "addcdiv will perform a true division of tensor1 and tensor2. The historic addcdiv "
             "behavior can be implemented as (input + value * torch.trunc(tensor1 / "
             "tensor2)).to(input.dtype) for integer inputs and as (input + value * tensor1 / "
             "tensor2) for float inputs. The future addcdiv behavior is just the latter "
             "implementation: (input + value * tensor1 / tensor2), for all dtypes.");
    return tni_check_addcmul(self, tensor1, tensor2, value);
}

static tn_status same_dtype(const tn_tensor *self, const tn_tensor *other, const char *name)
{
    TN_CHECK(self->dtype == other->dtype, TN_INVALID, "expected dtype %s for `%s` but got dtype %s",
             tni_dtype_cpp((tn_dtype)self->dtype), name, tni_dtype_cpp((tn_dtype)other->dtype));
    return TN_OK;
}

tn_status tni_check_lerp_scalar(tn_tensor *self, tn_tensor *end, tn_scalar weight)
{
    TN_TRY(same_dtype(self, end, "end"));
    /* The weight does not make floating-point numbers of integers. */
    TN_CHECK(!tn_dtype_is_integral((tn_dtype)self->dtype, true), TN_UNSUPPORTED,
             "\"lerp_kernel_scalar\" not implemented for '%s'",
             tni_dtype_text((tn_dtype)self->dtype));
    return tni_check_factor(weight, (tn_dtype)self->dtype);
}

tn_status tni_check_lerp(tn_tensor *self, tn_tensor *end, tn_tensor *weight)
{
    TN_TRY(same_dtype(self, end, "end"));
    if (weight->ndim == 0) /* takes part as a number does */
        return TN_OK;
    return same_dtype(self, weight, "weight");
}

/* ---- special functions ---- */

tn_status tni_check_polygamma(int64_t n, tn_tensor *self)
{
    (void)self;
    TN_CHECK(n >= 0, TN_INVALID, "polygamma(n, x) does not support negative n.");
    return TN_OK;
}

tn_status tni_check_logit(tn_tensor *self, tn_opt_float eps)
{
    const tn_dtype dtype = (tn_dtype)self->dtype;
    return eps.has
               ? tni_check_number(tn_float(eps.value),
                                  tn_dtype_is_integral(dtype, true) ? tn_default_dtype() : dtype)
               : TN_OK;
}

tn_status tni_check_heaviside(tn_tensor *self, tn_tensor *values)
{
    TN_CHECK(!is_complex(self) && !is_complex(values), TN_INVALID,
             "heaviside is not yet implemented for complex tensors.");
    TN_CHECK(self->dtype == values->dtype, TN_INVALID,
             "heaviside is not yet implemented for tensors with different dtypes.");
    return TN_OK;
}
