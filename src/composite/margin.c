/* SPDX-License-Identifier: MIT */
/* composite/margin.c: losses with margins, and of the Poisson distribution. */
#include "composite/leave.h"
#include "core/tensor.h"
#include "gen/composites.h"
#include "shape/loss.h"
#include "shape/structured.h"
#include "tenon/ops.h"

static tn_tensor *reduced(tn_tensor *loss, int64_t reduction)
{
    return reduction == TNI_LOSS_MEAN  ? tnx_mean(loss, TN_DTYPE_NONE)
           : reduction == TNI_LOSS_SUM ? tnx_sum(loss, TN_DTYPE_NONE)
                                       : loss;
}

/* max(0, x + margin) */
static tn_tensor *above_zero(tn_tensor *x, double margin)
{
    return tnx_clamp_min(tnx_add_scalar(x, tn_float(margin), tn_int(1)), tn_int(0));
}

tn_status tni_composite_margin_ranking_loss(tn_tensor *input1, tn_tensor *input2, tn_tensor *target,
                                            double margin, int64_t reduction, tn_tensor **out)
{
    tn_scope *scope;
    TN_TRY(tni_loss_check(reduction));
    TN_TRY(tn_scope_enter(&scope));
    tn_tensor *signed_gap = tnx_mul(tnx_neg(target), tnx_sub(input1, input2, tn_int(1)));
    return tni_leave(scope, reduced(above_zero(signed_gap, margin), reduction), out);
}

tn_status tni_composite_hinge_embedding_loss(tn_tensor *self, tn_tensor *target, double margin,
                                             int64_t reduction, tn_tensor **out)
{
    tn_scope *scope;
    TN_TRY(tni_loss_check(reduction));
    TN_CHECK(self->dtype != TN_DTYPE_BOOL, TN_INVALID,
             "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` "
             "or `logical_xor()` operator instead.");
    TN_TRY(tn_scope_enter(&scope));
    tn_tensor *zeros = tnx_zeros_like(self, NULL, TN_FORMAT_NONE);
    tn_tensor *far =
        tnx_where(tnx_ne_scalar(target, tn_int(1)), above_zero(tnx_neg(self), margin), zeros);
    tn_tensor *near = tnx_where(tnx_ne_scalar(target, tn_int(-1)), self, zeros);
    return tni_leave(scope, reduced(tnx_add(far, near, tn_int(1)), reduction), out);
}

tn_status tni_composite_triplet_margin_loss(tn_tensor *anchor, tn_tensor *positive,
                                            tn_tensor *negative, double margin, double p,
                                            double eps, bool swap, int64_t reduction,
                                            tn_tensor **out)
{
    tn_scope *scope;
    TN_CHECK(anchor->ndim == positive->ndim && anchor->ndim == negative->ndim, TN_INVALID,
             "The anchor, positive, and negative tensors are expected to have the same number of "
             "dimensions, but got: anchor %dD, positive %dD, and negative %dD inputs",
             anchor->ndim, positive->ndim, negative->ndim);
    TN_TRY(tni_loss_check(reduction));
    TN_TRY(tn_scope_enter(&scope));
    tn_tensor *near = tnx_pairwise_distance(anchor, positive, p, eps, false);
    tn_tensor *far = tnx_pairwise_distance(anchor, negative, p, eps, false);
    if (swap)
        far = tnx_minimum(far, tnx_pairwise_distance(positive, negative, p, eps, false));
    tn_tensor *loss = above_zero(tnx_sub(near, far, tn_int(1)), margin);
    return tni_leave(scope, reduced(loss, reduction), out);
}

/* target * log(target) - target + log(2 pi target) / 2 above 1: Stirling's formula. */
static tn_tensor *stirling(tn_tensor *target)
{
    tn_tensor *main_part = tnx_sub(tnx_mul(target, tnx_log(target)), target, tn_int(1));
    tn_tensor *turns = tnx_log(tnx_mul_scalar(target, tn_float(6.28318530717958647693)));
    tn_tensor *sum = tnx_add(main_part, turns, tn_float(0.5));
    return tnx_masked_fill(sum, tnx_le_scalar(target, tn_int(1)), tn_int(0));
}

tn_status tni_composite_poisson_nll_loss(tn_tensor *input, tn_tensor *target, bool log_input,
                                         bool full, double eps, int64_t reduction, tn_tensor **out)
{
    tn_scope *scope;
    TN_TRY(tni_loss_check(reduction));
    TN_TRY(tn_scope_enter(&scope));
    tn_tensor *logs = input, *rate = input;
    if (log_input)
        rate = tnx_exp(input);
    else
        logs = tnx_log(tnx_add_scalar(input, tn_float(eps), tn_int(1)));
    tn_tensor *loss = tnx_sub(rate, tnx_mul(target, logs), tn_int(1));
    if (full)
        loss = tnx_add(loss, stirling(target), tn_int(1));
    return tni_leave(scope, reduced(loss, reduction), out);
}

/* ---- several targets, and signs ---- */

tn_status tni_composite_multilabel_margin_loss(tn_tensor *self, tn_tensor *target,
                                               int64_t reduction, tn_tensor **out)
{
    TN_AUTO(tn_tensor) loss = NULL;
    TN_AUTO(tn_tensor) is_target = NULL;
    TN_TRY(tn_multilabel_margin_loss_forward(self, target, reduction, &loss, &is_target));
    *out = TN_MOVE(loss);
    return TN_OK;
}

tn_status tni_composite_soft_margin_loss(tn_tensor *self, tn_tensor *target, int64_t reduction,
                                         tn_tensor **out)
{
    tn_scope *scope;
    TN_TRY(tni_loss_check(reduction));
    TN_CHECK(!tn_grad_enabled() || !tn_tensor_requires_grad(target), TN_INVALID,
             "The function 'soft_margin_loss' is not differentiable with respect to argument "
             "'target'. This input cannot have requires_grad True.");
    tn_dtype dtype = tn_promote_types((tn_dtype)self->dtype, (tn_dtype)target->dtype);
    TN_TRY(tni_check_cast(tn_dtype_is_integral(dtype, true) ? TN_DTYPE_F32 : dtype,
                          (tn_dtype)self->dtype));
    TN_TRY(tn_scope_enter(&scope));
    /* Beyond 40 the 1 is less than half a unit in the last place of a float64. */
    tn_tensor *below = tnx_neg(tnx_mul(self, target));
    tn_tensor *loss = tn_dtype_is_complex(dtype) ? tnx_log1p(tnx_exp(below))
                                                 : tnx_softplus(below, tn_int(1), tn_int(40));
    if (!tn_dtype_is_integral((tn_dtype)self->dtype, true))
        loss = tnx_to_dtype(loss, (tn_dtype)self->dtype, false, false, TN_FORMAT_NONE);
    return tni_leave(scope, reduced(loss, reduction), out);
}

tn_status tni_composite_soft_margin_loss_backward(tn_tensor *grad_output, tn_tensor *self,
                                                  tn_tensor *target, int64_t reduction,
                                                  tn_tensor **out)
{
    tn_scope *scope;
    TN_TRY(tni_loss_check(reduction));
    TN_TRY(tn_scope_enter(&scope));
    tn_tensor *down = tnx_neg(target);
    tn_tensor *slope = tnx_mul(down, tnx_sigmoid(tnx_mul(down, self)));
    if (reduction == TNI_LOSS_MEAN)
        slope = tnx_div_scalar(slope, tn_int(self->numel));
    return tni_leave(scope, tnx_mul(slope, grad_output), out);
}
