/* SPDX-License-Identifier: MIT */
/**
 * @file  tenon/autograd.h
 * @brief Gradients: backward passes, the graph they run over, hooks, and finding out what went
 *        wrong.
 *
 * A call of an operator on a tensor that requires grad, while tn_grad_enabled(), records a node. A
 * backward pass starts at results and runs the nodes in turn, down to the leaves, whose gradients
 * it adds up (tn_backward) or hands over (tn_grad).
 *
 * Threads: a pass runs on the thread that calls it, to its end. Passes on several threads may share
 * nodes and leaves; gradients of a shared leaf are added one at a time. A pass may be started
 * inside a hook or a node of another, to any depth that memory allows (tn_set_pass_stack_limit): it
 * runs its own nodes and nothing else. No lock is held while a node, a hook or a release function
 * runs.
 *
 * Failure: the first one ends the pass and is returned. Gradients that were added before stay, the
 * graph stays usable where nodes did not yet run.
 */
#ifndef TN_AUTOGRAD_H
#define TN_AUTOGRAD_H

#include "tenon/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/** One recorded call. Nodes live as long as results, later nodes or references need them. */
typedef struct tn_node tn_node;

/* ---- backward ---- */

/** Options of tn_backward. Start from TN_BACKWARD_OPTS_INIT; NULL means the same. */
typedef struct tn_backward_opts {
    uint32_t size;        /**< sizeof(tn_backward_opts) */
    int32_t retain_graph; /**< tn_opt_bool: keep what nodes saved, to run again; NONE: as
                               create_graph */
    int32_t create_graph; /**< tn_opt_bool: record the pass itself, to differentiate again */
    uint32_t reserved;
    tn_tensor *const *inputs; /**< add up gradients of these alone; NULL: of every leaf */
    int64_t n_inputs;
} tn_backward_opts;

/* clang-format off */
#define TN_BACKWARD_OPTS_INIT {sizeof(tn_backward_opts), TN_BOOL_NONE, TN_BOOL_FALSE, 0, NULL, 0}
/* clang-format on */

/**
 * Add the gradients of the sum of @p tensors to `.grad` of the leaves they came from.
 *
 * What a node saved is let go right after its turn, so a second pass over the same graph fails,
 * unless retain_graph says otherwise.
 *
 * @param grads  one for each tensor, of the same shape: what the tensor is multiplied with. NULL,
 *               or NULL in it: one, which only a tensor of one element and a real dtype may leave
 *               to us
 * @param opts   with `inputs` an input that is no leaf gets its `.grad` too, and keeps getting it
 *               (tn_tensor_retain_grad)
 * @retval TN_INVALID  a tensor does not require grad; no gradient was given where one is needed; a
 *                     shape differs; a saved value was changed or is gone; a node failed
 */
TN_API TN_NODISCARD tn_status tn_backward(tn_tensor *const *tensors, int64_t n,
                                          tn_tensor *const *grads, const tn_backward_opts *opts);
/** tn_backward of one tensor of one element, with no options. */
TN_API TN_NODISCARD tn_status tn_tensor_backward(tn_tensor *t);

/** Options of tn_grad. Start from TN_GRAD_OPTS_INIT; NULL means the same. */
typedef struct tn_grad_opts {
    uint32_t size;             /**< sizeof(tn_grad_opts) */
    int32_t retain_graph;      /**< tn_opt_bool, as in tn_backward_opts */
    int32_t create_graph;      /**< tn_opt_bool, as in tn_backward_opts */
    int32_t allow_unused;      /**< tn_opt_bool: an input that was not used gives NULL; NONE: as
                                    materialize_grads */
    int32_t materialize_grads; /**< tn_opt_bool: zeros instead of that NULL */
    uint32_t reserved;
} tn_grad_opts;

/* clang-format off */
#define TN_GRAD_OPTS_INIT \
    {sizeof(tn_grad_opts), TN_BOOL_NONE, TN_BOOL_FALSE, TN_BOOL_NONE, TN_BOOL_FALSE, 0}
/* clang-format on */

/**
 * The gradients of the sum of @p outputs with respect to @p inputs. Touches no `.grad`, and runs
 * only the nodes that lead to an input.
 *
 * @param grad_outputs  as `grads` of tn_backward
 * @param out           room for @p n_inputs tensors, each owned by the caller afterwards, or NULL
 *                      for an input that was not used; written on success only
 * @retval TN_INVALID  an input does not require grad, or was not used and opts does not allow it
 * @retval TN_VALUE    no inputs; allow_unused is false and materialize_grads true
 */
TN_API TN_NODISCARD tn_status tn_grad(tn_tensor *const *outputs, int64_t n_outputs,
                                      tn_tensor *const *inputs, int64_t n_inputs,
                                      tn_tensor *const *grad_outputs, const tn_grad_opts *opts,
                                      TN_OWNED tn_tensor **out);

/** Call @p fn once the pass that runs on this thread has run all its nodes, with the grad mode of
 *  the pass's caller; a failure becomes the pass's. @p release (may be NULL) is called with @p ctx
 *  afterwards, or when the pass fails. @retval TN_INVALID  no pass runs on this thread */
TN_API TN_NODISCARD tn_status tn_queue_callback(tn_status (*fn)(void *ctx), void *ctx,
                                                void (*release)(void *ctx));

/** Asked between the turns of nodes: a failure ends the pass with it. */
typedef tn_status (*tn_interrupt_fn)(void);
/**
 * Who is asked whether a pass shall go on, on the thread that runs it; NULL: nobody. For the whole
 * process. For embedders who must stay able to stop a long pass (Ctrl+C, a deadline): it is asked
 * before every node, so it should answer in nanoseconds. Returns who was asked so far.
 */
TN_API tn_interrupt_fn tn_set_interrupt_check(tn_interrupt_fn fn);

/**
 * How many bytes of memory passes inside passes may take on a thread for more stack, once its own
 * is nearly used up; 256 MiB unless told otherwise, 0: none. For the whole process, from the next
 * pass on. A pass inside another beyond that fails with TN_RECURSION. Returns what it was.
 *
 * A hook or node then runs on the same thread, but on another stack. Who looks at stack addresses
 * (some interpreters and garbage collectors do) wants 0.
 */
TN_API size_t tn_set_pass_stack_limit(size_t nbytes);

/* ---- tensors ---- */

/** What backward passes added up; NULL when nothing. Valid until it is set or replaced. */
TN_API TN_BORROWED tn_tensor *tn_tensor_grad(const tn_tensor *t);
/** The same as a reference: also while other threads run passes that replace it. */
TN_API TN_OWNED tn_tensor *tn_tensor_grad_ref(const tn_tensor *t);
/** Make @p grad the gradient, NULL: none. @retval TN_INVALID  another shape, dtype or device, or
 *  the tensor itself */
TN_API TN_NODISCARD tn_status tn_tensor_set_grad(tn_tensor *t, tn_tensor *grad);
/** The node that made @p t; NULL for a leaf. Valid while @p t keeps its history. Of a view whose
 *  base was written since, the history is rebuilt first.
 *  @retval TN_INVALID  the view was made in a way that forbids this */
TN_API TN_NODISCARD tn_status tn_tensor_grad_fn(tn_tensor *t, TN_BORROWED tn_node **out);
/** The node that made @p t, when nobody else keeps that node and nobody but the caller keeps @p t;
 *  else NULL. For collectors of garbage: what hangs on the node then hangs on the caller alone. */
TN_API TN_BORROWED tn_node *tn_tensor_own_node(const tn_tensor *t);
/** Where the gradient of @p t goes: the node that made it and which of its results it is; of a leaf
 *  that requires grad its accumulator, made now if there is none; else NULL.
 *  @param out_input  may be NULL */
TN_API TN_NODISCARD tn_status tn_tensor_gradient_edge(tn_tensor *t, TN_OWNED tn_node **out,
                                                      uint32_t *out_input);
/** A tensor whose gradient takes that edge, to be given to tn_backward and tn_grad in the place of
 * one that is gone: of a leaf the leaf itself, else one that looks the same, on the CPU with
 * elements that are 0.
 *  @retval TN_INDEX  there is no such input; @retval TN_INVALID  it never gets a gradient */
TN_API TN_NODISCARD tn_status tn_tensor_at_edge(tn_node *node, uint32_t input,
                                                TN_OWNED tn_tensor **out);
/** Which result of that node @p t is; 0 for a leaf. */
TN_API uint32_t tn_tensor_output_nr(tn_tensor *t);
/** No node made it: its gradient, if it requires one, is added up in `.grad`. */
TN_API bool tn_tensor_is_leaf(tn_tensor *t);
/** Of a view that gradients can go through: what it is at root a view of; else NULL. */
TN_API TN_BORROWED tn_tensor *tn_tensor_base(const tn_tensor *t);
TN_API bool tn_tensor_is_view(const tn_tensor *t);
/** The same elements without history, like `detach`, but counting writes on its own: writing it is
 *  not noticed by those who saved @p t. */
TN_API TN_NODISCARD tn_status tn_tensor_data_alias(tn_tensor *t, TN_OWNED tn_tensor **out);
/** Make @p t another name for the elements of @p source, sizes and dtype included: history, `.grad`
 *  and hooks of @p t stay. Its views stay with the old elements; @p t itself is no view afterwards,
 *  unless the elements are in the memory that it was a view of.
 *  @retval TN_INVALID  another kind of device; no gradient can be of @p source's dtype */
TN_API TN_NODISCARD tn_status tn_tensor_set_data(tn_tensor *t, tn_tensor *source);
/** Count a write of @p t that no operator made, so that those who saved it notice.
 *  @retval TN_INVALID  an inference tensor, outside inference mode */
TN_API TN_NODISCARD tn_status tn_tensor_bump_version(tn_tensor *t);
/** Keep the gradient of @p t in `.grad` too, though it is no leaf. Does nothing for a leaf, nor a
 *  second time. @retval TN_INVALID  it does not require grad */
TN_API TN_NODISCARD tn_status tn_tensor_retain_grad(tn_tensor *t);
TN_API bool tn_tensor_retains_grad(const tn_tensor *t);

/* ---- hooks ---- */

/* In one turn of a node: tensor hooks of its results in the order they were added, then kept
 * gradients (tn_tensor_retain_grad), node pre-hooks, the node itself, for the accumulator of a leaf
 * post-accumulate hooks, then node post-hooks. All run with the grad mode of the pass, inside a
 * scope that ends with the turn, so that tnx_ functions may be used. A hook that fails fails the
 * pass. A hook may add and remove hooks; that takes effect with the next turn, except that a
 * removed hook is not called any more, and that post-hooks which are added in a node's turn are
 * called at its end. */

/** A hook that was added. Release with tn_hook_unref, or take the hook away with tn_hook_remove. */
typedef struct tn_hook tn_hook;

/** Sees the gradient of a tensor. To replace it, set *@p out (NULL on entry) to a tensor of the
 *  same shape and dtype. */
typedef tn_status (*tn_tensor_hook_fn)(void *ctx, tn_tensor *grad, TN_OWNED tn_tensor **out);
/** Called after a gradient was added to `.grad` of the leaf @p t. */
typedef tn_status (*tn_accumulated_hook_fn)(void *ctx, tn_tensor *t);
/** What a node's hook sets in `out` to make a gradient undefined: nothing flows there. No tensor:
 *  it is not released. */
#define TN_NO_GRADIENT ((tn_tensor *)(uintptr_t)1)
/** Sees the gradients that come to a node, NULL for undefined ones. To replace one, set out[i] (all
 *  NULL on entry) to a tensor, or to TN_NO_GRADIENT. */
typedef tn_status (*tn_node_pre_hook_fn)(void *ctx, tn_node *node, tn_tensor *const *grads,
                                         int64_t n, TN_OWNED tn_tensor **out);
/** Sees what a node made of @p grads: one result for each edge, NULL for undefined ones, in the
 *  shape and dtype that the next node wants. To replace one, set out[i] (all NULL on entry) to a
 *  tensor, or to TN_NO_GRADIENT. */
typedef tn_status (*tn_node_post_hook_fn)(void *ctx, tn_node *node, tn_tensor *const *results,
                                          int64_t n_results, tn_tensor *const *grads,
                                          int64_t n_grads, TN_OWNED tn_tensor **out);

/**
 * Call @p fn with the gradient of @p t in every pass that reaches it, before it is used, also when
 * the pass ends there (tn_grad). Not called for an undefined gradient. Writing @p t in place later
 * leaves the hook with what @p t was before.
 *
 * @param release  called with @p ctx when the hook can not be called any more; may be NULL. Not
 *                 called when adding fails
 * @param out      NULL: the hook stays for good
 * @retval TN_INVALID  @p t does not require grad
 */
TN_API TN_NODISCARD tn_status tn_tensor_add_hook(tn_tensor *t, tn_tensor_hook_fn fn, void *ctx,
                                                 void (*release)(void *ctx),
                                                 TN_OWNED tn_hook **out);
/** The same for what is called after a gradient was added to `.grad`.
 *  @retval TN_INVALID  not a leaf, or does not require grad */
TN_API TN_NODISCARD tn_status tn_tensor_add_accumulated_hook(tn_tensor *t,
                                                             tn_accumulated_hook_fn fn, void *ctx,
                                                             void (*release)(void *ctx),
                                                             TN_OWNED tn_hook **out);
/** The same for a node, before its turn and after. Hooks of the accumulator of a leaf go with it,
 *  when nothing points at it any more. */
TN_API TN_NODISCARD tn_status tn_node_add_pre_hook(tn_node *node, tn_node_pre_hook_fn fn, void *ctx,
                                                   void (*release)(void *ctx),
                                                   TN_OWNED tn_hook **out);
TN_API TN_NODISCARD tn_status tn_node_add_post_hook(tn_node *node, tn_node_post_hook_fn fn,
                                                    void *ctx, void (*release)(void *ctx),
                                                    TN_OWNED tn_hook **out);
/** Take the hook away, also while it runs. NULL does nothing. */
TN_API void tn_hook_remove(TN_STOLEN tn_hook *hook);
/** Whether the pass of this thread has run, will run or ends at what the hook was added to. Knows
 *  that also when the tensor was written since, or is gone. false outside a pass. */
TN_API bool tn_hook_in_pass(const tn_hook *hook);
/** Drop the handle; the hook stays. NULL does nothing. */
TN_API void tn_hook_unref(TN_STOLEN tn_hook *hook);
/** For collectors of garbage: call @p visit with the context of every hook of the leaf @p t that
 * was added with @p release, when nobody but the caller keeps @p t; these contexts then hang on the
 *  caller alone. Ends with the first @p visit that returns something else than 0, and returns that.
 *  @p visit must neither add nor remove hooks. NULL has none. */
TN_API int tn_tensor_visit_hooks(const tn_tensor *t, void (*release)(void *ctx),
                                 int (*visit)(void *ctx, void *arg), void *arg);
/** Take away all hooks of the leaf @p t, when nobody but the caller keeps @p t; else nothing is
 *  done. Contexts are released, those of hooks with a handle together with that. */
TN_API void tn_tensor_clear_hooks(tn_tensor *t);
/** The same for the hooks of a node, and of the result whose gradient comes to it, when the one
 *  reference to @p node is the caller's. */
TN_API int tn_node_visit_hooks(tn_node *node, void (*release)(void *ctx),
                               int (*visit)(void *ctx, void *arg), void *arg);
TN_API void tn_node_clear_hooks(tn_node *node);

/* ---- looking at the graph; NULL gives 0 or NULL ---- */

TN_API TN_OWNED tn_node *tn_node_ref(tn_node *node);
/** The same for a node that may be on its way out, which then gives NULL. For those who hold it
 *  without a reference and hear of its end (tn_function.state_destroy) before its memory goes. */
TN_API TN_OWNED tn_node *tn_node_try_ref(tn_node *node);
/** The last reference frees the graph behind it, however long. */
TN_API void tn_node_unref(TN_STOLEN tn_node *node);
/**
 * What @p node makes of gradients, outside of a pass: no hook is called, what it saved stays, and
 * the call is recorded when grad mode is on. An accumulator adds to `.grad`.
 *
 * @param grads  one for each input (tn_node_num_inputs), NULL for undefined ones
 * @param out    one for each edge (tn_node_num_edges), NULL where nothing flows; all are written on
 *               success, none otherwise
 * @retval TN_INVALID  another number of gradients; one does not fit; what the node saved is freed
 */
TN_API TN_NODISCARD tn_status tn_node_call(tn_node *node, tn_tensor *const *grads, int64_t n,
                                           TN_OWNED tn_tensor **out);
/** "MulBackward0", "AccumulateGrad" … */
TN_API TN_BORROWED const char *tn_node_name(const tn_node *node);
/** Counts the nodes of the thread that made it: larger ones run first. UINT64_MAX: an accumulator.
 */
TN_API uint64_t tn_node_sequence_nr(const tn_node *node);
/** 0 for accumulators, else more than that of every node it has an edge to. */
TN_API uint32_t tn_node_topological_nr(const tn_node *node);
/** How many gradients it gives: one for each differentiable argument of the call. */
TN_API uint32_t tn_node_num_edges(const tn_node *node);
/** Where result @p i goes; NULL: nowhere. *out_input (may be NULL): which input of that node. */
TN_API TN_BORROWED tn_node *tn_node_edge(const tn_node *node, uint32_t i, uint32_t *out_input);
/** How many gradients it takes: one for each result of the call. */
TN_API uint32_t tn_node_num_inputs(const tn_node *node);

/** What a gradient that comes to a node looks like. */
typedef struct tn_node_input {
    uint32_t size; /**< sizeof(tn_node_input) */
    tn_dtype dtype;
    tn_device device;
    int32_t ndim;
    const int64_t *sizes; /**< lives as long as the node */
} tn_node_input;
/** @retval TN_INDEX  there is no such input; @retval TN_INVALID  it never gets a gradient */
TN_API TN_NODISCARD tn_status tn_node_get_input(const tn_node *node, uint32_t i,
                                                tn_node_input *out);
/** How many tensors the node keeps for its turn; 0 once they were let go. */
TN_API uint32_t tn_node_num_saved(const tn_node *node);
/** Of the accumulator of a leaf: the leaf; else NULL. */
TN_API TN_BORROWED tn_tensor *tn_node_variable(const tn_node *node);
/** The node whose turn it is on this thread; NULL outside a pass. */
TN_API TN_BORROWED tn_node *tn_current_node(void);
/** A number for the innermost pass on this thread, which no other that runs has; 0 outside. */
TN_API uint32_t tn_current_pass(void);
/** Whether that pass has run @p node, will run it, or ends at it (tn_grad). false outside a pass.
 */
TN_API bool tn_pass_runs(const tn_node *node);
/** No pass that this thread is in was told to stop at inputs (tn_grad, `inputs` of tn_backward):
 * all gradients that a pass inside would add up are wanted. */
TN_API bool tn_passes_are_whole(void);

/* ---- finding out what went wrong ---- */

/** What anomaly mode does, for the whole process. It costs much: for debugging. */
enum {
    /** A node notes where it was made: what the tracer says, and which calls its thread was in; and
     *  in which node's turn, for nodes that a pass records. When a node fails, the message goes on
     *  with that. */
    TN_ANOMALY_TRACE = 1,
    /** A NaN in the result of a node fails the pass. */
    TN_ANOMALY_CHECK_NAN = 2,
    /** A NaN, or an Inf, in the result of a call that is recorded fails the call, with the
     *  operator's name: the first one is where the trouble began. */
    TN_ANOMALY_FORWARD_NAN = 4,
    TN_ANOMALY_FORWARD_INF = 8,
    /** What is usually wanted. Infinities are often meant (masks). */
    TN_ANOMALY_ON = 7,
};
TN_API uint32_t tn_anomaly_mode(void);
/** Any of the bits above, 0: off. Returns what it was, so that uses nest. */
TN_API uint32_t tn_set_anomaly_mode(uint32_t bits);
/** Writes at most @p n bytes of text to @p buffer, with the closing 0: where this thread is, in the
 *  words of the caller's language. Lines end with a newline. */
typedef void (*tn_anomaly_tracer_fn)(void *ctx, char *buffer, size_t n);
/** Who to ask where a node is made; NULL: nobody. For the whole process. */
TN_API void tn_set_anomaly_tracer(tn_anomaly_tracer_fn fn, void *ctx);
/** What was noted when @p node was made, "" when nothing. Lives as long as the node. */
TN_API TN_BORROWED const char *tn_node_made_at(const tn_node *node);

/* ---- functions that are differentiated as a whole ---- */

/** What tn_transform_begin changed. */
typedef struct tn_transform_guard {
    uint32_t number; /**< of this transform, more than that of those before */
    uint32_t outer, outer_differentiating;
} tn_transform_guard;
/**
 * From here on, until tn_transform_end on the same thread, it runs a function that is transformed
 * as a whole. If it is one that @p differentiates, in-place operators on tensors that were there
 * before fail with TN_INVALID. Transforms nest.
 */
TN_API TN_NODISCARD tn_transform_guard tn_transform_begin(bool differentiates);
TN_API void tn_transform_end(tn_transform_guard guard);
/** Let the memory of @p t, which the function was given, count as made in that transform. Returns
 * in which it was, to be put back afterwards. Any thread; NULL: nothing. */
TN_API uint32_t tn_tensor_set_made_in(tn_tensor *t, uint32_t transform);
/** Whether @p t was there before the transform that this thread is in. NULL: false. */
TN_API bool tn_tensor_is_captured(const tn_tensor *t);

#ifdef __cplusplus
}
#endif
#endif
