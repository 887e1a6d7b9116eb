/* SPDX-License-Identifier: MIT */
/* layer.c: the base of nn.Module, for what every call of every layer passes through: the call
 * itself, and names that stand in the tables of parameters, buffers and modules. In C, because
 * between the layers of a model the interpreter's own code and data leave the caches: a function of
 * Python's costs there many times what it costs by itself. All else is nn/modules/module.py.
 *
 * The type has no fields, so that a class can be a Module and something else at once, and it has no
 * setattr slot: object.__setattr__(module, name, value) is a way around Module's that is in use. */
#include "tnpy.h"

enum { N_HOOKS = 4, N_TABLES = 3 };

static PyObject *hook_names[N_HOOKS], *table_names[N_TABLES];
static PyObject *forward_name, *call_impl_name, *compiled_name;
/* Of nn/modules/module.py, once it is loaded: the hooks of all modules, and Module._call_impl. */
static PyObject *global_hooks[N_HOOKS], *call_impl;

static int is_empty_table(PyObject *o)
{
    return o && PyDict_Check(o) && PyDict_Size(o) == 0;
}

/* Whether nothing stands between the call and forward: no hooks, no _call_impl of another's. What
 * is odd (a module that was never initialised, tables that are no dictionaries) is none of those:
 * _call_impl meets it, and says what is wrong. -1: an exception is set. */
static int is_plain(PyObject *self, PyObject *own)
{
    for (int i = 0; i < N_HOOKS; i++)
        if (!is_empty_table(global_hooks[i]))
            return 0;
    for (int i = 0; i < N_HOOKS; i++) {
        PyObject *hooks = PyDict_GetItemWithError(own, hook_names[i]);
        if (!is_empty_table(hooks))
            return hooks || !PyErr_Occurred() ? 0 : -1;
    }
    if (PyDict_GetItemWithError(own, call_impl_name))
        return 0;
    if (PyErr_Occurred())
        return -1;
    PyObject *found = PyObject_GetAttr((PyObject *)Py_TYPE(self), call_impl_name);
    Py_XDECREF(found);
    return found ? found == call_impl : -1;
}

static PyObject *call(PyObject *self, PyObject *args, PyObject *kwargs)
{
    PyObject *own = PyObject_GenericGetDict(self, NULL);
    if (!own)
        return NULL;
    PyObject *function = PyDict_GetItemWithError(own, compiled_name), *result = NULL;
    if (function && function != Py_None) {
        Py_INCREF(function);
    } else {
        int plain = PyErr_Occurred() ? -1 : is_plain(self, own);
        if (plain > 0 && !kwargs && PyTuple_Size(args) == 1)
            result = tnpy_try_forward(self, own, PyTuple_GetItem(args, 0));
        function = plain < 0 || result || PyErr_Occurred()
                       ? NULL
                       : PyObject_GetAttr(self, plain ? forward_name : call_impl_name);
    }
    Py_DECREF(own);
    if (function) {
        result = PyObject_Call(function, args, kwargs);
        Py_DECREF(function);
    }
    return result;
}

/* A call that goes this way makes no tuple of the arguments; only where __call__ is ours still. */
PyObject *tnpy_try_module(PyObject *self, PyObject *input)
{
    if (PyType_GetSlot(Py_TYPE(self), Py_tp_call) != (void *)call)
        return NULL;
    PyObject *own = PyObject_GenericGetDict(self, NULL), *result = NULL;
    PyObject *compiled = own ? PyDict_GetItemWithError(own, compiled_name) : NULL;
    if (own && !compiled && !PyErr_Occurred() && is_plain(self, own) > 0)
        result = tnpy_try_forward(self, own, input);
    Py_XDECREF(own);
    return result;
}

/* A new reference; NULL without an exception when the table does not have the name. */
static PyObject *look_up(PyObject *table, PyObject *name)
{
    if (PyDict_CheckExact(table)) {
        PyObject *found = PyDict_GetItemWithError(table, name);
        Py_XINCREF(found);
        return found;
    }
    int has = PySequence_Contains(table, name); /* a class of its own may change what it gives */
    return has > 0 ? PyObject_GetItem(table, name) : NULL;
}

/* What is no attribute of the object or its class: a parameter, a buffer or a module. */
static PyObject *get_attribute(PyObject *self, PyObject *name)
{
    PyObject *own = PyObject_GenericGetDict(self, NULL), *found = NULL;
    for (int i = 0; own && !found && !PyErr_Occurred() && i < N_TABLES; i++) {
        PyObject *table = PyDict_GetItemWithError(own, table_names[i]);
        if (table) {
            Py_INCREF(table);
            found = look_up(table, name);
            Py_DECREF(table);
        }
    }
    Py_XDECREF(own);
    if (!found && !PyErr_Occurred()) {
        PyObject *type_name = PyType_GetName(Py_TYPE(self));
        if (type_name)
            PyErr_Format(PyExc_AttributeError, "'%U' object has no attribute '%S'", type_name,
                         name);
        Py_XDECREF(type_name);
    }
    return found;
}

/* _set_module_call(call_impl, hooks of all modules, …) */
static PyObject *set_module_call(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *given[1 + N_HOOKS];
    if (!PyArg_ParseTuple(args, "OO!O!O!O!:_set_module_call", &given[0], &PyDict_Type, &given[1],
                          &PyDict_Type, &given[2], &PyDict_Type, &given[3], &PyDict_Type,
                          &given[4]))
        return NULL;
    for (int i = 0; i <= N_HOOKS; i++) {
        PyObject **place = i ? &global_hooks[i - 1] : &call_impl, *before = *place;
        Py_INCREF(given[i]);
        *place = given[i];
        Py_XDECREF(before);
    }
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"__getattr__", get_attribute, METH_O, "A parameter, a buffer or a module by its name."},
    {NULL, NULL, 0, NULL},
};

static PyMethodDef functions[] = {
    {"_set_module_call", set_module_call, METH_VARARGS, "What a call of a module looks at."},
    {NULL, NULL, 0, NULL},
};

static char doc[] = "The base of nn.Module: how it is called, and finds what it holds.";

static PyType_Slot slots[] = {
    {Py_tp_doc, doc},
    {Py_tp_call, (void *)call},
    {Py_tp_methods, methods},
    {0, NULL},
};

static PyType_Spec spec = {
    "tenon._C._ModuleBase", 0, 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots,
};

static int intern(PyObject **out, const char *text)
{
    *out = PyUnicode_InternFromString(text);
    return *out ? 0 : -1;
}

int tnpy_add_layer(PyObject *module)
{
    static const char *const hooks[N_HOOKS] = {"_backward_hooks", "_backward_pre_hooks",
                                               "_forward_hooks", "_forward_pre_hooks"};
    static const char *const tables[N_TABLES] = {"_parameters", "_buffers", "_modules"};
    for (int i = 0; i < N_HOOKS; i++)
        if (intern(&hook_names[i], hooks[i]))
            return -1;
    for (int i = 0; i < N_TABLES; i++)
        if (intern(&table_names[i], tables[i]))
            return -1;
    if (intern(&forward_name, "forward") || intern(&call_impl_name, "_call_impl") ||
        intern(&compiled_name, "_compiled_call_impl"))
        return -1;
    PyObject *type = PyType_FromSpec(&spec);
    int rc = !type || PyModule_AddObjectRef(module, "_ModuleBase", type) ? -1 : 0;
    Py_XDECREF(type);
    return rc || PyModule_AddFunctions(module, functions) ? -1 : 0;
}
