/* SPDX-License-Identifier: MIT */
/* autograd/kept.c: what a node keeps besides single tensors, under the names that users know:
 * numbers, texts, sizes, lists of tensors. Nothing of it but the tensors is let go before the node
 * is, and nothing is written after the call was recorded: no lock. */
#include "autograd/node.h"
#include "autograd/record.h"
#include "autograd/saved.h"
#include "tenon/saved_hooks.h"

static const tni_kept_field *field_of(const tn_node *node, uint32_t i)
{
    const tni_kept_field *field = node ? node->cls->kept : NULL;
    for (; field && field->name; field++, i--)
        if (i == 0)
            return field;
    return NULL;
}

const char *tn_node_kept_name(const tn_node *node, uint32_t i)
{
    const tni_kept_field *field = field_of(node, i);
    return field ? field->name : NULL;
}

/* All of them, or none. */
static tn_status tensors_of(tn_node *node, const tni_saved_list *list, tn_value *out)
{
    tn_tensor **made = tni_calloc((size_t)(list->n ? list->n : 1) * sizeof(tn_tensor *));
    TN_CHECK(made, TN_NOMEM, "cannot give %lld saved tensors", (long long)list->n);
    for (int64_t i = 0; i < list->n; i++) {
        tn_status status = tni_saved_unpack(node, &list->v[i], &made[i]);
        if (status != TN_OK) {
            tn_tensor_list_free(made, i);
            return status;
        }
    }
    *out = tn_value_take_tensors(made, list->n);
    return TN_OK;
}

static tn_value plain_value(int kind, const void *at)
{
    switch (kind) {
    case TNI_KEPT_INT:
        return tn_value_int(*(const int64_t *)at);
    case TNI_KEPT_FLOAT:
        return tn_value_float(*(const double *)at);
    case TNI_KEPT_BOOL:
        return tn_value_bool(*(const bool *)at);
    case TNI_KEPT_SCALAR:
        return tn_value_scalar(*(const tn_scalar *)at);
    case TNI_KEPT_OPT_INT: {
        const tn_opt_int *v = at;
        return v->has ? tn_value_int(v->value) : tn_value_none();
    }
    case TNI_KEPT_OPT_FLOAT: {
        const tn_opt_float *v = at;
        return v->has ? tn_value_float(v->value) : tn_value_none();
    }
    case TNI_KEPT_OPT_BOOL: {
        tn_opt_bool v = *(const tn_opt_bool *)at;
        return v == TN_BOOL_NONE ? tn_value_none() : tn_value_bool(v == TN_BOOL_TRUE);
    }
    case TNI_KEPT_OPT_SCALAR: {
        const tni_kept_scalar *v = at;
        return v->has ? tn_value_scalar(v->value) : tn_value_none();
    }
    case TNI_KEPT_STR: {
        const tni_kept_string *v = at;
        return v->has ? tn_value_string(v->text) : tn_value_none();
    }
    case TNI_KEPT_BOOLS: {
        const tni_kept_bools *v = at;
        return tn_value_bools(v->v, v->n);
    }
    case TNI_KEPT_FLOATS: {
        const tni_kept_floats *v = at;
        return v->has ? tn_value_floats(v->v, v->n) : tn_value_none();
    }
    default: { /* TNI_KEPT_INTS */
        const tni_ints *v = at;
        return v->v ? tn_value_ints(v->v, v->n) : tn_value_none();
    }
    }
}

tn_status tn_node_kept(tn_node *node, uint32_t i, tn_value *out)
{
    TN_CHECK(node && out, TN_INVALID, "tn_node_kept: %s is NULL", node ? "out" : "node");
    const tni_kept_field *field = field_of(node, i);
    TN_CHECK(field, TN_INDEX, "there is no kept value %u: %s has fewer", i, node->cls->name);
    const void *at = (const char *)node->data + field->offset;
    if (field->kind == TNI_KEPT_TENSORS)
        return tensors_of(node, at, out);
    *out = plain_value(field->kind, at);
    return TN_OK;
}
