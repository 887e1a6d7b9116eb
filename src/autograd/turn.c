/* SPDX-License-Identifier: MIT */
/* autograd/turn.c: see turn.h. */
#include "autograd/turn.h"

#include <time.h>
#include "base/alloc.h"
#include "base/clock.h"

static const uint64_t PATIENCE_NS = UINT64_C(3000000000); /* for one turn of another */

/* Take the turn if it is free. Else *seen is whose it is, and @p leave (may be NULL) is left there.
 */
static tni_turn_answer try_turn(tni_grad_meta *meta, tni_turn *turn, tni_left *leave,
                                uint64_t *seen)
{
    static _Thread_local char me;
    tni_turn_answer answer = TNI_TURN;
    tni_spin_lock(&meta->lock);
    tni_turn *other = meta->turn_era == tni_spin_era ? meta->turn : NULL;
    if (!other) {
        *turn = (tni_turn){&me, turn->number, NULL};
        meta->turn = turn;
        meta->turn_era = tni_spin_era;
    } else if (other->thread == &me) {
        answer = TNI_TURN_HAS;
    } else {
        answer = TNI_TURN_LEFT;
        *seen = other->number;
        if (leave) {
            leave->next = other->left;
            other->left = leave;
        }
    }
    tni_spin_unlock(&meta->lock);
    return answer;
}

void tni_left_free(tni_left *left)
{
    tn_tensor_unref(left->grad);
    tni_free(left);
}

tn_status tni_turn_take(tni_grad_meta *meta, const tni_left *what, tni_turn *turn,
                        tni_turn_answer *answer)
{
    static _Atomic uint64_t n_turns;
    turn->number = atomic_fetch_add_explicit(&n_turns, 1, memory_order_relaxed) + 1;
    uint64_t last = 0, seen = 0;
    for (uint64_t until = 0;;) {
        *answer = try_turn(meta, turn, NULL, &seen);
        if (*answer != TNI_TURN_LEFT)
            return TN_OK;
        if (seen != last)
            until = tni_coarse_ns() + PATIENCE_NS;
        last = seen;
        if (tni_coarse_ns() > until)
            break;
        nanosleep(&(const struct timespec){0, 100 * 1000}, NULL);
    }
    tni_left *leave = tni_alloc(sizeof *leave);
    TN_CHECK(leave, TN_NOMEM, "cannot leave a gradient with the thread that adds to it");
    *leave = *what;
    tn_tensor_ref(leave->grad);
    *answer = try_turn(meta, turn, leave, &seen);
    if (*answer != TNI_TURN_LEFT)
        tni_left_free(leave);
    return TN_OK;
}

tni_left *tni_turn_next_left(tni_grad_meta *meta, tni_turn *turn)
{
    tni_spin_lock(&meta->lock);
    tni_left **at = &turn->left;
    while (*at && (*at)->next)
        at = &(*at)->next;
    tni_left *left = *at;
    *at = NULL;
    if (!left)
        meta->turn = NULL;
    tni_spin_unlock(&meta->lock);
    return left;
}
