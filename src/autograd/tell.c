/* SPDX-License-Identifier: MIT */
/* autograd/tell.c: describing a backward pass for the flight recorder: see tell.h. */
#include "autograd/tell.h"

/* The first nodes, with where their gradients go. */
static void tell_nodes(const tni_pass *pass, tni_flight_pass *told)
{
    uint32_t n = pass->n < TNI_FLIGHT_NODES ? pass->n : TNI_FLIGHT_NODES;
    for (uint32_t i = 0; i < n; i++) {
        const tni_node *node = pass->turns[i].node;
        tni_flight_node *to = &told->nodes[i];
        tni_flight_know(tni_tls.record, node->cls->name);
        to->name = (uintptr_t)node->cls->name;
        to->done = 0;
        uint8_t edges = 0;
        for (uint32_t k = 0; k < node->n_edges && edges < TNI_FLIGHT_EDGES; k++) {
            const tni_node *next = node->edges[k].node;
            uint32_t at = next ? tni_pass_find(pass, next) : TNI_NO_TURN;
            if (at < TNI_FLIGHT_NODES)
                to->edges[edges++] = (uint16_t)at;
        }
        to->n_edges = edges;
    }
}

void tni_tell_pass(tni_pass *pass)
{
    tni_flight_thread *record = tni_tls.record;
    if (!record)
        return;
    const tni_flight_header *head = tni_flight_head();
    uint32_t level = record->n_passes++;
    pass->counted = true;
    if (level >= TNI_FLIGHT_PASSES || !head || !__atomic_load_n(&head->on, __ATOMIC_RELAXED))
        return;
    tni_flight_pass *told = &record->passes[level];
    told->id = 0;
    atomic_thread_fence(memory_order_release);
    told->n_nodes = pass->n;
    told->n_done = told->n_ready = 0;
    told->running = 0;
    told->running_name = 0;
    told->began = tni_coarse_ns();
    tell_nodes(pass, told);
    atomic_thread_fence(memory_order_release);
    told->id = pass->id;
    pass->told = told;
}

void tni_tell_end(tni_pass *pass)
{
    tni_flight_thread *record = tni_tls.record;
    if (pass->told)
        pass->told->id = 0;
    if (pass->counted && record && record->n_passes)
        record->n_passes--;
    pass->told = NULL;
    pass->counted = false;
}
