/* SPDX-License-Identifier: MIT */
/* shape/softmax.c: what softmax and its relatives give: the input's sizes, row-major. */
#include "gen/shapes.h"
#include "shape/geometry.h"

static void like(tni_geometry *g, const tn_tensor *t)
{
    tni_geometry_copy(g, t);
    g->has_strides = false;
    g->offset = 0;
}

/* The reference's kernels refuse what they cannot compute, under another name along the last
 * dimension than along any other. */
static tn_status check_floating(const char *kernel, const tn_tensor *t, int dim)
{
    TN_CHECK(t->numel == 0 || tn_dtype_is_floating((tn_dtype)t->dtype), TN_UNSUPPORTED,
             "\"%s_%skernel_impl\" not implemented for '%s'", kernel,
             dim >= t->ndim - 1 ? "lastdim_" : "", tni_dtype_text((tn_dtype)t->dtype));
    return TN_OK;
}

static tn_status forward(const char *kernel, tni_geometry *g, const tn_tensor *self, int64_t dim,
                         bool half_to_float)
{
    int d;
    TN_CHECK(!half_to_float, TN_INVALID,
             "softmax with half to float conversion is not supported on CPU");
    TN_TRY(tni_wrap_dim(dim, self->ndim, &d));
    TN_TRY(check_floating(kernel, self, d));
    like(g, self);
    return TN_OK;
}

tn_status tni_shape__softmax(tni_geometry *g, tn_tensor *self, int64_t dim, bool half_to_float)
{
    return forward("softmax", g, self, dim, half_to_float);
}

tn_status tni_shape__log_softmax(tni_geometry *g, tn_tensor *self, int64_t dim, bool half_to_float)
{
    return forward("log_softmax", g, self, dim, half_to_float);
}

static tn_status backward(const char *kernel, tni_geometry *g, const tn_tensor *grad,
                          const tn_tensor *output, int64_t dim)
{
    int d;
    TN_TRY(tni_wrap_dim(dim, grad->ndim, &d));
    bool same = grad->ndim == output->ndim;
    for (int i = 0; same && i < grad->ndim; i++)
        same = grad->sizes[i] == output->sizes[i];
    if (TNI_UNLIKELY(!same)) {
        char a[TNI_SIZES_TEXT], b[TNI_SIZES_TEXT];
        TN_FAIL(
            TN_INVALID,
            "Expected tensor for argument #1 'grad' to have same size as tensor for argument #2 "
            "'output'; but %s does not equal %s (while checking arguments for %s)",
            tni_format_sizes(grad->ndim, grad->sizes, a, sizeof a),
            tni_format_sizes(output->ndim, output->sizes, b, sizeof b), kernel);
    }
    TN_TRY(check_floating(kernel, grad, d));
    TN_CHECK(grad->dtype == output->dtype, TN_INVALID, "expected scalar type %s but found %s",
             tni_dtype_text((tn_dtype)grad->dtype), tni_dtype_text((tn_dtype)output->dtype));
    like(g, grad);
    return TN_OK;
}

static tn_status check_input_dtype(const tn_tensor *grad, tn_dtype input_dtype)
{
    TN_CHECK(grad->dtype == input_dtype, TN_INVALID, "expected scalar type %s but found %s",
             tni_dtype_text((tn_dtype)grad->dtype), tni_dtype_text(input_dtype));
    return TN_OK;
}

tn_status tni_shape__softmax_backward_data(tni_geometry *g, tn_tensor *grad_output,
                                           tn_tensor *output, int64_t dim, tn_dtype input_dtype)
{
    TN_TRY(backward("softmax_backward", g, grad_output, output, dim));
    return check_input_dtype(grad_output, input_dtype);
}

tn_status tni_shape__log_softmax_backward_data(tni_geometry *g, tn_tensor *grad_output,
                                               tn_tensor *output, int64_t dim, tn_dtype input_dtype)
{
    TN_TRY(backward("log_softmax_backward", g, grad_output, output, dim));
    return check_input_dtype(grad_output, input_dtype);
}
