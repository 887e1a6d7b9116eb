/* SPDX-License-Identifier: MIT */
/* autograd/pass.h: one backward pass: which nodes take part, what they wait for, what came in.
 *
 * Note [Claims]
 * A pass has an array with an entry for each of its nodes. To find the entry of a node, the pass
 * writes its own number and the index into node->claim. Where another pass did so before (on
 * another thread, or around this one), the entry is found through a hash map of this pass instead.
 * A claim is given back when the node had its turn, or when the pass ends, however it ends. So
 * passes share nodes without waiting for each other, and a pass that a fork() cut off costs no more
 * than the map.
 *
 * All memory is taken before the first node runs: the run itself can only fail in nodes. */
#ifndef TNI_AUTOGRAD_PASS_H
#define TNI_AUTOGRAD_PASS_H

#include "autograd/node.h"
#include "autograd/saved_hooks.h"

#include <string.h>

#if defined(TN_STRESS) && TN_STRESS
#    define TNI_FEW_TURNS 1
#else
#    define TNI_FEW_TURNS 16
#endif

enum {
    TNI_TURN_CLAIMED = 1, /* found through node->claim */
    TNI_TURN_NEEDED = 2,  /* leads to something that is asked for; see tni_pass.partial */
    TNI_TURN_TARGET = 4,  /* its own inputs are asked for */
    TNI_TURN_SEEN = 8,    /* while marking */
    TNI_TURN_DONE = 16,
};

/* One node of a pass. */
typedef struct tni_turn {
    tni_node *node; /* kept alive by the roots, and those by the caller */
    union {
        tn_tensor *one;   /* of a node with one input: the gradient so far */
        tn_tensor **many; /* else one for each input */
    } in;
    uint32_t waits;   /* how many gradients are still to come */
    uint32_t capture; /* of the inputs that are asked for, the first: index + 1 */
    uint32_t flags;   /* TNI_TURN_… */
} tni_turn;

typedef struct tni_ready {
    uint64_t sequence;
    uint32_t turn;
} tni_ready;

typedef struct tni_capture {
    uint32_t input, next; /* of the node; index + 1 of the node's next capture */
    tn_tensor *grad;
} tni_capture;

typedef struct tni_callback {
    tn_status (*fn)(void *ctx);
    void (*release)(void *ctx);
    void *ctx;
} tni_callback;

typedef struct tni_pass {
    struct tni_pass *outer; /* in one of whose nodes this one runs */
    tn_scope *scope;
    tni_node *running;
    struct tni_flight_pass *told; /* this pass in the flight recorder; NULL: not there */
    uint32_t id;
    uint32_t depth; /* how many are around this one */
    bool keep_graph;
    bool create_graph;
    bool partial; /* only what leads to some inputs runs */
    bool counted; /* among the passes of this thread in the flight recorder */

    tni_turn *turns;
    uint32_t n, capacity, n_done;
    tni_ready *ready; /* a binary heap, the largest sequence number first */
    uint32_t n_ready;
    tn_tensor **results; /* room for those of any node of the pass */
    bool *wanted;
    void *block; /* what the three lie in, and the gradients of nodes with several inputs */
    tni_capture *captures;
    uint32_t n_captures;
    struct {
        struct tni_found {
            const tni_node *node;
            uint32_t turn;
        } * entries;
        uint32_t n, capacity;
    } map;
    tni_callback *callbacks;
    uint32_t n_callbacks, callback_capacity;
    tni_hooks_mark saved_hooks; /* see Note [Hooks of a turn] */
    /* Where turns and block lie in a pass over few nodes. */
    tni_turn few_turns[TNI_FEW_TURNS];
    uint64_t small_block[TNI_FEW_TURNS * 4];
} tni_pass;

#define TNI_NO_TURN UINT32_MAX

/* All zero, but for the memory of few nodes, which is not touched. */
static inline void tni_pass_init(tni_pass *pass)
{
    memset(pass, 0, offsetof(tni_pass, few_turns));
    pass->turns = pass->few_turns;
    pass->capacity = TNI_FEW_TURNS;
}

uint32_t tni_pass_look_up(const tni_pass *pass, const tni_node *node);
/* The entry of @p node, TNI_NO_TURN when it is not part of the pass. */
static inline uint32_t tni_pass_find(const tni_pass *pass, const tni_node *node)
{
    uint64_t claim = atomic_load_explicit(&node->claim, memory_order_relaxed);
    if (TNI_LIKELY((uint32_t)(claim >> 32) == pass->id))
        return (uint32_t)claim;
    return TNI_UNLIKELY(pass->map.n) ? tni_pass_look_up(pass, node) : TNI_NO_TURN;
}

/* Enter every node that @p roots lead to, down to topological number @p min_topo, with what it
 * waits for; a root waits for its seed too. */
TN_NODISCARD tn_status tni_pass_build(tni_pass *pass, const tni_edge *roots, uint32_t n_roots,
                                      uint32_t min_topo);
/* Mark what leads to one of @p targets (NULL nodes are skipped). With @p capture their gradients
 * are kept in pass->captures, one for each; else the targets themselves run. */
TN_NODISCARD tn_status tni_pass_mark(tni_pass *pass, const tni_edge *roots, uint32_t n_roots,
                                     const tni_edge *targets, uint32_t n_targets, bool capture);
/* Nothing waits for this node any more: let go of its gradients and its claim. */
void tni_pass_finish(tni_pass *pass, tni_turn *turn);
/* Release everything, at any stage. */
void tni_pass_clear(tni_pass *pass);
/* Fails with the list of nodes that were never ready, and what they wait for. */
TN_NODISCARD tn_status tni_pass_check_all_ran(const tni_pass *pass);

static inline tn_tensor **tni_turn_grads(tni_turn *turn)
{
    return TNI_LIKELY(turn->node->n_inputs <= 1) ? &turn->in.one : turn->in.many;
}

/* The heap of what is ready. Room for every node was taken at the start. */
static inline void tni_pass_push(tni_pass *pass, uint32_t turn)
{
    tni_ready entry = {pass->turns[turn].node->sequence, turn};
    uint32_t at = pass->n_ready++;
    while (at > 0) {
        uint32_t up = (at - 1) / 2;
        if (pass->ready[up].sequence >= entry.sequence)
            break;
        pass->ready[at] = pass->ready[up];
        at = up;
    }
    pass->ready[at] = entry;
}

static inline uint32_t tni_pass_pop(tni_pass *pass)
{
    uint32_t first = pass->ready[0].turn, n = --pass->n_ready;
    tni_ready last = pass->ready[n];
    uint32_t at = 0;
    for (uint32_t down; (down = 2 * at + 1) < n; at = down) {
        if (down + 1 < n && pass->ready[down + 1].sequence > pass->ready[down].sequence)
            down++;
        if (last.sequence >= pass->ready[down].sequence)
            break;
        pass->ready[at] = pass->ready[down];
    }
    pass->ready[at] = last;
    return first;
}

#endif
