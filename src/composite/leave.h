/* SPDX-License-Identifier: MIT */
/* composite/leave.h: how a composite ends that was written with tnx_ calls in a scope of its own.
 */
#ifndef TNI_COMPOSITE_LEAVE_H
#define TNI_COMPOSITE_LEAVE_H

#include "tenon/base.h"
#include "tenon/tensor.h"

/* Leave @p scope and hand @p result over, or say what failed in it first; then @p out is untouched.
 */
TN_NODISCARD static inline tn_status tni_leave(tn_scope *scope, tn_tensor *result, tn_tensor **out)
{
    tn_tensor *kept = tn_scope_keep(result);
    tn_status status = tn_scope_leave(scope);
    if (status == TN_OK)
        *out = kept;
    else
        tn_tensor_unref(kept);
    return status;
}

/* The same of two results, of which either may be none. */
TN_NODISCARD static inline tn_status tni_leave_two(tn_scope *scope, tn_tensor *first,
                                                   tn_tensor *second, tn_tensor **out0,
                                                   tn_tensor **out1)
{
    tn_tensor *kept = tn_scope_keep(first);
    tn_tensor *other = tn_scope_keep(second);
    tn_status status = tn_scope_leave(scope);
    if (status == TN_OK) {
        *out0 = kept;
        *out1 = other;
    } else {
        tn_tensor_unref(kept);
        tn_tensor_unref(other);
    }
    return status;
}

#endif
