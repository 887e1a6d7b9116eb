/* SPDX-License-Identifier: MIT */
/* autograd/engine.h: running a backward pass. */
#ifndef TNI_AUTOGRAD_ENGINE_H
#define TNI_AUTOGRAD_ENGINE_H

#include "autograd/node.h"

typedef struct tni_execute {
    const tni_edge *roots; /* where gradients enter; no node is NULL; the caller keeps them */
    tn_tensor **seeds;     /* one for each root; the engine takes them out, also when it fails */
    uint32_t n_roots;
    bool keep_graph;   /* leave saved values alone */
    bool create_graph; /* record what nodes do */
    /* What is asked for; none: everything runs. A NULL node is asked for in vain. */
    const tni_edge *targets;
    uint32_t n_targets;
    /* One for each target: NULL, or its gradient, a reference; written on success alone. NULL: the
     * targets run (and add up gradients) instead. */
    tn_tensor **captured;
} tni_execute;

/* Runs on this thread until everything that is asked for has run, or the first failure. Leaves grad
 * mode and scope of the thread as they were, on every path. */
TN_NODISCARD tn_status tni_execute_pass(const tni_execute *what);

/* Of the pass that runs on this thread: a number that no other has at the same time; 0: none runs.
 */
uint32_t tni_current_pass(void);
/* No pass that runs on this thread was told to stop at inputs. */
bool tni_passes_are_whole(void);

#endif
