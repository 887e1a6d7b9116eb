/* SPDX-License-Identifier: MIT */
/* autograd/turn.h: whose turn it is to add to a gradient that foreign code handles.
 *
 * Such code must not meet itself on another thread. It may be waiting for that thread, though. So
 * one waits as long as others come and go, and for one and the same turn for a while; then the pass
 * fails. A child made by fork() has the turn of the thread that forked, and none of the
 * threads that it lacks. */
#ifndef TNI_AUTOGRAD_TURN_H
#define TNI_AUTOGRAD_TURN_H

#include "autograd/meta.h"

/* Lies with the thread whose turn it is. */
typedef struct tni_sum_turn {
    const void *thread;
    uint64_t number; /* of no other turn */
    bool is_inner;   /* the thread has its turn already, further up, and ends it there */
} tni_sum_turn;

/* Wait for the turn to add to the gradient of @p meta; then tni_sum_turn_end it.
 * @retval TN_INVALID  another thread had its turn for too long */
TN_NODISCARD tn_status tni_sum_turn_take(tni_grad_meta *meta, tni_sum_turn *turn);
void tni_sum_turn_end(tni_grad_meta *meta, const tni_sum_turn *turn);

#endif
