/* SPDX-License-Identifier: MIT */
/* composite/norm.c: normalisation layers in terms of the operators that do the work. */
#include <float.h>
#include "core/tensor.h"
#include "gen/composites.h"
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
        return DBL_EPSILON;
    case TN_DTYPE_F16:
        return 0x1p-10;
    case TN_DTYPE_BF16:
        return 0x1p-7;
    default:
        return (double)FLT_EPSILON;
    }
}

tn_status tni_composite_rms_norm(tn_tensor *input, const int64_t *normalized_shape,
                                 int64_t normalized_shape_n, tn_tensor *weight, tn_opt_float eps,
                                 tn_tensor **out)
{
    int leading;
    int64_t dims[TN_MAX_DIMS];
    TN_TRY(
        tni_check_normalized(input, normalized_shape, normalized_shape_n, weight, NULL, &leading));
    for (int64_t i = 0; i < normalized_shape_n; i++)
        dims[i] = leading + i;
    tn_dtype dtype = (tn_dtype)input->dtype;
    bool half = dtype == TN_DTYPE_F16 || dtype == TN_DTYPE_BF16;
    TN_AUTO(tn_tensor) dense = NULL;
    TN_AUTO(tn_tensor) x = NULL;
    TN_AUTO(tn_tensor) square = NULL;
    TN_AUTO(tn_tensor) mean = NULL;
    TN_AUTO(tn_tensor) moved = NULL;
    TN_AUTO(tn_tensor) rstd = NULL;
    TN_AUTO(tn_tensor) scaled = NULL;
    TN_AUTO(tn_tensor) weighted = NULL;
    TN_TRY(tn_contiguous(input, TN_FORMAT_CONTIGUOUS, &dense));
    TN_TRY(tn_to_dtype(dense, half ? TN_DTYPE_F32 : dtype, false, false, TN_FORMAT_NONE, &x));
    TN_TRY(tn_mul(x, x, &square));
    TN_TRY(tn_mean_dim(square, dims, normalized_shape_n, true, TN_DTYPE_NONE, &mean));
    TN_TRY(tn_add_scalar(mean, tn_float(eps.has ? eps.value : step_of(half ? TN_DTYPE_F32 : dtype)),
                         tn_int(1), &moved));
    TN_TRY(tn_rsqrt(moved, &rstd));
    TN_TRY(tn_mul(x, rstd, &scaled));
    if (weight)
        TN_TRY(tn_mul(scaled, weight, &weighted));
    else
        weighted = TN_MOVE(scaled);
    return tn_to_dtype(weighted, dtype, false, false, TN_FORMAT_NONE, out);
}
