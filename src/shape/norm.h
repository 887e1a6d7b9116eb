/* SPDX-License-Identifier: MIT */
/* shape/norm.h: what normalisation layers check, for kernels whose results depend on a mask. */
#ifndef TNI_SHAPE_NORM_H
#define TNI_SHAPE_NORM_H

#include "core/tensor.h"

/* Whether the last dimensions of @p input are @p shape, and weight and bias (may be NULL) have
 * these sizes. *leading: how many dimensions stand before them.
 * @retval TN_INVALID  "Given normalized_shape=[4], expected input with shape [*, 4], but got input
 * of size[2, 3]" and the like */
TN_NODISCARD tn_status tni_check_normalized(const tn_tensor *input, const int64_t *shape, int64_t n,
                                            const tn_tensor *weight, const tn_tensor *bias,
                                            int *leading);
/* Whether weight and bias go with the dtype of @p input; *statistics is that of mean and rstd. */
TN_NODISCARD tn_status tni_check_norm_dtypes(const char *kernel, const tn_tensor *input,
                                             const tn_tensor *weight, const tn_tensor *bias,
                                             tn_dtype *statistics);

/* The same for batch normalisation, with the sizes: [channels], and running statistics. */
TN_NODISCARD tn_status tni_check_batch_norm(const tn_tensor *input, tn_tensor *const *params,
                                            bool training, tn_dtype *statistics);
/* Group normalisation: channels that divide, parameters of one element a channel. */
TN_NODISCARD tn_status tni_check_groups(const tn_tensor *input, int64_t groups,
                                        const tn_tensor *weight, const tn_tensor *bias);
/* A fresh tensor with the sizes of @p like, in channels-last order when that is its order, else
 * row-major. */
TN_NODISCARD tn_status tni_norm_result(const tn_tensor *like, tn_dtype dtype,
                                       TN_OWNED tn_tensor **out);
/* The same for batch normalisation: what is row-major and channels-last at once stays row-major. */
TN_NODISCARD tn_status tni_batch_norm_result(const tn_tensor *like, TN_OWNED tn_tensor **out);

#endif
