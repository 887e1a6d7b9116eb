/* SPDX-License-Identifier: MIT */
/* autograd/formula_view.h: gradients of views that are described by geometry alone. */
#ifndef TNI_AUTOGRAD_FORMULA_VIEW_H
#define TNI_AUTOGRAD_FORMULA_VIEW_H

#include "core/tensor.h"

/* May two elements of a tensor that is not empty lie at one place? True also where that cannot be
 * ruled out cheaply. */
bool tni_may_overlap(int64_t n, const int64_t *sizes, const int64_t *strides);

/* The gradient of as_strided(input, size, stride, offset), where the input has the geometry of the
 * first six arguments. Elements that the view shows twice get the sum; elements that the input
 * itself shows n times get an nth each. @p offset none: the input's. Belongs to the scope, where a
 * failure sticks; made of operators, so that it can be differentiated again. */
TN_BORROWED tn_tensor *tni_grad_as_strided_backward(tn_tensor *grad, const int64_t *input_sizes,
                                                    int64_t input_sizes_n,
                                                    const int64_t *input_strides,
                                                    int64_t input_strides_n, int64_t input_offset,
                                                    const int64_t *size, int64_t size_n,
                                                    const int64_t *stride, int64_t stride_n,
                                                    tn_opt_int offset);

#endif
