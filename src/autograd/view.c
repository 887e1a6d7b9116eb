/* SPDX-License-Identifier: MIT */
/* autograd/view.c: tying fresh views to what they are views of. What becomes of them when that is
 * written: autograd/view_history.c. */
#include "autograd/view.h"

#include "autograd/forward.h"
#include "core/state.h"

static TNI_COLD tn_status same_as_base(void)
{
    TN_FAIL(TN_INTERNAL,
            "View operation returned a tensor that is the same as the input base tensor.");
}

/* How a view of a view that was made as @p parent counts, when it is itself made as @p own. */
static inline uint32_t creation(uint32_t parent, uint32_t own)
{
    if (tni_tls.no_grad)
        own = tni_tls.inference ? TNI_VIEW_INFERENCE : TNI_VIEW_NO_GRAD;
    else if (TNI_UNLIKELY(tni_tls.inference)) /* grad mode was put on inside */
        own = TNI_VIEW_INFERENCE;
    return own == 0 || TNI_UNLIKELY(parent == TNI_VIEW_INFERENCE) ? parent : own;
}

static inline tn_status record(const tn_tensor *base, tn_tensor *view, uint32_t own)
{
    if (TNI_UNLIKELY(base == view))
        return same_as_base();
    if (TNI_UNLIKELY(base->versions == NULL))
        return TN_OK;
    tni_tensor_share_version(view, base);
    tn_tensor *root = base->view_base ? base->view_base : (tn_tensor *)(uintptr_t)base;
    tni_ref(&root->object);
    view->view_base = root;
    view->flags |= base->flags & TNI_NO_TANGENT;
    view->view_version = atomic_load_explicit(view->versions, memory_order_relaxed);
    view->flags |= creation(base->flags & TNI_VIEW_CREATION, own);
    if (TNI_UNLIKELY(base->flags & TNI_HAS_TANGENT) && tni_tls.no_forward_grad == TNI_FORWARD_OFF)
        return tni_tangent_of_view(base, view);
    return TN_OK;
}

tn_status tni_view_made(const tn_tensor *base, tn_tensor *view)
{
    return record(base, view, 0);
}

tn_status tni_multi_view_made(const tn_tensor *base, tn_tensor *view)
{
    return record(base, view, TNI_VIEW_MULTI_OUTPUT);
}

tn_status tni_alias_made(const tn_tensor *base, tn_tensor *view)
{
    if (TNI_UNLIKELY(base == view))
        return same_as_base();
    if (TNI_LIKELY(base->versions != NULL))
        tni_tensor_share_version(view, base);
    return TN_OK;
}
