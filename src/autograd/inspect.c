/* SPDX-License-Identifier: MIT */
/* autograd/inspect.c: what the public API tells about tensors in the graph, and about nodes. */
#include "tenon/autograd.h"
#include "autograd/accumulate.h"
#include "autograd/meta.h"
#include "autograd/saved.h"
#include "core/device.h"

#include <string.h>

/* ---- tensors ---- */

tn_tensor *tn_tensor_grad(const tn_tensor *t)
{
    tni_grad_meta *meta = t ? tni_meta(t) : NULL;
    if (!meta)
        return NULL;
    tni_spin_lock(&meta->lock);
    tn_tensor *grad = meta->grad;
    tni_spin_unlock(&meta->lock);
    return grad;
}

tn_tensor *tn_tensor_grad_ref(const tn_tensor *t)
{
    tni_grad_meta *meta = t ? tni_meta(t) : NULL;
    if (!meta)
        return NULL;
    tni_spin_lock(&meta->lock);
    tn_tensor *grad = tn_tensor_ref(meta->grad);
    tni_spin_unlock(&meta->lock);
    return grad;
}

static tn_status check_grad(const tn_tensor *t, const tn_tensor *grad)
{
    TN_CHECK(t != grad, TN_INVALID, "can't assign Variable as its own grad");
    TN_CHECK(
        t->dtype == grad->dtype, TN_INVALID,
        "attempting to assign a gradient with dtype '%s' to a tensor with grad_dtype '%s'. The "
        "gradient must match the tensor's grad_dtype (defaults to the tensor's dtype). You can "
        "set the tensor's grad_dtype attribute with a specific dtype, or None to allow any "
        "dtype. Set grad_dtype with caution. Diverging the dtypes of a tensor and its gradient "
        "may break downstream systems that assume they match.",
        tni_dtype_cpp((tn_dtype)grad->dtype), tni_dtype_text((tn_dtype)t->dtype));
    TN_CHECK(t->device.type == grad->device.type, TN_INVALID,
             "attempting to assign a gradient with device type '%s' to a tensor with device type "
             "'%s'. Please ensure that the gradient and the tensor are on the same device",
             tni_device_type_name(grad->device.type), tni_device_type_name(t->device.type));
    char got[TNI_SIZES_TEXT], wanted[TNI_SIZES_TEXT];
    TN_CHECK(t->ndim == grad->ndim &&
                 memcmp(t->sizes, grad->sizes, (size_t)t->ndim * sizeof *t->sizes) == 0,
             TN_INVALID,
             "attempting to assign a gradient of size '%s' to a tensor of size '%s'. Please ensure "
             "that the gradient and the tensor are the same size",
             tni_format_sizes(grad->ndim, grad->sizes, got, sizeof got),
             tni_format_sizes(t->ndim, t->sizes, wanted, sizeof wanted));
    return TN_OK;
}

tn_status tn_tensor_set_grad(tn_tensor *t, tn_tensor *grad)
{
    TN_CHECK(t, TN_INVALID, "tn_tensor_set_grad: t is NULL");
    if (!grad && !tni_meta(t))
        return TN_OK;
    tni_grad_meta *meta = NULL;
    if (grad)
        TN_TRY(check_grad(t, grad));
    TN_TRY(tni_meta_get(t, &meta));
    tn_tensor_unref(tni_grad_swap(meta, tn_tensor_ref(grad)));
    return TN_OK;
}

tn_status tn_tensor_grad_fn(tn_tensor *t, tn_node **out)
{
    TN_CHECK(t && out, TN_INVALID, "tn_tensor_grad_fn: %s is NULL", t ? "out" : "t");
    tni_node *node = NULL;
    TN_TRY(tni_grad_fn(t, &node, NULL));
    *out = node;
    return TN_OK;
}

tn_status tn_tensor_gradient_edge(tn_tensor *t, tn_node **out, uint32_t *out_input)
{
    TN_CHECK(t && out, TN_INVALID, "tn_tensor_gradient_edge: %s is NULL", t ? "out" : "t");
    tni_edge edge;
    TN_TRY(tni_gradient_edge(t, &edge));
    *out = edge.node;
    if (out_input)
        *out_input = edge.input;
    return TN_OK;
}

/* What the flags say when the history of a view cannot be rebuilt. */
bool tn_tensor_is_leaf(tn_tensor *t)
{
    tni_node *node = NULL;
    if (!t || !t->view_base || tni_grad_fn(t, &node, NULL) != TN_OK)
        return t && !(t->flags & TNI_HAS_GRAD_FN);
    return node == NULL;
}

tn_node *tn_tensor_own_node(const tn_tensor *t)
{
    if (!t || !(t->flags & TNI_HAS_GRAD_FN) || tni_strong_count(&t->object) != 1)
        return NULL;
    tni_node *node = t->grad_fn;
    return node && tni_strong_count(&node->object) == 1 ? node : NULL;
}

uint32_t tn_tensor_output_nr(tn_tensor *t)
{
    tni_node *node = NULL;
    uint32_t output = 0;
    if (!t || tni_grad_fn(t, &node, &output) != TN_OK)
        return t ? t->output : 0; /* a view whose history must not be rebuilt: what it was */
    return node ? output : 0;
}

tn_tensor *tn_tensor_base(const tn_tensor *t)
{
    return t ? t->view_base : NULL;
}

bool tn_tensor_is_view(const tn_tensor *t)
{
    return t && t->view_base;
}

tn_status tn_tensor_bump_version(tn_tensor *t)
{
    TN_CHECK(t, TN_INVALID, "tn_tensor_bump_version: t is NULL");
    return tni_tensor_bump_version(t);
}

/* ---- nodes ---- */

tn_node *tn_node_ref(tn_node *node)
{
    return tni_node_ref(node);
}

tn_node *tn_node_try_ref(tn_node *node)
{
    return node && tni_weak_lock(&node->object) ? node : NULL;
}

void tn_node_unref(tn_node *node)
{
    tni_node_unref(node);
}

const char *tn_node_name(const tn_node *node)
{
    return node ? node->cls->name : NULL;
}

uint64_t tn_node_sequence_nr(const tn_node *node)
{
    return node ? node->sequence : 0;
}

uint32_t tn_node_topological_nr(const tn_node *node)
{
    return node ? node->topo : 0;
}

uint32_t tn_node_num_edges(const tn_node *node)
{
    return node ? node->n_edges : 0;
}

tn_node *tn_node_edge(const tn_node *node, uint32_t i, uint32_t *out_input)
{
    if (!node || i >= node->n_edges)
        return NULL;
    if (out_input)
        *out_input = node->edges[i].input;
    return node->edges[i].node;
}

uint32_t tn_node_num_inputs(const tn_node *node)
{
    return node ? node->n_inputs : 0;
}

tn_status tn_node_get_input(const tn_node *node, uint32_t i, tn_node_input *out)
{
    TN_CHECK(node && out, TN_INVALID, "tn_node_get_input: %s is NULL", node ? "out" : "node");
    TN_CHECK(out->size == sizeof *out, TN_INVALID,
             "tn_node_get_input: out has %u bytes, wanted %zu", out->size, sizeof *out);
    TN_CHECK(i < node->n_inputs, TN_INDEX, "input %u of a node with %u", i, node->n_inputs);
    const tni_input *in = &node->inputs[i];
    TN_CHECK(in->dtype != TN_DTYPE_NONE, TN_INVALID, "input %u of %s never gets a gradient", i,
             node->cls->name);
    *out = (tn_node_input){.size = sizeof *out,
                           .dtype = (tn_dtype)in->dtype,
                           .device = in->device,
                           .ndim = in->ndim,
                           .sizes = tni_input_sizes(in)};
    return TN_OK;
}

static uint32_t count_saved(const tni_saved *saved, int64_t n)
{
    uint32_t count = 0;
    for (int64_t i = 0; i < n; i++)
        count += (saved[i].flags & TNI_SAVED_DEFINED) != 0;
    return count;
}

uint32_t tn_node_num_saved(const tn_node *node)
{
    if (!node ||
        atomic_load_explicit(&((tn_node *)(uintptr_t)node)->released, memory_order_relaxed))
        return 0;
    const tni_node_class *cls = node->cls;
    const tni_saved *saved = node->data;
    uint32_t n = count_saved(saved, cls->n_saved);
    const tni_saved_list *lists = tni_saved_lists(node);
    for (int i = 0; i < cls->n_lists; i++)
        n += count_saved(lists[i].v, lists[i].n);
    return n;
}

tn_tensor *tn_node_variable(const tn_node *node)
{
    return node ? tni_accumulator_variable(node) : NULL;
}
