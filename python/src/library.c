/* SPDX-License-Identifier: MIT */
/* library.c: definitions and kernels that come from Python, for python/tenon/library.py. */
#include "opcall.h"

#include "grad.h"

#include <string.h>

typedef struct library_object {
    PyObject_HEAD tn_library *library; /* NULL once it was closed */
} library_object;

static tn_library *library_of(PyObject *o)
{
    tn_library *library = ((library_object *)(void *)o)->library;
    if (!library)
        PyErr_SetString(PyExc_RuntimeError, "the library was closed");
    return library;
}

static int key_of(const char *name, tn_key *out)
{
    *out = TN_KEY_NONE;
    tn_status st = name && name[0] ? tn_key_parse(name, out) : TN_OK;
    if (st != TN_OK)
        tnpy_raise(st);
    return st == TN_OK ? 0 : -1;
}

/* _Library(kind, namespace, key, file, line) */
static PyObject *make(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    (void)kwargs;
    int kind;
    const char *ns, *key_name, *file;
    int line;
    tn_key key;
    if (!PyArg_ParseTuple(args, "iszsi:_Library", &kind, &ns, &key_name, &file, &line) ||
        key_of(key_name, &key))
        return NULL;
    library_object *self = PyObject_New(library_object, type);
    if (!self)
        return NULL;
    self->library = NULL;
    tn_status st = tn_library_open((tn_library_kind)kind, ns, key, file, line, &self->library);
    if (st != TN_OK) {
        Py_DECREF((PyObject *)self);
        return tnpy_raise(st);
    }
    return (PyObject *)self;
}

static PyObject *close_library(PyObject *o, PyObject *nothing)
{
    (void)nothing;
    library_object *self = (library_object *)(void *)o;
    tn_library *library = self->library;
    self->library = NULL;
    tn_library_close(library);
    return Py_NewRef(Py_None);
}

static void let_go(PyObject *o)
{
    PyTypeObject *type = Py_TYPE(o);
    tn_library_close(((library_object *)(void *)o)->library);
    PyObject_Free(o);
    Py_DECREF(type);
}

/* define(schema, tags) */
static PyObject *define(PyObject *o, PyObject *args)
{
    const char *schema;
    PyObject *names;
    tn_library *library = library_of(o);
    if (!library || !PyArg_ParseTuple(args, "sO!:define", &schema, &PyTuple_Type, &names))
        return NULL;
    enum { MAX_TAGS = 32 };
    const char *tags[MAX_TAGS];
    int n = (int)PyTuple_Size(names);
    if (n > MAX_TAGS) {
        PyErr_SetString(PyExc_ValueError, "too many tags");
        return NULL;
    }
    for (int i = 0; i < n; i++)
        if (!(tags[i] = PyUnicode_AsUTF8AndSize(PyTuple_GetItem(names, i), NULL)))
            return NULL;
    tn_status st = tn_library_def_ex(library, schema, NULL, TN_ALIAS_FROM_SCHEMA, tags, n, NULL);
    return st == TN_OK ? Py_NewRef(Py_None) : tnpy_raise(st);
}

/* A kernel as Python gives it. */
typedef struct given {
    PyObject *fn;     /* None: it falls through */
    const char *name; /* what it is shown as, and where it is written: see python/tenon/_place.py */
    const char *file;
    int line;
} given;

/* The texts are copied when it is registered. */
static int kernel_of(const given *g, tn_kernel *out)
{
    if (g->fn == Py_None) {
        *out = tn_kernel_fallthrough(g->file, g->line);
        return 0;
    }
    tnpy_held *held = tnpy_hold(g->fn);
    if (!held)
        return -1;
    *out = (tn_kernel)TN_KERNEL_INIT(tnpy_python_kernel);
    out->ctx = held;
    out->destroy = tnpy_drop_any;
    out->name = g->name;
    out->file = g->file;
    out->line = g->line;
    return 0;
}

/* impl(name, key, fn, shown, file, line) */
static PyObject *implement(PyObject *o, PyObject *args)
{
    const char *name, *key_name;
    given g;
    tn_key key;
    tn_kernel kernel;
    tn_library *library = library_of(o);
    if (!library ||
        !PyArg_ParseTuple(args, "szOssi:impl", &name, &key_name, &g.fn, &g.name, &g.file,
                          &g.line) ||
        key_of(key_name, &key) || kernel_of(&g, &kernel))
        return NULL;
    tn_status st = tn_library_impl(library, name, key, &kernel, NULL);
    if (st != TN_OK && g.fn != Py_None)
        tnpy_drop(kernel.ctx);
    return st == TN_OK ? Py_NewRef(Py_None) : tnpy_raise(st);
}

/* fallback(key, fn, shown, file, line) */
static PyObject *fall_back(PyObject *o, PyObject *args)
{
    const char *key_name;
    given g;
    tn_key key;
    tn_kernel kernel;
    tn_library *library = library_of(o);
    if (!library ||
        !PyArg_ParseTuple(args, "sOssi:fallback", &key_name, &g.fn, &g.name, &g.file, &g.line) ||
        key_of(key_name, &key) || kernel_of(&g, &kernel))
        return NULL;
    tn_status st = tn_library_fallback(library, key, &kernel, NULL);
    if (st != TN_OK && g.fn != Py_None)
        tnpy_drop(kernel.ctx);
    return st == TN_OK ? Py_NewRef(Py_None) : tnpy_raise(st);
}

/* _below_autograd(fn, writes): call it with the keys of autograd excluded; the versions of what it
 * writes count on where `writes` says that it does. */
static PyObject *below_autograd(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *fn;
    int writes;
    if (!PyArg_ParseTuple(args, "Op:_below_autograd", &fn, &writes))
        return NULL;
    tn_keyset keys =
        tn_keyset_of(TN_KEY_AUTOGRAD_FUNCTIONALITY) | tn_keyset_of(TN_KEY_AUTOGRAD_OTHER);
    if (!writes)
        keys |= tn_keyset_of(TN_KEY_ADINPLACE_OR_VIEW);
    tn_key_guard guard = tn_exclude_keys(keys);
    PyObject *result = PyObject_CallNoArgs(fn);
    tn_keys_restore(guard);
    return result;
}

static PyMethodDef methods[] = {
    {"define", define, METH_VARARGS, NULL},
    {"impl", implement, METH_VARARGS, NULL},
    {"fallback", fall_back, METH_VARARGS, NULL},
    {"close", close_library, METH_NOARGS, "Undo all that was registered."},
    {NULL, NULL, 0, NULL},
};
static PyType_Slot slots[] = {
    {Py_tp_new, make},
    {Py_tp_dealloc, let_go},
    {Py_tp_methods, methods},
    {0, NULL},
};
static PyType_Spec spec = {"tenon._C._Library", sizeof(library_object), 0, Py_TPFLAGS_DEFAULT,
                           slots};
static PyMethodDef functions[] = {
    {"_below_autograd", below_autograd, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

int tnpy_add_library(PyObject *module)
{
    PyObject *type = PyType_FromSpec(&spec);
    if (!type || PyModule_AddObjectRef(module, "_Library", type))
        return -1;
    Py_DECREF(type);
    return PyModule_AddFunctions(module, functions);
}
