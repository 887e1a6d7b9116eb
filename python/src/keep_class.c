/* SPDX-License-Identifier: MIT */
/* keep_class.c: Tensor's own __torch_function__, which keeps the class of its arguments, and how it
 * is switched off: for a class, or for a while. */
#include "opcall.h"
#include "override.h"
#include "tenon/mode.h"

/* ---- keeping the class ---- */

PyObject *tnpy_wrap_kept(PyTypeObject *kept, tn_tensor *t)
{
    if (!kept || !t || tn_tensor_peer(t))
        return tnpy_wrap(t);
    return tnpy_wrap_as(kept, t);
}

/* Results of a call as objects of a class: tensors, and those in tuples and lists. Takes @p o. */
static PyObject *converted(PyObject *o, PyTypeObject *cls)
{
    if (!o || cls == tnpy_Tensor)
        return o;
    if (tnpy_is_tensor(o)) {
        if (PyType_IsSubtype(Py_TYPE(o), cls))
            return o;
        tn_tensor *alias;
        tn_call_modes_guard modes = tn_call_modes_off(); /* making an object is no call */
        tn_status st = tn_alias(tnpy_tensor(o), &alias);
        tn_call_modes_restore(modes);
        Py_DECREF(o);
        return st == TN_OK ? tnpy_wrap_as(cls, alias) : tnpy_raise(st);
    }
    if (!PyTuple_Check(o) && !PyList_Check(o))
        return o;
    Py_ssize_t n = PySequence_Size(o);
    PyObject *list = PyList_New(n);
    for (Py_ssize_t i = 0; list && i < n; i++) {
        PyObject *item = converted(PySequence_GetItem(o, i), cls);
        if (item)
            PyList_SetItem(list, i, item);
        else
            Py_CLEAR(list);
    }
    PyObject *result =
        list ? PyObject_CallFunctionObjArgs((PyObject *)Py_TYPE(o), list, NULL) : NULL;
    Py_XDECREF(list);
    Py_DECREF(o);
    return result;
}

PyObject *tnpy_as_kept(PyTypeObject *kept, PyObject *o)
{
    return converted(o, kept);
}

/* These give what the tensor has, whatever its class. */
static bool gives_as_is(PyObject *func)
{
    static PyObject *known[4];
    static const char *const names[] = {"grad", "_grad", "_base", "grad_fn"};
    for (int i = 0; i < 4; i++) {
        if (!known[i]) {
            PyObject *d = PyObject_GetAttrString((PyObject *)tnpy_Tensor, names[i]);
            known[i] = d ? PyObject_GetAttrString(d, "__get__") : NULL;
            Py_XDECREF(d);
            if (!known[i]) {
                PyErr_Clear();
                continue;
            }
        }
        int same = PyObject_RichCompareBool(func, known[i], Py_EQ);
        if (same < 0)
            PyErr_Clear();
        if (same > 0)
            return true;
    }
    return false;
}

static PyObject *call_off(int off, PyObject *func, PyObject *args, PyObject *kwargs)
{
    int before = tnpy_function_off;
    tnpy_function_off = off > before ? off : before;
    PyObject *tuple = PySequence_Tuple(args);
    PyObject *result = tuple ? PyObject_Call(func, tuple, kwargs == Py_None ? NULL : kwargs) : NULL;
    Py_XDECREF(tuple);
    tnpy_function_off = before;
    return result;
}

static int parse(PyObject *args, PyObject *kwargs, PyObject **func, PyObject **types, PyObject **a,
                 PyObject **k)
{
    static char *names[] = {"func", "types", "args", "kwargs", NULL};
    *k = Py_None;
    *a = NULL;
    return PyArg_ParseTupleAndKeywords(args, kwargs, "OO|OO:__torch_function__", names, func, types,
                                       a, k)
               ? 0
               : -1;
}

PyObject *tnpy_keep_class(PyObject *cls, PyObject *args, PyObject *kwargs)
{
    PyObject *func, *types, *a, *k;
    if (parse(args, kwargs, &func, &types, &a, &k))
        return NULL;
    PyObject *iterator = PyObject_GetIter(types), *type;
    if (!iterator)
        return NULL;
    bool good = true;
    while (good && (type = PyIter_Next(iterator))) {
        good = PyObject_IsSubclass(cls, type) == 1;
        Py_DECREF(type);
    }
    Py_DECREF(iterator);
    if (PyErr_Occurred())
        return NULL;
    if (!good)
        return Py_NewRef(Py_NotImplemented);
    PyObject *none = a ? Py_NewRef(a) : PyTuple_New(0);
    PyObject *result = none ? call_off(1, func, none, k) : NULL;
    Py_XDECREF(none);
    return result && gives_as_is(func) ? result : converted(result, (PyTypeObject *)cls);
}

PyObject *tnpy_run_disabled(PyObject *self, PyObject *args, PyObject *kwargs)
{
    (void)self;
    PyObject *func, *types, *a, *k;
    if (parse(args, kwargs, &func, &types, &a, &k))
        return NULL;
    PyObject *none = a ? Py_NewRef(a) : PyTuple_New(0);
    PyObject *result = none ? call_off(2, func, none, k) : NULL;
    Py_XDECREF(none);
    return result;
}

/* ---- switching it off: with DisableTorchFunctionSubclass(): ---- */

typedef struct guard_object {
    PyObject_HEAD int before;
    int off;
} guard_object;

static PyObject *guard_enter(PyObject *o, PyObject *nothing)
{
    (void)nothing;
    guard_object *g = (guard_object *)(void *)o;
    g->before = tnpy_function_off;
    if (tnpy_function_off < g->off)
        tnpy_function_off = g->off;
    return Py_NewRef(Py_None);
}

static PyObject *guard_exit(PyObject *o, PyObject *args)
{
    (void)args;
    tnpy_function_off = ((guard_object *)(void *)o)->before;
    return Py_NewRef(Py_None);
}

static PyTypeObject *guard_types[2];

static PyObject *guard_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    (void)args;
    (void)kwargs;
    guard_object *g = PyObject_New(guard_object, type);
    if (g) {
        g->before = 0;
        g->off = type == guard_types[1] ? 2 : 1;
    }
    return (PyObject *)g;
}

static void guard_dealloc(PyObject *o)
{
    PyTypeObject *type = Py_TYPE(o);
    PyObject_Free(o);
    Py_DECREF(type);
}

static PyMethodDef guard_methods[] = {
    {"__enter__", guard_enter, METH_NOARGS, NULL},
    {"__exit__", guard_exit, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};
static PyType_Slot guard_slots[] = {
    {Py_tp_new, guard_new},
    {Py_tp_dealloc, guard_dealloc},
    {Py_tp_methods, guard_methods},
    {0, NULL},
};
static PyType_Spec guard_specs[2] = {
    {"tenon._C.DisableTorchFunctionSubclass", sizeof(guard_object), 0, Py_TPFLAGS_DEFAULT,
     guard_slots},
    {"tenon._C.DisableTorchFunction", sizeof(guard_object), 0, Py_TPFLAGS_DEFAULT, guard_slots},
};

/* ---- classes that see operators ---- */

/* A class with a __torch_dispatch__ answers there: unless it has a __torch_function__ of its own,
 * it has none. */
static PyObject *init_subclass(PyObject *cls, PyObject *args, PyObject *kwargs)
{
    PyObject *above =
        PyObject_CallFunctionObjArgs((PyObject *)&PySuper_Type, (PyObject *)tnpy_Tensor, cls, NULL);
    PyObject *next = above ? PyObject_GetAttrString(above, "__init_subclass__") : NULL;
    PyObject *result = next ? PyObject_Call(next, args, kwargs) : NULL;
    Py_XDECREF(above);
    Py_XDECREF(next);
    if (!result || !tnpy_type_dispatches((PyTypeObject *)cls))
        return result;
    PyObject *own = PyObject_GetAttrString(cls, "__torch_function__");
    bool inherited = own && PyObject_TypeCheck(own, &PyCFunction_Type) &&
                     PyCFunction_GetFunction(own) == (PyCFunction)(void (*)(void))tnpy_keep_class;
    int failed = !own || (inherited &&
                          PyObject_SetAttrString(cls, "__torch_function__", tnpy_disabled_impl));
    Py_XDECREF(own);
    if (failed)
        Py_CLEAR(result);
    return result;
}

PyMethodDef tnpy_default_override[] = {
    {"__init_subclass__", (PyCFunction)(void (*)(void))init_subclass,
     METH_VARARGS | METH_KEYWORDS | METH_CLASS, NULL},
    {"__torch_function__", (PyCFunction)(void (*)(void))tnpy_keep_class,
     METH_VARARGS | METH_KEYWORDS | METH_CLASS,
     "__torch_function__(cls, func, types, args=(), kwargs=None)\n\nCalls func; results are of the "
     "class."},
    {NULL, NULL, 0, NULL},
};

int tnpy_add_keep_class(PyObject *module)
{
    for (int i = 0; i < 2; i++) {
        guard_types[i] = (PyTypeObject *)PyType_FromSpec(&guard_specs[i]);
        if (!guard_types[i] ||
            PyModule_AddObjectRef(module,
                                  i ? "DisableTorchFunction" : "DisableTorchFunctionSubclass",
                                  (PyObject *)guard_types[i]))
            return -1;
    }
    return 0;
}
