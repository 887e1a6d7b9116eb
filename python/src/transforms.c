/* SPDX-License-Identifier: MIT */
/* transforms.c: functions that are transformed as a whole (tenon.func): on which level a thread is,
 * and what must not be called there. */
#include "grad.h"

/* In how many functions that are transformed this thread is, and how many of those are
 * differentiated. */
static _Thread_local int transforms, differentiations;

static bool refuses(int within, const char *text)
{
    if (TNPY_LIKELY(within == 0))
        return false;
    /* Whose code calls? The package's own may. */
    PyObject *globals = PyEval_GetGlobals();
    PyObject *name = globals ? PyDict_GetItemString(globals, "__name__") : NULL;
    static const char *const own[] = {"tenon", "torch"};
    for (int i = 0; name && i < 2; i++) {
        PyObject *inner = PyUnicode_FromFormat("%s.", own[i]);
        Py_ssize_t begins = inner ? PyUnicode_Tailmatch(name, inner, 0, PY_SSIZE_T_MAX, -1) : -1;
        Py_XDECREF(inner);
        if (begins < 0)
            return true;
        if (begins > 0 || PyUnicode_CompareWithASCIIString(name, own[i]) == 0)
            return false;
    }
    PyErr_SetString(PyExc_RuntimeError, text);
    return true;
}

bool tnpy_transform_refuses(const char *text)
{
    return refuses(transforms, text);
}

bool tnpy_differentiation_refuses(const char *text)
{
    return refuses(differentiations, text);
}

/* _in_transform(1) before a function of the user's that is differentiated is called, (2) before one
 * that is mapped; (-1) and (-2) after it. */
static PyObject *in_transform(PyObject *module, PyObject *by)
{
    (void)module;
    long n = PyLong_AsLong(by);
    if (n == -1 && PyErr_Occurred())
        return NULL;
    transforms += n > 0 ? 1 : -1;
    differentiations += n == 1 ? 1 : n == -1 ? -1 : 0;
    return Py_NewRef(Py_None);
}

static PyObject *transform_begin(PyObject *module, PyObject *differentiates)
{
    (void)module;
    tn_transform_guard guard = tn_transform_begin(differentiates == Py_True);
    PyObject *made = Py_BuildValue("(III)", (unsigned)guard.number, (unsigned)guard.outer,
                                   (unsigned)guard.outer_differentiating);
    if (!made)
        tn_transform_end(guard);
    return made;
}

static PyObject *transform_end(PyObject *module, PyObject *args)
{
    (void)module;
    unsigned number, outer, outer_differentiating;
    if (!PyArg_ParseTuple(args, "III", &number, &outer, &outer_differentiating))
        return NULL;
    tn_transform_end((tn_transform_guard){number, outer, outer_differentiating});
    return Py_NewRef(Py_None);
}

static PyObject *set_made_in(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *o;
    unsigned number;
    if (!PyArg_ParseTuple(args, "OI", &o, &number))
        return NULL;
    if (!tnpy_is_tensor(o))
        return PyErr_Format(PyExc_TypeError, "_set_made_in(): expected a Tensor");
    return PyLong_FromUnsignedLong(tn_tensor_set_made_in(tnpy_tensor(o), number));
}

static PyObject *is_captured(PyObject *module, PyObject *o)
{
    (void)module;
    return PyBool_FromLong(tnpy_is_tensor(o) && tn_tensor_is_captured(tnpy_tensor(o)));
}

static PyMethodDef functions[] = {
    {"_in_transform", in_transform, METH_O, NULL},
    {"_transform_begin", transform_begin, METH_O, NULL},
    {"_transform_end", transform_end, METH_VARARGS, NULL},
    {"_set_made_in", set_made_in, METH_VARARGS, NULL},
    {"_is_captured", is_captured, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

int tnpy_add_transforms(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
