/* SPDX-License-Identifier: MIT */
/* autograd/formula_conv.c: the gradient of the gradient of convolution. See formula.c. */
#include "autograd/formula.h"
#include "gen/gradients.h"

#include "tenon/ops.h"

static tn_tensor *sum_of(tn_tensor *a, tn_tensor *b)
{
    return a && b ? tnx_add(a, b, tn_int(1)) : a ? a : b;
}

/* A number for each channel, over the whole of @p like. */
static tn_tensor *over_channels(tn_tensor *bias, const tn_tensor *like)
{
    int64_t shape[TN_MAX_DIMS];
    for (int d = 0; d < like->ndim; d++)
        shape[d] = d == 1 ? -1 : 1;
    return tnx_expand(tnx_view(bias, shape, like->ndim), like->sizes, like->ndim, false);
}

/* With y = x * w + b, its gradients are linear in grad_output and in one of x and w each:
 *     gx = B(g, w), gw = C(g, x), gb = sum(g).
 * So what came for gx and gw takes the place of x and w in turn. */
tn_status tni_grad_convolution_double(tn_tensor *of_input, tn_tensor *of_weight, tn_tensor *of_bias,
                                      tn_tensor *grad_output, tn_tensor *input, tn_tensor *weight,
                                      const int64_t *stride, int64_t stride_n,
                                      const int64_t *padding, int64_t padding_n,
                                      const int64_t *dilation, int64_t dilation_n, bool transposed,
                                      const int64_t *output_padding, int64_t output_padding_n,
                                      int64_t groups, const bool *mask, int64_t mask_n,
                                      tn_tensor **made)
{
#define GEOMETRY                                                                            \
    stride, stride_n, padding, padding_n, dilation, dilation_n, transposed, output_padding, \
        output_padding_n, groups
    (void)mask_n;
    tn_tensor *none = NULL, *to_grad = NULL;
    TN_AUTO(tn_tensor) to_input = NULL;
    TN_AUTO(tn_tensor) to_weight = NULL;
    if (mask[0]) {
        if (of_input)
            to_grad = tnx_convolution(of_input, weight, NULL, GEOMETRY);
        if (of_weight)
            to_grad = sum_of(to_grad, tnx_convolution(input, of_weight, NULL, GEOMETRY));
        if (of_bias)
            to_grad = sum_of(to_grad, over_channels(of_bias, grad_output));
    }
    TN_TRY(tni_scope_settle());
    if (mask[1] && of_weight)
        TN_TRY(tn_convolution_backward(grad_output, input, of_weight, NULL, 0, GEOMETRY,
                                       (const bool[]){true, false, false}, 3, &to_input, &none,
                                       &none));
    if (mask[2] && of_input)
        TN_TRY(tn_convolution_backward(grad_output, of_input, weight, NULL, 0, GEOMETRY,
                                       (const bool[]){false, true, false}, 3, &none, &to_weight,
                                       &none));
#undef GEOMETRY
    made[0] = tn_tensor_ref(to_grad);
    made[1] = TN_MOVE(to_input);
    made[2] = TN_MOVE(to_weight);
    return TN_OK;
}
