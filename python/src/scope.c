/* SPDX-License-Identifier: MIT */
/* scope.c: the base of classes for with statements that are entered by a call of C. Python looks
 * for signals between its own instructions: Ctrl+C in an `__enter__` or `__exit__` that is written
 * in Python can leave the state of C entered for good. Here nothing of Python's runs between the
 * call and its being noted.
 */
#include "tnpy.h"

static PyObject *name_enters, *name_guards, *name_leaves;

/* __enter__(): `_enters()`, whose result is kept in `_guards` with the thread that asked. Without
 * `_enters` (None) there is nothing to do. */
static PyObject *scope_enter(PyObject *o, PyObject *unused)
{
    (void)unused;
    PyObject *enters = PyObject_GetAttr(o, name_enters);
    if (!enters || enters == Py_None) {
        Py_XDECREF(enters);
        return enters ? Py_NewRef(o) : NULL;
    }
    PyObject *guards = PyObject_GetAttr(o, name_guards);
    PyObject *leaves = guards ? PyObject_GetAttr(o, name_leaves) : NULL;
    PyObject *pair = leaves ? PyList_New(2) : NULL;
    PyObject *thread = pair ? PyLong_FromUnsignedLong(PyThread_get_thread_ident()) : NULL;
    /* What can fail comes first: once entered, there is room to note it. */
    int done = thread ? PyList_SetItem(pair, 0, thread) : -1;
    if (!done)
        done = PyList_SetItem(pair, 1, Py_NewRef(Py_None));
    if (!done)
        done = PyList_Append(guards, pair);
    if (!done) {
        PyObject *guard = PyObject_CallNoArgs(enters);
        if (guard) {
            (void)PyList_SetItem(pair, 1, guard);
        } else {
            PyObject *type, *value, *trace;
            PyErr_Fetch(&type, &value, &trace);
            Py_ssize_t n = PyList_Size(guards);
            for (Py_ssize_t i = n - 1; i >= 0; i--)
                if (PyList_GetItem(guards, i) == pair) {
                    (void)PyList_SetSlice(guards, i, i + 1, NULL);
                    break;
                }
            PyErr_Restore(type, value, trace);
            done = -1;
        }
    }
    Py_XDECREF(pair);
    Py_XDECREF(leaves);
    Py_XDECREF(guards);
    Py_DECREF(enters);
    return done ? NULL : Py_NewRef(o);
}

/* __exit__(): `_leaves(guard)` of what this thread entered last. */
static PyObject *scope_exit(PyObject *o, PyObject *args)
{
    (void)args;
    PyObject *enters = PyObject_GetAttr(o, name_enters);
    if (!enters || enters == Py_None) {
        Py_XDECREF(enters);
        return enters ? Py_NewRef(Py_False) : NULL;
    }
    Py_DECREF(enters);
    PyObject *guards = PyObject_GetAttr(o, name_guards);
    PyObject *leaves = guards ? PyObject_GetAttr(o, name_leaves) : NULL;
    PyObject *left = NULL;
    if (leaves) {
        unsigned long here = PyThread_get_thread_ident();
        Py_ssize_t i = PyList_Size(guards) - 1;
        PyObject *pair = NULL;
        for (; i >= 0; i--) {
            pair = PyList_GetItem(guards, i);
            if (PyLong_AsUnsignedLong(PyList_GetItem(pair, 0)) == here)
                break;
        }
        if (i < 0) {
            PyErr_SetString(PyExc_RuntimeError, "this thread is not inside the with statement");
        } else {
            PyObject *guard = Py_NewRef(PyList_GetItem(pair, 1));
            if (!PyList_SetSlice(guards, i, i + 1, NULL))
                left = PyObject_CallFunctionObjArgs(leaves, guard, NULL);
            Py_DECREF(guard);
        }
    }
    Py_XDECREF(leaves);
    Py_XDECREF(guards);
    if (!left)
        return NULL;
    Py_DECREF(left);
    return Py_NewRef(Py_False);
}

static PyMethodDef methods[] = {
    {"__enter__", scope_enter, METH_NOARGS, NULL},
    {"__exit__", scope_exit, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {{Py_tp_methods, methods}, {0, NULL}};
static PyType_Spec spec = {
    .name = "tenon._C._Scope",
    .basicsize = sizeof(PyObject),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .slots = slots,
};

int tnpy_add_scope(PyObject *module)
{
    name_enters = PyUnicode_InternFromString("_enters");
    name_guards = PyUnicode_InternFromString("_guards");
    name_leaves = PyUnicode_InternFromString("_leaves");
    if (!name_enters || !name_guards || !name_leaves)
        return -1;
    PyObject *type = PyType_FromSpec(&spec);
    int added = type ? PyModule_AddObjectRef(module, "_Scope", type) : -1;
    Py_XDECREF(type);
    return added;
}
