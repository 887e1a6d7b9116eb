/* SPDX-License-Identifier: MIT */
/* composite/spread.c: further random fills, made of uniform and normal ones, and activations that
 * shrink. */
#include <math.h>
#include <string.h>
#include "composite/leave.h"
#include "composite/out.h"
#include "core/state.h"
#include "core/tensor.h"
#include "gen/composites.h"
#include "gen/kernels.h"
#include "shape/expand.h"
#include "tenon/ops.h"

#define PI 3.14159265358979323846

/* ---- fills ---- */

static tn_status check_floating(const char *kernel, const tn_tensor *self)
{
    TN_CHECK(tn_dtype_is_floating((tn_dtype)self->dtype), TN_UNSUPPORTED,
             "\"%s\" not implemented for '%s'", kernel, tni_dtype_text((tn_dtype)self->dtype));
    return TN_OK;
}

/* A tensor like @p self, to be filled, of a dtype with digits enough: uniform numbers of half a
 * float are so few that what is made of them has another mean. */
static tn_status fresh(tn_tensor *self, tn_tensor **out)
{
    tn_dtype dtype = (tn_dtype)self->dtype;
    if (dtype == TN_DTYPE_F16 || dtype == TN_DTYPE_BF16)
        dtype = TN_DTYPE_F32;
    else if (!tn_dtype_is_floating(dtype))
        dtype = TN_DTYPE_F64;
    tn_tensor_opts opts = tn_opts(dtype, self->device);
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
    TN_TRY(tni_check_internal_overlap(self));
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
    TN_TRY(tni_check_internal_overlap(self));
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
    TN_TRY(tni_check_internal_overlap(self));
    TN_CHECK(self->dtype != TN_DTYPE_BOOL, TN_UNSUPPORTED,
             "\"geometric_cpu\" not implemented for 'Bool'");
    TN_TRY(fresh(self, &x));
    TN_TRY(tn_uniform_(x, 0.0, 1.0, generator));
    TN_TRY(tn_scope_enter(&scope));
    tn_tensor *count = tnx_div_scalar(tnx_log1p(tnx_neg(x)), tn_float(log1p(-p)));
    return write_over(self, scope, tnx_clamp_min(tnx_ceil(count), tn_int(1)));
}

/* No deviation is negative, as far as their values are known. */
static tn_status check_deviations(tn_tensor *std)
{
    TN_CHECK(!tn_dtype_is_complex((tn_dtype)std->dtype), TN_INVALID,
             "normal expects standard deviation to be non-complex");
    if (tni_is_meta(std) || std->numel == 0)
        return TN_OK;
    TN_AUTO(tn_tensor) wide = NULL;
    TN_AUTO(tn_tensor) least = NULL;
    tn_scalar found;
    if (TN_DTYPE_IS_LIMITED(std->dtype))
        TN_TRY(tn_to_dtype(std, TN_DTYPE_F64, false, false, TN_FORMAT_NONE, &wide));
    TN_TRY(tn_amin(wide ? wide : std, NULL, 0, false, &least));
    TN_TRY(tn_item(least, &found));
    TN_CHECK(tn_scalar_to_double(found) >= 0, TN_INVALID,
             "normal expects all elements of std >= 0.0");
    return TN_OK;
}

/* Means or deviations: a tensor, or where it is NULL a number. */
typedef struct amounts {
    tn_tensor *t;
    double number;
} amounts;

static tn_status check_amounts(amounts std)
{
    TN_CHECK(std.t || std.number >= 0, TN_INVALID, "normal expects std >= 0.0, but found std %g",
             std.number);
    return std.t ? check_deviations(std.t) : TN_OK;
}

/* Normal numbers of these sizes, in the dtype and on the device of @p like. */
static tn_status normal_of(int ndim, const int64_t *sizes, const tn_tensor *like, amounts mean,
                           amounts std, tn_generator *generator, tn_tensor **out)
{
    TN_AUTO(tn_tensor) x = NULL;
    tn_tensor_opts opts = TN_TENSOR_OPTS_INIT;
    opts.dtype = (tn_dtype)like->dtype;
    opts.device = like->device;
    TN_TRY(tn_empty(sizes, ndim, &opts, TN_FORMAT_NONE, &x));
    TN_TRY(tn_normal_(x, 0.0, 1.0, generator));
    TN_TRY(std.t ? tn_mul_(x, std.t) : tn_mul_scalar_(x, tn_float(std.number)));
    TN_TRY(mean.t ? tn_add_(x, mean.t, tn_int(1))
                  : tn_add_scalar_(x, tn_float(mean.number), tn_int(1)));
    *out = TN_MOVE(x);
    return TN_OK;
}

/* The sizes that both broadcast to. */
static tn_status sizes_of(amounts mean, amounts std, int *ndim, int64_t *sizes)
{
    const tn_tensor *first = mean.t ? mean.t : std.t;
    *ndim = first->ndim;
    memcpy(sizes, first->sizes, (size_t)first->ndim * sizeof *sizes);
    if (!mean.t || !std.t)
        return TN_OK;
    return tni_broadcast_sizes(mean.t->ndim, mean.t->sizes, std.t->ndim, std.t->sizes, ndim, sizes);
}

/* A new tensor, like the first of both that is one. */
static tn_status normal_new(amounts mean, amounts std, tn_generator *generator, tn_tensor **out)
{
    int64_t sizes[TN_MAX_DIMS];
    int ndim;
    TN_TRY(check_amounts(std));
    TN_TRY(sizes_of(mean, std, &ndim, sizes));
    return normal_of(ndim, sizes, mean.t ? mean.t : std.t, mean, std, generator, out);
}

/* Into @p out, which is resized to both; with one deviation for all, to what the means and its own
 * sizes broadcast to. */
static tn_status normal_out(amounts mean, amounts std, tn_generator *generator, tn_tensor *out)
{
    int64_t sizes[TN_MAX_DIMS];
    int ndim;
    TN_TRY(check_amounts(std));
    if (std.t) {
        TN_TRY(sizes_of(mean, std, &ndim, sizes));
    } else {
        TN_TRY(
            tni_broadcast_sizes(mean.t->ndim, mean.t->sizes, out->ndim, out->sizes, &ndim, sizes));
    }
    TN_AUTO(tn_tensor) made = NULL;
    TN_TRY(normal_of(ndim, sizes, out, mean, std, generator, &made));
    return tni_out_take("normal", made, out);
}

tn_status tni_kernel_normal_tensor_float(tn_call *call, tn_tensor *mean, double std,
                                         tn_generator *generator, tn_tensor **out)
{
    (void)call;
    return normal_new((amounts){.t = mean}, (amounts){.number = std}, generator, out);
}

tn_status tni_kernel_normal_float_tensor(tn_call *call, double mean, tn_tensor *std,
                                         tn_generator *generator, tn_tensor **out)
{
    (void)call;
    return normal_new((amounts){.number = mean}, (amounts){.t = std}, generator, out);
}

tn_status tni_kernel_normal_tensor_tensor(tn_call *call, tn_tensor *mean, tn_tensor *std,
                                          tn_generator *generator, tn_tensor **out)
{
    (void)call;
    return normal_new((amounts){.t = mean}, (amounts){.t = std}, generator, out);
}

tn_status tni_kernel_normal_tensor_float_out(tn_call *call, tn_tensor *mean, double std,
                                             tn_generator *generator, tn_tensor *out)
{
    (void)call;
    return normal_out((amounts){.t = mean}, (amounts){.number = std}, generator, out);
}

tn_status tni_kernel_normal_float_tensor_out(tn_call *call, double mean, tn_tensor *std,
                                             tn_generator *generator, tn_tensor *out)
{
    (void)call;
    return normal_out((amounts){.number = mean}, (amounts){.t = std}, generator, out);
}

tn_status tni_kernel_normal_tensor_tensor_out(tn_call *call, tn_tensor *mean, tn_tensor *std,
                                              tn_generator *generator, tn_tensor *out)
{
    (void)call;
    return normal_out((amounts){.t = mean}, (amounts){.t = std}, generator, out);
}

tn_status tni_kernel_normal_float_float(tn_call *call, double mean, double std, const int64_t *size,
                                        int64_t size_n, tn_generator *generator,
                                        const tn_tensor_opts *opts, tn_tensor **out)
{
    (void)call;
    TN_AUTO(tn_tensor) x = NULL;
    TN_TRY(tn_empty(size, size_n, opts, TN_FORMAT_NONE, &x));
    uint64_t saved = tni_exclude(&tni_tls, TNI_BELOW_ADINPLACE_OR_VIEW); /* nobody saw it before */
    tn_status status = tn_normal_(x, mean, std, generator);
    tni_tls.excluded_xor = saved;
    TN_TRY(status);
    *out = TN_MOVE(x);
    return TN_OK;
}

tn_status tni_kernel_normal_functional(tn_call *call, tn_tensor *self, double mean, double std,
                                       tn_generator *generator, tn_tensor **out)
{
    (void)call;
    TN_AUTO(tn_tensor) x = NULL;
    TN_TRY(tn_empty_like(self, NULL, TN_FORMAT_NONE, &x));
    TN_TRY(tn_normal_(x, mean, std, generator));
    *out = TN_MOVE(x);
    return TN_OK;
}
