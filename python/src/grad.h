/* SPDX-License-Identifier: MIT */
/* grad.h: what the files about gradients share: lists of tensors, nodes, hooks, functions. */
#ifndef TNPY_GRAD_H
#define TNPY_GRAD_H

#include "tnpy.h"

#include "tenon/forward.h"
#include "tenon/function.h"
#include "tenon/saved_hooks.h"

/* ---- Python objects that C holds (held.c) ---- */

/* A reference that can be dropped by whoever is last to need it, with or without the interpreter
 * lock; without it, the object goes when somebody next has the lock. Dropping cannot fail. */
typedef struct tnpy_held {
    PyObject *object;
    struct tnpy_held *next;
    int in_place; /* part of the object itself */
} tnpy_held;

/* A new reference to @p o; NULL with an exception. */
tnpy_held *tnpy_hold(PyObject *o);
/* No lock is needed. NULL is fine. */
void tnpy_drop(tnpy_held *held);
/* The same as a release function of C. */
void tnpy_drop_any(void *held);
/* Let go of what waits; wants the lock. */
void tnpy_drop_waiting(void);

/* ---- lists of tensors (autograd.c) ---- */

/* Tensors of a Python sequence, referenced: the sequence may change while a pass runs. */
typedef struct tnpy_list {
    tn_tensor **v;
    int64_t n;
    tn_tensor *few[4];
} tnpy_list;

/* @p o: None (empty), a Tensor, or a sequence of Tensors, and of None where @p none. @p what: what
 * an item is called in the message. 0, or -1 with an exception and nothing to release. */
int tnpy_list_of(PyObject *o, int none, const char *what, tnpy_list *out);
void tnpy_list_clear(tnpy_list *list);

/* ---- nodes (node.c) ---- */

/* The Python object of a node, the same one while it lives; NULL gives None. Of a Python Function
 * it is the context that its forward part got. */
PyObject *tnpy_node(TN_STOLEN tn_node *node);
/* The node of such an object, a new reference; NULL with an exception. */
tn_node *tnpy_node_of(PyObject *o);
/* Give a type the attributes that every such object has. 0, or -1. */
int tnpy_add_node_parts(PyTypeObject *type);

/* A tp_call: what the node makes of gradients, outside of a pass (node_call.c). */
PyObject *tnpy_node_call(PyObject *self, PyObject *args, PyObject *kwargs);

/* ---- hooks (hooks.c) ---- */

/* A handle that takes the hook away: remove(), or as a context manager. */
PyObject *tnpy_hook_handle(TN_STOLEN tn_hook *hook);
/* Methods of nodes. */
PyObject *tnpy_node_register_hook(PyObject *self, PyObject *fn);
PyObject *tnpy_node_register_prehook(PyObject *self, PyObject *fn);
/* How many of the @p n inputs of a node users see. */
int64_t tnpy_shown_inputs(const tn_node *node, int64_t n);
/* For a tp_traverse: the functions of the hooks of a leaf that nobody but the caller keeps. */
int tnpy_visit_hooks(const tn_tensor *t, visitproc visit, void *arg);
/* The same for a node. */
int tnpy_visit_node_hooks(tn_node *node, visitproc visit, void *arg);
/* Saved-tensor hooks of a tuple (pack, unpack), which they take once they are registered. */
tn_saved_hooks tnpy_saved_hooks_of(tnpy_held *pair);

/* ---- saved values (saved_tensor.c) ---- */

/* What saved value @p at of @p node is before it is unpacked. */
PyObject *tnpy_saved_tensor(tn_node *node, uint32_t at, bool of_function);

/* ---- functions (function.c) ---- */

/* The context of a Python Function's node, borrowed; NULL for other nodes. */
PyObject *tnpy_function_of(const tn_node *node);
/* The node of a context, a new reference; NULL when it is gone. */
tn_node *tnpy_function_node(PyObject *o);
int tnpy_is_function(PyObject *o);

/* ---- nesting.c ---- */

/* Around a pass, with the interpreter lock: see Note [Nested passes and the recursion limit]. */
typedef struct tnpy_nesting {
    bool nested;
    int outer_limit;
    PyObject *outer_frame;
} tnpy_nesting;
void tnpy_pass_begins(tnpy_nesting *n);
void tnpy_pass_ended(const tnpy_nesting *n);
void tnpy_set_up_nesting(void);

/* What a pass that failed raises: CheckpointError where a checkpoint found a difference
 * (checkpoint.c). Returns NULL. */
PyObject *tnpy_raise_pass(tn_status status);
/* Whether what is called may not be called by a function that is transformed (func.grad, vmap, …),
 * and one is: a RuntimeError of this text is set then. */
bool tnpy_transform_refuses(const char *text);
/* The same for functions that are differentiated alone: vmap may call it. */
bool tnpy_differentiation_refuses(const char *text);

/* In anomaly mode: an exception of Python code that is on its way out gets the trace of the forward
 * call as a note (anomaly.c). */
void tnpy_note_anomaly(void);

/* Read keyword and positional arguments of a METH_FASTCALL function: @p names ends with NULL; what
 * is not given stays as it is. 0, or -1 with a TypeError. */
int tnpy_arguments(const char *function, const char *const *names, PyObject *const *args,
                   Py_ssize_t n, PyObject *kwnames, PyObject **out);

int tnpy_add_node(PyObject *module);
int tnpy_add_hooks(PyObject *module);
int tnpy_add_saved_tensor(PyObject *module);
int tnpy_add_function(PyObject *module);
int tnpy_add_transforms(PyObject *module);
int tnpy_add_forward_ad(PyObject *module);
int tnpy_add_anomaly(PyObject *module);
int tnpy_add_checkpoint(PyObject *module);
int tnpy_add_autocast(PyObject *module);
int tnpy_add_profile(PyObject *module);

#endif
