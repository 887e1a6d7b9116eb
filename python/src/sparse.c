/* SPDX-License-Identifier: MIT */
/* sparse.c: calls that ask for a sparse layout. The library has none: Python makes such tensors. */
#include "fit.h"

/* Whether a sparse layout is asked for by name. */
static bool wants_sparse(const tnpy_call *c)
{
    for (int i = 0; i < c->n_keywords; i++) {
        PyObject *value = tnpy_keyword_value(c, i);
        if (!tnpy_is_layout(value) ||
            PyUnicode_CompareWithASCIIString(PyTuple_GetItem(c->kwnames, i), "layout") != 0)
            continue;
        PyObject *strided = tnpy_layout(TN_LAYOUT_STRIDED);
        bool other = value != strided;
        Py_DECREF(strided);
        return other;
    }
    return false;
}

/* The arguments as a tuple and a dictionary. */
static int gather(const tnpy_call *c, PyObject **args, PyObject **kwargs)
{
    int has_self = c->self != NULL;
    *args = PyTuple_New(c->n);
    *kwargs = PyDict_New();
    int failed = !*args || !*kwargs;
    for (int i = 0; !failed && i < c->n; i++)
        failed =
            PyTuple_SetItem(*args, i, Py_NewRef(i < has_self ? c->self : c->args[i - has_self]));
    for (int i = 0; !failed && i < c->n_keywords; i++)
        failed = PyDict_SetItem(*kwargs, PyTuple_GetItem(c->kwnames, i), tnpy_keyword_value(c, i));
    return failed;
}

PyObject *tnpy_try_sparse(const tnpy_call *c)
{
    if (!PyErr_ExceptionMatches(PyExc_NotImplementedError) || !wants_sparse(c))
        return NULL;
    PyObject *kind, *error, *trace, *args, *kwargs, *result = NULL;
    PyErr_Fetch(&kind, &error, &trace);
    PyObject *module = PyImport_ImportModule("tenon.sparse._create");
    PyObject *make = module ? PyObject_GetAttrString(module, "make") : NULL;
    if (!gather(c, &args, &kwargs) && make)
        result = PyObject_CallFunction(make, "sOO", c->entry->name, args, kwargs);
    Py_XDECREF(args);
    Py_XDECREF(kwargs);
    Py_XDECREF(make);
    Py_XDECREF(module);
    if (result != Py_None) {
        Py_XDECREF(kind);
        Py_XDECREF(error);
        Py_XDECREF(trace);
        return result;
    }
    Py_DECREF(result); /* Python has no answer, either */
    PyErr_Restore(kind, error, trace);
    return NULL;
}
