/* SPDX-License-Identifier: MIT */
/**
 * @file  tenon/checkpoint.h
 * @brief Activation checkpointing: compute again in backward instead of keeping.
 *
 * A checkpointed piece of a model keeps its inputs and forgets what its operators would save; the
 * backward pass runs the piece again when it needs that.
 *
 * Threads: the piece runs on the thread that calls tn_checkpoint, and again on that of a backward
 * pass; passes on several threads may run it at once. No lock is held meanwhile.
 */
#ifndef TN_CHECKPOINT_H
#define TN_CHECKPOINT_H

#include "tenon/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The piece: must do the same each time it runs. @p outputs are NULL on entry: owned references.
 * On failure they are released. */
typedef tn_status (*tn_checkpoint_fn)(void *ctx, tn_tensor *const *inputs, int n_inputs,
                                      TN_OWNED tn_tensor **outputs, int n_outputs);

/** Start from TN_CHECKPOINT_OPTS_INIT; NULL means the same. */
typedef struct tn_checkpoint_opts {
    uint32_t size; /**< sizeof(tn_checkpoint_opts) */
    /** The older form: the piece runs unrecorded, and backward runs a pass of its own inside. Then
     *  only tn_backward without `inputs` and `create_graph` will do, and at least one input must
     *  require grad. */
    bool reentrant;
    bool keep_rng;   /**< the default generator gives the same numbers again; true */
    bool early_stop; /**< running again ends once what is needed is there; true. Not re-entrant. */
    bool check; /**< what is computed again must look like the first time; true. Not re-entrant. */
    void (*destroy)(void *ctx); /**< once the piece cannot run any more; may be NULL */
} tn_checkpoint_opts;

/* clang-format off */
#define TN_CHECKPOINT_OPTS_INIT {sizeof(tn_checkpoint_opts), false, true, true, true, NULL}
/* clang-format on */

/**
 * Run @p fn on @p inputs, some of which may be NULL.
 *
 * @param ctx  must live until opts->destroy is called; on failure that is not called
 * @retval TN_INVALID  in backward: what was computed again differs ("torch.utils.checkpoint: ...");
 * the re-entrant form was used where it cannot be
 */
TN_API TN_NODISCARD tn_status tn_checkpoint(tn_checkpoint_fn fn, void *ctx,
                                            tn_tensor *const *inputs, int n_inputs,
                                            TN_OWNED tn_tensor **outputs, int n_outputs,
                                            const tn_checkpoint_opts *opts);

#ifdef __cplusplus
}
#endif
#endif
