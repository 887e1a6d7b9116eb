/* SPDX-License-Identifier: MIT */
/* forward_ad.c: forward mode from Python: the dual level, dual tensors. */
#include "grad.h"

static PyObject *done(tn_status status)
{
    if (status != TN_OK)
        return tnpy_raise(status);
    Py_RETURN_NONE;
}

static PyObject *enter(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return done(tn_forward_enter());
}

static PyObject *leave(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return done(tn_forward_leave());
}

static PyObject *entered(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return PyBool_FromLong(tn_forward_entered());
}

/* _make_dual(primal, tangent) */
static PyObject *make_dual(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *primal, *tangent;
    if (!PyArg_ParseTuple(args, "OO", &primal, &tangent))
        return NULL;
    tn_tensor *p = tnpy_tensor(primal), *t = tnpy_tensor(tangent), *out = NULL;
    if (!p || !t) {
        PyErr_SetString(PyExc_TypeError, "make_dual() wants two Tensors");
        return NULL;
    }
    tn_status status = tn_make_dual(p, t, &out);
    return status == TN_OK ? tnpy_wrap(out) : tnpy_raise(status);
}

/* _unpack_dual(tensor): (primal, tangent or None) */
static PyObject *unpack_dual(PyObject *module, PyObject *o)
{
    (void)module;
    tn_tensor *t = tnpy_tensor(o), *primal = NULL, *tangent = NULL;
    if (!t) {
        PyErr_SetString(PyExc_TypeError, "unpack_dual() wants a Tensor");
        return NULL;
    }
    tn_status status = tn_unpack_dual(t, &primal, &tangent);
    if (status != TN_OK)
        return tnpy_raise(status);
    PyObject *a = tnpy_wrap(primal);
    PyObject *b = tnpy_wrap(tangent);
    if (a && b)
        return Py_BuildValue("(NN)", a, b);
    Py_XDECREF(a);
    Py_XDECREF(b);
    return NULL;
}

static PyObject *set_enabled(PyObject *module, PyObject *on)
{
    (void)module;
    int truth = PyObject_IsTrue(on);
    return truth < 0 ? NULL : PyBool_FromLong(tn_set_forward_grad_enabled(truth));
}

static PyObject *is_enabled(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    bool on = tn_set_forward_grad_enabled(true);
    tn_set_forward_grad_enabled(on);
    return PyBool_FromLong(on);
}

static PyMethodDef functions[] = {
    {"_enter_dual_level", enter, METH_NOARGS, NULL},
    {"_exit_dual_level", leave, METH_NOARGS, NULL},
    {"_in_dual_level", entered, METH_NOARGS, NULL},
    {"_make_dual", make_dual, METH_VARARGS, NULL},
    {"_unpack_dual", unpack_dual, METH_O, NULL},
    {"_set_fwd_grad_enabled", set_enabled, METH_O, NULL},
    {"_is_fwd_grad_enabled", is_enabled, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

int tnpy_add_forward_ad(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
