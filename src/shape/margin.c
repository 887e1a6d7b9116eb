/* SPDX-License-Identifier: MIT */
/* shape/margin.c: what losses with margins and of sequences give and refuse. */
#include "gen/shapes.h"
#include "shape/index.h"
#include "shape/loss.h"

static TNI_COLD tn_status other_type(const char *want, const tn_tensor *found)
{
    TN_FAIL(TN_INVALID, "expected scalar type %s but found %s", want,
            tni_dtype_text((tn_dtype)found->dtype));
}

/* ---- margins ---- */

/* Rows of classes, and a target for each of them. */
static tn_status check_rows(const tn_tensor *self)
{
    char text[TNI_SIZES_TEXT];
    TN_CHECK(self->ndim <= 2 && (self->ndim == 0 || self->sizes[self->ndim - 1] > 0), TN_INVALID,
             "Expected non-empty vector or matrix with optional 0-dim batch size, but got: %s",
             tni_format_sizes(self->ndim, self->sizes, text, sizeof text));
    return TN_OK;
}

static tn_status refuse(const tn_tensor *self, const char *kernel)
{
    TN_CHECK(tn_dtype_is_floating((tn_dtype)self->dtype), TN_UNSUPPORTED,
             "\"%s\" not implemented for '%s'", kernel, tni_dtype_text((tn_dtype)self->dtype));
    return TN_OK;
}

static tn_status check_multi(const tn_tensor *self, const tn_tensor *target, tn_scalar p,
                             const tn_tensor *weight, const char *kernel)
{
    char text[TNI_SIZES_TEXT];
    double power = tn_scalar_to_double(p);
    TN_CHECK(power == 1 || power == 2, TN_INVALID, "only p == 1 and p == 2 supported");
    TN_TRY(check_rows(self));
    int64_t rows = self->ndim == 2 ? self->sizes[0] : 1;
    int64_t classes = self->ndim ? self->sizes[self->ndim - 1] : 1;
    TN_CHECK(target->ndim <= 1 && target->numel == rows, TN_INVALID,
             "inconsistent target size, expected %lld but got %s", (long long)rows,
             tni_format_sizes(target->ndim, target->sizes, text, sizeof text));
    TN_CHECK(!weight || (weight->ndim <= 1 && weight->numel == classes), TN_INVALID,
             "inconsistent weight size, expected %lld but got %s", (long long)classes,
             tni_format_sizes(weight->ndim, weight->sizes, text, sizeof text));
    TN_TRY(refuse(self, kernel));
    if (target->dtype != TN_DTYPE_I64)
        return other_type("Long", target);
    TN_TRY(tni_same_device(self, target));
    if (!weight)
        return TN_OK;
    if (weight->dtype != self->dtype)
        return other_type(tni_dtype_text((tn_dtype)self->dtype), weight);
    return tni_same_device(self, weight);
}

tn_status tni_shape_multi_margin_loss(tni_geometry *g, tn_tensor *self, tn_tensor *target,
                                      tn_scalar p, tn_scalar margin, tn_tensor *weight,
                                      int64_t reduction)
{
    (void)margin;
    TN_TRY(tni_loss_check(reduction));
    TN_TRY(check_multi(self, target, p, weight, "multi_margin_loss_cpu_kernel"));
    tni_geometry_fresh(g, self, reduction == TNI_LOSS_EACH ? target->ndim : 0);
    g->sizes[0] = target->numel;
    return TN_OK;
}

/* @p rows: what an unreduced loss has; a number otherwise. */
static tn_status check_grad(const tn_tensor *grad, const tn_tensor *self, int64_t reduction,
                            int64_t rows)
{
    char a[TNI_SIZES_TEXT], b[TNI_SIZES_TEXT];
    bool each = reduction == TNI_LOSS_EACH && rows >= 0;
    TN_CHECK(each ? grad->numel == rows && grad->ndim <= 1 : grad->numel == 1, TN_INVALID,
             "expected grad_output of size %s, but got %s",
             tni_format_sizes(each ? 1 : 0, &rows, a, sizeof a),
             tni_format_sizes(grad->ndim, grad->sizes, b, sizeof b));
    if (grad->dtype != self->dtype)
        return other_type(tni_dtype_text((tn_dtype)self->dtype), grad);
    return tni_same_device(self, grad);
}

tn_status tni_shape_multi_margin_loss_backward(tni_geometry *g, tn_tensor *grad_output,
                                               tn_tensor *self, tn_tensor *target, tn_scalar p,
                                               tn_scalar margin, tn_tensor *weight,
                                               int64_t reduction)
{
    (void)margin;
    TN_TRY(tni_loss_check(reduction));
    TN_TRY(check_multi(self, target, p, weight, "multi_margin_loss_backward_cpu_kernel"));
    TN_TRY(check_grad(grad_output, self, reduction, target->numel));
    tni_geometry_sizes_of(g, self);
    return TN_OK;
}

static tn_status check_labels(const tn_tensor *self, const tn_tensor *target, const char *kernel)
{
    char a[TNI_SIZES_TEXT], b[TNI_SIZES_TEXT];
    TN_TRY(check_rows(self));
    bool same = target->numel == self->numel && target->ndim <= 2 &&
                (self->ndim < 2 || target->ndim == 2) && (self->ndim == 2 || target->ndim < 2);
    for (int d = 0; same && self->ndim == 2 && d < 2; d++)
        same = target->sizes[d] == self->sizes[d];
    TN_CHECK(same, TN_INVALID, "inconsistent target size: %s for input of size: %s",
             tni_format_sizes(target->ndim, target->sizes, a, sizeof a),
             tni_format_sizes(self->ndim, self->sizes, b, sizeof b));
    TN_TRY(refuse(self, kernel));
    if (target->dtype != TN_DTYPE_I64)
        return other_type("Long", target);
    return tni_same_device(self, target);
}

tn_status tni_shape_multilabel_margin_loss_forward(tni_geometry *g, tn_tensor *self,
                                                   tn_tensor *target, int64_t reduction)
{
    TN_TRY(tni_loss_check(reduction));
    TN_TRY(check_labels(self, target, "multilabel_margin_loss_forward_out_frame"));
    tni_geometry_fresh(&g[0], self, reduction == TNI_LOSS_EACH && target->ndim == 2 ? 1 : 0);
    g[0].sizes[0] = target->ndim == 2 ? target->sizes[0] : 1;
    tni_geometry_sizes_of(&g[1], target);
    g[1].dtype = (tn_dtype)self->dtype;
    return TN_OK;
}

tn_status tni_shape_multilabel_margin_loss_backward(tni_geometry *g, tn_tensor *grad_output,
                                                    tn_tensor *self, tn_tensor *target,
                                                    int64_t reduction, tn_tensor *is_target)
{
    char a[TNI_SIZES_TEXT], b[TNI_SIZES_TEXT];
    TN_TRY(tni_loss_check(reduction));
    TN_TRY(check_labels(self, target, "multilabel_margin_loss_backward_out_frame"));
    bool same = is_target->ndim == target->ndim;
    for (int d = 0; same && d < target->ndim; d++)
        same = is_target->sizes[d] == target->sizes[d];
    TN_CHECK(same, TN_INVALID, "inconsistent is_target size: %s for target of size: %s",
             tni_format_sizes(is_target->ndim, is_target->sizes, a, sizeof a),
             tni_format_sizes(target->ndim, target->sizes, b, sizeof b));
    if (is_target->dtype != self->dtype)
        return other_type(tni_dtype_text((tn_dtype)self->dtype), is_target);
    TN_TRY(check_grad(grad_output, self, reduction, target->ndim == 2 ? target->sizes[0] : -1));
    tni_geometry_sizes_of(g, self);
    return TN_OK;
}

/* ---- sequences ---- */

#define WHERE "(while checking arguments for ctc_loss_allocate_outputs)"

static tn_status check_targets(const tn_tensor *targets, int64_t batch, int64_t most, int64_t all)
{
    TN_CHECK(targets->ndim == 1 || targets->ndim == 2, TN_INVALID,
             "Expected 1 to 2 dimensions, but got %d-dimensional tensor for argument #2 "
             "'targets' " WHERE,
             targets->ndim);
    int64_t want = targets->ndim == 1 ? all : batch;
    TN_CHECK(targets->sizes[0] == want, TN_INVALID,
             "Expected tensor to have size %lld at dimension 0, but got size %lld for argument #2 "
             "'targets' " WHERE,
             (long long)want, (long long)targets->sizes[0]);
    TN_CHECK(targets->ndim == 1 || targets->sizes[1] >= most, TN_INVALID,
             "Expected tensor to have size at least %lld at dimension 1, but got size %lld for "
             "argument #2 'targets' " WHERE,
             (long long)most, (long long)targets->sizes[1]);
    return TN_OK;
}

/* *longest: of the targets. */
static tn_status check_ctc(const tn_tensor *log_probs, const tn_tensor *targets,
                           const int64_t *inputs, int64_t inputs_n, const int64_t *lengths,
                           int64_t lengths_n, int64_t blank, int64_t *longest)
{
    TN_CHECK(tn_dtype_is_floating((tn_dtype)log_probs->dtype), TN_UNSUPPORTED,
             "\"ctc_loss_cpu\" not implemented for '%s'",
             tni_dtype_text((tn_dtype)log_probs->dtype));
    TN_CHECK(log_probs->numel > 0, TN_INVALID, "log_probs tensor must not be empty");
    TN_CHECK(targets->dtype == TN_DTYPE_I64 || targets->dtype == TN_DTYPE_I32, TN_INVALID,
             "Expected tensor for argument #2 'targets' to have scalar type Int; but got "
             "torch.%sTensor instead " WHERE,
             tni_dtype_text((tn_dtype)targets->dtype));
    TN_CHECK(log_probs->ndim == 3, TN_INVALID,
             "Expected 3-dimensional tensor, but got %d-dimensional tensor for argument #1 "
             "'log_probs' " WHERE,
             log_probs->ndim);
    int64_t batch = log_probs->sizes[1], all = 0, most = 0;
    TN_CHECK(blank >= 0 && blank < log_probs->sizes[2], TN_INVALID, "blank must be in label range");
    TN_CHECK(inputs_n == batch, TN_INVALID, "input_lengths must be of size batch_size");
    TN_CHECK(lengths_n == batch, TN_INVALID, "target_lengths must be of size batch_size");
    for (int64_t b = 0; b < batch; b++) {
        TN_CHECK(lengths[b] >= 0, TN_INVALID,
                 "Expected target_lengths to have value at least 0, but got value %lld " WHERE,
                 (long long)lengths[b]);
        most = lengths[b] > most ? lengths[b] : most;
        TN_CHECK(!__builtin_add_overflow(all, lengths[b], &all), TN_INVALID,
                 "integer out of range");
    }
    TN_TRY(check_targets(targets, batch, most, all));
    for (int64_t b = 0; b < batch; b++) {
        TN_CHECK(inputs[b] >= 0, TN_INVALID,
                 "Expected input_lengths to have value at least 0, but got value %lld " WHERE,
                 (long long)inputs[b]);
        TN_CHECK(inputs[b] <= log_probs->sizes[0], TN_INVALID,
                 "Expected input_lengths to have value at most %lld, but got value %lld " WHERE,
                 (long long)log_probs->sizes[0], (long long)inputs[b]);
    }
    *longest = most;
    return tni_same_device(log_probs, targets);
}

tn_status tni_shape_ctc_loss(tni_geometry *g, tn_tensor *log_probs, tn_tensor *targets,
                             const int64_t *input_lengths, int64_t input_lengths_n,
                             const int64_t *target_lengths, int64_t target_lengths_n, int64_t blank,
                             bool zero_infinity)
{
    int64_t longest;
    (void)zero_infinity;
    TN_TRY(check_ctc(log_probs, targets, input_lengths, input_lengths_n, target_lengths,
                     target_lengths_n, blank, &longest));
    tni_geometry_fresh(&g[0], log_probs, 1);
    g[0].sizes[0] = log_probs->sizes[1];
    tni_geometry_fresh(&g[1], log_probs, 3);
    g[1].sizes[0] = log_probs->sizes[1];
    g[1].sizes[1] = log_probs->sizes[0];
    g[1].sizes[2] = 2 * longest + 1;
    return TN_OK;
}

tn_status tni_shape_ctc_loss_backward(tni_geometry *g, tn_tensor *grad, tn_tensor *log_probs,
                                      tn_tensor *targets, const int64_t *input_lengths,
                                      int64_t input_lengths_n, const int64_t *target_lengths,
                                      int64_t target_lengths_n, tn_tensor *neg_log_likelihood,
                                      tn_tensor *log_alpha, int64_t blank, bool zero_infinity)
{
    char a[TNI_SIZES_TEXT], b[TNI_SIZES_TEXT];
    int64_t longest;
    (void)zero_infinity;
    TN_TRY(check_ctc(log_probs, targets, input_lengths, input_lengths_n, target_lengths,
                     target_lengths_n, blank, &longest));
    int64_t batch = log_probs->sizes[1], want[] = {batch, log_probs->sizes[0], 2 * longest + 1};
    bool same = log_alpha->ndim == 3;
    for (int d = 0; same && d < 3; d++)
        same = log_alpha->sizes[d] == want[d];
    TN_CHECK(same, TN_INVALID, "ctc_loss_backward: log_alpha must have the sizes %s, but has %s",
             tni_format_sizes(3, want, a, sizeof a),
             tni_format_sizes(log_alpha->ndim, log_alpha->sizes, b, sizeof b));
    const tn_tensor *each[] = {grad, neg_log_likelihood};
    for (int i = 0; i < 2; i++)
        TN_CHECK(each[i]->ndim == 1 && each[i]->sizes[0] == batch, TN_INVALID,
                 "ctc_loss_backward: expected one number for each of %lld sequences, but got %s",
                 (long long)batch, tni_format_sizes(each[i]->ndim, each[i]->sizes, a, sizeof a));
    TN_TRY(tni_same_device(log_probs, grad));
    TN_TRY(tni_same_device(log_probs, neg_log_likelihood));
    TN_TRY(tni_same_device(log_probs, log_alpha));
    tni_geometry_sizes_of(g, log_probs);
    return TN_OK;
}
