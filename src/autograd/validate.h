/* SPDX-License-Identifier: MIT */
/* autograd/validate.h: gradients are made to look like what they are the gradients of, and added
 * up. */
#ifndef TNI_AUTOGRAD_VALIDATE_H
#define TNI_AUTOGRAD_VALIDATE_H

#include "autograd/node.h"

/* Does @p grad look like @p in already? */
static inline bool tni_gradient_fits(const tn_tensor *grad, const tni_input *in)
{
    if (grad->dtype != in->dtype || grad->ndim != in->ndim ||
        grad->device.type != in->device.type || grad->device.index != in->device.index)
        return false;
    const int64_t *sizes = tni_input_sizes(in);
    for (int d = 0; d < in->ndim; d++)
        if (grad->sizes[d] != sizes[d])
            return false;
    return true;
}
/* Make it so: sum over what was broadcast, cast, move a number between devices. Result @p i of
 * @p node; NULL node: gradient i that the caller gave.
 * @retval TN_INVALID  it cannot be: the reference's texts */
TN_NODISCARD tn_status tni_gradient_fit(const tni_node *node, uint32_t i, const tni_input *in,
                                        tn_tensor *grad, TN_OWNED tn_tensor **out);

/* Add @p grad to what is in @p slot, in place when nobody can see it. */
TN_NODISCARD tn_status tni_gradient_add(tn_tensor **slot, TN_STOLEN tn_tensor *grad);

#endif
