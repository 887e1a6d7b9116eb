/* SPDX-License-Identifier: MIT */
/* shape/norm.c: what normalisation layers give and refuse. */
#include "shape/norm.h"

#include <stdio.h>
#include "gen/shapes.h"
#include "shape/index.h"

static void row_major(tni_geometry *g, const tn_tensor *t)
{
    g->ndim = t->ndim;
    g->dtype = (tn_dtype)t->dtype;
    g->device = t->device;
    g->has_strides = false;
    g->offset = 0;
    for (int d = 0; d < t->ndim; d++)
        g->sizes[d] = t->sizes[d];
}

static bool has_sizes(const tn_tensor *t, const int64_t *sizes, int64_t n)
{
    bool same = t->ndim == n;
    for (int d = 0; same && d < n; d++)
        same = t->sizes[d] == sizes[d];
    return same;
}

static tn_status check_parameter(const char *name, const tn_tensor *t, const int64_t *shape,
                                 int64_t n)
{
    if (!t || has_sizes(t, shape, n))
        return TN_OK;
    char a[TNI_SIZES_TEXT], b[TNI_SIZES_TEXT];
    TN_FAIL(TN_INVALID,
            "Expected %s to be of same shape as normalized_shape, but got %s of shape %s and "
            "normalized_shape = %s",
            name, name, tni_format_sizes(t->ndim, t->sizes, a, sizeof a),
            tni_format_sizes((int)n, shape, b, sizeof b));
}

tn_status tni_check_normalized(const tn_tensor *input, const int64_t *shape, int64_t n,
                               const tn_tensor *weight, const tn_tensor *bias, int *leading)
{
    char a[TNI_SIZES_TEXT], b[TNI_SIZES_TEXT];
    TN_CHECK(n >= 1, TN_INVALID,
             "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least "
             "one element, but got normalized_shape = []");
    TN_CHECK(n <= TN_MAX_DIMS, TN_INVALID, "normalized_shape has %lld dimensions, at most %d",
             (long long)n, TN_MAX_DIMS);
    TN_TRY(check_parameter("weight", weight, shape, n));
    TN_TRY(check_parameter("bias", bias, shape, n));
    bool same = input->ndim >= n;
    for (int d = 0; same && d < n; d++)
        same = input->sizes[input->ndim - n + d] == shape[d];
    if (TNI_UNLIKELY(!same)) {
        tni_format_sizes((int)n, shape, a, sizeof a);
        TN_FAIL(TN_INVALID,
                "Given normalized_shape=%s, expected input with shape [*, %s, but got input of "
                "size%s",
                a, a + 1, tni_format_sizes(input->ndim, input->sizes, b, sizeof b));
    }
    *leading = input->ndim - (int)n;
    return TN_OK;
}

tn_status tni_check_norm_dtypes(const char *kernel, const tn_tensor *input, const tn_tensor *weight,
                                const tn_tensor *bias, tn_dtype *statistics)
{
    tn_dtype x = (tn_dtype)input->dtype;
    const tn_tensor *first = weight ? weight : bias;
    *statistics = x;
    if (weight)
        TN_TRY(tni_same_device(input, weight));
    if (bias)
        TN_TRY(tni_same_device(input, bias));
    if (TNI_UNLIKELY(first && first->dtype != x)) {
        TN_CHECK((!weight || weight->dtype == TN_DTYPE_F32) &&
                     (!bias || bias->dtype == TN_DTYPE_F32),
                 TN_INVALID, "mixed dtype (CPU): expect parameter to have scalar type of Float");
        TN_CHECK(x == TN_DTYPE_F16 || x == TN_DTYPE_BF16, TN_INVALID,
                 "mixed dtype (CPU): all inputs must share same datatype.");
        *statistics = TN_DTYPE_F32;
    }
    TN_CHECK(!bias || !weight || bias->dtype == weight->dtype, TN_INVALID,
             "expected scalar type %s but found %s", tni_dtype_text((tn_dtype)weight->dtype),
             tni_dtype_text((tn_dtype)bias->dtype));
    TN_CHECK(tn_dtype_is_floating(x), TN_UNSUPPORTED, "\"%s\" not implemented for '%s'", kernel,
             tni_dtype_text(x));
    return TN_OK;
}

tn_status tni_shape_native_layer_norm(tni_geometry *g, tn_tensor *input,
                                      const int64_t *normalized_shape, int64_t normalized_shape_n,
                                      tn_tensor *weight, tn_tensor *bias, double eps)
{
    int leading;
    tn_dtype statistics;
    (void)eps;
    TN_TRY(
        tni_check_normalized(input, normalized_shape, normalized_shape_n, weight, bias, &leading));
    TN_TRY(tni_check_norm_dtypes("LayerNormKernelImpl", input, weight, bias, &statistics));
    row_major(&g[0], input);
    for (int k = 1; k < 3; k++) {
        row_major(&g[k], input);
        g[k].dtype = statistics;
        for (int d = leading; d < input->ndim; d++)
            g[k].sizes[d] = 1;
    }
    return TN_OK;
}

/* ---- batch normalisation ---- */

static tn_status check_channels(const char *name, const tn_tensor *t, int64_t channels)
{
    TN_CHECK(!t || t->numel == channels, TN_INVALID, "%s should contain %lld elements not %lld",
             name, (long long)channels, t ? (long long)t->numel : 0);
    TN_CHECK(!t || t->ndim == 1, TN_INVALID, "%s should be a vector, but has %d dimensions", name,
             t ? t->ndim : 0);
    return TN_OK;
}

/* @p params: weight, bias, running_mean, running_var. */
tn_status tni_check_batch_norm(const tn_tensor *input, tn_tensor *const *params, bool training,
                               tn_dtype *statistics)
{
    static const char *const names[] = {"weight", "bias", "running_mean", "running_var"};
    static const uint8_t order[] = {2, 3, 0, 1};
    TN_CHECK(input->ndim >= 2, TN_INDEX,
             "Dimension out of range (expected to be in range of [-%d, %d], but got 1)",
             input->ndim ? input->ndim : 1, input->ndim ? input->ndim - 1 : 0);
    for (int i = 2; i < 4; i++)
        TN_CHECK(training || params[i], TN_INVALID, "%s must be defined in evaluation mode",
                 names[i]);
    for (int i = 0; i < 4; i++)
        if (params[i])
            TN_TRY(tni_same_device(input, params[i]));
    for (int i = 0; i < 4; i++)
        TN_TRY(check_channels(names[order[i]], params[order[i]], input->sizes[1]));
    tn_dtype x = (tn_dtype)input->dtype, first = TN_DTYPE_NONE;
    for (int i = 0; i < 4 && first == TN_DTYPE_NONE; i++)
        first = params[i] ? (tn_dtype)params[i]->dtype : first;
    *statistics = x;
    TN_CHECK(!tn_dtype_is_complex(x), TN_UNSUPPORTED, "\"batch_norm\" not implemented for '%s'",
             tni_dtype_text(x));
    if (first != TN_DTYPE_NONE && first != x) {
        for (int i = 0; i < 4; i++)
            TN_CHECK(!params[i] || params[i]->dtype == TN_DTYPE_F32, TN_INVALID,
                     "mixed dtype (CPU): expect parameter to have scalar type of Float");
        TN_CHECK(x == TN_DTYPE_F16 || x == TN_DTYPE_BF16, TN_INVALID,
                 "mixed dtype (CPU): all inputs must share same datatype.");
        *statistics = TN_DTYPE_F32;
    }
    for (int i = 0; i < 4; i++)
        TN_CHECK(!params[i] || params[i]->dtype == *statistics, TN_INVALID,
                 "expected scalar type %s but found %s", tni_dtype_text(*statistics),
                 tni_dtype_text((tn_dtype)params[i]->dtype));
    TN_CHECK(tn_dtype_is_floating(x), TN_UNSUPPORTED, "\"batch_norm\" not implemented for '%s'",
             tni_dtype_text(x));
    return TN_OK;
}

tn_status tni_norm_result(const tn_tensor *like, tn_dtype dtype, tn_tensor **out)
{
    int64_t strides[TN_MAX_DIMS];
    TN_TRY(tni_format_strides(tni_suggest_format(like), like->ndim, like->sizes, strides));
    return tni_tensor_new(like->ndim, like->sizes, strides, dtype, like->device, out);
}

tn_status tni_batch_norm_result(const tn_tensor *like, tn_tensor **out)
{
    if (tn_tensor_is_contiguous(like, TN_FORMAT_CONTIGUOUS))
        return tni_tensor_new(like->ndim, like->sizes, NULL, (tn_dtype)like->dtype, like->device,
                              out);
    return tni_norm_result(like, (tn_dtype)like->dtype, out);
}

/* ---- group normalisation ---- */

tn_status tni_check_groups(const tn_tensor *input, int64_t groups, const tn_tensor *weight,
                           const tn_tensor *bias)
{
    char a[TNI_SIZES_TEXT], b[TNI_SIZES_TEXT];
    TN_CHECK(input->ndim >= 2, TN_INVALID,
             "Expected at least 2 dimensions for input tensor but received %d", input->ndim);
    TN_CHECK(groups > 0, TN_INVALID, "Expected num groups to be greater than 0, got %lld",
             (long long)groups);
    int64_t channels = input->sizes[1];
    TN_CHECK(channels % groups == 0, TN_INVALID,
             "Expected number of channels in input to be divisible by num_groups, but got input "
             "of shape %s and num_groups=%lld",
             tni_format_sizes(input->ndim, input->sizes, a, sizeof a), (long long)groups);
    const tn_tensor *params[] = {weight, bias};
    for (int i = 0; i < 2; i++) {
        const tn_tensor *t = params[i];
        const char *name = i == 0 ? "weight" : "bias";
        TN_CHECK(!t || (t->ndim == 1 && t->numel == channels), TN_INVALID,
                 "Expected %s to be a vector of size equal to the number of channels in input, but "
                 "got %s of shape %s and input of shape %s",
                 name, name, tni_format_sizes(t->ndim, t->sizes, a, sizeof a),
                 tni_format_sizes(input->ndim, input->sizes, b, sizeof b));
    }
    return TN_OK;
}
