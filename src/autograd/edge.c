/* SPDX-License-Identifier: MIT */
/* autograd/edge.c: an edge of the graph as a tensor, for those who kept the edge and not the
 * tensor.
 */
#include "autograd/accumulate.h"
#include "autograd/meta.h"
#include "core/device.h"
#include "tenon/autograd.h"

#include <string.h>

/* One element, repeated: what a pass looks at is how the tensor looks and where its gradient goes.
 */
static tn_status repeated(const tn_node_input *like, tn_tensor **out)
{
    static const int64_t nowhere[TN_MAX_DIMS];
    TN_AUTO(tn_tensor) one = NULL;
    TN_TRY(tni_tensor_new(0, NULL, NULL, like->dtype, like->device, &one));
    if (one->data)
        memset(one->data, 0, tni_itemsize(one));
    return tni_tensor_alias(one, like->ndim, like->sizes, nowhere, 0, out);
}

tn_status tn_tensor_at_edge(tn_node *node, uint32_t input, tn_tensor **out)
{
    TN_CHECK(node && out, TN_INVALID, "tn_tensor_at_edge: %s is NULL", node ? "out" : "node");
    tn_tensor *leaf = tn_node_variable(node);
    if (leaf) {
        *out = tn_tensor_ref(leaf);
        return TN_OK;
    }
    tn_node_input like = {.size = sizeof like};
    TN_TRY(tn_node_get_input(node, input, &like));
    TN_AUTO(tn_tensor) made = NULL;
    TN_TRY(repeated(&like, &made));
    TN_TRY(tni_set_grad_fn(made, node, input));
    *out = TN_MOVE(made);
    return TN_OK;
}
