/* SPDX-License-Identifier: MIT */
/* shape/norm.c: what normalisation layers give and refuse. */
#include "shape/norm.h"

#include <stdio.h>
#include "gen/shapes.h"

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
