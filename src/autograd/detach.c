/* SPDX-License-Identifier: MIT */
/* autograd/detach.c: detach_: taking a tensor itself out of its graph. */
#include "autograd/forward.h"
#include "autograd/meta.h"
#include "core/state.h"
#include "dispatch/call.h"
#include "gen/kernels.h"
#include "gen/redispatch.h"

/* Also where nothing is recorded: a view that was cut off from its base would still be written
 * through it. */
tn_status tni_kernel_detach_in_graph(tn_call *call, tn_tensor *self)
{
    TN_CHECK(!self->view_base, TN_INVALID,
             "Can't detach views in-place. Use detach() instead. If you are using "
             "DistributedDataParallel (DDP) for training, and gradient_as_bucket_view is set as "
             "True, gradients are views of DDP buckets, and hence detach_() cannot be called on "
             "these gradients. To fix this error, please refer to the Optimizer.zero_grad() "
             "function in torch/optim/optimizer.py as the solution.");
    uint64_t saved = tni_exclude(&tni_tls, TNI_BELOW_AUTOGRAD);
    tn_status status = tni_re_detach_(call, call->keys & TNI_KS_AFTER_AUTOGRAD, self);
    tni_tls.excluded_xor = saved;
    if (status == TN_OK) {
        tni_clear_history(self);
        tni_tangent_drop(self);
    }
    return status;
}
