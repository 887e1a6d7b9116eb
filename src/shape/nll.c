/* SPDX-License-Identifier: MIT */
/* shape/nll.c: what classification losses give and refuse. */
#include <inttypes.h>

#include "gen/shapes.h"
#include "shape/geometry.h"
#include "shape/loss.h"

static void row_major(tni_geometry *g, const tn_tensor *like, int ndim, const int64_t *sizes)
{
    tni_geometry_like(g, like, ndim);
    g->has_strides = false;
    g->offset = 0;
    for (int d = 0; d < ndim; d++)
        g->sizes[d] = sizes[d];
}

static TNI_COLD tn_status other_type(const char *want, const tn_tensor *found)
{
    TN_FAIL(TN_INVALID, "expected scalar type %s but found %s", want,
            tni_dtype_text((tn_dtype)found->dtype));
}

/* What the reference's kernels find out: dtypes. */
static tn_status check_dtypes(const char *kernel, const tn_tensor *self, const tn_tensor *target,
                              const tn_tensor *weight, bool bytes)
{
    if (target->dtype != TN_DTYPE_I64 && !(bytes && target->dtype == TN_DTYPE_U8))
        return other_type("Long", target);
    TN_CHECK(tn_dtype_is_floating((tn_dtype)self->dtype), TN_UNSUPPORTED,
             "\"%s\" not implemented for '%s'", kernel, tni_dtype_text((tn_dtype)self->dtype));
    if (weight && weight->dtype != self->dtype)
        return other_type(tni_dtype_text((tn_dtype)self->dtype), weight);
    return TN_OK;
}

static tn_status check_total(const tn_tensor *total)
{
    char text[TNI_SIZES_TEXT];
    TN_CHECK(total->numel == 1, TN_INVALID,
             "expected total_weight to be a  single element tensor, got: %s (%lld elements)",
             tni_format_sizes(total->ndim, total->sizes, text, sizeof text),
             (long long)total->numel);
    return TN_OK;
}

static tn_status check_single(const tn_tensor *grad)
{
    char text[TNI_SIZES_TEXT];
    TN_CHECK(grad->ndim <= 1 && grad->numel == 1, TN_INVALID,
             "Expected a single element grad_output tensor, but got: %s",
             tni_format_sizes(grad->ndim, grad->sizes, text, sizeof text));
    return TN_OK;
}

/* ---- rows of classes ---- */

/* A weight for each class: in a row, or of any sizes that lie as one does. */
static bool weighs_each(const tn_tensor *weight, int64_t classes)
{
    return weight->numel == classes && (weight->ndim == 1 || (weight->flags & TNI_CONTIGUOUS));
}

static tn_status check_rows(const tn_tensor *self, const tn_tensor *target, const tn_tensor *weight,
                            bool backward)
{
    char a[TNI_SIZES_TEXT], b[TNI_SIZES_TEXT];
    TN_CHECK(self->ndim == 1 || self->ndim == 2, TN_INVALID, "input tensor should be 1D or 2D");
    TN_CHECK(target->ndim <= 1, TN_INVALID,
             "0D or 1D target tensor expected, multi-target not supported");
    bool one = self->ndim == 1;
    TN_CHECK(!one || backward || target->numel == 1, TN_VALUE,
             "For 1D input, 1D target must have size 1, but got target size: %" PRId64,
             target->numel);
    bool fits = one ? target->numel == 1 : target->ndim == 1 && self->sizes[0] == target->sizes[0];
    TN_CHECK(fits, TN_INVALID, "size mismatch (got input: %s, target: %s)",
             tni_format_sizes(self->ndim, self->sizes, a, sizeof a),
             tni_format_sizes(target->ndim, target->sizes, b, sizeof b));
    int64_t classes = self->sizes[self->ndim - 1];
    bool weighs = !weight || (backward ? weighs_each(weight, classes)
                                       : weight->ndim == 1 && weight->sizes[0] == classes);
    if (backward)
        TN_CHECK(weighs, TN_INVALID,
                 "weight tensor should be defined either for all or no classes");
    TN_CHECK(weighs, TN_INVALID,
             "weight tensor should be defined either for all %lld classes or no classes but got "
             "weight tensor of shape: %s",
             (long long)classes, tni_format_sizes(weight->ndim, weight->sizes, a, sizeof a));
    return TN_OK;
}

tn_status tni_shape_nll_loss_forward(tni_geometry *g, tn_tensor *self, tn_tensor *target,
                                     tn_tensor *weight, int64_t reduction, int64_t ignore_index)
{
    (void)ignore_index;
    TN_TRY(tni_loss_check(reduction));
    TN_TRY(check_rows(self, target, weight, false));
    TN_TRY(check_dtypes("nll_loss_out_frame", self, target, weight, true));
    row_major(&g[0], self, reduction == TNI_LOSS_EACH && self->ndim == 2 ? 1 : 0, self->sizes);
    row_major(&g[1], self, 0, NULL);
    return TN_OK;
}

tn_status tni_shape_nll_loss_backward(tni_geometry *g, tn_tensor *grad_output, tn_tensor *self,
                                      tn_tensor *target, tn_tensor *weight, int64_t reduction,
                                      int64_t ignore_index, tn_tensor *total_weight)
{
    (void)ignore_index;
    TN_TRY(tni_loss_check(reduction));
    TN_TRY(check_rows(self, target, weight, true));
    TN_TRY(check_total(total_weight));
    if (reduction == TNI_LOSS_EACH && self->ndim == 2) {
        TN_CHECK(grad_output->ndim == 1 && grad_output->sizes[0] == self->sizes[0], TN_INVALID,
                 "Expected a tensor of dimension 1 and tensor.size[0] == %lld but got: dimension "
                 "%d and tensor.size[0] = %lld",
                 (long long)self->sizes[0], grad_output->ndim,
                 (long long)(grad_output->ndim ? grad_output->sizes[0] : 1));
    } else {
        TN_TRY(check_single(grad_output));
    }
    TN_TRY(check_dtypes("nll_loss_backward_out_frame", self, target, weight, true));
    if (grad_output->dtype != self->dtype)
        return other_type(tni_dtype_text((tn_dtype)self->dtype), grad_output);
    row_major(g, self, self->ndim, self->sizes);
    return TN_OK;
}

/* ---- images ---- */

static tn_status check_images(const tn_tensor *self, const tn_tensor *target,
                              const tn_tensor *weight)
{
    char a[TNI_SIZES_TEXT], b[TNI_SIZES_TEXT];
    TN_CHECK(target->ndim == 3, TN_INVALID,
             "only batches of spatial targets supported (3D tensors) but got targets of dimension: "
             "%d",
             target->ndim);
    TN_CHECK(self->ndim == 4, TN_INVALID,
             "only batches of spatial inputs supported (4D tensors), but got input of dimension: "
             "%d",
             self->ndim);
    TN_CHECK(!weight || weighs_each(weight, self->sizes[1]), TN_INVALID,
             "weight tensor should be defined either for all or no classes");
    bool fits = self->sizes[0] == target->sizes[0] && self->sizes[2] == target->sizes[1] &&
                self->sizes[3] == target->sizes[2];
    TN_CHECK(fits, TN_INVALID, "size mismatch (got input: %s , target: %s",
             tni_format_sizes(4, self->sizes, a, sizeof a),
             tni_format_sizes(3, target->sizes, b, sizeof b));
    return TN_OK;
}

tn_status tni_shape_nll_loss2d_forward(tni_geometry *g, tn_tensor *self, tn_tensor *target,
                                       tn_tensor *weight, int64_t reduction, int64_t ignore_index)
{
    (void)ignore_index;
    TN_TRY(tni_loss_check(reduction));
    TN_TRY(check_images(self, target, weight));
    TN_TRY(check_dtypes("nll_loss2d_forward_out_frame", self, target, weight, false));
    row_major(&g[0], self, reduction == TNI_LOSS_EACH ? 3 : 0, target->sizes);
    row_major(&g[1], self, 0, NULL);
    return TN_OK;
}

tn_status tni_shape_nll_loss2d_backward(tni_geometry *g, tn_tensor *grad_output, tn_tensor *self,
                                        tn_tensor *target, tn_tensor *weight, int64_t reduction,
                                        int64_t ignore_index, tn_tensor *total_weight)
{
    char text[TNI_SIZES_TEXT];
    (void)ignore_index;
    TN_TRY(tni_loss_check(reduction));
    TN_TRY(check_images(self, target, weight));
    TN_TRY(check_total(total_weight));
    if (reduction == TNI_LOSS_EACH) {
        bool fits = grad_output->ndim == 3;
        TN_CHECK(fits, TN_INVALID,
                 "grad_output must have same dimension as target (3) but got dimension: %s",
                 tni_format_sizes(grad_output->ndim, grad_output->sizes, text, sizeof text));
        for (int d = 0; d < 3; d++)
            fits &= grad_output->sizes[d] == target->sizes[d];
        TN_CHECK(fits, TN_INVALID,
                 "size mismatch: grad_output has the sizes %s, and not those of target",
                 tni_format_sizes(3, grad_output->sizes, text, sizeof text));
    } else {
        TN_TRY(check_single(grad_output));
    }
    TN_TRY(check_dtypes("nll_loss2d_backward_out_frame", self, target, weight, false));
    if (grad_output->dtype != self->dtype)
        return other_type(tni_dtype_text((tn_dtype)self->dtype), grad_output);
    row_major(g, self, 4, self->sizes);
    return TN_OK;
}
