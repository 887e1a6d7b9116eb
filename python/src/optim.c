/* SPDX-License-Identifier: MIT */
/* optim.c: what an optimizer does for each parameter at each step: find those that have gradients,
 * ask whether the fused kernels take them, forget the gradients. In C, because between two steps of
 * a model the interpreter's own data leaves the caches: there a loop of Python costs many times
 * what it costs by itself. tenon/optim/optimizer.py calls it. */
#include "override.h"

static PyObject *grad_name, *params_name;

tn_tensor *tnpy_plain_parameter(PyObject *o)
{
    return Py_TYPE(o) == tnpy_Tensor || Py_TYPE(o) == tnpy_Parameter ? tnpy_tensor(o) : NULL;
}

/* Both lists get their next entry, if the parameter has a gradient. *plain: no gradient of another
 * class than Tensor was seen. */
static int take_gradient(PyObject *p, PyObject *params, PyObject *grads, int *plain)
{
    PyObject *grad = PyObject_GetAttr(p, grad_name);
    if (!grad)
        return -1;
    int rc = 0;
    if (grad != Py_None) {
        *plain = *plain && Py_TYPE(grad) == tnpy_Tensor;
        rc = PyList_Append(params, p) < 0 || PyList_Append(grads, grad) < 0 ? -1 : 0;
    }
    Py_DECREF(grad);
    return rc;
}

/* _gradients(params) -> (params that have gradients, their gradients, all of these are of the class
 * Tensor itself). */
static PyObject *gradients(PyObject *module, PyObject *all)
{
    (void)module;
    Py_ssize_t n = PySequence_Size(all);
    PyObject *params = n < 0 ? NULL : PyList_New(0), *grads = params ? PyList_New(0) : NULL;
    int plain = 1, rc = grads ? 0 : -1;
    for (Py_ssize_t i = 0; rc == 0 && i < n; i++) {
        PyObject *p = PySequence_GetItem(all, i);
        rc = p ? take_gradient(p, params, grads, &plain) : -1;
        Py_XDECREF(p);
    }
    PyObject *made = rc == 0 ? PyTuple_Pack(3, params, grads, plain ? Py_True : Py_False) : NULL;
    Py_XDECREF(params);
    Py_XDECREF(grads);
    return made;
}

static int fusable(PyObject *p, PyObject *grad, PyObject *parameter, int halves)
{
    if ((Py_TYPE(p) != tnpy_Tensor && (PyObject *)Py_TYPE(p) != parameter) ||
        Py_TYPE(grad) != tnpy_Tensor)
        return 0;
    tn_tensor *a = tnpy_tensor(p), *b = tnpy_tensor(grad);
    if (!a || !b || tn_tensor_device(a).type != TN_DEVICE_CPU ||
        tn_tensor_device(b).type != TN_DEVICE_CPU)
        return 0;
    tn_dtype dtype = tn_tensor_dtype(a);
    /* The fused kernels may scale gradients in place: those of inference mode they may not. */
    if (tn_tensor_dtype(b) != dtype || tn_tensor_is_inference(b))
        return 0;
    return dtype == TN_DTYPE_F32 || dtype == TN_DTYPE_F64 ||
           (halves && (dtype == TN_DTYPE_F16 || dtype == TN_DTYPE_BF16));
}

/* _can_fuse(params, grads, Parameter, halves) -> whether the fused kernels take them all: floats,
 * doubles (and halves) on the CPU, of no class whose operators must be seen. */
static PyObject *can_fuse(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *params, *grads, *parameter;
    int halves;
    if (!PyArg_ParseTuple(args, "O!O!Op:_can_fuse", &PyList_Type, &params, &PyList_Type, &grads,
                          &parameter, &halves))
        return NULL;
    Py_ssize_t n = PyList_Size(params);
    if (PyList_Size(grads) != n) {
        PyErr_SetString(PyExc_ValueError, "_can_fuse: a gradient for each parameter is expected");
        return NULL;
    }
    for (Py_ssize_t i = 0; i < n; i++)
        if (!fusable(PyList_GetItem(params, i), PyList_GetItem(grads, i), parameter, halves))
            Py_RETURN_FALSE;
    Py_RETURN_TRUE;
}

static int forget_gradient(PyObject *p)
{
    tn_tensor *t = tnpy_function_modes ? NULL : tnpy_plain_parameter(p);
    if (t && tn_tensor_is_leaf(t)) {
        tn_status st = tn_tensor_set_grad(t, NULL);
        if (st != TN_OK)
            tnpy_raise(st);
        return st == TN_OK ? 0 : -1;
    }
    PyObject *grad = PyObject_GetAttr(p, grad_name); /* also for the warning of what is no leaf */
    int rc = !grad ? -1 : grad == Py_None ? 0 : PyObject_SetAttr(p, grad_name, Py_None);
    Py_XDECREF(grad);
    return rc;
}

static int forget_gradients_of(PyObject *params)
{
    Py_ssize_t n = PySequence_Size(params);
    int rc = n < 0 ? -1 : 0;
    for (Py_ssize_t i = 0; rc == 0 && i < n; i++) {
        PyObject *p = PySequence_GetItem(params, i);
        rc = p ? forget_gradient(p) : -1;
        Py_XDECREF(p);
    }
    return rc;
}

/* _forget_gradients(groups): each .grad of each group's "params" becomes None, if it is there. */
static PyObject *forget_gradients(PyObject *module, PyObject *groups)
{
    (void)module;
    Py_ssize_t n = PySequence_Size(groups);
    int rc = n < 0 ? -1 : 0;
    for (Py_ssize_t i = 0; rc == 0 && i < n; i++) {
        PyObject *group = PySequence_GetItem(groups, i);
        PyObject *params = group ? PyObject_GetItem(group, params_name) : NULL;
        rc = params ? forget_gradients_of(params) : -1;
        Py_XDECREF(params);
        Py_XDECREF(group);
    }
    if (rc < 0)
        return NULL;
    Py_RETURN_NONE;
}

/* _know_parameter(class): nn.Parameter. */
static PyObject *know_parameter(PyObject *module, PyObject *type)
{
    (void)module;
    if (!PyType_Check(type) || !PyType_IsSubtype((PyTypeObject *)(void *)type, tnpy_Tensor)) {
        PyErr_SetString(PyExc_TypeError, "_know_parameter: a class of tensors is expected");
        return NULL;
    }
    PyObject *before = (PyObject *)tnpy_Parameter;
    Py_INCREF(type);
    tnpy_Parameter = (PyTypeObject *)(void *)type;
    Py_XDECREF(before);
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"_know_parameter", know_parameter, METH_O, NULL},
    {"_gradients", gradients, METH_O, "Parameters that have gradients, and these."},
    {"_can_fuse", can_fuse, METH_VARARGS, "Whether fused kernels take these parameters."},
    {"_forget_gradients", forget_gradients, METH_O, "Set every gradient to None."},
    {NULL, NULL, 0, NULL},
};

int tnpy_add_optim(PyObject *module)
{
    grad_name = PyUnicode_InternFromString("grad");
    params_name = PyUnicode_InternFromString("params");
    return grad_name && params_name ? PyModule_AddFunctions(module, functions) : -1;
}
