/* SPDX-License-Identifier: MIT */
/* modes.c: grad mode, inference mode, threads, and questions about tensors that take no operator.
 */
#include "tnpy.h"

static PyObject *is_grad_enabled(PyObject *self, PyObject *nothing)
{
    (void)self;
    (void)nothing;
    return PyBool_FromLong(tn_grad_enabled());
}

static PyObject *set_grad_enabled(PyObject *self, PyObject *o)
{
    (void)self;
    int on = PyObject_IsTrue(o);
    if (on < 0)
        return NULL;
    return PyBool_FromLong(tn_set_grad_enabled(on));
}

static PyObject *is_inference_mode_enabled(PyObject *self, PyObject *nothing)
{
    (void)self;
    (void)nothing;
    return PyBool_FromLong(tn_inference_mode_enabled());
}

static PyObject *get_num_threads(PyObject *self, PyObject *nothing)
{
    (void)self;
    (void)nothing;
    return PyLong_FromLong(tn_num_threads());
}

static PyObject *set_num_threads(PyObject *self, PyObject *o)
{
    (void)self;
    int64_t n;
    if (!PyLong_Check(o)) {
        char name[128];
        PyErr_Format(PyExc_RuntimeError, "set_num_threads expects an int, but got %s",
                     tnpy_type_name(o, name, sizeof name));
        return NULL;
    }
    if (tnpy_int_of(o, &n))
        return NULL;
    if (n < 1 || n > 4096) {
        PyErr_SetString(PyExc_RuntimeError, "set_num_threads expects a positive integer");
        return NULL;
    }
    tn_status st = tn_set_num_threads((int)n);
    return st == TN_OK ? Py_NewRef(Py_None) : tnpy_raise(st);
}

static PyObject *is_tensor(PyObject *self, PyObject *o)
{
    (void)self;
    return PyBool_FromLong(tnpy_is_tensor(o));
}

static PyMethodDef functions[] = {
    {"is_grad_enabled", is_grad_enabled, METH_NOARGS, "is_grad_enabled() -> bool"},
    {"_set_grad_enabled", set_grad_enabled, METH_O,
     "_set_grad_enabled(mode) -> bool\n\nReturns what it was."},
    {"is_inference_mode_enabled", is_inference_mode_enabled, METH_NOARGS,
     "is_inference_mode_enabled() -> bool"},
    {"get_num_threads", get_num_threads, METH_NOARGS, "get_num_threads() -> int"},
    {"set_num_threads", set_num_threads, METH_O, "set_num_threads(int)"},
    {"is_tensor", is_tensor, METH_O, "is_tensor(obj) -> bool"},
    {NULL, NULL, 0, NULL},
};

int tnpy_add_modes(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
