/* SPDX-License-Identifier: MIT */
/* composite/loss.c: losses in terms of other operators. */
#include "core/tensor.h"
#include "gen/composites.h"
#include "gen/kernels.h"
#include "shape/loss.h"
#include "tenon/ops.h"

tn_status tni_composite_l1_loss(tn_tensor *self, tn_tensor *target, int64_t reduction,
                                tn_tensor **out)
{
    TN_AUTO(tn_tensor) difference = NULL;
    TN_AUTO(tn_tensor) loss = NULL;
    TN_TRY(tn_sub(self, target, tn_int(1), &difference));
    TN_TRY(tn_abs(difference, &loss));
    return tni_loss_reduce(&loss, reduction, out);
}

/* (1 - target) * self - log_sigmoid(self) * (1 + (pos_weight - 1) * target) */
tn_status tni_kernel_binary_cross_entropy_with_logits(tn_call *call, tn_tensor *self,
                                                      tn_tensor *target, tn_tensor *weight,
                                                      tn_tensor *pos_weight, int64_t reduction,
                                                      tn_tensor **out)
{
    (void)call;
    TN_AUTO(tn_tensor) log_sigmoid = NULL;
    TN_AUTO(tn_tensor) rest = NULL;
    TN_AUTO(tn_tensor) loss = NULL;
    TN_TRY(tn_log_sigmoid(self, &log_sigmoid));
    if (pos_weight) {
        TN_AUTO(tn_tensor) more = NULL;
        TN_AUTO(tn_tensor) factor = NULL;
        TN_TRY(tn_sub_scalar(pos_weight, tn_int(1), tn_int(1), &more));
        TN_TRY(tn_mul(more, target, &factor));
        TN_TRY(tn_add_scalar_(factor, tn_int(1), tn_int(1)));
        TN_TRY(tn_mul_(log_sigmoid, factor));
    }
    TN_CHECK(
        target->dtype != TN_DTYPE_BOOL, TN_INVALID,
        "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or "
        "`logical_xor()` operator instead.");
    TN_TRY(tn_rsub_scalar(target, tn_int(1), tn_int(1), &rest));
    TN_TRY(tn_mul_(rest, self));
    TN_TRY(tn_sub_(rest, log_sigmoid, tn_int(1)));
    if (weight)
        TN_TRY(tn_mul_(rest, weight));
    loss = TN_MOVE(rest);
    return tni_loss_reduce(&loss, reduction, out);
}

tn_status tni_composite_kl_div(tn_tensor *self, tn_tensor *target, int64_t reduction,
                               bool log_target, tn_tensor **out)
{
    tn_dtype a = (tn_dtype)self->dtype, b = (tn_dtype)target->dtype;
    TN_CHECK(!tn_dtype_is_complex(a) && !tn_dtype_is_complex(b), TN_INVALID,
             "kl_div: Complex inputs not supported.");
    TN_CHECK(!tn_dtype_is_integral(a, true) && !tn_dtype_is_integral(b, true), TN_INVALID,
             "kl_div: Integral inputs not supported.");
    TN_AUTO(tn_tensor) first = NULL;
    TN_AUTO(tn_tensor) second = NULL;
    TN_AUTO(tn_tensor) loss = NULL;
    if (log_target) {
        TN_TRY(tn_sub(target, self, tn_int(1), &first));
        TN_TRY(tn_exp(target, &second));
        TN_TRY(tn_mul(second, first, &loss));
    } else {
        TN_TRY(tn_xlogy(target, target, &first));
        TN_TRY(tn_mul(target, self, &second));
        TN_TRY(tn_sub(first, second, tn_int(1), &loss));
    }
    return tni_loss_reduce(&loss, reduction, out);
}
