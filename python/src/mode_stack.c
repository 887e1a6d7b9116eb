/* SPDX-License-Identifier: MIT */
/* mode_stack.c: the stack of function modes of a thread, and the default devices on it.
 *
 * Note [Devices on the stack]
 * `with torch.device(…)` puts a mode on the stack that gives factories their device. As long as
 * there are only such modes nobody need be asked: the innermost one's device is what factories take
 * for a default, tnpy_function_modes is 0, and the device itself lies on the stack, for which a
 * DeviceContext is made when somebody looks. With another mode on it all are asked, the innermost
 * first, and there is no default. While one answers, it and those inside it count as absent. */
#include "override.h"

enum { NEAR = 8 }; /* the first modes take no memory */
static _Thread_local PyObject *near[NEAR];
static _Thread_local PyObject *far; /* a list of the others */
static _Thread_local int n_modes, n_asked, answering;
_Thread_local int tnpy_function_modes;
_Thread_local tn_device tnpy_default_device = {TN_DEVICE_NONE, -1};
static PyObject *context_type; /* DeviceContext, once there is one */

static PyObject *mode_at(int i)
{
    return i < NEAR ? near[i] : PyList_GetItem(far, i - NEAR);
}

/* Takes @p mode, which may be NULL. It fails only where the stack has never been as high. */
static int set_mode(int i, PyObject *mode)
{
    if (i < NEAR) {
        PyObject *old = near[i];
        near[i] = mode;
        Py_XDECREF(old);
        return 0;
    }
    i -= NEAR;
    if (!mode)
        mode = Py_NewRef(Py_None);
    if (far && i < PyList_Size(far))
        return PyList_SetItem(far, i, mode);
    if (!far)
        far = PyList_New(0);
    int failed = !far || PyList_Append(far, mode);
    Py_DECREF(mode);
    return failed ? -1 : 0;
}

static bool is_device(PyObject *mode)
{
    return tnpy_is_device(mode) || (PyObject *)Py_TYPE(mode) == context_type;
}

static tn_device device_of(PyObject *mode)
{
    tn_device d = TN_NO_DEVICE;
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace); /* the mode that comes back on may have failed */
    PyObject *o = tnpy_is_device(mode) ? Py_NewRef(mode) : PyObject_GetAttrString(mode, "device");
    if (!o || tnpy_device_of(o, &d)) {
        PyErr_Clear();
        d = TN_NO_DEVICE;
    }
    Py_XDECREF(o);
    PyErr_Restore(type, value, trace);
    return d;
}

/* What the modes that are on now mean for calls. */
static void settle(void)
{
    tnpy_function_modes = n_asked ? n_modes : 0;
    tnpy_default_device = n_asked || !n_modes ? TN_NO_DEVICE : device_of(mode_at(n_modes - 1));
}

int tnpy_mode_push(PyObject *mode)
{
    if (set_mode(n_modes, Py_NewRef(mode)))
        return -1;
    n_modes++;
    n_asked += !is_device(mode);
    settle();
    return 0;
}

/* Off the top, where it stays in its place. */
static PyObject *step_down(void)
{
    PyObject *mode = mode_at(--n_modes);
    n_asked -= !is_device(mode);
    settle();
    return mode;
}

/* The mode in a place, for Python to see. */
static PyObject *shown(int i)
{
    PyObject *mode = mode_at(i);
    if (!tnpy_is_device(mode))
        return Py_NewRef(mode);
    int off = tnpy_function_off;
    tnpy_function_off = 2;
    PyObject *module = PyImport_ImportModule("tenon.utils._device");
    PyObject *made = module ? PyObject_CallMethod(module, "_context_of", "O", mode) : NULL;
    tnpy_function_off = off;
    Py_XDECREF(module);
    if (made && set_mode(i, Py_NewRef(made)))
        Py_CLEAR(made);
    return made;
}

PyObject *tnpy_mode_pop(void)
{
    if (n_modes == 0) {
        PyErr_SetString(PyExc_RuntimeError, "trying to pop from empty mode stack");
        return NULL;
    }
    PyObject *mode = Py_NewRef(step_down());
    (void)set_mode(n_modes, NULL);
    if (n_modes == 0 && !answering)
        Py_CLEAR(far); /* the thread may end after this */
    return mode;
}

bool tnpy_any_mode(void)
{
    return n_modes != 0;
}

PyObject *tnpy_mode_off(void)
{
    PyObject *mode = shown(n_modes - 1);
    if (mode) {
        (void)step_down();
        answering++;
    }
    return mode;
}

int tnpy_mode_on_again(PyObject *mode)
{
    answering--;
    return tnpy_mode_push(mode);
}

/* ---- for Python ---- */

static PyObject *push(PyObject *self, PyObject *mode)
{
    (void)self;
    return tnpy_mode_push(mode) ? NULL : Py_NewRef(Py_None);
}

static PyObject *pop(PyObject *self, PyObject *nothing)
{
    (void)self;
    (void)nothing;
    if (n_modes > 0) {
        PyObject *seen = shown(n_modes - 1);
        if (!seen)
            return NULL;
        Py_DECREF(seen);
    }
    return tnpy_mode_pop();
}

static PyObject *length(PyObject *self, PyObject *nothing)
{
    (void)self;
    (void)nothing;
    return PyLong_FromLong(n_modes);
}

static PyObject *at(PyObject *self, PyObject *o)
{
    (void)self;
    int64_t i;
    if (tnpy_int_of(o, &i))
        return NULL;
    if (i < 0 || i >= n_modes) {
        PyErr_SetString(PyExc_RuntimeError, "Tried to get stack at idx that's too big");
        return NULL;
    }
    return shown((int)i);
}

/* Tells which class is DeviceContext. */
static PyObject *set_context_type(PyObject *self, PyObject *type)
{
    (void)self;
    Py_XDECREF(context_type);
    context_type = Py_NewRef(type);
    return Py_NewRef(Py_None);
}

static PyMethodDef functions[] = {
    {"_push_on_torch_function_stack", push, METH_O, NULL},
    {"_pop_torch_function_stack", pop, METH_NOARGS, NULL},
    {"_len_torch_function_stack", length, METH_NOARGS, NULL},
    {"_get_function_stack_at", at, METH_O, NULL},
    {"_set_device_context_type", set_context_type, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

int tnpy_add_mode_stack(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
