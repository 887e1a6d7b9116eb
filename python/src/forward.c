/* SPDX-License-Identifier: MIT */
/* forward.c: what nn.Linear, nn.ReLU and nn.Sequential compute, for a call that comes from layer.c:
 * without a function of Python's in between, where that is the same. It is when the class is one of
 * these themselves, nobody replaced its forward or the function of nn.functional that forward
 * calls, and the arguments are one value. All else goes through forward. While Python's frames are
 * to be seen (a profile with stacks) everything does. */
#include "override.h"
#include "type.h"

enum { LINEAR, RELU, SEQUENTIAL, N_KINDS };

/* What is known of a class. */
static struct known {
    PyObject *type, *forward;
    PyObject *names, *name, *function; /* of the module nn.functional; NULL: it calls none */
} known[N_KINDS];
static tnpy_entry *entries[N_KINDS];
static PyObject *parameters_name, *modules_name, *weight_name, *bias_name, *inplace_name,
    *forward_name;
static int frames_wanted;

/* 0 or 1; -1 with an exception. */
static int is_unchanged(const struct known *k)
{
    PyObject *forward = PyObject_GetAttr(k->type, forward_name);
    Py_XDECREF(forward);
    if (forward != k->forward)
        return forward ? 0 : -1;
    if (!k->names || PyDict_GetItemWithError(k->names, k->name) == k->function)
        return 1;
    return PyErr_Occurred() ? -1 : 0;
}

/* These give NULL without an exception when forward has to do it. */

static PyObject *linear(PyObject *own, PyObject *input)
{
    PyObject *held = PyDict_GetItemWithError(own, parameters_name);
    if (!held || !PyDict_CheckExact(held))
        return NULL;
    PyObject *args[] = {input, PyDict_GetItemWithError(held, weight_name),
                        PyDict_GetItemWithError(held, bias_name)};
    if (!args[1] || !args[2])
        return NULL;
    Py_INCREF(args[1]);
    Py_INCREF(args[2]);
    PyObject *result = tnpy_call_function(entries[LINEAR], args, 3, NULL);
    Py_DECREF(args[1]);
    Py_DECREF(args[2]);
    return result;
}

static PyObject *relu(PyObject *own, PyObject *input)
{
    if (PyDict_GetItemWithError(own, inplace_name) != Py_False || !tnpy_tensor(input) ||
        tnpy_function_on(input))
        return NULL;
    return tnpy_call_function(entries[RELU], &input, 1, NULL);
}

static int kind_of(PyObject *self)
{
    int kind = 0;
    while (kind < N_KINDS && known[kind].type != (PyObject *)Py_TYPE(self))
        kind++;
    return kind;
}

static PyObject *sequential(PyObject *own, PyObject *input)
{
    PyObject *modules = PyDict_GetItemWithError(own, modules_name);
    if (!modules || !PyDict_CheckExact(modules))
        return NULL;
    Py_INCREF(modules);
    Py_INCREF(input);
    PyObject *module;
    Py_ssize_t at = 0, n = PyDict_Size(modules);
    while (input && PyDict_Next(modules, &at, NULL, &module)) {
        Py_INCREF(module);
        /* Not for a Sequential in it: CPython counts how deep calls of calls are. */
        PyObject *output = kind_of(module) < SEQUENTIAL ? tnpy_try_module(module, input) : NULL;
        if (!output && !PyErr_Occurred())
            output = PyObject_CallFunctionObjArgs(module, input, NULL);
        Py_DECREF(module);
        Py_DECREF(input);
        input = output;
        if (input && PyDict_Size(modules) != n) {
            PyErr_SetString(PyExc_RuntimeError, "dictionary changed size during iteration");
            Py_CLEAR(input);
        }
    }
    Py_DECREF(modules);
    return input;
}

PyObject *tnpy_try_forward(PyObject *self, PyObject *own, PyObject *input)
{
    static PyObject *(*const run[N_KINDS])(PyObject *, PyObject *) = {linear, relu, sequential};
    int kind = kind_of(self);
    if (kind == N_KINDS || frames_wanted || PyDict_GetItemWithError(own, forward_name) ||
        PyErr_Occurred() || is_unchanged(&known[kind]) <= 0)
        return NULL;
    return run[kind](own, input);
}

static void keep(PyObject **place, PyObject *o)
{
    PyObject *before = *place;
    Py_XINCREF(o);
    *place = o;
    Py_XDECREF(before);
}

/* _know_forward(kind, class, names of nn.functional, the name that forward calls): kind is 0,
 * Linear; 1, ReLU; 2, Sequential, which calls none. */
static PyObject *know_forward(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *type, *names = NULL, *name = NULL;
    int kind;
    if (!PyArg_ParseTuple(args, "iO|O!U:_know_forward", &kind, &type, &PyDict_Type, &names, &name))
        return NULL;
    if (kind < 0 || kind >= N_KINDS || (kind != SEQUENTIAL && !name)) {
        PyErr_SetString(PyExc_ValueError, "_know_forward: no such kind, or no function");
        return NULL;
    }
    PyObject *forward = PyObject_GetAttr(type, forward_name);
    PyObject *function = names && forward ? PyDict_GetItemWithError(names, name) : NULL;
    if (!forward || PyErr_Occurred()) {
        Py_XDECREF(forward);
        return NULL;
    }
    struct known *k = &known[kind];
    keep(&k->type, type);
    keep(&k->forward, forward);
    keep(&k->names, names);
    keep(&k->name, name);
    keep(&k->function, function);
    Py_DECREF(forward);
    Py_RETURN_NONE;
}

/* _want_frames(on): whether every forward is called as a function of Python's. */
static PyObject *want_frames(PyObject *module, PyObject *on)
{
    (void)module;
    int wanted = PyObject_IsTrue(on);
    if (wanted < 0)
        return NULL;
    frames_wanted = wanted;
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"_know_forward", know_forward, METH_VARARGS, NULL},
    {"_want_frames", want_frames, METH_O, "Whether forward is always a function of Python's."},
    {NULL, NULL, 0, NULL},
};

static int intern(PyObject **out, const char *text)
{
    *out = PyUnicode_InternFromString(text);
    return *out ? 0 : -1;
}

int tnpy_add_forward(PyObject *module)
{
    entries[LINEAR] = tnpy_find_entry(tnpy_function_entries, "linear");
    entries[RELU] = tnpy_find_entry(tnpy_function_entries, "relu");
    if (!entries[LINEAR] || !entries[RELU] || intern(&parameters_name, "_parameters") ||
        intern(&modules_name, "_modules") || intern(&weight_name, "weight") ||
        intern(&bias_name, "bias") || intern(&inplace_name, "inplace") ||
        intern(&forward_name, "forward"))
        return -1;
    return PyModule_AddFunctions(module, functions);
}
