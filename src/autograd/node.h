/* SPDX-License-Identifier: MIT */
/* autograd/node.h: nodes of the gradient graph.
 *
 * A node stands for one recorded call. It takes one gradient for each result of that call and gives
 * one for each differentiable argument, along its edges. Node, edges, what its gradients must look
 * like and what it saved lie in one block.
 *
 * Threads: a node is built by one thread and does not change after that, but for its hooks, its
 * saved values (released once, see TNI_NODE_RELEASED) and `claim`, which the engine owns. Several
 * backward passes may run over one node at a time. */
#ifndef TNI_AUTOGRAD_NODE_H
#define TNI_AUTOGRAD_NODE_H

#include <stddef.h>
#include <string.h>
#include "base/spin.h"
#include "core/tensor.h"

typedef struct tn_node tni_node;

/* Where a gradient goes: which node, and which of its inputs. NULL: nowhere, none is needed. */
typedef struct tni_edge {
    tni_node *node; /* strong */
    uint32_t input;
} tni_edge;

/* What a gradient must look like: the result that it is the gradient of. */
typedef struct tni_input {
    uint8_t ndim; /* from here to `reserved` as in a tensor: copied as one word */
    int8_t dtype; /* tn_dtype; NONE: a result that has no gradient, never filled */
    tn_device device;
    uint16_t reserved;
    int64_t *heap_sizes; /* more dimensions than fit here */
    int64_t inline_sizes[4];
} tni_input;

#define TNI_INPUT_HEAD(member) (offsetof(tn_tensor, member) - offsetof(tn_tensor, ndim))
_Static_assert(offsetof(tni_input, dtype) == TNI_INPUT_HEAD(dtype), "one word");
_Static_assert(offsetof(tni_input, device) == TNI_INPUT_HEAD(device), "one word");
_Static_assert(offsetof(tni_input, reserved) == TNI_INPUT_HEAD(reserved), "one word");

static inline const int64_t *tni_input_sizes(const tni_input *in)
{
    return in->heap_sizes ? in->heap_sizes : in->inline_sizes;
}

/* One node's turn. Runs inside a scope, which ends with the turn: results may be scope results
 * (tnx_ functions), gradients that came in, or tensors given to tn_scope_own. The engine takes its
 * own references to the results. */
typedef struct tni_backward {
    tni_node *node;
    tn_tensor *const *grads; /* one for each input, NULL: undefined. The engine holds exactly one
                                reference to each */
    tn_tensor **results;     /* one for each edge, all NULL on entry: leave NULL for undefined */
    const bool *wanted;      /* one for each edge; NULL: all are */
} tni_backward;

typedef struct tni_node_class {
    const char *name; /* "MulBackward0" */
    /* Compute the results that are needed. Not called when all gradients are undefined, unless
     * TNI_CLASS_RUN_UNDEFINED. */
    tn_status (*apply)(tni_backward *b);
    /* Let go of what was saved; called once, under no lock. NULL: saved values and lists of the
     * layout below are all there is. */
    void (*release)(tni_node *node);
    uint16_t data_nbytes; /* of its own fields: tni_saved[n_saved], then tni_ints[n_ints], then
                             tni_saved_list[n_lists], then more */
    uint8_t n_saved, n_ints, n_lists;
    uint8_t flags;
    uint8_t n_edges;                /* arguments with a gradient, a list counts as one */
    const uint8_t *saved_from;      /* for each saved value: argument, counted as tni_record_begin's
                                       inputs; TNI_SAVED_RESULT: saved after the call */
    const uint32_t *saved_for;      /* for each saved value: bit i: needed when edge i is live */
    const char *const *saved_names; /* for each saved value; NULL: they have no names */
    const struct tni_kept_field *kept; /* what else it keeps and users see, to one without a name;
                                          NULL: nothing */
} tni_node_class;

/* What a field of a class is; see tools/opgen/formula.py. */
enum {
    TNI_KEPT_INT,
    TNI_KEPT_FLOAT,
    TNI_KEPT_BOOL,
    TNI_KEPT_SCALAR,
    TNI_KEPT_OPT_INT,
    TNI_KEPT_OPT_FLOAT,
    TNI_KEPT_OPT_BOOL,
    TNI_KEPT_OPT_SCALAR,
    TNI_KEPT_STR,
    TNI_KEPT_BOOLS,
    TNI_KEPT_FLOATS,
    TNI_KEPT_INTS,
    TNI_KEPT_TENSORS,
};

typedef struct tni_kept_field {
    const char *name; /* as users know it: "dim", "self_sym_sizes" */
    uint16_t offset;  /* in the data of its node */
    uint8_t kind;     /* TNI_KEPT_… */
} tni_kept_field;

#define TNI_SAVED_RESULT 255u

/* Of a node that holds more than its class can say: called last of all, when the node goes. */
typedef void (*tni_node_destroy)(tni_node *node);

enum {
    TNI_CLASS_RUN_UNDEFINED = 1, /* wants its turn even when no gradient came in */
    TNI_CLASS_REAL_PARTS = 2,    /* a complex gradient of a real argument means its real part */
    TNI_CLASS_ACCUMULATES = 4,   /* the gradient accumulator of a leaf */
    TNI_CLASS_DESTROYS = 8,      /* its data begins with a tni_node_destroy */
};

typedef struct tni_ints {
    int64_t *v; /* `room` or owned; NULL: none was given */
    int64_t n;
    int64_t room[4];
} tni_ints;

/* Values saved of an argument that is a list of tensors. */
typedef struct tni_saved_list {
    struct tni_saved *v; /* owned */
    int64_t n;
} tni_saved_list;

struct tn_node {
    tni_object object;
    const tni_node_class *cls;
    uint64_t sequence; /* per thread, larger is later; UINT64_MAX for accumulators */
    tni_edge *edges;
    tni_input *inputs;
    void *data;                           /* fields of its class */
    _Atomic uint64_t claim;               /* the engine's: which pass holds this node; 0: none */
    struct tni_node_extra *_Atomic extra; /* hooks and the like; NULL for nearly all */
    uint32_t n_edges, n_inputs;
    uint32_t topo; /* 0 for leaves, else more than that of every node it has an edge to */
    uint16_t block_nbytes;
    uint16_t maker; /* the profiler's number of the thread that made it; 0: nobody recorded */
    uint8_t edges_on_heap, inputs_on_heap;
    tni_spin lock; /* of saved values and extra */
    _Atomic uint8_t released;
};

/* A node with room for @p n_edges edges and @p n_inputs inputs, all empty, and its data zeroed.
 * Takes the thread's next sequence number. */
TN_NODISCARD tn_status tni_node_new(const tni_node_class *cls, uint32_t n_edges, uint32_t n_inputs,
                                    TN_OWNED tni_node **out);
/* What the next node of this thread would get. */
uint64_t tni_node_sequence_peek(void);
static inline tni_node *tni_node_ref(tni_node *node)
{
    if (node)
        tni_ref(&node->object);
    return node;
}
/* However long the graph behind it: freed iteratively. NULL is fine. */
void tni_node_unref(tni_node *node);
TNI_DEFINE_AUTO(tni_node, tni_node_unref)

/* Point edge @p i at @p to, whose reference it takes over, and raise the topological number. */
static inline void tni_node_take_edge(tni_node *node, uint32_t i, tni_edge to)
{
    node->edges[i] = to;
    if (node->topo <= to.node->topo)
        node->topo = to.node->topo + 1;
}
/* The same with a reference of its own; NULL node: the edge stays empty. */
static inline void tni_node_set_edge(tni_node *node, uint32_t i, tni_edge to)
{
    if (!to.node)
        return;
    tni_ref(&to.node->object);
    tni_node_take_edge(node, i, to);
}
/* @p node has at least @p n inputs, those that are new not described: before many of them are,
 * which one at a time would grow it as often.
 * @retval TN_NOMEM */
TN_NODISCARD tn_status tni_node_expect_inputs(tni_node *node, uint32_t n);
/* Describe input @p i: gradients of @p result. Grows the inputs when there are fewer.
 * @retval TN_NOMEM */
TN_NODISCARD tn_status tni_node_set_input_otherwise(tni_node *node, uint32_t i,
                                                    const tn_tensor *result);
TN_NODISCARD static inline tn_status tni_node_set_input(tni_node *node, uint32_t i,
                                                        const tn_tensor *result)
{
#if TNI_INLINE_DIMS >= 4
    if (TNI_LIKELY(i < node->n_inputs && result->ndim <= 4)) {
        /* Four sizes whatever the number: no branch, and there always are as many places. */
        tni_input *in = &node->inputs[i];
        memcpy(in, &result->ndim, offsetof(tni_input, heap_sizes));
        memcpy(in->inline_sizes, result->sizes, sizeof in->inline_sizes);
        return TN_OK;
    }
#endif
    return tni_node_set_input_otherwise(node, i, result);
}
/* Let go of saved values; running it again is an error for nodes that saved something. */
void tni_node_release(tni_node *node);

/* The call that @p node stands for went wrong after it had written its argument: from now on the
 * node's turn is an error that says so, whatever gradient comes. Cannot fail; @p node is of a class
 * without a destructor, and no pass knows it yet. */
TNI_COLD void tni_node_break(tni_node *node);
/* The turn of such a node. */
TN_NODISCARD tn_status tni_broken_apply(tni_backward *b);

static inline bool tni_backward_needs(const tni_backward *b, uint32_t edge)
{
    return b->node->edges[edge].node && (!b->wanted || b->wanted[edge]);
}

#endif
