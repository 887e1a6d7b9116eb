/* SPDX-License-Identifier: MIT */
/* tests/autograd/kit.c: nodes made by hand. */
#include "kit.h"

#include "autograd/saved.h"
#include "core/state.h"

#include <math.h>

_Thread_local int64_t kit_turns;

void kit_warm_up(void)
{
    tn_tensor *x = kit_leaf(1, 1), *y = NULL;
    ASSERT_OK(kit_mul(x, x, &y));
    ASSERT_OK(tn_tensor_backward(y));
    tn_tensor_unref(x);
    tn_tensor_unref(y);
}

tn_tensor *kit_vector(int64_t n, float value)
{
    tn_tensor *t = NULL;
    tn_tensor_opts opts = tn_opts(TN_DTYPE_F32, TN_CPU);
    ASSERT_OK(tn_full(&n, 1, tn_float((double)value), &opts, &t));
    return t;
}

tn_tensor *kit_leaf(int64_t n, float value)
{
    tn_tensor *t = kit_vector(n, value);
    ASSERT_OK(tn_tensor_set_requires_grad(t, true));
    return t;
}

float kit_at(const tn_tensor *t, int64_t i)
{
    return t ? ((const float *)tn_tensor_data(t))[i] : NAN;
}

float kit_grad(const tn_tensor *t, int64_t i)
{
    return kit_at(tn_tensor_grad(t), i);
}

tn_status kit_record(const tni_node_class *cls, tn_tensor *const *inputs, uint32_t n,
                     tn_tensor *result)
{
    TN_AUTO(tni_node) node = NULL;
    TN_TRY(tni_node_new(cls, n, 1, &node));
    for (uint32_t i = 0; i < n; i++) {
        tni_edge edge;
        TN_TRY(tni_gradient_edge(inputs[i], &edge));
        tni_node_set_edge(node, i, edge);
        tni_node_unref(edge.node);
    }
    for (int i = 0; i < cls->n_saved; i++)
        TN_TRY(tni_saved_fill((tni_saved *)node->data + i, inputs[i], false, false));
    TN_TRY(tni_node_set_input(node, 0, result));
    return tni_set_grad_fn(result, node, 0);
}

/* ---- backward functions, made of operators that record when they are told to ---- */

static tn_status add_backward(tni_backward *b)
{
    kit_turns++;
    for (uint32_t i = 0; i < b->node->n_edges; i++)
        b->results[i] = b->grads[0];
    return TN_OK;
}

static tn_status mul_backward(tni_backward *b)
{
    kit_turns++;
    for (uint32_t i = 0; i < 2; i++) {
        tn_tensor *other = tni_unpack(b, 1 - i), *product = NULL;
        if (!other || !tni_backward_needs(b, i))
            continue;
        if (tn_grad_enabled())
            TN_TRY(kit_mul(b->grads[0], other, &product));
        else
            TN_TRY(tn_mul(b->grads[0], other, &product));
        b->results[i] = tn_scope_own(product);
    }
    return TN_OK;
}

static tn_status scale_backward(tni_backward *b)
{
    kit_turns++;
    b->results[0] = tnx_mul_scalar(b->grads[0], tn_int(2));
    return TN_OK;
}

const tni_node_class kit_add_class = {.name = "KitAdd", .apply = add_backward};
const tni_node_class kit_mul_class = {
    .name = "KitMul", .apply = mul_backward, .data_nbytes = 2 * sizeof(tni_saved), .n_saved = 2};
const tni_node_class kit_scale_class = {.name = "KitScale", .apply = scale_backward};

/* ---- calls ---- */

/* Give away @p result, recorded, unless something failed. */
static tn_status recorded(tn_status status, const tni_node_class *cls, tn_tensor *const *inputs,
                          uint32_t n, tn_tensor *result, bool grad_was_on, tn_tensor **out)
{
    (void)tn_set_grad_enabled(grad_was_on);
    bool needed = false;
    for (uint32_t i = 0; i < n; i++)
        needed |= tn_tensor_requires_grad(inputs[i]);
    if (status == TN_OK && needed)
        status = kit_record(cls, inputs, n, result);
    if (status == TN_OK)
        *out = result;
    else
        tn_tensor_unref(result);
    return status;
}

tn_status kit_add(tn_tensor *a, tn_tensor *b, tn_tensor **out)
{
    tn_tensor *inputs[] = {a, b}, *result = NULL;
    bool on = tn_set_grad_enabled(false);
    tn_status status = tn_add(a, b, tn_int(1), &result);
    return recorded(status, &kit_add_class, inputs, 2, result, on, out);
}

tn_status kit_mul(tn_tensor *a, tn_tensor *b, tn_tensor **out)
{
    tn_tensor *inputs[] = {a, b}, *result = NULL;
    bool on = tn_set_grad_enabled(false);
    tn_status status = tn_mul(a, b, &result);
    return recorded(status, &kit_mul_class, inputs, 2, result, on, out);
}

tn_status kit_scale(tn_tensor *a, tn_tensor **out)
{
    tn_tensor *result = NULL;
    bool on = tn_set_grad_enabled(false);
    tn_status status = tn_mul_scalar(a, tn_int(2), &result);
    return recorded(status, &kit_scale_class, &a, 1, result, on, out);
}

tn_status kit_chain(tn_tensor *a, int64_t n, tn_tensor **out)
{
    for (int64_t i = 0; i < n; i++) {
        tn_tensor *next = NULL;
        bool on = tn_set_grad_enabled(false);
        tn_status status = tn_detach(a, &next);
        status = recorded(status, &kit_add_class, &a, 1, next, on, &next);
        tn_tensor_unref(a);
        TN_TRY(status);
        a = next;
    }
    *out = a;
    return TN_OK;
}

const char *const kit_second_time =
    "Trying to backward through the graph a second time (or directly access saved tensors after "
    "they have already been freed). Saved intermediate values of the graph are freed when you call "
    ".backward() or autograd.grad(). Specify retain_graph=True if you need to backward through the "
    "graph a second time or if you need to access saved tensors after calling backward.";

tn_status kit_backward_with(tn_tensor *t, float seed, const tn_backward_opts *opts)
{
    tn_tensor *g = kit_vector(tn_tensor_numel(t), seed);
    tn_status status = tn_backward(&t, 1, &g, opts);
    tn_tensor_unref(g);
    return status;
}

const char *kit_node_name(tn_tensor *t)
{
    tn_node *node = NULL;
    ASSERT_OK(tn_tensor_grad_fn(t, &node));
    return node ? tn_node_name(node) : "";
}
