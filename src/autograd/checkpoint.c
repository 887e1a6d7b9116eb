/* SPDX-License-Identifier: MIT */
/* autograd/checkpoint.c: activation checkpointing: the piece, its first run, and the re-entrant
 * form. */
#include "autograd/checkpoint.h"

#include "autograd/engine.h"
#include "autograd/forward.h"
#include "tenon/autograd.h"
#include "tenon/ops.h"
#include "tenon/saved_hooks.h"

/* ---- the piece ---- */

static void piece_release(void *object)
{
    tni_piece *piece = object;
    tni_again_free_all(piece);
    for (uint32_t i = 0; i < piece->n; i++)
        tni_free(piece->looks[i].sizes);
    tni_free(piece->looks);
    tni_node_unref(piece->inputs);
    if (piece->destroy)
        piece->destroy(piece->ctx);
}

static void piece_destroy(void *object)
{
    tni_free(object);
}

static const tni_type piece_type = {"checkpointed piece", piece_release, piece_destroy, NULL};

static tn_status never_runs(tn_function_ctx *ctx, tn_tensor *const *grads, int n_grads,
                            tn_tensor **out, int n_out)
{
    (void)ctx;
    (void)grads;
    (void)n_grads;
    (void)out;
    (void)n_out;
    return TN_OK;
}

/* Inputs are saved as any saved value is: checked to be unwritten, and packed by hooks around the
 * piece, those of a piece that this one is part of above all. */
static tn_status save_inputs(tn_tensor *const *inputs, int n, tni_node **out)
{
    tni_function_spec spec = {.name = "Checkpoint", .backward = never_runs};
    TN_AUTO(tni_node) node = NULL;
    TN_TRY(tni_function_node(&spec, NULL, 0, 0, false, &node));
    tn_function_ctx ctx = {.node = node, .fn = node->data};
    tn_status status = tn_function_save(&ctx, inputs, n);
    if (status == TN_OK)
        status = tni_function_save_all(&ctx);
    tni_marks_clear(&ctx.save);
    TN_TRY(status);
    *out = TN_MOVE(node);
    return TN_OK;
}

/* Whether what operators save is forgotten: not where they save nothing, nor where tangents are
 * pushed, for their formulas ask for it at once. */
static bool forgets(void)
{
    return tn_grad_enabled() && !(tni_forward_on && !tni_tls.no_forward_grad);
}

tn_status tni_piece_new(tn_checkpoint_fn fn, void *ctx, tn_tensor *const *inputs, int n_inputs,
                        int n_outputs, const tn_checkpoint_opts *opts, tni_piece **out)
{
    TN_AUTO(tni_node) saved = NULL;
    /* Re-entrant: the function's own node saves them. Nothing forgotten: nothing runs again. */
    if (!opts->reentrant && forgets())
        TN_TRY(save_inputs(inputs, n_inputs, &saved));
    tni_piece *piece = tni_calloc(sizeof *piece);
    TN_CHECK(piece, TN_NOMEM, "cannot allocate a checkpoint");
    tni_object_init(&piece->object, &piece_type);
    piece->fn = fn;
    piece->ctx = ctx;
    piece->inputs = TN_MOVE(saved);
    piece->n_inputs = n_inputs;
    piece->n_outputs = n_outputs;
    piece->keep_rng = opts->keep_rng;
    piece->early_stop = opts->early_stop;
    piece->check = opts->check;
    piece->rng = tn_generator_get_state(tn_default_generator());
    *out = piece;
    return TN_OK;
}

tn_status tni_piece_inputs(tni_piece *piece, tn_tensor **out)
{
    tni_function *fn = piece->inputs->data;
    for (int i = 0; i < piece->n_inputs; i++) {
        tn_status status = tni_saved_unpack(piece->inputs, &fn->saved[i], &out[i]);
        if (status == TN_OK)
            continue;
        while (i > 0)
            tn_tensor_unref(out[--i]);
        return status;
    }
    return TN_OK;
}

tn_status tni_piece_run(tni_piece *piece, tn_tensor *const *inputs, tn_tensor **outputs)
{
    tn_generator *generator = tn_default_generator();
    tn_generator_state now = tn_generator_get_state(generator);
    if (piece->keep_rng)
        tn_generator_set_state(generator, piece->rng);
    bool grad = tn_set_grad_enabled(true);
    tn_status status = piece->fn(piece->ctx, inputs, piece->n_inputs, outputs, piece->n_outputs);
    tn_set_grad_enabled(grad);
    if (piece->keep_rng)
        tn_generator_set_state(generator, now);
    for (int i = 0; i < piece->n_outputs && status != TN_OK; i++)
        tn_tensor_unref(TN_MOVE(outputs[i]));
    return status;
}

/* ---- re-entrant ---- */

static tn_status reentrant_forward(tn_function_ctx *ctx, tn_tensor *const *inputs, int n_inputs,
                                   tn_tensor **outputs, int n_outputs)
{
    tni_piece *piece = tn_function_args(ctx), **mine = tn_function_state(ctx);
    TN_TRY(piece->fn(piece->ctx, inputs, n_inputs, outputs, n_outputs));
    tni_ref(&piece->object);
    *mine = piece;
    return tn_function_save(ctx, inputs, n_inputs);
}

static void reentrant_destroy(void *state)
{
    tni_piece *piece = *(tni_piece **)state;
    if (piece)
        tni_piece_unref(piece);
}

/* The inputs as leaves of a graph of their own. */
static tn_status fresh_inputs(tn_function_ctx *ctx, tn_tensor **out, int n)
{
    for (int i = 0; i < n; i++) {
        TN_AUTO(tn_tensor) input = NULL;
        TN_TRY(tn_function_saved(ctx, i, &input));
        if (!input)
            continue;
        TN_TRY(tni_detached(input, &out[i]));
        if (tni_requires_grad(input))
            TN_TRY(tn_tensor_set_requires_grad(out[i], true));
    }
    return TN_OK;
}

static tn_status backward_inside(tn_tensor **outputs, tn_tensor *const *grads, int n)
{
    tn_tensor **from = tni_alloc(2 * (size_t)n * sizeof *from);
    TN_CHECK(from, TN_NOMEM, "cannot list %d results of a checkpoint", n);
    int count = 0;
    for (int i = 0; i < n; i++) {
        if (!tni_requires_grad(outputs[i]))
            continue;
        from[n + count] = grads[i];
        from[count++] = outputs[i];
    }
    tn_status status = TN_OK;
    if (count == 0)
        status = tni_fail(TN_INVALID, TNI_WHERE,
                          "none of output has requires_grad=True, this checkpoint() is not "
                          "necessary");
    else
        status = tn_backward(from, count, from + n, NULL);
    tni_free(from);
    return status;
}

static tn_status reentrant_backward(tn_function_ctx *ctx, tn_tensor *const *grads, int n_grads,
                                    tn_tensor **out, int n_out)
{
    TN_CHECK(tni_passes_are_whole(), TN_INVALID,
             "When use_reentrant=True, torch.utils.checkpoint is incompatible with .grad() or "
             "passing an `inputs` parameter to .backward(). To resolve this error, you can either "
             "set use_reentrant=False, or call .backward() without passing the `inputs` argument.");
    TN_CHECK(!tn_grad_enabled(), TN_INVALID,
             "When use_reentrant=True, torch.utils.checkpoint is incompatible with "
             "create_graph=True: the gradients of the pass inside have no history, and what is "
             "computed from them would miss a term. To resolve this error, set "
             "use_reentrant=False.");
    tni_piece *piece = *(tni_piece **)tn_function_state(ctx);
    tn_tensor **inputs = tni_calloc((size_t)(n_out + n_grads) * sizeof *inputs);
    TN_CHECK(inputs, TN_NOMEM, "cannot list %d inputs of a checkpoint", n_out);
    tn_tensor **outputs = inputs + n_out;
    tn_status status = fresh_inputs(ctx, inputs, n_out);
    if (status == TN_OK)
        status = tni_piece_run(piece, inputs, outputs);
    if (status == TN_OK)
        status = backward_inside(outputs, grads, n_grads);
    for (int i = 0; i < n_out && status == TN_OK; i++)
        out[i] = tn_tensor_ref(tn_tensor_grad(inputs[i]));
    for (int i = 0; i < n_out + n_grads; i++)
        tn_tensor_unref(inputs[i]);
    tni_free(inputs);
    return status;
}

/* ---- the first run ---- */

static tn_status first_run(tni_piece *piece, tn_tensor *const *inputs, tn_tensor **outputs)
{
    TN_TRY(tni_piece_push_hooks(piece));
    tn_status status = piece->fn(piece->ctx, inputs, piece->n_inputs, outputs, piece->n_outputs);
    tni_error error;
    tni_error_take(&error); /* taking the hooks off must not replace what went wrong */
    tn_status popped = tn_saved_hooks_pop();
    piece->ran = true;
    if (status != TN_OK) {
        (void)tni_error_raise(&error);
        return status;
    }
    tni_error_drop(&error);
    return popped;
}

tn_status tn_checkpoint(tn_checkpoint_fn fn, void *ctx, tn_tensor *const *inputs, int n_inputs,
                        tn_tensor **outputs, int n_outputs, const tn_checkpoint_opts *opts)
{
    static const tn_checkpoint_opts usual = TN_CHECKPOINT_OPTS_INIT;
    static const tn_function reentrant = {.size = sizeof(tn_function),
                                          .name = "CheckpointFunction",
                                          .forward = reentrant_forward,
                                          .backward = reentrant_backward,
                                          .state_size = sizeof(tni_piece *),
                                          .state_destroy = reentrant_destroy};
    opts = opts ? opts : &usual;
    TN_CHECK(fn && opts->size == sizeof *opts && n_inputs >= 0 && (inputs || n_inputs == 0) &&
                 n_outputs >= 1 && outputs,
             TN_INVALID, "tn_checkpoint: expected a function, its inputs and room for its outputs");
    TN_AUTO(tni_piece) piece = NULL;
    TN_TRY(tni_piece_new(fn, ctx, inputs, n_inputs, n_outputs, opts, &piece));
    tn_tensor **made = tni_calloc((size_t)n_outputs * sizeof *made);
    TN_CHECK(made, TN_NOMEM, "cannot allocate %d results of a checkpoint", n_outputs);
    tn_status status = TN_OK;
    if (opts->reentrant)
        status = tn_function_apply(&reentrant, piece, inputs, n_inputs, made, n_outputs);
    else if (forgets())
        status = first_run(piece, inputs, made);
    else
        status = fn(ctx, inputs, n_inputs, made, n_outputs);
    for (int i = 0; i < n_outputs; i++) {
        if (status == TN_OK)
            outputs[i] = made[i];
        else
            tn_tensor_unref(made[i]);
    }
    tni_free(made);
    if (status == TN_OK)
        piece->destroy = opts->destroy; /* from here on it is ours to call */
    return status;
}
