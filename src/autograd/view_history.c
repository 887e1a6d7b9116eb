/* SPDX-License-Identifier: MIT */
/* autograd/view_history.c: what becomes of the history of a view when its base is written. */
#include <stdio.h>
#include <string.h>
#include "autograd/extra.h"
#include "autograd/formula_view.h"
#include "autograd/view.h"
#include "core/scope.h"
#include "gen/gradients.h"
#include "tenon/ops.h"

/* ---- how it was made, in words ---- */

static const char *const tails[] = {
    [TNI_VIEW_MULTI_OUTPUT >> 8] =
        " This view is the output of a function that returns multiple views. Such functions do not "
        "allow the output views to be modified inplace. You should replace the inplace operation "
        "by an out-of-place one.",
    [TNI_VIEW_NO_GRAD >> 8] =
        " Given that this use case is ambiguous and error-prone, it is forbidden. You can clarify "
        "your code by moving both the view and the inplace either both inside the no_grad block "
        "(if you don't want the inplace to be tracked) or both outside (if you want the inplace to "
        "be tracked).",
    [TNI_VIEW_INFERENCE >> 8] =
        " Given that this use case is ambiguous and error-prone, it is forbidden. You can clarify "
        "your code by moving both the view and the inplace either both inside the inference_mode "
        "block (if you don't want the inplace to be tracked) or both outside (if you want the "
        "inplace to be tracked).",
    [TNI_VIEW_CUSTOM >> 8] =
        " This view was created inside a custom Function (or because an input was returned as-is) "
        "and the autograd logic to handle view+inplace would override the custom backward "
        "associated with the custom Function, leading to incorrect gradients. This behavior is "
        "forbidden. You can fix this by cloning the output of the custom Function.",
};

static TNI_COLD tn_status must_not_be_written(const tn_tensor *view, bool indirect)
{
    const tni_node *fn = view->grad_fn;
    uint32_t made = view->flags & TNI_VIEW_CREATION;
    const char *what = indirect ? "its base or another view of its base has been" : "is being";
    char head[256] = "A view was created in";
    if (fn && made != TNI_VIEW_INFERENCE && made != TNI_VIEW_NO_GRAD)
        TN_FAIL(TN_INVALID, "Output %u of %s is a view and %s modified inplace.%s", view->output,
                fn->cls->name, what, tails[made >> 8]);
    if (fn)
        snprintf(head, sizeof head, "Output %u of %s is a view of a view which was created in",
                 view->output, fn->cls->name);
    TN_CHECK(made != TNI_VIEW_INFERENCE, TN_INVALID,
             "%s inference mode and %s modified inplace in normal mode.%s", head, what,
             tails[made >> 8]);
    TN_FAIL(TN_INVALID, "%s no_grad mode and %s modified inplace with grad mode enabled.%s", head,
            what, tails[made >> 8]);
}

tn_status tni_view_may_be_written(const tn_tensor *view, bool indirect)
{
    return view->flags & TNI_VIEW_CREATION ? must_not_be_written(view, indirect) : TN_OK;
}

/* ---- where it lies ---- */

/* Sizes, then strides; of @p pairs, a complex tensor's, those of view_as_real. */
static void note_layout(const tn_tensor *t, bool pairs, int64_t *to)
{
    int ndim = t->ndim + pairs;
    for (int d = 0; d < t->ndim; d++) {
        to[d] = t->sizes[d];
        to[ndim + d] = pairs ? 2 * t->strides[d] : t->strides[d];
    }
    if (pairs) {
        to[ndim - 1] = 2;
        to[2 * ndim - 1] = 1;
    }
}

tn_status tni_view_place_of(const tn_tensor *view, tni_view_place *out)
{
    const tn_tensor *root = view->view_base;
    TN_CHECK(root->storage == view->storage, TN_INVALID,
             "the base of a view was given other elements since (set_data): the view's history "
             "cannot be rebuilt");
    const bool mixed = root->dtype != view->dtype;
    const bool root_pairs = mixed && tn_dtype_is_complex((tn_dtype)root->dtype);
    const bool view_pairs = mixed && tn_dtype_is_complex((tn_dtype)view->dtype);
    int root_ndim = root->ndim + root_pairs, view_ndim = view->ndim + view_pairs;
    int64_t *dims = tni_alloc(2 * (size_t)(root_ndim + view_ndim) * sizeof *dims);
    TN_CHECK(dims, TN_NOMEM, "cannot note how a view of %d dimensions lies in its base",
             view->ndim);
    *out = (tni_view_place){.dims = {dims, 2 * (root_ndim + view_ndim)},
                            .root_offset = root_pairs ? 2 * root->offset : root->offset,
                            .view_offset = view_pairs ? 2 * view->offset : view->offset,
                            .root_ndim = (uint8_t)root_ndim,
                            .view_ndim = (uint8_t)view_ndim,
                            .root_as_real = root_pairs,
                            .view_as_real = view_pairs};
    note_layout(root, root_pairs, dims);
    note_layout(view, view_pairs, dims + 2 * root_ndim);
    return TN_OK;
}

/* ---- its history, after its base was written ---- */

static tn_status place_backward(tni_backward *b)
{
    const tni_view_place *p = b->node->data;
    tn_tensor *grad = p->view_as_real ? tnx_view_as_real(b->grads[0]) : b->grads[0];
    grad = tni_grad_as_strided_backward(grad, tni_root_sizes(p), p->root_ndim, tni_root_strides(p),
                                        p->root_ndim, p->root_offset, tni_view_sizes(p),
                                        p->view_ndim, tni_view_strides(p), p->view_ndim,
                                        tn_some_int(p->view_offset));
    b->results[0] = p->root_as_real ? tni_grad_as_complex(grad) : grad;
    return tni_scope_settle();
}

/* The gradient of a view, brought to where it lies in the root. */
static const tni_node_class place_class = {.name = "AsStridedBackward0",
                                           .apply = place_backward,
                                           .data_nbytes = sizeof(tni_view_place),
                                           .n_ints = 1,
                                           .flags = TNI_CLASS_REAL_PARTS,
                                           .n_edges = 1};

static tn_status rebuild(const tn_tensor *t, tni_node **out)
{
    TN_AUTO(tni_node) node = NULL;
    TN_TRY(tni_node_new(&place_class, 1, 1, &node));
    TN_TRY(tni_view_place_of(t, node->data));
    TN_TRY(tni_node_set_input(node, 0, t));
    tni_edge edge;
    TN_TRY(tni_gradient_edge(t->view_base, &edge));
    tni_node_set_edge(node, 0, edge);
    tni_node_unref(edge.node);
    *out = TN_MOVE(node);
    return TN_OK;
}

/* Several threads may find out at a time that a view must be rebuilt: the first to have a node gets
 * its own in. */
static TNI_COLD tn_status refresh(tn_tensor *t)
{
    TN_TRY(tni_view_may_be_written(t, true));
    TN_AUTO(tni_node) node = NULL;
    tni_grad_meta *meta;
    TN_TRY(rebuild(t, &node));
    TN_TRY(tni_meta_get(t, &meta));
    TN_TRY(tni_hooks_follow(t, meta, node, 0));
    bool first = false;
    tni_spin_lock(&meta->lock);
    if (!tni_view_was_current(t)) {
        tni_node *old = t->grad_fn;
        t->grad_fn = TN_MOVE(node);
        t->output = 0;
        const uint32_t has = TNI_REQUIRES_GRAD | TNI_HAS_GRAD_FN;
        if ((t->flags & has) != has) /* not written for nothing: others may be reading them */
            t->flags |= has;
        tni_view_is_current(t);
        node = old;
        first = true;
    }
    tni_spin_unlock(&meta->lock);
    if (first)
        tni_hooks_leave(t, meta, node);
    return TN_OK;
}

tn_status tni_view_refresh(tn_tensor *t)
{
    if (!(t->flags & TNI_HAS_GRAD_FN) && !tni_requires_grad(t->view_base))
        return TN_OK;
    return TNI_LIKELY(tni_view_was_current(t)) ? TN_OK : refresh(t);
}
