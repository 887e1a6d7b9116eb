/* SPDX-License-Identifier: MIT */
/* autograd/checkpoint.h: a piece of a model that runs again in backward. */
#ifndef TNI_AUTOGRAD_CHECKPOINT_H
#define TNI_AUTOGRAD_CHECKPOINT_H

#include "autograd/function.h"
#include "tenon/checkpoint.h"

/* What a tensor that was saved looked like. */
typedef struct tni_look {
    int8_t dtype;
    uint8_t ndim;
    tn_device device;
    int64_t *sizes; /* owned; NULL for none */
} tni_look;

/* A piece and what it ran on. Counted: what it packed holds it. */
typedef struct tni_piece {
    tni_object object;
    tn_checkpoint_fn fn;
    void *ctx;
    void (*destroy)(void *ctx);
    tni_node *inputs; /* strong; a node that saved them, under the hooks around the piece */
    int n_inputs, n_outputs;
    tn_generator_state rng;
    bool keep_rng, early_stop, check;
    bool ran; /* the first run has ended: `n` is all that it saves */
    /* Not re-entrant: what its operators saved the first time. */
    tni_look *looks;
    uint32_t n, capacity;
    tni_spin lock;
    struct tni_again *again; /* what backward passes computed again */
} tni_piece;

TN_NODISCARD tn_status tni_piece_new(tn_checkpoint_fn fn, void *ctx, tn_tensor *const *inputs,
                                     int n_inputs, int n_outputs, const tn_checkpoint_opts *opts,
                                     TN_OWNED tni_piece **out);
static inline void tni_piece_unref(tni_piece *piece)
{
    tni_unref(&piece->object);
}
TNI_DEFINE_AUTO(tni_piece, tni_piece_unref)

/* The inputs again, references; @p out has room for n_inputs. */
TN_NODISCARD tn_status tni_piece_inputs(tni_piece *piece, tn_tensor **out);
/* Run it again with gradients recorded and the random numbers of the first time. On failure no
 * output is left. */
TN_NODISCARD tn_status tni_piece_run(tni_piece *piece, tn_tensor *const *inputs,
                                     tn_tensor **outputs);

/* Saved-tensor hooks that keep nothing, and compute the piece again when something is needed.
 * (autograd/checkpoint_again.c) */
TN_NODISCARD tn_status tni_piece_push_hooks(tni_piece *piece);
void tni_again_free_all(tni_piece *piece);

#endif
