/* SPDX-License-Identifier: MIT */
/**
 * @file  tenon/saved_hooks.h
 * @brief Decide what is kept of a tensor that is saved for the backward pass.
 *
 * A pair of functions is put on a stack of the calling thread. While it is the topmost, `pack` is
 * called for every tensor that a recorded operator saves, and what it returns is kept in place of
 * the tensor; `unpack` gives a tensor back when the backward pass needs one. That is how saved
 * values go to disk, are made smaller, or are computed again.
 */
#ifndef TN_SAVED_HOOKS_H
#define TN_SAVED_HOOKS_H

#include "tenon/autograd.h"
#include "tenon/dispatch.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A pair of hooks. The functions are called from any thread that records or runs backward. */
typedef struct tn_saved_hooks {
    uint32_t size; /**< sizeof(tn_saved_hooks) */
    uint32_t reserved;
    /**
     * Keep something for @p t, which is borrowed. Runs with grad mode off; must not write @p t.
     * @param out  what `unpack` and `drop` get; may be anything, NULL too
     */
    tn_status (*pack)(void *ctx, tn_tensor *t, void **out);
    /** The tensor again. May be called any number of times. */
    tn_status (*unpack)(void *ctx, void *packed, TN_OWNED tn_tensor **out);
    /** @p packed is needed no more; may be NULL. */
    void (*drop)(void *ctx, void *packed);
    void *ctx;
    /** Once the pair is off the stack and nothing that it packed is left; may be NULL. */
    void (*destroy)(void *ctx);
} tn_saved_hooks;

/**
 * Put @p hooks, which is copied, on this thread's stack. What a node of a backward pass or a hook
 * of one does to the stack is undone after its turn.
 *
 * @retval TN_INVALID  a function is missing; or hooks are disabled, with the text given then
 * @retval TN_NOMEM    `destroy` was not called
 */
TN_API TN_NODISCARD tn_status tn_saved_hooks_push(const tn_saved_hooks *hooks);
/** Take the topmost pair off. What it packed stays packed. @retval TN_INVALID  there is none */
TN_API TN_NODISCARD tn_status tn_saved_hooks_pop(void);
/** Whether there are hooks on this thread's stack: what is saved now goes through the topmost. */
TN_API bool tn_saved_hooks_on(void);
/**
 * From now on tn_saved_hooks_push on this thread fails with @p message; NULL allows it again.
 *
 * @param out_old  may be NULL; the message so far, to put it back, NULL when there was none: free
 * it with tn_string_free
 * @retval TN_INVALID  there are hooks on the stack already: the text is @p message
 * @retval TN_NOMEM
 */
TN_API TN_NODISCARD tn_status tn_saved_hooks_disable(const char *message, TN_OWNED char **out_old);

/** Saved value @p i of @p node, see tn_node_num_saved; *out is NULL where it saved none.
 *  @retval TN_INVALID  it was written or freed since; @retval TN_INDEX  no such value */
TN_API TN_NODISCARD tn_status tn_node_saved(tn_node *node, uint32_t i, TN_OWNED tn_tensor **out);
/** What saved value @p i is called in the operator's declaration ("self", "result"); NULL when
 * there is no such value, or it has no name. */
TN_API TN_BORROWED const char *tn_node_saved_name(const tn_node *node, uint32_t i);
/** What kept value @p i is called: the arguments that the node's formula reads and that are no
 * single tensors, by their names ("dim"), and what it reads of tensors ("self_sym_sizes"). NULL
 * when there is no such value. */
TN_API TN_BORROWED const char *tn_node_kept_name(const tn_node *node, uint32_t i);
/**
 * Kept value @p i of @p node. Numbers, texts and lists of them are there as long as the node, and a
 * list borrows from it; tensors are gone when what the node saved is, and are owned by the value.
 * Release it with tn_value_clear. Any thread.
 *
 * @retval TN_INVALID  a tensor was written or freed since
 * @retval TN_INDEX  no such value; @retval TN_NOMEM
 */
TN_API TN_NODISCARD tn_status tn_node_kept(tn_node *node, uint32_t i, TN_OWNED tn_value *out);
/**
 * Hooks for saved value @p i of @p node alone; `pack` is called at once.
 *
 * @retval TN_INVALID  it has hooks already, was freed, or is nothing: the reference's texts
 * @retval TN_INDEX  no such value
 */
TN_API TN_NODISCARD tn_status tn_node_saved_register_hooks(tn_node *node, uint32_t i,
                                                           const tn_saved_hooks *hooks);
/** The same for what a function saved: tensor @p i of tn_function_save (tenon/function.h). */
TN_API TN_NODISCARD tn_status tn_node_function_saved_register_hooks(tn_node *node, int i,
                                                                    const tn_saved_hooks *hooks);

#ifdef __cplusplus
}
#endif
#endif
