/* SPDX-License-Identifier: MIT */
/**
 * @file  tenon/function.h
 * @brief Functions with a gradient of your own, and gradients for operators of your own.
 *
 * A function has a forward part, which computes with grad mode off, and a backward part, which gets
 * the gradients of its results and gives those of its inputs. Between the two it keeps tensors
 * (tn_function_save) and bytes of its own (tn_function_state). Backward parts made of
 * differentiable operators can be differentiated again.
 *
 * Threads: the forward part runs on the thread that calls, the backward part on that of the pass;
 * passes on several threads may run it at once. State is destroyed on the thread that lets the last
 * of the graph go. No lock is held while any of them runs.
 */
#ifndef TN_FUNCTION_H
#define TN_FUNCTION_H

#include "tenon/autograd.h"
#include "tenon/dispatch.h"
#include "tenon/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/** One call of a function, or one run of its backward part; valid while the callback runs. */
typedef struct tn_function_ctx tn_function_ctx;

enum {
    /** Differentiating the backward part is an error, rather than wrong or silently nothing. */
    TN_FUNCTION_ONCE_DIFFERENTIABLE = 1
};

/**
 * The gradients of a function's inputs.
 *
 * @param grads     one for each result, borrowed. One that did not come is zeros, or NULL after
 *                  tn_function_set_materialize_grads(ctx, false).
 * @param out       one for each input, all NULL on entry: owned references; NULL for none. On
 *                  failure they are released.
 * Runs in a scope: tnx_ functions and tn_scope_keep() may be used.
 */
typedef tn_status (*tn_function_backward)(tn_function_ctx *ctx, tn_tensor *const *grads,
                                          int n_grads, TN_OWNED tn_tensor **out, int n_out);

/**
 * Forward mode: the tangents of a function's results. Runs after forward, when an input is dual,
 * with the caller's grad mode.
 *
 * @param tangents  one for each input, borrowed. Zeros for a tensor that has none, or NULL after
 *                  tn_function_set_materialize_grads(ctx, false); NULL for an input that is none.
 * @param out       one for each result, all NULL on entry: owned references, of the shape and dtype
 *                  of the result; NULL for none. For an input that was written in place: its
 *                  tangent from now on. On failure they are released.
 * Runs in a scope: tnx_ functions and tn_scope_keep() may be used.
 */
typedef tn_status (*tn_function_jvp)(tn_function_ctx *ctx, tn_tensor *const *tangents, int n,
                                     TN_OWNED tn_tensor **out, int n_out);

typedef struct tn_function {
    uint32_t size;    /**< sizeof(tn_function) */
    uint32_t flags;   /**< TN_FUNCTION_… */
    const char *name; /**< "Exp": its nodes are called "ExpBackward" */
    /**
     * @param inputs   as given to tn_function_apply; some may be NULL
     * @param outputs  all NULL on entry: owned references. An input may be returned: as it is, or
     *                 written, and then given to tn_function_mark_dirty. On failure they are
     * released.
     */
    tn_status (*forward)(tn_function_ctx *ctx, tn_tensor *const *inputs, int n_inputs,
                         TN_OWNED tn_tensor **outputs, int n_outputs);
    tn_function_backward backward;
    size_t state_size;                  /**< bytes of state for each call, zeroed */
    void (*state_destroy)(void *state); /**< may be NULL */
    tn_function_jvp jvp;                /**< NULL: dual inputs are refused */
} tn_function;

#define TN_FUNCTION_INIT(name_, forward_, backward_)                            \
    {                                                                           \
        sizeof(tn_function), 0, (name_), (forward_), (backward_), 0, NULL, NULL \
    }

/**
 * Call @p fn, which is copied.
 *
 * @param args     for tn_function_args; may be NULL
 * @param outputs  @p n_outputs owned references; some may be NULL
 * @retval TN_INVALID  what forward did cannot be recorded: the reference's texts; or what it
 * returned
 */
TN_API TN_NODISCARD tn_status tn_function_apply(const tn_function *fn, void *args,
                                                tn_tensor *const *inputs, int n_inputs,
                                                TN_OWNED tn_tensor **outputs, int n_outputs);

/**
 * The same for a function that knows how many results it has only when it ran: its forward part
 * gets no room for results (NULL and 0) and names them with tn_function_set_outputs instead.
 *
 * @param out    the results, some may be NULL: release with tn_tensor_list_free
 * @param out_n  how many
 */
TN_API TN_NODISCARD tn_status tn_function_apply_any(const tn_function *fn, void *args,
                                                    tn_tensor *const *inputs, int n_inputs,
                                                    TN_OWNED tn_tensor ***out, int *out_n);

/* ---- in forward ---- */

/** The results of a call of tn_function_apply_any; a second call replaces the first. Some may be
 *  NULL. @retval TN_INVALID  in any other call */
TN_API TN_NODISCARD tn_status tn_function_set_outputs(tn_function_ctx *ctx,
                                                      tn_tensor *const *outputs, int n);
/** What was given to tn_function_apply; NULL in backward. */
TN_API void *tn_function_args(const tn_function_ctx *ctx);
/** The state of this call, the same in forward and backward; NULL when state_size is 0. */
TN_API void *tn_function_state(const tn_function_ctx *ctx);
/** Keep tensors for backward; a second call replaces the first. Some may be NULL. Inputs and
 *  outputs are checked to be unwritten when they are used. */
TN_API TN_NODISCARD tn_status tn_function_save(tn_function_ctx *ctx, tn_tensor *const *tensors,
                                               int n);
/** These inputs were written in place; each must be returned. */
TN_API TN_NODISCARD tn_status tn_function_mark_dirty(tn_function_ctx *ctx, tn_tensor *const *inputs,
                                                     int n);
/** These outputs have no gradient. Outputs of integers never have one. */
TN_API TN_NODISCARD tn_status tn_function_mark_non_differentiable(tn_function_ctx *ctx,
                                                                  tn_tensor *const *outputs, int n);
/** false: backward gets NULL for gradients that did not come. */
TN_API void tn_function_set_materialize_grads(tn_function_ctx *ctx, bool on);

/* ---- in forward and backward ---- */

/** Whether a gradient of input @p i is wanted; in backward, by this run. */
TN_API bool tn_function_needs_input_grad(const tn_function_ctx *ctx, int i);

/* ---- in backward ---- */

TN_API int tn_function_saved_count(const tn_function_ctx *ctx);
/** Tensor @p i of tn_function_save. *out is NULL where that was given.
 *  @retval TN_INVALID  it was written since, or freed by an earlier run; @retval TN_INDEX */
TN_API TN_NODISCARD tn_status tn_function_saved(tn_function_ctx *ctx, int i,
                                                TN_OWNED tn_tensor **out);

/* ---- from outside: the node of a call ---- */

/** The state of the call that @p node stands for, when it is of a function with this
 *  `state_destroy`, which must not be NULL; else NULL. Lives as long as the node. */
TN_API void *tn_node_function_state(const tn_node *node, void (*state_destroy)(void *state));
/** What the function saved, as tn_function_saved; 0 for other nodes. */
TN_API int tn_node_function_saved_count(const tn_node *node);
/** @retval TN_INVALID  it was written since, or freed by a run; @retval TN_INDEX */
TN_API TN_NODISCARD tn_status tn_node_function_saved(tn_node *node, int i,
                                                     TN_OWNED tn_tensor **out);
/** The node of the call, in forward, jvp and backward; valid while the callback runs, unless a
 *  reference is taken. */
TN_API TN_BORROWED tn_node *tn_function_node(const tn_function_ctx *ctx);

/* ---- gradients of operators of your own ---- */

/** How an operator of a library is differentiated: as the built-in ones are, through its autograd
 * kernel. */
typedef struct tn_autograd_formula {
    uint32_t size;  /**< sizeof(tn_autograd_formula) */
    uint32_t flags; /**< TN_FUNCTION_… */
    /** After the operator ran: keep what backward needs. May be NULL. tn_function_args gives `ctx`.
     */
    tn_status (*setup)(tn_function_ctx *ctx, const tn_value *args, int n_args, const tn_value *rets,
                       int n_rets);
    /** One gradient for each tensor that the operator returned, lists opened up; one for each
     * tensor argument, in the order of the schema, lists opened up. */
    tn_function_backward backward;
    size_t state_size;
    void (*state_destroy)(void *state); /**< may be NULL */
    void *ctx;                          /**< tn_function_args() gives it to both */
    void (*destroy)(void *ctx);         /**< once nothing can use it any more; may be NULL */
} tn_autograd_formula;

/**
 * Register how "name" or "name.overload" of the library's namespace is differentiated.
 *
 * @param formula  copied
 * @retval TN_INVALID  the operator has no schema yet; or it writes or aliases its arguments:
 * "Cannot register autograd formula for non-functional operator ..."
 */
TN_API TN_NODISCARD tn_status tn_library_autograd(tn_library *lib, const char *name,
                                                  const tn_autograd_formula *formula,
                                                  tn_registration **out);

#ifdef __cplusplus
}
#endif
#endif
