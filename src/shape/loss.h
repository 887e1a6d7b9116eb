/* SPDX-License-Identifier: MIT */
/* shape/loss.h: how the losses of elements become the result of a loss. */
#ifndef TNI_SHAPE_LOSS_H
#define TNI_SHAPE_LOSS_H

#include "core/tensor.h"
#include "tenon/ops.h"

/* PyTorch's numbers of an argument `reduction`. */
enum { TNI_LOSS_EACH = 0, TNI_LOSS_MEAN = 1, TNI_LOSS_SUM = 2 };

TN_NODISCARD static inline tn_status tni_loss_check(int64_t reduction)
{
    TN_CHECK(reduction >= TNI_LOSS_EACH && reduction <= TNI_LOSS_SUM, TN_INVALID,
             "reduction is %lld, expected 0 (none), 1 (mean) or 2 (sum)", (long long)reduction);
    return TN_OK;
}

/* @p loss has the losses of the elements, and is empty when it became the result itself. */
TN_NODISCARD static inline tn_status tni_loss_reduce(tn_tensor **loss, int64_t reduction,
                                                     TN_OWNED tn_tensor **out)
{
    TN_TRY(tni_loss_check(reduction));
    if (reduction == TNI_LOSS_MEAN)
        return tn_mean(*loss, TN_DTYPE_NONE, out);
    if (reduction == TNI_LOSS_SUM)
        return tn_sum(*loss, TN_DTYPE_NONE, out);
    *out = TN_MOVE(*loss);
    return TN_OK;
}

#endif
