/* SPDX-License-Identifier: MIT */
/* composite/norm.c: normalisation layers in terms of the operators that do the work. */
#include <float.h>
#include "composite/leave.h"
#include "composite/out.h"
#include "core/state.h"
#include "core/tensor.h"
#include "gen/composites.h"
#include "gen/kernels.h"
#include "shape/index.h"
#include "shape/norm.h"
#include "tenon/ops.h"

tn_status tni_composite_layer_norm(tn_tensor *input, const int64_t *normalized_shape,
                                   int64_t normalized_shape_n, tn_tensor *weight, tn_tensor *bias,
                                   double eps, bool cudnn_enable, tn_tensor **out)
{
    TN_AUTO(tn_tensor) mean = NULL;
    TN_AUTO(tn_tensor) rstd = NULL;
    (void)cudnn_enable;
    return tn_native_layer_norm(input, normalized_shape, normalized_shape_n, weight, bias, eps, out,
                                &mean, &rstd);
}

/* The smallest step at 1. */
static double step_of(tn_dtype dtype)
{
    switch (dtype) {
    case TN_DTYPE_F64:
    case TN_DTYPE_C128:
        return DBL_EPSILON;
    case TN_DTYPE_F16:
        return 0x1p-10;
    case TN_DTYPE_BF16:
        return 0x1p-7;
    default:
        return (double)FLT_EPSILON;
    }
}

/* The result and what was multiplied by, in float32 for halves. */
static tn_status rms_norm(tn_tensor *input, const int64_t *shape, int64_t n, tn_tensor *weight,
                          tn_opt_float eps, tn_tensor **out, tn_tensor **out_rstd)
{
    int leading;
    int64_t dims[TN_MAX_DIMS];
    TN_TRY(tni_check_normalized(input, shape, n, weight, NULL, &leading));
    for (int64_t i = 0; i < n; i++)
        dims[i] = leading + i;
    tn_dtype dtype = (tn_dtype)input->dtype;
    TN_CHECK(!tn_dtype_is_integral(dtype, true), TN_UNSUPPORTED,
             "\"rms_norm\" not implemented for '%s'", tni_dtype_text(dtype));
    bool half = dtype == TN_DTYPE_F16 || dtype == TN_DTYPE_BF16;
    TN_AUTO(tn_tensor) dense = NULL;
    TN_AUTO(tn_tensor) x = NULL;
    TN_AUTO(tn_tensor) square = NULL;
    TN_AUTO(tn_tensor) mean = NULL;
    TN_AUTO(tn_tensor) moved = NULL;
    TN_AUTO(tn_tensor) rstd = NULL;
    TN_AUTO(tn_tensor) scaled = NULL;
    TN_AUTO(tn_tensor) weighted = NULL;
    TN_TRY(tn_contiguous(input, tni_suggest_format(input), &dense));
    TN_TRY(tn_to_dtype(dense, half ? TN_DTYPE_F32 : dtype, false, false, TN_FORMAT_NONE, &x));
    TN_TRY(tn_mul(x, x, &square));
    TN_TRY(tn_mean_dim(square, dims, n, true, TN_DTYPE_NONE, &mean));
    TN_TRY(tn_add_scalar(mean, tn_float(eps.has ? eps.value : step_of(half ? TN_DTYPE_F32 : dtype)),
                         tn_int(1), &moved));
    TN_TRY(tn_rsqrt(moved, &rstd));
    TN_TRY(tn_mul(x, rstd, &scaled));
    if (weight)
        TN_TRY(tn_mul(scaled, weight, &weighted));
    else
        weighted = TN_MOVE(scaled);
    TN_TRY(tn_to_dtype(weighted, dtype, false, false, TN_FORMAT_NONE, out));
    *out_rstd = TN_MOVE(rstd);
    return TN_OK;
}

tn_status tni_composite_rms_norm(tn_tensor *input, const int64_t *normalized_shape,
                                 int64_t normalized_shape_n, tn_tensor *weight, tn_opt_float eps,
                                 tn_tensor **out)
{
    TN_AUTO(tn_tensor) rstd = NULL;
    TN_CHECK(input->ndim >= normalized_shape_n, TN_VALUE,
             "Input tensor must have at least %lld dimensions, but got %d",
             (long long)normalized_shape_n, input->ndim);
    return rms_norm(input, normalized_shape, normalized_shape_n, weight, eps, out, &rstd);
}

/* Contiguous, and halves in float32. */
static tn_tensor *in_float(tn_tensor *t)
{
    bool half = t->dtype == TN_DTYPE_F16 || t->dtype == TN_DTYPE_BF16;
    return tnx_to_dtype(tnx_contiguous(t, TN_FORMAT_CONTIGUOUS),
                        half ? TN_DTYPE_F32 : (tn_dtype)t->dtype, false, false, TN_FORMAT_NONE);
}

tn_status tni_composite__fused_rms_norm(tn_tensor *input, const int64_t *normalized_shape,
                                        int64_t normalized_shape_n, tn_tensor *weight,
                                        tn_opt_float eps, tn_tensor **out0, tn_tensor **out1)
{
    return rms_norm(input, normalized_shape, normalized_shape_n, weight, eps, out0, out1);
}

/* The gradients for x and for the weight, of which x_hat * weight with x_hat = x * rstd came. The
 * mask may leave out either, and without a weight there is no second. */
tn_status tni_composite__fused_rms_norm_backward(tn_tensor *grad_out, tn_tensor *input,
                                                 const int64_t *normalized_shape,
                                                 int64_t normalized_shape_n, tn_tensor *rstd,
                                                 tn_tensor *weight, const bool *output_mask,
                                                 int64_t output_mask_n, tn_tensor **out0,
                                                 tn_tensor **out1)
{
    int leading;
    int64_t dims[TN_MAX_DIMS];
    tn_dtype dtype = (tn_dtype)input->dtype;
    TN_TRY(tni_check_mask_length(output_mask_n, 2));
    TN_TRY(
        tni_check_normalized(input, normalized_shape, normalized_shape_n, weight, NULL, &leading));
    TN_CHECK(tn_dtype_is_floating(dtype), TN_UNSUPPORTED, "\"rms_norm\" not implemented for '%s'",
             tni_dtype_text(dtype));
    for (int d = 0; d < input->ndim; d++)
        dims[d] = d;
    tn_scope *scope;
    tn_tensor *for_input = NULL, *for_weight = NULL;
    TN_TRY(tn_scope_enter(&scope));
    tn_tensor *grad = in_float(grad_out), *x_hat = tnx_mul(in_float(input), rstd);
    if (output_mask[0]) {
        tn_tensor *scaled = weight ? tnx_mul(grad, in_float(weight)) : grad;
        tn_tensor *mean = tnx_mean_dim(tnx_mul(scaled, x_hat), dims + leading, normalized_shape_n,
                                       true, TN_DTYPE_NONE);
        tn_tensor *rest = tnx_sub(scaled, tnx_mul(x_hat, mean), tn_int(1));
        for_input = tnx_to_dtype(tnx_mul(rest, rstd), dtype, false, false, TN_FORMAT_NONE);
    }
    if (output_mask[1] && weight) {
        tn_tensor *each = tnx_mul(grad, x_hat);
        tn_tensor *all = leading ? tnx_sum_dim(each, dims, leading, false, TN_DTYPE_NONE) : each;
        for_weight = tnx_to_dtype(all, dtype, false, false, TN_FORMAT_NONE);
    }
    return tni_leave_two(scope, for_input, for_weight, out0, out1);
}

/* ---- channels ---- */

/* No elements, which still depend on weight and bias: their gradients are zeros. */
static tn_status nothing_normalised(tn_tensor *input, tn_tensor *weight, tn_tensor *bias,
                                    tn_tensor **out)
{
    TN_AUTO(tn_tensor) result = NULL;
    tn_tensor *const params[] = {weight, bias};
    TN_TRY(tn_clone(input, TN_FORMAT_NONE, &result));
    for (int i = 0; i < 2; i++) {
        TN_AUTO(tn_tensor) first = NULL;
        TN_AUTO(tn_tensor) last = TN_MOVE(result);
        if (!params[i] || params[i]->numel == 0) {
            result = TN_MOVE(last);
            continue;
        }
        TN_TRY(tn_select(params[i], 0, 0, &first));
        TN_TRY(i == 0 ? tn_mul(last, first, &result) : tn_add(last, first, tn_int(1), &result));
    }
    *out = TN_MOVE(result);
    return TN_OK;
}

tn_status tni_composite_batch_norm(tn_tensor *input, tn_tensor *weight, tn_tensor *bias,
                                   tn_tensor *running_mean, tn_tensor *running_var, bool training,
                                   double momentum, double eps, bool cudnn_enabled, tn_tensor **out)
{
    tn_tensor *const params[] = {weight, bias, running_mean, running_var};
    tn_dtype statistics;
    TN_AUTO(tn_tensor) mean = NULL;
    TN_AUTO(tn_tensor) rstd = NULL;
    (void)cudnn_enabled;
    TN_CHECK(!running_mean == !running_var, TN_VALUE,
             "running_mean and running_var must either both be None or neither be None");
    if (input->numel == 0) /* before all checks, as in the reference */
        return nothing_normalised(input, weight, bias, out);
    TN_TRY(tni_check_batch_norm(input, params, training, &statistics));
    return tn_native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum,
                                eps, out, &mean, &rstd);
}

/* A vector of channels, once for each sample, in memory of its own: running statistics are written
 * to. NULL gives NULL. */
static tn_status repeat(tn_tensor *t, int64_t samples, tn_tensor **out)
{
    TN_AUTO(tn_tensor) wide = NULL;
    TN_AUTO(tn_tensor) copy = NULL;
    if (!t)
        return TN_OK;
    TN_CHECK(t->ndim < 2, TN_INVALID,
             "Number of dimensions of repeat dims can not be smaller than number of dimensions of "
             "tensor");
    const int64_t sizes[] = {samples, t->numel};
    TN_TRY(tn_expand(t, sizes, 2, false, &wide));
    TN_TRY(tn_clone(wide, TN_FORMAT_CONTIGUOUS, &copy));
    return tn_view(copy, &copy->numel, 1, out);
}

/* Statistics are written beside the result, also where a function that is transformed captured them
 * (Note [Captured tensors]), as the kernels of batch normalisation do. */
static tn_status write_statistics(tn_tensor *running, tn_tensor *values)
{
    uint32_t transform = TN_MOVE(tni_tls.transform);
    tn_status status = tn_copy_(running, values, false);
    tni_tls.transform = transform;
    return status;
}

/* Running statistics become the mean over the samples'. */
static tn_status take_mean(tn_tensor *running, tn_tensor *repeated, int64_t samples)
{
    TN_AUTO(tn_tensor) rows = NULL;
    TN_AUTO(tn_tensor) mean = NULL;
    if (!running)
        return TN_OK;
    const int64_t sizes[] = {samples, running->numel}, dim = 0;
    TN_TRY(tn_view(repeated, sizes, 2, &rows));
    TN_TRY(tn_mean_dim(rows, &dim, 1, false, TN_DTYPE_NONE, &mean));
    return write_statistics(running, mean);
}

/* Running statistics may have another dtype than what is normalised: they are cast, and back. */
static tn_status repeat_as(tn_tensor *t, int64_t samples, tn_dtype dtype, tn_tensor **out)
{
    TN_AUTO(tn_tensor) repeated = NULL;
    TN_TRY(repeat(t, samples, &repeated));
    if (!repeated)
        return TN_OK;
    return tn_to_dtype(repeated, dtype, false, false, TN_FORMAT_NONE, out);
}

tn_status tni_composite_instance_norm(tn_tensor *input, tn_tensor *weight, tn_tensor *bias,
                                      tn_tensor *running_mean, tn_tensor *running_var,
                                      bool use_input_stats, double momentum, double eps,
                                      bool cudnn_enabled, tn_tensor **out)
{
    TN_CHECK(use_input_stats || (running_mean && running_var), TN_INVALID,
             "Expected running_mean and running_var to be defined when use_input_stats is false");
    TN_CHECK(input->ndim >= 2, TN_INDEX,
             "Dimension out of range (expected to be in range of [-1, 0], but got 1)");
    int64_t samples = input->sizes[0], sizes[TN_MAX_DIMS];
    sizes[0] = 1;
    TN_CHECK(!__builtin_mul_overflow(samples, input->sizes[1], &sizes[1]), TN_INVALID,
             "instance_norm: too many channels");
    for (int d = 2; d < input->ndim; d++)
        sizes[d] = input->sizes[d];
    TN_AUTO(tn_tensor) w = NULL;
    TN_AUTO(tn_tensor) b = NULL;
    TN_AUTO(tn_tensor) mean = NULL;
    TN_AUTO(tn_tensor) var = NULL;
    TN_AUTO(tn_tensor) dense = NULL;
    TN_AUTO(tn_tensor) channels = NULL;
    TN_AUTO(tn_tensor) result = NULL;
    if (running_mean) /* before either is written */
        TN_TRY(tni_check_internal_overlap(running_mean));
    if (running_var)
        TN_TRY(tni_check_internal_overlap(running_var));
    TN_TRY(repeat(weight, samples, &w));
    TN_TRY(repeat(bias, samples, &b));
    /* Both are cast where the mean needs it; a variance alone of another dtype is refused. */
    tn_dtype stats = (tn_dtype)(weight ? weight->dtype : input->dtype);
    bool cast = running_mean && (tn_dtype)running_mean->dtype != stats;
    TN_CHECK(cast || !running_mean || !running_var || (tn_dtype)running_var->dtype == stats,
             TN_INVALID, "expected scalar type %s but found %s", tni_dtype_text(stats),
             tni_dtype_text((tn_dtype)running_var->dtype));
    TN_TRY(repeat_as(running_mean, samples, stats, &mean));
    TN_TRY(repeat_as(running_var, samples, stats, &var));
    TN_TRY(tn_contiguous(input, TN_FORMAT_CONTIGUOUS, &dense));
    TN_TRY(tn_view(dense, sizes, input->ndim, &channels));
    TN_TRY(tn_batch_norm(channels, w, b, mean, var, use_input_stats, momentum, eps, cudnn_enabled,
                         &result));
    if (running_mean) /* which a batch of no elements was not asked for */
        TN_TRY(tni_check_writable(mean, running_mean));
    if (running_var)
        TN_TRY(tni_check_writable(var, running_var));
    TN_TRY(take_mean(running_mean, mean, samples));
    TN_TRY(take_mean(running_var, var, samples));
    return tn_view(result, input->sizes, input->ndim, out);
}

tn_status tni_composite_group_norm(tn_tensor *input, int64_t num_groups, tn_tensor *weight,
                                   tn_tensor *bias, double eps, bool cudnn_enabled, tn_tensor **out)
{
    TN_AUTO(tn_tensor) dense = NULL;
    TN_AUTO(tn_tensor) mean = NULL;
    TN_AUTO(tn_tensor) rstd = NULL;
    (void)cudnn_enabled;
    TN_TRY(tni_check_groups(input, num_groups, weight, bias));
    int64_t pixels = 1;
    for (int d = 2; d < input->ndim; d++)
        pixels *= input->sizes[d];
    TN_TRY(tn_contiguous(input, tni_suggest_format(input), &dense));
    return tn_native_group_norm(dense, weight, bias, input->sizes[0], input->sizes[1], pixels,
                                num_groups, eps, out, &mean, &rstd);
}

/* Running statistics are written last, from copies that moved: when a result has no place they
 * stay.
 */
static tn_status batch_norm_into(const char *op, tn_tensor *const *input, bool training,
                                 double momentum, double eps, tn_tensor *const *outs)
{
    tn_tensor *const *running = input + 3;
    tn_tensor *made[3] = {NULL, NULL, NULL}, *moved[2] = {NULL, NULL};
    tn_status status = TN_OK;
    for (int i = 0; i < 2 && status == TN_OK; i++)
        if (running[i]) {
            status = training ? tni_check_internal_overlap(running[i]) : TN_OK;
            if (status == TN_OK)
                status = tn_clone(running[i], TN_FORMAT_PRESERVE, &moved[i]);
        }
    if (status == TN_OK)
        status = tn_native_batch_norm(input[0], input[1], input[2], moved[0], moved[1], training,
                                      momentum, eps, &made[0], &made[1], &made[2]);
    if (status == TN_OK)
        status = tni_out_take_all(op, made, outs, 3);
    for (int i = 0; i < 2; i++) {
        if (status == TN_OK && running[i] && training)
            status = write_statistics(running[i], moved[i]);
        tn_tensor_unref(moved[i]);
    }
    for (int i = 0; i < 3; i++)
        tn_tensor_unref(made[i]);
    return status;
}

tn_status tni_kernel_native_batch_norm_out(tn_call *call, tn_tensor *input, tn_tensor *weight,
                                           tn_tensor *bias, tn_tensor *running_mean,
                                           tn_tensor *running_var, bool training, double momentum,
                                           double eps, tn_tensor *out, tn_tensor *save_mean,
                                           tn_tensor *save_invstd)
{
    tn_tensor *const inputs[] = {input, weight, bias, running_mean, running_var};
    tn_tensor *const outs[] = {out, save_mean, save_invstd};
    (void)call;
    return batch_norm_into("native_batch_norm", inputs, training, momentum, eps, outs);
}

tn_status tni_kernel__native_batch_norm_legit_out(tn_call *call, tn_tensor *input,
                                                  tn_tensor *weight, tn_tensor *bias,
                                                  tn_tensor *running_mean, tn_tensor *running_var,
                                                  bool training, double momentum, double eps,
                                                  tn_tensor *out, tn_tensor *save_mean,
                                                  tn_tensor *save_invstd)
{
    tn_tensor *const inputs[] = {input, weight, bias, running_mean, running_var};
    tn_tensor *const outs[] = {out, save_mean, save_invstd};
    (void)call;
    return batch_norm_into("_native_batch_norm_legit", inputs, training, momentum, eps, outs);
}
