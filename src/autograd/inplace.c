/* SPDX-License-Identifier: MIT */
/* autograd/inplace.c: which tensors may be written while gradients are recorded, and what becomes
 * of their history. */
#include "autograd/inplace.h"

#include "autograd/copy_slices.h"
#include "autograd/view.h"

tn_status tni_check_inplace(tn_tensor *t)
{
    bool requires_grad = tni_requires_grad(t);
    if (t->view_base) {
        TN_TRY(tni_view_may_be_written(t, false));
        TN_CHECK(!requires_grad || (t->view_base->flags & TNI_HAS_GRAD_FN), TN_INVALID,
                 "a view of a leaf Variable that requires grad is being used in an in-place "
                 "operation.");
        return TN_OK;
    }
    TN_CHECK(!requires_grad || (t->flags & TNI_HAS_GRAD_FN), TN_INVALID,
             "a leaf Variable that requires grad is being used in an in-place operation.");
    return TN_OK;
}

tn_status tni_rebase_view(tn_tensor *t, tni_node *node, uint32_t at)
{
    TN_CHECK(node->n_inputs == 1, TN_INTERNAL,
             "Functions which modify views in-place must return a single Variable");
    TN_AUTO(tni_node) copy = NULL;
    TN_TRY(tni_copy_slices_new(t, node, at, &copy));
    TN_TRY(tni_set_grad_fn(t->view_base, copy, 0));
    return tni_view_refresh(t);
}

tn_status tni_rebase_history(tn_tensor *t, tni_node *node)
{
    return TNI_LIKELY(!t->view_base) ? tni_set_grad_fn(t, node, 0) : tni_rebase_view(t, node, 0);
}

void tni_history_lost(tn_tensor *t, tni_node *node)
{
    tn_tensor *root = t->view_base ? t->view_base : t;
    tni_node *old = root->grad_fn;
    if (old == node || (old && tni_copy_slices_fn(old) == node))
        return;
    root->grad_fn = tni_node_ref(node);
    root->output = 0;
    root->flags |= TNI_REQUIRES_GRAD | TNI_HAS_GRAD_FN;
    tni_node_unref(old);
}
