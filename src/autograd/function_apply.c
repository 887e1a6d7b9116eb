/* SPDX-License-Identifier: MIT */
/* autograd/function_apply.c: calling a function with a gradient of its own, and tying its results
 * to its node. */
#include "autograd/function.h"
#include "autograd/forward.h"
#include "autograd/inplace.h"
#include "autograd/extra.h"
#include "autograd/view.h"
#include "tenon/ops.h"

/* Where @p t is in the list; -1: nowhere. */
static int find(const tn_tensor *t, tn_tensor *const *list, int n)
{
    for (int i = 0; i < n; i++)
        if (list[i] == t)
            return i;
    return -1;
}

static bool has_gradient(const tn_tensor *t)
{
    return tni_dtype_is_inexact((tn_dtype)t->dtype);
}

/* ---- one result ---- */

static void set_creation(tn_tensor *t, uint32_t creation)
{
    if (t->view_base)
        t->flags = (t->flags & ~(uint32_t)TNI_VIEW_CREATION) | creation;
}

static void replace(tn_tensor **slot, tn_tensor *with)
{
    tn_tensor_unref(*slot);
    *slot = with;
}

/* The input itself was returned: a view of it stands for it. */
static tn_status view_of_input(tn_tensor **slot)
{
    tn_tensor *view = NULL;
    bool grad = tn_set_grad_enabled(false);
    tn_status status = tn_alias(*slot, &view);
    tn_set_grad_enabled(grad);
    TN_TRY(status);
    replace(slot, view);
    return TN_OK;
}

static tn_status without_gradient(tn_tensor **slot, bool is_input, bool is_dirty)
{
    if (!tni_requires_grad(*slot))
        return is_input && !is_dirty ? view_of_input(slot) : TN_OK;
    if (!is_input && (*slot)->view_base)
        return TN_OK; /* as any view that was made without recording */
    tn_tensor *plain = NULL;
    TN_TRY(tni_detached(*slot, &plain));
    replace(slot, plain);
    return TN_OK;
}

static tn_status may_be_dirty(tn_tensor *t, int n_outputs)
{
    TN_CHECK(!tni_requires_grad(t) || (t->flags & TNI_HAS_GRAD_FN), TN_INVALID,
             "a leaf Variable that requires grad has been used in an in-place operation.");
    TN_CHECK(
        !t->view_base || n_outputs == 1, TN_INVALID,
        "If your Function modifies inplace an input that is a view of another Tensor, your "
        "Function cannot return more than one Tensor. This is not supported by the current "
        "autograd engine. You should either make sure the input is not a view (using .clone() for "
        "example) or make your Function only return one Tensor (potentially splitting it into two "
        "Functions: one doing the inplace that returns a single Tensor and a second one that does "
        "the other operations). You can ask on the forum https://discuss.pytorch.org/ if you need "
        "help to do this change.");
    return tni_check_inplace(t);
}

/* A written input: what hung on its old value goes. */
static tn_status tie_dirty(tn_tensor *t, tni_node *node, uint32_t i, int input)
{
    tni_grad_meta *meta = tni_meta(t);
    if (meta) {
        tn_tensor_unref(TN_MOVE(meta->grad));
        tni_meta_extra_free(meta);
    }
    if (t->view_base)
        return tni_rebase_view(t, node, input < 0 ? 0 : (uint32_t)input);
    return tni_set_grad_fn(t, node, i);
}

/* @p input: which input the result is; -1: none. */
static tn_status tie_result(tn_function_ctx *ctx, tn_tensor **slot, uint32_t i, int input,
                            bool is_dirty, bool gradient)
{
    bool is_input = input >= 0;
    if (!gradient)
        TN_TRY(without_gradient(slot, is_input, is_dirty));
    else if (is_dirty)
        TN_TRY(tie_dirty(*slot, ctx->node, i, input));
    else {
        if (is_input)
            TN_TRY(view_of_input(slot));
        TN_TRY(tni_set_grad_fn(*slot, ctx->node, i));
    }
    if (!(is_input && is_dirty))
        set_creation(*slot, TNI_VIEW_CUSTOM);
    return TN_OK;
}

/* ---- all results ---- */

static tn_status check_results(const tn_function_ctx *ctx, tn_tensor *const *outputs, int n,
                               bool record)
{
    for (int i = 0; i < ctx->dirty.n; i++)
        TN_CHECK(find(ctx->dirty.v[i], outputs, n) >= 0, TN_INVALID,
                 "Some elements marked as dirty during the forward method were not returned as "
                 "output. The inputs that are modified inplace must all be outputs of the "
                 "Function.");
    for (int i = 0; i < n && record; i++) {
        tn_tensor *t = outputs[i];
        if (t && has_gradient(t) && !tni_is_marked(t, &ctx->plain) && tni_is_marked(t, &ctx->dirty))
            TN_TRY(may_be_dirty(t, n));
    }
    return TN_OK;
}

static tn_status tie_results(tn_function_ctx *ctx, tn_tensor *const *inputs, int n_inputs,
                             tn_tensor **outputs, int n, bool record)
{
    int with_gradient = 0;
    for (int i = 0; i < n; i++) {
        tn_tensor *t = outputs[i];
        if (!t)
            continue;
        bool is_dirty = tni_is_marked(t, &ctx->dirty);
        bool gradient = record && has_gradient(t) && !tni_is_marked(t, &ctx->plain);
        if (record)
            TN_TRY(tni_node_set_input(ctx->node, (uint32_t)i, t));
        TN_TRY(tie_result(ctx, &outputs[i], (uint32_t)i, find(t, inputs, n_inputs), is_dirty,
                          gradient));
        with_gradient += gradient;
    }
    for (int i = 0; i < n && with_gradient > 1; i++)
        if (outputs[i])
            set_creation(outputs[i], TNI_VIEW_MULTI_OUTPUT);
    return TN_OK;
}

/* ---- the call ---- */

static bool any_requires_grad(tn_tensor *const *list, int n)
{
    for (int i = 0; i < n; i++)
        if (tni_requires_grad(list[i]))
            return true;
    return false;
}

static bool any_pushes(tn_tensor *const *list, int n)
{
    for (int i = 0; i < n; i++)
        if (tni_pushes_tangent(list[i]))
            return true;
    return false;
}

/* A call in the making. */
typedef struct making {
    const tn_function *fn;
    void *args;
    tn_tensor *const *inputs;
    int n_inputs;
    bool any;       /* forward names its results */
    tni_marks made; /* the results: owned */
} making;

static tn_status call_forward(const making *m, tn_function_ctx *ctx)
{
    bool grad = tn_set_grad_enabled(false);
    uint8_t forward = tni_tls.no_forward_grad;
    tni_tls.no_forward_grad = TNI_FORWARD_PAUSED;
    tn_status status = m->fn->forward(ctx, m->inputs, m->n_inputs, m->any ? NULL : m->made.v,
                                      m->any ? 0 : m->made.n);
    tni_tls.no_forward_grad = forward;
    tn_set_grad_enabled(grad);
    return status;
}

/* What was written has no history that is right: its backward is an error from now on. */
static TNI_COLD void lose_written(tn_function_ctx *ctx)
{
    ctx->fn->cls.apply = tni_broken_apply;
    for (uint32_t i = 0; i < ctx->node->n_inputs; i++)
        ctx->node->inputs[i].dtype = TN_DTYPE_NONE;
    for (int i = 0; i < ctx->dirty.n; i++)
        if (has_gradient(ctx->dirty.v[i]) && !tni_is_marked(ctx->dirty.v[i], &ctx->plain))
            tni_history_lost(ctx->dirty.v[i], ctx->node);
}

static tn_status finish(making *m, tn_function_ctx *ctx, bool record)
{
    tn_tensor **made = m->made.v;
    int n = m->made.n;
    for (int i = 0; i < ctx->dirty.n; i++)
        if (ctx->dirty.v[i]->versions) /* else it counts no writes */
            TN_TRY(tni_tensor_bump_version(ctx->dirty.v[i]));
    TN_TRY(check_results(ctx, made, n, record));
    tn_status status = tie_results(ctx, m->inputs, m->n_inputs, made, n, record);
    if (status == TN_OK && record)
        status = tni_function_save_all(ctx);
    if (TNI_UNLIKELY(status != TN_OK) && record)
        lose_written(ctx);
    TN_TRY(status);
    if (any_pushes(m->inputs, m->n_inputs))
        TN_TRY(tni_function_push(ctx, m->fn->jvp, m->inputs, m->n_inputs, made, n));
    return TN_OK;
}

static tn_status apply(making *m)
{
    const tn_function *fn = m->fn;
    TN_CHECK(fn->jvp || !any_pushes(m->inputs, m->n_inputs), TN_UNSUPPORTED,
             "You must implement the jvp function for custom autograd.Function to use it with "
             "forward mode AD.");
    bool record = tn_grad_enabled() && any_requires_grad(m->inputs, m->n_inputs);
    tni_function_spec spec = {.name = fn->name,
                              .backward = fn->backward,
                              .state_size = fn->state_size,
                              .state_destroy = fn->state_destroy,
                              .flags = fn->flags};
    TN_AUTO(tni_node) node = NULL;
    TN_TRY(tni_function_node(&spec, m->inputs, m->n_inputs, m->made.n, record, &node));
    tn_function_ctx ctx = {.node = node,
                           .fn = node->data,
                           .args = m->args,
                           .inputs = m->inputs,
                           .outputs = m->any ? &m->made : NULL};
    tn_status status = call_forward(m, &ctx);
    if (status == TN_OK)
        status = finish(m, &ctx, record);
    tni_marks_clear(&ctx.save);
    tni_marks_clear(&ctx.dirty);
    tni_marks_clear(&ctx.plain);
    return status;
}

static tn_status check_function(const tn_function *fn, const void *inputs, int n_inputs)
{
    TN_CHECK(fn && fn->size == sizeof *fn && fn->name && fn->forward && fn->backward, TN_INVALID,
             "a function needs `size`, `name`, `forward` and `backward`");
    TN_CHECK(n_inputs >= 0 && (inputs || n_inputs == 0), TN_INVALID,
             "%s: expected a list of %d inputs, got NULL", fn->name, n_inputs);
    return TN_OK;
}

tn_status tn_function_apply(const tn_function *fn, void *args, tn_tensor *const *inputs,
                            int n_inputs, tn_tensor **outputs, int n_outputs)
{
    TN_TRY(check_function(fn, inputs, n_inputs));
    TN_CHECK(n_outputs >= 1 && outputs, TN_INVALID,
             "%s: expected inputs and room for outputs, got %d and %d", fn->name, n_inputs,
             n_outputs);
    making m = {.fn = fn, .args = args, .inputs = inputs, .n_inputs = n_inputs};
    m.made = (tni_marks){tni_calloc((size_t)n_outputs * sizeof *m.made.v), n_outputs};
    TN_CHECK(m.made.v, TN_NOMEM, "cannot allocate %d results of %s", n_outputs, fn->name);
    tn_status status = apply(&m);
    for (int i = 0; i < n_outputs && status == TN_OK; i++)
        outputs[i] = TN_MOVE(m.made.v[i]);
    tni_marks_clear(&m.made);
    return status;
}

tn_status tn_function_apply_any(const tn_function *fn, void *args, tn_tensor *const *inputs,
                                int n_inputs, tn_tensor ***out, int *out_n)
{
    TN_TRY(check_function(fn, inputs, n_inputs));
    TN_CHECK(out && out_n, TN_INVALID, "%s: expected room for the results, got NULL", fn->name);
    making m = {.fn = fn, .args = args, .inputs = inputs, .n_inputs = n_inputs, .any = true};
    tn_status status = apply(&m);
    if (status != TN_OK) {
        tni_marks_clear(&m.made);
        return status;
    }
    *out = m.made.v;
    *out_n = m.made.n;
    return TN_OK;
}
