/* SPDX-License-Identifier: MIT */
/* autograd/function_jvp.c: tangents of the results of functions with a gradient of their own. */
#include "autograd/function.h"
#include "autograd/forward.h"
#include "core/scope.h"
#include "tenon/ops.h"

/* The tangents of the inputs, owned; zeros where a tensor has none, unless that is not wanted. */
static tn_status find_tangents(const tn_function_ctx *ctx, tn_tensor *const *inputs, int n,
                               tn_tensor **tangents)
{
    for (int i = 0; i < n; i++) {
        if (!inputs[i])
            continue;
        if (tni_has_tangent(inputs[i]))
            TN_TRY(tni_tangent(inputs[i], &tangents[i]));
        else if (ctx->fn->materialize && tni_dtype_is_inexact((tn_dtype)inputs[i]->dtype))
            TN_TRY(tn_zeros_like(inputs[i], NULL, TN_FORMAT_PRESERVE, &tangents[i]));
    }
    return TN_OK;
}

static tn_status check_tangent(const tn_function_ctx *ctx, int i, const tn_tensor *result,
                               const tn_tensor *tangent)
{
    bool same = tangent->ndim == result->ndim;
    for (int d = 0; same && d < result->ndim; d++)
        same = tangent->sizes[d] == result->sizes[d];
    char wanted[TNI_SIZES_TEXT], got[TNI_SIZES_TEXT];
    TN_CHECK(same, TN_INVALID,
             "Trying to set a forward gradient that has a different size than that of the original "
             "Tensor, this is not supported. Tensor is of size %s while the given forward gradient "
             "is of size %s. (result %d of the jvp of %s)",
             tni_format_sizes(result->ndim, result->sizes, wanted, sizeof wanted),
             tni_format_sizes(tangent->ndim, tangent->sizes, got, sizeof got), i, ctx->fn->name);
    return TN_OK;
}

static bool is_listed(const tn_tensor *t, const tni_marks *marks)
{
    for (int i = 0; i < marks->n; i++)
        if (marks->v[i] == t)
            return true;
    return false;
}

/* What the function was given. */
typedef struct given {
    tn_tensor *const *inputs;
    tn_tensor *const *tangents;
    const uint32_t *versions; /* of the tangents, before the function's jvp ran */
    int n;
} given;

static const tn_tensor *root_of(const tn_tensor *t)
{
    return t->view_base ? t->view_base : t;
}

static uint32_t version_of(const tn_tensor *t)
{
    return t->versions ? atomic_load_explicit(t->versions, memory_order_relaxed) : 0;
}

/* A function that writes an input writes its tangent. */
static tn_status check_written(const given *g, const tn_tensor *result, const tn_tensor *tangent)
{
    for (int i = 0; i < g->n; i++) {
        if (g->inputs[i] != result || !tni_has_tangent(g->inputs[i]))
            continue;
        TN_CHECK(tangent && root_of(tangent) == root_of(g->tangents[i]) &&
                     version_of(tangent) != g->versions[i],
                 TN_INVALID,
                 "An inplace custom Function is not modifying the forward mode gradients inplace. "
                 "If the forward is modifying an input inplace, then the jvp function must modify "
                 "the corresponding gradient inplace.");
        TN_CHECK(tangent == g->tangents[i], TN_INVALID,
                 "An inplace custom Function is not returning the forward mode gradients as-is. If "
                 "the forward is modifying an input inplace, then the jvp function must modify the "
                 "gradient inplace and return it as-is.");
    }
    return TN_OK;
}

/* One that gives a view of an input, or the input, gives a view of its tangent: who writes the one
 * writes the other. */
static tn_status check_viewed(const given *g, const tn_tensor *result, const tn_tensor *tangent)
{
    for (int i = 0; i < g->n; i++) {
        const tn_tensor *input = g->inputs[i];
        if (!input || !tni_has_tangent(g->inputs[i]) || root_of(input) != root_of(result))
            continue;
        TN_CHECK(tangent && tangent->view_base, TN_INVALID,
                 "A custom Function's forward is returning a view (or an input as-is) but the jvp "
                 "is not returning a view.");
        TN_CHECK(root_of(tangent) == root_of(g->tangents[i]), TN_INVALID,
                 "A custom Function is returning a view but the jvp is not returning a view of the "
                 "given grad input.");
        return TN_OK;
    }
    return TN_OK;
}

static tn_status give_tangents(const tn_function_ctx *ctx, const given *g,
                               tn_tensor *const *outputs, int n, tn_tensor *const *tangents)
{
    for (int i = 0; i < n; i++) {
        tn_tensor *result = outputs[i];
        if (!result || !tni_dtype_is_inexact((tn_dtype)result->dtype) ||
            is_listed(result, &ctx->plain)) {
            TN_CHECK(!tangents[i], TN_INVALID,
                     "Function's jvp returned a gradient at position %d, but  the corresponding "
                     "forward output is not a differentiable Tensor.You should return None at that "
                     "position instead.",
                     i);
            continue;
        }
        if (tangents[i])
            TN_TRY(check_tangent(ctx, i, result, tangents[i]));
        if (is_listed(result, &ctx->dirty)) {
            TN_TRY(check_written(g, result, tangents[i]));
            TN_TRY(tni_tangent_written(result, tangents[i]));
            continue;
        }
        TN_TRY(check_viewed(g, result, tangents[i]));
        if (tangents[i])
            TN_TRY(tni_tangent_set(result, tangents[i]));
    }
    return TN_OK;
}

/* The node keeps results apart from their history: what it kept of them gets their tangents, for
 * passes over dual tensors. */
static tn_status give_saved(const tn_function_ctx *ctx)
{
    for (uint32_t i = 0; i < ctx->fn->n_saved; i++) {
        const tni_saved *saved = &ctx->fn->saved[i];
        TN_AUTO(tn_tensor) tangent = NULL;
        if (!(saved->flags & TNI_SAVED_IS_RESULT) || !saved->tensor)
            continue;
        TN_TRY(tni_tangent(ctx->save.v[i], &tangent));
        if (tangent)
            TN_TRY(tni_tangent_set(saved->tensor, tangent));
    }
    return TN_OK;
}

static tn_status call_jvp(tn_function_ctx *ctx, tn_function_jvp jvp, tn_tensor **tangents, int n_in,
                          tn_tensor **made, int n_out)
{
    tn_scope *scope;
    TN_TRY(tni_scope_enter_fenced(&scope));
    tn_status status = jvp(ctx, tangents, n_in, made, n_out);
    if (status == TN_OK)
        return tn_scope_leave(scope);
    tni_error error; /* leaving must not change it */
    tni_error_take(&error);
    tn_status ignored = tn_scope_leave(scope);
    (void)ignored;
    return tni_error_raise(&error);
}

tn_status tni_function_push(tn_function_ctx *ctx, tn_function_jvp jvp, tn_tensor *const *inputs,
                            int n_inputs, tn_tensor *const *outputs, int n_outputs)
{
    int n = n_inputs + n_outputs;
    size_t room = (size_t)(n ? n : 1) * sizeof(tn_tensor *);
    tn_tensor **tangents = tni_calloc(room + (size_t)n_inputs * sizeof(uint32_t));
    TN_CHECK(tangents, TN_NOMEM, "cannot allocate the tangents of %s", ctx->fn->name);
    tn_tensor **made = tangents + n_inputs;
    uint32_t *versions = (uint32_t *)(void *)((char *)tangents + room);
    uint8_t old = tni_tls.no_forward_grad;
    tni_tls.no_forward_grad = TNI_FORWARD_PAUSED;
    tn_status status = find_tangents(ctx, inputs, n_inputs, tangents);
    for (int i = 0; i < n_inputs && status == TN_OK; i++)
        versions[i] = tangents[i] ? version_of(tangents[i]) : 0;
    if (status == TN_OK)
        status = call_jvp(ctx, jvp, tangents, n_inputs, made, n_outputs);
    if (status == TN_OK)
        status = give_tangents(ctx, &(given){inputs, tangents, versions, n_inputs}, outputs,
                               n_outputs, made);
    tni_tls.no_forward_grad = old;
    if (status == TN_OK)
        status = give_saved(ctx);
    for (int i = 0; i < n; i++)
        tn_tensor_unref(tangents[i]);
    tni_free(tangents);
    return status;
}
