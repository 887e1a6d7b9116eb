/* SPDX-License-Identifier: MIT */
/* node_call.c: a node as a function of gradients: grad_fn(grad). */
#include "grad.h"

/* One gradient for each of the node's inputs. 0, or -1 with an exception. */
static int take_grads(const tn_node *node, PyObject *args, tnpy_list *grads)
{
    Py_ssize_t n = PyTuple_Size(args);
    Py_ssize_t wanted = (Py_ssize_t)tnpy_shown_inputs(node, tn_node_num_inputs(node));
    if (n != wanted) {
        PyErr_Format(PyExc_TypeError, "expected %zd arguments, got %zd instead", wanted, n);
        return -1;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *o = PyTuple_GetItem(args, i);
        if (o == Py_None || tnpy_tensor(o))
            continue;
        PyErr_Format(PyExc_TypeError, "expected Variable argument %zd", i);
        return -1;
    }
    return tnpy_list_of(args, 1, "gradients", grads);
}

/* A single result as it is, else a tuple. Takes the references. */
static PyObject *results_of(tn_tensor **out, uint32_t n)
{
    if (n == 1)
        return tnpy_wrap(out[0]);
    PyObject *all = PyTuple_New((Py_ssize_t)n);
    for (uint32_t i = 0; i < n; i++) {
        PyObject *one = all ? tnpy_wrap(out[i]) : NULL;
        if (one)
            PyTuple_SetItem(all, (Py_ssize_t)i, one);
        else if (all)
            Py_CLEAR(all);
        else
            tn_tensor_unref(out[i]);
    }
    return all;
}

PyObject *tnpy_node_call(PyObject *self, PyObject *args, PyObject *kwargs)
{
    tnpy_list grads;
    tn_node *node = tnpy_node_of(self);
    if (node && kwargs && PyDict_Size(kwargs) > 0) {
        PyErr_SetString(PyExc_TypeError, "keyword arguments are not supported");
        tn_node_unref(node);
        return NULL;
    }
    if (!node || take_grads(node, args, &grads) < 0) {
        tn_node_unref(node);
        return NULL;
    }
    uint32_t n = tn_node_num_edges(node), n_in = tn_node_num_inputs(node);
    tn_tensor **out = PyMem_Calloc((size_t)n + n_in + 1, sizeof *out);
    tn_status status = out ? TN_OK : TN_NOMEM;
    if (out) {
        tn_tensor **in = out + n;
        for (int64_t i = 0; i < grads.n; i++)
            in[i] = grads.v[i];
        PyThreadState *state = tnpy_unlock();
        status = tn_node_call(node, in, n_in, out);
        tnpy_lock(state);
    }
    PyObject *result = !out              ? PyErr_NoMemory()
                       : status == TN_OK ? results_of(out, n)
                                         : tnpy_raise_pass(status);
    PyMem_Free(out);
    tnpy_list_clear(&grads);
    tn_node_unref(node);
    return result;
}
