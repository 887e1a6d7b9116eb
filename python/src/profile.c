/* SPDX-License-Identifier: MIT */
/* profile.c: the profiler from Python: recordings, and what was recorded as plain tuples. */
#include "grad.h"

#include "tenon/profiler.h"

typedef struct profile_object {
    PyObject_HEAD tn_profile *profile;
} profile_object;

static PyTypeObject *Profile;

static void profile_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    tn_profile_free(((profile_object *)self)->profile);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

static tn_profile *profile_of(PyObject *self)
{
    return ((profile_object *)self)->profile;
}

/* (kind, name, shapes, kernel, start_ns, duration_ns, self_ns, thread, depth, parent, sequence,
 * allocated - freed) */
static PyObject *event_tuple(const tn_profile_event *e)
{
    return Py_BuildValue("(isssKKKIiLLL)", (int)e->kind, e->name, e->shapes, e->kernel,
                         (unsigned long long)e->start_ns, (unsigned long long)e->duration_ns,
                         (unsigned long long)e->self_ns, (unsigned)e->thread, (int)e->depth,
                         (long long)e->parent, (long long)e->sequence,
                         (long long)(e->allocated - e->freed));
}

static PyObject *profile_events(PyObject *self, PyObject *unused)
{
    (void)unused;
    size_t n = tn_profile_num_events(profile_of(self));
    PyObject *list = PyList_New((Py_ssize_t)n);
    for (size_t i = 0; i < n && list; i++) {
        tn_profile_event e = {.size = sizeof e};
        tn_status status = tn_profile_get_event(profile_of(self), i, &e);
        PyObject *item = status == TN_OK ? event_tuple(&e) : tnpy_raise(status);
        if (item)
            PyList_SetItem(list, (Py_ssize_t)i, item);
        else
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *profile_write(PyObject *self, PyObject *path)
{
    PyObject *bytes = NULL;
    if (!PyUnicode_FSConverter(path, &bytes))
        return NULL;
    tn_status status = tn_profile_write(profile_of(self), PyBytes_AsString(bytes));
    Py_DECREF(bytes);
    if (status != TN_OK)
        return tnpy_raise(status);
    Py_RETURN_NONE;
}

/* trace(more): a Chrome trace as bytes; more: members for its outermost object. */
static PyObject *profile_trace(PyObject *self, PyObject *more)
{
    const char *members = PyUnicode_AsUTF8AndSize(more, NULL);
    char *text = NULL;
    if (!members)
        return NULL;
    tn_status status = tn_profile_trace(profile_of(self), members, &text);
    if (status != TN_OK)
        return tnpy_raise(status);
    PyObject *bytes = PyBytes_FromString(text);
    tn_string_free(text);
    return bytes;
}

static PyObject *get_duration(PyObject *self, void *closure)
{
    (void)closure;
    return PyLong_FromUnsignedLongLong(tn_profile_duration_ns(profile_of(self)));
}

static PyMethodDef profile_methods[] = {
    {"events", profile_events, METH_NOARGS, NULL},
    {"write", profile_write, METH_O,
     "write(path)\n--\n\nA Chrome trace (.json), a page (.html) or a table (.txt)."},
    {"trace", profile_trace, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};
static PyGetSetDef profile_getset[] = {
    {"duration_ns", get_duration, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
static PyType_Slot slots[] = {
    {Py_tp_dealloc, profile_dealloc},
    {Py_tp_methods, profile_methods},
    {Py_tp_getset, profile_getset},
    {0, NULL},
};
static PyType_Spec spec = {
    .name = "tenon._C._Profile",
    .basicsize = sizeof(profile_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};

/* _profiler_start(shapes, memory, stack, integers) */
static PyObject *start(PyObject *module, PyObject *args)
{
    (void)module;
    int shapes, memory, stack, integers;
    if (!PyArg_ParseTuple(args, "pppp", &shapes, &memory, &stack, &integers))
        return NULL;
    tn_profiler_options options = TN_PROFILER_OPTIONS_INIT;
    options.shapes = shapes;
    options.integers = integers;
    options.memory = memory;
    options.stack = stack;
    tn_status status = tn_profiler_start(&options);
    if (status != TN_OK)
        return tnpy_raise(status);
    Py_RETURN_NONE;
}

/* _profiler_stop(): a _Profile. Without memory for it the recording is lost: who leaves a block
 * that is profiled is not profiled any more. */
static PyObject *stop(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    tn_profile *profile = NULL;
    tn_status status = tn_profiler_stop(&profile);
    if (status != TN_OK) {
        tnpy_raise(status);
        if (status == TN_NOMEM && tn_profiler_stop(NULL) != TN_OK)
            tn_clear_error();
        return NULL;
    }
    profile_object *o = (profile_object *)PyType_GenericAlloc(Profile, 0);
    if (!o) {
        tn_profile_free(profile);
        return NULL;
    }
    o->profile = profile;
    return (PyObject *)o;
}

static PyObject *running(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return PyBool_FromLong(tn_profiler_running());
}

static PyObject *range_begin(PyObject *module, PyObject *name)
{
    (void)module;
    const char *text = PyUnicode_AsUTF8AndSize(name, NULL);
    tn_status status = text ? tn_profiler_range_begin(text) : TN_OK;
    if (status != TN_OK)
        return tnpy_raise(status);
    return text ? Py_NewRef(Py_None) : NULL;
}

/* A range that began before the recording, or in another one, ends without a word. */
static PyObject *range_end(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    tn_status status = tn_profiler_range_end();
    if (status != TN_OK)
        tn_clear_error();
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"_profiler_start", start, METH_VARARGS, NULL},
    {"_profiler_stop", stop, METH_NOARGS, NULL},
    {"_profiler_running", running, METH_NOARGS, NULL},
    {"_profiler_range_begin", range_begin, METH_O, NULL},
    {"_profiler_range_end", range_end, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

int tnpy_add_profile(PyObject *module)
{
    Profile = (PyTypeObject *)PyType_FromSpec(&spec);
    if (!Profile || PyModule_AddObjectRef(module, "_Profile", (PyObject *)Profile) < 0)
        return -1;
    return PyModule_AddFunctions(module, functions);
}
