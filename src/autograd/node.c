/* SPDX-License-Identifier: MIT */
/* autograd/node.c: making nodes, and taking graphs apart however long they are. */
#include "autograd/accumulate.h"
#include "autograd/anomaly.h"
#include "autograd/extra.h"
#include "autograd/saved.h"
#include "observe/log.h"

#include <string.h>

/* Counts the nodes that this thread made: later nodes run earlier in a backward pass. */
static __attribute__((tls_model("initial-exec"))) _Thread_local uint64_t next_sequence;
/* Nodes whose last reference went while another node was being taken apart on this thread, linked
 * by their claim word: a chain of a million nodes needs no deep stack. */
static __attribute__((tls_model("initial-exec"))) _Thread_local struct {
    tni_node *first;
    bool busy;
} dying;

/* ---- making ---- */

static void node_destroy(void *object)
{
    tni_node *node = object;
    tni_block_free(node, node->block_nbytes);
}

static void node_unref(void *object)
{
    tni_node_unref(object);
}

static const tni_type node_type = {"node", NULL, node_destroy, node_unref};

static inline size_t round8(size_t n)
{
    return (n + 7u) & ~(size_t)7u;
}

/* Edges and inputs that lie in the node's own block; longer lists live elsewhere. */
enum { EDGES_HERE = 32, INPUTS_HERE = 10 };

/* The block of a node: @p edges and @p inputs are bytes in it, 0: none lie here. */
static inline tni_node *make_block(const tni_node_class *cls, size_t edges, size_t inputs)
{
    size_t data = round8(cls->data_nbytes), nbytes = sizeof(tni_node) + data + edges + inputs;
    tni_node *node = tni_block_alloc(nbytes);
    if (TNI_UNLIKELY(!node))
        return NULL;
    /* Blocks are whole lines: clearing them so needs no call. */
    for (size_t i = 0; i < nbytes; i += TNI_BLOCK_ALIGN)
        memset((char *)node + i, 0, TNI_BLOCK_ALIGN);
    char *at = (char *)(node + 1);
    tni_object_init(&node->object, &node_type);
    node->cls = cls;
    node->block_nbytes = (uint16_t)nbytes;
    node->data = at;
    node->edges = (tni_edge *)(at + data);
    node->inputs = (tni_input *)(at + data + edges);
    return node;
}

static TNI_COLD tni_node *make_long(const tni_node_class *cls, uint32_t n_edges, uint32_t n_inputs)
{
    bool edges_here = n_edges <= EDGES_HERE, inputs_here = n_inputs <= INPUTS_HERE;
    size_t edges = (size_t)n_edges * sizeof(tni_edge),
           inputs = (size_t)n_inputs * sizeof(tni_input);
    tni_edge *far_edges = edges_here ? NULL : tni_calloc(edges);
    tni_input *far_inputs = inputs_here ? NULL : tni_calloc(inputs);
    tni_node *node = NULL;
    if ((edges_here || far_edges) && (inputs_here || far_inputs))
        node = make_block(cls, edges_here ? edges : 0, inputs_here ? inputs : 0);
    if (!node) {
        tni_free(far_edges);
        tni_free(far_inputs);
        return NULL;
    }
    if (far_edges)
        node->edges = far_edges;
    if (far_inputs)
        node->inputs = far_inputs;
    node->edges_on_heap = !edges_here;
    node->inputs_on_heap = !inputs_here;
    return node;
}

/* Somebody wants to know of every node. */
static TNI_COLD tn_status announce(tni_node *node, tni_node **out)
{
    if (tni_prof_on)
        node->maker = tni_prof_made_node(node->sequence);
    if (tni_anomaly()) {
        tn_status status = tni_anomaly_note(node);
        if (status != TN_OK) {
            tni_node_unref(node);
            return status;
        }
    }
    *out = node;
    return TN_OK;
}

tn_status tni_node_new(const tni_node_class *cls, uint32_t n_edges, uint32_t n_inputs,
                       tni_node **out)
{
    tni_node *node = TNI_LIKELY(n_edges <= EDGES_HERE && n_inputs <= INPUTS_HERE)
                         ? make_block(cls, n_edges * sizeof(tni_edge), n_inputs * sizeof(tni_input))
                         : make_long(cls, n_edges, n_inputs);
    TN_CHECK(node, TN_NOMEM, "cannot allocate a node of %u edges", n_edges);
    node->n_edges = n_edges;
    node->n_inputs = n_inputs;
    tni_input *inputs = node->inputs;
    for (uint32_t i = 0; i < n_inputs; i++)
        inputs[i].dtype = TN_DTYPE_NONE;
    node->sequence = (cls->flags & TNI_CLASS_ACCUMULATES) ? UINT64_MAX : next_sequence++;
    if (tni_prof_on || TNI_UNLIKELY(tni_anomaly()))
        return announce(node, out);
    *out = node;
    return TN_OK;
}

static tn_status grow_inputs(tni_node *node, uint32_t n)
{
    tni_input *inputs = tni_calloc((size_t)n * sizeof *inputs);
    TN_CHECK(inputs, TN_NOMEM, "cannot describe %u results of a node", n);
    memcpy(inputs, node->inputs, (size_t)node->n_inputs * sizeof *inputs);
    for (uint32_t i = node->n_inputs; i < n; i++)
        inputs[i].dtype = TN_DTYPE_NONE;
    if (node->inputs_on_heap)
        tni_free(node->inputs);
    node->inputs = inputs;
    node->inputs_on_heap = true;
    node->n_inputs = n;
    return TN_OK;
}

tn_status tni_node_expect_inputs(tni_node *node, uint32_t n)
{
    return n > node->n_inputs ? grow_inputs(node, n) : TN_OK;
}

tn_status tni_node_set_input_otherwise(tni_node *node, uint32_t i, const tn_tensor *result)
{
    if (TNI_UNLIKELY(i >= node->n_inputs))
        TN_TRY(grow_inputs(node, i + 1));
    tni_input *in = &node->inputs[i];
    int64_t *sizes = in->inline_sizes;
    size_t nbytes = (size_t)result->ndim * sizeof *sizes;
    if (TNI_UNLIKELY(nbytes > sizeof in->inline_sizes)) {
        sizes = tni_alloc(nbytes);
        TN_CHECK(sizes, TN_NOMEM, "cannot describe a result of %d dimensions", result->ndim);
        tni_free(in->heap_sizes);
        in->heap_sizes = sizes;
    }
    for (int d = 0; d < result->ndim; d++)
        sizes[d] = result->sizes[d];
    in->dtype = result->dtype;
    in->ndim = result->ndim;
    in->device = result->device;
    return TN_OK;
}

/* ---- letting go ---- */

static void release_saved(tni_node *node, tni_saved *saved, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        /* Another pass may be unpacking: take the value away under the lock, let go outside. */
        tni_spin_lock(&node->lock);
        tni_saved taken = saved[i];
        saved[i].tensor = NULL;
        saved[i].hooked = NULL;
        saved[i].view_fn = NULL;
        tni_spin_unlock(&node->lock);
        tni_saved_clear(&taken);
    }
}

static tni_ints *int_lists(tni_node *node)
{
    return (tni_ints *)((tni_saved *)node->data + node->cls->n_saved);
}

static void let_go(tni_node *node)
{
    const tni_node_class *cls = node->cls;
    if (cls->release) {
        cls->release(node);
        return;
    }
    release_saved(node, node->data, cls->n_saved);
    const tni_saved_list *lists = tni_saved_lists(node);
    for (int i = 0; i < cls->n_lists; i++)
        release_saved(node, lists[i].v, lists[i].n);
}

void tni_node_release(tni_node *node)
{
    if (!atomic_exchange_explicit(&node->released, 1, memory_order_acq_rel))
        let_go(node);
}

/* The same for a node that nobody else can be at any more: without the lock. */
static inline void let_go_alone(tni_node *node, const tni_node_class *cls)
{
    atomic_store_explicit(&node->released, 1, memory_order_relaxed);
    if (TNI_UNLIKELY(cls->release || cls->n_lists)) {
        let_go(node);
        return;
    }
    tni_saved *saved = node->data;
    for (unsigned i = 0; i < cls->n_saved; i++)
        tni_saved_clear(&saved[i]);
}

static void free_lists(tni_node *node)
{
    const tni_node_class *cls = node->cls;
    tni_ints *ints = int_lists(node);
    for (int i = 0; i < cls->n_ints; i++)
        if (ints[i].v != ints[i].room)
            tni_free(ints[i].v);
    for (int i = 0; i < cls->n_lists; i++)
        tni_free(tni_saved_lists(node)[i].v);
}

tn_status tni_broken_apply(tni_backward *b)
{
    (void)b;
    TN_FAIL(TN_INVALID,
            "a tensor was written by a call that failed before it was recorded (as when there was "
            "no memory left): the gradient of that write is not known");
}

/* Its turn comes whatever gradient it gets. */
static const tni_node_class broken_class = {
    .name = "NotRecorded", .apply = tni_broken_apply, .flags = TNI_CLASS_RUN_UNDEFINED};

void tni_node_break(tni_node *node)
{
    if (!atomic_load_explicit(&node->released, memory_order_acquire))
        let_go_alone(node, node->cls);
    free_lists(node);
    for (uint32_t i = 0; i < node->n_inputs; i++)
        node->inputs[i].dtype = TN_DTYPE_NONE;
    node->cls = &broken_class;
}

/* What few nodes have: values that need a destructor, hooks, lists elsewhere. */
static TNI_COLD void free_more(tni_node *node)
{
    if (node->cls->flags & TNI_CLASS_DESTROYS) {
        tni_node_destroy destroy = *(tni_node_destroy *)node->data;
        if (destroy) /* else it was never filled */
            destroy(node);
    }
    if (atomic_load_explicit(&node->extra, memory_order_relaxed) != NULL)
        tni_node_extra_free(node);
}

static void take_apart(tni_node *node)
{
    const tni_node_class *cls = node->cls;
    if (!atomic_load_explicit(&node->released, memory_order_acquire))
        let_go_alone(node, cls);
    if (cls->n_ints | cls->n_lists)
        free_lists(node);
    if (TNI_UNLIKELY((cls->flags & TNI_CLASS_DESTROYS) ||
                     atomic_load_explicit(&node->extra, memory_order_relaxed) != NULL))
        free_more(node);
    tni_edge *edges = node->edges;
    for (uint32_t i = 0, n = node->n_edges; i < n; i++) {
        tni_node *to = edges[i].node;
        if (!to)
            continue;
        if (to->cls->flags & TNI_CLASS_ACCUMULATES)
            tni_accumulator_unref(to);
        else
            tni_node_unref(to);
    }
    for (uint32_t i = 0, n = node->n_inputs; i < n; i++)
        if (TNI_UNLIKELY(node->inputs[i].heap_sizes != NULL))
            tni_free(node->inputs[i].heap_sizes);
    if (TNI_UNLIKELY(node->edges_on_heap))
        tni_free(node->edges);
    if (TNI_UNLIKELY(node->inputs_on_heap))
        tni_free(node->inputs);
    /* The strong references together held one weak one. */
    if (TNI_LIKELY(atomic_load_explicit(&node->object.counts, memory_order_acquire) ==
                   TNI_WEAK_ONE))
        tni_block_free(node, node->block_nbytes);
    else
        tni_weak_unref(&node->object);
}

static void bury(tni_node *node)
{
    if (dying.busy) {
        atomic_store_explicit(&node->claim, (uint64_t)(uintptr_t)dying.first, memory_order_relaxed);
        dying.first = node;
        return;
    }
    dying.busy = true;
    take_apart(node);
    while (dying.first) {
        tni_node *next = dying.first;
        dying.first =
            (tni_node *)(uintptr_t)atomic_load_explicit(&next->claim, memory_order_relaxed);
        take_apart(next);
    }
    dying.busy = false;
}

void tni_node_unref(tni_node *node)
{
    if (!node)
        return;
    _Atomic uint64_t *counts = &node->object.counts;
    /* Alone: nobody can take another reference, so the locked instruction is not needed. */
    if (TNI_LIKELY(atomic_load_explicit(counts, memory_order_acquire) == TNI_COUNTS_FRESH)) {
        atomic_store_explicit(counts, TNI_WEAK_ONE, memory_order_relaxed);
        bury(node);
        return;
    }
    uint64_t before = tni_counts_add(counts, (uint64_t)0 - TNI_STRONG_ONE, memory_order_acq_rel);
    if ((uint32_t)before == 1)
        bury(node);
}
