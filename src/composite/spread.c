/* SPDX-License-Identifier: MIT */
/* composite/spread.c: further random fills, made of uniform and normal ones, and activations that
 * shrink. */
#include <math.h>
#include "composite/leave.h"
#include "core/tensor.h"
#include "gen/composites.h"
#include "gen/kernels.h"
#include "tenon/ops.h"

#define PI 3.14159265358979323846

/* ---- fills ---- */

static tn_status check_floating(const char *kernel, const tn_tensor *self)
{
    TN_CHECK(tn_dtype_is_floating((tn_dtype)self->dtype), TN_UNSUPPORTED,
             "\"%s\" not implemented for '%s'", kernel, tni_dtype_text((tn_dtype)self->dtype));
    return TN_OK;
}

/* A tensor like @p self, of a floating dtype, to be filled. */
static tn_status fresh(tn_tensor *self, tn_tensor **out)
{
    bool floating = tn_dtype_is_floating((tn_dtype)self->dtype);
    tn_tensor_opts opts = tn_opts(floating ? (tn_dtype)self->dtype : TN_DTYPE_F64, self->device);
    return tn_empty_like(self, &opts, TN_FORMAT_CONTIGUOUS, out);
}

static tn_status write_over(tn_tensor *self, tn_scope *scope, tn_tensor *values)
{
    TN_AUTO(tn_tensor) made = NULL;
    TN_TRY(tni_leave(scope, values, &made));
    return tn_copy_(self, made, false);
}

tn_status tni_composite_log_normal_(tn_tensor *self, double mean, double std,
                                    tn_generator *generator)
{
    TN_AUTO(tn_tensor) x = NULL;
    tn_scope *scope;
    TN_CHECK(std > 0, TN_INVALID, "log_normal_ expects std > 0.0, but found std=%g", std);
    TN_TRY(check_floating("log_normal_cpu", self));
    TN_TRY(fresh(self, &x));
    TN_TRY(tn_normal_(x, mean, std, generator));
    TN_TRY(tn_scope_enter(&scope));
    return write_over(self, scope, tnx_exp(x));
}

tn_status tni_composite_cauchy_(tn_tensor *self, double median, double sigma,
                                tn_generator *generator)
{
    TN_AUTO(tn_tensor) x = NULL;
    tn_scope *scope;
    TN_CHECK(sigma > 0, TN_INVALID, "cauchy_ expects sigma > 0.0, but found sigma=%g", sigma);
    TN_CHECK(tn_dtype_is_floating((tn_dtype)self->dtype), TN_INVALID,
             "Cauchy distribution is a continuous probability distribution. dtype must be a "
             "floating point but you specified %s",
             tni_dtype_cpp((tn_dtype)self->dtype));
    TN_TRY(fresh(self, &x));
    TN_TRY(tn_uniform_(x, -0.5, 0.5, generator));
    TN_TRY(tn_scope_enter(&scope));
    tn_tensor *slope = tnx_mul_scalar(tnx_tan(tnx_mul_scalar(x, tn_float(PI))), tn_float(sigma));
    return write_over(self, scope, tnx_add_scalar(slope, tn_float(median), tn_int(1)));
}

/* How often something of probability p is tried until it happens. */
tn_status tni_composite_geometric_(tn_tensor *self, double p, tn_generator *generator)
{
    TN_AUTO(tn_tensor) x = NULL;
    tn_scope *scope;
    TN_CHECK(p > 0 && p < 1, TN_INVALID, "geometric_ expects p to be in (0, 1), but got p=%g", p);
    TN_CHECK(self->dtype != TN_DTYPE_BOOL, TN_UNSUPPORTED,
             "\"geometric_cpu\" not implemented for 'Bool'");
    TN_TRY(fresh(self, &x));
    TN_TRY(tn_uniform_(x, 0.0, 1.0, generator));
    TN_TRY(tn_scope_enter(&scope));
    tn_tensor *count = tnx_div_scalar(tnx_log1p(tnx_neg(x)), tn_float(log1p(-p)));
    return write_over(self, scope, tnx_clamp_min(tnx_ceil(count), tn_int(1)));
}

/* Normal numbers of the sizes of @p like, as means and deviations say; NULL: the number beside. */
static tn_status normal_of(tn_tensor *like, tn_tensor *mean, double m, tn_tensor *std, double s,
                           tn_generator *generator, tn_tensor **out)
{
    TN_AUTO(tn_tensor) x = NULL;
    tn_scope *scope;
    TN_CHECK(std || s >= 0, TN_INVALID, "normal expects std >= 0.0, but found std %g", s);
    TN_TRY(tn_empty_like(like, NULL, TN_FORMAT_CONTIGUOUS, &x));
    TN_TRY(tn_normal_(x, 0.0, 1.0, generator));
    TN_TRY(tn_scope_enter(&scope));
    tn_tensor *wide = std ? tnx_mul(x, std) : tnx_mul_scalar(x, tn_float(s));
    return tni_leave(
        scope, mean ? tnx_add(wide, mean, tn_int(1)) : tnx_add_scalar(wide, tn_float(m), tn_int(1)),
        out);
}

tn_status tni_kernel_normal_tensor_float(tn_call *call, tn_tensor *mean, double std,
                                         tn_generator *generator, tn_tensor **out)
{
    (void)call;
    return normal_of(mean, mean, 0.0, NULL, std, generator, out);
}

tn_status tni_kernel_normal_float_tensor(tn_call *call, double mean, tn_tensor *std,
                                         tn_generator *generator, tn_tensor **out)
{
    (void)call;
    return normal_of(std, NULL, mean, std, 0.0, generator, out);
}

tn_status tni_kernel_normal_tensor_tensor(tn_call *call, tn_tensor *mean, tn_tensor *std,
                                          tn_generator *generator, tn_tensor **out)
{
    (void)call;
    TN_AUTO(tn_tensor) both = NULL;
    TN_CHECK(!tn_dtype_is_integral((tn_dtype)mean->dtype, true), TN_UNSUPPORTED,
             "\"normal_kernel_cpu\" not implemented for '%s'",
             tni_dtype_text((tn_dtype)mean->dtype));
    TN_TRY(tn_add(mean, std, tn_int(1), &both));
    TN_AUTO(tn_tensor) made = NULL;
    TN_TRY(normal_of(both, mean, 0.0, std, 0.0, generator, &made));
    return tn_to_dtype(made, (tn_dtype)mean->dtype, false, false, TN_FORMAT_NONE, out);
}
