/* SPDX-License-Identifier: MIT */
/* autograd/tell.h: what a backward pass tells the flight recorder: its nodes, which of them have
 * run, which one's turn it is. A turn costs some stores; who waits for whom is left to the reader,
 * which knows the edges. */
#ifndef TNI_AUTOGRAD_TELL_H
#define TNI_AUTOGRAD_TELL_H

#include "autograd/pass.h"
#include "core/state.h"
#include "observe/flight.h"

/* The pass is built: describe it, if this thread has a place for it. */
void tni_tell_pass(tni_pass *pass);
void tni_tell_end(tni_pass *pass);

/* The last turn has come to its end, the next is that of @p turn. */
static inline void tni_tell_turn(tni_pass *pass, const tni_turn *turn)
{
    tni_flight_pass *told = pass->told;
    if (!told)
        return;
    uint32_t index = (uint32_t)(turn - pass->turns);
    if (told->running_name && told->running < TNI_FLIGHT_NODES)
        told->nodes[told->running].done = 1;
    const char *name = turn->node->cls->name;
    tni_flight_know(tni_tls.record, name);
    told->n_done = pass->n_done;
    told->n_ready = pass->n_ready;
    told->running = index;
    told->running_name = (uintptr_t)name;
}

static inline void tni_tell_no_turn(tni_pass *pass)
{
    if (!pass->told)
        return;
    pass->told->running_name = 0;
    pass->told->n_done = pass->n_done;
    pass->told->n_ready = 0;
}

#endif
