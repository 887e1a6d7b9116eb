/* SPDX-License-Identifier: MIT */
/* function_context.c: the context of autograd.Function: what users say to it in forward and
 * setup_context, and ask it in backward and jvp. */
#include "function.h"

bool tnpy_fn_arg_is_tensor(const tnpy_fn_object *o, Py_ssize_t i)
{
    return !o->tensor_args ||
           (i < PyBytes_Size(o->tensor_args) && PyBytes_AsString(o->tensor_args)[i]);
}

/* ---- the context: what users say and ask ---- */

static PyObject *keep_args(PyObject **slot, PyObject *args)
{
    tnpy_fn_put(slot, Py_NewRef(args));
    Py_RETURN_NONE;
}

static PyObject *save_for_backward(PyObject *self, PyObject *args)
{
    return keep_args(&((tnpy_fn_object *)self)->to_save, args);
}

int tnpy_fn_check_tensors(PyObject *tuple, const char *message)
{
    Py_ssize_t n = PyTuple_Size(tuple);
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *item = PyTuple_GetItem(tuple, i);
        if (item == Py_None || tnpy_tensor(item))
            continue;
        PyObject *name = PyType_GetName(Py_TYPE(item));
        PyErr_Format(PyExc_TypeError, message, i, name);
        Py_XDECREF(name);
        return -1;
    }
    return 0;
}

static PyObject *save_for_forward(PyObject *self, PyObject *args)
{
    if (tnpy_fn_check_tensors(
            args, "save_for_forward expects all arguments to be tensors; you should save "
                  "non-tensors as attributes on ctx. (argument %zd is of type %U)") < 0)
        return NULL;
    return keep_args(&((tnpy_fn_object *)self)->for_forward, args);
}

static PyObject *mark_dirty(PyObject *self, PyObject *args)
{
    return keep_args(&((tnpy_fn_object *)self)->dirty, args);
}

static PyObject *mark_non_differentiable(PyObject *self, PyObject *args)
{
    return keep_args(&((tnpy_fn_object *)self)->non_differentiable, args);
}

static PyObject *set_materialize_grads(PyObject *self, PyObject *value)
{
    int on = PyObject_IsTrue(value);
    if (on < 0)
        return NULL;
    ((tnpy_fn_object *)self)->materialize = (char)on;
    Py_RETURN_NONE;
}

static PyObject *saved_of(tn_node *node)
{
    int n = tn_node_function_saved_count(node);
    PyObject *tuple = PyTuple_New(n);
    for (int i = 0; i < n && tuple; i++) {
        tn_tensor *t = NULL;
        tn_status status = tn_node_function_saved(node, i, &t);
        PyObject *item = status == TN_OK ? tnpy_wrap(t) : tnpy_raise(status);
        if (item)
            PyTuple_SetItem(tuple, i, item);
        else
            Py_CLEAR(tuple);
    }
    return tuple;
}

/* The node, a new reference, NULL when nothing was recorded. -1 with an exception: it is gone, and
 * what was saved with it. */
static int node_with_saved(PyObject *self, tn_node **out)
{
    *out = tnpy_function_node(self);
    if (*out || !((tnpy_fn_object *)self)->node_ended)
        return 0;
    PyErr_SetString(
        PyExc_RuntimeError,
        "Trying to backward through the graph a second time (or directly access saved tensors "
        "after they have already been freed). Saved intermediate values of the graph are freed "
        "when you call .backward() or autograd.grad(). Specify retain_graph=True if you need to "
        "backward through the graph a second time or if you need to access saved tensors after "
        "calling backward.");
    return -1;
}

static PyObject *get_saved_tensors(PyObject *self, void *closure)
{
    (void)closure;
    tnpy_fn_object *o = (tnpy_fn_object *)self;
    if (o->for_forward)
        return Py_NewRef(o->for_forward);
    tn_node *node = NULL;
    if (node_with_saved(self, &node) < 0)
        return NULL;
    PyObject *saved = node ? saved_of(node) : PyTuple_New(0);
    tn_node_unref(node);
    return saved;
}

static PyObject *get_raw_saved_tensors(PyObject *self, void *closure)
{
    (void)closure;
    tn_node *node = NULL;
    if (node_with_saved(self, &node) < 0)
        return NULL;
    int n = node ? tn_node_function_saved_count(node) : 0;
    /* Reading one says why when they are gone. */
    PyObject *first = n ? saved_of(node) : PyTuple_New(0);
    PyObject *tuple = first ? PyTuple_New(n) : NULL;
    for (int i = 0; i < n && tuple; i++) {
        PyObject *item = tnpy_saved_tensor(node, (uint32_t)i, true);
        if (item)
            PyTuple_SetItem(tuple, i, item);
        else
            Py_CLEAR(tuple);
    }
    Py_XDECREF(first);
    tn_node_unref(node);
    return tuple;
}

static PyObject *get_needs_input_grad(PyObject *self, void *closure)
{
    (void)closure;
    tnpy_fn_object *o = (tnpy_fn_object *)self;
    const tn_function_ctx *ctx = tnpy_fn_backward_of(o);
    if (o->needs_given && PyTuple_Check(o->needs_given))
        return Py_NewRef(o->needs_given);
    if (!o->needs_input_grad)
        return PyTuple_New(0);
    if (!ctx)
        return Py_NewRef(o->needs_input_grad);
    Py_ssize_t n = PyTuple_Size(o->needs_input_grad);
    PyObject *tuple = PyTuple_New(n);
    int input = 0;
    for (Py_ssize_t i = 0; i < n && tuple; i++) {
        bool needs = tnpy_fn_arg_is_tensor(o, i) && tn_function_needs_input_grad(ctx, input++);
        PyTuple_SetItem(tuple, i, PyBool_FromLong(needs));
    }
    if (!tuple || !o->needs_given)
        return tuple;
    PyObject *shown = PyObject_CallFunctionObjArgs(o->needs_given, tuple, NULL);
    Py_DECREF(tuple);
    return shown;
}

/* A tuple is shown from now on. What can be called is given the tuple of each pass, and what it
 * gives is shown: passes on several threads may want different gradients of one node. */
static int set_needs_input_grad(PyObject *self, PyObject *value, void *closure)
{
    (void)closure;
    tnpy_fn_object *o = (tnpy_fn_object *)self;
    bool kept = value && (PyTuple_Check(value) || PyCallable_Check(value));
    tnpy_fn_put(&o->needs_given, kept ? Py_NewRef(value) : NULL);
    return 0;
}

static PyObject *get_materialize(PyObject *self, void *closure)
{
    (void)closure;
    return PyBool_FromLong(((tnpy_fn_object *)self)->materialize);
}

static int set_materialize(PyObject *self, PyObject *value, void *closure)
{
    (void)closure;
    int on = value ? PyObject_IsTrue(value) : 1;
    ((tnpy_fn_object *)self)->materialize = (char)(on != 0);
    return on < 0 ? -1 : 0;
}

/* ---- tables for the type ---- */

PyMethodDef tnpy_fn_methods[] = {
    {"save_for_backward", save_for_backward, METH_VARARGS,
     "save_for_backward(*tensors)\n--\n\nKeep tensors for backward; None is fine."},
    {"save_for_forward", save_for_forward, METH_VARARGS,
     "save_for_forward(*tensors)\n--\n\nKeep tensors for jvp."},
    {"mark_dirty", mark_dirty, METH_VARARGS,
     "mark_dirty(*inputs)\n--\n\nThese inputs were written in place; each must be returned."},
    {"mark_non_differentiable", mark_non_differentiable, METH_VARARGS,
     "mark_non_differentiable(*outputs)\n--\n\nThese outputs have no gradient."},
    {"set_materialize_grads", set_materialize_grads, METH_O,
     "set_materialize_grads(value)\n--\n\nFalse: backward gets None for gradients that did not "
     "come."},
    {NULL, NULL, 0, NULL},
};
PyGetSetDef tnpy_fn_getset[] = {
    {"saved_tensors", get_saved_tensors, NULL, "What save_for_backward kept.", NULL},
    {"saved_variables", get_saved_tensors, NULL, NULL, NULL},
    {"_raw_saved_tensors", get_raw_saved_tensors, NULL, "The same before they are unpacked.", NULL},
    {"needs_input_grad", get_needs_input_grad, set_needs_input_grad,
     "For each input whether its gradient is wanted.", NULL},
    {"materialize_grads", get_materialize, set_materialize, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
PyMemberDef tnpy_fn_members[] = {
    {"__dictoffset__", T_PYSSIZET, offsetof(tnpy_fn_object, dict), READONLY, NULL},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(tnpy_fn_object, weak), READONLY, NULL},
    {"to_save", T_OBJECT, offsetof(tnpy_fn_object, to_save), 0, NULL},
    {"saved_for_forward", T_OBJECT, offsetof(tnpy_fn_object, for_forward), 0, NULL},
    {"dirty_tensors", T_OBJECT, offsetof(tnpy_fn_object, dirty), 0, NULL},
    {"non_differentiable", T_OBJECT, offsetof(tnpy_fn_object, non_differentiable), 0, NULL},
    {NULL, 0, 0, 0, NULL},
};
