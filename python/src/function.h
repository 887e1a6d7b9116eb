/* SPDX-License-Identifier: MIT */
/* function.h: what the files of autograd.Function share: the context, one call, and what classes
 * are asked for. */
#ifndef TNPY_FUNCTION_H
#define TNPY_FUNCTION_H

#include "grad.h"

#include <stdatomic.h>

typedef struct tnpy_fn_object {
    PyObject_HEAD tnpy_held link; /* how the node holds it */
    tn_node *node;                /* not counted; NULL once it is gone; guarded by `lock` */
    atomic_flag lock;             /* for some instructions: the node may end on another thread */
    PyObject *dict, *weak;
    PyObject *to_save, *for_forward, *dirty, *non_differentiable, *needs_input_grad;
    PyObject *needs_given; /* what was put in place of needs_input_grad; NULL: nothing */
    PyObject *tensor_args; /* a byte for each argument, 1: a tensor; NULL: all are */
    int n_outputs;
    char materialize, node_ended;
} tnpy_fn_object;

/* State of a node: its context. */
typedef struct tnpy_fn_state {
    tnpy_fn_object *context;
} tnpy_fn_state;

/* One call of apply. */
typedef struct tnpy_fn_call {
    PyObject *cls, *args; /* args: a tuple */
    tnpy_fn_object *context;
    tn_tensor *const *inputs;
    PyObject *setup;  /* setup_context, NULL when the class has none of its own */
    PyObject *output; /* what forward returned, owned */
} tnpy_fn_call;

/* ---- what classes are asked for (function.c) ---- */

/* Names as interned strings, and what a class has that does not bring its own; the latter are
 * filled by _set_function_defaults. */
extern struct tnpy_fn_names {
    PyObject *backward_cls, *forward, *backward, *vjp, *jvp, *setup, *once, *bind, *name,
        *forward_cls;
    PyObject *plain_setup, *plain_backward, *plain_vjp, *plain_jvp;
} tnpy_fn;

static inline void tnpy_fn_put(PyObject **slot, PyObject *value)
{
    PyObject *old = *slot;
    *slot = value;
    Py_XDECREF(old);
}

/* ---- the context (function_context.c) ---- */

/* Whether argument @p i was a tensor: those are the inputs of the node. */
bool tnpy_fn_arg_is_tensor(const tnpy_fn_object *o, Py_ssize_t i);
/* 0, or -1 with this message when one is neither a tensor nor None. */
int tnpy_fn_check_tensors(PyObject *tuple, const char *message);
extern PyMethodDef tnpy_fn_methods[];
extern PyGetSetDef tnpy_fn_getset[];
extern PyMemberDef tnpy_fn_members[];

/* ---- callbacks (function_run.c) ---- */

/* The backward pass through a context that this thread is in; NULL: none. */
tn_function_ctx *tnpy_fn_backward_of(const tnpy_fn_object *o);
int tnpy_fn_tensors_of(PyObject *tuple, tn_tensor ***out);
tn_status tnpy_fn_on_forward(tn_function_ctx *ctx, tn_tensor *const *inputs, int n_inputs,
                             tn_tensor **outputs, int n_outputs);
tn_status tnpy_fn_on_backward(tn_function_ctx *ctx, tn_tensor *const *grads, int n_grads,
                              tn_tensor **out, int n_out);
tn_status tnpy_fn_on_jvp(tn_function_ctx *ctx, tn_tensor *const *tangents, int n, tn_tensor **out,
                         int n_out);

#endif
