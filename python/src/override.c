/* SPDX-License-Identifier: MIT */
/* override.c: __torch_function__: modes first, then arguments whose types override it, those of a
 * subclass before those of its base, otherwise from the left. And the text for a call that fits no
 * signature. */
#include "override.h"

#include <string.h>

_Thread_local int tnpy_function_modes;
static _Thread_local int disabled;

int tnpy_function_enabled(void)
{
    return disabled == 0;
}

static PyObject *disabled_impl; /* _C._disabled_torch_function_impl */

int tnpy_overrides_slow(tnpy_tensor_object *o)
{
    PyObject *own =
        PyObject_GetAttrString((PyObject *)Py_TYPE((PyObject *)o), "__torch_function__");
    if (!own)
        PyErr_Clear();
    o->looked = Py_TYPE((PyObject *)o);
    o->overrides = own != NULL && own != disabled_impl;
    Py_XDECREF(own);
    return o->overrides;
}

int tnpy_has_torch_function(PyObject *o)
{
    PyTypeObject *type = Py_TYPE(o);
    if (type == &PyLong_Type || type == &PyFloat_Type || type == &PyUnicode_Type ||
        type == &PyTuple_Type || type == &PyList_Type || type == &PyBool_Type || o == Py_None)
        return 0;
    PyObject *own = PyObject_GetAttrString((PyObject *)type, "__torch_function__");
    if (!own) {
        PyErr_Clear();
        return 0;
    }
    int has = own != disabled_impl;
    Py_DECREF(own);
    return has;
}

static int overriding(PyObject *o)
{
    return tnpy_is_tensor(o) ? tnpy_overrides(o) : tnpy_has_torch_function(o);
}

/* Add @p o to the list, before the first whose class is a base of its own; once a type. */
static int note(PyObject *list, PyObject *o)
{
    if (!overriding(o))
        return 0;
    Py_ssize_t n = PyList_Size(list), at = n;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyTypeObject *other = Py_TYPE(PyList_GetItem(list, i));
        if (other == Py_TYPE(o))
            return 0;
        if (at == n && PyType_IsSubtype(Py_TYPE(o), other))
            at = i;
    }
    return PyList_Insert(list, at, o);
}

static int note_any(PyObject *list, PyObject *o)
{
    if (!PyTuple_Check(o) && !PyList_Check(o))
        return note(list, o);
    Py_ssize_t n = PySequence_Size(o);
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *item = PySequence_GetItem(o, i);
        int failed = item ? note(list, item) : -1;
        Py_XDECREF(item);
        if (failed)
            return -1;
    }
    return 0;
}

/* What overrides get as `func`: tenon.add, or Tensor.add. */
static PyObject *function_of(tnpy_entry *e)
{
    if (e->function)
        return e->function;
    if (e->method) {
        e->function = PyObject_GetAttrString((PyObject *)tnpy_Tensor, e->name);
        return e->function;
    }
    PyObject *module = PyImport_ImportModule("tenon");
    if (!module)
        return NULL;
    e->function = PyObject_GetAttrString(module, e->name);
    Py_DECREF(module);
    return e->function;
}

static PyObject *ask(PyObject *who, PyObject *func, PyObject *types, PyObject *args,
                     PyObject *kwargs)
{
    PyObject *method = PyObject_GetAttrString(who, "__torch_function__");
    if (!method)
        return NULL;
    PyObject *result = PyObject_CallFunctionObjArgs(method, func, types, args, kwargs, NULL);
    Py_DECREF(method);
    return result;
}

static PyObject *types_of(PyObject *list)
{
    Py_ssize_t n = PyList_Size(list);
    PyObject *types = PyTuple_New(n);
    for (Py_ssize_t i = 0; types && i < n; i++)
        PyTuple_SetItem(types, i, Py_NewRef((PyObject *)Py_TYPE(PyList_GetItem(list, i))));
    return types;
}

static PyObject *ask_all(PyObject *list, PyObject *func, PyObject *types, PyObject *args,
                         PyObject *kwargs)
{
    Py_ssize_t n = PyList_Size(list);
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *result = ask(PyList_GetItem(list, i), func, types, args, kwargs);
        if (result != Py_NotImplemented)
            return result;
        Py_DECREF(result);
    }
    PyErr_Format(PyExc_TypeError,
                 "Multiple dispatch failed for '%S'; all __torch_function__ handlers returned "
                 "NotImplemented:\n\n  - "
                 "tensor subclasses %S\n\nFor more information, try re-running with "
                 "TORCH_LOGS=not_implemented",
                 func, types);
    return NULL;
}

PyObject *tnpy_override(tnpy_entry *e, PyObject *self, PyObject *const *args, Py_ssize_t n,
                        PyObject *kwnames)
{
    PyObject *func = function_of(e);
    if (!func)
        return NULL;
    int first = self != NULL;
    Py_ssize_t n_keywords = kwnames ? PyTuple_Size(kwnames) : 0;
    PyObject *list = PyList_New(0), *tuple = PyTuple_New(n + first), *kwargs = PyDict_New(),
             *types = NULL, *result = NULL;
    if (!list || !tuple || !kwargs)
        goto out;
    if (first) {
        PyTuple_SetItem(tuple, 0, Py_NewRef(self));
        if (note(list, self))
            goto out;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        PyTuple_SetItem(tuple, i + first, Py_NewRef(args[i]));
        if (note_any(list, args[i]))
            goto out;
    }
    for (Py_ssize_t i = 0; i < n_keywords; i++)
        if (PyDict_SetItem(kwargs, PyTuple_GetItem(kwnames, i), args[n + i]) ||
            note_any(list, args[n + i]))
            goto out;
    types = types_of(list);
    if (types)
        result = ask_all(list, func, types, tuple, kwargs);
out:
    Py_XDECREF(list);
    Py_XDECREF(tuple);
    Py_XDECREF(kwargs);
    Py_XDECREF(types);
    return result;
}
