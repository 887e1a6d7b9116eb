/* SPDX-License-Identifier: MIT */
/* autograd/turn.h: whose turn it is to add to a gradient that foreign code writes in place.
 *
 * Such code must not meet itself on another thread. It may be waiting for that thread, though. So
 * one waits as long as others come and go, and for one of them for a while; then the gradient is
 * left with that one, who adds it before its own turn ends. A child made by fork() has no turns of
 * the threads that it lacks. */
#ifndef TNI_AUTOGRAD_TURN_H
#define TNI_AUTOGRAD_TURN_H

#include "autograd/accumulate.h"
#include "autograd/meta.h"

/* A gradient that another thread left. */
typedef struct tni_left {
    struct tni_left *next;
    tn_tensor *grad; /* strong */
    tni_add_fn add;
    bool writes;
} tni_left;

/* Lies with the thread whose turn it is, from tni_turn_take to the end. */
typedef struct tni_turn {
    const void *thread;
    uint64_t number; /* of no other turn */
    tni_left *left;  /* the last one first; guarded by the lock of the meta */
} tni_turn;

typedef enum tni_turn_answer {
    TNI_TURN,      /* it is: end it by tni_turn_next_left */
    TNI_TURN_HAS,  /* it is already, further up in this thread, which ends it */
    TNI_TURN_LEFT, /* it is not, and the gradient was left */
} tni_turn_answer;

/* Wait for the turn to add to the gradient of @p meta. *what (copied, its references too) is what
 * is left otherwise.
 * @retval TN_NOMEM  no turn, and nothing is left with anybody */
TN_NODISCARD tn_status tni_turn_take(tni_grad_meta *meta, const tni_left *what, tni_turn *turn,
                                     tni_turn_answer *answer);
/* The oldest gradient that was left, for tni_left_free; NULL: none, and the turn is over. */
TN_OWNED tni_left *tni_turn_next_left(tni_grad_meta *meta, tni_turn *turn);
void tni_left_free(TN_STOLEN tni_left *left);

#endif
