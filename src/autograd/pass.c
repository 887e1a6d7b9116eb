/* SPDX-License-Identifier: MIT */
/* autograd/pass.c: finding the nodes of a backward pass, and what each waits for. */
#include "autograd/pass.h"
#include "base/str.h"

#include <string.h>

#if defined(TN_STRESS) && TN_STRESS
enum { FIRST_ENTRIES = 2 };
#else
enum { FIRST_ENTRIES = 64 };
#endif

static _Atomic uint32_t last_id;

/* ---- the map of nodes that others have claimed ---- */

static uint32_t hash(const tni_node *node)
{
    return (uint32_t)(((uintptr_t)node * UINT64_C(0x9e3779b97f4a7c15)) >> 32);
}

/* Where @p node is, or would go. There is always a free entry. */
static uint32_t map_slot(const tni_pass *pass, const tni_node *node)
{
    uint32_t mask = pass->map.capacity - 1, at = hash(node) & mask;
    while (pass->map.entries[at].node && pass->map.entries[at].node != node)
        at = (at + 1) & mask;
    return at;
}

uint32_t tni_pass_look_up(const tni_pass *pass, const tni_node *node)
{
    uint32_t at = map_slot(pass, node);
    return pass->map.entries[at].node ? pass->map.entries[at].turn : TNI_NO_TURN;
}

static tn_status map_grow(tni_pass *pass)
{
    uint32_t old_capacity = pass->map.capacity;
    uint32_t capacity = old_capacity ? 2 * old_capacity : FIRST_ENTRIES;
    struct tni_found *old = pass->map.entries;
    struct tni_found *entries = tni_calloc((size_t)capacity * sizeof *entries);
    TN_CHECK(entries, TN_NOMEM, "cannot find %u nodes of a backward pass", capacity);
    pass->map.entries = entries;
    pass->map.capacity = capacity;
    for (uint32_t i = 0; i < old_capacity; i++)
        if (old[i].node)
            entries[map_slot(pass, old[i].node)] = old[i];
    tni_free(old);
    return TN_OK;
}

static tn_status map_add(tni_pass *pass, const tni_node *node, uint32_t turn)
{
    if (2 * (pass->map.n + 1) > pass->map.capacity)
        TN_TRY(map_grow(pass));
    pass->map.entries[map_slot(pass, node)] = (struct tni_found){node, turn};
    pass->map.n++;
    return TN_OK;
}

/* ---- entering nodes ---- */

static bool claim(const tni_pass *pass, tni_node *node, uint32_t turn)
{
    uint64_t mine = (uint64_t)pass->id << 32 | turn, none = 0;
    if (TNI_ONE_THREAD) {
        if (atomic_load_explicit(&node->claim, memory_order_relaxed) != 0)
            return false;
        atomic_store_explicit(&node->claim, mine, memory_order_relaxed);
        return true;
    }
    return atomic_compare_exchange_strong_explicit(&node->claim, &none, mine, memory_order_relaxed,
                                                   memory_order_relaxed);
}

static tn_status grow_turns(tni_pass *pass)
{
    TN_CHECK(pass->capacity < TNI_NO_TURN / 4, TN_INVALID, "a graph of more than %u nodes",
             pass->capacity);
    bool few = pass->turns == pass->few_turns;
    uint32_t capacity = 4 * pass->capacity;
    tni_turn *turns =
        tni_realloc(few ? NULL : pass->turns, few ? 0 : (size_t)pass->capacity * sizeof *turns,
                    (size_t)capacity * sizeof *turns);
    TN_CHECK(turns, TN_NOMEM, "cannot note %u nodes of a backward pass", capacity);
    if (few)
        memcpy(turns, pass->few_turns, sizeof pass->few_turns);
    pass->turns = turns;
    pass->capacity = capacity;
    return TN_OK;
}

/* One more gradient will come to @p node. */
static inline tn_status expect(tni_pass *pass, tni_node *node)
{
    uint32_t i = tni_pass_find(pass, node);
    if (i != TNI_NO_TURN) {
        pass->turns[i].waits++;
        return TN_OK;
    }
    i = pass->n;
    if (TNI_UNLIKELY(i == pass->capacity))
        TN_TRY(grow_turns(pass));
    uint32_t flags = TNI_TURN_CLAIMED;
    if (TNI_UNLIKELY(!claim(pass, node, i))) {
        TN_TRY(map_add(pass, node, i));
        flags = 0;
    }
    pass->turns[i] = (tni_turn){.node = node, .waits = 1, .flags = flags};
    pass->n++;
    return TN_OK;
}

/* One block for what the run needs: slots of nodes with several inputs, results, the heap, wanted.
 */
static tn_status take_memory(tni_pass *pass, size_t n_slots, uint32_t max_edges)
{
    size_t slots = n_slots * sizeof(tn_tensor *);
    size_t results = (size_t)max_edges * sizeof(tn_tensor *);
    size_t ready = (size_t)pass->n * sizeof(tni_ready);
    size_t nbytes = slots + results + ready + max_edges;
    char *block = (char *)pass->small_block;
    if (nbytes > sizeof pass->small_block)
        pass->block = block = tni_alloc(nbytes);
    TN_CHECK(block, TN_NOMEM, "cannot allocate the queue of a backward pass over %u nodes",
             pass->n);
    memset(block, 0, slots);
    pass->results = (tn_tensor **)(void *)(block + slots);
    pass->ready = (tni_ready *)(void *)(block + slots + results);
    pass->wanted = (bool *)(block + slots + results + ready);
    if (n_slots == 0)
        return TN_OK;
    tn_tensor **slot = (tn_tensor **)(void *)block;
    for (uint32_t i = 0; i < pass->n; i++) {
        uint32_t n = pass->turns[i].node->n_inputs;
        if (n > 1) {
            pass->turns[i].in.many = slot;
            slot += n;
        }
    }
    return TN_OK;
}

tn_status tni_pass_build(tni_pass *pass, const tni_edge *roots, uint32_t n_roots, uint32_t min_topo)
{
    do
        pass->id = atomic_fetch_add_explicit(&last_id, 1, memory_order_relaxed) + 1;
    while (pass->id == 0);
    for (uint32_t i = 0; i < n_roots; i++)
        TN_TRY(expect(pass, roots[i].node));
    size_t n_slots = 0;
    uint32_t max_edges = 1;
    /* The entries are the queue of this walk as well. */
    for (uint32_t i = 0; i < pass->n; i++) {
        const tni_node *node = pass->turns[i].node;
        uint32_t n_edges = node->n_edges;
        if (node->n_inputs > 1)
            n_slots += node->n_inputs;
        if (n_edges > max_edges)
            max_edges = n_edges;
        for (uint32_t e = 0; e < n_edges; e++) {
            tni_node *next = node->edges[e].node;
            if (next && next->topo >= min_topo)
                TN_TRY(expect(pass, next));
        }
    }
    return take_memory(pass, n_slots, max_edges);
}

/* ---- what leads to the targets ---- */

typedef struct step {
    uint32_t turn, edge;
} step;

/* Depth first, on a stack of our own; a node is needed when one it has an edge to is. */
static void mark_from(tni_pass *pass, uint32_t root, step *stack)
{
    enum { ASKED_FOR = TNI_TURN_NEEDED | TNI_TURN_TARGET };
    if (pass->turns[root].flags & TNI_TURN_SEEN)
        return;
    pass->turns[root].flags |= TNI_TURN_SEEN;
    stack[0] = (step){root, 0};
    for (uint32_t n = 1; n > 0;) {
        step *top = &stack[n - 1];
        tni_turn *turn = &pass->turns[top->turn];
        if (top->edge == turn->node->n_edges) {
            n--;
            if (n > 0 && (turn->flags & ASKED_FOR))
                pass->turns[stack[n - 1].turn].flags |= TNI_TURN_NEEDED;
            continue;
        }
        const tni_node *next = turn->node->edges[top->edge++].node;
        uint32_t i = next ? tni_pass_find(pass, next) : TNI_NO_TURN;
        if (i == TNI_NO_TURN)
            continue;
        if (!(pass->turns[i].flags & TNI_TURN_SEEN)) {
            pass->turns[i].flags |= TNI_TURN_SEEN;
            stack[n++] = (step){i, 0};
        } else if (pass->turns[i].flags & ASKED_FOR) {
            turn->flags |= TNI_TURN_NEEDED;
        }
    }
}

tn_status tni_pass_mark(tni_pass *pass, const tni_edge *roots, uint32_t n_roots,
                        const tni_edge *targets, uint32_t n_targets, bool capture)
{
    pass->partial = true;
    if (capture) {
        pass->captures = tni_calloc((size_t)n_targets * sizeof *pass->captures);
        TN_CHECK(pass->captures, TN_NOMEM, "cannot note %u inputs", n_targets);
        pass->n_captures = n_targets;
    }
    for (uint32_t i = 0; i < n_targets; i++) {
        uint32_t at = targets[i].node ? tni_pass_find(pass, targets[i].node) : TNI_NO_TURN;
        if (at == TNI_NO_TURN)
            continue;
        tni_turn *turn = &pass->turns[at];
        turn->flags |= capture ? TNI_TURN_TARGET : TNI_TURN_NEEDED;
        if (capture) {
            pass->captures[i] = (tni_capture){.input = targets[i].input, .next = turn->capture};
            turn->capture = i + 1;
        }
    }
    step *stack = tni_alloc((size_t)pass->n * sizeof *stack);
    TN_CHECK(stack, TN_NOMEM, "cannot walk over %u nodes", pass->n);
    for (uint32_t i = 0; i < n_roots; i++)
        mark_from(pass, tni_pass_find(pass, roots[i].node), stack);
    tni_free(stack);
    return TN_OK;
}

/* ---- the end ---- */

void tni_pass_finish(tni_pass *pass, tni_turn *turn)
{
    tni_node *node = turn->node;
    /* Before the memory was taken nothing can have come in. */
    if (node->n_inputs <= 1) {
        tn_tensor *grad = TN_MOVE(turn->in.one);
        tn_tensor_unref(grad);
    } else if (turn->in.many) {
        for (uint32_t i = 0; i < node->n_inputs; i++) {
            tn_tensor *grad = TN_MOVE(turn->in.many[i]);
            tn_tensor_unref(grad);
        }
    }
    if (turn->flags & TNI_TURN_CLAIMED)
        atomic_store_explicit(&node->claim, 0, memory_order_relaxed);
    turn->flags |= TNI_TURN_DONE;
    pass->n_done++;
}

void tni_pass_clear(tni_pass *pass)
{
    for (uint32_t i = 0; pass->n_done < pass->n; i++)
        if (!(pass->turns[i].flags & TNI_TURN_DONE))
            tni_pass_finish(pass, &pass->turns[i]);
    for (uint32_t i = 0; i < pass->n_captures; i++)
        tn_tensor_unref(pass->captures[i].grad);
    for (uint32_t i = 0; i < pass->n_callbacks; i++)
        if (pass->callbacks[i].release)
            pass->callbacks[i].release(pass->callbacks[i].ctx);
    tni_free(pass->callbacks);
    tni_free(pass->captures);
    tni_free(pass->map.entries);
    tni_free(pass->block);
    if (pass->turns != pass->few_turns)
        tni_free(pass->turns);
}

/* ---- a pass that stands still ---- */

static bool should_have_run(const tni_pass *pass, const tni_turn *turn)
{
    return !(turn->flags & TNI_TURN_DONE) &&
           (!pass->partial || (turn->flags & (TNI_TURN_NEEDED | TNI_TURN_TARGET)));
}

/* Who has an edge to @p node and did not run. */
static void add_reasons(const tni_pass *pass, const tni_turn *turn, tni_str *text)
{
    tni_str_addf(text, "\n  %s, sequence number %llu, waits for %u more", turn->node->cls->name,
                 (unsigned long long)turn->node->sequence, turn->waits);
    const char *before = ": ";
    for (uint32_t i = 0; i < pass->n; i++) {
        const tni_turn *other = &pass->turns[i];
        if (other->flags & TNI_TURN_DONE)
            continue;
        for (uint32_t e = 0; e < other->node->n_edges; e++) {
            if (other->node->edges[e].node != turn->node)
                continue;
            tni_str_addf(text, "%s%s (sequence number %llu)", before, other->node->cls->name,
                         (unsigned long long)other->node->sequence);
            before = ", ";
        }
    }
}

tn_status tni_pass_check_all_ran(const tni_pass *pass)
{
    if (TNI_LIKELY(pass->n_done == pass->n))
        return TN_OK;
    enum { AT_MOST = 16 };
    uint32_t stuck = 0;
    tni_str text = TNI_STR_INIT;
    for (uint32_t i = 0; i < pass->n; i++) {
        if (!should_have_run(pass, &pass->turns[i]))
            continue;
        if (stuck++ < AT_MOST)
            add_reasons(pass, &pass->turns[i], &text);
    }
    tn_status status = TN_OK;
    if (stuck)
        status =
            tni_fail(TN_INTERNAL, TNI_WHERE,
                     "could not compute gradients for some functions: %u of %u nodes were never "
                     "ready%s%s",
                     stuck, pass->n, tni_str_get(&text), stuck > AT_MOST ? "\n  ..." : "");
    tni_str_clear(&text);
    return status;
}
