/* SPDX-License-Identifier: MIT */
/* composite/rnn.h: the cells of recurrent networks: what the layers of rnn.c and the operators of
 * rnn_cell.c share. */
#ifndef TNI_COMPOSITE_RNN_H
#define TNI_COMPOSITE_RNN_H

#include "core/tensor.h"

typedef enum tni_rnn_kind { TNI_RNN_TANH, TNI_RNN_RELU, TNI_RNN_GRU, TNI_RNN_LSTM } tni_rnn_kind;

/* Weights of one layer in one direction; borrowed. Biases are both there or both NULL. */
typedef struct tni_rnn_weights {
    tn_tensor *w_ih, *w_hh, *b_ih, *b_hh;
    tn_tensor *w_hr; /* of an LSTM with projections, else NULL */
} tni_rnn_weights;

/* What a step needs: made once for all steps. */
typedef struct tni_rnn_cell {
    tni_rnn_kind kind;
    tn_tensor *w_hh; /* transposed */
    tn_tensor *w_hr; /* transposed, or NULL */
    tn_tensor *b_hh; /* what the input's part does not hold already: of a GRU, else NULL */
} tni_rnn_cell;

/* The state after a step; `c` is of an LSTM, else NULL. Where gates are halves, `c` may be float32:
 * a step then computes in float32 from the sums of products on, and `c` stays so. */
typedef struct tni_rnn_state {
    tn_tensor *h, *c;
} tni_rnn_state;

/* @p inputs becomes the input's part of all gates, [..., gates * width], of all steps at once.
 * The cell is to be cleared. */
TN_NODISCARD tn_status tni_rnn_begin(tni_rnn_kind kind, const tni_rnn_weights *w, tn_tensor *input,
                                     tni_rnn_cell *cell, TN_OWNED tn_tensor **inputs);
void tni_rnn_end(tni_rnn_cell *cell);
/* One step: @p gates [batch, gates * width] is one of the input's parts. @p out may be @p state's
 * place only after this returned; on failure it is untouched. */
TN_NODISCARD tn_status tni_rnn_step(const tni_rnn_cell *cell, tn_tensor *gates,
                                    const tni_rnn_state *state, tni_rnn_state *out);
void tni_rnn_state_clear(tni_rnn_state *s);
/* @p c as steps keep it: a half as float32; and in the dtype that it was given in. NULL is. */
TN_NODISCARD tn_status tni_rnn_widen(tn_tensor *c, TN_OWNED tn_tensor **out);
TN_NODISCARD tn_status tni_rnn_narrow(const tn_tensor *given, tn_tensor **c);

#endif
