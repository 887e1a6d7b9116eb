/* SPDX-License-Identifier: MIT */
/* composite/inner_conv.c: convolutions by the names that PyTorch has for its kernels. One operator
 * computes them all, and chooses how by itself. */
#include "gen/composites.h"
#include "tenon/ops.h"

#define LIST(NAME) const int64_t *NAME, int64_t NAME##_n

tn_status tni_composite__convolution(tn_tensor *input, tn_tensor *weight, tn_tensor *bias,
                                     LIST(stride), LIST(padding), LIST(dilation), bool transposed,
                                     LIST(output_padding), int64_t groups, bool benchmark,
                                     bool deterministic, bool cudnn_enabled, bool allow_tf32,
                                     tn_tensor **out)
{
    (void)benchmark;
    (void)deterministic;
    (void)cudnn_enabled;
    (void)allow_tf32;
    return tn_convolution(input, weight, bias, stride, stride_n, padding, padding_n, dilation,
                          dilation_n, transposed, output_padding, output_padding_n, groups, out);
}

tn_status tni_composite__convolution_deprecated(tn_tensor *input, tn_tensor *weight,
                                                tn_tensor *bias, LIST(stride), LIST(padding),
                                                LIST(dilation), bool transposed,
                                                LIST(output_padding), int64_t groups,
                                                bool benchmark, bool deterministic,
                                                bool cudnn_enabled, tn_tensor **out)
{
    (void)benchmark;
    (void)deterministic;
    (void)cudnn_enabled;
    return tn_convolution(input, weight, bias, stride, stride_n, padding, padding_n, dilation,
                          dilation_n, transposed, output_padding, output_padding_n, groups, out);
}
