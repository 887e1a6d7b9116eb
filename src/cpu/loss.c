/* SPDX-License-Identifier: MIT */
/* cpu/loss.c: losses: a loop over the elements, then the mean or the sum. The kernels serve the CPU
 * and Meta. */
#include "cpu/run.h"
#include "gen/cpu.h"
#include "gen/kernels.h"
#include "shape/loss.h"
#include "shape/structured.h"
#include "tenon/ops.h"

/* @p layout: by what the losses are laid out, TNI_LAYOUT_… */
static tn_status by_element(const char *name, const char *kernel, tni_loop loop, int layout,
                            const tni_operand *in, int n, const double *p, tn_tensor **out)
{
    const tni_pointwise_attr attr = {name, TNI_PW_PROMOTE, layout, 0, name};
    tni_iter it;
    TN_TRY(tni_check_dtypes(in, n, TNI_PW_PROMOTE, TNI_PW_FLOATS, kernel, NULL));
    TN_TRY(tni_iter_begin(&it, &attr, in, n, NULL, TNI_ITER_NEW));
    tn_status status = tni_is_meta(it.out) ? TN_OK : tni_run(&it, loop, 0, p);
    return tni_iter_end(&it, status, out);
}

static tn_status difference(const char *name, const char *kernel, tni_loop loop, tn_tensor *self,
                            tn_tensor *target, int64_t reduction, double limit, tn_tensor **out)
{
    const tni_operand in[] = {{.tensor = self}, {.tensor = target}};
    const double p[TNI_LOOP_PARAMETERS] = {1.0, limit};
    TN_AUTO(tn_tensor) loss = NULL;
    TN_TRY(tni_loss_check(reduction));
    /* The reference makes the result of this one as empty_like(self). */
    int layout = loop == TNI_LOOP_HUBER ? TNI_LAYOUT_FIRST : TNI_LAYOUT_OPERANDS;
    TN_TRY(by_element(name, kernel, loop, layout, in, 2, p, &loss));
    return tni_loss_reduce(&loss, reduction, out);
}

tn_status tni_kernel_mse_loss(tn_call *call, tn_tensor *self, tn_tensor *target, int64_t reduction,
                              tn_tensor **out)
{
    (void)call;
    return difference("mse_loss", "mse_cpu", TNI_LOOP_MSE, self, target, reduction, 0, out);
}

tn_status tni_kernel_smooth_l1_loss(tn_call *call, tn_tensor *self, tn_tensor *target,
                                    int64_t reduction, double beta, tn_tensor **out)
{
    (void)call;
    TN_CHECK(beta >= 0, TN_INVALID, "smooth_l1_loss does not support negative values for beta.");
    return difference("smooth_l1_loss", "smooth_l1_cpu", TNI_LOOP_SMOOTH_L1, self, target,
                      reduction, beta, out);
}

tn_status tni_kernel_huber_loss(tn_call *call, tn_tensor *self, tn_tensor *target,
                                int64_t reduction, double delta, tn_tensor **out)
{
    (void)call;
    TN_AUTO(tn_tensor) wide = NULL;
    TN_AUTO(tn_tensor) loss = NULL;
    TN_CHECK(delta > 0, TN_INVALID, "huber_loss does not support non-positive values for delta.");
    TN_TRY(tni_loss_check(reduction));
    TN_TRY(difference("huber_loss", "huber_cpu", TNI_LOOP_HUBER, self, target, TNI_LOSS_EACH, delta,
                      &wide));
    /* The dtype of this loss is that of self, whatever the target has. */
    TN_TRY(tni_check_cast((tn_dtype)wide->dtype, (tn_dtype)self->dtype));
    TN_TRY(tn_to_dtype(wide, (tn_dtype)self->dtype, false, false, TN_FORMAT_NONE, &loss));
    return tni_loss_reduce(&loss, reduction, out);
}

/* ---- backward ---- */

static tn_status backward(tni_iter *it, tni_loop loop, int64_t reduction, double scale,
                          double limit)
{
    const double p[TNI_LOOP_PARAMETERS] = {
        reduction == TNI_LOSS_MEAN ? scale / (double)it->numel : scale, limit};
    return tni_run(it, loop, 0, p);
}

tn_status tni_cpu_mse_loss_backward(tni_iter *it, int64_t reduction)
{
    return backward(it, TNI_LOOP_MSE_B, reduction, 2.0, 0);
}

tn_status tni_cpu_smooth_l1_loss_backward(tni_iter *it, int64_t reduction, double beta)
{
    return backward(it, TNI_LOOP_SMOOTH_L1_B, reduction, 1.0, beta);
}

tn_status tni_cpu_huber_loss_backward(tni_iter *it, int64_t reduction, double delta)
{
    return backward(it, TNI_LOOP_HUBER_B, reduction, 1.0, delta);
}

/* ---- binary cross entropy ---- */

/* NaN is not between 0 and 1 either. */
static tn_status check_probabilities(tn_tensor *t, const char *name)
{
    TN_AUTO(tn_tensor) low = NULL;
    TN_AUTO(tn_tensor) high = NULL;
    tn_scalar least, most;
    if (tni_is_meta(t) || t->numel == 0)
        return TN_OK;
    TN_TRY(tn_amin(t, NULL, 0, false, &low));
    TN_TRY(tn_amax(t, NULL, 0, false, &high));
    TN_TRY(tn_item(low, &least));
    TN_TRY(tn_item(high, &most));
    TN_CHECK(least.v.f >= 0 && most.v.f <= 1, TN_INVALID,
             "all elements of %s should be between 0 and 1", name);
    return TN_OK;
}

tn_status tni_kernel_binary_cross_entropy(tn_call *call, tn_tensor *self, tn_tensor *target,
                                          tn_tensor *weight, int64_t reduction, tn_tensor **out)
{
    (void)call;
    const tni_operand in[] = {{.tensor = self}, {.tensor = target}};
    TN_AUTO(tn_tensor) loss = NULL;
    TN_TRY(tni_loss_check(reduction));
    TN_TRY(tni_check_same_dtype(in, 2));
    TN_TRY(by_element("binary_cross_entropy", "binary_cross_entropy", TNI_LOOP_BCE,
                      TNI_LAYOUT_FIRST, in, 2, NULL, &loss));
    TN_TRY(check_probabilities(self, "input"));
    TN_TRY(check_probabilities(target, "target"));
    if (weight)
        TN_TRY(tn_mul_(loss, weight));
    return tni_loss_reduce(&loss, reduction, out);
}

tn_status tni_kernel_binary_cross_entropy_backward(tn_call *call, tn_tensor *grad_output,
                                                   tn_tensor *self, tn_tensor *target,
                                                   tn_tensor *weight, int64_t reduction,
                                                   tn_tensor **out)
{
    (void)call;
    /* self comes first: its layout is that of the result. */
    const tni_operand in[] = {{.tensor = self}, {.tensor = target}, {.tensor = grad_output}};
    const tni_operand given[] = {in[2], in[0], in[1]};
    const double p[TNI_LOOP_PARAMETERS] = {reduction == TNI_LOSS_MEAN ? 1.0 / (double)self->numel
                                                                      : 1.0};
    TN_AUTO(tn_tensor) grad = NULL;
    TN_TRY(tni_loss_check(reduction));
    TN_TRY(tni_check_same_dtype(given, 3));
    TN_TRY(by_element("binary_cross_entropy_backward", "binary_cross_entropy_backward",
                      TNI_LOOP_BCE_B, TNI_LAYOUT_FIRST, in, 3, p, &grad));
    if (weight)
        TN_TRY(tn_mul_(grad, weight));
    *out = TN_MOVE(grad);
    return TN_OK;
}
