/* SPDX-License-Identifier: MIT */
/* autocast.c: autocast regions and switches from Python. */
#include "grad.h"

#include "tenon/autocast.h"

#include <string.h>

static PyObject *done(tn_status status)
{
    if (status != TN_OK)
        return tnpy_raise(status);
    Py_RETURN_NONE;
}

/* "cpu", "cuda"; -1 with an exception. */
static int device_of(PyObject *o, tn_device_type *out)
{
    tn_device device;
    if (tnpy_device_of(o, &device) < 0)
        return -1;
    *out = (tn_device_type)device.type;
    return 0;
}

/* is_autocast_enabled(device_type="cuda") */
static PyObject *is_enabled(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *o = NULL;
    tn_device_type device = TN_DEVICE_CUDA;
    if (!PyArg_ParseTuple(args, "|O", &o) || (o && device_of(o, &device) < 0))
        return NULL;
    return PyBool_FromLong(tn_autocast_enabled(device));
}

/* set_autocast_enabled(device_type, enabled), or of CUDA: set_autocast_enabled(enabled) */
static PyObject *set_enabled(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *first, *second = NULL;
    tn_device_type device = TN_DEVICE_CUDA;
    if (!PyArg_ParseTuple(args, "O|O", &first, &second) ||
        (second && device_of(first, &device) < 0))
        return NULL;
    int on = PyObject_IsTrue(second ? second : first);
    return on < 0 ? NULL : done(tn_set_autocast_enabled(device, on));
}

static PyObject *get_dtype(PyObject *module, PyObject *o)
{
    (void)module;
    tn_device_type device;
    if (device_of(o, &device) < 0)
        return NULL;
    tn_dtype dtype = tn_autocast_dtype(device);
    if (dtype != TN_DTYPE_NONE)
        return tnpy_dtype(dtype);
    PyErr_Format(PyExc_RuntimeError,
                 "unsupported device type for autocast in get_autocast_dtype(): %S", o);
    return NULL;
}

static PyObject *set_dtype(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *where, *what;
    tn_device_type device;
    tn_dtype dtype;
    if (!PyArg_ParseTuple(args, "OO", &where, &what) || device_of(where, &device) < 0 ||
        tnpy_dtype_of(what, &dtype) < 0)
        return NULL;
    return done(tn_set_autocast_dtype(device, dtype));
}

static PyObject *is_cache_enabled(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return PyBool_FromLong(tn_autocast_cache_enabled());
}

static PyObject *set_cache_enabled(PyObject *module, PyObject *o)
{
    (void)module;
    int on = PyObject_IsTrue(o);
    if (on < 0)
        return NULL;
    tn_set_autocast_cache_enabled(on);
    Py_RETURN_NONE;
}

static PyObject *clear_cache(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    tn_autocast_clear_cache();
    Py_RETURN_NONE;
}

static PyObject *nest(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return PyLong_FromLong(tn_autocast_nesting(1));
}

static PyObject *unnest(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return PyLong_FromLong(tn_autocast_nesting(-1));
}

/* _autocast_enter(device_type, enabled, dtype or None, cache_enabled): a guard as bytes */
static PyObject *enter(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *where, *what;
    int enabled, cache;
    tn_device_type device;
    tn_dtype dtype = TN_DTYPE_NONE;
    if (!PyArg_ParseTuple(args, "OpOp", &where, &enabled, &what, &cache) ||
        device_of(where, &device) < 0 || (what != Py_None && tnpy_dtype_of(what, &dtype) < 0))
        return NULL;
    tn_autocast_guard guard;
    tn_status status = tn_autocast_enter(device, enabled, dtype, cache, &guard);
    if (status != TN_OK)
        return tnpy_raise(status);
    return PyBytes_FromStringAndSize((const char *)&guard, sizeof guard);
}

static PyObject *leave(PyObject *module, PyObject *o)
{
    (void)module;
    char *bytes;
    Py_ssize_t n;
    tn_autocast_guard guard;
    if (PyBytes_AsStringAndSize(o, &bytes, &n) < 0)
        return NULL;
    if (n != sizeof guard) {
        PyErr_SetString(PyExc_ValueError, "this is no guard of an autocast region");
        return NULL;
    }
    memcpy(&guard, bytes, sizeof guard);
    tn_autocast_leave(guard);
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"is_autocast_enabled", is_enabled, METH_VARARGS, "is_autocast_enabled(device_type) -> bool"},
    {"set_autocast_enabled", set_enabled, METH_VARARGS,
     "set_autocast_enabled(device_type, enabled)"},
    {"get_autocast_dtype", get_dtype, METH_O, "get_autocast_dtype(device_type) -> dtype"},
    {"set_autocast_dtype", set_dtype, METH_VARARGS, "set_autocast_dtype(device_type, dtype)"},
    {"is_autocast_cache_enabled", is_cache_enabled, METH_NOARGS, NULL},
    {"set_autocast_cache_enabled", set_cache_enabled, METH_O, NULL},
    {"clear_autocast_cache", clear_cache, METH_NOARGS, NULL},
    {"autocast_increment_nesting", nest, METH_NOARGS, NULL},
    {"autocast_decrement_nesting", unnest, METH_NOARGS, NULL},
    {"_autocast_enter", enter, METH_VARARGS, NULL},
    {"_autocast_leave", leave, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

int tnpy_add_autocast(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
