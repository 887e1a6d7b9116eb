/* SPDX-License-Identifier: MIT */
/* autograd/function.c: nodes whose gradient is written by users, and the context that their
 * callbacks get. How results are tied to them: autograd/function_apply.c. */
#include "autograd/function.h"

#include "autograd/anomaly.h"
#include "autograd/copy_slices.h"
#include "autograd/saved_hooks.h"

#include <stdio.h>
#include <string.h>
#include "core/scope.h"
#include "core/state.h"
#include "tenon/ops.h"

/* ---- the node ---- */

static void function_release(tni_node *node)
{
    tni_function *fn = node->data;
    for (uint32_t i = 0; i < fn->n_saved; i++) {
        /* The list itself stays: another run may be unpacking. */
        tni_spin_lock(&node->lock);
        tni_saved taken = fn->saved[i];
        fn->saved[i].tensor = NULL;
        fn->saved[i].hooked = NULL;
        fn->saved[i].view_fn = NULL;
        tni_spin_unlock(&node->lock);
        tni_saved_clear(&taken);
    }
}

static void function_destroy(tni_node *node)
{
    tni_function *fn = node->data;
    if (fn->state && fn->state_destroy)
        fn->state_destroy(fn->state);
    tni_free(fn->state);
    tni_free(fn->saved);
    tni_free(fn->given);
    tni_free(fn->name);
    if (fn->keeper)
        tni_unref(fn->keeper);
}

static tn_status bad_gradient(const tni_function *fn, int at)
{
    TN_FAIL(TN_INVALID,
            "function %s returned a gradient different than None at position %d, but the "
            "corresponding forward input was not a Variable",
            fn->name, at + 1);
}

/* Zeros for gradients that did not come, unless that is not wanted. */
static tn_status fill_grads(const tni_backward *b, bool materialize, tn_tensor **grads)
{
    const tni_node *node = b->node;
    for (uint32_t i = 0; i < node->n_inputs; i++) {
        const tni_input *in = &node->inputs[i];
        grads[i] = b->grads[i];
        if (grads[i] || !materialize || in->dtype == TN_DTYPE_NONE)
            continue;
        tn_tensor_opts opts = tn_opts((tn_dtype)in->dtype, in->device);
        grads[i] = tnx_zeros(tni_input_sizes(in), in->ndim, &opts);
    }
    return tni_scope_settle();
}

/* ---- differentiating once ---- */

static tn_status twice_apply(tni_backward *b)
{
    (void)b;
    TN_FAIL(TN_INVALID,
            "trying to differentiate twice a function that was marked with @once_differentiable");
}

static const tni_node_class twice_class = {
    .name = "Error", .apply = twice_apply, .flags = TNI_CLASS_RUN_UNDEFINED};

static bool any_requires_grad(tn_tensor *const *list, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (tni_requires_grad(list[i]))
            return true;
    return false;
}

/* What the results of a backward part depend on: the function's inputs, through what it saved, and
 * the gradients that came. So a pass that looks for any of these finds the error. */
static tn_status edges_of_both(tni_node *twice, const tni_node *node, tn_tensor *const *grads)
{
    for (uint32_t i = 0; i < node->n_edges; i++)
        tni_node_set_edge(twice, i, node->edges[i]);
    for (uint32_t i = 0; i < node->n_inputs; i++) {
        tni_edge edge;
        TN_TRY(tni_gradient_edge(grads[i], &edge));
        tni_node_set_edge(twice, node->n_edges + i, edge);
        tni_node_unref(edge.node);
    }
    return TN_OK;
}

/* Results of a backward part that ran unrecorded: asking for their gradient is an error. */
static tn_status refuse_twice(const tni_node *of, tn_tensor *const *grads, tn_tensor **out)
{
    uint32_t n = of->n_edges;
    TN_AUTO(tni_node) node = NULL;
    TN_TRY(tni_node_new(&twice_class, n + of->n_inputs, n, &node));
    TN_TRY(edges_of_both(node, of, grads));
    for (uint32_t i = 0; i < n; i++) {
        if (!out[i])
            continue;
        TN_AUTO(tn_tensor) alias = NULL;
        TN_TRY(tni_detached(out[i], &alias));
        TN_TRY(tni_node_set_input(node, i, alias));
        TN_TRY(tni_set_grad_fn(alias, node, i));
        tn_tensor_unref(out[i]);
        out[i] = TN_MOVE(alias);
    }
    return TN_OK;
}

/* ---- its turn ---- */

static tn_status call_backward(tn_function_ctx *ctx, tn_tensor **grads, tn_tensor **out)
{
    const tni_node *node = ctx->node;
    bool once = ctx->fn->once && tn_grad_enabled();
    if (once)
        tn_set_grad_enabled(false);
    tn_status status = ctx->fn->backward(ctx, grads, (int)node->n_inputs, out, (int)node->n_edges);
    if (once)
        tn_set_grad_enabled(true);
    TN_TRY(status);
    TN_TRY(tni_scope_settle());
    if (once && (ctx->fn->saved_history || any_requires_grad(grads, node->n_inputs)))
        return refuse_twice(node, grads, out);
    return TN_OK;
}

static tn_status function_apply(tni_backward *b)
{
    tni_node *node = b->node;
    tni_function *fn = node->data;
    uint32_t n_in = node->n_inputs, n_out = node->n_edges;
    tn_tensor **grads = tni_calloc((size_t)(n_in + n_out) * sizeof *grads);
    TN_CHECK(grads, TN_NOMEM, "cannot allocate the gradients of %s", fn->name);
    tn_tensor **out = grads + n_in;
    tn_function_ctx ctx = {.node = node, .fn = fn, .args = fn->args, .run = b};
    tn_status status = fill_grads(b, fn->materialize, grads);
    if (status == TN_OK)
        status = call_backward(&ctx, grads, out);
    for (uint32_t i = 0; i < n_out && status == TN_OK; i++)
        if (out[i] && !fn->given[i])
            status = bad_gradient(fn, (int)i);
    /* The engine looks at what goes on; here is also what does not. */
    if (TNI_UNLIKELY(tni_anomaly() & TN_ANOMALY_CHECK_NAN) && status == TN_OK)
        status = tni_anomaly_check_backward(node, out);
    for (uint32_t i = 0; i < n_out; i++) {
        if (status == TN_OK && tni_backward_needs(b, i))
            b->results[i] = tn_scope_own(out[i]);
        else
            tn_tensor_unref(out[i]);
    }
    tni_free(grads);
    return status == TN_OK ? tni_scope_settle() : status;
}

static tn_status function_fill(tni_function *fn, const tni_function_spec *spec,
                               tn_tensor *const *inputs, int n_inputs)
{
    size_t n_name = strlen(spec->name) + sizeof "Backward";
    fn->name = tni_alloc(n_name);
    fn->given = tni_calloc((size_t)n_inputs + 1);
    fn->state = spec->state_size ? tni_calloc(spec->state_size) : NULL;
    TN_CHECK(fn->name && fn->given && (fn->state || !spec->state_size), TN_NOMEM,
             "cannot allocate a call of %s", spec->name);
    snprintf(fn->name, n_name, "%sBackward", spec->name);
    fn->cls.name = fn->name;
    /* Written by users, who may do more than multiply: also when nothing came. */
    fn->cls.flags |= TNI_CLASS_RUN_UNDEFINED;
    fn->state_destroy = spec->state_destroy;
    for (int i = 0; i < n_inputs; i++)
        fn->given[i] = inputs[i] != NULL;
    return TN_OK;
}

tn_status tni_function_node(const tni_function_spec *spec, tn_tensor *const *inputs, int n_inputs,
                            int n_outputs, bool record, tni_node **out)
{
    static const tni_node_class plain = {.name = "Function",
                                         .apply = function_apply,
                                         .release = function_release,
                                         .data_nbytes = sizeof(tni_function),
                                         .flags = TNI_CLASS_DESTROYS};
    TN_AUTO(tni_node) node = NULL;
    TN_TRY(tni_node_new(&plain, (uint32_t)n_inputs, (uint32_t)n_outputs, &node));
    tni_function *fn = node->data;
    fn->destroy = function_destroy;
    fn->cls = plain;
    fn->backward = spec->backward;
    fn->once = spec->flags & TN_FUNCTION_ONCE_DIFFERENTIABLE;
    fn->materialize = true;
    TN_TRY(function_fill(fn, spec, inputs, n_inputs));
    if (spec->keeper) {
        tni_ref(spec->keeper);
        fn->keeper = spec->keeper;
    }
    fn->args = spec->args;
    node->cls = &fn->cls;
    for (int i = 0; i < n_inputs && record; i++) {
        tni_edge edge;
        TN_TRY(tni_gradient_edge(inputs[i], &edge));
        tni_node_set_edge(node, (uint32_t)i, edge);
        tni_node_unref(edge.node);
    }
    *out = TN_MOVE(node);
    return TN_OK;
}

/* ---- what callbacks ask and say ---- */

void *tn_function_args(const tn_function_ctx *ctx)
{
    return ctx ? ctx->args : NULL;
}

void *tn_function_state(const tn_function_ctx *ctx)
{
    return ctx ? ctx->fn->state : NULL;
}

void tni_marks_clear(tni_marks *marks)
{
    tn_tensor_list_free(marks->v, marks->n);
    *marks = (tni_marks){NULL, 0};
}

static tn_status mark(const tn_function_ctx *ctx, tni_marks *marks, tn_tensor *const *list, int n)
{
    TN_CHECK(ctx && !ctx->run, TN_INVALID, "this can only be said in the forward part");
    TN_CHECK(n >= 0 && (list || n == 0), TN_INVALID, "expected a list of %d tensors, got NULL", n);
    tn_tensor **v = tni_alloc((size_t)n * sizeof *v);
    TN_CHECK(v, TN_NOMEM, "cannot note %d tensors", n);
    for (int i = 0; i < n; i++)
        v[i] = tn_tensor_ref(list[i]);
    tni_marks_clear(marks);
    *marks = (tni_marks){v, n};
    return TN_OK;
}

tn_status tn_function_save(tn_function_ctx *ctx, tn_tensor *const *tensors, int n)
{
    return mark(ctx, ctx ? &ctx->save : NULL, tensors, n);
}

tn_status tn_function_mark_dirty(tn_function_ctx *ctx, tn_tensor *const *inputs, int n)
{
    return mark(ctx, ctx ? &ctx->dirty : NULL, inputs, n);
}

tn_status tn_function_mark_non_differentiable(tn_function_ctx *ctx, tn_tensor *const *outputs,
                                              int n)
{
    return mark(ctx, ctx ? &ctx->plain : NULL, outputs, n);
}

tn_status tn_function_set_outputs(tn_function_ctx *ctx, tn_tensor *const *outputs, int n)
{
    TN_CHECK(ctx && ctx->outputs, TN_INVALID,
             "the results of this call are not to be named: it was made with room for them");
    return mark(ctx, ctx->outputs, outputs, n);
}

void tn_function_set_materialize_grads(tn_function_ctx *ctx, bool on)
{
    if (ctx && !ctx->run)
        ctx->fn->materialize = on;
}

bool tn_function_needs_input_grad(const tn_function_ctx *ctx, int i)
{
    if (!ctx || i < 0 || (uint32_t)i >= ctx->node->n_edges)
        return false;
    return ctx->run ? tni_backward_needs(ctx->run, (uint32_t)i) : tni_requires_grad(ctx->inputs[i]);
}

int tn_function_saved_count(const tn_function_ctx *ctx)
{
    return ctx ? (int)ctx->fn->n_saved : 0;
}

tn_status tn_function_saved(tn_function_ctx *ctx, int i, tn_tensor **out)
{
    TN_CHECK(ctx && out, TN_INVALID, "tn_function_saved: ctx or out is NULL");
    TN_CHECK(i >= 0 && (uint32_t)i < ctx->fn->n_saved, TN_INDEX,
             "there is no saved tensor %d: %s saved %u", i, ctx->fn->name, ctx->fn->n_saved);
    return tni_saved_unpack(ctx->node, &ctx->fn->saved[i], out);
}

/* ---- what is asked from outside ---- */

static tni_function *function_of(const tni_node *node)
{
    return node && node->cls->apply == function_apply ? node->data : NULL;
}

tn_node *tn_function_node(const tn_function_ctx *ctx)
{
    return ctx ? ctx->node : NULL;
}

void *tn_node_function_state(const tn_node *node, void (*state_destroy)(void *state))
{
    const tni_function *fn = function_of(node);
    return fn && state_destroy && fn->state_destroy == state_destroy ? fn->state : NULL;
}

int tn_node_function_saved_count(const tn_node *node)
{
    const tni_function *fn = function_of(node);
    return fn ? (int)fn->n_saved : 0;
}

tn_status tn_node_function_saved(tn_node *node, int i, tn_tensor **out)
{
    tni_function *fn = function_of(node);
    TN_CHECK(fn && out, TN_INVALID, "tn_node_function_saved: the node is of no function");
    TN_CHECK(i >= 0 && (uint32_t)i < fn->n_saved, TN_INDEX,
             "there is no saved tensor %d: %s saved %u", i, fn->name, fn->n_saved);
    return tni_saved_unpack(node, &fn->saved[i], out);
}

tn_status tn_node_function_saved_register_hooks(tn_node *node, int i, const tn_saved_hooks *hooks)
{
    tni_function *fn = function_of(node);
    TN_CHECK(fn, TN_INVALID, "tn_node_function_saved_register_hooks: the node is of no function");
    TN_CHECK(i >= 0 && (uint32_t)i < fn->n_saved, TN_INDEX,
             "there is no saved tensor %d: %s saved %u", i, fn->name, fn->n_saved);
    return tni_saved_register(node, &fn->saved[i], hooks);
}

/* Whether @p t is a result: else the node would keep what keeps it. One that was written through a
 * view has the history of its base. */
static bool is_result(const tn_function_ctx *ctx, const tn_tensor *t)
{
    const tn_tensor *base = t->view_base;
    if (t->grad_fn == ctx->node)
        return true;
    if (!base || !base->grad_fn || tni_copy_slices_fn(base->grad_fn) != ctx->node)
        return false;
    return tni_is_marked(t, &ctx->dirty);
}

tn_status tni_function_save_all(tn_function_ctx *ctx)
{
    tni_function *fn = ctx->fn;
    int n = ctx->save.n;
    if (n == 0)
        return TN_OK;
    fn->saved = tni_calloc((size_t)n * sizeof *fn->saved);
    TN_CHECK(fn->saved, TN_NOMEM, "cannot save %d tensors", n);
    fn->n_saved = (uint32_t)n;
    for (int i = 0; i < n; i++) {
        tn_tensor *t = ctx->save.v[i];
        bool result = t && is_result(ctx, t);
        fn->saved_history |= tni_requires_grad(t);
        TN_TRY(tni_saved_fill(&fn->saved[i], t, result, result && t->view_base));
    }
    return TN_OK;
}
