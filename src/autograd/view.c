/* SPDX-License-Identifier: MIT */
/* autograd/view.c: tying views to what they are views of. */
#include "autograd/view.h"

tn_status tni_view_made(const tn_tensor *base, tn_tensor *view)
{
    TN_CHECK(base != view, TN_INTERNAL,
             "View operation returned a tensor that is the same as the input base tensor.");
    if (TNI_LIKELY(base->versions != NULL))
        tni_tensor_share_version(view, base);
    return TN_OK;
}
