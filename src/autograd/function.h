/* SPDX-License-Identifier: MIT */
/* autograd/function.h: nodes whose gradient is written by users. */
#ifndef TNI_AUTOGRAD_FUNCTION_H
#define TNI_AUTOGRAD_FUNCTION_H

#include "autograd/meta.h"
#include "autograd/saved.h"
#include "tenon/function.h"

/* What such a node is made of. Several runs of its backward part may be inside at a time. */
typedef struct tni_function {
    tni_node_destroy destroy; /* TNI_CLASS_DESTROYS */
    tni_node_class cls;       /* its own: a class for each node, for the name */
    char *name;               /* "ExpBackward" */
    tn_function_backward backward;
    tni_object *keeper; /* strong; keeps `args` alive in backward; may be NULL */
    void *args;
    void *state;
    void (*state_destroy)(void *state);
    tni_saved *saved;
    uint32_t n_saved;
    bool once, materialize;
    bool saved_history; /* something that it saved requires grad: its gradients depend on that */
    bool *given;        /* for each input: it was a tensor */
} tni_function;

/* A list of borrowed tensors, noted in forward. */
typedef struct tni_marks {
    tn_tensor **v; /* references */
    int n;
} tni_marks;

struct tn_function_ctx {
    tni_node *node;
    tni_function *fn; /* the node's data */
    void *args;
    const tni_backward *run;      /* in backward */
    tn_tensor *const *inputs;     /* in forward */
    tni_marks save, dirty, plain; /* in forward; plain: without a gradient */
    tni_marks *outputs;           /* in forward: of a call that names its results; else NULL */
};

/* What a node is to be made of. */
typedef struct tni_function_spec {
    const char *name;
    tn_function_backward backward;
    size_t state_size;
    void (*state_destroy)(void *state);
    uint32_t flags;
    tni_object *keeper;
    void *args; /* in backward */
} tni_function_spec;

/* A node for a call with these inputs. Its edges are the inputs' when @p record, else it is there
 * for the sake of its context. */
TN_NODISCARD tn_status tni_function_node(const tni_function_spec *spec, tn_tensor *const *inputs,
                                         int n_inputs, int n_outputs, bool record,
                                         TN_OWNED tni_node **out);
/* Save what forward asked for, once results are tied to the node. */
TN_NODISCARD tn_status tni_function_save_all(tn_function_ctx *ctx);
void tni_marks_clear(tni_marks *marks);
static inline bool tni_is_marked(const tn_tensor *t, const tni_marks *marks)
{
    for (int i = 0; i < marks->n; i++)
        if (marks->v[i] == t)
            return true;
    return false;
}
/* Give the results of a call their tangents; some input pushes one. */
TN_NODISCARD tn_status tni_function_push(tn_function_ctx *ctx, tn_function_jvp jvp,
                                         tn_tensor *const *inputs, int n_inputs,
                                         tn_tensor *const *outputs, int n_outputs);

#endif
