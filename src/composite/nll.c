/* SPDX-License-Identifier: MIT */
/* composite/nll.c: classification losses in terms of log_softmax and nll_loss. */
#include <math.h>
#include <string.h>
#include "core/tensor.h"
#include "gen/composites.h"
#include "shape/loss.h"
#include "tenon/ops.h"

tn_status tni_composite_nll_loss(tn_tensor *self, tn_tensor *target, tn_tensor *weight,
                                 int64_t reduction, int64_t ignore_index, tn_tensor **out)
{
    TN_AUTO(tn_tensor) total = NULL;
    return tn_nll_loss_forward(self, target, weight, reduction, ignore_index, out, &total);
}

tn_status tni_composite_nll_loss2d(tn_tensor *self, tn_tensor *target, tn_tensor *weight,
                                   int64_t reduction, int64_t ignore_index, tn_tensor **out)
{
    TN_AUTO(tn_tensor) total = NULL;
    return tn_nll_loss2d_forward(self, target, weight, reduction, ignore_index, out, &total);
}

/* Classes in dimension 1 of more or fewer dimensions than an image has: make it one. */
static tn_status as_image(tn_tensor *self, tn_tensor *target, tn_tensor *weight, int64_t reduction,
                          int64_t ignore_index, tn_tensor **out)
{
    bool fits = target->ndim == self->ndim - 1;
    for (int d = 1; fits && d < target->ndim; d++)
        fits = target->sizes[d] == self->sizes[d + 1];
    int64_t sizes[TN_MAX_DIMS], pixels = 1;
    sizes[0] = self->sizes[0];
    for (int d = 2; d < self->ndim; d++) {
        sizes[d - 1] = self->sizes[d];
        pixels *= self->sizes[d];
    }
    if (TNI_UNLIKELY(!fits)) {
        char a[TNI_SIZES_TEXT], b[TNI_SIZES_TEXT];
        TN_FAIL(TN_INVALID, "Expected target size %s, got %s",
                tni_format_sizes(self->ndim - 1, sizes, a, sizeof a),
                tni_format_sizes(target->ndim, target->sizes, b, sizeof b));
    }
    int64_t x_sizes[] = {sizes[0], self->sizes[1], 1, pixels}, t_sizes[] = {sizes[0], 1, pixels};
    TN_AUTO(tn_tensor) x = NULL;
    TN_AUTO(tn_tensor) t = NULL;
    TN_AUTO(tn_tensor) loss = NULL;
    TN_TRY(tn_reshape(self, x_sizes, 4, &x));
    TN_TRY(tn_reshape(target, t_sizes, 3, &t));
    TN_TRY(tn_nll_loss2d(x, t, weight, reduction, ignore_index, &loss));
    if (reduction == TNI_LOSS_EACH)
        return tn_view(loss, sizes, self->ndim - 1, out);
    *out = TN_MOVE(loss);
    return TN_OK;
}

tn_status tni_composite_nll_loss_nd(tn_tensor *self, tn_tensor *target, tn_tensor *weight,
                                    int64_t reduction, int64_t ignore_index, tn_tensor **out)
{
    TN_CHECK(self->ndim >= 1, TN_VALUE, "Expected 1 or more dimensions (got 0)");
    if (self->ndim != 1) {
        int64_t batch = target->ndim ? target->sizes[0] : 0;
        TN_CHECK(target->ndim && batch == self->sizes[0], TN_VALUE,
                 "Expected input batch_size (%lld) to match target batch_size (%lld).",
                 (long long)self->sizes[0], (long long)batch);
    }
    if (self->ndim <= 2)
        return tn_nll_loss(self, target, weight, reduction, ignore_index, out);
    if (self->ndim == 4)
        return tn_nll_loss2d(self, target, weight, reduction, ignore_index, out);
    return as_image(self, target, weight, reduction, ignore_index, out);
}

/* ---- cross entropy ---- */

static int class_dim_of(const tn_tensor *self)
{
    return self->ndim == 1 ? 0 : 1;
}

/* The weights of classes as a tensor that broadcasts against the input. */
static tn_status broadcast_weight(tn_tensor *self, tn_tensor *weight, tn_tensor **out)
{
    int64_t sizes[TN_MAX_DIMS];
    for (int d = 0; d < self->ndim; d++)
        sizes[d] = d == class_dim_of(self) ? weight->sizes[0] : 1;
    return tn_view(weight, sizes, self->ndim, out);
}

static tn_status reduce(tn_tensor *loss, int64_t reduction, int64_t n, tn_tensor **out)
{
    TN_AUTO(tn_tensor) sum = NULL;
    if (reduction == TNI_LOSS_EACH) {
        *out = tn_tensor_ref(loss);
        return TN_OK;
    }
    TN_TRY(tn_sum(loss, TN_DTYPE_NONE, &sum));
    if (reduction != TNI_LOSS_MEAN) {
        *out = TN_MOVE(sum);
        return TN_OK;
    }
    return tn_div_scalar(sum, n ? tn_int(n) : tn_float(0.0), out);
}

/* Targets are probabilities. */
static tn_status soft_targets(tn_tensor *self, tn_tensor *target, tn_tensor *weight,
                              int64_t reduction, double smoothing, tn_tensor **out)
{
    char text[TNI_SIZES_TEXT];
    int64_t dim = class_dim_of(self), classes = self->ndim ? self->sizes[dim] : 1;
    TN_CHECK(self->ndim, TN_INDEX,
             "Dimension out of range (expected to be in range of [-1, 0], but got 1)");
    TN_CHECK(!weight || (weight->ndim == 1 && weight->numel == classes), TN_INVALID,
             "cross_entropy: weight tensor should be defined either for all %lld classes or no "
             "classes but got weight tensor of shape: %s",
             (long long)classes, tni_format_sizes(weight->ndim, weight->sizes, text, sizeof text));
    TN_CHECK(!(smoothing > 1.0), TN_INVALID, "label_smoothing must be between 0.0 and 1.0. Got: %g",
             smoothing);
    TN_AUTO(tn_tensor) logs = NULL;
    TN_AUTO(tn_tensor) scaled = NULL;
    TN_AUTO(tn_tensor) smooth = NULL;
    TN_AUTO(tn_tensor) product = NULL;
    TN_AUTO(tn_tensor) w = NULL;
    TN_AUTO(tn_tensor) weighted = NULL;
    TN_AUTO(tn_tensor) sum = NULL;
    TN_AUTO(tn_tensor) negative = NULL;
    TN_TRY(tn_log_softmax(self, dim, (tn_dtype)self->dtype, &logs));
    if (smoothing > 0.0) {
        TN_TRY(tn_mul_scalar(target, tn_float(1 - smoothing), &scaled));
        TN_TRY(tn_add_scalar(scaled, tn_float(smoothing / (double)classes), tn_int(1), &smooth));
        target = smooth;
    }
    TN_TRY(tn_mul(logs, target, &product));
    if (weight) {
        TN_TRY(broadcast_weight(self, weight, &w));
        TN_TRY(tn_mul(product, w, &weighted));
    } else {
        weighted = TN_MOVE(product);
    }
    if (reduction == TNI_LOSS_EACH) {
        TN_TRY(tn_sum_dim(weighted, &dim, 1, false, TN_DTYPE_NONE, &sum));
        return tn_neg(sum, out);
    }
    TN_TRY(tn_neg(weighted, &negative));
    return reduce(negative, reduction, classes ? self->numel / classes : 0, out);
}

/* The sum over all classes of each target's weighted loss, zero where the target is ignored. */
static tn_status smooth_losses(tn_tensor *logs, tn_tensor *target, tn_tensor *weight,
                               tn_tensor *ignored, tn_tensor **out)
{
    int64_t dim = class_dim_of(logs);
    TN_AUTO(tn_tensor) w = NULL;
    TN_AUTO(tn_tensor) weighted = NULL;
    TN_AUTO(tn_tensor) sum = NULL;
    TN_AUTO(tn_tensor) negative = NULL;
    TN_AUTO(tn_tensor) zero = NULL;
    (void)target;
    if (weight) {
        TN_TRY(broadcast_weight(logs, weight, &w));
        TN_TRY(tn_mul(logs, w, &weighted));
    } else {
        weighted = tn_tensor_ref(logs);
    }
    TN_TRY(tn_sum_dim(weighted, &dim, 1, false, TN_DTYPE_NONE, &sum));
    TN_TRY(tn_neg(sum, &negative));
    TN_TRY(tn_new_zeros(logs, NULL, 0, NULL, &zero));
    return tn_where(ignored, zero, negative, out);
}

/* What the mean divides by: how many targets count, or the sum of their weights, which is the loss
 * of an input that is -1 everywhere. */
static tn_status divisor(tn_tensor *logs, tn_tensor *target, tn_tensor *weight, tn_tensor *ignored,
                         int64_t ignore_index, tn_tensor **out)
{
    TN_AUTO(tn_tensor) counted = NULL;
    TN_AUTO(tn_tensor) flat = NULL;
    if (!weight) {
        TN_TRY(tn_logical_not(ignored, &counted));
        return tn_sum(counted, TN_DTYPE_NONE, out);
    }
    TN_TRY(tn_new_full(logs, logs->sizes, logs->ndim, tn_float(-1.0), NULL, &flat));
    return tn_nll_loss_nd(flat, target, weight, TNI_LOSS_SUM, ignore_index, out);
}

static tn_status label_smoothing_loss(tn_tensor *self, tn_tensor *target, tn_tensor *weight,
                                      int64_t reduction, int64_t ignore_index, double smoothing,
                                      tn_tensor **out)
{
    TN_CHECK(smoothing <= 1.0, TN_INVALID, "label_smoothing must be between 0.0 and 1.0. Got: %g",
             smoothing);
    int64_t dim = class_dim_of(self);
    TN_AUTO(tn_tensor) logs = NULL;
    TN_AUTO(tn_tensor) loss = NULL;
    TN_AUTO(tn_tensor) ignored = NULL;
    TN_AUTO(tn_tensor) smooth = NULL;
    TN_AUTO(tn_tensor) sum = NULL;
    TN_AUTO(tn_tensor) weights = NULL;
    TN_AUTO(tn_tensor) mixed = NULL;
    TN_AUTO(tn_tensor) first = NULL;
    TN_AUTO(tn_tensor) second = NULL;
    TN_TRY(tn_log_softmax(self, dim, (tn_dtype)self->dtype, &logs));
    TN_TRY(tn_nll_loss_nd(logs, target, weight, reduction, ignore_index, &loss));
    TN_TRY(tn_eq_scalar(target, tn_int(ignore_index), &ignored));
    TN_TRY(smooth_losses(logs, target, weight, ignored, &smooth));
    if (reduction == TNI_LOSS_EACH) {
        mixed = TN_MOVE(smooth);
    } else {
        TN_TRY(tn_sum(smooth, TN_DTYPE_NONE, &sum));
        if (reduction == TNI_LOSS_MEAN) {
            TN_TRY(divisor(logs, target, weight, ignored, ignore_index, &weights));
            TN_TRY(tn_div(sum, weights, &mixed));
        } else {
            mixed = TN_MOVE(sum);
        }
    }
    double share = smoothing / (double)self->sizes[dim];
    TN_TRY(tn_mul_scalar(loss, tn_float(1 - smoothing), &first));
    TN_TRY(tn_mul_scalar(mixed, tn_float(share), &second));
    return tn_add(first, second, tn_int(1), out);
}

tn_status tni_composite_cross_entropy_loss(tn_tensor *self, tn_tensor *target, tn_tensor *weight,
                                           int64_t reduction, int64_t ignore_index,
                                           double label_smoothing, tn_tensor **out)
{
    TN_TRY(tni_loss_check(reduction));
    if (self->ndim == target->ndim &&
        memcmp(self->sizes, target->sizes, (size_t)self->ndim * sizeof(int64_t)) == 0) {
        TN_CHECK(tn_dtype_is_floating((tn_dtype)target->dtype), TN_INVALID,
                 "Expected floating point type for target with class probabilities, got %s",
                 tni_dtype_text((tn_dtype)target->dtype));
        TN_CHECK(ignore_index < 0, TN_INVALID,
                 "ignore_index is not supported for floating point target");
        return soft_targets(self, target, weight, reduction, label_smoothing, out);
    }
    if (label_smoothing > 0.0)
        return label_smoothing_loss(self, target, weight, reduction, ignore_index, label_smoothing,
                                    out);
    TN_AUTO(tn_tensor) logs = NULL;
    TN_TRY(tn_log_softmax(self, class_dim_of(self), (tn_dtype)self->dtype, &logs));
    return tn_nll_loss_nd(logs, target, weight, reduction, ignore_index, out);
}

/* ---- cosine embedding ---- */

/* sum(a * b) over one dimension, plus something. */
static tn_status dot_rows(tn_tensor *a, tn_tensor *b, int64_t dim, double plus, tn_tensor **out)
{
    TN_AUTO(tn_tensor) product = NULL;
    TN_AUTO(tn_tensor) sum = NULL;
    TN_TRY(tn_mul(a, b, &product));
    TN_TRY(tn_sum_dim(product, &dim, 1, false, TN_DTYPE_NONE, &sum));
    if (plus != 0.0)
        return tn_add_scalar(sum, tn_float(plus), tn_int(1), out);
    *out = TN_MOVE(sum);
    return TN_OK;
}

tn_status tni_composite_cosine_embedding_loss(tn_tensor *input1, tn_tensor *input2,
                                              tn_tensor *target, double margin, int64_t reduction,
                                              tn_tensor **out)
{
    char a[TNI_SIZES_TEXT], b[TNI_SIZES_TEXT];
    int dim = target->ndim;
    TN_TRY(tni_loss_check(reduction));
    TN_CHECK(dim <= 1, TN_INVALID, "0D or 1D target tensor expected, multi-target not supported");
    TN_CHECK(input1->ndim == dim + 1 && input2->ndim == dim + 1, TN_INVALID,
             "%dD target tensor expects %dD input tensors, but found inputs with sizes %s and %s.",
             dim, dim + 1, tni_format_sizes(input1->ndim, input1->sizes, a, sizeof a),
             tni_format_sizes(input2->ndim, input2->sizes, b, sizeof b));
    TN_AUTO(tn_tensor) dot = NULL;
    TN_AUTO(tn_tensor) square1 = NULL;
    TN_AUTO(tn_tensor) square2 = NULL;
    TN_AUTO(tn_tensor) squares = NULL;
    TN_AUTO(tn_tensor) length = NULL;
    TN_AUTO(tn_tensor) cosine = NULL;
    TN_AUTO(tn_tensor) zero = NULL;
    TN_AUTO(tn_tensor) less = NULL;
    TN_AUTO(tn_tensor) alike = NULL;
    TN_AUTO(tn_tensor) over = NULL;
    TN_AUTO(tn_tensor) unlike = NULL;
    TN_AUTO(tn_tensor) is_alike = NULL;
    TN_AUTO(tn_tensor) is_unlike = NULL;
    TN_AUTO(tn_tensor) first = NULL;
    TN_AUTO(tn_tensor) second = NULL;
    TN_AUTO(tn_tensor) loss = NULL;
    TN_TRY(dot_rows(input1, input2, dim, 0.0, &dot));
    TN_TRY(dot_rows(input1, input1, dim, 1e-12, &square1));
    TN_TRY(dot_rows(input2, input2, dim, 1e-12, &square2));
    TN_TRY(tn_mul(square1, square2, &squares));
    TN_TRY(tn_sqrt(squares, &length));
    TN_TRY(tn_div(dot, length, &cosine));
    TN_TRY(tn_new_zeros(cosine, NULL, 0, NULL, &zero));
    TN_TRY(tn_neg(cosine, &less));
    TN_TRY(tn_add_scalar(less, tn_int(1), tn_int(1), &alike));
    TN_TRY(tn_sub_scalar(cosine, tn_float(margin), tn_int(1), &over));
    TN_TRY(tn_relu(over, &unlike));
    TN_TRY(tn_eq_scalar(target, tn_int(1), &is_alike));
    TN_TRY(tn_eq_scalar(target, tn_int(-1), &is_unlike));
    TN_TRY(tn_where(is_alike, alike, zero, &first));
    TN_TRY(tn_where(is_unlike, unlike, zero, &second));
    TN_TRY(tn_add(first, second, tn_int(1), &loss));
    return reduce(loss, reduction, loss->numel, out);
}
