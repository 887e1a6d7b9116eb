/* SPDX-License-Identifier: MIT */
/* opcall.c: calling an operator by its schema, and being called by it. python/tenon/_ops.py reads
 * the schema's text and says of what kinds its arguments and results are; calls are made and
 * answered here, with values that opvalue.c converts. */
#include "opcall.h"

#include "grad.h"
#include "override.h"
#include "type.h"

#include <stdlib.h>
#include <string.h>

static PyTypeObject *operator_type;
static PyObject *misfit; /* raised with a position, for _ops.py to explain */
static PyObject *asked;  /* raised for _ops.py, which has the call as it was written */
static PyObject *known;  /* {address of the tn_op: its object} */

static tnpy_operator *self_of(PyObject *o)
{
    return (tnpy_operator *)(void *)o;
}

/* ---- making ---- */

static void let_go(PyObject *o)
{
    tnpy_operator *self = self_of(o);
    PyTypeObject *type = Py_TYPE(o);
    free(self->params);
    free(self->name);
    Py_XDECREF(self->defaults);
    PyObject_Free(o);
    Py_DECREF(type);
}

static int read_params(tnpy_operator *self, PyObject *kinds)
{
    Py_ssize_t n = PyTuple_Size(kinds);
    self->params = calloc((size_t)n + 1, sizeof *self->params);
    if (!self->params) {
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        int kind, flags, size;
        if (!PyArg_ParseTuple(PyTuple_GetItem(kinds, i), "iii", &kind, &flags, &size))
            return -1;
        self->params[i] = (tnpy_param){0, (uint8_t)kind, (uint8_t)flags, size, NULL, {0}};
    }
    return 0;
}

/* _Operator(name, kinds, n_args, n_positional, defaults, numbers) */
static PyObject *make(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    (void)kwargs;
    const char *name;
    PyObject *kinds, *defaults;
    int n_args, n_positional, numbers;
    if (!PyArg_ParseTuple(args, "sO!iiO!p", &name, &PyTuple_Type, &kinds, &n_args, &n_positional,
                          &PyTuple_Type, &defaults, &numbers))
        return NULL;
    int n = (int)PyTuple_Size(kinds);
    if (n_args > n || n_args > TNPY_MAX_ARGS || n - n_args > TNPY_MAX_ARGS ||
        n_positional > n_args || PyTuple_Size(defaults) != n_args) {
        PyErr_SetString(PyExc_ValueError, "the numbers of arguments contradict each other");
        return NULL;
    }
    tn_op *op;
    tn_status st = tn_op_find(name, &op);
    if (st != TN_OK)
        return tnpy_raise(st);
    tnpy_operator *self = PyObject_New(tnpy_operator, type);
    if (!self)
        return NULL;
    memset((char *)self + sizeof(PyObject), 0, sizeof *self - sizeof(PyObject));
    self->op = op;
    self->defaults = Py_NewRef(defaults);
    self->n_args = n_args;
    self->n_rets = n - n_args;
    self->n_positional = n_positional;
    self->name = strdup(name);
    if (!self->name || read_params(self, kinds)) {
        if (!self->name)
            PyErr_NoMemory();
        Py_DECREF((PyObject *)self);
        return NULL;
    }
    self->sig = (tnpy_sig){.op = self->name, .params = self->params, .n = (uint8_t)n_args};
    self->entry = (tnpy_entry){
        .name = self->name, .sigs = &self->sig, .n = 1, .numbers = (uint8_t)(numbers != 0)};
    return (PyObject *)self;
}

/* ---- finding ---- */

tnpy_operator *tnpy_operator_of(tn_op *op)
{
    PyObject *key = PyLong_FromVoidPtr(op);
    PyObject *found = key ? PyDict_GetItemWithError(known, key) : NULL;
    Py_XDECREF(key);
    if (found || PyErr_Occurred())
        return (tnpy_operator *)(void *)found;
    PyObject *module = PyImport_ImportModule("tenon._ops");
    PyObject *overload =
        module ? PyObject_CallMethod(module, "_overload", "s", tn_op_name(op)) : NULL;
    PyObject *made = overload ? PyObject_GetAttrString(overload, "_op") : NULL;
    Py_XDECREF(module);
    Py_XDECREF(overload);
    Py_XDECREF(made); /* the overload has it, and the table of overloads has that */
    return (tnpy_operator *)(void *)made;
}

/* remember(overload): this operator is that object, from now on. */
static PyObject *remember(PyObject *o, PyObject *overload)
{
    PyObject *key = PyLong_FromVoidPtr(self_of(o)->op);
    int failed = !key || PyDict_SetItem(known, key, o);
    Py_XDECREF(key);
    if (failed)
        return NULL;
    self_of(o)->overload = overload;
    return Py_NewRef(Py_None);
}

/* forget(): its definition goes. */
static PyObject *forget(PyObject *o, PyObject *nothing)
{
    (void)nothing;
    PyObject *key = PyLong_FromVoidPtr(self_of(o)->op);
    if (!key)
        return NULL;
    if (PyDict_DelItem(known, key))
        PyErr_Clear();
    Py_DECREF(key);
    return Py_NewRef(Py_None);
}

/* ---- calling ---- */

/* @p keys NULL: a call; else a redispatch with these keys. */
static PyObject *call_with(PyObject *o, PyObject *args, const tn_keyset *keys)
{
    tnpy_operator *self = self_of(o);
    Py_ssize_t n = PyTuple_Size(args);
    if (n > self->n_args) {
        PyErr_SetObject(misfit, Py_None);
        return NULL;
    }
    if (TNPY_UNLIKELY(!keys && tnpy_operator_asks(args))) {
        PyErr_SetNone(asked);
        return NULL;
    }
    tnpy_frame f;
    tnpy_frame_begin(&f);
    tnpy_frame_forget(&f);
    tnpy_call c = {.entry = &self->entry,
                   .numbers = self->entry.numbers,
                   .tensors = true,
                   .by_schema = true,
                   .n = (int)n};
    int found = 1;
    Py_ssize_t at = 0;
    for (; at < n; at++) {
        found = tnpy_fit(&c, &f, &self->params[at], PyTuple_GetItem(args, at), true, &f.v[at]);
        if (found != 1)
            break;
    }
    PyObject *result = NULL;
    if (found < 0 && !PyErr_ExceptionMatches(PyExc_TypeError))
        goto out;
    if (found != 1) {
        PyErr_Clear();
        PyObject *place = PyLong_FromSsize_t(at);
        PyErr_SetObject(misfit, place);
        Py_XDECREF(place);
        goto out;
    }
    tn_value rets[TNPY_MAX_ARGS];
    PyThreadState *state = f.work >= TNPY_LONG_WORK ? tnpy_unlock() : NULL;
    tn_status st = keys ? tn_op_call_with_keys(self->op, *keys, f.v, (int)n, rets)
                        : tn_op_call(self->op, f.v, (int)n, rets);
    if (state)
        tnpy_lock(state);
    result = st == TN_OK ? tnpy_results_to_python(self, rets) : tnpy_raise(st);
out:
    tnpy_frame_drop(&f);
    return result;
}

static PyObject *call(PyObject *o, PyObject *args, PyObject *kwargs)
{
    if (kwargs && PyDict_Size(kwargs)) {
        PyErr_SetString(PyExc_TypeError, "arguments of an operator come by position here");
        return NULL;
    }
    return call_with(o, args, NULL);
}

/* redispatch(keys, args): the keys as a number, the arguments as a tuple */
static PyObject *redispatch(PyObject *o, PyObject *given)
{
    unsigned long long keys;
    PyObject *args;
    if (!PyArg_ParseTuple(given, "KO!", &keys, &PyTuple_Type, &args))
        return NULL;
    return call_with(o, args, &(tn_keyset){keys});
}

/* ---- kernels in Python ---- */

/* The keys that the kernel which is just called was dispatched with: it asks first thing, if at
 * all. */
static _Thread_local tn_keyset kernel_keys;

static PyObject *keys_of_kernel(PyObject *self, PyObject *nothing)
{
    (void)self, (void)nothing;
    return PyLong_FromUnsignedLongLong(kernel_keys);
}

tn_status tnpy_python_kernel(tn_call *call, const tn_value *args, tn_value *rets)
{
    PyGILState_STATE lock = tnpy_lock_any();
    tnpy_held *held = tn_call_context(call);
    tnpy_operator *o = tnpy_operator_of(tn_call_op(call));
    PyObject *tuple = NULL, *kwargs = NULL, *result = NULL;
    tn_status st;
    if (o && tnpy_arguments_to_python(o, args, &tuple, &kwargs) == 0) {
        kernel_keys = tn_call_keys(call);
        result = PyObject_Call(held->object, tuple, kwargs);
    }
    st = result ? tnpy_results_of(o, result, rets) : tnpy_failed();
    Py_XDECREF(tuple);
    Py_XDECREF(kwargs);
    Py_XDECREF(result);
    tnpy_unlock_any(lock);
    return st;
}

/* ---- the type ---- */

static PyObject *schema_text(PyObject *self, PyObject *name)
{
    (void)self;
    const char *text = PyUnicode_AsUTF8AndSize(name, NULL);
    tn_op *op;
    char *schema;
    if (!text)
        return NULL;
    if (tn_op_find(text, &op) != TN_OK || !tn_op_has_schema(op))
        return Py_NewRef(Py_None);
    tn_status st = tn_op_schema(op, &schema);
    if (st != TN_OK)
        return tnpy_raise(st);
    PyObject *o = PyUnicode_FromString(schema);
    tn_string_free(schema);
    return o;
}

/* _operator_names(prefix): those that have a schema and whose names begin so. */
static PyObject *operator_names(PyObject *self, PyObject *prefix)
{
    (void)self;
    const char *text = PyUnicode_AsUTF8AndSize(prefix, NULL);
    tn_op **list;
    size_t n;
    if (!text)
        return NULL;
    tn_status st = tn_op_list(&list, &n);
    if (st != TN_OK)
        return tnpy_raise(st);
    PyObject *names = PyList_New(0);
    for (size_t i = 0; names && i < n; i++) {
        const char *name = tn_op_name(list[i]);
        if (strncmp(name, text, strlen(text)) || !tn_op_has_schema(list[i]))
            continue;
        PyObject *item = PyUnicode_FromString(name);
        if (!item || PyList_Append(names, item))
            Py_CLEAR(names);
        Py_XDECREF(item);
    }
    tn_op_list_free(list);
    return names;
}

static PyObject *tags(PyObject *o, PyObject *nothing)
{
    (void)nothing;
    return PyUnicode_FromString(tn_op_tags(self_of(o)->op));
}

static PyMethodDef methods[] = {
    {"tags", tags, METH_NOARGS, NULL},
    {"redispatch", redispatch, METH_VARARGS, NULL},
    {"remember", remember, METH_O, NULL},
    {"forget", forget, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};
static PyType_Slot slots[] = {
    {Py_tp_new, make},
    {Py_tp_dealloc, let_go},
    {Py_tp_call, call},
    {Py_tp_methods, methods},
    {Py_tp_doc, "An operator, called with its arguments by position."},
    {0, NULL},
};
static PyType_Spec spec = {"tenon._C._Operator", sizeof(tnpy_operator), 0, Py_TPFLAGS_DEFAULT,
                           slots};

/* _takes_numbers(name): whether a number may stand for a tensor. */
static PyObject *takes_numbers(PyObject *self, PyObject *name)
{
    (void)self;
    const char *text = PyUnicode_AsUTF8AndSize(name, NULL);
    if (!text)
        return NULL;
    const tnpy_entry *e = tnpy_find_entry(tnpy_function_entries, text);
    if (!e)
        e = tnpy_find_entry(tnpy_method_entries, text);
    return PyBool_FromLong(e && e->numbers);
}

static PyObject *module_name(PyObject *self, PyObject *nothing)
{
    (void)self;
    (void)nothing;
    return PyUnicode_FromString(tnpy_module_name());
}

/* _asks(arguments): is somebody asked about a call with these? */
static PyObject *asks(PyObject *self, PyObject *args)
{
    (void)self;
    return PyBool_FromLong(PyTuple_Check(args) && tnpy_operator_asks(args));
}

/* _ask(func, args, kwargs): ask them. */
static PyObject *ask(PyObject *self, PyObject *given)
{
    (void)self;
    PyObject *func, *args, *kwargs;
    if (!PyArg_ParseTuple(given, "OO!O!", &func, &PyTuple_Type, &args, &PyDict_Type, &kwargs))
        return NULL;
    return tnpy_override_operator(func, args, kwargs);
}

static PyMethodDef functions[] = {
    {"_asks", asks, METH_O, NULL},
    {"_ask", ask, METH_VARARGS, NULL},
    {"_takes_numbers", takes_numbers, METH_O, NULL},
    {"_kernel_keys", keys_of_kernel, METH_NOARGS, NULL},
    {"_module_name", module_name, METH_NOARGS, NULL},
    {"_schema_text", schema_text, METH_O, "_schema_text(name) -> str or None"},
    {"_operator_names", operator_names, METH_O, "_operator_names(prefix) -> list"},
    {NULL, NULL, 0, NULL},
};

int tnpy_add_opcall(PyObject *module)
{
    operator_type = (PyTypeObject *)PyType_FromSpec(&spec);
    misfit = PyErr_NewException("tenon._C._Misfit", PyExc_TypeError, NULL);
    asked = PyErr_NewException("tenon._C._Asked", PyExc_TypeError, NULL);
    known = PyDict_New();
    if (!operator_type || !misfit || !asked || !known ||
        PyModule_AddObjectRef(module, "_Operator", (PyObject *)operator_type) ||
        PyModule_AddObjectRef(module, "_Misfit", misfit) ||
        PyModule_AddObjectRef(module, "_Asked", asked))
        return -1;
    return PyModule_AddFunctions(module, functions);
}
