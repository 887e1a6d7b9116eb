/* SPDX-License-Identifier: MIT */
/* autograd/formula_loss.c: gradients of losses and of softmax, written by hand. See formula.c. */
#include "gen/gradients.h"

#include "shape/loss.h"
#include "tenon/ops.h"

/* The share of one of @p of's elements in the loss. */
static tn_tensor *share(tn_tensor *t, int64_t reduction, const tn_tensor *of)
{
    if (!t || !of || reduction != TNI_LOSS_MEAN)
        return t;
    return tnx_div_scalar(t, tn_int(of->numel));
}

static tn_tensor *signed_as(tn_tensor *t, bool negative)
{
    return negative ? tnx_neg(t) : t;
}

/* ---- differences ---- */

tn_tensor *tni_grad_mse_second(tn_tensor *grad, int64_t reduction, bool negative)
{
    return signed_as(share(tnx_mul_scalar(grad, tn_int(2)), reduction, grad), negative);
}

/* Only where the difference is small is the loss bent. */
static tn_tensor *where_small(tn_tensor *grad, tn_tensor *difference, double limit)
{
    tn_tensor *small = tnx_lt_scalar(tnx_abs(difference), tn_float(limit));
    return tnx_where_scalarother(small, grad, tn_int(0));
}

tn_tensor *tni_grad_smooth_l1_second(tn_tensor *grad, tn_tensor *difference, int64_t reduction,
                                     double beta, bool negative)
{
    tn_tensor *bent = where_small(tnx_div_scalar(grad, tn_float(beta)), difference, beta);
    return signed_as(share(bent, reduction, bent), negative);
}

tn_tensor *tni_grad_huber_second(tn_tensor *grad, tn_tensor *difference, int64_t reduction,
                                 double delta, bool negative)
{
    tn_tensor *bent = where_small(grad, difference, delta);
    return signed_as(share(bent, reduction, bent), negative);
}

/* ---- binary cross entropy: -(t log x + (1 - t) log(1 - x)) w ---- */

static tn_tensor *weighted(tn_tensor *t, tn_tensor *weight)
{
    return weight ? tnx_mul(t, weight) : t;
}

/* log(1 - x) - log(x) */
tn_tensor *tni_grad_bce_target(tn_tensor *grad, tn_tensor *self, tn_tensor *weight,
                               int64_t reduction)
{
    tn_tensor *slope = tnx_sub(tnx_log1p(tnx_neg(self)), tnx_log(self), tn_int(1));
    return share(weighted(tnx_mul(grad, slope), weight), reduction, self);
}

/* x (1 - x), kept away from 0 as the backward operator keeps it. */
static tn_tensor *spread(tn_tensor *x)
{
    tn_tensor *product = tnx_mul(x, tnx_rsub_scalar(x, tn_int(1), tn_int(1)));
    return tnx_clamp_min(product, tn_float(1e-12));
}

/* The slope of (x - t) / (x (1 - x)) for x: (x^2 - 2 x t + t) / (x (1 - x))^2 */
tn_tensor *tni_grad_bce_second(tn_tensor *grad, tn_tensor *self, tn_tensor *target,
                               tn_tensor *weight, int64_t reduction)
{
    tn_tensor *top =
        tnx_add(tnx_sub(tnx_mul(self, self), tnx_mul(self, target), tn_int(2)), target, tn_int(1));
    tn_tensor *bottom = spread(self);
    tn_tensor *slope = tnx_div(top, tnx_mul(bottom, bottom));
    return share(weighted(tnx_mul(grad, slope), weight), reduction, self);
}

/* The slope of (x - t) / (x (1 - x)) for t. */
tn_tensor *tni_grad_bce_second_target(tn_tensor *grad, tn_tensor *self, tn_tensor *weight,
                                      int64_t reduction)
{
    tn_tensor *slope = tnx_neg(tnx_div(grad, spread(self)));
    return share(weighted(slope, weight), reduction, self);
}

/* sigmoid(x) (1 + (p - 1) t) - p t */
tn_tensor *tni_grad_bce_logits_self(tn_tensor *grad, tn_tensor *self, tn_tensor *target,
                                    tn_tensor *weight, tn_tensor *pos_weight, int64_t reduction)
{
    tn_tensor *s = tnx_sigmoid(self), *slope;
    if (pos_weight) {
        tn_tensor *positive = tnx_mul(pos_weight, target);
        tn_tensor *factor =
            tnx_sub(tnx_add_scalar(positive, tn_int(1), tn_int(1)), target, tn_int(1));
        slope = tnx_sub(tnx_mul(factor, s), positive, tn_int(1));
    } else {
        slope = tnx_sub(s, target, tn_int(1));
    }
    return share(weighted(tnx_mul(grad, slope), weight), reduction, self);
}

/* log(1 - s) - p log(s), s = sigmoid(x); -x without a weight of positives */
tn_tensor *tni_grad_bce_logits_target(tn_tensor *grad, tn_tensor *self, tn_tensor *weight,
                                      tn_tensor *pos_weight, int64_t reduction)
{
    tn_tensor *slope = tnx_neg(self);
    if (pos_weight)
        slope =
            tnx_sub(tnx_log_sigmoid(slope), tnx_mul(pos_weight, tnx_log_sigmoid(self)), tn_int(1));
    return share(weighted(tnx_mul(grad, slope), weight), reduction, self);
}

/* ---- softmax ---- */

static tn_tensor *row_sum(tn_tensor *t, int64_t dim)
{
    return tnx_sum_dim(t, (const int64_t[]){dim}, 1, true, TN_DTYPE_NONE);
}

/* The slope of y (g - sum(g y)) for y. */
tn_tensor *tni_grad_softmax_second(tn_tensor *grad, tn_tensor *grad_output, tn_tensor *output,
                                   int64_t dim)
{
    tn_tensor *centred =
        tnx_sub(grad_output, row_sum(tnx_mul(grad_output, output), dim), tn_int(1));
    tn_tensor *drawn = tnx_mul(grad_output, row_sum(tnx_mul(grad, output), dim));
    return tnx_sub(tnx_mul(grad, centred), drawn, tn_int(1));
}

/* g - exp(y) sum(g): its adjoint, and its slope for y. */
tn_tensor *tni_grad_log_softmax_tangent(tn_tensor *grad, tn_tensor *output, int64_t dim)
{
    return tnx_sub(grad, row_sum(tnx_mul(grad, tnx_exp(output)), dim), tn_int(1));
}

tn_tensor *tni_grad_log_softmax_second(tn_tensor *grad, tn_tensor *grad_output, tn_tensor *output,
                                       int64_t dim)
{
    return tnx_mul(tnx_mul(grad, tnx_exp(output)), tnx_neg(row_sum(grad_output, dim)));
}

/* ---- margins ---- */

/* The change of a loss whose gradient for an incoming 1 is @p slope. */
static tn_tensor *along(tn_tensor *slope, tn_tensor *tangent, int64_t reduction)
{
    const int64_t last = -1;
    tn_tensor *moved = tnx_mul(slope, tangent);
    return reduction == 0 && slope && slope->ndim == 2
               ? tnx_sum_dim(moved, &last, 1, false, TN_DTYPE_NONE)
               : tnx_sum(moved, TN_DTYPE_NONE);
}

/* Ones as the gradient of a loss of these rows. */
static tn_tensor *ones_for(tn_tensor *self, int64_t rows, int64_t reduction)
{
    return tnx_new_ones(self, &rows, reduction == 0 && self->ndim == 2 ? 1 : 0, NULL);
}

tn_tensor *tni_grad_multi_margin_tangent(tn_tensor *self_t, tn_tensor *self, tn_tensor *target,
                                         tn_scalar p, tn_scalar margin, tn_tensor *weight,
                                         int64_t reduction)
{
    tn_tensor *ones = ones_for(self, target->numel, reduction);
    tn_tensor *moved =
        along(tnx_multi_margin_loss_backward(ones, self, target, p, margin, weight, reduction),
              self_t, reduction);
    return reduction == 0 ? tnx_reshape(moved, target->sizes, target->ndim) : moved;
}

tn_tensor *tni_grad_multilabel_margin_tangent(tn_tensor *self_t, tn_tensor *self, tn_tensor *target,
                                              int64_t reduction, tn_tensor *is_target)
{
    tn_tensor *ones = ones_for(self, self->ndim == 2 ? self->sizes[0] : 1, reduction);
    return along(tnx_multilabel_margin_loss_backward(ones, self, target, reduction, is_target),
                 self_t, reduction);
}

/* Only squares bend: the gradient of class c changes with that of the target, where its margin is
 * not met. */
tn_tensor *tni_grad_multi_margin_second(tn_tensor *grad, tn_tensor *grad_output, tn_tensor *self,
                                        tn_tensor *target, tn_scalar p, tn_scalar margin,
                                        tn_tensor *weight, int64_t reduction)
{
    int64_t classes = self->ndim ? self->sizes[self->ndim - 1] : 1, rows = target->numel;
    const int64_t table[] = {rows, classes}, column[] = {rows, 1}, last = 1;
    if (!grad || tn_scalar_to_double(p) == 1)
        return grad ? tnx_zeros_like(self, NULL, TN_FORMAT_NONE) : NULL;
    tn_tensor *x = tnx_reshape(self, table, 2), *v = tnx_reshape(grad, table, 2);
    tn_tensor *t = tnx_reshape(target, column, 2);
    tn_tensor *gap = tnx_sub(x, tnx_gather(x, 1, t, false), tn_int(1));
    tn_tensor *missed = tnx_gt_scalar(tnx_add_scalar(gap, margin, tn_int(1)), tn_int(0));
    tn_tensor *others = tnx_scatter_value(missed, 1, t, tn_int(0));
    tn_tensor *each = tnx_reshape(grad_output, (const int64_t[]){-1, 1}, 2);
    double scale = 2 / (double)classes / (reduction == 1 ? (double)rows : 1);
    tn_tensor *size = tnx_mul_scalar(each, tn_float(scale));
    if (weight)
        size = tnx_mul(size, tnx_reshape(tnx_index_select(weight, 0, tnx_reshape(target, &rows, 1)),
                                         column, 2));
    tn_tensor *moved = tnx_mul(tnx_sub(v, tnx_gather(v, 1, t, false), tn_int(1)), others);
    moved = tnx_mul(moved, size);
    tn_tensor *down = tnx_neg(tnx_sum_dim(moved, &last, 1, true, TN_DTYPE_NONE));
    return tnx_reshape(tnx_scatter_add(moved, 1, t, down), self->sizes, self->ndim);
}
