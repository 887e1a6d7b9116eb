/* SPDX-License-Identifier: MIT */
/* shape/conv.h: a convolution's arguments, checked, and in one form for every number of dimensions.
 */
#ifndef TNI_SHAPE_CONV_H
#define TNI_SHAPE_CONV_H

#include "core/tensor.h"

/* Three spatial dimensions always: those that are missing stand in front, with kernels of one. */
typedef struct tni_conv {
    int spatial; /* how many there are: 1, 2 or 3 */
    bool transposed;
    bool channels_last; /* of the result */
    int64_t batch, groups;
    int64_t in_channels, out_channels; /* of all groups together */
    int64_t in[3], out[3], kernel[3];
    int64_t stride[3], padding[3], dilation[3];
} tni_conv;

/* The parameter lists of a convolution, as operators take them. */
typedef struct tni_conv_lists {
    const int64_t *stride, *padding, *dilation, *output_padding;
    int64_t stride_n, padding_n, dilation_n, output_padding_n;
    bool transposed;
    int64_t groups;
} tni_conv_lists;

/* @retval TN_INVALID, TN_UNSUPPORTED  with the texts of the reference */
TN_NODISCARD tn_status tni_conv_check(const tn_tensor *input, const tn_tensor *weight,
                                      const tn_tensor *bias, const tni_conv_lists *lists,
                                      tni_conv *out);
/* The same for the gradient; *out is the forward convolution. */
TN_NODISCARD tn_status tni_conv_check_backward(const tn_tensor *grad, const tn_tensor *input,
                                               const tn_tensor *weight, const tni_conv_lists *lists,
                                               tni_conv *out);
/* The convolution that takes the gradient of @p c's result to that of its input. */
tni_conv tni_conv_adjoint(const tni_conv *c);
/* A tensor of @p like's sizes, channels last where @p c's result is. */
void tni_conv_geometry_like(const tni_conv *c, const tn_tensor *like, tni_geometry *g);

#endif
