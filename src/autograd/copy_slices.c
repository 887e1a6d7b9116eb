/* SPDX-License-Identifier: MIT */
/* autograd/copy_slices.c: the history of a tensor that was written through a view of it. */
#include "autograd/copy_slices.h"

#include "autograd/meta.h"
#include "autograd/saved.h"
#include "core/scope.h"
#include "tenon/ops.h"

typedef struct slices {
    tni_view_place place;
    tni_node *fn; /* strong; what was done to the view; NULL once released */
    uint32_t at;  /* its edge that is the view's */
} slices;

static tni_node *take_fn(tni_node *node)
{
    slices *s = node->data;
    tni_spin_lock(&node->lock);
    tni_node *fn = tni_node_ref(s->fn);
    tni_spin_unlock(&node->lock);
    return fn;
}

static void slices_release(tni_node *node)
{
    slices *s = node->data;
    tni_spin_lock(&node->lock);
    tni_node *fn = TN_MOVE(s->fn);
    tni_spin_unlock(&node->lock);
    tni_node_unref(fn);
}

/* How many of the parts along a dimension of tni_repeating_dim are different ones. */
static int64_t parts_of(const tn_tensor *slice, int dim)
{
    return slice->strides[dim] ? slice->sizes[dim] : 1;
}

/* Move the gradient of a part into @p inner, which is zero. Of a view that reaches an element twice
 * the first place that does gets the gradient, so that it counts once. */
static void take_slice(tn_tensor *inner, tn_tensor *slice)
{
    int dim = slice && inner ? tni_repeating_dim(slice) : -1;
    if (dim < 0) {
        (void)tnx_copy_(inner, slice, false);
        (void)tnx_zero_(slice);
        return;
    }
    for (int64_t i = 0; i < parts_of(slice, dim); i++)
        take_slice(tnx_select(inner, dim, i), tnx_select(slice, dim, i));
}

/* Write @p values into a part of the gradient. What is written of a view that reaches an element
 * twice, a fill or a copy of itself, leaves equal values there: one after the other will do. */
static void write_slice(tn_tensor *slice, tn_tensor *values)
{
    int dim = slice && values ? tni_repeating_dim(slice) : -1;
    if (dim < 0) {
        (void)tnx_copy_(slice, values, false);
        return;
    }
    for (int64_t i = 0; i < parts_of(slice, dim); i++)
        write_slice(tnx_select(slice, dim, i), tnx_select(values, dim, i));
}

/* The turn of the node inside: it gets the gradient of the view.
 * Its edge to the old view stays as it is: a saved result of it may be tied to it again, and then
 * it takes part in a pass of its own right. That edge is live exactly when ours, to the root, is.
 */
static tn_status run_inside(tni_backward *b, tni_node *fn, tn_tensor *slice, tn_tensor **results)
{
    tn_tensor *inner;
    if (slice && tni_repeating_dim(slice) >= 0) {
        inner = tnx_zeros_like(slice, NULL, TN_FORMAT_CONTIGUOUS);
        take_slice(inner, slice);
    } else {
        inner = tnx_clone(slice, TN_FORMAT_CONTIGUOUS);
    }
    TN_TRY(tni_scope_settle());
    tni_backward turn = {fn, &inner, results, b->wanted};
    return fn->cls->apply(&turn);
}

static tn_status slices_apply(tni_backward *b)
{
    const slices *s = b->node->data;
    const tni_view_place *p = &s->place;
    TN_AUTO(tni_node) fn = take_fn(b->node);
    if (!fn)
        return tni_freed_error();
    tn_tensor *grad = p->root_as_real ? tnx_view_as_real(b->grads[0]) : b->grads[0];
    tn_tensor *all = tnx_new_empty_strided(grad, tni_root_sizes(p), p->root_ndim,
                                           tni_root_strides(p), p->root_ndim, NULL);
    all = tnx_copy_(all, grad, false);
    tn_tensor *slice = tnx_as_strided(all, tni_view_sizes(p), p->view_ndim, tni_view_strides(p),
                                      p->view_ndim, tn_some_int(p->view_offset - p->root_offset));
    if (p->view_as_real)
        slice = tnx_view_as_complex(slice);
    TN_TRY(run_inside(b, fn, slice, b->results));
    if (!tni_backward_needs(b, s->at)) {
        b->results[s->at] = NULL;
        return tni_scope_settle();
    }
    /* Where the old value of the view had no part in the new one its gradient is zero; that of the
     * rest of the root is not. */
    if (b->results[s->at])
        write_slice(slice, b->results[s->at]);
    else
        (void)tnx_zero_(slice);
    b->results[s->at] = p->root_as_real ? tnx_view_as_complex(all) : all;
    return tni_scope_settle();
}

static const tni_node_class slices_class = {.name = "CopySlices",
                                            .apply = slices_apply,
                                            .release = slices_release,
                                            .data_nbytes = sizeof(slices),
                                            .n_ints = 1,
                                            .flags = TNI_CLASS_REAL_PARTS,
                                            .n_edges = 1};

tni_node *tni_copy_slices_fn(const tni_node *node)
{
    return node->cls == &slices_class ? ((const slices *)node->data)->fn : NULL;
}

tn_status tni_copy_slices_new(const tn_tensor *view, tni_node *fn, uint32_t at, tni_node **out)
{
    TN_AUTO(tni_node) node = NULL;
    tn_tensor *root = view->view_base;
    uint32_t n_edges = fn->n_edges ? fn->n_edges : 1;
    TN_TRY(tni_node_new(&slices_class, n_edges, 1, &node));
    slices *s = node->data;
    TN_TRY(tni_view_place_of(view, &s->place));
    TN_TRY(tni_node_set_input(node, 0, root));
    tni_edge edge;
    TN_TRY(tni_gradient_edge(root, &edge));
    tni_node_set_edge(node, at, edge);
    tni_node_unref(edge.node);
    for (uint32_t i = 0; i < fn->n_edges; i++)
        if (i != at)
            tni_node_set_edge(node, i, fn->edges[i]);
    s->fn = tni_node_ref(fn);
    s->at = at;
    *out = TN_MOVE(node);
    return TN_OK;
}
